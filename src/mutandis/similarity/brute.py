"""The oracle: measures every pair and follows the definition word by word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.similarity.ties import Neighbourhoods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutandis.similarity.search import Queries, Space

__all__ = ["BruteSearch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BruteSearch:
    """Search by measuring every pair, one query at a time."""

    space: Space
    name: str = "brute"

    def neighbourhoods(self, queries: Queries, ks: Sequence[int]) -> Neighbourhoods:
        """Answer all queries for all ks."""
        found = Neighbourhoods.empty(len(queries), len(ks))
        for query in range(len(queries)):
            center = queries.points.take(np.array([query]))
            distances = self.space.metric.from_center(center, self.space.points)
            counts, negatives = self.space.counts.copy(), self.space.negatives.copy()
            own = queries.own[query]
            if own >= 0:
                counts[own] -= 1
                negatives[own] -= queries.own_negative[query]
            everyone = np.sort(np.repeat(distances, counts))
            for column, k in enumerate(ks):
                radius = everyone[k - 1]
                inside, rim = distances < radius, distances == radius
                found.radius[query, column] = radius
                found.inside[query, column] = counts[inside].sum()
                found.negatives_inside[query, column] = negatives[inside].sum()
                found.rim[query, column] = counts[rim].sum()
                found.negatives_rim[query, column] = negatives[rim].sum()
        return found
