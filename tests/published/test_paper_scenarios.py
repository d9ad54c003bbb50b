"""The three runs of the paper: how they are read, and what is said if the data is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mutandis.errors import InputError
from mutandis.published.printed_tables import CASE_TABLES, COUNT_TABLES
from mutandis.published.scenarios import SCENARIOS

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.published.scenarios import Scenario


def test_runs_and_tables_belong_together() -> None:
    assert [scenario.key for scenario in SCENARIOS] == ["loan", "law_race", "law_gender"]
    assert [(t.number, t.scenario) for t in COUNT_TABLES] == [
        (1, "loan"),
        (4, "law_race"),
        (5, "law_gender"),
    ]
    assert [table.number for table in CASE_TABLES] == [2, 3]
    assert all(set(t.cells) == {"st", "cst_without", "cst_with", "cf"} for t in COUNT_TABLES)


def test_a_printed_row_is_read_with_its_asterisk() -> None:
    first, *_ = CASE_TABLES[0].cases
    assert (first.id, first.delta_p, first.significant) == (44, "1.00", True)
    third = CASE_TABLES[0].cases[2]
    assert (third.id, third.delta_p, third.ci_low, third.significant) == (
        150,
        "0.06",
        "-0.04",
        False,
    )


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.key)
def test_absent_files_are_named(scenario: Scenario, tmp_path: Path) -> None:
    for read in (scenario.read, scenario.read_counterfactuals):
        with pytest.raises(InputError, match=r"The data folder has no file '\w+\.csv'\. Name the"):
            read(tmp_path)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.key)
def test_a_small_table_is_read_as_published(scenario: Scenario, tmp_path: Path) -> None:
    """Fields are separated by bars; the counterfactual law files name their rows, as R does."""
    (tmp_path / "loan_application.csv").write_text("LoanApproval|AnnualSalary\n-1.0|5.5\n")
    (tmp_path / "loan_application_do_male.csv").write_text("LoanApproval|AnnualSalary\n1.0|7.5\n")
    (tmp_path / "law_school.csv").write_text(
        "race|sex|LSAT|UGPA\nWhite|Male|48.0|2.7\nBlack|Female|47.0|3.0\n"
    )
    for name in ("male", "white"):
        (tmp_path / f"law_school_do_{name}.csv").write_text(
            "Sex|scf_LSAT|scf_UGPA\n1|Male|40.5|3.1\n2|Female|41.5|3.2\n"
        )
    table = scenario.read(tmp_path)
    would_be = scenario.read_counterfactuals(tmp_path)
    if scenario.key == "loan":
        assert table.to_dict("list") == {"LoanApproval": [-1.0], "AnnualSalary": [5.5]}
        assert would_be.to_dict("list") == {"LoanApproval": [1.0], "AnnualSalary": [7.5]}
        return
    # 0.6 · 2.7 + 0.4 · 48 = 20.82 and 0.6 · 3 + 0.4 · 47 = 20.6, against 20.8
    assert table["admitted"].tolist() == [1, 0]
    assert would_be.to_dict("list") == {
        "LSAT": [40.5, 41.5],
        "UGPA": [3.1, 3.2],
        "sex": ["Male", "Female"],
    }
