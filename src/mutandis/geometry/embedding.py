"""Attributes turned into exact coordinates, fitted once on the factual D.

Fit once, apply twice: the same origin and the same range serve the factual and the counterfactual
rows (docs/adr/0001-scale.md). A counterfactual may lie outside the range and is not clipped.

The distances of all attributes are whole numbers of a common unit. Half a step of attribute i costs
``unit * weight_i / (2 * steps_i)``. The unit is chosen so that this is an integer for as many
attributes as int64 has room for: then their sums are exact. What does not fit is rounded to an
integer once, step by step: an attribute's own differences stay exact multiples of each other, and
only its weight relative to the others moves, in the 24th bit or later.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import gcd, isfinite, lcm
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.data.attribute import MISSING, AttributeKind
from mutandis.data.rows import ByRow
from mutandis.errors import InputError, MutandisWarning, PlanError
from mutandis.geometry.lattice import FINE_STEPS, Lattice, find_lattice, float_noise
from mutandis.geometry.metric import Metric, Points
from mutandis.mapped import empty

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.attribute import Attribute
    from mutandis.data.columns import Column
    from mutandis.data.population import Population
    from mutandis.mapped import Floats, Ints, Rows

Scaling = Literal["range", "none"]

QUANTUM_BITS = 40
"""A column without a grid is rounded to this many bits of its range."""
# half the range of a quantised column must measure at least this, or rounding would show
_LEAST = 2**19
# A center further out than this many ranges is moved in to it, and the rest is kept separately:
# from there every row lies on the same side, so all distances shrink alike and the order stays.
_REACH = 32.0
# rows per block, which stays in the processor's cache
_BLOCK = 1 << 14
FINEST = 2**53
"""All ranges together measure at most this: float64 holds it, and 32 times as much fits int64."""

# distances are shown as floats, and so the unit must be one, however small unscaled values are
_LARGEST_UNIT = Fraction(2) ** 1023


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One attribute with an order, as a coordinate: (value - origin) / scale is its position."""

    name: str
    origin: float
    scale: float
    steps: int  # of the grid between the positions 0 and 1; a column without a grid has one
    noise: float  # by which rounding may have moved a position
    length: int  # stands for position 1, weight included; a multiple of 2 * steps
    extent: Fraction  # the part of the range in D that lies between the positions 0 and 1
    quantum: int  # what lies off the grid is rounded to multiples of it
    rule: str  # how equal distances are recognised

    def place(self, values: Floats) -> tuple[Ints, Floats]:
        """Return integer coordinates, and how far out of reach each position was."""
        coordinates = np.empty(len(values), dtype=np.int64)
        overflow: Floats = np.broadcast_to(0.0, len(values))
        for start in range(0, len(values), _BLOCK):
            rows = slice(start, start + _BLOCK)
            coordinates[rows], rest = self._place(values[rows])
            if rest.any():
                overflow = overflow if overflow.flags.writeable else overflow.copy()
                overflow[rows] = rest
        return coordinates, overflow

    def _place(self, values: Floats) -> tuple[Ints, Floats]:
        with np.errstate(over="ignore"):  # infinitely far out is out of reach, not an error
            position = (values - self.origin) / self.scale
        within = np.clip(position, -_REACH, 1 + _REACH)
        rounded = np.rint(within * (self.length / self.quantum)).astype(np.int64) * self.quantum
        # Midway between two grid points counts as on the grid: a center there has neighbours at
        # equal distances on both sides.
        halves = 2 * self.steps
        nearest = np.rint(within * halves)
        slack = np.minimum(2 * self.noise * halves * (1 + np.abs(within)), 0.25)
        on_grid = np.abs(within * halves - nearest) <= slack
        exact = nearest.astype(np.int64) * (self.length // halves)
        return np.where(on_grid, exact, rounded), np.abs(position - within)


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded(ByRow):
    """Rows as points, with the distance that was left out of reach (almost always 0)."""

    points: Points
    overflow_distance: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """A fitted embedding."""

    axes: tuple[Axis, ...]  # the continuous and ordinal attributes
    nominal: tuple[str, ...]
    constant: tuple[str, ...]  # they never vary in D and contribute nothing
    metric: Metric
    # how another distance than Gower's recognises equal distances, by attribute
    own_rules: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        population: Population,
        attributes: Sequence[Attribute],
        *,
        scaling: Scaling = "range",
        parts: int = 1,
    ) -> Embedding:
        """Fit origin, scale and grid of every attribute on the factual population.

        Each step of a grid is divided into `parts`, for centers that lie between the values.
        """
        varying = [a for a in attributes if _varies(population.columns[a.name])]
        constant = tuple(a.name for a in attributes if a not in varying)
        for name in constant:
            warnings.warn(
                f"Attribute {name!r} is constant: it contributes 0 to every distance.",
                MutandisWarning,
                stacklevel=2,
            )
        weight = sum((a.exact_weight for a in attributes), Fraction(0))
        ordered = [a for a in varying if a.kind is not AttributeKind.NOMINAL]
        drafts = [
            _draft(a, _ordered(population.columns[a.name]), scaling=scaling, parts=parts)
            for a in ordered
        ]
        nominal = [
            Term(name=a.name, weight=a.exact_weight)
            for a in varying
            if a.kind is AttributeKind.NOMINAL
        ]
        unit = choose_unit([*(draft.term for draft in drafts), *nominal], weight=weight)
        return cls(
            axes=_axes([draft.settled(unit) for draft in drafts], unit),
            nominal=tuple(term.name for term in nominal),
            constant=constant,
            metric=Metric(
                mismatch=np.array([term.length(unit) for term in nominal], dtype=np.int64),
                unit=float(unit * weight),
                exact_unit=unit * weight,
                missing=_missing_codes(population, varying),
            ),
        )

    def apply(self, population: Population, rows: Rows | None = None) -> Embedded:
        """Embed rows, factual or counterfactual: some of them, or all."""

        def part(name: str) -> Column:
            return population.columns[name] if rows is None else population.part(name, rows)

        size = len(population) if rows is None else len(rows)
        coordinates = empty((size, len(self.axes)), np.int64)
        overflow: Floats = np.broadcast_to(0.0, size)  # hardly ever more: no memory
        for index, axis in enumerate(self.axes):
            coordinates[:, index], rest = axis.place(_ordered(part(axis.name)))
            # for another distance, what lies out of reach lies where the reach ends
            if rest.any() and self.metric.move is None:
                overflow = overflow + rest * (axis.length / self.metric.unit)
        codes = empty((size, len(self.nominal)), np.int32)
        for index, name in enumerate(self.nominal):
            codes[:, index] = part(name).data
        points = Points(coordinates=coordinates, codes=codes)
        return Embedded(points=points, overflow_distance=overflow)

    def split(self, center: Points, points: Points) -> dict[str, Floats] | None:
        """Split the distance from a center to each point by attribute.

        Of a sum of squares, each attribute has the part of the root that its square has in the sum.
        None where a distance mixes attributes.
        """
        metric, move = self.metric, self.metric.move
        columns = tuple(axis.name for axis in self.axes) if move is None else move.columns
        if columns is None:
            return None
        everything = metric.split(center, points)
        whole = metric.from_center(center, points)
        length = np.where(whole > 0, metric.lengths(whole), 1.0) if metric.squared else 1.0
        split = {name: np.zeros(len(points)) for name in (*self.names, *self.constant)}
        names = (*columns, *self.nominal)  # where names became numbers, no codes are left
        for name, column in zip(names, everything.T, strict=False):
            split[name] += column / length / metric.unit
        return split

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that vary: those with an order, then the nominal ones."""
        return (*(axis.name for axis in self.axes), *self.nominal)

    @property
    def rules(self) -> dict[str, str]:
        """How equal distances are recognised, by attribute."""
        return {
            **{axis.name: axis.rule for axis in self.axes},
            **dict.fromkeys(self.nominal, "equal or different"),
            **dict.fromkeys(self.constant, "constant"),
            **self.own_rules,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _AxisDraft:
    """An axis before the common unit is known."""

    low: float
    high: float
    lattice: Lattice | None
    term: Term
    extent: Fraction = Fraction(1)  # as `Axis` has it

    def settled(self, unit: Fraction) -> _AxisDraft:
        """Drop a lattice so fine that its steps would be rounded too coarsely in this unit."""
        if self.term.steps <= FINE_STEPS or self.term.is_exact(unit):
            return self
        return replace(self, lattice=None, term=replace(self.term, steps=1, least=_LEAST))

    def rule(self, unit: Fraction, *, quantum: int) -> str:
        """Describe how equal distances are recognised."""
        bits = (self.term.length(unit) // quantum).bit_length() - 1
        if self.lattice is None:
            return f"quantised to 2^-{bits}"
        strays = self.lattice.strays
        aside = f", {strays} values off it quantised to 2^-{bits}" if strays else ""
        rounded = "" if self.term.is_exact(unit) else ", weight rounded"
        return f"lattice of {self.term.steps} steps{aside}{rounded}"


def _draft(attribute: Attribute, values: Floats, *, scaling: Scaling, parts: int) -> _AxisDraft:
    if attribute.kind is AttributeKind.ORDINAL:
        return _draft_ranks(attribute, parts=parts)
    low, high = float(values.min()), float(values.max())
    if not isfinite(high - low):
        raise InputError(
            f"Attribute {attribute.name!r} spans more than float64 can measure (1.8e308). "
            "Rescale it."
        )
    lattice = find_lattice(values)
    if lattice is not None and lattice.steps * parts <= FINE_STEPS:
        lattice = replace(lattice, steps=lattice.steps * parts)
    whole = _extent(low, high)
    if lattice is not None:
        low, high = lattice.low, lattice.high
    extent = _extent(low, high) / whole
    return _AxisDraft(
        low=low,
        high=high,
        lattice=lattice,
        term=Term(
            name=attribute.name,
            weight=attribute.exact_weight * (extent if scaling == "range" else extent * whole),
            steps=lattice.steps if lattice else 1,
            least=1 if lattice else _LEAST,
        ),
        extent=extent,
    )


def _draft_ranks(attribute: Attribute, *, parts: int) -> _AxisDraft:
    """Ranks are whole by definition, whichever of them occur."""
    high = len(attribute.levels) - 1
    steps = high * parts
    lattice = Lattice(low=0.0, high=float(high), steps=steps, noise=float_noise(1.0, 1.0))
    term = Term(name=attribute.name, weight=attribute.exact_weight, steps=steps)
    return _AxisDraft(low=lattice.low, high=lattice.high, lattice=lattice, term=term)


def _extent(low: float, high: float) -> Fraction:
    """Measure from one value to another, both read as the decimals that they show."""
    return Fraction(repr(high)) - Fraction(repr(low))


def _axes(drafts: Sequence[_AxisDraft], unit: Fraction) -> tuple[Axis, ...]:
    lengths = [draft.term.length(unit) for draft in drafts]
    # one quantum for all: what is rounded off one coordinate can be made up for by another
    quantum = 1 << max(0, min(lengths, default=1).bit_length() - 1 - QUANTUM_BITS)
    return tuple(
        Axis(
            name=draft.term.name,
            origin=draft.low,
            scale=draft.high - draft.low,
            steps=draft.term.steps,
            noise=draft.lattice.noise if draft.lattice else float_noise(0.0, 1.0),
            length=length,
            extent=draft.extent,
            quantum=quantum,
            rule=draft.rule(unit, quantum=quantum),
        )
        for draft, length in zip(drafts, lengths, strict=True)
    )


def _missing_codes(
    population: Population, attributes: Iterable[Attribute]
) -> NDArray[np.int32] | None:
    """Return the code of missing values by nominal attribute, -1 for none; None if none has any."""
    codes = [
        population.categories(each.name).code_of(MISSING) if each.compare_missing else None
        for each in attributes
        if each.kind is AttributeKind.NOMINAL
    ]
    if all(code is None for code in codes):
        return None
    return np.array([-1 if code is None else code for code in codes], dtype=np.int32)


def _varies(column: Column) -> bool:
    values = _ordered(column)
    return bool(values.min() < values.max())


def _ordered(column: Column) -> Floats:
    """Return a column's numbers, or its codes, which are ranks where the attribute is ordinal."""
    return column.data.astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What one attribute adds to the distance."""

    name: str
    weight: Fraction  # of its whole range, which is divided into equal steps
    steps: int = 1
    least: int = 1  # the integer that half a step must have

    @property
    def need(self) -> Fraction:
        """The number of which the unit must be a multiple, for half a step to be an integer."""
        return 2 * self.steps / self.weight

    def is_exact(self, unit: Fraction) -> bool:
        return (unit / self.need).denominator == 1

    def length(self, unit: Fraction) -> int:
        """Return the integer that stands for the whole range."""
        half_step = round(unit / self.need)
        if half_step < self.least:
            raise PlanError(
                f"Attribute {self.name!r} counts so little beside the others that its differences "
                "cannot be told apart. Use weights that are nearer to each other, and with "
                "scaling='none' values that are."
            )
        return half_step * 2 * self.steps


def choose_unit(terms: Iterable[Term], *, weight: Fraction) -> Fraction:
    """Choose the unit of a sum of terms, all of whose weights add up to `weight`."""
    terms = tuple(terms)
    spread = sum((term.weight for term in terms), Fraction(0)) or Fraction(1)
    return fill_room(terms, room=min(FINEST / spread, _LARGEST_UNIT / weight))


def fill_room(terms: Iterable[Term], *, room: Fraction) -> Fraction:
    """Choose the largest unit there is room for that makes as many terms exact as possible."""
    # Terms enter in the order of the common multiples they ask for, smallest first: the outcome
    # does not depend on the order of the attributes.
    waiting = {term.need for term in terms}
    unit = Fraction(0)
    while waiting:
        needed, entering = min((_common_multiple(unit, need), need) for need in waiting)
        if needed > room:
            break
        unit = needed
        waiting.remove(entering)
    unit = unit or room / FINEST
    # what room is left makes the unit finer, for centers that lie between grid points
    return unit * (1 << int(room / unit).bit_length() - 1)


def _common_multiple(first: Fraction, second: Fraction) -> Fraction:
    """Return the smallest common multiple of two fractions, where 0 has every multiple."""
    if not first:
        return second
    return Fraction(
        lcm(first.numerator, second.numerator), gcd(first.denominator, second.denominator)
    )
