"""What a search answers, and ties as a policy, in one place.

Let r be the distance of the k-th nearest row. Rows strictly inside r belong to the group. The m
rows at exactly r compete for the places that are left, and their order has no meaning, so under the
policy "fair" they share: each holds (k - inside)/m of a place. Under "all" every one of them
belongs, and the group is larger than k. Either way, sorting the file differently changes nothing
(docs/adr/0002-ties.md).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.data.by_row import ByRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Ties = Literal["fair", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhoods(ByRow):
    """For each query (row) and each k (column): the rows within the k-th nearest distance."""

    radius: NDArray[np.int64]  # the distance of the k-th nearest row
    inside: NDArray[np.int64]  # rows strictly nearer
    rim: NDArray[np.int64]  # rows at exactly that distance
    # sums of the marks of both, in a third dimension: a search sums one column
    marks_inside: NDArray[np.int64]
    marks_rim: NDArray[np.int64]

    @classmethod
    def empty(cls, queries: int, ks: int, width: int = 1) -> Neighbourhoods:
        shape = (queries, ks)
        counts = {name: np.zeros(shape, dtype=np.int64) for name in ("radius", "inside", "rim")}
        sums = (np.zeros((*shape, width), dtype=np.int64) for _ in range(2))
        return cls(**counts, marks_inside=next(sums), marks_rim=next(sums))

    def at(self, ks: slice) -> Neighbourhoods:
        """Return a copy for some of the ks."""
        return Neighbourhoods(**{f.name: getattr(self, f.name)[:, ks].copy() for f in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class RadiusCounts(ByRow):
    """For each query: the other rows within its limit, what a caliper leaves of a group."""

    people: NDArray[np.int64]
    marks: NDArray[np.int64]  # the sums of their marks, by column
    farthest: NDArray[np.int64]  # the distance of the farthest of them, -1 where there are none

    @classmethod
    def empty(cls, queries: int, width: int = 1) -> RadiusCounts:
        people, farthest = (np.full(queries, -1, dtype=np.int64) for _ in range(2))
        marks = np.full((queries, width), -1, dtype=np.int64)
        return cls(people=people, marks=marks, farthest=farthest)


def select(
    distances: NDArray[np.int64],
    counts: NDArray[np.int64],
    negatives: NDArray[np.int64],
    ks: Sequence[int],
) -> Neighbourhoods:
    """Find the k-th nearest distance among candidates and count the rows inside it and on it."""
    # each query has a row of candidates, in any order, which stand for at least max(ks) rows
    if (distances[:, 1:] < distances[:, :-1]).any():
        order = np.argsort(distances, axis=1, kind="stable")
        distances, counts, negatives = (
            np.take_along_axis(each, order, axis=1) for each in (distances, counts, negatives)
        )
    near, people, refused = distances, _running_totals(counts), _running_totals(negatives)
    found = Neighbourhoods.empty(len(distances), len(ks))
    for column, k in enumerate(ks):
        # the k-th nearest row is where the running count first reaches k
        last = np.argmax(people[:, 1:] >= k, axis=1)
        radius = np.take_along_axis(near, last[:, None], axis=1)
        inner, outer = (near < radius).sum(axis=1), (near <= radius).sum(axis=1)
        inside, refused_inside = _before(people, inner), _before(refused, inner)
        found.radius[:, column] = radius[:, 0]
        found.inside[:, column] = inside
        found.marks_inside[:, column, 0] = refused_inside
        found.rim[:, column] = _before(people, outer) - inside
        found.marks_rim[:, column, 0] = _before(refused, outer) - refused_inside
    return found


def count_candidates(
    distances: NDArray[np.int64],
    counts: NDArray[np.int64],
    negatives: NDArray[np.int64],
    limits: NDArray[np.int64],
) -> RadiusCounts:
    """Count among candidates as `select` takes them, within one limit per query."""
    # a point with no row but the complainant's own is not a neighbour
    near = (distances <= limits[:, None]) & (counts > 0)
    return RadiusCounts(
        people=(near * counts).sum(axis=1, dtype=np.int64),
        marks=(near * negatives).sum(axis=1, dtype=np.int64)[:, np.newaxis],
        farthest=np.where(near, distances, -1).max(axis=1, initial=-1).astype(np.int64),
    )


def _running_totals(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Total the first 0, 1, 2, … candidates of each query."""
    totals = np.zeros((len(values), values.shape[1] + 1), dtype=np.int64)
    np.cumsum(values, axis=1, out=totals[:, 1:])
    return totals


def _before(totals: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(np.take_along_axis(totals, stop[:, None], axis=1)[:, 0], dtype=np.int64)
