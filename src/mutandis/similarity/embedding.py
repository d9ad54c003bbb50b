"""Where people stand: attributes turned into exact coordinates, fitted once on the factual D.

Fit once, apply twice: the same origin and the same range serve the factual and the counterfactual
rows (docs/adr/0001-scale.md). A counterfactual may lie outside the range and is not clipped.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, lcm, log2
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.domain.attribute import AttributeKind
from mutandis.errors import MutandisWarning, PlanError
from mutandis.similarity.distance import Metric, Points
from mutandis.similarity.lattice import find_steps, float_noise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.domain.attribute import Attribute
    from mutandis.domain.population import Population

__all__ = ["Axis", "Embedded", "Embedding", "Scaling"]

Scaling = Literal["range", "none"]

_QUANTUM_BITS = 40
# A center further out than this many ranges is moved in to it, and the rest is kept aside: seen
# from there every row lies on the same side, so all distances shrink alike and the order stays.
_REACH = 32.0
# distances must stay below this, or int64 sums would overflow
_CAPACITY = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One attribute with an order, as a coordinate.

    Parameters
    ----------
    name
        The attribute.
    origin, scale
        A value v stands at (v - origin) / scale.
    noise
        How far rounding may have moved that position.
    steps
        The grid: positions are whole multiples of 1 / steps.
    on_lattice
        Whether all of D lies on that grid exactly, or was rounded to it (quantised).
    length
        The integer that stands for position 1, the weight included.
    """

    name: str
    origin: float
    scale: float
    noise: float
    steps: int
    on_lattice: bool
    length: int

    def place(self, values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Give integer coordinates, and how far beyond reach each position was."""
        position = (values - self.origin) / self.scale
        within = np.clip(position, -_REACH, 1 + _REACH)
        nearest = np.rint(within * self.steps)
        on_grid = np.abs(within * self.steps - nearest) <= 2 * self.noise * self.steps
        if not self.on_lattice:
            on_grid = np.ones_like(on_grid)
        # between grid points (only centers get there) the finer unit of the metric takes over
        exact = nearest.astype(np.int64) * (self.length // self.steps)
        rounded = np.rint(within * self.length).astype(np.int64)
        return np.where(on_grid, exact, rounded), np.abs(position - within)


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Rows as points, with what was left beyond reach (in distance units; almost always 0)."""

    points: Points
    beyond: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """A fitted embedding.

    Parameters
    ----------
    axes
        Continuous and ordinal attributes.
    nominal
        Names of nominal attributes.
    constant
        Attributes that never vary in D and contribute nothing.
    metric
        How distances between the points are measured.
    """

    axes: tuple[Axis, ...]
    nominal: tuple[str, ...]
    constant: tuple[str, ...]
    metric: Metric

    @classmethod
    def fit(
        cls,
        population: Population,
        attributes: Sequence[Attribute],
        *,
        scaling: Scaling = "range",
    ) -> Embedding:
        """Fit origin, scale and grid of every attribute on the factual population.

        Parameters
        ----------
        population
            The factual D, both groups.
        attributes
            What people are compared on.
        scaling
            "range" divides numbers by their range in D; "none" takes them as they are, for
            attributes that the user has scaled.
        """
        ordered = [a for a in attributes if a.kind is not AttributeKind.NOMINAL]
        nominal = [a for a in attributes if a.kind is AttributeKind.NOMINAL]
        drafts = _draft_axes(population, ordered, scaling=scaling)
        constant = tuple(a.name for a in ordered if a.name not in {d.name for d in drafts})
        for name in constant:
            warnings.warn(
                f"Attribute {name!r} is constant: it contributes 0 to every distance.",
                MutandisWarning,
                stacklevel=2,
            )
        common = max((d.scale for d in drafts), default=1.0) if scaling == "none" else 1.0
        return _assemble(drafts, nominal, constant, total=attributes, mismatch=1 / common)

    def apply(self, population: Population) -> Embedded:
        """Place rows, factual or counterfactual."""
        size = len(population)
        coordinates = np.empty((size, len(self.axes)), dtype=np.int64)
        beyond = np.zeros(size)
        for index, axis in enumerate(self.axes):
            coordinates[:, index], rest = axis.place(_ordered_values(population, axis.name))
            beyond += rest * (axis.length / self.metric.unit)
        codes = np.empty((size, len(self.nominal)), dtype=np.int32)
        for index, name in enumerate(self.nominal):
            codes[:, index] = population.categories(name).codes
        return Embedded(points=Points(coordinates=coordinates, codes=codes), beyond=beyond)

    @property
    def rules(self) -> dict[str, str]:
        """Say for each attribute how equal distances are recognised."""
        ordered = {
            axis.name: f"lattice of {axis.steps} steps"
            if axis.on_lattice
            else f"quantised to 2^-{axis.steps.bit_length() - 1}"
            for axis in self.axes
        }
        return {
            **ordered,
            **dict.fromkeys(self.nominal, "equal or different"),
            **dict.fromkeys(self.constant, "constant"),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """An axis before the common unit is known; `steps` is None where there is no lattice."""

    name: str
    origin: float
    scale: float
    noise: float
    steps: int | None
    weight: Fraction


def _ordered_values(population: Population, name: str) -> NDArray[np.float64]:
    from mutandis.domain.columns import Numbers

    column = population.columns[name]
    return column.values if isinstance(column, Numbers) else column.codes.astype(np.float64)


def _draft_axes(
    population: Population, attributes: Sequence[Attribute], *, scaling: Scaling
) -> list[_Draft]:
    spans = {}
    for attribute in attributes:
        values = _ordered_values(population, attribute.name)
        low, high = float(values.min()), float(values.max())
        if attribute.kind is AttributeKind.ORDINAL:
            low, high = 0.0, float(len(attribute.levels) - 1)
        if high > low:
            spans[attribute.name] = (low, high)
    # unscaled columns share one scale; a power of two changes no digit of them
    widest = max((high - low for low, high in spans.values()), default=1.0)
    common = 2.0 ** ceil(log2(widest)) if scaling == "none" else None
    drafts = []
    for attribute in attributes:
        if attribute.name not in spans:
            continue
        low, high = spans[attribute.name]
        scale = common or high - low
        values = _ordered_values(population, attribute.name)
        noise = float_noise(values, scale)
        drafts.append(
            _Draft(
                name=attribute.name,
                origin=low,
                scale=scale,
                noise=noise,
                steps=find_steps((values - low) / scale, noise=noise),
                weight=attribute.exact_weight,
            )
        )
    return drafts


def _assemble(
    drafts: Sequence[_Draft],
    nominal: Sequence[Attribute],
    constant: tuple[str, ...],
    *,
    total: Sequence[Attribute],
    mismatch: float,
) -> Embedding:
    weights = {attribute.name: attribute.exact_weight for attribute in total}
    parts = lcm(*(weight.denominator for weight in weights.values()))
    heaviest = sum(weights.values(), Fraction(0))
    steps, base = _common_grid(drafts, parts=parts, weight=heaviest * Fraction(max(mismatch, 1)))
    axes = tuple(
        Axis(
            name=draft.name,
            origin=draft.origin,
            scale=draft.scale,
            noise=draft.noise,
            steps=steps[draft.name],
            on_lattice=steps[draft.name] == draft.steps,
            length=int(base * draft.weight),
        )
        for draft in drafts
    )
    costs = [max(1, round(base * weights[a.name] * Fraction(mismatch))) for a in nominal]
    return Embedding(
        axes=axes,
        nominal=tuple(a.name for a in nominal),
        constant=constant,
        metric=Metric(
            mismatch=np.array(costs, dtype=np.int64),
            unit=max(1, round(base * heaviest * Fraction(mismatch))),
        ),
    )


def _common_grid(
    drafts: Sequence[_Draft], *, parts: int, weight: Fraction
) -> tuple[dict[str, int], int]:
    """Find a common unit in which every axis is whole, and that leaves int64 room for sums.

    Lattices are kept while their common multiple fits; the finest ones are quantised first.
    """
    quantum = 2**_QUANTUM_BITS
    steps = {draft.name: draft.steps or quantum for draft in drafts}
    room = _CAPACITY / (weight * Fraction(2 * _REACH))
    while True:
        base = lcm(parts, *(steps[d.name] * d.weight.denominator for d in drafts))
        if base <= room:
            # what room is left refines the unit, for centers that lie between grid points
            spare = max(0, min(_QUANTUM_BITS, int(room // base).bit_length() - 1))
            return steps, base << spare
        lattices = [name for name, count in steps.items() if count != quantum]
        if lattices:
            steps[max(lattices, key=lambda name: steps[name])] = quantum
        elif quantum > 2**20:
            quantum //= 2
            steps = dict.fromkeys(steps, quantum)
        else:
            raise PlanError(
                "The attributes' weights are too fine to measure distances exactly. "
                "Use weights with fewer decimals, such as 0.5 or 2."
            )
