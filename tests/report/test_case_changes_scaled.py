"""What would change a verdict on a score or an order: by hand, person by person."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.report.case_changes import changes_of

LEVELS = ["approved", "on conditions", "later", "refused"]
K = 20


def made_up(seed: int = 3, rows: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    woman = (np.arange(rows) % 3 == 0).astype(int)
    income = rng.integers(0, 8, rows).astype(float)
    worth = 0.3 * income - 0.5 * woman + rng.normal(0, 1, rows)
    answer = np.select([worth > 1.5, worth > 0.7, worth > 0], LEVELS[:3], LEVELS[3])
    return {
        "woman": woman.tolist(),
        "income": income.tolist(),
        "answer": answer.tolist(),
        "rate": np.round(6 - worth, 1).tolist(),
    }


OUTCOMES = {
    "order": mm.Ordered("answer", best_to_worst=LEVELS),
    "score": mm.Score("rate", worse="higher"),
}


def audit(kind: str, ks: tuple[int, ...] = (K,), **changes: Any) -> mm.Audit:
    options: dict[str, Any] = {
        "outcome": OUTCOMES[kind],
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {"income": "continuous"},
        "worldview": mm.Worldview({"income": mm.Linear("woman")}),
        "ks": ks,
        "tau": 0.05,
        "evidence": mm.Evidence(primary=("cst_without", ks[-1])),
        "uncertainty": mm.Uncertainty(refits=2, placebo=0, tipping=False),
    }
    return mm.audit(made_up(), **(options | changes))


Group = list[tuple[Fraction, Fraction]]  # a part of a place, and a number: larger is worse


def delta_by_hand(kind: str, control: Group, test: Group) -> Fraction:
    totals = [sum((place for place, _ in group), Fraction(0)) for group in (control, test)]
    if kind == "score":
        means = [
            sum((place * each for place, each in group), Fraction(0)) / total
            for group, total in zip((control, test), totals, strict=True)
        ]
        return means[0] - means[1]
    pairs = (
        p * q * (Fraction(int(a > b)) + Fraction(int(a == b), 2))
        for p, a in control
        for q, b in test
    )
    return sum(pairs, Fraction(0)) / (totals[0] * totals[1]) - Fraction(1, 2)


def groups_of(found: mm.Audit, kind: str, id: int) -> dict[str, Group]:  # noqa: A002
    table, members = made_up(), found.case(id).groups("cst_without", k=K)
    column = table["answer" if kind == "order" else "rate"]

    def number(row: int) -> Fraction:
        return Fraction(LEVELS.index(column[row]) if kind == "order" else str(column[row]))

    return {
        role: [
            (Fraction(float(place)).limit_denominator(10**6), number(int(row)))
            for row, place in zip(each.ids, each.place, strict=True)
        ]
        for role, each in (("control", members.control), ("test", members.test))
    }


@pytest.mark.parametrize("kind", list(OUTCOMES))
@pytest.mark.few("score")
def test_how_many_other_outcomes_end_the_evidence(kind: str) -> None:
    found = audit(kind)
    values = sorted(Fraction(str(each)) for each in made_up()["rate"])
    best = Fraction(0) if kind == "order" else values[0]
    cases = found.findings().query("verdict != 'no-evidence'")["id"].tolist()
    assert len(cases) > 5
    for id in cases[:5]:  # noqa: A001
        groups = groups_of(found, kind, id)
        changes = changes_of(found.case(id)).outcomes
        assert (changes[0].group, changes[0].outcome) == (
            "control",
            "approved" if kind == "order" else float(best),
        )
        # in each step, whoever lowers Δ most; the first number at which it is not above τ
        control, people = list(groups["control"]), 0
        while delta_by_hand(kind, control, groups["test"]) > Fraction(1, 20):
            tried = [
                (
                    delta_by_hand(
                        kind,
                        [(p, best if j == i else y) for j, (p, y) in enumerate(control)],
                        groups["test"],
                    ),
                    i,
                )
                for i, (_, each) in enumerate(control)
                if each != best
            ]
            _, chosen = min(tried)
            control[chosen] = (control[chosen][0], best)
            people += 1
        ended = {step.verdict: step.people for step in changes[0].steps}
        assert ended["no-evidence"] == people
        assert changes[0].of == sum(each != best for _, each in groups["control"])


@pytest.mark.parametrize("kind", list(OUTCOMES))
@pytest.mark.few("score")
def test_every_k_is_that_of_an_audit_at_it(kind: str) -> None:
    ks = tuple(range(1, 19))
    found = audit(kind, ks=ks)
    id = int(found.findings()["id"].iloc[4])  # noqa: A001
    changes = changes_of(found.case(id))
    rows = {k: found.findings("cst_without", k=k).set_index("id").loc[id, "verdict"] for k in ks}

    def listed(ranges: Any) -> list[int]:
        return [k for first, last in ranges for k in range(first, last + 1)]

    assert changes.searched_ks == 18
    assert listed(changes.evidence_ks) == [k for k in ks if rows[k] != "no-evidence"]
    strong = {"significant", "significant-adjusted"}
    assert listed(changes.significant_ks) == [k for k in ks if rows[k] in strong]


@pytest.mark.parametrize("kind", list(OUTCOMES))
@pytest.mark.few("score")
def test_with_herself_is_the_method_that_counts_her(kind: str) -> None:
    def decide(frame: Any) -> Any:
        worth = 0.3 * np.asarray(frame["income"])
        if kind == "score":
            return np.round(6 - worth, 1)
        return np.select([worth > 1.5, worth > 0.7, worth > 0], LEVELS[:3], LEVELS[3])

    ks = (6,) if kind == "order" else (K,)
    one = audit(kind, ks=ks, decision=decide, methods=["cst_without"])
    two = audit(kind, ks=ks, decision=decide, methods=["cst_without", "cst_with"])
    verdicts = {
        method: two.findings(method, k=ks[0])["verdict"] for method in ("cst_without", "cst_with")
    }
    differ = verdicts["cst_without"] != verdicts["cst_with"]
    ids = two.findings("cst_with", k=ks[0])["id"]
    assert differ.any()
    for id in [*ids[differ][:5], *ids[~differ][:5]]:  # noqa: A001
        alone = changes_of(one.case(id)).herself
        counted = two.case(id).result("cst_with", k=ks[0])["verdict"]
        # adjusted among others: whether it is evidence, or significant, is the same
        assert (alone == "no-evidence") == (counted == "no-evidence")
        assert ("significant" in str(alone)) == ("significant" in counted)
