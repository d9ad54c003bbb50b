"""Grouping by hashing, against a dictionary of tuples."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mutandis.domain.grouping import group_equal


@given(st.integers(1, 4), st.data())
def test_groups_are_those_of_a_dictionary(width: int, data: st.DataObject) -> None:
    value = st.one_of(st.integers(-2, 2), st.sampled_from([2**62, -(2**62)]))
    rows = data.draw(st.lists(st.tuples(*[value] * width), max_size=20))
    known: dict[tuple[int, ...], int] = {}
    expected = [known.setdefault(row, len(known)) for row in rows]
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), width).T
    first, group = group_equal(*columns)
    assert group.tolist() == expected
    assert first.tolist() == [rows.index(row) for row in known]
