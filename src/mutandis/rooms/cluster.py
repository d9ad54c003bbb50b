"""Tasks on the workers of a Dask cluster (extra ``cluster``).

Only names of files go to a worker, and what comes back is a file: data that Dask holds itself are
copied to each worker, and lost with it. A few tasks per worker are handed out at a time. Tasks
whose workers die are handed out again.
"""

from __future__ import annotations

import os
import re
import time
import traceback
from collections import Counter, deque
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from mutandis.errors import OutputError, PlanError, shown
from mutandis.workers import (
    TaskCount,
    answer_path,
    compute,
    missing_tasks,
    physical_memory,
    rows_in,
    store_arrays,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from distributed import Client, Future
    from numpy.typing import NDArray

    from mutandis.workers import Task

__all__ = ["DaskWorkers", "open_cluster"]

_AHEAD = 2  # tasks per worker that the scheduler holds
_TRIES = 5  # of a task whose workers die (each, several times), or that cannot read or write
_SECONDS = 30  # until a file that another machine has written is seen on a shared disk
_LOOK, _WITHOUT_WORKERS = 5, 120  # seconds between looks at the workers, and until it is given up
# the bits of an answer can depend on their versions
_PACKAGES = ("mutandis", "numpy", "scipy", "numba")


@dataclass(frozen=True, slots=True, weakref_slot=True)
class DaskWorkers:
    """The workers of a Dask cluster, which share a folder with this process."""

    client: Client
    folder: Path
    memory: int | None = None  # of one worker; None: the limit that the worker reports
    follow: Callable[[int, int], None] | None = None

    @property
    def rows(self) -> int:
        """About how many rows fit into the memory of the smallest worker."""
        if self.memory is not None:
            return rows_in(self.memory)
        workers = self.client.scheduler_info()["workers"].values()
        limits = [each["memory_limit"] for each in workers if each["memory_limit"]]
        return rows_in(min(limits, default=physical_memory() // (2 * max(1, len(workers)))))

    @property
    def dashboard(self) -> str | None:
        """The address at which the cluster can be watched."""
        services = self.client.scheduler_info()["services"]
        return str(self.client.dashboard_link) if "dashboard" in services else None

    def store(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> Path:
        """Write arrays for tasks to read."""
        return store_arrays(self.folder, name, arrays)

    def following(self, follow: Callable[[int, int], None]) -> DaskWorkers:
        """Return the same workers, with `follow` called after each task."""
        return replace(self, follow=follow)

    def answer(self, tasks: Sequence[Task], progress: Callable[[int], None]) -> list[Path]:
        """Submit a few tasks per worker at a time; submit those of dead workers again."""
        count = TaskCount(len(tasks), progress, self.follow)
        _Round(self, deque(missing_tasks(self.folder, tasks, count)), count).finish()
        return [answer_path(self.folder, task.name) for task in tasks]


class _Round:
    """Tasks on their way to the workers of a cluster and back."""

    def __init__(self, workers: DaskWorkers, waiting: deque[Task], count: TaskCount) -> None:
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

        try:
            number = len(self._client.nthreads())
        except Exception as error:  # whatever Dask meets where the scheduler was
            raise _connection_lost(type(error).__name__) from error
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
        path = answer_path(self._folder, task.name)
        if not path.is_file():
            error = _read_confirmation(future)
            if error is not None:
                self._try_again(task, error)
                return
            _wait_for(path)
        self._count(task)

    def _try_again(self, task: Task, error: Exception) -> None:
        # a confirmation that was lost with its worker is sent again, however often
        if not isinstance(error, _LostError):
            self._failures[task.name] += 1
            # SystemError: up to Python 3.11.7, reading the header of an array while another thread
            # parses may fail so (python/cpython#106905)
            is_bad_luck = isinstance(error, OSError | SystemError | _WorkerDiedError)
            if not is_bad_luck or self._failures[task.name] >= _TRIES:
                raise error
        self._waiting.append(task)


class _WorkerDiedError(OutputError):
    """Several workers that died with a task."""


class _LostError(OutputError):
    """A confirmation that was lost with a worker."""


def _read_confirmation(future: Future) -> Exception | None:
    """Return the error of a task on a worker, if there was one."""
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
        return _connection_lost(type(found).__name__ if found else future.status)
    try:
        answered = future.result(timeout=_SECONDS)
    except TimeoutError:  # the worker has died
        return _LostError()
    if answered is None:
        return None
    error, where = answered
    error.__cause__ = RuntimeError(f"on a worker of the cluster:\n{where}")
    return error  # type: ignore[no-any-return]


def _connection_lost(reason: str) -> OutputError:
    return OutputError(
        f"The connection to the Dask scheduler was lost, or it gave up a task ({reason}). What was "
        "answered is kept, so that another run goes on from there."
    )


def _compute_on_worker(
    folder: Path, task: Task, versions: tuple[str, ...]
) -> tuple[Exception, str] | None:
    """Answer a task, and give an error back: one that is raised is logged with the arguments."""
    try:
        _check_worker(folder, versions)
        compute(folder, task, _threads_of_worker())
    except Exception as error:  # noqa: BLE001 (raised where the task was asked for)
        where = "".join(traceback.format_tb(error.__traceback__))
        return error.with_traceback(None), where
    return None


def _threads_of_worker() -> int:
    number = os.environ.get("MUTANDIS_THREADS", "1")
    if not re.fullmatch("[1-9][0-9]{0,3}", number):
        raise PlanError(
            "The environment variable MUTANDIS_THREADS of a worker is not a number of threads. Set "
            "it to the cores that each worker has to itself, or remove it."
        )
    return int(number)


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
def open_cluster(
    where: object, folder: Path, memory: int | None, follow: Callable[[int, int], None] | None
) -> Iterator[DaskWorkers]:
    """Connect to a scheduler, or start processes here; `mutandis.workers.open_workers` calls it."""
    with ExitStack() as stack:
        yield DaskWorkers(_connect(where, folder, stack), folder, memory, follow)


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
    import logging

    from distributed import Client

    # what it meets where a scheduler was is said in one sentence instead
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise PlanError(
            f"No Dask scheduler answers at {address.partition('://')[0]}://… in {_SECONDS} seconds "
            f"({type(error).__name__}). Check the address, that the scheduler runs and, for "
            "tls://, that Dask's configuration names keys."
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


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
