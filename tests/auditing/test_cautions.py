"""What a reader of the headline has to know, in the terminal, in print and on the page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutandis as mm

pytestmark = pytest.mark.filterwarnings("ignore::mutandis.errors.MutandisWarning")


def audit(*, above: float = 0.0, refused: float = 0.5, **options: Any) -> mm.Audit:
    """Audit pairs of a man and a woman, alike but that the men's incomes may lie above."""
    rng = np.random.default_rng(5)
    woman, size = np.arange(240) % 2, 240
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": "no",
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {"income": "continuous", "age": "continuous"},
        "methods": ["cst_matched"],
        "ks": (40,),
        **options,
    }
    income, age = np.repeat(rng.normal(size=(2, size // 2)), 2, axis=1)
    income += above * (1 - woman)
    granted = np.where(rng.random(size) < refused, "no", "yes")
    granted[0] = "no"  # a man
    return mm.audit(
        {
            "woman": woman,
            "income": income,
            "age": age,
            "granted": granted,
        },
        counterfactuals={"income": income, "age": age},
        **settings,
    )


def test_the_attributes_that_are_out_of_balance_are_named() -> None:
    found = audit(above=3.0)
    rows = found.findings()
    left_out = rows[rows["verdict"] == "insufficient"]["unfit"].value_counts()
    assert left_out.sum() > len(rows) / 3
    (said,) = [each for each in found.cautions() if "could not be compared" in each]
    assert said.startswith(f"{left_out.sum()} of 120 complainants could not be compared: for ")
    reason = f"for {left_out['income']}, the averages of both groups differ in 'income'"
    assert reason in said
    assert said in repr(found).splitlines()
    page = found.report().html
    assert reason.replace("'", "&#39;") in page
    assert "fewer than 1" not in page


def test_where_people_can_be_compared_nothing_is_said() -> None:
    found = audit()
    assert not [each for each in found.cautions() if "could not be compared" in each]
    assert "could not be compared" not in repr(found)


@pytest.mark.parametrize(
    ("equation", "is_said"),
    [
        (mm.Linear("woman"), True),
        (mm.Linear("woman", link="log"), False),
        (mm.Stated("-2 * woman"), False),
        (mm.Stated("b * woman", fit=["b"]), True),
    ],
)
def test_a_row_that_decides_an_equation_is_told_of(equation: Any, is_said: bool) -> None:
    woman = np.arange(60) % 2
    income = 10 + np.arange(60) % 7 - 2.0 * woman
    for largest in (12.0, 100.0):
        income[0] = largest
        found = mm.audit(
            {"woman": woman, "income": income, "granted": np.where(income > 11, "yes", "no")},
            outcome="granted",
            negative="no",
            protected=mm.Protection("woman", value=1, reference=0),
            attributes={"income": "continuous"},
            worldview=mm.Worldview({"income": equation}),
            methods=["cst_matched"],
            ks=(10,),
            uncertainty=mm.Uncertainty(refits=0),
        )
        told = [each for each in found.cautions() if each.startswith("One row holds 9")]
        assert bool(told) == (is_said and largest == 100)


def test_groups_that_are_too_small_are_called_so() -> None:
    found = audit(methods=["st"], similarity=mm.Similarity(max_distance=0.001, min_group=2))
    page = found.report().html
    assert ", a group holds fewer than 2 people within distance 0.001" in page
    assert ": for 120, groups are too small." in repr(found)
