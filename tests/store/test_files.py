"""Small files: CSV, tables for spreadsheets, findings; the same values in every format."""

from __future__ import annotations

import csv
import os
import sys
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.auditing.robustness import each_findings
from mutandis.cli.app import app
from mutandis.errors import OutputError, PlanError
from mutandis.store.files import compare_findings, write_atomically, write_csv, write_findings
from mutandis.verdicts.findings import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FORMULA = "=HYPERLINK(A1)"


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


# --- text and CSV ---------------------------------------------------------------------------------


def test_numbers_round_trip_and_missing_values_are_empty(tmp_path: Path) -> None:
    values = np.array([0.1 + 0.2, 1 / 3, -5e-324, 1.7976931348623157e308, np.nan])
    words = np.array([None, "no", "", "a\r\nb", 'c,"d'], dtype=object)
    write_csv(tmp_path / "t.csv", {"x": values, "n": np.arange(5) - 1, "y": words})
    head, *rows = rows_of(tmp_path / "t.csv")
    assert head == ["x", "n", "y"]
    assert [float(row[0]) for row in rows[:4]] == values[:4].tolist()
    assert [row[1] for row in rows] == ["-1", "0", "1", "2", "3"]
    assert [row[2] for row in rows] == ["", "no", "", "a\r\nb", 'c,"d']
    assert rows[4][0] == ""


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_text_that_a_spreadsheet_would_run_is_defused(tmp_path: Path, start: str) -> None:
    hostile = f"{start}cmd|' /C calc'!A0"
    write_csv(tmp_path / "t.csv", {hostile: np.array([hostile, "fine"], dtype=object)})
    assert rows_of(tmp_path / "t.csv") == [[f"'{hostile}"], [f"'{hostile}"], ["fine"]]


def test_a_file_is_written_whole_and_as_open_as_any_other(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "case.pdf", b"%PDF")
    finally:
        os.umask(before)
    assert (tmp_path / "case.pdf").stat().st_mode & 0o777 == 0o640
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("absent/case.pdf", "folder", "pipe"):
        with pytest.raises(OutputError, match="cannot be written"):
            write_atomically(tmp_path / name, "text")
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["case.pdf", "folder", "pipe"]


# --- tables for people ----------------------------------------------------------------------------


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
                "verdict": rng.integers(0, 9, 120),
                "granted": (salary + rng.random(120) > 21).astype(int),
            }
        ),
        outcome="granted",
        negative=0,
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous", "job": "nominal", "verdict": "continuous"},
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


def test_people_have_findings_and_attributes(audit: mm.Audit) -> None:
    people, findings = audit.people(), audit.findings()
    assert people[findings.columns.tolist()].equals(findings)
    table = audit.plan.population.frame().set_index("who").loc[people["id"]]
    assert people["salary"].tolist() == table["salary"].tolist()
    # the name of a finding is taken
    assert people["attribute verdict"].tolist() == table["verdict"].tolist()
    would_be = audit.counterfactuals().set_index("who").loc[people["id"]]
    assert people["salary (counterfactual)"].tolist() == would_be["salary"].tolist()
    # what does not move would say nothing
    assert not {"job (counterfactual)", "woman (counterfactual)"} & set(people)


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_every_format_has_the_same_values(audit: mm.Audit, tmp_path: Path, ending: str) -> None:
    if ending == "xlsx":
        pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")
    # Excel writes 15 or 16 digits
    rtol = 1e-14 if ending == "xlsx" else 0
    path = tmp_path / f"people.{ending}"
    audit.export(path, "cst_without", k=8)
    expected, found = audit.people("cst_without", k=8), read(path)
    assert found.columns.tolist() == expected.columns.tolist()
    assert found["id"].tolist() == expected["id"].tolist()
    for name in ("delta_p", "p_value", "salary", "salary (counterfactual)"):
        np.testing.assert_allclose(found[name], expected[name], rtol=rtol, atol=0)
    # a spreadsheet shows the text, and runs nothing
    assert set(found["job"]) == {"clerk", f"'{FORMULA}" if ending == "csv" else FORMULA}


def test_excel_holds_text_and_no_formula(audit: mm.Audit, tmp_path: Path) -> None:
    openpyxl: Any = pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")
    audit.export(tmp_path / "people.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "people.xlsx").active
    kinds = {cell.data_type for row in sheet.iter_rows() for cell in row}
    assert kinds <= {"s", "inlineStr", "n", "b"}


def test_exports_that_are_refused(audit: mm.Audit, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"one of \.csv, \.parquet, \.xlsx"):
        audit.export(tmp_path / "people.ods")
    assert not list(tmp_path.iterdir())


def test_csv_from_the_command_line_needs_no_optional_package(
    audit: mm.Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit.save(tmp_path / "results")
    arguments = ["export", str(tmp_path / "results"), str(tmp_path / "people.csv"), "--k", "8"]
    with monkeypatch.context() as without:
        for name in ("openpyxl", "pyarrow", "polars"):
            without.setitem(sys.modules, name, None)
        result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.exception
    assert "k = 8" in result.output
    assert "personal data" in result.output
    assert read(tmp_path / "people.csv")["id"].tolist() == audit.people(k=8)["id"].tolist()


# --- findings -------------------------------------------------------------------------------------


def two_women(outcomes: Sequence[Any], ids: Sequence[Any] | None = None, **more: Any) -> mm.Audit:
    table: dict[str, Any] = {
        "woman": [1, 1, 0, 0, 0, 0],
        "salary": [10.0, 11.0, 10.0, 11.0, 15.0, 16.0],
        "granted": [outcomes[0]] * 4 + [outcomes[1]] * 2,
    }
    if ids is not None:
        table["who"] = ids
        more["id"] = "who"
    return mm.audit(
        table,
        outcome="granted",
        negative=outcomes[0],
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous"},
        counterfactuals={"salary": [15.0, 16.0, 10.0, 11.0, 15.0, 16.0]},
        decision="salary > 12",
        ks=(1,),
        **more,
    )


def written(found: mm.Audit, folder: Path) -> duckdb.DuckDBPyRelation:
    write_findings(folder / "findings.parquet", each_findings(found))
    assert [path.name for path in folder.iterdir()] == ["findings.parquet"]
    return duckdb.read_parquet(str(folder / "findings.parquet"))


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        (("no", "yes"), "VARCHAR"),
        ((0, 1), "BIGINT"),
        ((False, True), "BOOLEAN"),
        ((0.5, 1.5), "DOUBLE"),
    ],
)
def test_outcomes_keep_their_type(tmp_path: Path, outcomes: tuple[Any, Any], kind: str) -> None:
    table = written(two_women(outcomes), tmp_path)
    kinds = dict(zip(table.columns, map(str, table.types), strict=True))
    assert (kinds["outcome"], kinds["outcome_cf"]) == (kind, kind)
    assert (kinds["method"], kinds["k"], kinds["own_case"]) == ("VARCHAR", "BIGINT", "BOOLEAN")
    rows = table.filter("method = 'cst_without'").project("outcome, outcome_cf").fetchall()
    assert rows == [outcomes, outcomes]


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([7, 8, 9, 10, 11, 12], "BIGINT"),
        (["=a", "b", "c", "d", "e", "f"], "VARCHAR"),
        ([0.5, 1.5, 2.5, 3.5, 4.5, 5.5], "DOUBLE"),
        (list(pd.date_range("2020-01-01", periods=6)), "VARCHAR"),
    ],
)
def test_ids_keep_their_type(tmp_path: Path, ids: list[Any], kind: str) -> None:
    table = written(two_women(("no", "yes"), ids), tmp_path)
    assert str(table.types[2]) == kind
    [(first,)] = table.filter("method = 'st'").project("id").limit(1).fetchall()
    assert str(first) == str(np.array(ids)[0]) or first == ids[0]


def test_findings_are_complete_and_the_same_bytes(tmp_path: Path) -> None:
    found = two_women(("no", "yes"))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        table = written(found, tmp_path / name)
    paths = [tmp_path / name / "findings.parquet" for name in ("a", "b")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert compare_findings(*paths) == {}
    assert table.columns == ["method", "k", *COLUMNS, "tipping", "grade", "robustness"]
    rows = table.project("method, k, id, delta_p, ci_low").order("method, id").fetchall()
    shares = {"cf": 1.0, "cst_matched": 0.5, "cst_with": 1.0, "cst_without": 1.0, "st": 0.0}
    assert [row[:4] for row in rows] == [(m, 1, i, d) for m, d in shares.items() for i in (0, 1)]
    # CF counts no neighbours; the four men are too far from the men whom the women would have been
    assert [row[4] is None for row in rows] == [True] * 4 + [False] * 6


def test_differences_are_counted_to_the_last_bit(tmp_path: Path) -> None:
    written(two_women(("no", "yes"), methods=["st", "cst_without", "cst_with", "cf"]), tmp_path)
    first, second = tmp_path / "findings.parquet", tmp_path / "other.parquet"
    table = duckdb.read_parquet(str(first)).df()
    table["p_control"] = -0.0 * (table["p_control"] + 1)
    table.loc[0, "radius_test"] = np.nextafter(table.loc[0, "radius_test"], 1)
    table.loc[1, "verdict"] = None
    duckdb.from_df(table).write_parquet(str(second))
    assert compare_findings(first, second) == {"p_control": 8, "radius_test": 1, "verdict": 1}
    duckdb.from_df(table.head(7)).write_parquet(str(second))
    assert compare_findings(first, second) == {"the number of rows or columns": 1}
