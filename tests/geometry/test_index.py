"""Spaces, queries, grouped rows, and what the tree does to be exact within bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mutandis.geometry import plain as tree
from mutandis.geometry.compiled import CompiledSearch
from mutandis.geometry.index import (
    Listing,
    Queries,
    Space,
    discard_progress,
    find_neighbourhoods,
    find_within,
    group_rows,
)
from mutandis.geometry.metric import Metric, Points
from mutandis.geometry.plain import BruteSearch, TreeSearch
from tests.oracle import assert_equal_fields, list_near

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from mutandis.geometry.index import Neighbourhoods, Progress, RadiusCounts, Search


PLAIN = Metric(mismatch=np.empty(0, dtype=np.int64), unit=1.0)


def line(*coordinates: int) -> Points:
    """Give points on a line."""
    size = len(coordinates)
    return Points(
        coordinates=np.array(coordinates, dtype=np.int64).reshape(size, 1),
        codes=np.empty((size, 0), dtype=np.int32),
    )


def space_of(points: Points, metric: Metric = PLAIN) -> Space:
    negative = np.arange(len(points)) % 2 == 0
    return Space.of(points, negative, metric)[0]


def backends(space: Space) -> list[Search]:
    return [
        BruteSearch(space=space),
        TreeSearch.build(space, threads=1),
        CompiledSearch(space, threads=2, kernel="tree"),
        CompiledSearch(space, threads=2, kernel="scan"),
    ]


@dataclass
class Spy:
    """A search that counts what it is asked."""

    inner: BruteSearch
    asked: list[int] = field(default_factory=list)
    name: str = "spy"

    def neighbourhoods(
        self, queries: Queries, ks: Sequence[int], *, progress: Progress = discard_progress
    ) -> Neighbourhoods:
        self.asked.append(len(queries))
        return self.inner.neighbourhoods(queries, ks, progress=progress)

    def within(self, queries: Queries, limits: NDArray[np.int64]) -> RadiusCounts:
        self.asked.append(len(queries))
        return self.inner.within(queries, limits)

    def arrange(self, points: Points) -> NDArray[np.intp]:
        return self.inner.arrange(points)

    def visit(
        self,
        queries: Queries,
        limits: NDArray[np.int64],
        rows: NDArray[np.int64],
        use: Callable[[NDArray[np.intp], Listing], None],
    ) -> None:
        self.inner.visit(queries, limits, rows, use)


def test_a_space_counts_the_rows_on_each_point() -> None:
    space, standing = Space.of(line(7, 5, 7, 7), np.array([True, True, False, True]), metric=PLAIN)
    assert space.points.coordinates[:, 0].tolist() == [7, 5]
    assert space.counts.tolist() == [3, 1]
    assert space.marks[:, 0].tolist() == [2, 1]
    assert standing.tolist() == [0, 1, 0, 0]


def test_repeated_queries_are_searched_once() -> None:
    space = space_of(line(1, 2, 5))
    spy = Spy(BruteSearch(space=space))
    queries = Queries.outside(line(4, 0, 4, 4))
    found = find_neighbourhoods(spy, queries, [1, 2])
    assert spy.asked == [2]
    assert_equal_fields(found, BruteSearch(space=space).neighbourhoods(queries, [1, 2]))
    # the two at 4 who have the same limit are one query, the third at 4 is another
    assert find_within(spy, queries, np.array([1, 1, 1, 2])).people.tolist() == [1, 1, 1, 2]
    assert spy.asked == [2, 3]


def test_queries_from_one_point_differ_by_who_asks() -> None:
    """Two people stand on the same point, one of them refused: each is without herself."""
    space, standing = Space.of(line(3, 3, 8), np.array([True, False, False]), PLAIN)
    queries = Queries.inside(
        line(3, 3, 3),
        np.array([standing[0], standing[1], -1]),
        np.array([True, False, False]),
    )
    for search in backends(space):
        found = find_neighbourhoods(search, queries, [1])
        assert found.rim[:, 0].tolist() == [1, 1, 2]
        assert found.marks_rim[:, 0, 0].tolist() == [0, 1, 1]


def test_no_queries_give_no_answers() -> None:
    space = space_of(line(1, 2))
    for search in backends(space):
        assert find_neighbourhoods(search, Queries.outside(line()), [1]).radius.shape == (0, 1)


@pytest.mark.parametrize("center", [-5, 3, 2**58])
def test_one_point_is_enough(center: int) -> None:
    space = space_of(line(3, 3, 3))
    for search in backends(space):
        found = find_neighbourhoods(search, Queries.outside(line(center)), [1, 3])
        assert found.radius[0].tolist() == [abs(center - 3)] * 2
        assert found.rim[0].tolist() == [3, 3]


def test_progress_counts_complainants_not_queries() -> None:
    space = space_of(line(*range(50)))
    queries = Queries.outside(line(*(x % 7 for x in range(45))))
    for search in backends(space):
        told: list[int] = []
        find_neighbourhoods(search, queries, [3], progress=told.append)
        assert sum(told) == 45
        assert min(told) >= 0


def test_the_tree_asks_for_more_until_no_tie_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four hundred distinct points at the same distance: k + 2 candidates cannot hold them."""
    ring = np.array([[i, 200 - i] for i in range(200)] + [[-i, i - 200] for i in range(1, 201)])
    points = Points(coordinates=ring, codes=np.empty((400, 0), np.int32))
    space = space_of(points)
    widths: list[int] = []
    measure = TreeSearch._measure

    def spying(self: TreeSearch, centers: Points, width: int) -> Any:
        widths.append(width)
        return measure(self, centers, width)

    monkeypatch.setattr(TreeSearch, "_measure", spying)
    center = Points(coordinates=np.zeros((1, 2), np.int64), codes=np.empty((1, 0), np.int32))
    found = TreeSearch.build(space, threads=1).neighbourhoods(Queries.outside(center), [3])
    assert (found.radius[0, 0], found.inside[0, 0], found.rim[0, 0]) == (200, 0, 400)
    assert (widths[0], widths[-1]) == (5, 400)


def test_points_that_floats_cannot_tell_apart_are_told_apart() -> None:
    """Neighbouring integers at 2**58 are one float, and still different distances."""
    far = 2**58
    assert float(far) == float(far + 1)
    space = space_of(line(0, 1, 2, 3, 4, 5))
    found = TreeSearch.build(space, threads=1).neighbourhoods(Queries.outside(line(far)), [1, 2, 6])
    assert found.radius[0].tolist() == [far - 5, far - 4, far]
    assert found.rim[0].tolist() == [1, 1, 1]


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_batches_bound_the_memory_and_change_nothing(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    points = Points(
        coordinates=rng.integers(0, 12, (300, 2)), codes=rng.integers(0, 3, (300, 1)).astype("i4")
    )
    metric = Metric(mismatch=np.array([5]), unit=1.0)
    space = space_of(points, metric)
    queries = Queries.outside(points)
    expected = BruteSearch(space=space).neighbourhoods(queries, [1, 10])
    held: list[int] = []
    measure = Metric.to_candidates

    def measuring(self: Metric, centers: Points, points: Points, candidates: Any) -> Any:
        held.append(candidates.size)
        return measure(self, centers, points, candidates)

    monkeypatch.setattr(Metric, "to_candidates", measuring)
    monkeypatch.setattr(tree, "_BATCH", batch)
    assert_equal_fields(
        TreeSearch.build(space, threads=1).neighbourhoods(queries, [1, 10]), expected
    )
    # one query at a time at least, and never more than the batch beyond that
    assert max(held) <= max(batch, len(space.points))


def test_a_rare_level_keeps_its_distance() -> None:
    """Two different names differ by the full mismatch, whichever they are."""
    codes = np.arange(70, dtype=np.int32).reshape(70, 1)
    points = Points(coordinates=np.zeros((70, 0), dtype=np.int64), codes=codes)
    space = space_of(points, Metric(mismatch=np.array([9]), unit=9.0))
    unseen = Points(coordinates=np.zeros((2, 0), np.int64), codes=np.array([[69], [70]], "i4"))
    found = TreeSearch.build(space, threads=1).neighbourhoods(Queries.outside(unseen), [1, 2])
    assert found.radius.tolist() == [[0, 9], [9, 9]]
    assert found.rim.tolist() == [[1, 69], [70, 70]]


def test_points_without_coordinates_are_one_group() -> None:
    nothing = Points(coordinates=np.empty((3, 0), np.int64), codes=np.empty((3, 0), np.int32))
    first, group = group_rows(nothing)
    assert (first.tolist(), group.tolist()) == ([0], [0, 0, 0])


MISMATCH = 3


def points_of(cells: list[tuple[int, int]]) -> Points:
    return Points(
        coordinates=np.array([[x] for x, _ in cells], dtype=np.int64),
        codes=np.array([[code] for _, code in cells], dtype=np.int32),
    )


def search_of(name: str, space: Space) -> Search:
    if name == "brute":
        return BruteSearch(space=space)
    if name == "compiled":
        return CompiledSearch(space, threads=2)
    return TreeSearch.build(space, threads=1)


@pytest.mark.parametrize("backend", ["brute", "tree", "compiled"])
@settings(max_examples=60)
@given(
    cells=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1)), min_size=1, max_size=60),
    limits=st.lists(st.integers(-1, 14), min_size=60, max_size=60),
    scale=st.sampled_from([1, 10**15]),
)
def test_counts_are_those_of_a_plain_loop(
    backend: str, cells: list[tuple[int, int]], limits: list[int], scale: int
) -> None:
    cells = [(x * scale, code) for x, code in cells]
    negative = np.array([index % 3 == 0 for index in range(len(cells))])
    metric = Metric(mismatch=np.array([MISMATCH * scale]), unit=float(scale))
    space, standing = Space.of(points_of(cells), negative, metric)
    # kernels are not asked where float64 does not hold every distance
    assume(backend != "compiled" or CompiledSearch.can_search(space))
    queries = Queries.inside(points_of(cells), standing, negative)
    reach = np.array(limits[: len(cells)]) * scale
    found = find_within(search_of(backend, space), queries, reach)
    for me, (x, code) in enumerate(cells):
        near = [
            (abs(x - other_x) + MISMATCH * scale * (code != other_code), bool(negative[other]))
            for other, (other_x, other_code) in enumerate(cells)
            if other != me
        ]
        near = [(apart, refused) for apart, refused in near if apart <= reach[me]]
        assert found.people[me] == len(near)
        assert found.marks[me, 0] == sum(refused for _, refused in near)
        assert found.farthest[me] == max((apart for apart, _ in near), default=-1)


def test_a_tree_that_was_asked_before_answers_as_a_new_one() -> None:
    """The last candidates are used again for the same centers alone, and only if they are enough.

    Many points share a distance, so that some answers need more than the first candidates.
    """
    rng = np.random.default_rng(5)
    points = Points(
        coordinates=rng.integers(0, 9, size=(300, 2)),
        codes=rng.integers(0, 2, size=(300, 1)).astype(np.int32),
    )
    space = space_of(points, Metric(mismatch=np.array([3]), unit=1.0))
    some = [Queries.outside(points.take(np.arange(start, start + 40))) for start in (0, 40)]
    asked = TreeSearch.build(space, threads=1)
    for which, k, limit in rng.integers([0, 1, 0], [2, 70, 8], size=(80, 3)).tolist():
        queries, limits = some[which], np.full(40, limit)
        new = TreeSearch.build(space, threads=1)
        assert_equal_fields(asked.neighbourhoods(queries, [k]), new.neighbourhoods(queries, [k]))
        assert list_near(asked, queries, limits, k) == list_near(
            BruteSearch(space=space), queries, limits, k
        )
