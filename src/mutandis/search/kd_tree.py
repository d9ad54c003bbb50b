"""Exact search through SciPy's KD-tree.

A nominal attribute becomes one coordinate per level, 0 or half the mismatch: two different levels
then differ by half in two coordinates, the full mismatch in all. So the whole distance is an L1
metric and a KD-tree with p=1 searches it.

The tree works in float64 and may miss or misorder ties, so it only proposes. Candidates are
measured again in integers. All points that were not proposed lie at least as far (in float64) as
the last one that was; once the exact radius is smaller than that by more than rounding could
explain, no point inside or on the radius can be missing. Otherwise twice as many are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mutandis.search.engine import Listing, discard_progress
from mutandis.search.ties import Neighbourhoods, RadiusCounts, count_candidates, select

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray
    from scipy.spatial import cKDTree

    from mutandis.search.distance import Points
    from mutandis.search.engine import Progress, Queries, Space

    _Integers = NDArray[np.int64]
    # for each query its candidates: distances, rows without the complainant's own, negatives
    _Measured = tuple[_Integers, _Integers, _Integers]

__all__ = ["TreeSearch", "tree_dimensions"]

_Answers = TypeVar("_Answers", Neighbourhoods, RadiusCounts)

# In the unit of the tree its points lie within [-1, 1], in at most some thousand coordinates:
# rounding moves a float64 distance by far less than this, and by far less than this part of it.
_ROUNDING = 1e-9
# how many points are examined first for rows within a caliper
_FIRST_WIDTH = 32
# candidates held at a time (queries x neighbours): bounds the memory of a search
_BATCH = 2_000_000


def tree_dimensions(points: Points) -> int:
    """Count the coordinates a tree over these points would have."""
    return int(points.coordinates.shape[1]) + sum(_levels(points))


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSearch:
    """Search with a KD-tree that proposes and integers that decide.

    `levels` counts the levels of each nominal attribute among the points of the space; `unit`, a
    power of two, is the integer that stands for 1.0 in the tree; -1 threads are all cores.
    """

    space: Space
    tree: cKDTree
    levels: tuple[int, ...]
    unit: float
    threads: int = -1
    name: str = "tree"

    @classmethod
    def build(cls, space: Space, *, threads: int = -1) -> TreeSearch:
        from scipy.spatial import cKDTree

        levels, unit = _levels(space.points), _tree_unit(space)
        tree = cKDTree(_floats(space, space.points, levels, unit))
        return cls(space=space, tree=tree, levels=levels, unit=unit, threads=threads)

    def neighbourhoods(
        self, queries: Queries, ks: Sequence[int], *, progress: Progress = discard_progress
    ) -> Neighbourhoods:
        def answer(_: NDArray[np.intp], measured: _Measured) -> tuple[Neighbourhoods, _Integers]:
            answers = select(*measured, ks)
            return answers, answers.radius.max(axis=1)

        found = Neighbourhoods.empty(len(queries), len(ks))
        # her own point may be empty without her: k others are on at most k + 1 points
        return self._ask(queries, found, answer, width=max(ks) + 2, progress=progress)

    def within(self, queries: Queries, limits: NDArray[np.int64]) -> RadiusCounts:
        def answer(chunk: NDArray[np.intp], measured: _Measured) -> tuple[RadiusCounts, _Integers]:
            return count_candidates(*measured, limits[chunk]), limits[chunk]

        found = RadiusCounts.empty(len(queries))
        return self._ask(queries, found, answer, width=_FIRST_WIDTH, progress=discard_progress)

    def visit(
        self,
        queries: Queries,
        limits: NDArray[np.int64],
        rows: NDArray[np.int64],
        use: Callable[[NDArray[np.intp], Listing], None],
    ) -> None:
        widest = int(min(rows.max(initial=1), len(self.space.points)))
        for chunk in _chunks(np.arange(len(queries)), _BATCH // widest):
            centers = queries.points.take(chunk)
            reach = limits[chunk] / self.unit * (1 + _ROUNDING) + _ROUNDING
            proposed = self.tree.query_ball_point(
                _floats(self.space, centers, self.levels, self.unit),
                reach,
                p=1,
                workers=self.threads,
                return_sorted=False,
            )
            sizes = np.array([len(each) for each in proposed])
            points = np.concatenate([np.asarray(each, dtype=np.intp) for each in proposed])
            query = np.repeat(np.arange(len(chunk)), sizes)
            distances = self.space.metric.between(
                centers.take(query), self.space.points.take(points)
            )
            near = distances <= limits[chunk][query]
            start = np.concatenate([[0], np.cumsum(np.bincount(query[near], minlength=len(chunk)))])
            use(chunk, Listing(start=start, points=points[near], distances=distances[near]))

    def _ask(
        self,
        queries: Queries,
        found: _Answers,
        answer: Callable[[NDArray[np.intp], _Measured], tuple[_Answers, _Integers]],
        *,
        width: int,
        progress: Progress,
    ) -> _Answers:
        """Answer from the `width` nearest candidates, and from twice as many where some may miss.

        For a chunk of queries, `answer` gives the answers and the distance that each depends on.
        """
        pending = np.arange(len(queries))
        while len(pending):
            width = min(width, len(self.space.points))
            unfinished = []
            for chunk in _chunks(pending, _BATCH // width):
                measured, horizon = self._candidates(queries.take(chunk), width)
                answers, needed = answer(chunk, measured)
                complete = needed / self.unit < horizon
                found.put(chunk[complete], answers.take(np.flatnonzero(complete)))
                unfinished.append(chunk[~complete])
                progress(int(np.count_nonzero(complete)))
            pending = np.concatenate(unfinished)
            width *= 2
        return found

    def _candidates(self, queries: Queries, width: int) -> tuple[_Measured, NDArray[np.float64]]:
        """Measure the `width` nearest points, and how far (in the tree's unit) none is missing."""
        centers = _floats(self.space, queries.points, self.levels, self.unit)
        ranks = np.arange(1, width + 1)  # as a list of ranks, so that one neighbour is a column too
        proposed = self.tree.query(centers, k=ranks, p=1, workers=self.threads)
        near, candidates = np.asarray(proposed[0]), np.asarray(proposed[1], dtype=np.intp)
        counts, negatives = self.space.counts[candidates], self.space.negatives[candidates]
        own = candidates == queries.own[:, None]
        counts -= own
        negatives -= own & queries.own_negative[:, None]
        distances = self.space.metric.to_candidates(queries.points, self.space.points, candidates)
        if width == len(self.space.points):
            return (distances, counts, negatives), np.full(len(queries), np.inf)
        return (distances, counts, negatives), near[:, -1] * (1 - _ROUNDING) - _ROUNDING


def _levels(points: Points) -> tuple[int, ...]:
    return tuple(int(codes.max(initial=-1)) + 1 for codes in points.codes.T)


def _tree_unit(space: Space) -> float:
    largest = max(
        int(np.max(np.abs(space.points.coordinates), initial=1)),
        int(np.max(space.metric.mismatch, initial=1)),
    )
    return 2.0 ** largest.bit_length()


def _floats(
    space: Space, points: Points, levels: Sequence[int], unit: float
) -> NDArray[np.float64]:
    """Give the points as float64 coordinates whose L1 distance is the distance itself."""
    blocks = [points.coordinates / unit]
    for codes, cost, count in zip(points.codes.T, space.metric.mismatch, levels, strict=True):
        block = np.zeros((len(points), count + 1))
        # a level that the space never holds differs from all others: the spare last coordinate
        block[np.arange(len(points)), np.where(codes < count, codes, count)] = cost / unit / 2
        blocks.append(block)
    return np.concatenate(blocks, axis=1)


def _chunks(rows: NDArray[np.intp], size: int) -> Iterator[NDArray[np.intp]]:
    for start in range(0, len(rows), max(1, size)):
        yield rows[start : start + max(1, size)]
