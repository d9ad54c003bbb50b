"""Grouping by hashing, against a dictionary of tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data import equal_rows as grouping
from mutandis.data.equal_rows import group_equal, row_digests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def _no_digest(keys: Sequence[NDArray[Any]]) -> NDArray[np.uint64]:
    """Give all rows the same digest, as an adversary could."""
    return np.zeros(len(keys[0]), dtype=np.uint64)


@pytest.mark.parametrize("digest", [row_digests, _no_digest])
@given(width=st.integers(1, 4), data=st.data())
def test_groups_are_those_of_a_dictionary(digest: Any, width: int, data: st.DataObject) -> None:
    value = st.one_of(st.integers(-2, 2), st.sampled_from([2**62, -(2**62)]))
    rows = data.draw(st.lists(st.tuples(*[value] * width), max_size=20))
    known: dict[tuple[int, ...], int] = {}
    expected = [known.setdefault(row, len(known)) for row in rows]
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), width).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "row_digests", digest)
        first, group = group_equal(*columns)
    assert group.tolist() == expected
    assert first.tolist() == [rows.index(row) for row in known]


def test_a_repeat_beyond_the_first_rows_is_found() -> None:
    rows = np.arange(10_000)
    rows[9_000] = 17
    first, group = group_equal(rows, np.zeros(10_000, dtype=np.bool_))
    assert group[9_000] == 17
    assert len(first) == 9_999
    assert first[9_000] == 9_001
    assert group[9_001] == 9_000


def test_rows_without_a_repeat_are_their_own_groups() -> None:
    rows = np.random.default_rng(0).permutation(10_000)
    first, group = group_equal(rows % 2, rows)
    assert first.tolist() == group.tolist() == list(range(10_000))
