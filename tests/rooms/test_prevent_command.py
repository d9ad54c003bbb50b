"""`mutandis prevent` gives from a folder what the audit gives in Python."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.errors import PlanError
from mutandis.rooms.prevention import study_prevention

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def found(plan_loan: Callable[..., mm.Plan]) -> mm.Audit:
    return plan_loan(
        mm.datasets.loan(n=600, seed=1),
        ks=(15,),
        uncertainty=mm.Uncertainty(refits=0, tipping=False),
    ).run()


@pytest.fixture(scope="module")
def folder(found: mm.Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prevention") / "results"
    found.save(path)
    return path


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["prevent", *(str(each) for each in arguments)])


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ([], {}),
        (["--rule", "pattern"], {"rule": "pattern"}),
        (
            ["--rule", "pattern", "--method", "cst_without", "--k", 15],
            {"rule": "pattern", "method": "cst_without"},
        ),
    ],
)
def test_counts_are_those_of_python(
    found: mm.Audit, folder: Path, options: list[Any], asked: dict[str, Any]
) -> None:
    study = study_prevention(found, **asked)
    answer = run(folder, "--json", *options)
    assert answer.exit_code == 0, answer.output
    said = json.loads(answer.output)
    assert said["relabelled"] == study.relabelled > 0
    assert (said["rule"], said["method"], said["k"]) == (study.rule, study.method, 15)
    expected = study.counts()
    pd.testing.assert_frame_equal(pd.DataFrame(said["counts"]), expected, check_dtype=False)


def test_the_changed_table_is_written_and_the_results_stay(
    found: mm.Audit, folder: Path, tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    answer = run(folder, "--out", tmp_path / "changed.csv")
    assert answer.exit_code == 0, answer.output
    study = study_prevention(found)
    written = pd.read_csv(tmp_path / "changed.csv")
    assert written.loc[written["relabelled"], "id"].tolist() == study.ids.tolist()
    changed = study.decisions()["LoanApproval"].to_numpy()
    assert written["LoanApproval"].to_numpy().tolist() == changed.tolist()
    assert "study of the table and not a remedy" in " ".join(answer.output.split())
    assert "holds personal data" in answer.output
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_cannot_be_studied_is_said(folder: Path, tmp_path: Path) -> None:
    assert "Allowed: own-case, pattern" in str(run(folder, "--rule", "all").exception)
    answer = run(folder, "--method", "st")
    assert isinstance(answer.exception, PlanError)
    assert "says nothing about a complainant's own case" in str(answer.exception)
    assert "end with one of" in str(run(folder, "--out", tmp_path / "x.doc").exception)
