"""The distance between two people, as an exact integer.

    d(x, x') = sum_i w_i d_i(x_i, x'_i) / sum_i w_i                     (paper, eq. 7)

This is Gower's distance (1 - his similarity of 1971, with weights): d_i = |difference| / range for
numbers, |rank difference| / (levels - 1) for ordinal attributes, and for nominal ones 0 if equal
and 1 if not (the paper prints the two exchanged: docs/adr/0003-errata.md). Every term is held as a
whole number of a common small unit, so that sums are exact whatever their order, and two people are
equally far away exactly if their integers are.

Other distances (`distances.py`) first move points to places of their own, and some are the root of
a sum of squares. There the integer is that sum: it ranks people as its root does, which is taken
only where a distance is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mutandis.data.rows import ByRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from mutandis.mapped import Floats, Ints, Rows

_FARTHEST = 2**63 - 1  # the largest distance in int64
_SOME = 4096  # points that bound how far the nearest are


@dataclass(frozen=True, slots=True, kw_only=True)
class Points(ByRow):
    """Rows in the space of the distance."""

    coordinates: Ints  # a column per number or rank, in units of the metric, weighted
    codes: NDArray[np.int32]  # a column per nominal attribute

    def __len__(self) -> int:
        return len(self.coordinates)


class Move(Protocol):
    """Moves points to the places at which another distance measures them."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The attribute that each coordinate belongs to; None where they are mixed."""
        ...

    def place(self, points: Points) -> Points:
        """Return the place of each point."""
        ...


class Weighing(Protocol):
    """Measures from a center, where it depends on the center what a difference counts."""

    def terms(self, center: Points, points: Points) -> Ints:
        """Return what each attribute adds to the distance of each point from one center."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """How integer distances between points are added up and read.

    With `squared`, the integer is a sum of squares, and `unit` belongs to its root.
    """

    mismatch: Ints  # the cost of a difference in each nominal attribute
    unit: float  # stands for distance 1: a whole number, unless values were left unscaled
    exact_unit: Fraction | None = None  # the same without rounding
    squared: bool = False
    move: Move | None = None  # where points are before they are measured
    weighing: Weighing | None = None  # measures instead
    # by nominal attribute the code of missing values, which differ from each other; -1: none
    missing: NDArray[np.int32] | None = None

    @property
    def in_place(self) -> Metric:
        """The metric of points that have been moved already."""
        return replace(self, move=None)

    def place(self, points: Points) -> Points:
        """Move points to where they are measured."""
        return points if self.move is None else self.move.place(points)

    def as_center(self, points: Points) -> Points:
        """Return points as centers: what is missing in these has a code that no point has."""
        if self.missing is None:
            return points
        # it is the last level, so that the next code is free
        codes = points.codes + (points.codes == self.missing)
        return Points(coordinates=points.coordinates, codes=codes.astype(np.int32))

    def limit(self, distance: Fraction) -> int:
        """Return the largest integer distance that does not exceed a distance; -1 if 0 does."""
        unit = Fraction(self.unit) if self.exact_unit is None else self.exact_unit
        if distance < 0:
            return -1
        return min(floor((distance * unit) ** (2 if self.squared else 1)), _FARTHEST)

    def terms(self, differences: Ints) -> Ints:
        """Return what differences of coordinates add to an integer distance."""
        return differences**2 if self.squared else np.abs(differences)

    def from_center(self, center: Points, points: Points) -> Ints:
        """Measure from one center (a single point) to every point."""
        if self.weighing is not None:
            return np.asarray(self.weighing.terms(center, points).sum(axis=1, dtype=np.int64))
        center, points = self.as_center(self.place(center)), self.place(points)
        total = np.zeros(len(points), dtype=np.int64)
        # one attribute at a time: sums over the short side of a table take several times as long
        for column, value, cost in self._columns(points, center):
            total += self.terms(column - value) if cost is None else (column != value) * cost
        return total

    def radius(self, points: Points, one: int, k: int) -> int:
        """Return how far the k-th nearest other of one of the points is."""
        center, every = points.take(np.array([one])), max(1, len(points) // max(_SOME, k + 2))
        limit = _nth(self.from_center(center, points.take(slice(None, None, every))), k + 1)
        if self.weighing is not None:
            near = self.from_center(center, points)
        else:
            near = self._within(self.as_center(self.place(center)), self.place(points), limit)
        # the point itself, which is at a distance where a value is missing
        own = int(self.from_center(center, center)[0])
        return _nth(np.delete(near, np.flatnonzero(near == own)[:1]), k)

    def _within(self, center: Points, points: Points, limit: int) -> Ints:
        """Measure the points within a distance; those too far already are not measured further."""
        near, total = np.arange(len(points)), np.zeros(len(points), dtype=np.int64)
        for column, value, cost in self._columns(points, center):
            here = column if len(near) == len(column) else column[near]
            total += self.terms(here - value) if cost is None else (here != value) * cost
            some = np.flatnonzero(total <= limit)
            near, total = near[some], total[some]
        return total

    def _columns(
        self, points: Points, center: Points
    ) -> Iterator[tuple[NDArray[Any], Any, np.int64 | None]]:
        """Iterate over columns, the center's value in each, and the cost of another name."""
        for column, value in zip(points.coordinates.T, center.coordinates[0], strict=True):
            yield column, value, None
        for column, value, cost in zip(points.codes.T, center.codes[0], self.mismatch, strict=True):
            yield column, value, cost

    def split(self, center: Points, points: Points) -> Ints:
        """Return what each coordinate, and then each name, adds to the distance from a center."""
        if self.weighing is not None:
            return self.weighing.terms(center, points)
        center, points = self.as_center(self.place(center)), self.place(points)
        numbers = self.terms(points.coordinates - center.coordinates)
        return np.concatenate([numbers, (points.codes != center.codes) * self.mismatch], axis=1)

    def to_candidates(self, centers: Points, points: Points, candidates: Rows) -> Ints:
        """Measure from each center to its own row of candidates, all where they are measured."""
        centers = self.as_center(centers)
        total = np.zeros(candidates.shape, dtype=np.int64)
        # one attribute at a time: a third dimension would multiply the memory
        for column, values in zip(points.coordinates.T, centers.coordinates.T, strict=True):
            total += self.terms(column[candidates] - values[:, None])
        for column, values, cost in zip(
            points.codes.T, centers.codes.T, self.mismatch, strict=True
        ):
            total += (column[candidates] != values[:, None]) * cost
        return total

    def as_float(self, distances: Ints) -> Floats:
        """Read integer distances as numbers, for presentation."""
        return np.asarray(self.lengths(distances) / self.unit, dtype=np.float64)

    def lengths(self, distances: Ints) -> Floats:
        """Return distances in units of the metric: of a sum of squares, the root."""
        # -1 stands for none
        return np.sqrt(np.maximum(distances, 0)) if self.squared else distances.astype(np.float64)


def _nth(distances: Ints, n: int) -> int:
    """Return the n-th smallest of some distances."""
    return int(np.partition(distances, n - 1)[n - 1])
