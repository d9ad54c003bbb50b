"""The search protocol: what an index is asked, and the few integers that it answers with.

Let r be the distance of the k-th nearest row. Rows strictly inside r belong to the group. The m
rows at exactly r compete for the places that are left, and their order has no meaning, so under the
policy "fair" they share: each holds (k - inside)/m of a place. Under "all" every one of them
belongs, and the group is larger than k. Either way, sorting the file differently changes nothing
(docs/adr/0002-ties.md).

An index sees distinct points with multiplicities; it sees no rows, ids or policies on ties. All
indexes are exact, so the choice between them (`choose.py`) changes the time and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from mutandis.data.rows import ByRow, group_equal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.geometry.metric import Metric, Points
    from mutandis.mapped import Ints, Rows

Ties = Literal["fair", "all"]
Progress = Callable[[int], None]
"""Called again and again with the number of further complainants for whom a search is done."""


def discard_progress(more: int) -> None:
    """Do nothing with progress."""


# --- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhoods(ByRow):
    """For each query (row) and each k (column): the rows within the k-th nearest distance."""

    radius: Ints  # the distance of the k-th nearest row
    inside: Ints  # rows strictly nearer
    rim: Ints  # rows at exactly that distance
    marks_inside: Ints  # sums of the marks of both, in a third dimension
    marks_rim: Ints

    @classmethod
    def empty(cls, queries: int, ks: int, width: int = 1) -> Neighbourhoods:
        radius, inside, rim = (np.zeros((queries, ks), dtype=np.int64) for _ in range(3))
        marks, marks_rim = (np.zeros((queries, ks, width), dtype=np.int64) for _ in range(2))
        return cls(radius=radius, inside=inside, rim=rim, marks_inside=marks, marks_rim=marks_rim)

    def at(self, ks: slice) -> Neighbourhoods:
        """Return a copy for some of the ks."""
        return Neighbourhoods(
            radius=self.radius[:, ks].copy(),
            inside=self.inside[:, ks].copy(),
            rim=self.rim[:, ks].copy(),
            marks_inside=self.marks_inside[:, ks].copy(),
            marks_rim=self.marks_rim[:, ks].copy(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RadiusCounts(ByRow):
    """For each query: the other rows within its limit, what a caliper leaves of a group."""

    people: Ints
    marks: Ints  # the sums of their marks, by column
    farthest: Ints  # the distance of the farthest of them, -1 where there are none

    @classmethod
    def empty(cls, queries: int, width: int = 1) -> RadiusCounts:
        people, farthest = (np.full(queries, -1, dtype=np.int64) for _ in range(2))
        marks = np.full((queries, width), -1, dtype=np.int64)
        return cls(people=people, marks=marks, farthest=farthest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The points within the limits of some queries, one query after the other.

    Those of the i-th query have the places start[i] to start[i + 1], in any order; the
    complainant's own point is among them.
    """

    start: Rows
    points: NDArray[np.signedinteger]
    distances: Ints

    @property
    def query(self) -> Rows:
        """The query of each entry."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def part(self, queries: slice) -> Listing:
        """Return the listing of some queries."""
        start = self.start[queries.start : queries.stop + 1]
        points, distances = (each[start[0] : start[-1]] for each in (self.points, self.distances))
        return Listing(start=start - start[0], points=points, distances=distances)

    def repeat(self, times: int, points: int) -> Listing:
        """Repeat the listing, each time on so many further points."""
        if times == 1:
            return self
        again = np.arange(times)
        starts = np.add.outer(again * self.start[-1], self.start[:-1]).ravel()
        return Listing(
            start=np.append(starts, times * self.start[-1]),
            points=np.add.outer(again * points, self.points).ravel(),
            distances=np.tile(self.distances, times),
        )


Use = Callable[["Rows", Listing], None]
"""Takes queries and their listing, on any thread and in any order, each query once."""


# --- questions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A search space: distinct points, the rows at each, and the sums of their marks."""

    points: Points
    counts: Ints
    marks: Ints  # by column
    metric: Metric
    is_mask: bool = True  # marks are one column of zeros and ones, which a search counts

    @property
    def counted(self) -> Ints:
        """What a search counts with the rows at each point: the marks of a mask."""
        return self.marks[:, 0] if self.is_mask else np.zeros(len(self.counts), dtype=np.int64)

    def take(self, some: Rows | slice) -> Space:
        """Return some of the points, in this order."""
        return replace(
            self,
            points=self.points.take(some),
            counts=self.counts[some],
            marks=self.marks[some],
        )

    @classmethod
    def of(cls, points: Points, marks: NDArray[Any], metric: Metric) -> tuple[Space, Rows]:
        """Collapse rows, with their marks, into a space; return it with the point of each row."""
        marks = marks.reshape(len(points), -1)
        is_mask = marks.dtype == np.bool_ and marks.shape[1] == 1
        first, group = group_rows(points)
        counts: Ints = np.broadcast_to(np.int64(1), len(points))
        sums = marks.astype(np.int64)
        if len(first) < len(points):  # without duplicate rows no copies are needed
            points = points.take(first)
            counts = np.bincount(group, minlength=len(first)).astype(np.int64)
            rows, sums = sums, np.zeros((len(first), marks.shape[1]), dtype=np.int64)
            for column, values in zip(sums.T, rows.T, strict=True):
                np.add.at(column, group, values)
        space = cls(points=points, counts=counts, marks=sums, metric=metric, is_mask=is_mask)
        return space, group


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries(ByRow):
    """Centers to search around; complainants are not their own neighbours."""

    points: Points
    own: Rows  # the complainant's own point in the space, -1 outside of it
    own_marks: Ints  # and the marks of the complainant's own row, by column

    @classmethod
    def outside(cls, points: Points) -> Queries:
        """Make queries from centers that are not rows of the space."""
        size = len(points)
        nothing = np.broadcast_to(np.int64(0), (size, 1))
        return cls(points=points, own=np.broadcast_to(np.intp(-1), size), own_marks=nothing)

    @classmethod
    def inside(cls, points: Points, own: Rows, marks: NDArray[Any]) -> Queries:
        """Make queries from people of the space, with the marks of their own rows."""
        own_marks = marks.reshape(len(points), -1).astype(np.int64, copy=False)
        return cls(points=points, own=own, own_marks=own_marks)

    def __len__(self) -> int:
        return len(self.points)


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

    def within(self, queries: Queries, limits: Ints) -> RadiusCounts:
        """Count the rows within each query's own limit, an integer distance."""
        ...

    def arrange(self, points: Points) -> Rows:
        """Return an order in which near points follow each other, if that is worth the time."""
        ...

    def visit(self, queries: Queries, limits: Ints, rows: Ints, use: Use) -> None:
        """List the points within each query's own limit, and hand them on a part at a time.

        `rows` is the number of rows within each limit, the query's own included. Queries that are
        no rows of the space should come in the order that `arrange` gives.
        """
        ...


def group_rows(points: Points, *labels: NDArray[np.integer]) -> tuple[Rows, Rows]:
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
    marks: Ints | None = None,
    progress: Progress = discard_progress,
) -> Neighbourhoods:
    """Answer queries that may repeat: each distinct one is searched once, for all k together.

    `marks` at the points of the space are summed where these are no mask.
    """
    first, group = group_rows(queries.points, queries.own, *queries.own_marks.T)
    reported = _in_complainants(progress, distinct=len(first), complainants=len(queries))
    if len(first) < len(queries):  # where nothing repeats, no copies are needed
        queries = queries.take(first)
    found = search.neighbourhoods(_uncounted(queries, marks), ks, progress=reported)
    if marks is not None:
        rows = (found.inside + found.rim).max(axis=1) + 1
        inside, rim = _sum_marks(search, queries, found.radius, rows, marks)
        found = replace(found, marks_inside=inside, marks_rim=rim)
    return found if len(first) == len(group) else found.take(group)


def find_within(
    search: Search, queries: Queries, limits: Ints, marks: Ints | None = None
) -> RadiusCounts:
    """Count within limits around queries that may repeat: each distinct one is searched once."""
    first, group = group_rows(queries.points, queries.own, *queries.own_marks.T, limits)
    queries, limits = queries.take(first), limits[first]
    found = search.within(_uncounted(queries, marks), limits)
    if marks is not None:
        inside, rim = _sum_marks(search, queries, limits[:, None], found.people + 1, marks)
        found = replace(found, marks=(inside + rim)[:, 0])
    return found.take(group)


def _uncounted(queries: Queries, marks: Ints | None) -> Queries:
    """Return queries whose own marks a search does not count."""
    if marks is None:
        return queries
    return replace(queries, own_marks=np.broadcast_to(np.int64(0), (len(queries), 1)))


def _sum_marks(search: Search, queries: Queries, radius: Ints, rows: Ints, marks: Ints) -> Ints:
    """Sum marks over the rows inside each radius (a column per k) and on it, without the own row.

    All are integers, so that neither the order of points nor that of threads matters.
    """
    sums = np.zeros((2, *radius.shape, marks.shape[1]), dtype=np.int64)

    def use(chosen: Rows, listing: Listing) -> None:
        start, query = listing.start, listing.query
        limits = radius[chosen]
        mine = np.flatnonzero(listing.points == queries.own[chosen][query])
        for mark in range(marks.shape[1]):  # one at a time, as a listing may be long
            here = marks[listing.points, mark]
            if len(mine):
                here[mine] -= queries.own_marks[chosen[query[mine]], mark]
            for column, limit in enumerate(limits.T):
                apart = listing.distances - limit[query]
                for side, some in enumerate((apart < 0, apart == 0)):
                    running = np.concatenate([[0], np.cumsum(here * some)])
                    sums[side, chosen, column, mark] = running[start[1:]] - running[start[:-1]]

    search.visit(queries, radius.max(axis=1), rows, use)
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
