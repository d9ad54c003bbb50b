"""An audit in a file: what it says reaches the audit, and what is wrong is named with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import PlanError
from mutandis.store.audit_file import read_arguments
from mutandis.store.tables import TableFiles

if TYPE_CHECKING:
    from pathlib import Path

LOAN = """\
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous, AccountBalance: {kind: continuous, weight: 2}}
worldview:
  AnnualSalary:   {equation: linear, parents: [Gender], bounds: [0, null]}
  AccountBalance: {equation: linear, parents: [AnnualSalary, Gender]}
decision: {rule: "AnnualSalary + 5 * AccountBalance > 225000"}
ks: [15, 30]
alpha: 0.1
tau: 0.05
methods: [st, cf]
seed: 7
evidence: {primary: [cf, 15]}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "audit.yaml"
    path.write_text(text, encoding="utf-8")
    return path


SEVERAL = """\
data: {source: loan.csv, id: applicant, missing: drop}
outcome: {column: LoanApproval, negative: no}
protected:
  - {attribute: Gender, value: [1, 2], reference: 0, pool: true}
  - {attribute: Young, value: 1, reference: 0}
combine: intersectional
attributes: {grade: {kind: ordinal, levels: [low, mid, high]}, job: nominal}
decision: {recorded: true}
evidence: {direction: positive}
similarity: {test_space: complement, max_distance: 0.02, min_group: 5}
"""
PLAIN: dict[str, Any] = {"id": None, "missing": "error", "decision": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            LOAN,
            {
                "outcome": "LoanApproval",
                "negative": -1,
                "protected": mm.Protection("Gender", value=1, reference=0),
                "attributes": {
                    "AnnualSalary": "continuous",
                    "AccountBalance": {"kind": "continuous", "levels": (), "weight": 2.0},
                },
                "worldview": mm.Worldview(
                    {
                        "AnnualSalary": mm.Linear("Gender", bounds=(0, None)),
                        "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
                    }
                ),
                "decision": "AnnualSalary + 5 * AccountBalance > 225000",
                "ks": (15, 30),
                "alpha": 0.1,
                "tau": 0.05,
                "evidence": mm.Evidence(primary=("cf", 15)),
                "methods": ("st", "cf"),
                "seed": 7,
            },
        ),
        # what is not written is left to the audit
        (
            "\n".join(LOAN.splitlines()[:3]) + "\nattributes: {a: continuous}\n",
            {
                "outcome": "LoanApproval",
                "negative": -1,
                "protected": mm.Protection("Gender", value=1, reference=0),
                "attributes": {"a": "continuous"},
            },
        ),
        (
            SEVERAL,
            {
                "id": "applicant",
                "missing": "drop",
                "outcome": "LoanApproval",
                "negative": "no",
                "protected": [
                    mm.Protection("Gender", value=[1, 2], reference=0, pool=True),
                    mm.Protection("Young", value=1, reference=0),
                ],
                "combine": "intersectional",
                "attributes": {
                    "grade": {"kind": "ordinal", "levels": ("low", "mid", "high")},
                    "job": "nominal",
                },
                "evidence": mm.Evidence(direction="positive"),
                "similarity": mm.Similarity(
                    test_space="complement", max_distance=0.02, min_group=5
                ),
            },
        ),
    ],
)
def test_what_is_written_reaches_the_audit(
    tmp_path: Path, text: str, expected: dict[str, Any]
) -> None:
    source, files, arguments = read_arguments(text, folder=tmp_path, name="audit.yaml")
    assert source == TableFiles(path="loan.csv", folder=tmp_path)
    assert files == ()
    assert arguments == PLAIN | expected


def test_the_threshold_of_a_score_is_in_its_units(tmp_path: Path) -> None:
    text = LOAN.replace("tau: 0.05", "tau: 2500").replace("negative: -1", "worse: higher")
    text = text.replace(" > 225000", "")
    _, _, arguments = read_arguments(text, folder=tmp_path, name="audit.yaml")
    assert arguments["tau"] == 2500


def test_a_file_and_the_same_call_give_the_same_audit(tmp_path: Path) -> None:
    table = mm.datasets.loan(n=800, seed=1)
    table.to_csv(tmp_path / "loan.csv", sep=";", index=False)
    from_file = mm.read_plan(write(tmp_path, LOAN)).run()
    _, _, arguments = read_arguments(LOAN, folder=tmp_path, name="audit.yaml")
    called = mm.audit(table, **arguments)
    pd.testing.assert_frame_equal(from_file.counts(), called.counts())


def test_several_protections(tmp_path: Path) -> None:
    table = mm.datasets.loan(n=200, seed=1)
    table["Young"] = table.index % 2
    table.to_csv(tmp_path / "loan.csv", index=False)
    both = "protected: [{attribute: Gender, reference: 0}, {attribute: Young, reference: 0}]\n"
    text = LOAN.replace("protected: {attribute: Gender, value: 1, reference: 0}\n", both)
    found = mm.read_plan(write(tmp_path, text + "combine: intersectional\n")).run()
    number = int(((table["Gender"] == 1) & (table["Young"] == 1)).sum())
    assert set(found.counts()["complainants"]) == {number}
    with pytest.raises(PlanError, match="no word on how they are combined"):
        mm.read_plan(write(tmp_path, text))


def test_an_order_is_written_and_written_again(tmp_path: Path) -> None:
    rows = 60
    table = pd.DataFrame(
        {
            "grade": ["A", "B", "C", "B", "C", "A"] * 10,
            "woman": [each % 2 for each in range(rows)],
            "income": [each % 7 for each in range(rows)],
        }
    )
    table.to_csv(tmp_path / "grades.csv", index=False)
    text = """\
data: {source: grades.csv}
outcome: {column: grade, best_to_worst: [A, B, C]}
protected: {attribute: woman, value: 1, reference: 0}
attributes: {income: continuous}
worldview: {income: {equation: linear, parents: [woman]}}
decision: {rule: income, threshold: [4, 2]}
ks: [5]
uncertainty: {refits: 0}
"""
    plan = mm.read_plan(write(tmp_path, text))
    assert plan.outcome.declaration == {"column": "grade", "best_to_worst": ["A", "B", "C"]}
    found = plan.run()
    found.save(tmp_path / "results")
    opened = mm.open_results(tmp_path / "results")
    assert opened.findings("cf").equals(found.findings("cf"))
    assert set(found.findings("cf")["outcome_cf"]) <= {"A", "B", "C"}
    assert mm.verify_results(tmp_path / "results", rerun=True).differences == ()
