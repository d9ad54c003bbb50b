"""What the kernels search: points, the tree over them, and the boxes around its nodes.

The tree orders points so that neighbours lie together. The root holds all points. A node with more
than a leaf's worth is split at the median of what keeps its points farthest apart: for a number or
a slant the span of its box, for a nominal attribute the mismatch, if several levels occur. Names
are separated first, as they cost most, and the box of every node then promises the full mismatch.
Nodes are numbered in preorder: the left child of node i is i + 1.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from mutandis.search.kernels.jit import kernel, making_kernel, part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.search.kernels.bounds import Costs

__all__ = [
    "Boxes",
    "Exact",
    "Grid",
    "Tree",
    "boxes_over",
    "enclose",
    "exact_in_floats",
    "exact_rows",
    "grow",
]

_T = TypeVar("_T", bound=np.generic)

# integers up to this are float64, and so are their sums and differences while they stay below it
_EXACT = 2**53
# one child waits per level of the tree; median splits halve, and only names can be lopsided
_WAITING = 4096
# points for which another thread is worth starting
_WORTH_A_THREAD = 10_000


class Grid(NamedTuple):
    """The points: coordinates, slants and codes, a row each.

    `low` is what coordinates and slants are counted from: the smallest coordinates, and zeros.
    """

    coordinates: NDArray[np.int64]
    slants: NDArray[np.int64]
    codes: NDArray[np.int32]
    low: NDArray[np.int64]


class Exact(NamedTuple):
    """Points as exact floats, row by row in the order of the tree, and the people at each.

    Numbers come first, counted from the smallest, then codes.
    """

    points: NDArray[np.float64]
    crowd: NDArray[np.int64]
    costs: Costs


class Boxes(NamedTuple):
    """What encloses the points of each node, or of each block: see `bounds.py`.

    `low` and `high` have a column for each number, and behind them one for each slant.
    """

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


def exact_in_floats(
    coordinates: NDArray[np.int64], mismatch: NDArray[np.int64], *, squared: bool = False
) -> bool:
    """Tell whether float64 holds every distance among these points exactly.

    Coordinates are counted from the smallest, and a center is moved into the span of the points
    (all distances from it shrink by the same integer, which is added again at the end). Then every
    difference, and every sum of differences and mismatches in any order, is an integer between 0
    and the sum of all spans and mismatches. If that is at most 2**53, none of them is ever rounded.
    So are sums of squares, if that of all spans is; centers stay where they are, and those from
    which a sum could be larger are not for kernels (`choose.py`).
    """
    spans = [int(column.max()) - int(column.min()) for column in coordinates.T]
    total = sum(span * span for span in spans) if squared else sum(spans)
    return bool(total + sum(mismatch.tolist()) <= _EXACT)


@making_kernel
def _room_for_boxes(size: int, columns: int, names: int) -> Boxes:
    return Boxes(
        np.empty((size, columns), np.float64),
        np.empty((size, columns), np.float64),
        np.empty((size, names), np.uint64),
    )


@kernel
def enclose(
    grid: Grid, order: NDArray[np.int32], first: int, stop: int, boxes: Boxes, box: int
) -> None:
    """Write the box of the points at places first…stop, counted from `low`."""
    numbers, slants = grid.coordinates.shape[1], grid.slants.shape[1]
    boxes.low[box], boxes.high[box], boxes.levels[box] = np.inf, -np.inf, 0
    for place in range(first, stop):
        point = order[place]
        for number in range(numbers):
            value = float(grid.coordinates[point, number] - grid.low[number])
            boxes.low[box, number] = min(boxes.low[box, number], value)
            boxes.high[box, number] = max(boxes.high[box, number], value)
        for slant in range(slants):
            value = float(grid.slants[point, slant])
            boxes.low[box, numbers + slant] = min(boxes.low[box, numbers + slant], value)
            boxes.high[box, numbers + slant] = max(boxes.high[box, numbers + slant], value)
        for attribute in range(grid.codes.shape[1]):
            level = np.uint64(1) << np.uint64(grid.codes[point, attribute] & 63)
            boxes.levels[box, attribute] |= level


@making_kernel
def boxes_over(grid: Grid, order: NDArray[np.int32], block: int) -> Boxes:
    """Enclose every `block` points in a row."""
    blocks = (len(order) + block - 1) // block
    boxes = _room_for_boxes(blocks, len(grid.low), grid.codes.shape[1])
    for box in range(blocks):
        stop = min((box + 1) * block, len(order))
        enclose(grid, order, box * block, stop, boxes, box)
    return boxes


@making_kernel
def exact_rows(grid: Grid, order: NDArray[np.int32]) -> NDArray[np.float64]:
    """Lay the points out row by row, in an order: see `Exact`."""
    numbers, names = grid.coordinates.shape[1], grid.codes.shape[1]
    rows = np.empty((len(order), numbers + names), np.float64)
    for place in range(len(order)):
        point = order[place]
        for number in range(numbers):
            rows[place, number] = grid.coordinates[point, number] - grid.low[number]
        for attribute in range(names):
            rows[place, numbers + attribute] = grid.codes[point, attribute]
    return rows


def grow(
    grid: Grid,
    mismatch: NDArray[np.float64],
    order: NDArray[np.int32],
    *,
    leaf: int,
    threads: int = 1,
) -> Tree:
    """Arrange `order`, the points' numbers, and give the nodes over it, for any number of threads.

    A node with more than `leaf` points is split.
    """
    if threads < 2 or len(order) < max(leaf, _WORTH_A_THREAD):
        return _grow(grid, mismatch, order, leaf)
    root, middle = _split_root(grid, mismatch, order)
    if middle == 0:
        return _grow(grid, mismatch, order, leaf)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(
            grow, grid, mismatch, order[middle:], leaf=leaf, threads=threads - threads // 2
        )
        left = grow(grid, mismatch, order[:middle], leaf=leaf, threads=threads // 2)
        return _join(root, left, other.result(), middle)


def _join(root: Boxes, left: Tree, right: Tree, middle: int) -> Tree:
    """Put two trees under a root; the left one holds `middle` points."""
    before = 1 + len(left.start)
    boxes = zip(root, left.boxes, right.boxes, strict=True)
    return Tree(
        np.concatenate([[0], left.start, right.start + middle]),
        np.concatenate([[middle + right.stop[0]], left.stop, right.stop + middle]),
        np.concatenate(
            [
                [before],
                np.where(left.right < 0, -1, left.right + 1),
                np.where(right.right < 0, -1, right.right + before),
            ]
        ),
        Boxes(*(np.concatenate(parts) for parts in boxes)),
    )


@part
def _swap(keys: NDArray[np.int64], order: NDArray[np.int32], one: int, other: int) -> None:
    keys[one], keys[other] = keys[other], keys[one]
    order[one], order[other] = order[other], order[one]


@kernel
def _select_median(
    keys: NDArray[np.int64], order: NDArray[np.int32], first: int, stop: int, middle: int
) -> None:
    """Arrange places first…stop so that keys do not fall from before `middle` to behind it."""
    left, right = first, stop - 1
    while left < right:
        one, two, three = keys[left], keys[(left + right) // 2], keys[right]
        pivot = max(min(one, two), min(max(one, two), three))
        i, j = left, right
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                _swap(keys, order, i, j)
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
    keys: NDArray[np.int64], order: NDArray[np.int32], first: int, stop: int, limit: int
) -> int:
    """Put keys below the limit first; give the place where the others begin."""
    boundary = first
    for place in range(first, stop):
        if keys[place] < limit:
            _swap(keys, order, boundary, place)
            boundary += 1
    return boundary


@kernel
def _part_names(
    keys: NDArray[np.int64], order: NDArray[np.int32], first: int, stop: int, middle: int
) -> int:
    """Split a nominal attribute between two levels, as near to the middle as they allow."""
    level = keys[middle]
    after = _part_below(keys, order, first, stop, level + 1)
    before = _part_below(keys, order, first, after, level)
    if before > first and (after == stop or middle - before <= after - middle):
        return before
    return after


@kernel
def _split(
    grid: Grid,
    column: int,
    order: NDArray[np.int32],
    keys: NDArray[np.int64],
    first: int,
    stop: int,
) -> int:
    """Split the points at places first…stop by a column; give the place where the others begin.

    `keys` holds the values of the column side by side: rows of a table are far apart.
    """
    numbers, columns = grid.coordinates.shape[1], len(grid.low)
    for place in range(first, stop):
        point = order[place]
        if column < numbers:
            keys[place] = grid.coordinates[point, column]
        elif column < columns:
            keys[place] = grid.slants[point, column - numbers]
        else:
            keys[place] = grid.codes[point, column - columns]
    middle = (first + stop) // 2
    _select_median(keys, order, first, stop, middle)
    if column < columns:
        return middle
    return _part_names(keys, order, first, stop, middle)


@part
def _widest_column(boxes: Boxes, box: int, first: int, stop: int) -> tuple[int, float]:
    """Give the widest of some columns of a box, and its width; -1 if all are of width 0."""
    widest, span = -1, 0.0
    for column in range(first, stop):
        width = boxes.high[box, column] - boxes.low[box, column]
        if width > span:
            widest, span = column, width
    return widest, span


@kernel
def _widest(
    grid: Grid,
    mismatch: NDArray[np.float64],
    order: NDArray[np.int32],
    first: int,
    stop: int,
    boxes: Boxes,
    box: int,
) -> int:
    """Choose what keeps the points of a box farthest apart; -1 if all are equal.

    The result is a column: numbers come first, then slants, then nominal attributes. Names are
    compared with numbers, and slants are considered only where numbers win: a slant is wider than
    all of them, but names that are split first are never searched again.
    """
    numbers, columns = grid.coordinates.shape[1], len(grid.low)
    widest, span = _widest_column(boxes, box, 0, numbers)
    for attribute in range(grid.codes.shape[1]):
        if mismatch[attribute] < span or mismatch[attribute] == 0.0:
            continue
        names = grid.codes[:, attribute]
        level = names[order[first]]
        for place in range(first + 1, stop):
            if names[order[place]] != level:
                widest, span = columns + attribute, mismatch[attribute]
                break
    if widest < numbers:
        slant, wide = _widest_column(boxes, box, numbers, columns)
        if wide > span:
            widest = slant
    return widest


@making_kernel
def _longer(values: NDArray[_T]) -> NDArray[_T]:
    return np.concatenate((values, np.empty_like(values)))


@making_kernel
def _split_root(
    grid: Grid, mismatch: NDArray[np.float64], order: NDArray[np.int32]
) -> tuple[Boxes, int]:
    """Enclose all points and split them; give the box, and how many come first (0: none)."""
    box = _room_for_boxes(1, len(grid.low), grid.codes.shape[1])
    enclose(grid, order, 0, len(order), box, 0)
    widest = _widest(grid, mismatch, order, 0, len(order), box, 0)
    if widest < 0:
        return box, 0
    return box, _split(grid, widest, order, np.empty(len(order), np.int64), 0, len(order))


@making_kernel
def _grow(grid: Grid, mismatch: NDArray[np.float64], order: NDArray[np.int32], leaf: int) -> Tree:
    """Arrange `order` and give the nodes over it, in one thread."""
    size = 16
    start, stop = np.empty(size, np.int64), np.empty(size, np.int64)
    right = np.empty(size, np.int64)
    boxes = _room_for_boxes(size, len(grid.low), grid.codes.shape[1])
    keys = np.empty(len(order), np.int64)
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
            boxes = Boxes(_longer(boxes.low), _longer(boxes.high), _longer(boxes.levels))
            size *= 2
        start[node], stop[node], right[node] = first, last, -1
        if parent >= 0:
            right[parent] = node
        enclose(grid, order, first, last, boxes, node)
        if last - first <= leaf or depth + 2 > _WAITING:
            continue
        widest = _widest(grid, mismatch, order, first, last, boxes, node)
        if widest < 0:
            continue
        middle = _split(grid, widest, order, keys, first, last)
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
