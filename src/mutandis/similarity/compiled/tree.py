"""Points put into an order in which neighbours lie together, and the nodes over that order.

The root holds all points. A node with more than a leaf's worth is split at the median of the
attribute in which its points are farthest apart: for a number the span of its box, for a nominal
attribute the mismatch, if several levels occur. So names are told apart first, as they cost most,
and the box of every node then promises the full mismatch. Nodes are numbered in preorder: the left
child of node i is i + 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mutandis.similarity.compiled.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Boxes", "Grid", "Tree", "boxes_over", "exact_in_floats", "grow", "leaf_blocks"]

# integers up to this are float64, and so are their sums and differences while they stay below it
_EXACT = 2**53
# a child waits for each level of the tree, and a median split halves: names alone can be lopsided
_WAITING = 4096


class Grid(NamedTuple):
    """The points: coordinates and codes, a row each, and the smallest coordinates to count from."""

    coordinates: NDArray[np.int64]
    codes: NDArray[np.int32]
    low: NDArray[np.int64]


class Boxes(NamedTuple):
    """What encloses the points of each node, or of each block: see `bounds.py`."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    levels: NDArray[np.uint64]


class Tree(NamedTuple):
    """Nodes in preorder; node i holds the places start[i] to stop[i] of the order of points.

    `right` is the number of the right child; -1 for a leaf.
    """

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    right: NDArray[np.int64]
    boxes: Boxes


def exact_in_floats(coordinates: NDArray[np.int64], mismatch: NDArray[np.int64]) -> bool:
    """Tell whether float64 holds every distance among these points exactly.

    Coordinates are counted from the smallest, and a center is moved into the span of the points
    (all distances from it shrink by the same integer, which is added again at the end). Then every
    difference, and every sum of differences and mismatches in any order, is an integer between 0
    and the sum of all spans and mismatches. If that is at most 2**53, none of them is ever rounded.

    Examples
    --------
    >>> exact_in_floats(np.array([[0], [2**52]]), np.array([2**52]))
    True
    >>> exact_in_floats(np.array([[0], [2**53]]), np.array([1]))
    False
    """
    spans = [int(column.max()) - int(column.min()) for column in coordinates.T]
    return bool(sum(spans) + sum(mismatch.tolist()) <= _EXACT)


@kernel
def _select_median(
    values: NDArray[np.integer], order: NDArray[np.int32], first: int, stop: int, middle: int
) -> None:
    """Arrange places first…stop so that values do not fall from before `middle` to behind it."""
    left, right = first, stop - 1
    while left < right:
        one, two = values[order[left]], values[order[(left + right) // 2]]
        three = values[order[right]]
        pivot = max(min(one, two), min(max(one, two), three))
        i, j = left, right
        while i <= j:
            while values[order[i]] < pivot:
                i += 1
            while values[order[j]] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@kernel
def _part_below(
    values: NDArray[np.integer], order: NDArray[np.int32], first: int, stop: int, limit: int
) -> int:
    """Put values below the limit first; give the place where the others begin."""
    boundary = first
    for place in range(first, stop):
        if values[order[place]] < limit:
            order[boundary], order[place] = order[place], order[boundary]
            boundary += 1
    return boundary


@kernel
def _part_names(
    values: NDArray[np.integer], order: NDArray[np.int32], first: int, stop: int, middle: int
) -> int:
    """Part a nominal attribute between two levels, as near to the middle as they allow."""
    level = values[order[middle]]
    after = _part_below(values, order, first, stop, level + 1)
    before = _part_below(values, order, first, after, level)
    if before > first and (after == stop or middle - before <= after - middle):
        return before
    return after


@kernel
def _enclose(
    grid: Grid,
    order: NDArray[np.int32],
    first: int,
    stop: int,
    boxes: Boxes,
    box: int,
) -> None:
    """Write the box of the points at places first…stop, counted from `low`."""
    for number in range(len(grid.low)):
        column = grid.coordinates[:, number]
        least = most = column[order[first]]
        for place in range(first, stop):
            value = column[order[place]]
            least, most = min(least, value), max(most, value)
        boxes.low[box, number] = least - grid.low[number]
        boxes.high[box, number] = most - grid.low[number]
    for attribute in range(grid.codes.shape[1]):
        names = grid.codes[:, attribute]
        levels = np.uint64(0)
        for place in range(first, stop):
            levels |= np.uint64(1) << np.uint64(names[order[place]] & 63)
        boxes.levels[box, attribute] = levels


@kernel
def _widest(
    codes: NDArray[np.int32],
    mismatch: NDArray[np.float64],
    order: NDArray[np.int32],
    first: int,
    stop: int,
    boxes: Boxes,
    box: int,
) -> int:
    """Choose the attribute that keeps the points of a box farthest apart; -1 if all are equal."""
    widest, span = -1, 0.0
    numbers = boxes.low.shape[1]
    for number in range(numbers):
        width = boxes.high[box, number] - boxes.low[box, number]
        if width > span:
            widest, span = number, width
    for attribute in range(codes.shape[1]):
        if mismatch[attribute] < span or mismatch[attribute] == 0.0:
            continue
        column = codes[:, attribute]
        level = column[order[first]]
        for place in range(first + 1, stop):
            if column[order[place]] != level:
                widest, span = numbers + attribute, mismatch[attribute]
                break
    return widest


@kernel
def _room_for_boxes(size: int, numbers: int, names: int) -> Boxes:
    return Boxes(
        np.empty((size, numbers), np.float64),
        np.empty((size, numbers), np.float64),
        np.empty((size, names), np.uint64),
    )


@kernel
def _longer(values: NDArray[np.int64]) -> NDArray[np.int64]:
    longer = np.empty(2 * len(values), values.dtype)
    longer[: len(values)] = values
    return longer


@kernel
def _more_boxes(boxes: Boxes) -> Boxes:
    more = _room_for_boxes(2 * len(boxes.low), boxes.low.shape[1], boxes.levels.shape[1])
    more.low[: len(boxes.low)] = boxes.low
    more.high[: len(boxes.low)] = boxes.high
    more.levels[: len(boxes.low)] = boxes.levels
    return more


@kernel
def grow(
    grid: Grid,
    mismatch: NDArray[np.float64],
    order: NDArray[np.int32],
    leaf: int,
) -> Tree:
    """Arrange `order` and give the nodes over it.

    Parameters
    ----------
    grid
        The points.
    mismatch
        What a difference in each nominal attribute costs.
    order
        The points' numbers, in any order.
    leaf
        How many points a node may hold without being split.
    """
    size = 16
    start, stop = np.empty(size, np.int64), np.empty(size, np.int64)
    right = np.empty(size, np.int64)
    boxes = _room_for_boxes(size, len(grid.low), grid.codes.shape[1])
    # stretches that wait for a number of their own, with the parent whose right child they are
    waiting = np.empty((_WAITING, 3), np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, len(order), -1
    depth, nodes = 1, 0
    while depth:
        depth -= 1
        first, last, parent = waiting[depth, 0], waiting[depth, 1], waiting[depth, 2]
        node = nodes
        nodes += 1
        if nodes > size:
            start, stop, right = _longer(start), _longer(stop), _longer(right)
            boxes = _more_boxes(boxes)
            size *= 2
        start[node], stop[node], right[node] = first, last, -1
        if parent >= 0:
            right[parent] = node
        _enclose(grid, order, first, last, boxes, node)
        if last - first <= leaf or depth + 2 > _WAITING:
            continue
        widest = _widest(grid.codes, mismatch, order, first, last, boxes, node)
        if widest < 0:
            continue
        middle = (first + last) // 2
        if widest < len(grid.low):
            _select_median(grid.coordinates[:, widest], order, first, last, middle)
        else:
            names = grid.codes[:, widest - len(grid.low)]
            _select_median(names, order, first, last, middle)
            middle = _part_names(names, order, first, last, middle)
        waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = middle, last, node
        depth += 1
        waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = first, middle, -1
        depth += 1
    return Tree(
        start[:nodes].copy(),
        stop[:nodes].copy(),
        right[:nodes].copy(),
        Boxes(boxes.low[:nodes].copy(), boxes.high[:nodes].copy(), boxes.levels[:nodes].copy()),
    )


@kernel
def boxes_over(
    grid: Grid,
    order: NDArray[np.int32],
    block: int,
) -> Boxes:
    """Enclose every `block` points in a row."""
    blocks = (len(order) + block - 1) // block
    boxes = _room_for_boxes(blocks, len(grid.low), grid.codes.shape[1])
    for box in range(blocks):
        stop = min((box + 1) * block, len(order))
        _enclose(grid, order, box * block, stop, boxes, box)
    return boxes


@kernel
def leaf_blocks(
    grid: Grid,
    order: NDArray[np.int32],
    tree: Tree,
) -> NDArray[np.float64]:
    """Lay the points out leaf by leaf, in each of them attribute by attribute.

    Then the points of a leaf are measured many at a time, by vector instructions, and lie in one
    stretch of memory.
    """
    attributes = len(grid.low) + grid.codes.shape[1]
    laid_out = np.empty(len(order) * attributes, np.float64)
    place = 0
    for node in range(len(tree.start)):
        if tree.right[node] >= 0:
            continue
        points = order[tree.start[node] : tree.stop[node]]
        for number in range(len(grid.low)):
            for point in points:
                laid_out[place] = grid.coordinates[point, number] - grid.low[number]
                place += 1
        for attribute in range(grid.codes.shape[1]):
            for point in points:
                laid_out[place] = grid.codes[point, attribute]
                place += 1
    return laid_out
