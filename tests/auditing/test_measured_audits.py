"""Audits by each measure: everything an audit can be asked follows the measure."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.outcomes.measures import MEASURES
from tests.tables import LOAN

if TYPE_CHECKING:
    import pandas as pd

TAUS = {"risk-ratio": 1.25, "selection-ratio": 0.8, "odds-ratio": 1.5}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return mm.datasets.loan(n=500, seed=3)


def audit(table: Any, measure: Any, **options: Any) -> mm.Audit:
    evidence = {"measure": measure, "primary": ("cst_matched", 20), **options.pop("evidence", {})}
    arguments: dict[str, Any] = {
        **LOAN,
        "decision": "AnnualSalary * 3 + AccountBalance * 5 > 225000",
        "ks": (20,),
        "tau": TAUS.get(measure, 0.0),
        "uncertainty": mm.Uncertainty(refits=2),
        **options,
    }
    return mm.audit(table, evidence=mm.Evidence(**evidence), **arguments)


@pytest.fixture(scope="module", params=list(TAUS))
def found(request: pytest.FixtureRequest, table: pd.DataFrame) -> mm.Audit:
    return audit(table, request.param)


def test_findings_name_the_measure(found: mm.Audit) -> None:
    measure = found.plan.settings.measure
    tau = Fraction(str(found.plan.settings.tau))
    for method in ("st", "cst_without", "cst_with", "cf", "cst_matched"):
        rows = found.findings(method)
        compared = rows[rows["verdict"] != "insufficient"]
        assert len(compared)
        for row in compared.to_dict("records"):
            control, test = row["p_control"], row["p_test"]
            with np.errstate(divide="ignore", invalid="ignore"):
                expected = {
                    "risk-ratio": np.float64(control) / test,
                    "selection-ratio": np.float64(1 - control) / (1 - test),
                    "odds-ratio": np.float64(control) * (1 - test) / (test * (1 - control)),
                }[measure.name]
            value = row[measure.column]
            assert value == pytest.approx(expected, nan_ok=True, rel=1e-9)
            beyond = value > tau if measure.worse_above else value < tau
            assert (row["verdict"] != "no-evidence") == bool(beyond)
            if row["verdict"].startswith("significant"):
                assert (
                    row[f"{measure.column}_low"] >= tau
                    if measure.worse_above
                    else row[f"{measure.column}_high"] <= tau
                )
            # the bounds of the difference stay those of the difference
            if method != "cf":
                assert row["ci_low"] <= row["delta_p"] <= row["ci_high"]


def first(found: mm.Audit) -> Any:
    rows = found.findings()
    return rows.loc[rows["verdict"] == "significant-adjusted", "id"].iloc[0]


def test_the_weakest_ground_is_the_one_of_the_measure() -> None:
    rng = np.random.default_rng(2)
    n = 300
    table = {
        "woman": rng.integers(0, 2, n),
        "migrant": rng.integers(0, 2, n),
        "pay": rng.normal(size=n),
    }
    refused = rng.random(n) < 0.2 + 0.25 * table["woman"] + 0.25 * table["migrant"]
    table["granted"] = np.where(refused, "no", "yes")
    for measure, tau in TAUS.items():
        found = mm.audit(
            table,
            outcome="granted",
            negative="no",
            protected=[
                mm.Protection("woman", value=1, reference=0),
                mm.Protection("migrant", value=1, reference=0),
            ],
            combine="multiple",
            attributes={"pay": "continuous"},
            methods=["st"],
            ks=(15,),
            tau=tau,
            evidence=mm.Evidence(measure=measure),
        )
        kind = MEASURES[measure]
        whole = found.findings()
        parts = np.stack([part.findings()[kind.column] for part in found.parts.values()])
        weakest = parts.min(axis=0) if kind.worse_above else parts.max(axis=0)
        assert (whole[kind.column] == weakest).all()
        lows = [part.findings()[f"{kind.column}_low"] for part in found.parts.values()]
        assert (whole[f"{kind.column}_low"] == np.min(lows, axis=0)).all()
