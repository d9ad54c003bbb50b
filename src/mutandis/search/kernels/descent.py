"""Search by descending the tree: nearer child first, and no node beyond the radius so far.

*Proof of completeness.* Let r be the radius so far: infinite, or a distance within which there are
at least k others. The k-th nearest is then at most r away, and every row inside or on the final
radius lies within every r on the way. A node is passed over only if `least_distance` is greater
than r, so it holds no row that counts; a point is passed over only if it is farther than r, by the
bound of `steps.py` or by its distance. How the radius shrinks is in `reservoir.py`.

*Warm start.* Queries come in the order of the tree, so the one before is near. Let p be that query,
q this one, s their distance, and let k others of p lie within r of p. By the triangle inequality
they lie within r + s of q. One of them may be q itself, which does not count for itself; but then p
counts for q, if p is in the space, and is within s. So where q is not in the space, or p is, r + s
is a radius within which there are k others of q. Rounding does no harm: r + s is enlarged by more
than the one unit that float64 could lose. Sums of squares are compared by their roots, for which
the inequality holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mutandis.search.kernels.bounds import least_distance, measure
from mutandis.search.kernels.jit import kernel, part
from mutandis.search.kernels.reservoir import (
    BINS,
    answer,
    bin_of,
    clear,
    edge,
    reservoir_for,
    scale_for,
    settle,
    shrink,
)
from mutandis.search.kernels.selection import HALF, LOWER, ONE_PERSON
from mutandis.search.kernels.steps import STRETCH, collect, largest_sum, sum_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.search.kernels.bounds import Costs
    from mutandis.search.kernels.reservoir import Reservoir
    from mutandis.search.kernels.selection import Answers
    from mutandis.search.kernels.steps import Steps
    from mutandis.search.kernels.tree import Exact, Tree

__all__ = [
    "KernelQueries",
    "Room",
    "homes",
    "list_in_tree",
    "nearest_in_tree",
    "room_in",
    "within_in_tree",
]

# more than float64 can round off a sum of two distances, each at most 2**53
_SLACK = 4.0
# more than float64 can round off two roots, their sum and its square
_ROUNDED_UP = 1.0 + 2.0**-49
# of one type from the start: for literals, numba would compile what they are given to once more
_ZERO: Any = np.int64(0)
_ONE: Any = np.int64(1)
_LAST_BIN: Any = np.int64(BINS - 1)
# candidates, in k, from which on those that are too far are thrown out
_FULL = 8


class KernelQueries(NamedTuple):
    """Queries: numbers and codes in one row each, slants, and the bits of the codes.

    `own` is the place of the complainant's own point in the order of the tree, -1 where she is not
    in the space; `herself` is what she adds to the count there, as `selection.py` counts.
    """

    values: NDArray[np.float64]
    slants: NDArray[np.float64]
    bits: NDArray[np.uint64]
    own: NDArray[np.int64]
    herself: NDArray[np.int64]


class Room(NamedTuple):
    """The memory a thread works in: kernels allocate nothing themselves.

    For the points of a leaf, `sums` of steps and which of them may be `near`; nodes that are
    `waiting`, and how far `away` they are at least; the candidates of a query.
    """

    sums: NDArray[np.uint16]
    near: NDArray[np.int64]
    waiting: NDArray[np.int64]
    away: NDArray[np.float64]
    reservoir: Reservoir


def room_in(tree: Tree, k: int) -> Room:
    leaf = int((tree.stop - tree.start)[tree.right < 0].max())
    return Room(
        np.empty(leaf, np.uint16),
        np.empty(leaf + 1, np.int64),
        np.empty(len(tree.start), np.int64),
        np.empty(len(tree.start), np.float64),
        reservoir_for(_FULL * k + STRETCH),  # each stretch of a leaf may add all its points
    )


@kernel
def homes(tree: Tree, costs: Costs, centers: KernelQueries, found: NDArray[np.int64]) -> None:
    """Find for each query a leaf that it could lie in: queries of one leaf take the same path."""
    for query in range(len(found)):
        center, slants, bits = centers.values[query], centers.slants[query], centers.bits[query]
        node = 0
        while tree.right[node] >= 0:
            left, right = node + 1, tree.right[node]
            to_left = least_distance(tree.boxes, left, costs, center, slants, bits, np.inf)
            to_right = least_distance(tree.boxes, right, costs, center, slants, bits, to_left)
            node = left if to_left <= to_right else right
        found[query] = node


@part
def _next_leaf(
    tree: Tree,
    costs: Costs,
    center: NDArray[np.float64],
    slants: NDArray[np.float64],
    bits: NDArray[np.uint64],
    radius: float,
    room: Room,
    depth: int,
) -> tuple[int, float, int]:
    """Go down from the node that was put off last, always to the nearer child.

    The result is the leaf, how far away it is at least (if beyond the radius, it is not a leaf),
    and how many nodes are waiting now.
    """
    depth -= 1
    node, here = room.waiting[depth], room.away[depth]
    while here <= radius and tree.right[node] >= 0:
        nearer, farther = node + 1, tree.right[node]
        here = least_distance(tree.boxes, nearer, costs, center, slants, bits, radius)
        there = least_distance(tree.boxes, farther, costs, center, slants, bits, radius)
        if there < here:
            nearer, farther = farther, nearer
            here, there = there, here
        if there <= radius:
            room.waiting[depth], room.away[depth] = farther, there
            depth += 1
        node = nearer
    return node, here, depth


@part
def _starting_radius(centers: KernelQueries, query: int, last_radius: float, costs: Costs) -> float:
    """Give a radius that holds k others of this query, from what was found for the one before."""
    if query == 0 or (centers.own[query] >= 0 and centers.own[query - 1] < 0):
        return np.inf
    apart = measure(centers.values, query - 1, centers.values[query], costs)
    if len(costs.squares):
        reach: float = np.sqrt(last_radius) + np.sqrt(apart)
        return reach * reach * _ROUNDED_UP + _SLACK
    return last_radius + apart + _SLACK


@part
def _take_up(
    exact: Exact,
    centers: KernelQueries,
    query: int,
    start: int,
    found: int,
    room: Room,
    size: int,
    scale: float,
    last: int,
    people: np.int64,
) -> tuple[int, np.int64]:
    """Measure what a stretch has near, and keep what is in the bins up to the last."""
    center, own, herself = centers.values[query], centers.own[query], centers.herself[query]
    candidates, bins = room.reservoir.candidates, room.reservoir.bins
    for index in range(found):
        place = start + room.near[index]
        distance = measure(exact.points, place, center, exact.costs)
        others = exact.crowd[place] - herself * (place == own)
        here = bin_of(distance, scale)
        counts = (here <= last) & (others >= ONE_PERSON)
        # written always and kept if it counts: no branch to guess wrong
        candidates.distances[size] = distance
        candidates.people[size] = others
        bins[here if counts else BINS] += others
        people += others if counts else 0
        size += counts
    return size, people


@kernel
def nearest_in_tree(
    tree: Tree,
    steps: Steps,
    exact: Exact,
    centers: KernelQueries,
    ks: NDArray[np.int64],
    room: Room,
    answers: Answers,
) -> int:
    """Answer queries, in the order of the tree, for all ks (rising); count the points examined."""
    costs, reservoir, most = exact.costs, room.reservoir, ks[-1]
    numbers = centers.values.shape[1] - len(costs.mismatch)
    # a candidate stands for at least one row, so that this many are always enough for k
    full = _FULL * most
    looked_at = 0
    last_radius = np.inf
    for query in range(len(centers.values)):
        center, slants, bits = centers.values[query], centers.slants[query], centers.bits[query]
        radius = _starting_radius(centers, query, last_radius, costs)
        scale, last, size, people = scale_for(radius), _LAST_BIN, _ZERO, _ZERO
        clear(reservoir.bins)
        room.waiting[0], room.away[0] = 0, 0.0
        depth = _ONE
        while depth:
            leaf, away, depth = _next_leaf(tree, costs, center, slants, bits, radius, room, depth)
            if away > radius:
                continue
            start, points = tree.start[leaf], tree.stop[leaf] - tree.start[leaf]
            looked_at += points
            outside = sum_steps(
                steps, tree.boxes, leaf, start, points, costs, center, bits, room.sums
            )
            for first in range(0, points, STRETCH):
                if outside > radius:
                    break  # the radius has shrunk from within this very leaf
                limit = largest_sum(radius - outside, steps.per_unit[leaf], numbers, costs)
                stop = min(first + STRETCH, points)
                found = collect(room.sums, first, stop, limit, room.near)
                if found == 0:
                    continue
                size, people = _take_up(
                    exact, centers, query, start, found, room, size, scale, last, people
                )
                if size >= full:
                    size, scale, last, people = settle(reservoir, size, most)
                else:
                    last, people = shrink(reservoir.bins, last, people, most)
                radius = min(radius, edge(last, scale))
        last_radius = answer(reservoir, size, scale, last, people, ks, answers, query)
    return looked_at


@part
def _next_near(
    tree: Tree,
    steps: Steps,
    exact: Exact,
    centers: KernelQueries,
    query: int,
    radius: float,
    room: Room,
    depth: int,
) -> tuple[int, int, int]:
    """Collect what the next leaf may have within the radius.

    The result is where the leaf starts, how many points are collected, and how many nodes wait.
    """
    costs = exact.costs
    center, slants, bits = centers.values[query], centers.slants[query], centers.bits[query]
    leaf, away, depth = _next_leaf(tree, costs, center, slants, bits, radius, room, depth)
    start, points = tree.start[leaf], tree.stop[leaf] - tree.start[leaf]
    if away > radius:
        return start, 0, depth
    outside = sum_steps(steps, tree.boxes, leaf, start, points, costs, center, bits, room.sums)
    numbers = centers.values.shape[1] - len(costs.mismatch)
    most = largest_sum(radius - outside, steps.per_unit[leaf], numbers, costs)
    return start, collect(room.sums, 0, points, most, room.near), depth


@kernel
def within_in_tree(
    tree: Tree,
    steps: Steps,
    exact: Exact,
    centers: KernelQueries,
    limits: NDArray[np.float64],
    room: Room,
    found: NDArray[np.int64],
) -> None:
    """Count others within each query's limit.

    `found` has three columns: people, negatives, and the farthest distance (-1: none).
    """
    for query in range(len(centers.values)):
        center = centers.values[query]
        radius = limits[query]
        people, farthest = np.int64(0), -1.0
        room.waiting[0], room.away[0] = 0, 0.0
        depth = _ONE
        while depth:
            start, size, depth = _next_near(tree, steps, exact, centers, query, radius, room, depth)
            for index in range(size):
                place = start + room.near[index]
                distance = measure(exact.points, place, center, exact.costs)
                others = exact.crowd[place] - centers.herself[query] * (place == centers.own[query])
                if distance <= radius and others >= ONE_PERSON:
                    people += others
                    farthest = max(farthest, distance)
        found[query, 0], found[query, 1] = people >> HALF, people & LOWER
        found[query, 2] = np.int64(farthest)


@kernel
def list_in_tree(
    tree: Tree,
    steps: Steps,
    exact: Exact,
    centers: KernelQueries,
    limits: NDArray[np.float64],
    room: Room,
    order: NDArray[np.int32],
    overflow: NDArray[np.int64],
    start: NDArray[np.int64],
    points: NDArray[np.int32],
    distances: NDArray[np.int64],
) -> None:
    """List the points within each query's limit, and where each query's begin in `start`.

    Points are named by `order`, and each distance is longer by the query's `overflow`.
    """
    last = 0
    for query in range(len(centers.values)):
        center = centers.values[query]
        radius, more = limits[query], overflow[query]
        room.waiting[0], room.away[0] = 0, 0.0
        depth = _ONE
        while depth:
            first, size, depth = _next_near(tree, steps, exact, centers, query, radius, room, depth)
            for index in range(size):
                place = first + room.near[index]
                distance = measure(exact.points, place, center, exact.costs)
                # written always and kept if it is near: the one behind the last is spare
                points[last], distances[last] = order[place], np.int64(distance) + more
                last += distance <= radius
        start[query + 1] = last
