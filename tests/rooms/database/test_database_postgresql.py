"""A real PostgreSQL server: what it answers, what it may not be asked, and where passwords go."""

from __future__ import annotations

import json
import logging
import re
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import InputError
from mutandis.rooms.database import DatabaseQuery
from mutandis.store.audit_file import read_arguments
from mutandis.store.tables import column_names, read_source, source_of

if TYPE_CHECKING:
    from tests.conftest import Server

# a server is started
pytestmark = pytest.mark.slow

TABLE = """
CREATE TABLE people (
    id bigint PRIMARY KEY, pay numeric(12, 2), big numeric(20, 0), rate numeric, score real,
    job text, code char(4), mood mood, granted boolean, born date, seen timestamptz,
    person uuid, note jsonb, list int[], fee money
)
"""
ROWS = """
INSERT INTO people VALUES
    (2, 1.10, 9007199254740993, 0.1, 1.5, 'cook', 'f', 'glad', true, '1990-01-02',
     '2020-01-01 00:00+00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": 1}', '{1,2}', 5),
    (1, 20000.25, 9007199254740992, 1e-30, NULL, NULL, 'm', NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL),
    (3, NULL, NULL, 'NaN', 2.25, 'SECRET', NULL, 'sad', false, NULL, NULL, NULL, NULL, NULL, NULL)
"""


VARIABLE = "BANK_SECRET"


@pytest.fixture(scope="module")
def server(postgres: Server) -> Server:
    postgres.run("CREATE TYPE mood AS ENUM ('sad', 'glad')", TABLE, ROWS)
    return postgres


@pytest.fixture(autouse=True)
def password(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("PGPASSWORD", server.password)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    return server.password


def ask(server: Server, query: str = "SELECT * FROM people", **more: Any) -> DatabaseQuery:
    return DatabaseQuery(url=server.url, query=query, **more)


def test_every_type_arrives_as_what_it_means(server: Server) -> None:
    query = "SELECT * FROM people ORDER BY id; "
    names = [name for name in column_names(ask(server, query)) if name != "fee"]
    found = read_source(ask(server, query), columns=names).to_pandas()
    assert found["id"].tolist() == [1, 2, 3]
    # NUMERIC comes as text, so as to lose nothing, and becomes numbers
    np.testing.assert_array_equal(found["pay"].to_numpy(), [20000.25, 1.1, np.nan])
    assert found["big"].dropna().tolist() == [2**53, 2**53 + 1]
    np.testing.assert_array_equal(found["rate"].to_numpy(), [1e-30, 0.1, np.nan])
    np.testing.assert_array_equal(found["score"].to_numpy(), [np.nan, 1.5, 2.25])
    assert found["job"].dropna().tolist() == ["cook", "SECRET"]
    assert found["code"].dropna().tolist() == ["m", "f"]  # char(4) is filled up with blanks
    assert found["mood"].dropna().tolist() == ["glad", "sad"]
    assert found["granted"].dropna().tolist() == [True, False]
    assert found["born"].dtype.kind == "M"
    assert found["seen"][1] == pd.Timestamp("2020-01-01")
    assert found["person"][1] == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    with pytest.raises(InputError, match=r"'fee' has the type money.*CAST\(fee AS numeric\)"):
        read_source(ask(server), columns=["fee"])


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM people",
        "DELETE FROM people RETURNING *",
        "WITH gone AS (DELETE FROM people RETURNING *) SELECT * FROM gone",
        "SELECT 1) AS x; DELETE FROM people; SELECT * FROM (SELECT 1",
        "SELECT 1) AS x; COMMIT; DELETE FROM people; SELECT * FROM (SELECT 1",
        "SELECT * FROM people; DROP TABLE people",
        "SELECT nextval('counter')",
    ],
)
def test_nothing_can_be_written(server: Server, query: str) -> None:
    server.run("CREATE SEQUENCE IF NOT EXISTS counter")
    for look in (read_source, column_names, DatabaseQuery.sha256):
        if look is column_names and query.startswith("SELECT nextval"):
            continue  # naming the columns runs nothing
        with pytest.raises(InputError, match=r"The query of 'postgresql://[0-9.:]+' fails"):
            look(ask(server, query))
    counted = read_source(ask(server, "SELECT count(*) AS n FROM people"))
    assert counted.frame["n"].tolist() == [3]
    calls = read_source(ask(server, "SELECT is_called FROM counter"))
    assert calls.frame["is_called"].tolist() == [False]


def test_rows_are_sorted_by_id_so_that_the_hash_stays(server: Server) -> None:
    sources = [
        ask(server, "SELECT * FROM people ORDER BY pay", order_by="id"),
        ask(server, "SELECT * FROM people ORDER BY job", order_by="id"),
    ]
    first, second = (source.sha256() for source in sources)
    assert first == second
    assert read_source(sources[0], columns=["id"]).frame["id"].tolist() == [1, 2, 3]
    # without a column to sort by, the order of the rows is part of the answer
    assert ask(server, "SELECT * FROM people ORDER BY id").sha256() == first
    assert ask(server, "SELECT * FROM people ORDER BY id DESC").sha256() != first


@pytest.mark.parametrize(
    "changed",
    [
        "SELECT pay + 0.01 AS pay, job FROM people ORDER BY id",
        "SELECT pay, job || ' '  AS job FROM people ORDER BY id",
        "SELECT NULL::numeric AS pay, job FROM people ORDER BY id",
        "SELECT pay, job AS jobs FROM people ORDER BY id",
        "SELECT job, pay FROM people ORDER BY id",
        "SELECT pay, job FROM people WHERE id < 3 ORDER BY id",
    ],
)
def test_the_hash_sees_every_change(server: Server, changed: str) -> None:
    plain = ask(server, "SELECT pay, job FROM people ORDER BY id").sha256()
    assert ask(server, changed).sha256() != plain


def test_an_audit_of_a_database_is_that_of_the_table(server: Server, tmp_path: Path) -> None:
    table = mm.datasets.loan(n=300, seed=3).assign(person=range(300))
    columns = ", ".join(f'"{name}" numeric' for name in table.columns)
    rows = table.astype(object).to_numpy().tolist()
    values = ", ".join("(" + ", ".join(map(repr, row)) + ")" for row in rows)
    server.run(f"CREATE TABLE loan ({columns})", "INSERT INTO loan VALUES " + values)  # noqa: S608
    (tmp_path / "audit.yaml").write_text(
        f"data: {{url: '{server.url}', query: TABLE loan, id: person}}\n"
        "outcome: {column: LoanApproval, negative: -1}\n"
        "protected: {attribute: Gender, value: 1, reference: 0}\n"
        "attributes: {AnnualSalary: continuous, AccountBalance: continuous}\n"
        "worldview: {AnnualSalary: {equation: linear, parents: [Gender]}}\n"
        "ks: [15]\n"
    )
    file = tmp_path / "audit.yaml"
    source, _, arguments = read_arguments(file.read_text(), folder=tmp_path, name=file.name)
    assert isinstance(source, DatabaseQuery)
    assert source.order_by == "person"
    found = mm.read_plan(file).run()
    called = mm.audit(table, **arguments)
    pd.testing.assert_frame_equal(found.findings(), called.findings())
    assert found.provenance.data["sha256"] == called.provenance.data["sha256"]


def test_a_variable_can_be_named_for_the_password(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD")
    source = ask(server, password_env=VARIABLE)
    with pytest.raises(InputError, match="variable that password_env names is not set"):
        column_names(source)
    monkeypatch.setenv(VARIABLE, server.password)
    assert column_names(source)[0] == "id"
    assert source_of(json.loads(json.dumps(source.describe())), folder=Path()) == source


def test_a_password_file_is_used(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PGPASSWORD")
    with pytest.raises(InputError, match="wants a password; set PGPASSWORD"):
        column_names(ask(server))
    path = tmp_path / "pgpass"
    escaped = server.password.replace(":", "\\:")
    path.write_text(f"127.0.0.1:{server.port}:*:owner:{escaped}")
    path.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(path))
    assert column_names(ask(server))[0] == "id"


WRONG = "hunter2-%zz/@:?#"


def failures(server: Server) -> dict[str, Any]:
    """List ways to fail, each with a password about."""
    closed = f"postgresql://{server.user}@127.0.0.1:1/postgres"
    return {
        "refuses the password": lambda: column_names(ask(server)),
        "no server answers": lambda: column_names(DatabaseQuery(url=closed, query="SELECT 1")),
        "host is not known": lambda: column_names(
            DatabaseQuery(url="postgresql://u@no.invalid/db", query="SELECT 1")
        ),
        "refuses the password ": lambda: column_names(ask(server, password_env=VARIABLE)),
    }


@pytest.mark.parametrize("index", range(4))
def test_no_failure_to_connect_tells_a_password(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    index: int,
) -> None:
    monkeypatch.setenv("PGPASSWORD", WRONG)
    monkeypatch.setenv(VARIABLE, WRONG)
    caplog.set_level(logging.DEBUG)
    message, fail = list(failures(server).items())[index]
    with pytest.raises(InputError, match=message.strip()) as caught:
        fail()
    printed = capfd.readouterr()
    told = "".join(traceback.format_exception(caught.value)) + caplog.text
    for part in (WRONG, quote(WRONG, safe=""), "hunter2"):
        assert part not in told + printed.out + printed.err


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM nobody", 'relation "nobody" does not exist'),
        ("SELECT nothing FROM people", 'column "nothing" does not exist'),
        ("SELEC", "syntax error"),
        ("SELECT job::int AS x FROM people", "a value cannot be computed or converted"),
    ],
)
def test_a_query_that_fails_quotes_no_cell(server: Server, query: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_source(ask(server, query))
    assert message in str(caught.value)
    told = "".join(traceback.format_exception(caught.value))
    assert "SECRET" not in told
    assert "cook" not in told
    assert server.password not in told


def test_what_a_user_may_not_read(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.run("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    monkeypatch.setenv("PGPASSWORD", "guest")
    url = server.url.replace("owner@", "guest@")
    with pytest.raises(InputError, match="the user may not read this"):
        read_source(DatabaseQuery(url=url, query="SELECT * FROM people"))
    for name, query in (("hidden", "SELECT 1"), ("postgres", "SELECT * FROM nothing")):
        with pytest.raises(InputError, match=r"no such database or user|does not exist") as caught:
            read_source(DatabaseQuery(url=f"{url.rpartition('/')[0]}/{name}", query=query))
        # of an address, no message shows the path or the user
        assert not {name, "guest", f"{name}'"} & set(re.split(r"[^\w']+", str(caught.value)))


def test_an_answer_without_end(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUTANDIS_LIMITS", "0.0001")
    rows = "SELECT generate_series(1, 1000000000) AS a, 1 AS b"
    with pytest.raises(InputError, match=r"at least [0-9,]+ rows, and 2 .* limit is 50,000 values"):
        read_source(ask(server, rows))
    assert len(read_source(ask(server, f"{rows} LIMIT 20000"))) == 20_000


HOSTILE_NAMES = [
    'a"b',
    "a'b",
    'x"; DROP TABLE people; --',
    "a\nb",
    "a;b",
    "%s",
    "$1",
    "{0}",
    "\u202eevil",
    "\x1b[31m",
    "é" * 31,
    "SELECT",
    "*",
    "`",
    "c0",
]


def test_names_that_try_to_be_something_else(server: Server) -> None:
    written = ['"' + name.replace('"', '""') + '"' for name in HOSTILE_NAMES]
    table = '"t"";DROP TABLE people;--"'
    columns = ", ".join(f"{name} int" for name in written)
    server.run(
        f"CREATE TABLE {table} (id int, {columns})",
        f"INSERT INTO {table} VALUES (1, {', '.join('7' for _ in written)})",  # noqa: S608
    )
    source = ask(server, f"SELECT * FROM {table}", order_by="id")  # noqa: S608
    assert column_names(source) == ("id", *HOSTILE_NAMES)
    for name in HOSTILE_NAMES:
        found = read_source(source, columns=["id", name]).frame
        assert found[name].tolist() == [7], name
        ordered = ask(server, f"SELECT * FROM {table}", order_by=name)  # noqa: S608
        assert len(read_source(ordered, columns=[name])) == 1
    assert len(read_source(ask(server, "SELECT id FROM people"))) == 3


HOSTILE_VALUES = [
    "'NaN'::numeric",
    "'Infinity'::numeric",
    "repeat('9', 5000)::numeric",
    "'infinity'::timestamptz",
    "'-infinity'::date",
    "'178000000 years'::interval",
    r"'\x00ff00'::bytea",
    "repeat('SECRET', 200000)",
    "ARRAY[ARRAY[1, NULL], ARRAY[2, 3]]",
    "ROW(1, 'SECRET')",
    "B'0101'",
    "'<a>SECRET</a>'::xml",
    '\'{"a": [{"b": "SECRET"}]}\'::jsonb',
    "NULL",
    "chr(1) || chr(27) || chr(65533)",
    "'00000000-0000-0000-0000-000000000000'::uuid",
    "'1000000000000'::money",
]


@pytest.mark.parametrize("value", HOSTILE_VALUES)
def test_types_and_values_of_every_kind_are_read_or_refused(server: Server, value: str) -> None:
    query = f"SELECT 1 AS id, {value} AS x"
    try:
        read_source(ask(server, query)).to_pandas()
        ask(server, query, order_by="id").sha256()
    except InputError as error:
        told = "".join(traceback.format_exception(error)).replace(value, "")
        assert "SECRET" not in told
