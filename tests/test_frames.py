"""Tables in the caller's own frame type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mutandis.frames import columns_of, open_frame, to_frame

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


def test_values_of_two_types_stay_as_they_are() -> None:
    table = to_frame({"mixed": COLUMNS["mixed"]}, open_frame(pd.DataFrame({"a": [1]})))
    assert table["mixed"].tolist() == [1, "one"]


def test_a_table_is_a_copy() -> None:
    values = np.array([0.5, 0.25])
    table = to_frame({"share": values}, open_frame(pd.DataFrame({"a": [1]})))
    values[0] = 9
    assert table["share"].tolist() == [0.5, 0.25]


def test_records_become_columns() -> None:
    assert columns_of([{"a": 1, "b": 2}, {"a": 3, "b": 4}]) == {"a": [1, 3], "b": [2, 4]}
    assert columns_of([]) == {}
