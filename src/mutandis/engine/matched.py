"""The matched comparison: a control group, against the matches of its counterfactuals.

Let N(c) be the control group of a complainant c, whose members i hold places u_i, and M(i) the m
reference rows nearest to i's counterfactual, each with a part s_ij of it (Σ_j s_ij = 1). Then

    p_control = Σ_i u_i y_i / Σ_i u_i,     p_test = Σ_j w_j y_j / Σ_j w_j,     w_j = Σ_i u_i s_ij.

The test group inherits the shape and the density of the control group. Where the facts leave a
counterfactual open, M(i) is the average over several draws of it. A caliper cuts both N(c) and
M(i); a person without matches has no part in the test group.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.rows import group_equal
from mutandis.engine.balance import IMBALANCE, IMBALANCE_BY_K, ROUNDING
from mutandis.engine.matches import Places, starts_of, totals_of
from mutandis.engine.tally import ROOM, Group, Matching, Sums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from mutandis.engine.balance import Scale
    from mutandis.engine.matches import Matches
    from mutandis.engine.study import Study
    from mutandis.engine.tally import Nearest
    from mutandis.geometry.cells import NearbySearch
    from mutandis.geometry.embedding import Embedding
    from mutandis.geometry.index import Listing, Queries, Search
    from mutandis.mapped import Bools, Floats, Ints, Rows

_AT_ONCE = 1024  # complainants whose groups are added up at a time
# complainants and sizes of groups from which on a kernel pays for being loaded
_WORTH_LOADING = 500_000
# The number of people that a test group may count as, in sizes of the control group: with more,
# the score test would reject too often where refusals are rare.
_MOST_PEOPLE = 2


def compare_matched(
    control: Nearest,
    study: Study,
    *,
    rows: Rows,
    queries: Queries,
    standing: Rows,
    search: Search | NearbySearch,
    matches: Matches,
    scale: Scale,
    embedding: Embedding,
    worlds: int = 1,
) -> list[tuple[Group, ...]]:
    """Return the test groups of some complainants, for each k, in one or more worlds.

    `control` has their control groups, `rows` are their places among the rows of the control space,
    whose points are `standing`. The matches are those of all rows in one world after the other.
    """
    # as if people had points of their own in each world
    points = int(standing.max()) + 1
    cells = _Cells.of(_tile(standing, worlds, points), matches.key)
    own = cells.of_row[_tile(rows, worlds, len(standing))].reshape(worlds, -1)
    # those at one point who have one counterfactual have the same test groups
    first, same = group_equal(*own, *(() if control.limits is None else (control.limits,)))
    size = len(first)
    if first is not same:
        control, own, queries = control.take(first), own[:, first], queries.take(first)
    totals = _Totals(control, study, matches, scale, cells, own.ravel(), worlds)
    add: Callable[..., None] = totals.add_arrays
    if size * sum(study.ks) >= _WORTH_LOADING and totals.marks.dtype != object:
        add = _kernel_of(totals) or add

    def use(chosen: Rows, listing: Listing) -> None:
        add(_tile(chosen, worlds, size), listing.repeat(worlds, points))

    search.visit(queries, *reach_of(control), use)
    groups = totals.groups(_shares(control, study, embedding), embedding.names)
    if worlds == 1:
        return [groups if first is same else tuple(each.take(same) for each in groups)]
    everywhere = _tile(same, worlds, size).reshape(worlds, -1)
    return [tuple(each.take(here) for each in groups) for here in everywhere]


def _shares(nearest: Nearest, study: Study, embedding: Embedding) -> list[Sums]:
    return [
        nearest.group(index, k, ties=study.ties, metric=embedding.metric).share
        for index, k in enumerate(study.ks)
    ]


def _tile(numbers: NDArray[Any], worlds: int, offset: int) -> NDArray[Any]:
    """Tile indices, offset per world."""
    if worlds == 1:
        return numbers
    return np.asarray(np.add.outer(np.arange(worlds) * offset, numbers)).ravel()


def reach_of(control: Nearest) -> tuple[Ints, Ints]:
    """Return how far the largest groups reach, within a caliper, and how many rows at most."""
    found, reach = control.found, control.found.radius.max(axis=1)
    if control.limits is not None:
        reach = np.minimum(reach, control.limits)
    return reach, found.inside.max(axis=1) + found.rim.max(axis=1) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """People of a control space who are on one point and have one counterfactual."""

    key: Rows  # their counterfactual
    count: Ints  # how many they are
    of_row: Rows  # the cell of each row of the control space
    # of each point: its first cell, and how many it has, which follow each other
    first: Rows
    number: Rows

    @property
    def several(self) -> bool:
        """Whether some points have several cells."""
        return len(self.key) > len(self.first)

    @classmethod
    def of(cls, standing: Rows, key: Rows) -> _Cells:
        rows = np.arange(len(standing))
        if np.array_equal(standing, rows):  # each on an own point
            ones = np.broadcast_to(np.int64(1), len(rows))
            return cls(key=key, count=ones, of_row=rows, first=rows, number=ones)
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

    def at(self, listing: Listing) -> tuple[Rows, Rows, Ints]:
        """Return the query, the cell and the distance of everyone in a listing."""
        query = listing.query
        if not self.several:
            return query, listing.points.astype(np.intp, copy=False), listing.distances
        number = self.number[listing.points]
        entry = np.repeat(np.arange(len(number)), number)
        nth = np.arange(len(entry)) - np.repeat(np.cumsum(number) - number, number)
        cell = self.first[listing.points[entry]] + nth
        return query[entry], cell, listing.distances[entry]


@dataclass(slots=True)
class _Totals:
    """What is added up for the test group of each complainant (column), at each k (row)."""

    control: Nearest
    study: Study
    matches: Matches
    scale: Scale
    cells: _Cells
    own: Rows  # the cell of each complainant
    worlds: int
    # marks (in a third dimension) and people in the test group, in parts of a place of the control
    # group
    marks: NDArray[Any] = field(init=False)
    weight: Ints = field(init=False)
    spread: Ints = field(init=False)  # Σ_j w_j², in squared parts
    rows: Ints = field(init=False)  # reference rows with a part in the test group
    distance: Floats = field(init=False)  # the mean distance of a match
    unfit: NDArray[np.int16] = field(init=False)  # why there is no comparison: see `Matching`

    def __post_init__(self) -> None:
        """Make room for all groups."""
        matches, shape = self.matches, (len(self.study.ks), len(self.own))
        self.weight, self.spread, self.rows = (np.zeros(shape, np.int64) for _ in range(3))
        self.distance = np.full(shape, np.nan)
        self.unfit = np.full(shape, Matching.FAR, dtype=np.int16)  # until they are judged
        # shares of refusals are at most the whole, steps of scores may be more
        top = max(*matches.wholes, int(np.abs(matches.marks).max(initial=0)))
        parts = max(int(each.down.max(initial=1)) for each in self.places(slice(None)))
        most = parts * top * (shape[1] + len(matches.key)) // self.worlds
        kind: Any = np.int64 if most < ROOM else object
        self.marks = np.zeros((*shape, len(matches.wholes)), dtype=kind)

    def places(self, chosen: Rows | slice) -> Iterator[Places]:
        """Iterate over the control groups of some complainants, for each k."""
        found, limits = self.control.found, self.control.limits
        if isinstance(chosen, np.ndarray) and self.worlds > 1:
            chosen = chosen % len(found.radius)
        counted = [each[chosen] for each in (found.radius, found.inside, found.rim)]
        reach = None if limits is None else limits[chosen]
        for index, k in enumerate(self.study.ks):
            here = (each[:, index] for each in counted)
            yield Places.of(k, *here, ties=self.study.ties, limits=reach)

    def add_arrays(self, chosen: Rows, listing: Listing) -> None:
        """Add up the groups of the complainants of a listing with NumPy and SciPy."""
        for one in range(0, len(chosen), _AT_ONCE):
            few = slice(one, one + _AT_ONCE)
            here = chosen[few]
            groups = list(self.places(here))
            around = _Rings.of(listing.part(few), self.own[here], groups, self.cells)
            around.add_shares(here, self)
            around.add_people(here, self)

    def judge(
        self,
        index: int,
        chosen: Rows,
        places: Places,
        people: tuple[Ints, Ints],
        moments: tuple[Ints, Ints],
    ) -> None:
        """Judge whether groups are comparable.

        From the people of the control group and those whose matches are near, in parts of a place,
        and from the moments inside and on the rim.
        """
        (inside, rim), (everyone, near), scale = moments, people, self.scale
        part = places.up / places.down
        size, matched_size = everyone / places.down, self.weight[index, chosen] / places.down
        half = inside.shape[1] // 2 + 1
        test = scale.averages(inside[:, :half], rim[:, :half], part, matched_size)
        control = scale.averages(inside[:, half:], rim[:, half:], part, size)
        is_near = 2 * near >= np.maximum(everyone, 1)
        self.unfit[index, chosen] = _judge(is_near, *scale.imbalance(test[:, 1:], control, size))
        self.distance[index, chosen] = test[:, 0]

    def groups(self, shares: Sequence[Sums], names: tuple[str, ...]) -> tuple[Group, ...]:
        """Return the groups for each k; what is the same for all takes no memory."""
        made = []
        for index, (each, share) in enumerate(zip(self.places(slice(None)), shares, strict=True)):
            down, places = (np.tile(one, self.worlds) for one in (each.down, share.places))
            weight = self.weight[index]
            with np.errstate(divide="ignore", invalid="ignore"):
                effective = (weight / down * self.matches.parts) ** 2 / self.spread[index]
            effective[weight == 0] = 0.0
            people = np.minimum(effective, _MOST_PEOPLE * places)
            group = Group(
                share=replace(self.share(index, slice(None), down, places), people=people),
                rows=self.rows[index],
                radius=self.distance[index],
                matching=Matching(n_effective=effective, unfit=self.unfit[index], names=names),
            )
            made.append(group)
        return tuple(made)

    def share(self, index: int, chosen: Rows | slice, down: Ints, places: Ints) -> Sums:
        """Return the sums of groups whose control groups have so many places, each in parts."""
        weight, marks = self.weight[index, chosen], self.marks[index, chosen]
        full, wholes = weight == places * down, np.array(self.matches.wholes, dtype=marks.dtype)
        parts = np.where(full, down, weight).astype(marks.dtype)[:, np.newaxis] * wholes
        if not full.all():
            marks = marks * np.where(full, 1, places).astype(marks.dtype)[:, np.newaxis]
        size = np.where(weight == 0, 0, places)
        return Sums(marks=marks, parts=_once(parts), places=_once(size))


def _once(values: NDArray[Any]) -> NDArray[Any]:
    """Keep a value once if all are the same."""
    is_one = len(values) > 0 and bool((values == values[0]).all())
    return np.broadcast_to(values[0], values.shape) if is_one else values


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rings:
    """The people around some complainants, parted by the radii of the groups.

    Ring 2b of a complainant lies between two radii, within b of which it is not, and ring 2b + 1 on
    the next radius: a group is everyone up to a ring, with a part of those on the next. People
    are in the order of complainants, and of the rings of each.
    """

    places: list[Places]  # the groups, for each k
    start: Rows  # where each ring starts
    query: Rows
    ring: Rows
    key: Rows  # their counterfactual
    people: Ints  # how many they are

    @classmethod
    def of(cls, listing: Listing, own: Rows, places: list[Places], cells: _Cells) -> _Rings:
        query, cell, apart = cells.at(listing)
        ring = np.zeros(len(query), dtype=np.intp)
        for each in places:
            radius = each.radius[query]
            ring += 2 * (apart > radius)
            ring |= apart == radius
        people, rings = cells.count[cell] - (cell == own[query]), 2 * len(places)
        at = query * rings + ring
        if (at[1:] < at[:-1]).any():
            order = np.argsort(at, kind="stable")
            query, ring, cell, people = (each[order] for each in (query, ring, cell, people))
        return cls(
            places=places,
            start=starts_of(at, len(own) * rings),
            query=query,
            ring=ring,
            key=cells.key[cell],
            people=people,
        )

    def add_shares(self, chosen: Rows, totals: _Totals) -> None:
        """Add up places and marks at all k."""
        kind, key, matches = totals.marks.dtype, self.key, totals.matches
        matched = self._running(totals_of(self.people * matches.found[key], self.start))
        people = self.people.astype(kind)
        marks = [
            self._running(totals_of(people * column[key], self.start)) for column in matches.marks.T
        ]
        for index, group, last in self._groups():
            totals.weight[index, chosen] = _weigh(matched, last, group)
            for column, running in enumerate(marks):
                totals.marks[index, chosen, column] = _weigh(running, last, group)

    def add_people(self, chosen: Rows, totals: _Totals) -> None:
        """Add up who is in the groups at all k, and judge how well they match."""
        matches = totals.matches
        apart = np.where(matches.found, matches.reach, np.inf)[self.key]
        everyone = self._running(totals_of(self.people, self.start))
        matrix = self._matrix(slice(None), self.start, len(matches.found))
        moments = self._running(matches.total_moments(matrix))
        for index, group, last in self._groups():
            limit = (group.radius * (1 + ROUNDING))[self.query]
            near = self._running(totals_of(self.people * (apart <= limit), self.start))
            sizes = _weigh(everyone, last, group), _weigh(near, last, group)
            totals.judge(index, chosen, group, sizes, _up_to(moments, last))
            held = self._held(group, last, matches)
            squares, rows = held.data * held.data, (held.data > 0).astype(np.int64)
            if not matches.plain:
                counts = matches.counts[held.indices]
                squares, rows = squares // counts, rows * counts
            totals.spread[index, chosen] = totals_of(squares, held.indptr)
            totals.rows[index, chosen] = totals_of(rows, held.indptr)

    def _groups(self) -> Iterator[tuple[int, Places, Rows]]:
        """Return the groups for each k, with the last ring that is inside."""
        radii = np.stack([each.radius for each in self.places], axis=1)
        for index, group in enumerate(self.places):
            yield index, group, 2 * (radii < group.radius[:, None]).sum(axis=1)

    def _running(self, sums: NDArray[Any]) -> NDArray[Any]:
        """Add up the rings of each complainant, from the first on; none before the first."""
        rings = sums.reshape(-1, 2 * len(self.places), *sums.shape[1:])
        running = np.zeros((len(rings), rings.shape[1] + 1, *rings.shape[2:]), dtype=sums.dtype)
        np.cumsum(rings, axis=1, out=running[:, 1:])
        return running

    def _held(self, group: Places, last: Rows, matches: Matches) -> Any:
        """Return what each point of the test space holds in the groups, as a sparse matrix."""
        # where the last places are not shared, those on the rim hold theirs as the others do
        shared = group.up != group.down
        held = self._some(self.ring <= (last + ~shared)[self.query], matches)
        if shared.any():
            rim = self._some((self.ring == last[self.query] + 1) & shared[self.query], matches)
            rim = rim.multiply((group.up / group.down)[:, None]).tocsr()
            rim.data = np.rint(rim.data)
            held = (held + rim.astype(np.int64)).tocsr()
        return held

    def _some(self, some: Bools, matches: Matches) -> Any:
        queries = (len(self.start) - 1) // (2 * len(self.places))
        start = starts_of(self.query[some], queries)
        return self._matrix(some, start, len(matches.found)) @ matches.people

    def _matrix(self, some: slice | Bools, start: Rows, keys: int) -> csr_array:
        from scipy.sparse import csr_array

        shape = (len(start) - 1, keys)
        return csr_array((self.people[some], self.key[some], start), shape=shape)


def _weigh(running: NDArray[Any], last: Rows, group: Places) -> NDArray[Any]:
    """Return the sums of groups, in parts of a place."""
    inside, rim = _up_to(running, last)
    down, up = (each.astype(running.dtype) for each in (group.down, group.up))
    return np.asarray(inside * down + rim * up)


def _up_to(running: NDArray[Any], last: Rows) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sums of all up to the last ring inside, and those on the rim."""
    queries = np.arange(len(last))
    inside = running[queries, last + 1]
    return inside, running[queries, last + 2] - inside


def _kernel_of(totals: _Totals) -> Callable[[Rows, Listing], None] | None:
    """Return a kernel that adds up the groups of a listing; None where there is no numba."""
    try:
        from mutandis.engine import kernels
    except ImportError:
        return None
    matches, cells = totals.matches, totals.cells
    at, matched, judge = _lay_out(cells, matches, totals.scale)
    answer = kernels.Answer(*(getattr(totals, name) for name in kernels.Answer._fields))
    rooms: list[Any] = []  # in which no thread works now

    def add(chosen: Rows, listing: Listing) -> None:
        places = list(totals.places(chosen))
        limits = kernels.Limits(
            *(np.stack([getattr(e, n) for e in places], axis=1) for n in kernels.Limits._fields)
        )
        number = np.diff(listing.start)
        if cells.several:
            number = totals_of(cells.number[listing.points], listing.start)
        try:
            room = rooms.pop()
        except IndexError:
            widths = matches.numbers.shape[1], matches.columns[-1]
            attributes = judge.axes + len(judge.levels)
            room = kernels.room_for(len(matched.counts), *widths, attributes, len(matches.wholes))
        points = listing.points.astype(np.int32, copy=False)
        kernels.add_groups(
            kernels.Listed(listing.start, points, listing.distances),
            chosen,
            totals.own[chosen],
            at,
            matched,
            limits,
            judge,
            room,
            kernels.around_for(int(number.max(initial=0)), len(places)),
            answer,
        )
        rooms.append(room)

    return add


def _lay_out(cells: _Cells, matches: Matches, scale: Scale) -> tuple[Any, Any, Any]:
    """Put what a kernel reads into the arrays for which it is compiled."""
    from mutandis.engine import kernels as sums

    def starts(matrix: Any) -> Ints:
        return np.asarray(matrix.indptr, dtype=np.int64)

    levels, people = matches.levels, matches.people
    moments = sums.Moments(
        matches.numbers,
        matches.columns[1],
        starts(levels),
        levels.indices.astype(np.int32, copy=False),
        levels.data,
    )
    matched = sums.Matched(
        matches.marks,
        np.where(matches.found, matches.reach, np.inf),
        starts(people),
        people.indices.astype(np.int32, copy=False),
        people.data,
        np.array(matches.counts),
        matches.plain,
        moments,
    )
    judge = sums.Judge(
        len(scale.middle),
        np.array(scale.levels, dtype=np.int64),
        2.0**scale.bits,
        ROUNDING,
        IMBALANCE,
        IMBALANCE_BY_K,
        Matching.FAR,
    )
    at = (cells.first, cells.number, cells.key, cells.count)
    return sums.Cells(cells.several, *(each.astype(np.int32) for each in at)), matched, judge


def _judge(is_near: Bools, excess: Floats, above: Bools) -> NDArray[np.int16]:
    """Name what keeps each group from being compared: see `Matching`."""
    unfit = np.zeros(len(is_near), dtype=np.int16)
    if len(excess):
        # the first of those that differ most, up to rounding
        worst = np.argmax(excess >= excess.max(axis=0) * (1 - ROUNDING), axis=0)
        everyone = np.arange(len(is_near))
        signed = np.where(above[worst, everyone], worst + 1, -worst - 1)
        unfit[:] = np.where(excess[worst, everyone] > 1, signed, 0)
    return np.where(is_near, unfit, Matching.FAR).astype(np.int16)
