"""Tables in PostgreSQL and SQLite, read through ADBC and never written (extra ``database``).

An address with a password in it is refused, since a settings file is copied, hashed and handed over
together with the results, and no message repeats an address that has not been checked. The text of
a database's error can hold a cell of the table, and that of a failed connection a piece of a
password: only messages about names in the query itself are passed on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import numpy as np

from mutandis.errors import InputError, MutandisError
from mutandis.frames import check_columns
from mutandis.store.duckdb_reader import (
    NUMBERS,
    Relation,
    arrow_relation,
    check_distinct,
    choose_columns,
    connect,
    most_rows,
    quoted,
    read_text_columns,
    refuse_huge,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import pyarrow as pa

__all__ = ["DatabaseQuery", "connection_string"]

# SQLite has types per cell: the driver decides on the type of a column by this many rows
_SQLITE_ROWS = 10_000_000
# what is in quotes or in a comment is not SQL
_ASIDE = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_NUMBERED = re.compile(r":\d+$")
_POSTGRES = ("postgresql", "postgres")
# libpq's parameters that say where and how to connect; none of them holds a secret
_PARAMETERS = {
    "application_name", "channel_binding", "connect_timeout", "dbname", "gssencmode", "host",
    "hostaddr", "keepalives", "keepalives_idle", "krbsrvname", "options", "passfile", "port",
    "require_auth", "service", "sslcert", "sslcrl", "sslkey", "sslmode", "sslrootcert",
    "target_session_attrs", "user",
}  # fmt: skip
_TIMEOUT = "10"
# words of libpq, which never translates its own
_NOT_CONNECTED = {
    "password authentication failed": "the server refuses the password or the user",
    "no password supplied": (
        "the server wants a password; set PGPASSWORD, name a variable with password_env, or use "
        "~/.pgpass"
    ),
    "connection refused": "no server answers there; check host and port",
    "translate host name": "the host is not known; check its name",
    "timeout expired": "the server does not answer in time; check host and port, and the network",
    "pg_hba.conf": "the server does not let this user or this machine in",
    "does not exist": "the server knows no such database or user",
    "certificate": "the certificate of the server, or that of the client, is not accepted",
    "ssl": "server and client do not agree on encryption; check sslmode",
    "unable to open": "there is no such file, or it cannot be opened",
    "not a database": "the file is not an SQLite database",
}

# SQLSTATE codes and classes (PostgreSQL documentation, appendix A)
_STATES = {
    "25006": "the query writes to the database, and only reading is allowed here",
    "42501": "the user may not read this; ask for the right to SELECT",
    "57014": "the query was cancelled, or took longer than the server allows",
    "22": "a value cannot be computed or converted; try the query by itself",
    "53": "the server has run out of memory or space",
    "57": "the server was stopped",
    "08": "the connection broke",
}

_SQLITE = {
    "type mismatch": (
        "a column changes its type on the way; convert it in the query, CAST(column AS REAL) for "
        "example"
    ),
    "readonly": _STATES["25006"],
    "not a database": _NOT_CONNECTED["not a database"],
    "unable to open": _NOT_CONNECTED["unable to open"],
}


def _check_sqlite(url: str) -> None:
    parts = urlsplit(url)
    if parts.netloc or not parts.path.strip("/") or parts.query or parts.fragment:
        raise InputError(
            "The url of an SQLite database is sqlite:///file.db, with one more slash for an "
            "absolute path: sqlite:////folder/file.db."
        )


def _check_postgresql(url: str) -> None:
    """Refuse an address with a password; nothing of it is repeated in an error."""
    unreadable = InputError(
        "The url cannot be read. Write postgresql://user@host:port/database, with %-escapes "
        "for special characters."
    )
    try:
        parts = urlsplit(url)
        secret = parts.password is not None
        parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
        hosts = parts.netloc.rpartition("@")[2]
        whole = bool(hosts == "" or "," in hosts or parts.port or parts.hostname)
    except ValueError:
        raise unreadable from None
    # a password with an unescaped '/', '?' or '#' ends up behind the host
    behind = "@" in parts.path or "@" in parts.fragment or bool(parts.fragment)
    if secret or behind or any("password" in name.lower() for name in parameters):
        raise InputError(
            "The url holds a password. Settings are copied and handed over, so take it out, "
            "and set the variable PGPASSWORD, name another variable with password_env, or put "
            "the password into ~/.pgpass (PGPASSFILE). If it has none, write '@' in it as %40."
        )
    if not whole:
        raise unreadable
    unknown = sorted(set(parameters) - _PARAMETERS)
    if unknown:
        raise InputError(
            f"The url has a parameter that is not known: {unknown[0]!r}. Known are "
            f"{', '.join(sorted(_PARAMETERS))}."
        )


def connection_string(url: str, password_env: str | None) -> str:
    """Add the password to an address, for the driver alone: it must not be kept or shown."""
    parts = urlsplit(url)
    place = parts.netloc
    if password_env is not None:
        user, _, host = place.rpartition("@")
        if not user:
            raise InputError("password_env needs a user: postgresql://user@host/database.")
        password = os.environ.get(password_env)
        if not password:
            # not named here: it may be the password itself, written by mistake
            raise InputError(
                "The environment variable that password_env names is not set. Set it to the "
                "password; password_env is the name of the variable, never the password."
            )
        place = f"{user}:{quote(password, safe='')}@{host}"
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "PGCONNECT_TIMEOUT" not in os.environ:
        parameters.setdefault("connect_timeout", _TIMEOUT)
    query = urlencode(parameters, quote_via=quote)
    return urlunsplit(("postgresql", place, parts.path, query, ""))


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
        scheme, separator, _ = self.url.partition("://")
        if not separator or scheme.lower() not in {*_POSTGRES, "sqlite"}:
            raise InputError(
                "The url cannot be read. Allowed are postgresql://user@host:port/database and "
                "sqlite:///file.db."
            )
        (_check_sqlite if self._is_sqlite else _check_postgresql)(self.url)
        query = self.query.strip().rstrip(";").rstrip()
        if not query:
            raise InputError("The query is empty. Write one SELECT, such as SELECT * FROM loans.")
        if not query.isascii() and query.encode(errors="ignore").decode() != query:
            raise InputError("The query holds a character that UTF-8 does not have. Take it out.")
        # PostgreSQL refuses several statements; SQLite would answer the first, and say nothing
        if self._is_sqlite and ";" in _ASIDE.sub("", query):
            raise InputError("The query has several statements. Write one SELECT.")
        object.__setattr__(self, "query", query)

    @property
    def _is_sqlite(self) -> bool:
        return self.url.lower().startswith("sqlite:")

    @property
    def name(self) -> str:
        """A short name for messages: that of the file, or of the server, without its databases."""
        parts = urlsplit(self.url)
        if self._is_sqlite:
            return unquote(parts.path.rpartition("/")[2])
        hosts = parts.netloc.rpartition("@")[2]
        return f"postgresql://{hosts}" if hosts else "postgresql"

    def describe(self) -> dict[str, Any]:
        """Describe where the table is, as plain data without a password."""
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
    def open(self, columns: Collection[str] | None) -> Iterator[Relation]:
        """Fetch the columns that are asked for, and open them in DuckDB."""
        with self._cursor() as cursor:
            taken = choose_columns(self._names(cursor), columns, of=self.name)
            table = self._answer(cursor, taken)
        with _explained(f"The query of {self.name!r} fails", _reason), connect() as connection:
            plain, numeric = _plain_table(table)
            relation = arrow_relation(connection, plain)
            yield _with_numbers(relation, [relation.columns[name] for name in numeric])

    def sha256(self) -> str:
        """Hash the answer: the names of its columns, and every value in its place."""
        with self._cursor() as cursor, _explained(f"The query of {self.name!r} fails", _reason):
            names = list(self._names(cursor))
            digests = [hashlib.sha256(json.dumps(name).encode()) for name in names]
            for batch in self._answer(cursor, names).to_batches():
                for digest, column in zip(digests, batch.columns, strict=True):
                    _update(digest, column)
        return hashlib.sha256(b"".join(digest.digest() for digest in digests)).hexdigest()

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """Open a transaction that cannot write; every look at the table sees the same one."""
        if self._is_sqlite:
            driver, where = _driver("sqlite"), self._sqlite_uri()
        else:
            driver, where = _driver("postgresql"), connection_string(self.url, self.password_env)
        with _explained(f"The database {self.name!r} cannot be opened", _why_closed):
            connection = driver.connect(where)
        with (
            connection,
            connection.cursor() as cursor,
            _explained(f"The query of {self.name!r} fails", _reason),
        ):
            if self._is_sqlite:
                option = {"adbc.sqlite.query.batch_rows": str(_SQLITE_ROWS)}
                cursor.adbc_statement.set_options(**option)
            else:
                reading = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
                _in_thread(cursor, partial(cursor.execute, reading))
            yield cursor

    def _sqlite_uri(self) -> str:
        path = self.folder / unquote(urlsplit(self.url).path[1:])
        if not path.is_file():
            raise InputError(f"There is no file {path.name!r}. Check the path.")
        return f"file:{quote(str(path.absolute()))}?mode=ro"

    def _names(self, cursor: Any) -> tuple[str, ...]:
        statement = f"SELECT * FROM (\n{self.query}\n) AS decisions LIMIT 0"  # noqa: S608
        names = _fetch(cursor, statement).column_names
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
        statement = f"SELECT {wanted} FROM (\n{self.query}\n) AS decisions{order}"  # noqa: S608
        # one row more than is allowed: the database does not send what memory cannot hold
        table = _fetch(cursor, f"{statement} LIMIT {most_rows(len(names)) + 1}")
        refuse_huge(table.num_rows, len(names))
        return table


def _fetch(cursor: Any, statement: str) -> pa.Table:
    def run() -> pa.Table:
        cursor.execute(statement)
        return cursor.fetch_arrow_table()

    return _in_thread(cursor, run)


def _in_thread(cursor: Any, call: Callable[[], Any]) -> Any:
    """Wait for the database in a thread: in the main one, the driver keeps Ctrl-C to itself."""
    from adbc_driver_manager import Error

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(call)
        try:
            while not answer.done():
                wait([answer], timeout=0.1)  # and see whether a signal came
        except BaseException:
            with suppress(Error):  # not every driver can
                cursor.adbc_cancel()
            raise
        return answer.result()


def _driver(kind: str) -> Any:
    from importlib import import_module

    try:
        import_module("pyarrow")
        return import_module(f"adbc_driver_{kind}.dbapi")
    except ModuleNotFoundError:
        raise InputError(
            "Databases are read through ADBC. Install it: pip install 'mutandis[database]'."
        ) from None


def _plain_table(table: pa.Table) -> tuple[pa.Table, list[str]]:
    """Unwrap PostgreSQL's extension types; name the columns whose text is numbers."""
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
    try:
        texts = column.to_pylist()
    except (OverflowError, ValueError):  # infinity, and dates before the year 1 or after 9999
        texts = [scalar.value for scalar in column]
    for text in texts:
        digest.update(json.dumps(text, default=str).encode() + b"\n")


@contextmanager
def _explained(what: str, reason: Callable[[Exception], str]) -> Iterator[None]:
    """Turn a failure into a sentence that quotes the query at most: no cell, and no password."""
    import duckdb
    import pyarrow as pa
    from adbc_driver_manager import Error

    try:
        yield
    except MutandisError:
        raise
    except duckdb.Error:
        raise InputError(
            f"{what}: a value in the answer cannot be converted. Convert its column in the query, "
            "or leave it out."
        ) from None
    except (Error, OSError, pa.ArrowException) as error:
        raise InputError(f"{what}: {reason(error)}.") from None


def _why_closed(error: Exception) -> str:
    said = str(error).lower()
    found = (why for words, why in _NOT_CONNECTED.items() if words in said)
    return next(found, "check the address, the user and the password")


def _reason(error: Exception) -> str:
    state = getattr(error, "sqlstate", None) or ""
    found = _STATES.get(state) or _STATES.get(state[:2])
    if found:
        return found
    # class 42: syntax and names; 0A: what cannot be in a subquery
    if state[:2] in {"42", "0A"}:
        return f"{_primary_message(error)} (SQLSTATE {state})"
    if state:
        return f"SQLSTATE {state}"
    return _sqlite_reason(str(error))


def _primary_message(error: Exception) -> str:
    for key, value in getattr(error, "details", ()):
        if key in {"PG_DIAG_MESSAGE_PRIMARY", b"PG_DIAG_MESSAGE_PRIMARY"}:
            return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return "it cannot be understood"


def _sqlite_reason(said: str) -> str:
    """Explain an error of SQLite; those about names and syntax occur before a row is read."""
    lowered = said.lower()
    for words, why in _SQLITE.items():
        if words in lowered:
            return why
    if "failed to prepare" in lowered:
        return said.partition("query:")[2].partition("\n")[0].strip() or "it cannot be understood"
    return "the database cannot answer it"
