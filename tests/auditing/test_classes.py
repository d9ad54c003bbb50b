"""Outcomes with several classes, of which some are declared unfavourable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.errors import DecisionError, OutcomeError

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
        "uncertainty": mm.Uncertainty(refits=0, tipping=False),
    }
    return mm.audit(table, **(options | changes))


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


def test_decision_makers_answer_with_classes(tmp_path: Any) -> None:
    def decide(frame: Any) -> list[str]:
        worth = frame["skill"] + frame["wealth"]
        return ["yes" if w > 8 else "later" if w > 5 else "no" for w in worth]

    found = audit(made_up(6), decision=decide)
    assert {"cst_with", "cf"} <= set(found.methods)
    assert set(found.findings()["outcome_cf"]) <= {"no or never", "later or yes"}
    again = audit(
        made_up(6), worldview=None, counterfactuals=found.counterfactuals(), decision=None
    )
    columns = ["p_control", "p_test", "verdict"]
    one, two = (each.findings("cst_with", k=8)[columns] for each in (found, again))
    assert one.equals(two)
    found.save(tmp_path / "results")
    opened = mm.open_results(tmp_path / "results")
    assert opened.findings().equals(found.findings())
    document = opened.case_file(opened.findings()["id"][0])
    assert "no or never" in document.to_html()


def test_refusals_say_what_is_allowed() -> None:
    table = made_up()
    with pytest.raises(OutcomeError, match=r"has 4 distinct values .* or list the unfavourable"):
        audit(table, negative="no")
    with pytest.raises(OutcomeError, match="negative='nein' is not a value of outcome"):
        audit(table, negative=["no", "nein"])
    with pytest.raises(OutcomeError, match="names every value"):
        audit(table, negative=list(CLASSES))
    with pytest.raises(OutcomeError, match="empty list"):
        audit(table, negative=[])
    with pytest.raises(OutcomeError, match="twice"):
        audit(table, negative=["no", "no"])
    with pytest.raises(DecisionError, match="'no', 'never', 'later' and 'yes', or booleans"):
        audit(table, decision=lambda frame: ["perhaps"] * len(frame))
