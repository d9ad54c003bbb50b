"""Distances between people: Gower's is the default, and others are found in the registry.

A distance is fitted once on the factual D, as an `Embedding` is, and returns a `Metric`: it moves
points from the lattice of the embedding to places where the distance is a sum of absolute
differences, or the root of a sum of squares, and of mismatches of names. Points keep their
coordinates on the lattice: groups are balanced, drawn between values and described there, and only
the search measures at the places.

Places are whole numbers. Under squares, all places of D lie within 2**25 of each other, so that a
sum of squares has at most 50 bits: float64 holds it, and from centers as far out as the lattice
reaches it fits int64. Consequences: a column without a grid, or with one that has no common measure
with the others, is rounded to 2**-20 of its range or finer, and equal differences in it may be told
apart. Grids of up to 2**11 steps stay grids; at most the weight of such an attribute changes, in
the 13th bit or later. `Embedding.rules` names the rule that was used.

What a distance learns from D is added up in an order that depends on the values of rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt, sqrt
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mutandis.data.attribute import Attribute
from mutandis.errors import PlanError, listed
from mutandis.geometry.embedding import QUANTUM_BITS, Embedding, Term, fill_room
from mutandis.geometry.metric import Metric, Points
from mutandis.registry import find, names

if TYPE_CHECKING:
    from mutandis.geometry.embedding import Axis
    from mutandis.geometry.metric import Move
    from mutandis.mapped import Bools, Floats, Ints, Rows


# the longest way between two places of D, where distances are squared
SPAN = 2**25
# a grid with more steps than this is kept only where its steps are whole numbers
_COARSE = 2**11
# a column that is not kept as a grid is rounded to no coarser than half of this part of its range
LEAST = 2**19
# a variance that falls below this part of itself, once the others are known, is rounding
_SINGULAR = 1e-10
# under Mahalanobis, the steps of grids that are coarser than this are whole numbers
_WHOLE_STEPS = 2**8


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Rows of D that a distance may learn from.

    Rows that are neither protected nor of the reference group teach nothing about groups.
    """

    points: Points
    is_protected: Bools
    is_reference: Bools
    is_negative: Bools
    levels: tuple[int, ...]  # how many levels each nominal attribute has


Attributes: TypeAlias = Sequence[Attribute]
Weights: TypeAlias = Mapping[str, Fraction]
Learn: TypeAlias = Callable[[], Sample]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """A way to measure how far apart two people are.

    Parameters
    ----------
    description
        What it measures, in a few words.
    fit
        Returns the embedding with the metric of this distance. Its third argument returns the
        sample that the distance may learn from; it costs time, so it is called only if needed.
    needs_refusals
        Whether it learns from how often people are refused.
    weightless
        Why attributes cannot have weights; empty if they can.
    compares_missing
        Whether it defines the difference to a missing value.
    check
        Refuses attributes that it cannot compare.
    """

    description: str
    fit: Callable[[Embedding, Attributes, Learn], Embedding]
    needs_refusals: bool = False
    weightless: str = ""
    compares_missing: bool = False
    check: Callable[[Collection[Attribute]], None] | None = None


def distance_named(name: str) -> Distance:
    """Find a distance by its name."""
    found = find("distance", name)
    if not isinstance(found, Distance):
        raise PlanError(
            f"The distance {name!r} is registered as {type(found).__name__}. Register a Distance."
        )
    return found


def check_distance(name: str, attributes: Collection[Attribute]) -> None:
    """Refuse attributes and weights that have no meaning in a distance."""
    distance = distance_named(name)
    weighted = [each.name for each in attributes if each.exact_weight != 1]
    if weighted and distance.weightless:
        raise PlanError(
            f"distance={name!r} takes no weights: {distance.weightless}. Leave the weight of "
            f"{weighted[0]!r} out, or take distance='gower'."
        )
    lacking = [each.name for each in attributes if each.compare_missing]
    if lacking and not distance.compares_missing:
        able = [each for each in names("distance") if distance_named(each).compares_missing]
        raise PlanError(
            f"Attribute {lacking[0]!r} has compare_missing, and distance={name!r} does not compare "
            f"missing values here: {listed(able)} do. Take one of these, or leave "
            "compare_missing out."
        )
    if distance.check is not None:
        distance.check(attributes)


# --- places of points ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescaled:
    """Numbers are multiplied, each by its own ratio, and names stay as they are."""

    ratios: Floats
    columns: tuple[str, ...]

    def place(self, points: Points) -> Points:
        """Return the place of each point."""
        # values on a grid come out whole, since ratios are those of whole steps
        coordinates = np.rint(points.coordinates * self.ratios).astype(np.int64)
        return Points(coordinates=coordinates, codes=points.codes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    """Every attribute adds to every coordinate: numbers, or twice their ranks, by a ratio."""

    ratios: Floats  # a row per number, a column per coordinate
    tables: tuple[Ints, ...]  # a row per level, the last one for unknown ones
    ranked: tuple[Ints, ...] = ()  # the sorted values of each number in D
    columns: None = None

    def place(self, points: Points) -> Points:
        """Return the place of each point."""
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


def in_columns(found: Sequence[Ints], size: int) -> Points:
    """Make points of columns of coordinates, without names."""
    coordinates = np.empty((size, len(found)), dtype=np.int64)
    for column, values in enumerate(found):
        coordinates[:, column] = values
    return Points(coordinates=coordinates, codes=np.empty((size, 0), dtype=np.int32))


# --- Gower and HEOM ---


GOWER = Distance(
    description="each difference divided by its range in the table, then averaged",
    fit=lambda embedding, _attributes, _learn: embedding,
)


def _fit_heom(embedding: Embedding, attributes: Attributes, _: Learn) -> Embedding:
    """Fit the heterogeneous Euclidean-overlap metric (Wilson & Martinez 1997, eqs. 3-5).

        d(x, x')² = Σ_i w_i d_i(x_i, x'_i)²

    with d_i = |difference| / range for numbers and ranks, and for names 0 if equal and 1 if not.
    The weights are not in the paper; they default to 1.
    """
    axes, weights = embedding.axes, weights_of(attributes)
    lengths = {axis.name: root(weights[axis.name]) * axis.extent for axis in axes}
    total = sum((weights[name] for name in embedding.names), Fraction(0))
    unit, terms = squared_terms(axes, lengths, total)
    ratios = [t.length(unit) / a.length for t, a in zip(terms, axes, strict=True)]
    mismatch = [round(unit**2 * weights[name]) for name in embedding.nominal]
    metric = squares(unit, Rescaled(ratios=np.array(ratios), columns=names_of(axes)))
    costs = np.array(mismatch, dtype=np.int64)
    metric = replace(metric, mismatch=costs, missing=embedding.metric.missing)
    rules = {term.name: rule_of(term, unit) for term in terms}
    return replace(embedding, metric=metric, own_rules=rules)


HEOM = Distance(
    description="the root of the sum of squares, each difference divided by its range in the table",
    fit=_fit_heom,
    compares_missing=True,
)


# --- Mahalanobis ---


def _fit_mahalanobis(embedding: Embedding, _: Attributes, learn: Learn) -> Embedding:
    """Fit Mahalanobis' distance, with the covariance S that is pooled within the two groups.

        d(x, x')² = (x - x')ᵀ S⁻¹ (x - x')

    Each level of a nominal attribute but one is a number, 0 or 1; which one is left out changes no
    distance. A level that no row of the two groups has is placed with the one left out.
    """
    sample = learn()
    rows = canonical_rows(sample)
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
    return replace(embedding, metric=squares(Fraction(unit), move), own_rules=rules)


def _fit_rank_mahalanobis(embedding: Embedding, _: Attributes, learn: Learn) -> Embedding:
    """Fit the rank-based variant (Rosenbaum 2010, section 8.3).

    Numbers are replaced by their ranks among all rows of the two groups, equal ones by the mean of
    theirs; the covariance of ranks is that of all rows, and the variance of ties is raised to that
    of ranks without any. A value that no row has is ranked between its neighbours.
    """
    sample = learn()
    for name, levels in zip(embedding.nominal, sample.levels, strict=True):
        if levels > 2:
            raise PlanError(
                f"distance='rank-mahalanobis' ranks values, and attribute {name!r} has {levels} "
                "levels without an order. Take distance='mahalanobis', or leave the attribute out."
            )
    rows = canonical_rows(sample)
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
    return replace(embedding, metric=squares(Fraction(unit), move), own_rules=rules)


def canonical_rows(sample: Sample) -> Rows:
    """Return the rows of the two groups in an order that depends on their values alone."""
    rows = np.flatnonzero(sample.is_protected | sample.is_reference)
    keys = [
        *(each[rows] for each in sample.points.codes.T),
        *(each[rows] for each in sample.points.coordinates.T),
        sample.is_protected[rows],
    ]
    return rows[np.lexsort(keys)]


def _indicators(
    embedding: Embedding, sample: Sample, rows: Rows
) -> tuple[Floats, list[tuple[str, int]]]:
    """Return numbers in lengths of their axes, and indicators of all levels but the first."""
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
    embedding: Embedding, sample: Sample, places: Floats, owners: Sequence[tuple[str, int]]
) -> tuple[Ints, ...]:
    """Return the place of every level of each nominal attribute."""
    tables = {
        name: np.zeros((levels + 1, len(places)), dtype=np.int64)
        for name, levels in zip(embedding.nominal, sample.levels, strict=True)
    }
    for column, (name, level) in enumerate(owners):
        if level >= 0:
            tables[name][level] = np.rint(places[:, column]).astype(np.int64)
    return tuple(tables.values())


def _refuse_constant(deviation: Floats, owners: Sequence[tuple[str, int]]) -> None:
    for (name, _), each in zip(owners, deviation.tolist(), strict=True):
        if not each > 0:
            raise PlanError(
                f"Attribute {name!r} does not vary within the two groups that are compared, so "
                "its covariance has no inverse. Leave it out, or take distance='gower'."
            )


def _whiten(covariance: Floats, owners: Sequence[tuple[str, int]]) -> Floats:
    """Return the matrix W with Wᵀ W = S⁻¹: the inverse of the triangle L in S = L Lᵀ."""
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


def _unit_of(places: Floats) -> float:
    """Return the largest power of two that keeps multiplied places within the span."""
    widest = sqrt(float(np.add.reduce(np.ptp(places, axis=1) ** 2)))
    return float(2.0 ** np.floor(np.log2(SPAN / max(widest, 2.0**-20))))


def _whole_steps(places: Floats, axis: Axis) -> Floats:
    """Return the ratios that lead to places of a whole axis; steps of a coarse grid stay whole."""
    halves = 2 * axis.steps
    if 1 < axis.steps <= _WHOLE_STEPS:
        places = np.rint(places / halves) * halves
    return np.asarray(places / axis.length)


def _double_ranks(order: Ints, values: Ints) -> Ints:
    """Return twice the rank of values among sorted ones: of equal ones, the mean of theirs."""
    return np.asarray(
        np.searchsorted(order, values) + np.searchsorted(order, values, side="right") + 1,
        dtype=np.int64,
    )


_WEIGHTLESS = "it divides by the covariance, and any weight cancels out"
MAHALANOBIS = Distance(
    description="Mahalanobis distance, with the covariance within the two groups",
    fit=_fit_mahalanobis,
    weightless=_WEIGHTLESS,
)
RANK_MAHALANOBIS = Distance(
    description="Mahalanobis distance of ranks in the table",
    fit=_fit_rank_mahalanobis,
    weightless=_WEIGHTLESS,
)


# --- for all of them ---


def weights_of(attributes: Attributes) -> Weights:
    """Return the weight of each attribute."""
    return {each.name: each.exact_weight for each in attributes}


def names_of(axes: Sequence[Axis]) -> tuple[str, ...]:
    """Return the attribute of each axis."""
    return tuple(axis.name for axis in axes)


def squares(unit: Fraction, move: Move) -> Metric:
    """Return the metric of a root of a sum of squares."""
    none = np.empty(0, dtype=np.int64)
    return Metric(mismatch=none, unit=float(unit), exact_unit=unit, squared=True, move=move)


def squared_terms(
    axes: Sequence[Axis], lengths: Mapping[str, Fraction], total: Fraction
) -> tuple[Fraction, list[Term]]:
    """Choose the unit in which axes of these lengths are whole; squares add up to `total`."""
    terms = [
        Term(
            name=axis.name,
            weight=lengths[axis.name],
            steps=axis.steps,
            least=LEAST if axis.steps == 1 else 1,
        )
        for axis in axes
    ]
    unit = fill_room(terms, room=Fraction(SPAN) / root(total, up=True))
    return unit, [settled(term, unit, coarse=_COARSE) for term in terms]


def root(value: Fraction, *, up: bool = False) -> Fraction:
    """Return the root of a fraction: exactly where it is one, else to 60 bits."""
    over, under = isqrt(value.numerator), isqrt(value.denominator)
    if over**2 == value.numerator and under**2 == value.denominator:
        return Fraction(over, under)
    return Fraction(isqrt(value.numerator * 4**60 // value.denominator) + up, 2**60)


def settled(term: Term, unit: Fraction, *, coarse: int) -> Term:
    """Drop a grid so fine that its steps would be rounded too coarsely in this unit."""
    if term.steps <= coarse or term.is_exact(unit):
        return term
    return replace(term, steps=1, least=LEAST)


def rule_of(term: Term, unit: Fraction) -> str:
    """Describe how equal distances are recognised."""
    if term.steps == 1:
        bits = min(term.length(unit).bit_length() - 1, QUANTUM_BITS)
        return f"quantised to 2^-{bits}"
    return f"lattice of {term.steps} steps" + ("" if term.is_exact(unit) else ", weight rounded")
