"""The distance of Zhang, Wu & Wu (2016): a difference counts by its effect on the decision.

    d(x, x') = Σ_i |CE(x_i, x'_i) VD(x_i, x'_i)|
    CE(x_i, x'_i) = P(refused | do(x)) - P(refused | do(x, but x'_i instead of x_i))

VD is the difference of Gower's distance. The attributes are taken for all parents of the decision
but the status a, which is a root of every worldview, so that

    P(refused | do(x)) = Σ_a P(a) P(refused | a, x)

with shares of rows for probabilities. x is the center: what a difference counts depends on where it
is measured from, and the distance back may be another one. So points have no places, and a search
measures from each distinct center to each distinct point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm, prod
from typing import TYPE_CHECKING

import numpy as np

from mutandis.data.attribute import AttributeKind
from mutandis.errors import PlanError
from mutandis.geometry.distances import Distance
from mutandis.geometry.embedding import QUANTUM_BITS
from mutandis.geometry.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from mutandis.data.attribute import Attribute
    from mutandis.geometry.distances import Attributes, Learn, Sample
    from mutandis.geometry.embedding import Embedding
    from mutandis.geometry.metric import Points

__all__ = ["ZHANG"]

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
    """What differences count, at every center."""

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
