"""What the kernels search: points, the tree over them, and the boxes around its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mutandis.search.kernels.jit import kernel, making_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Boxes",
    "Exact",
    "Grid",
    "Tree",
    "boxes_over",
    "enclose",
    "exact_in_floats",
    "exact_rows",
    "room_for_boxes",
]

# integers up to this are float64, and so are their sums and differences while they stay below it
_EXACT = 2**53


class Grid(NamedTuple):
    """The points: coordinates, slants and codes, a row each.

    `low` is what coordinates and slants are counted from: the smallest coordinates, and zeros.
    """

    coordinates: NDArray[np.int64]
    slants: NDArray[np.int64]
    codes: NDArray[np.int32]
    low: NDArray[np.int64]


class Exact(NamedTuple):
    """Points as exact floats, row by row in the order of the tree, and who stands there.

    Numbers come first, counted from the smallest, then codes.
    """

    points: NDArray[np.float64]
    crowd: NDArray[np.int64]
    mismatch: NDArray[np.float64]


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


@making_kernel
def room_for_boxes(size: int, columns: int, names: int) -> Boxes:
    """Make room for so many boxes."""
    return Boxes(
        np.empty((size, columns), np.float64),
        np.empty((size, columns), np.float64),
        np.empty((size, names), np.uint64),
    )


@kernel
def enclose(
    grid: Grid,
    order: NDArray[np.int32],
    first: int,
    stop: int,
    boxes: Boxes,
    box: int,
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
def boxes_over(
    grid: Grid,
    order: NDArray[np.int32],
    block: int,
) -> Boxes:
    """Enclose every `block` points in a row."""
    blocks = (len(order) + block - 1) // block
    boxes = room_for_boxes(blocks, len(grid.low), grid.codes.shape[1])
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
