"""Tables that lack something: missing values, columns and ids, and what is said about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.population import Population
from mutandis.errors import (
    InputError,
    KindError,
    MissingValuesError,
    PlanError,
    UnknownColumnError,
)
from mutandis.frames import check_columns, open_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    AsFrame = Callable[[Mapping[str, Sequence[Any]]], Any]
    ColumnsOf = Callable[[Any], dict[str, list[Any]]]
    Table = dict[str, list[Any]]

SECRET = "SECRET-NAME"


def test_missing_values_are_counted_by_column(as_frame: AsFrame) -> None:
    frame = as_frame(
        {
            "AnnualSalary": [1.0, None, float("inf"), None, float("nan")],
            "job": ["a", None, "b", "a", "b"],
            "debt": [1.0, 2.0, 3.0, 4.0, -float("inf")],
            "unused": [None, None, None, None, 1],
        }
    )
    with pytest.raises(
        MissingValuesError,
        match=r"'AnnualSalary' has 3 missing and 1 infinite, 'job' has 1 missing, "
        r"'debt' has 1 infinite\. .*missing='drop'",
    ):
        Population.from_frame(frame, columns=["AnnualSalary", "job", "debt"])


def test_incomplete_rows_are_dropped_and_counted(as_frame: AsFrame, columns_of: ColumnsOf) -> None:
    frame = as_frame(
        {
            "salary": [1.0, None, 3.0, float("inf"), 5.0],
            "job": [None, None, "b", "a", "c"],
            "name": ["u", "v", "w", "x", "y"],
        }
    )
    people = Population.from_frame(frame, columns=["salary", "job"], missing="drop")
    assert dict(people.dropped) == {"salary": 2, "job": 2}
    assert people.ids.tolist() == people.positions.tolist() == [2, 4]
    assert people.numbers("salary").tolist() == [3.0, 5.0]
    assert columns_of(people.frame()) == {
        "salary": [3.0, 5.0],
        "job": ["b", "c"],
        "name": ["w", "y"],
    }
    named = Population.from_frame(frame, columns=["salary", "job"], id="name", missing="drop")
    assert named.ids.tolist() == ["w", "y"]
    assert named.positions.tolist() == [2, 4]


def test_no_complete_row(as_frame: AsFrame) -> None:
    frame = as_frame({"a": [None, 1.0], "b": [1.0, None]})
    with pytest.raises(InputError, match="'a' has 1 missing, 'b' has 1 missing"):
        Population.from_frame(frame, columns=["a", "b"], missing="drop")


def test_unknown_ways_with_missing_values_are_refused(applicants: Table) -> None:
    with pytest.raises(PlanError, match="missing='ignore' is unknown"):
        Population.from_frame(applicants, missing=cast("Any", "ignore"))


@pytest.mark.parametrize(
    "frame", [{"a": []}, pd.DataFrame({"a": [1.0]}).head(0), pl.DataFrame({"a": []})]
)
def test_an_empty_table_is_refused(frame: Any) -> None:
    with pytest.raises(InputError, match="The table has no rows"):
        Population.from_frame(frame, columns=["a"])


def test_a_table_without_columns_is_refused() -> None:
    with pytest.raises(InputError, match="The table has no rows"):
        Population.from_frame({})


def test_a_population_without_columns_still_has_rows(
    applicants: Table, columns_of: ColumnsOf
) -> None:
    people = Population.from_frame(applicants)
    assert len(people) == 3
    assert columns_of(people.frame()) == applicants


def test_unknown_columns_are_named_with_the_nearest(as_frame: AsFrame, applicants: Table) -> None:
    with pytest.raises(UnknownColumnError, match=r"'Salary'\. Did you mean 'salary'\?") as caught:
        Population.from_frame(as_frame(applicants), columns=["job", "Salary"])
    assert "'salary', 'job', 'gender', 'note'" in str(caught.value)
    with pytest.raises(UnknownColumnError, match=r"'zip'\. The table's columns"):
        Population.from_frame(as_frame(applicants), id="zip")


def test_many_columns_are_not_all_listed() -> None:
    with pytest.raises(UnknownColumnError, match=r"'column19', …\.$") as caught:
        check_columns(["missing"], [f"column{place}" for place in range(25)])
    assert "column20" not in str(caught.value)


def test_names_that_are_no_text_do_not_disturb() -> None:
    frame = pd.DataFrame([[1, 2]], columns=cast("Any", [0, "salary"]))
    assert Population.from_frame(frame, columns=["salary"]).numbers("salary").tolist() == [2.0]
    with pytest.raises(UnknownColumnError, match="Did you mean 'salary'"):
        Population.from_frame(frame, columns=["salaries"])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]),
        pa.Table.from_arrays([pa.array([1])] * 3, names=["a", "b", "a"]),
    ],
)
def test_columns_of_the_same_name_are_refused(frame: Any) -> None:
    with pytest.raises(InputError, match=r"several columns of the same name: 'a'\. Rename"):
        Population.from_frame(frame, columns=["b"])


@pytest.mark.parametrize("table", [None, 3, "table.csv", [1, 2], np.zeros((2, 2)), pd.Series([1])])
def test_what_is_no_table_is_refused(table: Any) -> None:
    with pytest.raises(InputError, match=f"Cannot read a table from {type(table).__name__}"):
        open_frame(table)


@pytest.mark.parametrize("columns", [{"a": [1, 2], "b": [1]}, {"a": 1}])
def test_a_dict_that_is_no_table_is_refused(columns: Any) -> None:
    with pytest.raises(InputError, match="Cannot read a table from this dict"):
        open_frame(columns)


def test_a_column_is_declared_in_one_way(applicants: Table) -> None:
    ordinal = Attribute(name="job", kind=AttributeKind.ORDINAL, levels=("cook", "clerk"))
    nominal = Attribute(name="job", kind=AttributeKind.NOMINAL)
    with pytest.raises(PlanError, match="'job' is declared as ordinal and as nominal"):
        Population.from_frame(applicants, attributes=[ordinal, nominal])
    people = Population.from_frame(applicants, attributes=[ordinal, ordinal])
    assert people.categories("job").levels == ("cook", "clerk")


@pytest.mark.parametrize("ids", [["x", "a", "m"], [30, 10, 20], [0.5, 1.5, -2.0], [True, "no", 2]])
def test_ids_are_the_columns_own_values(ids: list[Any]) -> None:
    people = Population.from_frame({"name": pd.Series(ids), "a": [1, 2, 3]}, id="name")
    assert people.ids.tolist() == ids


def test_ids_are_text_in_every_frame(as_frame: AsFrame, applicants: Table) -> None:
    people = Population.from_frame(as_frame(applicants), id="note")
    assert people.ids.tolist() == applicants["note"]
    assert people.positions.tolist() == [0, 1, 2]


@pytest.mark.parametrize("ids", [[SECRET, SECRET, "b", "a"], [1, 1, 2, 3], [1.0, 1.0, 2.0, 3.0]])
def test_repeated_ids_are_refused(as_frame: AsFrame, ids: list[Any]) -> None:
    with pytest.raises(
        InputError, match=r"'name' has 4 rows but only 3 distinct values\. .*leave id= out"
    ) as caught:
        Population.from_frame(as_frame({"name": ids}), id="name")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("ids", [[SECRET, None, None], [1, None, None], [1.0, float("nan"), None]])
def test_missing_ids_are_refused(as_frame: AsFrame, ids: list[Any]) -> None:
    with pytest.raises(InputError, match="'name' has 2 missing values") as caught:
        Population.from_frame(as_frame({"name": ids}), id="name")
    assert SECRET not in str(caught.value)


def test_a_column_of_the_wrong_kind_is_not_quoted(as_frame: AsFrame, applicants: Table) -> None:
    continuous = [Attribute(name="note", kind=AttributeKind.CONTINUOUS)]
    with pytest.raises(KindError, match="'note' is to be read as numbers") as caught:
        Population.from_frame(as_frame(applicants), attributes=continuous)
    assert SECRET not in str(caught.value)
