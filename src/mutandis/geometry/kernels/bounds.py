"""How near a box of points can be, at best; and how far apart two points are.

The box of a node holds, for every number and every slant, the smallest and the
largest value among its points, and for every nominal attribute a 64-bit mask of their levels.

*Proof that the bound holds.* Let x be a point of the node and q a center. In a number, x lies
between `low` and `high`, so |x - q| is at least what q lies outside of them. In a nominal
attribute, the bit of x's level is set; if the bit of q's level is not, the levels differ, and the
whole mismatch is due (a one-hot coordinate could only promise half of it). Levels that share a bit,
where there are more than 64, can only make the bound smaller. The sum of what each attribute
contributes at least is a bound. What q's slant lies outside of a box is another one of what all
numbers together contribute, and the larger of the two is taken for them.

*Slants* are sums of all numbers with signs, for tables whose numbers go up and down together. A box
whose sides follow the attributes encloses correlated points badly: most of it is empty. In a slant,
say x1 + x2 - x3, correlated numbers add up, so it separates such points better than any attribute.

*Proof of the bound.* The slants of x and of q differ by a sum of ±(x_i - q_i), which is no more
than the sum of |x_i - q_i|: no point is nearer than its slant tells. The sums are of integers, and
never larger than the sum of all spans, which float64 holds exactly (`tree.exact_in_floats`).

*Squares.* Where the distance is the root of a sum of squares, all sums are of squares, ranked as
their roots are. What q lies outside of a box is squared number by number. A slant differs by at
most the sum of n numbers' |x_i - q_i|, the square of which is at most n times the sum of their
squares (Cauchy–Schwarz); it is made smaller by more than what rounding can add.

The signs are those of the principal directions of the points, as far as a few of them hold most of
the variance. Others would do as well for exactness, if not for speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mutandis.geometry.kernels.jit import summing_part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.geometry.kernels.tree import Boxes
    from mutandis.mapped import Floats, Ints


# rows of which NumPy makes a copy at a time
_AT_ONCE = 1 << 16
# points that show how numbers go together
_SAMPLE = 4096
# the share of the variance that slants must hold, in at most this share of the dimensions
_VARIANCE, _DIMENSIONS = 0.9, 0.6
# with fewer numbers, boxes enclose well enough
_FEWEST = 4


# less than 1 by more than the rounding of a square and a quotient
_ROUNDED_DOWN = 1.0 - 2.0**-50


class Costs(NamedTuple):
    """What a difference in each nominal attribute costs, and whether numbers are squared.

    `squares` is empty, or holds one number where a distance is a sum of squares. The length of a
    tuple is a part of its type: each of the two is compiled by itself, and only when it is used.
    """

    mismatch: Floats
    squares: tuple[()] | tuple[int]


@summing_part
def least_distance(
    boxes: Boxes,
    box: int,
    costs: Costs,
    center: Floats,
    slants: Floats,
    bits: NDArray[np.uint64],
    enough: float,
) -> float:
    """Return a distance that no point in the box falls below.

    Names come first: they cost most, and as soon as they alone exceed `enough`, the rest does not
    matter.
    """
    total = 0.0
    for attribute in range(len(costs.mismatch)):
        if boxes.levels[box, attribute] & bits[attribute] == 0:
            total += costs.mismatch[attribute]
    if total > enough:
        return total
    numbers = len(center) - len(costs.mismatch)
    outside = 0.0
    for number in range(numbers):
        value = center[number]
        beyond = max(boxes.low[box, number] - value, value - boxes.high[box, number], 0.0)
        outside += beyond * beyond if len(costs.squares) else beyond
    for slant in range(len(slants)):
        value, column = slants[slant], numbers + slant
        beyond = max(boxes.low[box, column] - value, value - boxes.high[box, column], 0.0)
        if len(costs.squares):
            beyond = beyond * beyond / numbers * _ROUNDED_DOWN
        outside = max(outside, beyond)
    return total + outside


@summing_part
def measure(points: Floats, place: int, center: Floats, costs: Costs) -> float:
    """Return the distance of the point at a place: numbers come first, then codes."""
    mismatch = costs.mismatch
    # unsigned: numba counts negative ones from the end, and has to look at each for that
    row, numbers = np.uint64(place), np.uint64(len(center) - len(mismatch))
    total = 0.0
    for number in range(numbers):
        apart = points[row, number] - center[number]
        total += apart * apart if len(costs.squares) else abs(apart)
    for attribute in range(np.uint64(len(mismatch))):
        code = numbers + attribute
        total += mismatch[attribute] if points[row, code] != center[code] else 0.0
    return total


def level_bits(codes: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Return the bit that stands for each level."""
    return np.left_shift(np.uint64(1), (codes & 63).astype(np.uint64))


def choose_signs(coordinates: Ints) -> Ints:
    """Choose the signs of the slants, a column each; none where numbers do not go together."""
    size, numbers = coordinates.shape
    none = np.empty((numbers, 0), dtype=np.int64)
    if numbers < _FEWEST or size < 2:
        return none
    sample = coordinates[:: max(1, size // _SAMPLE)].astype(np.float64)
    sample -= sample.mean(axis=0)
    variances, directions = np.linalg.eigh(sample.T @ sample)
    if variances.sum() <= 0:
        return none
    shares = np.cumsum(variances[::-1]) / variances.sum()
    needed = int(np.searchsorted(shares, _VARIANCE)) + 1
    if needed > _DIMENSIONS * numbers:
        return none
    signs = np.where(directions[:, ::-1][:, :needed] < 0, -1, 1)
    # a slant and its mirror image tell the same
    return np.unique(signs * signs[0], axis=1).astype(np.int64)


def slants_of(coordinates: Ints, low: Ints, signs: Ints) -> Ints:
    """Return the slants of points, a row each, of numbers that are counted from `low`."""
    found = np.empty((len(coordinates), signs.shape[1]), np.int64)
    if found.size:
        for first in range(0, len(found), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            np.matmul(coordinates[some] - low, signs, out=found[some])
    return found
