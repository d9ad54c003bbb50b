"""What an equation leaves unexplained, as numbers that can be tested.

Additive noise is its own residual. The noise behind a count or an ordered level is known up to an
interval; drawn from it at random and put on the normal scale, it is a randomised quantile residual
(Dunn and Smyth 1996, *Journal of Computational and Graphical Statistics* 5, 236-244), standard
normal and independent of the causes if the equation is right. The residuals of a category are the
differences between its indicators and their probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.scm.dependence import MOST_GROUPS, SMALLEST_GROUP, dot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.data.columns import Floats
    from mutandis.scm.monotone import MonotoneNoise

DEVIANCE = "deviance explained"
NOT_GIVEN = "its equation does not give its noise as numbers"

# relative range of residuals below which the causes determine the attribute
_NOTHING = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Residuals of an equation, and how much of the attribute it explains."""

    vectors: tuple[Floats, ...] = ()
    """One vector, or one for each category; none if there is nothing to test."""
    standard: bool = False
    """Whether residuals are standard normal if the equation is right."""
    spreading: bool = True
    """Whether they spread equally if the equation is right; those of categories do not."""
    reason: str = ""
    """Why there are no residuals."""
    measure: str = "not available"
    """The measure of fit."""
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
    shares = counts[observed] / len(observed)
    without = float(np.add.reduce(np.log(shares)))
    own = table[np.arange(len(observed)), observed]
    with np.errstate(divide="ignore"):
        with_causes = float(np.add.reduce(np.log(own)))
    return 1.0 - with_causes / without if without and np.isfinite(with_causes) else None


def count_deviance(counts: Floats, means: Floats) -> float | None:
    """Compute the share of the Poisson deviance that expected counts explain."""
    mean = np.add.reduce(counts) / len(counts)
    without = _poisson_deviance(counts, np.full(len(counts), mean))
    left = _poisson_deviance(counts, means)
    return 1.0 - left / without if without > 0.0 else None


def _poisson_deviance(counts: Floats, means: Floats) -> float:
    from scipy.special import xlogy

    return float(2.0 * np.add.reduce(xlogy(counts, counts / means) - (counts - means)))


def _r_squared(response: Floats, residual: Floats) -> float | None:
    centred = response - np.add.reduce(response) / len(response)
    scale = float(np.abs(centred).max())
    if scale == 0.0:
        return None
    centred, residual = centred / scale, residual / scale
    return 1.0 - dot(residual, residual) / dot(centred, centred)
