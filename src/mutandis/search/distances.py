"""The distances between people that an audit can choose from; the default is Gower's.

Each is fitted once on the factual D, as an `Embedding` is, and gives a `Metric`: a way to move
points from the lattice of the embedding to places where the distance is a sum of absolute
differences, or the root of a sum of squares, and of mismatches of names. Points keep their
coordinates on the lattice: groups are balanced, drawn between values and described on these, and
only the search measures elsewhere.

Places are whole numbers. Under squares, all places of D lie within 2**25 of each other, so that a
sum of squares has at most 50 bits: float64 holds it, and from centers as far out as the lattice
reaches it fits int64. What is lost: a column without a grid, or with one that has no common measure
with the others, is rounded to 2**-20 of its range or finer, and equal differences in it may be told
apart. Grids of up to 2**11 steps stay grids; at most the weight of such an attribute moves, in the
13th bit or later. `Embedding.rules` says which it was.

What a distance learns from D is added up in an order that depends on the values of rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt, sqrt
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Categories, Numbers
from mutandis.errors import EquationError, PlanError
from mutandis.search.decision_effects import Effects
from mutandis.search.distance import Metric, Points
from mutandis.search.embedding import QUANTUM_BITS, Term, choose_unit, fill_room
from mutandis.search.lattice import FINE_STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.attribute import Attribute
    from mutandis.data.columns import Column, Columns
    from mutandis.search.embedding import Axis, Embedding

    _Floats = NDArray[np.float64]
    _Attributes = Sequence[Attribute]
    _Weights = Mapping[str, Fraction]

__all__ = ["DESCRIPTIONS", "DistanceName", "Sample", "check_distance", "fit_distance"]

DistanceName = Literal[
    "gower",
    "heom",
    "mahalanobis",
    "rank-mahalanobis",
    "thanh",
    "hvdm",
    "ivdm",
    "propensity",
    "zhang",
]

DESCRIPTIONS: dict[DistanceName, str] = {
    "gower": "each difference divided by its range in the table, then averaged",
    "heom": "the root of the sum of squares, each difference divided by its range in the table",
    "mahalanobis": "Mahalanobis distance, with the covariance within the two groups",
    "rank-mahalanobis": "Mahalanobis distance of ranks in the table",
    "thanh": "each difference divided by its standard deviation in the table, then averaged",
    "hvdm": "the root of the sum of squares, each number divided by four standard deviations, and "
    "names compared by how often the reference group was refused with them",
    "ivdm": "the root of the sum of squares, values compared by how often the reference group was "
    "refused with them",
    "propensity": "the difference between their propensity scores, the probability of the "
    "protected status given these attributes",
    "zhang": "the sum of differences, each weighted by its causal effect on the decision where all "
    "else is as at the center",
}
"""How each distance is put together, in a few words."""

# the longest way between two places of D, where distances are squared
_SPAN = 2**25
# a grid with more steps than this is kept only where its steps are whole numbers
_COARSE = 2**11
# a column that is not kept as a grid is rounded to no coarser than half of this part of its range
_LEAST = 2**19
# intervals of a number under IVDM: 5, or the number of classes if that is larger
_INTERVALS = 5
# a variance that falls below this part of itself, once the others are known, is rounding
_SINGULAR = 1e-10
# under Mahalanobis, the steps of grids that are coarser than this are whole numbers
_WHOLE_STEPS = 2**8


class Score(Protocol):
    """Log-odds as a function of attributes."""

    def at(self, parents: Columns, *, rows: int) -> _Floats:
        """Give the log-odds of each row."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a distance may learn from: the rows of D, who is protected, and who was refused.

    Rows of neither status teach nothing about groups.
    """

    points: Points
    is_protected: NDArray[np.bool_]
    is_reference: NDArray[np.bool_]
    is_negative: NDArray[np.bool_]
    levels: tuple[int, ...]  # how many levels each nominal attribute has
    # fits log-odds of the status to attributes: that is for another layer to do
    explain: Callable[[Columns, NDArray[np.bool_]], Score]


def check_distance(name: DistanceName, attributes: Collection[Attribute]) -> None:
    """Refuse attributes and weights that have no meaning in a distance."""
    weighted = [each.name for each in attributes if each.exact_weight != 1]
    if weighted and name in _UNWEIGHTED:
        raise PlanError(
            f"distance={name!r} takes no weights: {_UNWEIGHTED[name]}. Leave the weight of "
            f"{weighted[0]!r} out, or take distance='gower'."
        )
    lacking = [each.name for each in attributes if each.compare_missing]
    if lacking and name not in {"heom", "thanh"}:
        raise PlanError(
            f"Attribute {lacking[0]!r} has compare_missing, and distance={name!r} does not compare "
            "missing values here: 'heom' and 'thanh' do. Take one of these, or leave "
            "compare_missing out."
        )
    numbers = [each.name for each in attributes if each.kind is AttributeKind.CONTINUOUS]
    if numbers and name == "zhang":
        raise PlanError(
            "distance='zhang' estimates effects by counting people who agree in all attributes, "
            f"and {numbers[0]!r} is continuous. Group its values into levels and declare it as "
            "ordinal, or take distance='gower'."
        )


_COVARIANCE = "it divides by the covariance, and any weight cancels out"
_UNWEIGHTED: dict[DistanceName, str] = {
    "mahalanobis": _COVARIANCE,
    "rank-mahalanobis": _COVARIANCE,
    "propensity": "a propensity score weighs attributes itself",
    "zhang": "the effects on the decision are the weights",
}


def fit_distance(
    name: DistanceName,
    embedding: Embedding,
    attributes: _Attributes,
    learn: Callable[[], Sample],
) -> Embedding:
    """Give an embedding whose points are measured by another distance.

    `learn` gives what a distance may learn from, to those that do.
    """
    return _FITS[name](embedding, attributes, learn)


# --- where points are moved to ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescaled:
    """Numbers are multiplied, each by its own ratio, and names stay as they are."""

    ratios: _Floats
    columns: tuple[str, ...]

    def place(self, points: Points) -> Points:
        """Give the place of each point."""
        # values on a grid come out whole, since ratios are those of whole steps
        coordinates = np.rint(points.coordinates * self.ratios).astype(np.int64)
        return Points(coordinates=coordinates, codes=points.codes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Where a number is moved to: between `knots`, its places are interpolated."""

    knots: _Floats
    places: _Floats  # a row per knot, a column per coordinate

    def at(self, coordinates: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Give each coordinate of its places."""
        values = coordinates.astype(np.float64)
        return [
            np.rint(np.interp(values, self.knots, place)).astype(np.int64)
            for place in self.places.T
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curved:
    """Each attribute has coordinates of its own: numbers a ratio or a curve, names a table."""

    numbers: tuple[float | Curve, ...]
    tables: tuple[NDArray[np.int64], ...]  # a row per level, a column per coordinate
    columns: tuple[str, ...]

    def place(self, points: Points) -> Points:
        """Give the place of each point."""
        found: list[NDArray[np.int64]] = []
        for move, values in zip(self.numbers, points.coordinates.T, strict=True):
            if isinstance(move, Curve):
                found += move.at(values)
            else:
                found.append(np.rint(values * move).astype(np.int64))
        for table, codes in zip(self.tables, points.codes.T, strict=True):
            if codes.max(initial=0) >= len(table):
                raise PlanError(
                    "A counterfactual has a level that no one in the table has, and nothing was "
                    "learned about it. Take distance='gower', or leave the attribute out."
                )
            found += list(table[codes].T)
        return _in_columns(found, len(points))


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    """Every attribute adds to every coordinate: numbers, or twice their ranks, by a ratio."""

    ratios: _Floats  # a row per number, a column per coordinate
    tables: tuple[NDArray[np.int64], ...]  # a row per level, the last one for unknown ones
    ranked: tuple[NDArray[np.int64], ...] = ()  # the sorted values of each number in D
    columns: None = None

    def place(self, points: Points) -> Points:
        """Give the place of each point."""
        size, width = len(points), self.ratios.shape[1]
        total = np.zeros((size, width), dtype=np.int64)
        for number, ratios in enumerate(self.ratios):
            values = points.coordinates[:, number]
            if self.ranked:
                values = _double_ranks(self.ranked[number], values)
            for column in range(width):
                total[:, column] += np.rint(values * ratios[column]).astype(np.int64)
        for table, codes in zip(self.tables, points.codes.T, strict=True):
            total += table[np.minimum(codes, len(table) - 1)]
        return Points(coordinates=total, codes=np.empty((size, 0), dtype=np.int32))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The one coordinate is the probability of the protected status."""

    score: Score | None  # None until it is fitted
    names: tuple[str, ...]
    lengths: _Floats
    levels: tuple[int, ...]
    columns: None = None

    def values(self, points: Points) -> dict[str, Column]:
        """Give the attributes of points as columns that a score is a function of."""
        numbers = [Numbers(each) for each in (points.coordinates / self.lengths).T]
        names = [
            Categories(np.minimum(codes, size), tuple(range(size + 1)))
            for codes, size in zip(points.codes.T, self.levels, strict=True)
        ]
        return dict(zip(self.names, [*numbers, *names], strict=True))

    def place(self, points: Points) -> Points:
        """Give the place of each point."""
        if self.score is None:
            raise RuntimeError("the score is fitted before anything is placed")
        log_odds = self.score.at(self.values(points), rows=len(points))
        small = np.exp(-np.abs(log_odds))
        probability = np.where(log_odds >= 0, 1.0, small) / (1 + small)
        return _in_columns([np.rint(probability * _SCORES).astype(np.int64)], len(points))


def _in_columns(found: Sequence[NDArray[np.int64]], size: int) -> Points:
    coordinates = np.empty((size, len(found)), dtype=np.int64)
    for column, values in enumerate(found):
        coordinates[:, column] = values
    return Points(coordinates=coordinates, codes=np.empty((size, 0), dtype=np.int32))


# --- Gower's relatives: differences that are scaled in another way ---


def _fit_heom(embedding: Embedding, attributes: _Attributes, _: Callable[[], Sample]) -> Embedding:
    """Fit the heterogeneous Euclidean-overlap metric (Wilson & Martinez 1997, eqs. 3-5).

        d(x, x')² = Σ_i w_i d_i(x_i, x'_i)²

    with d_i = |difference| / range for numbers and ranks, and for names 0 if equal and 1 if not.
    The weights are not in the paper; they default to 1.
    """
    axes, weights = embedding.axes, _weights(attributes)
    lengths = {axis.name: _root(weights[axis.name]) * axis.extent for axis in axes}
    total = sum((weights[name] for name in embedding.names), Fraction(0))
    unit, terms = _squared_terms(axes, lengths, total)
    ratios = [t.length(unit) / a.length for t, a in zip(terms, axes, strict=True)]
    mismatch = [round(unit**2 * weights[name]) for name in embedding.nominal]
    metric = _squares(unit, Rescaled(ratios=np.array(ratios), columns=_names(axes)))
    costs = np.array(mismatch, dtype=np.int64)
    metric = replace(metric, mismatch=costs, missing=embedding.metric.missing)
    rules = {term.name: _rule(term, unit) for term in terms}
    return replace(embedding, metric=metric, own_rules=rules)


def _fit_thanh(
    embedding: Embedding, attributes: _Attributes, learn: Callable[[], Sample]
) -> Embedding:
    """Fit the distance of k-NN situation testing (Thanh, Ruggieri & Turini 2011).

        d(x, x') = Σ_i w_i d_i(x_i, x'_i) / Σ_i w_i

    with d_i = |difference of z-scores| for numbers, |rank difference| / (levels - 1) for ordinal
    attributes, and for names 0 if equal and 1 if not. The weights default to 1, as published.
    """
    axes, weights, terms = embedding.axes, _weights(attributes), []
    numbers = {each.name for each in attributes if each.kind is AttributeKind.CONTINUOUS}
    for axis, values in zip(axes, learn().points.coordinates.T, strict=True):
        size = 1 / Fraction(_deviation(values) / axis.length) if axis.name in numbers else 1
        least = _LEAST if axis.steps == 1 else 1
        weight = weights[axis.name] * size
        terms.append(Term(name=axis.name, weight=weight, steps=axis.steps, least=least))
    names = [Term(name=name, weight=weights[name]) for name in embedding.nominal]
    total = sum(weights.values(), Fraction(0))
    unit = choose_unit([*terms, *names], weight=total)
    terms = [_settled(term, unit, coarse=FINE_STEPS) for term in terms]
    ratios = [t.length(unit) / a.length for t, a in zip(terms, axes, strict=True)]
    metric = Metric(
        mismatch=np.array([term.length(unit) for term in names], dtype=np.int64),
        unit=float(unit * total),
        exact_unit=unit * total,
        move=Rescaled(ratios=np.array(ratios), columns=_names(axes)),
        missing=embedding.metric.missing,
    )
    rules = {term.name: _rule(term, unit) for term in terms}
    return replace(embedding, metric=metric, own_rules=rules)


# --- value differences: how often the reference group was refused with a value ---


def _fit_hvdm(
    embedding: Embedding, attributes: _Attributes, learn: Callable[[], Sample]
) -> Embedding:
    """Fit the heterogeneous value difference metric (Wilson & Martinez 1997, eqs. 11-15, N2).

        d(x, x')² = Σ_i w_i d_i(x_i, x'_i)²

    with d_i = |difference| / 4σ_i for numbers and ranks, σ_i their standard deviation in D, and for
    names the root of Σ_c (P(c | x_i) - P(c | x'_i))² over the two outcomes c, as learned from the
    reference rows. The root is that of the erratum of 2000. The weights default to 1.
    """
    axes, weights, sample, lengths = embedding.axes, _weights(attributes), learn(), {}
    for axis, values in zip(axes, sample.points.coordinates.T, strict=True):
        in_deviations = Fraction(axis.length / (4 * _deviation(values)))
        lengths[axis.name] = _root(weights[axis.name]) * in_deviations
    total = sum((2 * weights[name] for name in embedding.nominal), Fraction(0))
    total += sum(
        (
            (lengths[axis.name] * Fraction(int(np.ptp(values)), axis.length)) ** 2
            for axis, values in zip(axes, sample.points.coordinates.T, strict=True)
        ),
        Fraction(0),
    )
    unit, terms = _squared_terms(axes, lengths, total)
    ratios = tuple(t.length(unit) / a.length for t, a in zip(terms, axes, strict=True))
    tables = _value_tables(embedding, weights, sample, float(unit))
    move = Curved(
        numbers=ratios,
        tables=tuple(tables.values()),
        columns=(*_names(axes), *_owners(tables)),
    )
    rules = {term.name: _rule(term, unit) for term in terms} | _learned(embedding.nominal, sample)
    return replace(embedding, metric=_squares(unit, move), own_rules=rules)


def _fit_ivdm(
    embedding: Embedding, attributes: _Attributes, learn: Callable[[], Sample]
) -> Embedding:
    """Fit the interpolated value difference metric (Wilson & Martinez 1997, eqs. 21-25).

        d(x, x')² = Σ_i w_i Σ_c (P_i(c | x_i) - P_i(c | x'_i))²

    over the two outcomes c, as learned from the reference rows: P is that of a level, and for a
    number that of its interval, of five that divide its range in D, interpolated between the
    middles of intervals, and 0 half an interval outside of the range.
    """
    weights, sample = _weights(attributes), learn()
    ranks = {each.name for each in attributes if each.kind is AttributeKind.ORDINAL}
    total = sum((2 * weights[name] for name in embedding.names), Fraction(0))
    unit = Fraction(_SPAN) / _root(total, up=True)
    curves = []
    for axis, values in zip(embedding.axes, sample.points.coordinates.T, strict=True):
        size = float(unit) * sqrt(weights[axis.name])
        curves.append(
            _rank_curve(axis, values, sample, size)
            if axis.name in ranks
            else _interval_curve(values, sample, size)
        )
    tables = _value_tables(embedding, weights, sample, float(unit))
    twice = (name for name in _names(embedding.axes) for _ in range(2))
    move = Curved(
        numbers=tuple(curves), tables=tuple(tables.values()), columns=(*twice, *_owners(tables))
    )
    return replace(
        embedding, metric=_squares(unit, move), own_rules=_learned(embedding.names, sample)
    )


def _value_tables(
    embedding: Embedding, weights: _Weights, sample: Sample, unit: float
) -> dict[str, NDArray[np.int64]]:
    """Give the place of every level of each nominal attribute."""
    tables = {}
    for name, codes, levels in zip(
        embedding.nominal, sample.points.codes.T, sample.levels, strict=True
    ):
        places = _value_places(codes, levels, sample) * (unit * sqrt(weights[name]))
        # where every level occurs among the reference rows, the second coordinate tells nothing
        width = 1 if (places[:, 1] > 0).all() else 2
        tables[name] = np.rint(places[:, :width]).astype(np.int64)
    return tables


def _value_places(cells: NDArray[np.integer], size: int, sample: Sample) -> _Floats:
    """Give the outcomes' shares among the reference rows in each cell, 0 where there are none.

    They are turned by 45 degrees, which changes no distance: the second coordinate is then the same
    for all cells in which there is someone.
    """
    everyone = np.bincount(cells[sample.is_reference], minlength=size)
    refused = np.bincount(cells[sample.is_reference & sample.is_negative], minlength=size)
    share = refused / np.maximum(everyone, 1)
    occurs = (everyone > 0).astype(np.float64)
    return np.stack([(2 * share - occurs) / sqrt(2), occurs / sqrt(2)], axis=1)


def _interval_curve(values: NDArray[np.int64], sample: Sample, size: float) -> Curve:
    """Interpolate between the middles of equal intervals, and to 0 outside of them."""
    low, span = int(values.min()), int(np.ptp(values))
    interval = np.minimum((values - low) * _INTERVALS // span, _INTERVALS - 1)
    places = np.zeros((_INTERVALS + 2, 2))
    places[1:-1] = _value_places(interval, _INTERVALS, sample)
    middles = low + (np.arange(_INTERVALS + 2, dtype=np.float64) - 0.5) * (span / _INTERVALS)
    return Curve(knots=middles, places=places * size)


def _rank_curve(axis: Axis, values: NDArray[np.int64], sample: Sample, size: float) -> Curve:
    """Give the place of every level, and interpolate for centers that lie between two of them."""
    # a step may be divided, for centers on the way from one level to the next
    levels = round(axis.scale) + 1
    rank = values // (axis.length // (levels - 1))
    knots = np.arange(levels, dtype=np.float64) * (axis.length / (levels - 1))
    return Curve(knots=knots, places=_value_places(rank, levels, sample) * size)


# --- Mahalanobis ---


def _fit_mahalanobis(
    embedding: Embedding, _: _Attributes, learn: Callable[[], Sample]
) -> Embedding:
    """Fit Mahalanobis' distance, with the covariance S that is pooled within the two groups.

        d(x, x')² = (x - x')ᵀ S⁻¹ (x - x')

    Each level of a nominal attribute but one is a number, 0 or 1; which one is left out changes no
    distance. A level that no row of the two groups has stands where that one does.
    """
    sample = learn()
    rows = _canonical(sample)
    columns, owners = _indicators(embedding, sample, rows)
    protected = sample.is_protected[rows]
    spread = np.zeros((len(columns), len(columns)))
    for group in (protected, ~protected):
        part = columns[:, group]
        if part.shape[1]:
            rest = part - (np.add.reduce(part, axis=1) / part.shape[1])[:, None]
            spread += np.einsum("ar,br->ab", rest, rest)
    whitener = _whiten(spread / max(len(rows) - 2, 1), owners)
    numbers = len(embedding.axes)
    unit = _unit_of(np.einsum("ja,ar->jr", whitener, columns))
    # columns are counted in lengths of axes
    ratios = np.array(
        [
            _whole_steps(whitener[:, number] * unit, axis)
            for number, axis in enumerate(embedding.axes)
        ]
    ).reshape(numbers, len(columns))
    move = Projected(
        ratios=ratios,
        tables=_indicator_tables(embedding, sample, whitener * unit, owners),
    )
    rules = dict.fromkeys(embedding.names, f"whitened, quantised to 1/{unit:,.0f}")
    return replace(embedding, metric=_squares(Fraction(unit), move), own_rules=rules)


def _fit_rank_mahalanobis(
    embedding: Embedding, _: _Attributes, learn: Callable[[], Sample]
) -> Embedding:
    """Fit the rank-based variant (Rosenbaum 2010, section 8.3).

    Numbers are replaced by their ranks among all rows of the two groups, equal ones by the mean of
    theirs; the covariance of ranks is that of all rows, and the variance of ties is raised to that
    of ranks without any. A value that no row has stands between the ranks of its neighbours.
    """
    sample = learn()
    for name, levels in zip(embedding.nominal, sample.levels, strict=True):
        if levels > 2:
            raise PlanError(
                f"distance='rank-mahalanobis' ranks values, and attribute {name!r} has {levels} "
                "levels without an order. Take distance='mahalanobis', or leave the attribute out."
            )
    rows = _canonical(sample)
    places = [*sample.points.coordinates.T, *sample.points.codes.T.astype(np.int64)]
    ranked = tuple(np.sort(each[rows]) for each in places)
    columns = np.array(
        [_double_ranks(order, each[rows]) / 2 for order, each in zip(ranked, places, strict=True)]
    ).reshape(len(places), len(rows))
    rest = columns - (np.add.reduce(columns, axis=1) / len(rows))[:, None]
    covariance = np.einsum("ar,br->ab", rest, rest) / max(len(rows) - 1, 1)
    untied = len(rows) * (len(rows) + 1) / 12
    deviation = np.sqrt(np.diag(covariance))
    owners = [(name, -1) for name in embedding.names]
    _refuse_constant(deviation, owners)
    raised = sqrt(untied) / deviation
    whitener = _whiten(covariance * np.outer(raised, raised), owners)
    unit = _unit_of(np.einsum("ja,ar->jr", whitener, columns))
    numbers = len(embedding.axes)
    tables = []
    for index, levels in enumerate(sample.levels, start=numbers):
        codes = np.arange(levels + 1)
        doubled = _double_ranks(ranked[index], codes)
        tables.append(np.rint(np.outer(doubled / 2, whitener[:, index] * unit)).astype(np.int64))
    move = Projected(
        ratios=whitener[:, :numbers].T * unit / 2, tables=tuple(tables), ranked=ranked[:numbers]
    )
    rules = dict.fromkeys(embedding.names, f"ranks, whitened, quantised to 1/{unit:,.0f}")
    return replace(embedding, metric=_squares(Fraction(unit), move), own_rules=rules)


def _canonical(sample: Sample) -> NDArray[np.intp]:
    """Give the rows of the two groups in an order that depends on their values alone."""
    rows = np.flatnonzero(sample.is_protected | sample.is_reference)
    keys = [
        *(each[rows] for each in sample.points.codes.T),
        *(each[rows] for each in sample.points.coordinates.T),
        sample.is_protected[rows],
    ]
    return rows[np.lexsort(keys)]


def _indicators(
    embedding: Embedding, sample: Sample, rows: NDArray[np.intp]
) -> tuple[_Floats, list[tuple[str, int]]]:
    """Give numbers in lengths of their axes, and indicators of levels but the first that occurs."""
    columns = [
        values[rows] / axis.length
        for axis, values in zip(embedding.axes, sample.points.coordinates.T, strict=True)
    ]
    owners = [(axis.name, -1) for axis in embedding.axes]
    for name, codes in zip(embedding.nominal, sample.points.codes.T, strict=True):
        for level in np.unique(codes[rows])[1:].tolist():
            columns.append((codes[rows] == level).astype(np.float64))
            owners.append((name, level))
    return np.array(columns).reshape(len(columns), len(rows)), owners


def _indicator_tables(
    embedding: Embedding, sample: Sample, places: _Floats, owners: Sequence[tuple[str, int]]
) -> tuple[NDArray[np.int64], ...]:
    """Give the place of every level of each nominal attribute."""
    tables = {
        name: np.zeros((levels + 1, len(places)), dtype=np.int64)
        for name, levels in zip(embedding.nominal, sample.levels, strict=True)
    }
    for column, (name, level) in enumerate(owners):
        if level >= 0:
            tables[name][level] = np.rint(places[:, column]).astype(np.int64)
    return tuple(tables.values())


def _refuse_constant(deviation: _Floats, owners: Sequence[tuple[str, int]]) -> None:
    for (name, _), each in zip(owners, deviation.tolist(), strict=True):
        if not each > 0:
            raise PlanError(
                f"Attribute {name!r} does not vary within the two groups that are compared, so "
                "its covariance has no inverse. Leave it out, or take distance='gower'."
            )


def _whiten(covariance: _Floats, owners: Sequence[tuple[str, int]]) -> _Floats:
    """Give the matrix W with Wᵀ W = S⁻¹: the inverse of the triangle L in S = L Lᵀ."""
    size = len(covariance)
    _refuse_constant(np.diag(covariance), owners)
    triangle, inverse = np.zeros((size, size)), np.zeros((size, size))
    # without BLAS: neither threads nor the machine may change a bit
    for row in range(size):
        for column in range(row):
            known = float(np.add.reduce(triangle[row, :column] * triangle[column, :column]))
            triangle[row, column] = (covariance[row, column] - known) / triangle[column, column]
        left = covariance[row, row] - float(np.add.reduce(triangle[row, :row] ** 2))
        if left <= _SINGULAR * covariance[row, row]:
            raise PlanError(
                f"Attribute {owners[row][0]!r} follows from the attributes before it within the "
                "two groups, so that the covariance has no inverse. Leave it out, or take "
                "distance='gower'."
            )
        triangle[row, row] = sqrt(left)
        inverse[row, row] = 1 / triangle[row, row]
        for column in range(row):
            known = float(np.add.reduce(triangle[row, :row] * inverse[:row, column]))
            inverse[row, column] = -known / triangle[row, row]
    return inverse


def _unit_of(places: _Floats) -> float:
    """Give the largest power of two by which places may be multiplied and keep within the span."""
    widest = sqrt(float(np.add.reduce(np.ptp(places, axis=1) ** 2)))
    return float(2.0 ** np.floor(np.log2(_SPAN / max(widest, 2.0**-20))))


def _whole_steps(places: _Floats, axis: Axis) -> _Floats:
    """Give the ratios that lead to places of a whole axis; steps of a coarse grid stay whole."""
    halves = 2 * axis.steps
    if 1 < axis.steps <= _WHOLE_STEPS:
        places = np.rint(places / halves) * halves
    return np.asarray(places / axis.length)


def _double_ranks(order: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give twice the rank of values among sorted ones: of equal ones, the mean of theirs."""
    return np.asarray(
        np.searchsorted(order, values) + np.searchsorted(order, values, side="right") + 1,
        dtype=np.int64,
    )


# --- propensity ---

_SCORES = 2.0**40  # stands for a probability of 1


def _fit_propensity(embedding: Embedding, _: _Attributes, learn: Callable[[], Sample]) -> Embedding:
    """Fit a propensity score (Qureshi et al. 2020): |e(x) - e(x')|, with e(x) = P(protected | x).

    The score is a logistic regression of the status on all attributes, by maximum likelihood on
    the rows of the two groups; names have a coefficient per level.
    """
    sample = learn()
    rows = _canonical(sample)
    move = Scored(
        score=None,
        names=embedding.names,
        lengths=np.array([float(axis.length) for axis in embedding.axes]),
        levels=sample.levels,
    )
    try:
        score = sample.explain(move.values(sample.points.take(rows)), sample.is_protected[rows])
    except EquationError as error:
        raise PlanError(
            f"distance='propensity' explains the status by the attributes, which fails: {error}"
        ) from None
    metric = Metric(
        mismatch=np.empty(0, dtype=np.int64),
        unit=_SCORES,
        exact_unit=Fraction(_SCORES),
        move=replace(move, score=score),
    )
    rules = dict.fromkeys(embedding.names, "propensity score, quantised to 2^-40")
    return replace(embedding, metric=metric, own_rules=rules)


# --- causal effects on the decision ---


def _fit_zhang(embedding: Embedding, _: _Attributes, learn: Callable[[], Sample]) -> Embedding:
    """Fit the distance of Zhang, Wu & Wu (2016): centers say what differences count."""
    effects = Effects.learn(embedding, learn())
    metric = Metric(
        mismatch=np.empty(0, dtype=np.int64),
        unit=float(effects.unit),
        exact_unit=Fraction(effects.unit),
        weighing=effects,
    )
    rule = (
        f"weighted by effects on the decision, known in {len(effects.known):,} of the "
        f"{effects.seen:,} combinations of levels that occur"
    )
    return replace(embedding, metric=metric, own_rules=dict.fromkeys(embedding.names, rule))


# --- what they share ---


def _weights(attributes: _Attributes) -> _Weights:
    return {each.name: each.exact_weight for each in attributes}


def _names(axes: Sequence[Axis]) -> tuple[str, ...]:
    return tuple(axis.name for axis in axes)


def _owners(tables: Mapping[str, NDArray[np.int64]]) -> tuple[str, ...]:
    return tuple(name for name, table in tables.items() for _ in range(table.shape[1]))


def _learned(names: Sequence[str], sample: Sample) -> dict[str, str]:
    rows = np.count_nonzero(sample.is_reference)
    return dict.fromkeys(names, f"value differences learned from {rows:,} reference rows")


def _deviation(values: NDArray[np.int64]) -> float:
    """Give the standard deviation; of sorted values, so that the order of rows has no part."""
    found = float(np.sort(values).astype(np.float64).std(ddof=1 if len(values) > 1 else 0))
    return found or 1.0


def _squares(unit: Fraction, move: Rescaled | Curved | Projected) -> Metric:
    none = np.empty(0, dtype=np.int64)
    return Metric(mismatch=none, unit=float(unit), exact_unit=unit, squared=True, move=move)


def _squared_terms(
    axes: Sequence[Axis], lengths: Mapping[str, Fraction], total: Fraction
) -> tuple[Fraction, list[Term]]:
    """Choose the unit in which axes of these lengths are whole; squares add up to `total`."""
    terms = [
        Term(
            name=axis.name,
            weight=lengths[axis.name],
            steps=axis.steps,
            least=_LEAST if axis.steps == 1 else 1,
        )
        for axis in axes
    ]
    unit = fill_room(terms, room=Fraction(_SPAN) / _root(total, up=True))
    return unit, [_settled(term, unit, coarse=_COARSE) for term in terms]


def _root(value: Fraction, *, up: bool = False) -> Fraction:
    """Give the root of a fraction: exactly where it is one, else to 60 bits."""
    over, under = isqrt(value.numerator), isqrt(value.denominator)
    if over**2 == value.numerator and under**2 == value.denominator:
        return Fraction(over, under)
    return Fraction(isqrt(value.numerator * 4**60 // value.denominator) + up, 2**60)


def _settled(term: Term, unit: Fraction, *, coarse: int) -> Term:
    """Give up a grid so fine that its steps would be rounded too coarsely in this unit."""
    if term.steps <= coarse or term.is_exact(unit):
        return term
    return replace(term, steps=1, least=_LEAST)


def _rule(term: Term, unit: Fraction) -> str:
    """Say how equal distances are recognised."""
    if term.steps == 1:
        bits = min(term.length(unit).bit_length() - 1, QUANTUM_BITS)
        return f"quantised to 2^-{bits}"
    return f"lattice of {term.steps} steps" + ("" if term.is_exact(unit) else ", weight rounded")


_FITS: dict[DistanceName, Callable[[Embedding, _Attributes, Callable[[], Sample]], Embedding]] = {
    "gower": lambda embedding, _attributes, _learn: embedding,
    "heom": _fit_heom,
    "mahalanobis": _fit_mahalanobis,
    "rank-mahalanobis": _fit_rank_mahalanobis,
    "thanh": _fit_thanh,
    "hvdm": _fit_hvdm,
    "ivdm": _fit_ivdm,
    "propensity": _fit_propensity,
    "zhang": _fit_zhang,
}
