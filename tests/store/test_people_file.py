"""One row per complainant, for a spreadsheet: the same values in every format."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.errors import PlanError

if TYPE_CHECKING:
    from pathlib import Path

FORMULA = "=HYPERLINK(A1)"


@pytest.fixture(scope="module")
def audit() -> mm.Audit:
    rng = np.random.default_rng(5)
    woman = rng.integers(0, 2, 120)
    salary = 20 + 5 * rng.random(120) - 3 * woman
    return mm.audit(
        pd.DataFrame(
            {
                "who": [f"p{n}" for n in range(120)],
                "woman": woman,
                "salary": salary,
                "job": rng.choice(["clerk", FORMULA], 120),
                "k": rng.integers(0, 9, 120),
                "granted": (salary + rng.random(120) > 21).astype(int),
            }
        ),
        outcome="granted",
        negative=0,
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous", "job": "nominal", "k": "continuous"},
        worldview=mm.Worldview({"salary": mm.Linear("woman")}),
        ks=(5, 8),
        id="who",
        uncertainty=mm.Uncertainty(refits=0),
    )


def read(path: Path) -> pd.DataFrame:
    found: pd.DataFrame
    if path.suffix == ".parquet":
        found = duckdb.read_parquet(str(path)).df()
    else:
        found = pd.read_csv(path) if path.suffix == ".csv" else pd.read_excel(path)
    return found


def test_everyone_has_findings_and_attributes(audit: mm.Audit) -> None:
    people, findings = audit.people(), audit.findings()
    assert people[findings.columns.tolist()].equals(findings)
    table = audit.plan.population.frame().set_index("who").loc[people["id"]]
    assert people["salary"].tolist() == table["salary"].tolist()
    assert people["job"].tolist() == table["job"].tolist()
    would_be = audit.counterfactuals().set_index("who").loc[people["id"]]
    assert people["salary (counterfactual)"].tolist() == would_be["salary"].tolist()
    # what does not move would say nothing
    assert "job (counterfactual)" not in people
    assert "woman (counterfactual)" not in people


def test_an_attribute_with_the_name_of_a_finding_takes_another(audit: mm.Audit) -> None:
    table = audit.plan.population.frame().rename(columns={"k": "verdict"})
    plan = audit.plan
    again = mm.audit(
        table,
        outcome="granted",
        negative=0,
        protected=plan.protections[0],
        attributes={"verdict": "continuous"},
        ks=(5,),
        id="who",
        uncertainty=mm.Uncertainty(refits=0),
    )
    people = again.people()
    assert set(people["verdict"]) <= {"no-evidence", "evidence", "significant", "insufficient"} | {
        "significant-adjusted"
    }
    assert set(people["attribute verdict"]) <= set(range(9))


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_every_format_has_the_same_values(audit: mm.Audit, tmp_path: Path, ending: str) -> None:
    if ending == "xlsx":
        pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")
    path = tmp_path / f"people.{ending}"
    audit.export(path, "cst_without", k=8)
    expected, found = audit.people("cst_without", k=8), read(path)
    assert found.columns.tolist() == expected.columns.tolist()
    assert found["id"].tolist() == expected["id"].tolist()
    for name in ("delta_p", "p_value", "salary", "salary (counterfactual)"):
        # Excel writes 15 or 16 digits
        rtol = 1e-14 if ending == "xlsx" else 0
        np.testing.assert_allclose(found[name], expected[name], rtol=rtol, atol=0)
    # a spreadsheet shows the text, and runs nothing
    quoted = f"'{FORMULA}" if ending == "csv" else FORMULA
    assert set(found["job"]) == {"clerk", quoted}


def test_excel_holds_text_and_no_formula(audit: mm.Audit, tmp_path: Path) -> None:
    openpyxl: Any = pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")
    audit.export(tmp_path / "people.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "people.xlsx").active
    assert {cell.data_type for row in sheet.iter_rows() for cell in row} <= {
        *("s", "inlineStr"),
        *("n", "b"),
    }


def test_other_formats_are_refused(audit: mm.Audit, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"one of \.csv, \.parquet, \.xlsx"):
        audit.export(tmp_path / "people.ods")
    assert not list(tmp_path.iterdir())


def test_from_the_command_line(audit: mm.Audit, tmp_path: Path) -> None:
    audit.save(tmp_path / "results")
    result = CliRunner().invoke(
        app, ["export", str(tmp_path / "results"), str(tmp_path / "people.csv"), "--k", "8"]
    )
    assert result.exit_code == 0, result.exception
    assert "k = 8" in result.output
    assert "personal data" in result.output
    assert read(tmp_path / "people.csv")["id"].tolist() == audit.people(k=8)["id"].tolist()


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_counts_in_every_format(audit: mm.Audit, tmp_path: Path, ending: str) -> None:
    if ending == "xlsx":
        pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")
    path = tmp_path / f"counts.{ending}"
    audit.export(path, table="counts")
    expected = audit.counts()
    found = read(path)
    assert found.columns.tolist() == expected.columns.tolist()
    # Excel writes 15 or 16 digits
    rtol = 1e-14 if ending == "xlsx" else 0
    pd.testing.assert_frame_equal(found.astype(expected.dtypes), expected, rtol=rtol, atol=0)


def test_counts_have_no_method_of_their_own(audit: mm.Audit, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="all methods and group sizes"):
        audit.export(tmp_path / "counts.csv", k=8, table="counts")
    with pytest.raises(PlanError, match="Allowed: people, counts"):
        audit.export(tmp_path / "counts.csv", table="findings")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_csv_needs_no_optional_package(
    audit: mm.Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("openpyxl", "pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    audit.export(tmp_path / "people.csv")
    audit.export(tmp_path / "counts.csv", table="counts")
    assert len((tmp_path / "people.csv").read_text("utf-8").splitlines()) == 1 + len(audit.people())
