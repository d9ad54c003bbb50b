"""Large files: the fast way gives what the plain one gives, bit for bit, in little memory."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.columns import Categories, Numbers
from mutandis.data.population import Population
from mutandis.store import duckdb_reader
from mutandis.store.tables import TableFiles, read_source

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

text = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)
whole = st.none() | st.integers(-(2**53) + 1, 2**53 - 1)
number = st.none() | st.floats(allow_nan=False, allow_infinity=False)
row = st.tuples(text, st.sampled_from(["a", "B", "é", "'", ""]), whole, number, st.booleans())


def assert_same(found: Population, plain: Population) -> None:
    assert found.columns.keys() == plain.columns.keys()
    assert dict(found.dropped) == dict(plain.dropped)
    np.testing.assert_array_equal(found.ids, plain.ids)
    np.testing.assert_array_equal(found.positions, plain.positions)
    for name, column in plain.columns.items():
        other = found.columns[name]
        if isinstance(column, Numbers):
            assert isinstance(other, Numbers)
            assert other.values.tobytes() == column.values.tobytes()
        else:
            assert isinstance(other, Categories)
            assert other.levels == column.levels
            assert [type(level) for level in other.levels if isinstance(level, str)] == [
                type(level) for level in column.levels if isinstance(level, str)
            ]
            assert other.codes.tobytes() == column.codes.tobytes()


def slow(path: Path, **asked: Any) -> Population:
    """Read the file as a plain pandas frame, with a string for every row."""
    return Population.from_frame(duckdb.read_parquet(str(path)).df(), **asked)


@pytest.mark.slow
@settings(max_examples=40)
@given(rows=st.lists(row, min_size=1, max_size=40))
def test_the_fast_way_gives_what_the_plain_one_gives(
    rows: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("parquet")
    columns = dict(zip("abcde", map(list, zip(*rows, strict=True)), strict=True))
    types = [pa.string(), pa.string(), pa.int64(), pa.float64(), pa.bool_()]
    schema = pa.schema(list(zip("abcde", types, strict=True)))
    pq.write_table(pa.table(columns, schema=schema), folder / "t.parquet")
    for wanted in ("b", "be", "abcde"):
        if not any(None not in line for line in zip(*(columns[n] for n in wanted), strict=True)):
            continue
        asked: dict[str, Any] = {"columns": list(wanted), "missing": "drop"}
        table = read_source(TableFiles(path="t.parquet", folder=folder), columns=list(wanted))
        plain = slow(folder / "t.parquet", **asked)
        assert_same(Population.from_frame(table, **asked), plain)
        nominal = [
            Attribute(name=name, kind=AttributeKind.NOMINAL) for name in wanted if name != "d"
        ]
        again: dict[str, Any] = {"attributes": nominal, "missing": "drop"}
        assert_same(Population.from_frame(table, **again), slow(folder / "t.parquet", **again))


def test_a_text_column_with_many_values_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"person {i % 97}" for i in range(300)]
    pq.write_table(pa.table({"id": [f"p{i}" for i in range(300)], "n": names}), tmp_path / "t.pq")
    source = TableFiles(path="t.pq", folder=tmp_path)
    both = read_source(source)
    assert both.text == {"id", "n"}
    monkeypatch.setattr(duckdb_reader, "_FEW", 100)
    one = read_source(source)
    assert one.text == {"n"}
    pd.testing.assert_frame_equal(one.to_pandas(), both.to_pandas())
    people = [Population.from_frame(table, columns=["n"], id="id") for table in (one, both)]
    assert people[0].ids.tolist() == people[1].ids.tolist()


@pytest.mark.parametrize("levels", [126, 127, 128, 32_766, 32_768])
def test_codes_are_as_wide_as_they_need_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, levels: int
) -> None:
    monkeypatch.setattr(duckdb_reader, "_FEW", 10**6)
    values = [f"{i:06}" for i in range(levels)]
    pq.write_table(pa.table({"a": [*reversed(values), None]}), tmp_path / "t.parquet")
    found = read_source(TableFiles(path="t.parquet", folder=tmp_path)).frame["a"]
    assert found.cat.codes.tolist() == [*range(levels - 1, -1, -1), -1]
    assert found.cat.categories.tolist() == values


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("read")


@pytest.mark.slow
def test_memory_grows_with_the_rows_and_no_faster(tmp_path: Path, benchmark: Any) -> None:
    peaks = {}
    for rows in (300_000, 900_000):
        # which refuses if the plain way gives other columns
        measured = benchmark.benchmark(rows, tmp_path, 1)["ours"]
        assert measured["rows"] == rows
        peaks[rows] = measured["gigabytes"] * 1e9
    # 10 million rows are to take less than 2 GB, whatever DuckDB needs to begin with
    assert (peaks[900_000] - peaks[300_000]) / 600_000 < 200
