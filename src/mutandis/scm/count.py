"""Counts: Poisson regression, and counterfactuals by monotone coupling.

Counterfactuals need F⁻¹ where F is within 1e-300 of 0 or of 1: a person who has 200 of something
where 5 are expected is rare, and still has a counterfactual. So tails are logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.errors import EquationError
from mutandis.numeric.least_squares import minimise, row_products
from mutandis.scm.additive import Bounds, Linear, finish, read_bounds
from mutandis.scm.family import (
    DEVIANCE,
    MONOTONE,
    NOT_GIVEN,
    Equation,
    Fitted,
    Leftover,
    MonotoneNoise,
    Predicted,
    Tails,
    numbers_of,
    of_ranks,
)
from mutandis.scm.predictor import Design

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.scm.family import Rng
    from mutandis.scm.predictor import LinearPredictor

# From here on float64 no longer tells neighbouring counts apart.
_INEXACT = 2.0**53
# e to the power of this is a mean that differs from 0 in nothing but the sign of its logarithm
_LOWEST = -690.0
# Below this, a tail probability has begun to lose digits, or is gone.
_TINY = 1e-290
# How deep continued fractions are followed: where they are used, 20 levels would do.
_DEPTH = 60


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Count(Equation):
    """X ~ Poisson(exp(b0 + b1·pa1 + b2·pa2 + …)), fitted by maximum likelihood.

    Numeric parents enter linearly; nominal parents have one shift per level, relative to the first
    level that occurs. Causes act by factors on the expected count.

    Parameters
    ----------
    *parents
        The direct causes, by column name.
    bounds
        The lowest and the highest count there can be, whole numbers; None where there is no such
        limit. Predictions beyond are cut off, and counted, in rows without a change too.

    Notes
    -----
    A count does not determine its noise. Counterfactuals assume monotone coupling (`family.py`):
    people keep their rank among people with the same causes.

    If all counts are 0 at some level of a cause, the likelihood has no maximum. A penalty that is
    too small to be seen anywhere else then keeps the coefficient finite (`least_squares.RIDGE`).

    Examples
    --------
    >>> Count("Gender", bounds=(0, 20))
    Count('Gender', bounds=(0.0, 20.0))
    """

    coupling = MONOTONE

    parents: tuple[str, ...]
    bounds: Bounds | None

    def __init__(self, *parents: str, bounds: Bounds | None = None) -> None:
        read = read_bounds(bounds)
        if any(bound is not None and not bound.is_integer() for bound in read or ()):
            raise EquationError(
                f"bounds={read} are not whole numbers, but counts are. Round them inwards."
            )
        self._set(parents=parents, bounds=read)

    def fit(self, child: Column, parents: Columns) -> FittedCount:
        counts = numbers_of(child)
        require_counts(counts)
        if not counts.any():
            raise EquationError(
                "the count is 0 in every row, so nothing can be learnt about it. Remove its "
                "equation, or fit on a table in which it occurs."
            )
        design = Design.of({name: parents[name] for name in self.parents}, rows=len(counts))
        mean = float(np.add.reduce(counts)) / len(counts)
        start = np.array([np.log(mean), *[0.0] * (design.size - 1)])
        coefficients = minimise(_PoissonLoss(design=design, counts=counts), start)
        return FittedCount(predictor=design.predictor(coefficients), bounds=self.bounds)

    def alternative(self) -> tuple[str, Equation]:
        straight = Linear(*self.parents, decimals=0, bounds=self.bounds or (0, None))
        return "a linear equation instead", straight


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCount(Fitted[MonotoneNoise]):
    """A Poisson regression with its coefficients."""

    predictor: LinearPredictor
    bounds: Bounds | None = None

    def explained(self, parents: Columns, *, rows: int) -> Floats:
        """Compute the logarithm of the expected count, row by row."""
        return self.predictor.at(parents, rows=rows)

    def means(self, parents: Columns, *, rows: int) -> Floats:
        return np.exp(self.explained(parents, rows=rows))

    def abduct(self, child: Column, parents: Columns, *, rng: Rng = None) -> MonotoneNoise:
        counts = numbers_of(child)
        return abduct_counts(counts, self.explained(parents, rows=len(counts)), rng=rng)

    def predict(self, parents: Columns, noise: MonotoneNoise) -> Predicted:
        explained = self.explained(parents, rows=len(noise.factual))
        return finish(predict_counts(explained, noise), bounds=self.bounds)

    def leftover(self, child: Column, parents: Columns, noise: MonotoneNoise) -> Leftover:
        counts = numbers_of(child)
        fit = _deviance_explained(counts, self.means(parents, rows=len(counts)))
        return of_ranks(noise, fit=fit) or Leftover(reason=NOT_GIVEN, measure=DEVIANCE, fit=fit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PoissonLoss:
    """The negative log-likelihood of counts, with the penalty on the variance of the predictor."""

    design: Design
    counts: Floats

    def value(self, point: Floats) -> float:
        predictor = self.design.at(point)
        with np.errstate(over="ignore"):
            unlikely = float(np.add.reduce(np.exp(predictor) - self.counts * predictor))
        return unlikely + self.design.penalty(point)

    def derivatives(self, point: Floats) -> tuple[Floats, Floats]:
        basis, penalties = self.design.basis, self.design.penalties()
        means = np.exp(self.design.at(point))
        gradient = self.design.sums(means - self.counts) + penalties * point
        curvature = row_products(basis, basis * means[:, np.newaxis]) + np.diag(penalties)
        return gradient, curvature


def _deviance_explained(counts: Floats, means: Floats) -> float | None:
    from scipy.special import xlogy

    mean = np.add.reduce(counts) / len(counts)
    without, left = (
        float(2.0 * np.add.reduce(xlogy(counts, counts / each) - (counts - each)))
        for each in (np.full(len(counts), mean), means)
    )
    return 1.0 - left / without if without > 0.0 else None


def require_counts(values: Floats) -> None:
    refused = int(((values < 0) | (values != np.floor(values)) | (values >= _INEXACT)).sum())
    if refused:
        raise EquationError(
            f"it explains counts, but {refused} of {len(values)} rows have a value that is not "
            "a whole number of 0 or more. Use another equation, such as Linear, or leave these "
            "rows out."
        )


def abduct_counts(counts: Floats, log_means: Floats, *, rng: Rng = None) -> MonotoneNoise:
    """Recover each row's rank u among rows with the same mean: the middle, or with `rng` a draw."""
    require_counts(counts)
    means = _means(log_means)
    before, at = (poisson_tails(each, means) for each in (counts - 1.0, counts))
    return MonotoneNoise.between(before, at, factual=counts, explained=log_means, rng=rng)


def predict_counts(log_means: Floats, noise: MonotoneNoise) -> Floats:
    counts = noise.factual.copy()
    means = _means(log_means)
    moved = np.flatnonzero(log_means != noise.explained)
    counts[moved] = poisson_quantile(noise.log_tail[moved], noise.upper[moved], means[moved])
    return counts


def _means(log_means: Floats) -> Floats:
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


# --- Poisson distributions ------------------------------------------------------------------------


def poisson_tails(counts: Floats, means: Floats) -> Tails:
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
    return Tails(below=np.where(nothing, -np.inf, below), above=np.where(nothing, 0.0, above))


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
