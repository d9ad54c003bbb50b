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

from mutandis.geometry.kernels.bounds import least_distance, measure
from mutandis.geometry.kernels.jit import kernel, part
from mutandis.geometry.kernels.reservoir import (
    BINS,
    HALF,
    LAST,
    LOWER,
    ONE_PERSON,
    PEOPLE,
    SIZE,
    Answers,
    answer,
    bin_of,
    clear,
    edge,
    reservoir_for,
    settle,
    shrink,
)
from mutandis.geometry.kernels.steps import (
    STRETCH,
    Steps,
    collect,
    filled_up,
    largest_sum,
    sum_steps,
)
from mutandis.geometry.kernels.tree import Exact

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.geometry.kernels.bounds import Costs
    from mutandis.geometry.kernels.reservoir import Reservoir
    from mutandis.geometry.kernels.tree import Tree
    from mutandis.mapped import Floats, Ints


# more than float64 can round off a sum of two distances, each at most 2**53
_SLACK = 4.0
# more than float64 can round off two roots, their sum and its square
_ROUNDED_UP = 1.0 + 2.0**-49
# of one type from the start: for literals, numba would compile what they are given to once more
_ZERO: Any = np.int64(0)
_ONE: Any = np.int64(1)
# candidates, in k, from which on those that are too far are thrown out
_FULL = 8
# what can be asked of the tree: see the functions at the end
_NEAREST, _WITHIN, _LIST, _HOME = range(4)


class KernelQueries(NamedTuple):
    """Queries: numbers and codes in one row each, slants, and the bits of the codes.

    `own` is the place of the complainant's own point in the order of the tree, -1 outside the
    space; `oneself` is what the complainant adds to the count there, as `reservoir.py` counts.
    """

    values: Floats
    slants: Floats
    bits: NDArray[np.uint64]
    own: Ints
    oneself: Ints


class Room(NamedTuple):
    """The memory a thread works in: kernels allocate nothing themselves.

    For the points of a leaf, `sums` of steps and which of them may be `near`; nodes that are
    `waiting`, and how far `away` they are at least; the candidates of a query.
    """

    sums: NDArray[np.uint16]
    near: Ints
    waiting: Ints
    away: Floats
    reservoir: Reservoir


class TreeListing(NamedTuple):
    """What is listed: the points, and where each query's begin; for homes, the leaf of each query.

    Points are named by `order`, and each distance is longer by the query's `overflow`.
    """

    order: NDArray[np.int32]
    overflow: Ints
    start: Ints
    points: NDArray[np.int32]
    distances: Ints


def room_in(tree: Tree, k: int) -> Room:
    leaf = int((tree.stop - tree.start)[tree.right < 0].max())
    return Room(
        np.empty(leaf + STRETCH, np.uint16),
        np.empty(STRETCH + 1, np.int64),
        np.empty(len(tree.start), np.int64),
        np.empty(len(tree.start), np.float64),
        reservoir_for(_FULL * k + STRETCH),  # each stretch of a leaf may add all its points
    )


@part
def _next_leaf(
    tree: Tree,
    costs: Costs,
    center: Floats,
    slants: Floats,
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
    """Return a radius that holds k others of this query, from what was found for the one before."""
    if query == 0 or (centers.own[query] >= 0 and centers.own[query - 1] < 0):
        return np.inf
    apart = measure(centers.values, query - 1, centers.values[query], costs)
    if len(costs.squares):
        reach: float = np.sqrt(last_radius) + np.sqrt(apart)
        return reach * reach * _ROUNDED_UP + _SLACK
    return last_radius + apart + _SLACK


@part
def _take_up(
    exact: Exact, centers: KernelQueries, query: int, start: int, found: int, room: Room
) -> None:
    """Measure what a stretch has near, and keep what is in the bins up to the last."""
    center, own, oneself = centers.values[query], centers.own[query], centers.oneself[query]
    reservoir, near, crowd = room.reservoir, room.near, exact.crowd
    (distances, crowds), bins, held = reservoir.candidates, reservoir.bins, reservoir.held
    size, last, people, scale = held[SIZE], held[LAST], held[PEOPLE], reservoir.scale[0]
    for index in range(found):
        place = start + near[index]
        distance = measure(exact.points, place, center, exact.costs)
        others = crowd[place] - oneself * (place == own)
        here = bin_of(distance, scale)
        counts = (here <= last) & (others >= ONE_PERSON)
        # written always and kept if it counts: no branch to guess wrong
        distances[size] = distance
        crowds[size] = others
        bins[here if counts else BINS] += others
        people += others if counts else 0
        size += counts
    held[SIZE], held[PEOPLE] = size, people


@part
def _count_others(
    exact: Exact,
    centers: KernelQueries,
    query: int,
    start: int,
    found: int,
    room: Room,
    radius: float,
    answers: Answers,
) -> None:
    """Add up the others that a stretch has within the radius, and find the farthest of them."""
    center, own, oneself = centers.values[query], centers.own[query], centers.oneself[query]
    people, farthest = np.int64(0), -1.0
    for index in range(found):
        place = start + room.near[index]
        distance = measure(exact.points, place, center, exact.costs)
        others = exact.crowd[place] - oneself * (place == own)
        if distance <= radius and others >= ONE_PERSON:
            people += others
            farthest = max(farthest, distance)
    answers.inside[query, 0] += people >> HALF
    answers.marks_inside[query, 0] += people & LOWER
    answers.radius[query, 0] = max(answers.radius[query, 0], np.int64(farthest))


@part
def _list_points(
    exact: Exact,
    center: Floats,
    query: int,
    start: int,
    found: int,
    room: Room,
    radius: float,
    listing: TreeListing,
) -> None:
    """List the points that a stretch has within the radius, behind those before."""
    points, distances, order = listing.points, listing.distances, listing.order
    last, more = listing.start[query + 1], listing.overflow[query]
    for index in range(found):
        place = start + room.near[index]
        distance = measure(exact.points, place, center, exact.costs)
        # written always and kept if it is near: the one behind the last is spare
        points[last], distances[last] = order[place], np.int64(distance) + more
        last += distance <= radius
    listing.start[query + 1] = last


@kernel
def _search(  # noqa: C901, PLR0912
    task: int,
    tree: Tree,
    steps: Steps,
    exact: Exact,
    centers: KernelQueries,
    limits: Floats,
    ks: Ints,
    room: Room,
    answers: Answers,
    listing: TreeListing,
) -> int:
    """Do one of the tasks for each query, in the order of the tree; count the points examined.

    All of them descend in the same way, and that is most of what has to be compiled: so they are
    one kernel, and what a task does not need is given empty. It has few parts within parts, which
    numba would copy over and over.
    """
    costs, boxes, most = exact.costs, tree.boxes, ks[-1]
    examined: int = _ZERO
    last_radius = np.inf
    for query in range(len(centers.values)):
        center, slants, bits = centers.values[query], centers.slants[query], centers.bits[query]
        radius = limits[query]
        if task == _NEAREST:
            radius = _starting_radius(centers, query, last_radius, costs)
            clear(room.reservoir, radius)
        elif task == _LIST:
            listing.start[query + 1] = listing.start[query]
        room.waiting[0], room.away[0] = 0, 0.0
        depth = _ONE
        while depth:
            leaf, away, depth = _next_leaf(tree, costs, center, slants, bits, radius, room, depth)
            if task == _HOME:
                listing.start[query] = leaf
                break
            if away > radius:
                continue
            start, points = tree.start[leaf], tree.stop[leaf] - tree.start[leaf]
            examined += points
            size = filled_up(points)
            outside, rounding = sum_steps(steps, boxes, leaf, size, costs, center, bits, room.sums)
            for first in range(0, points, STRETCH):
                if away > radius or outside > radius:
                    break  # the radius has shrunk from within this very leaf
                limit = largest_sum(radius - outside, steps.per_unit[leaf], rounding, costs)
                found = collect(room.sums, first, points, limit, room.near)
                if found == 0:
                    continue
                if task == _NEAREST:
                    _take_up(exact, centers, query, start, found, room)
                    if room.reservoir.held[SIZE] >= _FULL * most:
                        settle(room.reservoir, most)
                    shrink(room.reservoir, most)
                    radius = min(radius, edge(room.reservoir))
                elif task == _LIST:
                    _list_points(exact, center, query, start, found, room, radius, listing)
                else:
                    _count_others(exact, centers, query, start, found, room, radius, answers)
        if task == _NEAREST:
            last_radius = answer(room.reservoir, ks, answers, query)
    return examined


# what tasks are given that do not need it
_NUMBERS = np.empty(0, np.float64)
_NO_STEPS = Steps(np.empty(0, np.uint16), np.empty(0, np.int64), _NUMBERS, np.empty(0, np.bool_))
_NO_ANSWERS = Answers(*(np.empty((0, 0), np.int64) for _ in Answers._fields))
_NO_LISTING = TreeListing(
    np.empty(0, np.int32),
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    np.empty(0, np.int32),
    np.empty(0, np.int64),
)
_NO_K = np.ones(1, np.int64)


def homes(tree: Tree, costs: Costs, centers: KernelQueries) -> Ints:
    """Find for each query a leaf that it could lie in: queries of one leaf take the same path."""
    size = len(centers.values)
    exact = Exact(np.empty((0, 0)), np.empty(0, np.int64), costs)
    found = _NO_LISTING._replace(start=np.empty(size, np.int64))
    limits, room = np.full(size, np.inf), room_in(tree, 1)
    _search(_HOME, tree, _NO_STEPS, exact, centers, limits, _NO_K, room, _NO_ANSWERS, found)
    return found.start


def nearest_in_tree(
    tree: Tree, steps: Steps, exact: Exact, centers: KernelQueries, ks: Ints, answers: Answers
) -> int:
    """Answer queries, in the order of the tree, for all ks (rising); count the points examined."""
    room = room_in(tree, int(ks[-1]))
    return _search(
        _NEAREST,
        tree,
        steps,
        exact,
        centers,
        np.full(len(centers.values), np.inf),
        ks,
        room,
        answers,
        _NO_LISTING,
    )


def within_in_tree(
    tree: Tree, steps: Steps, exact: Exact, centers: KernelQueries, limits: Floats, answers: Answers
) -> None:
    """Add up others within each query's limit; the radius becomes that of the farthest."""
    room = room_in(tree, 1)
    _search(_WITHIN, tree, steps, exact, centers, limits, _NO_K, room, answers, _NO_LISTING)


def list_in_tree(
    tree: Tree,
    steps: Steps,
    exact: Exact,
    centers: KernelQueries,
    limits: Floats,
    listing: TreeListing,
) -> None:
    """List the points within each query's limit."""
    room = room_in(tree, 1)
    _search(_LIST, tree, steps, exact, centers, limits, _NO_K, room, _NO_ANSWERS, listing)
