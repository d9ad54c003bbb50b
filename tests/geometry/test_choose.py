"""The choice of the backend: where each is used, and that it changes nothing."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from mutandis.geometry import choose
from mutandis.geometry.choose import ChosenSearch
from mutandis.geometry.index import Queries, Space, find_neighbourhoods
from mutandis.geometry.metric import Metric, Points
from mutandis.geometry.plain import BruteSearch, tree_dimensions
from tests.oracle import assert_equal_fields


def space_with(numbers: int, levels: list[int], *, size: int = 90) -> Space:
    """Make a space of so many coordinates, and of names with so many levels each."""
    rng = np.random.default_rng(numbers + sum(levels))
    codes = [np.append(rng.integers(0, count, size - 1), count - 1) for count in levels]
    points = Points(
        coordinates=rng.integers(0, 9, (size, numbers)),
        codes=np.array(codes, dtype=np.int32).reshape(len(levels), size).T,
    )
    metric = Metric(mismatch=np.full(len(levels), 8), unit=8.0)
    return Space.of(points, rng.random(size) < 0.5, metric)[0]


def assert_as_brute(space: Space, queries: Queries) -> str:
    """Compare the chosen search with the oracle; give its name."""
    ks = [1, 40, int(space.counts.sum())]
    search = ChosenSearch(space, threads=1)
    assert search.name == ""
    found = find_neighbourhoods(search, queries, ks)
    expected = BruteSearch(space=space).neighbourhoods(queries, ks)
    assert_equal_fields(found, expected)
    return search.name


@pytest.mark.parametrize(
    ("numbers", "levels", "dimensions", "name"),
    [
        (2, [], 2, "tree"),
        (0, [3, 2], 5, "tree"),
        (3, [37], 40, "tree"),
        (3, [38], 41, "brute"),
        (2, [70], 72, "brute"),
        (0, [], 0, "brute"),
    ],
)
def test_small_problems_are_left_to_numpy_and_scipy(
    numbers: int, levels: list[int], dimensions: int, name: str
) -> None:
    space = space_with(numbers, levels)
    assert tree_dimensions(space.points) == dimensions
    assert assert_as_brute(space, Queries.outside(space.points)) == name


@pytest.mark.parametrize(("numbers", "levels"), [(2, []), (0, [3, 2]), (2, [70])])
def test_large_problems_go_to_kernels(
    numbers: int, levels: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "_WORTH_LOADING", 0.0)
    space = space_with(numbers, levels)
    assert assert_as_brute(space, Queries.outside(space.points)).startswith("compiled ")


def test_the_choice_does_not_depend_on_what_the_process_did_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space = space_with(2, [])
    with monkeypatch.context() as patch:
        patch.setattr(choose, "_WORTH_LOADING", 0.0)
        assert assert_as_brute(space, Queries.outside(space.points)).startswith("compiled ")
    assert assert_as_brute(space, Queries.outside(space.points)) == "tree"


def test_what_is_large_follows_from_queries_points_and_columns() -> None:
    few, many = space_with(2, []), space_with(3, [70], size=4000)
    assert choose.choose(few, 1_000) == "tree"
    assert choose.choose(few, 1_000_000) == "compiled"
    # 2e-5 s for a query of the tree, and half a second is enough
    assert choose.choose(few, 24_000) == "tree"
    assert choose.choose(few, 26_000) == "compiled"
    assert choose.choose(many, 1) == "brute"
    assert choose.choose(many, 100_000) == "compiled"


def test_distances_that_float64_cannot_hold_are_left_to_integers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choose, "_WORTH_LOADING", 0.0)
    points = Points(
        coordinates=np.array([[0], [2**54 + 1], [2**54]]), codes=np.empty((3, 0), np.int32)
    )
    metric = Metric(mismatch=np.empty(0, dtype=np.int64), unit=1.0)
    space, _ = Space.of(points, np.array([True, False, False]), metric)
    search = ChosenSearch(space)
    found = search.neighbourhoods(Queries.outside(points), [2])
    assert search.name == "tree"
    assert found.radius[:, 0].tolist() == [2**54, 1, 1]


def test_without_numba_the_others_do_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "_WORTH_LOADING", 0.0)
    # what an import of a module finds that is None in sys.modules is an ImportError
    monkeypatch.setitem(sys.modules, "mutandis.geometry.compiled", None)
    space = space_with(2, [])
    assert assert_as_brute(space, Queries.outside(space.points)) == "tree"


def test_a_small_audit_never_loads_numba() -> None:
    code = (
        "import sys, mutandis as mm\n"
        "from mutandis.datasets import loan\n"
        "mm.audit(loan(seed=7, n=400), outcome='LoanApproval', negative=-1,\n"
        "         protected=mm.Protection('Gender', value=1, reference=0),\n"
        "         attributes={'AnnualSalary': 'continuous'}, ks=[5]).counts()\n"
        "sys.exit('numba' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)  # noqa: S603
