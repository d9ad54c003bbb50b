"""Search by compiled kernels: a tree with boxes, or a scan of bytes where boxes prune nothing.

Which of the two is faster depends on the data, not on the number of columns. So a few of the points
go down the tree first, and the points they had to examine are counted: counted, not timed, so that
the same table is always searched in the same way. Both are exact.

Queries run in chunks, in the order of the tree, on as many threads as asked for. No query's result
depends on another, so neither chunks nor threads can change an answer.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from math import isqrt
from os import cpu_count
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mutandis.geometry.index import (
    Listing,
    Neighbourhoods,
    Queries,
    RadiusCounts,
    discard_progress,
)
from mutandis.geometry.kernels import descent, scan
from mutandis.geometry.kernels.bounds import Costs, choose_signs, level_bits, slants_of
from mutandis.geometry.kernels.reservoir import HALF, ONE_PERSON, Answers
from mutandis.geometry.kernels.steps import MOST_ATTRIBUTES, Steps, take_steps
from mutandis.geometry.kernels.tree import (
    Boxes,
    Exact,
    Grid,
    Tree,
    boxes_over,
    exact_in_floats,
    exact_rows,
    grow,
)
from mutandis.mapped import empty

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.geometry.index import Progress, Space, Use
    from mutandis.geometry.kernels.descent import KernelQueries
    from mutandis.geometry.metric import Points
    from mutandis.mapped import Ints, Rows

LEAF = 384  # points in a leaf: they are filtered in the time that another level of boxes would take
_CHUNK = 2048  # queries that a thread answers at a time
_PILOT = 64  # points that go first, to measure how much of the space the tree has to examine
_SCAN_FROM = 0.8  # a scan takes about a fifth of the time per point that the tree does
# one point in 32 is in the sample that guesses radii
_SAMPLE_SHARE, _SMALLEST_SAMPLE = 32, 1024
_LARGEST_RANK = 256  # a guess from further down than this would take longer than it saves
# points that are listed at a time, and whose people are noted at a time
_LISTED, _AT_ONCE = 1 << 21, 1 << 16
_EXACT = 2**53  # no distance among the points is larger, so a limit need not be


class CompiledSearch:
    """Search with kernels that numba compiles; see `kernels/` for how they work.

    `kernel` ("tree" or "scan") overrides the choice by the data; `leaf` is how many points a leaf
    of the tree may hold; `grown` is what `arrays` returns of a search of the same space, so that no
    tree need be built.
    """

    def __init__(
        self,
        space: Space,
        *,
        threads: int = -1,
        kernel: str | None = None,
        leaf: int = LEAF,
        grown: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        self._threads = threads if threads > 0 else cpu_count() or 1
        self._kernel = kernel
        self.name = "compiled tree"
        self._squared, self._mismatch = space.metric.squared, space.metric.mismatch
        self._costs = Costs(self._mismatch.astype(np.float64), (2,) if self._squared else ())
        self._arranged: tuple[Points, Rows] | None = None  # last searched for
        # until it is settled which kernel reads them
        self._given: Points | None = space.points
        self._grid: Grid | None = None
        if grown is None:
            self._grow(space, leaf)
        else:
            self._take_up(grown)

    def _grow(self, space: Space, leaf: int) -> None:
        points = space.points
        self._low, self._high = points.coordinates.min(axis=0), points.coordinates.max(axis=0)
        self._signs = choose_signs(points.coordinates)
        self._order = empty(len(points), np.int32)
        self._order[:] = np.arange(len(points), dtype=np.int32)
        # sides of boxes are compared with what names cost: for squares, with its root
        sides = space.metric.lengths(self._mismatch)
        self._tree = grow(self._points, sides, self._order, leaf=leaf, threads=self._threads)
        self._crowd, counted = empty(len(points), np.int64), space.counted
        for start in range(0, len(points), _AT_ONCE):
            some = self._order[start : start + _AT_ONCE]
            self._crowd[start : start + _AT_ONCE] = (space.counts[some] << HALF) + counted[some]

    def _take_up(self, grown: Mapping[str, NDArray[Any]]) -> None:
        self._low, self._high, self._signs = (grown[name] for name in ("low", "high", "signs"))
        self._order, self._place, self._crowd = (grown[n] for n in ("order", "place", "crowd"))
        boxes = Boxes(*(grown[f"box-{name}"] for name in Boxes._fields))
        self._tree = Tree(grown["start"], grown["stop"], grown["right"], boxes)
        self._exact = Exact(grown["exact"], self._crowd, self._costs)
        self._steps = Steps(*(grown[f"step-{name}"] for name in Steps._fields))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what the search is made of, as arrays by name."""
        start, stop, right, boxes = self._tree
        return {
            "low": self._low,
            "high": self._high,
            "signs": self._signs,
            "order": self._order,
            "place": self._place,
            "crowd": self._crowd,
            "start": start,
            "stop": stop,
            "right": right,
            **{f"box-{name}": each for name, each in boxes._asdict().items()},
            "exact": self._exact.points,
            **{f"step-{name}": each for name, each in self._steps._asdict().items()},
        }

    @staticmethod
    def can_search(space: Space) -> bool:
        """Return whether the kernels are exact in this space, and have something to measure."""
        points, metric = space.points, space.metric
        return bool(
            0 < len(points) <= space.counts.sum() < 2 ** (HALF - 1)
            and 0 < points.coordinates.shape[1] + points.codes.shape[1] <= MOST_ATTRIBUTES
            and exact_in_floats(points.coordinates, metric.mismatch, squared=metric.squared)
        )

    def neighbourhoods(
        self, queries: Queries, ks: Sequence[int], *, progress: Progress = discard_progress
    ) -> Neighbourhoods:
        found = Neighbourhoods.empty(len(queries), len(ks))
        # kernels answer for rising ks
        columns = np.argsort(ks, kind="stable")
        rising = np.asarray(ks, dtype=np.int64)[columns]
        back = np.argsort(columns, kind="stable")
        self._arranged = None
        order = self._in_tree_order(queries)
        if (queries.own < 0).all():  # others have a place in the tree
            self._arranged = (queries.points, order)
        scans = self._wants_scan(rising)

        def work(rows: Rows) -> None:
            overflow, centers = self._centers(queries.take(rows))
            answers = self._scan(centers, rising) if scans else self._descend(centers, rising)[0]
            radius, inside, marks, rim, marks_rim = (part[:, back] for part in answers)
            here = Neighbourhoods(
                radius=radius + overflow[:, None],
                inside=inside,
                rim=rim,
                marks_inside=marks[:, :, np.newaxis],
                marks_rim=marks_rim[:, :, np.newaxis],
            )
            found.put(rows, here)

        self._in_chunks(work, order, progress)
        return found

    def within(self, queries: Queries, limits: Ints) -> RadiusCounts:
        found = RadiusCounts.empty(len(queries))

        def work(rows: Rows) -> None:
            overflow, centers = self._centers(queries.take(rows))
            left = np.minimum(limits[rows] - overflow, _EXACT).astype(np.float64)
            counted = _room_for_answers(len(rows), 1)
            descent.within_in_tree(self._tree, self._steps, self._exact, centers, left, counted)
            people, marks = counted.inside[:, 0], counted.marks_inside
            farthest = np.where(people > 0, counted.radius[:, 0] + overflow, -1)
            found.put(rows, RadiusCounts(people=people, marks=marks, farthest=farthest))

        self._in_chunks(work, self._in_tree_order(queries), discard_progress)
        return found

    def arrange(self, points: Points) -> Rows:
        if self._arranged is not None and self._arranged[0] is points:
            return self._arranged[1]
        return self._in_tree_order(Queries.outside(points))

    def visit(self, queries: Queries, limits: Ints, rows: Ints, use: Use) -> None:
        capacity = np.minimum(rows, len(self._order))

        def work(chunk: Rows) -> None:
            # each part lists no more than fits into the memory
            cuts = np.flatnonzero(np.diff(np.cumsum(capacity[chunk]) // _LISTED)) + 1
            for part in np.split(chunk, cuts):
                use(part, self._list(queries.take(part), limits[part], capacity[part]))

        # rows of the space have a place in the tree; others come as `arrange` has put them
        order = np.arange(len(queries))
        if (queries.own >= 0).all():
            order = np.argsort(self._place[queries.own], kind="stable")
        self._in_chunks(work, order, discard_progress)

    def _list(self, queries: Queries, limits: Ints, capacity: Ints) -> Listing:
        overflow, centers = self._centers(queries)
        left = np.minimum(limits - overflow, _EXACT).astype(np.float64)
        # a point stands for at least one row; behind the last one there is a spare
        points = np.empty(int(capacity.sum()) + 1, dtype=np.int32)
        distances = np.empty(len(points), dtype=np.int64)
        start = np.zeros(len(limits) + 1, dtype=np.intp)
        listing = descent.TreeListing(self._order, overflow, start, points, distances)
        descent.list_in_tree(self._tree, self._steps, self._exact, centers, left, listing)
        return Listing(start=start, points=points[: start[-1]], distances=distances[: start[-1]])

    def _centers(self, queries: Queries) -> tuple[Ints, KernelQueries]:
        """Move queries into the span of the points; return how far each of them was moved.

        Where distances are squared, they stay: the move would not shorten all distances alike.
        """
        points = queries.points
        inside = points.coordinates
        if not self._squared:
            inside = np.clip(inside, self._low, self._high)
        overflow = np.abs(points.coordinates - inside).sum(axis=1, dtype=np.int64)
        values = np.concatenate([inside - self._low, points.codes], axis=1, dtype=np.float64)
        place = np.full(len(queries), -1, dtype=np.int64)
        inside_space = queries.own >= 0
        if inside_space.any():
            place[inside_space] = self._place[queries.own[inside_space]]
        slants = slants_of(inside, self._low, self._signs).astype(np.float64)
        oneself = ONE_PERSON + queries.own_marks[:, 0]
        bits = level_bits(points.codes)
        return overflow, descent.KernelQueries(values, slants, bits, place, oneself)

    @property
    def _points(self) -> Grid:
        if self._grid is None:
            if self._given is None:
                raise RuntimeError("the points were released in favour of the blocks of the tree")
            # kernels are compiled for one array layout: C order, writeable
            coordinates = np.require(self._given.coordinates, requirements=["C", "W"])
            codes = np.require(self._given.codes, requirements=["C", "W"])
            slants = slants_of(coordinates, self._low, self._signs)
            low = np.concatenate([self._low, np.zeros(slants.shape[1], dtype=np.int64)])
            self._grid = Grid(coordinates, slants, codes, low)
        return self._grid

    @cached_property
    def _place(self) -> NDArray[np.int32]:
        """The position of each point in the order of the tree."""
        place = empty(len(self._order), np.int32)
        place[self._order] = np.arange(len(self._order), dtype=np.int32)
        return place

    def _in_tree_order(self, queries: Queries) -> Rows:
        """Sort queries by leaf: neighbours take the same path, through a warm cache."""
        # in as few bytes as possible: numbers of 16 bits are sorted several times as fast
        leaf = np.empty(len(queries), dtype=np.min_scalar_type(len(self._tree.start)))

        def work(rows: Rows) -> None:
            centers = self._centers(queries.take(rows))[1]
            leaf[rows] = descent.homes(self._tree, self._costs, centers)

        rows = np.arange(len(queries))
        if len(queries) <= 4 * _CHUNK:
            work(rows)  # done before threads would have started
        else:
            self._in_chunks(work, rows, discard_progress)
        return np.argsort(leaf, kind="stable")

    def _in_chunks(self, work: Callable[[Rows], None], order: Rows, progress: Progress) -> None:
        """Work on the queries chunk by chunk, on all threads, and report progress."""
        size = max(1, min(_CHUNK, -(-len(order) // self._threads)))
        chunks = [order[start : start + size] for start in range(0, len(order), size)]
        if len(chunks) <= 1 or self._threads == 1:
            for chunk in chunks:
                work(chunk)
                progress(len(chunk))
            return
        with ThreadPoolExecutor(self._threads) as pool:
            try:
                for chunk, _ in zip(chunks, pool.map(work, chunks), strict=True):
                    progress(len(chunk))
            except BaseException:
                # an interrupt does not wait for chunks whose answers are discarded
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    # --- the tree ---

    @cached_property
    def _steps(self) -> Steps:
        # a mask has 64 bits; where there are more levels, a bit stands for several
        is_told = self._points.codes.max(axis=0, initial=0) < 64
        return take_steps(self._tree, self._exact, is_told)

    def _descend(self, centers: KernelQueries, ks: Ints) -> tuple[Answers, int]:
        """Answer from the tree, and count the points that were examined."""
        answers = _room_for_answers(len(centers.values), len(ks))
        examined = descent.nearest_in_tree(
            self._tree, self._steps, self._exact, centers, ks, answers
        )
        if (answers.radius < 0).any():
            raise RuntimeError("the search found fewer rows than there are: please report this")
        return answers, examined

    def _wants_scan(self, ks: Ints) -> bool:
        """Send some of the points themselves down the tree, and see whether it prunes enough.

        So it depends on the space alone, and neither on queries nor on the number of processes.
        """
        if self._kernel is None:
            size = len(self._order)
            few = self._order[np.linspace(0, size - 1, min(_PILOT, size)).astype(np.intp)]
            points = cast("Points", self._given).take(few)
            _, examined = self._descend(self._centers(Queries.outside(points))[1], ks)
            self._kernel = "scan" if examined > _SCAN_FROM * len(few) * size else "tree"
        self.name = f"compiled {self._kernel}"
        # one copy of the points is enough: the one that the kernel reads
        if self._kernel == "scan":
            self.__dict__.pop("_steps", None)
        elif self._steps.values.size:
            self._grid = self._given = None
        return self._kernel == "scan"

    # --- the scan ---

    @cached_property
    def _quantum(self) -> int:
        spans = (self._high - self._low).max(initial=0)
        if self._squared:
            # as many bytes as leave room for the sum of their squares
            largest = isqrt(scan.FARTHEST // (len(self._low) + len(self._mismatch)))
            root = isqrt(int(self._mismatch.max(initial=0))) + 1
            return int(max(spans, root)) // largest + 1
        return int(max(spans, self._mismatch.max(initial=0))) // scan.LARGEST_BYTE + 1

    @cached_property
    def _bytes(self) -> scan.Bytes:
        step = max(1, len(self._order) // max(_SMALLEST_SAMPLE, len(self._order) // _SAMPLE_SHARE))
        sample = np.ascontiguousarray(self._order[::step])
        return scan.Bytes(
            scan.pack(self._points, self._order, self._quantum),
            boxes_over(self._points, self._order, scan.BLOCK),
            scan.pack(self._points, sample, self._quantum),
            len(sample),
            self._quantum,
            (self._mismatch // self._quantum**2).astype(np.uint16)
            if self._squared
            else (self._mismatch // self._quantum).astype(np.uint8),
            self._costs.squares,
        )

    @cached_property
    def _exact(self) -> Exact:
        return Exact(exact_rows(self._points, self._order), self._crowd, self._costs)

    def _scan(self, centers: KernelQueries, ks: Ints) -> Answers:
        answers = _room_for_answers(len(centers.values), len(ks))
        self._scan_into(answers, centers, ks, rank=self._rank(int(ks[-1])))
        again = np.flatnonzero(answers.radius[:, 0] < 0)
        if len(again):
            few = descent.KernelQueries._make(part[again] for part in centers)
            corrected = _room_for_answers(len(again), len(ks))
            self._scan_into(corrected, few, ks, rank=-1)
            for whole, part in zip(answers, corrected, strict=True):
                whole[again] = part
        return answers

    def _scan_into(self, answers: Answers, centers: KernelQueries, ks: Ints, *, rank: int) -> None:
        numbers = len(self._low)
        inside = centers.values[:, :numbers]
        if self._squared:
            inside = np.clip(inside, 0, self._high - self._low)
        steps = inside.astype(np.int64) // self._quantum
        names = centers.values[:, numbers:].astype(np.int64) & scan.LARGEST_BYTE
        scan.scan_blocks(
            self._bytes,
            self._exact,
            centers,
            np.concatenate([steps, names], axis=1).astype(np.uint8),
            ks,
            rank,
            scan.turns_for(int(ks[-1]), rank),
            answers,
        )

    def _rank(self, k: int) -> int:
        """Choose the rank in the sample that is hardly ever nearer than the k-th nearest row."""
        expected = k * self._bytes.sampled / len(self._order)
        rank = int(np.ceil(expected + 3 * np.sqrt(expected) + 2))
        return rank if rank < min(self._bytes.sampled, _LARGEST_RANK) else -1


def _room_for_answers(queries: int, ks: int) -> Answers:
    return Answers(*(np.zeros((queries, ks), dtype=np.int64) for _ in Answers._fields))
