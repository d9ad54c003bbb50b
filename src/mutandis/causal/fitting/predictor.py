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
    from collections.abc import Iterator, Mapping, Sequence

    from mutandis.data.columns import Columns, Floats


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

    def at(self, parents: Columns) -> Floats:
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
        categories = require_categories(self.parent, column)
        for level in tuple(self.shifts)[1:]:
            yield (categories.codes == categories.code_of(level)).astype(np.float64)

    def of(self, column: Column) -> Floats:
        """Give each row's contribution; refuse levels that did not occur in the fit."""
        categories = require_categories(self.parent, column)
        # one more slot at the end, which the code -1 of a missing value falls into
        shifts = [*(self.shifts.get(level, np.nan) for level in categories.levels), np.nan]
        contribution: Floats = np.array(shifts)[categories.codes]
        unseen = int(np.isnan(contribution).sum())
        if unseen:
            raise EquationError(
                f"parent {self.parent!r} has {unseen} rows with a level that did not occur when "
                "the equation was fitted, so its effect is unknown. Fit on a table in which every "
                "level occurs, or intervene with one that does."
            )
        return contribution

    def at(self, parents: Columns) -> Floats:
        return self.of(parents[self.parent])


SingleTerm = Slope | LevelShifts


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """What two parents do together: a coefficient per pair of levels, times their numbers.

    A nominal parent has its levels, and the number 1; a numeric parent has its numbers, and the one
    level None. A pair without a coefficient (None) occurred only where the product of the numbers
    was 0, a pair that is not listed did not occur: what they do together there is unknown.
    """

    parents: Pair
    nominal: tuple[bool, bool]
    effects: Mapping[tuple[Any, Any], float | None]

    def at(self, parents: Columns) -> Floats:
        (levels, codes, numbers), (other_levels, other_codes, other_numbers) = (
            self._side(parents[name], name, nominal=nominal)
            for name, nominal in zip(self.parents, self.nominal, strict=True)
        )
        rows, columns = _codes_by_level(levels), _codes_by_level(other_levels)
        # one more row and column at the end, which the code -1 of a missing value falls into
        table = np.full((len(rows) + 1, len(columns) + 1), np.nan)
        for (one, other), effect in self.effects.items():
            if effect is not None and one in rows and other in columns:
                table[rows[one], columns[other]] = effect
        effects, product = table[codes, other_codes], numbers * other_numbers
        unknown = np.isnan(effects)
        self._refuse(int(np.count_nonzero(unknown & (product != 0.0))))
        contribution: Floats = np.where(unknown, 0.0, effects) * product
        return contribution

    def _side(self, column: Column, name: str, *, nominal: bool) -> tuple[Any, Any, Any]:
        """Give a parent's levels, its codes into them, and its numbers."""
        if nominal:
            categories = require_categories(name, column)
            return categories.levels, categories.codes, 1.0
        return (None,), 0, _numbers(name, column)

    def _refuse(self, unseen: int) -> None:
        if unseen:
            first, second = self.parents
            raise EquationError(
                f"parents {first!r} and {second!r} have {unseen} rows with a combination of values "
                "that did not occur when the equation was fitted, so what they do together is "
                "unknown. Fit on a table in which every combination occurs, or leave the "
                "interactions out."
            )


Term = Slope | LevelShifts | Interaction


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearPredictor:
    """An intercept plus one term per parent, in the order in which the parents were declared.

    Terms of two parents together come after those of all single ones.
    """

    intercept: float
    terms: tuple[Term, ...]

    def at(self, parents: Columns, *, rows: int) -> Floats:
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


def require_categories(parent: str, column: Column) -> Categories:
    """Give the codes and levels of a parent that held names when its equation was fitted."""
    if not isinstance(column, Categories):
        raise KindError(
            f"Parent {parent!r} held names when its equation was fitted, and now holds "
            "numbers. Read the column the same way in both tables."
        )
    return column


def _codes_by_level(levels: Sequence[Any]) -> dict[Any, int]:
    return {level: code for code, level in enumerate(levels)}


def fit_linear_predictor(
    response: Floats, parents: Columns, *, interactions: bool = False
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
    crossed = [_cross(pair, parents) for pair in pairs]
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
    return [column.levels[code] for code in np.flatnonzero(column.counts())]


def require_varying(parents: Columns) -> None:
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
class _Crossed:
    """Two parents crossed: the columns of their products, one for each effect that is fitted."""

    parents: Pair
    nominal: tuple[bool, bool]
    effects: Mapping[tuple[Any, Any], float | None]
    fitted: Sequence[tuple[Any, Any]] = ()
    columns: Sequence[Floats] = ()

    def term(self, coefficients: Iterator[float]) -> Interaction:
        effects = {**self.effects, **{pair: next(coefficients) for pair in self.fitted}}
        return Interaction(
            parents=self.parents, nominal=self.nominal, effects=MappingProxyType(effects)
        )


def _cross(pair: Pair, parents: Columns) -> _Crossed:
    first, second = (parents[name] for name in pair)
    if isinstance(first, Categories):
        if isinstance(second, Categories):
            return _cross_nominal(pair, first, second)
        return _cross_mixed(pair, first, second.values, nominal=(True, False))
    if isinstance(second, Categories):
        return _cross_mixed(pair, second, first.values, nominal=(False, True))
    return _cross_numeric(pair, first.values, second.values)


def _cross_numeric(pair: Pair, first: Floats, second: Floats) -> _Crossed:
    only = (None, None)
    with np.errstate(all="ignore"):  # what overflows, least_squares finds
        product = first * second
        if not product.any():
            return _Crossed(parents=pair, nominal=(False, False), effects={only: None})
        if np.isfinite(product).all() and is_constant(product):
            raise EquationError(
                f"the product of {listed([pair])} is the same in every row, so nothing tells what "
                "they do together. Leave the interactions out, or remove one of these parents."
            )
    return _Crossed(
        parents=pair, nominal=(False, False), effects={}, fitted=[only], columns=[product]
    )


def _cross_mixed(
    pair: Pair, categories: Categories, values: Floats, *, nominal: tuple[bool, bool]
) -> _Crossed:
    def pair_of(code: int) -> tuple[Any, Any]:
        level = categories.levels[code]
        return (level, None) if nominal[0] else (None, level)

    occurring = np.flatnonzero(categories.counts()).tolist()
    # a level that occurs only with zeros has no slope, and is not the base of others
    sloped = np.flatnonzero(categories.take(np.flatnonzero(values)).counts()).tolist()
    effects: dict[tuple[Any, Any], float | None] = dict.fromkeys(map(pair_of, occurring))
    effects.update(dict.fromkeys(map(pair_of, sloped[:1]), 0.0))
    fitted = sloped[1:]
    return _Crossed(
        parents=pair,
        nominal=nominal,
        effects=effects,
        fitted=[pair_of(code) for code in fitted],
        columns=[np.where(categories.codes == code, values, 0.0) for code in fitted],
    )


def _cross_nominal(pair: Pair, first: Categories, second: Categories) -> _Crossed:
    combined = first.codes.astype(np.int64) * len(second.levels) + second.codes
    occurring: list[Cell] = [
        divmod(number, len(second.levels)) for number in np.unique(combined).tolist()
    ]
    lowest = tuple(map(min, zip(*occurring, strict=True)))
    # combinations with a first level in them come first
    by_base = sorted(occurring, key=lambda cell: cell[0] != lowest[0] and cell[1] != lowest[1])
    reached = _spanning(by_base)
    fitted = [cell for cell in occurring if cell not in reached]

    def pair_of(cell: Cell) -> tuple[Any, Any]:
        return first.levels[cell[0]], second.levels[cell[1]]

    return _Crossed(
        parents=pair,
        nominal=(True, True),
        effects=dict.fromkeys(map(pair_of, occurring), 0.0),
        fitted=[pair_of(cell) for cell in fitted],
        columns=[
            ((first.codes == one) & (second.codes == other)).astype(np.float64)
            for one, other in fitted
        ],
    )


def _spanning(cells: Sequence[Cell]) -> set[Cell]:
    """Find combinations that the shifts of single levels can reach, whatever values they have.

    Levels are the nodes of a graph and combinations its edges: shifts of the nodes can be chosen
    to meet any values along a forest, and not along a cycle (Kruskal 1956, the earlier cells
    first).
    """
    from networkx.utils import UnionFind

    joined: Any = UnionFind()
    forest = set()
    for cell in cells:
        one, other = (0, cell[0]), (1, cell[1])
        if joined[one] != joined[other]:
            joined.union(one, other)
            forest.add(cell)
    return forest
