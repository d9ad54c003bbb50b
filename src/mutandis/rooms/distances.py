"""Distances other than those of Gower, HEOM and Mahalanobis: they learn from the table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm, prod, sqrt
from typing import TYPE_CHECKING

import numpy as np

from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Categories, Numbers
from mutandis.errors import EquationError, PlanError
from mutandis.geometry.distances import (
    LEAST,
    SPAN,
    Distance,
    Rescaled,
    canonical_rows,
    in_columns,
    names_of,
    root,
    rule_of,
    settled,
    squared_terms,
    squares,
    weights_of,
)
from mutandis.geometry.embedding import QUANTUM_BITS, Term, choose_unit
from mutandis.geometry.lattice import FINE_STEPS
from mutandis.geometry.metric import Metric, Points
from mutandis.scm.categorical import Categorical

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.attribute import Attribute
    from mutandis.data.columns import Column, Floats
    from mutandis.geometry.distances import Attributes, Learn, Sample, Weights
    from mutandis.geometry.embedding import Axis, Embedding
    from mutandis.scm.predictor import LinearPredictor

__all__ = ["HVDM", "IVDM", "PROPENSITY", "THANH", "ZHANG"]


# intervals of a number under IVDM: 5, or the number of classes if that is larger
_INTERVALS = 5
_SCORES = 2.0**40  # represents a probability of 1


# --- standard deviations instead of ranges ---


def _fit_thanh(embedding: Embedding, attributes: Attributes, learn: Learn) -> Embedding:
    """Fit the distance of k-NN situation testing (Thanh, Ruggieri & Turini 2011).

        d(x, x') = Σ_i w_i d_i(x_i, x'_i) / Σ_i w_i

    with d_i = |difference of z-scores| for numbers, |rank difference| / (levels - 1) for ordinal
    attributes, and for names 0 if equal and 1 if not. The weights default to 1, as published.
    """
    axes, weights, terms = embedding.axes, weights_of(attributes), []
    numbers = {each.name for each in attributes if each.kind is AttributeKind.CONTINUOUS}
    for axis, values in zip(axes, learn().points.coordinates.T, strict=True):
        size = 1 / Fraction(_deviation(values) / axis.length) if axis.name in numbers else 1
        least = LEAST if axis.steps == 1 else 1
        weight = weights[axis.name] * size
        terms.append(Term(name=axis.name, weight=weight, steps=axis.steps, least=least))
    names = [Term(name=name, weight=weights[name]) for name in embedding.nominal]
    total = sum(weights.values(), Fraction(0))
    unit = choose_unit([*terms, *names], weight=total)
    terms = [settled(term, unit, coarse=FINE_STEPS) for term in terms]
    ratios = [t.length(unit) / a.length for t, a in zip(terms, axes, strict=True)]
    metric = Metric(
        mismatch=np.array([term.length(unit) for term in names], dtype=np.int64),
        unit=float(unit * total),
        exact_unit=unit * total,
        move=Rescaled(ratios=np.array(ratios), columns=names_of(axes)),
        missing=embedding.metric.missing,
    )
    rules = {term.name: rule_of(term, unit) for term in terms}
    return replace(embedding, metric=metric, own_rules=rules)


def _deviation(values: NDArray[np.int64]) -> float:
    """Return the standard deviation; of sorted values, so that the order of rows has no part."""
    found = float(np.sort(values).astype(np.float64).std(ddof=1 if len(values) > 1 else 0))
    return found or 1.0


THANH = Distance(
    description=("each difference divided by its standard deviation in the table, then averaged"),
    fit=_fit_thanh,
    compares_missing=True,
)


# --- value differences: how often the reference group was refused with a value ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Where a number is moved to: between `knots`, its places are interpolated."""

    knots: Floats
    places: Floats  # a row per knot, a column per coordinate

    def at(self, coordinates: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return each coordinate of its places."""
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
        """Return the place of each point."""
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
        return in_columns(found, len(points))


def _fit_hvdm(embedding: Embedding, attributes: Attributes, learn: Learn) -> Embedding:
    """Fit the heterogeneous value difference metric (Wilson & Martinez 1997, eqs. 11-15, N2).

        d(x, x')² = Σ_i w_i d_i(x_i, x'_i)²

    with d_i = |difference| / 4σ_i for numbers and ranks, σ_i their standard deviation in D, and for
    names the root of Σ_c (P(c | x_i) - P(c | x'_i))² over the two outcomes c, as learned from the
    reference rows. The root is that of the erratum of 2000. The weights default to 1.
    """
    axes, weights, sample, lengths = embedding.axes, weights_of(attributes), learn(), {}
    for axis, values in zip(axes, sample.points.coordinates.T, strict=True):
        in_deviations = Fraction(axis.length / (4 * _deviation(values)))
        lengths[axis.name] = root(weights[axis.name]) * in_deviations
    total = sum((2 * weights[name] for name in embedding.nominal), Fraction(0))
    total += sum(
        (
            (lengths[axis.name] * Fraction(int(np.ptp(values)), axis.length)) ** 2
            for axis, values in zip(axes, sample.points.coordinates.T, strict=True)
        ),
        Fraction(0),
    )
    unit, terms = squared_terms(axes, lengths, total)
    ratios = tuple(t.length(unit) / a.length for t, a in zip(terms, axes, strict=True))
    tables = _value_tables(embedding, weights, sample, float(unit))
    move = Curved(
        numbers=ratios, tables=tuple(tables.values()), columns=(*names_of(axes), *_owners(tables))
    )
    rules = {term.name: rule_of(term, unit) for term in terms} | _learned(embedding.nominal, sample)
    return replace(embedding, metric=squares(unit, move), own_rules=rules)


def _fit_ivdm(embedding: Embedding, attributes: Attributes, learn: Learn) -> Embedding:
    """Fit the interpolated value difference metric (Wilson & Martinez 1997, eqs. 21-25).

        d(x, x')² = Σ_i w_i Σ_c (P_i(c | x_i) - P_i(c | x'_i))²

    over the two outcomes c, as learned from the reference rows: P is that of a level, and for a
    number that of its interval, of five that divide its range in D, interpolated between the
    middles of intervals, and 0 half an interval outside of the range.
    """
    weights, sample = weights_of(attributes), learn()
    ranks = {each.name for each in attributes if each.kind is AttributeKind.ORDINAL}
    total = sum((2 * weights[name] for name in embedding.names), Fraction(0))
    unit = Fraction(SPAN) / root(total, up=True)
    curves = []
    for axis, values in zip(embedding.axes, sample.points.coordinates.T, strict=True):
        size = float(unit) * sqrt(weights[axis.name])
        curves.append(
            _rank_curve(axis, values, sample, size)
            if axis.name in ranks
            else _interval_curve(values, sample, size)
        )
    tables = _value_tables(embedding, weights, sample, float(unit))
    twice = (name for name in names_of(embedding.axes) for _ in range(2))
    move = Curved(
        numbers=tuple(curves), tables=tuple(tables.values()), columns=(*twice, *_owners(tables))
    )
    return replace(
        embedding, metric=squares(unit, move), own_rules=_learned(embedding.names, sample)
    )


def _value_tables(
    embedding: Embedding, weights: Weights, sample: Sample, unit: float
) -> dict[str, NDArray[np.int64]]:
    """Return the place of every level of each nominal attribute."""
    tables = {}
    for name, codes, levels in zip(
        embedding.nominal, sample.points.codes.T, sample.levels, strict=True
    ):
        places = _value_places(codes, levels, sample) * (unit * sqrt(weights[name]))
        # where every level occurs among the reference rows, the second coordinate tells nothing
        width = 1 if (places[:, 1] > 0).all() else 2
        tables[name] = np.rint(places[:, :width]).astype(np.int64)
    return tables


def _value_places(cells: NDArray[np.integer], size: int, sample: Sample) -> Floats:
    """Return the outcomes' shares among the reference rows in each cell, 0 where there are none.

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
    """Return the place of every level, and interpolate for centers that lie between two of them."""
    # a step may be divided, for centers on the way from one level to the next
    levels = round(axis.scale) + 1
    rank = values // (axis.length // (levels - 1))
    knots = np.arange(levels, dtype=np.float64) * (axis.length / (levels - 1))
    return Curve(knots=knots, places=_value_places(rank, levels, sample) * size)


def _owners(tables: Mapping[str, NDArray[np.int64]]) -> tuple[str, ...]:
    return tuple(name for name, table in tables.items() for _ in range(table.shape[1]))


def _learned(names: Sequence[str], sample: Sample) -> dict[str, str]:
    rows = np.count_nonzero(sample.is_reference)
    return dict.fromkeys(names, f"value differences learned from {rows:,} reference rows")


HVDM = Distance(
    description=(
        "the root of the sum of squares, each number divided by four standard deviations, and "
        "names compared by how often the reference group was refused with them"
    ),
    fit=_fit_hvdm,
    needs_refusals=True,
)
IVDM = Distance(
    description=(
        "the root of the sum of squares, values compared by how often the reference group was "
        "refused with them"
    ),
    fit=_fit_ivdm,
    needs_refusals=True,
)


# --- propensity ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The one coordinate is the probability of the protected status."""

    score: LinearPredictor | None  # None until it is fitted
    names: tuple[str, ...]
    lengths: Floats
    levels: tuple[int, ...]
    columns: None = None

    def values(self, points: Points) -> dict[str, Column]:
        """Return the attributes of points as columns that a score is a function of."""
        numbers = [Numbers(each) for each in (points.coordinates / self.lengths).T]
        names = [
            Categories(np.minimum(codes, size), tuple(range(size + 1)))
            for codes, size in zip(points.codes.T, self.levels, strict=True)
        ]
        return dict(zip(self.names, [*numbers, *names], strict=True))

    def place(self, points: Points) -> Points:
        """Return the place of each point."""
        if self.score is None:
            raise RuntimeError("the score is fitted before anything is placed")
        log_odds = self.score.at(self.values(points), rows=len(points))
        small = np.exp(-np.abs(log_odds))
        probability = np.where(log_odds >= 0, 1.0, small) / (1 + small)
        return in_columns([np.rint(probability * _SCORES).astype(np.int64)], len(points))


def _fit_propensity(embedding: Embedding, _: Attributes, learn: Learn) -> Embedding:
    """Fit a propensity score (Qureshi et al. 2020): |e(x) - e(x')|, with e(x) = P(protected | x).

    The score is a logistic regression of the status on all attributes, by maximum likelihood on
    the rows of the two groups; names have a coefficient per level.
    """
    sample = learn()
    rows = canonical_rows(sample)
    move = Scored(
        score=None,
        names=embedding.names,
        lengths=np.array([float(axis.length) for axis in embedding.axes]),
        levels=sample.levels,
    )
    try:
        score = _explain_status(move.values(sample.points.take(rows)), sample.is_protected[rows])
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


def _explain_status(
    parents: Mapping[str, Column], is_protected: NDArray[np.bool_]
) -> LinearPredictor:
    """Fit the log-odds of the protected status."""
    status = Categories(is_protected.astype(np.int32), (False, True))
    return Categorical(*parents).fit(status, parents).predictors[0]


PROPENSITY = Distance(
    description=(
        "the difference between their propensity scores, the probability of the protected status "
        "given these attributes"
    ),
    fit=_fit_propensity,
    weightless="a propensity score weighs attributes itself",
)


# probabilities are rounded to no coarser than this part of 1
_LEAST = 2**20
# what a sum of terms, or the number of a cell, has to stay below
_LARGEST = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Combinations of levels: those of attributes with an order, then those of names."""

    sizes: tuple[int, ...]  # how many levels each attribute has
    steps: NDArray[np.int64]  # from one level to the next, in coordinates of those with an order

    @classmethod
    def of(cls, embedding: Embedding, names: tuple[int, ...]) -> Cells:
        ordered = [round(axis.scale) + 1 for axis in embedding.axes]
        lengths = (axis.length for axis in embedding.axes)
        steps = [length // (size - 1) for length, size in zip(lengths, ordered, strict=True)]
        return cls(sizes=(*ordered, *names), steps=np.array(steps, dtype=np.int64))

    @property
    def radix(self) -> NDArray[np.int64]:
        """By how much the number of a cell grows with each level of an attribute."""
        after = range(1, len(self.sizes) + 1)
        return np.array([prod(self.sizes[place:]) for place in after], dtype=np.int64)

    def levels(self, points: Points) -> NDArray[np.int64]:
        """Return the level of each attribute; a value between two levels has the nearer one."""
        # the lower one, where both are equally near
        ranks = (2 * points.coordinates + self.steps - 1) // (2 * self.steps)
        ranks = np.clip(ranks, 0, np.array(self.sizes[: len(self.steps)], dtype=np.int64) - 1)
        return np.concatenate([ranks, points.codes.astype(np.int64)], axis=1)

    def number(self, levels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each cell its number: -1 with a level that no row of D has."""
        inside = (levels < np.array(self.sizes)).all(axis=1)
        return np.where(inside, (levels * self.radix).sum(axis=1), -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """Causal effects of differences on the decision, at every center (Zhang, Wu & Wu 2016).

        d(x, x') = Σ_i |CE(x_i, x'_i) VD(x_i, x'_i)|
        CE(x_i, x'_i) = P(refused | do(x)) - P(refused | do(x, but x'_i instead of x_i))

    VD is the difference of Gower's distance. The attributes are taken for all parents of the
    decision but the status a, which is a root of every worldview, so that

        P(refused | do(x)) = Σ_a P(a) P(refused | a, x)

    with shares of rows for probabilities. x is the center: the weight of a difference depends on
    where it is measured from, and the distance back may be another one. So points have no places,
    and a search measures from each distinct center to each distinct point.
    """

    cells: Cells
    known: NDArray[np.int64]  # the cells in which there are rows of both statuses, sorted
    refused: NDArray[np.int64]  # the probability of a refusal in each of them
    certain: int  # represents a probability of 1
    apart: int  # represents the difference of two names, or of the first and the last level
    seen: int  # how many cells have rows at all

    @classmethod
    def learn(cls, embedding: Embedding, sample: Sample) -> Effects:
        """Count refusals in every cell that occurs."""
        cells = Cells.of(embedding, sample.levels)
        apart = lcm(*(size - 1 for size in cells.sizes[: len(cells.steps)]))
        room = _LARGEST // (apart * len(cells.sizes) + 1)
        certain = 2 ** min(QUANTUM_BITS, room.bit_length() - 1)
        if prod(cells.sizes) >= _LARGEST or certain < _LEAST:
            raise PlanError(
                "distance='zhang' counts people in each combination of levels, and the "
                f"{len(cells.sizes)} attributes have too many of them. Merge levels, or leave "
                "attributes out."
            )
        number = cells.number(cells.levels(sample.points))
        compared = sample.is_protected | sample.is_reference
        seen, cell = np.unique(number[compared], return_inverse=True)
        rate = np.zeros(len(seen))
        is_known = np.ones(len(seen), dtype=np.bool_)
        for status in (sample.is_protected, sample.is_reference):
            mine, negative = status[compared], sample.is_negative[compared]
            people = np.bincount(cell[mine], minlength=len(seen))
            refused = np.bincount(cell[mine & negative], minlength=len(seen))
            rate += mine.sum() * (refused / np.maximum(people, 1))
            is_known &= people > 0
        refused = np.rint(rate / compared.sum() * certain).astype(np.int64)
        return cls(
            cells=cells,
            known=seen[is_known],
            refused=refused[is_known],
            certain=certain,
            apart=apart,
            seen=len(seen),
        )

    @property
    def unit(self) -> int:
        """The integer that represents a distance of 1."""
        return self.certain * self.apart

    def terms(self, center: Points, points: Points) -> NDArray[np.int64]:
        """Return what each attribute adds to the distance of each point from one center."""
        cells, here = self.cells, self.cells.levels(center)
        there, cell = cells.levels(points), cells.number(here)
        is_known, mine = self._look_up(cell)
        found = np.empty(there.shape, dtype=np.int64)
        for column, (size, radix) in enumerate(zip(cells.sizes, cells.radix, strict=True)):
            level, others = here[0, column], np.arange(size)
            seen, theirs = self._look_up(cell + (others - level) * radix)
            # an effect that is not known may be as large as any
            effect = np.where(is_known & seen, np.abs(theirs - mine), self.certain)
            if column < len(cells.steps):
                difference = np.abs(others - level) * (self.apart // (size - 1))
            else:
                difference = (others != level) * self.apart
            found[:, column] = (effect * difference)[there[:, column]]
        return found

    def _look_up(self, cells: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Find which cells are known, and the probability of a refusal in those."""
        if not len(self.known):
            return np.zeros(len(cells), dtype=np.bool_), np.zeros(len(cells), dtype=np.int64)
        at = np.minimum(np.searchsorted(self.known, cells), len(self.known) - 1)
        return self.known[at] == cells, self.refused[at]


def _fit_zhang(embedding: Embedding, _: Attributes, learn: Learn) -> Embedding:
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


def _refuse_numbers(attributes: Collection[Attribute]) -> None:
    numbers = [each.name for each in attributes if each.kind is AttributeKind.CONTINUOUS]
    if numbers:
        raise PlanError(
            "distance='zhang' estimates effects by counting people who agree in all attributes, "
            f"and {numbers[0]!r} is continuous. Group its values into levels and declare it as "
            "ordinal, or take distance='gower'."
        )


ZHANG = Distance(
    description=(
        "the sum of differences, each weighted by its causal effect on the decision where all else "
        "is as at the center"
    ),
    fit=_fit_zhang,
    needs_refusals=True,
    weightless="the effects on the decision are the weights",
    check=_refuse_numbers,
)
