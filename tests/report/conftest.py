"""What the tests of documents share: one audit of every kind."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.auditing.plan import Origin

if TYPE_CHECKING:
    from collections.abc import Callable

WORLDVIEW = mm.Worldview(
    {
        "salary": mm.Linear("gender", "origin"),
        "savings": mm.Linear("salary", "gender", decimals=1, bounds=(0, None)),
    }
)
RULE = "salary + savings > 62"


def applicants(rows: int = 160) -> pd.DataFrame:
    """Make up applicants; salaries are on a coarse grid, so that people tie."""
    rng = np.random.default_rng(5)
    gender, origin = rng.choice(["f", "m"], rows), rng.choice(["far", "near"], rows)
    paid = 40 + 10 * (gender == "m") + 3 * (origin == "near") + rng.normal(0, 6, rows)
    salary = 5 * np.round(paid / 5)
    savings = 2 * np.round(0.15 * paid + rng.normal(0, 1.5, rows))
    return pd.DataFrame(
        {
            "name": [f"applicant-{row}" for row in range(rows)],
            "gender": gender,
            "origin": origin,
            "salary": salary,
            "savings": savings,
            "job": rng.choice(["clerk", "cook", "pilot"], rows, p=[0.6, 0.37, 0.03]),
            "grade": rng.choice(["low", "mid", "high"], rows),
            "granted": np.where(salary + savings > 62, "yes", "no"),
        }
    )


def make_audit(table: pd.DataFrame | None = None, **options: Any) -> mm.Audit:
    """Audit the applicants by the paper's methods, with other settings where they are given."""
    possible = ["st"]
    if {"worldview", "counterfactuals"} & options.keys():
        possible += ["cst_without", "cst_with", "cf"] if "decision" in options else ["cst_without"]
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": "no",
        "protected": mm.Protection("gender", value="f", reference="m"),
        "attributes": {"salary": "continuous", "savings": "continuous", "job": "nominal"},
        "ks": (5, 10, 20),
        "methods": possible,
        "id": "name",
        # as many as it takes to see them
    }
    return mm.audit(applicants() if table is None else table, **{**settings, **options})


def _supplied() -> pd.DataFrame:
    table = applicants()
    return table.assign(salary=table.salary + 9.0 * (table.gender == "f")).drop(columns="granted")


_BOTH = [
    mm.Protection("gender", value="f", reference="m"),
    mm.Protection("origin", value="far", reference="near"),
]
_ATTRIBUTES = {
    "salary": "continuous",
    "savings": "continuous",
    "job": "nominal",
    "grade": {"kind": "ordinal", "levels": ["low", "mid", "high"]},
}

KINDS: dict[str, Callable[[], mm.Audit]] = {
    "st": make_audit,
    "observed": lambda: make_audit(worldview=WORLDVIEW),
    "full": lambda: make_audit(worldview=WORLDVIEW, decision=RULE),
    "supplied": lambda: make_audit(counterfactuals=_supplied(), decision=RULE),
    "cf": lambda: make_audit(worldview=WORLDVIEW, decision=RULE, methods=["cf"]),
    "with-centers": lambda: make_audit(
        worldview=WORLDVIEW, decision=RULE, evidence=mm.Evidence(primary=("cst_with", 10))
    ),
    "multiple": lambda: make_audit(
        worldview=WORLDVIEW, decision=RULE, protected=_BOTH, combine="multiple", ks=(3, 6)
    ),
    "intersectional": lambda: make_audit(
        worldview=WORLDVIEW, decision=RULE, protected=_BOTH, combine="intersectional", ks=(3, 6)
    ),
    "complement": lambda: make_audit(
        worldview=WORLDVIEW,
        protected=_BOTH,
        combine="intersectional",
        similarity=mm.Similarity(test_space="complement"),
        ks=(6,),
    ),
    "draws": lambda: make_audit(
        worldview=WORLDVIEW, decision=RULE, uncertainty=mm.Uncertainty(refits=4)
    ),
    "coupled": lambda: make_audit(
        worldview=mm.Worldview(
            {"job": mm.Categorical("gender"), "salary": mm.Linear("gender", link="log")}
        ),
        uncertainty=mm.Uncertainty(draws=4),
    ),
    "insufficient": lambda: make_audit(
        worldview=WORLDVIEW, similarity=mm.Similarity(max_distance=0.01, min_group=12)
    ),
    "alone": lambda: make_audit(
        worldview=mm.Worldview({"salary": mm.Stated("500 * (gender == 'm')")}),
        similarity=mm.Similarity(max_distance=0.0),
    ),
    "positive": lambda: make_audit(
        worldview=WORLDVIEW, decision=RULE, evidence=mm.Evidence(direction="positive")
    ),
    "all-ties": lambda: make_audit(worldview=WORLDVIEW, similarity=mm.Similarity(ties="all")),
    "wald": lambda: make_audit(
        worldview=WORLDVIEW, evidence=mm.Evidence(interval="wald", adjust="none")
    ),
    "four": lambda: make_audit(worldview=WORLDVIEW, attributes=_ATTRIBUTES),
    "matched": lambda: make_audit(worldview=WORLDVIEW, decision=RULE, methods=None),
    "matched-draws": lambda: make_audit(
        worldview=WORLDVIEW,
        methods=None,
        attributes={"salary": "continuous", "savings": "continuous"},
        uncertainty=mm.Uncertainty(refits=4),
    ),
    "one-k": lambda: make_audit(worldview=WORLDVIEW, ks=(5,), tau=0.1),
    "no-case": lambda: make_audit(ks=(5,), tau=0.99),
    "decided": lambda: make_audit(counterfactuals=_supplied().assign(granted="yes")),
    "mixed": lambda: make_audit(
        applicants().assign(children=[np.nan] * 7 + [1.0, 2.0, 4.0] * 51),
        protected=mm.Protection("grade", reference="mid"),
        attributes={"salary": "continuous", "children": "continuous", "job": "nominal"},
        worldview=mm.Worldview(
            {"salary": mm.Linear("grade"), "job": mm.Categorical("grade")}, resolving=["job"]
        ),
        missing="drop",
        ks=(5,),
        uncertainty=mm.Uncertainty(draws=3, refits=2),
    ),
}


@cache
def _audit(kind: str) -> mm.Audit:
    return KINDS[kind]()


@pytest.fixture(params=sorted(KINDS))
def any_audit(request: pytest.FixtureRequest) -> mm.Audit:
    """Give one audit of every kind in turn."""
    return _audit(request.param)


@pytest.fixture(scope="session")
def audit_of() -> Callable[[str], mm.Audit]:
    """Give an audit by its kind."""
    return _audit


@pytest.fixture(scope="session")
def audit_applicants() -> Callable[..., mm.Audit]:
    """Give the way to audit the applicants under other settings."""
    return make_audit


@pytest.fixture(scope="session")
def made_up_applicants() -> Callable[..., pd.DataFrame]:
    """Give the way to make up applicants."""
    return applicants


@pytest.fixture(scope="session")
def loan_audit(plan_loan: Callable[..., mm.Plan]) -> mm.Audit:
    """Audit the paper's loan scenario."""
    return plan_loan(
        mm.datasets.loan(seed=7),
        decision="AnnualSalary + 5 * AccountBalance > 225000",
        ks=(15, 30, 50, 100),
        # as many as it takes to see them
    ).run()


@pytest.fixture(scope="session")
def paper_loan_audit(loan_audit: mm.Audit) -> mm.Audit:
    """Give that audit with the headline of the paper's method."""
    return loan_audit.with_levels(method="cst_without", k=30)


@pytest.fixture(scope="session")
def with_source() -> Callable[[mm.Audit, dict[str, Any]], mm.Audit]:
    """An audit whose table came from somewhere."""

    def change(audit: mm.Audit, source: dict[str, Any]) -> mm.Audit:
        origin = Origin(text="", name="audit.yaml", folder=Path(), source=source, files={})
        return replace(audit, plan=replace(audit.plan, origin=origin))

    return change
