"""Findings by hand: verdicts, counts, and a case as a page of text."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.auditing.case import Case
from mutandis.engine.study import World
from mutandis.engine.tally import Group, Sums
from mutandis.errors import PlanError
from mutandis.outcomes.binary import REFUSED
from mutandis.outcomes.intervals import Interval
from mutandis.outcomes.measures import RISK_DIFFERENCE
from mutandis.outcomes.outcome import Comparison, Rule
from mutandis.verdicts.findings import (
    COLUMNS,
    Findings,
    Verdict,
    join_findings,
)

RULE = Rule(
    kind=REFUSED,
    measure=RISK_DIFFERENCE,
    interval="miettinen-nurminen",
    tau=Fraction(0),
    alpha=0.05,
)


def group(negatives: list[int], size: int) -> Group:
    sizes = np.full(len(negatives), size)
    return Group(
        share=Sums.of(marks=np.array(negatives), places=sizes, parts=np.ones_like(sizes)),
        rows=sizes + 1,
        radius=np.linspace(0.25, 1.25, len(negatives)),
    )


def findings(**changes: Any) -> Findings:
    """Make five complainants: nothing, evidence, significant, adjusted, and the other way round."""
    values: dict[str, Any] = {
        "method": "st",
        "k": 4,
        "ids": np.array([3, 5, 8, 9, 11]),
        "outcome": np.array(["no", "no", "no", "yes", "yes"]),
        "outcome_cf": np.array(["no", "yes", "yes", "yes", "no"]),
        "is_negative": np.array([True, True, True, False, False]),
        "control": group([2, 2, 3, 4, 1], 4),
        "test": group([2, 1, 1, 0, 3], 4),
        "comparison": Comparison(
            delta_p=np.array([0, 0.25, 0.5, 1, -0.5]),
            evidence=np.array([False, True, True, True, False]),
            significant=np.array([False, False, True, True, False]),
            interval=Interval(
                low=np.array([-0.1, -0.05, 0.01, 1, -0.9]),
                high=np.array([0.1, 0.55, 0.99, 1, -0.1]),
                p_value=np.array([0.5, 0.2, 0.04, 0, 0.99]),
                degenerate=np.array([False, False, False, True, False]),
            ),
            insufficient=np.zeros(5, dtype=np.bool_),
        ),
        "q_value": np.array([0.6, 0.3, 0.1, 0, 0.99]),
        "alpha": 0.05,
    }
    return Findings(**{**values, **changes})


def test_each_complainant_has_one_verdict() -> None:
    assert findings().verdicts().tolist() == [
        "no-evidence",
        "evidence",
        "significant",
        "significant-adjusted",
        "no-evidence",
    ]
    assert {verdict.value for verdict in Verdict} == {
        "no-evidence",
        "evidence",
        "significant",
        "significant-adjusted",
        "insufficient",
    }


def test_adjusted_significance_needs_significance_and_a_known_q_value() -> None:
    assert findings(q_value=np.full(5, np.nan)).significant_adjusted.tolist() == [False] * 5
    everybody = findings(q_value=np.zeros(5)).significant_adjusted
    assert everybody.tolist() == [False, False, True, True, False]
    at_the_level = findings(q_value=np.full(5, 0.05)).significant_adjusted
    assert at_the_level.tolist() == [False, False, True, True, False]


def test_counts() -> None:
    assert findings().counts() == {
        "method": "st",
        "k": 4,
        "complainants": 5,
        "cases": 3,
        "share": 3 / 5,
        "cases_refused": 2,
        "significant": 2,
        "significant_share": 2 / 5,
        "significant_adjusted": 1,
    }
    assert len(findings()) == 5


def test_columns_in_their_order() -> None:
    columns = findings().columns()
    assert tuple(columns) == COLUMNS
    assert columns["p_control"].tolist() == [0.5, 0.5, 0.75, 1, 0.25]
    assert columns["p_test"].tolist() == [0.5, 0.25, 0.25, 0, 0.75]
    assert columns["n_control"].tolist() == [4] * 5
    assert columns["rows_test"].tolist() == [5] * 5
    assert columns["radius_control"].tolist() == [0.25, 0.5, 0.75, 1, 1.25]
    assert findings(outcome_cf=None).columns()["outcome_cf"].tolist() == [None] * 5


@pytest.mark.parametrize("worse", [True, False])
def test_on_several_grounds_her_own_case_is_one_on_each(worse: bool) -> None:
    nan = float("nan")
    # by ground; the outcome of the last is not the one that is looked for
    shares = np.array([[0.2, 0.2, 0.2, nan, 0.2], [0.4, 0.5, nan, 0.8, nan]])
    shares = shares if worse else 1 - shares
    is_negative = np.array([True] * 4 + [False]) == worse
    rule = replace(RULE, direction="negative" if worse else "positive")
    parts = {}
    for ground, share in enumerate(shares):
        empty = np.isnan(share)
        tenths = np.where(empty, 0, 10 * share).round().astype(np.int64)
        matches = Sums.of(marks=tenths, places=np.where(empty, 0, 10))
        p_own, own_case = REFUSED.own_case(is_negative, matches, rule)
        parts[str(ground)] = findings(is_negative=is_negative, p_own=p_own, own_case=own_case)

    def q_values(comparison: Comparison) -> Any:
        return comparison.interval.p_value

    whole = join_findings(parts, outcome_cf=None, worse=worse, q_values=q_values)
    assert whole.own_case is not None
    assert whole.p_own is not None
    assert whole.own_case.tolist() == [True, False, None, False, False]
    assert whole.has_own_case.tolist() == [True, False, False, False, False]
    weakest_share = [0.4, 0.5, nan, nan, nan]
    expected = weakest_share if worse else [1 - share for share in weakest_share]
    np.testing.assert_allclose(whole.p_own, expected)


# --- cases -------------------------------------------------------------------------------------


PLAN = mm.plan(
    {"sex": list("ffffffmmmmmm"), "salary": [1.0] * 6 + [2.0] * 6, "granted": ["no", "yes"] * 6},
    outcome="granted",
    negative="no",
    protected=mm.Protection("sex", value="f", reference="m"),
    attributes={"salary": "continuous"},
    ks=(4,),
)


def case(outcome_cf: str | None = "yes", **changes: Any) -> Case:
    row = {
        "id": 8,
        "outcome": "no",
        "outcome_cf": outcome_cf,
        "q_value": 0.04,
        "p_control": 0.75,
        "p_test": 0.25,
        "delta_p": 0.5,
        "ci_low": 0.012,
        "ci_high": 0.988,
        "verdict": "significant",
    }
    missing = {**row, "p_control": 1.0, "p_test": 0.0, "delta_p": 1.0, "verdict": "evidence"}
    missing.update(ci_low=float("nan"), ci_high=float("nan"))
    audit = SimpleNamespace(
        plan=PLAN,
        ground=SimpleNamespace(world=World()),
        grounds=(None,),
        provenance=SimpleNamespace(computed={"couplings": {}}),
    )
    values: dict[str, Any] = {
        "factual": {"salary": 35_000.0, "job": "cook"},
        "counterfactual": {"salary": 50_796.5, "job": "cook"},
        "results": MappingProxyType({("st", 4): row, ("cf", 4): missing}),
        "audit": audit,  # nothing else is asked for
        "place": 0,
        "row": 8,
    }
    return Case(**{**values, **changes})


def test_a_case_reads_as_a_page() -> None:
    lines = str(case()).splitlines()
    answers = "\n".join(lines[3:7]).replace("\n  ", " ").splitlines()
    assert answers == [
        "Pattern among similar people (st at k = 4): significant",
        case().explain_own_case(),
    ]
    assert answers[1].startswith("Own case: not known. Complainant 8 was refused (outcome no), and")
    assert [*lines[:3], *lines[7:]] == [
        "Complainant 8: outcome no, counterfactual yes",
        "  salary  35,000  →  50,796.5",
        "  job     cook  →  cook",
        "  method          k p_control  p_test      Δp  interval          verdict",
        "  st              4     0.750   0.250   0.500  [ 0.012,  0.988]  significant",
        "  cf              4     1.000   0.000   1.000                    evidence",
    ]


def test_a_case_without_counterfactual_says_so() -> None:
    lines = str(case(outcome_cf=None, counterfactual=None)).splitlines()
    assert lines[0] == "Complainant 8: outcome no, counterfactual not decided"
    assert lines[1:3] == ["  salary  35,000", "  job     cook"]


def test_results_are_looked_up() -> None:
    assert case().result("st", k=4)["delta_p"] == 0.5
    with pytest.raises(PlanError, match=r"The audit did not run method 'st' at k=5\."):
        case().result("st", k=5)
