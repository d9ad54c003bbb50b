"""The population: rows in order, ids that stay, and what is refused with which words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.columns import Categories, Numbers
from mutandis.data.population import Overlay, Population, as_overlay
from mutandis.errors import (
    AlignmentError,
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


def test_named_columns_are_read_from_every_frame(
    as_frame: AsFrame, applicants: Table, columns_of: ColumnsOf
) -> None:
    people = Population.from_frame(as_frame(applicants), columns=["salary", "job"])
    assert list(people.columns) == ["salary", "job"]
    assert len(people) == 3
    assert people.numbers("salary").tolist() == [30.5, 10.0, 20.25]
    assert people.categories("job").levels == ("clerk", "cook")
    assert people.categories("job").codes.tolist() == [1, 0, 1]
    assert people.ids.tolist() == people.positions.tolist() == [0, 1, 2]
    assert not people.dropped
    assert columns_of(people.frame()) == applicants


def test_declared_kinds_come_before_types(as_frame: AsFrame, applicants: Table) -> None:
    attributes = [
        Attribute(name="gender", kind=AttributeKind.NOMINAL),
        Attribute(name="job", kind=AttributeKind.ORDINAL, levels=("cook", "clerk")),
    ]
    people = Population.from_frame(
        as_frame(applicants), columns=["gender", "salary"], attributes=attributes
    )
    assert people.categories("gender").levels == (0, 1)
    assert people.categories("job").codes.tolist() == [0, 1, 0]
    assert people.numbers("salary")[0] == 30.5


def test_frames_come_back_in_the_callers_type(applicants: Table) -> None:
    for frame, kind in (
        (pd.DataFrame(applicants), pd.DataFrame),
        (pl.DataFrame(applicants), pl.DataFrame),
        (pa.table(applicants), pa.Table),
        (pl.LazyFrame(applicants), pd.DataFrame),
        (applicants, pd.DataFrame),
    ):
        people = Population.from_frame(frame, columns=["salary"])
        assert isinstance(people.frame(), kind)
        changed = people.with_columns({"salary": Numbers(np.zeros(3))})
        assert isinstance(changed.frame(), kind)


@pytest.mark.parametrize(
    "index",
    [[2, 0, 1], [7, 7, 7], [1, 1, 0], ["c", "a", "b"], pd.MultiIndex.from_tuples([(1, 2)] * 3)],
)
def test_a_pandas_index_is_ignored(index: Any, applicants: Table, columns_of: ColumnsOf) -> None:
    frame = pd.DataFrame(applicants, index=index)
    people = Population.from_frame(frame, columns=["salary", "job"], id="note")
    assert people.numbers("salary").tolist() == applicants["salary"]
    assert people.ids.tolist() == applicants["note"]
    assert people.positions.tolist() == [0, 1, 2]
    changed = people.with_columns(
        {"salary": Numbers(np.array([1.5, 2.5, 3.5])), "job": people.categories("job").filled(0)}
    )
    assert columns_of(changed.frame()) == applicants | {
        "salary": [1.5, 2.5, 3.5],
        "job": ["clerk"] * 3,
    }


def test_rows_are_dropped_by_position_whatever_the_index(
    applicants: Table, columns_of: ColumnsOf
) -> None:
    frame = pd.DataFrame(applicants, index=[5, 5, 5])
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


def test_changed_columns_are_written_into_every_frame(
    as_frame: AsFrame, applicants: Table, columns_of: ColumnsOf
) -> None:
    nominal = [Attribute(name="gender", kind=AttributeKind.NOMINAL)]
    people = Population.from_frame(
        as_frame(applicants), columns=["salary", "job"], attributes=nominal
    )
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
        "note": applicants["note"],
    }
    assert open_frame(frame).columns == list(applicants)
    # the people that it was made from are as they were
    assert columns_of(people.frame()) == applicants
    assert people.numbers("salary").tolist() == applicants["salary"]


def test_truth_values_read_as_numbers_are_not_rounded_to_truth(columns_of: ColumnsOf) -> None:
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
def test_changed_names_keep_the_type_of_their_column(frame: Any, columns_of: ColumnsOf) -> None:
    people = Population.from_frame(frame, columns=["x"])
    changed = people.with_columns({"x": people.categories("x").filled(1)}).frame()
    assert columns_of(changed) == {"x": ["b", "b", "b"]}
    if isinstance(frame, pa.Table):
        assert changed.schema == frame.schema
    else:
        assert changed["x"].dtype == frame["x"].dtype


def test_a_level_that_no_row_has_can_be_written(as_frame: AsFrame, columns_of: ColumnsOf) -> None:
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
def test_a_new_level_is_never_lost_in_a_closed_type(frame: Any, columns_of: ColumnsOf) -> None:
    people = Population.from_frame(frame, columns=["x"])
    changed = people.with_columns({"x": Categories(np.array([1, 0]), ("a", "new"))})
    assert columns_of(changed.frame()) == {"x": ["new", "a"]}


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


def test_many_columns_are_not_all_listed() -> None:
    with pytest.raises(UnknownColumnError, match=r"'column29' and 5 more\.$") as caught:
        check_columns(["missing"], [f"column{place}" for place in range(35)])
    assert "column30" not in str(caught.value)


@pytest.mark.parametrize("ids", [["x", "a", "m"], [30, 10, 20], [0.5, 1.5, -2.0], [True, "no", 2]])
def test_ids_are_the_columns_own_values(ids: list[Any]) -> None:
    people = Population.from_frame({"name": pd.Series(ids), "a": [1, 2, 3]}, id="name")
    assert people.ids.tolist() == ids


NOMINAL = Attribute(name="job", kind=AttributeKind.NOMINAL)
ORDINAL = Attribute(name="job", kind=AttributeKind.ORDINAL, levels=("cook", "clerk"))
NOTES = Attribute(name="note", kind=AttributeKind.CONTINUOUS)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"missing": "ignore"}, PlanError, r"missing='ignore' is unknown"),
        ({"columns": ["job", "Salary"]}, UnknownColumnError, r"Did you mean 'salary'\?"),
        ({"id": "zip"}, UnknownColumnError, r"'zip'\. The table's columns are 'salary', 'job'"),
        ({"attributes": [ORDINAL, NOMINAL]}, PlanError, "declared as ordinal and as nominal"),
        ({"attributes": [NOTES]}, KindError, "'note' is to be read as numbers"),
        ({"id": "job"}, InputError, r"has 3 rows but only 2 distinct values\. .*leave id= out"),
    ],
)
def test_what_cannot_be_read_is_refused_without_a_cell(
    as_frame: AsFrame, applicants: Table, options: Any, error: Any, said: str
) -> None:
    with pytest.raises(error, match=said) as caught:
        Population.from_frame(as_frame(applicants), **options)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("ids", [[SECRET, None, None], [1, None, None], [1.0, float("nan"), None]])
def test_missing_ids_are_refused(as_frame: AsFrame, ids: list[Any]) -> None:
    with pytest.raises(InputError, match="'name' has 2 missing values") as caught:
        Population.from_frame(as_frame({"name": ids}), id="name")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (None, "Cannot read a table from NoneType"),
        ("table.csv", "Cannot read a table from str"),
        (np.zeros((2, 2)), "Cannot read a table from ndarray"),
        (pd.Series([1]), "Cannot read a table from Series"),
        ({"a": [1, 2], "b": [1]}, "Cannot read a table from this dict"),
        ({"a": 1}, "Cannot read a table from this dict"),
        ({"a": []}, "The table has no rows"),
        (pl.DataFrame({"a": []}), "The table has no rows"),
        ({}, "Unknown column 'a'"),
        ({"a": [None, None]}, "No row has all the values that are needed: 'a' has 2 missing"),
        (pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]), "several columns of the same name"),
        (
            pa.Table.from_arrays([pa.array([1])] * 3, names=["a", "b", "a"]),
            r"several columns of the same name: 'a'\. Rename",
        ),
    ],
)
def test_what_is_no_table_is_refused(table: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Population.from_frame(table, columns=["a"], missing="drop")


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda p: p.numbers("job"), KindError, "'job' holds names, not numbers"),
        (lambda p: p.categories("salary"), KindError, "'salary' holds numbers, not names"),
        (lambda p: p.numbers("note"), UnknownColumnError, r"'note'\. The population holds"),
        (
            lambda p: p.with_columns({"note": Numbers(np.zeros(3))}),
            UnknownColumnError,
            r"'note'\. The population holds 'salary', 'job'",
        ),
        (
            lambda p: p.with_columns({"salary": Numbers(np.zeros(2))}),
            AlignmentError,
            "'salary' has 2 new values for 3 rows",
        ),
        (
            lambda p: p.with_columns({"salary": Numbers(np.array([np.nan, 1.0, np.inf]))}),
            MissingValuesError,
            "'salary' has 1 missing and 1 infinite",
        ),
        (
            lambda p: p.with_columns({"job": Categories(np.array([-1, 0, -1]), ("cook",))}),
            MissingValuesError,
            "'job' has 2 missing",
        ),
    ],
)
def test_columns_have_one_form_and_new_values_fit(
    applicants: Table, ask: Any, error: Any, said: str
) -> None:
    with pytest.raises(error, match=said):
        ask(Population.from_frame(applicants, columns=["salary", "job"]))


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
    assert len(kept.columns.rows) == 1
    assert kept.numbers("pay")[7] == -1.0


def test_the_sign_of_zero_is_a_difference() -> None:
    base = Population.from_frame({"x": [0.0, 1.0, 2.0]}, columns=["x"])
    kept = as_overlay(base.with_columns({"x": Numbers(np.array([-0.0, 1.0, 2.0]))}), base)
    assert np.signbit(kept.numbers("x")[0])


def test_a_patch_of_another_kind_is_refused() -> None:
    column = Numbers(np.array([1.0]))
    patched = Overlay({"x": column}, np.array([0]), {"x": Categories(np.array([0]), ("a",))}, {})
    with pytest.raises(TypeError, match="type of its column"):
        patched["x"]
