"""Tasks whose answers are files.

A task is a function of a module with paths and small values; its data lie in files that every
worker can read. Its answer is a file that is named by what it depends on, and that appears whole or
not at all. So it does not matter which process answers, how often, or in which order, and an answer
that exists is not computed again: a run after a crash computes what is missing.

Here the process itself answers; the room `cluster` adds other processes and machines.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import partial
from pathlib import Path, PurePath
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Protocol
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from mutandis.errors import PlanError, shown
from mutandis.registry import find

if TYPE_CHECKING:
    from numpy.typing import NDArray


_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,127}")
# bytes that libraries take in each process, and that a row takes while it is searched
_LIBRARIES, _ROW = 300_000_000, 400
_LEAST_ROWS = 10_000
LEAST_MEMORY = _LIBRARIES + _LEAST_ROWS * _ROW
_BLOCK = 1 << 26
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A call whose answer is a file."""

    function: Callable[..., Mapping[str, NDArray[Any]]]  # of a module, never a closure
    arguments: tuple[Any, ...]  # paths of files and small values
    name: str  # a hash of all that the answer depends on
    people: int = 0  # complainants who are answered with it, for the progress


class Workers(Protocol):
    """Who answers tasks."""

    @property
    def folder(self) -> Path:
        """Folder of inputs and answers; every worker reads and writes there."""
        ...

    @property
    def rows(self) -> int:
        """Number of rows that one worker may hold at a time."""
        ...

    @property
    def dashboard(self) -> str | None:
        """Address of a page about the workers, if there is one."""
        ...

    def following(self, follow: Callable[[int, int], None]) -> Workers:
        """Return the same workers, with `follow` called after each task: how many of how many."""
        ...

    def store(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> Path:
        """Write arrays for tasks to read with `np.load(mmap_mode="r")`: a file each, in a folder.

        What is stored under this name already is taken to be the same.
        """
        ...

    def answer(self, tasks: Sequence[Task], progress: Callable[[int], None]) -> list[Path]:
        """Compute missing answers; return the files of all, in the order of the tasks."""
        ...


@dataclass(frozen=True, slots=True, weakref_slot=True)
class LocalWorkers:
    """The process itself, which answers one task after the other."""

    folder: Path
    memory: int | None = None
    threads: int = -1
    follow: Callable[[int, int], None] | None = None

    @property
    def rows(self) -> int:
        """About how many rows fit into the memory."""
        return rows_in(physical_memory() // 2 if self.memory is None else self.memory)

    @property
    def dashboard(self) -> None:
        """None: there is no such page."""
        return

    def following(self, follow: Callable[[int, int], None]) -> LocalWorkers:
        """Return the same workers, with `follow` called after each task."""
        return replace(self, follow=follow)

    def store(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> Path:
        """Write arrays for tasks to read."""
        return store_arrays(self.folder, name, arrays)

    def answer(self, tasks: Sequence[Task], progress: Callable[[int], None]) -> list[Path]:
        """Answer one task after the other."""
        count = TaskCount(len(tasks), progress, self.follow)
        for task in missing_tasks(self.folder, tasks, count):
            compute(self.folder, task, self.threads)
            count(task)
        return [answer_path(self.folder, task.name) for task in tasks]


def load_answer(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of an answer."""
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def threads_of_task() -> int:
    """Return how many threads a task may use; -1 for all."""
    return _threads.get()


_threads: ContextVar[int] = ContextVar("threads", default=-1)


@dataclass(slots=True)
class TaskCount:
    """A count of finished tasks, which reports progress."""

    total: int
    progress: Callable[[int], None]
    follow: Callable[[int, int], None] | None
    done: int = 0

    def __call__(self, task: Task) -> None:
        self.done += 1
        self.progress(task.people)
        if self.follow is not None:
            self.follow(self.done, self.total)


def missing_tasks(folder: Path, tasks: Sequence[Task], count: TaskCount) -> list[Task]:
    """Choose the tasks without a whole answer, each once, and count the others."""
    missing: dict[str, Task] = {}
    for task in tasks:
        if task.name not in missing and not _is_whole(answer_path(folder, task.name)):
            missing[task.name] = task
        else:
            count(task)
    return list(missing.values())


def _is_whole(path: Path) -> bool:
    """Return whether an answer exists and is intact; remove it if it is damaged."""
    try:
        with ZipFile(path) as answer:
            if answer.testzip() is None:
                return True
    except FileNotFoundError:
        return False
    except (OSError, BadZipFile, EOFError):
        pass
    path.unlink(missing_ok=True)
    return False


def answer_path(folder: Path, name: str) -> Path:
    return folder / f"{_checked(name)}.npz"


def _checked(name: str) -> str:
    """Refuse what is not a plain name of a file."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{shown(name)} is not a name of letters, digits, - and _")
    return name


def compute(folder: Path, task: Task, threads: int) -> None:
    token = _threads.set(threads)
    try:
        _write_answer(answer_path(folder, task.name), task.function(*task.arguments))
    finally:
        _threads.reset(token)


def _write_answer(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to a file that appears whole; equal arrays give equal bytes."""
    temporary = path.with_name(f".{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            with ZipFile(file, "w") as archive:
                for key in sorted(arrays):
                    # a ZipInfo without a date, which would differ from run to run
                    with archive.open(ZipInfo(f"{key}.npy"), "w", force_zip64=True) as member:
                        np.lib.format.write_array(
                            member, np.asanyarray(arrays[key]), allow_pickle=False
                        )
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def store_arrays(folder: Path, name: str, arrays: Mapping[str, NDArray[Any]]) -> Path:
    target = folder / _checked(name)
    if target.is_dir():
        return target
    temporary = folder / f".{secrets.token_hex(8)}"
    temporary.mkdir()
    try:
        for key, array in arrays.items():
            with (temporary / f"{_checked(key)}.npy").open("xb") as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
        with suppress(OSError):  # another process may have been sooner, with the same
            temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def rows_in(memory: int) -> int:
    return max(_LEAST_ROWS, (memory - _LIBRARIES) // _ROW)


def physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not everywhere
        return 8 * 10**9


def digest(*values: Any) -> str:
    """Hash values by their kind and content, the same in every process and on every machine."""
    found = hashlib.sha256()
    for value in values:
        _add(found, value)
    return found.hexdigest()


def _add(found: Any, value: Any) -> None:
    """Add one value: its kind, how long it is, and what it is."""
    if isinstance(value, np.ndarray | np.generic):
        _add_array(found, np.asarray(value))
        return
    for kinds, name, content in _PLAIN:
        if isinstance(value, kinds):
            found.update(b"%s %d:" % (name, len(content(value))) + content(value))
            return
    name, parts = _parts(value)
    found.update(b"%s %d[" % (name, len(parts)))
    for each in parts:
        _add(found, each)


def _qualified(kind: type) -> bytes:
    return f"{kind.__module__}.{kind.__qualname__}".encode()


def _text(value: Any) -> bytes:
    return str(value).encode("utf-8", "surrogatepass")


# values without parts: the first kind that fits, since a bool is an int, and some enums are, too
_PLAIN: tuple[tuple[Any, bytes, Callable[[Any], bytes]], ...] = (
    (Enum, b"enum", lambda value: b"%s.%s" % (_qualified(type(value)), _text(value.name))),
    (bool | None, b"constant", _text),
    (int | Fraction, b"number", _text),
    (float, b"float", partial(struct.pack, "<d")),
    (str, b"text", _text),
    (PurePath, b"path", _text),
    (bytes, b"bytes", bytes),
    (type, b"type", _qualified),
)


def _parts(value: Any) -> tuple[bytes, list[Any]]:
    """Return the kind and the parts of a composite value."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = [(each.name, getattr(value, each.name)) for each in fields(value)]
        return _qualified(type(value)), parts
    if isinstance(value, Mapping):  # in whatever order
        return b"mapping", sorted(digest(key, content) for key, content in value.items())
    if isinstance(value, tuple | list):
        return b"sequence", list(value)
    raise TypeError(f"{type(value).__qualname__} cannot be hashed by its content")


def _add_array(found: Any, array: NDArray[Any]) -> None:
    if array.dtype.kind not in "biufcmMSU":
        raise TypeError(f"an array of {array.dtype} cannot be hashed by its content")
    found.update(f"array {array.dtype.str} {array.shape}:".encode())
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, len(content), _BLOCK):
        found.update(content[start : start + _BLOCK])


# --- opening workers ---


@contextmanager
def open_workers(
    where: Any,
    folder: Path | None = None,
    memory: str | int | None = None,
    *,
    threads: int = -1,
    follow: Callable[[int, int], None] | None = None,
) -> Iterator[Workers | None]:
    """Open the workers that answer tasks until the block ends; None if no tasks are asked for.

    `where` is None for this process, an address for the room `cluster`, or workers that are open
    already, which stay open. A `folder` that is named is kept with what it holds. `memory` is about
    how much one worker may use, such as "4GB"; `follow` is called with the number of tasks done,
    and of all.
    """
    size = None if memory is None else read_memory(memory)
    if where is None and folder is None and size is None:
        yield None
        return
    if hasattr(where, "answer"):
        yield where
        return
    with ExitStack() as stack:
        if folder is None:
            folder = Path(mkdtemp(prefix="mutandis-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = folder.resolve()
        if where is None:
            yield LocalWorkers(folder, size, threads, follow)
        else:
            cluster = find("room", "cluster")
            yield stack.enter_context(cluster.open_cluster(where, folder, size, follow))


def read_memory(memory: str | int) -> int:
    """Read a size of memory in bytes, such as "1.5GB" or "512 MiB"."""
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([kKMGT]?i?B)?", str(memory).strip())
    if isinstance(memory, bool) or found is None:
        raise PlanError(
            f"memory={shown(memory)} is not allowed. Give a size such as '4GB' or '512MB'."
        )
    size = int(Fraction(found[1]) * _UNITS[(found[2] or "B").upper()])
    if size < LEAST_MEMORY:
        least = -(-LEAST_MEMORY // 10**6)
        raise PlanError(f"memory={shown(memory)} is too little. Give at least '{least}MB'.")
    return size
