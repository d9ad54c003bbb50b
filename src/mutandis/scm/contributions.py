"""Through which causes an attribute moved: the parts of a counterfactual change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.data.columns import Numbers
from mutandis.scm.additive import FittedLinear

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mutandis.data.columns import Column, Columns
    from mutandis.scm.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one cause, or two acting together, did to an attribute."""

    parents: tuple[str, ...]
    amount: float
    """What it added, in units of the attribute; under the log link, the factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposition:
    """A counterfactual change, taken apart."""

    how: Literal["sum", "factor"]
    """Whether the contributions add up to the change, or their product is its factor."""
    contributions: tuple[Contribution, ...]
    """One for each term whose causes changed, in the order of the equation."""

    @property
    def total(self) -> float:
        amounts = [each.amount for each in self.contributions]
        return float(np.sum(amounts) if self.how == "sum" else np.prod(amounts))


def decompose(fitted: object, before: Columns, after: Columns) -> Decomposition | None:
    """Take the change of one person's attribute apart by its causes; None if it is not linear."""
    linear = _linear_part(fitted)
    if linear is None:
        return None
    changed = {name for name in after if _value(before[name]) != _value(after[name])}
    added = linear.link == "identity"
    contributions = []
    for term in linear.predictor.terms:
        if changed.isdisjoint(term.parents):
            continue
        change = float((term.at(after) - term.at(before))[0])
        amount = change if added else float(np.exp(change))
        contributions.append(Contribution(parents=term.parents, amount=amount))
    return Decomposition(how="sum" if added else "factor", contributions=tuple(contributions))


def paths_between(
    graph: Graph, causes: Iterable[str], effect: str, *, held: Iterable[str] = ()
) -> Iterator[tuple[str, ...]]:
    """Follow the arrows from causes to an effect: every path, none of them through `held`."""
    sources, closed = frozenset(causes), frozenset(held)
    open_ends: list[tuple[str, ...]] = [(effect,)]
    while open_ends:
        path = open_ends.pop()
        if path[0] in sources:
            yield path
            continue
        parents = [name for name in graph.parents.get(path[0], ()) if name not in closed]
        open_ends += [(name, *path) for name in reversed(parents)]


def _linear_part(fitted: object) -> FittedLinear | None:
    """Find the linear equation, also inside one that rounds what it says."""
    if isinstance(fitted, FittedLinear):
        return fitted
    inner = getattr(fitted, "fitted", None)
    return inner if isinstance(inner, FittedLinear) else None


def _value(column: Column) -> object:
    if isinstance(column, Numbers):
        return float(column.values[0])
    return column.levels[column.codes[0]]
