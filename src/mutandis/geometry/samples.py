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

from mutandis.data.equal_rows import sort_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.geometry.metric import Metric, Points

__all__ = ["SortedPoints", "rows_at_ranks"]

# points beside one, in the order of cells, among which a radius is bounded before it is measured
_BESIDE = 4096
# combinations of names that are looked at one by one
_MOST_CELLS, _MOST_LEVELS = 1024, 1 << 20
# further coordinates by which points are parted, and into how many parts
_BINNED, _BINS = 2, 24
# bits of the steps at which such parts may begin
_STEPS = 12
# points that tell along which coordinate others lie far apart
_LOOKED_AT = 4096


def rows_at_ranks(
    keys: Sequence[NDArray[np.generic]],
    ranks: NDArray[np.intp],
    among: NDArray[np.intp] | None = None,
    *,
    further: Callable[[NDArray[np.intp]], Sequence[NDArray[np.generic]]] | None = None,
) -> NDArray[np.intp]:
    """Give the rows that would stand at some ranks if all were sorted, by the first key first.

    Rows that are equal in all keys stay as they are: these are the rows of
    ``np.lexsort(keys[::-1])[ranks]``. Later keys are looked at where earlier ones are equal, and
    `further` gives more keys of rows that are equal in these.
    """
    if not keys and further is not None and among is not None:
        return among[rows_at_ranks(further(among), ranks)]
    if not keys:
        return ranks if among is None else among[ranks]
    values = keys[0] if among is None else keys[0][among]
    order = sort_order(values)
    ordered = values[order]
    first, last = (np.searchsorted(ordered, ordered[ranks], side) for side in ("left", "right"))
    found = order[ranks] if among is None else among[order[ranks]]
    for start, stop in set(zip(first.tolist(), last.tolist(), strict=True)):
        if stop - start > 1:
            equal = order[start:stop]
            mine = np.flatnonzero(first == start)
            equal = equal if among is None else among[equal]
            found[mine] = rows_at_ranks(keys[1:], ranks[mine] - start, equal, further=further)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedPoints:
    """Points where they are measured, in cells, and in each cell sorted by one coordinate.

    The points of a cell have the same names (the first ones, as many as have few combinations) and,
    where there is room for that, lie between the same values of further coordinates.
    """

    points: Points
    order: NDArray[np.intp]  # which point stands at each place
    codes: NDArray[np.int32]  # the names of each cell of points
    bins: Mapping[
        int, tuple[NDArray[np.int64], NDArray[np.int64]]
    ]  # by coordinate: each one's span
    cell: NDArray[np.intp]  # the cell of each place
    axis: int  # the coordinate on which points lie far apart, -1 where they have none
    low: int  # the least of this coordinate
    high: int  # the largest of it
    shift: int  # by so many bits it is too fine for a key
    key: NDArray[np.int64]  # of each place, that rises: its cell, and its coordinate from the least
    metric: Metric

    @classmethod
    def of(cls, points: Points, metric: Metric) -> SortedPoints:
        """Sort points that may have to be moved to where they are measured."""
        points = metric.place(points)
        some = points.coordinates[:: 1 + len(points) // _LOOKED_AT]
        low, high = np.percentile(some, [25, 75], axis=0)
        axes = np.argsort(low - high).tolist()  # the one on which points lie far apart first
        edges, binned = {}, []
        for each in axes[1 : 1 + _BINNED]:
            edges[each], bins_of = _part(points.coordinates[:, each], some[:, each])
            binned.append(bins_of)
        known, cell = _cells([*points.codes.T, *binned], len(points))
        codes, places = known[:, : points.codes.shape[1]], known[:, points.codes.shape[1] :].T
        bins = {}
        for (each, within), place in zip(edges.items(), places, strict=False):
            column = points.coordinates[:, each]
            ends = np.concatenate([[column.min()], within, [column.max()]])
            bins[each] = ends[place], ends[place + 1]
        axis = axes[0] if axes else -1
        along = points.coordinates[:, axis] if axes else np.zeros(len(points), dtype=np.int64)
        least, most = int(along.min()), int(along.max())
        shift = max(0, (most - least).bit_length() + len(known).bit_length() - 62)
        key = cell * (((most - least) >> shift) + 1) + ((along - least) >> shift)
        order = sort_order(key)
        return cls(
            points=points.take(order),
            order=order,
            codes=codes,
            bins=bins,
            cell=cell[order],
            axis=axis,
            low=least,
            high=most,
            shift=shift,
            key=key[order],
            metric=metric.in_place,
        )

    def within(self, center: Points, limit: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Give the places of all points within a distance of one center, and their distances.

        The center is where it is measured.
        """
        if self.metric.weighing is not None:
            everyone = self.metric.from_center(center, self.points)
            near = np.flatnonzero(everyone <= limit)
            return near, everyone[near]
        center = self.metric.as_center(center)
        known = self.codes.shape[1]
        costs = ((self.codes != center.codes[0, :known]) * self.metric.mismatch[:known]).sum(axis=1)
        left = limit - costs
        for axis, (low, high) in self.bins.items():
            here = center.coordinates[0, axis]
            left = left - self.metric.terms(np.maximum(np.maximum(low - here, here - high), 0))
        places = self._reached(center, left)
        total = costs[self.cell[places]]
        for column, value, cost in self._columns(center):
            here = column[places]
            total += self.metric.terms(here - value) if cost is None else (here != value) * cost
            near = np.flatnonzero(total <= limit)
            places, total = places[near], total[near]
        return places, total

    def radius(self, place: int, k: int) -> int:
        """Give the distance of the k-th nearest other of the point at one place."""
        center, half = self.points.take(np.array([place])), max(_BESIDE, 2 * k)
        beside = slice(max(place - half, 0), place + half)
        apart = self.metric.from_center(center, self.points.take(beside))
        some = np.delete(apart, place - beside.start)
        places, distances = self.within(center, _nth(some, k))
        return _nth(distances[places != place], k)

    def _reached(self, center: Points, left: NDArray[np.int64]) -> NDArray[np.intp]:
        """Give the places in cells that what is left of a distance can reach, by the coordinate."""
        cells = np.flatnonzero(left >= 0)
        reach = np.sqrt(left[cells]).astype(np.int64) + 1 if self.metric.squared else left[cells]
        here = 0 if self.axis < 0 else int(center.coordinates[0, self.axis])
        # no farther than the span of all points, so that nothing overflows
        reach = np.minimum(reach, max(here - self.low, self.high - here, 0))
        base = cells * (((self.high - self.low) >> self.shift) + 1)
        first, last = (
            base + ((np.clip(each, self.low, self.high) - self.low) >> self.shift)
            for each in (here - reach, here + reach)
        )
        start, stop = np.searchsorted(self.key, first), np.searchsorted(self.key, last, "right")
        size = np.maximum(stop - start, 0)
        nth = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        return np.asarray(np.repeat(start, size) + nth, dtype=np.intp)

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


def _nth(distances: NDArray[np.int64], k: int) -> int:
    """Give the k-th smallest of some distances."""
    return int(np.partition(distances, k - 1)[k - 1])


def _part(
    values: NDArray[np.int64], some: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Part values into bins that about equally many of `some` lie in.

    Give the values at which bins begin, but for the first, and the bin of each value. Bins begin
    at steps of the range, so that one look at a table finds the bin.
    """
    low, high = int(some.min()), int(some.max())
    shift = max(0, (high - low).bit_length() - _STEPS)
    parts = np.quantile(some, np.arange(1, _BINS) / _BINS, method="lower").astype(np.int64)
    begins = np.unique((parts - low) >> shift)
    begins = begins[begins > 0]
    steps = np.arange(((high - low) >> shift) + 1)
    bins = np.searchsorted(begins, steps, "right").astype(np.uint8)
    return low + (begins << shift), bins[np.clip((values - low) >> shift, 0, len(bins) - 1)]


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
