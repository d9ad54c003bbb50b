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
    Basis,
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

Pair = tuple[Any, Any]
Products = dict[Pair, "Floats"]


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
        """Yield the columns that the coefficients multiply."""
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
        """Compute each row's contribution; refuse levels that did not occur in the fit."""
        categories = require_categories(self.parent, parents[self.parent])
        contribution: Floats = categories.look_up(self.shifts, otherwise=np.nan)
        if unseen := int(np.isnan(contribution).sum()):
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
    parents: tuple[str, str]
    nominal: tuple[bool, bool]
    effects: Mapping[Pair, float | None]

    def at(self, parents: Columns) -> Floats:
        (levels, codes, numbers), (other_levels, other_codes, other_numbers) = (
            _side(name, parents[name], nominal=nominal)
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
        if unseen := int(np.count_nonzero(unknown & (product != 0.0))):
            first, second = self.parents
            raise EquationError(
                f"parents {first!r} and {second!r} have {unseen} rows with a combination of values "
                "that did not occur when the equation was fitted, so what they do together is "
                "unknown. Fit on a table in which every combination occurs, or leave the "
                "interactions out."
            )
        contribution: Floats = np.where(unknown, 0.0, effects) * product
        return contribution


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearPredictor:
    """An intercept plus one term per parent as declared, then those of two parents together."""

    intercept: float
    terms: tuple[Slope | LevelShifts | Interaction, ...]

    def at(self, parents: Columns, *, rows: int) -> Floats:
        total = np.full(rows, self.intercept)
        # an overflow shows as a value that is not finite, which is refused where it is used
        with np.errstate(over="ignore", invalid="ignore"):
            for term in self.terms:
                total += term.at(parents)
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Design(Basis):
    """An orthogonal basis of the columns of declared causes."""

    terms: tuple[SingleTerm, ...]  # the declared causes, with coefficients of no meaning

    @classmethod
    def of(cls, parents: Columns, *, rows: int) -> Design:
        """Build the basis, or refuse causes that are constant or collinear."""
        rough = fit_linear_predictor(np.zeros(rows), parents)
        terms = tuple(term for term in rough.terms if isinstance(term, SingleTerm))
        columns = [values for term in terms for values in term.design(parents[term.parent])]
        basis, triangle = cls.orthogonal(columns, rows=rows)
        return cls(terms=terms, basis=basis, triangle=triangle)

    def predictor(self, coefficients: Floats) -> LinearPredictor:
        """Translate coefficients of the basis into those of the declared causes."""
        intercept, *others = self.translate(coefficients)
        remaining = iter(others)
        terms = tuple(term.with_coefficients(remaining) for term in self.terms)
        return LinearPredictor(intercept=intercept, terms=terms)


def _numbers(parent: str, column: Column) -> Floats:
    if not isinstance(column, Numbers):
        raise _other_kind(parent, before="numbers", now="names")
    return column.values


def require_categories(parent: str, column: Column) -> Categories:
    """Return the column of a parent that held names when its equation was fitted."""
    if not isinstance(column, Categories):
        raise _other_kind(parent, before="names", now="numbers")
    return column


def _other_kind(parent: str, *, before: str, now: str) -> KindError:
    return KindError(
        f"Parent {parent!r} held {before} when its equation was fitted, and now holds {now}. "
        "Read the column the same way in both tables."
    )


def _side(name: str, column: Column, *, nominal: bool) -> tuple[tuple[Any, ...], Any, Any]:
    """Return a parent's levels, its codes into them, and its numbers."""
    if nominal:
        categories = require_categories(name, column)
        return categories.levels, categories.codes, 1.0
    return (None,), 0, _numbers(name, column)


# --- fit ------------------------------------------------------------------------------------------


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
    crossed = []
    for pair in combinations(parents, 2) if interactions else ():
        crossed.append(_cross(pair, parents))
        require_few(len(design) + sum(len(columns) for _, columns in crossed))
    for product, columns in crossed:
        design += [(product.parents, Scaled.of(values)) for values in columns.values()]
    require_rows(len(response), coefficients=1 + len(design))
    intercept, coefficients = solve_centred(response, design)
    remaining = iter(coefficients)
    terms = [term.with_coefficients(remaining) for term in single]
    together = [
        replace(
            product,
            effects=MappingProxyType(
                {**product.effects, **{pair: next(remaining) for pair in columns}}
            ),
        )
        for product, columns in crossed
    ]
    return LinearPredictor(intercept=intercept, terms=(*terms, *together))


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


def _cross(pair: tuple[str, str], parents: Columns) -> tuple[Interaction, Products]:
    """Cross two parents: the effects that are known, and the columns of those to be fitted."""
    one, other = (isinstance(parents[name], Categories) for name in pair)
    levels, codes, numbers = _side(pair[0], parents[pair[0]], nominal=one)
    other_levels, other_codes, other_numbers = _side(pair[1], parents[pair[1]], nominal=other)
    with np.errstate(all="ignore"):  # what overflows, least squares finds
        product = np.broadcast_to(numbers * other_numbers, len(parents[pair[0]]))
    cells = np.broadcast_to(codes * np.int64(len(other_levels)) + other_codes, len(product))
    if not (one or other) and product.any() and np.isfinite(product).all() and is_constant(product):
        raise EquationError(
            f"the product of {listed([pair])} is the same in every row, so nothing tells what "
            "they do together. Leave the interactions out, or remove one of these parents."
        )
    occurring, active = np.unique(cells).tolist(), np.unique(cells[product != 0.0]).tolist()
    reached = _reached([divmod(cell, len(other_levels)) for cell in active], nominal=one + other)
    fitted = set(active)
    effects: dict[Pair, float | None] = {}
    products: Products = {}
    for cell in occurring:
        place = divmod(cell, len(other_levels))
        named = levels[place[0]], other_levels[place[1]]
        effects[named] = 0.0 if place in reached else None
        if place not in reached and cell in fitted:
            products[named] = np.where(cells == cell, product, 0.0)
    return Interaction(parents=pair, nominal=(one, other), effects=effects), products


def _reached(cells: Sequence[tuple[int, int]], *, nominal: int) -> set[tuple[int, int]]:
    """Find the combinations that single terms can reach, whatever values they have."""
    if nominal < 2:
        # a numeric parent's slope reaches one level; a level that occurs only with zeros has none
        return set(cells[:nominal])
    from networkx.utils import UnionFind

    # Levels are the nodes of a graph and combinations its edges: shifts of the nodes can be chosen
    # to meet any values along a forest, and not along a cycle (Kruskal 1956, earlier cells first).
    lowest = tuple(map(min, zip(*cells, strict=True)))
    joined: Any = UnionFind()
    forest = set()
    # combinations with a first level in them come first
    for cell in sorted(cells, key=lambda cell: cell[0] != lowest[0] and cell[1] != lowest[1]):
        first, second = (0, cell[0]), (1, cell[1])
        if joined[first] != joined[second]:
            joined.union(first, second)
            forest.add(cell)
    return forest
