"""The difference between protected people and reference people like their counterfactuals.

For each comparable protected person, d compares the outcome with that of matches, corrected by a
model of the outcomes of reference people and by the same matching among these, whose status cannot
matter. Averages of d are linear in the outcomes, and so are their variances known
(docs/explanation/answer.md).

Reference people who stand on one point have the same weight in every average, so everything about
them is held by point. Points and people come in an order of their own, and no sum uses BLAS, so
neither the order of rows nor the number of threads changes a bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mutandis.engine.likeness import Likeness

    Link = Callable[[NDArray[np.float64]], NDArray[np.float64]]

__all__ = ["Clustered", "Estimate", "Form", "Regressors", "estimate", "spread"]

Floats = NDArray[np.float64]
Ints = NDArray[np.signedinteger]
Rows = NDArray[np.intp]

_CAP = 10.0  # the largest weight of a reference row, in mean weights
_COLUMNS = 120  # of the outcome model; rare levels share one where there are more
_NEWTON, _SETTLED, _LONGEST_STEP = 50, 1e-8, 5.0
_BLOCK = 1 << 13  # rows that are multiplied together


@dataclass(frozen=True, slots=True, kw_only=True)
class Regressors:
    """Columns of the models: levels, clipped numbers, and hinges at the quartiles."""

    mean: Floats
    scale: Floats
    low: Floats
    high: Floats
    knots: Floats  # quartiles x numbers
    curved: NDArray[np.bool_]  # numbers of more than two values
    levels: tuple[Ints, ...]  # the column of each level, by nominal attribute
    width: int

    @classmethod
    def fit(cls, numbers: Floats, codes: Ints, counts: Ints, levels: Sequence[int]) -> Regressors:
        """Fit means, clipping points and quartiles to reference points."""
        total = counts.sum()
        mean = (counts[:, None] * numbers).sum(axis=0) / total
        scale = np.sqrt((counts[:, None] * (numbers - mean) ** 2).sum(axis=0) / total)
        scale = np.where(scale > 0, scale, 1.0)
        everyone = np.repeat((numbers - mean) / scale, counts, axis=0)
        low, *knots, high = np.quantile(everyone, [0.01, 0.25, 0.5, 0.75, 0.99], axis=0)
        curved = np.array([len(np.unique(each)) > 2 for each in numbers.T], dtype=np.bool_)
        start = 1 + len(mean) + 3 * int(curved.sum())
        columns, width = _level_columns(codes, counts, levels, start)
        return cls(
            mean=mean,
            scale=scale,
            low=low,
            high=high,
            knots=np.array(knots),
            curved=curved,
            levels=columns,
            width=width,
        )

    def columns(self, numbers: Floats, codes: Ints) -> Floats:
        """Compute the regressors of some points."""
        z = np.zeros((len(numbers), self.width))
        z[:, 0] = 1.0
        clipped = np.clip((numbers - self.mean) / self.scale, self.low, self.high)
        last = 1 + len(self.mean)
        z[:, 1:last] = clipped
        for knot in self.knots:
            hinges = np.maximum(clipped - knot, 0)[:, self.curved]
            z[:, last : last + hinges.shape[1]] = hinges
            last += hinges.shape[1]
        rows = np.arange(len(numbers))
        for column, code in zip(self.levels, codes.T, strict=True):
            # a level that the table never had belongs to no column
            known = np.flatnonzero(code < len(column))
            z[rows[known], column[code[known]]] = 0.5
        return z


def _level_columns(
    codes: Ints, counts: Ints, levels: Sequence[int], start: int
) -> tuple[tuple[Ints, ...], int]:
    """Assign a column to each level; the rarest of too many share one per attribute."""
    room = max(2 * len(levels), _COLUMNS - start)
    columns = []
    for place, number in enumerate(levels):
        held = np.bincount(codes[:, place], weights=counts, minlength=number)[:number]
        mine = min(number, max(2, room // (len(levels) - place)))
        rank = np.argsort(np.argsort(-held, kind="stable"), kind="stable")
        columns.append(start + np.minimum(rank, mine - 1))
        start, room = start + mine, room - mine
    return tuple(columns), start


def total(left: Floats, right: Floats) -> Floats:
    """Sum products of rows: left' right, without BLAS."""
    found = np.zeros((left.shape[1], right.shape[1]))
    for first in range(0, len(left), _BLOCK):
        rows = slice(first, first + _BLOCK)
        found += np.einsum("ra,rb->ab", left[rows], right[rows])
    return found


def _inverse(matrix: Floats) -> Floats:
    """Invert a positive matrix by elimination."""
    size = len(matrix)
    rest = np.hstack([matrix, np.eye(size)])
    for place in range(size):
        rest[place] /= rest[place, place]
        factors = rest[:, place].copy()
        factors[place] = 0.0
        rest -= factors[:, None] * rest[place]
    return rest[:, size:]


def _penalty(width: int) -> Floats:
    return np.diag(np.array([1e-8, *[1.0] * (width - 1)]))


def _fit_linear(z: Floats, counts: Ints, sums: Floats) -> tuple[Floats, Floats]:
    """Fit a ridge regression to grouped rows; return coefficients and inverse Hessian."""
    inverse = _inverse(total(z * counts[:, None], z) + _penalty(z.shape[1]))
    return _times(inverse, total(z, sums[:, None])[:, 0]), inverse


def _fit_logistic(
    groups: Sequence[tuple[Callable[[], Floats], Floats, Floats]], width: int
) -> tuple[Floats, Floats]:
    """Fit a ridge logistic regression to groups of (regressors, weights, weighted responses)."""
    penalty, coefficients = _penalty(width), np.zeros(width)
    share = sum(s.sum() for *_, s in groups) / sum(w.sum() for _, w, _ in groups)
    share = np.clip(share, 1e-3, 1 - 1e-3)
    coefficients[0] = np.log(share / (1 - share))
    inverse = np.eye(width)
    for _ in range(_NEWTON):
        hessian, gradient = penalty.copy(), -_times(penalty, coefficients)
        for regressors, weights, sums in groups:
            z = regressors()
            q = expit(_times(z, coefficients))
            hessian += total(z * (weights * q * (1 - q))[:, None], z)
            gradient += total(z, (sums - weights * q)[:, None])[:, 0]
        inverse = _inverse(hessian)
        step = _times(inverse, gradient)
        coefficients = coefficients + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < _SETTLED:
            break
    return coefficients, inverse


def _times(matrix: Floats, vector: Floats) -> Floats:
    found: Floats = np.einsum("rc,c->r", matrix, vector)
    return found


def spread(nearest: Any, standing: Rows, counts: Ints, values: Floats) -> Floats:
    """Return (value - mean of the nearest others) / √(1 + Σw²) for each row."""
    own = nearest.diagonal()
    at_point = np.bincount(standing, weights=values, minlength=len(counts))
    mean = (nearest @ at_point)[standing] - own[standing] * values
    squares = nearest.multiply(nearest) @ counts - own**2
    return np.asarray((values - mean) / np.sqrt(1.0 + squares[standing]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Averages over groups of people as linear forms: weights of reference rows."""

    estimate: Floats
    direct: Any  # groups x points, sparse: weight of each row on a point
    modelled: Floats  # groups x regressors: the part that comes from fitting the outcome model

    def minus(self, other: Form) -> Form:
        """Return the form of the difference."""
        return Form(
            estimate=self.estimate - other.estimate,
            direct=(self.direct - other.direct).tocsr(),
            modelled=self.modelled - other.modelled,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The differences d of all comparable people in one world, and what their variances need."""

    key: Rows
    outcome: Floats  # of the comparable people
    difference: Floats  # d
    residual: Floats  # r of comparable people; s = r² + drawn
    drawn: Floats  # variance from a finite number of draws
    weights: Any  # K: counterfactuals x points
    gradient: Floats  # G: counterfactuals x regressors
    refitted: Floats  # comparable people x refits: modelled outcome of each refit's counterfactual
    inverse: Floats  # inverse Hessian of the outcome model
    design: Floats  # regressors of reference points
    counts: Ints
    variance: Floats  # Σ r² of the reference rows on each point
    mean: float  # of the reference people's outcomes
    clusters: Clustered | None = None

    @property
    def size(self) -> int:
        """Number of comparable people."""
        return len(self.outcome)

    @property
    def n_reference(self) -> int:
        """Number of reference people."""
        return int(self.counts.sum())

    def form(self, groups: Any) -> Form:
        """Average d over groups: the rows of a sparse matrix of weights of people."""
        by_key = groups @ _membership(self.key, self.weights.shape[0])
        return Form(
            estimate=groups @ self.difference,
            direct=(by_key @ self.weights).tocsr(),
            modelled=(by_key @ self.gradient) @ self.inverse,
        )

    def gap(self, groups: Any) -> Form:
        """Average outcomes over groups less the mean of all reference people."""
        from scipy.sparse import csr_array

        number = groups.shape[0]
        return Form(
            estimate=groups @ self.outcome - self.mean,
            direct=csr_array(np.full((number, len(self.counts)), 1.0 / self.n_reference)),
            modelled=np.zeros((number, self.design.shape[1])),
        )

    def quadratic(self, form: Form, by_point: Floats) -> Floats:
        """Compute Σ v L² over the reference rows of each group, where v is summed by point."""
        weighted = self.design * by_point[:, None]
        direct, modelled = form.direct, form.modelled
        cross = ((direct @ weighted) * modelled).sum(axis=1)
        inner = ((modelled @ total(weighted, self.design)) * modelled).sum(axis=1)
        return np.asarray(direct.multiply(direct) @ by_point + 2 * cross + inner)

    def products(self, form: Form) -> Floats:
        """Compute Σ L L' s over the reference rows for all pairs of groups."""
        weighted = self.design * self.variance[:, None]
        direct, modelled = form.direct, form.modelled
        cross = (direct @ weighted) @ modelled.T
        inner = modelled @ total(weighted, self.design) @ modelled.T
        plain = (direct.multiply(self.variance[None, :]) @ direct.T).toarray()
        return np.asarray(plain + cross + cross.T + inner)

    def by_cluster(self, groups: Any, form: Form) -> Floats:
        """Sum weighted residuals within clusters, those of reference rows with opposite sign."""
        if self.clusters is None:
            raise TypeError("the rows are not clustered")
        clusters = self.clusters
        modelled = form.modelled @ (clusters.reference.T @ self.design).T
        reference = (form.direct @ clusters.reference).toarray() + modelled
        return np.asarray((groups @ clusters.people).toarray() - reference)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustered:
    """Residuals that are summed within a cluster before they are squared."""

    apart: Floats  # r of comparable people
    apart_reference: Floats  # and of reference rows
    people: Any  # comparable people x clusters: r
    reference: Any  # points x clusters: Σ r
    member: Any  # comparable people x clusters: 1


def _membership(key: Rows, number: int) -> Any:
    from scipy.sparse import csr_array

    ones, start = np.ones(len(key)), np.arange(len(key) + 1)
    return csr_array((ones, key, start), shape=(len(key), number))


def estimate(
    like: Likeness,
    outcomes: tuple[Floats, Floats],
    design: Floats,
    parts: Sequence[Callable[[], Floats]],
    *,
    refits: Sequence[Sequence[Callable[[], Floats]]] = (),
    model: Literal["logistic", "linear"] = "logistic",
    are_draws: bool = False,
) -> Estimate:
    """Estimate the difference of each comparable person.

    `outcomes` are those of the comparable people and of the reference rows, `design` has the
    regressors of reference points; `parts` and `refits` make those of counterfactuals, by draw.
    """
    y1, y0 = outcomes
    counts, standing, key = like.counts, like.standing, like.key
    sums = _by_point(like, y0)
    if model == "logistic":
        fitted = _fit_logistic([(lambda: design, counts.astype(float), sums)], design.shape[1])
    else:
        fitted = _fit_linear(design, counts, sums)
    coefficients, inverse = fitted
    mean_of, slope_of = _LINKS[model]
    modelled = mean_of(_times(design, coefficients))
    people = np.bincount(key, minlength=like.match.shape[0])
    odds = _odds(design, counts, parts, people)
    weights = _weights(like, odds, int(people.sum()))
    residual = y0 - modelled[standing]
    at_point = _by_point(like, residual)
    means, gradient = [], np.zeros((len(people), design.shape[1]))
    for part in parts:
        z = part()
        means.append(mean_of(_times(z, coefficients)))
        gradient += slope_of(means[-1])[:, None] * z / len(parts)
    gradient -= weights @ ((counts * slope_of(modelled))[:, None] * design)
    average = np.mean(means, axis=0)
    drawn = np.zeros(len(people))
    if are_draws and len(parts) > 1:
        drawn = np.var(means, axis=0, ddof=1) / len(parts)
    own = y1 - average[key]
    clustered = _clustered(like, own, residual)
    if clustered is None:
        mine = spread(like.own, like.fact, np.bincount(like.fact), own)
        theirs = spread(like.near, standing, counts, residual)
    else:
        mine, theirs = clustered.apart, clustered.apart_reference
    refitted = [
        np.mean([mean_of(_times(part(), coefficients)) for part in refit], axis=0)[key]
        for refit in refits
    ]
    return Estimate(
        key=key,
        outcome=y1,
        difference=own - (weights @ at_point)[key],
        residual=mine,
        drawn=drawn[key],
        weights=weights,
        gradient=gradient,
        refitted=np.array(refitted).T.reshape(len(y1), len(refitted)),
        inverse=inverse,
        design=design,
        counts=counts,
        variance=_by_point(like, theirs**2),
        mean=float(y0.mean()),
        clusters=clustered,
    )


def _clustered(like: Likeness, own: Floats, residual: Floats) -> Clustered | None:
    """Place residuals by cluster, each less the mean of its nearest in other clusters."""
    from scipy.sparse import csr_array

    if like.clusters is None:
        return None
    number, people, reference = (
        getattr(like.clusters, name) for name in ("number", "people", "reference")
    )
    apart = _outside(like.clusters.own, like.fact, people, own)
    apart_reference = _outside(like.clusters.near, like.standing, reference, residual)
    rows = np.arange(len(own))
    shape, points = (len(own), number), (len(like.counts), number)
    return Clustered(
        apart=apart,
        apart_reference=apart_reference,
        people=csr_array((apart, (rows, people)), shape=shape),
        member=csr_array((np.ones(len(own)), (rows, people)), shape=shape),
        reference=csr_array((apart_reference, (like.standing, reference)), shape=points),
    )


def _outside(nearest: Any, standing: Rows, clusters: Rows, values: Floats) -> Floats:
    """Return (value - mean of the nearest in other clusters) / √(1 + Σw²)."""
    from scipy.sparse import csr_array

    shape = (nearest.shape[1], int(clusters.max()) + 1)
    by_cluster = csr_array((values, (standing, clusters)), shape=shape)
    members = csr_array((np.ones(len(values)), (standing, clusters)), shape=shape)
    entries = nearest.tocoo()
    mine = clusters[entries.row]
    sums = np.asarray(by_cluster.sum(axis=1)).ravel()[entries.col]
    counts = np.asarray(members.sum(axis=1)).ravel()[entries.col]
    sums = sums - by_cluster[entries.col, mine]
    counts = counts - members[entries.col, mine]
    mean = np.bincount(entries.row, entries.data * sums, len(values))
    squares = np.bincount(entries.row, entries.data**2 * counts, len(values))
    return np.asarray((values - mean) / np.sqrt(1.0 + squares))


_LINKS: dict[str, tuple[Link, Link]] = {
    "logistic": (expit, lambda mean: mean * (1 - mean)),
    "linear": (lambda value: value, np.ones_like),
}


def _by_point(like: Likeness, values: Floats) -> Floats:
    """Add up values of reference rows on each point."""
    return np.bincount(like.standing, values, len(like.counts)).astype(np.float64)


def _odds(
    design: Floats, counts: Ints, parts: Sequence[Callable[[], Floats]], people: Ints
) -> Floats:
    """Weigh reference rows to resemble the counterfactuals: the weight of each row, by point."""
    nothing, each = np.zeros(len(counts)), people / len(parts)
    groups = [(part, each, each) for part in parts]
    reference = (lambda: design, counts.astype(float), nothing)
    coefficients, _ = _fit_logistic([*groups, reference], design.shape[1])
    odds = np.exp(np.clip(_times(design, coefficients), -30, 30))
    odds = np.minimum(odds * counts.sum() / (odds * counts).sum(), _CAP)
    return np.asarray(odds / (odds * counts).sum())


def _weights(like: Likeness, odds: Floats, number: int) -> Any:
    """Compute K = M + Q(I - N), by counterfactual and point."""
    passed = like.back.T.multiply(number * odds[None, :]).tocsr()
    kept = passed.multiply(1.0 + like.near.diagonal()[None, :])
    matched = passed.multiply(like.counts[None, :].astype(float)).tocsr() @ like.near
    return (like.match + kept - matched).tocsr()
