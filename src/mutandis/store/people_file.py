"""Complainants as a file for people: CSV, Parquet or Excel."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import plain_value
from mutandis.errors import PlanError
from mutandis.store.text_files import write_atomically, write_csv

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

__all__ = ["EXPORTS", "export_people", "write_people"]

EXPORTS = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
"""The formats, and their media types."""

# of a sheet, its heading included
_MOST_ROWS = 1_048_576
_SHEET = "complainants"


def write_people(
    path: str | PathLike[str], columns: Mapping[str, Any], *, sheet: str = _SHEET
) -> None:
    """Write columns to a file, in the format that its name ends with, whole or not at all."""
    kind = Path(path).suffix.removeprefix(".").lower()
    if kind not in EXPORTS:
        endings = ", ".join(f".{each}" for each in EXPORTS)
        raise PlanError(f"The name of the file says its format: let it end with one of {endings}.")
    write_atomically(path, export_people(columns, kind, sheet=sheet))


def export_people(columns: Mapping[str, Any], kind: str, *, sheet: str = _SHEET) -> bytes:
    """Write columns in one of the formats; `sheet` is what an Excel sheet is called."""
    if kind == "xlsx":
        return _to_excel(columns, sheet)
    with tempfile.TemporaryDirectory(prefix="mutandis-") as folder:
        path = Path(folder, f"people.{kind}")
        if kind == "csv":
            write_csv(path, columns)
        else:
            _write_parquet(path, columns)
        return path.read_bytes()


def _write_parquet(path: Path, columns: Mapping[str, Any]) -> None:
    import duckdb
    import pandas as pd

    table = pd.DataFrame({name: _typed(values) for name, values in columns.items()})
    with duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"}) as connection:
        connection.from_df(table).write_parquet(str(path), compression="zstd")


def _typed(values: Any) -> Any:
    """Give text as text: a column of several types has no type of its own in a file."""
    import pandas as pd

    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array
    given = [None if each is None else plain_value(each) for each in array.tolist()]
    kinds = {type(each) for each in given if each is not None}
    if kinds in ({int}, {float}):
        return pd.array(given, dtype="Int64" if kinds == {int} else "Float64")
    return pd.array([None if each is None else str(each) for each in given], dtype="string")


def _to_excel(columns: Mapping[str, Any], title: str) -> bytes:
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
    sheet = book.create_sheet(title)

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            if not isinstance(value, float) or np.isfinite(value):
                return plain_value(value)
            return None if np.isnan(value) else str(value)  # a sheet has no infinite numbers
        written = WriteOnlyCell(sheet, value=ILLEGAL_CHARACTERS_RE.sub("\ufffd", value)[:32_767])
        written.data_type = "s"  # text stays text, also where it begins like a formula
        return written

    sheet.append([cell(name) for name in columns])
    for row in zip(*rows, strict=True):
        sheet.append([cell(value) for value in row])
    content = BytesIO()
    book.save(content)
    return content.getvalue()
