"""CSV as people have it: separators, encodings, headers, and what its text means."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import InputError, KindError, MissingValuesError, OutcomeError
from mutandis.store import duckdb_reader
from mutandis.store.sources import TableFiles, column_names, read_source

if TYPE_CHECKING:
    from pathlib import Path


def frame_of(source: TableFiles, *columns: str) -> pd.DataFrame:
    return read_source(source, columns=columns or None).to_pandas()


def write(folder: Path, name: str, text: str | bytes) -> TableFiles:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return TableFiles(path=name, folder=folder)


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
def test_the_separator_is_found_out(tmp_path: Path, separator: str) -> None:
    table = mm.datasets.loan(n=80, seed=1)
    table.to_csv(tmp_path / "t.csv", sep=separator, index=False)
    found = frame_of(TableFiles(path="t.csv", folder=tmp_path))
    pd.testing.assert_frame_equal(found, table, check_dtype=False, check_exact=True)


def test_the_separator_of_text_that_has_others_in_it(tmp_path: Path) -> None:
    source = write(tmp_path, "t.csv", 'name;pay\n"a,b";"1"\nc,d;2\n')
    assert frame_of(source).to_dict("list") == {"name": ["a,b", "c,d"], "pay": [1, 2]}


def test_a_wrong_separator_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, "t.csv", "a;b\n1;2\n")
    with pytest.raises(InputError, match=r"""has ';'\. Write 'separator: ";"'"""):
        column_names(TableFiles(path="t.csv", folder=tmp_path, separator=","))
    write(tmp_path, "u.csv", "a,b;c\n1;2,3,4\n1,2\n")
    with pytest.raises(InputError, match="not clear what separates"):
        column_names(TableFiles(path="u.csv", folder=tmp_path))


def test_a_single_column_needs_no_separator(tmp_path: Path) -> None:
    assert frame_of(write(tmp_path, "t.csv", "pay\n1\n2\n"))["pay"].tolist() == [1, 2]


def test_types_are_decided_by_every_row(tmp_path: Path) -> None:
    rows = [f"{i},{i},{i},true" for i in range(60_000)]
    source = write(tmp_path, "t.csv", "\n".join(["a,b,c,d", *rows, "1.5,x,,false"]))
    found = frame_of(source)
    # a reader that looks at the first rows only takes the last one for a 2
    assert found["a"].iloc[-1] == 1.5
    assert found["a"].dtype == np.float64
    assert found["b"].iloc[[0, -1]].tolist() == ["0", "x"]
    assert found["c"].isna().sum() == 1
    assert found["c"].iloc[-2] == 59_999
    assert found["d"].dtype == np.bool_


def test_what_text_is_no_number(tmp_path: Path) -> None:
    lines = [
        "a,b,c,d,e,f,g",
        "1_000,0x1F,yes,1.234,007,2020-01-02, 5",
        "2,3,no,-1e3,8,2020-01-03,6",
    ]
    found = frame_of(write(tmp_path, "t.csv", "\n".join(lines)))
    assert found["a"].tolist() == ["1_000", "2"]
    assert found["b"].tolist() == ["0x1F", "3"]
    assert found["c"].tolist() == ["yes", "no"]  # as the auditor sees them in the file
    assert found["d"].tolist() == [1.234, -1000.0]
    assert found["e"].tolist() == [7, 8]
    assert found["f"].dtype.kind == "M"
    assert found["g"].tolist() == [5, 6]


def test_large_whole_numbers_are_kept_apart(tmp_path: Path) -> None:
    source = write(
        tmp_path, "t.csv", "id\n9007199254740993\n9007199254740992\n\n".replace("\n\n", "\n")
    )
    assert frame_of(source)["id"].tolist() == [2**53 + 1, 2**53]
    other = write(tmp_path, "u.csv", "id,b\n9007199254740993,1\n,2\n")
    assert frame_of(other)["id"].dropna().tolist() == [2**53 + 1]


def test_a_decimal_comma(tmp_path: Path) -> None:
    write(tmp_path, "t.csv", "a;b;c\n1,5;1.234,5;x,y\n2;2;z\n")
    found = frame_of(TableFiles(path="t.csv", folder=tmp_path, decimal=","))
    assert found["a"].tolist() == [1.5, 2.0]
    assert found["b"].tolist() == ["1.234,5", "2"]  # thousands are not guessed at
    assert found["c"].tolist() == ["x,y", "z"]


def test_a_decimal_comma_that_nobody_said_is_suggested(tmp_path: Path) -> None:
    rows = [row + ",5" for row in decisions()]
    text = "\n".join(["y;a;x", *(row.replace(",", ";", 2) for row in rows)])
    with pytest.raises(KindError, match=r"'x' is .* text \(its numbers have a decimal comma"):
        audit(read_source(write(tmp_path, "t.csv", text)))


def test_texts_that_stand_for_a_missing_value(tmp_path: Path) -> None:
    write(tmp_path, "t.csv", "a,b\nNA,x\n2,?\n,NA\n")
    source = TableFiles(path="t.csv", folder=tmp_path, missing_text=("NA", "?"))
    found = frame_of(source)
    assert found["a"].tolist()[1] == 2
    assert found["a"].isna().tolist() == [True, False, True]
    assert found["b"].isna().tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("encoding", "suggested"),
    [("latin-1", "latin-1"), ("cp1252", "latin-1"), ("utf-16", "utf-16")],
)
def test_encodings(tmp_path: Path, encoding: str, suggested: str) -> None:
    rows = "".join(f"{i},straße\n" for i in range(200)) + "200,Übung\n"
    write(tmp_path, "t.csv", ("größe,ort\n" + rows).encode(encoding))
    with pytest.raises(
        InputError, match=f"not encoded as utf-8.*'encoding: {suggested}'"
    ) as caught:
        read_source(TableFiles(path="t.csv", folder=tmp_path))
    assert "straße" not in str(caught.value)
    found = frame_of(TableFiles(path="t.csv", folder=tmp_path, encoding=encoding))
    assert found["größe"].tolist() == list(range(201))
    assert found["ort"].iloc[-1] == "Übung"


def test_a_wrong_encoding_far_down_is_noticed_too(tmp_path: Path) -> None:
    rows = "".join(f"{i},ort\n" for i in range(200))
    source = write(tmp_path, "t.csv", ("a,b\n" + rows + "200,Übung\n").encode("latin-1"))
    with pytest.raises(InputError, match=r"'t\.csv' is not encoded as utf-8.*latin-1"):
        read_source(source)
    with pytest.raises(InputError, match=r"not encoded as ascii"):
        read_source(TableFiles(path="t.csv", folder=tmp_path, encoding="ascii"))


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    source = write(tmp_path, "t.csv", b"\xef\xbb\xbfpay,b\n1,2\n")
    assert frame_of(source)["pay"].tolist() == [1]


@pytest.mark.parametrize("bad", ["klingon", "base64", "rot13"])
def test_an_unknown_encoding(bad: str) -> None:
    with pytest.raises(InputError, match="The encoding is not known"):
        TableFiles(path="t.csv", encoding=bad)


def test_columns_without_a_name_do_not_matter(tmp_path: Path) -> None:
    source = write(tmp_path, "t.csv", ",a,\n1,2,3\n")
    assert column_names(source) == ("unnamed_1", "a", "unnamed_3")
    assert frame_of(source, "a")["a"].tolist() == [2]


def test_a_first_line_of_numbers_is_no_header(tmp_path: Path) -> None:
    write(tmp_path, "t.csv", "Jane,35000\nJoe,20000\n")
    with pytest.raises(InputError, match=r"first line of 't\.csv' holds numbers") as caught:
        read_source(TableFiles(path="t.csv", folder=tmp_path))
    assert "Jane" not in str(caught.value)
    years = write(tmp_path, "years.csv", "name,2020\nx,1\n")
    with pytest.raises(InputError, match="header: true"):
        column_names(years)
    assert column_names(TableFiles(path="years.csv", folder=tmp_path, header=True))[1] == "2020"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'t.csv' is empty"),
        ("\n\n", "'t.csv' is empty"),
        ("a,b\n1,2\n1,SECRET,3\n", "more or fewer fields in line 3"),
        ("a,b\n1,2\nSECRET\n1,2\n", "more or fewer fields in line 3"),
        ('a,b\n1,2\n"SECRET,3\n', "quote is opened in line 3"),
    ],
)
def test_broken_csv(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_source(TableFiles(**{**vars_of(write(tmp_path, "t.csv", text)), "separator": ","}))
    assert message in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None  # which would quote the line


def vars_of(source: TableFiles) -> dict[str, Any]:
    return {"path": source.path, "folder": source.folder}


def test_a_table_without_rows(tmp_path: Path) -> None:
    source = write(tmp_path, "t.csv", "y,a,x\n")
    table = read_source(source)
    assert len(table) == 0
    with pytest.raises(InputError, match="The table has no rows"):
        audit(table)


def audit(table: Any, **more: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        "outcome": "y",
        "negative": "no",
        "protected": mm.Protection("a", value="f", reference="m"),
        "attributes": {"x": "continuous"},
        "ks": (2,),
    }
    return mm.audit(table, **{**settings, **more})


def decisions(n: int = 40) -> list[str]:
    return [f"{'no' if i % 3 else 'yes'},{'f' if i % 2 else 'm'},{i}" for i in range(n)]


def test_a_column_of_mixed_types_is_named_and_counted(tmp_path: Path) -> None:
    rows = [*decisions(), "no,f,SECRET"]
    source = write(tmp_path, "t.csv", "\n".join(["y,a,x", *rows]))
    with pytest.raises(
        KindError, match=r"'x' is to be read as numbers.*1 of 41 rows holds"
    ) as caught:
        audit(read_source(source))
    assert "SECRET" not in str(caught.value)
    nullable = TableFiles(path="t.csv", folder=tmp_path, missing_text=("SECRET",))
    with pytest.raises(MissingValuesError, match="'x' has 1 missing"):
        audit(read_source(nullable))
    found = audit(read_source(nullable), missing="drop")
    assert found.provenance.data["dropped"] == {"x": 1}


def test_a_date_is_refused_as_an_attribute_and_else_ignored(tmp_path: Path) -> None:
    rows = [f"{row},2020-01-{1 + i % 28:02}" for i, row in enumerate(decisions())]
    source = write(tmp_path, "t.csv", "\n".join(["y,a,x,born", *rows]))
    with pytest.raises(
        KindError, match=r"'born' is to be read as numbers but has type Datetime.*days"
    ):
        audit(read_source(source), attributes={"born": "continuous"})
    plain = write(tmp_path, "u.csv", "\n".join(["y,a,x", *decisions()]))
    pd.testing.assert_frame_equal(
        audit(read_source(source)).counts(), audit(read_source(plain)).counts()
    )


def test_a_category_that_appears_once(tmp_path: Path) -> None:
    rows = [f"{row},{'rare' if i == 7 else 'usual'}" for i, row in enumerate(decisions())]
    source = write(tmp_path, "t.csv", "\n".join(["y,a,x,job", *rows]))
    found = audit(read_source(source), attributes={"x": "continuous", "job": "nominal"})
    assert found.plan.population.categories("job").counts().tolist() == [1, 39]
    odd = write(tmp_path, "u.csv", "\n".join(["y,a,x", *decisions(), "SECRET,f,1"]))
    with pytest.raises(OutcomeError) as caught:
        audit(read_source(odd))
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("packed", "most"),
    [
        pytest.param(False, 1_000_000, id="shorter"),
        pytest.param(False, 20_000_000, marks=pytest.mark.slow, id="plain"),
        pytest.param(True, 20_000_000, marks=pytest.mark.slow, id="packed"),
    ],
)
def test_a_line_without_end_is_said_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, most: int
) -> None:
    if most < duckdb_reader._LINE:
        monkeypatch.setattr(duckdb_reader, "_LINE", most)
    path = tmp_path / ("long.csv.gz" if packed else "long.csv")

    def write(rows: bytes) -> None:
        content = b"sex,pay\nf,1\nm," + rows
        path.write_bytes(gzip.compress(content, 1) if packed else content)

    write(b"x" * (most * 21 // 20) + b"\n")
    with pytest.raises(InputError, match=f"a line of more than {most:,} bytes in line 3"):
        read_source(path)
    # DuckDB leaves it out, without a word
    write(b"x" * (most * 21 // 20))
    with pytest.raises(InputError, match=f"a line of more than {most:,} bytes at its end"):
        read_source(path)
    write(b"2\nm," + b"x" * (most * 19 // 20))
    assert len(read_source(path)) == 3


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
    with pytest.raises(InputError, match=r"1,000,000 rows, and 2 columns .* limit is 1,500,000"):
        read_source(path)
    assert len(read_source(path, columns=["pay"]).frame) == 1_000_000
