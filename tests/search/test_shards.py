"""A search that loads cells as it needs them finds what a search of all points does."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutandis.search.brute import BruteSearch
from mutandis.search.choose import ChosenSearch
from mutandis.search.distance import Metric, Points
from mutandis.search.engine import Listing, Queries, Space
from mutandis.search.shards import (
    Cells,
    NearbySearch,
    ShardedSearch,
    sample_space,
    sort_in_space,
)

if TYPE_CHECKING:
    from pathlib import Path


def make_space(rng: np.random.Generator, size: int, *, squared: bool, names: int) -> Space:
    coordinates = rng.integers(0, 60, (size, 2))
    codes = rng.integers(0, 3, (size, names)).astype(np.int32)
    metric = Metric(mismatch=np.full(names, 25, dtype=np.int64), unit=100.0, squared=squared)
    space, _ = Space.of(
        Points(coordinates=coordinates, codes=codes), rng.random(size) < 0.4, metric
    )
    return space


def in_cells(space: Space, size: int, rows: int = 0) -> tuple[Space, ShardedSearch]:
    order, start = sort_in_space(space.points, space.metric, size=size)
    points = space.points.take(order)
    ordered = Space(
        points=points,
        counts=space.counts[order],
        negatives=space.negatives[order],
        metric=space.metric,
    )
    cells = Cells.around(points, start, ordered.counts)
    return ordered, ShardedSearch(ordered, cells, sample_space(ordered), rows=rows, threads=1)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(40, 250),
    st.sampled_from([1, 4, 30]),
    st.booleans(),
    st.integers(0, 2),
)
def test_cells_answer_as_all_points_do(
    seed: int, size: int, cell: int, squared: bool, names: int
) -> None:
    rng = np.random.default_rng(seed)
    space = make_space(rng, size, squared=squared, names=names)
    ordered, search = in_cells(space, cell)
    oracle = BruteSearch(space=ordered)
    # some far away, some in the space, in the order in which they happen to come
    centers = Points(
        coordinates=rng.integers(-40, 100, (17, 2)),
        codes=rng.integers(0, 4, (17, names)).astype(np.int32),
    )
    own = rng.choice(len(ordered.points), 9)
    inside = Queries(
        points=ordered.points.take(own), own=own, own_negative=ordered.negatives[own] > 0
    )
    ks = (1, 3, min(20, int(ordered.counts.sum()) - 1))
    for queries in (Queries.outside(centers), inside):
        found, expected = (each.neighbourhoods(queries, ks) for each in (search, oracle))
        for each in fields(found):
            assert np.array_equal(getattr(found, each.name), getattr(expected, each.name))
        limits = expected.radius[:, 1]
        within, known = (each.within(queries, limits) for each in (search, oracle))
        assert np.array_equal(within.people, known.people)
        assert np.array_equal(within.negatives, known.negatives)
        rows = (expected.inside + expected.rim)[:, 1] + 1
        assert listed(search, queries, limits, rows) == listed(oracle, queries, limits, rows)


def listed(
    search: ShardedSearch | BruteSearch | NearbySearch,
    queries: Queries,
    limits: np.ndarray,
    rows: np.ndarray,
) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}

    def use(chosen: np.ndarray, listing: Listing) -> None:
        for place, query in enumerate(chosen.tolist()):
            part = listing.part(slice(place, place + 1))
            pairs = zip(part.points.tolist(), part.distances.tolist(), strict=True)
            found[query] = sorted(pairs)

    search.visit(queries, limits, rows, use)
    return found


@pytest.mark.parametrize("kernel", ["tree", "scan"])
@pytest.mark.parametrize("names", [0, 2])
def test_a_tree_in_files_answers_as_all_points_do(kernel: str, names: int, tmp_path: Path) -> None:
    kernels = pytest.importorskip("mutandis.search.kernel_search")
    rng = np.random.default_rng(names)
    space = make_space(rng, 900, squared=False, names=names)
    ordered, some = in_cells(space, 16)
    grown = {}
    for name, array in kernels.CompiledSearch(ordered, leaf=16, threads=2).arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
        grown[name] = np.asarray(np.load(tmp_path / f"{name}.npy", mmap_mode="c"))
    taken_up = kernels.CompiledSearch(ordered, threads=2, kernel=kernel, grown=grown)
    search = ShardedSearch(
        ordered,
        some._cells,
        None,
        rows=0,
        threads=2,
        whole=ChosenSearch.of(ordered, ordered.metric, taken_up),
    )
    oracle = BruteSearch(space=ordered)
    own = rng.choice(len(ordered.points), 40)
    inside = Queries(
        points=ordered.points.take(own), own=own, own_negative=ordered.negatives[own] > 0
    )
    outside = Queries.outside(
        Points(
            coordinates=rng.integers(-40, 100, (60, 2)),
            codes=rng.integers(0, 4, (60, names)).astype(np.int32),
        )
    )
    for queries in (outside, inside):
        found, expected = (each.neighbourhoods(queries, (1, 20)) for each in (search, oracle))
        for each in fields(found):
            assert np.array_equal(getattr(found, each.name), getattr(expected, each.name))
        limits, rows = expected.radius[:, 1], (expected.inside + expected.rim)[:, 1] + 1
        within, known = (each.within(queries, limits) for each in (search, oracle))
        assert np.array_equal(within.people, known.people)
        everyone = listed(oracle, queries, limits, rows)
        assert listed(search, queries, limits, rows) == everyone
        few = queries.take(np.arange(5))
        index, near = search.near(few, limits[:5])
        assert len(index) < len(ordered.points)
        here = replace(few, own=np.where(few.own < 0, -1, np.searchsorted(index, few.own)))
        places = listed(near, here, limits[:5], rows[:5])
        numbers = {n: [(int(index[p]), d) for p, d in each] for n, each in places.items()}
        assert numbers == {number: everyone[number] for number in range(5)}
    assert search.name == f"compiled {kernel}"


@pytest.mark.parametrize("size", [1, 7, 100])
def test_sorting_in_space_keeps_every_point_and_bounds_cells(size: int) -> None:
    rng = np.random.default_rng(1)
    space = make_space(rng, 200, squared=False, names=1)
    order, start = sort_in_space(space.points, space.metric, size=size)
    assert sorted(order.tolist()) == list(range(len(space.points)))
    assert start[0] == 0
    assert start[-1] == len(order)
    assert 0 < np.diff(start).min() <= np.diff(start).max() <= size


def test_a_search_near_one_place_loads_little() -> None:
    rng = np.random.default_rng(2)
    coordinates = rng.integers(0, 10**6, (20_000, 2))
    points = Points(coordinates=coordinates, codes=np.empty((20_000, 0), dtype=np.int32))
    metric = Metric(mismatch=np.empty(0, dtype=np.int64), unit=1e6)
    space, _ = Space.of(points, rng.random(20_000) < 0.5, metric)
    ordered, search = in_cells(space, 100)
    near = Points(coordinates=rng.integers(0, 1000, (5, 2)), codes=np.empty((5, 0), np.int32))
    index, _ = search.near(Queries.outside(near), np.full(5, 50_000))
    assert 0 < len(index) < len(ordered.points) / 20


class CountBackwards:
    """Counts differences in the opposite way wherever the center has an odd coordinate."""

    def terms(self, center: Points, points: Points) -> np.ndarray:
        apart = np.abs(points.coordinates - center.coordinates)
        differs = 10 * (points.codes != center.codes).astype(np.int64)
        odd = center.coordinates[0, 0] % 2 == 1
        return np.concatenate([100 - apart if odd else apart, differs], axis=1)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(60, 250), st.booleans())
def test_cells_answer_so_where_centers_weigh_and_where_names_are_missing(
    seed: int, size: int, weighs: bool
) -> None:
    rng = np.random.default_rng(seed)
    space = make_space(rng, size, squared=False, names=2)
    if weighs:
        metric = Metric(mismatch=np.empty(0, np.int64), unit=100.0, weighing=CountBackwards())
    else:
        metric = replace(space.metric, missing=np.array([2, -1], dtype=np.int32))
    ordered, search = in_cells(replace(space, metric=metric), 4)
    oracle = BruteSearch(space=ordered)
    own = rng.choice(len(ordered.points), 20)
    inside = Queries(
        points=ordered.points.take(own), own=own, own_negative=ordered.negatives[own] > 0
    )
    ks = (1, 3, 20)
    for queries in (Queries.outside(ordered.points.take(own)), inside):
        found, expected = (each.neighbourhoods(queries, ks) for each in (search, oracle))
        for each in fields(found):
            assert np.array_equal(getattr(found, each.name), getattr(expected, each.name))
        limits, rows = expected.radius[:, 1], (expected.inside + expected.rim)[:, 1] + 1
        assert listed(search, queries, limits, rows) == listed(oracle, queries, limits, rows)
