"""Monotone coupling: whoever is at a given rank among people like her stays at that rank.

A count or an ordered level is read as X = F⁻¹(u | pa), where u is uniform and F the distribution
that the equation gives to people with the causes pa. The fact x narrows u down to the interval from
F(x-1 | pa) to F(x | pa), and no further. The point version takes the middle of the interval, the
sampled version a uniform draw from it; under other causes the value is F⁻¹(u | pa').

That u is the same in both worlds is an assumption which no data can test.

In the upper tail u is so near 1 that floating-point numbers cannot tell it from 1. So the smaller
of u and 1 - u is kept, as a logarithm, which has no smallest value either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.data.columns import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MONOTONE", "MonotoneNoise", "Tails", "is_beyond", "place_in_interval", "shares"]

MONOTONE = "monotone coupling"
"""The name of the assumption, as results are labelled with it."""

# Tails whose logarithms differ by less than this are equal, but for rounding and the penalty in
# fitting. Small groups have round shares, and the middle of one interval is often the end of
# another: then F(x) = u, and x is the counterfactual.
_EQUAL = 1e-8
# shares of an interval stay strictly inside of it
_EDGE = 2.0**-53


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """The logarithms of F(x) and of 1 - F(x), each to its own precision."""

    below: NDArray[np.float64]
    """log P(X ≤ x)"""
    above: NDArray[np.float64]
    """log P(X > x)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonotoneNoise:
    """What abduction finds out about each row under monotone coupling.

    Parameters
    ----------
    factual
        The observed counts or ranks.
    explained
        The linear predictor of the factual causes. A row on which the new causes have the same
        one is given back its factual value, whatever rounding would make of it.
    log_tail
        The logarithm of the smaller of u and 1 - u, or nearly so.
    upper
        Whether that is 1 - u.

    Examples
    --------
    >>> noise = MonotoneNoise(
    ...     factual=np.array([3.0]),
    ...     explained=np.array([0.0]),
    ...     log_tail=np.log([0.25]),
    ...     upper=np.array([True]),
    ... )
    >>> noise.rank.round(12).tolist()
    [0.75]
    """

    factual: NDArray[np.float64]
    explained: NDArray[np.float64]
    log_tail: NDArray[np.float64]
    upper: NDArray[np.bool_]

    @property
    def rank(self) -> NDArray[np.float64]:
        """The u of each row, as far as one number can hold it: near 1 it cannot."""
        return np.where(self.upper, -np.expm1(self.log_tail), np.exp(self.log_tail))


def shares(rows: int, rng: np.random.Generator | None) -> NDArray[np.float64]:
    """Say how far into its interval each row's u lies: the middle, or anywhere inside.

    Examples
    --------
    >>> shares(2, None).tolist()
    [0.5, 0.5]
    """
    if rng is None:
        return np.full(rows, 0.5)
    return np.clip(rng.random(rows), _EDGE, 1.0 - _EDGE)


def place_in_interval(
    before: Tails, at: Tails, *, rng: np.random.Generator | None = None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Place u between F(x-1) and F(x), and tell it by the tail that is smaller.

    Parameters
    ----------
    before, at
        The tails at x - 1 and at x.
    rng
        Draws u from the interval; without it, u is the middle.

    Returns
    -------
    tuple
        The logarithm of the tail, and whether it is the upper one.

    Examples
    --------
    >>> at = Tails(below=np.log([0.9]), above=np.log([0.1]))
    >>> before = Tails(below=np.log([0.7]), above=np.log([0.3]))
    >>> log_tail, upper = place_in_interval(before, at)
    >>> np.exp(log_tail).round(12).tolist(), upper.tolist()
    ([0.2], [True])
    """
    share = shares(len(at.below), rng)
    upper = before.above < at.below
    # u = F(x) - (1 - share) · (F(x) - F(x-1)), and the same for 1 - u, without cancellation
    with np.errstate(invalid="ignore"):
        low = at.below + np.log1p((1.0 - share) * np.expm1(before.below - at.below))
        high = before.above + np.log1p(share * np.expm1(at.above - before.above))
    return frozen(np.where(upper, high, low)), frozen(upper)


def is_beyond(tails: Tails, noise: MonotoneNoise) -> NDArray[np.bool_]:
    """Tell whether u is beyond F(x), so that the counterfactual is above x.

    Examples
    --------
    >>> noise = MonotoneNoise(
    ...     factual=np.zeros(2),
    ...     explained=np.zeros(2),
    ...     log_tail=np.log([0.25, 0.25]),
    ...     upper=np.array([False, True]),
    ... )
    >>> half = np.log([0.5, 0.5])
    >>> is_beyond(Tails(below=half, above=half), noise).tolist()
    [False, True]
    """
    high = tails.above > noise.log_tail + _EQUAL
    return np.where(noise.upper, high, tails.below < noise.log_tail - _EQUAL)
