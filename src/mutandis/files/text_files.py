"""Text files, read whole, with errors that say what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_text"]

# what somebody writes by hand stays far below; a table of decisions given by mistake does not
_BYTES = 1_000_000


def read_text(path: Path) -> str:
    """Read a file of settings as UTF-8, with or without a byte order mark."""
    try:
        with path.open("rb") as file:
            content = file.read(_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is no path"
        raise SettingsError(f"{str(path)!r} cannot be opened: {reason}. Check the path.") from None
    if len(content) > _BYTES:
        raise SettingsError(
            f"{path.name!r} has more than {_BYTES:,} bytes, too many for what is written by hand. "
            "Check that it is the right file."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(
            f"{path.name}, line {line}: the file is not in UTF-8. Save it as plain UTF-8 text."
        ) from None
