"""Two names of one file system exchanged in one step, where the system can do that."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["exchange_names"]

# linux/fs.h and macOS' sys/stdio.h
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_RENAME_SWAP = 2

# an old kernel, or a file system that knows no exchange
_NOT_HERE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}


def exchange_names(first: Path, second: Path) -> bool:
    """Exchange what two paths name, at once: nobody ever sees one of them missing.

    Returns
    -------
    bool
        Whether that was done; False where the system or the file system cannot, and then nothing
        has happened.
    """
    call = _exchange_call()
    if call is None:
        return False
    if call(os.fsencode(first), os.fsencode(second)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_HERE:
        return False
    raise OSError(code, os.strerror(code), str(second))


def _exchange_call() -> Callable[[bytes, bytes], int] | None:
    """Find the system's call: `renameat2` of Linux, `renamex_np` of macOS."""
    if not sys.platform.startswith(("linux", "darwin")):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        swap = getattr(library, "renamex_np", None)
        if swap is None:
            return None
        swap.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint)
        return lambda first, second: int(swap(first, second, _RENAME_SWAP))
    rename = getattr(library, "renameat2", None)  # not in every C library
    if rename is None:
        return None
    rename.argtypes = (
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    )
    return lambda first, second: int(rename(_AT_FDCWD, first, _AT_FDCWD, second, _RENAME_EXCHANGE))
