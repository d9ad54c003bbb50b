"""Points that lie in files: sorted in space, and cut into cells with a box around each.

One task is about neighbours in space, and asks about few of the points. Boxes tell which: no point
that a query reaches lies in another cell. The bound of a box is that of each distance, so that not
even a point that ties is missed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mutandis.geometry.index import Listing, Queries, Search
    from mutandis.geometry.metric import Metric, Points
    from mutandis.mapped import Bools, Floats, Ints, Rows


CELL = 1024
"""Points in a cell."""

# points whose order among each other does not matter, and those that share boxes
_NEAR = 64
_SIZES = (2048, _NEAR)
# what is computed in floats may be off by less than this part
_SLACK = 1 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Boxes around points that follow each other, from each start to the next."""

    start: Rows
    # of each coordinate, and then of each code: the smallest and the largest
    low: Ints
    high: Ints

    @classmethod
    def around(cls, points: Points, start: Rows) -> Cells:
        """Measure the boxes of points that are where distances are measured."""
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
        return cls(start=start, low=low, high=high)

    def __len__(self) -> int:
        return len(self.low)

    def points_near(self, points: Points, reach: Floats, metric: Metric) -> Rows:
        """Return the numbers of the points in all cells that some points reach."""
        near = np.zeros(len(self), dtype=np.bool_)
        if metric.weighing is not None:  # no box says how near its points are
            near[:] = True
        elif len(points):
            placed, metric = metric.place(points), metric.in_place
            order, _ = sort_in_space(placed, metric, size=_NEAR)
            some = np.arange(len(self))
            self._mark(near, placed.take(order), reach[order], some, metric=metric)
        return np.flatnonzero(np.repeat(near, np.diff(self.start)))

    def _mark(
        self,
        near: Bools,
        points: Points,
        reach: Floats,
        some: Rows,
        *,
        metric: Metric,
        sizes: Sequence[int] = _SIZES,
    ) -> None:
        """Mark those of some cells that points reach: boxes of so many points first, then each."""
        if not sizes:
            alone = Cells.around(points, np.arange(len(points) + 1))
            near[self._within(some, alone, reach, metric)] = True
            return
        for first in range(0, len(points), sizes[0]):
            part = slice(first, first + sizes[0])
            here, far = points.take(part), reach[part]
            box = Cells.around(here, np.array([0, len(here)]))
            some = some[~near[some]]
            reached = self._within(some, box, far.max(keepdims=True), metric)
            if len(reached):
                self._mark(near, here, far, reached, metric=metric, sizes=sizes[1:])

    def _within(self, some: Rows, other: Cells, reach: Floats, metric: Metric) -> Rows:
        """Choose those of some boxes that lie within the reach of one of the other boxes."""
        gap = np.maximum(self.low[some] - other.high[:, None], other.low[:, None] - self.high[some])
        np.maximum(gap, 0, out=gap)
        numbers = self.low.shape[1] - len(metric.mismatch)
        apart = metric.terms(gap[..., :numbers].astype(np.float64)).sum(axis=-1)
        apart += (gap[..., numbers:] > 0) @ metric.mismatch.astype(np.float64)
        return np.asarray(some[(apart <= reach[:, None] * _SLACK).any(axis=0)])


def sort_in_space(points: Points, metric: Metric, *, size: int = CELL) -> tuple[Rows, Rows]:
    """Sort points so that near ones follow each other.

    Return their order, and where each cell of at most `size` points starts. Points are those at
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


@dataclass(frozen=True, slots=True)
class NearbySearch:
    """Lists some points of a search: what it is asked, and what it answers, are places among them.

    No query may reach any others.
    """

    search: Search
    index: Rows

    def visit(
        self, queries: Queries, limits: Ints, rows: Ints, use: Callable[[Rows, Listing], None]
    ) -> None:
        """List the points within each query's own limit, as every search does."""

        def use_here(chosen: Rows, listing: Listing) -> None:
            use(chosen, replace(listing, points=np.searchsorted(self.index, listing.points)))

        own = np.where(queries.own >= 0, self.index[queries.own], -1)
        self.search.visit(replace(queries, own=own), limits, rows, use_here)
