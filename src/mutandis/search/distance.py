"""The distance between two people, as an exact integer.

    d(x, x') = sum_i w_i d_i(x_i, x'_i) / sum_i w_i                     (paper, eq. 7)

with d_i = |difference| / range for numbers, |rank difference| / (levels - 1) for ordinal
attributes, and for nominal ones 0 if equal and 1 if not (the paper prints the two exchanged:
docs/adr/0003-errata.md). Every term is held as a whole number of a common small unit, so that sums
are exact whatever their order, and two people are equally far away exactly if their integers are.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

import numpy as np

from mutandis.data.by_row import ByRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

# the largest distance in int64
_FARTHEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Points(ByRow):
    """Rows in the space of the distance."""

    coordinates: NDArray[np.int64]  # a column per number or rank, in units of the metric, weighted
    codes: NDArray[np.int32]  # a column per nominal attribute

    def __len__(self) -> int:
        return len(self.coordinates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """How integer distances between points are added up and read."""

    mismatch: NDArray[np.int64]  # the cost of a difference in each nominal attribute
    unit: float  # stands for distance 1: a whole number, unless values were left unscaled
    exact_unit: Fraction | None = None  # the same without rounding

    def limit(self, distance: Fraction) -> int:
        """Give the largest integer distance that does not exceed a distance."""
        unit = Fraction(self.unit) if self.exact_unit is None else self.exact_unit
        return min(floor(distance * unit), _FARTHEST)

    def from_center(self, center: Points, points: Points) -> NDArray[np.int64]:
        """Measure from one center (a single point) to every point."""
        numbers = np.abs(points.coordinates - center.coordinates).sum(axis=1, dtype=np.int64)
        names = ((points.codes != center.codes) * self.mismatch).sum(axis=1, dtype=np.int64)
        return np.asarray(numbers + names, dtype=np.int64)

    def between(self, first: Points, second: Points) -> NDArray[np.int64]:
        """Measure from each point to the one in the same row of others."""
        total = np.zeros(len(first), dtype=np.int64)
        for axis in range(first.coordinates.shape[1]):
            total += np.abs(second.coordinates[:, axis] - first.coordinates[:, axis])
        for axis, cost in enumerate(self.mismatch):
            total += (second.codes[:, axis] != first.codes[:, axis]) * cost
        return total

    def to_candidates(
        self, centers: Points, points: Points, candidates: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Measure from each center to its own row of candidates among the points."""
        total = np.zeros(candidates.shape, dtype=np.int64)
        # one attribute at a time: a third dimension would multiply the memory
        for axis in range(points.coordinates.shape[1]):
            there = points.coordinates[:, axis][candidates]
            total += np.abs(there - centers.coordinates[:, axis, None])
        for axis, cost in enumerate(self.mismatch):
            differs = points.codes[:, axis][candidates] != centers.codes[:, axis, None]
            total += differs * cost
        return total

    def as_float(self, distances: NDArray[np.int64]) -> NDArray[np.float64]:
        """Read integer distances as numbers, for presentation."""
        return np.asarray(distances / self.unit, dtype=np.float64)
