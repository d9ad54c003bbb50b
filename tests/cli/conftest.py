"""Commands run in this process, on small tables of loan applications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.report.report import Report

if TYPE_CHECKING:
    from pathlib import Path

LOAN = """\
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
worldview:
  AnnualSalary:   {equation: linear, parents: [Gender]}
  AccountBalance: {equation: linear, parents: [AnnualSalary, Gender]}
decision: {rule: "AnnualSalary + 5 * AccountBalance > 225000"}
uncertainty: {refits: 2}
ks: [5, 9]
"""

# without anything that takes time
PLAIN = """\
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
ks: [3]
"""


def write_config(folder: Path, text: str = LOAN, *, rows: int = 300) -> Path:
    """Write a table and an audit file, and return the path of the latter."""
    mm.datasets.loan(n=rows, seed=1).to_csv(folder / "loan.csv", index=False)
    path = folder / "audit.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def run(*arguments: object, **options: Any) -> Any:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(each) for each in arguments], **options)


def without_report(patch: pytest.MonkeyPatch) -> None:
    """Leave out the report, which takes most of the time of a small audit."""
    patch.setattr(mm.Audit, "report", lambda self, **more: Report(html="<p>", plots={}))


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    without_report(monkeypatch)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path)
