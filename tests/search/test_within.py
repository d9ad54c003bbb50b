"""People within a limit: every backend against counting rows one by one."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mutandis.search.brute import BruteSearch
from mutandis.search.compiled import CompiledSearch
from mutandis.search.distance import Metric, Points
from mutandis.search.engine import Queries, Space, find_within
from mutandis.search.kd_tree import TreeSearch

if TYPE_CHECKING:
    from mutandis.search.engine import Search

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
    queries = Queries(points=points_of(cells), own=standing, own_negative=negative)
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
        assert found.negatives[me] == sum(refused for _, refused in near)
        assert found.farthest[me] == max((apart for apart, _ in near), default=-1)


def test_a_tree_asks_for_more_until_nobody_is_missing() -> None:
    # 300 distinct points, all within the limit: far more than are looked at first
    space, _ = Space.of(
        points_of([(x, 0) for x in range(300)]),
        np.zeros(300, dtype=np.bool_),
        Metric(mismatch=np.array([MISMATCH]), unit=1.0),
    )
    queries = Queries.outside(points_of([(0, 0), (0, 0)]))
    found = TreeSearch.build(space, threads=1).within(queries, np.array([298, 299]))
    assert found.people.tolist() == [299, 300]


def test_a_limit_is_read_exactly() -> None:
    # a third of a unit of 3 is 1; in floating point 0.1 * 30 is more than 3 by a bit or less
    assert Metric(mismatch=np.array([1]), unit=30.0).limit(Fraction("0.1")) == 3
    assert Metric(mismatch=np.array([1]), unit=30.0).limit(Fraction("0.0999")) == 2
    exact = Metric(mismatch=np.array([1]), unit=10 / 3, exact_unit=Fraction(10, 3))
    assert exact.limit(Fraction("0.3")) == 1
    assert exact.limit(Fraction(10**400)) == 2**63 - 1
