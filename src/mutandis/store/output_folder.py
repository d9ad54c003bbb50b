"""A folder that appears whole or not at all.

Everything is written to a temporary folder next to the target, forced to the disk, and then takes
the target's name in one step: by a plain rename where there was nothing, by an exchange of names
where an older folder is replaced. Whatever happens in between, even a power cut, leaves the target
absent, the complete old folder or the complete new one. Where names cannot be exchanged, the old
folder is renamed first, and the next process that looks at the target puts it back if need be.

A temporary folder is locked by the process that fills it. The lock ends with the process, however
it ends, so that the next run recognises what a dead one has left behind.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import secrets
import shutil
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mutandis.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "check_output",
    "exchange_names",
    "locked_folder",
    "output_folder",
    "recover_output",
]

_TEMPORARY = re.compile(r"\.mutandis-[0-9a-f]{12}-[0-9a-f]{16}")
_OLD = ".old"
_SECONDS = 60  # how long to wait for another process
_AT_FDCWD, _EXCHANGE = -100, 2  # linux/fs.h; the flag is the same in macOS' sys/stdio.h
# an old kernel, or a file system that cannot exchange names
_NOT_SUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}


def check_output(target: Path, *, replace: bool, known: Callable[[Path], bool]) -> None:
    """Refuse, before any work is done, a target that the result could not take.

    `replace` allows an older result to be replaced; `known` decides whether a folder is such a
    result, and holds nothing else.
    """
    with _writing(target):
        target = target.resolve()
        recover_output(target)
        if not target.exists():
            _check_parent(target)
            return
        if not target.is_dir():
            raise OutputError(
                f"{str(target)!r} is a file. Name a folder for the results, or move the file away."
            )
        if os.path.ismount(target):
            raise OutputError(
                f"{str(target)!r} is where a disk or a volume is mounted, and cannot take the "
                "results in one step. Name a folder inside it."
            )
        if not any(target.iterdir()):
            return
        if not known(target):
            raise OutputError(
                f"The folder {str(target)!r} holds something that mutandis did not write, and will "
                "not be replaced. Name another folder, or move what is in it away."
            )
        if not replace:
            raise OutputError(
                f"The folder {str(target)!r} holds results already. Name another folder, or add "
                "--force to replace them, with their case files, once the new ones are complete."
            )


def _check_parent(target: Path) -> None:
    above = next(each for each in target.parents if each.exists())
    if not above.is_dir():
        raise OutputError(
            f"{str(above)!r} is a file and cannot hold a folder. Name another folder."
        )
    if not os.access(above, os.W_OK | os.X_OK):
        raise OutputError(
            f"Nothing can be written in {str(above)!r}: permission is denied. Name another folder."
        )


@contextmanager
def output_folder(target: Path, *, replace: bool, known: Callable[[Path], bool]) -> Iterator[Path]:
    """Make a temporary folder to write to, which takes the target's name at the end.

    If the block ends by an error, whatever its kind, the temporary folder is removed and the
    target is left as it was. The parameters are those of `check_output`.
    """
    target = target.resolve()
    check_output(target, replace=replace, known=known)
    with _writing(target), _parents_of(target):
        temporary, lock = _make_temporary(target)
        try:
            yield temporary
            for path, _, files in os.walk(temporary, topdown=False):
                for name in files:
                    _sync(Path(path) / name)
                _sync(Path(path))
            _put_in_place(temporary, target, replace=replace, known=known)
        finally:
            # by now perhaps the old folder, if the exchange has been made
            _remove(temporary)
            _close(lock)


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(
            f"The results cannot be written to {str(target)!r}: {reason}. Nothing there has "
            "changed. Check the space on the disk and the permissions, or name another folder."
        ) from error


@contextmanager
def _parents_of(target: Path) -> Iterator[None]:
    """Make the folders above the target; if nothing comes of it, remove those that were made."""
    missing = [each for each in target.parents if not each.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for each in missing:  # the innermost first
            with suppress(OSError):
                each.rmdir()
        raise


def _make_temporary(target: Path) -> tuple[Path, int]:
    while True:
        temporary = target.parent / f"{_stem(target)}{secrets.token_hex(8)}"
        temporary.mkdir()
        lock = os.open(temporary, os.O_RDONLY)
        try:
            # another run may have taken the empty folder for a dead one's in the meantime
            if _lock(lock) is not False and temporary.exists():
                return temporary, lock
        except OSError:
            _close(lock)
            raise
        _close(lock)


def _stem(target: Path) -> str:
    """Begin the names that belong to a target; its own name may be as long as names can be."""
    return f".mutandis-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]}-"


# --- the swap -------------------------------------------------------------------------------------


def _put_in_place(
    temporary: Path, target: Path, *, replace: bool, known: Callable[[Path], bool]
) -> None:
    if not target.exists() or not any(target.iterdir()):
        if os.name == "nt" and target.exists():
            target.rmdir()
        temporary.rename(target)  # refused if something has appeared there in the meantime
    else:
        # something may have appeared there since the check
        check_output(target, replace=replace, known=known)
        if not exchange_names(temporary, target):
            _step_aside(temporary, target)
    _confirm(target)


def _confirm(target: Path) -> None:
    """Force the new name to the disk; the results have it already."""
    try:
        _sync(target.parent)
    except OSError as error:
        raise OutputError(
            f"The new results are in {str(target)!r}, but the disk did not confirm it: "
            f"{error.strerror or type(error).__name__}. Check the disk, and the results with "
            "`mutandis verify`."
        ) from error


def exchange_names(first: Path, second: Path) -> bool:
    """Exchange what two paths name in one step, so that neither is ever missing.

    False, and nothing has happened, where the system or the file system cannot do that.
    """
    call = _exchange_call()
    if call is None:
        return False
    if call(os.fsencode(first), os.fsencode(second)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_SUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(second))


def _exchange_call() -> Callable[[bytes, bytes], int] | None:
    """Find the system's call, which not every C library has."""
    if not sys.platform.startswith(("linux", "darwin")):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    path, flags = ctypes.c_char_p, ctypes.c_uint
    if sys.platform == "darwin":
        swap = getattr(library, "renamex_np", None)
        if swap is None:
            return None
        swap.argtypes = (path, path, flags)
        return lambda first, second: int(swap(first, second, _EXCHANGE))
    rename = getattr(library, "renameat2", None)
    if rename is None:
        return None
    rename.argtypes = (ctypes.c_int, path, ctypes.c_int, path, flags)
    return lambda first, second: int(rename(_AT_FDCWD, first, _AT_FDCWD, second, _EXCHANGE))


def _step_aside(temporary: Path, target: Path) -> None:
    """Replace a folder in two steps; `recover_output` undoes the first if the second never came."""
    old = temporary.with_name(f"{temporary.name}{_OLD}")
    folder = os.open(target, os.O_RDONLY)
    try:
        _lock(folder)
        target.rename(old)
        try:
            temporary.rename(target)
        except BaseException:
            old.rename(target)
            raise
        _confirm(target)
        _remove(old)
    finally:
        _close(folder)


def recover_output(target: Path) -> None:
    """Put back an old folder that was renamed, and remove what dead runs have left behind."""
    target = target.resolve()
    try:
        beside = sorted(target.parent.iterdir())
    except OSError:
        return  # what cannot be looked at cannot be tidied either
    for each in beside:
        mine = each.name.startswith(_stem(target))
        old = each.name.endswith(_OLD)
        if not _TEMPORARY.fullmatch(each.name.removesuffix(_OLD)) or (old and not mine):
            continue
        if each.is_symlink() or not each.is_dir():
            continue
        with suppress(OSError), _if_dead(each) as dead:
            if dead and old and not target.exists():
                each.rename(target)
            elif dead:
                _remove(each)


@contextmanager
def _if_dead(folder: Path) -> Iterator[bool]:
    opened = os.open(folder, os.O_RDONLY)
    try:
        # where nothing can be locked, what may be in use is left alone
        yield _lock(opened) is True
    finally:
        _close(opened)


def _remove(folder: Path) -> None:
    """Remove a folder as far as possible; the next run removes what is left."""
    with suppress(OSError):  # even so, where a folder cannot be closed
        shutil.rmtree(folder, ignore_errors=True)


def _close(folder: int) -> None:
    with suppress(OSError):  # it was only read
        os.close(folder)


def _sync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():
        return  # folders cannot be opened there
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


# --- several processes ----------------------------------------------------------------------------


def _lock(folder: int) -> bool | None:
    """Lock an open folder: False if another process has; None where folders cannot be locked."""
    try:
        import fcntl

        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None  # some network file systems lock no folders
    return True


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Let one process at a time work in a folder, where folders can be locked."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        last = time.monotonic() + _SECONDS
        while _lock(opened) is False:
            if time.monotonic() > last:
                raise OutputError(
                    f"Another process has been working in {str(folder)!r} for more than {_SECONDS} "
                    "seconds. Wait for it or end it, and try again."
                )
            time.sleep(0.05)
        yield
    finally:
        os.close(opened)
