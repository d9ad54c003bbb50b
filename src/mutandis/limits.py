"""Limits on what is read and computed: no input takes all memory, or forever.

Each is far above what audits need. A file that a user names is opened only if it is a regular file:
a pipe could wait forever, and a device has no end.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Literal
from zipfile import ZipFile

from mutandis.errors import MutandisError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "address_space",
    "check_address_space",
    "explain_limit",
    "limit",
    "open_regular",
    "read_regular",
    "unpacked_bytes",
]

_VARIABLE = "MUTANDIS_LIMITS"
# Kilobytes of address space that libraries take before there is any row, as measured
# (benchmarks/attacks.md), and some room: what computes, what reads tables, and each thread.
_COMPUTING, _READING, _THREAD = 500_000, 2_000_000, 100_000


def limit(standard: int) -> int:
    """Return a limit: its standard, times MUTANDIS_LIMITS if that is set."""
    with suppress(ValueError, OverflowError):
        factor = float(os.environ.get(_VARIABLE, "1"))
        if factor > 0:
            return int(standard * factor)
    raise MutandisError(
        f"The environment variable {_VARIABLE} is not a number above 0. It multiplies all limits: "
        "set it to 10, or remove it."
    )


def explain_limit(standard: int, unit: str) -> str:
    """Describe a limit, and how to raise it.

    Examples
    --------
    >>> explain_limit(1000, "attributes")
    'The limit is 1,000 attributes; MUTANDIS_LIMITS=10 in the environment makes it ten times that.'
    """
    return (
        f"The limit is {limit(standard):,} {unit}; {_VARIABLE}=10 in the environment makes it ten "
        "times that."
    )


def address_space() -> int | None:
    """Return the kilobytes of address space of this process (`ulimit -v`), if limited."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return None
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if allowed == resource.RLIM_INFINITY else allowed // 1024


def check_address_space(*, table: bool = True) -> None:
    """Refuse to begin where libraries could not be loaded, which end the process or wait forever.

    `table` is whether a table is read, too.
    """
    allowed = address_space()
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    needed = _COMPUTING + _READING * table + _THREAD * (threads or 1)
    if allowed is not None and allowed < needed:
        raise MutandisError(
            f"This process may use {allowed:,} KB of address space, and needs {needed:,} KB on "
            f"{threads} cores before it reads a row. Raise the limit (ulimit -v), or remove it."
        )


def open_regular(path: str | os.PathLike[str], mode: Literal["rb", "ab"] = "rb") -> Any:
    """Open a file to read bytes, or to append some, if it is a regular one."""

    def opener(name: str, flags: int) -> int:
        # without waiting for the other end of a pipe
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    file = open(path, mode, opener=opener)  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is a pipe or a device, and not a regular file")
    return file


def read_regular(path: Path, *, most: int) -> bytes:
    """Read a regular file whole, if it has at most so many bytes."""
    with open_regular(path) as file:
        content: bytes = file.read(limit(most) + 1)
    if len(content) > limit(most):
        raise OSError(errno.EFBIG, f"it is too large. {explain_limit(most, 'bytes')[:-1]}")
    return content


def unpacked_bytes(file: BinaryIO) -> dict[str, int]:
    """Return the size that each member of a zip file claims; no more is ever unpacked of it."""
    with ZipFile(file) as archive:
        return {each.filename: each.file_size for each in archive.infolist()}
