"""An audit by workers that is killed and resumed has the results of one that never was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm
from mutandis.engine import tiles

if TYPE_CHECKING:
    from pathlib import Path

LOAN = """\
data: {source: parts}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
worldview:
  AnnualSalary:   {equation: linear, parents: [Gender]}
  AccountBalance: {equation: linear, parents: [AnnualSalary, Gender]}
decision: {rule: "AnnualSalary + 5 * AccountBalance > 95000"}
uncertainty: {refits: 2, tipping: false}
ks: [15, 30]
"""
# small tiles, and tasks that take long enough to be killed
SLOWLY = """
import sys, time
from mutandis.engine import tiles
from mutandis import workers

tiles._SMALLEST_TILE = 50
whole = workers.compute

def compute(*given):
    time.sleep(0.02)
    whole(*given)

workers.compute = compute

if __name__ == "__main__":
    from mutandis.__main__ import main
    main()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    table = mm.datasets.loan(n=800, seed=1)
    for number in range(7):
        table.iloc[number::7].to_parquet(tmp_path / "parts" / f"{number}.parquet")
    (tmp_path / "audit.yaml").write_text(LOAN, encoding="utf-8")
    (tmp_path / "slowly.py").write_text(SLOWLY, encoding="utf-8")
    return tmp_path


def command(folder: Path, out: str, *options: str) -> list[str]:
    return [sys.executable, "slowly.py", "audit", "audit.yaml", "--out", out, *options]


def run(folder: Path, out: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        command(folder, out, *options), cwd=folder, capture_output=True, text=True, check=False
    )


def run_until(folder: Path, answers: int, number: signal.Signals, *options: str) -> tuple[int, str]:
    """Run an audit until there are as many answers, and end it by a signal."""
    with subprocess.Popen(  # noqa: S603
        command(folder, "out", *options),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        last = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < last:
            if len(list((folder / "out.tasks").glob("*.npz"))) >= answers:
                os.kill(process.pid, number)
                break
            time.sleep(0.02)
        _, said = process.communicate(timeout=60)
    return process.returncode, said


def results(folder: Path) -> dict[str, Any]:
    """Read all files of results, without the time of the run and what depends on it."""
    found: dict[str, Any] = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    record = json.loads(found["audit.json"])
    for key in ("created", "sha256"):
        del record[key]
    return found | {"audit.json": record}


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--memory", "1GB"), ("--cluster", "local:2")])
def test_killed_again_and_again_and_resumed(folder: Path, options: tuple[str, ...]) -> None:
    assert tiles._SMALLEST_TILE > 50
    alone = run(folder, "alone")
    assert alone.returncode == 0, alone.stderr

    for answers in (1, 6):
        code, _ = run_until(folder, answers, signal.SIGKILL, *options)
        assert code == -signal.SIGKILL
        assert not (folder / "out").exists()
    code, said = run_until(folder, 9, signal.SIGINT, *options)
    assert code == 130
    assert "finished tasks are kept in out.tasks: the same command goes on" in said
    kept = {path: path.stat().st_mtime_ns for path in (folder / "out.tasks").glob("*.npz")}
    assert len(kept) >= 9

    done = run(folder, "out", *options)

    assert done.returncode == 0, done.stderr
    assert not (folder / "out.tasks").exists()
    assert results(folder / "out") == results(folder / "alone")
