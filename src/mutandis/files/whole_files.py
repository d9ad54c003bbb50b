"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from mutandis.errors import OutputError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["remove_leftovers", "write_whole"]

_BEGINNING = ".mutandis-"
# nothing that is written here takes so long
_SECONDS = 3600


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file beside its place and rename it: readers meet the old content or the new one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "audit.yaml"), "test: {}")
    ...     [(each.name, each.read_text()) for each in Path(folder).iterdir()]
    [('audit.yaml', 'test: {}')]
    """
    temporary = path.with_name(f"{_BEGINNING}{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise OutputError(
            f"{str(path)!r} cannot be written: {error.strerror or type(error).__name__}. Nothing "
            "there has changed. Check the space on the disk and the rights, or name another file."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that were killed have left behind in a folder."""
    for path in folder.glob(f"{_BEGINNING}*"):
        with suppress(OSError):
            if path.is_file() and time.time() - path.stat().st_mtime > _SECONDS:
                path.unlink()
