"""Files opened in DuckDB: CSV, Parquet, JSON lines, and Arrow by way of pyarrow."""

from __future__ import annotations

import codecs
import glob
import re
import shutil
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutandis.errors import InputError, MutandisError
from mutandis.files.duckdb_tables import Relation, connected, literal, quoted
from mutandis.files.duckdb_text import read_text_columns
from mutandis.files.sources_csv import Header, read_header, text_of, wrong_encoding
from mutandis.files.table_files import FileFormat
from mutandis.frames import check_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import duckdb

    from mutandis.files.table_files import TableFiles

__all__ = ["check_distinct", "chosen", "file_columns", "opened_files"]

_TABLE = "decisions"
_LINE = re.compile(r"CSV Error on Line: (\d+)")
_NUMBERED = re.compile(r"(.+)_\d+")


@contextmanager
def opened_files(source: TableFiles, columns: Collection[str] | None) -> Iterator[Relation]:
    """Open the files in a DuckDB of their own, with the columns that are asked for."""
    files = source.files()
    form = source.format(files)
    with connected() as connection, _explained(source, files, form):
        yield _OPENERS[form](connection, source, files, columns)


def file_columns(source: TableFiles) -> tuple[str, ...]:
    """List the names of the columns, without reading the table."""
    files = source.files()
    form = source.format(files)
    if form is FileFormat.CSV:
        return _csv_header(source, files).names
    with connected() as connection, _explained(source, files, form):
        return tuple(_OPENERS[form](connection, source, files, None).columns)


def chosen(names: Sequence[str], columns: Collection[str] | None, *, of: str) -> list[str]:
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


def _open_parquet(
    connection: duckdb.DuckDBPyConnection,
    source: TableFiles,
    files: tuple[Path, ...],
    columns: Collection[str] | None,
) -> Relation:
    keys = source.hive_keys(files)
    partitions = "true" if keys else "false"
    relation = f"read_parquet({_files_sql(files)}, hive_partitioning = {partitions})"
    own = connection.sql(f"SELECT * FROM {relation}").columns  # noqa: S608
    schema = connection.execute(
        f"SELECT name, num_children FROM parquet_schema({_files_sql(files[:1])})"  # noqa: S608
    ).fetchall()
    names = _top_level(schema)
    # what is not in the file itself is written in the names of the folders
    known = dict(zip([*names, *own[len(names) :]], own, strict=True))
    if len(known) < len(own):
        check_distinct([*names, *own[len(names) :]], of=source.name)
    usable = [name for place, name in enumerate(known) if place < len(names) or name in keys]
    taken = chosen(usable, columns, of=source.name)
    return Relation(
        connection=connection, relation=relation, columns={name: known[name] for name in taken}
    )


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


def _open_json(
    connection: duckdb.DuckDBPyConnection,
    source: TableFiles,
    files: tuple[Path, ...],
    columns: Collection[str] | None,
) -> Relation:
    form = "auto" if files[0].name.lower().endswith((".json", ".json.gz")) else "newline_delimited"
    # by all rows, like text: a type guessed from some rows fits those
    relation = (
        f"read_json({_files_sql(files)}, format = '{form}', sample_size = -1, records = true, "
        "map_inference_threshold = -1, union_by_name = true)"
    )
    found = connection.sql(f"SELECT * FROM {relation}")  # noqa: S608
    names = found.columns
    _refuse_renamed(names, source.name)
    taken = chosen(names, columns, of=source.name)
    types = dict(zip(names, map(str, found.types), strict=True))
    # a column that is null throughout has no type
    parts = ", ".join(
        f"{literal(name)}: {literal(types[name].strip(chr(34)).replace('NULL', 'VARCHAR'))}"
        for name in taken
    )
    # parsed once, and only what is asked for
    connection.execute(
        f"CREATE TEMP TABLE {_TABLE} AS SELECT * FROM "  # noqa: S608
        f"read_json({_files_sql(files)}, format = '{form}', records = true, columns = {{{parts}}})"
    )
    return Relation(connection=connection, relation=_TABLE, columns={name: name for name in taken})


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


def _open_arrow(
    connection: duckdb.DuckDBPyConnection,
    source: TableFiles,
    files: tuple[Path, ...],
    columns: Collection[str] | None,
) -> Relation:
    try:
        import pyarrow as pa
        import pyarrow.dataset as ds
    except ModuleNotFoundError:
        raise InputError(
            "Arrow files are read by pyarrow. Install it: pip install 'mutandis[arrow]'."
        ) from None
    try:
        # a dataset refuses columns of the same name, in words of its own
        with pa.memory_map(str(files[0])) as file, pa.ipc.open_file(file) as opened:
            names = opened.schema.names
        taken = chosen(names, columns, of=source.name)
        dataset = ds.dataset([str(file) for file in files], format="ipc")
        table = dataset.to_table(columns=taken)
    except (pa.ArrowException, OSError):
        raise InputError(
            f"{source.name!r} cannot be read as Arrow. Check that it is an Arrow IPC file "
            "(Feather version 2), and that all files have the same columns."
        ) from None
    return arrow_relation(connection, table)


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


def _open_csv(
    connection: duckdb.DuckDBPyConnection,
    source: TableFiles,
    files: tuple[Path, ...],
    columns: Collection[str] | None,
) -> Relation:
    header = _csv_header(source, files)
    taken = chosen(header.names, columns, of=source.name)
    numbered = {name: f"c{place}" for place, name in enumerate(header.names)}
    wanted = ", ".join(numbered[name] for name in taken)
    every = ", ".join(f"{own}: 'VARCHAR'" for own in numbered.values())
    missing = ", ".join(map(literal, ("", *source.missing_text)))
    with _as_utf8(files, source.encoding or "utf-8") as readable:
        # parsed once, and only what is asked for
        connection.execute(
            f"CREATE TEMP TABLE {_TABLE} AS SELECT {wanted} FROM read_csv("  # noqa: S608
            f"{_files_sql(readable)}, auto_detect = false, header = true, quote = '\"', "
            f"escape = '\"', delim = {literal(header.separator)}, nullstr = [{missing}], "
            f"max_line_size = 20000000, columns = {{{every}}})"
        )
    own = [numbered[name] for name in taken]
    read = read_text_columns(connection, _TABLE, own, decimal=source.decimal)
    typed = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in read.items())
    return Relation(
        connection=connection,
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
                text_of(file, encoding) as read,
                written[-1].open("w", encoding="utf-8", newline="") as copy,
            ):
                shutil.copyfileobj(read, copy, 2**20)
        yield written


_OPENERS: dict[FileFormat, Callable[..., Relation]] = {
    FileFormat.CSV: _open_csv,
    FileFormat.PARQUET: _open_parquet,
    FileFormat.JSON: _open_json,
    FileFormat.ARROW: _open_arrow,
}


@contextmanager
def _explained(source: TableFiles, files: Sequence[Path], form: FileFormat) -> Iterator[None]:
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
    found = _LINE.search(said)
    line = f" in line {found[1]}" if found else ""
    if "Expected Number of Columns" in said:
        return InputError(
            f"{source.name!r} has more or fewer fields{line} than in its first line. Correct the "
            "line, or put text that holds the separator in quotes."
        )
    if "unterminated quote" in said or "quote" in said.lower():
        return InputError(
            f"A quote is opened{line} of {source.name!r} and not closed, or closed and followed "
            "by something else. Correct it."
        )
    return InputError(
        f"{source.name!r} cannot be read as {form.value}{line} ({kind}). Check that it is what its "
        "ending says, that it is whole, and that nothing writes to it at the same time."
    )
