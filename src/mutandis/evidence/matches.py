"""Matches: the reference rows that stand for a person's counterfactual, M(i).

Each M(i) is found once, for all complainants in whose control group i is. Shares of refusals have
one common denominator, however large. Weights are rounded to a part in `_PARTS` of a place, and
what groups are balanced on to 2**-bits of a range, so that all sums are sums of integers: neither
the order of rows nor that in which a kernel adds can change a bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.evidence.groups import Caliper
from mutandis.search.embedding import Embedded
from mutandis.search.engine import Queries, group_rows
from mutandis.search.share import Share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from mutandis.search.distance import Points
    from mutandis.search.embedding import Embedding
    from mutandis.search.engine import Listing, Search, Space
    from mutandis.search.ties import Neighbourhoods, Ties

__all__ = [
    "MATCHES",
    "ROOM",
    "ROUNDING",
    "Matcher",
    "Matches",
    "Places",
    "Scale",
    "draw_values",
    "parts_for",
    "starts_of",
    "totals_of",
]

MATCHES = 5
"""How many reference rows stand for a counterfactual that the facts determine."""

ROOM = 2**62
"""Sums up to this are exact in int64."""

ROUNDING = 1e-12
"""Averages that differ by less than this part of the range differ by rounding alone, and so do
distances that differ by less than this part of themselves."""

# How often a counterfactual is drawn that falls between values, and how the draws of different
# attributes are mixed.
_DRAWS, _STEPS = 20, (1, 9, 13, 17, 11, 3, 7)
# The largest standardised difference between the averages of comparable groups is 1/4, or 2/√k
# where that is less; squared.
_IMBALANCE, _IMBALANCE_BY_K = 1 / 16, 4.0
# Parts of a place in which the weights of people are counted: s_ij is whole where up to 16 rows
# share the last place. The square of all weights of a group has to fit int64, so large groups
# count in fewer parts.
_PARTS, _FEWER_PARTS, _LARGE = 720_720, 2_520, 2_000
# moments are counted from the middle of a range, and nothing beyond twice the range matters
_FARTHEST = 2.0
# people of several worlds who are searched for at once
_TOGETHER = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Who belongs to each of many groups: all nearer than a radius, and a part of those at it.

    Rows at exactly the `radius` hold `up / down` of a place.
    """

    radius: NDArray[np.int64]
    up: NDArray[np.int64]
    down: NDArray[np.int64]

    @classmethod
    def of(
        cls, found: Neighbourhoods, index: int, k: int, ties: Ties, limits: NDArray[np.int64] | None
    ) -> Places:
        """Read what a search for the k nearest has found, and what a caliper leaves of it."""
        radius = found.radius[:, index]
        up, down = np.ones_like(radius), np.ones_like(radius)
        if ties == "fair":
            up, down = k - found.inside[:, index], found.rim[:, index].copy()
        if limits is not None:
            # where the k-th nearest lies beyond the caliper, the group holds all within it
            cut = radius > limits
            radius = np.where(cut, limits, radius)
            up[cut] = down[cut] = 1
        return cls(radius=radius, up=up, down=down)

    def weigh(
        self, group: NDArray[np.intp], distance: NDArray[np.int64], count: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Give the places of `count` rows at a distance, in parts of `down`."""
        radius = self.radius[group]
        at_it = np.where(distance == radius, self.up[group], 0)
        return np.where(distance < radius, self.down[group], at_it) * count


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """M(i), once for all people with the same counterfactual."""

    key: NDArray[np.intp]  # which of them each row of the control space has
    # the share of refusals in M(i), in parts of a whole that is the same for all
    negatives: NDArray[Any]
    whole: int
    found: NDArray[np.bool_]  # whether M(i) has anyone
    # s_ij, in parts: a column per point of the test space
    people: Any
    parts: int
    counts: NDArray[np.int64]  # the number of rows at each of these points
    # the mean distance from i's counterfactual to M(i), in units of the metric
    distance: NDArray[np.float64]
    # the distance in units of the metric, the moments of M(i), both zeros where it has no one, and
    # the moments of i's counterfactual, as `Scale` computes them
    moments: NDArray[np.int64]

    def share(self, rows: NDArray[np.intp]) -> Share:
        """Give the share of refusals in M(i) for rows of the control space."""
        keys = self.key[rows]
        whole = np.full(len(rows), self.whole, dtype=self.negatives.dtype)
        return Share(
            negatives=self.negatives[keys], size=self.found[keys].astype(np.int64), split=whole
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Attributes as numbers whose averages are compared.

    Numbers are counted from a value in their middle, in ranges; each level of a nominal attribute
    is 0 or 1. `levels` counts them. Everything is rounded to multiples of 2**-bits, so that sums
    over all people of a group are exact.
    """

    middle: NDArray[np.int64]
    length: NDArray[np.float64]
    levels: tuple[int, ...]
    bits: int

    @classmethod
    def of(
        cls, embedding: Embedding, points: Points, levels: tuple[int, ...], people: int
    ) -> Scale:
        """Fit the scale to a test space, for groups of at most so many people."""
        middle = np.partition(points.coordinates, len(points) // 2, axis=0)[len(points) // 2]
        # a few more where draws are added up
        room = ROOM // int(_FARTHEST**2 + 1) // max(100, people)
        return cls(
            middle=middle,
            length=np.array([float(axis.length) for axis in embedding.axes]),
            levels=levels,
            bits=room.bit_length() - 1,
        )

    def count(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count in multiples of 2**-bits; what is missing has no weight, whatever it counts."""
        near = np.clip(np.nan_to_num(values), -(_FARTHEST**2), _FARTHEST**2)
        return np.rint(near * 2.0**self.bits).astype(np.int64)

    def moments(self, points: Points) -> NDArray[np.int64]:
        """Give the numbers, their squares, and the indicators of all levels."""
        numbers = (points.coordinates - self.middle) / self.length
        numbers = np.clip(numbers, -_FARTHEST, _FARTHEST)
        blocks = [numbers, numbers**2]
        for codes, count in zip(points.codes.T, self.levels, strict=True):
            # a level that D never had has a code of its own, beyond all others
            known = np.minimum(codes, count)
            blocks.append((known[:, None] == np.arange(count + 1)).astype(np.float64))
        return self.count(np.concatenate(blocks, axis=1))

    def averages(
        self,
        inside: NDArray[np.int64],
        rim: NDArray[np.int64],
        part: NDArray[np.float64],
        size: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Give the average moments of groups from the sums of people inside and on the rim."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return (inside + rim * part[:, None]) / (size[:, None] * 2.0**self.bits)

    def imbalance(
        self, test: NDArray[np.float64], control: NDArray[np.float64], size: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Compare the averages of groups, attribute by attribute.

        The result is how many times the squared difference exceeds what is allowed, and whether
        the test group lies above.
        """
        axes = len(self.middle)
        allowed = np.minimum(_IMBALANCE, _IMBALANCE_BY_K / np.maximum(size, 1))[:, None]

        def excess(difference: NDArray[np.float64], spread: NDArray[np.float64]) -> Any:
            differs = np.abs(difference) > ROUNDING
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(differs, 2 * difference**2 / (allowed * spread), 0.0)

        def variance(side: NDArray[np.float64]) -> Any:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """Finds M(i) in one test space."""

    embedding: Embedding
    scale: Scale
    space: Space
    search: Search
    ties: Ties
    max_distance: float | None
    parts: int

    def find(self, worlds: Iterable[Embedded], places: int) -> Matches:
        """Find the reference rows nearest to the same people's places in one or more worlds.

        With several worlds, which are draws, each has the same part in M(i).
        """
        here = self.scale.moments(self.space.points)
        found: list[Matches] = []
        for batch in _batches(worlds):
            together = self._find(Embedded.join(batch), places, here)
            keys = np.split(together.key, len(batch))
            found += [replace(together, key=key) for key in keys]
        return found[0] if len(found) == 1 else _average(found)

    def _find(self, world: Embedded, places: int, here: NDArray[np.int64]) -> Matches:
        from scipy.sparse import csr_array

        space, metric = self.space, self.embedding.metric
        first, key = _distinct(world)
        queries = Queries.outside(world.points.take(first))
        places = min(places, int(space.counts.sum()))
        found = self.search.neighbourhoods(queries, (places,))
        overflow, limits = world.overflow_distance[first], None
        if self.max_distance is not None:
            limits = Caliper.of(self.max_distance, overflow, metric).limits
        group = Places.of(found, 0, places, self.ties, limits)
        query, point, distance = self._list(queries, group, found)
        start = starts_of(query, len(first))
        weight = group.weigh(query, distance, space.counts[point])
        whole = totals_of(weight, start)
        negatives = totals_of(group.weigh(query, distance, space.negatives[point]), start)
        part = weight / whole[query]
        shape = (len(first), len(space.counts))

        def summed(data: NDArray[Any]) -> Any:
            return csr_array((data, point.astype(np.int32), start), shape=shape)

        nearer = distance < group.radius[query]
        inside, rim = (summed(space.counts[point] * chosen) @ here for chosen in (nearer, ~nearer))
        moments = self.scale.averages(inside, rim, group.up / group.down, whole / group.down)
        # entries are sorted by distance: equal ones change nothing by changing places
        apart = summed(part * distance) @ np.ones(shape[1]) + overflow * float(metric.unit)
        common = _common_whole(negatives, whole)
        return Matches(
            key=key,
            negatives=_in_parts(negatives, whole, common),
            whole=common,
            found=whole > 0,
            people=summed(np.rint(part * self.parts).astype(np.int64)),
            parts=self.parts,
            counts=space.counts,
            distance=apart,
            moments=np.column_stack(
                [
                    self.scale.count(np.column_stack([apart / metric.unit, moments])),
                    self.scale.moments(queries.points),
                ]
            ),
        )

    def _list(
        self, queries: Queries, group: Places, found: Neighbourhoods
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        """List the points within each radius: query, point and distance, in this order."""
        listed: list[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]] = []

        def note(chosen: NDArray[np.intp], listing: Listing) -> None:
            query = np.repeat(chosen, np.diff(listing.start))
            listed.append((query, listing.points, listing.distances))

        self.search.visit(queries, group.radius, found.inside[:, 0] + found.rim[:, 0], note)
        query, point, distance = (np.concatenate(part) for part in zip(*listed, strict=True))
        sorting = np.lexsort((distance, query))
        return query[sorting], point[sorting], distance[sorting]


def _batches(worlds: Iterable[Embedded]) -> Iterator[list[Embedded]]:
    """Put worlds of few people together: draws often coincide, and are then searched for once."""
    batch: list[Embedded] = []
    for world in worlds:
        batch.append(world)
        if len(batch) * len(world.points) >= _TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch


def draw_values(world: Embedded, space: Space) -> list[Embedded]:
    """Draw counterfactuals that fall between values that reference rows have.

    Where an attribute has few values, each of them shared by many reference rows, a counterfactual
    of 103,000 between salaries of 100,000 and 110,000 is on no row, and the nearest rows would all
    lie to one side of it. So it is drawn as one of the two, in the proportion that keeps its mean:
    14 times of 20 as the one, and 6 times as the other. The draws are the same for all people, and
    no two attributes go together; there is nothing random about them. The world itself is the only
    answer where no counterfactual falls between values.
    """
    rows, here = int(space.counts.sum()), world.points.coordinates
    thresholds: dict[int, NDArray[np.float64]] = {}
    between = {}
    for axis, column in enumerate(space.points.coordinates.T):
        values = np.unique(column)
        above = np.searchsorted(values, here[:, axis])
        inside = (above > 0) & (above < len(values))
        high = values[np.minimum(above, len(values) - 1)]
        low = np.where(inside, values[np.maximum(above - 1, 0)], high)
        apart = inside & (here[:, axis] < high)
        if len(values) * _DRAWS <= rows and apart.any():
            part = np.where(apart, (here[:, axis] - low) / np.maximum(high - low, 1), 1.0)
            between[axis] = (np.where(apart, low, here[:, axis]), high, apart, part)
            # with a step of its own, that shares no divisor with the number of draws
            step = _STEPS[len(thresholds) % len(_STEPS)]
            thresholds[axis] = (np.arange(_DRAWS) * step % _DRAWS + 0.5) / _DRAWS
    if not between:
        return [world]
    drawn = []
    for draw in range(_DRAWS):
        coordinates = here.copy()
        for axis, (low, high, apart, part) in between.items():
            is_above = apart & (part > thresholds[axis][draw])
            coordinates[:, axis] = np.where(is_above, high, low)
        points = replace(world.points, coordinates=coordinates)
        drawn.append(replace(world, points=points))
    return drawn


def _distinct(world: Embedded) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if world.overflow_distance.any():  # equal points may be out of reach by different distances
        everyone = np.arange(len(world.points))
        return everyone, everyone
    return group_rows(world.points)


def starts_of(query: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    counts = np.bincount(query, minlength=size)
    return np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(counts)])


def totals_of(values: NDArray[Any], start: NDArray[np.intp]) -> NDArray[Any]:
    """Add up the values from each start to the next: integers, so that nothing is rounded."""
    running = np.concatenate([np.zeros(1, dtype=values.dtype), np.cumsum(values)])
    return np.asarray(running[start[1:]] - running[start[:-1]])


def _common_whole(negatives: NDArray[np.int64], whole: NDArray[np.int64]) -> int:
    """Give the smallest number of parts in which every share of refusals is whole."""
    filled = whole > 0
    divisor = np.gcd(negatives[filled], whole[filled])
    return lcm(*np.unique(whole[filled] // divisor).tolist())


def _in_parts(negatives: NDArray[np.int64], whole: NDArray[np.int64], common: int) -> NDArray[Any]:
    """Express shares in parts of one common whole."""
    kind: Any = np.int64 if common * int(whole.max(initial=1)) < ROOM else object
    filled = np.where(whole > 0, whole, 1).astype(kind)
    return np.asarray(negatives.astype(kind) * common // filled)


def _average(drawn: Sequence[Matches]) -> Matches:
    """Put the matches of several draws together: each draw has the same part."""
    size = len(drawn)
    common = lcm(*(each.whole for each in drawn))
    kind: Any = np.int64 if common * size < ROOM else object

    def total(name: str) -> Any:
        return sum(getattr(each, name)[each.key] for each in drawn)

    negatives = sum(
        each.negatives[each.key].astype(kind) * (common // each.whole) for each in drawn
    )
    found = np.logical_and.reduce([each.found[each.key] for each in drawn])
    people = total("people")
    people.data = (people.data + size // 2) // size
    return Matches(
        key=np.arange(len(drawn[0].key)),
        negatives=np.where(found, negatives, 0),
        whole=common * size,
        found=found,
        people=people,
        parts=drawn[0].parts,
        counts=drawn[0].counts,
        distance=total("distance") / size,
        moments=_halved(total("moments") // size, found),
    )


def _halved(moments: NDArray[np.int64], found: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Leave out the moments of M(i) where some draw has none."""
    half = moments.shape[1] // 2 + 1
    return np.where(found[:, None] | (np.arange(moments.shape[1]) >= half), moments, 0)


def parts_for(largest: int) -> int:
    """Choose how finely the weights of people are counted, in groups of up to so many."""
    return _PARTS if largest <= _LARGE else _FEWER_PARTS
