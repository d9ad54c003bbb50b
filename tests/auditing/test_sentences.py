"""Explanations: every verdict in words, none of which says more than was found."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

import mutandis as mm
from mutandis.auditing.sentences import explain, explain_own_case, explain_small
from mutandis.engine.tally import METHODS
from mutandis.errors import PlanError
from mutandis.verdicts.findings import Verdict
from tests.tables import LOAN

NAN = float("nan")
ROW: dict[str, Any] = {
    "id": 44,
    "outcome": "refused",
    "outcome_cf": "granted",
    "p_control": 0.8,
    "p_test": 0.2,
    "delta_p": 0.6,
    "p_value": 0.0004,
    "q_value": 0.0123,
    "n_control": 15,
    "n_test": 15,
    "n_effective": 15.0,
    "rows_test": 15,
    "unfit": "",
    "verdict": "significant-adjusted",
}


def plan_of(direction: Any = "negative") -> mm.Plan:
    table = mm.datasets.loan(n=120, seed=1)
    words = table["LoanApproval"].map({-1: "refused", 1: "granted"})
    return mm.plan(
        table.assign(LoanApproval=words),
        **{**LOAN, "negative": "refused", "ks": (5, 15)},
        similarity=mm.Similarity(max_distance=0.1, min_group=5),
        evidence=mm.Evidence(primary=("cst_without", 15), direction=direction),
        uncertainty=mm.Uncertainty(refits=0, tipping=False),
    )


PLANS = {direction: plan_of(direction) for direction in ("negative", "positive")}


def test_significant_after_adjustment() -> None:
    assert explain(ROW, "cst_without", 15, PLANS["negative"]) == (
        "CST (w/o) with k = 15, given the worldview, provides prima facie evidence for a pattern "
        "of discrimination against people like complainant 44 on the ground of 'Gender': 80.0% of "
        "the control group (15 of the same protected status) had the outcome refused, against "
        "20.0% of the test group (15 of the reference status around the complainant's "
        "counterfactual; Δp = 0.600, more than τ = 0), a difference that chance alone hardly "
        "explains, all complainants tested taken into account (q = 0.012 at the level α = 0.05)."
    )


@pytest.mark.parametrize(
    ("control", "test", "farthest", "least", "expected"),
    [
        (5, 5, 0.1, 5, ""),
        (0, 9, 0.25, 1, "the control group holds no people within distance 0.25, and at least one"),
        (1, 0, None, 2, "the control group holds 1 person and the test group no people, and at"),
    ],
)
def test_reasons(
    control: int, test: int, farthest: float | None, least: int, expected: str
) -> None:
    found = explain_small(control, test, max_distance=farthest, min_group=least)
    assert found.startswith(expected)
    assert bool(found) == bool(expected)


@pytest.mark.parametrize(
    ("verdict", "method", "direction"),
    list(product(Verdict, METHODS, ("negative", "positive"))),
)
def test_no_sentence_claims_too_much(verdict: Verdict, method: str, direction: Any) -> None:
    plan = replace(PLANS[direction], combine="multiple")
    text = explain({**ROW, "verdict": verdict.value, "n_test": 2}, method, 15, plan)
    lowered = text.lower()
    for word in ("prove", "proof", "guilt", "liable", "innocent", "certain", "caused by"):
        assert word not in lowered
    # one sentence: what ends with a period is the end
    assert text.endswith(".")
    assert ". " not in text
    assert " nan" not in lowered
    assert text.count("prima facie evidence for") == (
        verdict not in (Verdict.NO_EVIDENCE, Verdict.INSUFFICIENT)
    )
    # groups are about people like the complainant, and not about the complainant
    about = f"{'against' if direction == 'negative' else 'treatment of'} complainant 44"
    assert (about in text) == (method == "cf" and verdict is not Verdict.INSUFFICIENT)


def own(*, withheld: bool = False, **changes: Any) -> str:
    row = {**ROW, "p_own": 0.2, "own_case": True, "outcome_cf": None, **changes}
    return explain_own_case(row, PLANS["negative"], withheld=withheld)


def test_a_case_of_ones_own() -> None:
    assert own() == (
        "Own case: yes. Complainant 44 was refused (outcome refused), although fewer than half of "
        "the people most like the complainant's own counterfactual were refused (20.0%)."
    )
    assert own(p_own=0.5, own_case=False) == (
        "Own case: no. Complainant 44 was refused (outcome refused), and not fewer than half of "
        "the people most like the complainant's own counterfactual were refused (50.0%)."
    )
    unknown = own(p_own=NAN, own_case=None)
    assert unknown.startswith("Own case: not known. Complainant 44 was refused (outcome refused),")
    assert unknown.endswith(
        "no people are near enough to the complainant's own counterfactual to compare with."
    )
    unmatched = own(p_own=None, own_case=None)
    assert unmatched.endswith(
        "no people were matched to the complainant's own counterfactual in this audit."
    )


def test_people_whose_application_was_granted_are_part_of_the_pattern_only() -> None:
    granted: dict[str, Any] = {"outcome": "granted", "own_case": False}
    assert own(**granted) == (
        "Own case: no. Complainant 44 is part of the pattern, but was granted (outcome granted)."
    )
    # no one is part of what chance may explain
    alone = "Own case: no. Complainant 44 was granted (outcome granted)."
    for verdict in ("significant", "evidence", "no-evidence", "insufficient"):
        assert own(**granted, verdict=verdict) == alone
    # where there was no adjustment, significance is all that is claimed
    assert "part of the pattern" in own(**granted, verdict="significant", q_value=NAN)
    assert own(p_own=None, own_case=None, outcome="granted").startswith("Own case: no. ")


@pytest.mark.parametrize("outcome", ["refused", "granted"])
def test_a_withheld_own_case_does_not_depend_on_others(outcome: str) -> None:
    answers = {
        own(withheld=True, outcome=outcome, p_own=p_own, own_case=answer)
        for p_own, answer in ((0.0, True), (0.4, True), (0.8, False), (NAN, None))
    }
    (told,) = answers
    assert told.startswith("Own case: withheld." if outcome == "refused" else "Own case: no.")
    assert "%" not in told


def test_a_case_explains_the_primary_result_by_default() -> None:
    audit = PLANS["negative"].run()
    case, plan = audit.case(audit.findings()["id"].iloc[0]), audit.plan
    told = explain(case.result("cst_without", k=15), "cst_without", 15, plan)
    assert case.explain() == f"{told} {case.explain_own_case()}"
    assert case.explain_pattern() == told
    assert case.explain_pattern("st") == explain(case.result("st", k=15), "st", 15, plan) != told
    assert case.explain("st", 5) == case.explain("st", k=5) != case.explain("st")
    for ask in (case.explain, case.balance):
        with pytest.raises(PlanError, match="The audit did not run method 'st' at k=7"):
            ask("st", 7)
