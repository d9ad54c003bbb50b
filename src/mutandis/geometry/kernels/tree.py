"""What the kernels search: points, the tree over them, and the boxes around its nodes.

The tree orders points so that neighbours lie together. The root holds all points. A node with more
than a leaf's worth is split at the median of what keeps its points farthest apart: for a number or
a slant the span of its box, for a nominal attribute the mismatch, if several levels occur. Names
are separated first, as they cost most, and the box of every node then promises the full mismatch.
Nodes are numbered in preorder: the left child of node i is i + 1.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mutandis.geometry.kernels.jit import kernel, part
from mutandis.mapped import empty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.geometry.kernels.bounds import Costs
    from mutandis.mapped import Floats, Ints


# integers up to this are float64, and so are their sums and differences while they stay below it
_EXACT = 2**53
# one child waits per level of the tree; median splits halve, and only names can be lopsided
_WAITING = 4096
# points for which another thread is worth starting
_WORTH_A_THREAD = 10_000
# nodes for which there is room at first
_FEW_NODES = 16
# rows of which NumPy makes a copy at a time
_AT_ONCE = 1 << 16


class Grid(NamedTuple):
    """The points: coordinates, slants and codes, a row each.

    `low` is what coordinates and slants are counted from: the smallest coordinates, and zeros.
    """

    coordinates: Ints
    slants: Ints
    codes: NDArray[np.int32]
    low: Ints


class Exact(NamedTuple):
    """Points as exact floats, row by row in the order of the tree, and the people at each.

    Numbers come first, counted from the smallest, then codes.
    """

    points: Floats
    crowd: Ints
    costs: Costs


class Boxes(NamedTuple):
    """What encloses the points of each node, or of each block: see `bounds.py`.

    `low` and `high` have a column for each number, and behind them one for each slant.
    """

    low: Floats
    high: Floats
    levels: NDArray[np.uint64]


class Tree(NamedTuple):
    """Nodes in preorder; node i holds the places start[i] to stop[i] of the order of points.

    `right` is the number of the right child; -1 for a leaf.
    """

    start: Ints
    stop: Ints
    right: Ints
    boxes: Boxes


def exact_in_floats(coordinates: Ints, mismatch: Ints, *, squared: bool = False) -> bool:
    """Return whether float64 holds every distance among these points exactly.

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


def _room_for_boxes(grid: Grid, size: int) -> Boxes:
    columns, names = len(grid.low), grid.codes.shape[1]
    return Boxes(
        np.empty((size, columns), np.float64),
        np.empty((size, columns), np.float64),
        np.empty((size, names), np.uint64),
    )


@part
def enclose(
    grid: Grid, order: NDArray[np.int32], first: int, stop: int, boxes: Boxes, box: int
) -> None:
    """Write the box of the points at places first…stop, counted from `low`."""
    numbers, slants = grid.coordinates.shape[1], grid.slants.shape[1]
    for column in range(numbers + slants):
        boxes.low[box, column], boxes.high[box, column] = np.inf, -np.inf
    for attribute in range(grid.codes.shape[1]):
        boxes.levels[box, attribute] = 0
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


def boxes_over(grid: Grid, order: NDArray[np.int32], block: int) -> Boxes:
    """Enclose every `block` points in a row."""
    boxes = _room_for_boxes(grid, (len(order) + block - 1) // block)
    _enclose_blocks(grid, order, block, boxes)
    return boxes


@kernel
def _enclose_blocks(grid: Grid, order: NDArray[np.int32], block: int, boxes: Boxes) -> None:
    for box in range(len(boxes.low)):
        enclose(grid, order, box * block, min((box + 1) * block, len(order)), boxes, box)


def exact_rows(grid: Grid, order: NDArray[np.int32]) -> Floats:
    """Lay the points out row by row, in an order: see `Exact`."""
    numbers, names = grid.coordinates.shape[1], grid.codes.shape[1]
    rows = empty((len(order), numbers + names), np.float64)
    for first in range(0, len(order), _AT_ONCE):
        some = order[first : first + _AT_ONCE]
        part_of_rows = rows[first : first + len(some)]
        part_of_rows[:, :numbers] = grid.coordinates.take(some, axis=0) - grid.low[:numbers]
        part_of_rows[:, numbers:] = grid.codes.take(some, axis=0)
    return rows


def grow(
    grid: Grid, mismatch: Floats, order: NDArray[np.int32], *, leaf: int, threads: int = 1
) -> Tree:
    """Arrange `order`, the points' numbers; return the nodes over it, for any number of threads.

    A node with more than `leaf` points is split.
    """
    if threads < 2 or len(order) < max(leaf, _WORTH_A_THREAD):
        growth = _Growth.start(grid, order, nodes=_FEW_NODES)
        while not growth.go_on(grid, mismatch, order, leaf):
            growth = growth.with_more_room()
        return growth.tree()
    root, middle = _split_root(grid, mismatch, order, leaf)
    if middle == len(order):
        return root
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(
            grow, grid, mismatch, order[middle:], leaf=leaf, threads=threads - threads // 2
        )
        left = grow(grid, mismatch, order[:middle], leaf=leaf, threads=threads // 2)
        return _join(root.boxes, left, other.result(), middle)


def _split_root(
    grid: Grid, mismatch: Floats, order: NDArray[np.int32], leaf: int
) -> tuple[Tree, int]:
    """Write the root alone; return it, and how many points come first (all: it is a leaf)."""
    growth = _Growth.start(grid, order, nodes=1)
    is_leaf = growth.go_on(grid, mismatch, order, leaf)
    # of two that wait, the left child is the last
    return growth.tree(), len(order) if is_leaf else int(growth.waiting[1, 1])


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
def _swap(keys: Ints, order: NDArray[np.int32], one: int, other: int) -> None:
    keys[one], keys[other] = keys[other], keys[one]
    order[one], order[other] = order[other], order[one]


@part
def _select_median(
    keys: Ints, order: NDArray[np.int32], first: int, stop: int, middle: int
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


@part
def _part_below(keys: Ints, order: NDArray[np.int32], first: int, stop: int, limit: int) -> int:
    """Put keys below the limit first; return the place where the others begin."""
    boundary = first
    for place in range(first, stop):
        if keys[place] < limit:
            _swap(keys, order, boundary, place)
            boundary += 1
    return boundary


@part
def _part_names(keys: Ints, order: NDArray[np.int32], first: int, stop: int, middle: int) -> int:
    """Split a nominal attribute between two levels, as near to the middle as they allow."""
    level = keys[middle]
    after = _part_below(keys, order, first, stop, level + 1)
    before = _part_below(keys, order, first, after, level)
    if before > first and (after == stop or middle - before <= after - middle):
        return before
    return after


@part
def _split(
    grid: Grid, column: int, order: NDArray[np.int32], keys: Ints, first: int, stop: int
) -> int:
    """Split the points at places first…stop by a column; return the place where the others begin.

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
    """Return the widest of some columns of a box, and its width; -1 if all are of width 0."""
    widest, span = -1, 0.0
    for column in range(first, stop):
        width = boxes.high[box, column] - boxes.low[box, column]
        if width > span:
            widest, span = column, width
    return widest, span


@part
def _widest(
    grid: Grid,
    mismatch: Floats,
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


class _Growth(NamedTuple):
    """A tree that grows: the nodes so far, and what waits to become one.

    `waiting` are stretches of places, with the parent whose right child they are (-1: a left one);
    `progress` is how many of them there are, and how many nodes. `keys` is room to split in.
    """

    nodes: Tree
    keys: Ints
    waiting: Ints
    progress: Ints

    @classmethod
    def start(cls, grid: Grid, order: NDArray[np.int32], *, nodes: int) -> _Growth:
        """Let all points wait; allocate some nodes."""
        starts, stops, rights = (np.empty(nodes, np.int64) for _ in range(3))
        waiting = np.empty((_WAITING, 3), np.int64)
        waiting[0] = 0, len(order), -1
        return cls(
            Tree(starts, stops, rights, _room_for_boxes(grid, nodes)),
            np.empty(len(order), np.int64),
            waiting,
            np.array([1, 0]),
        )

    def go_on(self, grid: Grid, mismatch: Floats, order: NDArray[np.int32], leaf: int) -> bool:
        """Arrange `order` and write nodes; tell whether the tree is whole, or needs more room."""
        _write_nodes(grid, mismatch, order, leaf, *self)
        return not self.progress[0]

    def with_more_room(self) -> _Growth:
        start, stop, right, (low, high, levels) = self.nodes
        boxes = Boxes(_longer(low), _longer(high), _longer(levels))
        return self._replace(nodes=Tree(_longer(start), _longer(stop), _longer(right), boxes))

    def tree(self) -> Tree:
        start, stop, right, (low, high, levels) = self.nodes
        written = slice(self.progress[1])
        boxes = Boxes(low[written].copy(), high[written].copy(), levels[written].copy())
        return Tree(start[written].copy(), stop[written].copy(), right[written].copy(), boxes)


def _longer(values: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([values, np.empty_like(values)])


@kernel
def _write_nodes(
    grid: Grid,
    mismatch: Floats,
    order: NDArray[np.int32],
    leaf: int,
    tree: Tree,
    keys: Ints,
    waiting: Ints,
    progress: Ints,
) -> None:
    """Arrange `order` and write the nodes over it, until all are written or there is no room."""
    depth, node = progress[0], progress[1]
    while depth and node < len(tree.start):
        depth -= 1
        first, last, parent = waiting[depth, 0], waiting[depth, 1], waiting[depth, 2]
        tree.start[node], tree.stop[node], tree.right[node] = first, last, -1
        if parent >= 0:
            tree.right[parent] = node
        enclose(grid, order, first, last, tree.boxes, node)
        widest = -1
        if last - first > leaf and depth + 2 <= _WAITING:
            widest = _widest(grid, mismatch, order, first, last, tree.boxes, node)
        if widest >= 0:
            middle = _split(grid, widest, order, keys, first, last)
            waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = middle, last, node
            depth += 1
            waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = first, middle, -1
            depth += 1
        node += 1
    progress[0], progress[1] = depth, node
