"""A table held as what differs from another is the same table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data.columns import Categories, Numbers
from mutandis.data.overlay import Overlay, as_overlay
from mutandis.data.population import Population


def people(rows: int) -> Population:
    rng = np.random.default_rng(rows)
    table = {
        "pay": rng.normal(size=rows),
        "age": rng.normal(size=rows),
        "job": rng.choice(["clerk", "cook"], rows),
        "sex": rng.choice(["f", "m"], rows),
    }
    return Population.from_frame(table, columns=list(table))


def bits(population: Population) -> dict[str, bytes]:
    return {
        name: (column.values if isinstance(column, Numbers) else column.codes).tobytes()
        for name, column in population.columns.items()
    }


@given(rows=st.integers(1, 12), data=st.data())
def test_every_column_and_every_part_is_the_same(rows: int, data: st.DataObject) -> None:
    base = people(rows)
    some = st.lists(st.integers(0, rows - 1), max_size=rows)
    pay, job = base.numbers("pay").copy(), base.categories("job")
    pay[data.draw(some)] += 1.0
    codes = job.codes.copy()
    codes[data.draw(some)] ^= 1
    changed = base.with_columns(
        {
            "pay": Numbers(pay),
            "age": Numbers(base.numbers("age").copy()),
            "job": Categories(codes, job.levels),
            "sex": base.categories("sex").filled(0),
        }
    )
    kept = as_overlay(changed, base)
    assert bits(kept) == bits(changed)
    assert list(kept.columns) == list(changed.columns)
    assert kept.changed == changed.changed
    chosen = np.array(data.draw(some), dtype=np.intp)
    for name in changed.columns:
        part: Any = kept.part(name, chosen)
        expected: Any = changed.part(name, chosen)
        field = "values" if isinstance(expected, Numbers) else "codes"
        assert getattr(part, field).tobytes() == getattr(expected, field).tobytes()


def test_one_changed_row_in_a_thousand_takes_little_memory() -> None:
    base = people(1000)
    pay = base.numbers("pay").copy()
    pay[7] = -1.0
    kept = as_overlay(base.with_columns({"pay": Numbers(pay)}), base)
    assert isinstance(kept.columns, Overlay)
    assert len(kept.columns._rows) == 1
    assert kept.numbers("pay")[7] == -1.0


def test_the_sign_of_zero_is_a_difference() -> None:
    base = Population.from_frame({"x": [0.0, 1.0, 2.0]}, columns=["x"])
    kept = as_overlay(base.with_columns({"x": Numbers(np.array([-0.0, 1.0, 2.0]))}), base)
    assert np.signbit(kept.numbers("x")[0])


def test_where_most_rows_differ_nothing_is_gained() -> None:
    base = people(10)
    changed = base.with_columns({"pay": Numbers(base.numbers("pay") + 1.0)})
    assert as_overlay(changed, base) is changed


def test_names_that_the_other_table_never_had_are_kept() -> None:
    base = people(10)
    other = Categories(base.categories("job").codes, ("clerk", "pilot"))
    kept = as_overlay(base.with_columns({"job": other}), base)
    assert kept.categories("job").levels == ("clerk", "pilot")


def test_a_patch_of_another_kind_is_refused() -> None:
    column = Numbers(np.array([1.0]))
    patched = Overlay({"x": column}, np.array([0]), {"x": Categories(np.array([0]), ("a",))}, {})
    with pytest.raises(TypeError, match="type of its column"):
        patched["x"]
