"""The compiled kernels against `brute`, on tables large enough for many leaves and blocks."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutandis.engine.tally import sum_nearest
from mutandis.geometry import compiled as compiled_search
from mutandis.geometry.compiled import LEAF, CompiledSearch
from mutandis.geometry.index import Queries, Space, find_neighbourhoods, find_within
from mutandis.geometry.kernels import reservoir, scan
from mutandis.geometry.metric import Metric, Points
from mutandis.geometry.plain import BruteSearch
from tests.oracle import assert_equal_fields

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from mutandis.geometry.index import Ties

KERNELS = ("tree", "scan")
UNIT = 2**40


@dataclass(frozen=True)
class Shape:
    """What a column of a simulated space is like: numbers up to `span`, or names.

    `tail` puts a few values so many times farther out; with a `slope`, numbers go together.
    """

    span: int = 0
    levels: int = 0
    tail: int = 1
    slope: int = 0


SHAPES = {
    "continuous": [Shape(span=UNIT)] * 3,
    "integer lattice": [Shape(span=5), Shape(span=9)],
    "heavy duplicates": [Shape(span=2), Shape(levels=2)],
    "constant columns": [Shape(span=0), Shape(span=7), Shape(levels=1)],
    "one nominal only": [Shape(levels=9)],
    "70 levels": [Shape(levels=70), Shape(span=4)],
    "300 levels": [Shape(levels=300), Shape(levels=2)],
    "many columns": [Shape(span=UNIT)] * 9 + [Shape(levels=4)] * 5,
    "long tails": [Shape(span=UNIT // 2**20, tail=2**20)] * 2 + [Shape(levels=3)],
    "going together": [Shape(span=UNIT // 8, slope=slope) for slope in (7, -7, 6, 5, -3)],
    "going together, with names": [Shape(span=9, slope=slope) for slope in (4, 9, -7, 5)]
    + [Shape(levels=4)] * 2,
}


def simulate(
    shapes: list[Shape], *, size: int, seed: int, centers: int = 25, squared: bool = False
) -> Any:
    """Give a space, queries of its own people, and queries from outside, some far out."""
    rng = np.random.default_rng(seed)
    numbers = [shape for shape in shapes if not shape.levels]
    names = [shape for shape in shapes if shape.levels]

    def points(rows: int, *, stretch: int) -> Points:
        together = rng.random(rows)
        coordinates = [
            rng.integers(-stretch * shape.span, shape.span * (1 + stretch) + 1, rows)
            * np.where(rng.random(rows) < 0.02, shape.tail, 1)
            + (shape.slope * shape.span * together).astype(np.int64)
            for shape in numbers
        ]
        if squared:  # sums of squares have the room that sums of numbers have otherwise
            coordinates = [
                each // (2**18 if shape.span > 99 else 1)
                for shape, each in zip(numbers, coordinates, strict=True)
            ]
        codes = [rng.integers(0, shape.levels + 3 * stretch, rows) for shape in names]
        return Points(
            coordinates=np.array(coordinates, dtype=np.int64).reshape(len(numbers), rows).T.copy(),
            codes=np.array(codes, dtype=np.int32).reshape(len(names), rows).T.copy(),
        )

    here = points(size, stretch=0)
    cost = max([shape.span for shape in numbers], default=0) or 3
    mismatch = rng.integers(1, cost + 1, len(names))
    if squared:
        mismatch = (mismatch // (2**18 if cost > 99 else 1)) ** 2 + rng.integers(1, 5, len(names))
    negative = rng.random(size) < 0.4
    metric = Metric(mismatch=mismatch, unit=float(cost), squared=squared)
    space, standing = Space.of(here, negative, metric)
    chosen = rng.permutation(size)[:centers]
    own = Queries.inside(here.take(chosen), standing[chosen], negative[chosen])
    return space, own, Queries.outside(points(centers, stretch=2))


def check(space: Space, queries: Queries, ks: list[int]) -> None:
    """Both kernels find what `brute` finds, and share places in the same way."""
    expected = BruteSearch(space=space).neighbourhoods(queries, ks)
    assert CompiledSearch.can_search(space)
    limits = np.maximum(expected.radius[:, 0] - 1, 0)
    inside = BruteSearch(space=space).within(queries, limits)
    for kernel, leaf in (("tree", 3), ("tree", 40), ("tree", LEAF), ("scan", LEAF)):
        search = CompiledSearch(space, threads=2, kernel=kernel, leaf=leaf)
        found = find_neighbourhoods(search, queries, ks)
        assert search.name == f"compiled {kernel}"
        assert_equal_fields(found, expected)
        within = search.within(queries, limits)
        assert_equal_fields(within, inside)
        policies: tuple[Ties, ...] = ("fair", "all")
        for ties in policies:
            for column, k in enumerate(ks):
                mine = sum_nearest(found, column, k=k, ties=ties)
                oracle = sum_nearest(expected, column, k=k, ties=ties)
                np.testing.assert_array_equal(mine.marks, oracle.marks)
                np.testing.assert_array_equal(mine.places, oracle.places)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_kernels_find_what_brute_finds(name: str, data: st.DataObject, *, squared: bool) -> None:
    size = data.draw(st.sampled_from([1, 2, 31, 33, 200, 700]))
    seed = data.draw(st.integers(0, 10**6))
    space, own, outside = simulate(SHAPES[name], size=size, seed=seed, squared=squared)
    k = data.draw(st.integers(1, size))
    check(space, outside, sorted({1, k, size}))
    if size > 1:
        # in falling order, and twice: columns must come back as they were asked for
        check(space, own, [size - 1, min(k, size - 1), 1, min(k, size - 1)])


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_kernels_find_what_brute_finds_over_many_blocks(name: str, *, squared: bool) -> None:
    space, own, outside = simulate(SHAPES[name], size=3 * scan.BLOCK + 7, seed=5, squared=squared)
    for queries in (own, outside):
        check(space, queries, [3, 100, 250])


def test_queries_of_mixed_standing_do_not_warm_each_other_wrongly() -> None:
    """A query that stands in the space comes after one on the same spot that does not."""
    space, own, _ = simulate(SHAPES["integer lattice"], size=300, seed=3)
    points = own.points.take(np.repeat(np.arange(len(own)), 2))
    standing = np.repeat(own.own, 2)
    standing[::2] = -1
    mixed = Queries.inside(
        points, standing, np.repeat(own.own_marks, 2, axis=0) * (standing[:, None] >= 0)
    )
    check(space, mixed, [1, 2, 50])


@pytest.mark.parametrize("kernel", KERNELS)
def test_more_ties_than_there_is_room_for(kernel: str) -> None:
    """Two thousand distinct points at one distance, and k = 3: the rim is one candidate."""
    ring = np.array([[i, 1000 - i] for i in range(1000)] + [[-i, i - 1000] for i in range(1, 1001)])
    points = Points(coordinates=ring, codes=np.empty((2000, 0), np.int32))
    space, _ = Space.of(points, np.arange(2000) % 4 == 0, PLAIN)
    center = Points(coordinates=np.zeros((1, 2), np.int64), codes=np.empty((1, 0), np.int32))
    found = CompiledSearch(space, kernel=kernel).neighbourhoods(Queries.outside(center), [3, 1999])
    assert found.radius.tolist() == [[1000, 1000]]
    assert found.rim.tolist() == [[2000, 2000]]
    assert found.marks_rim[..., 0].tolist() == [[500, 500]]


PLAIN = Metric(mismatch=np.empty(0, dtype=np.int64), unit=1.0)


def test_a_guess_that_is_too_small_is_made_good(monkeypatch: pytest.MonkeyPatch) -> None:
    space, _, outside = simulate(SHAPES["many columns"], size=1500, seed=11)
    expected = BruteSearch(space=space).neighbourhoods(outside, [40])
    search = CompiledSearch(space, threads=1, kernel="scan")
    ranks: list[int] = []
    scan_blocks = scan.scan_blocks

    def spy(*arguments: Any) -> int:
        ranks.append(arguments[5])
        return scan_blocks(*arguments)

    monkeypatch.setattr(scan, "scan_blocks", spy)
    monkeypatch.setattr(CompiledSearch, "_rank", lambda self, k: 0)
    assert_equal_fields(search.neighbourhoods(outside, [40]), expected)
    assert set(ranks) == {0, -1}


@pytest.mark.parametrize("kernel", KERNELS)
def test_neither_threads_nor_chunks_change_an_answer(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    space, own, _ = simulate(SHAPES["many columns"], size=900, seed=2, centers=300)
    expected = CompiledSearch(space, threads=1, kernel=kernel).neighbourhoods(own, [15, 100])
    monkeypatch.setattr(compiled_search, "_CHUNK", 7)
    for threads in (1, 2, 5, -1):
        search = CompiledSearch(space, threads=threads, kernel=kernel)
        assert_equal_fields(search.neighbourhoods(own, [15, 100]), expected)


def test_the_kernel_is_chosen_by_how_much_the_tree_keeps_out() -> None:
    line, _, near = simulate([Shape(span=UNIT)], size=4000, seed=1)
    search = CompiledSearch(line)
    search.neighbourhoods(near, [5])
    assert search.name == "compiled tree"
    wide, _, anywhere = simulate([Shape(span=UNIT)] * 25, size=4000, seed=1)
    search = CompiledSearch(wide)
    search.neighbourhoods(anywhere, [5])
    assert search.name == "compiled scan"
    # within a limit is always the tree's work, also after it has made room for the scan
    limits = np.full(len(anywhere), 60 * UNIT)
    found = find_within(search, anywhere, limits)
    oracle = find_within(BruteSearch(space=wide), anywhere, limits)
    assert_equal_fields(found, oracle)


@given(
    distances=st.lists(st.integers(0, 12), min_size=1, max_size=60),
    share=st.floats(0.0, 1.0),
    seed=st.integers(0, 1000),
)
def test_the_weighted_selection_is_that_of_a_sorted_list(
    distances: list[int], share: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, len(distances))
    negatives = rng.integers(0, counts + 1)
    people = sorted(
        distance
        for distance, count in zip(distances, counts.tolist(), strict=True)
        for _ in range(count)
    )
    k = 1 + int(share * (len(people) - 1))
    both = (counts.astype(np.int64) << reservoir.HALF) + negatives
    candidates = reservoir.Candidates(np.array(distances, dtype=np.float64), both)
    radius, *counted, left = reservoir.nearest(candidates, len(distances), k)
    (inside, refused), (rim, refused_rim) = (divmod(each, reservoir.ONE_PERSON) for each in counted)
    assert radius == people[k - 1]
    assert inside == sum(person < radius for person in people)
    assert rim == sum(person == radius for person in people)
    nearer: NDArray[np.bool_] = np.array(distances) < radius
    assert refused == negatives[nearer].sum()
    assert refused_rim == negatives[np.array(distances) == radius].sum()
    assert left <= k


SMALL_KERNEL = (
    "import numpy as np\n"
    "from mutandis.geometry.kernels.bounds import Costs, least_distance\n"
    "from mutandis.geometry.kernels.tree import Boxes\n"
    "box = Boxes(np.zeros((1, 1)), np.ones((1, 1)), np.zeros((1, 0), np.uint64))\n"
    "none = np.empty(0)\n"
    "bits = none.astype(np.uint64)\n"
    "found = least_distance(box, 0, Costs(none, ()), np.array([3.0]), none, bits, 9.0)\n"
    "assert found == 2.0, found\n"
    "print(sum(least_distance.stats.cache_hits.values()))\n"
)


def run_small_kernel(before: str = "", **environment: str) -> int:
    """Run a kernel in a process of its own; give how often it came from the cache."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", "-c", before + SMALL_KERNEL],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )
    return int(done.stdout)


def test_kernels_compile_where_no_cache_can_be_written() -> None:
    nowhere = "from numba.core import caching\ncaching.CacheImpl._locator_classes = []\n"
    assert run_small_kernel(nowhere) == 0


@pytest.mark.slow
def test_code_that_was_compiled_from_other_sources_is_not_used(tmp_path: Path) -> None:
    """A change in any file of kernels makes another folder, so that nothing stale is read."""
    assert run_small_kernel(NUMBA_CACHE_DIR=str(tmp_path)) == 0
    other = "import hashlib, numba\nnumba.__version__ += '.other'\n"
    assert run_small_kernel(other, NUMBA_CACHE_DIR=str(tmp_path)) == 0
    assert len(list((tmp_path / "__pycache__").iterdir())) == 2
