"""Ordered levels: cumulative logit or observed shares, and counterfactuals by monotone coupling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from mutandis.data.columns import Categories, frozen
from mutandis.errors import EquationError
from mutandis.numeric.least_squares import minimise, row_products
from mutandis.scm.family import (
    Equation,
    Fitted,
    KnownLevels,
    Predicted,
    categories_of,
    read_choice,
)
from mutandis.scm.noise import (
    MONOTONE,
    Leftover,
    MonotoneNoise,
    Tails,
    categorical_deviance,
    of_probabilities,
    of_ranks,
)
from mutandis.scm.predictor import Design, require_categories

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.scm.noise import Rng
    from mutandis.scm.predictor import LinearPredictor


OrdinalMethod = Literal["logit", "empirical"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Ordinal(Equation):
    """An attribute with ordered levels, and causes that move people up or down.

    Parameters
    ----------
    *parents
        The direct causes, by column name.
    levels
        All levels, lowest first. Default: the column's order, which is alphabetical for names whose
        levels were not declared.
    method
        "logit": P(X ≤ j) = 1 / (1 + exp(b1·pa1 + b2·pa2 + … - t_j)), with rising thresholds t_j
        (proportional odds), fitted by maximum likelihood. Numeric parents enter linearly; nominal
        ones have one shift per level. Larger coefficients mean higher levels.
        "empirical": the shares of the levels among the rows with the same combination of parents,
        which must all be nominal. It assumes nothing about the effect of the causes, but every
        combination that an intervention leads to must have been observed.

    Notes
    -----
    A level does not determine its noise. Counterfactuals assume monotone coupling (`noise.py`):
    people keep their rank among people with the same causes. A level that does not occur in the
    fit is never predicted.

    If a cause separates the levels perfectly, the likelihood has no maximum. A penalty that is
    negligible elsewhere then keeps the coefficient finite (`least_squares.RIDGE`).

    Examples
    --------
    >>> Ordinal("Gender", levels=["low", "mid", "high"], method="empirical")
    Ordinal('Gender', levels=('low', 'mid', 'high'), method='empirical')
    >>> from mutandis.data.columns import Categories
    >>> gender = Categories(np.array([0, 0, 0, 0, 1, 1, 1, 1]), ("f", "m"))
    >>> grade = Categories(np.array([0, 0, 1, 2, 0, 1, 2, 2]), ("low", "mid", "high"))
    >>> fitted = Ordinal("Gender").fit(grade, {"Gender": gender})
    >>> fitted.probabilities({"Gender": gender}, rows=8)[[0, 4]].round(3).tolist()
    [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]
    >>> all_m = {"Gender": gender.filled(1)}
    >>> noise = fitted.abduct(grade, {"Gender": gender})
    >>> fitted.predict(all_m, noise).column.codes.tolist()
    [0, 0, 2, 2, 0, 1, 2, 2]
    """

    coupling = MONOTONE

    parents: tuple[str, ...]
    levels: tuple[Any, ...] | None
    method: OrdinalMethod

    def __init__(
        self, *parents: str, levels: Iterable[Any] | None = None, method: OrdinalMethod = "logit"
    ) -> None:
        read_choice("method", method, get_args(OrdinalMethod))
        self._set(parents=parents, levels=_read_levels(levels), method=method)

    def fit(self, child: Column, parents: Columns) -> FittedOrdinal | FittedShares:
        column = categories_of(child)
        _check_listed(column, self.levels)
        known = KnownLevels.of(column, self.levels)
        causes = {name: parents[name] for name in self.parents}
        if self.method == "empirical":
            return _fit_shares(column, causes, known)
        design = Design.of(causes, rows=len(column))
        loss = _OrdinalLoss(design=design, members=known.members(column))
        thresholds, coefficients = loss.split(minimise(loss, loss.start()))
        centred = design.predictor(np.concatenate([[0.0], coefficients]))
        return FittedOrdinal(
            known=known,
            thresholds=tuple((thresholds - centred.intercept).tolist()),
            predictor=replace(centred, intercept=0.0),
        )

    def alternative(self) -> tuple[str, Equation] | None:
        if self.method == "empirical":
            return None
        shares_only = Ordinal(*self.parents, levels=self.levels, method="empirical")
        return "the shares of its levels instead", shares_only


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalNoise(MonotoneNoise):
    """Each row's rank among rows with the same causes, and the levels of its column."""

    levels: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLevels(Fitted[OrdinalNoise]):
    """A distribution of ordered levels for each row's causes."""

    known: KnownLevels

    def explained(self, parents: Columns, *, rows: int) -> Floats:
        """Return what identifies the distribution of each row's level."""
        raise NotImplementedError

    def probabilities(self, parents: Columns, *, rows: int) -> Floats:
        raise NotImplementedError

    def tails(self, places: NDArray[np.intp], explained: Floats) -> Tails:
        """Compute the tails at known levels; -1 is below the lowest."""
        raise NotImplementedError

    def abduct(self, child: Column, parents: Columns, *, rng: Rng = None) -> OrdinalNoise:
        column = categories_of(child)
        places = self.known.places(column)
        explained = self.explained(parents, rows=len(places))
        return OrdinalNoise.between(
            self.tails(places - 1, explained),
            self.tails(places, explained),
            factual=places.astype(np.float64),
            explained=explained,
            rng=rng,
            levels=column.levels,
        )

    def predict(self, parents: Columns, noise: OrdinalNoise) -> Predicted:
        explained = self.explained(parents, rows=len(noise.factual))
        places = np.zeros(len(explained), dtype=np.intp)
        for place in range(len(self.known) - 1):
            places += noise.is_beyond(self.tails(np.full(len(explained), place), explained))
        same = explained == noise.explained
        places = np.where(same, noise.factual.astype(np.intp), places)
        return Predicted(column=self.known.column(places, noise.levels))


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedOrdinal(FittedLevels):
    """A cumulative logit with its coefficients."""

    thresholds: tuple[float, ...]  # one for each known level but the highest, rising
    predictor: LinearPredictor

    def explained(self, parents: Columns, *, rows: int) -> Floats:
        return self.predictor.at(parents, rows=rows)

    def probabilities(self, parents: Columns, *, rows: int) -> Floats:
        from scipy import special

        explained = self.explained(parents, rows=rows)[:, np.newaxis]
        below = special.expit(np.array(self.thresholds) - explained)
        return np.diff(below, prepend=0.0, append=1.0, axis=1)

    def tails(self, places: NDArray[np.intp], explained: Floats) -> Tails:
        from scipy import special

        edges = np.array([*self.thresholds, np.inf, -np.inf])  # place -1 is the last of these
        distance = edges[places] - explained
        return Tails(below=special.log_expit(distance), above=special.log_expit(-distance))

    def leftover(self, child: Column, parents: Columns, noise: OrdinalNoise) -> Leftover:
        table = self.probabilities(parents, rows=len(child))
        places = noise.factual.astype(np.intp)
        fit = categorical_deviance(table, places)
        return of_ranks(noise, fit=fit) or of_probabilities(table, places)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedShares(FittedLevels):
    """How many rows of each combination of causes have each level, or a lower one."""

    parents: tuple[str, ...]
    combinations: Mapping[tuple[Any, ...], int]  # numbers of the parents' levels that occurred
    cumulative: NDArray[np.int64]  # one row per combination, one column per level

    def explained(self, parents: Columns, *, rows: int) -> Floats:
        """Find each row's combination, or refuse rows that have one that never occurred."""
        found, numbers = _combine({name: parents[name] for name in self.parents}, rows=rows)
        known = np.array([self.combinations.get(levels, -1) for levels in found], dtype=np.float64)
        places: Floats = known[numbers]
        if unseen := int((places < 0).sum()):
            raise EquationError(
                f"{unseen} of {rows} rows have a combination of parents that did not occur when "
                "the equation was fitted, so the shares of the levels are unknown. Use "
                "method='logit', or fewer parents, or leave these rows out."
            )
        return places

    def probabilities(self, parents: Columns, *, rows: int) -> Floats:
        counts = np.diff(self.cumulative, prepend=0, axis=1)
        numbers = self.explained(parents, rows=rows).astype(np.intp)
        return np.asarray(counts / self.cumulative[:, -1:])[numbers]

    def tails(self, places: NDArray[np.intp], explained: Floats) -> Tails:
        numbers = explained.astype(np.intp)
        below = np.pad(self.cumulative, ((0, 0), (1, 0)))[numbers, places + 1]
        size = self.cumulative[numbers, -1]
        with np.errstate(divide="ignore"):
            return Tails(below=np.log(below / size), above=np.log((size - below) / size))

    def abduct(self, child: Column, parents: Columns, *, rng: Rng = None) -> OrdinalNoise:
        places = self.known.places(categories_of(child))
        table = self.probabilities(parents, rows=len(places))
        if impossible := int((table[np.arange(len(places)), places] == 0).sum()):
            raise EquationError(
                f"{impossible} of {len(places)} rows have a level that no row with the same "
                "causes had when the equation was fitted. Fit on a table in which that occurs, or "
                "use method='logit'."
            )
        return FittedLevels.abduct(self, child, parents, rng=rng)

    def leftover(self, child: Column, parents: Columns, noise: OrdinalNoise) -> Leftover:
        table = self.probabilities(parents, rows=len(child))
        return of_probabilities(table, noise.factual.astype(np.intp))


def _fit_shares(column: Categories, parents: Columns, known: KnownLevels) -> FittedShares:
    for name, parent in parents.items():
        if not isinstance(parent, Categories):
            raise EquationError(
                f"method='empirical' counts levels within each combination of parents, but "
                f"parent {name!r} holds numbers. Declare it as nominal or ordinal, or use "
                "method='logit'."
            )
    combinations, numbers = _combine(parents, rows=len(column))
    cells = numbers * len(known) + known.places(column)
    counts = np.bincount(cells, minlength=len(combinations) * len(known))
    return FittedShares(
        known=known,
        parents=tuple(parents),
        combinations={levels: number for number, levels in enumerate(combinations)},
        cumulative=frozen(np.cumsum(counts.reshape(-1, len(known)), axis=1)),
    )


def _combine(parents: Columns, *, rows: int) -> tuple[list[tuple[Any, ...]], NDArray[np.intp]]:
    """List the combinations of levels that occur, and number each row's."""
    numbers = np.zeros(rows, dtype=np.intp)
    columns = [require_categories(name, column) for name, column in parents.items()]
    for column in columns:
        pairs = numbers * (len(column.levels) + 1) + column.codes
        numbers = np.unique(pairs, return_inverse=True)[1]
    first = np.unique(numbers, return_index=True)[1]
    # one more slot at the end, which the code -1 of a missing value falls into
    levels = [(*column.levels, None) for column in columns]
    combinations = [
        tuple(own[column.codes[row]] for own, column in zip(levels, columns, strict=True))
        for row in first
    ]
    return combinations, numbers


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
    unlisted = int(column.look_up(dict.fromkeys(levels, 0), otherwise=1).sum())
    if unlisted:
        raise EquationError(
            f"{unlisted} of {len(column)} rows have a level that is not among levels="
            f"{list(levels)}. List every level that occurs, lowest first."
        )
