"""What a command prints: nothing in a table steers a terminal; a failed write is explained."""

from __future__ import annotations

import errno
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli import app as command_line
from mutandis.cli.exit_codes import explain
from mutandis.errors import MutandisWarning, printable

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "x\x1b[31m\x9b2J\x07\u202ey\u2066"
NAME = f"Annual{EVIL}"
CONFIG = f"""\
data: {{source: loan.csv, id: Id}}
outcome: {{column: LoanApproval, negative: -1}}
protected: {{attribute: Gender, value: 1, reference: 0}}
attributes: {{"{NAME.encode("unicode_escape").decode()}": continuous}}
worldview:
  "{NAME.encode("unicode_escape").decode()}": {{equation: linear, parents: [$protected]}}
ks: [3]
"""


def assert_harmless(text: str) -> None:
    assert printable(text) == text, repr(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table whose ids, columns and own name carry what a terminal would obey."""
    folder = tmp_path / f"in{EVIL}"
    folder.mkdir()
    table = mm.datasets.loan(n=60, seed=1).rename(columns={"AnnualSalary": NAME})
    table["Id"] = [f"{number}{EVIL}" for number in range(60)]
    table.to_csv(folder / "loan.csv", index=False)
    (folder / "audit.yaml").write_text(CONFIG, encoding="utf-8")
    return folder


@pytest.mark.filterwarnings("ignore")
def test_nothing_of_a_table_steers_the_terminal(folder: Path, tmp_path: Path) -> None:
    def run(*arguments: object) -> int:
        # with colour, or typer would take the escapes out by itself
        words = [str(each) for each in arguments]
        result = CliRunner().invoke(command_line.app, words, color=True)
        assert_harmless(result.output)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code

    config, out = folder / "audit.yaml", tmp_path / f"out{EVIL}"
    assert run("check", config) == 0
    assert run("check", config, "--json") == 0
    assert run("audit", config, "--out", out) == 0
    assert run("verify", out) == 0
    someone = mm.open_results(out).findings()["id"][0]
    assert EVIL in someone
    assert run("case", out, someone, "--no-pdf") == 0
    (out / "report.html").write_text("", encoding="utf-8")
    (out / f"foreign{EVIL}").write_text("", encoding="utf-8")
    assert run("verify", out) == 1
    assert run("verify", out, "--json") == 1
    assert run("check", f"--{EVIL}") == 2
    assert run(EVIL) == 2


def test_nothing_of_a_table_steers_a_python_session(folder: Path) -> None:
    plan = mm.read_plan(folder / "audit.yaml")
    audit = plan.run()
    case = audit.case(audit.findings()["id"][0])
    for each in (plan, plan.check(), audit, case, plan.worldview):
        assert_harmless(str(each))
        assert_harmless(repr(each))
    assert "Annualx�[31m" in str(case)
    for error in (mm.MutandisError(EVIL), MutandisWarning(EVIL)):
        assert str(error) == "x�[31m�2J��y�"
    with pytest.raises(mm.MutandisError) as caught:
        audit.case(EVIL)
    assert_harmless(str(caught.value))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.warn(EVIL, MutandisWarning, stacklevel=1)
    assert_harmless(str(said[0].message))


def test_letters_of_all_languages_are_printed() -> None:
    text = "Δp, é, ß, न\u200dी, שלום, 日本, 👩\u200d🔧\n\t"
    assert printable(text) == text


# --- streams that cannot be written to ------------------------------------------------------------


def run(*arguments: str, **streams: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]  # noqa: S603
        [sys.executable, "-m", "mutandis", *arguments], **streams
    )


POWER = ("power", "--p-control", "0.1", "--p-test", "0.5", "--k", "15")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [POWER, ("--help",)])
def test_a_closed_pipe_ends_a_command_quietly(arguments: tuple[str, ...]) -> None:
    process = run(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


@pytest.mark.slow
def test_a_full_device() -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        process = run(*POWER, stdout=full, stderr=subprocess.PIPE)
        said = process.communicate()[1]
        assert said == b"mutandis: The output cannot be written: No space left on device.\n"
        assert process.returncode == 2
        # and where nothing can be said, the code still tells
        process = run("check", "missing.yaml", stdout=subprocess.PIPE, stderr=full)
        assert process.communicate()[0] == b""
        assert process.returncode == 2


def test_what_the_system_refuses_is_no_defect() -> None:
    too_long = OSError(errno.ENAMETOOLONG, "x", "a" * 300)
    assert explain(too_long, [])[0] == 2
    assert "File name too long" in explain(too_long, [])[1]
    for error in (
        ImportError("libx.so: failed to map segment from shared object"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
    ):
        assert explain(error, [])[0] == 2
        assert "not enough memory" in explain(error, [])[1]
