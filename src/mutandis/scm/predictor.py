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

from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import EquationError, KindError
from mutandis.numeric.least_squares import (
    Label,
    Scaled,
    is_constant,
    listed,
    require_few,
    require_rows,
    solve_centred,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mutandis.data.columns import Columns, Floats

    Effects = dict[tuple[Any, Any], float | None]
    Products = dict[tuple[Any, Any], Floats]


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
        return Slope(parent=self.parent, slope=next(coefficients))

    def design(self, column: Column) -> Iterator[Floats]:
        """Give the columns that the coefficients multiply."""
        yield _numbers(self.parent, column)

    def at(self, parents: Columns) -> Floats:
        return self.slope * _numbers(self.parent, parents[self.parent])


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
        first, *others = self.shifts
        shifts = {first: 0.0, **{level: next(coefficients) for level in others}}
        return LevelShifts(parent=self.parent, shifts=MappingProxyType(shifts))

    def design(self, column: Column) -> Iterator[Floats]:
        categories = require_categories(self.parent, column)
        for level in tuple(self.shifts)[1:]:
            yield (categories.codes == categories.code_of(level)).astype(np.float64)

    def at(self, parents: Columns) -> Floats:
        """Give each row's contribution; refuse levels that did not occur in the fit."""
        categories = require_categories(self.parent, parents[self.parent])
        contribution: Floats = categories.look_up(self.shifts, otherwise=np.nan)
        unseen = int(np.isnan(contribution).sum())
        if unseen:
            raise EquationError(
                f"parent {self.parent!r} has {unseen} rows with a level that did not occur when "
                "the equation was fitted, so its effect is unknown. Fit on a table in which every "
                "level occurs, or intervene with one that does."
            )
        return contribution


SingleTerm = Slope | LevelShifts


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """What two parents do together: a coefficient per pair of levels, times their numbers."""

    # A nominal parent has its levels, and the number 1; a numeric parent has its numbers, and the
    # one level None. A pair without a coefficient (None) occurred only where the product of the
    # numbers was 0, a pair that is not listed did not occur: what they do there is unknown.
    parents: Pair
    nominal: tuple[bool, bool]
    effects: Mapping[tuple[Any, Any], float | None]

    def at(self, parents: Columns) -> Floats:
        (levels, codes, numbers), (other_levels, other_codes, other_numbers) = (
            self._side(parents[name], name, nominal=nominal)
            for name, nominal in zip(self.parents, self.nominal, strict=True)
        )
        rows = {level: code for code, level in enumerate(levels)}
        columns = {level: code for code, level in enumerate(other_levels)}
        # one more row and column at the end, which the code -1 of a missing value falls into
        table = np.full((len(rows) + 1, len(columns) + 1), np.nan)
        for (one, other), effect in self.effects.items():
            if effect is not None and one in rows and other in columns:
                table[rows[one], columns[other]] = effect
        effects, product = table[codes, other_codes], numbers * other_numbers
        unknown = np.isnan(effects)
        unseen = int(np.count_nonzero(unknown & (product != 0.0)))
        if unseen:
            first, second = self.parents
            raise EquationError(
                f"parents {first!r} and {second!r} have {unseen} rows with a combination of values "
                "that did not occur when the equation was fitted, so what they do together is "
                "unknown. Fit on a table in which every combination occurs, or leave the "
                "interactions out."
            )
        contribution: Floats = np.where(unknown, 0.0, effects) * product
        return contribution

    def _side(self, column: Column, name: str, *, nominal: bool) -> tuple[Any, Any, Any]:
        """Give a parent's levels, its codes into them, and its numbers."""
        if nominal:
            categories = require_categories(name, column)
            return categories.levels, categories.codes, 1.0
        return (None,), 0, _numbers(name, column)


Term = Slope | LevelShifts | Interaction


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearPredictor:
    """An intercept plus one term per parent as declared, then those of two parents together."""

    intercept: float
    terms: tuple[Term, ...]

    def at(self, parents: Columns, *, rows: int) -> Floats:
        total = np.full(rows, self.intercept)
        # an overflow shows as a value that is not finite, which is refused where it is used
        with np.errstate(over="ignore", invalid="ignore"):
            for term in self.terms:
                total += term.at(parents)
        return total


def _numbers(parent: str, column: Column) -> Floats:
    if not isinstance(column, Numbers):
        raise _other_kind(parent, before="numbers", now="names")
    return column.values


def require_categories(parent: str, column: Column) -> Categories:
    """Give the codes and levels of a parent that held names when its equation was fitted."""
    if not isinstance(column, Categories):
        raise _other_kind(parent, before="names", now="numbers")
    return column


def _other_kind(parent: str, *, before: str, now: str) -> KindError:
    return KindError(
        f"Parent {parent!r} held {before} when its equation was fitted, and now holds {now}. "
        "Read the column the same way in both tables."
    )


def fit_linear_predictor(
    response: Floats, parents: Columns, *, interactions: bool = False
) -> LinearPredictor:
    """Fit an intercept and one term per parent, or also per two of them, by least squares."""
    if not len(response):
        require_rows(0, coefficients=1 + len(parents))
    single: list[SingleTerm] = []
    design: list[tuple[Label, Scaled]] = []
    constant: list[str] = []
    # each parent is looked at once: a worldview reorders a column when it is asked for
    for name, column in parents.items():
        single.append(_single_term(name, column))
        require_few(sum(len(term.coefficients) for term in single))
        design += [(name, Scaled.of(values)) for values in single[-1].design(column)]
        constant += [name] if _is_constant(column) else []
    require_rows(len(response), coefficients=1 + len(design))
    _refuse_constants(constant)
    pairs = combinations(parents, 2) if interactions else ()
    crossed = []
    for pair in pairs:
        crossed.append(_cross(pair, parents))
        require_few(len(design) + sum(len(columns) for _, columns in crossed))
    for product, columns in crossed:
        design += [(product.parents, Scaled.of(values)) for values in columns.values()]
    require_rows(len(response), coefficients=1 + len(design))
    intercept, coefficients = solve_centred(response, design)
    remaining = iter(coefficients)
    terms: list[Term] = [term.with_coefficients(remaining) for term in single]
    for product, columns in crossed:
        effects = {**product.effects, **{pair: next(remaining) for pair in columns}}
        terms.append(replace(product, effects=MappingProxyType(effects)))
    return LinearPredictor(intercept=intercept, terms=tuple(terms))


def _single_term(name: str, column: Column) -> SingleTerm:
    if isinstance(column, Categories):
        shifts = dict.fromkeys(column.occurring(), 0.0)
        return LevelShifts(parent=name, shifts=MappingProxyType(shifts))
    return Slope(parent=name, slope=0.0)


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


def _cross(pair: Pair, parents: Columns) -> tuple[Interaction, Products]:
    """Cross two parents: the effects that are known, and the columns of those to be fitted."""
    first, second = (parents[name] for name in pair)
    nominal = isinstance(first, Categories), isinstance(second, Categories)
    if isinstance(first, Categories):
        if isinstance(second, Categories):
            effects, products = _cross_nominal(first, second)
        else:
            effects, products = _cross_mixed(first, second.values, nominal_first=True)
    elif isinstance(second, Categories):
        effects, products = _cross_mixed(second, first.values, nominal_first=False)
    else:
        effects, products = _cross_numeric(pair, first.values, second.values)
    return Interaction(parents=pair, nominal=nominal, effects=effects), products


def _cross_numeric(pair: Pair, first: Floats, second: Floats) -> tuple[Effects, Products]:
    only = (None, None)
    with np.errstate(all="ignore"):  # what overflows, least_squares finds
        product = first * second
        if not product.any():
            return {only: None}, {}
        if np.isfinite(product).all() and is_constant(product):
            raise EquationError(
                f"the product of {listed([pair])} is the same in every row, so nothing tells what "
                "they do together. Leave the interactions out, or remove one of these parents."
            )
    return {}, {only: product}


def _cross_mixed(
    categories: Categories, values: Floats, *, nominal_first: bool
) -> tuple[Effects, Products]:
    def pair_of(code: int) -> tuple[Any, Any]:
        level = categories.levels[code]
        return (level, None) if nominal_first else (None, level)

    occurring = np.flatnonzero(categories.counts()).tolist()
    # a level that occurs only with zeros has no slope, and is not the base of others
    sloped = np.flatnonzero(categories.take(np.flatnonzero(values)).counts()).tolist()
    effects: Effects = dict.fromkeys(map(pair_of, occurring))
    effects.update(dict.fromkeys(map(pair_of, sloped[:1]), 0.0))
    return effects, {
        pair_of(code): np.where(categories.codes == code, values, 0.0) for code in sloped[1:]
    }


def _cross_nominal(first: Categories, second: Categories) -> tuple[Effects, Products]:
    combined = first.codes.astype(np.int64) * len(second.levels) + second.codes
    occurring: list[Cell] = [
        divmod(number, len(second.levels)) for number in np.unique(combined).tolist()
    ]
    lowest = tuple(map(min, zip(*occurring, strict=True)))
    # combinations with a first level in them come first
    by_base = sorted(occurring, key=lambda cell: cell[0] != lowest[0] and cell[1] != lowest[1])
    reached = _spanning(by_base)
    levels = {cell: (first.levels[cell[0]], second.levels[cell[1]]) for cell in occurring}
    return dict.fromkeys(levels.values(), 0.0), {
        pair: ((first.codes == cell[0]) & (second.codes == cell[1])).astype(np.float64)
        for cell, pair in levels.items()
        if cell not in reached
    }


def _spanning(cells: Sequence[Cell]) -> set[Cell]:
    """Find combinations that the shifts of single levels can reach, whatever values they have."""
    from networkx.utils import UnionFind

    # Levels are the nodes of a graph and combinations its edges: shifts of the nodes can be chosen
    # to meet any values along a forest, and not along a cycle (Kruskal 1956, earlier cells first).
    joined: Any = UnionFind()
    forest = set()
    for cell in cells:
        one, other = (0, cell[0]), (1, cell[1])
        if joined[one] != joined[other]:
            joined.union(one, other)
            forest.add(cell)
    return forest
