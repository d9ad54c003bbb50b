"""Linear predictors against exact arithmetic and statsmodels: fits, interactions, contributions."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import EquationError
from mutandis.numeric.least_squares import least_squares
from mutandis.scm import Linear
from mutandis.scm.predictor import LinearPredictor, Term, fit_linear_predictor
from tests.scm.columns import names, numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.scm.additive import FittedLinear


def _exact(response: list[Fraction], design: list[list[Fraction]]) -> list[Fraction]:
    """Solve the normal equations in rational numbers, by elimination."""
    columns = [[Fraction(1)] * len(response), *design]

    def dot(left: list[Fraction], right: list[Fraction]) -> Fraction:
        return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))

    system = [[dot(left, right) for right in [*columns, response]] for left in columns]
    for pivot, row in enumerate(system):
        for other in system[pivot + 1 :]:
            factor = other[pivot] / row[pivot]
            for place in range(pivot, len(row)):
                other[place] -= factor * row[place]
    solution = [Fraction(0)] * len(columns)
    for place in reversed(range(len(columns))):
        known = dot(system[place][place + 1 : -1], solution[place + 1 :])
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


_NEAR = np.random.default_rng(1).normal(size=(2, 200))
_FAR = np.random.default_rng(4).integers(0, 100, (2, 60)).astype(np.float64)


@pytest.mark.parametrize(
    ("design", "response", "expected", "precision"),
    [
        # nearly collinear; large and varying little; squares that overflow or vanish; far from 0
        ([_NEAR[0], _NEAR[0] + 1e-6 * _NEAR[1]], 5 * _NEAR[0] + 3e-6 * _NEAR[1], [2, 3], 1e-7),
        ([1.7e9 + np.arange(4.0)], 2 * np.arange(4.0), [2.0], 1e-15),
        ([1e-160 * np.arange(3.0)], 1 + 2 * np.arange(3.0), [2e160], 1e-12),
        ([1e160 * np.arange(3.0)], 1 + 2 * np.arange(3.0), [2e-160], 1e-12),
        ([1e9 + _FAR[0], 1e9 + _FAR[1]], 2 * _FAR[0] - 3 * _FAR[1], [2, -3], 1e-3),
        ([1e12 + _FAR[0], 1e12 + _FAR[1]], 2 * _FAR[0] - 3 * _FAR[1], [2, -3], 1e-3),
    ],
)
def test_columns_that_are_hard_to_tell_apart(
    design: list[Any], response: Any, expected: list[float], precision: float
) -> None:
    _, coefficients = least_squares(response, [(str(n), each) for n, each in enumerate(design)])
    assert coefficients == pytest.approx(expected, rel=precision)


def test_numbers_beyond_float64_are_refused() -> None:
    with pytest.raises(EquationError, match="coefficients are too large or too small"):
        least_squares(1e200 * np.array([1.0, 3.0, 5.0]), [("Age", 1e-200 * np.arange(3.0))])
    with pytest.raises(EquationError, match="Give the columns in other units"):
        fit_linear_predictor(np.arange(3.0), {"Age": numbers(1e308, 1.2e308, 1.5e308)})
    with pytest.raises(EquationError, match="too large or too small for floating-point numbers"):
        _fit([1, 2, 3, 5], A=numbers(1e200, 2e200, 5e200, 7e200), B=numbers(1e200, 1, 2, 3e200))


def test_the_first_level_that_occurs_is_the_base() -> None:
    job = names([3, 1, 3, 1], ("none", "b", "no one", "d"))
    fitted = fit_linear_predictor(np.array([7.0, 4.0, 9.0, 6.0]), {"Job": job})
    assert fitted.intercept == 5.0
    assert fitted.terms == (Term.shifts("Job", {"b": 0.0, "d": 3.0}),)
    alone = fit_linear_predictor(np.array([1.0, 2.0, 6.0]), {})
    assert alone == LinearPredictor(intercept=3.0, terms=())
    assert alone.at({}, rows=2).tolist() == [3.0, 3.0]


def test_an_exactly_determined_fit_is_allowed_and_one_row_less_is_not() -> None:
    age = numbers(1, 2)
    assert fit_linear_predictor(np.array([3.0, 5.0]), {"Age": age}).intercept == 1.0
    with pytest.raises(EquationError, match="3 coefficients cannot be fitted to 2 rows"):
        fit_linear_predictor(np.array([3.0, 5.0]), {"Age": age, "Job": names([0, 1], "ab")})
    with pytest.raises(EquationError, match="7 coefficients cannot be fitted to 4 rows"):
        _fit([1, 2, 3, 4], A=numbers(2, 3, 3, 5), B=names([0, 0, 1, 1], "fm"), C=_FOUR_NAMES)


@pytest.mark.parametrize(
    "constant",
    [
        numbers(0.1, 0.1, 0.1, 0.1),
        numbers(0.3, 0.1 + 0.2, 0.3, 0.3),  # constant up to rounding
        names([1, 1, 1, 1], "ab"),
    ],
)
def test_a_constant_parent_is_named(constant: Column) -> None:
    parents = {"Age": numbers(1, 2, 3, 5), "Planet": constant}
    with pytest.raises(EquationError, match="'Planet' does not vary from row to row, so no effect"):
        fit_linear_predictor(np.arange(4.0), parents)


_FOUR_NAMES = names([0, 1, 0, 1], "xy")


def _collinear(offset: float) -> dict[str, Column]:
    base, age, height, weight = np.random.default_rng(0).normal(size=(4, 50))
    bonus = 0.1 * (offset + base) - 3.0 * height + 7.0
    values = {"Salary": offset + base, "Age": age, "Height": height, "Bonus": bonus, "W": weight}
    return {name: Numbers(column) for name, column in values.items()}


def _product() -> dict[str, Column]:
    a, b, c = np.random.default_rng(3).normal(size=(3, 50))
    return {"A": Numbers(a), "B": Numbers(b), "C": Numbers(2 * a * b - c), "D": Numbers(c)}


_TOWN = {"Town": names([0, 1, 2, 0, 1], "abc"), "Region": names([0, 0, 1, 0, 0], "xy")}
_BONUS = (
    "parent 'Bonus' is perfectly collinear with 'Salary' and 'Height': it says nothing that is not "
    "said already, so their effects cannot be told apart. Remove 'Bonus', or what it follows from, "
    "from the parents."
)


@pytest.mark.parametrize(
    ("parents", "interactions", "message"),
    [
        (_collinear(0.0), False, _BONUS),
        (_collinear(1e8), False, _BONUS),
        (_TOWN, False, "parent 'Region' is perfectly collinear with 'Town':"),
        (_TOWN, True, "parent 'Region' is perfectly collinear with 'Town':"),
        (
            _product(),
            True,
            "interaction 'A' × 'B' is perfectly collinear with 'C' and 'D': it says nothing that",
        ),
        # the group says who is a woman of one race; group × anything says it again
        (
            {
                "Sex": names([0, 0, 1, 1] * 6, "fm"),
                "Race": names([0, 1, 0, 1] * 6, "xy"),
                "Group": names([0, 0, 0, 1] * 6, "no"),
            },
            True,
            "interaction 'Sex' × 'Race' is perfectly collinear with 'Group':",
        ),
        # a name with one number has no slope of its own
        (
            {"Job": names([0, 0, 0, 1, 1], "ab"), "Age": numbers(1, 2, 3, 7, 7)},
            True,
            "interaction 'Job' × 'Age' is perfectly collinear with 'Job':",
        ),
        (
            {"A": numbers(1, 2, 4, 8), "B": numbers(8, 4, 2, 1)},
            True,
            "the product of 'A' × 'B' is the same in every row, so nothing tells what they do",
        ),
    ],
)
def test_effects_that_cannot_be_told_apart(
    parents: dict[str, Column], interactions: bool, message: str
) -> None:
    response = np.random.default_rng(9).normal(size=len(next(iter(parents.values()))))
    with pytest.raises(EquationError, match=re.escape(message)):
        fit_linear_predictor(response, parents, interactions=interactions)


def test_terms_are_added_in_declared_order() -> None:
    """0.3 + 0.1 + 0.2 differs from 0.3 + 0.2 + 0.1 in the last bit, and both are what is asked."""
    columns = {name: numbers(1) for name in "ab"}
    a, b = Term.slope("a", 0.1), Term.slope("b", 0.2)
    forward = LinearPredictor(intercept=0.3, terms=(a, b)).at(columns, rows=1)
    backward = LinearPredictor(intercept=0.3, terms=(b, a)).at(columns, rows=1)
    assert (forward.tolist(), backward.tolist()) == ([0.3 + 0.1 + 0.2], [0.3 + 0.2 + 0.1])
    assert forward.tolist() != backward.tolist()


def test_levels_are_looked_up_by_value_in_another_table() -> None:
    shifts = Term.shifts("Job", {"a": 0.0, "b": 2.0, "c": 5.0})
    assert shifts.at({"Job": names([0, 1, 1], "ca")}).tolist() == [5.0, 0.0, 0.0]
    # a level that no row has does no harm
    assert shifts.at({"Job": names([1, 1], ("new", "b"))}).tolist() == [2.0, 2.0]
    fitted = _fit([1, 2, 3, 9], Sex=names([0, 0, 1, 1], "fm"), Race=names([0, 1, 0, 1], "xy"))
    other = {"Sex": names([2, 1], ["?", "m", "f"]), "Race": names([0, 0], ["y", "-"])}
    assert fitted.explained(other, rows=2) == pytest.approx([2.0, 9.0])


# --- interactions ---------------------------------------------------------------------------------


def _fit(response: Any, **parents: Column) -> FittedLinear:
    child = Numbers(np.asarray(response, dtype=np.float64))
    return Linear(*parents, interactions=True).fit(child, parents)


def test_all_products_against_statsmodels() -> None:
    statsmodels = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(1)
    rows = 600
    job, town = rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    age, score = rng.normal(40, 10, rows), rng.normal(5, 2, rows)
    response = 3 + 2 * age * (job == 1) - score * age / 7 + 30 * (job == 2) * town
    response = response + rng.normal(0, 2, rows)
    single = [job == 1, job == 2, age, town == 1, score]
    owner = ["Job", "Job", "Age", "Town", "Score"]
    # pairs of parents in declared order, and within each pair one column after the other
    products = [
        single[left] * single[right]
        for first, second in itertools.combinations(["Job", "Age", "Town", "Score"], 2)
        for left, right in itertools.product(range(5), range(5))
        if (owner[left], owner[right]) == (first, second)
    ]
    design = np.column_stack([*single, *products]).astype(float)
    oracle = statsmodels.OLS(response, statsmodels.add_constant(design)).fit()
    parents: dict[str, Column] = {
        "Job": names(job, "abc"),
        "Age": Numbers(age),
        "Town": names(town, "xy"),
        "Score": Numbers(score),
    }
    fitted = fit_linear_predictor(response, parents, interactions=True)
    found: list[Any] = [fitted.intercept]
    for term in fitted.terms:
        # everything with a first level in it is what the others are measured against
        found += (
            [value for pair, value in term.effects.items() if not {"a", "x"} & set(pair)]
            if len(term.parents) > 1
            else term.coefficients.values()
        )
    assert found == pytest.approx(oracle.params.tolist(), rel=1e-8)
    assert fitted.at(parents, rows=rows) == pytest.approx(oracle.fittedvalues, rel=1e-10)


@pytest.mark.parametrize(
    ("response", "parents", "effects", "moved"),
    [
        # X = 1 + 2·A + 3·B + 4·A·B
        (
            [1, 4, 3, 10, 38],
            {"A": numbers(0, 0, 1, 1, 2), "B": numbers(0, 1, 0, 1, 3)},
            {(None, None): 4.0},
            {},
        ),
        # a number before a name
        (
            [2, 4, 5, 15],
            {"Years": numbers(1, 2, 1, 3), "Job": names([0, 0, 1, 1], "ab")},
            {(None, "a"): 0.0, (None, "b"): 3.0},
            {},
        ),
        # a combination that never occurs
        (
            [1, 2, 3, 4, 9, 6],
            {"Sex": names([0, 0, 0, 1, 1, 1], "fm"), "Race": names([0, 1, 2, 0, 1, 0], "xyz")},
            {("f", "x"): 0, ("f", "y"): 0, ("f", "z"): 0, ("m", "x"): 0, ("m", "y"): 3.0},
            {"Sex": names([1] * 6, "fm")},
        ),
        # nobody without a job has years in it: slopes 2 for clerks, 3 for cooks, unknown for none
        (
            [10, 10, 22, 30, 36, 42],
            {"Job": names([0, 0, 1, 1, 2, 2], "-lo"), "Years": numbers(0, 0, 1, 5, 2, 4)},
            {("-", None): None, ("l", None): 0.0, ("o", None): 1.0},
            {"Job": names([0] * 6, "-lo")},
        ),
        # indicators that never meet
        (
            [1, 2, 5, 5],
            {"A": numbers(0, 0, 1, 1), "B": numbers(0, 1, 0, 0)},
            {(None, None): None},
            {"A": numbers(1, 1, 1, 1)},
        ),
    ],
)
def test_products_by_hand(
    response: list[float], parents: dict[str, Column], effects: Any, moved: dict[str, Column]
) -> None:
    fitted = _fit(response, **parents)
    *_, product = fitted.predictor.terms
    assert product.effects.keys() == effects.keys()
    for pair, effect in effects.items():
        assert product.effects[pair] == (effect if effect is None else pytest.approx(effect))
    rows = len(response)
    if moved:
        first, second = parents
        with pytest.raises(
            EquationError, match=f"parents '{first}' and '{second}' have . rows with a combination"
        ):
            fitted.explained({**parents, **moved}, rows=rows)


@given(
    cells=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=2),
    seed=st.integers(0, 1000),
)
def test_two_nominal_parents_predict_the_mean_of_each_combination(
    cells: set[tuple[int, int]], seed: int
) -> None:
    """Whichever combinations occur, as long as the parents can be told apart at all."""
    ordered = sorted(cells)
    assume(len({one for one, _ in cells}) > 1 and len({other for _, other in cells}) > 1)
    assume(_connected(cells))
    rng = np.random.default_rng(seed)
    picked = np.repeat(ordered, rng.integers(1, 4, len(ordered)), axis=0)
    response = rng.normal(size=len(picked))
    first, second = names(picked[:, 0], "abcd"), names(picked[:, 1], "xyz")
    fitted = _fit(response, A=first, B=second)
    means = pd.Series(response).groupby([picked[:, 0], picked[:, 1]]).transform("mean")
    explained = fitted.explained({"A": first, "B": second}, rows=len(picked))
    assert explained == pytest.approx(means.to_numpy(), abs=1e-12)
    # only combinations of levels that did occur: others are refused for the level itself
    known = [set(picked[:, column].tolist()) for column in (0, 1)]
    others = [cell for cell in itertools.product(*known) if cell not in cells]
    if others:
        columns = {
            "A": names([cell[0] for cell in others], "abcd"),
            "B": names([cell[1] for cell in others], "xyz"),
        }
        with pytest.raises(EquationError, match=f"'A' and 'B' have {len(others)} rows with a comb"):
            fitted.explained(columns, rows=len(others))


def _connected(cells: set[tuple[int, int]]) -> bool:
    """Return whether all cells are linked by changing one coordinate at a time."""
    waiting, reached = [next(iter(cells))], set[tuple[int, int]]()
    while waiting:
        here = waiting.pop()
        reached.add(here)
        near = {cell for cell in cells if cell[0] == here[0] or cell[1] == here[1]}
        waiting += sorted(near - reached)
    return reached == cells


# --- contributions --------------------------------------------------------------------------------

_TWO = {"A": numbers(0, 1, 2, 5), "B": numbers(4, 0, 2, 8)}
_FOUR = {"A": numbers(0, 1, 2, 3)}
_SIX = {"A": numbers(0, 0, 1, 1, 2, 3), "B": numbers(0, 1, 0, 1, 2, 1)}
_JOB = names([0, 0, 1, 1], ("clerk", "cook"))
_COOK, _CLERK = _JOB.take(np.array([3])), _JOB.take(np.array([0]))


@pytest.mark.parametrize(
    ("equation", "causes", "child", "before", "after", "found"),
    [
        # Y = 2 + 3·A - 0.5·B; causes that stay are left out
        (Linear("A", "B"), _TWO, (0, 5, 7, 13), (1, 4), (3, 10), {("A",): 6.0, ("B",): -3.0}),
        (Linear("A", "B"), _TWO, (0, 5, 7, 13), (1, 4), (1, 6), {("B",): -1.0}),
        (Linear("Job"), {"Job": _JOB}, (9, 11, 14, 16), (_COOK,), (_CLERK,), {("Job",): -5.0}),
        # log Y = log 10 + log 2 · A: each unit of A doubles
        (Linear("A", link="log"), _FOUR, (10, 20, 40, 80), (1,), (3,), {("A",): 4.0}),
        # Y = A + B + 2·A·B: 2·3·2 - 2·1·1 = 10 through both
        (
            Linear("A", "B", interactions=True),
            _SIX,
            (0, 1, 1, 4, 12, 10),
            (1, 1),
            (3, 2),
            {("A",): 2.0, ("B",): 1.0, ("A", "B"): 10.0},
        ),
    ],
)
def test_contributions_by_hand(
    equation: Linear,
    causes: dict[str, Column],
    child: tuple[float, ...],
    before: Any,
    after: Any,
    found: dict[tuple[str, ...], float],
) -> None:
    one, other = (
        {
            name: value if isinstance(value, Categories) else numbers(value)
            for name, value in zip(causes, each, strict=True)
        }
        for each in (before, after)
    )
    parts = equation.fit(numbers(*child), causes).decompose(one, other)
    assert parts.how == ("factor" if equation.link == "log" else "sum")
    assert parts.contributions == pytest.approx(found)
    combine = np.prod if parts.how == "factor" else np.sum
    assert parts.total == pytest.approx(combine(list(found.values())))
