"""Ctrl-C, SIGTERM and what nobody expected: how a command ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from mutandis.cli.exit_codes import Stopped, explain
from mutandis.errors import DecisionError, OutputError
from tests.cli.conftest import PLAIN as CONFIG
from tests.cli.conftest import write_config

if TYPE_CHECKING:
    from pathlib import Path


SLOW = """
import sys, time
from mutandis.cli import app
from mutandis.store import saved_audit
real = saved_audit.write_findings
saved_audit.write_findings = lambda *parts, **more: (time.sleep(60), real(*parts, **more))
sys.argv = ["mutandis", *sys.argv[1:]]
app.main()
"""

BROKEN = """
import sys
from mutandis.auditing import run
from mutandis.cli import app

def fail(plan, **more):
    raise ZeroDivisionError("Jane Doe earned 12345")

run.run_plan = fail
sys.argv = ["mutandis", *sys.argv[1:]]
app.main()
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path, CONFIG, rows=60)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "words"),
    [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")],
)
@pytest.mark.few("2-130-Ctrl-C")
def test_a_signal_ends_the_audit_and_leaves_nothing_half_written(
    config: Path, number: signal.Signals, code: int, words: str
) -> None:
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", SLOW, "audit", str(config), "--out", str(config.parent / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not list(config.parent.glob(".mutandis-*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(config.parent.glob(".mutandis-*")), "the audit never got to its folder"
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert out == ""
    assert err.startswith("mutandis: Stopped")
    assert words in err
    assert "Traceback" not in err
    assert sorted(path.name for path in config.parent.iterdir()) == ["audit.yaml", "loan.csv"]


def run_broken(config: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BROKEN, *options, "audit", str(config)]
    return subprocess.run(  # noqa: S603 - our own program
        [*command, "--out", str(config.parent / "out")],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_an_unexpected_error_is_named_but_not_quoted(config: Path) -> None:
    done = run_broken(config)
    assert done.returncode == 70
    assert "ZeroDivisionError" in done.stderr
    assert "--debug" in done.stderr
    assert "Jane" not in done.stderr
    assert "Traceback" not in done.stderr
    assert not (config.parent / "out").exists()


@pytest.mark.slow
def test_debug_shows_where_it_happened(config: Path) -> None:
    done = run_broken(config, "--debug")
    assert "Traceback" in done.stderr
    assert "Jane" in done.stderr


def test_codes() -> None:
    assert explain(OutputError("No."), []) == (2, "No.")
    assert explain(DecisionError("It failed\n  badly."), []) == (3, "It failed badly.")
    assert explain(KeyboardInterrupt(), [])[0] == 130
    assert explain(MemoryError(), [])[0] == 2
    assert explain(Stopped(143), [143])[0] == 143
    # a library in C has made something of its own of the interruption
    assert explain(RuntimeError("Query interrupted"), [130])[0] == 130
