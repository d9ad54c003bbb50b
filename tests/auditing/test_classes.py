"""Outcomes with several classes: the declared ones together, and each by itself."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.errors import DecisionError, OutcomeError, PlanError

WOMEN = mm.Protection("woman", value=1, reference=0)
CLASSES = ("yes", "later", "no", "never")


def made_up(seed: int = 1, rows: int = 160) -> dict[str, Any]:
    """Make a table on a coarse grid, where ties are common, and women wait longer."""
    rng = np.random.default_rng(seed)
    woman = (np.arange(rows) % 3 == 0).astype(int)
    skill = rng.integers(0, 8, rows)
    wealth = rng.integers(0, 5, rows)
    worth = skill + wealth - 2 * woman + rng.normal(0, 2, rows)
    place = np.digitize(-worth, [-8, -5, -2])
    return {
        "woman": woman.tolist(),
        "skill": skill.astype(float).tolist(),
        "wealth": wealth.astype(float).tolist(),
        "answer": [CLASSES[each] for each in place],
    }


def audit(table: dict[str, Any], **changes: Any) -> mm.Audit:
    options: dict[str, Any] = {
        "outcome": "answer",
        "negative": ["no", "never"],
        "protected": WOMEN,
        "attributes": {"skill": "continuous", "wealth": "continuous"},
        "worldview": mm.Worldview({"skill": mm.Linear("woman"), "wealth": mm.Linear("woman")}),
        "ks": (8, 15),
        "uncertainty": mm.Uncertainty(refits=0, placebo=0, tipping=False),
    }
    return mm.audit(table, **(options | changes))


def share_by_hand(
    table: dict[str, Any], center: int, among: list[int], k: int, values: set[str]
) -> Fraction:
    """Share of some answers among the k nearest, last places shared: ranges, loops, fractions."""
    columns = [table["skill"], table["wealth"]]
    spans = [Fraction(max(c)) - Fraction(min(c)) for c in columns]

    def apart(row: int) -> Fraction:
        return sum(
            (
                abs(Fraction(c[row]) - Fraction(c[center])) / s
                for c, s in zip(columns, spans, strict=True)
            ),
            Fraction(0),
        )

    order = sorted(apart(row) for row in among)
    radius = order[k - 1]
    inside = [row for row in among if apart(row) < radius]
    rim = [row for row in among if apart(row) == radius]
    part = Fraction(k - len(inside), len(rim))
    hits = sum(table["answer"][row] in values for row in inside)
    return (hits + part * sum(table["answer"][row] in values for row in rim)) / k


def test_the_declared_classes_are_one_side() -> None:
    table = made_up()
    several = audit(table)
    collapsed = table | {
        "answer": ["refused" if a in ("no", "never") else "granted" for a in table["answer"]]
    }
    two = audit(collapsed, negative="refused")
    for method in several.methods:
        for k in (8, 15):
            one, other = several.findings(method, k=k), two.findings(method, k=k)
            assert one.drop(columns="outcome").equals(other.drop(columns="outcome"))
    women = [i for i, w in enumerate(table["woman"]) if w]
    assert several.findings()["outcome"].tolist() == [table["answer"][i] for i in women]


def test_each_class_is_counted_as_by_hand() -> None:
    table = made_up(2)
    found = audit(table)
    women = [i for i, w in enumerate(table["woman"]) if w]
    men = [i for i, w in enumerate(table["woman"]) if not w]
    for place in (0, 7, 20):
        her = women[place]
        records = found.case(her).classes("st", k=8)
        assert records["class"].tolist() == ["no", "never", "later", "yes"]
        for _, row in records.iterrows():
            others = [each for each in women if each != her]
            p_control = share_by_hand(table, her, others, 8, {row["class"]})
            p_test = share_by_hand(table, her, men, 8, {row["class"]})
            assert row["p_control"] == float(p_control)
            assert row["p_test"] == float(p_test)
            assert row["delta_p"] == float(p_control - p_test)
        # the classes are parts of a whole
        assert records["p_control"].sum() == pytest.approx(1)
        assert records["delta_p"].sum() == pytest.approx(0, abs=1e-12)


def test_p_values_are_adjusted_for_the_classes_by_holm() -> None:
    found = audit(made_up(3, rows=300))
    for id in found.findings()["id"].tolist()[:10]:  # noqa: A001
        records = found.case(id).classes("cst_without", k=15)
        p_values = records["p_value"].tolist()
        running = 0.0
        expected: dict[float, float] = {}
        for rank, p in enumerate(sorted(p_values)):
            running = max(running, min(1.0, (len(p_values) - rank) * p))
            expected.setdefault(p, running)
        by_hand = [expected[p] for p in p_values]
        # equal p-values take the place of the first of them
        assert records["p_holm"].tolist() == pytest.approx(by_hand)


def test_a_class_by_itself_is_the_audit_of_two_values() -> None:
    table = made_up(4, rows=240)
    refits = mm.Uncertainty(refits=4, placebo=0, tipping=False)
    found = audit(table, uncertainty=refits)
    never = table | {"answer": ["never" if a == "never" else "-" for a in table["answer"]]}
    alone = audit(never, negative="never", uncertainty=refits)
    records = found.classes("cst_matched", k=15).set_index("class")
    counts = alone.counts().query("method == 'cst_matched' and k == 15").iloc[0]
    assert records.loc["never", "cases"] == counts["cases"]
    assert records.loc["never", "significant"] == counts["significant"]
    # a favourable class is looked for where there is less of it
    yes = table | {"answer": ["yes" if a == "yes" else "-" for a in table["answer"]]}
    turned = audit(
        yes, negative="yes", uncertainty=refits, evidence=mm.Evidence(direction="positive")
    )
    counts = turned.counts().query("method == 'cst_matched' and k == 15").iloc[0]
    assert records.loc["yes", "cases"] == counts["cases"]
    assert records.loc["yes", "significant"] == counts["significant"]


def test_the_order_of_rows_and_of_the_list_changes_nothing() -> None:
    table = made_up(5)
    order = np.random.default_rng(0).permutation(len(table["woman"]))
    named = table | {"who": list(range(len(order)))}
    shuffled = {name: [column[i] for i in order] for name, column in named.items()}
    first = audit(named, id="who")
    second = audit(shuffled, id="who", negative={"never", "no"})
    key = ["class"]
    one, two = (each.classes().sort_values(key).reset_index(drop=True) for each in (first, second))
    assert one.equals(two)


def test_decision_makers_answer_with_classes(tmp_path: Any) -> None:
    def decide(frame: Any) -> list[str]:
        worth = frame["skill"] + frame["wealth"]
        return ["yes" if w > 8 else "later" if w > 5 else "no" for w in worth]

    found = audit(made_up(6), decision=decide)
    assert {"cst_with", "cf"} <= set(found.methods)
    assert set(found.findings()["outcome_cf"]) <= {"no or never", "later or yes"}
    with pytest.raises(PlanError, match="which side the decision maker is on"):
        found.classes("cf", k=8)
    again = audit(
        made_up(6), worldview=None, counterfactuals=found.counterfactuals(), decision=None
    )
    columns = ["p_control", "p_test", "verdict"]
    one, two = (each.findings("cst_with", k=8)[columns] for each in (found, again))
    assert one.equals(two)
    found.save(tmp_path / "results")
    opened = mm.open_results(tmp_path / "results")
    assert opened.findings().equals(found.findings())
    assert opened.classes().equals(found.classes())
    page = (tmp_path / "results" / "report.html").read_text(encoding="utf-8")
    assert "Each outcome by itself" in page
    document = opened.case_file(opened.findings()["id"][0])
    assert "no or never" in document.to_html()


def test_refusals_say_what_is_allowed() -> None:
    table = made_up()
    with pytest.raises(OutcomeError, match=r"has 4 distinct values .* or list the unfavourable"):
        audit(table, negative="no")
    with pytest.raises(OutcomeError, match="names 'nein', which is not a value of outcome"):
        audit(table, negative=["no", "nein"])
    with pytest.raises(OutcomeError, match="names every value"):
        audit(table, negative=list(CLASSES))
    with pytest.raises(OutcomeError, match="empty list"):
        audit(table, negative=[])
    with pytest.raises(OutcomeError, match="twice"):
        audit(table, negative=["no", "no"])
    with pytest.raises(DecisionError, match="'no', 'never', 'later' and 'yes', or booleans"):
        audit(table, decision=lambda frame: ["perhaps"] * len(frame))
    two = {**table, "answer": ["no" if a == "no" else "yes" for a in table["answer"]]}
    with pytest.raises(PlanError, match="has two values, and the audit compares them"):
        audit(two, negative=["no"]).classes()
