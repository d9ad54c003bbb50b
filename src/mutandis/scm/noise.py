"""What the facts tell of an equation's noise: ranks, and residuals that can be tested.

*Monotone coupling.* A count or an ordered level is read as X = F⁻¹(u | pa), where u is uniform and
F the distribution that the equation gives to people with the causes pa. The fact x determines u up
to the interval from F(x-1 | pa) to F(x | pa). The point version takes the middle of the interval,
the sampled version a uniform draw from it; under other causes the value is F⁻¹(u | pa'). That u is
the same in both worlds is an assumption which no data can test. In the upper tail u is so near 1
that floating-point numbers cannot distinguish it from 1, so the smaller of u and 1 - u is kept, as
a logarithm, which has no smallest value.

*Residuals.* Additive noise is its own residual. A rank, put on the normal scale, is a randomised
quantile residual (Dunn and Smyth 1996, *Journal of Computational and Graphical Statistics* 5,
236-244), standard normal and independent of the causes if the equation is right. The residuals of a
category are the differences between its indicators and their probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import frozen
from mutandis.scm.dependence import MOST_GROUPS, SMALLEST_GROUP, dot

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    from mutandis.data.columns import Floats

Rng = np.random.Generator | None
"""The source of random numbers; None for the one value that represents all draws."""

MONOTONE = "monotone coupling"
"""The name of the assumption in results."""
DEVIANCE = "deviance explained"
NOT_GIVEN = "its equation does not give its noise as numbers"

# Tails whose logarithms differ by less than this are equal up to rounding and the fitting penalty.
# Small groups have round shares, and the middle of one interval is often the end of another: then
# F(x) = u, and x is the counterfactual.
_EQUAL = 1e-8
# shares of an interval are strictly between 0 and 1
_EDGE = 2.0**-53
# relative range of residuals below which the causes determine the attribute
_NOTHING = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """The logarithms of P(X ≤ x) and of P(X > x), each to its own precision."""

    below: Floats
    above: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class MonotoneNoise:
    """Each row's rank u among rows with the same causes."""

    factual: Floats
    explained: Floats  # identifies the distribution: where it is unchanged, so is the value
    log_tail: Floats  # the logarithm of the smaller of u and 1 - u, or nearly so
    upper: NDArray[np.bool_]  # whether that is 1 - u

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

    def is_beyond(self, tails: Tails) -> NDArray[np.bool_]:
        """Mark rows whose u is beyond F(x), so that the counterfactual is above x."""
        high = tails.above > self.log_tail + _EQUAL
        return np.where(self.upper, high, tails.below < self.log_tail - _EQUAL)


def shares(rows: int, rng: Rng) -> Floats:
    """Return the relative position of each row's u in its interval: 1/2, or a uniform draw."""
    if rng is None:
        return np.full(rows, 0.5)
    return np.clip(rng.random(rows), _EDGE, 1.0 - _EDGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Residuals of an equation, and how much of the attribute it explains."""

    vectors: tuple[Floats, ...] = ()  # one, or one for each category; none if there is no noise
    standard: bool = False  # whether residuals are standard normal if the equation is right
    spreading: bool = True  # whether they spread equally if it is; those of categories do not
    reason: str = ""  # why there are no residuals
    measure: str = "not available"  # the measure of fit
    fit: float | None = None


def of_residual(residual: Floats, response: Floats, *, measure: str | None = None) -> Leftover:
    """Describe additive noise; the response is on the scale on which the noise was added."""
    if not np.isfinite(residual).all():
        return Leftover(reason=NOT_GIVEN)
    nothing = np.ptp(residual) <= _NOTHING * np.ptp(response)
    return Leftover(
        vectors=() if nothing else (residual,),
        reason="its causes determine it, so no noise is left over" if nothing else "",
        measure=measure or "not available",
        fit=_r_squared(response, residual) if measure else None,
    )


def of_ranks(noise: MonotoneNoise, *, fit: float | None) -> Leftover | None:
    """Describe ranks by their normal quantiles; None where one is not finite."""
    from scipy.special import ndtri_exp

    quantiles: Floats = ndtri_exp(noise.log_tail)
    normal = np.where(noise.upper, -quantiles, quantiles)
    if not np.isfinite(normal).all():
        return None
    return Leftover(vectors=(normal,), standard=True, measure=DEVIANCE, fit=fit)


def of_probabilities(table: Floats, observed: NDArray[np.intp]) -> Leftover:
    """Describe categories by indicator minus probability, but for the largest and rare ones."""
    counts = np.bincount(observed, minlength=table.shape[1])
    by_size = np.argsort(-counts, kind="stable").tolist()
    kept = [place for place in by_size[1:MOST_GROUPS] if counts[place] >= SMALLEST_GROUP]
    return Leftover(
        vectors=tuple((observed == place) - table[:, place] for place in kept),
        spreading=False,
        reason=f"all categories but one have fewer than {SMALLEST_GROUP} rows",
        measure=DEVIANCE,
        fit=categorical_deviance(table, observed),
    )


def categorical_deviance(table: Floats, observed: NDArray[np.intp]) -> float | None:
    """Compute the share of the deviance that probabilities explain."""
    counts = np.bincount(observed, minlength=table.shape[1])
    without = float(np.add.reduce(np.log(counts[observed] / len(observed))))
    with np.errstate(divide="ignore"):
        own = np.log(table[np.arange(len(observed)), observed])
    with_causes = float(np.add.reduce(own))
    return 1.0 - with_causes / without if without and np.isfinite(with_causes) else None


def _r_squared(response: Floats, residual: Floats) -> float | None:
    centred = response - np.add.reduce(response) / len(response)
    scale = float(np.abs(centred).max())
    if scale == 0.0:
        return None
    centred, residual = centred / scale, residual / scale
    return 1.0 - dot(residual, residual) / dot(centred, centred)
