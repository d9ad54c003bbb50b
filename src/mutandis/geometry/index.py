"""The search protocol: what is asked, and the narrow interface behind which a backend answers.

Backends
--------
`brute`
    Measures every pair. Plain enough to be the oracle of all others.
`kd_tree`
    SciPy's KD-tree proposes candidates in floating point; they are measured again in integers, and
    more are asked for until no tie can be missing.
`kernel_search`
    Kernels of our own in machine code: a tree with boxes and level masks, or a scan of one-byte
    coordinates where boxes prune nothing. For large tables.

All are exact, so the choice between them (`choose.py`) can change the time an audit takes and
nothing else. A backend sees distinct points with their multiplicities; it never sees rows, ids or
policies on ties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from mutandis.data.by_row import ByRow
from mutandis.data.equal_rows import group_equal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.geometry.metric import Metric, Points

Ties = Literal["fair", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhoods(ByRow):
    """For each query (row) and each k (column): the rows within the k-th nearest distance."""

    radius: NDArray[np.int64]  # the distance of the k-th nearest row
    inside: NDArray[np.int64]  # rows strictly nearer
    rim: NDArray[np.int64]  # rows at exactly that distance
    # sums of the marks of both, in a third dimension: a search sums one column
    marks_inside: NDArray[np.int64]
    marks_rim: NDArray[np.int64]

    @classmethod
    def empty(cls, queries: int, ks: int, width: int = 1) -> Neighbourhoods:
        shape = (queries, ks)
        counts = {name: np.zeros(shape, dtype=np.int64) for name in ("radius", "inside", "rim")}
        sums = (np.zeros((*shape, width), dtype=np.int64) for _ in range(2))
        return cls(**counts, marks_inside=next(sums), marks_rim=next(sums))

    def at(self, ks: slice) -> Neighbourhoods:
        """Return a copy for some of the ks."""
        return Neighbourhoods(**{f.name: getattr(self, f.name)[:, ks].copy() for f in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class RadiusCounts(ByRow):
    """For each query: the other rows within its limit, what a caliper leaves of a group."""

    people: NDArray[np.int64]
    marks: NDArray[np.int64]  # the sums of their marks, by column
    farthest: NDArray[np.int64]  # the distance of the farthest of them, -1 where there are none

    @classmethod
    def empty(cls, queries: int, width: int = 1) -> RadiusCounts:
        people, farthest = (np.full(queries, -1, dtype=np.int64) for _ in range(2))
        marks = np.full((queries, width), -1, dtype=np.int64)
        return cls(people=people, marks=marks, farthest=farthest)


def select(
    distances: NDArray[np.int64],
    counts: NDArray[np.int64],
    negatives: NDArray[np.int64],
    ks: Sequence[int],
) -> Neighbourhoods:
    """Find the k-th nearest distance among candidates and count the rows inside it and on it."""
    # each query has a row of candidates, in any order, which stand for at least max(ks) rows
    if (distances[:, 1:] < distances[:, :-1]).any():
        order = np.argsort(distances, axis=1, kind="stable")
        distances, counts, negatives = (
            np.take_along_axis(each, order, axis=1) for each in (distances, counts, negatives)
        )
    near, people, refused = distances, _running_totals(counts), _running_totals(negatives)
    found = Neighbourhoods.empty(len(distances), len(ks))
    for column, k in enumerate(ks):
        # the k-th nearest row is where the running count first reaches k
        last = np.argmax(people[:, 1:] >= k, axis=1)
        radius = np.take_along_axis(near, last[:, None], axis=1)
        inner, outer = (near < radius).sum(axis=1), (near <= radius).sum(axis=1)
        inside, refused_inside = _before(people, inner), _before(refused, inner)
        found.radius[:, column] = radius[:, 0]
        found.inside[:, column] = inside
        found.marks_inside[:, column, 0] = refused_inside
        found.rim[:, column] = _before(people, outer) - inside
        found.marks_rim[:, column, 0] = _before(refused, outer) - refused_inside
    return found


def count_candidates(
    distances: NDArray[np.int64],
    counts: NDArray[np.int64],
    negatives: NDArray[np.int64],
    limits: NDArray[np.int64],
) -> RadiusCounts:
    """Count among candidates as `select` takes them, within one limit per query."""
    # a point with no row but the complainant's own is not a neighbour
    near = (distances <= limits[:, None]) & (counts > 0)
    return RadiusCounts(
        people=(near * counts).sum(axis=1, dtype=np.int64),
        marks=(near * negatives).sum(axis=1, dtype=np.int64)[:, np.newaxis],
        farthest=np.where(near, distances, -1).max(axis=1, initial=-1).astype(np.int64),
    )


def _running_totals(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Total the first 0, 1, 2, … candidates of each query."""
    totals = np.zeros((len(values), values.shape[1] + 1), dtype=np.int64)
    np.cumsum(values, axis=1, out=totals[:, 1:])
    return totals


def _before(totals: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(np.take_along_axis(totals, stop[:, None], axis=1)[:, 0], dtype=np.int64)


Progress = Callable[[int], None]
"""Called again and again with the number of further complainants for whom a search is done."""


def discard_progress(more: int) -> None:
    """Do nothing with progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A search space: distinct points, the rows at each, and those with a negative outcome."""

    points: Points
    counts: NDArray[np.int64]
    negatives: NDArray[np.int64]
    metric: Metric
    # other marks than whether an outcome is negative: their sums at each point, by column. Searches
    # do not see them, and count no negatives; `_sum_marks` adds them up afterwards
    marks: NDArray[np.int64] | None = None

    @property
    def summed(self) -> NDArray[np.int64]:
        """Sums of the marks of the rows at each point, by column."""
        return self.negatives[:, np.newaxis] if self.marks is None else self.marks

    def take(self, some: NDArray[np.intp] | slice) -> Space:
        """Give some of the points, in this order."""
        return replace(
            self,
            points=self.points.take(some),
            counts=self.counts[some],
            negatives=self.negatives[some],
            marks=None if self.marks is None else self.marks[some],
        )

    @classmethod
    def of(
        cls, points: Points, marks: NDArray[Any], metric: Metric
    ) -> tuple[Space, NDArray[np.intp]]:
        """Collapse rows into a space; return it with the point of each row.

        A mask tells which rows have a negative outcome; integers, in columns, are other marks.
        """
        first, group = group_rows(points)
        alone = len(first) == len(points)  # no duplicate rows: no copies are needed
        counts: NDArray[np.int64] = np.broadcast_to(np.int64(1), len(points))
        if not alone:
            points = points.take(first)
            counts = np.bincount(group, minlength=len(first)).astype(np.int64)
        if not is_mask(marks):
            sums = marks.astype(np.int64)
            if not alone:
                sums = np.zeros((len(first), marks.shape[1]), dtype=np.int64)
                np.add.at(sums, group, marks)
            nothing = np.broadcast_to(np.int64(0), len(first))
            space = cls(points=points, counts=counts, negatives=nothing, metric=metric, marks=sums)
            return space, group
        negative = marks.reshape(-1)
        negatives = negative.astype(np.int64)
        if not alone:
            negatives = np.bincount(group[negative], minlength=len(first)).astype(np.int64)
        return cls(points=points, counts=counts, negatives=negatives, metric=metric), group


def is_mask(marks: NDArray[Any]) -> bool:
    """Return whether marks are one column of booleans, which a search counts with the rows."""
    return marks.dtype == np.bool_ and marks.size == len(marks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries(ByRow):
    """Centers to search around.

    `own` is the complainant's own point in the space (she is not her own neighbour), -1 where she
    is not in the space; `own_negative` is whether her own outcome is negative.
    """

    points: Points
    own: NDArray[np.intp]
    own_negative: NDArray[np.bool_]
    # other marks of their own rows, by column, where such are summed
    own_marks: NDArray[np.int64] | None = None

    @classmethod
    def outside(cls, points: Points) -> Queries:
        """Make queries from centers that are not rows of the space."""
        size = len(points)
        return cls(
            points=points,
            own=np.broadcast_to(np.intp(-1), size),
            own_negative=np.broadcast_to(np.bool_(False), size),  # noqa: FBT003
        )

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The points within the limits of some queries, one query after the other.

    Those of the i-th query stand at the places start[i] to start[i + 1], in any order; her own
    point is among them.
    """

    start: NDArray[np.intp]
    points: NDArray[np.signedinteger]
    distances: NDArray[np.int64]

    def part(self, queries: slice) -> Listing:
        """Give the listing of some queries."""
        start = self.start[queries.start : queries.stop + 1]
        points, distances = (each[start[0] : start[-1]] for each in (self.points, self.distances))
        return Listing(start=start - start[0], points=points, distances=distances)

    def repeat(self, times: int, points: int) -> Listing:
        """Give the same several times, each time as if on so many further points."""
        if times == 1:
            return self
        again = np.arange(times)
        starts = np.add.outer(again * self.start[-1], self.start[:-1]).ravel()
        return Listing(
            start=np.append(starts, times * self.start[-1]),
            points=np.add.outer(again * points, self.points).ravel(),
            distances=np.tile(self.distances, times),
        )


class Search(Protocol):
    """An exact search in one space."""

    @property
    def name(self) -> str:
        """The backend's name, for the provenance."""
        ...

    def neighbourhoods(
        self, queries: Queries, ks: Sequence[int], *, progress: Progress = discard_progress
    ) -> Neighbourhoods:
        """Answer all queries for all ks; each k is at most the number of others in the space."""
        ...

    def within(self, queries: Queries, limits: NDArray[np.int64]) -> RadiusCounts:
        """Count the rows within each query's own limit, an integer distance."""
        ...

    def arrange(self, points: Points) -> NDArray[np.intp]:
        """Give an order in which near points follow each other, as far as it is worth the time."""
        ...

    def visit(
        self,
        queries: Queries,
        limits: NDArray[np.int64],
        rows: NDArray[np.int64],
        use: Callable[[NDArray[np.intp], Listing], None],
    ) -> None:
        """List the points within each query's own limit, and hand them on a part at a time.

        `rows` is the number of rows within each limit, the query's own included. `use` is called
        with queries and their listing, on any thread and in any order, with each query once.
        Queries that are no rows of the space should come in the order that `arrange` gives.
        """
        ...


def group_rows(
    points: Points, *labels: NDArray[np.integer] | NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Group rows that agree in every coordinate, every code and every further label.

    The result is that of `group_equal`: the first row of each group, and the group of each row.
    """
    columns = [*points.coordinates.T, *points.codes.T, *labels]
    # without a single column all rows are equal
    return group_equal(*(columns or [np.zeros(len(points), dtype=np.int8)]))


def find_neighbourhoods(
    search: Search,
    queries: Queries,
    ks: Sequence[int],
    *,
    marks: NDArray[np.int64] | None = None,
    progress: Progress = discard_progress,
) -> Neighbourhoods:
    """Answer queries that may repeat: each distinct one is searched once, for all k together.

    With `marks` at the points of the space, these are summed instead of negatives.
    """
    first, group = group_rows(queries.points, queries.own, *_told_apart(queries))
    reported = _in_complainants(progress, distinct=len(first), complainants=len(queries))
    if len(first) < len(queries):  # where nothing repeats, no copies are needed
        queries = queries.take(first)
    found = search.neighbourhoods(queries, ks, progress=reported)
    if marks is not None:
        within = (found.inside + found.rim).max(axis=1) + 1
        sums = _sum_marks(search, queries, found.radius, within, marks)
        found = replace(found, marks_inside=sums[0], marks_rim=sums[1])
    return found if len(first) == len(group) else found.take(group)


def find_within(
    search: Search,
    queries: Queries,
    limits: NDArray[np.int64],
    marks: NDArray[np.int64] | None = None,
) -> RadiusCounts:
    """Answer queries that may repeat: each distinct one is searched once."""
    first, group = group_rows(queries.points, queries.own, *_told_apart(queries), limits)
    queries, limits = queries.take(first), limits[first]
    found = search.within(queries, limits)
    if marks is not None:
        sums = _sum_marks(search, queries, limits[:, None], found.people + 1, marks)
        found = replace(found, marks=sums.sum(axis=0)[:, 0])
    return found.take(group)


def _told_apart(queries: Queries) -> tuple[NDArray[Any], ...]:
    return (queries.own_negative,) if queries.own_marks is None else tuple(queries.own_marks.T)


def _sum_marks(
    search: Search,
    queries: Queries,
    radius: NDArray[np.int64],
    within: NDArray[np.int64],
    marks: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Sum marks over the rows inside each radius (a column per k) and on it, without the own row.

    All are integers, so that neither the order of points nor that of threads matters.
    """
    sums = np.zeros((2, *radius.shape, marks.shape[1]), dtype=np.int64)

    def use(chosen: NDArray[np.intp], listing: Listing) -> None:
        start, query = listing.start, np.repeat(np.arange(len(chosen)), np.diff(listing.start))
        limits = radius[chosen]
        mine = np.empty(0, dtype=np.intp)
        if queries.own_marks is not None:
            mine = np.flatnonzero(listing.points == queries.own[chosen][query])
        for mark in range(marks.shape[1]):  # one at a time, as a listing may be long
            here = marks[listing.points, mark]
            if queries.own_marks is not None:
                here[mine] -= queries.own_marks[chosen[query[mine]], mark]
            for column, limit in enumerate(limits.T):
                apart = listing.distances - limit[query]
                for place, some in enumerate((apart < 0, apart == 0)):
                    running = np.concatenate([[0], np.cumsum(here * some)])
                    sums[place, chosen, column, mark] = running[start[1:]] - running[start[:-1]]

    search.visit(queries, radius.max(axis=1), within, use)
    return sums


def _in_complainants(progress: Progress, *, distinct: int, complainants: int) -> Progress:
    """Report progress on distinct queries as the proportional number of complainants."""
    done = 0

    def report(more: int) -> None:
        nonlocal done
        before = done * complainants // distinct
        done += more
        progress(done * complainants // distinct - before)

    return report
