"""Tasks whose answers are files, in this process and on a Dask cluster."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mutandis.errors import InputError, OutputError, PlanError
from mutandis.rooms.cluster import DaskWorkers, _compute_on_worker, _versions
from mutandis.workers import (
    LocalWorkers,
    Task,
    digest,
    load_answer,
    open_workers,
    read_memory,
    threads_of_task,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from mutandis.workers import Workers


def square(numbers: Path, start: int, stop: int, pause: float = 0) -> dict[str, NDArray[Any]]:
    time.sleep(pause)
    part = np.load(numbers / "numbers.npy", mmap_mode="r", allow_pickle=False)[start:stop]
    return {"squares": part * part, "threads": np.array(threads_of_task())}


def fail(kind: type[Exception], message: str) -> dict[str, NDArray[Any]]:
    raise kind(message)


def fail_at_first(attempts: Path, kind: type[Exception]) -> dict[str, NDArray[Any]]:
    """Fail the first time, and not again."""
    (attempts / f"{time.time_ns()}-{os.getpid()}").touch()
    if len(list(attempts.iterdir())) == 1:
        raise kind
    return {"done": np.array(1)}


def end_worker(attempts: Path, times: int) -> dict[str, NDArray[Any]]:
    """End the whole process the first few times."""
    (attempts / f"{time.time_ns()}-{os.getpid()}").touch()
    if len(list(attempts.iterdir())) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"done": np.array(1)}


def tasks_for(workers: Workers, *, rows: int = 100, parts: int = 7, pause: float = 0) -> list[Task]:
    stored = workers.store(f"numbers-{rows}", {"numbers": np.arange(rows)})
    edges = np.linspace(0, rows, parts + 1).astype(int).tolist()
    return [
        Task(
            function=square,
            arguments=(stored, start, stop, pause),
            name=digest("square", rows, start, stop),
            people=stop - start,
        )
        for start, stop in pairwise(edges)
    ]


def squares_of(paths: Sequence[Path]) -> list[int]:
    return np.concatenate([load_answer(path)["squares"] for path in paths]).tolist()  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    pytest.importorskip("distributed")
    with open_workers("local:2") as workers:
        assert isinstance(workers, DaskWorkers)
        yield workers.client


@pytest.fixture(params=["this process", pytest.param("a cluster", marks=pytest.mark.slow)])
def workers(request: pytest.FixtureRequest, tmp_path: Path) -> Workers:
    if request.param == "this process":
        return LocalWorkers(tmp_path)
    return DaskWorkers(request.getfixturevalue("cluster"), tmp_path)


class TestAnswers:
    def test_are_files_in_the_order_of_the_tasks(self, workers: Workers) -> None:
        people: list[int] = []
        tasks = tasks_for(workers)
        paths = workers.answer(tasks, people.append)
        assert paths == [workers.folder / f"{task.name}.npz" for task in tasks]
        assert squares_of(paths) == [n * n for n in range(100)]
        assert sorted(people) == sorted(task.people for task in tasks)

    @pytest.mark.slow
    def test_have_the_same_bytes_everywhere(self, cluster: Any, tmp_path: Path) -> None:
        here, there = LocalWorkers(tmp_path / "a", threads=1), DaskWorkers(cluster, tmp_path / "b")
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        found = [
            [path.read_bytes() for path in each.answer(tasks_for(each), lambda _: None)]
            for each in (here, there)
        ]
        assert found[0] == found[1]

    def test_that_are_there_are_not_computed_again(self, workers: Workers) -> None:
        tasks = tasks_for(workers)
        before = [path.stat().st_mtime_ns for path in workers.answer(tasks, lambda _: None)]
        people: list[int] = []
        paths = workers.answer(tasks, people.append)
        assert [path.stat().st_mtime_ns for path in paths] == before
        assert sum(people) == 100

    @pytest.mark.parametrize("damage", ["cut", "changed", "emptied", "removed"])
    def test_that_are_damaged_are_computed_again(self, workers: Workers, damage: str) -> None:
        tasks = tasks_for(workers)
        paths = workers.answer(tasks, lambda _: None)
        whole = paths[3].read_bytes()
        middle = whole.index(load_answer(paths[3])["squares"].tobytes()) + 9
        if damage == "removed":
            paths[3].unlink()
        else:
            changed = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
            paths[3].write_bytes({"cut": whole[:-30], "changed": changed, "emptied": b""}[damage])
        again = workers.answer(tasks, lambda _: None)
        assert again[3].read_bytes() == whole


class TestErrors:
    @pytest.mark.parametrize("kind", [InputError, ValueError, MemoryError])
    def test_are_of_the_same_kind_everywhere(self, workers: Workers, kind: type[Exception]) -> None:
        task = Task(function=fail, arguments=(kind, "There is a reason."), name="failing")
        with pytest.raises(kind, match=r"^There is a reason\.$") as caught:
            workers.answer([*tasks_for(workers), task], lambda _: None)
        assert type(caught.value) is kind
        assert not (workers.folder / "failing.npz").exists()

    def test_are_not_hidden_by_objects(self, workers: Workers) -> None:
        task = Task(function=make_object, arguments=(), name="object")
        with pytest.raises(ValueError, match="allow_pickle"):
            workers.answer([task], lambda _: None)

    @pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "a" * 200, "n\0", "é"])
    def test_of_hostile_names(self, workers: Workers, name: str) -> None:
        task = Task(function=square, arguments=(), name=name)
        with pytest.raises(ValueError, match="is not a name"):
            workers.answer([task], lambda _: None)
        with pytest.raises(ValueError, match="is not a name"):
            workers.store(name, {"numbers": np.arange(3)})
        with pytest.raises(ValueError, match="is not a name"):
            workers.store("inputs", {name: np.arange(3)})
        assert not list(workers.folder.iterdir())

    @pytest.mark.slow
    def test_of_a_folder_that_workers_do_not_see(self, cluster: Any, tmp_path: Path) -> None:
        workers = DaskWorkers(cluster, tmp_path / "missing")
        with pytest.raises(OutputError, match="cannot see the folder"):
            workers.answer([Task(function=square, arguments=(), name="a")], lambda _: None)

    @pytest.mark.slow
    def test_of_other_versions(
        self, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("mutandis.rooms.cluster._versions", lambda: ("mutandis 0.0",))
        workers = DaskWorkers(cluster, tmp_path)
        with pytest.raises(PlanError, match=r"other versions .*than this computer \(mutandis 0.0"):
            workers.answer(tasks_for(workers), lambda _: None)


@pytest.mark.parametrize("number", ["0", "many", "", "1.5", "99999"])
def test_threads_of_a_worker_that_are_no_number(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUTANDIS_THREADS", number)
    task = tasks_for(LocalWorkers(tmp_path))[0]
    answered = _compute_on_worker(tmp_path, task, _versions())
    assert answered is not None
    assert isinstance(answered[0], PlanError)
    assert "MUTANDIS_THREADS" in str(answered[0])


def make_object() -> dict[str, NDArray[Any]]:
    return {"found": np.array([object()])}


@pytest.mark.slow
class TestKilledWorkers:
    @pytest.mark.parametrize("kind", [OSError, SystemError])
    def test_bad_luck_is_tried_again(
        self, cluster: Any, tmp_path: Path, kind: type[Exception]
    ) -> None:
        attempts = tmp_path / "attempts"
        attempts.mkdir()
        task = Task(function=fail_at_first, arguments=(attempts, kind), name="unlucky")
        (path,) = DaskWorkers(cluster, tmp_path).answer([task], lambda _: None)
        assert load_answer(path)["done"] == 1
        assert len(list(attempts.iterdir())) == 2

    def test_do_not_matter(self, cluster: Any, tmp_path: Path) -> None:
        attempts = tmp_path / "attempts"
        attempts.mkdir()
        workers = DaskWorkers(cluster, tmp_path)
        task = Task(function=end_worker, arguments=(attempts, 2), name="killed")
        paths = workers.answer([*tasks_for(workers), task], lambda _: None)
        assert load_answer(paths[-1])["done"] == 1
        assert squares_of(paths[:-1]) == [n * n for n in range(100)]
        assert len(list(attempts.iterdir())) == 3

    def test_that_die_each_time_are_an_error(self, tmp_path: Path) -> None:
        attempts = tmp_path / "attempts"
        attempts.mkdir()
        with open_workers("local:1", tmp_path) as workers:
            assert workers is not None
            task = Task(function=end_worker, arguments=(attempts, 10**6), name="killed")
            with pytest.raises(OutputError, match="too little memory"):
                workers.answer([task], lambda _: None)


_DRIVER = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import test_workers as t
from mutandis.workers import open_workers

if __name__ == "__main__":
    with open_workers("local:2", Path({folder!r})) as workers:
        tasks = t.tasks_for(workers, rows=60, parts=30, pause=0.2)
        print("started", flush=True)
        workers.answer(tasks, lambda people: print("answered", flush=True))
"""


class TestResume:
    @pytest.mark.slow
    def test_after_the_process_with_the_scheduler_was_killed(self, tmp_path: Path) -> None:
        pytest.importorskip("distributed")
        folder = tmp_path / "tasks"
        script = tmp_path / "driver.py"
        script.write_text(_DRIVER.format(tests=str(Path(__file__).parent), folder=str(folder)))
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, script], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(5):
            process.stdout.readline()
        process.kill()
        process.wait()
        process.stdout.close()
        kept = {path: path.stat().st_mtime_ns for path in folder.glob("*.npz")}
        workers = LocalWorkers(folder)
        paths = workers.answer(tasks_for(workers, rows=60, parts=30), lambda _: None)
        assert 4 <= len(kept) < 30
        assert squares_of(paths) == [n * n for n in range(60)]
        assert {path: path.stat().st_mtime_ns for path in kept} == kept


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    root = Path(__file__).parents[1]
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "dask", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # the functions of this file, and the sources beside it
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.slow
def test_a_scheduler_that_is_reached_by_its_address_and_dies(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    port = str(free_port())
    address = f"tcp://127.0.0.1:{port}"
    quick = ("--no-dashboard", "--host", "127.0.0.1")
    answered: list[int] = []
    with (
        running("scheduler", "--port", port, *quick) as scheduler,
        running("worker", address, "--nthreads", "1", "--no-nanny", *quick),
        open_workers(address, tmp_path) as workers,
    ):
        assert isinstance(workers, DaskWorkers)
        assert str(workers.dashboard).startswith("http://127.0.0.1:")
        first = workers.answer(tasks_for(workers), lambda _: None)
        assert squares_of(first) == [n * n for n in range(100)]
        tasks = tasks_for(workers, rows=300, parts=100, pause=0.1)

        def end_scheduler(_: int) -> None:
            answered.append(1)
            if len(answered) == 5:
                scheduler.kill()

        with pytest.raises(OutputError, match="The connection to the Dask scheduler was lost"):
            workers.answer(tasks, end_scheduler)
    here = LocalWorkers(tmp_path)
    paths = here.answer(tasks_for(here, rows=300, parts=100), lambda _: None)
    assert squares_of(paths) == [n * n for n in range(300)]


class TestOpening:
    def test_nothing_is_asked_for(self) -> None:
        with open_workers(None) as workers:
            assert workers is None

    def test_memory_alone_asks_for_this_process(self) -> None:
        with open_workers(None, memory="2GB") as workers:
            assert isinstance(workers, LocalWorkers)
            assert workers.folder.stat().st_mode & 0o777 == 0o700
            assert 10**6 < workers.rows < 10**7
        assert not workers.folder.exists()

    def test_a_folder_that_was_named_is_kept(self, tmp_path: Path) -> None:
        with open_workers(None, tmp_path / "new" / "tasks") as workers:
            assert isinstance(workers, LocalWorkers)
            paths = workers.answer(tasks_for(workers), lambda _: None)
        assert all(path.exists() for path in paths)
        assert (tmp_path / "new" / "tasks").stat().st_mode & 0o777 == 0o700

    def test_no_scheduler(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("distributed")
        monkeypatch.setattr("mutandis.rooms.cluster._SECONDS", 0.2)
        with (
            pytest.raises(PlanError, match="No Dask scheduler answers"),
            open_workers("tcp://127.0.0.1:1"),
        ):
            pass


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), ("512 MB", 512 * 10**6), ("1GiB", 2**30), ("1.5GB", 15 * 10**8)],
)
def test_memory(text: str, size: int) -> None:
    assert read_memory(text) == size


@pytest.mark.parametrize("text", ["", "4", "4 G", "GB", "-4GB", "1e3GB", "4GB4", "1MB", True, "∞"])
def test_memory_that_is_no_size(text: Any) -> None:
    with pytest.raises(PlanError, match="memory="):
        read_memory(text)


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: Any = None


@dataclass(frozen=True)
class Place:
    x: float
    y: Any = None


DIFFERENT: list[Any] = [
    None, True, 1, 1.0, -0.0, 0.0, "1", b"1", Path("1"), Fraction(1, 3),
    (), ((),), (1, 2), ((1,), 2), (1, (2,)), ("ab", "c"), ("a", "bc"), {}, {"a": 1},
    {"a": 1, "b": 2}, {1: "a"}, Colour.RED, Colour.BLUE, Point, Place, Point(1.0), Point(1.0, 2),
    Place(1.0), np.array([1, 2]), np.array([1, 2], dtype=np.int32), np.array([[1, 2]]),
    np.array([[1], [2]]), np.array(["1", "2"]), np.array([], dtype=np.int64), np.int64(1),
    np.float64(1), np.bool_(True), np.datetime64("2020-01-01", "D"),
]  # fmt: skip


class TestDigest:
    def test_different_values_differ(self) -> None:
        found = [digest(value) for value in DIFFERENT]
        assert len(set(found)) == len(DIFFERENT)
        assert digest(1, 2) != digest((1, 2))
        assert digest("a", "b") != digest("ab")

    def test_is_the_same_in_another_process(self) -> None:
        code = (
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "import test_workers as t; print(t.digest(t.DIFFERENT))"
        )
        found = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": "7"},
        )
        assert len(found.stdout.strip()) == 64
        # classes of this file have the name of its module there
        sys.path.insert(0, str(Path(__file__).parent))
        try:
            import test_workers  # type: ignore[import-not-found, unused-ignore]
        finally:
            sys.path.pop(0)
        assert found.stdout.strip() == test_workers.digest(test_workers.DIFFERENT)

    def test_does_not_depend_on_order_or_layout(self) -> None:
        square = np.arange(9).reshape(3, 3)
        assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
        assert digest(square) == digest(np.asfortranarray(square))
        assert digest(square[::2, ::2]) == digest(square[::2, ::2].copy())

    @pytest.mark.parametrize(
        "value", [object(), {1}, lambda: 1, np.array([object()]), iter(()), np.zeros(1, "i4,i4")]
    )
    def test_refuses_what_has_no_content(self, value: Any) -> None:
        with pytest.raises(TypeError, match="cannot be hashed"):
            digest(value)
