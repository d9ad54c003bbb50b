"""Files that are written whole or not at all: text, CSV, tables for spreadsheets, findings."""

from __future__ import annotations

import csv
import errno
import hashlib
import os
import secrets
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import plain_value
from mutandis.errors import OutputError, PlanError
from mutandis.limits import open_regular
from mutandis.mapped import uses_files
from mutandis.numeric.order import order_of_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager

    import duckdb
    import pandas as pd

    from mutandis.verdicts.findings import Findings

__all__ = [
    "compare_findings",
    "hash_file",
    "write_atomically",
    "write_csv",
    "write_findings",
    "write_people",
]

_TEMPORARY = ".mutandis-"
# a spreadsheet runs a text cell that begins with one of these as a formula
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_MOST_ROWS = 1_048_576  # of a sheet, its heading included
_NULLABLE: dict[type, Any] = {bool: "boolean", int: "Int64", float: "Float64"}


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file beside its place and rename it: readers meet the old content or the new one."""
    target = Path(path)
    temporary = target.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
    try:
        _check_regular(target)
        with temporary.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise OutputError(
            f"{str(target)!r} cannot be written: {error.strerror or type(error).__name__}. Nothing "
            "there has changed. Check the space on the disk and the permissions, or name another "
            "file."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _check_regular(target: Path) -> None:
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "it is a folder, a pipe or a device")


def write_csv(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as CSV: numbers in full precision, missing values empty, text defused."""
    write_atomically(path, _as_csv(columns))


def _as_csv(columns: Mapping[str, Any]) -> str:
    plain = [np.asarray(values).tolist() for values in columns.values()]
    text = StringIO(newline="")
    # its default line end is RFC 4180's, with which cells that hold \r or \n are quoted
    writer = csv.writer(text)
    writer.writerow([_csv_cell(name) for name in columns])
    writer.writerows([_csv_cell(value) for value in row] for row in zip(*plain, strict=True))
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value


# --- tables for people ----------------------------------------------------------------------------


def write_people(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
    """Write columns to a file, in the format that its name ends with, whole or not at all."""
    kind = Path(path).suffix.lower()
    if kind == ".csv":
        write_atomically(path, _as_csv(columns))
    elif kind == ".xlsx":
        write_atomically(path, _as_excel(columns))
    elif kind == ".parquet":
        with tempfile.TemporaryDirectory(prefix="mutandis-") as folder, _connected() as connection:
            made = Path(folder, "people.parquet")
            connection.from_df(_frame(columns)).write_parquet(str(made), compression="zstd")
            write_atomically(path, made.read_bytes())
    else:
        raise PlanError(
            "The name of the file says its format: let it end with one of .csv, .parquet, .xlsx."
        )


def _as_excel(columns: Mapping[str, Any]) -> bytes:
    if find_spec("openpyxl") is None:
        raise PlanError(
            "Excel files need openpyxl: pip install 'mutandis[excel]', or take CSV or Parquet."
        )
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    rows = [np.asarray(values).tolist() for values in columns.values()]
    if len(rows[0]) >= _MOST_ROWS:
        raise PlanError(
            f"An Excel sheet has at most {_MOST_ROWS - 1:,} complainants. Filter, or take Parquet."
        )
    book = Workbook(write_only=True)
    sheet = book.create_sheet("complainants")

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            if not isinstance(value, float) or np.isfinite(value):
                return plain_value(value)
            return None if np.isnan(value) else str(value)  # a sheet has no infinite numbers
        written = WriteOnlyCell(sheet, value=ILLEGAL_CHARACTERS_RE.sub("\ufffd", value)[:32_767])
        written.data_type = "s"  # text stays text, also where it begins like a formula
        return written

    for row in (columns, *zip(*rows, strict=True)):
        sheet.append([cell(value) for value in row])
    content = BytesIO()
    book.save(content)
    return content.getvalue()


# --- typed columns, and findings ------------------------------------------------------------------


def _connected(path: Path | None = None) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    import duckdb

    # one thread: the same findings give the same bytes
    config: dict[str, Any] = {"autoinstall_known_extensions": "false", "threads": 1}
    if uses_files():  # what waits in a file need not stay in memory
        config["memory_limit"] = "512MB"
    return duckdb.connect(":memory:" if path is None else str(path), config=config)


def _frame(columns: Mapping[str, Any], like: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """Return columns of one type each; one without any value has the type of another, `like` it."""
    import pandas as pd

    known = like or {}
    return pd.DataFrame({name: _typed(each, known.get(name)) for name, each in columns.items()})


def _typed(values: Any, like: Any = None) -> Any:
    import pandas as pd

    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array
    # a few words, mostly, that stand in millions of rows
    codes, found = pd.factorize(array.astype(object))
    levels = [plain_value(each) for each in found]
    kinds = {type(each) for each in levels or _typed_levels(like)}
    nullable = _NULLABLE.get(next(iter(kinds))) if len(kinds) == 1 else None
    if nullable is not None:
        return pd.array(levels, dtype=nullable).take(codes, allow_fill=True)
    texts = pd.array([str(each) for each in levels], dtype="string")
    return texts.take(codes, allow_fill=True)


def _typed_levels(like: Any) -> list[Any]:
    return [] if like is None else np.asarray(like)[:1].tolist()


def write_findings(path: Path, findings: Iterable[Findings]) -> None:
    """Write findings one after the other, with the columns `method` and `k` in front.

    Each is sorted by id, so that the order of the table's rows leaves no trace. Findings are taken
    one at a time and wait in a file: memory holds those of one method and k only.
    """
    import duckdb

    waiting = path.with_name(f"{path.name}.duckdb")
    try:
        with _connected(waiting) as connection:
            for number, each in enumerate(findings):
                found = each.take(order_of_ids(each.ids))
                columns = {"method": [found.method] * len(found), "k": [found.k] * len(found)}
                # what is unknown to one method, or to all, has the type that its values have
                like = {"outcome_cf": found.outcome, "own_case": found.is_negative}
                table = connection.from_df(_frame(columns | found.columns(), like))
                if number:
                    table.insert_into("findings")
                else:
                    table.create("findings")
            connection.table("findings").write_parquet(str(path), compression="zstd")
    except (duckdb.IOException, duckdb.TransactionException, duckdb.FatalException) as error:
        # a full disk, mostly; DuckDB's own message names paths
        raise OSError(0, "the findings cannot be written to the disk") from error
    finally:
        waiting.unlink(missing_ok=True)
        waiting.with_name(f"{waiting.name}.wal").unlink(missing_ok=True)


def compare_findings(first: Path, second: Path) -> dict[str, int]:
    """Count the differences between two files of findings, by column; none if they are equal.

    Numbers are compared by the shortest text that stands for them alone, so to the last bit.
    """
    with _connected() as connection:
        for path, name in ((first, "a"), (second, "b")):
            read = f"CREATE TABLE {name} AS SELECT CAST(COLUMNS(*) AS VARCHAR) FROM read_parquet(?)"  # noqa: S608
            connection.execute(read, [str(path)])
        one, other = connection.table("a"), connection.table("b")
        names, rows = one.columns, [len(one), len(other)]
        if names != other.columns or rows[0] != rows[1]:
            return {"the number of rows or columns": abs(rows[0] - rows[1]) or 1}
        differing = ", ".join(
            f'count(*) FILTER (a."{name}" IS DISTINCT FROM b."{name}")' for name in names
        )
        found = connection.execute(
            f"SELECT {differing} FROM a POSITIONAL JOIN b"  # noqa: S608 - the columns' own names
        ).fetchone()
    return {name: int(count) for name, count in zip(names, found or (), strict=True) if count}
