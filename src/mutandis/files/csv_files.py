"""CSV files that round-trip in a program and do no harm in a spreadsheet."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["write_csv"]

# a spreadsheet runs a text cell that begins with one of these as a formula
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_csv(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as CSV: numbers in full precision, missing values empty, text defused.

    Text that a spreadsheet would run as a formula gets a single quote in front.
    """
    plain = [_python_values(values) for values in columns.values()]
    with path.open("w", newline="", encoding="utf-8") as file:
        # its default line end is RFC 4180's, with which cells that hold \r or \n are quoted
        writer = csv.writer(file)
        writer.writerow([_cell(name) for name in columns])
        writer.writerows([_cell(value) for value in row] for row in zip(*plain, strict=True))


def _python_values(values: Any) -> list[Any]:
    return list(np.asarray(values).tolist())


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value
