from __future__ import annotations

import json
from typing import TYPE_CHECKING

import duckdb
import pandas as pd
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.evidence.findings import COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

runner = CliRunner()


def test_demo_prints_one_table_and_names_its_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = runner.invoke(app, ["demo", "--out", str(out)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    assert "k = 15" in result.output
    assert "CST (w/o)" in result.output
    assert "significant" in result.output
    assert sorted(path.name for path in out.iterdir()) == ["audit.yaml", "decisions.csv", "results"]
    assert str(out / "results" / "report.html") in result.output
    # the last line is the next command, and it works
    *_, command, case, folder, who = result.output.split()
    assert (command, case, folder) == ("mutandis", "case", str(out / "results"))
    assert runner.invoke(app, [case, folder, who, "--no-pdf"]).exit_code == 0
    assert (out / "results" / "cases" / f"{who}.html").is_file()


def test_demo_files_agree_with_each_other(tmp_path: Path) -> None:
    result = runner.invoke(app, ["demo", "--out", str(tmp_path), "--json", "--n", "2000"])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.output)
    counts = pd.read_csv(tmp_path / "results" / "counts.csv")
    findings = duckdb.read_parquet(str(tmp_path / "results" / "findings.parquet")).df()
    decisions = pd.read_csv(tmp_path / "decisions.csv")
    provenance = mm.open_results(tmp_path / "results").provenance.as_dict()
    assert counts.to_dict("records") == printed
    assert tuple(findings.columns) == ("method", "k", *COLUMNS)
    assert set(counts["k"]) == {15, 30, 50, 100}
    assert set(counts["method"]) == {"st", "cst_without", "cst_with", "cf", "cst_matched"}
    assert provenance["data"]["rows"] == len(decisions)
    complainants = int((decisions["Gender"] == 1).sum())
    for row in printed:
        mine = findings[(findings["method"] == row["method"]) & (findings["k"] == row["k"])]
        assert len(mine) == complainants == row["complainants"]
        # only matched groups may be unlike the men whom these women would have been: no verdict
        unlike = mine["verdict"] == "insufficient"
        assert unlike.sum() == 0 or row["method"] == "cst_matched"
        assert int(((mine["delta_p"] > 0) & ~unlike).sum()) == row["cases"]


def test_demo_is_repeatable_and_the_seed_matters(tmp_path: Path) -> None:
    for folder, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        arguments = ["demo", "--out", str(tmp_path / folder), "--n", "1000", "--seed", seed]
        assert runner.invoke(app, arguments).exit_code == 0
    first, again, other = (
        (tmp_path / folder / "results" / "findings.parquet").read_bytes()
        for folder in ("a", "b", "c")
    )
    assert first == again
    assert first != other


def test_demo_draws_the_share_of_women_that_is_asked_for(tmp_path: Path) -> None:
    shares = {}
    for share in ("0.35", "0.45"):
        out = tmp_path / share
        assert runner.invoke(app, ["demo", "--out", str(out), "--share", share]).exit_code == 0
        shares[share] = pd.read_csv(out / "decisions.csv")["Gender"].mean()
    # a binomial share of 5,000 has a standard error of 0.007
    assert abs(shares["0.35"] - 0.35) < 0.025
    assert abs(shares["0.45"] - 0.45) < 0.025
