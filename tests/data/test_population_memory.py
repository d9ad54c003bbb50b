"""Whose memory it is: the caller's table is not changed, and later changes do not arrive."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.columns import Numbers, read_numbers
from mutandis.data.population import Population
from mutandis.frames import open_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    AsFrame = Callable[[Mapping[str, Sequence[Any]]], Any]
    ColumnsOf = Callable[[Any], dict[str, list[Any]]]
    Table = dict[str, list[Any]]


def test_inputs_are_never_modified(applicants: Table) -> None:
    for frame, before in (
        (pd.DataFrame(applicants, index=[3, 3, 1]), pd.DataFrame(applicants, index=[3, 3, 1])),
        (pl.DataFrame(applicants), pl.DataFrame(applicants)),
        (pa.table(applicants), pa.table(applicants)),
        (copy.deepcopy(applicants), applicants),
    ):
        people = Population.from_frame(frame, columns=["salary", "job"], id="note")
        given_back = people.with_columns({"salary": Numbers(np.zeros(3))}).frame()
        if isinstance(given_back, pd.DataFrame):
            given_back.loc[:, "gender"] = 9
        if isinstance(frame, pd.DataFrame):
            pd.testing.assert_frame_equal(frame, cast("pd.DataFrame", before))
        elif isinstance(frame, dict):
            assert frame == before
        else:
            assert frame.equals(cast("Any", before))


def test_returned_arrays_cannot_be_written_to(as_frame: AsFrame, applicants: Table) -> None:
    people = Population.from_frame(as_frame(applicants), columns=["salary", "job"])
    for array in (
        people.ids,
        people.positions,
        people.numbers("salary"),
        people.categories("job").codes,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(TypeError):
        cast("Any", people.columns)["salary"] = Numbers(np.zeros(3))
    with pytest.raises(TypeError):
        cast("Any", people.dropped)["salary"] = 1


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda memory: pd.DataFrame(memory, copy=False),
        lambda memory: pd.DataFrame({"a": memory["a"]}, copy=False).assign(b=[1.0, 2.0, 3.0]),
        pl.DataFrame,
        pa.table,
        lambda memory: memory,
    ],
    ids=["pandas", "pandas-assigned", "polars", "pyarrow", "dict"],
)
def test_later_changes_of_numpy_memory_do_not_arrive(
    make: Callable[[dict[str, Any]], Any], missing: bool, columns_of: ColumnsOf
) -> None:
    memory = {"a": np.array([1.0, np.nan if missing else 2.0, 3.0]), "b": np.array([1.0, 2.0, 3.0])}
    people = Population.from_frame(make(memory), columns=["a"], id="b", missing="drop")
    for array in memory.values():
        array[:] = 99.0
    kept = [1.0, 3.0] if missing else [1.0, 2.0, 3.0]
    assert people.numbers("a").tolist() == kept
    assert people.ids.tolist() == kept
    assert columns_of(people.frame()) == {"a": kept, "b": kept}


def test_a_frame_that_was_given_back_can_be_written_to_without_harm(
    applicants: Table, columns_of: ColumnsOf
) -> None:
    for frame in (pd.DataFrame(applicants), pl.DataFrame(applicants)):
        people = Population.from_frame(frame, columns=["salary"])
        changed = people.with_columns({"salary": Numbers(np.array([1.0, 2.0, 3.0]))})
        for population in (people, changed):
            expected = columns_of(population.frame())
            given_back = population.frame()
            if isinstance(given_back, pd.DataFrame):
                given_back.loc[0, "salary"] = 99.0
                given_back.loc[0, "gender"] = 99
            else:
                given_back[0, "salary"] = 99.0
                given_back[0, "gender"] = 99
            assert given_back["salary"].to_list()[0] == 99.0
            assert columns_of(population.frame()) == expected
        assert changed.numbers("salary").tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_rules_read_columns_as_they_would_from_the_table(make: Any) -> None:
    """A rule is asked without making a table for it: it must not notice."""
    table = make(
        {
            "pay": [1.5, 2.5, 3.5],
            "age": [30, 40, 50],
            "owner": [True, False, True],
            "code": [7, 8, 7],
            "job": ["cook", "clerk", "cook"],
        }
    )
    attributes = [Attribute(name=name, kind=AttributeKind.CONTINUOUS) for name in ("pay", "owner")]
    nominal = [Attribute(name=name, kind=AttributeKind.NOMINAL) for name in ("code", "job")]
    people = Population.from_frame(table, columns=["age"], attributes=[*attributes, *nominal])
    changed = people.with_columns(
        {
            "pay": Numbers(np.array([9.0, 8.0, 7.0])),
            "owner": Numbers(np.array([0.25, 0.0, 1.0])),
            "code": people.categories("code").filled(1),
            "job": people.categories("job").filled(0),
        }
    )
    for population in (people, changed):
        frame = open_frame(population.frame())
        for name in people.columns:
            found, series = population.as_read_by_rules(name), frame[name]
            numeric = series.dtype.is_numeric()
            expected = read_numbers(series).values if numeric else series.to_numpy()
            assert found.tolist() == expected.tolist()
            assert found.dtype == expected.dtype
