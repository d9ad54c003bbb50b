"""Fair ties: what sharing means, against counting and against every way to break a tie."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mutandis.engine.tally import sum_nearest
from mutandis.geometry.index import Neighbourhoods
from mutandis.geometry.plain import select
from tests.oracle import fractions

people = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=9)

points_with_counts = st.integers(0, 3).flatmap(
    lambda count: st.tuples(st.integers(0, 4), st.just(count), st.integers(0, count))
)


def neighbourhoods(
    inside: int, negatives_inside: int, rim: int, negatives_rim: int
) -> Neighbourhoods:
    def cell(value: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        return np.array([[value]], dtype=np.int64)

    return Neighbourhoods(
        radius=cell(1),
        inside=cell(inside),
        marks_inside=cell(negatives_inside)[..., np.newaxis],
        rim=cell(rim),
        marks_rim=cell(negatives_rim)[..., np.newaxis],
    )


def mean_over_broken_ties(rows: list[tuple[int, bool]], k: int) -> Fraction:
    """Break the tie in every possible way, and take the mean share of negatives."""
    radius = sorted(distance for distance, _ in rows)[k - 1]
    inside = [negative for distance, negative in rows if distance < radius]
    rim = [negative for distance, negative in rows if distance == radius]
    groups = [inside + list(rest) for rest in combinations(rim, k - len(inside))]
    return Fraction(sum(map(sum, groups)), k * len(groups))


@given(people)
def test_ties_are_broken_in_every_way_or_not_at_all(rows: list[tuple[int, bool]]) -> None:
    """Fair is the mean over every way to break the tie; 'all' takes every row on the rim."""
    ks = range(1, len(rows) + 1)
    found = select(
        np.array([[distance for distance, _ in rows]]),
        np.ones((1, len(rows)), dtype=np.int64),
        np.array([[int(negative) for _, negative in rows]]),
        list(ks),
    )
    for column, k in enumerate(ks):
        fair, every = (sum_nearest(found, column, k=k, ties=ties) for ties in ("fair", "all"))
        assert fractions(fair) == [mean_over_broken_ties(rows, k)]
        assert fair.places[0] == k
        radius = sorted(distance for distance, _ in rows)[k - 1]
        within = [negative for distance, negative in rows if distance <= radius]
        counted = (every.marks[0, 0], every.places[0], every.parts[0, 0])
        assert counted == (sum(within), len(within), 1)


@given(st.lists(points_with_counts, max_size=6))
def test_candidates_stand_for_as_many_rows_as_they_count(
    points: list[tuple[int, int, int]],
) -> None:
    """Points with counts give what their rows give one by one; a point may be empty."""
    points = [*points, (2, 1, 0)]
    rows = [
        (distance, place < negative)
        for distance, count, negative in points
        for place in range(count)
    ]
    ks = list(range(1, len(rows) + 1))
    distances, counts, negatives = (np.array([part]) for part in zip(*points, strict=True))
    found = select(distances, counts, negatives, ks)
    single = select(
        np.array([[distance for distance, _ in rows]]),
        np.ones((1, len(rows)), dtype=np.int64),
        np.array([[int(negative) for _, negative in rows]]),
        ks,
    )
    for name in ("radius", "inside", "rim", "marks_inside", "marks_rim"):
        np.testing.assert_array_equal(getattr(found, name), getattr(single, name))


def test_the_formula_by_hand() -> None:
    # 3 inside (1 refused), 4 on the rim (3 refused) share 2 places: (1·4 + 2·3) / (5·4) = 1/2
    found = neighbourhoods(inside=3, negatives_inside=1, rim=4, negatives_rim=3)
    fair = sum_nearest(found, 0, k=5, ties="fair")
    assert (fair.marks[0, 0], fair.places[0], fair.parts[0, 0]) == (10, 5, 4)
    assert fair.mean().tolist() == [0.5]
    every = sum_nearest(found, 0, k=5, ties="all")
    assert every.mean().tolist() == [4 / 7]
