"""Ordered levels: cumulative logit, and counterfactuals by monotone coupling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.errors import EquationError
from mutandis.numeric.least_squares import minimise, row_products
from mutandis.scm.family import (
    MONOTONE,
    Equation,
    Fitted,
    KnownLevels,
    Leftover,
    MonotoneNoise,
    Predicted,
    Tails,
    categorical_deviance,
    categories_of,
    of_probabilities,
    of_ranks,
)
from mutandis.scm.predictor import Design

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from mutandis.data.columns import Categories, Column, Columns, Floats
    from mutandis.scm.family import Rng
    from mutandis.scm.predictor import LinearPredictor


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Ordinal(Equation):
    """P(X ≤ j) = 1 / (1 + exp(b1·pa1 + b2·pa2 + … - t_j)), fitted by maximum likelihood.

    The levels are ordered, with rising thresholds t_j (proportional odds). Numeric parents enter
    linearly; nominal ones have one shift per level. Larger coefficients mean higher levels.

    Parameters
    ----------
    *parents
        The direct causes, by column name.
    levels
        All levels, lowest first. Default: the column's order, which is alphabetical for names whose
        levels were not declared.

    Notes
    -----
    A level does not determine its noise. Counterfactuals assume monotone coupling (`family.py`):
    people keep their rank among people with the same causes. A level that does not occur in the
    fit is never predicted.

    If a cause separates the levels perfectly, the likelihood has no maximum. A penalty that is
    negligible elsewhere then keeps the coefficient finite (`least_squares.RIDGE`).

    Examples
    --------
    >>> Ordinal("Gender", levels=["low", "mid", "high"])
    Ordinal('Gender', levels=('low', 'mid', 'high'))
    """

    coupling = MONOTONE

    parents: tuple[str, ...]
    levels: tuple[Any, ...] | None

    def __init__(self, *parents: str, levels: Iterable[Any] | None = None) -> None:
        self._set(parents=parents, levels=_read_levels(levels))

    def fit(self, child: Column, parents: Columns) -> FittedOrdinal:
        column = categories_of(child)
        _check_listed(column, self.levels)
        known = KnownLevels.of(column, self.levels)
        design = Design.of({name: parents[name] for name in self.parents}, rows=len(column))
        loss = _OrdinalLoss(design=design, members=known.members(column))
        thresholds, coefficients = loss.split(minimise(loss, loss.start()))
        centred = design.predictor(np.concatenate([[0.0], coefficients]))
        return FittedOrdinal(
            known=known,
            thresholds=tuple((thresholds - centred.intercept).tolist()),
            predictor=replace(centred, intercept=0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalNoise(MonotoneNoise):
    """Each row's rank among rows with the same causes, and the levels of its column."""

    levels: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedOrdinal(Fitted[OrdinalNoise]):
    """A cumulative logit with its coefficients."""

    known: KnownLevels
    thresholds: tuple[float, ...]  # one for each known level but the highest, rising
    predictor: LinearPredictor

    def explained(self, parents: Columns, *, rows: int) -> Floats:
        return self.predictor.at(parents, rows=rows)

    def probabilities(self, parents: Columns, *, rows: int) -> Floats:
        from scipy import special

        explained = self.explained(parents, rows=rows)[:, np.newaxis]
        below = special.expit(np.array(self.thresholds) - explained)
        return np.diff(below, prepend=0.0, append=1.0, axis=1)

    def abduct(self, child: Column, parents: Columns, *, rng: Rng = None) -> OrdinalNoise:
        column = categories_of(child)
        places = self.known.places(column)
        explained = self.explained(parents, rows=len(places))
        return OrdinalNoise.between(
            self._tails(places - 1, explained),
            self._tails(places, explained),
            factual=places.astype(np.float64),
            explained=explained,
            rng=rng,
            levels=column.levels,
        )

    def predict(self, parents: Columns, noise: OrdinalNoise) -> Predicted:
        explained = self.explained(parents, rows=len(noise.factual))
        places = np.zeros(len(explained), dtype=np.intp)
        for place in range(len(self.thresholds)):
            places += noise.is_beyond(self._tails(np.full(len(explained), place), explained))
        same = explained == noise.explained
        places = np.where(same, noise.factual.astype(np.intp), places)
        return Predicted(column=self.known.column(places, noise.levels))

    def leftover(self, child: Column, parents: Columns, noise: OrdinalNoise) -> Leftover:
        table = self.probabilities(parents, rows=len(child))
        places = noise.factual.astype(np.intp)
        fit = categorical_deviance(table, places)
        return of_ranks(noise, fit=fit) or of_probabilities(table, places)

    def _tails(self, places: NDArray[np.intp], explained: Floats) -> Tails:
        """Compute the tails at known levels; -1 is below the lowest."""
        from scipy import special

        edges = np.array([*self.thresholds, np.inf, -np.inf])  # place -1 is the last of these
        distance = edges[places] - explained
        return Tails(below=special.log_expit(distance), above=special.log_expit(-distance))


@dataclass(frozen=True, slots=True, kw_only=True)
class _OrdinalLoss:
    """The negative log-likelihood of ordered levels, with the penalty on the predictor."""

    # With a the threshold above a row's level and c the one below it, less the predictor, and
    # s(x) = 1/(1+exp(-x)), the probability of the level factors into
    #     s(a) - s(c) = s(a) · s(-c) · (1 - exp(c - a)),
    # so that its logarithm has three concave parts, the last of which depends on no row. The points
    # are the thresholds, then the coefficients of the basis without its intercept.

    design: Design
    members: NDArray[np.bool_]  # one row per level, one column per person

    @property
    def counts(self) -> Floats:
        return np.asarray(np.count_nonzero(self.members, axis=1), dtype=np.float64)

    def start(self) -> Floats:
        """Return the thresholds at which every row has the shares of the whole population."""
        below = np.cumsum(self.counts)[:-1]
        above = self.counts.sum() - below
        return np.concatenate([np.log(below / above), np.zeros(self.design.size - 1)])

    def split(self, point: Floats) -> tuple[Floats, Floats]:
        return point[: len(self.members) - 1], point[len(self.members) - 1 :]

    def value(self, point: Floats) -> float:
        from scipy import special

        thresholds, coefficients = self.split(point)
        gaps = np.diff(thresholds)
        if not (gaps > 0).all():
            return float("inf")
        predictor, penalty = self._explained(coefficients)
        total = -float(np.add.reduce(self.counts[1:-1] * np.log(-np.expm1(-gaps))))
        for place, threshold in enumerate(thresholds):
            low, high = self.members[place], self.members[place + 1]
            total -= float(np.add.reduce(special.log_expit(threshold - predictor[low])))
            total -= float(np.add.reduce(special.log_expit(predictor[high] - threshold)))
        return total + penalty

    def derivatives(self, point: Floats) -> tuple[Floats, Floats]:
        from scipy import special

        thresholds, coefficients = self.split(point)
        predictor, _ = self._explained(coefficients)
        cuts = len(thresholds)
        gradient, curvature = np.zeros(len(point)), np.zeros((len(point), len(point)))
        residuals, weights = np.zeros(len(predictor)), np.zeros(len(predictor))
        for place, threshold in enumerate(thresholds):
            # rows at this level or the next, the only ones that this threshold borders on
            near = self.members[place] | self.members[place + 1]
            below = special.expit(threshold - predictor)
            residual = np.where(near, below - self.members[place], 0.0)
            weight = np.where(near, below * special.expit(predictor - threshold), 0.0)
            gradient[place] = float(np.add.reduce(residual))
            curvature[place, place] = float(np.add.reduce(weight))
            curvature[place, cuts:] = curvature[cuts:, place] = -self.design.sums(weight)[1:]
            residuals -= residual
            weights += weight
        _add_gaps(gradient, curvature, np.diff(thresholds), self.counts[1:-1])
        basis, penalties = self.design.basis[:, 1:], self.design.penalties()[1:]
        gradient[cuts:] = self.design.sums(residuals)[1:] + penalties * coefficients
        curvature[cuts:, cuts:] = row_products(basis, basis * weights[:, np.newaxis])
        curvature[cuts:, cuts:] += np.diag(penalties)
        return gradient, curvature

    def _explained(self, coefficients: Floats) -> tuple[Floats, float]:
        with_intercept = np.concatenate([[0.0], coefficients])
        return self.design.at(with_intercept), self.design.penalty(with_intercept)


def _add_gaps(gradient: Floats, curvature: Floats, gaps: Floats, counts: Floats) -> None:
    """Add the derivatives of -count · log(1 - exp(-gap)) of the levels between two thresholds."""
    pull = 1.0 / np.expm1(gaps)
    for place, (slope, bend) in enumerate(
        zip(counts * pull, counts * (pull + pull**2), strict=True)
    ):
        around = slice(place, place + 2)
        gradient[around] += [slope, -slope]
        curvature[around, around] += [[bend, -bend], [-bend, bend]]


def _read_levels(levels: object) -> tuple[Any, ...] | None:
    if levels is None:
        return None
    if not isinstance(levels, tuple | list):  # a set has no order, and a text is one level
        raise EquationError(
            f"levels are of type {type(levels).__name__}. Give a list, lowest first: "
            "levels=['low', 'mid', 'high']."
        )
    if len(levels) < 2 or any(level in levels[:place] for place, level in enumerate(levels)):
        raise EquationError(
            f"levels={list(levels)} does not list two or more levels, each once. Name all of them, "
            "lowest first."
        )
    return tuple(levels)


def _check_listed(column: Categories, levels: tuple[Any, ...] | None) -> None:
    if levels is None:
        return
    if unlisted := int(column.look_up(dict.fromkeys(levels, 0), otherwise=1).sum()):
        raise EquationError(
            f"{unlisted} of {len(column)} rows have a level that is not among levels="
            f"{list(levels)}. List every level that occurs, lowest first."
        )
