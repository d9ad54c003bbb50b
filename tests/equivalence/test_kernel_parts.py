"""The parts of the kernels, each against what it promises in its own file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutandis.geometry.kernels import reservoir, steps
from mutandis.geometry.kernels import tree as growth
from mutandis.geometry.kernels.bounds import (
    Costs,
    choose_signs,
    least_distance,
    level_bits,
    measure,
    slants_of,
)
from mutandis.geometry.kernels.tree import Exact, Grid, Tree, exact_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEEDS = st.integers(0, 10**6)


def scatter(
    rng: np.random.Generator, size: int, *, squared: bool = False
) -> tuple[Grid, NDArray[np.float64]]:
    """Give points with a long tail in one number, few values in another, and 3 and 90 levels."""
    coordinates = np.stack(
        [
            (10 ** rng.uniform(0, 7 if squared else 9, size)).astype(np.int64),
            rng.integers(0, 5, size),
            rng.integers(-(10**6), 10**6, size),
        ],
        axis=1,
    )
    codes = np.stack([rng.integers(0, 3, size), rng.integers(0, 90, size)], axis=1)
    low = coordinates.min(axis=0)
    signs = np.array([[1, 1], [1, -1], [-1, 1]])
    grid = Grid(
        coordinates,
        slants_of(coordinates, low, signs),
        codes.astype(np.int32),
        np.concatenate([low, [0, 0]]),
    )
    return grid, np.array([float(rng.integers(1, 10**9)), float(rng.integers(1, 100))])


def plant(
    rng: np.random.Generator, size: int, leaf: int, *, squared: bool = False
) -> tuple[Tree, Exact, Any]:
    """Grow a tree over scattered points; give it with exact points and steps."""
    grid, mismatch = scatter(rng, size, squared=squared)
    order = np.arange(size, dtype=np.int32)
    tree = growth.grow(grid, mismatch, order, leaf=leaf)
    costs = Costs(mismatch, (2,)) if squared else Costs(mismatch, ())
    exact = Exact(exact_rows(grid, order), np.ones(size, dtype=np.int64), costs)
    is_told = grid.codes.max(axis=0) < 64
    return tree, exact, steps.take_steps(tree, exact, is_told)


@pytest.mark.parametrize("squared", [False, True])
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, share=st.floats(0.0, 1.2))
def test_no_box_and_no_sum_of_steps_keeps_out_who_is_near(
    seed: int, share: float, *, squared: bool
) -> None:
    rng = np.random.default_rng(seed)
    tree, exact, packed = plant(rng, size=300, leaf=20, squared=squared)
    numbers = 3
    row = exact.points[rng.integers(len(exact.points))]
    center = row + np.concatenate([np.floor(row[:numbers] * rng.uniform(-0.2, 0.2, 3)), [0, 0]])
    if not squared:  # where distances are squared, centers may lie outside
        center[:numbers] = np.clip(center[:numbers], 0, exact.points[:, :numbers].max(axis=0))
    signs = np.array([[1, 1], [1, -1], [-1, 1]])
    slants = center[:numbers] @ signs
    bits = level_bits(center[numbers:].astype(np.int32))
    away = (np.abs(exact.points[:, :numbers] - center[:numbers]) ** (1 + squared)).sum(axis=1)
    away += (exact.points[:, numbers:] != center[numbers:]) @ exact.costs.mismatch
    assert [measure(exact.points, place, center, exact.costs) for place in range(300)] == (
        away.tolist()
    )
    radius = np.floor(np.quantile(away, min(share, 1.0)) * max(share, 1.0))
    sums, near = np.empty(steps.STRETCH, np.uint16), np.empty(steps.STRETCH + 1, np.int64)
    for leaf in np.flatnonzero(tree.right < 0).tolist():
        start, stop = tree.start[leaf], tree.stop[leaf]
        bound = least_distance(tree.boxes, leaf, exact.costs, center, slants, bits, np.inf)
        assert bound <= away[start:stop].min()
        outside, rounding = steps.sum_steps(
            packed, tree.boxes, leaf, steps.STRETCH, exact.costs, center, bits, sums
        )
        assert outside <= away[start:stop].min()
        limit = steps.largest_sum(radius - outside, packed.per_unit[leaf], rounding, exact.costs)
        found = steps.collect(sums, 0, stop - start, limit, near) if outside <= radius else 0
        kept = set((start + near[:found]).tolist())
        assert set((start + np.flatnonzero(away[start:stop] <= radius)).tolist()) <= kept


@pytest.mark.parametrize(("squared", "most"), [(False, 210), (True, 250)])
def test_steps_keep_nearly_everybody_out_who_is_not_near(most: int, *, squared: bool) -> None:
    """A filter that let everybody through would be right, and useless."""
    rng = np.random.default_rng(4)
    size = 4000
    coordinates = rng.integers(0, 2 ** (25 if squared else 40), (size, 4))
    grid = Grid(
        coordinates,
        np.empty((size, 0), np.int64),
        np.empty((size, 0), np.int32),
        coordinates.min(axis=0),
    )
    order, none = np.arange(size, dtype=np.int32), np.empty(0)
    tree = growth.grow(grid, none, order, leaf=size)
    costs = Costs(none, (2,)) if squared else Costs(none, ())
    exact = Exact(exact_rows(grid, order), np.ones(size, dtype=np.int64), costs)
    packed = steps.take_steps(tree, exact, np.empty(0, np.bool_))
    center = exact.points[17].copy()
    away = (np.abs(exact.points - center) ** (1 + squared)).sum(axis=1)
    radius = np.sort(away)[200]
    whole = -(-size // steps.STRETCH) * steps.STRETCH
    sums, near = np.empty(whole, np.uint16), np.empty(steps.STRETCH + 1, np.int64)
    no_bits = np.empty(0, np.uint64)
    outside, rounding = steps.sum_steps(packed, tree.boxes, 0, whole, costs, center, no_bits, sums)
    limit = steps.largest_sum(radius - outside, packed.per_unit[0], rounding, costs)
    found = [
        steps.collect(sums, first, size, limit, near) for first in range(0, size, steps.STRETCH)
    ]
    assert 201 <= sum(found) <= most


def test_signs_are_found_where_numbers_go_together_and_nowhere_else() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1000, (5000, 6))
    factor = rng.normal(0, 10_000, (5000, 1))
    together = (factor * [1, -1, 1, 1, -1, 1] + noise).astype(np.int64)
    assert choose_signs(together).T.tolist() == [[1, -1, 1, 1, -1, 1]]
    assert choose_signs(noise.astype(np.int64)).shape == (6, 0)
    assert choose_signs(np.full((10, 6), 3)).shape == (6, 0)
    assert choose_signs(together[:1]).shape == (6, 0)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 3, 8])
def test_a_tree_is_the_same_with_any_number_of_threads(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "_WORTH_A_THREAD", 10)
    grid, mismatch = scatter(np.random.default_rng(1), 500)
    alone, shared = np.arange(500, dtype=np.int32), np.arange(500, dtype=np.int32)
    one = growth.grow(grid, mismatch, alone, leaf=7)
    many = growth.grow(grid, mismatch, shared, leaf=7, threads=threads)
    np.testing.assert_array_equal(alone, shared)
    for mine, oracle in zip([*many[:3], *many.boxes], [*one[:3], *one.boxes], strict=True):
        np.testing.assert_array_equal(mine, oracle)
        assert mine.dtype == oracle.dtype
    same: Any = Grid._make(np.zeros_like(part) for part in grid)
    assert len(growth.grow(same, mismatch, alone, leaf=7, threads=threads).start) == 1


@settings(deadline=None)
@given(
    distances=st.lists(st.integers(0, 40), min_size=1, max_size=80),
    share=st.floats(0.0, 1.0),
    start=st.integers(0, 60),
    settles=st.booleans(),
)
def test_bins_hold_who_a_sorted_list_holds(
    distances: list[int], share: float, start: int, settles: bool
) -> None:
    """People come one by one; the radius shrinks, and is never too small."""
    k = 1 + int(share * (len(distances) - 1))
    final = sorted(distances)[k - 1]
    room = reservoir.reservoir_for(len(distances))
    reservoir.clear(room, float(max(start, final)))
    held = room.held
    for number, distance in enumerate(distances):
        here = reservoir.bin_of(float(distance), room.scale[0])
        if here <= held[reservoir.LAST]:
            size = held[reservoir.SIZE]
            room.candidates.distances[size] = distance
            room.candidates.people[size] = reservoir.ONE_PERSON + number % 2
            room.bins[here] += reservoir.ONE_PERSON + number % 2
            held[reservoir.PEOPLE] += reservoir.ONE_PERSON + number % 2
            held[reservoir.SIZE] += 1
        reservoir.shrink(room, k)
        if settles and held[reservoir.PEOPLE] >> reservoir.HALF >= k:
            reservoir.settle(room, k)
            reservoir.shrink(room, k)
        assert reservoir.edge(room) >= final
    answers = reservoir.Answers(*(np.zeros((1, 1), np.int64) for _ in range(5)))
    reservoir.answer(room, np.array([k]), answers, 0)
    refused = [distance for number, distance in enumerate(distances) if number % 2]
    assert [int(part[0, 0]) for part in answers] == [
        final,
        sum(distance < final for distance in distances),
        sum(distance < final for distance in refused),
        distances.count(final),
        refused.count(final),
    ]
