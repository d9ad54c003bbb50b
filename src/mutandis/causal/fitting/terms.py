"""The terms of a linear predictor: what each parent adds, and what two of them add together.

Terms are worked out row by row and looked up by value, not by code: another table may have other
levels. There is no matrix product anywhere, on purpose: its rounding would let the value of a row
depend on which other rows are computed along with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import EquationError, KindError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

__all__ = [
    "CellShifts",
    "LevelShifts",
    "LevelSlopes",
    "LinearPredictor",
    "ProductSlope",
    "Slope",
    "Term",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """The effect of a numeric parent: so much for each unit."""

    parent: str
    slope: float

    def of(self, column: Column) -> NDArray[np.float64]:
        """Give each row's contribution."""
        return self.slope * _numbers(self.parent, column)

    def at(self, parents: Mapping[str, Column]) -> NDArray[np.float64]:
        """Give each row's contribution."""
        return self.of(parents[self.parent])


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelShifts:
    """The effect of a nominal parent: one shift a level, 0 for the first that occurred."""

    parent: str
    shifts: Mapping[Any, float]

    def of(self, column: Column) -> NDArray[np.float64]:
        """Give each row's contribution, or say that some rows have a level never seen before."""
        table, codes = _looked_up(self.parent, column, self.shifts.get)
        contribution = table[codes]
        unseen = int(np.isnan(contribution).sum())
        if unseen:
            raise EquationError(
                f"parent {self.parent!r} has {unseen} rows with a level that did not occur when "
                "the equation was fitted, so its effect is unknown. Fit on a table in which every "
                "level occurs, or intervene with one that does."
            )
        return contribution

    def at(self, parents: Mapping[str, Column]) -> NDArray[np.float64]:
        """Give each row's contribution."""
        return self.of(parents[self.parent])


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductSlope:
    """What two numeric parents do together: so much for each unit of their product.

    Without a slope (None) their product was 0 in every row, and no other can be judged.

    Examples
    --------
    >>> term = ProductSlope(parents=("Age", "Tenure"), slope=0.5)
    >>> columns = {"Age": Numbers(np.array([30.0])), "Tenure": Numbers(np.array([4.0]))}
    >>> term.at(columns).tolist()
    [60.0]
    """

    parents: tuple[str, str]
    slope: float | None

    def at(self, parents: Mapping[str, Column]) -> NDArray[np.float64]:
        """Give each row's contribution."""
        left, right = (_numbers(name, parents[name]) for name in self.parents)
        product = left * right
        if self.slope is None:
            _refuse_combinations(self.parents, product != 0.0)
            return np.zeros(len(product))
        return self.slope * product


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSlopes:
    """What a nominal and a numeric parent do together: one slope a level, 0 for the first.

    The slopes come on top of the numeric parent's own. A level without a slope (None) occurred only
    where the numeric parent was 0.

    Parameters
    ----------
    parents
        Both parents, in declared order.
    nominal
        Which of them has the levels.
    slopes
        The slope of each level that occurred.

    Examples
    --------
    >>> slopes = {"clerk": 0.0, "cook": 2.0}
    >>> term = LevelSlopes(parents=("Job", "Age"), nominal="Job", slopes=slopes)
    >>> jobs = Categories(np.array([0, 1], dtype=np.int32), ("clerk", "cook"))
    >>> term.at({"Job": jobs, "Age": Numbers(np.array([30.0, 40.0]))}).tolist()
    [0.0, 80.0]
    """

    parents: tuple[str, str]
    nominal: str
    slopes: Mapping[Any, float | None]

    @property
    def numeric(self) -> str:
        """The parent that holds numbers."""
        first, second = self.parents
        return second if first == self.nominal else first

    def at(self, parents: Mapping[str, Column]) -> NDArray[np.float64]:
        """Give each row's contribution."""
        table, codes = _looked_up(self.nominal, parents[self.nominal], self.slopes.get)
        slopes, values = table[codes], _numbers(self.numeric, parents[self.numeric])
        unknown = np.isnan(slopes)
        _refuse_combinations(self.parents, unknown & (values != 0.0))
        return np.where(unknown, 0.0, slopes) * values


@dataclass(frozen=True, slots=True, kw_only=True)
class CellShifts:
    """What two nominal parents do together: one shift for each pair of levels that occurred.

    Examples
    --------
    >>> shifts = {("f", "x"): 0.0, ("f", "y"): 0.0, ("m", "x"): 0.0, ("m", "y"): 7.0}
    >>> term = CellShifts(parents=("Gender", "Race"), shifts=shifts)
    >>> gender = Categories(np.array([0, 1], dtype=np.int32), ("f", "m"))
    >>> race = Categories(np.array([1, 1], dtype=np.int32), ("x", "y"))
    >>> term.at({"Gender": gender, "Race": race}).tolist()
    [0.0, 7.0]
    """

    parents: tuple[str, str]
    shifts: Mapping[tuple[Any, Any], float]

    def at(self, parents: Mapping[str, Column]) -> NDArray[np.float64]:
        """Give each row's contribution."""
        first, second = (_categories(name, parents[name]) for name in self.parents)
        # one more row and column at the end, which the code -1 of a missing value falls into
        table = np.full((len(first.levels) + 1, len(second.levels) + 1), np.nan)
        rows, columns = (
            {level: code for code, level in enumerate(categories.levels)}
            for categories in (first, second)
        )
        for (one, other), shift in self.shifts.items():
            if one in rows and other in columns:
                table[rows[one], columns[other]] = shift
        contribution: NDArray[np.float64] = table[first.codes, second.codes]
        _refuse_combinations(self.parents, np.isnan(contribution))
        return contribution


Term = Slope | LevelShifts | ProductSlope | LevelSlopes | CellShifts


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearPredictor:
    """An intercept plus one term a parent, in the order in which the parents were declared.

    Terms of two parents together come after those of all single ones.

    Examples
    --------
    >>> predictor = LinearPredictor(intercept=1.0, terms=(Slope(parent="Age", slope=0.5),))
    >>> predictor.at({"Age": Numbers(np.array([20.0, 30.0]))}, rows=2).tolist()
    [11.0, 16.0]
    """

    intercept: float
    terms: tuple[Term, ...]

    def at(self, parents: Mapping[str, Column], *, rows: int) -> NDArray[np.float64]:
        """Compute the predictor row by row, term by term."""
        total = np.full(rows, self.intercept)
        # an overflow shows as a value that is not finite, and whoever uses it says so
        with np.errstate(over="ignore", invalid="ignore"):
            for term in self.terms:
                total += term.at(parents)
        return total


def _numbers(parent: str, column: Column) -> NDArray[np.float64]:
    if not isinstance(column, Numbers):
        raise KindError(
            f"Parent {parent!r} held numbers when its equation was fitted, and now holds "
            "names. Read the column the same way in both tables."
        )
    return column.values


def _categories(parent: str, column: Column) -> Categories:
    if not isinstance(column, Categories):
        raise KindError(
            f"Parent {parent!r} held names when its equation was fitted, and now holds "
            "numbers. Read the column the same way in both tables."
        )
    return column


def _looked_up(
    parent: str, column: Column, get: Callable[[Any], float | None]
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Give the number of each level, NaN for one that has none, and the codes into them."""
    categories = _categories(parent, column)
    # one more slot at the end, which the code -1 of a missing value falls into
    numbers = [np.nan if (number := get(level)) is None else number for level in categories.levels]
    return np.array([*numbers, np.nan]), categories.codes


def _refuse_combinations(parents: tuple[str, str], unseen: NDArray[np.bool_]) -> None:
    count = int(np.count_nonzero(unseen))
    if count:
        raise EquationError(
            f"parents {parents[0]!r} and {parents[1]!r} have {count} rows with a combination of "
            "values that did not occur when the equation was fitted, so what they do together is "
            "unknown. Fit on a table in which every combination occurs, or leave the interactions "
            "out."
        )
