"""How near a box of points can be, at best; and how far apart two points are.

The box of a node holds, for every number and every slant (`slants.py`), the smallest and the
largest value among its points, and for every nominal attribute a 64-bit mask of their levels.

*Proof that the bound holds.* Let x be a point of the node and q a center. In a number, x lies
between `low` and `high`, so |x - q| is at least what q lies outside of them. In a nominal
attribute, the bit of x's level is set; if the bit of q's level is not, the levels differ, and the
whole mismatch is due (a one-hot coordinate could only promise half of it). Levels that share a bit,
where there are more than 64, can only make the bound smaller. The sum of what each attribute
contributes at least is a bound. What q's slant lies outside of a box is another one of what all
numbers together contribute, and the larger of the two is taken for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.search.kernels.jit import summing_part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.search.kernels.tree import Boxes

__all__ = ["least_distance", "level_bits", "measure"]


@summing_part
def least_distance(
    boxes: Boxes,
    box: int,
    mismatch: NDArray[np.float64],
    center: NDArray[np.float64],
    slants: NDArray[np.float64],
    bits: NDArray[np.uint64],
    enough: float,
) -> float:
    """Give a distance that no point in the box falls below.

    Names come first: they cost most, and as soon as they alone exceed `enough`, nobody wants to
    know by how much.
    """
    total = 0.0
    for attribute in range(len(mismatch)):
        if boxes.levels[box, attribute] & bits[attribute] == 0:
            total += mismatch[attribute]
    if total > enough:
        return total
    numbers = len(center) - len(mismatch)
    outside = 0.0
    for number in range(numbers):
        value = center[number]
        outside += max(boxes.low[box, number] - value, value - boxes.high[box, number], 0.0)
    for slant in range(len(slants)):
        value, column = slants[slant], numbers + slant
        outside = max(outside, boxes.low[box, column] - value, value - boxes.high[box, column])
    return total + outside


@summing_part
def measure(
    points: NDArray[np.float64],
    place: int,
    center: NDArray[np.float64],
    mismatch: NDArray[np.float64],
) -> float:
    """Give the distance of the point at a place: numbers come first, then codes."""
    # unsigned: numba counts negative ones from the end, and has to look at each for that
    row, numbers = np.uint64(place), np.uint64(len(center) - len(mismatch))
    total = 0.0
    for number in range(numbers):
        total += abs(points[row, number] - center[number])
    for attribute in range(np.uint64(len(mismatch))):
        code = numbers + attribute
        total += mismatch[attribute] if points[row, code] != center[code] else 0.0
    return total


def level_bits(codes: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Give the bit that stands for each level.

    Examples
    --------
    >>> level_bits(np.array([0, 3, 64], dtype=np.int32)).tolist()
    [1, 8, 1]
    """
    return np.left_shift(np.uint64(1), (codes & 63).astype(np.uint64))
