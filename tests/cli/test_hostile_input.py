"""Audit files, results folders and models that come from somebody else: no code of theirs is run.

Each attack was first tried by hand on the command line; docs/security.md lists them.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.errors import DecisionError, OutputError
from mutandis.files.results_folder import write_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typer.testing import Result

CONFIG = """\
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
uncertainty: {placebo: 0}
ks: [3]
"""
EVIL = "decision: {python: 'evil_module:decide'}\n"
WORLDVIEW = "worldview: {AnnualSalary: {equation: linear, parents: [$protected]}}\n"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def refusal(*arguments: object) -> str:
    """Give the message of the project's own error that ends a command."""
    result = run(*arguments)
    assert isinstance(result.exception, mm.MutandisError), result.exception
    return str(result.exception)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Give a folder with a table, an audit file, and a module that leaves a trace if it is run."""
    mm.datasets.loan(n=150, seed=1).to_csv(tmp_path / "loan.csv", index=False)
    (tmp_path / "audit.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "evil_module.py").write_text(
        f"import pathlib\npathlib.Path({str(tmp_path / 'sprung')!r}).touch()\n"
        "def decide(table):\n    return table['AnnualSalary'] > 90000\n",
        encoding="utf-8",
    )
    yield tmp_path
    sys.modules.pop("evil_module", None)


@pytest.fixture
def results(folder: Path) -> Path:
    assert run("audit", folder / "audit.yaml", "--out", folder / "out").exit_code == 0
    return folder / "out"


def rewrite(results: Path, **changes: Any) -> None:
    """Change a record as an attacker does: with hashes that fit again."""
    record = json.loads((results / "audit.json").read_text(encoding="utf-8"))
    for derived in ("format", "version", "outputs", "sha256"):
        del record[derived]
    (results / "audit.json").unlink()
    write_record(results, record | changes)


# --- code from a received folder ------------------------------------------------------------------


@pytest.mark.parametrize("command", ["check", "audit"])
def test_an_audit_file_cannot_have_its_code_run(folder: Path, command: str) -> None:
    config = folder / "audit.yaml"
    config.write_text(CONFIG + EVIL + WORLDVIEW, encoding="utf-8")
    where = () if command == "check" else ("--out", folder / "out")
    result = run(command, config, *where)
    assert isinstance(result.exception, DecisionError)
    message = str(result.exception)
    assert "audit.yaml, line 7" in message
    assert "'evil_module:decide', and was not imported" in message
    assert "--trust-code on the command line, trust_code=True in Python" in message
    with pytest.raises(DecisionError, match="was not imported"):
        mm.read_plan(config)
    assert not (folder / "sprung").exists()
    assert run(command, config, *where, "--trust-code").exit_code == 0
    assert (folder / "sprung").exists()


def test_a_record_cannot_have_its_code_run(folder: Path, results: Path) -> None:
    record = json.loads((results / "audit.json").read_text(encoding="utf-8"))
    rewrite(results, config=record["config"] | {"text": CONFIG + EVIL})
    ids = mm.open_results(results).findings()["id"]
    for _ in range(2):  # and again, should the first have loaded something
        assert run("case", results, ids[0], "--no-pdf").exit_code == 0
        assert run("verify", results).exit_code == 0
        assert "--trust-code" in refusal("verify", results, "--rerun")
    mm.open_results(results).report()
    assert not (folder / "sprung").exists()


def test_hashes_are_checked_before_anything_is_loaded(folder: Path, results: Path) -> None:
    text = (results / "audit.json").read_text(encoding="utf-8")
    changed = text.replace('ks: [3]\\n"', f'ks: [3]\\n{EVIL[:-1]}"')
    assert changed != text
    (results / "audit.json").write_text(changed, encoding="utf-8")
    result = run("verify", results, "--rerun", "--trust-code")
    assert result.exit_code == 1
    assert "audit.json is not what was written" in result.output
    assert "cannot be repeated from something else" in result.output
    assert "audit.json' is missing or has been damaged" in refusal("case", results, "0")
    with pytest.raises(OutputError, match="has been damaged"):
        mm.open_results(results)
    assert not (folder / "sprung").exists()


@pytest.mark.parametrize("trusted", ["", ", trusted: [posix.system]", ", trust_code: true"])
def test_an_audit_file_cannot_say_what_is_trusted(folder: Path, trusted: str) -> None:
    pytest.importorskip("skops")
    import os
    from functools import partial

    import skops.io

    model = partial(os.system, f"touch {folder / 'sprung'}")
    (folder / "evil.skops").write_bytes(skops.io.dumps(model))
    config = folder / "audit.yaml"
    config.write_text(
        CONFIG + f"decision: {{skops: evil.skops, columns: [AnnualSalary]{trusted}}}\n" + WORLDVIEW,
        encoding="utf-8",
    )
    expected = "is not a key" if trusted else "not known to be harmless, and was not loaded"
    assert expected in refusal("check", config)
    assert not (folder / "sprung").exists()
