"""The matched comparison: the k women most like her, against the men those women would have been.

Let N(c) be the control group of a complainant c, whose members i hold places u_i, and M(i) the m
reference rows nearest to i's counterfactual, each with a part s_ij of it (Σ_j s_ij = 1). Then

    p_control = Σ_i u_i y_i / Σ_i u_i,     p_test = Σ_j w_j y_j / Σ_j w_j,     w_j = Σ_i u_i s_ij.

The test group inherits the shape and the density of the control group. Where the facts leave a
counterfactual open, M(i) holds the reference row nearest to each of several draws of it. A caliper
cuts both N(c) and M(i); a person without matches has no part in the test group.

Both shares are exact: those of all M(i) have one common denominator, however large, and are added
as integers. What only decides whether there is a comparison (`Matching`) is computed in floats,
over people in an order that depends on their values alone: tables that are sorted otherwise give
the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    "order_by_value",
]

MATCHES = 5
"""How many reference rows stand for a counterfactual that the facts determine."""

# sums up to this are exact in int64
_ROOM = 2**62
# The largest standardised difference between the averages of comparable groups is 1/4, or 2/√k
# where that is less; squared.
_IMBALANCE, _IMBALANCE_BY_K = 1 / 16, 4.0
# Averages that differ by less than this part of the range differ by rounding alone, and so do
# distances that differ by less than this part of themselves.
_ROUNDING = 1e-12
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
    people
        s_ij: a column per point of the test space, in an order by value.
    counts
        The number of rows at each of these points.
    distance
        The mean distance from i's counterfactual to M(i), in units of the metric.
    matched, centers
        The moments of M(i), and of i's counterfactual, as `Scale` computes them.
    """

    key: NDArray[np.intp]
    negatives: NDArray[Any]
    whole: int
    found: NDArray[np.bool_]
    people: Any
    counts: NDArray[np.int64]
    distance: NDArray[np.float64]
    matched: NDArray[np.float64]
    centers: NDArray[np.float64]

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
    is 0 or 1. `levels` counts them.
    """

    middle: NDArray[np.int64]
    length: NDArray[np.float64]
    levels: tuple[int, ...]

    @classmethod
    def of(cls, embedding: Embedding, points: Points, levels: tuple[int, ...]) -> Scale:
        middle = np.sort(points.coordinates, axis=0)[len(points) // 2]
        return cls(
            middle=middle, length=np.array([float(a.length) for a in embedding.axes]), levels=levels
        )

    def moments(self, points: Points) -> NDArray[np.float64]:
        """Give the numbers, their squares, and the indicators of all levels."""
        numbers = (points.coordinates - self.middle) / self.length
        blocks = [numbers, numbers**2]
        for codes, count in zip(points.codes.T, self.levels, strict=True):
            # a level that D never had has a code of its own, beyond all others
            known = np.minimum(codes, count)
            blocks.append((known[:, None] == np.arange(count + 1)).astype(np.float64))
        return np.concatenate(blocks, axis=1)

    def imbalance(
        self, test: NDArray[np.float64], control: NDArray[np.float64], size: NDArray[np.int64]
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
    levels: tuple[int, ...]
    space: Space
    search: Search
    ties: Ties
    max_distance: float | None

    def scale(self) -> Scale:
        return Scale.of(self.embedding, self.space.points, self.levels)

    def find(self, worlds: Iterable[Embedded], places: int) -> Matches:
        """Find the reference rows nearest to the same people's places in one or more worlds.

        With several worlds, which are draws, each has the same part in M(i).
        """
        scale = self.scale()
        order = order_by_value(self.space.points)
        here = scale.moments(self.space.points.take(order))
        found = [self._find(world, places, order, here, scale) for world in worlds]
        return found[0] if len(found) == 1 else _average(found)

    def _find(
        self,
        world: Embedded,
        places: int,
        order: NDArray[np.intp],
        here: NDArray[np.float64],
        scale: Scale,
    ) -> Matches:
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
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        listed: list[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]] = []

        def note(chosen: NDArray[np.intp], listing: Listing) -> None:
            query = np.repeat(chosen, np.diff(listing.start))
            listed.append((query, rank[listing.points], listing.distances))

        self.search.visit(queries, group.radius, found.inside[:, 0] + found.rim[:, 0], note)
        query, point, distance = (np.concatenate(part) for part in zip(*listed, strict=True))
        sorting = np.lexsort((point, query))
        query, point, distance = query[sorting], point[sorting], distance[sorting]
        start = _starts(query, len(first))
        counts = space.counts[order]
        weight = group.weigh(query, distance, counts[point])
        whole = _totals(weight, start)
        negatives = _totals(group.weigh(query, distance, space.negatives[order][point]), start)
        part = weight / whole[query]
        shape = (len(first), len(order))
        people: Any = csr_array((part, point.astype(np.int32), start), shape=shape)
        apart: Any = csr_array((part * distance, point.astype(np.int32), start), shape=shape)
        common, unit = _common_whole(negatives, whole), float(metric.unit)
        return Matches(
            key=key,
            negatives=_in_parts(negatives, whole, common),
            whole=common,
            found=whole > 0,
            people=people,
            counts=counts,
            distance=apart @ np.ones(len(order)) + overflow * unit,
            matched=people @ here,
            centers=scale.moments(queries.points),
        )


def _distinct(world: Embedded) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if world.overflow_distance.any():  # equal points may be out of reach by different distances
        everyone = np.arange(len(world.points))
        return everyone, everyone
    return group_rows(world.points)


def order_by_value(points: Points, *further: NDArray[Any]) -> NDArray[np.intp]:
    """Sort points by their coordinates and codes, and those that agree by further columns."""
    columns = [np.zeros(len(points)), *points.coordinates.T, *points.codes.T, *further]
    return np.lexsort(columns[::-1])


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

    def mean(name: str) -> Any:
        return sum(getattr(each, name)[each.key] for each in drawn) / size

    negatives = sum(
        each.negatives[each.key].astype(kind) * (common // each.whole) for each in drawn
    )
    found = np.logical_and.reduce([each.found[each.key] for each in drawn])
    people = mean("people")
    people.sort_indices()
    return Matches(
        key=np.arange(len(drawn[0].key)),
        negatives=np.where(found, negatives, 0),
        whole=common * size,
        found=found,
        people=people,
        counts=drawn[0].counts,
        **{name: mean(name) for name in ("distance", "matched", "centers")},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """People of a control space who stand on one point and have one counterfactual, in an order.

    Parameters
    ----------
    key
        Their counterfactual.
    count
        How many they are.
    of_row
        The cell of each row of the control space.
    first, number
        Of each point: its first cell, and how many it has.
    """

    key: NDArray[np.intp]
    count: NDArray[np.int64]
    of_row: NDArray[np.intp]
    first: NDArray[np.intp]
    number: NDArray[np.intp]

    @classmethod
    def of(
        cls, standing: NDArray[np.intp], key: NDArray[np.intp], order: NDArray[np.intp]
    ) -> _Cells:
        """Form cells; `order` sorts the rows of the space, those of one point together."""
        first, cell = group_equal(standing[order], key[order])
        of_row = np.empty(len(order), dtype=np.intp)
        of_row[order] = cell
        chosen = order[first]
        number = np.bincount(standing[chosen])
        # cells of one point follow each other, so the first is the smallest
        start = np.empty(len(number), dtype=np.intp)
        start[standing[chosen][::-1]] = np.arange(len(chosen))[::-1]
        return cls(
            key=key[chosen],
            count=np.bincount(cell).astype(np.int64),
            of_row=of_row,
            first=start,
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
    order: NDArray[np.intp],
    scale: Scale,
    names: tuple[str, ...],
) -> tuple[Group, ...]:
    """Give the test groups of some complainants, for each k.

    `mine` are their places among all complainants, `rows` those among the rows of the control
    space, on whose points all rows stand as `standing` says, sorted by `order`.
    """
    cells = _Cells.of(standing, matches.key, order)
    found = control.found.take(mine)
    limits = None if control.caliper is None else control.caliper.limits[mine]
    places = [
        _Places.of(found, index, k, control.ties, limits) for index, k in enumerate(control.ks)
    ]
    totals = [_Totals.empty(len(mine), whole=matches.whole, places=each) for each in places]
    own = cells.of_row[rows]

    def use(chosen: NDArray[np.intp], listing: Listing) -> None:
        query, cell, distance = cells.at(listing)
        count = cells.count[cell] - (cell == own[chosen][query])
        sorting = np.lexsort((cell, query))
        entries = _Entries(
            chosen=chosen,
            query=query[sorting],
            key=cells.key[cell[sorting]],
            distance=distance[sorting],
            count=count[sorting],
        )
        for group, total in zip(places, totals, strict=True):
            total.add(entries, group, matches, scale)

    reach = np.max([each.radius for each in places], axis=0)
    within = found.inside.max(axis=1) + found.rim.max(axis=1) + 1
    search.visit(queries, reach, within, use)
    unit = control.metric.unit
    return tuple(each.group(matches, unit=unit, names=names) for each in totals)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entries:
    """Everyone within reach of some complainants, `chosen` ones, sorted by them and by value."""

    chosen: NDArray[np.intp]
    query: NDArray[np.intp]
    key: NDArray[np.intp]
    distance: NDArray[np.int64]
    count: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Totals:
    """What is added up for the test group of each complainant, at one k.

    Parameters
    ----------
    negatives, weight
        Refusals and people in the test group, in parts of a place of the control group.
    size
        The places of the control group.
    down
        The number of these parts in a place.
    spread
        Σ_j w_j².
    rows
        How many reference rows have a part in the test group.
    distance
        The mean distance of a match.
    unfit
        Why there is no comparison: see `Matching`.
    """

    negatives: NDArray[Any]
    weight: NDArray[np.int64]
    size: NDArray[np.int64]
    down: NDArray[np.int64]
    spread: NDArray[np.float64]
    rows: NDArray[np.int64]
    distance: NDArray[np.float64]
    unfit: NDArray[np.int16]

    @classmethod
    def empty(cls, size: int, *, whole: int, places: _Places) -> _Totals:
        most = whole * int(places.down.max(initial=1)) * (int(places.up.max(initial=1)) + size)
        kind: Any = np.int64 if most < _ROOM else object
        return cls(
            negatives=np.zeros(size, dtype=kind),
            weight=np.zeros(size, dtype=np.int64),
            size=np.zeros(size, dtype=np.int64),
            down=places.down,
            spread=np.zeros(size),
            rows=np.zeros(size, dtype=np.int64),
            distance=np.full(size, np.nan),
            unfit=np.zeros(size, dtype=np.int16),
        )

    def add(self, entries: _Entries, places: _Places, matches: Matches, scale: Scale) -> None:
        """Add up the groups of the complainants of some entries."""
        from scipy.sparse import csr_array

        chosen = entries.chosen
        weight = places.weigh(chosen[entries.query], entries.distance, entries.count)
        inside = weight > 0
        query, key, weight = entries.query[inside], entries.key[inside], weight[inside]
        start = _starts(query, len(chosen))
        found = matches.found[key]
        total = _totals(weight, start)
        self.weight[chosen] = _totals(weight * found, start)
        self.size[chosen] = total // self.down[chosen]
        parts = weight.astype(self.negatives.dtype) * matches.negatives[key]
        self.negatives[chosen] = _totals(parts, start)
        near = matches.distance[key] <= (places.radius[chosen] * (1 + _ROUNDING))[query]
        is_near = 2 * _totals(weight * (near & found), start) >= np.maximum(total, 1)

        down = self.down[chosen][query]
        shape = (len(chosen), len(matches.found))
        everyone: Any = csr_array((weight / down, key, start), shape=shape)
        matched: Any = csr_array((weight * found / down, key, start), shape=shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            matched_size = self.weight[chosen] / self.down[chosen]
            averages = (matched @ matches.matched) / matched_size[:, None]
            self.distance[chosen] = (matched @ np.nan_to_num(matches.distance)) / matched_size
            centers = (everyone @ matches.centers) / (total / self.down[chosen])[:, None]
        people = matched @ matches.people
        squares = people.data**2 / matches.counts[people.indices]
        of_query = np.repeat(np.arange(len(chosen)), np.diff(people.indptr))
        self.spread[chosen] = np.bincount(of_query, squares, minlength=len(chosen))
        rows = np.where(people.data > 0, matches.counts[people.indices], 0)
        self.rows[chosen] = _totals(rows, people.indptr)
        self.unfit[chosen] = _judge(is_near, scale.imbalance(averages, centers, self.size[chosen]))

    def group(self, matches: Matches, *, unit: float, names: tuple[str, ...]) -> Group:
        kind = self.negatives.dtype
        full = self.weight == self.size * self.down
        scaled = np.where(full, 1, self.size).astype(kind)
        split = np.where(full, self.down, self.weight).astype(kind) * matches.whole
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = (self.weight / self.down) ** 2 / self.spread
        empty = self.weight == 0
        return Group(
            share=Share(
                negatives=self.negatives * scaled,
                size=np.where(empty, 0, self.size),
                split=split,
                people=np.where(empty, 0.0, np.minimum(effective, _MOST_PEOPLE * self.size)),
            ),
            rows=self.rows,
            radius=self.distance / unit,
            matching=Matching(
                n_effective=np.where(empty, 0.0, effective), unfit=self.unfit, names=names
            ),
        )


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
    key, people
        As `Matches` has them.
    """

    test: NDArray[np.intp]
    key: NDArray[np.intp]
    people: Any


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
                {"key": each.key}
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
            spaces.append(MatchedSpace(test=test, key=each["key"], people=people))
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
        among = np.searchsorted(control.spaces[control.space_of[complainant]], rows[place > 0])
        weight = place[place > 0] @ space.people[space.key[among]]
        points = control.points.take(space.test)
        first, point = group_rows(points)
        order = order_by_value(points.take(first))
        part = np.empty(len(order))
        part[order] = weight
        held = (part / np.bincount(point))[point]
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
