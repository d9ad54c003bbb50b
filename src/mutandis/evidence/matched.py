"""The matched comparison: the k women most like her, against the men those women would have been.

Let N(c) be the control group of a complainant c, whose members i hold places u_i, and M(i) the m
reference rows nearest to i's counterfactual, each with a part s_ij of it (Σ_j s_ij = 1). Then

    p_control = Σ_i u_i y_i / Σ_i u_i,     p_test = Σ_j w_j y_j / Σ_j w_j,     w_j = Σ_i u_i s_ij.

The test group inherits the shape and the density of the control group. Where the facts leave a
counterfactual open, M(i) holds the reference row nearest to each of several draws of it. A caliper
cuts both N(c) and M(i); a person without matches has no part in the test group.

Both shares are exact: those of all M(i) have one common denominator, however large, and are added
as integers. What only decides whether there is a comparison (`Matching`) is rounded, once for each
person, to a part in `_PARTS` of a place or to 2**-bits of a range, and added as integers too. So
tables that are sorted otherwise give the same bits, and so does a kernel that adds in another
order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.equal_rows import group_equal
from mutandis.evidence.groups import Caliper, Group, Matching
from mutandis.search.engine import Queries, group_rows
from mutandis.search.share import Share

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.evidence.groups import Members, NearestGroups
    from mutandis.search.distance import Points
    from mutandis.search.embedding import Embedded, Embedding, LazyEmbedding
    from mutandis.search.engine import Listing, Search, Space
    from mutandis.search.ties import Neighbourhoods, Ties

__all__ = [
    "MATCHES",
    "MatchedGroups",
    "MatchedSpace",
    "Matcher",
    "Matches",
    "Scale",
    "compare_matched",
    "draw_values",
    "parts_for",
]

MATCHES = 5
"""How many reference rows stand for a counterfactual that the facts determine."""

# How often a counterfactual is drawn that falls between values, and how the draws of different
# attributes are mixed.
_DRAWS, _STEPS = 20, (1, 9, 13, 17, 11, 3, 7)
# sums up to this are exact in int64
_ROOM = 2**62
# The largest standardised difference between the averages of comparable groups is 1/4, or 2/√k
# where that is less; squared.
_IMBALANCE, _IMBALANCE_BY_K = 1 / 16, 4.0
# Averages that differ by less than this part of the range differ by rounding alone, and so do
# distances that differ by less than this part of themselves.
_ROUNDING = 1e-12
# Parts of a place in which the weights of people are counted: s_ij is whole where up to 16 rows
# share the last place. The square of all weights of a group has to fit int64, so large groups
# count in fewer parts.
_PARTS, _FEWER_PARTS, _LARGE = 720_720, 2_520, 2_000
# moments are counted from the middle of a range, and nothing beyond twice the range matters
_FARTHEST = 2.0
# complainants and sizes of groups from which on a kernel pays for being loaded
_WORTH_LOADING = 500_000
# The number of people that a test group may count as, in sizes of the control group: with more,
# the score test would reject too often where refusals are rare.
_MOST_PEOPLE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Who belongs to each of many groups: all nearer than a radius, and a part of those at it.

    Rows at exactly the `radius` hold `up / down` of a place.
    """

    radius: NDArray[np.int64]
    up: NDArray[np.int64]
    down: NDArray[np.int64]

    @classmethod
    def of(
        cls, found: Neighbourhoods, index: int, k: int, ties: Ties, limits: NDArray[np.int64] | None
    ) -> _Places:
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
    """M(i), once for all people with the same counterfactual.

    Parameters
    ----------
    key
        Which of them each row of the control space has.
    negatives, whole
        The share of refusals in M(i), in parts of a whole that is the same for all.
    found
        Whether M(i) has anyone.
    people, parts
        s_ij, in parts: a column per point of the test space.
    counts
        The number of rows at each of these points.
    distance
        The mean distance from i's counterfactual to M(i), in units of the metric.
    moments
        The distance in units of the metric, the moments of M(i), both zeros where it has no one,
        and the moments of i's counterfactual, as `Scale` computes them.
    """

    key: NDArray[np.intp]
    negatives: NDArray[Any]
    whole: int
    found: NDArray[np.bool_]
    people: Any
    parts: int
    counts: NDArray[np.int64]
    distance: NDArray[np.float64]
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
        room = _ROOM // int(_FARTHEST**2 + 1) // max(1, people)
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
            differs = np.abs(difference) > _ROUNDING
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(differs, 2 * difference**2 / (allowed * spread), 0.0)

        def variance(side: NDArray[np.float64]) -> Any:
            square = side[:, axes : 2 * axes]
            found = square - side[:, :axes] ** 2
            return np.where(found > _ROUNDING * square, found, 0.0)

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
        found = [self._find(world, places, here) for world in worlds]
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
        group = _Places.of(found, 0, places, self.ties, limits)
        query, point, distance = self._list(queries, group, found)
        start = _starts(query, len(first))
        weight = group.weigh(query, distance, space.counts[point])
        whole = _totals(weight, start)
        negatives = _totals(group.weigh(query, distance, space.negatives[point]), start)
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
        self, queries: Queries, group: _Places, found: Neighbourhoods
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


def draw_values(world: Embedded, space: Space) -> list[Embedded]:
    """Draw counterfactuals that fall between values that reference rows have.

    Where an attribute has few values, each of them shared by many reference rows, a counterfactual
    of 103,000 between salaries of 100,000 and 110,000 is nobody's, and the nearest people would all
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


def _starts(query: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    counts = np.bincount(query, minlength=size)
    return np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(counts)])


def _totals(values: NDArray[Any], start: NDArray[np.intp]) -> NDArray[Any]:
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
    kind: Any = np.int64 if common * int(whole.max(initial=1)) < _ROOM else object
    filled = np.where(whole > 0, whole, 1).astype(kind)
    return np.asarray(negatives.astype(kind) * common // filled)


def _average(drawn: Sequence[Matches]) -> Matches:
    """Put the matches of several draws together: each draw has the same part."""
    size = len(drawn)
    common = lcm(*(each.whole for each in drawn))
    kind: Any = np.int64 if common * size < _ROOM else object

    def total(name: str) -> Any:
        return sum(getattr(each, name)[each.key] for each in drawn)

    negatives = sum(
        each.negatives[each.key].astype(kind) * (common // each.whole) for each in drawn
    )
    found = np.logical_and.reduce([each.found[each.key] for each in drawn])
    return Matches(
        key=np.arange(len(drawn[0].key)),
        negatives=np.where(found, negatives, 0),
        whole=common * size,
        found=found,
        people=total("people"),
        parts=drawn[0].parts * size,
        counts=drawn[0].counts,
        distance=total("distance") / size,
        moments=_halved(total("moments") // size, found),
    )


def _halved(moments: NDArray[np.int64], found: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Leave out the moments of M(i) where some draw has none."""
    half = moments.shape[1] // 2 + 1
    return np.where(found[:, None] | (np.arange(moments.shape[1]) >= half), moments, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """People of a control space who stand on one point and have one counterfactual.

    Parameters
    ----------
    key
        Their counterfactual.
    count
        How many they are.
    of_row
        The cell of each row of the control space.
    first, number
        Of each point: its first cell, and how many it has, which follow each other.
    """

    key: NDArray[np.intp]
    count: NDArray[np.int64]
    of_row: NDArray[np.intp]
    first: NDArray[np.intp]
    number: NDArray[np.intp]

    @classmethod
    def of(cls, standing: NDArray[np.intp], key: NDArray[np.intp]) -> _Cells:
        first, cell = group_equal(standing, key)
        order = np.argsort(standing[first], kind="stable")
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        number = np.bincount(standing[first])
        return cls(
            key=key[first[order]],
            count=np.bincount(cell).astype(np.int64)[order],
            of_row=place[cell],
            first=np.cumsum(number) - number,
            number=number,
        )

    def at(self, listing: Listing) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        """Give the query, the cell and the distance of everyone in a listing."""
        query = np.repeat(np.arange(len(listing.start) - 1), np.diff(listing.start))
        number = self.number[listing.points]
        entry = np.repeat(np.arange(len(number)), number)
        nth = np.arange(len(entry)) - np.repeat(np.cumsum(number) - number, number)
        cell = self.first[listing.points[entry]] + nth
        return query[entry], cell, listing.distances[entry]


def compare_matched(
    control: NearestGroups,
    mine: NDArray[np.intp],
    *,
    rows: NDArray[np.intp],
    queries: Queries,
    standing: NDArray[np.intp],
    search: Search,
    matches: Matches,
    scale: Scale,
    names: tuple[str, ...],
) -> tuple[Group, ...]:
    """Give the test groups of some complainants, for each k.

    `mine` are their places among all complainants, `rows` those among the rows of the control
    space, on whose points all rows stand as `standing` says.
    """
    cells = _Cells.of(standing, matches.key)
    found = control.found.take(mine)
    limits = None if control.caliper is None else control.caliper.limits[mine]
    places = [
        _Places.of(found, index, k, control.ties, limits) for index, k in enumerate(control.ks)
    ]
    totals = [_Totals.empty(len(mine), matches, each) for each in places]
    own = cells.of_row[rows]
    add = _choose_adder(len(mine) * sum(control.ks), totals)

    def use(chosen: NDArray[np.intp], listing: Listing) -> None:
        add(chosen, listing, own[chosen], cells, matches, scale, totals)

    reach = np.max([each.radius for each in places], axis=0)
    within = found.inside.max(axis=1) + found.rim.max(axis=1) + 1
    search.visit(queries, reach, within, use)
    return tuple(each.group(matches, names=names) for each in totals)


_Adder = Callable[..., None]


def _choose_adder(work: int, totals: Sequence[_Totals]) -> _Adder:
    """Take the kernel for much work, where its integers have room; elsewhere NumPy and SciPy."""
    if work < _WORTH_LOADING or any(each.negatives.dtype == object for each in totals):
        return _add_arrays
    try:
        import mutandis.search.kernels.matched  # noqa: F401
    except ImportError:
        return _add_arrays
    return _add_by_kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Totals:
    """What is added up for the test group of each complainant, at one k.

    Parameters
    ----------
    places
        Who belongs to the control groups.
    negatives, weight, size
        Refusals and people in the test group, and people in the control group, in parts of a place
        of the control group.
    near
        People of the control group whose matches are near, likewise.
    spread
        Σ_j w_j², in squared parts.
    rows
        How many reference rows have a part in the test group.
    distance
        The mean distance of a match.
    unfit
        Why there is no comparison: see `Matching`.
    """

    places: _Places
    negatives: NDArray[Any]
    weight: NDArray[np.int64]
    size: NDArray[np.int64]
    near: NDArray[np.int64]
    spread: NDArray[np.int64]
    rows: NDArray[np.int64]
    distance: NDArray[np.float64]
    unfit: NDArray[np.int16]

    @classmethod
    def empty(cls, size: int, matches: Matches, places: _Places) -> _Totals:
        counts = {name: np.zeros(size, dtype=np.int64) for name in ("weight", "size", "near")}
        most = matches.whole * int(places.down.max(initial=1)) * (size + len(matches.key))
        return cls(
            places=places,
            negatives=np.zeros(size, dtype=np.int64 if most < _ROOM else object),
            **counts,
            spread=np.zeros(size, dtype=np.int64),
            rows=np.zeros(size, dtype=np.int64),
            distance=np.full(size, np.nan),
            unfit=np.zeros(size, dtype=np.int16),
        )

    def judge(
        self,
        chosen: NDArray[np.intp],
        inside: NDArray[np.int64],
        rim: NDArray[np.int64],
        scale: Scale,
    ) -> None:
        """Say whether groups are comparable, from the moments inside and on the rim."""
        down = self.places.down[chosen]
        part = self.places.up[chosen] / down
        size, matched_size = self.size[chosen] / down, self.weight[chosen] / down
        is_near = 2 * self.near[chosen] >= np.maximum(self.size[chosen], 1)
        half = inside.shape[1] // 2 + 1
        test = scale.averages(inside[:, :half], rim[:, :half], part, matched_size)
        control = scale.averages(inside[:, half:], rim[:, half:], part, size)
        self.unfit[chosen] = _judge(is_near, scale.imbalance(test[:, 1:], control, size))
        self.distance[chosen] = test[:, 0]

    def group(self, matches: Matches, *, names: tuple[str, ...]) -> Group:
        kind, down = self.negatives.dtype, self.places.down
        places = self.size // down
        full = self.weight == self.size
        split = np.where(full, down, self.weight).astype(kind) * matches.whole
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = (self.weight / down * matches.parts) ** 2 / self.spread
        empty = self.weight == 0
        return Group(
            share=Share(
                negatives=self.negatives * np.where(full, 1, places).astype(kind),
                size=np.where(empty, 0, places),
                split=split,
                people=np.where(empty, 0.0, np.minimum(effective, _MOST_PEOPLE * places)),
            ),
            rows=self.rows,
            radius=self.distance,
            matching=Matching(
                n_effective=np.where(empty, 0.0, effective), unfit=self.unfit, names=names
            ),
        )


def _add_arrays(  # noqa: PLR0917 - called in one place
    chosen: NDArray[np.intp],
    listing: Listing,
    own: NDArray[np.intp],
    cells: _Cells,
    matches: Matches,
    scale: Scale,
    totals: Sequence[_Totals],
) -> None:
    """Add up the groups of the complainants of a listing with NumPy and SciPy."""
    from scipy.sparse import csr_array

    everyone, cell, apart = cells.at(listing)
    count = cells.count[cell] - (cell == own[everyone])
    for total in totals:
        group = total.places
        weight = group.weigh(chosen[everyone], apart, count)
        inside = weight > 0
        query, key, weight, distance = (
            each[inside] for each in (everyone, cells.key[cell], weight, apart)
        )
        start = _starts(query, len(chosen))
        found = matches.found[key]
        radius = group.radius[chosen]
        near = found & (matches.distance[key] <= (radius * (1 + _ROUNDING))[query])
        kind = total.negatives.dtype
        total.size[chosen] = _totals(weight, start)
        total.weight[chosen] = _totals(weight * found, start)
        total.near[chosen] = _totals(weight * near, start)
        total.negatives[chosen] = _totals(weight.astype(kind) * matches.negatives[key], start)
        rim = distance == radius[query]
        shape = (len(chosen), len(matches.found))

        def summed(
            data: NDArray[np.int64], key: Any = key, start: Any = start, shape: Any = shape
        ) -> Any:
            return csr_array((data, key, start), shape=shape)

        people = count[inside]
        total.judge(
            chosen,
            summed(people * ~rim) @ matches.moments,
            summed(people * rim) @ matches.moments,
            scale,
        )
        parts = [summed(people * found * where) for where in (~rim, rim)]
        part = (group.up[chosen] / group.down[chosen])[:, None]
        held, last = (each @ matches.people for each in parts)
        last = last.multiply(part).tocsr()
        last.data = np.rint(last.data)
        held = (held + last.astype(np.int64)).tocsr()
        counts = matches.counts[held.indices]
        total.spread[chosen] = _totals(held.data**2 // counts, held.indptr)
        total.rows[chosen] = _totals(np.where(held.data > 0, counts, 0), held.indptr)


def _add_by_kernel(  # noqa: PLR0917
    chosen: NDArray[np.intp],
    listing: Listing,
    own: NDArray[np.intp],
    cells: _Cells,
    matches: Matches,
    scale: Scale,
    totals: Sequence[_Totals],
) -> None:
    """Add up the groups of the complainants of a listing with a kernel."""
    from mutandis.search.kernels.matched import (
        Answer,
        Crowd,
        Limits,
        Matched,
        add_groups,
        room_for,
    )

    shape = (len(totals), len(chosen))
    moments = matches.moments
    radius, up, down = (
        np.stack([getattr(each.places, name)[chosen] for each in totals])
        for name in ("radius", "up", "down")
    )
    answer = Answer(
        *(np.zeros(shape, dtype=np.int64) for _ in range(6)),
        *(np.zeros((*shape, moments.shape[1]), dtype=np.int64) for _ in range(2)),
    )
    listed = int(np.diff(listing.start).max(initial=0)) * int(cells.number.max(initial=0))
    add_groups(
        listing.start,
        listing.points,
        listing.distances,
        own,
        Crowd(cells.first, cells.number, cells.key, cells.count),
        Matched(
            matches.found,
            matches.negatives,
            matches.distance,
            matches.people.indptr.astype(np.int64, copy=False),
            matches.people.indices.astype(np.int32, copy=False),
            matches.people.data,
            np.ascontiguousarray(matches.counts),
            bool((matches.counts == 1).all()),
            moments,
        ),
        Limits(radius, up, down, radius * (1 + _ROUNDING)),
        room_for(listed, len(matches.counts)),
        answer,
    )
    for index, total in enumerate(totals):
        for name in ("size", "weight", "near", "negatives", "spread", "rows"):
            getattr(total, name)[chosen] = getattr(answer, name)[index]
        total.judge(chosen, answer.moments[index], answer.rim_moments[index], scale)


def _judge(
    is_near: NDArray[np.bool_], balance: tuple[NDArray[np.float64], NDArray[np.bool_]]
) -> NDArray[np.int16]:
    """Name what keeps each group from being compared: see `Matching`."""
    excess, above = balance
    unfit = np.zeros(len(is_near), dtype=np.int16)
    if len(excess):
        # the first of those that differ most, up to rounding
        worst = np.argmax(excess >= excess.max(axis=0) * (1 - _ROUNDING), axis=0)
        everyone = np.arange(len(is_near))
        signed = np.where(above[worst, everyone], worst + 1, -worst - 1)
        unfit[:] = np.where(excess[worst, everyone] > 1, signed, 0)
    return np.where(is_near, unfit, Matching.FAR).astype(np.int16)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedSpace:
    """What is kept of the matches in one stratum: who stands for whom.

    Parameters
    ----------
    test
        The rows of the test space.
    key, people, parts
        As `Matches` has them.
    """

    test: NDArray[np.intp]
    key: NDArray[np.intp]
    people: Any
    parts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedGroups:
    """The test groups of the matched comparison, for every complainant and k.

    Parameters
    ----------
    at_k
        The groups, for each k.
    own
        The share of refusals among each complainant's own matches, M(c).
    spaces
        Who stands for whom, by stratum.
    control, centers
        The control groups, and the search around the complainants' own counterfactuals.
    """

    at_k: tuple[Group, ...]
    own: Share
    spaces: tuple[MatchedSpace, ...]
    control: NearestGroups
    centers: LazyEmbedding

    def at(self, index: int) -> Group:
        """Give the groups for the index-th k."""
        return self.at_k[index]

    def arrays(self) -> dict[str, Any]:
        """Give all that was found as arrays: what `restored` needs."""
        return {
            "own": _share_arrays(self.own),
            "at_k": [_group_arrays(group) for group in self.at_k],
            "spaces": [
                {"key": each.key, "parts": each.parts}
                | {name: getattr(each.people, name) for name in ("data", "indices", "indptr")}
                for each in self.spaces
            ],
        }

    @classmethod
    def restored(
        cls,
        arrays: Mapping[str, Any],
        control: NearestGroups,
        centers: LazyEmbedding,
        tests: Sequence[NDArray[np.intp]],
    ) -> MatchedGroups:
        """Put groups together from their arrays; `tests` are the rows of each test space."""
        from scipy.sparse import csr_array

        embedding = centers.embedding
        names = (*(axis.name for axis in embedding.axes), *embedding.nominal)
        spaces = []
        for test, each in zip(tests, arrays["spaces"], strict=True):
            parts = (each["data"], each["indices"], each["indptr"])
            width = len(group_rows(control.points.take(test))[0])
            people = csr_array(parts, shape=(len(each["indptr"]) - 1, width))
            spaces.append(
                MatchedSpace(test=test, key=each["key"], people=people, parts=each["parts"])
            )
        return cls(
            at_k=tuple(_group_of(each, names) for each in arrays["at_k"]),
            own=_share_of(arrays["own"]),
            spaces=tuple(spaces),
            control=control,
            centers=centers,
        )

    def members(self, complainant: int, index: int) -> Members:
        """List the matches of one complainant's control group, with the places they hold.

        Distances are those from her own counterfactual.
        """
        control = self.control
        space = self.spaces[control.space_of[complainant]]
        rows, distance = control.others(complainant)
        place = control.place_at(distance, complainant, index)
        keys = space.key[np.searchsorted(control.spaces[control.space_of[complainant]], rows)]
        whole = (
            np.ones(np.count_nonzero(place == 1), dtype=np.int64) @ space.people[keys[place == 1]]
        )
        shared = (place > 0) & (place < 1)
        rest = np.ones(np.count_nonzero(shared), dtype=np.int64) @ space.people[keys[shared]]
        weight = whole + rest * place.max(where=shared, initial=0.0)
        points = control.points.take(space.test)
        point = group_rows(points)[1]
        held = (weight / np.bincount(point) / space.parts)[point]
        chosen = np.flatnonzero(held > 0)
        center = self.centers.take(np.array([complainant]))
        apart = control.metric.from_center(center, points.take(chosen))
        return control.identity.members(
            space.test[chosen], control.metric.as_float(apart), held[chosen]
        )


def _share_arrays(share: Share) -> dict[str, Any]:
    """Give a share as arrays; integers that no array holds are written as text."""
    arrays = {"negatives": share.negatives, "size": share.size, "split": share.split}
    if share.people is not None:
        arrays["people"] = share.people
    return {n: a.astype(np.str_) if a.dtype == object else a for n, a in arrays.items()}


def _share_of(arrays: Mapping[str, NDArray[Any]]) -> Share:
    names = ("negatives", "size", "split", "people")
    parts: dict[str, Any] = {name: arrays[name] for name in names if name in arrays}
    for name, array in parts.items():
        if array.dtype.kind == "U":
            parts[name] = np.array([int(text) for text in array.tolist()], dtype=object)
    return Share(**parts)


def _group_arrays(group: Group) -> dict[str, Any]:
    if group.matching is None:
        raise TypeError("only matched groups are kept in this way")
    return {
        **_share_arrays(group.share),
        "rows": group.rows,
        "radius": group.radius,
        "n_effective": group.matching.n_effective,
        "unfit": group.matching.unfit,
    }


def _group_of(arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> Group:
    return Group(
        share=_share_of(arrays),
        rows=arrays["rows"],
        radius=arrays["radius"],
        matching=Matching(n_effective=arrays["n_effective"], unfit=arrays["unfit"], names=names),
    )


def parts_for(largest: int) -> int:
    """Choose how finely the weights of people are counted, in groups of up to so many."""
    return _PARTS if largest <= _LARGE else _FEWER_PARTS
