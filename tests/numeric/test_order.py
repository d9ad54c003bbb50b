"""An order of rows that depends on what they hold, and on nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.data.rows import row_digests
from mutandis.numeric import order as ordering
from mutandis.numeric.order import canonical_order, distinct_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FEW = st.sampled_from([0.0, -0.0, 1.0, 2.0, 0.1 + 0.2, 0.3])


def _no_digest(keys: Any) -> NDArray[np.uint64]:
    """Return one digest for all rows, as if they had met by chance."""
    return np.zeros(len(keys[0]), dtype=np.uint64)


def _ordered(columns: dict[str, Column]) -> list[bytes]:
    order = canonical_order(columns)
    assert sorted(order.tolist()) == list(range(len(order)))
    values = [
        column.values[order] if isinstance(column, Numbers) else column.codes[order]
        for column in columns.values()
    ]
    return [b"".join(value[row].tobytes() for value in values) for row in range(len(order))]


@pytest.mark.parametrize("digest", [row_digests, _no_digest])
@given(rows=st.lists(st.tuples(_FEW, _FEW, st.integers(0, 2)), max_size=30), data=st.data())
def test_shuffled_rows_come_in_the_same_order(
    digest: Any, rows: list[tuple[float, float, int]], data: st.DataObject
) -> None:
    def columns(held: list[tuple[float, float, int]]) -> dict[str, Column]:
        return {
            "B": Numbers(np.array([row[0] for row in held], dtype=np.float64)),
            "A": Numbers(np.array([row[1] for row in held], dtype=np.float64)),
            "C": Categories(np.array([row[2] for row in held], dtype=np.int32), ("a", "b", "c")),
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "row_digests", digest)
        first = _ordered(columns(rows))
        again = _ordered(columns(data.draw(st.permutations(rows))))
    assert first == again


def test_the_order_in_which_columns_are_listed_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    a, b = (Numbers(rng.integers(0, 9, 50).astype(float)) for _ in "ab")
    one, other = canonical_order({"A": a, "B": b}), canonical_order({"B": b, "A": a})
    assert one.tolist() == other.tolist()


def test_levels_that_nobody_has_do_not_matter() -> None:
    codes = np.random.default_rng(0).integers(0, 3, 40).astype(np.int32)
    plain = Categories(codes, ("a", "b", "c"))
    roomy = Categories(np.array([1, 3, 4], dtype=np.int32)[codes], ("-", "a", "-", "b", "c"))
    weight = Numbers(np.arange(40.0))
    one = canonical_order({"A": plain, "B": weight})
    other = canonical_order({"A": roomy, "B": weight})
    assert one.tolist() == other.tolist()


def test_no_columns_and_no_rows() -> None:
    assert canonical_order({}).tolist() == []
    assert canonical_order({"A": Numbers(np.array([]))}).tolist() == []
    chosen, kinds = distinct_rows(np.empty((0, 2)))
    assert (chosen.tolist(), kinds.tolist()) == ([], [])


def test_columns_scattered_in_memory() -> None:
    matrix = np.random.default_rng(0).normal(size=(30, 3))
    scattered = canonical_order({"A": Numbers(matrix[:, 1])})
    assert scattered.tolist() == canonical_order({"A": Numbers(matrix[:, 1].copy())}).tolist()


def test_many_rows_come_in_blocks() -> None:
    rng = np.random.default_rng(1)
    values = rng.permutation(40_000).astype(np.float64)
    once = canonical_order({"A": Numbers(values)})
    shuffled = rng.permutation(40_000)
    again = canonical_order({"A": Numbers(values[shuffled])})
    assert values[once].tolist() == values[shuffled][again].tolist()
    assert len(set(row_digests([values.view(np.uint64)]).tolist())) == 40_000


@pytest.mark.parametrize("digest", [row_digests, _no_digest])
@given(rows=st.lists(st.tuples(_FEW, _FEW), min_size=1, max_size=30))
def test_distinct_rows_against_a_set(digest: Any, rows: list[tuple[float, float]]) -> None:
    matrix = np.array(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "row_digests", digest)
        chosen, kinds = distinct_rows(matrix)
    held = {row.tobytes() for row in matrix}
    assert len(chosen) == len(held)
    assert {row.tobytes() for row in matrix[chosen]} == held
    assert matrix[chosen][kinds].tobytes() == matrix.tobytes()


def test_equal_rows_are_ordered_by_other_columns_then_by_ids() -> None:
    columns = {"Age": Numbers(np.full(4, 30.0))}
    ids = np.array(["d", "b", "c", "a"], dtype=object)
    assert ids[canonical_order(columns, ids=ids)].tolist() == ["a", "b", "c", "d"]
    assert canonical_order(columns, ids=np.array([9, 10, 8, 7])).tolist() == [3, 2, 0, 1]
    pay = Numbers(np.array([1.0, 2.0, 1.0, 2.0]))
    by_pay = canonical_order(columns, others={"Pay": pay}, ids=ids)
    assert ids[by_pay].tolist() in (["c", "d", "a", "b"], ["a", "b", "c", "d"])
    assert len(set(pay.values[by_pay[:2]].tolist())) == 1
