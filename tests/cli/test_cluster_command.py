"""`mutandis audit` with --cluster and --memory: its folder of tasks, and what it says."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mutandis.cli import audit as command
from mutandis.errors import OutputError, PlanError
from mutandis.workers import Task
from tests.cli import conftest
from tests.cli.conftest import PLAIN, write_config

if TYPE_CHECKING:
    from pathlib import Path

    import mutandis as mm
    from mutandis.workers import Workers


def answer() -> dict[str, Any]:
    return {"found": np.arange(3)}


@pytest.fixture
def config(tmp_path: Path, no_report: None) -> Path:
    return write_config(tmp_path, PLAIN)


def run(config: Path, *options: str) -> Any:
    return conftest.run("audit", config, "--out", config.parent / "out", *options)


@pytest.fixture
def crash(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have the search answer some tasks, and then fail."""

    def set_answers(number: int) -> None:
        def fail(plan: mm.Plan, *, threads: int | None, workers: Workers) -> mm.Audit:
            tasks = [Task(function=answer, arguments=(), name=f"t{n}") for n in range(number)]
            workers.answer(tasks, lambda _: None)
            raise KeyboardInterrupt

        monkeypatch.setattr(command, "run_with_bars", fail)

    return set_answers


def test_the_folder_of_tasks_is_private_and_is_removed(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    whole = command.run_with_bars

    def look(plan: mm.Plan, *, threads: int | None, workers: Workers) -> mm.Audit:
        modes.append(stat.S_IMODE(workers.folder.stat().st_mode))
        assert workers.folder == config.parent / "out.tasks"
        return whole(plan, threads=threads, workers=workers)

    monkeypatch.setattr(command, "run_with_bars", look)

    result = run(config, "--memory", "1GB")

    assert result.exit_code == 0, result.exception
    assert modes == [0o700]
    assert not (config.parent / "out.tasks").exists()


def test_it_is_kept_where_the_run_is_ended_early(config: Path, crash: Any) -> None:
    crash(2)

    result = run(config, "--memory", "1GB")

    assert result.exit_code != 0
    assert (
        "2 finished tasks are kept in out.tasks: the same command goes on from there."
        in result.stderr
    )
    assert len(list((config.parent / "out.tasks").glob("*.npz"))) == 2


def test_the_next_run_goes_on_from_there(
    config: Path, crash: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context():
        crash(2)
        run(config, "--memory", "1GB")
    monkeypatch.undo()

    resumed = run(config, "--memory", "1GB")

    assert resumed.exit_code == 0, resumed.exception
    assert not (config.parent / "out.tasks").exists()


@pytest.mark.parametrize("what", ["a file", "a link", "open to others", "of another kind"])
def test_a_folder_that_others_may_have_written(config: Path, what: str) -> None:
    folder = config.parent / "out.tasks"
    if what == "a file":
        folder.write_text("mine")
    elif what == "a link":
        (config.parent / "elsewhere").mkdir()
        folder.symlink_to(config.parent / "elsewhere")
    else:
        folder.mkdir()
        (folder / "diary").touch()
        (folder / "t.npz").touch()
    if what == "open to others":
        (folder / ".mutandis-tasks").touch()
        folder.chmod(0o777)

    refused = run(config, "--memory", "1GB")

    assert isinstance(refused.exception, OutputError)
    assert "Move it away" in str(refused.exception)
    assert os.path.lexists(folder)


@pytest.mark.slow
def test_a_cluster_says_where_it_can_be_watched(config: Path) -> None:
    pytest.importorskip("distributed")

    result = run(config, "--cluster", "local:1")

    assert result.exit_code == 0, result.exception
    assert result.stderr.startswith("Dask dashboard: http://127.0.0.1:")
    assert "Dask" not in result.stdout


@pytest.mark.parametrize("options", [("--cluster", "locally"), ("--memory", "much")])
def test_what_is_not_allowed(config: Path, options: tuple[str, ...]) -> None:
    pytest.importorskip("distributed")

    result = run(config, *options)

    assert isinstance(result.exception, PlanError)
    assert not (config.parent / "out.tasks").exists()
