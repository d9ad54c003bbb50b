"""Tables in files: every format gives the same table, and what is wrong is said in a sentence."""

from __future__ import annotations

import gzip
import hashlib
import json
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from mutandis.errors import (
    InputError,
    UnknownColumnError,
)
from mutandis.store import duckdb_reader
from mutandis.store.sources import TableFiles, as_source, column_names, read_source, source_of

PEOPLE = pd.DataFrame(
    {
        "id": [7, 8, 9],
        "pay": [1.5, np.nan, 4.0],
        "job": ["cook", None, 'd\'été; "x"'],
        "granted": [True, False, True],
    }
)


def write(folder: Path, name: str, text: str | bytes) -> TableFiles:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return TableFiles(path=name, folder=folder)


def frame_of(source: TableFiles, *columns: str) -> pd.DataFrame:
    return read_source(source, columns=columns or None).to_pandas()


def write_people(folder: Path, ending: str) -> TableFiles:
    path = folder / f"people{ending}"
    match ending:
        case ".parquet":
            PEOPLE.to_parquet(path)
        case ".arrow":
            with (
                pa.OSFile(str(path), "wb") as file,
                pa.ipc.new_file(
                    file, schema := pa.Table.from_pandas(PEOPLE, preserve_index=False).schema
                ) as writer,
            ):
                writer.write_table(pa.Table.from_pandas(PEOPLE, schema=schema))
        case ".feather":
            feather.write_feather(PEOPLE, str(path))
        case ".jsonl" | ".ndjson" | ".jsonl.gz":
            PEOPLE.to_json(path, orient="records", lines=True)
        case ".json":
            PEOPLE.to_json(path, orient="records")
        case ".tsv":
            PEOPLE.to_csv(path, sep="\t", index=False)
        case _:
            PEOPLE.to_csv(path, index=False)
    return TableFiles(path=path.name, folder=folder)


@pytest.mark.parametrize(
    "ending",
    [
        ".csv",
        ".csv.gz",
        ".tsv",
        ".txt",
        ".parquet",
        ".arrow",
        ".feather",
        ".jsonl",
        ".jsonl.gz",
        ".ndjson",
        ".json",
    ],
)
def test_every_format_gives_the_same_table(tmp_path: Path, ending: str) -> None:
    source = write_people(tmp_path, ending)
    assert column_names(source) == ("id", "pay", "job", "granted")
    found = frame_of(source)
    assert found["id"].tolist() == [7, 8, 9]
    assert found["id"].dtype.kind == "i"
    np.testing.assert_array_equal(found["pay"].to_numpy(), [1.5, np.nan, 4.0])
    assert found["job"].isna().tolist() == [False, True, False]
    assert found["job"][0] == "cook"
    assert found["job"][2] == 'd\'été; "x"'
    assert found["granted"].tolist() == [True, False, True]
    assert frame_of(source, "granted", "id").columns.tolist() == ["id", "granted"]


def test_options_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="A separator is one character"):
        TableFiles(path="t.csv", separator="--")
    write_people(tmp_path, ".parquet")
    with pytest.raises(InputError, match=r"'separator' is about CSV files, and 'people\.parquet'"):
        read_source(TableFiles(path="people.parquet", folder=tmp_path, separator=";"))


def test_names_that_differ_in_case_are_different_columns(tmp_path: Path) -> None:
    for source in (
        write(tmp_path, "t.csv", "age,Age,job\n1,2,x\n"),
        write_parquet(tmp_path, ["age", "Age", "job"]),
    ):
        assert column_names(source) == ("age", "Age", "job")
        found = frame_of(source, "Age", "age")
        assert (found["age"].tolist(), found["Age"].tolist()) == ([1], [2])
        with pytest.raises(UnknownColumnError, match="Unknown column 'AGE'"):
            read_source(source, columns=["AGE"])
    lines = write(tmp_path, "t.jsonl", '{"age": 1, "Age": 2}\n')
    with pytest.raises(InputError, match="differ in upper and lower case only"):
        read_source(lines)


def write_parquet(folder: Path, names: list[str]) -> TableFiles:
    table = pa.table([[place] for place, _ in enumerate(names, start=1)], names=names)
    pq.write_table(table, folder / "names.parquet")
    return TableFiles(path="names.parquet", folder=folder)


def test_two_columns_of_the_same_name_are_refused(tmp_path: Path) -> None:
    arrow = pa.table([[1], [2]], names=["a", "a"])
    feather.write_feather(arrow, str(tmp_path / "t.feather"))
    for source in (
        write(tmp_path, "t.csv", "a,b,a\n1,2,3\n"),
        write_parquet(tmp_path, ["a", "b", "a"]),
        TableFiles(path="t.feather", folder=tmp_path),
    ):
        with pytest.raises(InputError, match="several columns of the same name: 'a'"):
            read_source(source, columns=["a"])
        with pytest.raises(InputError, match="several columns of the same name: 'a'"):
            column_names(source)


@pytest.mark.slow
def test_only_the_columns_that_are_needed_are_read_of_ten_thousand(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(10_000)]
    line = ",".join(str(i) if i % 3 else "abc" for i in range(10_000))
    csv = write(tmp_path, "t.csv", "\n".join([",".join(names), *[line] * 100]))
    pq.write_table(pa.table({name: [1] * 100 for name in names}), tmp_path / "t.parquet")
    keys = json.dumps(dict.fromkeys(names, 1))
    write(tmp_path, "t.jsonl", "\n".join([keys] * 20))
    for path in (csv.path, "t.parquet", "t.jsonl"):
        source = TableFiles(path=path, folder=tmp_path)
        began = time.process_time()
        assert len(column_names(source)) == 10_000
        found = read_source(source, columns=["c9999", "c7"])
        assert found.columns == ["c7", "c9999"]
        # what reads all of them takes 20 seconds and more
        assert time.process_time() - began < 8


@pytest.mark.slow
def test_all_of_many_columns_can_be_read(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(3_000)]
    line = ",".join(
        "abc" if i % 3 == 0 else str(i) if i % 3 == 1 else f"{i}.5" for i in range(3_000)
    )
    source = write(tmp_path, "t.csv", "\n".join([",".join(names), *[line] * 20]))
    began = time.process_time()
    found = frame_of(source)
    # asked column by column, it takes minutes
    assert time.process_time() - began < 15
    assert found.shape == (20, 3_000)
    assert found.iloc[0, [0, 1, 2, -1]].tolist() == ["abc", 1, 2.5, 2999.5]


def test_a_folder_of_parquet_files(tmp_path: Path) -> None:
    for year in (2020, 2021):
        folder = tmp_path / "loans" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(
            pa.table({"pay": [year * 1.0, 2.0], "job": ["a", str(year)]}), folder / "x.pq"
        )
    (tmp_path / "loans" / "_SUCCESS").write_text("")
    (tmp_path / "loans" / ".hidden.csv").write_text("no table")
    source = TableFiles(path="loans", folder=tmp_path)
    assert column_names(source) == ("pay", "job", "year")
    found = frame_of(source)
    assert found["year"].tolist() == [2020, 2020, 2021, 2021]
    assert found["job"].tolist() == ["a", "2020", "a", "2021"]
    # a file that is named by itself holds what it holds
    alone = TableFiles(path="loans/year=2020/x.pq", folder=tmp_path)
    assert column_names(alone) == ("pay", "job")


def test_a_pattern_of_files(tmp_path: Path) -> None:
    for name, text in (("b.csv", "a,b\n3,z\n"), ("a.csv", "a,b\n1,x\n2,y\n")):
        write(tmp_path, name, text)
    source = TableFiles(path="*.csv", folder=tmp_path)
    assert frame_of(source)["a"].tolist() == [1, 2, 3]
    assert frame_of(TableFiles(path=str(tmp_path / "*.csv")))["b"].tolist() == ["x", "y", "z"]
    write(tmp_path, "c.csv", "a,c\n1,x\n")
    with pytest.raises(InputError, match=r"'c\.csv' has other columns.* than 'a\.csv'"):
        read_source(source)


def test_brackets_in_a_name_are_no_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "case [1]"
    folder.mkdir()
    write(folder, "t1.csv", "a,b\n1,wrong\n")
    write(folder, "t[1].csv", "a,b\n2,right\n")
    assert frame_of(TableFiles(path="t[1].csv", folder=folder))["b"].tolist() == ["right"]
    assert frame_of(TableFiles(path="t1*.csv", folder=folder))["b"].tolist() == ["wrong"]


def test_files_with_different_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "2.parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_source(TableFiles(path="*.parquet", folder=tmp_path))


def test_tables_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path, "x.docx", "")
    write(tmp_path, "x.csv", "a\n1\n")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    for path, message in {
        "no.csv": "There is no file or folder 'no.csv'",
        "no/*.csv": "No file fits the pattern 'no/*.csv'",
        "empty": "The folder 'empty' holds no table",
        "x.docx": "The ending of 'x.docx' does not tell",
        "x.[cp]*": "files of several formats (Parquet, csv)",
        "a\0b.csv": "There is no file or folder",
    }.items():
        for look in (read_source, column_names):
            with pytest.raises(InputError) as caught:
                look(TableFiles(path=path, folder=tmp_path))
            assert message in str(caught.value)
            assert str(tmp_path) not in str(caught.value)


def test_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locked").mkdir()

    def refuse(path: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.scandir", refuse)  # root may read everything
    with pytest.raises(InputError, match="'locked' cannot be opened: Permission denied"):
        read_source(TableFiles(path="locked", folder=tmp_path))


@pytest.mark.parametrize("name", ["x.parquet", "x.feather", "x.jsonl", "x.csv.gz"])
def test_files_that_are_not_what_they_end_in(tmp_path: Path, name: str) -> None:
    source = write(tmp_path, name, "SECRET-NAME is none, and long enough to be looked at")
    with pytest.raises(InputError, match=f"'{name}' cannot be read") as caught:
        read_source(source)
    assert "SECRET-NAME" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_half_a_packed_file(tmp_path: Path) -> None:
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    with pytest.raises(InputError, match=r"'t\.csv\.gz' cannot be read"):
        read_source(write(tmp_path, "t.csv.gz", packed[: len(packed) // 2]))


def test_arrow_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_people(tmp_path, ".feather")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'mutandis\[arrow\]'"):
        read_source(source)


def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"a": ["x", "y"]}), tmp_path / "t.parquet")
    right = duckdb_reader.Relation

    def late(**parts: Any) -> Any:
        # the levels are looked up, then the rows are read; between them, rows change
        parts["relation"] = "(SELECT CAST(random() AS VARCHAR) AS a)"
        return right(**parts)

    monkeypatch.setattr(duckdb_reader, "Relation", late)
    with pytest.raises(InputError, match="nothing writes to it at the same time") as caught:
        read_source(TableFiles(path="t.parquet", folder=tmp_path))
    assert "0." not in str(caught.value)


def test_mixed_and_nested_json(tmp_path: Path) -> None:
    lines = ['{"a": 1, "b": {"c": 1}, "d": null}', '{"a": "x", "e": [1, 2], "d": null}']
    found = frame_of(write(tmp_path, "t.jsonl", "\n".join(lines)))
    assert found["a"].tolist() == ["1", "x"]
    assert found["d"].isna().all()
    assert found["e"].isna().tolist() == [True, False]


def test_hashes(tmp_path: Path) -> None:
    first = write(tmp_path, "a.csv", "a,b\n1,x\n")
    assert as_source(first).sha256() == hashlib.sha256(b"a,b\n1,x\n").hexdigest()
    write(tmp_path, "b.csv", "a,b\n2,x\n")
    both = TableFiles(path="*.csv", folder=tmp_path)
    before = as_source(both).sha256()
    (tmp_path / "moved").mkdir()
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    assert as_source(TableFiles(path="moved", folder=tmp_path)).sha256() == before
    (tmp_path / "moved" / "b.csv").rename(tmp_path / "moved" / "c.csv")
    assert as_source(TableFiles(path="moved", folder=tmp_path)).sha256() != before
    with pytest.raises(InputError, match="no file or folder"):
        as_source(TableFiles(path="gone.csv", folder=tmp_path)).sha256()


def test_a_description_makes_the_source_again(tmp_path: Path) -> None:
    source = TableFiles(
        path="x.csv",
        folder=tmp_path,
        separator=";",
        decimal=",",
        encoding="latin-1",
        header=True,
        missing_text=("NA",),
    )
    described = json.loads(json.dumps({**source.describe(), "sha256": "abc"}))
    assert str(tmp_path) not in json.dumps(described)
    assert source_of(described, folder=tmp_path) == source
    with pytest.raises(InputError, match="not complete"):
        source_of({"kind": "files"}, folder=tmp_path)


@pytest.mark.parametrize("given", [str, Path])
def test_a_path_is_a_table(tmp_path: Path, monkeypatch: Any, given: Any) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.csv").write_text("id,pay\n1,2\n")
    (tmp_path / "parts" / "b.csv").write_text("id,pay\n2,3\n")
    monkeypatch.chdir(tmp_path)

    for path, rows in (("parts", 2), ("parts/*.csv", 2), ("parts/a.csv", 1)):
        assert len(read_source(given(path), columns=["pay"])) == rows
        assert column_names(given(tmp_path / path)) == ("id", "pay")
    with pytest.raises(InputError, match="in Python at the current one"):
        read_source(given("parts/c.csv"))


@pytest.mark.parametrize("path", ["loans.db", "postgresql://user:secret@host/loans"])
def test_a_database_is_more_than_a_path(path: str) -> None:
    with pytest.raises(InputError, match="A table in a database needs a query") as caught:
        read_source(path)
    assert "secret" not in str(caught.value)


def test_an_arrow_file_whose_texts_lie_outside_of_it(tmp_path: Path) -> None:
    # where a text begins and ends is written in the file; read unchecked, it ended the process
    path = tmp_path / "t.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, pa.schema([("a", "str")])) as to:
        to.write_table(pa.table({"a": ["one", "two", "three"]}))
    content = path.read_bytes()
    offsets = struct.pack("<4i", 0, 3, 6, 11)
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, struct.pack("<4i", 0, 3, 6, 2**30)))
    with pytest.raises(InputError, match=r"'t\.arrow' cannot be read as Arrow"):
        read_source(path)
