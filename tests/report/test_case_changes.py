"""What would change a verdict, against audits that were run again with it changed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.report.case_changes import changes_of, ranges
from mutandis.report.case_file import case_document

if TYPE_CHECKING:
    from mutandis.report.case_model import Changes

Auditing = Callable[..., mm.Audit]
Table = Callable[..., pd.DataFrame]
WORLDVIEW = mm.Worldview({"salary": mm.Linear("gender"), "savings": mm.Linear("salary")})
WORLDVIEW_WITH_ORIGIN = mm.Worldview(
    {
        "salary": mm.Linear("gender", "origin"),
        "savings": mm.Linear("salary", "gender", decimals=1, bounds=(0, None)),
    }
)


# audits that are run again and again, and asked for nothing but verdicts
VERDICTS_ALONE = mm.Uncertainty(placebo=0, tipping=False)


def changes(audit: mm.Audit, who: Any) -> Changes:
    return changes_of(audit.case(who))


def verdict(audit: mm.Audit, who: Any) -> str:
    found = audit.findings().set_index("id")
    return str(found.loc[who, "verdict"])


def test_the_loan_case_of_the_documentation(loan_audit: mm.Audit) -> None:
    (part,) = loan_audit.with_levels(method="cst_matched", k=30).case_file(5).parts
    assert part.control is not None
    assert part.control.refused == 19
    steps = [
        (each.group, each.outcome, [(step.people, step.verdict) for step in each.steps])
        for each in part.changes.outcomes[::3]
    ]
    assert steps == [
        ("control", 1, [(17, "significant"), (18, "evidence"), (19, "no-evidence")]),
        ("test", -1, [(30, "significant"), (37, "evidence"), (61, "no-evidence")]),
    ]


def test_the_loan_case_by_the_papers_method(paper_loan_audit: mm.Audit) -> None:
    (part,) = paper_loan_audit.case_file(5).parts
    assert part.control is not None
    assert part.control.refused == 19
    approved = part.changes.outcomes[0]
    assert (approved.group, approved.outcome) == ("control", 1)
    assert [(step.people, step.verdict) for step in approved.steps] == [
        (15, "significant"),
        (17, "evidence"),
        (19, "no-evidence"),
    ]


def test_numbers_are_written_as_ranges() -> None:
    marked = np.array([True, False, True, True, False])
    assert ranges((1, 2, 3, 4, 5), marked) == ((1, 1), (3, 4))


def test_matches_with_parts_of_many_sizes_are_counted(
    audit_applicants: Auditing, made_up_applicants: Table
) -> None:
    """Their common denominator has no room in int64."""
    audit = audit_applicants(
        made_up_applicants(900),
        worldview=WORLDVIEW_WITH_ORIGIN,
        methods=None,
        attributes={"salary": "continuous", "savings": "continuous"},
        uncertainty=mm.Uncertainty(refits=2, placebo=0, tipping=False),
    )
    for who in ("applicant-728", "applicant-826"):
        (part,) = audit.case_file(who).parts
        assert part.test is not None
        told = part.changes.outcomes
        assert [each.of for each in told[2:]] == [part.test.refused, part.test.granted]
        assert part.test.around == "the counterfactuals of the control group"


@pytest.mark.parametrize("place", [0, 3, 7])
@pytest.mark.parametrize("direction", ["negative", "positive"])
@pytest.mark.few("negative-7", "positive-0")
def test_so_many_outcomes_change_the_verdict(
    audit_applicants: Auditing, made_up_applicants: Table, place: int, direction: Any
) -> None:
    """Flip recorded outcomes in the table, people with whole places first, and audit again."""
    table = made_up_applicants()
    # nobody else is looked at: their outcomes change with hers
    evidence = mm.Evidence(adjust="none", direction=direction)
    options: dict[str, Any] = {"worldview": WORLDVIEW, "evidence": evidence, "ks": (8,)}
    options["uncertainty"] = VERDICTS_ALONE
    audit = audit_applicants(table, **options)
    who = audit.findings()["id"].iloc[place]
    groups = audit.case(who).groups("cst_without", k=8)
    tried = 0
    for change in changes(audit, who).outcomes:
        members = getattr(groups, change.group)
        # the oracle takes those who could change, by the place they hold
        outcomes = np.where(members.is_negative, "no", "yes")
        able = np.flatnonzero(outcomes != change.outcome)
        able = able[np.argsort(-members.place[able], kind="stable")]
        assert change.of == len(able)
        seen = [verdict(audit, who)]
        for people in range(1, len(able) + 1):
            flipped = table.copy()
            chosen = flipped.name.isin(members.ids[able[:people]])
            flipped.loc[chosen, "granted"] = change.outcome
            seen.append(verdict(audit_applicants(flipped, **options), who))
            tried += 1
        steps = [
            (people, after)
            for people, (before, after) in enumerate(pairwise(seen), start=1)
            if before != after
        ]
        assert [(step.people, step.verdict) for step in change.steps] == steps
    assert tried


@pytest.mark.slow
def test_adjusted_verdicts_hold_everybody_else_as_they_are(audit_of: Auditing) -> None:
    """Recompute q-values from the definition of Benjamini and Hochberg."""
    audit = audit_of("observed")
    table = audit.findings()
    alpha = 0.05
    from mutandis.evidence.intervals import INTERVALS
    from mutandis.search.share import Share

    one = np.array([1])
    checked = 0
    for who in table["id"][::4]:
        (part,) = case_document(audit, who).parts
        assert part.control is not None
        assert part.test is not None
        if part.control.shared or part.test.shared:
            continue
        (fewer,) = [
            each
            for each in part.changes.outcomes
            if (each.group, each.outcome) == ("control", "yes")
        ]
        refused, against = part.control.refused, part.test.refused
        assert isinstance(refused, int)
        assert isinstance(against, int)
        others = table.loc[table["id"] != who, "p_value"].to_numpy()
        seen = []
        for people in range(fewer.of + 1):
            shares = [
                Share(negatives=np.array([count]), size=10 * one, split=one)
                for count in (refused - people, against)
            ]
            p = float(INTERVALS["miettinen-nurminen"](*shares, tau=0.0, alpha=alpha).p_value[0])
            ranked = np.sort(np.append(others, p))
            rank = np.searchsorted(ranked, p, side="right")
            after = ranked[rank - 1 :] * len(ranked) / np.arange(rank, len(ranked) + 1)
            found = refused - people > against
            seen.append((found, p <= alpha, min(after) <= alpha))
        words = {
            (True, True, True): "significant-adjusted",
            (True, True, False): "significant",
            (True, False, False): "evidence",
        }
        named = [words.get(each, "no-evidence") for each in seen]
        expected = [(i, b) for i, (a, b) in enumerate(pairwise(named), 1) if a != b]
        assert [(step.people, step.verdict) for step in fewer.steps] == expected
        checked += bool(expected)
    assert checked > 2


@pytest.mark.parametrize("method", ["st", "cst_without", "cst_with"])
def test_every_k_is_answered_as_an_audit_would(audit_applicants: Auditing, method: str) -> None:
    options: dict[str, Any] = {"worldview": WORLDVIEW, "decision": "salary + savings > 62"}
    audit = audit_applicants(**options, ks=(4, 12), evidence=mm.Evidence(primary=(method, 12)))
    every = audit_applicants(**options, ks=range(1, 13), evidence=mm.Evidence(adjust="none"))
    tables = {k: every.findings(method, k=k).set_index("id") for k in range(1, 13)}
    for who in audit.findings()["id"][:6]:
        found = changes(audit, who)
        assert found.searched_ks == 12
        rows = {k: table.loc[who] for k, table in tables.items()}
        evidence = {k for k, row in rows.items() if row["verdict"] != "no-evidence"}
        significant = {k for k, row in rows.items() if row["verdict"] == "significant"}
        for spans, expected in (
            (found.evidence_ks, evidence),
            (found.significant_ks, significant),
        ):
            assert spans is not None
            assert {k for low, high in spans for k in range(low, high + 1)} == expected


def test_thresholds_are_where_the_verdict_changes(audit_applicants: Auditing) -> None:
    options: dict[str, Any] = {
        "worldview": WORLDVIEW,
        "ks": (10,),
        "evidence": mm.Evidence(adjust="none"),
    }
    audit = audit_applicants(**options)
    found = audit.findings()
    who = found.loc[(found.verdict == "significant") & (found.delta_p < 0.9), "id"].iloc[0]
    told = changes(audit, who)
    assert isinstance(told.tau_evidence, float)
    assert isinstance(told.tau_significant, float)
    assert isinstance(told.alpha_significant, float)
    again = {
        name: verdict(audit_applicants(**options, **{setting: value}), who)
        for name, setting, value in (
            ("below", "tau", told.tau_evidence - 1e-6),
            ("at", "tau", round(told.tau_evidence, 12)),
            ("bounded", "tau", told.tau_significant - 1e-6),
            ("beyond", "tau", told.tau_significant + 1e-6),
            ("strict", "alpha", told.alpha_significant * 0.999),
            ("lenient", "alpha", told.alpha_significant * 1.001),
        )
    }
    assert again == {
        "below": "evidence",
        "at": "no-evidence",
        "bounded": "significant",
        "beyond": "evidence",
        "strict": "evidence",
        "lenient": "significant",
    }


@pytest.mark.slow
def test_herself_counted_in_or_left_out(audit_applicants: Auditing) -> None:
    options: dict[str, Any] = {"worldview": WORLDVIEW, "ks": (3,)}
    decision = "salary + savings > 62"
    without = audit_applicants(
        **options, decision=decision, evidence=mm.Evidence(primary=("cst_without", 3))
    )
    with_her = audit_applicants(
        **options, decision=decision, evidence=mm.Evidence(primary=("cst_with", 3))
    )
    alone = audit_applicants(
        **options, decision=decision, methods=["cst_without"], evidence=mm.Evidence(adjust="none")
    )
    compared = audit_applicants(
        **options, decision=decision, methods=["cst_with"], evidence=mm.Evidence(adjust="none")
    )
    differing = 0
    for who in without.findings()["id"][::5]:
        assert changes(without, who).herself == verdict(with_her, who)
        assert changes(with_her, who).herself == verdict(without, who)
        # not run, so computed from her groups and the two outcomes
        assert changes(alone, who).herself == verdict(compared, who)
        differing += verdict(alone, who) != verdict(compared, who)
    assert differing


def test_k_and_draws_are_told(audit_of: Auditing) -> None:
    audit = audit_of("draws")
    who = audit.findings()["id"].iloc[0]
    told = changes(audit, who)
    assert told.by_k == {
        k: audit.findings(k=k).set_index("id").loc[who, "verdict"] for k in (5, 10, 20)
    }
    assert told.worlds == 4
    assert told.verdict_share == audit.findings().set_index("id").loc[who, "verdict_share"]


def test_the_distance_that_would_be_enough(audit_applicants: Auditing) -> None:
    def near(distance: float) -> mm.Audit:
        similarity = mm.Similarity(min_group=6, max_distance=distance)
        return audit_applicants(worldview=WORLDVIEW, ks=(8,), similarity=similarity)

    audit = near(0.01)
    found = audit.findings()
    who = found.loc[found.verdict == "insufficient", "id"].iloc[0]
    needed = changes(audit, who).sufficient_distance
    assert isinstance(needed, float)
    for distance, enough in ((needed - 1e-9, False), (needed + 1e-9, True)):
        assert (verdict(near(distance), who) != "insufficient") is enough
    html = audit.case_file(who).to_html()
    assert f"within {needed:.4f} there would be enough people" in html
    assert f"{needed:.4f}" not in audit.case_file(who, redact=True).to_html()


def test_single_decisions_have_no_numbers_to_change(audit_of: Auditing) -> None:
    audit = audit_of("cf")
    who = audit.findings()["id"].iloc[0]
    assert changes(audit, who).outcomes == ()
    assert "another decision on either of them would change it" in audit.case_file(who).to_html()


def test_nothing_is_told_of_what_was_not_compared(audit_of: Auditing) -> None:
    audit = audit_of("alone")
    told = changes(audit, audit.findings()["id"].iloc[0])
    assert told.outcomes == ()
    assert told.tau_evidence is None


@pytest.mark.slow
def test_a_case_of_matched_groups_with_many_ties() -> None:
    """The parts that matches hold have a common denominator that int64 has no room for."""
    rng = np.random.default_rng(5)
    size = 900
    woman = (rng.random(size) < 0.4).astype(int)
    grade = rng.integers(0, 12, size)
    score = rng.integers(0, 12, size)
    audit = mm.audit(
        {
            "woman": woman,
            "grade": grade,
            "score": score,
            "granted": np.where(grade + score + rng.normal(0, 2.4, size) > 12, "yes", "no"),
        },
        outcome="granted",
        negative="no",
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"grade": "continuous", "score": "continuous"},
        worldview=mm.Worldview({"grade": mm.Linear("woman"), "score": mm.Linear("woman", "grade")}),
        methods=["cst_matched"],
        ks=(30,),
        uncertainty=mm.Uncertainty(refits=2, placebo=0, tipping=False),
    )
    women = np.flatnonzero(woman)[:12].tolist()
    told = [changes(audit, person).outcomes for person in women]
    assert any(told)
    parts = [audit.case_file(person).parts[0] for person in women[:3]]
    assert {part.test.around for part in parts if part.test} == {
        "the counterfactuals of the control group"
    }
    for person in women:
        members = audit.case(int(person)).groups("cst_matched", k=30).test
        found = audit.case(int(person)).result("cst_matched", k=30)
        assert float(members.place.sum()) == pytest.approx(30, abs=1e-3)
        share = float(members.place[members.is_negative].sum() / members.place.sum())
        assert share == pytest.approx(found["p_test"], abs=1e-4)
