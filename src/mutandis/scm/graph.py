"""The causal graph G: who is a cause of whom, without cycles."""

from __future__ import annotations

import graphlib
from dataclasses import dataclass
from heapq import heappop, heappush
from types import MappingProxyType
from typing import TYPE_CHECKING

from mutandis.errors import CycleError, WorldviewError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    import networkx as nx


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The direct causes of every node, by column name, causes before their effects."""

    parents: Mapping[str, tuple[str, ...]]

    @classmethod
    def from_parents(cls, parents: Mapping[str, Iterable[str]]) -> Graph:
        """Build the graph from each child's direct causes; refuse cycles."""
        declared = {child: _read_parents(child, causes) for child, causes in parents.items()}
        order = _topological_order(declared)
        return cls(parents=MappingProxyType({name: declared.get(name, ()) for name in order}))

    @property
    def names(self) -> tuple[str, ...]:
        """All nodes, causes before their effects."""
        return tuple(self.parents)

    @property
    def roots(self) -> tuple[str, ...]:
        """The nodes that nothing in the graph causes."""
        return tuple(name for name, causes in self.parents.items() if not causes)

    def descendants(self, nodes: Collection[str], *, held: Collection[str] = ()) -> tuple[str, ...]:
        """Return all effects of some nodes, direct and indirect, causes before their effects."""
        # not the nodes themselves, even if one causes another: under do() each of them is held
        fixed = frozenset(nodes) | frozenset(held)
        reached = set(nodes)
        # one pass is enough: causes come before their effects
        for name, causes in self.parents.items():
            if name not in fixed and not reached.isdisjoint(causes):
                reached.add(name)
        return tuple(name for name in self.parents if name in reached and name not in fixed)

    def paths(
        self, causes: Collection[str], effect: str, *, held: Collection[str] = ()
    ) -> Iterator[tuple[str, ...]]:
        """Yield every path of arrows from causes to an effect, none of them through `held`."""
        open_ends: list[tuple[str, ...]] = [(effect,)]
        while open_ends:
            path = open_ends.pop()
            if path[0] in causes:
                yield path
                continue
            parents = [name for name in self.parents.get(path[0], ()) if name not in held]
            open_ends += [(name, *path) for name in reversed(parents)]


def _read_parents(child: object, causes: Iterable[str]) -> tuple[str, ...]:
    if not isinstance(child, str):
        raise WorldviewError(
            f"A worldview has an equation for {child!r}, which is not text. "
            "Use the column's name, as text."
        )
    # a text is iterable too, and would be taken apart into its letters
    if isinstance(causes, str):
        raise WorldviewError(
            f"The parents of {child!r} are given as one text, {causes!r}. "
            f"Give a tuple of column names: ({causes!r},)."
        )
    read = tuple(causes)
    wrong = [cause for cause in read if not isinstance(cause, str)]
    if wrong:
        raise WorldviewError(
            f"The equation for {child!r} has a parent of type {type(wrong[0]).__name__}. "
            "Parents are column names, given one by one: Linear('Gender', 'Age')."
        )
    repeated = next((cause for cause in read if read.count(cause) > 1), None)
    if repeated is not None:
        raise WorldviewError(
            f"The equation for {child!r} names its parent {repeated!r} more than once. "
            "Name each parent once."
        )
    return read


def arrows_of(parents: Mapping[str, tuple[str, ...]]) -> nx.DiGraph:
    """Return the graph for networkx, nodes in the order in which they are mentioned."""
    import networkx as nx

    arrows = nx.DiGraph()
    for child, causes in parents.items():
        arrows.add_nodes_from((*causes, child))
        arrows.add_edges_from((cause, child) for cause in causes)
    return arrows


def _topological_order(parents: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    # where causes and effects leave a choice, the node that is mentioned first comes first
    mentioned = (name for child, causes in parents.items() for name in (*causes, child))
    place = {name: position for position, name in enumerate(dict.fromkeys(mentioned))}
    sorter = graphlib.TopologicalSorter(parents)
    try:
        sorter.prepare()
    except graphlib.CycleError:
        raise _cycle_error(parents, place) from None
    order: list[str] = []
    ready: list[tuple[int, str]] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heappush(ready, (place[name], name))
        _, first = heappop(ready)
        order.append(first)
        sorter.done(first)
    return tuple(order)


def _cycle_error(parents: Mapping[str, tuple[str, ...]], place: Mapping[str, int]) -> CycleError:
    import networkx as nx

    cycle = [edge[0] for edge in nx.find_cycle(arrows_of(parents))]
    first = cycle.index(min(cycle, key=place.__getitem__))
    shown = " → ".join([*cycle[first:], *cycle[: first + 1]])
    return CycleError(
        f"The worldview has a cycle: {shown}. Nothing can be its own cause, directly or through "
        "others: take one of these arrows out, by removing the parent from the equation it "
        "points to."
    )
