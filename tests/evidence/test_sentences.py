"""Explanations: every verdict in words, none of which says more than was found."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

import mutandis as mm
from mutandis.auditing.case_sentences import explanation_context
from mutandis.engine.methods import METHODS
from mutandis.errors import PlanError
from mutandis.evidence.sentences import (
    ExplanationContext,
    explain,
    explain_insufficient,
    explain_own_case,
)
from mutandis.outcomes.binary import BinaryKind, BinaryWords
from mutandis.verdicts.findings import Verdict

CONTEXT = ExplanationContext(
    ground="the ground of 'Gender'",
    words=BinaryWords(kind=BinaryKind(negative="refused", positive="granted")),
    alpha=0.05,
    tau=0.0,
    direction="negative",
    max_distance=0.1,
    min_group=5,
    primary=("cst_without", 15),
)
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


def sentence(
    method: str = "cst_without", context: ExplanationContext = CONTEXT, **changes: Any
) -> str:
    return explain({**ROW, **changes}, method, 15, context)


def test_significant_after_adjustment() -> None:
    assert sentence() == (
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
    found = explain_insufficient(control, test, max_distance=farthest, min_group=least)
    assert found.startswith(expected)
    assert bool(found) == bool(expected)


@pytest.mark.parametrize(
    ("verdict", "method", "direction"),
    list(product(Verdict, METHODS, ("negative", "positive"))),
)
def test_no_sentence_claims_too_much(verdict: Verdict, method: str, direction: Any) -> None:
    context = replace(CONTEXT, direction=direction, note=", with a note")
    text = sentence(method, context, verdict=verdict.value, n_test=2)
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
    # a comparison of groups tells of people like her, and not of herself
    about_her = f"{'against' if direction == 'negative' else 'treatment of'} complainant 44"
    assert (about_her in text) == (method == "cf" and verdict is not Verdict.INSUFFICIENT)


# --- her own case ------------------------------------------------------------------------------


def own(direction: Any = "negative", *, withheld: bool = False, **changes: Any) -> str:
    row = {**ROW, "p_own": 0.2, "own_case": True, "outcome_cf": None, **changes}
    return explain_own_case(row, replace(CONTEXT, direction=direction), withheld=withheld)


def test_a_case_of_her_own() -> None:
    assert own() == (
        "Own case: yes. Complainant 44 was refused (outcome refused), although fewer than half of "
        "the people most like her own counterfactual were refused (20.0%)."
    )
    assert own(p_own=0.5, own_case=False) == (
        "Own case: no. Complainant 44 was refused (outcome refused), and not fewer than half of "
        "the people most like her own counterfactual were refused (50.0%)."
    )


def test_whoever_was_granted_is_part_of_the_pattern() -> None:
    granted: dict[str, Any] = {"outcome": "granted", "own_case": False}
    assert own(**granted) == (
        "Own case: no. Complainant 44 is part of the pattern: she herself was granted (outcome "
        "granted)."
    )
    # of what chance may explain nobody is a part
    alone = "Own case: no. Complainant 44 herself was granted (outcome granted)."
    for verdict in ("significant", "evidence", "no-evidence", "insufficient"):
        assert own(**granted, verdict=verdict) == alone
    # where there was no adjustment, significance is all that is claimed
    assert "part of the pattern" in own(**granted, verdict="significant", q_value=NAN)


def test_an_own_case_that_is_not_known() -> None:
    far = own(p_own=NAN, own_case=None)
    assert far.startswith("Own case: not known. Complainant 44 was refused (outcome refused), and ")
    assert far.endswith("no people near enough to her own counterfactual to compare with.")
    assert own(p_own=None, own_case=None).endswith(
        "not matched to her own counterfactual in this audit."
    )
    # who was granted has none, whatever is known about others
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


# --- from a case -------------------------------------------------------------------------------


def test_a_case_explains_the_primary_result_by_default() -> None:
    audit = mm.audit(
        mm.datasets.loan(n=300, seed=1),
        outcome="LoanApproval",
        negative=-1,
        protected=mm.Protection("Gender", value=1, reference=0),
        attributes={"AnnualSalary": "continuous"},
        worldview=mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
        ks=(5, 15),
        evidence=mm.Evidence(primary=("cst_without", 15)),
    )
    case = audit.case(audit.findings()["id"].iloc[0])
    context = explanation_context(audit.plan)
    told = explain(case.result("cst_without", k=15), "cst_without", 15, context)
    own = explain_own_case({**case.result("cst_matched", k=15), "verdict": "evidence"}, context)
    assert case.explain() == case.explain("cst_without") == f"{told} {own}"
    assert (case.explain_pattern(), case.explain_own_case()) == (told, own)
    assert case.explain_pattern("st") == explain(case.result("st", k=15), "st", 15, context) != told
    assert case.explain("st", 5) == case.explain("st", k=5) != case.explain("st")
    with pytest.raises(PlanError, match="The audit did not run method 'st' at k=7"):
        case.explain("st", 7)
    with pytest.raises(PlanError, match="The audit did not run method 'st' at k=7"):
        case.balance("st", 7)
