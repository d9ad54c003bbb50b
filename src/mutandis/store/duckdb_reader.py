"""Tables read by DuckDB: files are opened, text is given its types, and columns come to memory.

What text means (numbers, booleans, dates, or text after all) is decided by every row of a column. A
reader that decides by a sample takes the 1.5 in row 60,000 of a column that began with whole
numbers for a 2, without a warning. The levels of a text column are found and numbered inside
DuckDB, so that no string is made for a row; a column with about as many texts as rows (an id) is
taken as it is.
"""

from __future__ import annotations

import codecs
import glob
import re
import shutil
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.errors import InputError, MutandisError
from mutandis.frames import EncodedTable, check_columns
from mutandis.limits import explain_limit, limit
from mutandis.mapped import empty, uses_files
from mutandis.store.table_files import (
    FileFormat,
    Header,
    open_text,
    open_unpacked,
    read_header,
    wrong_encoding,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import duckdb

    from mutandis.store.table_files import TableFiles

__all__ = [
    "NUMBERS",
    "Relation",
    "arrow_relation",
    "check_distinct",
    "choose_columns",
    "connect",
    "fetch",
    "file_columns",
    "literal",
    "most_rows",
    "open_files",
    "quoted",
    "read_text_columns",
    "refuse_huge",
]

# nothing is fetched from anywhere, and nothing of the table is written to a disk on the way
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
}
_TABLE = "decisions"
_CSV_LINE = re.compile(r"CSV Error on Line: (\d+)")
_NUMBERED = re.compile(r"(.+)_\d+")

# A text column is encoded if the first rows have few enough different texts.
_LOOKED_AT = 100_000
_FEW = 10_000

# A table with more text columns than this is wide and not long: looking each of them up would take
# longer than reading them.
_LONG = 100

# the types that are made need names of their own
_TYPE_NUMBERS = count()

_WHOLE_TYPES = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_AS_THEY_ARE = {"UBIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "TIME", "INTERVAL"}
_HUGE = {"HUGEINT", "UHUGEINT", "BIGNUM"}
_DECIMAL = re.compile(r"DECIMAL\(\d+,\s*(\d+)\)")

# What text must be like to be read as a type, where {x} is the text with a point for a decimal
# comma. DuckDB itself would take 1_000 for a number, and 1.5 for the whole number 2.
_WHOLE = (
    "TRY_CAST({x} AS BIGINT) IS NOT NULL AND TRY_CAST({x} AS DOUBLE) IS NOT NULL "
    "AND NOT contains({x}, '_') AND NOT contains({x}, '.') AND NOT contains(lower({x}), 'e')"
)
_NUMBER = "TRY_CAST({x} AS DOUBLE) IS NOT NULL AND NOT contains({x}, '_')"

NUMBERS: Mapping[str, str] = {"BIGINT": _WHOLE, "DOUBLE": _NUMBER}
"""How text is read that is known to hold numbers."""

_READINGS: Mapping[str, str] = {
    "BOOLEAN": "lower(trim({x})) IN ('true', 'false')",
    **NUMBERS,
    "TIMESTAMP": "TRY_CAST({x} AS TIMESTAMP) IS NOT NULL",
}
"""How text is read: as the first type that fits every row."""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# Where a few rows tell already that a reading does not fit, the others need not be looked at. Text
# that DuckDB reads so always passes these; whether all of it can be read, DuckDB says.
_FIRST = 100
_PLAUSIBLE: Mapping[str, Callable[[str], bool]] = {
    "BOOLEAN": lambda text: text.strip().lower() in {"true", "false"},
    "BIGINT": lambda text: _is_number(text) and not set(text.lower()) & {".", "e"},
    "DOUBLE": _is_number,
    "TIMESTAMP": lambda text: any(map(str.isdigit, text)) and not _is_number(text),
}
# of one line of a CSV file, and what a byte of a packed one unpacks to at most
_LINE = 20_000_000
_PACKED_BYTES = 1032
# ten million rows with fifty columns
_VALUES = 500_000_000
# columns that are asked about in one query
_AT_ONCE = 1_000
# of 2,048 rows each, that are fetched at a time
_VECTORS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A table as DuckDB sees it: `relation` is what stands after FROM.

    `columns` maps names in the source to those in DuckDB, which does not tell upper from lower
    case where a source may.
    """

    connection: duckdb.DuckDBPyConnection
    relation: str
    columns: Mapping[str, str]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What an opener needs: where to open which files, and the columns that are wanted."""

    connection: duckdb.DuckDBPyConnection
    source: TableFiles
    files: tuple[Path, ...]
    columns: Collection[str] | None

    def choose(self, names: Sequence[str]) -> list[str]:
        return choose_columns(names, self.columns, of=self.source.name)


@contextmanager
def open_files(source: TableFiles, columns: Collection[str] | None) -> Iterator[Relation]:
    """Open the files in a DuckDB of their own, with the columns that are asked for."""
    files = source.files()
    form = source.format(files)
    with connect() as connection, _explain_errors(source, files, form):
        yield _OPENERS[form](
            _Request(connection=connection, source=source, files=files, columns=columns)
        )


def file_columns(source: TableFiles) -> tuple[str, ...]:
    """List the names of the columns, without reading the table."""
    files = source.files()
    if source.format(files) is FileFormat.CSV:
        return _csv_header(source, files).names
    with open_files(source, None) as relation:
        return tuple(relation.columns)


def choose_columns(names: Sequence[str], columns: Collection[str] | None, *, of: str) -> list[str]:
    """Give the columns to be read, in the order of the source; refuse unknown and double ones."""
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


def _open_parquet(asked: _Request) -> Relation:
    keys = asked.source.hive_keys(asked.files)
    partitions = "true" if keys else "false"
    relation = f"read_parquet({_files_sql(asked.files)}, hive_partitioning = {partitions})"
    own = asked.connection.sql(f"SELECT * FROM {relation}").columns  # noqa: S608
    schema = asked.connection.execute(
        f"SELECT name, num_children FROM parquet_schema({_files_sql(asked.files[:1])})"  # noqa: S608
    ).fetchall()
    names = _top_level(schema)
    # what is not in the file itself is written in the names of the folders
    known = dict(zip([*names, *own[len(names) :]], own, strict=True))
    if len(known) < len(own):
        check_distinct([*names, *own[len(names) :]], of=asked.source.name)
    usable = [name for place, name in enumerate(known) if place < len(names) or name in keys]
    columns = {name: known[name] for name in asked.choose(usable)}
    return Relation(connection=asked.connection, relation=relation, columns=columns)


def _top_level(schema: Sequence[tuple[str, int | None]]) -> list[str]:
    """Pick the columns out of the tree of a Parquet file, which is written depth first."""
    names: list[str] = []
    place = 1  # after the root
    while place < len(schema):
        names.append(schema[place][0])
        inside = schema[place][1] or 0
        while inside:
            place += 1
            inside += (schema[place][1] or 0) - 1
        place += 1
    return names


def _open_json(asked: _Request) -> Relation:
    lines = not asked.files[0].name.lower().endswith((".json", ".json.gz"))
    form = "newline_delimited" if lines else "auto"
    read = f"read_json({_files_sql(asked.files)}, format = '{form}', records = true, "
    # by all rows, like text: a type guessed from some rows fits those
    found = asked.connection.sql(
        f"SELECT * FROM {read} sample_size = -1, map_inference_threshold = -1, "  # noqa: S608
        "union_by_name = true)"
    )
    names = found.columns
    _refuse_renamed(names, asked.source.name)
    taken = asked.choose(names)
    types = dict(zip(names, map(str, found.types), strict=True))
    # a column that is null throughout has no type
    parts = ", ".join(
        f"{literal(name)}: {literal(types[name].strip(chr(34)).replace('NULL', 'VARCHAR'))}"
        for name in taken
    )
    # parsed once, and only what is asked for
    asked.connection.execute(
        f"CREATE TEMP TABLE {_TABLE} AS SELECT * FROM {read} columns = {{{parts}}})"  # noqa: S608
    )
    columns = {name: name for name in taken}
    return Relation(connection=asked.connection, relation=_TABLE, columns=columns)


def _refuse_renamed(names: Sequence[str], of: str) -> None:
    """Refuse keys that differ in case only: DuckDB gives the second another name."""
    folded = {name.casefold() for name in names}
    for name in names:
        numbered = _NUMBERED.fullmatch(name)
        if numbered and numbered[1] not in names and numbered[1].casefold() in folded:
            raise InputError(
                f"{of!r} seems to have keys that differ in upper and lower case only, such as "
                f"{numbered[1]!r}. Rename them."
            )


def _open_arrow(asked: _Request) -> Relation:
    try:
        import pyarrow as pa
        import pyarrow.dataset as ds
    except ModuleNotFoundError:
        raise InputError(
            "Arrow files are read by pyarrow. Install it: pip install 'mutandis[arrow]'."
        ) from None
    try:
        # a dataset refuses columns of the same name, in words of its own
        with pa.memory_map(str(asked.files[0])) as file, pa.ipc.open_file(file) as opened:
            names = opened.schema.names
        taken = asked.choose(names)
        dataset = ds.dataset([str(file) for file in asked.files], format="ipc")
        table = dataset.to_table(columns=taken)
        # a file says where its texts begin and end; what lies outside would be read all the same
        table.validate(full=True)
    except MutandisError:
        raise
    except (pa.ArrowException, OSError, UnicodeError):
        raise InputError(
            f"{asked.source.name!r} cannot be read as Arrow. Check that it is an Arrow IPC file "
            "(Feather version 2), and that all files have the same columns."
        ) from None
    return arrow_relation(asked.connection, table)


def arrow_relation(connection: duckdb.DuckDBPyConnection, table: Any) -> Relation:
    """Open an Arrow table in DuckDB, its columns under numbered names."""
    numbered = {name: f"c{place}" for place, name in enumerate(table.column_names)}
    connection.register(_TABLE, table.rename_columns(list(numbered.values())))
    return Relation(connection=connection, relation=_TABLE, columns=numbered)


def _csv_header(source: TableFiles, files: Sequence[Path]) -> Header:
    encoding = source.encoding or "utf-8"
    found = [
        read_header(file, separator=source.separator, encoding=encoding, header=source.header)
        for file in files
    ]
    for file, header in zip(files, found, strict=True):
        if header != found[0]:
            raise InputError(
                f"{file.name!r} has other columns, or another separator, than {files[0].name!r}. "
                "Files that are read as one table begin with the same line."
            )
    check_distinct(found[0].names, of=source.name)
    return found[0]


def _open_csv(asked: _Request) -> Relation:
    header = _csv_header(asked.source, asked.files)
    taken = asked.choose(header.names)
    numbered = {name: f"c{place}" for place, name in enumerate(header.names)}
    wanted = ", ".join(numbered[name] for name in taken)
    every = ", ".join(f"{own}: 'VARCHAR'" for own in numbered.values())
    missing = ", ".join(map(literal, ("", *asked.source.missing_text)))
    with _as_utf8(asked.files, asked.source.encoding or "utf-8") as readable:
        for file in readable:
            _refuse_long_end(file, asked.source.name)
        # parsed once, and only what is asked for
        asked.connection.execute(
            f"CREATE TEMP TABLE {_TABLE} AS SELECT {wanted} FROM read_csv("  # noqa: S608
            f"{_files_sql(readable)}, auto_detect = false, header = true, quote = '\"', "
            f"escape = '\"', delim = {literal(header.separator)}, nullstr = [{missing}], "
            f"max_line_size = {_LINE}, columns = {{{every}}})"
        )
    own = [numbered[name] for name in taken]
    read = read_text_columns(asked.connection, _TABLE, own, decimal=asked.source.decimal)
    typed = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in read.items())
    return Relation(
        connection=asked.connection,
        relation=f"(SELECT {typed} FROM {_TABLE})",  # noqa: S608
        columns={name: numbered[name] for name in taken},
    )


@contextmanager
def _as_utf8(files: Sequence[Path], encoding: str) -> Iterator[Sequence[Path]]:
    """Write files in another encoding out as UTF-8, in a private folder that is removed again."""
    if codecs.lookup(encoding).name == "utf-8":
        yield files
        return
    with tempfile.TemporaryDirectory() as folder:
        written = []
        for number, file in enumerate(files):
            written.append(Path(folder, f"{number}.csv"))
            with (
                open_text(file, encoding) as read,
                written[-1].open("w", encoding="utf-8", newline="") as copy,
            ):
                shutil.copyfileobj(read, copy, 2**20)
        yield written


_OPENERS: dict[FileFormat, Callable[[_Request], Relation]] = {
    FileFormat.CSV: _open_csv,
    FileFormat.PARQUET: _open_parquet,
    FileFormat.JSON: _open_json,
    FileFormat.ARROW: _open_arrow,
}


@contextmanager
def _explain_errors(source: TableFiles, files: Sequence[Path], form: FileFormat) -> Iterator[None]:
    """Say in a sentence why a file cannot be read; DuckDB's own words quote the table's cells."""
    import duckdb

    try:
        yield
    except MutandisError:
        raise
    except duckdb.OutOfMemoryException:
        raise InputError(
            f"{source.name!r} does not fit into memory. Read fewer columns or rows."
        ) from None
    except duckdb.Error as error:
        raise _reason(str(error), type(error).__name__, source, files, form) from None


def _reason(
    said: str, kind: str, source: TableFiles, files: Sequence[Path], form: FileFormat
) -> InputError:
    if "unicode" in said.lower() or "utf-8" in said.lower():
        return wrong_encoding(files[0], source.encoding or "utf-8")
    found = _CSV_LINE.search(said)
    line = f" in line {found[1]}" if found else ""
    if "Maximum line size" in said:
        return _long_line(source.name, line)
    if "Expected Number of Columns" in said:
        return InputError(
            f"{source.name!r} has more or fewer fields{line} than in its first line. Correct the "
            "line, or put text that holds the separator in quotes."
        )
    if "reached an invalid state" in said:
        return InputError(
            f"{source.name!r} has different line ends: \\n in some lines, \\r\\n or \\r in "
            "others. Save it again with one kind."
        )
    if "unterminated quote" in said:
        return InputError(
            f"A quote is opened{line} of {source.name!r} and not closed, or closed and followed "
            "by something else. Correct it."
        )
    return InputError(
        f"{source.name!r} cannot be read as {form.value}{line} ({kind}). Check that it is what its "
        "ending says, that it is whole, and that nothing writes to it at the same time."
    )


def _long_line(name: str, where: str) -> InputError:
    return InputError(
        f"{name!r} has a line of more than {_LINE:,} bytes{where}. Check that a quote is not left "
        "open, and that the file is a table."
    )


def _refuse_long_end(file: Path, name: str) -> None:
    """Refuse a last line that is too long, which DuckDB leaves out if it does not end."""
    packed, size = file.suffix.lower() == ".gz", file.stat().st_size
    if size * (_PACKED_BYTES if packed else 1) <= _LINE:
        return
    length = 0
    with open_unpacked(file) as opened:
        if not packed:
            opened.seek(size - _LINE - 1)
        while part := opened.read(2**20):
            end = max(part.rfind(b"\n"), part.rfind(b"\r"))
            length = len(part) - end - 1 + (length if end < 0 else 0)
    if length > _LINE:
        raise _long_line(name, " at its end")


def read_text_columns(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: Sequence[str],
    *,
    readings: Mapping[str, str] = _READINGS,
    decimal: str = ".",
) -> dict[str, str]:
    """Find out how the text columns of a table are read; give an SQL expression for each."""
    wanted = ", ".join(map(quoted, columns))
    first = connection.execute(f"SELECT {wanted} FROM {table} LIMIT {_FIRST}").fetchall()  # noqa: S608
    possible = {}
    for place, column in enumerate(columns):
        texts = {row[place].replace(decimal, ".") for row in first if row[place] is not None}
        possible[column] = [kind for kind in readings if all(map(_PLAUSIBLE[kind], texts))]
    read: dict[str, str] = {}
    while asked := [(column, kinds.pop(0)) for column, kinds in possible.items() if kinds]:
        for start in range(0, len(asked), _AT_ONCE):
            some = asked[start : start + _AT_ONCE]
            conditions = ", ".join(
                f"bool_and({_condition(name, kind, readings[kind], decimal)})"
                for name, kind in some
            )
            # a column without any value gives NULL
            (answers,) = connection.execute(f"SELECT {conditions} FROM {table}").fetchall()  # noqa: S608
            for (column, kind), fits in zip(some, answers, strict=True):
                if fits:
                    read[column] = f"CAST({_text(column, kind, decimal)} AS {kind})"
                    possible[column].clear()
    return {column: read.get(column, quoted(column)) for column in columns}


def _condition(column: str, kind: str, reading: str, decimal: str) -> str:
    condition = reading.format(x=_text(column, kind, decimal))
    # with a decimal comma, a point separates thousands or means something else
    pointless = f" AND NOT contains({quoted(column)}, '.')" if decimal != "." else ""
    whole = condition + (pointless if kind in NUMBERS else "")
    # a missing value says nothing: NULL is left out of bool_and
    return f"CASE WHEN {quoted(column)} IS NOT NULL THEN {whole} END"


def _text(column: str, kind: str, decimal: str) -> str:
    name = quoted(column)
    return f"replace({name}, ',', '.')" if decimal == "," and kind in NUMBERS else name


def fetch(relation: Relation) -> EncodedTable:
    """Read all of a relation."""
    ((rows,),) = relation.connection.execute(f"SELECT count(*) FROM {relation.relation}").fetchall()  # noqa: S608
    refuse_huge(rows, len(relation.columns))
    columns = _plan_columns(relation)
    arrays = _fetch_arrays(relation, [column.sql for column in columns], rows)
    read = {
        name: arrays[f"c{place}"]
        if column.levels is None
        else (np.asarray(arrays[f"c{place}"]), column.levels)
        for place, (name, column) in enumerate(zip(relation.columns, columns, strict=True))
    }
    text = frozenset(name for name, array in read.items() if isinstance(array, tuple))
    return EncodedTable(arrays=read, text=text)


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
    others = {name: sql for name, sql in numbered.items() if name not in arrays}
    for name, sql in others.items():
        arrays |= _select(relation, {name: sql}).fetchnumpy()
    return arrays


def _select(
    relation: Relation, columns: Mapping[str, str], clause: str = ""
) -> duckdb.DuckDBPyConnection:
    wanted = ", ".join(f"{sql} AS {name}" for name, sql in columns.items()) or "1"
    return relation.connection.execute(f"SELECT {wanted} FROM {relation.relation} {clause}")  # noqa: S608


def most_rows(columns: int) -> int:
    """Give how many rows of so many columns are read at most."""
    return limit(_VALUES) // max(columns, 1)


def refuse_huge(rows: int, columns: int) -> None:
    """Refuse a table that memory cannot hold: of equal rows, a few kilobytes can hold billions."""
    if rows > most_rows(columns):
        raise InputError(
            f"The table has at least {rows:,} rows, and {columns:,} columns that are needed. "
            f"{explain_limit(_VALUES, 'values')}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """How a column is asked for; `levels` if its texts arrive as codes."""

    sql: str
    levels: tuple[str, ...] | None = None


def _plan_columns(relation: Relation) -> list[_Column]:
    """Decide for each column how it is asked for."""
    names = [quoted(own) for own in relation.columns.values()]
    described = relation.connection.execute(
        f"DESCRIBE SELECT {', '.join(names)} FROM {relation.relation}"  # noqa: S608
    ).fetchall()
    kinds = [str(line[1]) for line in described]
    plain = [_plain_sql(name, kind) for name, kind in zip(names, kinds, strict=True)]
    encode = plain.count(None) <= _LONG
    columns = []
    for name, kind, sql in zip(names, kinds, plain, strict=True):
        text = f"({name} ->> '$')" if kind == "JSON" else f"CAST({name} AS VARCHAR)"
        as_codes = encode and sql is None
        columns.append(_encode(relation, text) if as_codes else _Column(sql=sql or text))
    return columns


def _plain_sql(name: str, kind: str) -> str | None:
    """Say how a column of this type is asked for; None if as text."""
    if kind in _WHOLE_TYPES or kind in _AS_THEY_ARE:
        return name
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        # what lies outside (PostgreSQL's infinity) is no date that could be used
        return f"TRY_CAST({name} AS TIMESTAMP)"
    decimal = _DECIMAL.fullmatch(kind)
    if kind in _HUGE or (decimal and decimal[1] == "0"):
        return f"CAST({name} AS BIGINT)"
    return f"CAST({name} AS DOUBLE)" if decimal else None


def _encode(relation: Relation, text: str) -> _Column:
    connection, rows = relation.connection, relation.relation
    different = connection.execute(
        f"SELECT count(DISTINCT t) FROM (SELECT {text} AS t FROM {rows} LIMIT {_LOOKED_AT})"  # noqa: S608
    ).fetchall()[0][0]
    if different > _FEW:
        return _Column(sql=text)
    made = f"levels_{next(_TYPE_NUMBERS)}"
    connection.execute(
        f"CREATE TYPE {made} AS ENUM "  # noqa: S608
        f"(SELECT DISTINCT {text} FROM {rows} WHERE {text} IS NOT NULL ORDER BY 1)"
    )
    levels = tuple(connection.execute(f"SELECT enum_range(NULL::{made})").fetchall()[0][0])
    if not levels:
        return _Column(sql=text)
    width = "TINYINT" if len(levels) < 2**7 else "SMALLINT" if len(levels) < 2**15 else "INTEGER"
    code = f"enum_code(CAST({text} AS {made}))"
    return _Column(sql=f"coalesce(CAST({code} AS {width}), -1)", levels=levels)
