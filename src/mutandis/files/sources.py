"""Where a table of decisions is, and how it gets from there into an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mutandis.errors import InputError
from mutandis.files.database import DatabaseQuery
from mutandis.files.duckdb_files import file_columns, opened_files
from mutandis.files.duckdb_tables import fetched
from mutandis.files.table_files import TableFiles

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from mutandis.frames import EncodedTable

__all__ = [
    "DatabaseQuery",
    "Source",
    "TableFiles",
    "column_names",
    "hash_source",
    "read_source",
    "source_of",
]

Source: TypeAlias = TableFiles | DatabaseQuery
"""A table in files, or the answer to a query of a database."""


def read_source(source: Source, *, columns: Collection[str] | None = None) -> EncodedTable:
    r"""Read a table, or those of its columns that are asked for.

    Parameters
    ----------
    source
        Where it is.
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
    ...     _ = Path(folder, "people.csv").write_text("id;pay;job\n1;2,5;cook\n2;4;clerk\n")
    ...     source = TableFiles(path="people.csv", folder=Path(folder), decimal=",")
    ...     read_source(source, columns=["job", "pay"]).to_pandas()
       pay    job
    0  2.5   cook
    1  4.0  clerk
    """
    opened = (
        opened_files(source, columns) if isinstance(source, TableFiles) else source.opened(columns)
    )
    with opened as relation:
        return fetched(relation)


def column_names(source: Source) -> tuple[str, ...]:
    """List the names of a table's columns, without reading the table if that can be helped."""
    return file_columns(source) if isinstance(source, TableFiles) else source.column_names()


def hash_source(source: Source) -> str:
    """Give the SHA-256 of what a table is read from, in hexadecimal digits.

    Of a file that is its contents; of several files their names and contents; of a database the
    answer to the query, value by value and row by row.
    """
    return source.sha256()


def source_of(description: Mapping[str, Any], *, folder: Path) -> Source:
    """Make a source again from what `describe` gave.

    Parameters
    ----------
    description
        What `describe` gave.
    folder
        What relative paths in it are relative to.

    Examples
    --------
    >>> from pathlib import Path
    >>> given = TableFiles(path="loans.csv", separator=";", missing_text=("NA",))
    >>> source_of(given.describe(), folder=Path()) == given
    True
    """
    settings = {key: value for key, value in description.items() if key not in {"kind", "sha256"}}
    try:
        if description["kind"] == "database":
            return DatabaseQuery(**settings, folder=folder)
        missing = tuple(settings.pop("missing_text", ()))
        path = settings.pop("source")
        return TableFiles(path=path, **settings, missing_text=missing, folder=folder)
    except (KeyError, TypeError):
        raise InputError("The description of the source is not complete.") from None
