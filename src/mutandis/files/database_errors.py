"""What a database's errors mean, without repeating what they quote.

The text of an error can hold a cell of the table, and that of a failed connection a piece of a
password. Only messages about names in the query itself are passed on.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mutandis.errors import InputError, MutandisError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["connecting", "querying"]

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
    "not a database": "the file is no SQLite database",
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


@contextmanager
def connecting(name: str) -> Iterator[None]:
    """Turn a failure to connect into a sentence; nothing of its text is repeated."""
    from adbc_driver_manager import Error

    try:
        yield
    except (Error, OSError) as error:
        said = str(error).lower()
        reason = next((why for words, why in _NOT_CONNECTED.items() if words in said), None)
        raise InputError(
            f"The database {name!r} cannot be opened: "
            f"{reason or 'check the address, the user and the password'}."
        ) from None


@contextmanager
def querying(name: str) -> Iterator[None]:
    """Turn a failed query into a sentence that quotes the query at most, and never the table."""
    import duckdb
    import pyarrow as pa
    from adbc_driver_manager import Error

    try:
        yield
    except MutandisError:
        raise
    except duckdb.Error:
        raise InputError(
            f"A value in the answer of {name!r} cannot be converted. Convert its column in the "
            "query, or leave it out."
        ) from None
    except (Error, OSError, pa.ArrowException) as error:
        raise InputError(f"The query of {name!r} fails: {_reason(error)}.") from None


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
    """Say what SQLite means; its errors about names and syntax come before any row is read."""
    lowered = said.lower()
    for words, why in _SQLITE.items():
        if words in lowered:
            return why
    if "failed to prepare" in lowered:
        return said.partition("query:")[2].partition("\n")[0].strip() or "it cannot be understood"
    return "the database cannot answer it"
