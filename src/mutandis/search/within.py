"""People within a given distance of a center: what a caliper leaves of a group."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.search.collapse import group_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.search.engine import Queries, Search

__all__ = ["RadiusCounts", "count_candidates", "find_within"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RadiusCounts:
    """For each query: who stands within its limit.

    Parameters
    ----------
    people, negatives
        How many others stand there, and how many of those have a negative outcome.
    farthest
        The integer distance of the farthest of them; -1 where there is nobody.
    """

    people: NDArray[np.int64]
    negatives: NDArray[np.int64]
    farthest: NDArray[np.int64]

    @classmethod
    def empty(cls, queries: int) -> RadiusCounts:
        """Make room for the answers to so many queries."""
        return cls(**{f.name: np.full(queries, -1, dtype=np.int64) for f in fields(cls)})

    def take(self, queries: NDArray[Any]) -> RadiusCounts:
        """Give the chosen queries, repeated as often as asked for."""
        return RadiusCounts(**{f.name: getattr(self, f.name)[queries] for f in fields(self)})

    def put(self, queries: NDArray[Any], answers: RadiusCounts) -> None:
        """Write the answers of some queries into their places."""
        for f in fields(self):
            getattr(self, f.name)[queries] = getattr(answers, f.name)


def count_candidates(
    distances: NDArray[np.int64],
    counts: NDArray[np.int64],
    negatives: NDArray[np.int64],
    limits: NDArray[np.int64],
) -> RadiusCounts:
    """Count among candidates, one row of them for each query.

    Examples
    --------
    >>> import numpy as np
    >>> found = count_candidates(
    ...     np.array([[4, 1, 5]]), np.array([[2, 1, 1]]), np.array([[1, 0, 1]]), np.array([4])
    ... )
    >>> int(found.people[0]), int(found.negatives[0]), int(found.farthest[0])
    (3, 1, 4)
    """
    # a point that holds nobody but the complainant herself is no neighbour
    near = (distances <= limits[:, None]) & (counts > 0)
    return RadiusCounts(
        people=(near * counts).sum(axis=1, dtype=np.int64),
        negatives=(near * negatives).sum(axis=1, dtype=np.int64),
        farthest=np.where(near, distances, -1).max(axis=1, initial=-1).astype(np.int64),
    )


def find_within(search: Search, queries: Queries, limits: NDArray[np.int64]) -> RadiusCounts:
    """Answer queries that may repeat: each distinct one is searched once."""
    first, group = group_rows(queries.points, queries.own, queries.own_negative, limits)
    return search.within(queries.take(first), limits[first]).take(group)
