"""Where a table of decisions is: in files, or in a database."""

from __future__ import annotations

import codecs
import fnmatch
import glob
import hashlib
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from mutandis.config.fields import At, fault, given
from mutandis.config.schema import DataSection
from mutandis.errors import InputError, listed
from mutandis.limits import explain_limit, limit, open_regular
from mutandis.registry import find, is_known, names
from mutandis.store.duckdb_reader import csv_header, fetch, open_files
from mutandis.store.files import hash_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mutandis.frames import EncodedTable
    from mutandis.store.duckdb_reader import Relation

__all__ = [
    "DatabaseTable",
    "Source",
    "TableFiles",
    "TablePath",
    "column_names",
    "open_source",
    "read_source",
    "source_of",
]

T = TypeVar("T")

_CSV = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_PARQUET = (".parquet", ".pq")
_DATABASES = (".db", ".sqlite", ".sqlite3")
_FILE_KEYS = ("separator", "decimal", "encoding", "header", "missing_text")
_DATABASE_KEYS = ("query", "password_env")
_ENTRIES = 100_000  # files and folders that are looked through for the files of one table
_STARTS_AT = "A relative path starts at the folder of the settings, in Python at the current one."


class DatabaseTable(Protocol):
    """The answer of a database to a query; the registry names a class by the scheme of its url.

    It is made with the keywords `url`, `query`, `password_env`, `order_by` and `folder`.
    """

    @property
    def name(self) -> str:
        """A short name for messages, without secrets."""

    def describe(self) -> dict[str, Any]:
        """Return its kind, "database", and the keywords but for `folder`, as plain data."""

    def column_names(self) -> tuple[str, ...]:
        """List the names of the columns, without reading the table."""

    def open(self, columns: Collection[str] | None) -> AbstractContextManager[Relation]:
        """Fetch the columns that are asked for, and open them in DuckDB."""

    def sha256(self) -> str:
        """Hash the answer: the names of its columns, and every value in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFiles:
    """A table in a file, in all files of a folder, or in those that a pattern fits.

    Parameters
    ----------
    path
        The file, the folder or the pattern, as it was written.
    folder
        What a relative path is relative to.
    separator, decimal, encoding
        Of CSV: what separates fields (default: detected), the decimal mark (default: a point),
        and how text is encoded (default: UTF-8).
    header
        Of CSV: the first line holds the names, even if they look like numbers.
    missing_text
        Of CSV: texts that mark a missing value, next to the empty field.

    Examples
    --------
    >>> TableFiles(path="loans/*.csv", folder=Path("/case"), separator=";").describe()
    {'kind': 'files', 'source': 'loans/*.csv', 'separator': ';'}
    """

    path: str
    folder: Path = Path()
    separator: str | None = None
    decimal: str = "."
    encoding: str | None = None
    header: bool = False
    missing_text: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.separator is not None and len(self.separator) != 1:
            raise InputError(
                "A separator is one character, such as ';'. A tab is written as separator: \"\\t\"."
            )
        if self.decimal not in {".", ","}:
            raise InputError("The decimal mark is '.' or ','.")
        if self.encoding is not None and not _is_text_encoding(self.encoding):
            raise InputError(
                "The encoding is not known. Known are utf-8, latin-1, cp1252, utf-16 and others "
                "that Python lists."
            )

    @property
    def name(self) -> str:
        """A short name for messages."""
        return Path(self.path).name or self.path

    def describe(self) -> dict[str, Any]:
        """Return where the table is and how it is read, as plain data."""
        written: dict[str, Any] = {"kind": "files", "source": self.path}
        for each in fields(self)[2:]:  # after path and folder
            value = getattr(self, each.name)
            if value != each.default:
                written[each.name] = list(value) if isinstance(value, tuple) else value
        return written

    def files(self) -> tuple[Path, ...]:
        """Find the files, sorted by name; refuse what is not there, or cannot be opened."""
        whole = self.folder / self.path
        try:
            found = _find_files(whole, self.path)
            for file in found:
                open_regular(file).close()
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            reason = getattr(error, "strerror", None) or "its name is not a path"
            raise InputError(f"{self.name!r} cannot be opened: {reason}.") from None
        return tuple(found)

    def is_csv(self, files: Sequence[Path]) -> bool:
        """Whether the files are CSV by their endings; refuse what is neither that nor Parquet."""
        endings = {each.name.lower().endswith(_CSV) for each in files}
        odd = [each for each in files if not each.name.lower().endswith((*_CSV, *_PARQUET))]
        if odd:
            raise InputError(
                f"The ending of {odd[0].name!r} does not tell what it holds. Tables are read from "
                f"files that end in {', '.join((*_CSV, *_PARQUET))}, and from databases."
            )
        if len(endings) > 1:
            raise InputError(
                f"{self.name!r} names files of several formats (Parquet, CSV). Name those of "
                "one, by a pattern such as 'folder/*.parquet'."
            )
        about_csv = [key for key in self.describe() if key not in {"kind", "source"}]
        if about_csv and not all(endings):
            raise InputError(
                f"{about_csv[0]!r} is about CSV files, and {self.name!r} is Parquet. Leave it out."
            )
        return all(endings)

    def hive_keys(self, files: Sequence[Path]) -> tuple[str, ...]:
        """Name the columns that are written as folders inside the folder, as in year=2020."""
        whole = self.folder / self.path
        inside = files[0].relative_to(whole).parts[:-1] if whole.is_dir() else ()
        return tuple(part.partition("=")[0] for part in inside if "=" in part)

    def sha256(self) -> str:
        """Hash the contents: of the file, or of all files with their names."""
        files = self.files()
        try:
            if len(files) == 1:
                return hash_file(files[0])
            common = os.path.commonpath([file.parent for file in files])
            digest = hashlib.sha256()
            for file in files:
                line = [file.relative_to(common).as_posix(), hash_file(file)]
                digest.update(json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise InputError(f"{self.name!r} cannot be read: {error.strerror}.") from None
        return digest.hexdigest()


Source: TypeAlias = TableFiles | DatabaseTable
"""A table in files or in a database."""

TablePath: TypeAlias = "str | os.PathLike[str]"
"""A file, a folder, or a pattern such as "loans/*.parquet"."""


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
    with _open(_as_source(source), columns) as relation:
        return fetch(relation)


@contextmanager
def _open(source: Source, columns: Collection[str] | None) -> Iterator[Relation]:
    """Open a table in a DuckDB of its own, with the columns that are asked for."""
    opened = open_files(source, columns) if isinstance(source, TableFiles) else source.open(columns)
    with opened as relation:
        yield relation


def column_names(source: Source | TablePath) -> tuple[str, ...]:
    """List the names of a table's columns, without reading the table if possible."""
    found = _as_source(source)
    if not isinstance(found, TableFiles):
        return found.column_names()
    files = found.files()
    if found.is_csv(files):
        return csv_header(found, files)[1]
    with _open(found, None) as relation:
        return tuple(relation.columns)


def _as_source(table: Source | TablePath) -> Source:
    """Make a source of a path; a relative path starts at the current folder."""
    if not isinstance(table, str | os.PathLike):
        return table
    path = os.fspath(table)
    if "://" in path or path.lower().endswith(_DATABASES):
        raise InputError(
            "A table in a database needs a query. Write both in the section 'data' of an audit "
            "file, or export the table to a file."
        )
    return TableFiles(path=path)


def source_of(description: Mapping[str, Any], *, folder: Path) -> Source:
    """Make a source of what its `describe` returned, which may come from anywhere."""
    written = {key: description[key] for key in description.keys() - {"kind", "sha256", "order_by"}}
    try:
        section = DataSection(**written, id=description.get("order_by"))
        return open_source(section, folder=folder)
    except (ValidationError, At):
        raise InputError("The description of the source is not complete.") from None


def open_source(section: DataSection, *, folder: Path) -> Source:
    """Make the source that the section 'data' of an audit file names, relative to a folder."""
    url = _database_of(section)
    written = given(section)
    for key in _DATABASE_KEYS if url is None else _FILE_KEYS:
        if key in written:
            what = "databases" if url is None else "files"
            raise fault(f"{key!r} is about {what}, and the table is in none. Drop it.", key)
    if url is None:
        keys = {key: written[key] for key in _FILE_KEYS if key in written}
        return TableFiles(path=str(section.source), folder=folder, **keys)
    if section.query is None:
        raise fault("A database needs a 'query': one SELECT, such as SELECT * FROM loans.")
    scheme = url.partition("://")[0].lower()
    if not is_known("table", scheme):
        # what is written may be a password
        known = listed([f"{each}://" for each in names("table")])
        raise InputError(f"The url cannot be read. It begins with one of {known}.")
    keys = {key: written[key] for key in _DATABASE_KEYS if key in written}
    # sorted by id, so that the same rows have the same hash whatever order the server likes
    made: DatabaseTable = find("table", scheme)(url=url, order_by=section.id, folder=folder, **keys)
    return made


def _database_of(section: DataSection) -> str | None:
    """Return the address of the database that holds the table; None for a table in files."""
    path, url = section.source, section.url
    if (path is None) == (url is None):
        raise fault(
            "Name the table, in one way: 'source' is a file, a folder or a pattern, 'url' a "
            "database."
        )
    if path is not None and "://" in path:
        raise fault(
            "'source' holds an address and not a path. Write the address of a database as 'url', "
            "without a password, and the query next to it."
        )
    if path is not None and path.lower().endswith(_DATABASES):
        return f"sqlite:///{quote(path)}"
    return url


# --- which files ----------------------------------------------------------------------------------


def _is_text_encoding(name: str) -> bool:
    try:
        return isinstance("a".encode(codecs.lookup(name).name), bytes)
    except (LookupError, ValueError):  # unknown, or a codec of another kind such as base64
        return False


def _find_files(whole: Path, path: str) -> list[Path]:
    """List the file, the tables in a folder and below, or the files that a pattern fits."""
    if whole.is_file():
        return [whole]
    if whole.is_dir():
        found = _tables_below(whole)
        lacking = f"The folder {whole.name!r} holds no table: no file in it ends in "
        lacking += f"{', '.join((*_CSV, *_PARQUET))}."
    elif glob.has_magic(whole.name):
        inside = whole.parent.iterdir() if whole.parent.is_dir() else iter(())
        shown = [x for x in _counted(inside, path) if whole.name[0] == "." or x.name[0] != "."]
        found = [x for x in shown if fnmatch.fnmatch(x.name, whole.name) and x.is_file()]
        lacking = f"No file fits the pattern {path!r}. Check it. {_STARTS_AT}"
    else:
        found = []
        lacking = f"There is no file or folder {whole.name!r}. Check the path. {_STARTS_AT}"
    if not found:
        raise InputError(lacking)
    return sorted(found)


def _tables_below(folder: Path) -> list[Path]:
    """List the tables in a folder and below, without those hidden or starting with '_'."""
    found: list[Path] = []
    for parent, folders, inside in _counted(os.walk(folder, onerror=_refuse), folder.name):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        tables = [name for name in inside if name.lower().endswith((*_CSV, *_PARQUET))]
        found += [Path(parent, name) for name in tables if not name.startswith((".", "_"))]
    return found


def _refuse(error: OSError) -> None:
    raise error


def _counted(entries: Iterator[T], what: str) -> Iterator[T]:
    """Count files, or folders with what is in them, and refuse to go on without end."""
    seen = 0
    for each in entries:
        seen += len(each[1]) + len(each[2]) if isinstance(each, tuple) else 1
        if seen > limit(_ENTRIES):
            raise InputError(
                f"{what!r} names too many files and folders to look through. Name a folder "
                f"closer to the table. {explain_limit(_ENTRIES, 'files and folders')}"
            )
        yield each
