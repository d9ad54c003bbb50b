"""Tables in files: which files, what their text means, and every fault in a sentence."""

from __future__ import annotations

import gzip
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mutandis as mm
from mutandis.errors import (
    InputError,
    KindError,
    MissingValuesError,
    OutcomeError,
    UnknownColumnError,
)
from mutandis.store import duckdb_reader
from mutandis.store.tables import TableFiles, column_names, read_source, source_of

PEOPLE = pd.DataFrame(
    {
        "id": [7, 8, 9],
        "pay": [1.5, np.nan, 4.0],
        "job": ["cook", None, 'd\'été; "x"'],
        "granted": [True, False, True],
    }
)


def write(folder: Path, text: str | bytes, name: str = "t.csv", **more: Any) -> TableFiles:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return TableFiles(path=name, folder=folder, **more)


def frame_of(source: TableFiles, *columns: str) -> pd.DataFrame:
    return read_source(source, columns=columns or None).to_pandas()


def refused(source: Any, columns: list[str] | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read_source(source, columns=columns)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None  # which would quote the table
    return str(caught.value)


# --- CSV ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
def test_the_separator_is_detected(tmp_path: Path, separator: str) -> None:
    table = mm.datasets.loan(n=80, seed=1)
    table.to_csv(tmp_path / "t.csv", sep=separator, index=False)
    found = frame_of(TableFiles(path="t.csv", folder=tmp_path))
    pd.testing.assert_frame_equal(found, table, check_dtype=False, check_exact=True)


def test_types_are_decided_by_every_row(tmp_path: Path) -> None:
    rows = [f"{i},{i},{i},true" for i in range(60_000)]
    found = frame_of(write(tmp_path, "\n".join(["a,b,c,d", *rows, "1.5,x,,false"])))
    # a reader that looks at the first rows only takes the last one for a 2
    assert found["a"].iloc[-1] == 1.5
    assert found["b"].iloc[[0, -1]].tolist() == ["0", "x"]
    assert (found["c"].isna().sum(), found["c"].iloc[-2]) == (1, 59_999)
    assert found["d"].dtype == np.bool_


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("a\n1_000\n2\n", {}, {"a": ["1_000", "2"]}),
        ("a\n0x1F\n3\n", {}, {"a": ["0x1F", "3"]}),
        ("a\nyes\nno\n", {}, {"a": ["yes", "no"]}),
        ("a\n1.234\n-1e3\n", {}, {"a": [1.234, -1000.0]}),
        ("a\n007\n8\n", {}, {"a": [7, 8]}),
        ("a\n 5\n6\n", {}, {"a": [5, 6]}),
        ("a\nepoch\ninfinity-x\n", {}, {"a": ["epoch", "infinity-x"]}),
        ("id\n9007199254740993\n9007199254740992\n", {}, {"id": [2**53 + 1, 2**53]}),
        ('name;pay\n"a,b";"1"\nc,d;2\n', {}, {"name": ["a,b", "c,d"], "pay": [1, 2]}),
        (b"\xef\xbb\xbfpay,b\n1,2\n", {}, {"pay": [1], "b": [2]}),
        (",a,\n1,2,3\n", {}, {"unnamed_1": [1], "a": [2], "unnamed_3": [3]}),
        ("age,Age\n1,2\n", {}, {"age": [1], "Age": [2]}),
        ("name,2020\nx,1\n", {"header": True}, {"name": ["x"], "2020": [1]}),
        # thousands are not guessed at
        (
            "a;b;c\n1,5;1.234,5;x,y\n2;2;z\n",
            {"decimal": ","},
            {"a": [1.5, 2], "b": ["1.234,5", "2"], "c": ["x,y", "z"]},
        ),
    ],
)
def test_what_text_means(
    tmp_path: Path, text: str | bytes, options: dict[str, Any], expected: dict[str, list[Any]]
) -> None:
    source = write(tmp_path, text, **options)
    assert column_names(source) == tuple(expected)
    assert frame_of(source).to_dict("list") == expected


def test_dates_and_missing_texts(tmp_path: Path) -> None:
    assert frame_of(write(tmp_path, "a\n2020-01-02\n2020-01-03\n"))["a"].dtype.kind == "M"
    found = frame_of(write(tmp_path, "a,b\nNA,x\n2,?\n,NA\n", missing_text=("NA", "?")))
    assert found["a"].tolist()[1] == 2
    assert found["a"].isna().tolist() == [True, False, True]
    assert found["b"].isna().tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("encoding", "suggested"),
    [("latin-1", "latin-1"), ("cp1252", "latin-1"), ("utf-16", "utf-16")],
)
def test_encodings(tmp_path: Path, encoding: str, suggested: str) -> None:
    rows = "".join(f"{i},straße\n" for i in range(200)) + "200,Übung\n"
    content = ("größe,ort\n" + rows).encode(encoding)
    said = refused(write(tmp_path, content))
    assert "not encoded as utf-8" in said
    assert f"'encoding: {suggested}'" in said
    found = frame_of(write(tmp_path, content, encoding=encoding))
    assert found["größe"].tolist() == list(range(201))
    assert found["ort"].iloc[-1] == "Übung"
    # far down, where the header tells nothing
    late = "a,b\n" + "1,ort\n" * 200 + "200,Übung\n"
    assert "'t.csv' is not encoded as utf-8" in refused(write(tmp_path, late.encode("latin-1")))
    assert "not encoded as ascii" in refused(write(tmp_path, late, encoding="ascii"))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "'t.csv' is empty"),
        ("\n\n", {}, "'t.csv' is empty"),
        ("a,b\n1,2\n1,SECRET,3\n", {"separator": ","}, "more or fewer fields in line 3"),
        ("a,b\n1,2\nSECRET\n1,2\n", {"separator": ","}, "more or fewer fields in line 3"),
        ('a,b\n1,2\n"SECRET,3\n', {"separator": ","}, "quote is opened in line 3"),
        ("a;b\n1;2\n", {"separator": ","}, "has ';'. Write 'separator: \";\"'"),
        ("a,b;c\n1;2,3,4\n1,2\n", {}, "not clear what separates"),
        ("SECRET,35000\nJoe,20000\n", {}, "first line of 't.csv' holds numbers"),
        ("name,2020\nx,1\n", {}, "write 'header: true'"),
        ("a,b,a\n1,2,3\n", {}, "several columns of the same name: 'a'"),
        ('"a\nb",c\r\n1,2\r\n', {}, "another kind of line break"),
    ],
)
def test_broken_csv(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    assert message in refused(write(tmp_path, text, **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": "--"}, "A separator is one character"),
        ({"decimal": "x"}, "The decimal mark"),
        *[({"encoding": each}, "encoding is not known") for each in ("klingon", "base64", "rot13")],
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TableFiles(path="t.csv", **options)


@pytest.mark.parametrize(
    ("packed", "most"),
    [
        pytest.param(False, 1_000_000, id="shorter"),
        pytest.param(True, 20_000_000, marks=pytest.mark.slow, id="packed"),
    ],
)
def test_a_line_without_end_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, most: int
) -> None:
    monkeypatch.setattr(duckdb_reader, "_LINE", most)
    name = "long.csv.gz" if packed else "long.csv"

    def source(rows: bytes) -> TableFiles:
        content = b"sex,pay\nf,1\nm," + rows
        return write(tmp_path, gzip.compress(content, 1) if packed else content, name)

    long = b"x" * (most * 21 // 20)
    assert f"a line of more than {most:,} bytes in line 3" in refused(source(long + b"\n"))
    # DuckDB leaves it out, without a word
    assert f"a line of more than {most:,} bytes at its end" in refused(source(long))
    assert len(read_source(source(b"2\nm," + b"x" * (most * 19 // 20)))) == 3


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".txt", ".parquet", ".pq"])
def test_every_format_gives_the_same_table(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"people{ending}"
    if ending in {".parquet", ".pq"}:
        PEOPLE.to_parquet(path)
    else:
        PEOPLE.to_csv(path, index=False, sep="\t" if ending == ".tsv" else ",")
    source = TableFiles(path=path.name, folder=tmp_path)
    assert column_names(source) == ("id", "pay", "job", "granted")
    found = frame_of(source)
    assert found["id"].dtype.kind == "i"
    np.testing.assert_array_equal(found["pay"].to_numpy(), PEOPLE["pay"].to_numpy())
    assert found["job"].isna().tolist() == [False, True, False]
    assert [found["job"][0], found["job"][2]] == ["cook", 'd\'été; "x"']
    assert found["granted"].tolist() == [True, False, True]
    assert frame_of(source, "granted", "id").columns.tolist() == ["id", "granted"]
    with pytest.raises(UnknownColumnError, match="Unknown column 'ID'"):
        read_source(source, columns=["ID"])


@pytest.mark.parametrize("names", [["age", "Age"], ["a", "b", "a"]])
def test_names_that_parquet_files_must_not_have(tmp_path: Path, names: list[str]) -> None:
    table = pa.table([[place] for place, _ in enumerate(names)], names=names)
    pq.write_table(table, tmp_path / "t.parquet")
    source = TableFiles(path="t.parquet", folder=tmp_path)
    assert "the same name, or of names that differ in upper and lower case" in refused(source)


def test_a_folder_of_parquet_files(tmp_path: Path) -> None:
    for year in (2020, 2021):
        folder = tmp_path / "loans" / f"year={year}"
        folder.mkdir(parents=True)
        columns = {"pay": [year * 1.0, 2.0], "job": ["a", str(year)]}
        pq.write_table(pa.table(columns), folder / "x.pq")
    (tmp_path / "loans" / "_SUCCESS.csv").write_text("")
    (tmp_path / "loans" / ".hidden.csv").write_text("no table")
    source = TableFiles(path="loans", folder=tmp_path)
    assert column_names(source) == ("pay", "job", "year")
    found = frame_of(source)
    assert found["year"].tolist() == [2020, 2020, 2021, 2021]
    assert found["job"].tolist() == ["a", "2020", "a", "2021"]
    # a file that is named by itself holds what it holds
    assert column_names(TableFiles(path="loans/year=2020/x.pq", folder=tmp_path)) == ("pay", "job")


@pytest.mark.parametrize("given", [str, Path])
def test_a_path_is_a_table(tmp_path: Path, monkeypatch: Any, given: Any) -> None:
    (tmp_path / "parts").mkdir()
    write(tmp_path, "a,b\n3,z\n", "parts/b.csv")
    write(tmp_path, "a,b\n1,x\n2,y\n", "parts/a.csv")
    monkeypatch.chdir(tmp_path)
    for path, rows in (("parts", 3), ("parts/*.csv", 3), ("parts/[a].csv", 2), ("parts/b.csv", 1)):
        assert len(read_source(given(path), columns=["a"])) == rows
        assert column_names(given(tmp_path / path)) == ("a", "b")
    assert frame_of(given("parts"))["a"].tolist() == [1, 2, 3]
    assert "in Python at the current one" in refused(given("parts/c.csv"))
    write(tmp_path, "a,c\n1,x\n", "parts/c.csv")
    assert "'c.csv' has other columns, or another separator, than 'a.csv'" in refused("parts")


def test_brackets_in_a_name_are_no_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "case [1]"
    folder.mkdir()
    write(folder, "a,b\n1,wrong\n", "t1.csv")
    assert frame_of(write(folder, "a,b\n2,right\n", "t[1].csv"))["b"].tolist() == ["right"]
    assert frame_of(TableFiles(path="t1*.csv", folder=folder))["b"].tolist() == ["wrong"]


def test_tables_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path, "", "x.docx")
    write(tmp_path, "a\n1\n", "x.csv")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "w.parquet")
    for path, message in {
        "no.csv": "There is no file or folder 'no.csv'",
        "no/*.csv": "No file fits the pattern 'no/*.csv'",
        "empty": "The folder 'empty' holds no table",
        "x.docx": "The ending of 'x.docx' does not tell",
        "x.[cp]*": "files of several formats (Parquet, CSV)",
        "a\0b.csv": "There is no file or folder",
        "?.parquet": "cannot be read as Parquet",
    }.items():
        said = refused(TableFiles(path=path, folder=tmp_path))
        assert message in said
        assert str(tmp_path) not in said
    said = refused(TableFiles(path="x.parquet", folder=tmp_path, separator=";"))
    assert "'separator' is about CSV files, and 'x.parquet'" in said


def test_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locked").mkdir()

    def refuse(path: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.scandir", refuse)  # root may read everything
    source = TableFiles(path="locked", folder=tmp_path)
    assert "'locked' cannot be opened: Permission denied" in refused(source)


def test_files_that_are_not_what_they_end_in(tmp_path: Path) -> None:
    for name in ("x.parquet", "x.csv.gz"):
        said = refused(write(tmp_path, "SECRET is none, and long enough to be looked at", name))
        assert f"'{name}' cannot be read" in said
        assert str(tmp_path) not in said
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    half = write(tmp_path, packed[: len(packed) // 2], "t.csv.gz")
    assert "'t.csv.gz' cannot be read" in refused(half)


def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"a": ["x", "y"]}), tmp_path / "t.parquet")
    right = duckdb_reader.Relation

    def late(**parts: Any) -> Any:
        # the levels are looked up, then the rows are read; between them, rows change
        return right(**parts | {"relation": "(SELECT CAST(random() AS VARCHAR) AS a)"})

    monkeypatch.setattr(duckdb_reader, "Relation", late)
    said = refused(TableFiles(path="t.parquet", folder=tmp_path))
    assert "nothing writes to it at the same time" in said
    assert "0." not in said


def test_hashes(tmp_path: Path) -> None:
    first = write(tmp_path, "a,b\n1,x\n", "a.csv")
    assert first.sha256() == hashlib.sha256(b"a,b\n1,x\n").hexdigest()
    write(tmp_path, "a,b\n2,x\n", "b.csv")
    before = TableFiles(path="*.csv", folder=tmp_path).sha256()
    moved = TableFiles(path="moved", folder=tmp_path)
    (tmp_path / "moved").mkdir()
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    assert moved.sha256() == before
    (tmp_path / "moved" / "b.csv").rename(tmp_path / "moved" / "c.csv")
    assert moved.sha256() != before
    with pytest.raises(InputError, match="no file or folder"):
        TableFiles(path="gone.csv", folder=tmp_path).sha256()


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
    for wrong in (
        {},
        {"source": ["x"]},
        {"source": "x.csv", "header": "yes"},
        {"url": "SECRET://x"},
    ):
        with pytest.raises(InputError) as caught:
            source_of({"kind": "files", **wrong}, folder=tmp_path)
        assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("path", ["loans.db", "postgresql://user:SECRET@host/loans"])
def test_a_database_is_more_than_a_path(path: str) -> None:
    assert "A table in a database needs a query" in refused(path)


# --- large tables ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_wide_tables_are_read_in_seconds(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(10_000)]
    line = ",".join(str(i) if i % 3 else "abc" for i in range(10_000))
    write(tmp_path, "\n".join([",".join(names), *[line] * 100]))
    pq.write_table(pa.table({name: [1] * 100 for name in names}), tmp_path / "t.parquet")
    began = time.process_time()
    for path in ("t.csv", "t.parquet"):
        source = TableFiles(path=path, folder=tmp_path)
        assert len(column_names(source)) == 10_000
        # what reads all of them takes 20 seconds and more
        assert read_source(source, columns=["c9999", "c7"]).columns == ["c7", "c9999"]
    kinds = ("abc", "{}", "{}.5")
    line = ",".join(kinds[i % 3].format(i) for i in range(3_000))
    found = frame_of(write(tmp_path, "\n".join([",".join(names[:3_000]), *[line] * 20])))
    assert found.iloc[0, [0, 1, 2, -1]].tolist() == ["abc", 1, 2.5, 2999.5]
    # asked column by column, it takes minutes
    assert time.process_time() - began < 30


def test_a_table_that_memory_cannot_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    # equal rows take no room in a file: a billion of them some ten megabytes
    path = tmp_path / "rows.parquet"
    rows = "SELECT 'f' AS sex, 1 AS pay FROM range(1_000_000)"
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    assert path.stat().st_size < 30_000
    monkeypatch.setenv("MUTANDIS_LIMITS", "0.003")
    assert "1,000,000 rows, and 2 columns" in refused(path)
    assert len(read_source(path, columns=["pay"]).frame) == 1_000_000


# --- what an audit makes of it --------------------------------------------------------------------


def audit(table: Any, **more: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        "outcome": "y",
        "negative": "no",
        "protected": mm.Protection("a", value="f", reference="m"),
        "attributes": {"x": "continuous"},
        "ks": (2,),
    }
    return mm.audit(table, **{**settings, **more})


def decisions(*further: str, head: str = "y,a,x", end: str = "") -> str:
    rows = [f"{'no' if i % 3 else 'yes'},{'f' if i % 2 else 'm'},{i}" for i in range(40)]
    return "\n".join([head, *(row + end for row in rows), *further])


@pytest.mark.parametrize(
    ("text", "more", "kind", "message"),
    [
        ("y,a,x\n", {}, InputError, "The table has no rows"),
        (decisions("no,f,SECRET"), {}, KindError, "'x' is to be read as numbers"),
        (decisions("SECRET,f,1"), {}, OutcomeError, "'y'"),
        (decisions(end="_5").replace(",", ";").replace("_5", ",5"), {}, KindError, "decimal comma"),
        (
            decisions(head="y,a,x,born", end=",2020-01-02"),
            {"attributes": {"born": "continuous"}},
            KindError,
            "'born' is to be read as numbers but has type Datetime",
        ),
    ],
)
def test_tables_that_cannot_be_audited(
    tmp_path: Path, text: str, more: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        audit(read_source(write(tmp_path, text)), **more)
    assert "SECRET" not in str(caught.value)


def test_missing_values_and_rare_categories(tmp_path: Path) -> None:
    nullable = write(tmp_path, decisions("no,f,SECRET"), missing_text=("SECRET",))
    with pytest.raises(MissingValuesError, match="'x' has 1 missing"):
        audit(read_source(nullable))
    found = audit(read_source(nullable), missing="drop")
    assert found.provenance.data["dropped"] == {"x": 1}
    text = decisions(head="y,a,x,job", end=",usual").replace(",7,usual", ",7,rare")
    rare = read_source(write(tmp_path, text))
    found = audit(rare, attributes={"x": "continuous", "job": "nominal"})
    assert found.plan.population.categories("job").counts().tolist() == [1, 39]
