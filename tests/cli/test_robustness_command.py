"""`mutandis robustness` gives from a folder what the audit gives in Python."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def found(plan_loan: Callable[..., mm.Plan]) -> mm.Audit:
    return plan_loan(
        mm.datasets.loan(n=1200, seed=1),
        methods=["cst_matched"],
        ks=(20,),
        uncertainty=mm.Uncertainty(refits=0),
    ).run()


@pytest.fixture(scope="module")
def folder(found: mm.Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("robustness") / "results"
    found.save(path)
    return path


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["robustness", *(str(each) for each in arguments)])


def test_counts_are_those_of_python(found: mm.Audit, folder: Path, tmp_path: Path) -> None:
    table = found.tipping()
    verdicts = found.findings()["verdict"]
    answer = run(folder, "--json", "--out", tmp_path / "people.csv")
    assert answer.exit_code == 0, answer.output
    counted = json.loads(answer.output)
    assert counted["method"] == "cst_matched"
    expected = table["grade"][verdicts == "significant-adjusted"].value_counts().to_dict()
    assert expected
    assert {g: n for g, n in counted["verdicts"]["significant-adjusted"].items() if n} == expected
    written = pd.read_csv(tmp_path / "people.csv")
    assert written["tipping"].equals(table["tipping"])
    assert written["grade"].fillna("").tolist() == table["grade"].fillna("").tolist()


def test_people_get_words(folder: Path) -> None:
    answer = run(folder)
    assert "how much of the effect of 'Gender'" in answer.output
    assert "stands with 50% of the effect or less" in answer.output
    assert "--out robustness.csv" in answer.output


def test_the_grade_follows_its_rule(found: mm.Audit) -> None:
    table = found.tipping()
    known = table[table["tipping"].notna()]
    rule = known["tipping"].map(
        lambda x: "robust" if x <= 0.5 else "fragile" if x >= 0.75 else "sensitive"
    )
    assert known["grade"].tolist() == rule.tolist()
    assert set(rule) >= {"robust", "fragile"}


def test_a_method_that_asks_b_has_no_tipping_point(folder: Path) -> None:
    answer = run(folder, "--method", "cst_with")
    assert isinstance(answer.exception, PlanError)
