"""Slants: sums of all numbers with signs, for tables whose numbers go up and down together.

A box whose sides follow the attributes encloses correlated points badly: most of it is empty. In a
slant, say x1 + x2 - x3, correlated numbers add up, so it tells such points apart like no attribute.

*Proof of the bound.* The slants of x and of q differ by a sum of ±(x_i - q_i), which is no more
than the sum of |x_i - q_i|: no point is nearer than its slant tells. The sums are of integers, and
never larger than the sum of all spans, which float64 holds exactly (`tree.exact_in_floats`).

The signs are those of the principal directions of the points, as far as a few of them hold most of
the variance. Others would do as well for exactness, if not for speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.search.kernels.jit import making_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["choose_signs", "slants_of"]

# so many points show how numbers go together
_SAMPLE = 4096
# the share of the variance that slants must hold, in at most this share of the dimensions
_VARIANCE, _DIMENSIONS = 0.9, 0.6
# with fewer numbers, boxes enclose well enough
_FEWEST = 4


def choose_signs(coordinates: NDArray[np.int64]) -> NDArray[np.int64]:
    """Choose the signs of the slants, a column each; none where numbers do not go together.

    Examples
    --------
    >>> one, other = np.arange(100), np.arange(100) * 37 % 101
    >>> choose_signs(np.stack([one, -one, one, one], axis=1)).shape
    (4, 1)
    >>> choose_signs(np.stack([one, other], axis=1)).shape
    (2, 0)
    """
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


@making_kernel
def slants_of(
    coordinates: NDArray[np.int64], low: NDArray[np.int64], signs: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Give the slants of points, a row each, of numbers that are counted from `low`."""
    numbers, slants = signs.shape
    found = np.zeros((len(coordinates), slants), np.int64)
    for point in range(len(coordinates)):
        for number in range(numbers):
            value = coordinates[point, number] - low[number]
            for slant in range(slants):
                found[point, slant] += value * signs[number, slant]
    return found
