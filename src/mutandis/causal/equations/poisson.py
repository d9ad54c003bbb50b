"""Poisson distributions far into both tails, and monotone coupling between them.

The counterfactual of a count needs F⁻¹ where F is within 1e-300 of 0 or of 1: a person who has 200
of something where 5 are expected is rare, but her counterfactual is still to be hers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.causal.equations.coupling import MonotoneNoise, Tails, place_in_interval
from mutandis.data.columns import frozen
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["abduct_counts", "count_at", "poisson_tails", "predict_counts", "require_counts"]

# Below this, a tail probability has begun to lose digits, or is gone.
_TINY = 1e-290
# How deep continued fractions are followed: where they are used, 20 levels would do.
_DEPTH = 60
# From here on float64 no longer tells neighbouring counts apart.
_INEXACT = 2.0**53
# e to the power of this is a mean that differs from 0 in nothing but the sign of its logarithm
_LOWEST = -690.0


def require_counts(values: NDArray[np.float64]) -> None:
    """Refuse values that are no counts."""
    refused = int(((values < 0) | (values != np.floor(values)) | (values >= _INEXACT)).sum())
    if refused:
        raise EquationError(
            f"it explains counts, but {refused} of {len(values)} rows have a value that is no "
            "whole number of 0 or more. Use another equation, such as Linear, or leave these rows "
            "out."
        )


def poisson_tails(counts: NDArray[np.float64], means: NDArray[np.float64]) -> Tails:
    """Compute log P(X ≤ x) and log P(X > x) for X with a Poisson distribution.

    Parameters
    ----------
    counts
        The x: whole numbers of -1 or more.
    means
        The means, above 0.

    Notes
    -----
    The tails are incomplete gamma functions. Where those vanish in floating point, they are taken
    from their continued fractions (NIST Digital Library of Mathematical Functions, 8.9.1 for the
    upper tail and 8.9.2, contracted, for the lower), times the density in logarithms.

    Examples
    --------
    >>> tails = poisson_tails(np.array([2.0, 5000.0]), np.array([5.0, 5.0]))
    >>> tails.below.round(6).tolist(), tails.above.round(6).tolist()
    ([-2.082229, 0.0], [-0.133134, -29555.860902])
    """
    from scipy import special

    held = np.maximum(counts, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        below = np.log(special.pdtr(held, means))
        above = np.log(special.pdtrc(held, means))
    for logarithms, deep in ((below, _deep_below), (above, _deep_above)):
        lost = logarithms < np.log(_TINY)
        if lost.any():
            logarithms[lost] = deep(held[lost], means[lost])
    nothing = counts < 0
    return Tails(below=np.where(nothing, -np.inf, below), above=np.where(nothing, 0.0, above))


def _deep_above(counts: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give log P(X > x) = log P(X = x+1) + log(1 + m/(x+2) + m²/((x+2)(x+3)) + …), x above m."""
    first = counts + 2.0
    rest = np.zeros_like(counts)
    for level in range(_DEPTH, 0, -1):
        plus = level * means / (first + (2 * level - 1) - rest)
        factor = first + (level - 2) if level > 1 else 1.0
        rest = factor * means / (first + (2 * level - 2) + plus)
    return _log_density(counts + 1.0, means) - np.log1p(-rest)


def _deep_below(counts: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give log P(X ≤ x) = log P(X = x) + log(1 + x/m + x(x-1)/m² + …), x below m."""
    excess = means - counts
    rest = np.zeros_like(counts)
    for level in range(_DEPTH, 0, -1):
        rest = level * (counts + 1.0 - level) / (excess + 2.0 * level + rest)
        rest = np.maximum(rest, 0.0)  # the fraction ends where the factor reaches 0
    return _log_density(counts, means) + np.log(means / (excess + rest))


def _log_density(counts: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy import special

    density: NDArray[np.float64] = (
        special.xlogy(counts, means) - means - special.gammaln(counts + 1)
    )
    return density


def abduct_counts(
    counts: NDArray[np.float64],
    log_means: NDArray[np.float64],
    *,
    rng: np.random.Generator | None = None,
) -> MonotoneNoise:
    """Recover what the counts say about each row's rank u among rows with the same mean.

    Parameters
    ----------
    counts
        The observed counts.
    log_means
        The logarithm of the mean that the factual causes give.
    rng
        Draws u from its interval; without it, u is the middle.

    Examples
    --------
    >>> noise = abduct_counts(np.array([0.0]), np.array([0.0]))  # P(X = 0) = 1/e
    >>> (noise.rank * np.e).round(12).tolist()
    [0.5]
    """
    require_counts(counts)
    means = _means(log_means)
    before = poisson_tails(counts - 1.0, means)
    log_tail, upper = place_in_interval(before, poisson_tails(counts, means), rng=rng)
    return MonotoneNoise(
        factual=counts, explained=frozen(log_means), log_tail=log_tail, upper=upper
    )


def predict_counts(log_means: NDArray[np.float64], noise: MonotoneNoise) -> NDArray[np.float64]:
    """Give the counts at the same ranks under other means.

    Parameters
    ----------
    log_means
        The logarithm of the mean that the new causes give.
    noise
        What `abduct_counts` found.

    Examples
    --------
    >>> noise = abduct_counts(np.array([2.0, 200.0]), np.log([5.0, 5.0]))
    >>> predict_counts(np.log([8.0, 8.0]), noise).tolist()
    [4.0, 227.0]
    """
    counts = noise.factual.copy()
    means = _means(log_means)
    moved = np.flatnonzero(log_means != noise.explained)
    counts[moved] = count_at(noise.log_tail[moved], noise.upper[moved], means[moved])
    return counts


def count_at(
    log_tail: NDArray[np.float64], upper: NDArray[np.bool_], means: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Find the smallest count whose cumulative probability reaches u: F⁻¹(u).

    Parameters
    ----------
    log_tail
        The logarithm of u, or of 1 - u.
    upper
        Whether it is that of 1 - u.
    means
        The means of the distributions.

    Examples
    --------
    >>> count_at(np.log([0.5, 1e-12]), np.array([False, True]), np.array([5.0, 5.0])).tolist()
    [5.0, 27.0]
    """
    from scipy import special

    def reached(counts: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        tails = poisson_tails(counts, means[rows])
        high, low = tails.above <= log_tail[rows], tails.below >= log_tail[rows]
        return np.where(upper[rows], high, low)

    deviation = special.ndtri_exp(np.minimum(log_tail, np.log(0.5)))
    deviation = np.where(upper, -deviation, deviation)
    # the first terms of the expansion of Cornish and Fisher; from there, the search is short
    guess = means + deviation * np.sqrt(means) + (deviation**2 - 1.0) / 6.0
    highest = np.where(upper, np.inf, means + 1.0)
    return _smallest(reached, np.floor(np.clip(guess, 0.0, highest)))


def _smallest(
    reached: Callable[[NDArray[np.float64], NDArray[np.intp]], NDArray[np.bool_]],
    guess: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Find each row's smallest count of 0 or more at which a condition begins to hold.

    From the guess, go up or down in steps that double until the place is between two counts, then
    halve what is between them.
    """
    low, high = np.full_like(guess, -1.0), guess.copy()
    everyone = np.arange(len(guess))
    holds = reached(guess, everyone)
    rising, falling = everyone[~holds], everyone[holds & (guess > 0)]
    step = 1.0
    while rising.size:
        low[rising] = high[rising]
        high[rising] += step
        step *= 2.0
        rising = rising[~reached(high[rising], rising)]
    step = 1.0
    while falling.size:
        below = np.maximum(high[falling] - step, -1.0)
        step *= 2.0
        holds = (below >= 0.0) & reached(below, falling)
        low[falling[~holds]] = below[~holds]
        high[falling[holds]] = below[holds]
        falling = falling[holds]
    while (between := np.flatnonzero(high - low > 1.0)).size:
        middle = np.floor((low[between] + high[between]) / 2.0)
        holds = reached(middle, between)
        high[between[holds]] = middle[holds]
        low[between[~holds]] = middle[~holds]
    return high


def _means(log_means: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        means = np.exp(np.maximum(log_means, _LOWEST))
    lost = int((~(means < _INEXACT)).sum())
    if lost:
        raise EquationError(
            f"{lost} of {len(means)} rows would have an expected count of 2**53 or more. The "
            "causes were moved further than the equation can follow: check their units, and "
            "whether their effect is really one of factors."
        )
    return means
