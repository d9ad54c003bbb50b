"""What is done to predictions at the end: decimals, then levels, then bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data.columns import Numbers
from mutandis.errors import EquationError, FormulaError
from mutandis.scm import Additive, Linear, Stated
from mutandis.scm.additive import finish
from mutandis.scm.family import naming

_QUARTERS = st.integers(-40, 40).map(lambda number: number / 4)


def _numbers(*values: float) -> Numbers:
    return Numbers(np.array(values))


def test_values_move_to_the_nearest_level_and_to_the_lower_of_two() -> None:
    values = np.array([1.2, 1.5, 1.6, 3.0, 2.0, 6.9, 7.0])
    finished = finish(values, levels=(1.0, 2.0, 4.0, 10.0))
    assert finished.values.tolist() == [1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 4.0]
    assert finished.clipped == 0


@given(
    values=st.lists(_QUARTERS, min_size=1, max_size=20),
    levels=st.lists(_QUARTERS, min_size=2, max_size=6, unique=True).map(sorted),
)
def test_levels_against_a_search_through_all_of_them(
    values: list[float], levels: list[float]
) -> None:
    finished = finish(np.array(values), levels=tuple(levels))
    nearest = [
        min(levels, key=lambda level, value=value: (abs(Fraction(value) - Fraction(level)), level))  # type: ignore[misc]
        for value in values
    ]
    assert finished.values.tolist() == nearest
    assert finished.clipped == sum(not levels[0] <= value <= levels[-1] for value in values)


def test_values_beyond_the_outermost_levels_are_counted() -> None:
    finished = finish(np.array([0.9, 1.0, 3.0, 3.1, 50.0]), levels=(1.0, 2.0, 3.0))
    assert finished.values.tolist() == [1.0, 1.0, 3.0, 3.0, 3.0]
    assert finished.clipped == 3


def test_decimals_come_before_levels() -> None:
    """0.46 is nearer to 0 than to 1; rounded to 0.5 it is a tie, and rounded to 0 it is 0.

    3.04 is beyond the last level; rounded to 3.0 it is not.
    """
    levels = (0.0, 0.9, 3.0)
    assert finish(np.array([0.46]), levels=levels).values.tolist() == [0.9]
    assert finish(np.array([0.46]), levels=levels, decimals=0).values.tolist() == [0.0]
    finished = finish(np.array([3.04]), levels=levels, decimals=1)
    assert (finished.values.tolist(), finished.clipped) == ([3.0], 0)
    assert finish(np.array([3.04]), levels=levels).clipped == 1


def test_levels_come_before_bounds_and_each_value_is_counted_once() -> None:
    """Of 0.4, 2.2 and 9 the levels make 0, 2 and 3; the bounds 1 and 2 clip the outer two.

    9 is beyond the levels and beyond the bounds, and counts once.
    """
    finished = finish(np.array([0.4, 2.2, 9.0]), levels=(0.0, 1.0, 2.0, 3.0), bounds=(1.0, 2.0))
    assert (finished.values.tolist(), finished.clipped) == ([1.0, 2.0, 2.0], 2)


def test_levels_near_the_largest_numbers_do_not_overflow() -> None:
    large = np.finfo(np.float64).max
    finished = finish(np.array([0.9 * large, -large]), levels=(-large, large))
    assert finished.values.tolist() == [large, -large]


def test_finishing_with_levels_does_not_write_to_its_input() -> None:
    values = np.array([0.2, 9.0])
    finish(values, levels=(1.0, 2.0))
    assert values.tolist() == [0.2, 9.0]


def test_not_a_number_is_refused_before_it_becomes_a_level() -> None:
    with pytest.raises(EquationError, match="1 of 2 predicted values are not finite numbers"):
        finish(np.array([np.nan, 1.0]), levels=(1.0, 2.0))


@pytest.mark.parametrize("levels", [(1, 2, 3), [1.0, 2, 3], range(1, 4), np.array([1, 2, 3])])
def test_levels_may_come_in_any_ordered_form(levels: Any) -> None:
    assert Linear("a", levels=levels).levels == (1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    "levels",
    [{1, 2}, "123", {1: 2}, 3, (1,), (), (1, 1), (2, 1), (1, "b"), (1, math.inf), (False, True)],
)
def test_bad_levels(levels: Any) -> None:
    with pytest.raises(EquationError, match="are not two or more finite numbers in ascending"):
        Linear("A", levels=levels)


@pytest.mark.parametrize("bounds", [(1.5, None), (None, 2.5), (1.5, 2.5)])
def test_levels_beyond_the_bounds_contradict_them(bounds: Any) -> None:
    with pytest.raises(EquationError) as caught:
        Linear("A", levels=(1, 2, 3), bounds=bounds)
    assert str(caught.value) == (
        f"levels from 1.0 to 3.0 go beyond bounds=({bounds[0]}, {bounds[1]}). Widen the bounds, or "
        "leave them out: levels are bounds too."
    )
    assert Linear("A", levels=(1, 2, 3), bounds=(1, 3)).levels == (1.0, 2.0, 3.0)


class _Double:
    def fit(self, features: Any, target: Any) -> None:
        pass

    def predict(self, features: Any) -> Any:
        return 2.0 * features[:, 0]


@pytest.mark.parametrize(
    "equation",
    [
        Linear("A", decimals=1, levels=(0.0, 2.5, 5.0), bounds=(0.0, None)),
        Stated("2 * A", decimals=1, levels=(0.0, 2.5, 5.0), bounds=(0.0, None)),
        Additive("A", regressor=_Double(), decimals=1, levels=(0.0, 2.5, 5.0), bounds=(0.0, None)),
    ],
)
def test_every_additive_family_finishes_its_predictions(
    equation: Linear | Stated | Additive,
) -> None:
    """f = 2·A. At A = 0 the values 2, 3.26 and 9 become 0, 1.26 and 3: by levels 0, 2.5 (of 1.3,
    which is nearer to it than 1.26 is to 0) and 2.5. At A = 3 they are 6, 7.26 and 9: 5, 5, 5.
    """
    fitted = equation.fit(_numbers(0, 2, 4, 6), {"A": _numbers(0, 1, 2, 3)})
    causes = {"A": _numbers(1, 1, 3)}
    noise: Any = fitted.abduct(_numbers(2, 3.26, 9), causes)
    low = fitted.predict({"A": _numbers(0, 0, 0)}, noise)
    assert (low.values.tolist(), low.clipped) == ([0.0, 2.5, 2.5], 0)
    high = fitted.predict({"A": _numbers(3, 3, 3)}, noise)
    assert (high.values.tolist(), high.clipped) == ([5.0, 5.0, 5.0], 3)
    unchanged = fitted.predict(causes, noise)
    assert (unchanged.values.tolist(), unchanged.clipped) == ([2.5, 2.5, 5.0], 1)


def test_errors_of_formulas_name_the_attribute_too() -> None:
    with (
        pytest.raises(FormulaError, match=r"^Equation for 'Salary': a formula that fails$"),
        naming("Salary"),
    ):
        raise FormulaError("a formula that fails")
