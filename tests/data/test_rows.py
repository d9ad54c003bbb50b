"""Groups of equal rows, against a dictionary of tuples; records of arrays with the same rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data import rows as grouping
from mutandis.data.rows import ByRow, group_equal, row_digests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner(ByRow):
    values: NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer(ByRow):
    name: str
    ids: NDArray[np.int64]
    absent: NDArray[Any] | None
    inner: Inner
    named: Mapping[str, Inner] = field(default_factory=dict)


def record(*ids: int) -> Outer:
    columns = np.array(ids)
    inner = Inner(values=np.column_stack([columns, -columns]))
    return Outer(name="x", ids=columns, absent=None, inner=inner, named={"a": inner})


def test_rows_are_taken_in_every_array() -> None:
    taken = record(3, 4, 5).take(np.array([2, 0, 0]))
    assert (taken.name, taken.absent) == ("x", None)
    assert taken.ids.tolist() == [5, 3, 3]
    assert taken.inner.values.tolist() == [[5, -5], [3, -3], [3, -3]]
    assert taken.named["a"].values.tolist() == taken.inner.values.tolist()


def test_rows_are_put_behind_each_other() -> None:
    joined = Outer.join([record(3, 4), record(), record(5)])
    assert (joined.name, joined.absent) == ("x", None)
    assert joined.ids.tolist() == [3, 4, 5]
    assert joined.inner.values.tolist() == [[3, -3], [4, -4], [5, -5]]


def test_rows_are_written() -> None:
    inner = Inner(values=np.arange(4))
    inner.put(np.array([3, 1]), Inner(values=np.array([10, 20])))
    assert inner.values.tolist() == [0, 20, 2, 10]
