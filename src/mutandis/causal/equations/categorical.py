"""Unordered categories: multinomial logit, and counterfactuals by Gumbel-max coupling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.causal.equations.equation import Predicted, categories_of
from mutandis.causal.equations.gumbel import GUMBEL_MAX, Race, draw_race, most_probable, winners
from mutandis.causal.equations.known_levels import KnownLevels
from mutandis.causal.fitting.design import Design, row_products
from mutandis.causal.fitting.newton import minimise
from mutandis.data.columns import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.causal.fitting.predictor import LinearPredictor
    from mutandis.data.columns import Column

__all__ = ["Categorical", "CategoricalNoise", "FittedCategorical"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Categorical:
    """P(X = k) ∝ exp(b0k + b1k·pa1 + b2k·pa2 + …), fitted by maximum likelihood.

    The coefficients of the first level that occurs are 0. Numeric parents enter linearly; nominal
    parents have one shift a level, against the first of theirs that occurs.

    Parameters
    ----------
    *parents
        The direct causes, by column name.

    Notes
    -----
    A category does not determine the noise behind it. Counterfactuals assume Gumbel-max coupling
    (see `gumbel.py`). The point version is the most probable counterfactual category,
    computed exactly; with a generator, the noise is drawn from its posterior given the observed
    category. A category that nobody has when the equation is fitted is never predicted.

    If a category never occurs at some level of a cause, the likelihood has no maximum. A penalty
    that is too small to be seen anywhere else then keeps the coefficient finite (`design.RIDGE`).

    Examples
    --------
    >>> Categorical("Gender", "Age")
    Categorical('Gender', 'Age')
    >>> from mutandis.data.columns import Categories
    >>> gender = Categories(np.array([0, 0, 0, 0, 1, 1, 1, 1]), ("f", "m"))
    >>> job = Categories(np.array([0, 0, 0, 1, 0, 1, 1, 1]), ("clerk", "cook"))
    >>> fitted = Categorical("Gender").fit(job, {"Gender": gender})
    >>> fitted.probabilities({"Gender": gender}, rows=8)[[0, 4]].round(4).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    >>> noise = fitted.abduct(job, {"Gender": gender})
    >>> fitted.predict({"Gender": gender.filled(1)}, noise).column.codes.tolist()
    [1, 1, 1, 1, 0, 1, 1, 1]
    """

    parents: tuple[str, ...]

    def __init__(self, *parents: str) -> None:
        object.__setattr__(self, "parents", parents)

    def __repr__(self) -> str:
        """Show the call that makes it."""
        return f"Categorical({', '.join(map(repr, self.parents))})"

    @property
    def coupling(self) -> str:
        """The assumption that counterfactual categories rest on."""
        return GUMBEL_MAX

    def fit(self, child: Column, parents: Mapping[str, Column]) -> FittedCategorical:
        """Estimate the coefficients by maximum likelihood."""
        column = categories_of(child)
        known = KnownLevels.of(column)
        design = Design.of({name: parents[name] for name in self.parents}, rows=len(column))
        loss = _MultinomialLoss.of(design, known.places(column), levels=len(known))
        coefficients = minimise(loss, loss.start()).reshape(len(known) - 1, design.size)
        return FittedCategorical(
            known=known, predictors=tuple(design.predictor(row) for row in coefficients)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoricalNoise:
    """What abduction finds out about each row.

    Parameters
    ----------
    observed
        The observed categories, as places among the known ones.
    probabilities
        What the factual causes give to each category.
    levels
        The levels of the column.
    race
        A draw of the noise from its posterior; without it, the whole posterior is meant.
    """

    observed: NDArray[np.intp]
    probabilities: NDArray[np.float64]
    levels: tuple[Any, ...]
    race: Race | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCategorical:
    """A multinomial logit with its coefficients.

    Parameters
    ----------
    known
        The categories that have a probability.
    predictors
        The log-odds of each but the first against the first.
    """

    known: KnownLevels
    predictors: tuple[LinearPredictor, ...]

    def probabilities(self, parents: Mapping[str, Column], *, rows: int) -> NDArray[np.float64]:
        """Compute the probability of each known category, one row a person."""
        log_odds = [predictor.at(parents, rows=rows) for predictor in self.predictors]
        return np.column_stack(_softmax(log_odds))

    def abduct(
        self,
        child: Column,
        parents: Mapping[str, Column],
        *,
        rng: np.random.Generator | None = None,
    ) -> CategoricalNoise:
        """Recover what the facts say about the noise; with `rng`, draw it from its posterior."""
        column = categories_of(child)
        observed = self.known.places(column)
        drawn = (
            draw_race(observed, categories=len(self.known), rng=rng) if rng is not None else None
        )
        return CategoricalNoise(
            observed=frozen(observed),
            probabilities=frozen(self.probabilities(parents, rows=len(observed))),
            levels=column.levels,
            race=drawn,
        )

    def predict(self, parents: Mapping[str, Column], noise: CategoricalNoise) -> Predicted:
        """Give the category under these causes: the most probable one, or that of the draw."""
        after = self.probabilities(parents, rows=len(noise.observed))
        if noise.race is None:
            places = most_probable(noise.probabilities, after, noise.observed)
        else:
            places = winners(noise.probabilities, after, noise.observed, noise.race)
        return Predicted(column=self.known.column(places, noise.levels))


def _softmax(log_odds: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Turn log-odds against the first category, whose own are 0, into probabilities.

    Categories are added up one after the other: a sum over an axis could depend on the number of
    rows.
    """
    highest = np.zeros_like(log_odds[0])
    for odds in log_odds:
        highest = np.maximum(highest, odds)
    shares = [np.exp(-highest), *(np.exp(odds - highest) for odds in log_odds)]
    total = np.zeros_like(highest)
    for share in shares:
        total = total + share
    return [share / total for share in shares]


@dataclass(frozen=True, slots=True, kw_only=True)
class _MultinomialLoss:
    """The negative log-likelihood of categories, with the penalty on each predictor's variance.

    Points are the coefficients of the second category, then those of the third, and so on.
    """

    design: Design
    members: NDArray[np.bool_]
    """One row a category, one column a person."""

    @classmethod
    def of(cls, design: Design, places: NDArray[np.intp], *, levels: int) -> _MultinomialLoss:
        members = places == np.arange(levels)[:, np.newaxis]
        return cls(design=design, members=members)

    def start(self) -> NDArray[np.float64]:
        """Give the intercepts at which everybody has the shares of the whole population."""
        counts = self.members.sum(axis=1)
        start = np.zeros((len(counts) - 1, self.design.size))
        start[:, 0] = np.log(counts[1:] / counts[0])
        return start.ravel()

    def value(self, point: NDArray[np.float64]) -> float:
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

    def derivatives(
        self, point: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
