"""Integer distances against a loop over cells."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mutandis.geometry.metric import Metric, Points
from tests.oracle import measure

FAR = 2**57  # a center out of reach stands about 32 ranges of 2**52 away


@st.composite
def people(draw: st.DrawFn) -> tuple[Points, Metric]:
    size, numbers, names = draw(st.integers(1, 8)), draw(st.integers(0, 3)), draw(st.integers(0, 3))
    coordinates = draw(
        st.lists(
            st.lists(st.integers(-FAR, FAR), min_size=numbers, max_size=numbers),
            min_size=size,
            max_size=size,
        )
    )
    codes = draw(
        st.lists(
            st.lists(st.integers(0, 3), min_size=names, max_size=names),
            min_size=size,
            max_size=size,
        )
    )
    mismatch = draw(st.lists(st.integers(1, 2**52), min_size=names, max_size=names))
    points = Points(
        coordinates=np.array(coordinates, dtype=np.int64).reshape(size, numbers),
        codes=np.array(codes, dtype=np.int32).reshape(size, names),
    )
    return points, Metric(mismatch=np.array(mismatch, dtype=np.int64), unit=2.0**53)


@given(people())
def test_distances_are_sums_over_cells(drawn: tuple[Points, Metric]) -> None:
    points, metric = drawn
    size = len(points)
    expected = [[measure(points, metric, i, j) for j in range(size)] for i in range(size)]
    from_centers = [metric.from_center(points.take(np.array([i])), points) for i in range(size)]
    assert [row.tolist() for row in from_centers] == expected
    everyone = np.tile(np.arange(size), (size, 1))
    assert metric.to_candidates(points, points, everyone).tolist() == expected
    for row, each in enumerate(expected):
        others = sorted(each[:row] + each[row + 1 :])
        assert [metric.radius(points, row, k) for k in range(1, size)] == others


def test_a_limit_is_the_largest_integer_distance_within_it() -> None:
    metric = Metric(mismatch=np.array([10]), unit=20.0)
    assert metric.limit(Fraction("0.33")) == 6
    people = Points(coordinates=np.array([[0], [3]]), codes=np.array([[0], [1]], dtype=np.int32))
    assert metric.from_center(people.take(np.array([0])), people).tolist() == [0, 13]
