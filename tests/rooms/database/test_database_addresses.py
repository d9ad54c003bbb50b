"""Addresses of databases: a password in one is refused, and never repeated."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import pytest

from mutandis.errors import InputError, MutandisError
from mutandis.rooms.database import DatabaseQuery, connection_string
from mutandis.store.audit_file import read_plan

if TYPE_CHECKING:
    from pathlib import Path

REST = """
outcome: {column: y, negative: 0}
protected: {attribute: a, reference: 0}
attributes: {x: continuous}
"""
SECRET = "hunter2"
WITH_PASSWORD = [
    f"postgresql://u:{SECRET}@h/db",
    f"postgres://:{SECRET}@h/db",
    f"postgresql://u:{SECRET}/x@h/db",
    f"postgresql://u:x#{SECRET}@h/db",
    f"postgresql://u:x?{SECRET}@h/db",
    f"postgresql://u@h/db?password={SECRET}",
    f"postgresql://u@h/db?sslmode=require&PassWord={SECRET}",
    f"postgresql://u@h/db?sslpassword={SECRET}",
    f"postgresql://u@h:{SECRET}/db",
    f"host=h password={SECRET}",
    f"mysql://u:{SECRET}@h/db",
    f"postgresql://u:[{SECRET}@h/db",
    f"sqlite://u:{SECRET}@h/db",
]


@pytest.mark.parametrize("url", WITH_PASSWORD)
def test_a_password_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InputError) as caught:
        DatabaseQuery(url=url, query="SELECT 1")
    assert SECRET not in "".join(traceback.format_exception_only(caught.value))


@pytest.mark.parametrize(
    "section",
    [
        "{{url: '{url}', query: SELECT 1}}",
        "{{source: '{url}'}}",
        "{{source: x.csv, url: '{url}'}}",
        "'{url}'",
        "['{url}']",
        "{{url: ['{url}'], query: SELECT 1}}",
        "{{url: {{'{url}': 1}}, query: SELECT 1}}",
        "{{source: x.csv, '{url}': 1}}",
        "{{source: x.csv, missing: '{url}'}}",
        "{{url: postgresql://u@h/db, query: SELECT 1, password: {secret}}}",
        "{{url: postgresql://u@h/db, query: SELECT 1, separator: '{url}'}}",
    ],
)
def test_wherever_it_is_written_in_a_file_it_is_not_repeated(tmp_path: Path, section: str) -> None:
    written = section.format(url=WITH_PASSWORD[0], secret=SECRET)
    path = tmp_path / "audit.yaml"
    path.write_text(f"data: {written}{REST}")
    with pytest.raises(MutandisError) as caught:
        read_plan(path)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (
            "postgresql://auditor@db.bank:5433/loans?sslmode=verify-full",
            "postgresql://db.bank:5433",
        ),
        ("postgres://db/loans", "postgresql://db"),
        ("postgresql:///loans?host=/var/run/postgresql&user=auditor", "postgresql"),
        ("postgresql://[::1]:5432/loans", "postgresql://[::1]:5432"),
        ("postgresql://a%40b@h1:1,h2:2/loans", "postgresql://h1:1,h2:2"),
        ("sqlite:////home/auditor/loans.db", "loans.db"),
    ],
)
def test_addresses_without_a_password_are_fine(url: str, name: str) -> None:
    # messages name the server or the file, and neither user, database nor folders
    assert DatabaseQuery(url=url, query="SELECT 1").name == name


def test_the_password_reaches_the_driver_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANK", "p@ss/w%rd")
    named = "BANK"
    source = DatabaseQuery(url="postgresql://u@h/db", query="SELECT 1", password_env=named)
    string = connection_string(source.url, "BANK")
    assert string == "postgresql://u:p%40ss%2Fw%25rd@h/db?connect_timeout=10"
    assert "p@ss" not in repr(source) + str(source.describe())
    with pytest.raises(InputError, match="password_env needs a user"):
        connection_string("postgresql://h/db", "BANK")


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{url: postgresql://u@h/db}", "A database needs a 'query'"),
        ("{url: postgresql://u@h/db, query: ' ; '}", "The query is empty"),
        (
            "{url: postgresql://u@h/db, query: SELECT 1, encoding: utf-8}",
            "'encoding' is about files",
        ),
        ("{source: x.csv, query: SELECT 1}", "'query' is about databases"),
        ("{source: x.csv, url: postgresql://h/db}", "Name the table, in one way"),
        ("{id: person}", "Name the table, in one way"),
        ("{url: 'postgresql://h/db?colour=red', query: SELECT 1}", "not known: 'colour'"),
        ("{source: x.csv, seperator: ';'}", "Did you mean 'separator'?"),
        ("{source: x.csv, decimal: ';'}", "';' is unknown. Allowed: '.', ','."),
        ("{source: x.csv, encoding: klingon}", "The encoding is not known"),
    ],
)
def test_the_section_data_is_checked(tmp_path: Path, section: str, message: str) -> None:
    path = tmp_path / "audit.yaml"
    path.write_text(f"data: {section}{REST}")
    with pytest.raises(MutandisError) as caught:
        read_plan(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith("audit.yaml, line 1")
