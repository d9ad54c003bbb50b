"""Monotone coupling: people keep their rank among people with the same causes.

A count or an ordered level is read as X = F⁻¹(u | pa), where u is uniform and F the distribution
that the equation gives to people with the causes pa. The fact x determines u up to the interval
from F(x-1 | pa) to F(x | pa). The point version takes the middle of the interval, the sampled
version a uniform draw from it; under other causes the value is F⁻¹(u | pa').

That u is the same in both worlds is an assumption which no data can test.

In the upper tail u is so near 1 that floating-point numbers cannot distinguish it from 1. So the
smaller of u and 1 - u is kept, as a logarithm, which has no smallest value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import frozen

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    from mutandis.data.columns import Floats
    from mutandis.scm.family import Rng


MONOTONE = "monotone coupling"
"""The name of the assumption in results."""

# Tails whose logarithms differ by less than this are equal up to rounding and the fitting penalty.
# Small groups have round shares, and the middle of one interval is often the end of another: then
# F(x) = u, and x is the counterfactual.
_EQUAL = 1e-8
# shares of an interval are strictly between 0 and 1
_EDGE = 2.0**-53


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """The logarithms of F(x) and of 1 - F(x), each to its own precision."""

    below: Floats
    """log P(X ≤ x)"""
    above: Floats
    """log P(X > x)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonotoneNoise:
    """Each row's rank u among rows with the same causes."""

    factual: Floats
    explained: Floats
    """The linear predictor of the factual causes: where it is unchanged, so is the value."""
    log_tail: Floats
    """The logarithm of the smaller of u and 1 - u, or nearly so."""
    upper: NDArray[np.bool_]
    """Whether that is 1 - u."""

    @classmethod
    def between(
        cls, before: Tails, at: Tails, *, explained: Floats, rng: Rng, **further: Any
    ) -> Self:
        """Place u between F(x-1) and F(x): the middle, or with `rng` a draw."""
        share = shares(len(at.below), rng)
        upper = before.above < at.below
        # u = F(x) - (1 - share) · (F(x) - F(x-1)), and the same for 1 - u, without cancellation
        with np.errstate(invalid="ignore"):
            low = at.below + np.log1p((1.0 - share) * np.expm1(before.below - at.below))
            high = before.above + np.log1p(share * np.expm1(at.above - before.above))
        return cls(
            explained=frozen(explained),
            log_tail=frozen(np.where(upper, high, low)),
            upper=frozen(upper),
            **further,
        )

    @property
    def rank(self) -> Floats:
        """The u of each row, as precisely as one number can hold it."""
        return np.where(self.upper, -np.expm1(self.log_tail), np.exp(self.log_tail))


def shares(rows: int, rng: Rng) -> Floats:
    """Return the relative position of each row's u in its interval: 1/2, or a uniform draw."""
    if rng is None:
        return np.full(rows, 0.5)
    return np.clip(rng.random(rows), _EDGE, 1.0 - _EDGE)


def is_beyond(tails: Tails, noise: MonotoneNoise) -> NDArray[np.bool_]:
    """Mark rows whose u is beyond F(x), so that the counterfactual is above x."""
    high = tails.above > noise.log_tail + _EQUAL
    return np.where(noise.upper, high, tails.below < noise.log_tail - _EQUAL)
