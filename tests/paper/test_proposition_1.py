"""Proposition 1: counterfactual fairness and individual discrimination do not imply each other.

Two tables, small enough to follow by hand (docs/published-runs.md does). In both the rule is
`salary >= 20`, decisions follow it, and men earn 6 more on average: under do(woman := 0) every
woman earns 6 more.
"""

from __future__ import annotations

import pytest

import mutandis as mm


def audit(women: list[int], men: list[int], *, k: int) -> mm.Audit:
    salaries = [*women, *men]
    return mm.audit(
        {
            "woman": [1] * len(women) + [0] * len(men),
            "salary": salaries,
            "granted": ["yes" if salary >= 20 else "no" for salary in salaries],
        },
        outcome="granted",
        negative="no",
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous"},
        worldview=mm.Worldview({"salary": mm.Linear("woman")}),
        decision="salary >= 20",
        methods=["st", "cst_without", "cst_with", "cf"],
        ks=(k,),
    )


@pytest.fixture(scope="module")
def fair_but_discriminating() -> mm.Audit:
    return audit([10, 11, 12, 13], [12, 13, 14, 15, 20, 21, 22, 23], k=3)


@pytest.fixture(scope="module")
def unfair_without_discrimination() -> mm.Audit:
    return audit([13, 14, 20, 21, 22], [18, 19, 26, 28, 29], k=2)


def test_counterfactually_fair_yet_individual_discrimination(
    fair_but_discriminating: mm.Audit,
) -> None:
    found = fair_but_discriminating
    assert found.counterfactuals()["salary"].tolist()[:4] == pytest.approx([16, 17, 18, 19])
    # nobody's outcome changes, not even that of a man
    assert found.counterfactuals()["granted"].tolist() == ["no"] * 8 + ["yes"] * 4
    counts = found.counts().set_index("method")["cases"]
    assert counts.to_dict() == {"st": 0, "cst_without": 3, "cst_with": 3, "cf": 0}
    without = found.findings("cst_without", k=3)
    assert without["p_control"].tolist() == [1, 1, 1, 1]
    # men near 16: 15, 14, 13; near 17: 15, 14, 20; near 18: 20, 21, 15; near 19: 20, 21, 22
    assert without["p_test"].tolist() == [1, 2 / 3, 1 / 3, 0]
    # her counterfactual's own refusal counts too: 3 + 1, 2 + 1, 1 + 1, 0 + 1 of 4
    assert found.findings("cst_with", k=3)["p_test"].tolist() == [1, 3 / 4, 2 / 4, 1 / 4]


def test_individual_discrimination_holds_beyond_a_margin(
    fair_but_discriminating: mm.Audit,
) -> None:
    """The proof sketch is about any τ: one woman has Δp = 1."""
    assert fair_but_discriminating.findings("cst_without", k=3)["delta_p"].tolist()[3] == 1.0


def test_no_individual_discrimination_yet_counterfactually_unfair(
    unfair_without_discrimination: mm.Audit,
) -> None:
    found = unfair_without_discrimination
    assert found.counterfactuals()["salary"].tolist()[:5] == pytest.approx([19, 20, 26, 27, 28])
    counts = found.counts().set_index("method")["cases"]
    assert counts.to_dict() == {"st": 0, "cst_without": 0, "cst_with": 0, "cf": 1}
    refused = found.findings("cf", k=2)
    assert refused.loc[refused["verdict"] == "evidence", "id"].tolist() == [1]
    # women near 14: 13 (refused) and 20; men near 20: 19 and 18, both refused
    without = found.findings("cst_without", k=2)
    assert without["p_control"].tolist() == [1 / 2, 1 / 2, 0, 0, 0]
    assert without["p_test"].tolist() == [1, 1, 0, 0, 0]
    # with centers the two sides meet: 1 + 1 of 3 against 2 + 0 of 3
    centered = found.findings("cst_with", k=2)
    assert centered.loc[1, ["p_control", "p_test", "delta_p"]].tolist() == [2 / 3, 2 / 3, 0]
