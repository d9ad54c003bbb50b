"""Search by descending the tree: nearer child first, and no node beyond the radius so far.

*Proof of completeness.* Let r be the radius so far: infinite, or a distance within which at least k
others stand. The k-th nearest is then at most r away, and everybody inside or on the final radius
lies within every r on the way. A node is passed over only if `least_distance` is greater than r, so
it holds nobody who counts; a point is passed over only if it is farther than r.

*Warm start.* Queries come in the order of the tree, so the one before is near. Let p be that query,
q this one, s their distance, and let k others of p stand within r of p. By the triangle inequality
they stand within r + s of q. One of them may be q herself, who does not count for herself; but then
p counts for q, if p stands in the space, and is within s. So where q is not in the space, or p is,
r + s is a radius within which k others of q stand. Rounding is no danger: r + s is enlarged by more
than the one unit that float64 could lose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mutandis.similarity.compiled.bounds import least_distance, measure
from mutandis.similarity.compiled.jit import kernel
from mutandis.similarity.compiled.selection import (
    HALF,
    ONE_PERSON,
    Answers,
    answer,
    nearest,
    room_for,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.similarity.compiled.selection import Candidates
    from mutandis.similarity.compiled.tree import Tree

__all__ = ["Centers", "homes", "nearest_in_tree", "within_in_tree"]

# more than float64 can round off a sum of two distances, each at most 2**53
_SLACK = 4.0


class Centers(NamedTuple):
    """Queries: numbers and codes in one row each, the bits of the codes, and her own place.

    `own` is the place of the complainant's own point in the order of the tree, -1 where she is not
    in the space; `herself` is what she adds to the people there, as `selection.py` counts them.
    """

    values: NDArray[np.float64]
    bits: NDArray[np.uint64]
    own: NDArray[np.int64]
    herself: NDArray[np.int64]


@kernel
def homes(tree: Tree, mismatch: NDArray[np.float64], centers: Centers) -> NDArray[np.int64]:
    """Give for each query a leaf that it could lie in: queries of one leaf have the same way."""
    found = np.empty(len(centers.values), np.int64)
    for query in range(len(found)):
        center, bits = centers.values[query], centers.bits[query]
        node = 0
        while tree.right[node] >= 0:
            left, right = node + 1, tree.right[node]
            to_left = least_distance(tree.boxes, left, mismatch, center, bits, np.inf)
            to_right = least_distance(tree.boxes, right, mismatch, center, bits, to_left)
            node = left if to_left <= to_right else right
        found[query] = node
    return found


@kernel
def _measure_leaf(
    block: NDArray[np.float64],
    size: int,
    mismatch: NDArray[np.float64],
    center: NDArray[np.float64],
    distances: NDArray[np.float64],
) -> None:
    """Measure to all points of a leaf, attribute by attribute (vectorised by the compiler)."""
    numbers = len(center) - len(mismatch)
    for point in range(size):
        distances[point] = 0.0
    for number in range(numbers):
        column, value = block[number * size : (number + 1) * size], center[number]
        for point in range(size):
            distances[point] += abs(column[point] - value)
    for attribute in range(len(mismatch)):
        first = (numbers + attribute) * size
        column, value = block[first : first + size], center[numbers + attribute]
        cost = mismatch[attribute]
        for point in range(size):
            distances[point] += cost if column[point] != value else 0.0


@kernel
def _take_up(
    candidates: Candidates,
    size: int,
    distances: NDArray[np.float64],
    first: int,
    points: int,
    crowd: NDArray[np.int64],
    radius: float,
    own: int,
    herself: int,
) -> int:
    """Add the points of a leaf that are within the radius and hold others than herself."""
    for place in range(points):
        # written always and kept if it counts: no branch to guess wrong
        others = crowd[first + place] - herself * (first + place == own)
        candidates.distances[size] = distances[place]
        candidates.people[size] = others
        size += (distances[place] <= radius) & (others >= ONE_PERSON)
    return size


@kernel
def _largest_leaf(tree: Tree) -> int:
    largest = 0
    for node in range(len(tree.start)):
        if tree.right[node] < 0:
            largest = max(largest, tree.stop[node] - tree.start[node])
    return largest


@kernel
def _starting_radius(
    centers: Centers, query: int, last_radius: float, mismatch: NDArray[np.float64]
) -> float:
    """Give a radius that holds k others of this query, by what was found for the one before."""
    if query == 0 or (centers.own[query] >= 0 and centers.own[query - 1] < 0):
        return np.inf
    apart = measure(centers.values[query], centers.values[query - 1], mismatch)
    return last_radius + apart + _SLACK


@kernel
def nearest_in_tree(
    tree: Tree,
    blocks: NDArray[np.float64],
    crowd: NDArray[np.int64],
    mismatch: NDArray[np.float64],
    centers: Centers,
    ks: NDArray[np.int64],
    answers: Answers,
) -> int:
    """Answer queries, which come in the order of the tree, for all ks (rising).

    Returns
    -------
    int
        How many points were looked at, for choosing between backends.
    """
    attributes = centers.values.shape[1]
    leaf, most = _largest_leaf(tree), ks[-1]
    # a candidate stands for one person at least, so that so many are always enough for k
    full = 2 * most
    candidates = room_for(full + leaf + 1)  # each leaf may add all its points
    distances = np.empty(leaf, np.float64)
    waiting = np.empty(len(tree.start), np.int64)
    away = np.empty(len(tree.start), np.float64)
    looked_at = 0
    last_radius = np.inf
    for query in range(len(centers.values)):
        center, bits, own = centers.values[query], centers.bits[query], centers.own[query]
        radius = _starting_radius(centers, query, last_radius, mismatch)
        size = 0
        depth = 1
        waiting[0], away[0] = 0, 0.0
        while depth:
            depth -= 1
            node = waiting[depth]
            here = away[depth]
            while here <= radius and tree.right[node] >= 0:
                nearer, farther = node + 1, tree.right[node]
                here = least_distance(tree.boxes, nearer, mismatch, center, bits, radius)
                there = least_distance(tree.boxes, farther, mismatch, center, bits, radius)
                if there < here:
                    nearer, farther = farther, nearer
                    here, there = there, here
                if there <= radius:
                    waiting[depth], away[depth] = farther, there
                    depth += 1
                node = nearer
            if here > radius:
                continue
            first, points = tree.start[node], tree.stop[node] - tree.start[node]
            looked_at += points
            block = blocks[first * attributes : (first + points) * attributes]
            _measure_leaf(block, points, mismatch, center, distances)
            size = _take_up(
                candidates,
                size,
                distances,
                first,
                points,
                crowd,
                radius,
                own,
                centers.herself[query],
            )
            if size >= full:
                radius, _, _, size = nearest(candidates, size, most)
        last_radius = answer(candidates, size, ks, answers, query)
    return looked_at


@kernel
def within_in_tree(
    tree: Tree,
    blocks: NDArray[np.float64],
    crowd: NDArray[np.int64],
    mismatch: NDArray[np.float64],
    centers: Centers,
    limits: NDArray[np.float64],
    found: NDArray[np.int64],
) -> None:
    """Count others, and the refused among them, within each query's limit, and how far they go.

    `found` has three columns: people, negatives, and the farthest distance (-1: nobody).
    """
    attributes = centers.values.shape[1]
    distances = np.empty(_largest_leaf(tree), np.float64)
    waiting = np.empty(len(tree.start), np.int64)
    for query in range(len(centers.values)):
        center, bits, own = centers.values[query], centers.bits[query], centers.own[query]
        limit = limits[query]
        people, farthest = np.int64(0), -1.0
        waiting[0] = 0
        depth = 1
        while depth:
            depth -= 1
            node = waiting[depth]
            if least_distance(tree.boxes, node, mismatch, center, bits, limit) > limit:
                continue
            if tree.right[node] >= 0:
                waiting[depth], waiting[depth + 1] = tree.right[node], node + 1
                depth += 2
                continue
            first, points = tree.start[node], tree.stop[node] - tree.start[node]
            block = blocks[first * attributes : (first + points) * attributes]
            _measure_leaf(block, points, mismatch, center, distances)
            for place in range(points):
                others = crowd[first + place] - centers.herself[query] * (first + place == own)
                if distances[place] <= limit and others >= ONE_PERSON:
                    people += others
                    farthest = max(farthest, distances[place])
        found[query, 0], found[query, 1] = people >> HALF, people & (ONE_PERSON - 1)
        found[query, 2] = np.int64(farthest)
