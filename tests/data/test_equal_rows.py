"""Grouping by hashing, against a dictionary of tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data import equal_rows as grouping
from mutandis.data.equal_rows import group_equal, row_digests, sort_order

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


_BITS = [2**62, 2**62 + 1, -(2**62), 0, 1, 5]
_FLOATS = [0.0, -0.0, 1.5, -2.0, 1e-300, float("inf"), -float("inf"), float("nan"), -float("nan")]


@pytest.mark.parametrize("kind", ["int64", "int8", "uint64", "float64", "float32", "bool"])
@given(data=st.data())
def test_an_order_is_that_of_a_stable_sort(kind: str, data: st.DataObject) -> None:
    values = {
        "int64": st.sampled_from(_BITS) | st.integers(-(2**63), 2**63 - 1),
        "int8": st.integers(-128, 127),
        "uint64": st.sampled_from([2**64 - 1, 2**64 - 2]) | st.integers(0, 9),
        "float64": st.sampled_from(_FLOATS) | st.floats(),
        "float32": st.sampled_from([0.5, -0.5, 3.0]),
        "bool": st.booleans(),
    }[kind]
    keys = np.array(data.draw(st.lists(values, max_size=40)), dtype=kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "_FEW", 0)  # few are sorted by NumPy
        assert sort_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()


def test_keys_whose_last_bits_have_no_room_are_in_order_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grouping, "_FEW", 0)
    rng = np.random.default_rng(0)
    few = rng.integers(0, 2**30, 900) * 2**33
    few[::9] = few[1::9] + rng.integers(0, 2, 100)  # some differ in the last bit alone
    for keys in (few, rng.integers(0, 3, 900) * 2**61 + rng.integers(0, 5, 900)):
        assert sort_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()
