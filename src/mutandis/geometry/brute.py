"""The oracle: measures every pair and follows the definition literally."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.geometry.index import Listing, Neighbourhoods, RadiusCounts, discard_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from mutandis.geometry.index import Progress, Queries, Space
    from mutandis.geometry.metric import Points


@dataclass(frozen=True, slots=True, kw_only=True)
class BruteSearch:
    """Search by measuring every pair, one query at a time."""

    space: Space
    name: str = "brute"

    def neighbourhoods(
        self, queries: Queries, ks: Sequence[int], *, progress: Progress = discard_progress
    ) -> Neighbourhoods:
        found = Neighbourhoods.empty(len(queries), len(ks))
        for query in range(len(queries)):
            distances, counts, negatives = self._others(queries, query)
            everyone = np.sort(np.repeat(distances, counts))
            for column, k in enumerate(ks):
                radius = everyone[k - 1]
                inside, rim = distances < radius, distances == radius
                found.radius[query, column] = radius
                found.inside[query, column] = counts[inside].sum()
                found.marks_inside[query, column, 0] = negatives[inside].sum()
                found.rim[query, column] = counts[rim].sum()
                found.marks_rim[query, column, 0] = negatives[rim].sum()
            progress(1)
        return found

    def within(self, queries: Queries, limits: NDArray[np.int64]) -> RadiusCounts:
        found = RadiusCounts.empty(len(queries))
        for query, limit in enumerate(limits):
            distances, counts, negatives = self._others(queries, query)
            near = (distances <= limit) & (counts > 0)
            found.people[query] = counts[near].sum()
            found.marks[query, 0] = negatives[near].sum()
            found.farthest[query] = distances[near].max(initial=-1)
        return found

    def arrange(self, points: Points) -> NDArray[np.intp]:
        return np.arange(len(points))

    def visit(
        self,
        queries: Queries,
        limits: NDArray[np.int64],
        rows: NDArray[np.int64],  # noqa: ARG002 - nothing is laid out in advance
        use: Callable[[NDArray[np.intp], Listing], None],
    ) -> None:
        for query, limit in enumerate(limits):
            distances, _, _ = self._others(queries, query)
            near = np.flatnonzero(distances <= limit)
            listing = Listing(
                start=np.array([0, len(near)]), points=near, distances=distances[near]
            )
            use(np.array([query]), listing)

    def _others(
        self, queries: Queries, query: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Measure to every point, and count its rows without the complainant's own."""
        center = queries.points.take(np.array([query]))
        distances = self.space.metric.from_center(center, self.space.points)
        counts, negatives = self.space.counts.copy(), self.space.negatives.copy()
        own = queries.own[query]
        if own >= 0:
            counts[own] -= 1
            negatives[own] -= queries.own_negative[query]
        return distances, counts, negatives
