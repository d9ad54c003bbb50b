"""Any frame type in and out, and tables whose text is held as codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mutandis as mm
from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.population import Population
from mutandis.frames import EncodedTable, open_frame, to_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray


COLUMNS: dict[str, Any] = {
    "id": np.array([3, 1]),
    "name": np.array(["b", "a"], dtype=object),
    "text": ["x", "y"],
    "share": np.array([0.5, np.nan]),
    "none": np.array([None, None], dtype=object),
    "mixed": np.array([1, "one"], dtype=object),
}


@pytest.mark.parametrize(
    "like", [pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), pa.table({"a": [1]})]
)
def test_a_table_is_of_the_same_type_as_another(like: Any) -> None:
    columns = {name: values for name, values in COLUMNS.items() if name != "mixed"}
    table = to_frame(columns, open_frame(like))
    assert type(table) is type(like)
    opened = open_frame(table)
    assert opened.columns == ["id", "name", "text", "share", "none"]
    assert opened["id"].to_list() == [3, 1]
    assert opened["name"].to_list() == ["b", "a"]
    assert opened["text"].to_list() == ["x", "y"]
    assert opened["share"].to_list()[0] == 0.5
    # what is missing is missing in the way of the frame
    assert opened["share"].null_count() == 1
    assert opened["none"].null_count() == 2


def decisions(rows: int = 400) -> pd.DataFrame:
    generator = np.random.default_rng(5)
    sex = generator.choice(["f", "m"], rows)
    job = np.where(generator.random(rows) < 0.3 + 0.3 * (sex == "m"), "judge", "cook")
    pay = 20 + 10 * (sex == "m") + 8 * (job == "judge") + generator.normal(0, 5, rows).round(1)
    granted = np.where(pay + 5 * (job == "judge") > 33, "yes", "no")
    return pd.DataFrame({"sex": sex, "job": job, "pay": pay, "granted": granted, "note": "a b"})


def audit(table: Any, **more: Any) -> mm.Audit:
    return mm.audit(
        table,
        outcome="granted",
        negative="no",
        protected=mm.Protection("sex", value="f", reference="m"),
        attributes={"pay": "continuous", "job": "nominal"},
        worldview=mm.Worldview({"job": mm.Categorical("sex"), "pay": mm.Linear("sex", "job")}),
        ks=(10,),
        uncertainty=mm.Uncertainty(draws=2, refits=2),
        **more,
    )


def test_an_audit_of_codes_is_that_of_text() -> None:
    seen: list[pd.DataFrame] = []

    def decide(frame: pd.DataFrame) -> Any:
        seen.append(frame)
        # what text can do and a categorical cannot
        points = frame["job"].map({"judge": 5.0, "cook": 0.0}) + frame["pay"]
        assert (frame["job"] + frame["sex"]).str.len().max() == 6
        return np.where(points > 33, "yes", "no")

    table = decisions()
    plain = audit(table, decision=decide)
    found = audit(read_arrays(table), decision=decide)
    pd.testing.assert_frame_equal(found.findings(), plain.findings())
    assert found.provenance.as_dict()["data"] == plain.provenance.as_dict()["data"]
    half = len(seen) // 2
    assert half >= 2
    for before, after in zip(seen[:half], seen[half:], strict=True):
        pd.testing.assert_frame_equal(before, after)
    counterfactual = found.counterfactuals()
    assert not any(isinstance(kind, pd.CategoricalDtype) for kind in counterfactual.dtypes)
    pd.testing.assert_frame_equal(counterfactual, plain.counterfactuals())


def read_arrays(table: pd.DataFrame) -> EncodedTable:
    """Hold a table as it is read from a file: arrays, and codes of text."""
    arrays: dict[str, Any] = {}
    for name in map(str, table):
        column = table[name]
        if column.dtype.kind in "iuf":
            arrays[name] = np.ma.masked_invalid(column.to_numpy())
        else:
            coded = pd.Categorical(column, categories=["0 unused", *sorted(set(column.dropna()))])
            arrays[name] = (coded.codes, tuple(coded.categories))
    text = frozenset(name for name, array in arrays.items() if isinstance(array, tuple))
    return EncodedTable(arrays, text=text)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("id", [None, "number"])
def test_arrays_are_read_as_a_frame_is(id: str | None, *, missing: bool) -> None:  # noqa: A002
    table = decisions(60).assign(number=np.arange(60)[::-1], grade=np.arange(60) % 3)
    if missing:
        table.loc[3, "pay"] = np.nan
        table.loc[5, "job"] = None
    attributes = [
        mm.Attribute(name="pay", kind=mm.AttributeKind.CONTINUOUS),
        mm.Attribute(name="grade", kind=mm.AttributeKind.ORDINAL, levels=(2, 1, 0)),
        mm.Attribute(name="number", kind=mm.AttributeKind.NOMINAL),
    ]
    reading: dict[str, Any] = {"columns": ["job", "granted"], "attributes": attributes, "id": id}
    plain = Population.from_frame(table, **reading, missing="drop")
    read = read_arrays(table)
    found = Population.from_frame(read, **reading, missing="drop")
    assert bool(read.arrays) is not missing  # no frame was made
    assert found.ids.tolist() == plain.ids.tolist()
    assert found.positions.tolist() == plain.positions.tolist()
    assert found.columns.keys() == plain.columns.keys()
    for name, column in plain.columns.items():
        same = found.columns[name]
        assert type(same) is type(column)
        assert same.data.tolist() == column.data.tolist()
        assert getattr(same, "levels", None) == getattr(column, "levels", None)
    assert found.as_read_by_rules("pay").tolist() == plain.as_read_by_rules("pay").tolist()
    pd.testing.assert_frame_equal(found.frame(), plain.frame())
    assert len(read) == len(table)
    assert read.columns == table.columns.tolist()


@pytest.mark.parametrize(
    "attribute",
    [
        mm.Attribute(name="sex", kind=mm.AttributeKind.CONTINUOUS),
        mm.Attribute(name="job", kind=mm.AttributeKind.ORDINAL, levels=("cook", "clerk")),
        mm.Attribute(name="unknown", kind=mm.AttributeKind.NOMINAL),
    ],
)
def test_arrays_are_refused_as_a_frame_is(attribute: mm.Attribute) -> None:
    said = []
    for table in (decisions(60), read_arrays(decisions(60))):
        with pytest.raises(mm.MutandisError) as caught:
            Population.from_frame(table, attributes=[attribute])
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_what_is_categorical_by_itself_stays_so() -> None:
    arrays = {"a": (np.array([0, 1]), ("x", "y")), "b": (np.array([0, -1]), ("u",))}
    table = EncodedTable(arrays, text=frozenset({"b"}))
    assert (len(table), table.columns) == (2, ["a", "b"])
    for frame in (Population.from_frame(table, columns=["a"]).frame(), table.to_pandas()):
        assert isinstance(frame["a"].dtype, pd.CategoricalDtype)
        assert not isinstance(frame["b"].dtype, pd.CategoricalDtype)
        assert frame["b"].isna().tolist() == [False, True]


def test_rows_are_dropped_and_levels_that_go_with_them_stay_known() -> None:
    table = decisions(50)
    table.loc[3, "pay"] = np.nan
    table.loc[3, "job"] = "only here"
    plain = Population.from_frame(table, columns=["pay", "job"], missing="drop")
    found = Population.from_frame(read_arrays(table), columns=["pay", "job"], missing="drop")
    assert found.dropped == plain.dropped == {"pay": 1}
    assert found.categories("job").levels == plain.categories("job").levels
    np.testing.assert_array_equal(found.categories("job").codes, plain.categories("job").codes)
    pd.testing.assert_frame_equal(found.frame(), plain.frame())


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.float32, np.bool_])
def test_numbers_of_any_width_are_read_and_not_shared(kind: type) -> None:
    values: NDArray[Any] = np.array([0, 1, 1], dtype=kind)
    table = pd.DataFrame({"x": values}, copy=False)
    attribute = Attribute(name="x", kind=AttributeKind.CONTINUOUS)
    people = Population.from_frame(table, attributes=[attribute])
    values[0] = 1
    assert people.numbers("x").tolist() == [0.0, 1.0, 1.0]
