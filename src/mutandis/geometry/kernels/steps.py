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

*Sides shorter than a step.* All points of the box have the center's step there, so that such a
number adds nothing to S. It is passed over, and n counts the others.

*Squares.* Where the distance is a sum of squares, moving the center towards the box leaves more
than the rest: (a + b)² is at least a² + b². So it is moved no farther than to the edge of a margin
around the box, as wide as its widest side, and b is what it lay beyond that. S is the sum of
(f(x) - f(c))², and of floor(s² m) for each name that differs. The middle of a step is at most 1/2
away from what is rounded down to the step: so f(x) + 1/2 is at most sqrt(n) / 2 away from
s (x - low), as points in n dimensions. How far f(c) + 1/2 is from s (c - low) is measured: e. By
the triangle inequality, the root of S is at most s sqrt(rest) + sqrt(n) / 2 + e; one is added to
its square, for the rounding of products and roots.

Steps are so few that the square of a difference has 16 bits. A sum that has more stays at the
largest number of 16 bits: a smaller limit excludes it rightly, and that limit excludes no point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mutandis.geometry.kernels.jit import kernel, part
from mutandis.mapped import empty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.geometry.kernels.bounds import Costs
    from mutandis.geometry.kernels.tree import Boxes, Exact, Tree
    from mutandis.mapped import Bools, Floats, Ints


# the largest sum of steps
_FARTHEST = 65_535
# steps of the widest side where they are squared, and of the margin around it: twice as many have
# a square of 16 bits
_SQUARED_STEPS = 127.0

MOST_ATTRIBUTES = _FARTHEST // 255
"""With more attributes a step would be coarser than a byte."""

STRETCH = 64
"""Points whose sums are tested together before any of them is tested alone."""


class Steps(NamedTuple):
    """The points of all leaves in steps: `values` leaf by leaf, within each attribute by attribute.

    A leaf is filled up to whole stretches; `first` is for each node where its values begin.
    `per_unit` is for each node how many steps a unit of distance is; `is_told` is for each nominal
    attribute whether a bit of a mask stands for one level only.
    """

    values: NDArray[np.uint16]
    first: Ints
    per_unit: Floats
    is_told: Bools


@part
def _largest_step(attributes: int, costs: Costs) -> float:
    """Return the number of steps into which a side is divided: S has to fit into 16 bits."""
    return _SQUARED_STEPS if len(costs.squares) else float(_FARTHEST // attributes)


@part
def _margin(costs: Costs) -> float:
    """Return the steps around the box in which a center is left where it is."""
    return _SQUARED_STEPS if len(costs.squares) else 0.0


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


@part
def filled_up(points: int) -> int:
    """Return the points of whole stretches: vector units take the last ones as quickly as all."""
    return (points + (STRETCH - 1)) // STRETCH * STRETCH


def take_steps(tree: Tree, exact: Exact, is_told: Bools) -> Steps:
    """Lay the points out in steps, leaf by leaf."""
    stretches = np.where(tree.right < 0, -(-(tree.stop - tree.start) // STRETCH), 0)
    ends = np.cumsum(stretches * STRETCH * exact.points.shape[1])
    values = empty(int(ends[-1]), np.uint16)
    first = np.concatenate([[0], ends[:-1]])
    per_unit = np.ones(len(tree.start), np.float64)
    _write_steps(tree, exact, values, first, per_unit)
    return Steps(values, first, per_unit, is_told)


@kernel
def _write_steps(
    tree: Tree, exact: Exact, values: NDArray[np.uint16], first: Ints, per_unit: Floats
) -> None:
    attributes = exact.points.shape[1]
    numbers = attributes - len(exact.costs.mismatch)
    largest, margin = _largest_step(attributes, exact.costs), _margin(exact.costs)
    for node in range(len(tree.start)):
        if tree.right[node] >= 0:
            continue
        side = _widest_side(tree.boxes, node, numbers, exact.costs)
        if side > 0.0:
            per_unit[node] = largest / side
        start, size = tree.start[node], tree.stop[node] - tree.start[node]
        for attribute in range(attributes):
            is_number = attribute < numbers
            low = tree.boxes.low[node, attribute] if is_number else 0.0
            scale = per_unit[node] if is_number else 1.0
            more = margin if is_number else 0.0
            place = first[node] + attribute * filled_up(size)
            for point in range(size):
                value = (exact.points[start + point, attribute] - low) * scale + more
                values[place + point] = np.uint16(np.int64(value) & _FARTHEST)


@part
def _add(one: np.uint16, other: np.uint16) -> np.uint16:
    """Add up to the largest number of 16 bits, in a form that compilers have an instruction for."""
    total = np.uint16(one + other)
    return total if total >= one else np.uint16(_FARTHEST)


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
    start = np.uint64(first)
    for point in range(np.uint64(size)):
        # a negative difference wraps around, and its square does so again
        apart = np.uint16(values[start + point] - center)
        sums[point] = _add(sums[point], np.uint16(apart * apart))


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
        more = cost if values[start + point] != center else np.uint16(0)
        sums[point] = _add(sums[point], more)


@part
def sum_steps(
    steps: Steps,
    boxes: Boxes,
    leaf: int,
    size: int,
    costs: Costs,
    center: Floats,
    bits: NDArray[np.uint64],
    sums: NDArray[np.uint16],
) -> tuple[float, float]:
    """Compute S for every point of a leaf, of which `size` is filled up.

    The result is b, and how much rounding can add to S, or to its root.
    """
    mismatch, attributes = costs.mismatch, len(center)
    numbers = attributes - len(mismatch)
    first = steps.first[leaf]
    scale = steps.per_unit[leaf]
    per_cost = scale * scale if len(costs.squares) else scale
    margin = _margin(costs)
    around = np.floor(margin / scale)  # whole, so that b is exact
    outside, squared_error, told = 0.0, 0.0, 0
    for point in range(np.uint64(size)):
        sums[point] = 0
    for number in range(numbers):
        low, high = boxes.low[leaf, number], boxes.high[leaf, number]
        is_told = (high - low) * scale >= 1.0
        room = around if is_told else 0.0
        inside = min(max(center[number], low - room), high + room)
        beyond = abs(center[number] - inside)
        outside += beyond * beyond if len(costs.squares) else beyond
        if not is_told:
            continue
        told += 1
        value = (inside - low) * scale + margin
        place, step = first + number * size, np.uint16(value)
        if len(costs.squares):
            off = value - step - 0.5
            squared_error += off * off
            _add_square(steps.values, place, size, step, sums)
        else:
            _add_number(steps.values, place, size, step, sums)
    for attribute in range(len(mismatch)):
        levels, bit = boxes.levels[leaf, attribute], bits[attribute]
        if levels & bit == 0:
            outside += mismatch[attribute]  # all differ
            continue
        if levels == bit and steps.is_told[attribute]:
            continue  # none does
        code = np.uint16(np.int64(center[numbers + attribute]) & _FARTHEST)
        cost = np.uint16(min(mismatch[attribute] * per_cost, float(_FARTHEST)))
        _add_names(steps.values, first + (numbers + attribute) * size, size, code, cost, sums)
    return outside, _rounding(told, squared_error, costs)


@part
def _rounding(numbers: int, squared_error: float, costs: Costs) -> float:
    """Bound what rounding adds to S, or to its root: `squared_error` is e²."""
    if len(costs.squares):
        root: float = np.sqrt(numbers) / 2 + np.sqrt(squared_error)
        return root
    return float(numbers)


@part
def largest_sum(rest: float, per_unit: float, rounding: float, costs: Costs) -> np.uint16:
    """Bound the S of a point within a radius that leaves `rest` beyond the box."""
    if len(costs.squares):
        root = np.sqrt(rest) * per_unit + rounding
        most = root * root + 1.0
    else:
        most = rest * per_unit + (rounding + 1.0)
    return np.uint16(most) if most < _FARTHEST else np.uint16(_FARTHEST)


@part
def collect(sums: NDArray[np.uint16], first: int, points: int, limit: np.uint16, near: Ints) -> int:
    """List which points of a stretch have an S within the limit, and count them."""
    hit = np.uint16(0)
    start = np.uint64(first)
    for point in range(np.uint64(STRETCH)):
        hit = np.uint16(hit | np.uint16(sums[start + point] <= limit))
    found = 0
    if hit:
        for point in range(start, start + np.uint64(STRETCH)):
            # written always and kept if it counts: no branch to guess wrong
            near[found] = point
            found += sums[point] <= limit
    while found and near[found - 1] >= points:  # what fills up the last stretch
        found -= 1
    return found
