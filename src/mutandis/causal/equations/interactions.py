"""Interactions: what two parents do together, beyond what each does on its own.

The columns of an interaction are the products of the two parents' own columns. Not all of them can
be fitted. A product that is 0 in every row says nothing, so it is left out, and rows in which it
would not be 0 are refused later. Of two nominal parents, the combinations that their own shifts
already reach are left out too: with every combination in the table these are the ones with a first
level in them; where such a one never occurs, another takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from mutandis.causal.fitting.least_squares import is_constant, listed
from mutandis.causal.fitting.terms import CellShifts, LevelSlopes, ProductSlope
from mutandis.data.columns import Categories
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column

__all__ = ["Crossed", "cross"]

Pair = tuple[str, str]
Cell = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossed:
    """Two parents crossed.

    Parameters
    ----------
    parents
        Their names, in declared order.
    columns
        The columns that enter the design.
    term
        Makes the term, given an iterator from which it takes one coefficient a column.
    """

    parents: Pair
    columns: Sequence[NDArray[np.float64]]
    term: Callable[[Iterator[float]], ProductSlope | LevelSlopes | CellShifts]


def cross(
    pair: Pair, parents: Mapping[str, Column], levels: Mapping[str, Sequence[int]]
) -> Crossed:
    """Multiply the columns of two parents.

    Parameters
    ----------
    pair
        Their names.
    parents
        The columns.
    levels
        For each nominal parent, the codes that occur.

    Examples
    --------
    >>> from mutandis.data.columns import Numbers
    >>> age, tenure = Numbers(np.array([30.0, 40.0])), Numbers(np.array([1.0, 3.0]))
    >>> cross(("Age", "Tenure"), {"Age": age, "Tenure": tenure}, {}).columns[0].tolist()
    [30.0, 120.0]
    """
    first, second = (parents[name] for name in pair)
    if isinstance(first, Categories):
        if isinstance(second, Categories):
            return _cross_nominal(pair, first, second, [levels[name] for name in pair])
        return _cross_mixed(pair, pair[0], first, second.values)
    if isinstance(second, Categories):
        return _cross_mixed(pair, pair[1], second, first.values)
    return _cross_numeric(pair, first.values, second.values)


def _cross_numeric(pair: Pair, first: NDArray[np.float64], second: NDArray[np.float64]) -> Crossed:
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


def _cross_mixed(
    pair: Pair, nominal: str, categories: Categories, values: NDArray[np.float64]
) -> Crossed:
    codes = categories.codes
    occurring = np.flatnonzero(categories.counts()).tolist()
    # a level that only zeros go with has no slope, and is no base for those of others
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


def _cross_nominal(
    pair: Pair, first: Categories, second: Categories, levels: Sequence[Sequence[int]]
) -> Crossed:
    combined = first.codes.astype(np.int64) * len(second.levels) + second.codes
    occurring: list[Cell] = [
        divmod(number, len(second.levels)) for number in np.unique(combined).tolist()
    ]
    base = tuple(codes[0] for codes in levels)
    reached = _spanning(sorted(occurring, key=lambda cell: _without(base, cell)))
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


def _without(base: tuple[int, ...], cell: Cell) -> bool:
    """Tell whether a combination has no first level in it; sorting puts those with one first."""
    return cell[0] != base[0] and cell[1] != base[1]


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
