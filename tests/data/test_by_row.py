"""Records of arrays: rows are taken and joined in every array, and in records within records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.by_row import ByRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


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
