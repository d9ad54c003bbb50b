"""The search protocol: the narrow door behind which a backend does its work.

Backends
--------
`brute`
    Measures every pair. Plain enough to be the oracle of all others.
`tree`
    SciPy's KD-tree proposes candidates in floating point; they are measured again in integers, and
    more are asked for until no tie can be missing.
`compiled`
    Kernels of our own in machine code: a tree with boxes and level masks, or a scan of one-byte
    coordinates where no box keeps anybody out. For large tables.

All are exact, so the choice between them (`choose.py`) can change the time an audit takes and
nothing else. A backend sees distinct points with their multiplicities; it never sees rows, ids or
policies on ties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mutandis.search.collapse import group_rows
from mutandis.search.progress import silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.search.distance import Metric, Points
    from mutandis.search.progress import Progress
    from mutandis.search.ties import Neighbourhoods
    from mutandis.search.within import RadiusCounts

__all__ = ["Queries", "Search", "Space", "find_neighbourhoods"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A search space: distinct points, and the people who stand on each.

    Parameters
    ----------
    points
        The distinct points.
    counts, negatives
        How many rows stand on each point, and how many of those have a negative outcome.
    metric
        How distance is measured.
    """

    points: Points
    counts: NDArray[np.int64]
    negatives: NDArray[np.int64]
    metric: Metric

    @classmethod
    def of(
        cls, points: Points, is_negative: NDArray[np.bool_], metric: Metric
    ) -> tuple[Space, NDArray[np.intp]]:
        """Collapse rows into a space; give it with the point on which each row stands."""
        first, group = group_rows(points)
        if len(first) == len(points):  # nobody repeats anybody: no copies are needed
            alone = np.broadcast_to(np.int64(1), len(points))
            negative = is_negative.astype(np.int64)
            return cls(points=points, counts=alone, negatives=negative, metric=metric), group
        counts = np.bincount(group, minlength=len(first)).astype(np.int64)
        negatives = np.bincount(group[is_negative], minlength=len(first)).astype(np.int64)
        space = cls(points=points.take(first), counts=counts, negatives=negatives, metric=metric)
        return space, group


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """Centers to search around.

    Parameters
    ----------
    points
        The centers.
    own
        The point of the space on which the complainant herself stands, who is not her own
        neighbour; -1 where she is not in the space.
    own_negative
        Whether her own outcome is negative.
    """

    points: Points
    own: NDArray[np.intp]
    own_negative: NDArray[np.bool_]

    @classmethod
    def outside(cls, points: Points) -> Queries:
        """Make queries from centers that are not rows of the space."""
        size = len(points)
        return cls(
            points=points,
            own=np.broadcast_to(np.intp(-1), size),
            own_negative=np.broadcast_to(np.bool_(False), size),  # noqa: FBT003
        )

    def __len__(self) -> int:
        """Count the queries."""
        return len(self.points)

    def take(self, rows: NDArray[np.intp]) -> Queries:
        """Give the chosen queries."""
        return Queries(
            points=self.points.take(rows),
            own=self.own[rows],
            own_negative=self.own_negative[rows],
        )


class Search(Protocol):
    """An exact search in one space."""

    @property
    def name(self) -> str:
        """The backend's name, for the provenance."""
        ...

    def neighbourhoods(
        self, queries: Queries, ks: Sequence[int], *, progress: Progress = silent
    ) -> Neighbourhoods:
        """Answer all queries for all ks; each k is at most the number of others in the space."""
        ...

    def within(self, queries: Queries, limits: NDArray[np.int64]) -> RadiusCounts:
        """Count the people within each query's own limit, an integer distance."""
        ...


def find_neighbourhoods(
    search: Search, queries: Queries, ks: Sequence[int], *, progress: Progress = silent
) -> Neighbourhoods:
    """Answer queries that may repeat: each distinct one is searched once, for all k together."""
    first, group = group_rows(queries.points, queries.own, queries.own_negative)
    told = _in_complainants(progress, distinct=len(first), complainants=len(queries))
    if len(first) == len(queries):  # nothing repeats: no copies are needed
        return search.neighbourhoods(queries, ks, progress=told)
    return search.neighbourhoods(queries.take(first), ks, progress=told).take(group)


def _in_complainants(progress: Progress, *, distinct: int, complainants: int) -> Progress:
    """Tell of complainants, of whom each distinct query stands for some, as many as there are."""
    done = 0

    def tell(more: int) -> None:
        nonlocal done
        before = done * complainants // distinct
        done += more
        progress(done * complainants // distinct - before)

    return tell
