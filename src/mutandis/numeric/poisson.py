"""Tails and quantiles of Poisson distributions, far beyond where probabilities vanish.

Counterfactuals of counts need F⁻¹ where F is within 1e-300 of 0 or of 1: a person who has 200 of
something where 5 are expected is rare, and still has a counterfactual. So tails are logarithms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from mutandis.data.columns import Floats


# Below this, a tail probability has begun to lose digits, or is gone.
_TINY = 1e-290
# How deep continued fractions are followed: where they are used, 20 levels would do.
_DEPTH = 60


def poisson_tails(counts: Floats, means: Floats) -> tuple[Floats, Floats]:
    """Compute log P(X ≤ x) and log P(X > x) for X with a Poisson distribution; x is -1 or more."""
    from scipy import special

    # The tails are incomplete gamma functions. Where those vanish in floating point, they are taken
    # from their continued fractions (NIST Digital Library of Mathematical Functions, 8.9.1 for the
    # upper tail and 8.9.2, contracted, for the lower), times the density in logarithms.
    held = np.maximum(counts, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        below = np.log(special.pdtr(held, means))
        above = np.log(special.pdtrc(held, means))
    for logarithms, deep in ((below, _deep_below), (above, _deep_above)):
        lost = logarithms < np.log(_TINY)
        if lost.any():
            logarithms[lost] = deep(held[lost], means[lost])
    nothing = counts < 0
    return np.where(nothing, -np.inf, below), np.where(nothing, 0.0, above)


def _deep_above(counts: Floats, means: Floats) -> Floats:
    """Compute log P(X > x) = log P(X = x+1) + log(1 + m/(x+2) + m²/((x+2)(x+3)) + …), x above m."""
    first = counts + 2.0
    rest = np.zeros_like(counts)
    for level in range(_DEPTH, 0, -1):
        plus = level * means / (first + (2 * level - 1) - rest)
        factor = first + (level - 2) if level > 1 else 1.0
        rest = factor * means / (first + (2 * level - 2) + plus)
    return _log_density(counts + 1.0, means) - np.log1p(-rest)


def _deep_below(counts: Floats, means: Floats) -> Floats:
    """Compute log P(X ≤ x) = log P(X = x) + log(1 + x/m + x(x-1)/m² + …), x below m."""
    excess = means - counts
    rest = np.zeros_like(counts)
    for level in range(_DEPTH, 0, -1):
        rest = level * (counts + 1.0 - level) / (excess + 2.0 * level + rest)
        rest = np.maximum(rest, 0.0)  # the fraction ends where the factor reaches 0
    return _log_density(counts, means) + np.log(means / (excess + rest))


def _log_density(counts: Floats, means: Floats) -> Floats:
    from scipy import special

    density: Floats = special.xlogy(counts, means) - means - special.gammaln(counts + 1)
    return density


def poisson_quantile(log_tail: Floats, upper: NDArray[np.bool_], means: Floats) -> Floats:
    """Find the smallest count with F(count) ≥ u; the tail is log(1 - u) where `upper`, or log u."""
    from scipy import special

    def reached(counts: Floats, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        below, above = poisson_tails(counts, means[rows])
        return np.where(upper[rows], above <= log_tail[rows], below >= log_tail[rows])

    deviation = special.ndtri_exp(np.minimum(log_tail, np.log(0.5)))
    deviation = np.where(upper, -deviation, deviation)
    # the first terms of the expansion of Cornish and Fisher; from there, the search is short
    guess = means + deviation * np.sqrt(means) + (deviation**2 - 1.0) / 6.0
    highest = np.where(upper, np.inf, means + 1.0)
    return _smallest(reached, np.floor(np.clip(guess, 0.0, highest)))


def _smallest(
    reached: Callable[[Floats, NDArray[np.intp]], NDArray[np.bool_]], guess: Floats
) -> Floats:
    """Find each row's smallest count of 0 or more at which a condition begins to hold."""
    # up or down from the guess in steps that double, until the count is bracketed; then bisection
    low, high = np.full_like(guess, -1.0), guess.copy()
    rows, step = np.arange(len(guess)), 1.0
    while (rows := rows[~reached(high[rows], rows)]).size:
        low[rows] = high[rows]
        high[rows] += step
        step *= 2.0
    rows, step = np.flatnonzero((low < 0.0) & (high > 0.0)), 1.0
    while rows.size:
        below = np.maximum(high[rows] - step, -1.0)
        step *= 2.0
        holds = (below >= 0.0) & reached(below, rows)
        low[rows[~holds]] = below[~holds]
        rows = rows[holds]
        high[rows] = below[holds]
    while (rows := np.flatnonzero(high - low > 1.0)).size:
        middle = np.floor((low[rows] + high[rows]) / 2.0)
        holds = reached(middle, rows)
        high[rows[holds]] = middle[holds]
        low[rows[~holds]] = middle[~holds]
    return high
