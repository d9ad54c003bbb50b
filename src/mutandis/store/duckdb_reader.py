"""Tables of decisions in files, read by DuckDB with the few checks that it lacks.

What text means (numbers, booleans, dates, or text after all) is decided by every row of a column: a
reader that decides by a sample takes the 1.5 in row 60,000 of a column of whole numbers for a 2.
The levels of a text column are found and numbered inside DuckDB, so that no string is made for a
row; a column with about as many texts as rows (an id) is taken as it is.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import json
import re
import shutil
import tempfile
import zlib
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.errors import InputError
from mutandis.frames import EncodedTable, check_columns
from mutandis.limits import explain_limit, limit
from mutandis.mapped import empty, uses_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import duckdb

    from mutandis.store.tables import TableFiles

__all__ = [
    "NUMBERS",
    "Relation",
    "arrow_relation",
    "check_distinct",
    "choose_columns",
    "connect",
    "csv_header",
    "fetch",
    "literal",
    "most_rows",
    "open_files",
    "quoted",
    "read_text_columns",
    "refuse_huge",
]

_SEPARATORS = (",", ";", "\t", "|")
_LINES = 50  # of a CSV file that are looked at first
_CHARACTERS = 10_000_000  # of one of these lines
_LINE = 20_000_000  # bytes of a line of CSV
_PACKED_BYTES = 1032  # that a byte of a packed file unpacks to at most
_VALUES = 500_000_000  # ten million rows with fifty columns
_LOOKED_AT, _FEW = 100_000, 10_000  # a text column with fewer texts in its first rows is encoded
_LONG = 100  # a table with more text columns is not long: its texts are taken as they are
_FIRST = 100  # rows that often show that a type does not fit
_AT_ONCE = 1_000  # columns that are asked about in one query
_VECTORS = 100  # of 2,048 rows each, fetched at a time

_NUMBER_NAME = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")
_LINE_END = re.compile(r"\r\n?|\n")
_CSV_LINE = re.compile(r"CSV Error on Line: (\d+)")
_TABLE = "decisions"

# nothing is fetched from anywhere, and nothing of the table is written to a disk on the way
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
}

# What text must be like to be read as a type, where {x} is the text with a point for a decimal
# comma. DuckDB itself would take 1_000 for a number, and 1.5 for the whole number 2.
NUMBERS: Mapping[str, str] = {
    "BIGINT": (
        "TRY_CAST({x} AS BIGINT) IS NOT NULL AND TRY_CAST({x} AS DOUBLE) IS NOT NULL "
        "AND NOT contains({x}, '_') AND NOT contains({x}, '.') AND NOT contains(lower({x}), 'e')"
    ),
    "DOUBLE": "TRY_CAST({x} AS DOUBLE) IS NOT NULL AND NOT contains({x}, '_')",
}
"""How text is read that is known to hold numbers."""

_READINGS: Mapping[str, str] = {
    "BOOLEAN": "lower(trim({x})) IN ('true', 'false')",
    **NUMBERS,
    "TIMESTAMP": "TRY_CAST({x} AS TIMESTAMP) IS NOT NULL AND regexp_matches({x}, '[0-9]')",
}
"""How text is read: as the first type that fits every row."""

_AS_THEY_ARE = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "FLOAT", "DOUBLE", "BOOLEAN", "TIME", "INTERVAL",
}  # fmt: skip
_HUGE = {"HUGEINT", "UHUGEINT", "BIGNUM"}
_DECIMAL = re.compile(r"DECIMAL\(\d+,\s*(\d+)\)")
_type_numbers = count()  # types that are made need names of their own


# --- the header of CSV ----------------------------------------------------------------------------


def csv_header(source: TableFiles, files: Sequence[Path]) -> tuple[str, tuple[str, ...]]:
    """Return the separator and the names of the columns, which all files have alike."""
    found = [_read_header(file, source) for file in files]
    for file, header in zip(files, found, strict=True):
        if header != found[0]:
            raise InputError(
                f"{file.name!r} has other columns, or another separator, than {files[0].name!r}. "
                "Files that are read as one table begin with the same line."
            )
    check_distinct(found[0][1], of=source.name)
    return found[0]


def _read_header(path: Path, source: TableFiles) -> tuple[str, tuple[str, ...]]:
    with _open_text(path, source.encoding or "utf-8") as file:
        lines = list(islice(iter(lambda: file.readline(_CHARACTERS), ""), _LINES))
    while lines and not lines[0].strip():
        del lines[0]
    if not lines:
        raise InputError(f"{path.name!r} is empty. Check how it was exported.")
    separator = source.separator or _best_separator(lines, path.name)
    names = _fields(lines, separator)[0]
    breaks = sum(len(_LINE_END.findall(name)) for name in names)
    if len({end for line in lines[: breaks + 1] for end in _LINE_END.findall(line)}) > 1:
        raise InputError(
            f"A column of {path.name!r} has a line break in its name, and another kind of line "
            "break than the rows have. Write the name on one line."
        )
    if source.separator and len(names) == 1 and any(s in lines[0] for s in _SEPARATORS):
        other = _best_separator(lines, path.name)
        if other != separator:
            raise InputError(
                f"The first line of {path.name!r} has no separator {separator!r}, but it has "
                f"{other!r}. Write 'separator: {json.dumps(other)}' in the section 'data', or "
                "leave it out to have it detected."
            )
    if not source.header and any(_NUMBER_NAME.fullmatch(name) for name in names):
        raise InputError(
            f"The first line of {path.name!r} holds numbers: it seems to be a row and not the "
            "names of the columns. Put a line with their names in front; if these are the names, "
            "write 'header: true' in the section 'data'."
        )
    return separator, tuple(name or f"unnamed_{at}" for at, name in enumerate(names, start=1))


def _fields(lines: list[str], separator: str) -> list[list[str]]:
    before = csv.field_size_limit(_CHARACTERS)
    try:
        return [row for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:
        return [[line] for line in lines]
    finally:
        csv.field_size_limit(before)


def _best_separator(lines: list[str], name: str) -> str:
    """Choose the separator that gives every line the same number of fields, and most of them."""
    widths = {each: [len(row) for row in _fields(lines, each)] for each in _SEPARATORS}
    several = {each: found for each, found in widths.items() if found[0] > 1}
    if not several:
        return _SEPARATORS[0]
    # the last of many lines may go on after what was looked at
    last = -1 if len(lines) == _LINES else None
    even = [each for each, found in several.items() if len(set(found[:last])) == 1]
    if even or len(several) == 1:
        return max(even or several, key=lambda each: several[each][0])
    raise InputError(
        f"It is not clear what separates the fields of {name!r}: its lines have different numbers "
        "of fields, whatever is tried. Write 'separator: \";\"' (or another) in the section 'data'."
    )


@contextmanager
def _open_unpacked(path: Path) -> Iterator[Any]:
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rb") as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise InputError(f"{path.name!r} cannot be read: {reason}.") from None


@contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[Any]:
    # a byte order mark is no part of the first name
    codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    try:
        with _open_unpacked(path) as file, TextIOWrapper(file, encoding=codec, newline="") as text:
            yield text
    except UnicodeError:
        raise _wrong_encoding(path, encoding) from None


def _wrong_encoding(path: Path, encoding: str) -> InputError:
    with path.open("rb") as file:
        start = file.read(2)
    try_instead = "'encoding: latin-1' (or cp1252, if it comes from Windows)"
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        try_instead = "'encoding: utf-16', as its first bytes show,"
    return InputError(
        f"{path.name!r} is not encoded as {encoding}. Write {try_instead} in the section 'data', "
        "or save the file as UTF-8."
    )


# --- opening --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A table as DuckDB sees it."""

    connection: duckdb.DuckDBPyConnection
    relation: str  # what follows FROM
    columns: Mapping[str, str]  # names in the source to those in DuckDB, which ignores case


@contextmanager
def connect() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB of our own, in memory, that shares nothing and fetches nothing."""
    import duckdb

    with duckdb.connect(config=_CONFIG) as connection:
        connection.execute("SET enable_progress_bar = false")
        yield connection


def literal(text: str) -> str:
    """Write text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """Write the name of a column or a table as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def open_files(source: TableFiles, columns: Collection[str] | None) -> Iterator[Relation]:
    """Open files in a DuckDB of their own, with the columns that are asked for."""
    files = source.files()
    opener = _open_csv if source.is_csv(files) else _open_parquet
    with connect() as connection, _explain_errors(source, files):
        yield opener(connection, source, files, columns)


def choose_columns(names: Sequence[str], columns: Collection[str] | None, *, of: str) -> list[str]:
    """Return the columns to be read, in the order of the source; refuse unknown and double ones."""
    check_distinct(names, of=of)
    if columns is None:
        return list(names)
    check_columns(columns, list(names))
    return [name for name in names if name in set(columns)]


def check_distinct(names: Sequence[str], *, of: str) -> None:
    """Refuse a table two of whose columns have the same name."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        shown = ", ".join(map(repr, repeated[:5])) + (", …" if len(repeated) > 5 else "")
        raise InputError(f"{of!r} has several columns of the same name: {shown}. Rename them.")


def _files_sql(files: Sequence[Path]) -> str:
    # DuckDB would take brackets in a name for a pattern, and read another file
    return "[" + ", ".join(literal(glob.escape(str(file))) for file in files) + "]"


def _open_parquet(
    connection: duckdb.DuckDBPyConnection,
    source: TableFiles,
    files: Sequence[Path],
    columns: Collection[str] | None,
) -> Relation:
    keys = source.hive_keys(files)
    relation = f"read_parquet({_files_sql(files)}, hive_partitioning = {bool(keys)})"
    names = connection.sql(f"SELECT * FROM {relation}").columns  # noqa: S608
    schema = connection.sql(f"SELECT name FROM parquet_schema({_files_sql(files[:1])})")  # noqa: S608
    # a name that the file does not hold is one that DuckDB has numbered
    renamed = set(names) - {name for (name,) in schema.fetchall()} - set(keys)
    if renamed:
        raise InputError(
            f"{source.name!r} has several columns of the same name, or of names that differ in "
            f"upper and lower case only: {min(renamed).rpartition('_')[0]!r}. Rename them."
        )
    chosen = choose_columns(names, columns, of=source.name)
    return Relation(
        connection=connection, relation=relation, columns={name: name for name in chosen}
    )


def arrow_relation(connection: duckdb.DuckDBPyConnection, table: Any) -> Relation:
    """Open an Arrow table in DuckDB, its columns under numbered names."""
    numbered = {name: f"c{place}" for place, name in enumerate(table.column_names)}
    connection.register(_TABLE, table.rename_columns(list(numbered.values())))
    return Relation(connection=connection, relation=_TABLE, columns=numbered)


def _open_csv(
    connection: duckdb.DuckDBPyConnection,
    source: TableFiles,
    files: Sequence[Path],
    columns: Collection[str] | None,
) -> Relation:
    separator, names = csv_header(source, files)
    numbered = {name: f"c{place}" for place, name in enumerate(names)}
    taken = {name: numbered[name] for name in choose_columns(names, columns, of=source.name)}
    every = ", ".join(f"{own}: 'VARCHAR'" for own in numbered.values())
    missing = ", ".join(map(literal, ("", *source.missing_text)))
    with _as_utf8(files, source.encoding or "utf-8") as readable:
        for file in readable:
            _refuse_long_end(file, source.name)
        # parsed once, and only what is asked for
        connection.execute(
            f"CREATE TEMP TABLE {_TABLE} AS SELECT {', '.join(taken.values())} FROM read_csv("  # noqa: S608
            f"{_files_sql(readable)}, auto_detect = false, header = true, quote = '\"', "
            f"escape = '\"', delim = {literal(separator)}, nullstr = [{missing}], "
            f"max_line_size = {_LINE}, columns = {{{every}}})"
        )
    read = read_text_columns(connection, _TABLE, [*taken.values()], decimal=source.decimal)
    typed = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in read.items())
    relation = f"(SELECT {typed} FROM {_TABLE})"  # noqa: S608
    return Relation(connection=connection, relation=relation, columns=taken)


@contextmanager
def _as_utf8(files: Sequence[Path], encoding: str) -> Iterator[Sequence[Path]]:
    """Write files in another encoding out as UTF-8, in a private folder that is removed again."""
    if codecs.lookup(encoding).name == "utf-8":
        yield files
        return
    with tempfile.TemporaryDirectory() as folder:
        written = [Path(folder, f"{number}.csv") for number, _ in enumerate(files)]
        for file, copy in zip(files, written, strict=True):
            with (
                _open_text(file, encoding) as read,
                copy.open("w", encoding="utf-8", newline="") as opened,
            ):
                shutil.copyfileobj(read, opened, 2**20)
        yield written


def _refuse_long_end(file: Path, name: str) -> None:
    """Refuse a last line that is too long, which DuckDB leaves out if it does not end."""
    packed, size = file.suffix.lower() == ".gz", file.stat().st_size
    if size * (_PACKED_BYTES if packed else 1) <= _LINE:
        return
    length = 0
    with _open_unpacked(file) as opened:
        if not packed:
            opened.seek(size - _LINE - 1)
        while part := opened.read(2**20):
            end = max(part.rfind(b"\n"), part.rfind(b"\r"))
            length = len(part) - end - 1 + (length if end < 0 else 0)
    if length > _LINE:
        raise _long_line(name, " at its end")


@contextmanager
def _explain_errors(source: TableFiles, files: Sequence[Path]) -> Iterator[None]:
    """Explain in a sentence why a file cannot be read; the words of DuckDB quote cells."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        said, name = str(error), source.name
        if isinstance(error, duckdb.OutOfMemoryException):
            raise InputError(
                f"{name!r} does not fit into memory. Read fewer columns or rows."
            ) from None
        if "unicode" in said.lower() or "utf-8" in said.lower():
            raise _wrong_encoding(files[0], source.encoding or "utf-8") from None
        found = _CSV_LINE.search(said)
        line = f" in line {found[1]}" if found else ""
        if "Maximum line size" in said:
            raise _long_line(name, line) from None
        told = next((told for known, told in _CSV_FAULTS.items() if known in said), _FAULT)
        kind = "CSV" if source.is_csv(files) else "Parquet"
        raise InputError(
            told.format(name=repr(name), line=line, kind=kind, error=type(error).__name__)
        ) from None


_CSV_FAULTS = {
    "Expected Number of Columns": (
        "{name} has more or fewer fields{line} than in its first line. Correct the line, or put "
        "text that holds the separator in quotes."
    ),
    "reached an invalid state": (
        "{name} has different line ends: \\n in some lines, \\r\\n or \\r in others. Save it again "
        "with one kind."
    ),
    "unterminated quote": (
        "A quote is opened{line} of {name} and not closed, or closed and followed by something "
        "else. Correct it."
    ),
}


_FAULT = (
    "{name} cannot be read as {kind}{line} ({error}). Check that it is what its ending says, that "
    "it is whole, and that nothing writes to it at the same time."
)


def _long_line(name: str, where: str) -> InputError:
    return InputError(
        f"{name!r} has a line of more than {_LINE:,} bytes{where}. Check that a quote is not left "
        "open, and that the file is a table."
    )


# --- types and values -----------------------------------------------------------------------------


def read_text_columns(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: Sequence[str],
    *,
    readings: Mapping[str, str] = _READINGS,
    decimal: str = ".",
) -> dict[str, str]:
    """Find out how the text columns of a table are read; return an SQL expression for each."""
    read: dict[str, str] = {}
    first = f"(SELECT * FROM {table} LIMIT {_FIRST})"  # noqa: S608
    for kind, reading in readings.items():
        possible = [name for name in columns if name not in read]
        for rows in (first, table):
            conditions = [_condition(name, kind, reading, decimal) for name in possible]
            fits = _hold(connection, rows, conditions)
            # a column without any value gives NULL, which only its other rows may settle
            possible = [
                name
                for name, fit in zip(possible, fits, strict=True)
                if fit or (fit is None and rows is first)
            ]
        read |= {name: f"CAST({_text(name, kind, decimal)} AS {kind})" for name in possible}
    return {name: read.get(name, quoted(name)) for name in columns}


def _hold(
    connection: duckdb.DuckDBPyConnection, rows: str, conditions: Sequence[str]
) -> list[bool | None]:
    """Whether each condition holds in every row."""
    found: list[bool | None] = []
    for start in range(0, len(conditions), _AT_ONCE):
        wanted = ", ".join(f"bool_and({each})" for each in conditions[start : start + _AT_ONCE])
        found += connection.execute(f"SELECT {wanted} FROM {rows}").fetchall()[0]  # noqa: S608
    return found


def _condition(column: str, kind: str, reading: str, decimal: str) -> str:
    condition = reading.format(x=_text(column, kind, decimal))
    # with a decimal comma, a point separates thousands or means something else
    if decimal != "." and kind in NUMBERS:
        condition += f" AND NOT contains({quoted(column)}, '.')"
    # NULL is left out of bool_and
    return f"CASE WHEN {quoted(column)} IS NOT NULL THEN {condition} END"


def _text(column: str, kind: str, decimal: str) -> str:
    name = quoted(column)
    return f"replace({name}, ',', '.')" if decimal == "," and kind in NUMBERS else name


def most_rows(columns: int) -> int:
    """Return how many rows of so many columns are read at most."""
    return limit(_VALUES) // max(columns, 1)


def refuse_huge(rows: int, columns: int) -> None:
    """Refuse a table that memory cannot hold: of equal rows, a few kilobytes can hold billions."""
    if rows > most_rows(columns):
        raise InputError(
            f"The table has at least {rows:,} rows, and {columns:,} columns that are needed. "
            f"{explain_limit(_VALUES, 'values')}"
        )


def fetch(relation: Relation) -> EncodedTable:
    """Read all of a relation."""
    ((rows,),) = relation.connection.execute(f"SELECT count(*) FROM {relation.relation}").fetchall()  # noqa: S608
    refuse_huge(rows, len(relation.columns))
    asked = _plan_columns(relation)
    arrays = _fetch_arrays(relation, [sql for sql, _ in asked], rows)
    read: dict[str, Any] = {}
    for place, (name, (_, levels)) in enumerate(zip(relation.columns, asked, strict=True)):
        array = arrays[f"c{place}"]
        read[name] = array if levels is None else (np.asarray(array), levels)
    text = frozenset(name for name, array in read.items() if isinstance(array, tuple))
    return EncodedTable(read, text=text)


def _fetch_arrays(relation: Relation, columns: Sequence[str], rows: int) -> dict[str, Any]:
    """Fetch columns under numbered names: those of the source may differ in case only."""
    numbered = {f"c{place}": sql for place, sql in enumerate(columns)}
    if not uses_files():
        return _select(relation, numbered).fetchnumpy()
    counted = _select(relation, {name: f"count({sql})" for name, sql in numbered.items()})
    complete = dict(zip(numbered, np.array(counted.fetchall()[0]) == rows, strict=True))
    sample: dict[str, Any] = _select(relation, numbered, "LIMIT 1").fetchnumpy()
    arrays: dict[str, Any] = {
        name: empty(rows, array.dtype)
        for name, array in sample.items()
        if complete[name] and array.dtype.kind in "biuf"
    }
    # numbers without gaps a part at a time, all others a column at a time
    asked, start = _select(relation, {name: numbered[name] for name in arrays}), 0
    while arrays and len(part := asked.fetch_df_chunk(_VECTORS)):
        for name, array in arrays.items():
            array[start : start + len(part)] = part[name].to_numpy()
        start += len(part)
    for name in numbered.keys() - arrays.keys():
        arrays |= _select(relation, {name: numbered[name]}).fetchnumpy()
    return arrays


def _select(
    relation: Relation, columns: Mapping[str, str], clause: str = ""
) -> duckdb.DuckDBPyConnection:
    wanted = ", ".join(f"{sql} AS {name}" for name, sql in columns.items()) or "1"
    return relation.connection.execute(f"SELECT {wanted} FROM {relation.relation} {clause}")  # noqa: S608


def _plan_columns(relation: Relation) -> list[tuple[str, tuple[str, ...] | None]]:
    """Return how each column is asked for, and its levels if its texts arrive as codes."""
    names = [quoted(own) for own in relation.columns.values()]
    described = relation.connection.execute(
        f"DESCRIBE SELECT {', '.join(names)} FROM {relation.relation}"  # noqa: S608
    ).fetchall()
    kinds = [str(line[1]) for line in described]
    plain = [_plain_sql(name, kind) for name, kind in zip(names, kinds, strict=True)]
    encode = plain.count(None) <= _LONG
    columns: list[tuple[str, tuple[str, ...] | None]] = []
    for name, kind, sql in zip(names, kinds, plain, strict=True):
        text = f"({name} ->> '$')" if kind == "JSON" else f"CAST({name} AS VARCHAR)"
        as_codes = encode and sql is None
        columns.append(_encode(relation, text) if as_codes else (sql or text, None))
    return columns


def _plain_sql(name: str, kind: str) -> str | None:
    """Return how a column of this type is asked for; None if as text."""
    if kind in _AS_THEY_ARE:
        return name
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        # what lies outside (PostgreSQL's infinity) is no date that could be used
        return f"TRY_CAST({name} AS TIMESTAMP)"
    decimal = _DECIMAL.fullmatch(kind)
    if kind in _HUGE or (decimal and decimal[1] == "0"):
        return f"CAST({name} AS BIGINT)"
    return f"CAST({name} AS DOUBLE)" if decimal else None


def _encode(relation: Relation, text: str) -> tuple[str, tuple[str, ...] | None]:
    connection, rows = relation.connection, relation.relation
    different = connection.execute(
        f"SELECT count(DISTINCT t) FROM (SELECT {text} AS t FROM {rows} LIMIT {_LOOKED_AT})"  # noqa: S608
    ).fetchall()[0][0]
    if different > _FEW:
        return text, None
    made = f"levels_{next(_type_numbers)}"
    connection.execute(
        f"CREATE TYPE {made} AS ENUM "  # noqa: S608
        f"(SELECT DISTINCT {text} FROM {rows} WHERE {text} IS NOT NULL ORDER BY 1)"
    )
    levels = tuple(connection.execute(f"SELECT enum_range(NULL::{made})").fetchall()[0][0])
    if not levels:
        return text, None
    width = "TINYINT" if len(levels) < 2**7 else "SMALLINT" if len(levels) < 2**15 else "INTEGER"
    return f"coalesce(CAST(enum_code(CAST({text} AS {made})) AS {width}), -1)", levels
