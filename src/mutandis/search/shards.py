"""Points beyond one memory: sorted in space, cut into cells, of which a search loads what it needs.

Sorted points lie in files, the cells one after the other, each with a box around it. A search of a
part of the queries loads the cells that can hold their neighbours, and nothing else. How far these
reach is guessed from a sample of the points, and checked after: everything within the reach of a
query is loaded, so an answer whose radius is no larger than that has missed no row, not even one
that ties. Where a radius is larger, it is a bound for the true one, and cells up to it are
loaded before the query is asked again. The answers are therefore those of a search of all points,
integer by integer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mutandis.search.choose import choose_search
from mutandis.search.engine import Listing, Queries, discard_progress
from mutandis.search.ties import Neighbourhoods, RadiusCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from mutandis.search.distance import Metric, Points
    from mutandis.search.engine import Progress, Search, Space

__all__ = ["Cells", "NearbySearch", "ShardedSearch", "sample_space", "sort_in_space"]

CELL = 4096
"""Points in a cell."""

# points whose order among each other does not matter, and those that share boxes
_NEAR = 64
_SIZES = (2048, _NEAR)
# one point in so many is in the sample that guesses radii, or one in more: it has at most so many
_SAMPLED, _LARGEST_SAMPLE = 32, 1 << 20
# a guess is this much larger than what the sample says, so that it is seldom too small
_MARGIN, _MORE = 1.5, 3
# what is computed in floats may be off by less than this part
_SLACK = 1 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Boxes around points that follow each other, from each start to the next."""

    start: NDArray[np.intp]
    # of each coordinate, and then of each code: the smallest and the largest
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    people: NDArray[np.int64]

    @classmethod
    def around(
        cls, points: Points, start: NDArray[np.intp], counts: NDArray[np.int64] | None = None
    ) -> Cells:
        """Measure the boxes of points that are where distances are measured.

        `counts` says how many people stand on each of them: one, if nothing is said.
        """
        low, high = (
            np.concatenate(
                [
                    least.reduceat(each, start[:-1], axis=0).astype(np.int64)
                    for each in (points.coordinates, points.codes)
                ],
                axis=1,
            )
            for least in (np.minimum, np.maximum)
        )
        people = np.diff(start) if counts is None else np.add.reduceat(counts, start[:-1])
        return cls(start=start, low=low, high=high, people=people)

    def __len__(self) -> int:
        return len(self.low)

    def within(
        self, some: NDArray[np.intp], other: Cells, reach: NDArray[np.float64], metric: Metric
    ) -> NDArray[np.intp]:
        """Choose those of some boxes that lie within the reach of one of the other boxes."""
        gap = np.maximum(self.low[some] - other.high[:, None], other.low[:, None] - self.high[some])
        np.maximum(gap, 0, out=gap)
        numbers = self.low.shape[1] - len(metric.mismatch)
        apart = metric.terms(gap[..., :numbers].astype(np.float64)).sum(axis=-1)
        apart += (gap[..., numbers:] > 0) @ metric.mismatch.astype(np.float64)
        return np.asarray(some[(apart <= reach[:, None] * _SLACK).any(axis=0)])


def sort_in_space(
    points: Points, metric: Metric, *, size: int = CELL
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Sort points so that near ones follow each other.

    Give their order, and where each cell of at most `size` points starts. Points are those at
    which distances are measured. A cell of more points is cut at the middle of its longest side.
    """
    columns = [*points.coordinates.T, *points.codes.T]
    costs = metric.lengths(metric.mismatch)
    if metric.weighing is not None:
        costs = np.ones(points.codes.shape[1])
    prices = [*np.ones(points.coordinates.shape[1]), *costs]
    is_name = np.arange(len(columns)) >= points.coordinates.shape[1]
    order = np.arange(len(points), dtype=np.intp)
    waiting, start = [(0, len(order))], [len(order)]
    while waiting:
        first, last = waiting.pop()
        mine = order[first:last]
        side = -1
        if len(mine) > size:
            spans = np.array([float(np.ptp(column[mine])) for column in columns])
            lengths = np.where(is_name, spans > 0, spans) * prices
            side = int(np.argmax(lengths)) if lengths.max(initial=0.0) > 0 else -1
        if side < 0:
            start.append(first)
            continue
        middle = len(mine) // 2
        order[first:last] = mine[np.argpartition(columns[side][mine], middle)]
        waiting += [(first, first + middle), (first + middle, last)]
    return order, np.sort(np.array(start, dtype=np.intp))


def sample_space(space: Space) -> Space:
    """Take some of the points of a space that were sorted, evenly."""
    size = len(space.points)
    step = min(max(_SAMPLED, -(-size // _LARGEST_SAMPLE)), max(1, size // 64))
    return space.take(slice(None, None, step))


class ShardedSearch:
    """Search points that were sorted in space, loading the cells that are needed.

    `cells` are the boxes of the space's points, which may be mapped from files, and `sample` is
    what `sample_space` gives; up to `rows` points are simply loaded. A search of the `whole` space
    that lies in files itself answers without any of this.
    """

    def __init__(
        self,
        space: Space,
        cells: Cells,
        sample: Space | None,
        *,
        rows: int,
        threads: int = -1,
        whole: Search | None = None,
    ) -> None:
        self._space, self._cells, self._threads = space, cells, threads
        self._loaded = np.full(len(cells), whole is not None or len(space.points) <= rows)
        self._search = whole
        self._sample = sample
        self._sample_search: Search | None = None
        self._index: NDArray[np.intp] | None = None  # the points that are loaded; None: all

    @property
    def name(self) -> str:
        """The backend that answered last."""
        return "" if self._search is None else self._search.name

    def neighbourhoods(
        self, queries: Queries, ks: Sequence[int], *, progress: Progress = discard_progress
    ) -> Neighbourhoods:
        if self._loaded.all():
            answers = self._ready().neighbourhoods(self._moved(queries), ks)
            progress(len(queries))
            return answers
        found = Neighbourhoods.empty(len(queries), len(ks))
        reach = self._guess(queries, max(ks))
        waiting = np.arange(len(queries))
        while len(waiting):
            asked = queries.take(waiting)
            self._load(asked.points, reach[waiting])
            while self._cells.people[self._loaded].sum() <= max(ks):
                reach[waiting] = 2 * reach[waiting] + 1
                self._load(asked.points, reach[waiting])
            found.put(waiting, self._ready().neighbourhoods(self._moved(asked), ks))
            farthest = found.radius.max(axis=1).astype(np.float64)
            again = (farthest > reach)[waiting] & ~self._loaded.all()
            reach, waiting = np.maximum(reach, farthest), waiting[again]
        progress(len(queries))
        return found

    def within(self, queries: Queries, limits: NDArray[np.int64]) -> RadiusCounts:
        self._load(queries.points, limits.astype(np.float64))
        return self._ready().within(self._moved(queries), limits)

    def arrange(self, points: Points) -> NDArray[np.intp]:
        if self._search is None:
            metric = self._space.metric
            return sort_in_space(metric.place(points), metric.in_place, size=_NEAR)[0]
        return self._search.arrange(points)

    def visit(
        self,
        queries: Queries,
        limits: NDArray[np.int64],
        rows: NDArray[np.int64],
        use: Callable[[NDArray[np.intp], Listing], None],
    ) -> None:
        self._load(queries.points, limits.astype(np.float64))
        search, index = self._ready(), self._index

        def use_here(chosen: NDArray[np.intp], listing: Listing) -> None:
            use(chosen, replace(listing, points=index[listing.points]))  # type: ignore[index]

        search.visit(self._moved(queries), limits, rows, use if index is None else use_here)

    def near(
        self, queries: Queries, limits: NDArray[np.int64]
    ) -> tuple[NDArray[np.intp], NearbySearch]:
        """Give the numbers of the points that queries can reach, and a search of these."""
        reached = np.zeros(len(self._cells), dtype=np.bool_)
        self._mark(reached, queries.points, limits.astype(np.float64))
        index = np.flatnonzero(np.repeat(reached, np.diff(self._cells.start)))
        return index, NearbySearch(self, index)

    def _guess(self, queries: Queries, k: int) -> NDArray[np.float64]:
        """Guess how far the k nearest of each query reach, from those in a sample of the points."""
        if self._sample is None:
            raise RuntimeError("there is no sample to guess from: please report this")
        if self._sample_search is None:
            sample = replace(self._sample, marks=None)  # nothing is summed
            self._sample_search = choose_search(sample, threads=self._threads)
        sampled = int(self._sample.counts.sum())
        expected = k * sampled / int(self._cells.people.sum())
        rank = int(min(np.ceil(_MARGIN * expected) + _MORE, sampled))
        around = Queries.outside(queries.points)
        return self._sample_search.neighbourhoods(around, (rank,)).radius[:, 0].astype(np.float64)

    def _load(self, points: Points, reach: NDArray[np.float64]) -> None:
        """Load the cells within the reach of points, and no others.

        What a search has found is within cells that it has loaded. So a cell counts as needed only
        if a point itself reaches it, and not the box around many: nothing is loaded anew when the
        same points are asked about again.
        """
        before = np.count_nonzero(self._loaded)
        self._mark(self._loaded, points, reach)
        if np.count_nonzero(self._loaded) > before:
            self._search = None

    def _mark(self, marked: NDArray[np.bool_], points: Points, reach: NDArray[np.float64]) -> None:
        """Mark the cells that points reach."""
        if marked.all() or not len(points):
            return
        metric = self._space.metric
        if metric.weighing is not None:  # no box says how near its points are
            marked[:] = True
            return
        placed = metric.place(points)
        order, _ = sort_in_space(placed, metric.in_place, size=_NEAR)
        waiting = np.flatnonzero(~marked)
        self._mark_some(marked, placed.take(order), reach[order], waiting, _SIZES)

    def _mark_some(
        self,
        marked: NDArray[np.bool_],
        points: Points,
        reach: NDArray[np.float64],
        some: NDArray[np.intp],
        sizes: Sequence[int],
    ) -> None:
        """Mark those of some cells that points reach: boxes of so many points first, then each."""
        cells, metric = self._cells, self._space.metric.in_place
        if not sizes:
            alone = Cells.around(points, np.arange(len(points) + 1))
            marked[cells.within(some, alone, reach, metric)] = True
            return
        for first in range(0, len(points), sizes[0]):
            part = slice(first, first + sizes[0])
            here, far = points.take(part), reach[part]
            box = Cells.around(here, np.array([0, len(here)]))
            some = some[~marked[some]]
            near = cells.within(some, box, far.max(keepdims=True), metric)
            if len(near):
                self._mark_some(marked, here, far, near, sizes[1:])

    def _ready(self) -> Search:
        """Give the search of what is loaded."""
        if self._search is None:
            space, start = self._space, self._cells.start
            size = np.diff(start)
            index = np.flatnonzero(np.repeat(self._loaded, size))
            self._search = choose_search(space.take(index), threads=self._threads)
            self._index = None if len(index) == len(space.points) else index
        return self._search

    def _moved(self, queries: Queries) -> Queries:
        """Give queries whose own points are places among those that are loaded."""
        own = queries.own
        if self._index is None or not (own >= 0).any():
            return queries
        place = np.searchsorted(self._index, own)
        return replace(queries, own=np.where(own >= 0, place, -1))


@dataclass(frozen=True, slots=True)
class NearbySearch:
    """Lists some points of a search: what it is asked, and what it answers, are places among them.

    No query may reach any others.
    """

    search: ShardedSearch
    index: NDArray[np.intp]

    def visit(
        self,
        queries: Queries,
        limits: NDArray[np.int64],
        rows: NDArray[np.int64],
        use: Callable[[NDArray[np.intp], Listing], None],
    ) -> None:
        """List the points within each query's own limit, as every search does."""

        def use_here(chosen: NDArray[np.intp], listing: Listing) -> None:
            use(chosen, replace(listing, points=np.searchsorted(self.index, listing.points)))

        own = np.where(queries.own >= 0, self.index[queries.own], -1)
        self.search.visit(replace(queries, own=own), limits, rows, use_here)
