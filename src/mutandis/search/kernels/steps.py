"""The points of a leaf in steps of 16 bits: a filter that is four times narrower than floats.

Within a leaf every number is counted from the lower edge of the leaf's box, in steps that divide
the widest side of the box into thousands; so steps are small where points are dense, however long
the tail of the table. A level becomes the last 16 bits of its code. A leaf is laid out attribute by
attribute, and the compiler compares dozens of points with one instruction.

*Proof of the bound.* Let c be the center, moved into the box, and b how much nearer that brought it
to every point of the box: what c lay outside, and the mismatch of every nominal attribute in which
no point of the box has c's level. This is exact: distance = b + rest. Let s be the steps per unit,
and f(x) = floor(s (x - low)). Floors differ from what they round by less than one, so
|f(x) - f(c)| < s |x - c| + 1 for each number. A nominal attribute in which all points of the box
have c's level adds nothing to the rest; any other adds s m or nothing, of which at most floor(s m)
is counted. With S the sum over attributes and n numbers, S < s rest + n. So a point within a radius
r satisfies S < s (r - b) + n; one is added for the rounding of the products, which is far smaller.
Only points that pass are measured exactly.

*Squares.* Where the distance is a sum of squares, moving the center into the box leaves more than
the rest: (a + b)² is at least a² + b². Each number adds u², with u = |f(x) - f(c)| - 1, or 0 if
that is negative: u is less than s |x - c|. A nominal attribute adds floor(s² m) or nothing. So
S < s² rest. Steps divide a side into fewer parts, so that the sum of their squares has 16 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mutandis.search.kernels.jit import kernel, part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.search.kernels.bounds import Costs
    from mutandis.search.kernels.tree import Boxes, Exact, Tree

__all__ = [
    "MOST_ATTRIBUTES",
    "STRETCH",
    "Steps",
    "collect",
    "largest_sum",
    "sum_steps",
    "take_steps",
]

# the largest sum of steps
_FARTHEST = 65_535

MOST_ATTRIBUTES = _FARTHEST // 255
"""With more attributes a step would be coarser than a byte."""

STRETCH = 64
"""Points whose sums are tested together before any of them is tested alone."""


class Steps(NamedTuple):
    """The points of all leaves in steps: `values` leaf by leaf, within each attribute by attribute.

    `per_unit` is for each node how many steps a unit of distance is; `is_told` is for each nominal
    attribute whether a bit of a mask stands for one level only.
    """

    values: NDArray[np.uint16]
    per_unit: NDArray[np.float64]
    is_told: NDArray[np.bool_]


@part
def _largest_step(attributes: int, costs: Costs) -> float:
    """Give the number of steps into which a side is divided: S has to fit into 16 bits."""
    largest = float(_FARTHEST // attributes)
    return np.floor(np.sqrt(largest)) if len(costs.squares) else largest


@part
def _widest_side(boxes: Boxes, node: int, numbers: int, costs: Costs) -> float:
    """Find the largest difference that one attribute can make within a box."""
    mismatch = costs.mismatch
    widest = 0.0
    for number in range(numbers):
        widest = max(widest, boxes.high[node, number] - boxes.low[node, number])
    for attribute in range(len(mismatch)):
        levels = boxes.levels[node, attribute]
        if levels & (levels - np.uint64(1)) != 0:
            cost = mismatch[attribute]
            widest = max(widest, np.sqrt(cost) if len(costs.squares) else cost)
    return widest


def take_steps(tree: Tree, exact: Exact, is_told: NDArray[np.bool_]) -> Steps:
    """Lay the points out in steps, leaf by leaf."""
    values = np.empty(exact.points.size, np.uint16)
    per_unit = np.ones(len(tree.start), np.float64)
    _write_steps(tree, exact, values, per_unit)
    return Steps(values, per_unit, is_told)


@kernel
def _write_steps(
    tree: Tree, exact: Exact, values: NDArray[np.uint16], per_unit: NDArray[np.float64]
) -> None:
    attributes = exact.points.shape[1]
    numbers = attributes - len(exact.costs.mismatch)
    largest = _largest_step(attributes, exact.costs)
    place = 0
    for node in range(len(tree.start)):
        if tree.right[node] >= 0:
            continue
        side = _widest_side(tree.boxes, node, numbers, exact.costs)
        if side > 0.0:
            per_unit[node] = largest / side
        for attribute in range(attributes):
            is_number = attribute < numbers
            low = tree.boxes.low[node, attribute] if is_number else 0.0
            scale = per_unit[node] if is_number else 1.0
            for point in range(tree.start[node], tree.stop[node]):
                value = (exact.points[point, attribute] - low) * scale
                values[place] = np.uint16(np.int64(value) & _FARTHEST)
                place += 1


@part
def _add_number(
    values: NDArray[np.uint16], first: int, size: int, center: np.uint16, sums: NDArray[np.uint16]
) -> None:
    start = np.uint64(first)
    for point in range(np.uint64(size)):
        there = values[start + point]
        # in 16 bits: wider types would halve the points per instruction
        sums[point] += np.uint16(max(there, center) - min(there, center))


@part
def _add_square(
    values: NDArray[np.uint16], first: int, size: int, center: np.uint16, sums: NDArray[np.uint16]
) -> None:
    start, one = np.uint64(first), np.uint16(1)
    for point in range(np.uint64(size)):
        there = values[start + point]
        apart = np.uint16(max(np.uint16(max(there, center) - min(there, center)), one) - one)
        sums[point] += np.uint16(apart * apart)


@part
def _add_names(
    values: NDArray[np.uint16],
    first: int,
    size: int,
    center: np.uint16,
    cost: np.uint16,
    sums: NDArray[np.uint16],
) -> None:
    start = np.uint64(first)
    for point in range(np.uint64(size)):
        sums[point] += cost if values[start + point] != center else np.uint16(0)


@part
def sum_steps(
    steps: Steps,
    boxes: Boxes,
    leaf: int,
    start: int,
    size: int,
    costs: Costs,
    center: NDArray[np.float64],
    bits: NDArray[np.uint64],
    sums: NDArray[np.uint16],
) -> float:
    """Compute S for every point of a leaf, which begins at place `start`; give b."""
    mismatch, attributes = costs.mismatch, len(center)
    numbers = attributes - len(mismatch)
    first = start * attributes
    scale = steps.per_unit[leaf]
    largest = float(_FARTHEST // attributes)
    per_cost = scale * scale if len(costs.squares) else scale
    outside = 0.0
    for point in range(np.uint64(size)):
        sums[point] = 0
    for number in range(numbers):
        low = boxes.low[leaf, number]
        inside = min(max(center[number], low), boxes.high[leaf, number])
        beyond = abs(center[number] - inside)
        place, step = first + number * size, np.uint16((inside - low) * scale)
        if len(costs.squares):
            outside += beyond * beyond
            _add_square(steps.values, place, size, step, sums)
        else:
            outside += beyond
            _add_number(steps.values, place, size, step, sums)
    for attribute in range(len(mismatch)):
        levels, bit = boxes.levels[leaf, attribute], bits[attribute]
        if levels & bit == 0:
            outside += mismatch[attribute]  # all differ
            continue
        if levels == bit and steps.is_told[attribute]:
            continue  # none does
        code = np.uint16(np.int64(center[numbers + attribute]) & _FARTHEST)
        cost = np.uint16(min(mismatch[attribute] * per_cost, largest))
        _add_names(steps.values, first + (numbers + attribute) * size, size, code, cost, sums)
    return outside


@part
def largest_sum(rest: float, per_unit: float, numbers: int, costs: Costs) -> np.uint16:
    """Bound the S of a point within a radius that leaves `rest` beyond the box."""
    if len(costs.squares):
        most = rest * per_unit * per_unit + 1.0
    else:
        most = rest * per_unit + (numbers + 1)
    return np.uint16(most) if most < _FARTHEST else np.uint16(_FARTHEST)


@part
def collect(
    sums: NDArray[np.uint16], first: int, stop: int, limit: np.uint16, near: NDArray[np.int64]
) -> int:
    """List which of a stretch of points have an S within the limit, and count them."""
    hit = np.uint16(0)
    for point in range(np.uint64(first), np.uint64(stop)):
        hit = np.uint16(hit | np.uint16(sums[point] <= limit))
    found = 0
    if hit:
        for point in range(np.uint64(first), np.uint64(stop)):
            # written always and kept if it counts: no branch to guess wrong
            near[found] = point
            found += sums[point] <= limit
    return found
