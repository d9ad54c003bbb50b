"""Trees in files answer as all points do, and cells tell what points can be reached."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutandis.geometry.cells import Cells, NearbySearch, sort_in_space
from mutandis.geometry.choose import ChosenSearch
from mutandis.geometry.index import Queries, Space
from mutandis.geometry.metric import Metric, Points
from mutandis.geometry.plain import BruteSearch
from tests.oracle import assert_equal_fields, list_near

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.geometry.index import Search


def make_space(rng: np.random.Generator, size: int, *, squared: bool, names: int) -> Space:
    coordinates = rng.integers(0, 60, (size, 2))
    codes = rng.integers(0, 3, (size, names)).astype(np.int32)
    metric = Metric(mismatch=np.full(names, 25, dtype=np.int64), unit=100.0, squared=squared)
    space, _ = Space.of(
        Points(coordinates=coordinates, codes=codes), rng.random(size) < 0.4, metric
    )
    return space


def in_cells(space: Space, size: int) -> tuple[Space, Cells]:
    order, start = sort_in_space(space.points, space.metric, size=size)
    ordered = space.take(order)
    return ordered, Cells.around(ordered.points, start)


def queries_in(rng: np.random.Generator, space: Space, number: int) -> tuple[Queries, Queries]:
    """Make centers that are rows of a space, and others, some of them far away."""
    own = rng.choice(len(space.points), number)
    inside = Queries.inside(space.points.take(own), own, space.marks[own] > 0)
    names = space.points.codes.shape[1]
    outside = Points(
        coordinates=rng.integers(-40, 100, (number, 2)),
        codes=rng.integers(0, 4, (number, names)).astype(np.int32),
    )
    return inside, Queries.outside(outside)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(40, 250),
    st.sampled_from([1, 4, 30]),
    st.sampled_from(["plain", "squared", "weighs", "missing"]),
    st.integers(0, 2),
)
def test_what_is_near_are_the_points_that_are_listed(
    seed: int, size: int, cell: int, kind: str, names: int
) -> None:
    rng = np.random.default_rng(seed)
    space = make_space(rng, size, squared=kind == "squared", names=names)
    if kind == "weighs":
        metric = Metric(mismatch=np.empty(0, np.int64), unit=100.0, weighing=CountBackwards())
        space = replace(space, metric=metric)
    elif kind == "missing":
        missing = np.array([2, -1], dtype=np.int32)[:names]
        space = replace(space, metric=replace(space.metric, missing=missing))
    ordered, cells = in_cells(space, cell)
    oracle = BruteSearch(space=ordered)
    for queries in queries_in(rng, ordered, 7):
        found = oracle.neighbourhoods(queries, (3,))
        limits, rows = found.radius[:, 0], (found.inside + found.rim)[:, 0] + 1
        check_nearby(oracle, ordered, cells, queries, limits, rows)


def check_nearby(
    search: Search,
    space: Space,
    cells: Cells,
    queries: Queries,
    limits: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Compare what is listed among near points with what is listed among all."""
    index = cells.points_near(queries.points, limits.astype(np.float64), space.metric)
    here = replace(queries, own=np.where(queries.own < 0, -1, np.searchsorted(index, queries.own)))
    places = list_near(NearbySearch(search, index), here, limits, rows)
    numbers = {n: [(int(index[p]), d) for p, d in each] for n, each in places.items()}
    assert numbers == list_near(BruteSearch(space=space), queries, limits, rows)


@pytest.mark.parametrize("kernel", ["tree", "scan"])
@pytest.mark.parametrize("names", [0, 2])
@pytest.mark.parametrize("squared", [False, True])
def test_a_tree_in_files_answers_as_all_points_do(
    kernel: str, names: int, squared: bool, tmp_path: Path
) -> None:
    kernels = pytest.importorskip("mutandis.geometry.compiled")
    rng = np.random.default_rng(names)
    space = make_space(rng, 900, squared=squared, names=names)
    ordered, cells = in_cells(space, 16)
    grown = {}
    for name, array in kernels.CompiledSearch(ordered, leaf=16, threads=2).arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
        grown[name] = np.asarray(np.load(tmp_path / f"{name}.npy", mmap_mode="c"))
    taken_up = kernels.CompiledSearch(ordered, threads=2, kernel=kernel, grown=grown)
    search = ChosenSearch.of(ordered, ordered.metric, taken_up)
    oracle = BruteSearch(space=ordered)
    for queries in queries_in(rng, ordered, 50):
        found, expected = (each.neighbourhoods(queries, (1, 20)) for each in (search, oracle))
        assert_equal_fields(found, expected)
        limits, rows = expected.radius[:, 1], (expected.inside + expected.rim)[:, 1] + 1
        within, known = (each.within(queries, limits) for each in (search, oracle))
        assert np.array_equal(within.people, known.people)
        assert np.array_equal(within.marks, known.marks)
        check_nearby(search, ordered, cells, queries, limits, rows)
    assert search.name == f"compiled {kernel}"


def test_a_search_near_one_place_loads_little() -> None:
    rng = np.random.default_rng(2)
    coordinates = rng.integers(0, 10**6, (20_000, 2))
    points = Points(coordinates=coordinates, codes=np.empty((20_000, 0), dtype=np.int32))
    metric = Metric(mismatch=np.empty(0, dtype=np.int64), unit=1e6)
    space, _ = Space.of(points, rng.random(20_000) < 0.5, metric)
    ordered, cells = in_cells(space, 100)
    near = Points(coordinates=rng.integers(0, 1000, (5, 2)), codes=np.empty((5, 0), np.int32))
    index = cells.points_near(near, np.full(5, 50_000.0), metric)
    assert 0 < len(index) < len(ordered.points) / 20


class CountBackwards:
    """Counts differences in the opposite way wherever the center has an odd coordinate."""

    def terms(self, center: Points, points: Points) -> np.ndarray:
        apart = np.abs(points.coordinates - center.coordinates)
        differs = 10 * (points.codes != center.codes).astype(np.int64)
        odd = center.coordinates[0, 0] % 2 == 1
        return np.concatenate([100 - apart if odd else apart, differs], axis=1)
