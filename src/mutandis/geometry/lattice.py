"""Recognise columns whose values lie on a regular grid.

Grades, ages, prices in cents: most columns hold multiples of some step, and there distances tie
all the time. In float64 such ties break at random (3.3 - 3.2 is not 3.2 - 3.1). Once the number of
steps between the smallest and the largest value is known, every value is an integer, and equal
distances are equal.

There are two ways to find a grid. Coarse grids are found from the positions in [0, 1] alone,
whatever the unit (thirds, z-scores of grades). Fine grids (prices in cents up to a million) are too
fine for that: rounding hides which of many fractions was meant. There the values must be decimals
to the last bit. Neither way depends on the order of the rows, or on a power of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor, frexp
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.mapped import Bools, Floats, Ints

MOST_STEPS = 2**40
"""A finer grid does not count as one: such columns are quantised instead."""

FINE_STEPS = 2**28
"""A grid finer than this is kept only where the common unit is exact: rounded steps would add up to
more than 2**-24 of the range."""

# two fractions with denominators up to q differ by 1/q² or more: while noise stays this far below
# that, a value that meets a fraction within noise hardly does so by chance
_SIMPLE = 2.0**-12

# the share of the distinct values that must lie on a grid, for the others to be strays
_MAJORITY = 0.75

_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lattice:
    """A grid of equal steps from `low` to `high`, on which the values of a column lie."""

    low: float
    high: float
    steps: int
    noise: float  # how far rounding can have moved a value, as a part of the way from low to high
    strays: int = 0  # distinct values off the grid: a mean filled in for missing values, a cut-off


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A way to read floats: as numerators of some bits over a power of ten, times one of two."""

    # some bits shorter than the floats: no float meets such a fraction by chance, and rounding
    # moves a value by a small part of a step only
    bits: int
    places: int
    precision: type[np.floating]
    noise: float


# Decimals as they were typed; decimals that were stored as float32 on the way; and what the bits
# say, for whole numbers so large that float64 holds them but no fraction of them.
_DECIMAL = _Reading(bits=45, places=19, precision=np.float64, noise=_EPSILON / 2)
_SINGLE = _Reading(bits=17, places=7, precision=np.float32, noise=2.0**-24)
_BINARY = _Reading(bits=53, places=0, precision=np.float64, noise=0.0)


def float_noise(largest: float, scale: float, *, epsilon: float = _EPSILON) -> float:
    """Bound what rounding does to (value - origin) / scale; `epsilon` is relative to `largest`."""
    return 4 * (_EPSILON + epsilon * largest / scale)


def find_lattice(values: Floats) -> Lattice | None:
    """Find the coarsest grid of at most 2**40 steps that holds three quarters of the values."""
    distinct = np.unique(values)
    low, high = float(distinct[0]), float(distinct[-1])
    noise = float_noise(_largest(distinct), high - low)
    steps = find_steps((distinct - low) / (high - low), noise=noise)
    if steps is not None:
        return Lattice(low=low, high=high, steps=steps, noise=noise)
    readings = [_DECIMAL, _BINARY]
    if np.array_equal(_scaled(distinct).astype(np.float32), _scaled(distinct)):
        readings.append(_SINGLE)
    return min(
        (lattice for reading in readings for lattice in _read(distinct, reading)),
        # a grid that can always be kept is preferred, then one that leaves few values off
        key=lambda lattice: (lattice.steps > FINE_STEPS, lattice.strays, lattice.steps),
        default=None,
    )


def find_steps(positions: Floats, *, noise: float) -> int | None:
    """Find the smallest q for which all positions times q are integers; None if noise hides it."""
    # each round refines the grid by the smallest factor, 2 or more, that puts one more value on it
    steps = 1
    while noise * steps**2 <= _SIMPLE:
        scaled = positions * steps
        slack = noise * steps
        off = np.abs(scaled - np.rint(scaled)) > slack
        if not off.any():
            return steps
        # the smallest value that is off, not the first: row order must not matter
        offender = float(scaled[off].min())
        part = offender - floor(offender)
        factor = simplest_between(
            Fraction(part) - Fraction(slack), Fraction(part) + Fraction(slack)
        )
        steps *= factor.denominator
    return None


def _read(distinct: Floats, reading: _Reading) -> Iterator[Lattice]:
    """Read sorted values as decimals with ever more places, until all of them are."""
    scaled = _scaled(distinct)
    # a part of the values is enough to see that most readings do not fit
    some = scaled[:: max(1, len(scaled) // 256)]
    for places in range(reading.places + 1):
        if np.mean(_numerators(some, reading, places)[1]) < _MAJORITY / 2:
            continue
        numerators, fits = _numerators(scaled, reading, places)
        lattice = _spanned(distinct[fits], numerators[fits], distinct, reading)
        if lattice is not None:
            yield lattice
            if not lattice.strays:
                return


def _numerators(scaled: Floats, reading: _Reading, places: int) -> tuple[Ints, Bools]:
    """Return numerators over 5**places (twos are free), and which values are such fractions."""
    five = 5**places
    shift = reading.bits - (five - 1).bit_length()
    numerators = np.rint(np.ldexp(scaled * five, shift))
    # a quotient is rounded correctly, so this is the float that stands for the fraction
    fractions = np.ldexp(numerators / five, -shift).astype(reading.precision)
    return numerators.astype(np.int64), np.asarray(fractions == scaled, dtype=np.bool_)


def _spanned(
    members: Floats, numerators: Ints, distinct: Floats, reading: _Reading
) -> Lattice | None:
    """Return the grid that the members span, if it is one for the column."""
    if len(members) < max(2, _MAJORITY * len(distinct)):
        return None
    low, high = float(members[0]), float(members[-1])
    if float(distinct[-1] - distinct[0]) > 2 * (high - low):
        return None  # strays so far out would be out of reach
    offsets = numerators - numerators[0]
    steps = int(offsets[-1]) // int(np.gcd.reduce(offsets))
    noise = float_noise(_largest(distinct), high - low, epsilon=reading.noise)
    if steps > MOST_STEPS:
        return None
    strays = len(distinct) - len(members)
    return Lattice(low=low, high=high, steps=steps, noise=noise, strays=strays)


def _largest(values: Floats) -> float:
    return float(np.max(np.abs(values)))


def _scaled(values: Floats) -> Floats:
    """Bring values into [-1, 1] by a power of two, which changes no digit of them."""
    _, exponent = frexp(_largest(values))
    return np.asarray(np.ldexp(values, -exponent), dtype=np.float64)


def simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Find the fraction with the smallest denominator in [low, high], by continued fractions."""
    whole = floor(low)
    if low == whole:
        return Fraction(whole)
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / simplest_between(1 / (high - whole), 1 / (low - whole))
