"""The population: rows in order, ids that stay, and no way back into the caller's table."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.domain.attribute import Attribute, AttributeKind
from mutandis.domain.columns import Categories, Numbers, read_numbers
from mutandis.domain.population import Population, check_names, open_frame
from mutandis.errors import (
    AlignmentError,
    InputError,
    KindError,
    MissingValuesError,
    PlanError,
    UnknownColumnError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    AsFrame = Callable[[Mapping[str, Sequence[Any]]], Any]

SECRET = "SECRET-NAME"
TABLE: dict[str, list[Any]] = {
    "salary": [30.5, 10.0, 20.25],
    "job": ["cook", "clerk", "cook"],
    "gender": [1, 0, 1],
    "note": [SECRET, "b", "c"],
}


def columns_of(native: Any) -> dict[str, list[Any]]:
    frame = open_frame(native)
    return {name: frame[name].to_list() for name in frame.columns}


def test_named_columns_are_read_from_every_frame(as_frame: AsFrame) -> None:
    people = Population.from_frame(as_frame(TABLE), columns=["salary", "job"])
    assert list(people.columns) == ["salary", "job"]
    assert len(people) == 3
    assert people.numbers("salary").tolist() == [30.5, 10.0, 20.25]
    assert people.categories("job").levels == ("clerk", "cook")
    assert people.categories("job").codes.tolist() == [1, 0, 1]
    assert people.ids.tolist() == people.positions.tolist() == [0, 1, 2]
    assert not people.dropped
    assert columns_of(people.frame()) == TABLE


def test_declared_kinds_come_before_types(as_frame: AsFrame) -> None:
    attributes = [
        Attribute(name="gender", kind=AttributeKind.NOMINAL),
        Attribute(name="job", kind=AttributeKind.ORDINAL, levels=("cook", "clerk")),
    ]
    people = Population.from_frame(
        as_frame(TABLE), columns=["gender", "salary"], attributes=attributes
    )
    assert people.categories("gender").levels == (0, 1)
    assert people.categories("job").codes.tolist() == [0, 1, 0]
    assert people.numbers("salary")[0] == 30.5


def test_frames_come_back_in_the_callers_type() -> None:
    for frame, kind in (
        (pd.DataFrame(TABLE), pd.DataFrame),
        (pl.DataFrame(TABLE), pl.DataFrame),
        (pa.table(TABLE), pa.Table),
        (pl.LazyFrame(TABLE), pd.DataFrame),
        (TABLE, pd.DataFrame),
    ):
        people = Population.from_frame(frame, columns=["salary"])
        assert isinstance(people.frame(), kind)
        changed = people.with_columns({"salary": Numbers(np.zeros(3))})
        assert isinstance(changed.frame(), kind)


@pytest.mark.parametrize(
    "index",
    [[2, 0, 1], [7, 7, 7], [1, 1, 0], ["c", "a", "b"], pd.MultiIndex.from_tuples([(1, 2)] * 3)],
)
def test_a_pandas_index_is_ignored(index: Any) -> None:
    frame = pd.DataFrame(TABLE, index=index)
    people = Population.from_frame(frame, columns=["salary", "job"], id="note")
    assert people.numbers("salary").tolist() == TABLE["salary"]
    assert people.ids.tolist() == TABLE["note"]
    assert people.positions.tolist() == [0, 1, 2]
    changed = people.with_columns(
        {"salary": Numbers(np.array([1.5, 2.5, 3.5])), "job": people.categories("job").filled(0)}
    )
    assert columns_of(changed.frame()) == TABLE | {"salary": [1.5, 2.5, 3.5], "job": ["clerk"] * 3}


def test_rows_are_dropped_by_position_whatever_the_index() -> None:
    frame = pd.DataFrame(TABLE, index=[5, 5, 5])
    frame["salary"] = [30.5, np.nan, 20.25]
    people = Population.from_frame(frame, columns=["salary", "job"], missing="drop")
    assert people.positions.tolist() == [0, 2]
    changed = people.with_columns({"salary": Numbers(np.array([1.0, 2.0]))})
    assert columns_of(changed.frame()) == {
        "salary": [1.0, 2.0],
        "job": ["cook", "cook"],
        "gender": [1, 1],
        "note": [SECRET, "c"],
    }


def test_an_index_of_a_series_in_a_dict_is_ignored() -> None:
    people = Population.from_frame(
        {"a": pd.Series([1.0, 2.0], index=[1, 0]), "b": pd.Series([3.0, 4.0]), "c": [5, 6]},
        columns=["a", "b", "c"],
    )
    assert people.numbers("a").tolist() == [1.0, 2.0]
    assert people.numbers("b").tolist() == [3.0, 4.0]


def test_changed_columns_are_written_into_every_frame(as_frame: AsFrame) -> None:
    nominal = [Attribute(name="gender", kind=AttributeKind.NOMINAL)]
    people = Population.from_frame(as_frame(TABLE), columns=["salary", "job"], attributes=nominal)
    changed = people.with_columns(
        {
            "salary": Numbers(np.array([3.0, 2.0, 1.0])),
            "gender": people.categories("gender").filled(0),
            "job": Categories(np.array([0, 1, 1]), ("clerk", "cook")),
        }
    )
    assert changed.changed == {"salary", "gender", "job"}
    assert changed.ids is people.ids
    frame = changed.frame()
    assert columns_of(frame) == {
        "salary": [3.0, 2.0, 1.0],
        "job": ["clerk", "cook", "cook"],
        "gender": [0, 0, 0],
        "note": TABLE["note"],
    }
    assert open_frame(frame).columns == list(TABLE)
    # the people that it was made from are as they were
    assert columns_of(people.frame()) == TABLE
    assert people.numbers("salary").tolist() == TABLE["salary"]


def test_whole_numbers_may_become_fractions(as_frame: AsFrame) -> None:
    people = Population.from_frame(as_frame({"age": [30, 40]}), columns=["age"])
    changed = people.with_columns({"age": Numbers(np.array([30.25, 40.0]))})
    assert columns_of(changed.frame()) == {"age": [30.25, 40.0]}


def test_truth_values_read_as_numbers_are_not_rounded_to_truth() -> None:
    continuous = [Attribute(name="owner", kind=AttributeKind.CONTINUOUS)]
    people = Population.from_frame({"owner": [True, False]}, attributes=continuous)
    changed = people.with_columns({"owner": Numbers(np.array([0.25, 0.0]))})
    assert columns_of(changed.frame()) == {"owner": [0.25, 0.0]}


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": pd.Categorical(["a", "b", "a"], categories=["c", "b", "a"])}),
        pd.DataFrame({"x": pd.Categorical(["a", "b", "a"], ordered=True)}),
        pd.DataFrame({"x": pd.array(["a", "b", "a"], dtype="string[pyarrow]")}),
        pd.DataFrame({"x": pd.Series(["a", "b", "a"], dtype=object)}),
        pl.DataFrame({"x": ["a", "b", "a"]}, schema={"x": pl.Enum(["c", "a", "b"])}),
        pl.DataFrame({"x": ["a", "b", "a"]}, schema={"x": pl.Categorical}),
        pa.table({"x": pa.array(["a", "b", "a"]).dictionary_encode()}),
    ],
)
def test_changed_names_keep_the_type_of_their_column(frame: Any) -> None:
    people = Population.from_frame(frame, columns=["x"])
    changed = people.with_columns({"x": people.categories("x").filled(1)}).frame()
    assert columns_of(changed) == {"x": ["b", "b", "b"]}
    if isinstance(frame, pa.Table):
        assert changed.schema == frame.schema
    else:
        assert changed["x"].dtype == frame["x"].dtype


def test_changed_codes_keep_the_width_of_their_column() -> None:
    nominal = [Attribute(name="x", kind=AttributeKind.NOMINAL)]
    for frame in (
        pd.DataFrame({"x": np.array([1, 0], dtype=np.int8)}),
        pd.DataFrame({"x": pd.array([1, 0], dtype="Int64")}),
        pd.DataFrame({"x": pd.array([True, False], dtype="boolean")}),
    ):
        people = Population.from_frame(frame, attributes=nominal)
        changed = people.with_columns({"x": people.categories("x").filled(0)}).frame()
        assert changed["x"].tolist() == [0, 0]
        assert changed["x"].dtype == frame["x"].dtype


def test_a_level_that_no_row_has_can_be_written(as_frame: AsFrame) -> None:
    ordinal = [
        Attribute(name="grade", kind=AttributeKind.ORDINAL, levels=("low", "high", "highest"))
    ]
    people = Population.from_frame(as_frame({"grade": ["high", "low"]}), attributes=ordinal)
    changed = people.with_columns({"grade": people.categories("grade").filled(2)})
    assert columns_of(changed.frame()) == {"grade": ["highest", "highest"]}


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": pd.Categorical(["a", "b"])}),
        pd.DataFrame({"x": pd.Categorical(["a", "b"], ordered=True)}),
        pl.DataFrame({"x": ["a", "b"]}, schema={"x": pl.Enum(["a", "b"])}),
        pl.DataFrame({"x": ["a", "b"]}, schema={"x": pl.Categorical}),
    ],
)
def test_a_new_level_is_never_lost_in_a_closed_type(frame: Any) -> None:
    people = Population.from_frame(frame, columns=["x"])
    changed = people.with_columns({"x": Categories(np.array([1, 0]), ("a", "new"))})
    assert columns_of(changed.frame()) == {"x": ["new", "a"]}


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=8), st.data())
def test_any_change_of_names_is_written_row_by_row(names: list[str], data: st.DataObject) -> None:
    index = data.draw(st.lists(st.integers(0, 3), min_size=len(names), max_size=len(names)))
    codes = data.draw(st.lists(st.integers(0, 2), min_size=len(names), max_size=len(names)))
    people = Population.from_frame(pd.DataFrame({"x": names}, index=index), columns=["x"])
    changed = people.with_columns({"x": Categories(np.array(codes), ("c", "a", "new"))})
    assert changed.frame()["x"].tolist() == [("c", "a", "new")[code] for code in codes]


def test_new_values_come_one_a_row() -> None:
    people = Population.from_frame(TABLE, columns=["salary"])
    with pytest.raises(AlignmentError, match="'salary' has 2 new values for 3 rows"):
        people.with_columns({"salary": Numbers(np.zeros(2))})


def test_new_values_are_complete() -> None:
    people = Population.from_frame(TABLE, columns=["salary", "job"])
    with pytest.raises(MissingValuesError, match="'salary' has 1 missing and 1 infinite"):
        people.with_columns({"salary": Numbers(np.array([np.nan, 1.0, np.inf]))})
    with pytest.raises(MissingValuesError, match="'job' has 2 missing"):
        people.with_columns({"job": Categories(np.array([-1, 0, -1]), ("cook",))})


def test_only_columns_that_were_read_can_be_changed_or_asked_for() -> None:
    people = Population.from_frame(TABLE, columns=["salary"])
    for ask in (
        lambda: people.with_columns({"job": Numbers(np.zeros(3))}),
        lambda: people.numbers("job"),
        lambda: people.categories("job"),
    ):
        with pytest.raises(UnknownColumnError, match=r"'job'\. The population holds 'salary'"):
            ask()


def test_a_column_has_one_form() -> None:
    people = Population.from_frame(TABLE, columns=["salary", "job"])
    with pytest.raises(KindError, match="'job' holds names, not numbers"):
        people.numbers("job")
    with pytest.raises(KindError, match="'salary' holds numbers, not names"):
        people.categories("salary")


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


def test_incomplete_rows_are_dropped_and_counted(as_frame: AsFrame) -> None:
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


def test_unknown_ways_with_missing_values_are_refused() -> None:
    with pytest.raises(PlanError, match="missing='ignore' is unknown"):
        Population.from_frame(TABLE, missing=cast("Any", "ignore"))


@pytest.mark.parametrize(
    "frame", [{"a": []}, pd.DataFrame({"a": [1.0]}).head(0), pl.DataFrame({"a": []})]
)
def test_an_empty_table_is_refused(frame: Any) -> None:
    with pytest.raises(InputError, match="The table has no rows"):
        Population.from_frame(frame, columns=["a"])


def test_a_table_without_columns_is_refused() -> None:
    with pytest.raises(InputError, match="The table has no rows"):
        Population.from_frame({})


def test_a_population_without_columns_still_has_rows() -> None:
    people = Population.from_frame(TABLE)
    assert len(people) == 3
    assert columns_of(people.frame()) == TABLE


def test_unknown_columns_are_named_with_the_nearest(as_frame: AsFrame) -> None:
    with pytest.raises(UnknownColumnError, match=r"'Salary'\. Did you mean 'salary'\?") as caught:
        Population.from_frame(as_frame(TABLE), columns=["job", "Salary"])
    assert "'salary', 'job', 'gender', 'note'" in str(caught.value)
    with pytest.raises(UnknownColumnError, match=r"'zip'\. The table's columns"):
        Population.from_frame(as_frame(TABLE), id="zip")


def test_many_columns_are_not_all_listed() -> None:
    frame = open_frame({f"column{place}": [1] for place in range(25)})
    with pytest.raises(UnknownColumnError, match=r"'column19', …\.$") as caught:
        check_names(frame, ["missing"])
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


def test_a_column_is_declared_in_one_way() -> None:
    ordinal = Attribute(name="job", kind=AttributeKind.ORDINAL, levels=("cook", "clerk"))
    nominal = Attribute(name="job", kind=AttributeKind.NOMINAL)
    with pytest.raises(PlanError, match="'job' is declared as ordinal and as nominal"):
        Population.from_frame(TABLE, attributes=[ordinal, nominal])
    people = Population.from_frame(TABLE, attributes=[ordinal, ordinal])
    assert people.categories("job").levels == ("cook", "clerk")


@pytest.mark.parametrize("ids", [["x", "a", "m"], [30, 10, 20], [0.5, 1.5, -2.0], [True, "no", 2]])
def test_ids_are_the_columns_own_values(ids: list[Any]) -> None:
    people = Population.from_frame({"name": pd.Series(ids), "a": [1, 2, 3]}, id="name")
    assert people.ids.tolist() == ids


def test_ids_are_text_in_every_frame(as_frame: AsFrame) -> None:
    people = Population.from_frame(as_frame(TABLE), id="note")
    assert people.ids.tolist() == TABLE["note"]
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


def test_a_column_of_the_wrong_kind_is_not_quoted(as_frame: AsFrame) -> None:
    continuous = [Attribute(name="note", kind=AttributeKind.CONTINUOUS)]
    with pytest.raises(KindError, match="'note' is to be read as numbers") as caught:
        Population.from_frame(as_frame(TABLE), attributes=continuous)
    assert SECRET not in str(caught.value)


def test_inputs_are_never_modified() -> None:
    for frame, before in (
        (pd.DataFrame(TABLE, index=[3, 3, 1]), pd.DataFrame(TABLE, index=[3, 3, 1])),
        (pl.DataFrame(TABLE), pl.DataFrame(TABLE)),
        (pa.table(TABLE), pa.table(TABLE)),
        (copy.deepcopy(TABLE), TABLE),
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


def test_returned_arrays_cannot_be_written_to(as_frame: AsFrame) -> None:
    people = Population.from_frame(as_frame(TABLE), columns=["salary", "job"])
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


def test_later_changes_of_a_pandas_frame_do_not_arrive() -> None:
    frame = pd.DataFrame(TABLE)
    people = Population.from_frame(frame, columns=["salary", "job"], id="note")
    frame.loc[0, "salary"] = 99.0
    frame.loc[0, "gender"] = 99
    frame.loc[0, "note"] = "z"
    frame["job"] = "king"
    del frame["gender"]
    assert people.numbers("salary").tolist() == TABLE["salary"]
    assert people.ids.tolist() == TABLE["note"]
    assert columns_of(people.frame()) == TABLE


def test_later_changes_of_a_polars_frame_do_not_arrive() -> None:
    frame = pl.DataFrame(TABLE)
    people = Population.from_frame(frame, columns=["salary", "job"])
    frame[0, "salary"] = 99.0
    frame[0, "gender"] = 99
    frame.drop_in_place("note")
    assert people.numbers("salary").tolist() == TABLE["salary"]
    assert columns_of(people.frame()) == TABLE


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
    make: Callable[[dict[str, Any]], Any], missing: bool
) -> None:
    memory = {"a": np.array([1.0, np.nan if missing else 2.0, 3.0]), "b": np.array([1.0, 2.0, 3.0])}
    people = Population.from_frame(make(memory), columns=["a"], id="b", missing="drop")
    for array in memory.values():
        array[:] = 99.0
    kept = [1.0, 3.0] if missing else [1.0, 2.0, 3.0]
    assert people.numbers("a").tolist() == kept
    assert people.ids.tolist() == kept
    assert columns_of(people.frame()) == {"a": kept, "b": kept}


def test_a_frame_that_was_given_back_can_be_written_to_without_harm() -> None:
    for frame in (pd.DataFrame(TABLE), pl.DataFrame(TABLE)):
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
