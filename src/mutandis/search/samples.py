"""Samples of a large space: who stands at evenly spaced ranks, and who is near a few centers.

For some hundred centers no index is worth the time that it takes to build. Points with the same
names are sorted along one coordinate; of the slices that a distance can reach, the other
coordinates are added up one after the other, and whoever is too far already is left out. All of it
is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.search.distance import FARTHEST, Points

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.search.distance import Metric

__all__ = ["SortedPoints", "rows_at_ranks"]

# parts of the points that are measured before all of them: each bounds the radius of the next
_STEPS = (64, 8, 1)
# combinations of names that are looked at one by one
_MOST_CELLS, _MOST_LEVELS = 1024, 1 << 20
# further coordinates by which points are parted, and into how many parts
_BINNED, _BINS = 2, 24
# points that tell along which coordinate others lie far apart
_LOOKED_AT = 4096


def rows_at_ranks(
    keys: Sequence[NDArray[np.generic]],
    ranks: NDArray[np.intp],
    among: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Give the rows that would stand at some ranks if all were sorted, by the first key first.

    Rows that are equal in all keys stay as they are: these are the rows of
    ``np.lexsort(keys[::-1])[ranks]``. Later keys are looked at where earlier ones are equal.
    """
    if not keys:
        return ranks if among is None else among[ranks]
    values = keys[0] if among is None else keys[0][among]
    order = np.argsort(values)
    ordered = values[order]
    first, last = (np.searchsorted(ordered, ordered[ranks], side) for side in ("left", "right"))
    found = order[ranks] if among is None else among[order[ranks]]
    for start, stop in set(zip(first.tolist(), last.tolist(), strict=True)):
        if stop - start > 1:
            equal = np.sort(order[start:stop])
            mine = np.flatnonzero(first == start)
            equal = equal if among is None else among[equal]
            found[mine] = rows_at_ranks(keys[1:], ranks[mine] - start, equal)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedPoints:
    """Points where they are measured, in cells, and in each cell sorted by one coordinate.

    The points of a cell have the same names (the first ones, as many as have few combinations) and,
    where there is room for that, lie between the same values of further coordinates.
    """

    points: Points  # each column by itself, one value after the other
    order: NDArray[np.intp]  # which point stands at each place
    codes: NDArray[np.int32]  # the names of each cell of points
    bins: Mapping[
        int, tuple[NDArray[np.int64], NDArray[np.int64]]
    ]  # by coordinate: each one's span
    cell: NDArray[np.intp]  # the cell of each place
    axis: int  # the coordinate on which points lie far apart, -1 where they have none
    along: NDArray[np.int64]  # this coordinate of all points, sorted
    key: NDArray[np.int64]  # of each place, that rises: its cell, and the rank of its coordinate
    metric: Metric

    @classmethod
    def of(cls, points: Points, metric: Metric) -> SortedPoints:
        """Sort points that may have to be moved to where they are measured."""
        points = metric.place(points)
        some = points.coordinates[:: 1 + len(points) // _LOOKED_AT]
        low, high = np.percentile(some, [25, 75], axis=0)
        axes = np.argsort(low - high).tolist()  # the one on which points lie far apart first
        edges = {each: _edges(some[:, each]) for each in axes[1 : 1 + _BINNED]}
        binned = [
            np.searchsorted(within, points.coordinates[:, each], "right")
            for each, within in edges.items()
        ]
        known, cell = _cells([*points.codes.T, *binned], len(points))
        codes, places = known[:, : points.codes.shape[1]], known[:, points.codes.shape[1] :].T
        bins = {}
        for (each, within), place in zip(edges.items(), places, strict=False):
            column = points.coordinates[:, each]
            ends = np.concatenate([[column.min()], within, [column.max()]])
            bins[each] = ends[place], ends[place + 1]
        axis = axes[0] if axes else -1
        along = points.coordinates[:, axis] if axes else np.zeros(len(points), dtype=np.int64)
        order = np.argsort(along)
        key = cell[order] * len(points) + np.arange(len(points))
        again = np.argsort(key)
        along, order, key = along[order], order[again], key[again]
        return cls(
            points=Points(
                coordinates=np.ascontiguousarray(points.coordinates.T[:, order]).T,
                codes=np.ascontiguousarray(points.codes.T[:, order]).T,
            ),
            order=order,
            codes=codes,
            bins=bins,
            cell=cell[order],
            axis=axis,
            along=along,
            key=key,
            metric=metric.in_place,
        )

    def within(
        self, center: Points, limit: int, *, step: int = 1
    ) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Give the places of all points within a distance of one center, and their distances.

        The center is where it is measured. With `step`, one of so many points is looked at.
        """
        if self.metric.weighing is not None:
            everyone = self.metric.from_center(center, self.points)[::step]
            near = np.flatnonzero(everyone <= limit)
            return near * step, everyone[near]
        center = self.metric.as_center(center)
        known = self.codes.shape[1]
        costs = ((self.codes != center.codes[0, :known]) * self.metric.mismatch[:known]).sum(axis=1)
        left = limit - costs
        for axis, (low, high) in self.bins.items():
            here = center.coordinates[0, axis]
            left = left - self.metric.terms(np.maximum(np.maximum(low - here, here - high), 0))
        places = self._reached(center, left, step)
        total = costs[self.cell[places]]
        for column, value, cost in self._columns(center):
            here = column[places]
            total += self.metric.terms(here - value) if cost is None else (here != value) * cost
            near = np.flatnonzero(total <= limit)
            places, total = places[near], total[near]
        return places, total

    def radius(self, place: int, k: int) -> int:
        """Give the distance of the k-th nearest other of the point at one place."""
        center, limit = self.points.take(np.array([place])), FARTHEST
        for step in _STEPS:
            if step > 1 and len(self.order) // step <= k:
                continue  # too few to have k others among them
            places, distances = self.within(center, limit, step=step)
            others = distances[places != place]
            limit = int(np.partition(others, k - 1)[k - 1])
        return limit

    def _reached(self, center: Points, left: NDArray[np.int64], step: int) -> NDArray[np.intp]:
        """Give the places in cells that what is left of a distance can reach, by the coordinate."""
        cells = np.flatnonzero(left >= 0)
        reach = np.sqrt(left[cells]).astype(np.int64) + 1 if self.metric.squared else left[cells]
        here = 0 if self.axis < 0 else int(center.coordinates[0, self.axis])
        # no farther than the span of all points, so that nothing overflows
        low, high = int(self.along[0]), int(self.along[-1])
        reach = np.minimum(reach, max(here - low, high - here, 0))
        ranks = (
            np.searchsorted(self.along, here - reach, "left"),
            np.searchsorted(self.along, here + reach, "right"),
        )
        start, stop = (np.searchsorted(self.key, cells * len(self.key) + each) for each in ranks)
        start, stop = -(-start // step), -(-stop // step)  # in steps
        size = np.maximum(stop - start, 0)
        nth = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        return np.asarray((np.repeat(start, size) + nth) * step, dtype=np.intp)

    def _columns(self, center: Points) -> Iterator[tuple[NDArray[Any], Any, np.int64 | None]]:
        """Give the columns that cells do not have, a center's value in each, and a name's cost.

        The coordinate by which points are sorted comes first: it has left some out already.
        """
        numbers = sorted(range(center.coordinates.shape[1]), key=lambda axis: axis != self.axis)
        for axis in range(self.codes.shape[1], center.codes.shape[1]):
            cost = self.metric.mismatch[axis]
            yield self.points.codes[:, axis], center.codes[0, axis], cost
        for axis in numbers:
            yield self.points.coordinates[:, axis], center.coordinates[0, axis], None


def _edges(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give values between which about equally many lie."""
    parts = np.arange(1, _BINS) / _BINS
    return np.unique(np.quantile(values, parts, method="lower").astype(np.int64))


def _cells(
    columns: Sequence[NDArray[Any]], size: int
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Part points by the first of some columns of codes, as many as have few combinations.

    Give the codes of each cell, and the cell of each point.
    """
    names, cell = np.zeros((1, 0), dtype=np.int32), np.zeros(size, dtype=np.intp)
    for column in columns:
        levels = int(column.max(initial=0)) + 1
        if len(names) * levels > _MOST_LEVELS:
            break
        finer = cell * levels + column
        occurring = np.flatnonzero(np.bincount(finer, minlength=1))
        if len(occurring) > _MOST_CELLS:
            break
        number = np.zeros(int(occurring[-1]) + 1, dtype=np.intp)
        number[occurring] = np.arange(len(occurring))
        before, name = np.divmod(occurring, levels)
        names, cell = np.column_stack([names[before], name]).astype(np.int32), number[finer]
    return names, cell
