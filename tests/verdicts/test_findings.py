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
from mutandis.outcomes.intervals import Bounds, Interval
from mutandis.outcomes.measures import MEASURES, RISK_DIFFERENCE
from mutandis.outcomes.outcome import Comparison, Rule
from mutandis.verdicts.findings import (
    COLUMNS,
    Findings,
    Robustness,
    Verdict,
    join_findings,
    weakest,
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
    assert columns["verdict"].tolist() == findings().verdicts().tolist()
    assert columns["own_case"].tolist() == [None] * 5
    assert np.isnan(columns["p_own"]).all()
    assert findings(outcome_cf=None).columns()["outcome_cf"].tolist() == [None] * 5


def test_columns_of_own_cases_and_robustness_where_they_are_known() -> None:
    own, shares = np.array([True, False, None, False, True]), np.array([0.1, 0.2, np.nan, 0.4, 0.5])
    grade = np.array([None, "fragile", "sensitive", "robust", None])
    known = findings(
        own_case=own,
        p_own=shares,
        verdict_share=np.array([np.nan, 0.89, 0.9, 1, np.nan]),
        robustness=Robustness(
            tipping=shares,
            grade=grade,
            line=np.array([None, "a", "b", "c", None]),
            worldviews={"stays_under": np.arange(5)},
        ),
    )
    columns = known.columns()
    assert tuple(columns) == (
        *COLUMNS,
        *("verdict_share", "fragile", "tipping", "grade", "robustness", "stays_under"),
    )
    assert columns["own_case"].tolist() == own.tolist()
    assert columns["p_own"] is shares
    assert columns["fragile"].tolist() == [False, True, False, False, False]
    assert columns["grade"].tolist() == grade.tolist()
    assert columns["robustness"].tolist() == [None, "a", "b", "c", None]
    assert columns["stays_under"].tolist() == [0, 1, 2, 3, 4]


def test_columns_of_a_ratio_with_and_without_bounds() -> None:
    assert not findings().measured()
    ratio = findings(measure=MEASURES["risk-ratio"])
    columns = ratio.measured()
    assert list(columns) == ["risk_ratio", "risk_ratio_low", "risk_ratio_high"]
    np.testing.assert_allclose(columns["risk_ratio"], [1, 2, 3, np.inf, 1 / 3])
    assert np.isnan([columns["risk_ratio_low"], columns["risk_ratio_high"]]).all()
    bounds = Bounds(low=np.arange(5.0), high=np.arange(5.0) + 9)
    comparison = ratio.comparison
    interval = replace(comparison.interval, measured=bounds)
    bounded = replace(ratio, comparison=replace(comparison, interval=interval)).columns()
    assert bounded["risk_ratio_low"].tolist() == [0, 1, 2, 3, 4]
    assert bounded["risk_ratio_high"].tolist() == [9, 10, 11, 12, 13]


def test_the_largest_p_value_with_which_a_verdict_stays() -> None:
    # of those that remain after adjustment, the largest; α where adjustment removes them
    by_hand = [np.inf, np.inf, 0.05, 0, np.inf]
    assert findings().p_value_bound().tolist() == by_hand
    everybody = findings(q_value=np.zeros(5))
    assert everybody.p_value_bound().tolist() == [np.inf, np.inf, 0.04, 0.04, np.inf]


def test_the_weakest_evidence_by_hand() -> None:
    against = np.array([[0.1, 0.3, 0.2], [0.2, 0.1, 0.2]])
    assert weakest(against, worse=True).tolist() == [0, 1, 0]
    assert weakest(against, worse=False).tolist() == [1, 0, 0]


def test_joined_findings_have_the_groups_of_the_weakest_attribute() -> None:
    first = findings(verdict_share=np.full(5, 0.95))
    second = findings(
        control=group([4, 4, 1, 4, 4], 4),
        test=group([0, 0, 1, 0, 0], 4),
        outcome_cf=None,
        comparison=replace(first.comparison, delta_p=np.array([1, 1, 0, 1.5, 1.0])),
    )
    parts = {"a": first, "b": second}
    joined = join_findings(
        parts, worse=True, outcome_cf=first.ids, q_values=lambda _: np.full(5, 0.5)
    )
    assert joined.outcome_cf is first.ids
    assert joined.q_value.tolist() == [0.5] * 5
    # neither draws nor refits were made of the joined findings
    assert joined.verdict_share is None
    assert joined.parts == parts
    assert joined.p_own is None
    assert joined.comparison.delta_p.tolist() == [0, 0.25, 0, 1, -0.5]
    assert joined.control.share.mean().tolist() == [0.5, 0.5, 0.25, 1, 0.25]
    assert joined.test.share.mean().tolist() == [0.5, 0.25, 0.25, 0, 0.75]
    columns = joined.columns()
    assert columns["verdict_share_a"].tolist() == [0.95] * 5
    assert "verdict_share_b" not in columns
    assert columns["delta_p_b"].tolist() == [1, 1, 0, 1.5, 1]
    assert columns["verdict_a"].tolist() == first.verdicts().tolist()


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
