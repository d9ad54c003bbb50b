"""Recognise columns whose values lie on a regular grid.

Grades, ages, prices in cents: most columns hold multiples of some step, and there distances tie
all the time. In float64 such ties break at random (3.3 - 3.2 is not 3.2 - 3.1). Once the number of
steps between the smallest and the largest value is known, every value is an integer, and equal
distances are equal.

The search for the step looks at the values alone, scaled to [0, 1]; it does not depend on the
unit, on the order of the rows, or on how many decimals somebody printed.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST_STEPS", "find_steps", "float_noise", "simplest_between"]

MOST_STEPS = 2**40
"""A grid finer than this is no grid: such columns are quantised instead."""

# rounding may move a value by so much of a step at most; beyond, "on the grid" means nothing
_RECOGNISABLE = 1 / 16


def float_noise(values: NDArray[np.float64], scale: float) -> float:
    """Bound what rounding to float64 can do to (values - origin) / scale.

    Each value is off by half a unit in its last place, and so is every one of the operations.
    """
    largest = float(np.max(np.abs(values), initial=0.0))
    return 2 * float(np.finfo(np.float64).eps) * (1 + largest / scale)


def find_steps(positions: NDArray[np.float64], *, noise: float) -> int | None:
    """Find the smallest q for which every position times q is an integer.

    Each round takes one value that is off the grid so far and refines the grid by the smallest
    factor that puts it on. Every factor is at least 2, so there are at most 40 rounds.

    Parameters
    ----------
    positions
        Values scaled so that 1.0 is a whole number of steps.
    noise
        How far rounding may have moved a position.

    Returns
    -------
    int or None
        The number of steps per 1.0; None if there is no grid of at most 2**40 steps.

    Examples
    --------
    >>> import numpy as np
    >>> find_steps(np.array([0.0, 0.3, 0.5, 1.0]), noise=1e-15)
    10
    >>> find_steps(np.random.default_rng(0).random(100), noise=1e-15) is None
    True
    """
    steps = 1
    while True:
        scaled = positions * steps
        slack = noise * steps
        off = np.abs(scaled - np.rint(scaled)) > slack
        if not off.any():
            return steps
        # the smallest value that is off, not the first: row order must not matter
        offender = float(positions[off].min()) * steps
        part = offender - floor(offender)
        factor = simplest_between(
            Fraction(part) - Fraction(slack), Fraction(part) + Fraction(slack)
        )
        steps *= factor.denominator
        if steps > MOST_STEPS or noise * steps > _RECOGNISABLE:
            return None


def simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Find the fraction with the smallest denominator in [low, high], by continued fractions.

    Examples
    --------
    >>> simplest_between(Fraction("0.33"), Fraction("0.34"))
    Fraction(1, 3)
    """
    whole = floor(low)
    if low == whole:
        return Fraction(whole)
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / simplest_between(1 / (high - whole), 1 / (low - whole))
