"""Least squares for linear predictors, without a trace of the order of the rows.

The same people in another order are the same population, so they must give the same coefficients
to the last bit. Rows are therefore put into a canonical order first, and every sum over rows is
NumPy's own pairwise sum: BLAS may add in an order that depends on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.domain import Categories, Column, Numbers
from mutandis.errors import EquationError, KindError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["LevelShifts", "LinearPredictor", "Slope", "fit_linear_predictor", "least_squares"]

_EPSILON = float(np.finfo(np.float64).eps)
# A column of which no larger part than this is left, once the others are taken out of it, holds
# nothing of its own.
_COLLINEAR = 1e-10
# The same for what rounding may leave, for each unit of a column's size over its variation.
_ROUNDING = 64 * _EPSILON
# A column that varies by no larger part of its size than this varies by rounding only.
_CONSTANT = 4 * _ROUNDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """The effect of a numeric parent: so much for each unit."""

    parent: str
    slope: float

    def of(self, column: Column) -> NDArray[np.float64]:
        """Give each row's contribution."""
        if not isinstance(column, Numbers):
            raise KindError(
                f"Parent {self.parent!r} held numbers when its equation was fitted, and now holds "
                "names. Read the column the same way in both tables."
            )
        return self.slope * column.values


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelShifts:
    """The effect of a nominal parent: one shift a level, 0 for the first that occurred.

    Levels are looked up by value, not by code: another table may have other levels.
    """

    parent: str
    shifts: Mapping[Any, float]

    def of(self, column: Column) -> NDArray[np.float64]:
        """Give each row's contribution, or say that some rows have a level never seen before."""
        if not isinstance(column, Categories):
            raise KindError(
                f"Parent {self.parent!r} held names when its equation was fitted, and now holds "
                "numbers. Read the column the same way in both tables."
            )
        # one more slot at the end, which the code -1 of a missing value falls into
        table = np.array([*(self.shifts.get(level, np.nan) for level in column.levels), np.nan])
        contribution: NDArray[np.float64] = table[column.codes]
        unseen = int(np.isnan(contribution).sum())
        if unseen:
            raise EquationError(
                f"parent {self.parent!r} has {unseen} rows with a level that did not occur when "
                "the equation was fitted, so its effect is unknown. Fit on a table in which every "
                "level occurs, or intervene with one that does."
            )
        return contribution


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearPredictor:
    """An intercept plus one term a parent, in the order in which the parents were declared.

    Examples
    --------
    >>> predictor = LinearPredictor(intercept=1.0, terms=(Slope(parent="Age", slope=0.5),))
    >>> predictor.at({"Age": Numbers(np.array([20.0, 30.0]))}, rows=2).tolist()
    [11.0, 16.0]
    """

    intercept: float
    terms: tuple[Slope | LevelShifts, ...]

    def at(self, parents: Mapping[str, Column], *, rows: int) -> NDArray[np.float64]:
        """Compute the predictor row by row, term by term.

        There is no matrix product in it, on purpose: its rounding would let the value of a row
        depend on which other rows are computed along with it.
        """
        total = np.full(rows, self.intercept)
        # an overflow shows as a value that is not finite, and whoever uses it says so
        with np.errstate(over="ignore", invalid="ignore"):
            for term in self.terms:
                total += term.of(parents[term.parent])
        return total


def fit_linear_predictor(
    response: NDArray[np.float64], parents: Mapping[str, Column]
) -> LinearPredictor:
    """Fit an intercept and one term a parent by least squares.

    Numeric parents enter linearly, nominal ones as dummies against the first level that occurs.

    Parameters
    ----------
    response
        What the parents are to explain.
    parents
        The columns, in the order in which their terms are to be added up.

    Examples
    --------
    >>> job = Categories(np.array([0, 0, 1, 1], dtype=np.int32), ("clerk", "cook"))
    >>> fitted = fit_linear_predictor(np.array([9.0, 11.0, 14.0, 16.0]), {"Job": job})
    >>> fitted.intercept, dict(fitted.terms[0].shifts)
    (10.0, {'clerk': 0.0, 'cook': 5.0})
    """
    order = np.lexsort([*(_sort_key(column) for column in parents.values()), response])
    parents = {name: column.take(order) for name, column in parents.items()}
    levels = {
        name: np.unique(column.codes).tolist()
        for name, column in parents.items()
        if isinstance(column, Categories)
    }
    design = [
        (name, values)
        for name, column in parents.items()
        for values in _design_columns(column, levels.get(name, []))
    ]
    _check_rows(len(response), coefficients=1 + len(design))
    _check_varying(parents, levels)
    intercept, coefficients = least_squares(response[order], design)
    remaining = iter(coefficients)
    terms = tuple(
        LevelShifts(
            parent=name,
            shifts=MappingProxyType(
                {
                    column.levels[code]: next(remaining) if position else 0.0
                    for position, code in enumerate(levels[name])
                }
            ),
        )
        if isinstance(column, Categories)
        else Slope(parent=name, slope=next(remaining))
        for name, column in parents.items()
    )
    return LinearPredictor(intercept=intercept, terms=terms)


def least_squares(
    response: NDArray[np.float64], design: Sequence[tuple[str, NDArray[np.float64]]]
) -> tuple[float, list[float]]:
    """Solve the least squares problem with an intercept, and refuse columns it cannot tell apart.

    Parameters
    ----------
    response
        The left-hand side; it has more rows than there are columns.
    design
        The columns, each with the name of the parent it belongs to. None of them is constant.

    Returns
    -------
    tuple
        The intercept, and one coefficient a column.

    Notes
    -----
    Columns are centred and scaled, then made orthogonal by modified Gram-Schmidt, the response as
    the last of them, which is as stable as Householder's method (Björck 1967, *BIT* 7, 1-21).
    Going through the columns in their declared order, the first that nothing is left of is the one
    that depends on those before it.

    Examples
    --------
    >>> least_squares(np.array([1.0, 3.0, 5.0]), [("Age", np.array([0.0, 1.0, 2.0]))])
    (1.0, [2.0])
    """
    names = [name for name, _ in design]
    with np.errstate(all="ignore"):  # what overflows, _require_finite finds
        columns = [_Standardised.of(values) for _, values in design]
        target = _Standardised.of(response)
        basis, triangle = _orthogonalise(columns, names)
        slopes = _back_substitute(triangle, _project(target.values, basis))
        coefficients = [
            float(slope) * (target.scale / column.scale)
            for slope, column in zip(slopes, columns, strict=True)
        ]
        means = zip(coefficients, columns, strict=True)
        intercept = target.mean - sum(coefficient * column.mean for coefficient, column in means)
    _require_finite(intercept, *coefficients)
    return intercept, coefficients


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standardised:
    """A column as mean + scale · values, where the largest of the values is about 1."""

    mean: float
    scale: float
    values: NDArray[np.float64]
    length: float
    rounding: float
    """How much of its length may be rounding: large for 1e9 plus a few millimetres."""

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> _Standardised:
        mean = float(np.add.reduce(values) / len(values))
        centred = values - mean
        largest = float(np.abs(centred).max())
        # a power of two, so that dividing by it rounds nothing; then squares cannot overflow
        scale = float(np.ldexp(1.0, np.frexp(largest)[1] - 1))
        centred /= scale
        length = _dot(centred, centred) ** 0.5
        rounding = _ROUNDING * float(np.abs(values).max()) / scale
        _require_finite(length, rounding)
        return cls(mean=mean, scale=scale, values=centred, length=length, rounding=rounding)


def _orthogonalise(
    columns: Sequence[_Standardised], names: Sequence[str]
) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Take out of each column what those before it explain; the triangle says how much that was."""
    basis: list[NDArray[np.float64]] = []
    triangle = np.eye(len(columns))
    tolerance = _COLLINEAR
    for place, column in enumerate(columns):
        rest = column.values.copy()
        triangle[:place, place] = _project(rest, basis)
        tolerance = max(tolerance, column.rounding)
        if _dot(rest, rest) ** 0.5 <= tolerance * column.length:
            raise _collinear(triangle, columns[: place + 1], names)
        basis.append(rest)
    return basis, triangle


def _project(
    rest: NDArray[np.float64], basis: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Take the basis out of a column, in place, and give how often each was in it."""
    shares = np.zeros(len(basis))
    for place, direction in enumerate(basis):
        shares[place] = _dot(direction, rest) / _dot(direction, direction)
        rest -= shares[place] * direction
    return shares


def _dot(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    # a product and NumPy's pairwise sum rather than BLAS: no threads, one order
    return float(np.add.reduce(left * right))


def _back_substitute(
    triangle: NDArray[np.float64], right: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve with an upper triangle that has ones on its diagonal."""
    solution = right.copy()
    for place in reversed(range(len(right))):
        solution[place] -= _dot(triangle[place, place + 1 :], solution[place + 1 :])
    return solution


def _collinear(
    triangle: NDArray[np.float64], columns: Sequence[_Standardised], names: Sequence[str]
) -> EquationError:
    """Say which parents determine the last of the columns."""
    *others, last = columns
    place = len(others)
    shares = _back_substitute(triangle[:place, :place], triangle[:place, place])
    sizes = np.abs(shares) * [column.length for column in others] / last.length
    involved = {names[other] for other in np.flatnonzero(sizes > 1e-6).tolist()} - {names[place]}
    listed = _listed([name for name in dict.fromkeys(names) if name in involved])
    return EquationError(
        f"parent {names[place]!r} is perfectly collinear with {listed}: it says nothing that is "
        "not said already, so their effects cannot be told apart. "
        f"Remove {names[place]!r}, or what it follows from, from the parents."
    )


def _require_finite(*numbers: float) -> None:
    if not np.isfinite(numbers).all():
        raise EquationError(
            "its columns or its coefficients are too large or too small for floating-point "
            "numbers. Give the columns in other units."
        )


def _check_rows(rows: int, *, coefficients: int) -> None:
    if rows < coefficients:
        raise EquationError(
            f"{coefficients} coefficients cannot be fitted to {rows} rows. "
            "Use more rows, or fewer parents."
        )


def _check_varying(parents: Mapping[str, Column], levels: Mapping[str, Sequence[int]]) -> None:
    constant = [
        name
        for name, column in parents.items()
        if (
            len(levels[name]) < 2 if isinstance(column, Categories) else _is_constant(column.values)
        )
    ]
    if constant:
        raise EquationError(
            f"{_listed(constant)} does not vary from row to row, so no effect of it can be "
            f"estimated. Remove {_listed(constant)} from the parents, or fit on a table in which "
            "it varies."
        )


def _is_constant(values: NDArray[np.float64]) -> bool:
    low, high = values.min(), values.max()
    with np.errstate(over="ignore"):
        return bool(high - low <= _CONSTANT * max(abs(low), abs(high)))


def _sort_key(column: Column) -> NDArray[Any]:
    return column.codes if isinstance(column, Categories) else column.values


def _design_columns(column: Column, codes: Sequence[int]) -> list[NDArray[np.float64]]:
    if isinstance(column, Categories):
        return [(column.codes == code).astype(np.float64) for code in codes[1:]]
    return [column.values]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names))
