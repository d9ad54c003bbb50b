"""Least squares against exact arithmetic, NumPy and statsmodels; and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import EquationError
from mutandis.numeric.least_squares import least_squares
from mutandis.scm.predictor import (
    LevelShifts,
    LinearPredictor,
    Slope,
    fit_linear_predictor,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _exact(response: list[Fraction], design: list[list[Fraction]]) -> list[Fraction]:
    """Solve the normal equations in rational numbers, by elimination."""
    columns = [[Fraction(1)] * len(response), *design]
    system = [
        [
            *(
                sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))
                for right in columns
            ),
            sum((a * b for a, b in zip(left, response, strict=True)), Fraction(0)),
        ]
        for left in columns
    ]
    for pivot, row in enumerate(system):
        for other in system[pivot + 1 :]:
            factor = other[pivot] / row[pivot]
            for place in range(pivot, len(row)):
                other[place] -= factor * row[place]
    solution = [Fraction(0)] * len(columns)
    for place in reversed(range(len(columns))):
        known = sum(
            (system[place][i] * solution[i] for i in range(place + 1, len(columns))), Fraction(0)
        )
        solution[place] = (system[place][-1] - known) / system[place][place]
    return solution


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e7])
@pytest.mark.parametrize("seed", range(5))
def test_coefficients_against_exact_arithmetic(seed: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    design: list[NDArray[np.float64]] = [
        rng.normal(offset, 1.0, 40),
        rng.normal(0.0, 1e-6, 40),
        rng.integers(0, 2, 40).astype(np.float64),
    ]
    response = 3.0 + 2.0 * design[0] - 1e6 * design[1] + rng.normal(size=40)
    truth = _exact(
        [Fraction(value) for value in response.tolist()],
        [[Fraction(value) for value in column.tolist()] for column in design],
    )
    intercept, coefficients = least_squares(response, list(zip("abc", design, strict=True)))
    assert coefficients == pytest.approx([float(b) for b in truth[1:]], rel=1e-13)
    # the intercept is what is left when a product of the size of the offset is taken away
    assert intercept == pytest.approx(float(truth[0]), rel=1e-13, abs=1e-14 * offset)


def test_against_numpy_on_columns_of_very_different_size() -> None:
    rng = np.random.default_rng(11)
    design: list[NDArray[np.float64]] = [
        rng.normal(5e4, 2e4, 500),
        rng.normal(0, 1e-3, 500),
        rng.integers(0, 2, 500).astype(np.float64),
    ]
    response = 120.0 + 0.3 * design[0] + 40.0 * design[1] - 1182.0 * design[2]
    response += rng.normal(0, 100, 500)
    intercept, coefficients = least_squares(response, list(zip("abc", design, strict=True)))
    oracle = np.linalg.lstsq(np.column_stack([np.ones(500), *design]), response, rcond=None)[0]
    assert [intercept, *coefficients] == pytest.approx(oracle.tolist(), rel=1e-9)


def test_several_nominal_and_numeric_parents_against_statsmodels() -> None:
    statsmodels = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(5)
    job, town = rng.integers(0, 4, 300), rng.integers(0, 3, 300)
    age = rng.normal(40, 10, 300)
    response = 10 + 2 * age + np.array([0, 5, -3, 8])[job] + np.array([1, 0, 7])[town]
    response = response + rng.normal(0, 3, 300)
    dummies = [job == 1, job == 2, job == 3, age, town == 1, town == 2]
    oracle = statsmodels.OLS(
        response, statsmodels.add_constant(np.column_stack(dummies).astype(float))
    ).fit()
    parents: dict[str, Column] = {
        "Job": Categories(job.astype(np.int32), ("a", "b", "c", "d")),
        "Age": Numbers(age),
        "Town": Categories(town.astype(np.int32), (10, 20, 30)),
    }
    fitted = fit_linear_predictor(response, parents)
    jobs, ages, towns = fitted.terms
    assert isinstance(jobs, LevelShifts)
    assert isinstance(ages, Slope)
    assert isinstance(towns, LevelShifts)
    assert (jobs.shifts["a"], towns.shifts[10]) == (0.0, 0.0)
    found = [fitted.intercept, *(jobs.shifts[level] for level in "bcd"), ages.slope]
    found += [towns.shifts[20], towns.shifts[30]]
    assert found == pytest.approx(oracle.params.tolist(), rel=1e-10)
    assert fitted.at(parents, rows=300) == pytest.approx(oracle.fittedvalues, rel=1e-12)


def test_the_first_level_that_occurs_is_the_base() -> None:
    job = Categories(np.array([3, 1, 3, 1], dtype=np.int32), ("none", "b", "no one", "d"))
    fitted = fit_linear_predictor(np.array([7.0, 4.0, 9.0, 6.0]), {"Job": job})
    assert fitted.intercept == 5.0
    assert isinstance(fitted.terms[0], LevelShifts)
    assert dict(fitted.terms[0].shifts) == {"b": 0.0, "d": 3.0}


def test_without_parents_the_intercept_is_the_mean() -> None:
    fitted = fit_linear_predictor(np.array([1.0, 2.0, 6.0]), {})
    assert fitted == LinearPredictor(intercept=3.0, terms=())
    assert fitted.at({}, rows=2).tolist() == [3.0, 3.0]


def test_an_exactly_determined_fit_is_allowed_and_one_row_less_is_not() -> None:
    age = Numbers(np.array([1.0, 2.0]))
    assert fit_linear_predictor(np.array([3.0, 5.0]), {"Age": age}).intercept == 1.0
    job = Categories(np.array([0, 1], dtype=np.int32), ("a", "b"))
    with pytest.raises(EquationError) as caught:
        fit_linear_predictor(np.array([3.0, 5.0]), {"Age": age, "Job": job})
    assert str(caught.value) == (
        "3 coefficients cannot be fitted to 2 rows. Use more rows, or fewer parents."
    )


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8])
def test_a_collinear_parent_is_named_with_what_it_follows_from(offset: float) -> None:
    rng = np.random.default_rng(0)
    base = offset + rng.normal(size=50)
    age, height = rng.normal(size=50), rng.normal(size=50)
    parents = {
        "Salary": Numbers(base),
        "Age": Numbers(age),
        "Height": Numbers(height),
        "Bonus": Numbers(0.1 * base - 3.0 * height + 7.0),
        "Weight": Numbers(rng.normal(size=50)),
    }
    with pytest.raises(EquationError) as caught:
        fit_linear_predictor(rng.normal(size=50), parents)
    assert str(caught.value) == (
        "parent 'Bonus' is perfectly collinear with 'Salary' and 'Height': it says nothing that is "
        "not said already, so their effects cannot be told apart. "
        "Remove 'Bonus', or what it follows from, from the parents."
    )


def test_a_nominal_parent_that_follows_from_another() -> None:
    town = np.array([0, 1, 2, 0, 1, 2, 0, 1], dtype=np.int32)
    region = np.array([0, 0, 1], dtype=np.int32)[town]
    parents = {"Town": Categories(town, ("a", "b", "c")), "Region": Categories(region, (1, 2))}
    with pytest.raises(EquationError, match="parent 'Region' is perfectly collinear with 'Town':"):
        fit_linear_predictor(np.arange(8.0), parents)


def test_nearly_collinear_parents_are_fitted() -> None:
    rng = np.random.default_rng(1)
    first, difference = rng.normal(size=200), rng.normal(size=200)
    second = first + 1e-6 * difference
    response = 1.0 + 2.0 * first + 3.0 * second
    _, coefficients = least_squares(response, [("First", first), ("Second", second)])
    assert coefficients == pytest.approx([2.0, 3.0], abs=1e-7)


@pytest.mark.parametrize(
    "constant",
    [
        Numbers(np.full(4, 0.1)),
        Numbers(np.array([0.3, 0.1 + 0.2, 0.3, 0.3])),  # constant up to rounding
        Categories(np.full(4, 1, dtype=np.int32), ("a", "b")),
    ],
)
def test_a_constant_parent_is_named(constant: Numbers | Categories) -> None:
    parents = {"Age": Numbers(np.array([1.0, 2.0, 3.0, 5.0])), "Planet": constant}
    with pytest.raises(EquationError) as caught:
        fit_linear_predictor(np.arange(4.0), parents)
    assert str(caught.value) == (
        "'Planet' does not vary from row to row, so no effect of it can be estimated. "
        "Remove 'Planet' from the parents, or fit on a table in which it varies."
    )


def test_large_numbers_that_vary_little_are_not_constant() -> None:
    time = 1.7e9 + np.array([0.0, 1.0, 2.0, 3.0])
    _, coefficients = least_squares(np.array([0.0, 2.0, 4.0, 6.0]), [("Time", time)])
    assert coefficients == [2.0]


@pytest.mark.parametrize("size", [1e-160, 1e160])
def test_squares_neither_overflow_nor_vanish(size: float) -> None:
    intercept, coefficients = least_squares(
        np.array([1.0, 3.0, 5.0]), [("Age", size * np.array([0.0, 1.0, 2.0]))]
    )
    assert intercept == pytest.approx(1.0, rel=1e-12)
    assert coefficients == pytest.approx([2.0 / size], rel=1e-12)


def test_coefficients_beyond_float64_are_refused() -> None:
    with pytest.raises(EquationError, match="coefficients are too large or too small"):
        least_squares(
            1e200 * np.array([1.0, 3.0, 5.0]), [("Age", 1e-200 * np.array([0.0, 1.0, 2.0]))]
        )
    with pytest.raises(EquationError, match="Give the columns in other units"):
        fit_linear_predictor(np.arange(3.0), {"Age": Numbers(1e308 * np.array([1.0, 1.2, 1.5]))})


@pytest.mark.parametrize("offset", [1e9, 1e12])
def test_parents_far_from_zero_are_told_apart(offset: float) -> None:
    rng = np.random.default_rng(4)
    first = offset + rng.integers(0, 100, 60).astype(np.float64)
    second = offset + rng.integers(0, 100, 60).astype(np.float64)
    response = 2.0 * (first - offset) - 3.0 * (second - offset)
    _, coefficients = least_squares(response, [("First", first), ("Second", second)])
    assert coefficients == pytest.approx([2.0, -3.0], rel=1e-3)


def test_terms_are_added_in_declared_order() -> None:
    """0.3 + 0.1 + 0.2 differs from 0.3 + 0.2 + 0.1 in the last bit, and both are what is asked."""
    columns = {name: Numbers(np.array([1.0])) for name in "ab"}
    a, b = Slope(parent="a", slope=0.1), Slope(parent="b", slope=0.2)
    forward = LinearPredictor(intercept=0.3, terms=(a, b)).at(columns, rows=1)
    backward = LinearPredictor(intercept=0.3, terms=(b, a)).at(columns, rows=1)
    assert forward.tolist() == [0.3 + 0.1 + 0.2]
    assert backward.tolist() == [0.3 + 0.2 + 0.1]
    assert forward.tolist() != backward.tolist()


def test_levels_are_looked_up_by_value_in_another_table() -> None:
    shifts = LevelShifts(parent="Job", shifts={"a": 0.0, "b": 2.0, "c": 5.0})
    other = Categories(np.array([0, 1, 1], dtype=np.int32), ("c", "a"))
    assert shifts.at({"Job": other}).tolist() == [5.0, 0.0, 0.0]
    # a level that no row has does no harm
    unused = Categories(np.array([1, 1], dtype=np.int32), ("new", "b"))
    assert shifts.at({"Job": unused}).tolist() == [2.0, 2.0]
