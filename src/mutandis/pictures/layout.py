"""Layered drawings of directed acyclic graphs: layers, order within them, and coordinates.

This is the classical way (Sugiyama, Tagawa & Toda 1981, "Methods for visual understanding of
hierarchical system structures", *IEEE Trans. SMC* 11): causes before effects in layers; an arrow
that skips layers gets a waypoint in each, so that it can be led past the nodes there; nodes and
waypoints are ordered to have few crossings. Arrows that leave the same node share their waypoints,
like a branch that forks.

Everything is computed along the arrows (forward) and across them; a picture that runs to the right
and one that runs downwards differ only in which of the two is x.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Edge = tuple[int, int]
Point = tuple[float, float]

# sweeps after which the order of hardly any graph still changes
_SWEEPS = 12
_ROUNDS = 60
# Straightness matters most where an arrow passes other nodes. But a strong pull between waypoints
# holds them back from where they belong, so it comes in only when they have got there.
_PULLS = ({0: 1.0, 1: 1.0, 2: 1.0}, {0: 1.0, 1: 2.0, 2: 12.0})
_PORT_DISTANCE = 11.0
_PORT_MARGIN = 8.0


@dataclass(frozen=True, slots=True)
class Vertex:
    """A node in its own layer, or the waypoint of its arrows (of one strand) in a later one."""

    node: int
    layer: int
    strand: int = 0


_Links = dict[Vertex, list[Vertex]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layered:
    """The vertices of each layer in order, and the vertices that each arrow passes, in order."""

    rows: tuple[tuple[Vertex, ...], ...]
    routes: Mapping[Edge, tuple[Vertex, ...]]

    @property
    def segments(self) -> tuple[tuple[Vertex, Vertex], ...]:
        """All pieces of arrows between one layer and the next, each once."""
        return tuple(
            dict.fromkeys(piece for route in self.routes.values() for piece in pairwise(route))
        )


def longest_paths(nodes: int, edges: Sequence[Edge]) -> list[int]:
    """Give each node's layer: the longest way to it from a root; causes have lower numbers."""
    layers = [0] * nodes
    for cause, effect in sorted(edges):
        layers[effect] = max(layers[effect], layers[cause] + 1)
    return layers


def arrange(layers: Sequence[int], edges: Mapping[Edge, int]) -> Layered:
    """Put nodes and waypoints, which arrows of a node share within a strand, into rows."""
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
    return Layered(rows=_untangled(rows, _neighbours(pieces)), routes=routes)


def _neighbours(pieces: Sequence[tuple[Vertex, Vertex]]) -> tuple[_Links, _Links]:
    """Give the vertices that each vertex is connected to, in the layer before and in the next."""
    before: _Links = {}
    after: _Links = {}
    for start, end in pieces:
        after.setdefault(start, []).append(end)
        before.setdefault(end, []).append(start)
    return before, after


def _untangled(
    rows: list[list[Vertex]], links: tuple[_Links, _Links]
) -> tuple[tuple[Vertex, ...], ...]:
    """Sweep forth and back, each row ordered by the mean place of its neighbours; keep the best."""
    best = [list(row) for row in rows]
    fewest = _all_crossings(rows, links)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        forth = sweep % 2 == 0
        around = links[0] if forth else links[1]
        for row in rows if forth else reversed(rows):
            _order_by_mean(row, rows, around)
        for row in rows:
            _swap_neighbours(row, rows, links)
        found = _all_crossings(rows, links)
        if found < fewest:
            fewest, best = found, [list(row) for row in rows]
    return tuple(tuple(row) for row in best)


def _order_by_mean(row: list[Vertex], rows: list[list[Vertex]], around: _Links) -> None:
    means = {}
    for place, vertex in enumerate(row):
        others = around.get(vertex)
        if others:
            places = {other: at for at, other in enumerate(rows[others[0].layer])}
            means[vertex] = sum(places[other] for other in others) / len(others)
        else:
            means[vertex] = place  # nothing pulls at it
    row.sort(key=means.__getitem__)


def _swap_neighbours(
    row: list[Vertex], rows: list[list[Vertex]], links: tuple[_Links, _Links]
) -> None:
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
        for around in links:
            left = [places[other] for other in around.get(one, ())]
            right = [places[other] for other in around.get(two, ())]
            now = [(0, place) for place in left] + [(1, place) for place in right]
            swapped = [(1 - side, place) for side, place in now]
            gain += crossings(now) - crossings(swapped)
        if gain > 0:
            row[first], row[first + 1] = two, one


def crossings(pairs: Sequence[tuple[int, int]]) -> int:
    """Count the crossings of lines between two rows, given by their places in both."""
    seen: list[int] = []
    count = 0
    for _, end in sorted(pairs):
        count += len(seen) - bisect_right(seen, end)
        insort(seen, end)
    return count


def _all_crossings(rows: list[list[Vertex]], links: tuple[_Links, _Links]) -> int:
    count = 0
    for row, following in pairwise(rows):
        places = {vertex: place for place, vertex in enumerate(following)}
        count += crossings(
            [
                (place, places[other])
                for place, vertex in enumerate(row)
                for other in links[1].get(vertex, ())
            ]
        )
    return count


@dataclass(frozen=True, slots=True, kw_only=True)
class Spacing:
    """Distances: between nodes of a layer, around an arrow that passes a layer, between layers."""

    across: float = 22.0
    lane: float = 16.0
    forward: float = 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """A rectangle: its corner nearest to the origin, and its size, forward and across."""

    forward: float
    across: float
    length: float
    breadth: float

    @property
    def middle(self) -> float:
        return self.across + self.breadth / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where everything is: the rectangle of each node, and the corner points of each arrow."""

    boxes: tuple[Rectangle, ...]
    # alternately straight runs past a layer, first and last too, and passages between layers
    routes: Mapping[Edge, tuple[Point, ...]]
    length: float
    breadth: float


def lay_out(
    sizes: Sequence[tuple[float, float]],
    edges: Mapping[Edge, int],
    *,
    layers: Sequence[int],
    spacing: Spacing,
) -> Layout:
    """Place nodes of given sizes (forward, across) and lead the arrows between them."""
    layered = arrange(layers, edges)
    breadths = {
        vertex: sizes[vertex.node][1] if vertex.layer == layers[vertex.node] else 0.0
        for row in layered.rows
        for vertex in row
    }
    middles = _places_across(layered, breadths, spacing)
    starts, ends = _places_forward(layered, sizes, layers, middles, spacing)
    boxes = []
    for node, ((length, breadth), layer) in enumerate(zip(sizes, layers, strict=True)):
        corner = (starts[layer] + ends[layer] - length) / 2
        across = middles[Vertex(node, layer)] - breadth / 2
        boxes.append(Rectangle(forward=corner, across=across, length=length, breadth=breadth))
    reach = (middles[vertex] + breadth / 2 for vertex, breadth in breadths.items())
    return Layout(
        boxes=tuple(boxes),
        routes=_routes(layered, boxes, middles, starts, ends),
        length=ends[-1] if ends else 0.0,
        breadth=max(reach, default=0.0),
    )


def _places_across(
    layered: Layered, breadths: Mapping[Vertex, float], spacing: Spacing
) -> dict[Vertex, float]:
    """Move every vertex towards the mean of its neighbours, as far as its row leaves room."""
    # Row by row this minimises the sum of pull · (difference of places)² over all pieces of arrows,
    # subject to the distances within rows: with all other rows given, the best places of a row are
    # those of an isotonic regression.
    offsets = {}
    for row in layered.rows:
        at = 0.0
        for one, two in pairwise(row):
            offsets[one] = at
            gap = spacing.across if breadths[one] and breadths[two] else spacing.lane
            at += (breadths[one] + breadths[two]) / 2 + gap
        offsets[row[-1]] = at
    middles = {
        vertex: offsets[vertex] - offsets[row[-1]] / 2 for row in layered.rows for vertex in row
    }
    for pulls in _PULLS:
        links = _links(layered, breadths, pulls)
        for turn in range(_ROUNDS):
            for row in layered.rows if turn % 2 == 0 else layered.rows[::-1]:
                wanted = [_wanted(vertex, links.get(vertex, ()), middles) for vertex in row]
                shifted = [place - offsets[v] for v, (place, _) in zip(row, wanted, strict=True)]
                if any(one >= two for one, two in pairwise(shifted)):
                    weights = [pull for _, pull in wanted]
                    shifted = _isotonic(shifted, weights)
                middles |= {v: place + offsets[v] for v, place in zip(row, shifted, strict=True)}
    first = min((middles[vertex] - breadths[vertex] / 2 for vertex in middles), default=0.0)
    return {vertex: place - first for vertex, place in middles.items()}


def _isotonic(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Give the rising numbers nearest to some values: neighbours that fall become their mean."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        mean, pull, size = value, weight, 1
        while blocks and blocks[-1][0] >= mean:
            before, strength, count = blocks.pop()
            mean = (before * strength + mean * pull) / (strength + pull)
            pull, size = pull + strength, size + count
        blocks.append((mean, pull, size))
    return [mean for mean, _, size in blocks for _ in range(size)]


def _links(
    layered: Layered, breadths: Mapping[Vertex, float], pulls: Mapping[int, float]
) -> dict[Vertex, list[tuple[Vertex, float]]]:
    links: dict[Vertex, list[tuple[Vertex, float]]] = {}
    for start, end in layered.segments:
        pull = pulls[(not breadths[start]) + (not breadths[end])]
        links.setdefault(start, []).append((end, pull))
        links.setdefault(end, []).append((start, pull))
    return links


def _wanted(
    vertex: Vertex, around: Sequence[tuple[Vertex, float]], middles: Mapping[Vertex, float]
) -> tuple[float, float]:
    """Give the place where the neighbours pull a vertex, and how strongly."""
    if not around:
        return middles[vertex], 1e-3
    pull = sum(strength for _, strength in around)
    return sum(middles[other] * strength for other, strength in around) / pull, pull


def _places_forward(
    layered: Layered,
    sizes: Sequence[tuple[float, float]],
    layers: Sequence[int],
    middles: Mapping[Vertex, float],
    spacing: Spacing,
) -> tuple[list[float], list[float]]:
    """Give the start and the end of each layer; arrows that go far across get more room."""
    lengths = [0.0] * len(layered.rows)
    for (length, _), layer in zip(sizes, layers, strict=True):
        lengths[layer] = max(lengths[layer], length)
    steep = [0.0] * len(layered.rows)
    for start, end in layered.segments:
        steep[start.layer] = max(steep[start.layer], abs(middles[end] - middles[start]))
    starts, ends, at = [], [], 0.0
    for length, far in zip(lengths, steep, strict=True):
        starts.append(at)
        ends.append(at + length)
        at += length + min(spacing.forward * 1.8, spacing.forward + 0.15 * far)
    return starts, ends


def _routes(
    layered: Layered,
    boxes: Sequence[Rectangle],
    middles: Mapping[Vertex, float],
    starts: Sequence[float],
    ends: Sequence[float],
) -> dict[Edge, tuple[Point, ...]]:
    exits = _ports(layered, boxes, middles, leaving=True)
    entries = _ports(layered, boxes, middles, leaving=False)
    routes = {}
    for (cause, effect), route in layered.routes.items():
        leave = exits[route[0], route[1]]
        enter = entries[route[-1], route[-2]]
        points = [
            (boxes[cause].forward + boxes[cause].length, leave),
            (ends[route[0].layer], leave),
        ]
        for vertex in route[1:-1]:
            at = middles[vertex]
            points += [(starts[vertex.layer], at), (ends[vertex.layer], at)]
        points += [(starts[route[-1].layer], enter), (boxes[effect].forward, enter)]
        routes[cause, effect] = tuple(points)
    return routes


def _ports(
    layered: Layered, boxes: Sequence[Rectangle], middles: Mapping[Vertex, float], *, leaving: bool
) -> dict[tuple[Vertex, Vertex], float]:
    """Spread the points where arrows leave (or enter) a node, so that they do not pile up."""
    around: dict[Vertex, dict[Vertex, None]] = {}
    for route in layered.routes.values():
        here, there = (route[0], route[1]) if leaving else (route[-1], route[-2])
        around.setdefault(here, {})[there] = None
    ports = {}
    for here, others in around.items():
        box = boxes[here.node]
        room = max(box.breadth - 2 * _PORT_MARGIN, 0.0)
        step = min(_PORT_DISTANCE, room / max(len(others) - 1, 1))
        ordered = sorted(others, key=lambda other: middles[other])
        for place, other in enumerate(ordered):
            ports[here, other] = box.middle + step * (place - (len(ordered) - 1) / 2)
    return ports
