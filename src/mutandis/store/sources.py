"""Where a table of decisions is, and how it gets from there into an audit."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mutandis.config.sections import database
from mutandis.errors import InputError
from mutandis.store.duckdb_reader import fetch, file_columns, open_files
from mutandis.store.table_files import TableFiles

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from mutandis.frames import EncodedTable
    from mutandis.store.duckdb_reader import Relation

__all__ = [
    "DatabaseTable",
    "Source",
    "TableFiles",
    "TablePath",
    "as_source",
    "column_names",
    "read_source",
    "source_of",
]


class DatabaseTable(Protocol):
    """The answer of a database to a query; the registry names a class by the scheme of its url.

    It is made with the keywords `url`, `query`, `password_env`, `order_by` and `folder`.
    """

    @property
    def name(self) -> str:
        """A short name for messages, without secrets."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return its kind, "database", and the keywords but for `folder`, as plain data."""
        ...

    def column_names(self) -> tuple[str, ...]:
        """List the names of the columns, without reading the table."""
        ...

    def open(self, columns: Collection[str] | None) -> AbstractContextManager[Relation]:
        """Fetch the columns that are asked for, and open them in DuckDB."""
        ...

    def sha256(self) -> str:
        """Hash the answer: the names of its columns, and every value in its place."""
        ...


Source: TypeAlias = TableFiles | DatabaseTable
"""A table in files or in a database."""

TablePath: TypeAlias = "str | os.PathLike[str]"
"""A file, a folder, or a pattern such as "loans/*.parquet"."""

_DATABASES = (".db", ".sqlite", ".sqlite3")


def as_source(table: Source | TablePath) -> Source:
    """Make a source of a path; a relative path starts at the current folder."""
    if not isinstance(table, str | os.PathLike):
        return table
    path = os.fspath(table)
    if is_url(path) or path.lower().endswith(_DATABASES):
        raise InputError(
            "A table in a database needs a query. Write both in the section 'data' of an audit "
            "file, or export the table to a file."
        )
    return TableFiles(path=path)


def read_source(
    source: Source | TablePath, *, columns: Collection[str] | None = None
) -> EncodedTable:
    r"""Read a table, or those of its columns that are asked for.

    Parameters
    ----------
    source
        Where it is: a path to a file or a folder, a pattern such as "loans/*.parquet", or a
        `TableFiles` or `mutandis.rooms.database.DatabaseQuery` with more settings.
    columns
        The names of the columns to read, and no others; None reads all of them.

    Returns
    -------
    EncodedTable
        What `mutandis.audit` takes as a table; `to_pandas()` makes an ordinary frame of it.

    Raises
    ------
    InputError
        It is not there, cannot be opened, or is not what it seems; the message says what to do,
        and quotes neither a cell of the table nor a password.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("id;pay;job\n1;2.5;cook\n2;4;clerk\n")
    ...     read_source(path, columns=["job", "pay"]).to_pandas()
       pay    job
    0  2.5   cook
    1  4.0  clerk
    """
    found = as_source(source)
    opened = open_files(found, columns) if isinstance(found, TableFiles) else found.open(columns)
    with opened as relation:
        return fetch(relation)


def column_names(source: Source | TablePath) -> tuple[str, ...]:
    """List the names of a table's columns, without reading the table if possible."""
    found = as_source(source)
    return file_columns(found) if isinstance(found, TableFiles) else found.column_names()


def source_of(description: Mapping[str, Any], *, folder: Path) -> Source:
    """Make a source from what its `describe` gave; relative paths are relative to the folder."""
    settings = {key: value for key, value in description.items() if key not in {"kind", "sha256"}}
    fault = InputError("The description of the source is not complete.")
    header, missing = settings.get("header", False), settings.pop("missing_text", [])
    # a record may come from anywhere
    if type(header) is not bool or not isinstance(missing, list | tuple):
        raise fault
    texts = [*missing, *(value for key, value in settings.items() if key != "header")]
    if not all(isinstance(text, str) for text in texts):
        raise fault
    try:
        if description["kind"] == "database":
            made: DatabaseTable = database(**settings, folder=folder)
            return made
        path = settings.pop("source")
        return TableFiles(path=path, **settings, missing_text=tuple(missing), folder=folder)
    except (KeyError, TypeError):
        raise fault from None


def is_url(text: str) -> bool:
    """Tell whether text looks like an address rather than a path."""
    return "://" in text
