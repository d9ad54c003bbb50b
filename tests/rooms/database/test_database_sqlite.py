"""SQLite: the table in a file that is itself a database, and is only read."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from mutandis.errors import InputError
from mutandis.rooms.database import DatabaseQuery
from mutandis.store.audit_file import read_arguments
from mutandis.store.tables import column_names, read_source

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("adbc_driver_sqlite", reason="the extra 'database' is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "people.db")) as connection, connection:
        connection.execute("CREATE TABLE people (id INTEGER, pay NUMERIC(9, 2), job TEXT, late)")
        connection.executemany(
            "INSERT INTO people VALUES (?, ?, ?, ?)",
            [
                (i, None if i == 7 else i * 1.5, "cook" if i % 2 else None, i if i < 4000 else 0.5)
                for i in range(5000)
            ],
        )
    return tmp_path


def ask(folder: Path, query: str = "SELECT * FROM people") -> DatabaseQuery:
    return DatabaseQuery(url="sqlite:///people.db", query=query, folder=folder)


def test_a_table_of_sqlite(folder: Path) -> None:
    source = ask(folder)
    assert column_names(source) == ("id", "pay", "job", "late")
    found = read_source(source, columns=["pay", "job", "late"]).to_pandas()
    assert found["pay"].iloc[2] == 3.0
    assert found["pay"].isna().sum() == 1
    assert found["job"].iloc[:3].isna().tolist() == [True, False, True]
    # the type of a column is known only when all rows have been seen
    assert found["late"].iloc[[1, -1]].tolist() == [1.0, 0.5]


def test_a_file_of_sqlite_can_be_named_as_a_source(folder: Path) -> None:
    path = folder / "audit.yaml"
    path.write_text(
        "data: {source: people.db, query: SELECT * FROM people, id: id}\n"
        "outcome: {column: y, negative: 0}\nprotected: {attribute: a, reference: 0}\n"
        "attributes: {x: continuous}\n"
    )
    source, _, _ = read_arguments(path.read_text(), folder=path.parent, name=path.name)
    assert source.describe() == {
        "kind": "database",
        "url": "sqlite:///people.db",
        "query": "SELECT * FROM people",
        "order_by": "id",
    }
    assert len(read_source(source, columns=["id"])) == 5000


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("DELETE FROM people", "fails"),
        ("SELECT * FROM nobody", "no such table: nobody"),
        ("SELECT wage FROM people", "no such column: wage"),
        ("SELECT id, id FROM people", "several columns of the same name: 'id'"),
        ("SELECT 1) AS x; DELETE FROM people; SELECT * FROM (SELECT 1", "several statements"),
    ],
)
def test_queries_that_are_refused(folder: Path, query: str, message: str) -> None:
    before = (folder / "people.db").read_bytes()
    with pytest.raises(InputError) as caught:
        read_source(ask(folder, query))
    assert message in str(caught.value)
    assert (folder / "people.db").read_bytes() == before


def test_a_semicolon_in_quotes_ends_nothing(folder: Path) -> None:
    found = read_source(ask(folder, "SELECT ';' AS \"a;b\" -- one; two\nLIMIT 1;"))
    assert found.to_pandas()["a;b"].tolist() == [";"]


def test_what_is_no_database(tmp_path: Path) -> None:
    source = DatabaseQuery(url="sqlite:///people.db", query="SELECT 1", folder=tmp_path)
    with pytest.raises(InputError, match=r"There is no file 'people\.db'"):
        column_names(source)
    assert not (tmp_path / "people.db").exists()
    (tmp_path / "people.db").write_text("SECRET " * 1000)
    with pytest.raises(InputError, match="not an SQLite database") as caught:
        column_names(source)
    assert "SECRET" not in str(caught.value)
    with pytest.raises(InputError, match="The url of an SQLite database is sqlite:///"):
        DatabaseQuery(url="sqlite://people.db", query="SELECT 1")


def test_the_hash_is_that_of_the_answer(folder: Path) -> None:
    before = ask(folder).sha256()
    assert ask(folder, "SELECT id, pay, job, late FROM people").sha256() == before
    assert ask(folder, "SELECT id, pay, job, late + 0 AS late FROM people").sha256() == before
    assert ask(folder, "SELECT id AS x, pay, job, late FROM people").sha256() != before
    with closing(sqlite3.connect(folder / "people.db")) as connection, connection:
        connection.execute("UPDATE people SET job = 'clerk' WHERE id = 4001")
    assert ask(folder).sha256() != before
