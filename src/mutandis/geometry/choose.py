"""Choose the backend. All are exact: the choice changes the time and nothing else.

Kernels are by far the fastest, but they take most of a second to load, and some ten to compile at
their first use on a machine. So what NumPy and SciPy can do in about that time is left to them. The
choice depends on the size of the problem alone, not on what the process did before: an audit that
is repeated elsewhere records the same backend.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mutandis.geometry.index import discard_progress
from mutandis.geometry.plain import BruteSearch, TreeSearch, tree_dimensions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutandis.geometry.index import (
        Neighbourhoods,
        Progress,
        Queries,
        RadiusCounts,
        Search,
        Space,
        Use,
    )
    from mutandis.geometry.metric import Metric, Points
    from mutandis.mapped import Ints, Rows

# with more coordinates SciPy's tree examines nearly every point, and a scan is cheaper
_TREE_DIMENSIONS = 40
# Seconds of work from which on kernels pay for being loaded, which takes 0.6 s: a single search of
# this size loses little by it, and every further one saves most of its time.
_WORTH_LOADING = 0.5
# Seconds, as measured: SciPy's tree per query in two dimensions and how that grows with each more,
# the tree per point it examines; a scan per query, and per point and attribute.
_TREE_QUERY, _TREE_GROWTH, _TREE_POINT = 2e-5, 1.7, 4e-8
_SCAN_QUERY, _SCAN_CELL = 1e-4, 1e-8
_EXACT = 2**53  # sums of integers up to this are exact in float64


class ChosenSearch:
    """Search with the backend that is likely to be the fastest for the queries at hand."""

    def __init__(self, space: Space, *, threads: int = -1) -> None:
        self._metric, in_place = space.metric, space.metric.in_place
        points = self._metric.place(space.points)
        self._space: Space | None = replace(space, points=points, metric=in_place)
        self._threads = threads
        self._made: dict[str, Search] = {}
        self._latest = ""

    @classmethod
    def of(cls, space: Space, metric: Metric, compiled: Search) -> ChosenSearch:
        """Take a search that is there already, of points that are where they are measured."""
        made = cls(space)
        made._metric, made._made, made._latest = metric, {"compiled": compiled}, "compiled"
        made._space = space if metric.squared else None
        return made

    @property
    def name(self) -> str:
        """The backend that answered last; empty before the first answer."""
        return self._made[self._latest].name if self._latest else ""

    def neighbourhoods(
        self, queries: Queries, ks: Sequence[int], *, progress: Progress = discard_progress
    ) -> Neighbourhoods:
        queries = self._place(queries)
        return self._backend(queries.points).neighbourhoods(queries, ks, progress=progress)

    def within(self, queries: Queries, limits: Ints) -> RadiusCounts:
        queries = self._place(queries)
        return self._backend(queries.points).within(queries, limits)

    def arrange(self, points: Points) -> Rows:
        points = self._metric.place(points)
        return self._backend(points).arrange(points)

    def visit(self, queries: Queries, limits: Ints, rows: Ints, use: Use) -> None:
        queries = self._place(queries)
        self._backend(queries.points).visit(queries, limits, rows, use)

    def _place(self, queries: Queries) -> Queries:
        """Move centers to where distances are measured."""
        if self._metric.move is None and self._metric.missing is None:
            return queries
        points = self._metric.place(queries.points)
        return replace(queries, points=self._metric.as_center(points))

    def _backend(self, centers: Points) -> Search:
        space = self._space
        if space is not None:
            self._latest = "compiled" if "compiled" in self._made else choose(space, len(centers))
            if self._latest == "compiled" and not _reaches(space, centers):
                self._latest = _without_kernels(space)
            if self._latest not in self._made:
                self._made[self._latest] = _make(self._latest, space, self._threads)
            if self._latest == "compiled" and not space.metric.squared:
                self._space = None  # kernels have their own copy, and answer from now on
        return self._made[self._latest]


def choose(space: Space, queries: int) -> str:
    """Name the backend: "brute", "tree" or "compiled"."""
    if not tree_dimensions(space.points) or space.metric.weighing is not None:
        return "brute"
    if _seconds(space, queries) > _WORTH_LOADING and _can_compile(space):
        return "compiled"
    return _without_kernels(space)


def _without_kernels(space: Space) -> str:
    return "tree" if tree_dimensions(space.points) <= _TREE_DIMENSIONS else "brute"


def _reaches(space: Space, centers: Points) -> bool:
    """Return whether float64 holds the squares of all distances from these centers exactly."""
    if not space.metric.squared:
        return True  # a center is moved into the span of the points
    here = space.points.coordinates
    low, high = here.min(axis=0), here.max(axis=0)
    far = np.maximum(np.abs(centers.coordinates - low), np.abs(centers.coordinates - high))
    farthest = (far.astype(np.float64) ** 2).sum(axis=1).max(initial=0.0)
    return bool(farthest + space.metric.mismatch.sum() <= _EXACT)


def _seconds(space: Space, queries: int) -> float:
    """Estimate how long NumPy and SciPy would take."""
    dimensions, size = tree_dimensions(space.points), len(space.points)
    if dimensions > _TREE_DIMENSIONS:
        attributes = space.points.coordinates.shape[1] + space.points.codes.shape[1]
        return float(queries * (_SCAN_QUERY + size * attributes * _SCAN_CELL))
    descent = _TREE_QUERY * _TREE_GROWTH ** (dimensions - 2)
    return float(queries * min(descent, _TREE_QUERY + size * _TREE_POINT))


def _can_compile(space: Space) -> bool:
    """Return whether kernels are available, and exact in this space."""
    try:
        from mutandis.geometry.compiled import CompiledSearch
    except ImportError:  # numba may lag behind NumPy: then slower, but just as exact
        return False
    return CompiledSearch.can_search(space)


def _make(backend: str, space: Space, threads: int) -> Search:
    if backend == "brute":
        return BruteSearch(space=space)
    if backend == "tree":
        return TreeSearch.build(space, threads=threads)
    from mutandis.geometry.compiled import CompiledSearch

    return CompiledSearch(space, threads=threads)
