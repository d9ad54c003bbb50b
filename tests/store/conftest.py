"""A small audit with two case files, one of them redacted, that tests copy and spoil."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import mutandis as mm

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """\
data: {source: loan.csv, id: person}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
worldview: {AnnualSalary: {equation: linear, parents: [Gender]}}
decision: {rule: "AnnualSalary + 5 * AccountBalance > 225000"}
uncertainty: {refits: 2}
ks: [3]
"""


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    table = mm.datasets.loan(n=120, seed=1)
    women = table.index[table["Gender"] == 1]
    table["person"] = [f"p{row}" for row in range(len(table))]
    table.loc[women[:2], "person"] = ["Anna", "Éva / 7"]
    table.to_csv(folder / "loan.csv", index=False)
    (folder / "audit.yaml").write_text(CONFIG, encoding="utf-8")
    mm.read_plan(folder / "audit.yaml").run().save(folder / "out")
    mm.save_case(folder / "out", "Anna", pdf=False)
    mm.save_case(folder / "out", "Éva / 7", redact=True, pdf=False)
    return folder
