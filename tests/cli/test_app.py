from __future__ import annotations

import resource
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mutandis import __version__
from mutandis.cli import app as command_line

runner = CliRunner()


def test_version() -> None:
    result = runner.invoke(command_line.app, ["--version"])
    assert result.exit_code == 0
    assert result.output.strip() == f"mutandis {__version__}"


def test_help_names_the_commands_and_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from mutandis.cli.app import app\n"
        "try:\n"
        "    app(['--help'])\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        "heavy = {'numpy', 'pandas', 'scipy', 'narwhals', 'networkx'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout
    assert "reproduce" in done.stdout


def test_help_takes_less_than_half_a_second() -> None:
    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "mutandis", "--help"]
        subprocess.run(command, capture_output=True, check=True)  # noqa: S603
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # processor time, and the best of several: other work on the machine is not the command's
    assert min(once() for _ in range(5)) < 0.5


def test_debug_shows_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["mutandis", "--debug", "demo", "--share", "1.5"])
    with pytest.raises(SystemExit) as end:
        command_line.main()
    assert end.value.code == 2
    output = capsys.readouterr().err
    assert output.startswith("Traceback")
    assert "mutandis.errors.PlanError: protected_share=1.5 is outside (0, 1)." in output


def test_no_command_shows_the_help() -> None:
    assert "Usage" in runner.invoke(command_line.app, []).output
