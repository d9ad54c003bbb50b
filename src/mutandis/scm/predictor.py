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
from functools import reduce
from itertools import combinations, islice
from operator import mul
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
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mutandis.data.columns import Columns, Floats

    Levels = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What one parent, or two together, add: a coefficient per combination of levels."""

    # A nominal parent has its levels, and the number 1; a numeric parent has its numbers, and the
    # one level None. The coefficient is multiplied with the numbers. A combination without one
    # (None) occurred only where their product was 0, one that is not listed did not occur: what the
    # parents do there is unknown.
    parents: tuple[str, ...]
    nominal: tuple[bool, ...]
    effects: Mapping[tuple[Any, ...], float | None]

    @classmethod
    def slope(cls, parent: str, slope: float) -> Term:
        """Return the effect of a numeric parent, per unit."""
        return cls(parents=(parent,), nominal=(False,), effects={(None,): slope})

    @classmethod
    def shifts(cls, parent: str, shifts: Mapping[Any, float]) -> Term:
        """Return the effect of a nominal parent: a shift per level, 0 for the first."""
        effects = {(level,): shift for level, shift in shifts.items()}
        return cls(parents=(parent,), nominal=(True,), effects=MappingProxyType(effects))

    @property
    def coefficients(self) -> dict[tuple[Any, ...], float]:
        """The coefficients of a single parent, by levels: none for the first level."""
        estimated = islice(self.effects.items(), int(self.nominal[0]), None)
        return {levels: effect or 0.0 for levels, effect in estimated}

    def with_coefficients(
        self, coefficients: Iterator[float], estimated: Levels | None = None
    ) -> Term:
        """Replace the coefficients of a single parent, or those of some combinations."""
        own = self.coefficients if estimated is None else estimated
        effects = {**self.effects, **{levels: next(coefficients) for levels in own}}
        return replace(self, effects=MappingProxyType(effects))

    def design(self, column: Column) -> Iterator[Floats]:
        """Yield the columns that the coefficients of a single parent multiply."""
        levels, codes, numbers = _side(self.parents[0], column, nominal=self.nominal[0])
        for (level,) in self.coefficients:
            yield (codes == levels.index(level)).astype(float) if self.nominal[0] else numbers

    def at(self, parents: Columns) -> Floats:
        """Compute each row's contribution; refuse what did not occur in the fit."""
        sides = [
            _side(name, parents[name], nominal=nominal)
            for name, nominal in zip(self.parents, self.nominal, strict=True)
        ]
        places = [{level: code for code, level in enumerate(levels)} for levels, _, _ in sides]
        # one more place at the end, which the code -1 of a missing value falls into
        table = np.full([len(each) + 1 for each in places], np.nan)
        for levels, effect in self.effects.items():
            known = all(level in each for level, each in zip(levels, places, strict=True))
            if effect is not None and known:
                found = (each[level] for level, each in zip(levels, places, strict=True))
                table[tuple(found)] = effect
        effects = table[tuple(codes for _, codes, _ in sides)]
        product = reduce(mul, [numbers for _, _, numbers in sides])
        unknown = np.isnan(effects)
        if unknown.any():
            if unseen := int(np.count_nonzero(unknown & (product != 0.0))):
                raise self._unseen(unseen)
            effects = np.where(unknown, 0.0, effects)
        contribution: Floats = effects * product
        return contribution

    def _unseen(self, rows: int) -> EquationError:
        if len(self.parents) == 1:
            return EquationError(
                f"parent {self.parents[0]!r} has {rows} rows with a level that did not occur when "
                "the equation was fitted, so its effect is unknown. Fit on a table in which every "
                "level occurs, or intervene with one that does."
            )
        return EquationError(
            f"parents {listed(self.parents)} have {rows} rows with a combination of values that "
            "did not occur when the equation was fitted, so what they do together is unknown. Fit "
            "on a table in which every combination occurs, or leave the interactions out."
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Design(Basis):
    """An orthogonal basis of the columns of declared causes."""

    terms: tuple[Term, ...]  # the declared causes, with coefficients of no meaning

    @classmethod
    def of(cls, parents: Columns, *, rows: int) -> Design:
        """Build the basis, or refuse causes that are constant or collinear."""
        terms = fit_linear_predictor(np.zeros(rows), parents).terms
        columns = [values for term in terms for values in term.design(parents[term.parents[0]])]
        basis, triangle = cls.orthogonal(columns, rows=rows)
        return cls(terms=terms, basis=basis, triangle=triangle)

    def predictor(self, coefficients: Floats) -> LinearPredictor:
        """Translate coefficients of the basis into those of the declared causes."""
        intercept, *others = self.translate(coefficients)
        remaining = iter(others)
        terms = tuple(term.with_coefficients(remaining) for term in self.terms)
        return LinearPredictor(intercept=intercept, terms=terms)


def _side(name: str, column: Column, *, nominal: bool) -> tuple[tuple[Any, ...], Any, Any]:
    """Return a parent's levels, its codes into them, and its numbers; refuse another kind."""
    if nominal and isinstance(column, Categories):
        return column.levels, column.codes, 1.0
    if isinstance(column, Numbers) and not nominal:
        return (None,), 0, column.values
    before, now = ("names", "numbers") if nominal else ("numbers", "names")
    raise KindError(
        f"Parent {name!r} held {before} when its equation was fitted, and now holds {now}. "
        "Read the column the same way in both tables."
    )


# --- fit ------------------------------------------------------------------------------------------


def fit_linear_predictor(
    response: Floats, parents: Columns, *, interactions: bool = False
) -> LinearPredictor:
    """Fit an intercept and one term per parent, or also per two of them, by least squares."""
    if not len(response):
        require_rows(0, coefficients=1 + len(parents))
    terms: list[tuple[Term, Levels]] = []
    design: list[tuple[Label, Scaled]] = []
    constant: list[str] = []

    def add(label: Label, columns: Columns) -> None:
        term, cells, column_of = _cross(columns)
        require_few(len(design) + len(cells))
        design.extend((label, Scaled.of(column_of(cell))) for cell in cells.values())
        terms.append((term, tuple(cells)))

    # each parent is looked at once: a worldview reorders a column when it is asked for
    for name, column in parents.items():
        add(name, {name: column})
        constant += [name] if _is_constant(column) else []
    require_rows(len(response), coefficients=1 + len(design))
    _refuse_constants(constant)
    for pair in combinations(parents, 2) if interactions else ():
        add(pair, {name: parents[name] for name in pair})
    require_rows(len(response), coefficients=1 + len(design))
    intercept, coefficients = solve_centred(response, design)
    remaining = iter(coefficients)
    fitted = tuple(term.with_coefficients(remaining, levels) for term, levels in terms)
    return LinearPredictor(intercept=intercept, terms=fitted)


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


def _cross(columns: Columns) -> tuple[Term, dict[tuple[Any, ...], int], Callable[[int], Floats]]:
    """Make a term of one parent or two, the cells that have a coefficient, and their columns."""
    nominal = tuple(isinstance(column, Categories) for column in columns.values())
    sides = [
        _side(name, column, nominal=each)
        for (name, column), each in zip(columns.items(), nominal, strict=True)
    ]
    rows = len(next(iter(columns.values())))
    with np.errstate(all="ignore"):  # what overflows, least squares finds
        product = np.broadcast_to(reduce(mul, [numbers for _, _, numbers in sides]), rows)
    if len(sides) > 1 and not any(nominal):
        _require_varying_product(product, tuple(columns))
    cells = np.zeros(rows, dtype=np.int64)
    for levels, codes, _ in sides:
        cells = cells * len(levels) + codes
    active = np.flatnonzero(np.bincount(cells[product != 0.0])).tolist()
    if nominal == (True, True):
        reached = _spanning(active, across=len(sides[1][0]))
    else:
        # the first level, unless there are only numbers; one that occurs only with zeros has none
        reached = set(active[: int(any(nominal))])
    shape = [len(levels) for levels, _, _ in sides]
    named = {
        cell: tuple(
            levels[place]
            for (levels, _, _), place in zip(sides, np.unravel_index(cell, shape), strict=True)
        )
        for cell in np.flatnonzero(np.bincount(cells)).tolist()
    }
    effects = {levels: 0.0 if cell in reached else None for cell, levels in named.items()}
    term = Term(parents=tuple(columns), nominal=nominal, effects=effects)
    fitted = {named[cell]: cell for cell in active if cell not in reached}
    alone = len(named) == 1
    return term, fitted, lambda cell: product if alone else np.where(cells == cell, product, 0.0)


def _require_varying_product(product: Floats, pair: tuple[str, ...]) -> None:
    if product.any() and np.isfinite(product).all() and is_constant(product):
        raise EquationError(
            f"the product of {listed([pair])} is the same in every row, so nothing tells what "
            "they do together. Leave the interactions out, or remove one of these parents."
        )


def _spanning(cells: Sequence[int], *, across: int) -> set[int]:
    """Find combinations that the shifts of single levels can reach, whatever values they have."""
    from networkx.utils import UnionFind

    # Levels are the nodes of a graph and combinations its edges: shifts of the nodes can be chosen
    # to meet any values along a forest, and not along a cycle (Kruskal 1956, earlier cells first).
    ends = {cell: divmod(cell, across) for cell in cells}
    lowest = tuple(map(min, zip(*ends.values(), strict=True)))
    # combinations with a first level in them come first
    by_base = sorted(
        cells, key=lambda cell: ends[cell][0] != lowest[0] and ends[cell][1] != lowest[1]
    )
    joined: Any = UnionFind()
    forest = set()
    for cell in by_base:
        one, other = (0, ends[cell][0]), (1, ends[cell][1])
        if joined[one] != joined[other]:
            joined.union(one, other)
            forest.add(cell)
    return forest
