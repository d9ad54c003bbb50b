"""Unordered categories: multinomial logit, and counterfactuals by Gumbel-max coupling.

A category is read as X = argmax over k of (log p_k + G_k), with independent Gumbel noise G_k and
the probabilities p that the equation gives to people with these causes. Under other causes, the
category is the argmax of log q_k + G_k with the same noise (Oberst and Sontag 2019, "Counterfactual
off-policy evaluation with Gumbel-max structural causal models", *ICML*). That the noise is of this
kind is an assumption which no data can test. It has a defensible property: the category does not
change unless another one has gained more in probability, as a factor.

Notes
-----
With E_k = exp(-G_k), which are exponential with rate 1, the argmax becomes a race that is won by
the smallest time T_k = E_k / p_k. As exponentials with rates p_k that sum to 1:

- the winning time T is exponential with rate 1, whichever wins;
- given that i won at T, the others have not come in yet, and T_k - T is again exponential with
  rate p_k (no memory). So E_i = p_i·T, and E_k = p_k·T + an exponential with rate 1.

Under other causes, with the delays d_k = p_k / q_k, the times are

    T'_i = E_i / q_i = d_i·T,    T'_k = E_k / q_k = d_k·T + an exponential with rate q_k.

Given T, none but i arrives before the time s·T with probability exp(-T·C(s)), where
C(s) = Σ_{k≠i} q_k·(s - d_k)₊. So i wins again with probability E[exp(-T·C(d_i))] = 1/(1 + C(d_i)).
Another one, j, wins at s·T, d_j ≤ s < d_i, with density E[q_j·T·exp(-T·C(s))] = q_j/(1 + C(s))².
Between two neighbouring delays C is a straight line, and the integral of 1/(1 + C)² over such a
segment is its length over (1 + C at its start)·(1 + C at its end).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import frozen
from mutandis.numeric.least_squares import minimise, require_few, row_products
from mutandis.scm.family import (
    Equation,
    Fitted,
    KnownLevels,
    Leftover,
    Predicted,
    categories_of,
    of_probabilities,
)
from mutandis.scm.predictor import Design

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.scm.family import Rng
    from mutandis.scm.predictor import LinearPredictor


# every two categories have second derivatives of their own: with 5,000 rows, 400 take 16 s
_COEFFICIENTS = 500

GUMBEL_MAX = "Gumbel-max coupling"
"""The name of the assumption in results."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Categorical(Equation):
    """P(X = k) ∝ exp(b0k + b1k·pa1 + b2k·pa2 + …), fitted by maximum likelihood.

    The coefficients of the first level that occurs are 0. Numeric parents enter linearly; nominal
    parents have one shift per level, against the first of theirs that occurs.

    Parameters
    ----------
    *parents
        The direct causes, by column name.

    Notes
    -----
    A category does not determine its noise. Counterfactuals assume Gumbel-max coupling
    (`categorical.py`). The point version is the most probable counterfactual category, computed
    exactly; with a generator, the noise is drawn from its posterior given the observed category. A
    category that does not occur in the fit is never predicted.

    If a category never occurs at some level of a cause, the likelihood has no maximum. A penalty
    that is negligible elsewhere then keeps the coefficient finite (`least_squares.RIDGE`).

    Examples
    --------
    >>> Categorical("Gender", "Age")
    Categorical('Gender', 'Age')
    """

    coupling = GUMBEL_MAX

    parents: tuple[str, ...]

    def __init__(self, *parents: str) -> None:
        self._set(parents=parents)

    def fit(self, child: Column, parents: Columns) -> FittedCategorical:
        column = categories_of(child)
        known = KnownLevels.of(column)
        design = Design.of({name: parents[name] for name in self.parents}, rows=len(column))
        require_few((len(known) - 1) * design.size, most=_COEFFICIENTS)
        loss = _MultinomialLoss(design=design, members=known.members(column))
        coefficients = minimise(loss, loss.start()).reshape(len(known) - 1, design.size)
        return FittedCategorical(
            known=known, predictors=tuple(design.predictor(row) for row in coefficients)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoricalNoise:
    observed: NDArray[np.intp]  # as places among the known categories
    probabilities: Floats
    levels: tuple[Any, ...]
    race: Race | None = None  # a draw from the posterior; without it, the whole posterior is meant


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCategorical(Fitted[CategoricalNoise]):
    """A multinomial logit with its coefficients."""

    known: KnownLevels
    predictors: tuple[LinearPredictor, ...]  # log-odds of each category but the first against it

    def probabilities(self, parents: Columns, *, rows: int) -> Floats:
        log_odds = [predictor.at(parents, rows=rows) for predictor in self.predictors]
        return np.column_stack(_softmax(log_odds))

    def abduct(self, child: Column, parents: Columns, *, rng: Rng = None) -> CategoricalNoise:
        column = categories_of(child)
        observed = self.known.places(column)
        drawn = None if rng is None else draw_race(observed, categories=len(self.known), rng=rng)
        return CategoricalNoise(
            observed=frozen(observed),
            probabilities=frozen(self.probabilities(parents, rows=len(observed))),
            levels=column.levels,
            race=drawn,
        )

    def predict(self, parents: Columns, noise: CategoricalNoise) -> Predicted:
        """Return the most probable category, or the one of the draw."""
        after = self.probabilities(parents, rows=len(noise.observed))
        if noise.race is None:
            places = most_probable(noise.probabilities, after, noise.observed)
        else:
            places = winners(noise.probabilities, after, noise.observed, noise.race)
        return Predicted(column=self.known.column(places, noise.levels))

    def leftover(self, child: Column, parents: Columns, noise: CategoricalNoise) -> Leftover:
        return of_probabilities(noise.probabilities, noise.observed)


def _softmax(log_odds: Sequence[Floats]) -> list[Floats]:
    """Turn log-odds against the first category, whose own are 0, into probabilities."""
    highest = np.maximum.reduce([np.zeros_like(log_odds[0]), *log_odds])
    shares = [np.exp(-highest), *(np.exp(odds - highest) for odds in log_odds)]
    # one after the other: a sum over an axis could depend on the number of rows
    total = sum(shares, np.zeros_like(highest))
    return [share / total for share in shares]


@dataclass(frozen=True, slots=True, kw_only=True)
class _MultinomialLoss:
    """The negative log-likelihood of categories, with the penalty on each predictor's variance."""

    # points are the coefficients of the second category, then those of the third, and so on
    design: Design
    members: NDArray[np.bool_]  # one row per category, one column per person

    def start(self) -> Floats:
        """Return the intercepts at which every row has the shares of the whole population."""
        counts = self.members.sum(axis=1)
        start = np.zeros((len(counts) - 1, self.design.size))
        start[:, 0] = np.log(counts[1:] / counts[0])
        return start.ravel()

    def value(self, point: Floats) -> float:
        coefficients = point.reshape(-1, self.design.size)
        log_odds = [self.design.at(row) for row in coefficients]
        highest = np.maximum.reduce([np.zeros_like(log_odds[0]), *log_odds])
        total = np.exp(-highest)
        for odds in log_odds:
            total += np.exp(odds - highest)
        unlikely = highest + np.log(total)
        for odds, rows in zip(log_odds, self.members[1:], strict=True):
            unlikely -= np.where(rows, odds, 0.0)
        penalty = sum(self.design.penalty(row) for row in coefficients)
        return float(np.add.reduce(unlikely)) + penalty

    def derivatives(self, point: Floats) -> tuple[Floats, Floats]:
        size, basis = self.design.size, self.design.basis
        coefficients = point.reshape(-1, size)
        _, *shares = _softmax([self.design.at(row) for row in coefficients])
        penalties = self.design.penalties()
        gradient = np.empty_like(coefficients)
        curvature = np.empty((len(shares), size, len(shares), size))
        for one, share in enumerate(shares):
            residual = share - self.members[one + 1]
            gradient[one] = self.design.sums(residual) + penalties * coefficients[one]
            for other in range(one + 1):
                weight = share * ((one == other) - shares[other])
                block = row_products(basis, basis * weight[:, np.newaxis])
                curvature[one, :, other] = curvature[other, :, one] = block
            curvature[one, :, one] += np.diag(penalties)
        return gradient.ravel(), curvature.reshape(len(point), len(point))


# Counterfactual probabilities below this are taken as this: what is divided by it, and squared, is
# still a number.
_LEAST = 1e-75
# Probabilities that differ by less than this are equal, but for rounding and the fitting penalty.
_EQUAL = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """The noise of each row, drawn from its posterior given the observed category."""

    won: Floats  # the time T at which the observed category came in
    further: Floats  # of the others, beyond p_k·T, in units of their own rates; 0 for the observed


def draw_race(observed: NDArray[np.intp], *, categories: int, rng: np.random.Generator) -> Race:
    """Draw the noise behind the observed categories, given as places among all of them."""
    drawn = rng.standard_exponential((len(observed), categories + 1))
    further = drawn[:, :-1]
    further[np.arange(len(observed)), observed] = 0.0
    return Race(won=frozen(drawn[:, -1]), further=frozen(further))


def winners(
    factual: Floats, counterfactual: Floats, observed: NDArray[np.intp], race: Race
) -> NDArray[np.intp]:
    """Run the race again under other probabilities (p and q, per person), with the same noise."""
    after = np.maximum(counterfactual, _LEAST)
    # Summed in this way, a delay that is not below the observed one's cannot win by rounding.
    times = factual / after * race.won[:, np.newaxis] + race.further / after
    own = times[np.arange(len(observed)), observed]
    first = np.argmin(times, axis=1)
    return np.where(own <= times[np.arange(len(first)), first], observed, first)


def counterfactual_probabilities(
    factual: ArrayLike, counterfactual: ArrayLike, observed: ArrayLike
) -> Floats:
    """Compute the probability of each counterfactual category (column), given the observed one."""
    own = np.asarray(observed)[:, np.newaxis]
    rates = np.maximum(np.asarray(counterfactual, dtype=np.float64), _LEAST)
    delays = np.asarray(factual, dtype=np.float64) / rates
    last = np.take_along_axis(delays, own, axis=1)
    # the observed one is due at `last`: one that starts later, and itself, has no time left to win
    starts = np.minimum(delays, last)
    order = np.argsort(starts, axis=1, kind="stable")
    lengths = np.diff(np.take_along_axis(starts, order, axis=1), axis=1, append=last)
    crowd = np.cumsum(np.take_along_axis(rates, order, axis=1), axis=1)
    ends = 1.0 + np.cumsum(crowd * lengths, axis=1)
    beginnings = np.concatenate([np.ones_like(last), ends[:, :-1]], axis=1)
    integrals = lengths / (beginnings * ends)
    # each wins in the segment that begins with its own start, or in a later one
    remaining = np.cumsum(integrals[:, ::-1], axis=1)[:, ::-1]
    per_rate = np.empty_like(remaining)
    np.put_along_axis(per_rate, order, remaining, axis=1)
    probabilities = rates * per_rate
    np.put_along_axis(probabilities, own, 1.0 / ends[:, -1:], axis=1)
    return probabilities


def most_probable(
    factual: Floats, counterfactual: Floats, observed: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Find the most probable counterfactual category; on a tie the observed one, then the first."""
    probabilities = counterfactual_probabilities(factual, counterfactual, observed)
    near = probabilities >= probabilities.max(axis=1, keepdims=True) - _EQUAL
    stays = near[np.arange(len(observed)), observed]
    return np.where(stays, observed, np.argmax(near, axis=1))
