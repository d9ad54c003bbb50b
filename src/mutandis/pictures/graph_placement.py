"""Layered graphs, second half: where each node stands, and which way each arrow takes.

Everything is computed along the arrows (forward) and across them; a picture that runs to the right
and one that runs downwards differ only in which of the two is x.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from mutandis.pictures.graph_ordering import Layered, Vertex, arrange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Box", "Layout", "Spacing", "lay_out"]

Edge = tuple[int, int]
Point = tuple[float, float]

_ROUNDS = 60
# Straightness matters most where an arrow passes other nodes. But a strong pull between waypoints
# holds them back from where they belong, so it comes in only when they have got there.
_PULLS = ({0: 1.0, 1: 1.0, 2: 1.0}, {0: 1.0, 1: 2.0, 2: 12.0})
_PORT_DISTANCE = 11.0
_PORT_MARGIN = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spacing:
    """How far things stay apart."""

    across: float = 22.0
    """Between nodes of a layer."""
    lane: float = 16.0
    """Between an arrow that passes a layer and its neighbours there."""
    forward: float = 64.0
    """Between layers, at least; more where arrows have far to go across."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle: its corner nearest to the origin, and its size, forward and across."""

    forward: float
    across: float
    length: float
    breadth: float

    @property
    def middle(self) -> float:
        """Its middle, across."""
        return self.across + self.breadth / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where everything is.

    Parameters
    ----------
    boxes
        The rectangle of each node.
    routes
        For each arrow its corner points, forward and across. Pieces alternate between straight
        runs past a layer and passages between layers, and begin and end with a straight run.
    length, breadth
        The size of the whole.
    """

    boxes: tuple[Box, ...]
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
    """Place nodes of given sizes (forward, across) and lead the arrows between them.

    Parameters
    ----------
    sizes
        The size of each node.
    edges
        The arrows, and the strand each belongs to (see `arrange`).
    layers
        The layer of each node.
    spacing
        How far things stay apart.

    Examples
    --------
    >>> layout = lay_out([(60, 30), (60, 30)], {(0, 1): 0}, layers=[0, 1], spacing=Spacing())
    >>> [(box.forward, box.across) for box in layout.boxes]
    [(0.0, 0.0), (124.0, 0.0)]
    >>> layout.routes[0, 1]
    ((60.0, 15.0), (60.0, 15.0), (124.0, 15.0), (124.0, 15.0))
    """
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
        boxes.append(Box(forward=corner, across=across, length=length, breadth=breadth))
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
    """Move every vertex towards the mean of its neighbours, as far as its row leaves room.

    Row by row this minimises the sum of pull · (difference of places)² over all pieces of arrows,
    subject to the distances within rows: with all other rows given, the best places of a row are
    those of an isotonic regression.
    """
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
                shifted = [
                    (place - offsets[vertex], pull)
                    for vertex, (place, pull) in zip(row, wanted, strict=True)
                ]
                for vertex, place in zip(row, _ascending(shifted), strict=True):
                    middles[vertex] = place + offsets[vertex]
    first = min((middles[vertex] - breadths[vertex] / 2 for vertex in middles), default=0.0)
    return {vertex: place - first for vertex, place in middles.items()}


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
    """Say where the neighbours pull a vertex, and how strongly."""
    if not around:
        return middles[vertex], 1e-3
    pull = sum(strength for _, strength in around)
    return sum(middles[other] * strength for other, strength in around) / pull, pull


def _ascending(wanted: Sequence[tuple[float, float]]) -> list[float]:
    """Give the ascending numbers nearest to those wanted, by weight (pool adjacent violators)."""
    pools: list[tuple[float, float, int]] = []
    for number, pull in wanted:
        mean, weight, size = number, pull, 1
        while pools and pools[-1][0] > mean:
            before, heavy, many = pools.pop()
            mean = (mean * weight + before * heavy) / (weight + heavy)
            weight, size = weight + heavy, size + many
        pools.append((mean, weight, size))
    return [mean for mean, _, size in pools for _ in range(size)]


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
    boxes: Sequence[Box],
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
    layered: Layered, boxes: Sequence[Box], middles: Mapping[Vertex, float], *, leaving: bool
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
