"""Tasks whose answers are files: in this process, or on the workers of a Dask cluster.

A task is a function of a module with paths and small values; its data lie in files that every
worker can read. Its answer is a file that is named by what it depends on, and that appears whole or
not at all. So it does not matter who answers, how often, or in which order, and an answer that is
there is not computed again: whoever goes on after a crash computes what is missing.

Only names of files go to a worker, and only a confirmation comes back. Data that Dask holds itself
are copied to each worker, and lost with it.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import struct
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from importlib import metadata
from pathlib import Path, PurePath
from queue import Empty, SimpleQueue
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from mutandis.errors import OutputError, PlanError, shown

if TYPE_CHECKING:
    from distributed import Client, Future
    from numpy.typing import NDArray

__all__ = [
    "AnyWorkers",
    "DaskWorkers",
    "LocalWorkers",
    "Task",
    "Workers",
    "digest",
    "load_answer",
    "open_workers",
    "read_memory",
    "threads_of_task",
]

_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,127}")
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
# bytes that libraries take in each process, and that a row takes while it is searched
_LIBRARIES, _ROW = 300_000_000, 400
_LEAST_ROWS = 10_000
_AHEAD = 2  # tasks per worker that the scheduler holds
_TRIES = 5  # of a task whose workers die (each, several times), or that cannot read or write
_SECONDS = 30  # until a file that another machine has written is seen on a shared disk
_PACKAGES = (
    "mutandis",
    "numpy",
    "scipy",
    "numba",
)  # the bits of an answer can depend on their versions
_LOOK, _WITHOUT_WORKERS = 5, 120  # seconds between looks at the workers, and until it is given up
_BLOCK = 1 << 26


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
        """Where inputs and answers lie; every worker reads and writes there."""
        ...

    @property
    def rows(self) -> int:
        """About how many rows one worker may hold at a time."""
        ...

    def store(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> Path:
        """Write arrays for tasks to read with `np.load(mmap_mode="r")`: a file each, in a folder.

        What is stored under this name already is taken to be the same.
        """
        ...

    def answer(self, tasks: Sequence[Task], progress: Callable[[int], None]) -> list[Path]:
        """See to it that every answer is there, and give their files in the order of the tasks."""
        ...


@dataclass(frozen=True, slots=True, weakref_slot=True)
class LocalWorkers:
    """The process itself, which answers one task after the other.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     task = Task(function=lambda n: {"n": np.arange(n)}, arguments=(3,), name="first")
    ...     (path,) = LocalWorkers(Path(folder)).answer([task], lambda people: None)
    ...     path.name, load_answer(path)["n"].tolist()
    ('first.npz', [0, 1, 2])
    """

    folder: Path
    memory: int | None = None
    threads: int = -1
    follow: Callable[[int, int], None] | None = None

    @property
    def rows(self) -> int:
        """About how many rows fit into the memory."""
        return _rows_in(_physical_memory() // 2 if self.memory is None else self.memory)

    def store(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> Path:
        """Write arrays for tasks to read."""
        return _store(self.folder, name, arrays)

    def answer(self, tasks: Sequence[Task], progress: Callable[[int], None]) -> list[Path]:
        """Answer one task after the other."""
        count = _Count(len(tasks), progress, self.follow)
        for task in _missing(self.folder, tasks, count):
            _compute(self.folder, task, self.threads)
            count(task)
        return [_answer_path(self.folder, task.name) for task in tasks]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class DaskWorkers:
    """The workers of a Dask cluster, which share a folder with this process."""

    client: Client
    folder: Path
    memory: int | None = None  # of one worker; None: what the worker says of itself
    follow: Callable[[int, int], None] | None = None

    @property
    def rows(self) -> int:
        """About how many rows fit into the memory of the smallest worker."""
        if self.memory is not None:
            return _rows_in(self.memory)
        workers = self.client.scheduler_info()["workers"].values()
        limits = [each["memory_limit"] for each in workers if each["memory_limit"]]
        return _rows_in(min(limits, default=_physical_memory() // (2 * max(1, len(workers)))))

    def store(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> Path:
        """Write arrays for tasks to read."""
        return _store(self.folder, name, arrays)

    def answer(self, tasks: Sequence[Task], progress: Callable[[int], None]) -> list[Path]:
        """Hand out a few tasks per worker at a time, and again those whose workers died."""
        count = _Count(len(tasks), progress, self.follow)
        _Round(self, deque(_missing(self.folder, tasks, count)), count).finish()
        return [_answer_path(self.folder, task.name) for task in tasks]


AnyWorkers: TypeAlias = LocalWorkers | DaskWorkers


class _Round:
    """Tasks on their way to the workers of a cluster and back."""

    def __init__(self, workers: DaskWorkers, waiting: deque[Task], count: _Count) -> None:
        self._client, self._folder = workers.client, workers.folder
        self._waiting, self._count = waiting, count
        self._done: SimpleQueue[Future] = SimpleQueue()
        self._held: dict[str, tuple[Future, Task]] = {}
        self._failures: Counter[str] = Counter()
        self._seen = time.monotonic()  # when there were workers

    def finish(self) -> None:
        """Wait for all answers; what was handed out is taken back if that is ended early."""
        try:
            self._hand_out()
            while self._held:
                with suppress(Empty):
                    future = self._done.get(timeout=_LOOK)
                    _, task = self._held.pop(future.key)
                    self._take(task, future)
                self._hand_out()
        finally:
            with suppress(Exception):  # the scheduler may be gone
                self._client.cancel([future for future, _ in self._held.values()])

    def _hand_out(self) -> None:
        room = _AHEAD * max(1, self._count_workers())
        while self._waiting and len(self._held) < room:
            task = self._waiting.popleft()
            given = (self._folder, task, _versions())
            future = self._client.submit(_compute_on_worker, *given, pure=False)
            self._held[future.key] = future, task
            future.add_done_callback(self._done.put)

    def _count_workers(self) -> int:
        """Count the workers, and replace those on this machine that did not start again."""
        from distributed import LocalCluster

        number = len(self._client.nthreads())
        if number:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > _WITHOUT_WORKERS:
            raise OutputError(
                f"The cluster has had no workers for {_WITHOUT_WORKERS} seconds. Start some; what "
                "was answered is kept, so that another run goes on from there."
            )
        cluster = self._client.cluster
        if isinstance(cluster, LocalCluster) and number < len(cluster.worker_spec):
            cluster.scale(len(cluster.worker_spec))
        return number

    def _take(self, task: Task, future: Future) -> None:
        """Count an answer, or try again what may do better at another time or elsewhere."""
        path = _answer_path(self._folder, task.name)
        if not path.is_file():
            error = _read_confirmation(future)
            if error is not None:
                self._try_again(task, error)
                return
            _wait_for(path)
        self._count(task)

    def _try_again(self, task: Task, error: Exception) -> None:
        # what a worker said is lost if it dies before it is asked, and is said again
        if not isinstance(error, _LostError):
            self._failures[task.name] += 1
            is_bad_luck = isinstance(error, OSError | _WorkerDiedError)
            if not is_bad_luck or self._failures[task.name] >= _TRIES:
                raise error
        self._waiting.append(task)


class _WorkerDiedError(OutputError):
    """Several workers that died with a task."""


class _LostError(OutputError):
    """A confirmation that was lost with a worker."""


def _read_confirmation(future: Future) -> Exception | None:
    """Read what a worker says of a task: nothing, or the error that it met."""
    from distributed import KilledWorker

    if future.status in {"lost", "pending"}:
        return _LostError()
    found = future.exception() if future.status == "error" else None
    if isinstance(found, KilledWorker):
        return _WorkerDiedError(
            "Workers of the cluster ended again and again while they answered a task; most often "
            "they have too little memory. Give them more, or a smaller `memory` to this audit, so "
            "that its tasks are smaller. What was answered is kept."
        )
    if found is not None or future.status != "finished":
        return OutputError(
            "The connection to the Dask scheduler was lost, or it gave up a task: "
            f"{type(found).__name__ if found else future.status}. What was answered is kept; run "
            "the audit again to go on from there."
        )
    return _read_error(future)


def _read_error(future: Future) -> Exception | None:
    try:
        answered = future.result(timeout=_SECONDS)
    except TimeoutError:  # the worker has died
        return _LostError()
    if answered is None:
        return None
    error, where = answered
    error.__cause__ = RuntimeError(f"on a worker of the cluster:\n{where}")
    return error  # type: ignore[no-any-return]


def load_answer(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of an answer."""
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def threads_of_task() -> int:
    """Tell on how many threads a task may compute; -1 for all that there are.

    On a cluster, what the environment variable MUTANDIS_THREADS of the worker says, and else one.
    """
    return _threads.get()


_threads: ContextVar[int] = ContextVar("threads", default=-1)


class _Count:
    """How far tasks are, for those who watch."""

    def __init__(
        self,
        total: int,
        progress: Callable[[int], None],
        follow: Callable[[int, int], None] | None,
    ) -> None:
        self._total, self._progress, self._follow = total, progress, follow
        self._done = 0

    def __call__(self, task: Task) -> None:
        self._done += 1
        self._progress(task.people)
        if self._follow is not None:
            self._follow(self._done, self._total)


def _missing(folder: Path, tasks: Sequence[Task], count: _Count) -> list[Task]:
    """Choose the tasks without a whole answer, each once, and count the others."""
    missing: dict[str, Task] = {}
    for task in tasks:
        if task.name not in missing and not _is_whole(_answer_path(folder, task.name)):
            missing[task.name] = task
        else:
            count(task)
    return list(missing.values())


def _is_whole(path: Path) -> bool:
    """Tell whether an answer is there, and is what was written; remove it if it is not."""
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


def _answer_path(folder: Path, name: str) -> Path:
    return folder / f"{_checked(name)}.npz"


def _checked(name: str) -> str:
    """Refuse what is not a plain name of a file."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{shown(name)} is not a name of letters, digits, - and _")
    return name


def _compute(folder: Path, task: Task, threads: int) -> None:
    token = _threads.set(threads)
    try:
        _write_answer(_answer_path(folder, task.name), task.function(*task.arguments))
    finally:
        _threads.reset(token)


def _compute_on_worker(
    folder: Path, task: Task, versions: tuple[str, ...]
) -> tuple[Exception, str] | None:
    """Answer a task, and give an error back: one that is raised is logged with the arguments."""
    try:
        _check_worker(folder, versions)
        _compute(folder, task, int(os.environ.get("MUTANDIS_THREADS", "1")))
    except Exception as error:  # noqa: BLE001 (raised where the task was asked for)
        where = "".join(traceback.format_tb(error.__traceback__))
        return error.with_traceback(None), where
    return None


def _check_worker(folder: Path, versions: tuple[str, ...]) -> None:
    """Refuse a worker that would answer otherwise, or whose answers would be lost."""
    if versions != _versions():
        raise PlanError(
            f"A worker of the cluster has other versions ({', '.join(_versions())}) than this "
            f"computer ({', '.join(versions)}), and could give other numbers. Install the same."
        )
    if not folder.is_dir():
        raise OutputError(
            f"A worker of the cluster cannot see the folder {str(folder)!r}. Name a folder for "
            "the tasks on a disk that all workers and this computer share, at the same path."
        )


@cache
def _versions() -> tuple[str, ...]:
    import platform

    python = ".".join(platform.python_version_tuple()[:2])
    return (f"Python {python}", *(f"{each} {metadata.version(each)}" for each in _PACKAGES))


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


def _store(folder: Path, name: str, arrays: Mapping[str, NDArray[Any]]) -> Path:
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


def _wait_for(path: Path) -> None:
    """Wait until a file is seen that another machine has confirmed."""
    last = time.monotonic() + _SECONDS
    while not path.is_file():
        if time.monotonic() > last:
            raise OutputError(
                f"A worker of the cluster has written an answer that is not seen here in "
                f"{str(path.parent)!r}. Name a folder for the tasks on a disk that all workers and "
                "this computer share, at the same path."
            )
        time.sleep(0.1)
        with suppress(OSError):
            list(path.parent.iterdir())  # has a network disk look again


@contextmanager
def open_workers(
    where: str | Client | Workers | None,
    folder: Path | None = None,
    memory: str | int | None = None,
    *,
    threads: int = -1,
    follow: Callable[[int, int], None] | None = None,
) -> Iterator[AnyWorkers | None]:
    """Give who answers tasks, until the block ends; None where nothing asks for tasks.

    Parameters
    ----------
    where
        None for this process; `"local"` or `"local:4"` for processes on this machine;
        `"tcp://host:port"` or `"tls://host:port"` for a Dask scheduler; a Dask `Client`; or workers
        that are open already, which stay open.
    folder
        Inputs and answers of tasks. It is made if it is missing, and is kept with what it holds;
        without a name, it is a temporary one. Where there are other machines, all of them have to
        see it.
    memory
        About how much memory one worker may use, such as `"4GB"`.
    threads
        On how many threads this process computes a task.
    follow
        Is called with the number of tasks done, and of all.

    Examples
    --------
    >>> with open_workers(None, memory="1GB") as workers:
    ...     workers.rows
    1750000
    """
    size = None if memory is None else read_memory(memory)
    if where is None and folder is None and size is None:
        yield None
        return
    if isinstance(where, LocalWorkers | DaskWorkers):
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
            yield DaskWorkers(_connect(where, folder, stack), folder, size, follow)


def _connect(where: object, folder: Path, stack: ExitStack) -> Client:
    try:
        import distributed
    except ImportError as error:
        raise PlanError(
            "A cluster needs Dask, which is not installed. Install it with "
            "`pip install 'mutandis[cluster]'`."
        ) from error
    if isinstance(where, distributed.Client):
        if where.asynchronous:
            raise PlanError("The Dask client is asynchronous. Make it with asynchronous=False.")
        return where
    if not isinstance(where, str):
        raise PlanError(
            f"cluster={shown(where)} is not allowed. Give 'local:4', 'tcp://host:port', "
            "'tls://host:port' or a Dask client."
        )
    if where.startswith(("tcp://", "tls://")):
        return stack.enter_context(_reach(where))
    number = re.fullmatch(r"local(?::([1-9][0-9]{0,3}))?", where)
    if number is None:
        raise PlanError(
            f"cluster={shown(where)} is not allowed. Give 'local', 'local:4' for four processes on "
            "this machine, or the address of a Dask scheduler such as 'tcp://host:8786'."
        )
    return stack.enter_context(_start(int(number[1] or _cores()), folder))


@contextmanager
def _reach(address: str) -> Iterator[Client]:
    """Connect with a scheduler; Dask's own configuration says where keys for TLS are."""
    from distributed import Client

    try:
        client = Client(address, timeout=_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise PlanError(
            f"No Dask scheduler answers at {address.partition('://')[0]}://… in {_SECONDS} seconds "
            f"({type(error).__name__}). Check the address, and that the scheduler runs."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_SECONDS)
        except TimeoutError as error:
            raise PlanError(
                f"The Dask scheduler has no workers after {_SECONDS} seconds. Start some with "
                "`dask worker`, or wait until they are there."
            ) from error
        yield client


@contextmanager
def _start(number: int, folder: Path) -> Iterator[Client]:
    """Start a cluster on this machine, which other users of the machine cannot talk to.

    Dask would count pages of mapped files as memory that its tasks hold, and stop a worker for ever
    that holds too much of it, so it is told not to look.
    """
    import logging

    import dask
    from distributed import Client, LocalCluster

    unwatched = {
        f"distributed.worker.memory.{each}": False
        for each in ("target", "spill", "pause", "terminate")
    }
    with (
        dask.config.set(unwatched),
        LocalCluster(
            n_workers=number,
            threads_per_worker=1,
            processes=True,
            memory_limit=None,
            security=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            local_directory=str(folder / ".dask"),
            env={"MUTANDIS_THREADS": str(max(1, _cores() // number))},
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def read_memory(memory: str | int) -> int:
    """Read a size of memory in bytes.

    Examples
    --------
    >>> read_memory("1.5GB"), read_memory("512 MiB")
    (1500000000, 536870912)
    """
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([kKMGT]?i?B)?", str(memory).strip())
    if isinstance(memory, bool) or found is None:
        raise PlanError(
            f"memory={shown(memory)} is not allowed. Give a size such as '4GB' or '512MB'."
        )
    size = int(Fraction(found[1]) * _UNITS[(found[2] or "B").upper()])
    if size < _LIBRARIES + _LEAST_ROWS * _ROW:
        least = (_LIBRARIES + _LEAST_ROWS * _ROW) // 10**6 + 1
        raise PlanError(f"memory={shown(memory)} is too little. Give at least '{least}MB'.")
    return size


def _rows_in(memory: int) -> int:
    return max(_LEAST_ROWS, (memory - _LIBRARIES) // _ROW)


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not everywhere
        return 8 * 10**9


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def digest(*values: Any) -> str:
    """Hash values by their kind and content, the same in every process and on every machine.

    Examples
    --------
    >>> digest({"k": 15, "tau": 0.0}) == digest({"tau": 0.0, "k": 15}), digest(1) == digest(1.0)
    (True, False)
    """
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
    """Give the kind and the parts of a value that has some."""
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
