"""Layered graphs, first half: which layer a node is in, and in which order within it.

This is the classical way to draw a directed acyclic graph (Sugiyama, Tagawa & Toda 1981, "Methods
for visual understanding of hierarchical system structures", *IEEE Trans. SMC* 11): causes before
effects in layers; an arrow that skips layers gets a waypoint in each, so that it can be led past
the nodes there; nodes and waypoints are ordered to have few crossings. Arrows that leave the same
node share their waypoints, like a branch that forks.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Layered", "Vertex", "arrange", "crossings", "longest_paths"]

# sweeps after which the order of hardly any graph still changes
_SWEEPS = 12

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Vertex:
    """A node in its own layer, or the waypoint of its arrows (of one strand) in a later one."""

    node: int
    layer: int
    strand: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layered:
    """Nodes and waypoints in the order in which they are drawn.

    Parameters
    ----------
    rows
        The vertices of each layer, in order.
    routes
        The vertices that each arrow passes, from its cause to its effect.
    """

    rows: tuple[tuple[Vertex, ...], ...]
    routes: Mapping[Edge, tuple[Vertex, ...]]

    @property
    def segments(self) -> tuple[tuple[Vertex, Vertex], ...]:
        """All pieces of arrows between one layer and the next, each once."""
        return tuple(
            dict.fromkeys(piece for route in self.routes.values() for piece in pairwise(route))
        )


def longest_paths(nodes: int, edges: Sequence[Edge]) -> list[int]:
    """Give each node's layer: the number of arrows on the longest way to it from a root.

    The nodes are numbered such that causes come before their effects.

    Examples
    --------
    >>> longest_paths(4, [(0, 1), (0, 2), (1, 2)])
    [0, 1, 2, 0]
    """
    layers = [0] * nodes
    for cause, effect in sorted(edges):
        layers[effect] = max(layers[effect], layers[cause] + 1)
    return layers


def arrange(layers: Sequence[int], edges: Mapping[Edge, int]) -> Layered:
    """Put nodes and waypoints into rows, with few crossings.

    Parameters
    ----------
    layers
        The layer of each node.
    edges
        The arrows, each of which leads to a later layer, and the strand it belongs to: arrows from
        one node share their waypoints within a strand.

    Examples
    --------
    >>> arranged = arrange([0, 0, 1, 1], {(0, 3): 0, (1, 2): 0})
    >>> [[vertex.node for vertex in row] for row in arranged.rows]
    [[0, 1], [3, 2]]
    """
    routes = {
        (cause, effect): (
            Vertex(cause, layers[cause]),
            *(Vertex(cause, layer, strand) for layer in range(layers[cause] + 1, layers[effect])),
            Vertex(effect, layers[effect]),
        )
        for (cause, effect), strand in edges.items()
    }
    alone = (Vertex(node, layer) for node, layer in enumerate(layers))
    vertices = dict.fromkeys((*alone, *(vertex for route in routes.values() for vertex in route)))
    rows: list[list[Vertex]] = [[] for _ in range(max(layers, default=-1) + 1)]
    for vertex in sorted(vertices, key=lambda vertex: vertex.node):
        rows[vertex.layer].append(vertex)
    pieces = Layered(rows=(), routes=routes).segments
    return Layered(rows=_untangled(rows, _Neighbours.of(pieces)), routes=routes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Neighbours:
    """The vertices that each vertex is connected to, in the layer before and in the next."""

    before: Mapping[Vertex, list[Vertex]]
    after: Mapping[Vertex, list[Vertex]]

    @classmethod
    def of(cls, pieces: Sequence[tuple[Vertex, Vertex]]) -> _Neighbours:
        before: dict[Vertex, list[Vertex]] = {}
        after: dict[Vertex, list[Vertex]] = {}
        for start, end in pieces:
            after.setdefault(start, []).append(end)
            before.setdefault(end, []).append(start)
        return cls(before=before, after=after)


def _untangled(rows: list[list[Vertex]], links: _Neighbours) -> tuple[tuple[Vertex, ...], ...]:
    """Sweep forth and back, each row ordered by the mean place of its neighbours; keep the best."""
    best = [list(row) for row in rows]
    fewest = _all_crossings(rows, links)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        forth = sweep % 2 == 0
        around = links.before if forth else links.after
        for row in rows if forth else reversed(rows):
            _order_by_mean(row, rows, around)
        for row in rows:
            _swap_neighbours(row, rows, links)
        found = _all_crossings(rows, links)
        if found < fewest:
            fewest, best = found, [list(row) for row in rows]
    return tuple(tuple(row) for row in best)


def _order_by_mean(
    row: list[Vertex], rows: list[list[Vertex]], around: Mapping[Vertex, list[Vertex]]
) -> None:
    means = {}
    for place, vertex in enumerate(row):
        others = around.get(vertex)
        if others:
            places = {other: at for at, other in enumerate(rows[others[0].layer])}
            means[vertex] = sum(places[other] for other in others) / len(others)
        else:
            means[vertex] = place  # nothing pulls at it
    row.sort(key=means.__getitem__)


def _swap_neighbours(row: list[Vertex], rows: list[list[Vertex]], links: _Neighbours) -> None:
    """Swap neighbours wherever that removes crossings."""
    places = {
        vertex: place
        for near in (row[0].layer - 1, row[0].layer + 1)
        if 0 <= near < len(rows)
        for place, vertex in enumerate(rows[near])
    }
    for first in range(len(row) - 1):
        one, two = row[first], row[first + 1]
        gain = 0
        for around in (links.before, links.after):
            left = sorted(places[other] for other in around.get(one, ()))
            right = sorted(places[other] for other in around.get(two, ()))
            gain += _inversions(left, right) - _inversions(right, left)
        if gain > 0:
            row[first], row[first + 1] = two, one


def _inversions(left: list[int], right: list[int]) -> int:
    """Count the pairs whose left end lies beyond the right one: two lines that cross."""
    return sum(len(left) - bisect_right(left, place) for place in right)


def crossings(pairs: Sequence[tuple[int, int]]) -> int:
    """Count the crossings of lines between two rows, given by their places in both.

    Examples
    --------
    >>> crossings([(0, 1), (1, 0), (1, 1)])
    1
    """
    seen: list[int] = []
    count = 0
    for _, end in sorted(pairs):
        count += len(seen) - bisect_right(seen, end)
        insort(seen, end)
    return count


def _all_crossings(rows: list[list[Vertex]], links: _Neighbours) -> int:
    count = 0
    for row, following in pairwise(rows):
        places = {vertex: place for place, vertex in enumerate(following)}
        count += crossings(
            [
                (place, places[other])
                for place, vertex in enumerate(row)
                for other in links.after.get(vertex, ())
            ]
        )
    return count
