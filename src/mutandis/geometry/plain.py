"""Searches without kernels: by measuring every pair, and through SciPy's KD-tree.

In the tree, a nominal attribute becomes one coordinate per level, 0 or half the mismatch: two
different levels then differ by half in two coordinates, the full mismatch in all. So the whole
distance is an L1 metric and a KD-tree with p=1 searches it. Of a sum of squares the mismatch is
halved before its root is taken, and the tree searches with p=2.

The tree works in float64 and may miss or misorder ties, so it only proposes. Candidates are
measured again in integers. All points that were not proposed lie at least as far (in float64) as
the last one that was; once the exact radius is smaller than that by more than rounding could
explain, no point inside or on the radius can be missing. Otherwise twice as many are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mutandis.geometry.index import Listing, Neighbourhoods, RadiusCounts, discard_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from scipy.spatial import cKDTree

    from mutandis.geometry.index import Progress, Queries, Space, Use
    from mutandis.geometry.metric import Points
    from mutandis.mapped import Bools, Floats, Ints, Rows

    _Answer = tuple[Ints, Callable[[Bools], None]]
    _Candidates = tuple[Rows, Ints, Floats]

# In the unit of the tree its points lie within [-1, 1], in at most some thousand coordinates:
# rounding moves a float64 distance by far less than this, and by far less than this part of it.
_ROUNDING = 1e-9
_FIRST_WIDTH = 32  # points examined first for rows within a caliper
_BATCH = 2_000_000  # candidates held at a time (queries x neighbours)
_KEPT = 500_000  # candidates that are kept for the next question about the same centers
_WORTH_THREADS = 50_000  # candidates that are found faster than threads start


@dataclass(frozen=True, slots=True, kw_only=True)
class BruteSearch:
    """Measures every pair, one query at a time: the oracle of all other searches."""

    space: Space
    name: str = "brute"

    def neighbourhoods(
        self, queries: Queries, ks: Sequence[int], *, progress: Progress = discard_progress
    ) -> Neighbourhoods:
        found = Neighbourhoods.empty(len(queries), len(ks))
        for query in range(len(queries)):
            distances, counts, marks = self._others(queries, query)
            everyone = np.sort(np.repeat(distances, counts))
            for column, k in enumerate(ks):
                radius = everyone[k - 1]
                inside, rim = distances < radius, distances == radius
                found.radius[query, column] = radius
                found.inside[query, column] = counts[inside].sum()
                found.marks_inside[query, column, 0] = marks[inside].sum()
                found.rim[query, column] = counts[rim].sum()
                found.marks_rim[query, column, 0] = marks[rim].sum()
            progress(1)
        return found

    def within(self, queries: Queries, limits: Ints) -> RadiusCounts:
        found = RadiusCounts.empty(len(queries))
        for query, limit in enumerate(limits):
            distances, counts, marks = self._others(queries, query)
            near = (distances <= limit) & (counts > 0)
            found.people[query] = counts[near].sum()
            found.marks[query, 0] = marks[near].sum()
            found.farthest[query] = distances[near].max(initial=-1)
        return found

    def arrange(self, points: Points) -> Rows:
        return np.arange(len(points))

    def visit(self, queries: Queries, limits: Ints, rows: Ints, use: Use) -> None:  # noqa: ARG002
        for query, limit in enumerate(limits):
            distances, _, _ = self._others(queries, query)
            near = np.flatnonzero(distances <= limit)
            start = np.array([0, len(near)])
            use(np.array([query]), Listing(start=start, points=near, distances=distances[near]))

    def _others(self, queries: Queries, query: int) -> tuple[Ints, Ints, Ints]:
        """Measure to every point, and count its rows without the complainant's own."""
        center = queries.points.take(np.array([query]))
        distances = self.space.metric.from_center(center, self.space.points)
        counts, marks = self.space.counts.copy(), self.space.counted.copy()
        own = queries.own[query]
        if own >= 0:
            counts[own] -= 1
            marks[own] -= queries.own_marks[query, 0]
        return distances, counts, marks


# --- SciPy's tree ---------------------------------------------------------------------------------


def tree_dimensions(points: Points) -> int:
    """Count the coordinates a tree over these points would have."""
    return int(points.coordinates.shape[1]) + sum(_levels(points))


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSearch:
    """Search with a KD-tree that proposes and integers that decide."""

    space: Space
    tree: cKDTree
    levels: tuple[int, ...]  # of each nominal attribute, among the points of the space
    unit: float  # a power of two: the integer that stands for 1.0 in the tree
    threads: int = -1  # all cores
    name: str = "tree"
    # the centers that were asked about last, and their candidates: the listing of neighbours is
    # often asked for right after their number
    _last: list[tuple[Queries, _Candidates]] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def build(cls, space: Space, *, threads: int = -1) -> TreeSearch:
        from scipy.spatial import cKDTree

        levels, metric = _levels(space.points), space.metric
        largest = max(
            int(np.max(np.abs(space.points.coordinates), initial=1)),
            int(np.max(metric.lengths(metric.mismatch), initial=1)),
        )
        unit = 2.0 ** largest.bit_length()
        tree = cKDTree(_floats(space, space.points, levels, unit))
        return cls(space=space, tree=tree, levels=levels, unit=unit, threads=threads)

    def neighbourhoods(
        self, queries: Queries, ks: Sequence[int], *, progress: Progress = discard_progress
    ) -> Neighbourhoods:
        found = Neighbourhoods.empty(len(queries), len(ks))

        def answer(chunk: Rows, candidates: Rows, distances: Ints) -> _Answer:
            answers = select(distances, *self._others(queries.take(chunk), candidates), ks)
            return answers.radius.max(axis=1), lambda c: found.put(chunk[c], answers.take(c))

        # the own point may be empty without its query: k others are on at most k + 1 points
        self._ask(queries, answer, width=max(ks) + 2, progress=progress)
        return found

    def within(self, queries: Queries, limits: Ints) -> RadiusCounts:
        found = RadiusCounts.empty(len(queries))

        def answer(chunk: Rows, candidates: Rows, distances: Ints) -> _Answer:
            counts, marks = self._others(queries.take(chunk), candidates)
            # a point with no row but the complainant's own is not a neighbour
            near = (distances <= limits[chunk, None]) & (counts > 0)
            answers = RadiusCounts(
                people=(near * counts).sum(axis=1, dtype=np.int64),
                marks=(near * marks).sum(axis=1, dtype=np.int64)[:, np.newaxis],
                farthest=np.where(near, distances, -1).max(axis=1, initial=-1).astype(np.int64),
            )
            return limits[chunk], lambda c: found.put(chunk[c], answers.take(c))

        self._ask(queries, answer, width=_FIRST_WIDTH)
        return found

    def arrange(self, points: Points) -> Rows:
        return np.arange(len(points))

    def visit(self, queries: Queries, limits: Ints, rows: Ints, use: Use) -> None:
        def answer(chunk: Rows, candidates: Rows, distances: Ints) -> _Answer:
            def hand_on(complete: Bools) -> None:
                near = (distances <= limits[chunk, None]) & complete[:, None]
                start = np.concatenate([[0], np.cumsum(near.sum(axis=1)[complete])])
                listing = Listing(start=start, points=candidates[near], distances=distances[near])
                use(chunk[complete], listing)

            return limits[chunk], hand_on

        # a point stands for at least one row, and the next one shows that none is missing
        self._ask(queries, answer, width=int(np.median(rows)) + 1)

    def _ask(
        self,
        queries: Queries,
        answer: Callable[[Rows, Rows, Ints], _Answer],
        *,
        width: int,
        progress: Progress = discard_progress,
    ) -> None:
        """Answer from the `width` nearest candidates, and from twice as many where some may miss.

        For a chunk of queries with their candidates and distances, `answer` returns the distance
        that each answer depends on, and what to do with the complete ones.
        """
        pending = np.arange(len(queries))
        while len(pending):
            width = min(width, len(self.space.points))
            unfinished = []
            for chunk in _chunks(pending, _BATCH // width):
                asked = queries.take(chunk)
                keep = len(pending) == len(queries)  # not the few who need more candidates
                candidates, distances, horizon = self._candidates(asked, width, keep=keep)
                needed, use = answer(chunk, candidates, distances)
                complete = self.space.metric.lengths(needed) / self.unit < horizon
                if complete.any():
                    use(complete)
                unfinished.append(chunk[~complete])
                progress(int(np.count_nonzero(complete)))
            pending = np.concatenate(unfinished)
            width *= 2

    def _candidates(self, queries: Queries, width: int, *, keep: bool) -> _Candidates:
        """Measure the `width` nearest points, or some more, or return what was measured last.

        The third result tells how far (in the tree's unit) none is missing.
        """
        for known, found in self._last:
            # more than `width` are as good, unless they are so many that measuring takes less
            enough = width <= found[0].shape[1] <= 2 * width
            if enough and _equal(known.points, queries.points):
                return found
        found = self._measure(queries.points, width)
        if keep and len(queries) * width <= _KEPT:
            self._last[:] = [(queries, found)]
        return found

    def _measure(self, centers: Points, width: int) -> _Candidates:
        ranks = np.arange(1, width + 1)  # as a list of ranks, so that one neighbour is a column too
        places = _floats(self.space, centers, self.levels, self.unit)
        workers = 1 if len(centers) * width < _WORTH_THREADS else self.threads
        power = 2 if self.space.metric.squared else 1
        near, candidates = self.tree.query(places, k=ranks, p=power, workers=workers)
        candidates = np.asarray(candidates, dtype=np.intp)
        distances = self.space.metric.to_candidates(centers, self.space.points, candidates)
        if width == len(self.space.points):
            return candidates, distances, np.full(len(centers), np.inf)
        return candidates, distances, np.asarray(near)[:, -1] * (1 - _ROUNDING) - _ROUNDING

    def _others(self, queries: Queries, candidates: Rows) -> tuple[Ints, Ints]:
        """Count the rows of candidates, and their marks, without the complainant's own."""
        counts, marks = self.space.counts[candidates], self.space.counted[candidates]
        own = candidates == queries.own[:, None]
        return counts - own, marks - own * queries.own_marks[:, :1]


def select(distances: Ints, counts: Ints, marks: Ints, ks: Sequence[int]) -> Neighbourhoods:
    """Find the k-th nearest distance among candidates and count the rows inside it and on it.

    Each query has a row of candidates, in any order, which stand for at least max(ks) rows.
    """
    if (distances[:, 1:] < distances[:, :-1]).any():
        order = np.argsort(distances, axis=1, kind="stable")
        distances, counts, marks = (
            np.take_along_axis(each, order, axis=1) for each in (distances, counts, marks)
        )
    people, marked = _running_totals(counts), _running_totals(marks)
    found = Neighbourhoods.empty(len(distances), len(ks))
    for column, k in enumerate(ks):
        # the k-th nearest row is where the running count first reaches k
        last = np.argmax(people[:, 1:] >= k, axis=1)
        radius = np.take_along_axis(distances, last[:, None], axis=1)
        inner, outer = (distances < radius).sum(axis=1), (distances <= radius).sum(axis=1)
        inside, marked_inside = _before(people, inner), _before(marked, inner)
        found.radius[:, column] = radius[:, 0]
        found.inside[:, column] = inside
        found.marks_inside[:, column, 0] = marked_inside
        found.rim[:, column] = _before(people, outer) - inside
        found.marks_rim[:, column, 0] = _before(marked, outer) - marked_inside
    return found


def _running_totals(values: Ints) -> Ints:
    """Total the first 0, 1, 2, … candidates of each query."""
    totals = np.zeros((len(values), values.shape[1] + 1), dtype=np.int64)
    np.cumsum(values, axis=1, out=totals[:, 1:])
    return totals


def _before(totals: Ints, stop: Ints) -> Ints:
    return np.asarray(np.take_along_axis(totals, stop[:, None], axis=1)[:, 0], dtype=np.int64)


def _equal(one: Points, other: Points) -> bool:
    return np.array_equal(one.coordinates, other.coordinates) and np.array_equal(
        one.codes, other.codes
    )


def _levels(points: Points) -> tuple[int, ...]:
    return tuple(int(codes.max(initial=-1)) + 1 for codes in points.codes.T)


def _floats(space: Space, points: Points, levels: Sequence[int], unit: float) -> Floats:
    """Return the points as coordinates whose L1 (or L2) distance is the distance itself."""
    blocks = [points.coordinates / unit]
    halves = space.metric.mismatch / 2
    costs = np.sqrt(halves) if space.metric.squared else halves
    for codes, cost, count in zip(points.codes.T, costs, levels, strict=True):
        block = np.zeros((len(points), count + 1))
        # a level that the space never holds differs from all others: the spare last coordinate
        block[np.arange(len(points)), np.where(codes < count, codes, count)] = cost / unit
        blocks.append(block)
    return np.concatenate(blocks, axis=1)


def _chunks(rows: Rows, size: int) -> Iterator[Rows]:
    for start in range(0, len(rows), max(1, size)):
        yield rows[start : start + max(1, size)]
