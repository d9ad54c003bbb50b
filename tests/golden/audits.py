"""Small audits that together use every kind of outcome, method, distance and worldview.

Their numbers are stored in `values/` and compared by `test_golden.py`. Each function below plans
one audit of a generated table. The tables are made of uniform random numbers, sums and comparisons
only, so that they are the same on every processor.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import mutandis as mm
from mutandis.workers import LocalWorkers

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["AUDITS", "Golden", "run_in_tiles", "run_quietly"]

_SCHOOLS = ("none", "high", "college", "doctor")
_ANSWERS = ("at once", "on conditions", "later", "never")


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """One audit whose numbers are stored.

    Parameters
    ----------
    plan
        Plans the audit.
    also
        What is stored in addition to findings, counts and counterfactuals: "tipping",
        "hidden cause", "support", "worldviews", "people" or "grounds".
    """

    plan: Callable[[], mm.Plan]
    also: frozenset[str]


_registered: dict[str, Golden] = {}
AUDITS: Mapping[str, Golden] = MappingProxyType(_registered)
"""All golden audits by name."""

_Plan = Callable[[], mm.Plan]


def _golden(*also: str) -> Callable[[_Plan], _Plan]:
    def register(plan: _Plan) -> _Plan:
        name = plan.__name__.removeprefix("_").replace("_", "-")
        _registered[name] = Golden(plan=plan, also=frozenset(also))
        return plan

    return register


def run_quietly(plan: mm.Plan, **options: Any) -> mm.Audit:
    """Run an audit without its warnings, which are no numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.MutandisWarning)
        return plan.run(**options)


@dataclass(frozen=True)
class _FewRows(LocalWorkers):
    rows: int = 200


def run_in_tiles(plan: mm.Plan, folder: Path, *, rows: int) -> mm.Audit:
    """Run an audit in tasks that may hold few rows each, so that a small table has many tiles."""
    return run_quietly(plan, cluster=_FewRows(folder, rows=rows))


# --- tables --------------------------------------------------------------------------------------


def _bell(rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
    """Draw numbers that are about normal, without a logarithm or an exponential."""
    return np.asarray(rng.random((6, rows)).sum(axis=0) - 3)


def _pick(rng: np.random.Generator, names: tuple[str, ...], lean: NDArray[Any]) -> NDArray[Any]:
    """Draw one of several names; a larger `lean` means later ones."""
    place = np.floor(
        len(names) * (0.75 * rng.random(len(lean)) + 0.25 * rng.random(len(lean)) + lean)
    )
    chosen = np.clip(place, 0, len(names) - 1).astype(int)
    return np.array([names[each] for each in chosen.tolist()], dtype=object)


def _people(rows: int, seed: int) -> pd.DataFrame:
    """Make applicants with ties, names, ordered levels, counts, and outcomes of all kinds."""
    rng = np.random.default_rng(seed)
    woman = rng.random(rows) < 0.36
    origin = np.array(["here", "near", "far"], dtype=object)[
        np.floor(2.9 * np.maximum(rng.random(rows) - 0.15, 0) + 0.4).astype(int)
    ]
    far = origin != "here"
    income = np.round(30 + 6 * _bell(rng, rows) - 4 * woman - 2 * far, 1)
    savings = np.maximum(np.floor(9 * rng.random(rows)) - 2 * woman, 0)
    debt = 4 * rng.random(rows) * rng.random(rows) + 0.02 * income + 0.5 * woman
    school = _pick(rng, _SCHOOLS, -0.12 * woman - 0.05 * far)
    job = _pick(rng, ("clerk", "cook", "judge"), -0.15 * woman)
    jobs = (rng.random((7, rows)) < 0.3 + 0.12 * woman).sum(axis=0)
    hobby = _pick(rng, ("chess", "golf", "?"), np.zeros(rows))
    merit = income + 2 * savings - 3 * debt + 2 * (job == "judge") - jobs
    harm = 2 * woman + far + 5 * _bell(rng, rows)
    refused = merit - harm < 24
    place = np.clip(np.floor((34 - merit + harm) / 8), 0, 3).astype(int)
    return pd.DataFrame(
        {
            "name": [f"p{number:03d}" for number in rng.permutation(rows)],
            "sex": np.where(woman, "f", "m"),
            "origin": origin,
            "income": income,
            "savings": savings,
            "debt": debt,
            "school": school,
            "job": job,
            "jobs": jobs,
            "hobby": pd.Series(hobby).replace("?", None),
            "refused": refused,
            "rate": np.round(9 - 0.1 * merit + 0.1 * harm, 1),
            "points": 10 * np.floor(merit - harm),
            "answer": np.array(_ANSWERS, dtype=object)[place],
        }
    )


def _students(rows: int, seed: int) -> pd.DataFrame:
    """Make students in the manner of the law school of the paper: two grounds and two scores."""
    rng = np.random.default_rng(seed)
    black, woman = rng.random(rows) < 0.45, rng.random(rows) < 0.5
    grade = np.round(3.2 + 0.3 * _bell(rng, rows) - 0.2 * black + 0.05 * woman, 1)
    test = np.round(36 + 4 * _bell(rng, rows) - 4 * black - woman)
    lean = 0.6 * grade * 10 + 0.4 * test - black - woman
    return pd.DataFrame(
        {
            "race": np.where(black, "black", "white"),
            "gender": np.where(woman, "female", "male"),
            "UGPA": grade,
            "LSAT": test,
            "admitted": np.where(lean + _bell(rng, rows) > 32, "yes", "no"),
        }
    )


def _loans(rows: int, seed: int) -> pd.DataFrame:
    """Make loan applications in the manner of the paper: one rule, which reads no status."""
    rng = np.random.default_rng(seed)
    woman = (rng.random(rows) < 0.4).astype(int)
    salary = np.round(100_000 + 30_000 * _bell(rng, rows) - 15_000 * woman, -3)
    balance = np.round(0.3 * salary + 4_000 * _bell(rng, rows) - 3_000 * woman)
    granted = salary + 5 * balance > 225_000
    return pd.DataFrame(
        {"Gender": woman, "Salary": salary, "Balance": balance, "Loan": np.where(granted, 1, -1)}
    )


# --- settings that most audits share -------------------------------------------------------------


_SEX = mm.Protection("sex", value="f", reference="m")
_MEN = mm.Protection("sex", value="m", reference="f")
_NUMBERS: dict[str, Any] = {"income": "continuous", "savings": "continuous"}
_SCHOOL = {"kind": "ordinal", "levels": _SCHOOLS}
_RULE = "income + 2 * savings > 36"


def _doubt(**asked: Any) -> mm.Uncertainty:
    """Return the uncertainty settings, with everything off that is not asked for."""
    return mm.Uncertainty(**({"draws": 0, "refits": 0, "tipping": False} | asked))


def _lines(**more: Any) -> mm.Worldview:
    """Return a chain of straight lines from the status to income and savings."""
    return mm.Worldview({"income": mm.Linear("sex"), "savings": mm.Linear("sex", "income"), **more})


def _plan(table: pd.DataFrame, **settings: Any) -> mm.Plan:
    chosen: dict[str, Any] = {
        "protected": _SEX,
        "attributes": _NUMBERS,
        "worldview": _lines(),
        "ks": (5, 12),
        "uncertainty": _doubt(),
    }
    if "outcome" not in settings:
        chosen |= {"outcome": "refused", "negative": True}
    return mm.plan(table, **(chosen | settings))


# --- binary outcomes -----------------------------------------------------------------------------


@_golden("tipping", "hidden cause", "support", "people")
def _rule_and_refits() -> mm.Plan:
    return _plan(_people(150, 1), decision=_RULE, uncertainty=_doubt(refits=5, tipping=True))


@_golden("people", "tipping")
def _loans_of_the_paper() -> mm.Plan:
    return mm.plan(
        _loans(160, 2),
        outcome="Loan",
        negative=-1,
        protected=mm.Protection("Gender", value=1, reference=0),
        attributes={"Salary": "continuous", "Balance": "continuous"},
        worldview=mm.Worldview(
            {"Salary": mm.Linear("Gender"), "Balance": mm.Linear("Salary", "Gender")}
        ),
        decision="Salary + 5 * Balance > 225000",
        ks=(5, 15),
        alpha=0.1,
        tau=0.05,
        uncertainty=_doubt(),
    )


def _grant(table: Any) -> Any:
    return (table["income"] + 2 * table["savings"] - table["jobs"] > 33).to_numpy()


@_golden("people")
def _callable_and_all_ties() -> mm.Plan:
    return _plan(
        _people(120, 3),
        attributes={"savings": "continuous", "jobs": "continuous", "school": _SCHOOL},
        worldview=mm.Worldview(
            {"savings": mm.Linear("sex", levels=range(9)), "jobs": mm.Linear("sex", decimals=0)}
        ),
        decision=_grant,
        similarity=mm.Similarity(ties="all"),
    )


@_golden("people", "tipping")
def _recorded_wald_holm_heom() -> mm.Plan:
    return _plan(
        _people(200, 4),
        attributes=_NUMBERS | {"hobby": {"kind": "nominal", "compare_missing": True}},
        ks=(4, 15),
        similarity=mm.Similarity(distance="heom"),
        evidence=mm.Evidence(interval="wald", adjust="holm", primary=("cst_without", 15)),
        uncertainty=_doubt(tipping=True),
    )


@_golden("support")
def _missing_dropped_positive() -> mm.Plan:
    table = _people(140, 5)
    table.loc[3::17, "income"] = np.nan
    return _plan(
        table,
        protected=_MEN,
        decision=_RULE,
        missing="drop",
        id="name",
        evidence=mm.Evidence(direction="positive", adjust="benjamini-yekutieli"),
    )


@_golden("support", "people")
def _caliper() -> mm.Plan:
    return _plan(
        _people(150, 6),
        attributes=_NUMBERS | {"debt": {"kind": "continuous", "weight": 0.5}},
        worldview=_lines(debt=mm.Linear("income", "sex", link="log")),
        decision=_RULE,
        similarity=mm.Similarity(max_distance=0.12, min_group=3),
        uncertainty=_doubt(refits=5),
    )


@_golden("people")
def _mahalanobis_risk_ratio() -> mm.Plan:
    return _plan(
        _people(140, 7),
        attributes=_NUMBERS | {"debt": "continuous"},
        decision=_RULE,
        tau=1.25,
        similarity=mm.Similarity(distance="mahalanobis"),
        evidence=mm.Evidence(measure="risk-ratio"),
    )


@_golden("people")
def _hvdm_selection_ratio() -> mm.Plan:
    return _plan(
        _people(140, 8),
        attributes=_NUMBERS | {"job": "nominal"},
        decision=_RULE,
        tau=0.9,
        similarity=mm.Similarity(distance="hvdm"),
        evidence=mm.Evidence(measure="selection-ratio"),
    )


@_golden()
def _zhang_odds_ratio() -> mm.Plan:
    return _plan(
        _people(120, 9),
        attributes={"job": "nominal", "school": _SCHOOL},
        worldview=mm.Worldview({"job": mm.Categorical("sex")}),
        uncertainty=_doubt(draws=3),
        methods=("cst_without", "cst_matched"),
        ks=(8,),
        tau=1.5,
        similarity=mm.Similarity(distance="zhang"),
        evidence=mm.Evidence(measure="odds-ratio", adjust="none"),
    )


@_golden()
def _ready_counterfactuals() -> mm.Plan:
    table = _people(100, 10)
    would_be = table[["income", "savings"]] + np.where(table["sex"] == "f", 4, 0)[:, None]
    would_be["refused"] = would_be["income"] + 2 * would_be["savings"] <= 36
    return _plan(
        table,
        worldview=None,
        counterfactuals=would_be,
        similarity=mm.Similarity(scaling="none"),
    )


@_golden()
def _two_values_and_the_complement() -> mm.Plan:
    return _plan(
        _people(150, 11),
        protected=mm.Protection("origin", value=["near", "far"], reference="here"),
        worldview=mm.Worldview(
            {"income": mm.Stated("b * (origin == 'far') + 2 * savings", fit=("b",))}
        ),
        decision=_RULE,
        similarity=mm.Similarity(test_space="complement"),
    )


# --- worlds --------------------------------------------------------------------------------------


@_golden("people", "tipping")
def _draws_and_refits() -> mm.Plan:
    return _plan(
        _people(160, 12),
        attributes={
            "income": "continuous",
            "jobs": "continuous",
            "job": "nominal",
            "school": _SCHOOL,
        },
        worldview=mm.Worldview(
            {
                "income": mm.Linear("sex"),
                "jobs": mm.Count("sex", "income"),
                "job": mm.Categorical("sex"),
                "school": mm.Ordinal("sex", levels=_SCHOOLS),
            }
        ),
        decision="income + 2 * (job == 'judge') - jobs > 24",
        uncertainty=_doubt(draws=4, refits=5, tipping=True),
        seed=3,
    )


@_golden("people")
def _draws_of_names() -> mm.Plan:
    return _plan(
        _people(130, 13),
        attributes={"savings": "continuous", "job": "nominal"},
        worldview=mm.Worldview(
            {"job": mm.Categorical("sex"), "savings": mm.Additive("sex", "job", regressor=_Means())}
        ),
        uncertainty=_doubt(draws=5),
    )


class _Means:
    """A regressor: the mean of the rows with the same first cause."""

    def fit(self, features: Any, target: Any) -> None:
        """Fit the means."""
        groups = {value: features[:, 0] == value for value in np.unique(features[:, 0]).tolist()}
        self.means = {value: target[rows].mean() for value, rows in groups.items()}

    def predict(self, features: Any) -> list[float]:
        """Predict the mean of each row."""
        return [self.means[value] for value in features[:, 0].tolist()]


@_golden("tipping", "worldviews")
def _several_worldviews() -> mm.Plan:
    others = {
        "one path": mm.Worldview({"income": mm.Linear("sex")}),
        "together": mm.Worldview(
            {
                "income": mm.Linear("sex"),
                "savings": mm.Linear("sex", "income", interactions=True),
            }
        ),
    }
    return _plan(
        _people(150, 14),
        decision=_RULE,
        uncertainty=_doubt(worldviews=others, variants=True, tipping=True),
    )


# --- scores and ordered outcomes -----------------------------------------------------------------


@_golden("people", "tipping")
def _score_and_refits() -> mm.Plan:
    return _plan(
        _people(170, 15),
        outcome=mm.Score("rate", worse="higher"),
        decision="10 - 0.1 * income - 0.2 * savings",
        ks=(10, 18),
        uncertainty=_doubt(refits=5, tipping=True),
    )


@_golden("support")
def _score_positive_recorded() -> mm.Plan:
    return _plan(
        _people(160, 16),
        outcome=mm.Score("points", worse="lower"),
        protected=_MEN,
        tau=10,
        ks=(16, 20),
        similarity=mm.Similarity(max_distance=0.2),
        evidence=mm.Evidence(direction="positive", adjust="holm"),
    )


def _answer(table: Any) -> Any:
    place = np.clip(np.floor((44 - table["income"] - 2 * table["savings"]) / 6), 0, 3)
    return np.array(_ANSWERS, dtype=object)[place.to_numpy().astype(int)]


@_golden("people", "tipping")
def _ordered_and_refits() -> mm.Plan:
    return _plan(
        _people(150, 17),
        outcome=mm.Ordered("answer", best_to_worst=_ANSWERS),
        decision=_answer,
        ks=(6, 16),
        uncertainty=_doubt(refits=5, tipping=True),
    )


@_golden("people")
def _ordered_and_draws() -> mm.Plan:
    return _plan(
        _people(150, 18),
        outcome=mm.Ordered("answer", best_to_worst=_ANSWERS),
        attributes={"income": "continuous", "school": _SCHOOL},
        worldview=mm.Worldview(
            {"income": mm.Linear("sex"), "school": mm.Ordinal("sex", levels=_SCHOOLS)}
        ),
        ks=(6, 18),
        similarity=mm.Similarity(ties="all", distance="heom"),
        uncertainty=_doubt(draws=3),
    )


# --- several protections -------------------------------------------------------------------------


_GROUNDS = [
    mm.Protection("race", value="black", reference="white"),
    mm.Protection("gender", value="female", reference="male"),
]
_STUDIES: dict[str, Any] = {
    "outcome": "admitted",
    "negative": "no",
    "protected": _GROUNDS,
    "attributes": {"UGPA": "continuous", "LSAT": "continuous"},
    "worldview": mm.Worldview(
        {"UGPA": mm.Linear("race", "gender"), "LSAT": mm.Linear("race", "gender", "UGPA")}
    ),
}


@_golden("people", "tipping", "support", "grounds")
def _multiple() -> mm.Plan:
    return _plan(
        _students(180, 19),
        **_STUDIES,
        combine="multiple",
        decision="6 * UGPA + 0.4 * LSAT > 32",
        uncertainty=_doubt(refits=5, tipping=True),
    )


@_golden("people", "tipping")
def _intersectional() -> mm.Plan:
    return _plan(
        _students(200, 20),
        **_STUDIES,
        combine="intersectional",
        decision="6 * UGPA + 0.4 * LSAT > 32",
        uncertainty=_doubt(refits=5, tipping=True),
    )


@_golden("people", "grounds")
def _multiple_scores() -> mm.Plan:
    return _plan(
        _people(170, 21),
        outcome=mm.Score("rate", worse="higher"),
        protected=[_SEX, mm.Protection("origin", value=["near", "far"], reference="here")],
        combine="multiple",
        worldview=mm.Worldview({"income": mm.Linear("sex", "origin")}),
        ks=(5, 15),
        uncertainty=_doubt(refits=3),
    )
