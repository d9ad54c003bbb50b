"""Rows that repeat are grouped, whatever they consist of."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mutandis.search.distance import Points
from mutandis.search.engine import group_rows

cells = st.sampled_from([0, 1, -1, 2**62, -(2**62)])


@given(
    st.lists(st.tuples(cells, cells, st.integers(-1, 2), st.booleans()), max_size=30),
)
def test_groups_are_those_of_a_dictionary(rows: list[tuple[int, int, int, bool]]) -> None:
    size = len(rows)
    points = Points(
        coordinates=np.array([row[:2] for row in rows], dtype=np.int64).reshape(size, 2),
        codes=np.array([row[2] for row in rows], dtype=np.int32).reshape(size, 1),
    )
    first, group = group_rows(points, np.array([row[3] for row in rows], dtype=np.bool_))
    seen: dict[object, int] = {}
    for row in rows:
        seen.setdefault(row, len(seen))
    assert group.tolist() == [seen[row] for row in rows]
    assert first.tolist() == [rows.index(row) for row in seen]  # type: ignore[arg-type]


def test_points_without_coordinates_are_one_group() -> None:
    nothing = Points(coordinates=np.empty((3, 0), np.int64), codes=np.empty((3, 0), np.int32))
    first, group = group_rows(nothing)
    assert (first.tolist(), group.tolist()) == ([0], [0, 0, 0])


def test_many_columns_of_many_values_do_not_overflow() -> None:
    """Sixty columns of 500 values each: a key that multiplied them all would need 538 bits."""
    rng = np.random.default_rng(0)
    distinct = rng.integers(0, 500, (1000, 60))
    rows = np.concatenate([distinct, distinct[::-1]])
    _, group = group_rows(Points(coordinates=rows, codes=np.empty((2000, 0), np.int32)))
    assert group[:1000].tolist() == list(range(1000))
    assert group[1000:].tolist() == list(range(999, -1, -1))
