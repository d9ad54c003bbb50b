"""Samples of a large space: who stands at evenly spaced ranks, and who is near a few centers.

For some hundred centers no index is worth the time that it takes to build. Points are sorted along
one coordinate; of the slice that a distance can reach, the other coordinates are added up one after
the other, and whoever is too far already is left out. All of it is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.search.distance import FARTHEST, Points

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from mutandis.search.distance import Metric

__all__ = ["SortedPoints", "rows_at_ranks"]

# parts of the points that are measured before all of them: each bounds the radius of the next
_STEPS = (64, 8, 1)
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
    """Points where they are measured, sorted along the coordinate on which they lie far apart."""

    points: Points  # each column by itself, one value after the other
    order: NDArray[np.intp]  # which point stands at each place
    along: NDArray[np.int64]  # the coordinate by which they are sorted
    axis: int
    metric: Metric

    @classmethod
    def of(cls, points: Points, metric: Metric) -> SortedPoints:
        """Sort points that may have to be moved to where they are measured."""
        points = metric.place(points)
        axis, along = -1, np.zeros(len(points), dtype=np.int64)
        if points.coordinates.shape[1]:
            some = points.coordinates[:: 1 + len(points) // _LOOKED_AT]
            low, high = np.percentile(some, [25, 75], axis=0)
            axis = int(np.argmax(high - low))
            along = points.coordinates[:, axis]
        order = np.argsort(along)
        coordinates, codes = (
            np.array([column[order] for column in columns.T], dtype=columns.dtype)
            .reshape(columns.shape[1], len(points))
            .T
            for columns in (points.coordinates, points.codes)
        )
        return cls(
            points=Points(coordinates=coordinates, codes=codes),
            order=order,
            along=along[order] if axis < 0 else coordinates[:, axis],
            axis=axis,
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
        start, stop = self._slice(center, limit)
        start = -(-start // step) * step
        places, chosen = np.arange(start, stop, step), np.s_[start:stop:step]
        total = np.zeros(len(places), dtype=np.int64)
        for column, value, cost in self._columns(center):
            here = column[chosen]
            total += self.metric.terms(here - value) if cost is None else (here != value) * cost
            near = np.flatnonzero(total <= limit)
            chosen = places = places[near]
            total = total[near]
        return places, total

    def _columns(self, center: Points) -> Iterator[tuple[NDArray[Any], Any, np.int64 | None]]:
        """Give the columns, a center's value in each, and of names what another one costs.

        The sorted one comes first, and names before numbers: they leave out more.
        """
        center = self.metric.as_center(center)
        yield self.along, self._here(center), None
        for axis, cost in enumerate(self.metric.mismatch):
            yield self.points.codes[:, axis], center.codes[0, axis], cost
        for axis, number in enumerate(center.coordinates[0]):
            if axis != self.axis:
                yield self.points.coordinates[:, axis], number, None

    def _here(self, center: Points) -> int:
        """Give the coordinate of a center by which points are sorted; 0 where they have none."""
        return int(center.coordinates[0, self.axis]) if self.axis >= 0 else 0

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

    def _slice(self, center: Points, limit: int) -> tuple[int, int]:
        """Find the places that a distance can reach along the sorted coordinate."""
        here, reach = self._here(center), isqrt(max(limit, 0)) if self.metric.squared else limit
        low, high = max(here - reach, int(self.along[0])), min(here + reach, int(self.along[-1]))
        start, stop = (
            np.searchsorted(self.along, low, "left"),
            np.searchsorted(self.along, high, "right"),
        )
        return int(start), int(stop)
