from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb
import pandas as pd
import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.report.report import Report
from mutandis.report.sentences import describe_headline
from mutandis.verdicts.findings import COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

runner = CliRunner()


@dataclass(frozen=True)
class Demo:
    out: Path
    printed: str

    @property
    def decisions(self) -> pd.DataFrame:
        return pd.read_csv(self.out / "decisions.csv")


def run(out: Path, *options: str) -> Demo:
    result = runner.invoke(app, ["demo", "--out", str(out), *options], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return Demo(out, result.output)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """As it is without options: 35 % women."""
    return run(tmp_path_factory.mktemp("demo") / "out")


def run_without_report(out: Path, *options: str) -> Demo:
    """Drawing takes seconds; one run of the demonstration does it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mm.Audit, "report", lambda self, **more: Report(html="<p>", plots={}))
        return run(out, *options)


@pytest.fixture(scope="module")
def as_json(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return run_without_report(tmp_path_factory.mktemp("demo"), "--json", "--share", "0.45")


def test_demo_prints_one_table_and_names_its_files(plain: Demo) -> None:
    out, printed = plain.out, plain.printed
    assert "k = 15" in printed
    # as an audit does: the headline, and what to know about it
    found = mm.open_results(out / "results")
    text = " ".join(printed.split())
    for said in (describe_headline(found), *found.cautions()):
        assert " ".join(said.split()) in text
    assert text.index(describe_headline(found)) < text.index("CST (w/o)")
    assert "CST (w/o)" in printed
    assert "significant" in printed
    assert sorted(path.name for path in out.iterdir()) == ["audit.yaml", "decisions.csv", "results"]
    assert str(out / "results" / "report.html") in printed
    # the last line is the next command, and it works
    *_, command, case, folder, who = printed.split()
    assert (command, case, folder) == ("mutandis", "case", str(out / "results"))
    assert runner.invoke(app, [case, folder, who, "--no-pdf"]).exit_code == 0
    assert (out / "results" / "cases" / f"{who}.html").is_file()


def test_demo_files_agree_with_each_other(as_json: Demo) -> None:
    results, printed, decisions = (
        as_json.out / "results",
        json.loads(as_json.printed)["counts"],
        as_json.decisions,
    )
    counts = pd.read_csv(results / "counts.csv")
    findings = duckdb.read_parquet(str(results / "findings.parquet")).df()
    provenance = mm.open_results(results).provenance.as_dict()
    assert counts.to_dict("records") == printed
    graded = ("tipping", "grade", "robustness")
    assert tuple(findings.columns) == ("method", "k", *COLUMNS, *graded)
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


@pytest.mark.slow
def test_demo_is_repeatable_and_the_seed_matters(tmp_path: Path) -> None:
    first, again, other = (
        run_without_report(tmp_path / name, "--n", "400", "--seed", seed).out
        / "results"
        / "findings.parquet"
        for name, seed in (("a", "1"), ("b", "1"), ("c", "2"))
    )
    assert first.read_bytes() == again.read_bytes()
    assert first.read_bytes() != other.read_bytes()


def test_demo_draws_the_share_of_women_that_is_asked_for(plain: Demo, as_json: Demo) -> None:
    # a binomial share of 5,000 has a standard error of 0.007
    assert abs(plain.decisions["Gender"].mean() - 0.35) < 0.025
    assert abs(as_json.decisions["Gender"].mean() - 0.45) < 0.025
