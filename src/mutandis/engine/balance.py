"""Attributes as numbers whose averages are compared, and counterfactuals between two values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.engine.tally import ROOM

if TYPE_CHECKING:
    from mutandis.geometry.embedding import Embedded, Embedding
    from mutandis.geometry.index import Space
    from mutandis.geometry.metric import Points
    from mutandis.mapped import Bools, Floats, Ints

ROUNDING = 1e-12
"""Averages that differ by less than this part of the range differ by rounding alone, and so do
distances that differ by less than this part of themselves."""

IMBALANCE, IMBALANCE_BY_K = 1 / 16, 4.0
"""The largest standardised difference between the averages of comparable groups is 1/4, or 2/√k
where that is less; squared."""

DRAWS = 20
"""Draws per counterfactual that falls between values."""

# moments are counted from the middle of a range, and nothing beyond twice the range matters
_FARTHEST = 2.0

_STEPS = (1, 9, 13, 17, 11, 3, 7)  # how the draws of different attributes are mixed


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceFacts:
    """What matching has to know of a whole test space: about each of its coordinates."""

    middle: Ints
    # the values, where there are few, each of them shared by many reference rows
    values: tuple[Ints | None, ...]

    @classmethod
    def of(cls, space: Space) -> SpaceFacts:
        here = space.points.coordinates
        most, half = int(space.counts.sum()) // DRAWS, len(here) // 2
        values = []
        for column in here.T:
            ordered = np.sort(column)
            is_new = np.diff(ordered, prepend=ordered[:1] - 1) != 0
            values.append(ordered[is_new] if np.count_nonzero(is_new) <= most else None)
        # a copy, which does not keep all of the others
        return cls(middle=np.partition(here, half, axis=0)[half].copy(), values=tuple(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Attributes as numbers whose averages are compared.

    Numbers are counted from a value in their middle, in ranges; each level of a nominal attribute
    is 0 or 1. Everything is rounded to multiples of 2**-bits, so that sums over all people of a
    group are exact.
    """

    middle: Ints
    length: Floats
    levels: tuple[int, ...]  # number of levels of each nominal attribute
    bits: int

    @classmethod
    def of(
        cls, embedding: Embedding, facts: SpaceFacts, levels: tuple[int, ...], people: int
    ) -> Scale:
        """Fit the scale to a test space, for groups of at most so many people."""
        # a few more where draws are added up
        room = ROOM // int(_FARTHEST**2 + 1) // max(100, people)
        return cls(
            middle=facts.middle,
            length=np.array([float(axis.length) for axis in embedding.axes]),
            levels=levels,
            bits=room.bit_length() - 1,
        )

    @property
    def width(self) -> int:
        """Number of moments."""
        return 2 * len(self.middle) + sum(self.levels) + len(self.levels)

    def count(self, values: Floats) -> Ints:
        """Count in multiples of 2**-bits; what is missing has no weight, whatever it counts."""
        near = np.clip(values, -(_FARTHEST**2), _FARTHEST**2)
        near[np.isnan(near)] = 0.0
        near *= 2.0**self.bits
        return np.rint(near, out=near).astype(np.int64)

    def moments(self, points: Points) -> Ints:
        """Return the numbers, their squares, and the indicators of all levels."""
        numbers = (points.coordinates - self.middle) / self.length
        numbers = np.clip(numbers, -_FARTHEST, _FARTHEST)
        blocks = [numbers, numbers**2]
        for codes, count in zip(points.codes.T, self.levels, strict=True):
            # a level that D never had has a code of its own, beyond all others
            known = np.minimum(codes, count)
            blocks.append((known[:, None] == np.arange(count + 1)).astype(np.float64))
        return self.count(np.concatenate(blocks, axis=1))

    def averages(self, inside: Ints, rim: Ints, part: Floats, size: Floats) -> Floats:
        """Average the moments of groups from the sums of people inside and on the rim."""
        totals = rim * part[:, None]
        totals += inside
        with np.errstate(divide="ignore", invalid="ignore"):
            totals /= size[:, None] * 2.0**self.bits
        return totals

    def imbalance(self, test: Floats, control: Floats, size: Floats) -> tuple[Floats, Bools]:
        """Compare the averages of groups, attribute by attribute.

        The result is how many times the squared difference exceeds what is allowed, and whether
        the test group lies above.
        """
        axes = len(self.middle)
        allowed = np.minimum(IMBALANCE, IMBALANCE_BY_K / np.maximum(size, 1))[:, None]

        def excess(difference: Floats, spread: Floats) -> Any:
            differs = np.abs(difference) > ROUNDING
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(differs, 2 * difference**2 / (allowed * spread), 0.0)

        def variance(side: Floats) -> Any:
            square = side[:, axes : 2 * axes]
            found = square - side[:, :axes] ** 2
            return np.where(found > ROUNDING * square, found, 0.0)

        shift = test[:, :axes] - control[:, :axes]
        columns = list(excess(shift, variance(test) + variance(control)).T)
        above = list((shift > 0).T)
        start = 2 * axes
        for count in self.levels:
            here, there = (side[:, start : start + count + 1] for side in (test, control))
            worst = excess(here - there, here * (1 - here) + there * (1 - there)).max(axis=1)
            columns.append(worst)
            above.append(np.ones(len(worst), dtype=np.bool_))
            start += count + 1
        return np.array(columns).reshape(len(columns), len(size)), np.array(above)


def draw_values(world: Embedded, facts: SpaceFacts) -> list[Embedded]:
    """Draw counterfactuals that fall between values that reference rows have.

    Where an attribute has few values, each of them shared by many reference rows, a counterfactual
    of 103,000 between salaries of 100,000 and 110,000 is on no row, and the nearest rows would all
    lie to one side of it. So it is drawn as one of the two, in the proportion that keeps its mean:
    14 times of 20 as the one, and 6 times as the other. The draws are the same for all people, and
    no two attributes go together; there is nothing random about them. The world itself is the only
    answer where no counterfactual falls between values.
    """
    here = world.points.coordinates
    between, thresholds = {}, {}
    few = ((axis, values) for axis, values in enumerate(facts.values) if values is not None)
    for number, (axis, values) in enumerate(few):
        above = np.searchsorted(values, here[:, axis])
        inside = (above > 0) & (above < len(values))
        high = values[np.minimum(above, len(values) - 1)]
        low = np.where(inside, values[np.maximum(above - 1, 0)], high)
        apart = inside & (here[:, axis] < high)
        if apart.any():
            part = np.where(apart, (here[:, axis] - low) / np.maximum(high - low, 1), 1.0)
            between[axis] = (np.where(apart, low, here[:, axis]), high, apart, part)
            # with a step of its own, that shares no divisor with the number of draws
            step = _STEPS[number % len(_STEPS)]
            thresholds[axis] = (np.arange(DRAWS) * step % DRAWS + 0.5) / DRAWS
    if not between:
        return [world]
    drawn = []
    for draw in range(DRAWS):
        coordinates = here.copy()
        for axis, (low, high, apart, part) in between.items():
            is_above = apart & (part > thresholds[axis][draw])
            coordinates[:, axis] = np.where(is_above, high, low)
        points = replace(world.points, coordinates=coordinates)
        drawn.append(replace(world, points=points))
    return drawn
