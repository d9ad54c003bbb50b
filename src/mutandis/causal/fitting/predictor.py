"""Linear predictors: an intercept, what each parent adds, and what two of them add together.

Terms are worked out row by row and looked up by value, not by code: another table may have other
levels. There is no matrix product anywhere, on purpose: its rounding would let the value of a row
depend on which other rows are computed along with it.

The columns of an interaction are the products of the two parents' own columns. Not all of them can
be fitted. A product that is 0 in every row says nothing, so it is left out, and rows in which it
would not be 0 are refused later. Of two nominal parents, the combinations that their own shifts
already reach are left out too: with every combination in the table these are the ones with a first
level in them; where such a one never occurs, another takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.causal.fitting.least_squares import (
    Label,
    Scaled,
    is_constant,
    listed,
    require_rows,
    solve_centred,
)
from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import EquationError, KindError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "CellShifts",
    "LevelShifts",
    "LevelSlopes",
    "LinearPredictor",
    "ProductSlope",
    "SingleTerm",
    "Slope",
    "Term",
    "fit_linear_predictor",
    "occurring_levels",
    "require_varying",
]


Pair = tuple[str, str]
Cell = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """The effect of a numeric parent, per unit."""

    parent: str
    slope: float

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)

    @property
    def coefficients(self) -> tuple[float, ...]:
        return (self.slope,)

    def with_coefficients(self, coefficients: Iterator[float]) -> Slope:
        """Give the same term, with coefficients taken from an iterator."""
        return Slope(parent=self.parent, slope=next(coefficients))

    def design(self, column: Column) -> Iterator[Floats]:
        """Give the columns that the coefficients multiply."""
        yield _numbers(self.parent, column)

    def of(self, column: Column) -> Floats:
        return self.slope * _numbers(self.parent, column)

    def at(self, parents: Mapping[str, Column]) -> Floats:
        return self.of(parents[self.parent])


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelShifts:
    """The effect of a nominal parent: one shift per level, 0 for the first that occurred."""

    parent: str
    shifts: Mapping[Any, float]

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.parent,)

    @property
    def coefficients(self) -> tuple[float, ...]:
        return tuple(self.shifts.values())[1:]

    def with_coefficients(self, coefficients: Iterator[float]) -> LevelShifts:
        """Give the same term, with coefficients taken from an iterator."""
        first, *others = self.shifts
        shifts = {first: 0.0, **{level: next(coefficients) for level in others}}
        return LevelShifts(parent=self.parent, shifts=MappingProxyType(shifts))

    def design(self, column: Column) -> Iterator[Floats]:
        """Give the columns that the coefficients multiply."""
        categories = _categories(self.parent, column)
        for level in tuple(self.shifts)[1:]:
            yield (categories.codes == categories.code_of(level)).astype(np.float64)

    def of(self, column: Column) -> Floats:
        """Give each row's contribution; refuse levels that did not occur in the fit."""
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

    def at(self, parents: Mapping[str, Column]) -> Floats:
        return self.of(parents[self.parent])


SingleTerm = Slope | LevelShifts


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductSlope:
    """What two numeric parents do together, per unit of their product.

    Without a slope (None) their product was 0 in every row, and no other can be judged.
    """

    parents: tuple[str, str]
    slope: float | None

    def at(self, parents: Mapping[str, Column]) -> Floats:
        left, right = (_numbers(name, parents[name]) for name in self.parents)
        product = left * right
        if self.slope is None:
            _refuse_combinations(self.parents, product != 0.0)
            return np.zeros(len(product))
        return self.slope * product


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSlopes:
    """What a nominal and a numeric parent do together: one slope per level, 0 for the first.

    The slopes come on top of the numeric parent's own. A level without a slope (None) occurred only
    where the numeric parent was 0.
    """

    parents: tuple[str, str]
    nominal: str
    slopes: Mapping[Any, float | None]

    @property
    def numeric(self) -> str:
        """The parent that holds numbers."""
        first, second = self.parents
        return second if first == self.nominal else first

    def at(self, parents: Mapping[str, Column]) -> Floats:
        table, codes = _looked_up(self.nominal, parents[self.nominal], self.slopes.get)
        slopes, values = table[codes], _numbers(self.numeric, parents[self.numeric])
        unknown = np.isnan(slopes)
        _refuse_combinations(self.parents, unknown & (values != 0.0))
        return np.where(unknown, 0.0, slopes) * values


@dataclass(frozen=True, slots=True, kw_only=True)
class CellShifts:
    """What two nominal parents do together: one shift for each pair of levels that occurred."""

    parents: tuple[str, str]
    shifts: Mapping[tuple[Any, Any], float]

    def at(self, parents: Mapping[str, Column]) -> Floats:
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
        contribution: Floats = table[first.codes, second.codes]
        _refuse_combinations(self.parents, np.isnan(contribution))
        return contribution


Term = Slope | LevelShifts | ProductSlope | LevelSlopes | CellShifts


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearPredictor:
    """An intercept plus one term per parent, in the order in which the parents were declared.

    Terms of two parents together come after those of all single ones.
    """

    intercept: float
    terms: tuple[Term, ...]

    def at(self, parents: Mapping[str, Column], *, rows: int) -> Floats:
        """Compute the predictor row by row, term by term."""
        total = np.full(rows, self.intercept)
        # an overflow shows as a value that is not finite, which is refused where it is used
        with np.errstate(over="ignore", invalid="ignore"):
            for term in self.terms:
                total += term.at(parents)
        return total


def _numbers(parent: str, column: Column) -> Floats:
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
) -> tuple[Floats, NDArray[np.int32]]:
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


def fit_linear_predictor(
    response: Floats, parents: Mapping[str, Column], *, interactions: bool = False
) -> LinearPredictor:
    """Fit an intercept and one term per parent by least squares.

    Numeric parents enter linearly, nominal ones as dummies against the first level that occurs;
    with `interactions`, every two parents also through the products of their columns.
    """
    if not len(response):
        require_rows(0, coefficients=1 + len(parents))
    # each parent is looked at once: a worldview reorders a column when it is asked for
    single = [_Declared.of(name, parents[name]) for name in parents]
    design: list[tuple[Label, Scaled]] = [
        (each.term.parent, column) for each in single for column in each.columns
    ]
    require_rows(len(response), coefficients=1 + len(design))
    _refuse_constants([each.term.parent for each in single if each.is_constant])
    pairs = combinations(parents, 2) if interactions else ()
    crossed = [cross(pair, parents) for pair in pairs]
    design += [
        (product.parents, Scaled.centred(values))
        for product in crossed
        for values in product.columns
    ]
    require_rows(len(response), coefficients=1 + len(design))
    intercept, coefficients = solve_centred(response, design)
    remaining = iter(coefficients)
    terms: list[Term] = [each.term.with_coefficients(remaining) for each in single]
    terms += [product.term(remaining) for product in crossed]
    return LinearPredictor(intercept=intercept, terms=tuple(terms))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """What is kept of a parent: its term, and its columns of the design."""

    term: SingleTerm
    columns: tuple[Scaled, ...]
    is_constant: bool

    @classmethod
    def of(cls, name: str, column: Column) -> _Declared:
        term: SingleTerm
        if isinstance(column, Categories):
            shifts = dict.fromkeys(occurring_levels(column), 0.0)
            term = LevelShifts(parent=name, shifts=MappingProxyType(shifts))
        else:
            term = Slope(parent=name, slope=0.0)
        columns = tuple(map(Scaled.centred, term.design(column)))
        return cls(term=term, columns=columns, is_constant=_is_constant(column))


def occurring_levels(column: Categories) -> list[Any]:
    """List the levels that occur, in the column's order."""
    return [column.levels[code] for code in np.flatnonzero(column.counts())]


def require_varying(parents: Mapping[str, Column]) -> None:
    """Refuse parents that are the same in every row: whatever they do, it cannot be seen."""
    _refuse_constants([name for name, column in parents.items() if _is_constant(column)])


def _is_constant(column: Column) -> bool:
    if isinstance(column, Categories):
        return bool(np.count_nonzero(column.counts()) < 2)
    return is_constant(column.values)


def _refuse_constants(constant: Sequence[str]) -> None:
    if constant:
        raise EquationError(
            f"{listed(constant)} does not vary from row to row, so no effect of it can be "
            f"estimated. Remove {listed(constant)} from the parents, or fit on a table in which "
            "it varies."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossed:
    """Two parents crossed: their columns in the design, and how their term is made.

    The term takes one coefficient per column from an iterator.
    """

    parents: Pair
    columns: Sequence[Floats]
    term: Callable[[Iterator[float]], ProductSlope | LevelSlopes | CellShifts]


def cross(pair: Pair, parents: Mapping[str, Column]) -> Crossed:
    """Multiply the columns of two parents."""
    first, second = (parents[name] for name in pair)
    if isinstance(first, Categories):
        if isinstance(second, Categories):
            return _cross_nominal(pair, first, second)
        return _cross_mixed(pair, pair[0], first, second.values)
    if isinstance(second, Categories):
        return _cross_mixed(pair, pair[1], second, first.values)
    return _cross_numeric(pair, first.values, second.values)


def _cross_numeric(pair: Pair, first: Floats, second: Floats) -> Crossed:
    with np.errstate(all="ignore"):  # what overflows, least_squares finds
        product = first * second
        if not product.any():
            return Crossed(
                parents=pair,
                columns=(),
                term=lambda _: ProductSlope(parents=pair, slope=None),
            )
        if np.isfinite(product).all() and is_constant(product):
            raise EquationError(
                f"the product of {listed([pair])} is the same in every row, so nothing tells what "
                "they do together. Leave the interactions out, or remove one of these parents."
            )
    return Crossed(
        parents=pair,
        columns=(product,),
        term=lambda coefficients: ProductSlope(parents=pair, slope=next(coefficients)),
    )


def _cross_mixed(pair: Pair, nominal: str, categories: Categories, values: Floats) -> Crossed:
    codes = categories.codes
    occurring = np.flatnonzero(categories.counts()).tolist()
    # a level that occurs only with zeros has no slope, and is not the base of others
    sloped = np.flatnonzero(categories.take(np.flatnonzero(values)).counts()).tolist()
    fitted = sloped[1:]

    def term(coefficients: Iterator[float]) -> LevelSlopes:
        slopes: dict[int, float | None] = dict.fromkeys(occurring)
        slopes.update(dict.fromkeys(sloped[:1], 0.0))
        slopes.update({code: next(coefficients) for code in fitted})
        named = {categories.levels[code]: slope for code, slope in slopes.items()}
        return LevelSlopes(parents=pair, nominal=nominal, slopes=MappingProxyType(named))

    columns = [np.where(codes == code, values, 0.0) for code in fitted]
    return Crossed(parents=pair, columns=columns, term=term)


def _cross_nominal(pair: Pair, first: Categories, second: Categories) -> Crossed:
    combined = first.codes.astype(np.int64) * len(second.levels) + second.codes
    occurring: list[Cell] = [
        divmod(number, len(second.levels)) for number in np.unique(combined).tolist()
    ]
    lowest = tuple(map(min, zip(*occurring, strict=True)))
    # combinations with a first level in them come first
    by_base = sorted(occurring, key=lambda cell: cell[0] != lowest[0] and cell[1] != lowest[1])
    reached = _spanning(by_base)
    fitted = [cell for cell in occurring if cell not in reached]

    def term(coefficients: Iterator[float]) -> CellShifts:
        shifts = dict.fromkeys(occurring, 0.0)
        shifts.update({cell: next(coefficients) for cell in fitted})
        named = {
            (first.levels[one], second.levels[other]): shift
            for (one, other), shift in shifts.items()
        }
        return CellShifts(parents=pair, shifts=MappingProxyType(named))

    columns = [
        ((first.codes == one) & (second.codes == other)).astype(np.float64) for one, other in fitted
    ]
    return Crossed(parents=pair, columns=columns, term=term)


def _spanning(cells: Sequence[Cell]) -> set[Cell]:
    """Find combinations that the shifts of single levels can reach, whatever values they have.

    Levels are the nodes of a graph and combinations its edges: shifts of the nodes can be chosen
    to meet any values along a forest, and not along a cycle (Kruskal 1956, the earlier cells
    first).
    """
    leader: dict[tuple[int, int], tuple[int, int]] = {}

    def find(node: tuple[int, int]) -> tuple[int, int]:
        while (above := leader.get(node, node)) != node:
            node = above
        return node

    forest = set()
    for cell in cells:
        one, other = find((0, cell[0])), find((1, cell[1]))
        if one != other:
            leader[one] = other
            forest.add(cell)
    return forest
