"""Small files: read as text with errors that say what to do, and written whole or not at all."""

from __future__ import annotations

import csv
import errno
import os
import secrets
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.errors import OutputError, SettingsError
from mutandis.limits import read_regular

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["read_text", "write_atomically", "write_csv"]

# what is written by hand stays far below; a table of decisions given by mistake does not
_BYTES = 1_000_000
_TEMPORARY = ".mutandis-"
# a spreadsheet runs a text cell that begins with one of these as a formula
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def read_text(path: Path) -> str:
    """Read a file of settings as UTF-8, with or without a byte order mark."""
    try:
        content = read_regular(path, most=_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not a path"
        raise SettingsError(f"{str(path)!r} cannot be opened: {reason}. Check the path.") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(
            f"{path.name}, line {line}: the file is not in UTF-8. Save it as plain UTF-8 text."
        ) from None


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
    """Write columns as CSV: numbers in full precision, missing values empty, text defused.

    Text that a spreadsheet would run as a formula gets a single quote in front.
    """
    plain = [np.asarray(values).tolist() for values in columns.values()]
    text = StringIO(newline="")
    # its default line end is RFC 4180's, with which cells that hold \r or \n are quoted
    writer = csv.writer(text)
    writer.writerow([_cell(name) for name in columns])
    writer.writerows([_cell(value) for value in row] for row in zip(*plain, strict=True))
    write_atomically(path, text.getvalue())


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value
