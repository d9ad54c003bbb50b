"""Matches: the reference rows that represent a person's counterfactual, M(i).

Each M(i) is found once, for all complainants in whose control group i is. Means of marks have one
common denominator, however large. Weights are rounded to a part in `_PARTS` of a place, and what
groups are balanced on to 2**-bits of a range, so that all sums are sums of integers: neither the
order of rows nor that in which a kernel adds can change a bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mutandis.data.rows import ByRow, group_equal
from mutandis.engine.nearest import limits_of
from mutandis.engine.tally import ROOM, Sums
from mutandis.geometry.embedding import Embedded
from mutandis.geometry.index import Queries, group_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mutandis.engine.balance import Scale
    from mutandis.geometry.embedding import Embedding
    from mutandis.geometry.index import Listing, Neighbourhoods, Search, Space, Ties, Use
    from mutandis.geometry.metric import Points
    from mutandis.mapped import Bools, Floats, Ints, Rows

MATCHES = 5
"""Number of reference rows that represent a counterfactual that the facts determine."""

# Parts of a place in which the weights of people are counted: s_ij is whole where up to 16 rows
# share the last place. The square of all weights of a group has to fit int64, so large groups
# count in fewer parts.
_PARTS, _FEWER_PARTS, _LARGE = 720_720, 2_520, 2_000
# people of several worlds who are searched for at once; under several assumptions, where worlds
# do not coincide, fewer than make it worth while to load kernels
_TOGETHER, _FEW = 100_000, 5_000
# people whose matches are weighed at a time, in the processor's cache
_AT_ONCE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Places(ByRow):
    """Who belongs to each of many groups: all nearer than a radius, and a part of those at it.

    Rows at exactly the `radius` hold `up / down` of a place.
    """

    radius: Ints
    up: Ints
    down: Ints

    @classmethod
    def of(
        cls, k: int, radius: Ints, inside: Ints, rim: Ints, *, ties: Ties, limits: Ints | None
    ) -> Places:
        """Read what a search for the k nearest has found, and what a caliper leaves of it."""
        up, down = np.ones_like(radius), np.ones_like(radius)
        if ties == "fair":
            up, down = k - inside, rim
        if limits is not None:
            # where the k-th nearest lies beyond the caliper, the group holds all within it
            cut = radius > limits
            radius, up, down = (
                np.where(cut, other, each) for each, other in ((radius, limits), (up, 1), (down, 1))
            )
        return cls(radius=radius, up=up, down=down)

    def weigh(self, group: Rows, distance: Ints, count: Ints) -> Ints:
        """Return the places of `count` rows at a distance, in parts of `down`."""
        radius = self.radius[group]
        at_it = np.where(distance == radius, self.up[group], 0)
        return np.where(distance < radius, self.down[group], at_it) * count


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """M(i), once for all people with the same counterfactual."""

    key: Rows  # which of them each row of the control space has
    # the mean of each mark in M(i), in parts of a whole that is the same for all, by column
    marks: NDArray[Any]
    wholes: tuple[int, ...]
    found: Bools  # whether M(i) has anyone
    # s_ij, in parts: a column per point of the test space
    people: Any
    parts: int
    counts: Ints  # the number of rows at each of these points
    # the mean distance from i's counterfactual to M(i), in units of the metric; it is compared with
    # integer distances, which may be `squared`
    distance: Floats
    squared: bool
    # the distance in units of the metric, the moments of M(i), both zeros where it has no one, and
    # the moments of i's counterfactual, as `Scale` computes them: those of numbers, and of levels,
    # most of which are zero, in the columns that they have among all
    numbers: Ints
    levels: Any

    @property
    def reach(self) -> Floats:
        """The mean distance to M(i), as integer distances are."""
        return self.distance**2 if self.squared else self.distance

    @property
    def plain(self) -> bool:
        """Whether no two rows of the test space are on one point."""
        return bool((self.counts == 1).all())

    @property
    def columns(self) -> tuple[int, int, int]:
        """Number of numbers that belong to M(i), where counterfactuals begin, and the width."""
        of_matches, width = self.numbers.shape[1] // 2 + 1, self.levels.shape[1]
        return of_matches, width // 2 + 1, width

    def total_moments(self, groups: Any) -> Ints:
        """Add up the moments over groups, whose people are a sparse matrix."""
        of_matches, half, _ = self.columns
        totals: Ints
        if self.levels.nnz:
            totals = (groups @ self.levels).toarray()
        else:
            totals = np.zeros((groups.shape[0], self.levels.shape[1]), dtype=np.int64)
        numbers = groups @ self.numbers
        totals[:, :of_matches] = numbers[:, :of_matches]
        totals[:, half : half + of_matches - 1] = numbers[:, of_matches:]
        return totals

    @classmethod
    def join(cls, parts: Sequence[Matches]) -> Matches:
        """Concatenate the rows of the control space in several worlds."""
        first, keys = parts[0], [each.key for each in parts]
        if all(each.people is first.people for each in parts):  # they were found together
            return replace(first, key=np.concatenate(keys))
        from scipy.sparse import vstack

        before = np.cumsum([0, *(len(each.found) for each in parts)])
        wholes = tuple(map(lcm, *(each.wholes for each in parts)))
        parts = [each.in_parts(wholes) for each in parts]
        return replace(
            first,
            key=np.concatenate([key + start for key, start in zip(keys, before, strict=False)]),
            marks=np.concatenate([each.marks for each in parts]),
            wholes=wholes,
            found=np.concatenate([each.found for each in parts]),
            people=vstack([each.people for each in parts], format="csr"),
            distance=np.concatenate([each.distance for each in parts]),
            numbers=np.concatenate([each.numbers for each in parts]),
            levels=vstack([each.levels for each in parts], format="csr"),
        )

    def in_parts(self, wholes: tuple[int, ...]) -> Matches:
        """Return the same with means in parts of larger wholes, by column."""
        columns = []
        for column, whole, other in zip(self.marks.T, self.wholes, wholes, strict=True):
            top = max(int(np.abs(column).max(initial=0)), whole)
            kind: Any = np.int64 if top * (other // whole) < ROOM else object
            columns.append(column.astype(kind) * (other // whole))
        return replace(self, marks=np.column_stack(columns), wholes=wholes)

    def sums(self, rows: Rows) -> Sums:
        """Return the sums over M(i) for rows of the control space."""
        keys = self.key[rows]
        marks = self.marks[keys]
        parts = np.broadcast_to(np.array(self.wholes, dtype=self.marks.dtype), marks.shape)
        return Sums(marks=marks, parts=parts, places=self.found[keys].astype(np.int64))


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

    def find(
        self,
        people: Iterable[Iterable[tuple[Embedded, int]]],
        nearest: Neighbourhoods | None = None,
    ) -> list[Matches]:
        """Find the reference rows nearest to the same people under several assumptions.

        Each assumption has one or more worlds, whose parts in M(i) are their weights. What a search
        for the `nearest` has found is not searched for again.
        """
        found: dict[int, list[tuple[Matches, int]]] = {}
        everything = (
            (number, world, weight)
            for number, worlds in enumerate(people)
            for world, weight in worlds
        )
        for batch in _batches(everything):
            together = self._find(Embedded.join([world for _, world, _ in batch]), nearest)
            keys = np.split(together.key, len(batch))
            for key, (number, _, weight) in zip(keys, batch, strict=True):
                found.setdefault(number, []).append((replace(together, key=key), weight))
        return [each[0][0] if len(each) == 1 else _average(each) for each in found.values()]

    def _find(self, world: Embedded, nearest: Neighbourhoods | None) -> Matches:
        space, metric = self.space, self.embedding.metric
        first, key = self._distinct(world)
        queries = Queries.outside(world.points.take(first))
        places = min(MATCHES, int(space.counts.sum()))
        if nearest is None:
            found = self.search.neighbourhoods(queries, (places,))
        else:
            found = nearest.take(first)
        overflow, limits = world.overflow_distance[first], None
        if self.max_distance is not None:
            limits = limits_of(self.max_distance, overflow, metric)
        nearest_of = (each[:, 0] for each in (found.radius, found.inside, found.rim))
        group = Places.of(places, *nearest_of, ties=self.ties, limits=limits)
        listed = _Listed.empty(len(first), self.scale, space.marks.shape[1])

        def note(chosen: Rows, listing: Listing) -> None:
            for one in range(0, len(chosen), _AT_ONCE):
                few = slice(one, one + _AT_ONCE)
                self._note(listed, group, chosen[few], listing.part(few), queries.points)

        rows = found.inside[:, 0] + found.rim[:, 0]
        use = self._with_lengths(listed, group, note) if metric.squared else note
        self.search.visit(queries, group.radius, rows, use)
        wholes = tuple(_common_whole(column, listed.whole) for column in listed.marks.T)
        apart = listed.apart + overflow * float(metric.unit)
        listed.numbers[:, 0] = self.scale.count(apart / metric.unit)
        return Matches(
            key=key,
            marks=_in_parts(listed.marks, listed.whole, wholes),
            wholes=wholes,
            found=listed.whole > 0,
            people=listed.put_in_order(listed.people, len(space.counts)),
            parts=self.parts,
            counts=space.counts,
            distance=apart,
            squared=metric.squared,
            numbers=listed.numbers,
            levels=listed.put_in_order(listed.levels, 1 + 2 * self.scale.width),
        )

    def _with_lengths(self, listed: _Listed, group: Places, use: Use) -> Use:
        """Average the lengths of squared distances, and not their squares."""

        def average(chosen: Rows, listing: Listing) -> None:
            query = listing.query
            weight = group.weigh(
                chosen[query], listing.distances, self.space.counts[listing.points]
            )
            # rows at the same distance are first added up, as integers
            order = np.lexsort((listing.distances, query))
            query, distance, weight = query[order], listing.distances[order], weight[order]
            is_new = (np.diff(query, prepend=-1) != 0) | (np.diff(distance, prepend=-1) != 0)
            run = np.cumsum(is_new) - 1
            held = np.zeros(np.count_nonzero(is_new), dtype=np.int64)
            np.add.at(held, run, weight)
            length = held * self.embedding.metric.lengths(distance[is_new])
            total = np.bincount(query[is_new], weights=length, minlength=len(chosen))
            use(chosen, listing)
            with np.errstate(invalid="ignore"):
                listed.apart[chosen] = total / listed.whole[chosen]

        return average

    def _distinct(self, world: Embedded) -> tuple[Rows, Rows]:
        """Return a row of each different counterfactual, near ones together, and who has which."""
        first = key = np.arange(len(world.points))
        # equal points may be out of reach by different distances
        if not world.overflow_distance.any():
            first, key = group_rows(world.points)
        # those who were searched for are arranged already, as the same points
        points = world.points if first is key else world.points.take(first)
        order = self.search.arrange(points)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return first[order], place[key]

    def _note(
        self, listed: _Listed, group: Places, chosen: Rows, listing: Listing, centers: Points
    ) -> None:
        """Note the matches of some people, as they are listed."""
        space, start, query = self.space, listing.start, listing.query
        point, distance = listing.points, listing.distances
        count = space.counts[point]
        farther, more = np.diff(distance), np.diff(count)
        if (((farther < 0) | (farther == 0) & (more < 0)) & (np.diff(query) == 0)).any():
            # sorted by distance, and by how many are at a point: those that are equal in both
            # change nothing by changing places
            sorting = np.lexsort((count, distance, query))
            point, distance, count = point[sorting], distance[sorting], count[sorting]
        whose = chosen[query]
        weight = group.weigh(whose, distance, count)
        whole = totals_of(weight, start)
        part = weight / whole[query]
        here = self.scale.moments(space.points.take(point)) * count[:, None]
        nearer = distance < group.radius[whose]
        inside, rim = (totals_of(here * some[:, None], start) for some in (nearer, ~nearer))
        up, down = group.up[chosen], group.down[chosen]
        averages = self.scale.averages(inside, rim, up / down, whole / down)
        matched, center = self.scale.count(averages), self.scale.moments(centers.take(chosen))
        numbers = 2 * len(self.scale.middle)
        listed.numbers[chosen, 1:] = np.hstack([matched[:, :numbers], center[:, :numbers]])
        levels = np.hstack([matched[:, numbers:], center[:, numbers:]])
        whom, level = np.nonzero(levels)
        column = level + 1 + numbers * (1 + (level >= levels.shape[1] // 2))
        sizes = np.bincount(whom, minlength=len(chosen))
        listed.levels.append((chosen, sizes, column.astype(np.int32), levels[whom, level]))
        listed.whole[chosen] = whole
        one = group.weigh(whose, distance, np.ones_like(count))
        for column, marks in enumerate(space.marks.T):
            listed.marks[chosen, column] = totals_of(one * marks[point], start)
        # one after the other, as they are sorted
        listed.apart[chosen] = np.bincount(query, weights=part * distance, minlength=len(chosen))
        parts = np.rint(part * self.parts).astype(np.int32)
        listed.people.append((chosen, np.diff(start), point.astype(np.int32), parts))


# people, how many columns of a sparse matrix each of them has, these, and their values
_Sparse = tuple["Rows", "Rows", NDArray[np.int32], NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """What is written down of M(i), for some people at a time: see `Matches`."""

    marks: Ints
    whole: Ints
    apart: Floats
    numbers: Ints
    people: list[_Sparse]
    levels: list[_Sparse]

    @classmethod
    def empty(cls, size: int, scale: Scale, width: int) -> _Listed:
        return cls(
            marks=np.zeros((size, width), dtype=np.int64),
            whole=np.zeros(size, dtype=np.int64),
            apart=np.zeros(size),
            numbers=np.zeros((size, 1 + 4 * len(scale.middle)), dtype=np.int64),
            people=[],
            levels=[],
        )

    def put_in_order(self, listed: list[_Sparse], width: int) -> Any:
        """Make a sparse matrix in the order of people, and let go of what it is made from."""
        from scipy.sparse import csr_array

        number = np.zeros(len(self.whole) + 1, dtype=np.intp)
        for chosen, sizes, _, _ in listed:
            number[chosen + 1] = sizes
        # SciPy takes numbers of columns and starts to be of one type, and copies those of another
        start = np.cumsum(number)
        start = start.astype(np.int32 if start[-1] < 2**31 else np.int64)
        data = np.empty(start[-1], dtype=listed[0][3].dtype if listed else np.int64)
        indices = np.empty(start[-1], dtype=np.int32)
        while listed:
            chosen, sizes, columns, values = listed.pop()
            place = np.repeat(start[chosen] - np.cumsum(sizes) + sizes, sizes)
            place += np.arange(len(columns))
            data[place], indices[place] = values, columns
        return csr_array((data, indices, start), shape=(len(self.whole), width))


_World = tuple[int, Embedded, int]  # under which assumption, the people in it, and its weight


def _batches(worlds: Iterable[_World]) -> Iterator[list[_World]]:
    """Put worlds of few people together: draws often coincide, and are then searched for once."""
    batch: list[_World] = []
    for world in worlds:
        people = len(batch) * len(world[1].points)
        if people >= _TOGETHER or (people >= _FEW and batch[-1][0] != world[0]):
            yield batch
            batch = []
        batch.append(world)
    if batch:
        yield batch


def starts_of(query: Rows, size: int) -> Rows:
    counts = np.bincount(query, minlength=size)
    return np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(counts)])


def totals_of(values: NDArray[Any], start: Rows) -> NDArray[Any]:
    """Add up the values from each start to the next: integers, so that nothing is rounded."""
    sums = np.zeros((len(start) - 1, *values.shape[1:]), dtype=values.dtype)
    filled = start[1:] > start[:-1]
    if filled.any():
        sums[filled] = np.add.reduceat(values, start[:-1][filled])
    return sums


def _common_whole(negatives: Ints, whole: Ints) -> int:
    """Return the smallest number of parts in which every share of refusals is whole."""
    filled = whole > 0
    divisor = np.gcd(negatives[filled], whole[filled])
    return lcm(*np.unique(whole[filled] // divisor).tolist())


def _in_parts(marks: Ints, whole: Ints, wholes: Sequence[int]) -> NDArray[Any]:
    """Express the means of marks in parts of a whole that all have in common, by column."""
    filled = np.where(whole > 0, whole, 1)
    columns = []
    for column, common in zip(marks.T, wholes, strict=True):
        most = max(int(whole.max(initial=1)), int(np.abs(column).max(initial=0)))
        kind: Any = np.int64 if common * most < ROOM else object
        columns.append(column.astype(kind) * common // filled.astype(kind))
    return np.column_stack(columns)


def _average(drawn: Sequence[tuple[Matches, int]]) -> Matches:
    """Put the matches of several worlds together, each with its weight."""
    # people whose counterfactuals are the same in every world stay one
    rows, key = group_equal(*(each.key for each, _ in drawn))
    drawn = [(replace(each, key=each.key[rows]), weight) for each, weight in drawn]
    size, first = sum(weight for _, weight in drawn), drawn[0][0]
    columns = [_average_marks(drawn, column, size) for column in range(len(first.wholes))]
    marks, wholes = np.column_stack([each for each, _ in columns]), [each for _, each in columns]
    found = np.logical_and.reduce([each.found[each.key] for each, _ in drawn])
    # one after the other, since sums of distances are rounded
    distance: Any = sum(each.distance[each.key] * weight for each, weight in drawn)
    numbers, people, levels = _sum_rows(drawn)
    numbers //= size
    people.data = ((people.data + size // 2) // size).astype(np.int32)
    levels.data //= size
    # the moments of M(i) are left out where some draw has none
    of_matches, half, _ = first.columns
    numbers[~found, :of_matches] = 0
    people.data[np.repeat(~found, np.diff(people.indptr))] = 0
    levels.data[np.repeat(~found, np.diff(levels.indptr)) & (levels.indices < half)] = 0
    return Matches(
        key=key,
        marks=np.where(found[:, np.newaxis], marks, 0),
        wholes=tuple(wholes),
        found=found,
        people=people,
        parts=first.parts,
        counts=first.counts,
        distance=distance / size,
        squared=first.squared,
        numbers=numbers,
        levels=levels,
    )


def _average_marks(
    drawn: Sequence[tuple[Matches, int]], column: int, size: int
) -> tuple[NDArray[Any], int]:
    """Average a mark over worlds whose weights add up to `size`: in parts of a whole, and it."""
    common = lcm(*(each.wholes[column] for each, _ in drawn))
    columns = [each.marks[:, column] for each, _ in drawn]
    most = max(
        int(np.abs(marks).max(initial=0)) // each.wholes[column] + 1
        for marks, (each, _) in zip(columns, drawn, strict=True)
    )
    kind: Any = np.int64 if common * size * most < ROOM else object
    total = sum(
        marks[each.key].astype(kind) * (common // each.wholes[column] * weight)
        for marks, (each, weight) in zip(columns, drawn, strict=True)
    )
    return np.asarray(total), common * size


def _sum_rows(drawn: Sequence[tuple[Matches, int]]) -> tuple[Ints, Any, Any]:
    """Add up the moments of numbers, who represents whom, and the moments of levels."""
    from scipy.sparse import csr_array

    # worlds that were searched together share what was found
    sharing: dict[int, list[tuple[Matches, int]]] = {}
    for each, weight in drawn:
        sharing.setdefault(id(each.people), []).append((each, weight))
    numbers: Any = 0
    people: Any = 0
    levels: Any = 0
    for worlds in sharing.values():
        found, rows = worlds[0][0], len(worlds[0][0].key)
        keys = np.column_stack([each.key for each, _ in worlds]).ravel()
        weights = np.tile(np.array([weight for _, weight in worlds], dtype=np.int64), rows)
        start = np.arange(rows + 1) * len(worlds)
        together = csr_array((weights, keys, start), shape=(rows, len(found.found)))
        together.sum_duplicates()  # most draws coincide
        numbers = together @ found.numbers + numbers
        people = together @ found.people + people
        levels = together @ found.levels + levels
    people.sort_indices()
    levels.sort_indices()
    return numbers, people, levels


def parts_for(largest: int) -> int:
    """Choose how finely the weights of people are counted, in groups of up to so many."""
    return _PARTS if largest <= _LARGE else _FEWER_PARTS
