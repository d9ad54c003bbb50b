"""Tables in databases: PostgreSQL and SQLite through ADBC, read and never written to."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from mutandis.errors import InputError
from mutandis.files.database_errors import connecting, querying
from mutandis.files.database_urls import Address
from mutandis.files.duckdb_files import arrow_relation, check_distinct, chosen
from mutandis.files.duckdb_tables import Relation, connected, quoted
from mutandis.files.duckdb_text import NUMBERS, read_text_columns
from mutandis.frames import check_columns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pyarrow as pa

__all__ = ["DatabaseQuery"]

# SQLite has types by the cell: the driver decides on those of a column by so many rows
_SQLITE_ROWS = 10_000_000
# what is in quotes or in a comment is not SQL
_ASIDE = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_NUMBERED = re.compile(r":\d+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseQuery:
    """A query of a database, whose answer is the table.

    Parameters
    ----------
    url
        Where the database is: postgresql://user@host/database, or sqlite:///file.db. It holds no
        password: that comes from PGPASSWORD, from a password file, or from `password_env`.
    query
        One SELECT.
    password_env
        The environment variable that holds the password, if it is another one.
    order_by
        A column by whose values the rows are sorted; without one, they come as the query has them.
    folder
        What the path of an SQLite file is relative to.

    Examples
    --------
    >>> DatabaseQuery(url="postgresql://auditor@db/loans", query="SELECT * FROM x;").describe()
    {'kind': 'database', 'url': 'postgresql://auditor@db/loans', 'query': 'SELECT * FROM x'}
    """

    url: str
    query: str
    password_env: str | None = None
    order_by: str | None = None
    folder: Path = Path()

    def __post_init__(self) -> None:
        address = Address.parse(self.url)
        query = self.query.strip().rstrip(";").rstrip()
        if not query:
            raise InputError("The query is empty. Write one SELECT, such as SELECT * FROM loans.")
        # PostgreSQL refuses several statements; SQLite would answer the first, and say nothing
        if address.kind == "sqlite" and ";" in _ASIDE.sub("", query):
            raise InputError("The query has several statements. Write one SELECT.")
        object.__setattr__(self, "query", query)

    @property
    def name(self) -> str:
        """A short name for sentences."""
        return Address.parse(self.url).name

    def describe(self) -> dict[str, Any]:
        """Say where the table is, as plain data; there is no password in it."""
        written: dict[str, Any] = {"kind": "database", "url": self.url, "query": self.query}
        for key in ("password_env", "order_by"):
            if getattr(self, key) is not None:
                written[key] = getattr(self, key)
        return written

    def column_names(self) -> tuple[str, ...]:
        """List the names of the columns, without reading the table."""
        with self._cursor() as cursor:
            return self._names(cursor)

    @contextmanager
    def opened(self, columns: Collection[str] | None) -> Iterator[Relation]:
        """Fetch the columns that are asked for, and open them in DuckDB."""
        with self._cursor() as cursor:
            taken = chosen(self._names(cursor), columns, of=self.name)
            table = self._answer(cursor, taken)
        with querying(self.name), connected() as connection:
            plain, numeric = _plain_table(table)
            relation = arrow_relation(connection, plain)
            yield _with_numbers(relation, [relation.columns[name] for name in numeric])

    def sha256(self) -> str:
        """Hash the answer: the names of its columns, and every value in its place."""
        with self._cursor() as cursor, querying(self.name):
            names = list(self._names(cursor))
            digests = [hashlib.sha256(json.dumps(name).encode()) for name in names]
            for batch in self._answer(cursor, names).to_batches():
                for digest, column in zip(digests, batch.columns, strict=True):
                    _update(digest, column)
        return hashlib.sha256(b"".join(digest.digest() for digest in digests)).hexdigest()

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """Open a transaction that cannot write; every look at the table sees the same one."""
        address = Address.parse(self.url)
        if address.kind == "sqlite":
            driver, where = _driver("sqlite"), _sqlite_uri(address.file(self.folder))
        else:
            driver, where = _driver("postgresql"), address.connection_string(self.password_env)
        with connecting(self.name):
            connection = driver.connect(where)
        with connection, connection.cursor() as cursor, querying(self.name):
            if address.kind == "postgresql":
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            else:
                cursor.adbc_statement.set_options(
                    **{"adbc.sqlite.query.batch_rows": str(_SQLITE_ROWS)}
                )
            yield cursor

    def _names(self, cursor: Any) -> tuple[str, ...]:
        cursor.execute(f"SELECT * FROM (\n{self.query}\n) AS decisions LIMIT 0")  # noqa: S608
        names = [str(field[0]) for field in cursor.description]
        cursor.fetch_arrow_table()
        # SQLite numbers columns of the same name: id, id:1
        plain = [_NUMBERED.sub("", name) for name in names]
        check_distinct(
            [bare if bare in names else own for bare, own in zip(plain, names, strict=True)],
            of=self.name,
        )
        check_columns([self.order_by] if self.order_by is not None else [], names)
        return tuple(names)

    def _answer(self, cursor: Any, names: Collection[str]) -> pa.Table:
        wanted = ", ".join(map(quoted, names))
        order = f" ORDER BY {quoted(self.order_by)}" if self.order_by is not None else ""
        # the line breaks end a comment in which the query may end
        cursor.execute(f"SELECT {wanted} FROM (\n{self.query}\n) AS decisions{order}")  # noqa: S608
        return cursor.fetch_arrow_table()


def _driver(kind: str) -> Any:
    from importlib import import_module

    try:
        import_module("pyarrow")
        return import_module(f"adbc_driver_{kind}.dbapi")
    except ModuleNotFoundError:
        raise InputError(
            "Databases are read through ADBC. Install it: pip install 'mutandis[db]'."
        ) from None


def _sqlite_uri(path: Path) -> str:
    if not path.is_file():
        raise InputError(f"There is no file {path.name!r} where the settings say. Check the path.")
    return f"file:{quote(str(path.absolute()))}?mode=ro"


def _plain_table(table: pa.Table) -> tuple[pa.Table, list[str]]:
    """Take the covers off types of PostgreSQL's own; name the columns whose text is numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numeric = []
    for place, field in enumerate(table.schema):
        kind = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
        column = table.column(place)
        if kind == "money":
            raise InputError(
                f"Column {field.name!r} has the type money, whose unit the database does not tell. "
                f"Convert it in the query: CAST({field.name} AS numeric)."
            )
        if kind == "numeric":
            numeric.append(field.name)
        if kind == "bpchar":
            # blanks at the end of char(n) mean nothing
            table = table.set_column(place, field.name, pc.utf8_rtrim(column, characters=" "))
        elif isinstance(field.type, pa.BaseExtensionType) and kind != "uuid":
            stored = [chunk.storage for chunk in column.chunks]
            storage = pa.chunked_array(stored, type=field.type.storage_type)
            table = table.set_column(place, field.name, storage)
    return table, numeric


def _with_numbers(relation: Relation, numeric: list[str]) -> Relation:
    """Read columns of NUMERIC, which arrive as text so as to lose nothing, as numbers."""
    if not numeric:
        return relation
    read = read_text_columns(relation.connection, relation.relation, numeric, readings=NUMBERS)
    exchanged = ", ".join(f"{sql} AS {quoted(own)}" for own, sql in read.items())
    return Relation(
        connection=relation.connection,
        relation=f"(SELECT * REPLACE ({exchanged}) FROM {relation.relation})",  # noqa: S608
        columns=relation.columns,
    )


def _update(digest: Any, column: pa.Array) -> None:
    """Add a column's values to its hash, in a form that does not depend on how they are cut."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    present = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.uint8)
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        parts = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
        digest.update(np.column_stack([present, parts]).tobytes())
        return
    for text in column.to_pylist():
        digest.update(json.dumps(text, default=str).encode() + b"\n")
