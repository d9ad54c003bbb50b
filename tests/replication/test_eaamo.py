"""The publication's quirks, one by one, on tables that can be followed by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.errors import InputError
from mutandis.replication.eaamo import (
    INTERSECTION,
    RUNS,
    Equation,
    Run,
    compare,
    compare_shares,
    find_counterfactuals,
)

if TYPE_CHECKING:
    from pathlib import Path

SMALL = Run(
    key="small",
    title="Seven people",
    file="",
    counterfactual_file="",
    outcome="ok",
    negative=0,
    protected="woman",
    value=1,
    reference=0,
    equations={"x": Equation(parents=("woman",), decimals=6)},
    rule="x > 5",
)
# four women alike, two men like them behind them in the file, and one man apart
ALIKE = pd.DataFrame(
    {
        "woman": [1, 1, 1, 1, 0, 0, 0],
        "x": [5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 9.0],
        "ok": [0, 1, 0, 1, 0, 0, 1],
    }
)


# --- groups ------------------------------------------------------------------------------------


def test_of_equal_rows_the_later_one_is_taken() -> None:
    found = compare(SMALL, ALIKE, ks=(1,))["st", 1].set_index("id")
    # the two nearest of row 3 are 3 and 2; without the complainant that leaves 2, who was refused
    assert found.loc[[3], ["n_control", "p_control"]].to_numpy().tolist() == [[1, 1]]
    # of the men at x = 5, row 5 is taken
    changed = ALIKE.assign(ok=[0, 1, 0, 1, 0, 1, 1])
    found = compare(SMALL, changed, ks=(1,))["st", 1].set_index("id")
    assert found.loc[3, "p_test"] == 0


def test_a_complainant_who_is_not_among_the_nearest_keeps_one_too_many() -> None:
    found = compare(SMALL, ALIKE, ks=(1,))["st", 1]
    # for rows 0 and 1 the two nearest are 3 and 2
    assert found["n_control"].tolist() == [2, 2, 1, 1]
    assert found["p_control"].tolist() == [0.5, 0.5, 0, 1]
    assert found["n_test"].tolist() == [1, 1, 1, 1]
    # with centers, nobody is removed
    assert compare(SMALL, ALIKE, ks=(1,))["cst_with", 1]["n_control"].tolist() == [2, 2, 2, 2]


def unmoved(run: Run, rule: str) -> Run:
    """Leave everybody where they are: the counterfactual is the fact, decided by another rule."""
    return replace(run, equations={"x": Equation(parents=(), decimals=6)}, rule=rule)


def test_a_counterfactual_competes_for_its_place() -> None:
    found = compare(unmoved(SMALL, "x > 0"), ALIKE, ks=(1, 2))
    # under its own row number it comes after both men at its point: no place among k + 1 = 2
    crowded = found["cst_with", 1]
    assert crowded["p_test"].tolist() == [1, 1, 1, 1]
    assert crowded["n_test"].tolist() == [2, 2, 2, 2]
    # of three places it takes the third, and is favourable
    assert found["cst_with", 2]["p_test"].tolist() == [2 / 3] * 4


def test_a_counterfactual_with_a_larger_row_number_comes_first() -> None:
    backwards = ALIKE.iloc[::-1].reset_index(drop=True)
    found = compare(unmoved(SMALL, "x > 0"), backwards, ks=(1,))["cst_with", 1]
    assert found["id"].tolist() == [3, 4, 5, 6]
    assert found["p_test"].tolist() == [0.5] * 4


# --- scale -------------------------------------------------------------------------------------


def test_each_world_is_standardised_by_itself() -> None:
    table = pd.DataFrame(
        {"woman": [1, 1, 0, 0, 0], "x": [0.0, 2.0, 10.0, 11.4, 14.6], "ok": [0, 0, 0, 1, 1]}
    )
    assert find_counterfactuals(SMALL, table)["x"].tolist()[:2] == [11, 13]
    found = compare(SMALL, table, ks=(1,))["cst_without", 1].set_index("id")
    # 11 is nearest to 11.4; but it is 0.6 deviations below the mean of D^CF, as 10 is not in D
    assert found.loc[0, "p_test"] == 1


def test_a_name_that_differs_costs_one_standard_deviation() -> None:
    # x has mean 0 and standard deviation √½; rows 1 and 2 are at 1.5 √2 and 1 + √2 from row 0
    table = pd.DataFrame(
        {
            "woman": [1, 1, 1, 0, 0],
            "x": [-1.0, 0.5, 0.0, 1.0, -0.5],
            "job": ["cook", "cook", "clerk", "cook", "clerk"],
            "ok": [0, 1, 0, 1, 0],
        }
    )
    found = compare(replace(SMALL, nominal=("job",)), table, ks=(1,))["st", 1].set_index("id")
    assert found.loc[[0], ["p_control", "p_test"]].to_numpy().tolist() == [[0, 1]]
    # without the job, row 2 at √2 is nearer than row 1
    found = compare(SMALL, table, ks=(1,))["st", 1].set_index("id")
    assert found.loc[[0], ["p_control", "p_test"]].to_numpy().tolist() == [[1, 1]]


# --- evidence ----------------------------------------------------------------------------------


def decided(control: tuple[int, int], test: tuple[int, int], **options: Any) -> pd.Series[Any]:
    """Compare one pair of groups: how many were refused, of how many."""
    counts = [np.array([count]) for count in (*control, *test)]
    settings: dict[str, Any] = {"alpha": 0.05, "worse": 1, **options}
    return compare_shares(*counts, **settings).iloc[0]


def test_evidence_was_rounded_to_three_decimals() -> None:
    row = decided((5_004, 10_000), (5_000, 10_000))
    assert not row["case"]
    # what is shown is not rounded
    assert row["delta_p"] == pytest.approx(0.0004)
    assert decided((5_006, 10_000), (5_000, 10_000))["case"]


def test_z_was_1645_and_the_bound_was_rounded() -> None:
    error = (0.8125 * 0.1875 / 16) ** 0.5
    for alpha, z in ((0.05, 1.645), (0.025, 1.96)):
        row = decided((13, 16), (0, 16), alpha=alpha)
        assert row["ci_low"] == pytest.approx(0.8125 - z * error, abs=1e-14)
        assert row["ci_high"] == pytest.approx(0.8125 + z * error, abs=1e-14)
        assert row["significant"]
    # a lower bound of 0.0003 rounds to 0, which is not above 0
    row = decided((50_400, 100_000), (50_000, 100_000))
    assert 0 < row["ci_low"] < 0.0005
    assert row["case"]
    assert not row["significant"]


def test_better_treatment_is_looked_for_on_the_other_side() -> None:
    assert not decided((13, 16), (0, 16), worse=-1)["case"]
    row = decided((0, 16), (13, 16), worse=-1)
    assert row["case"]
    assert row["significant"]
    assert row["delta_p"] == -0.8125
    changed = ALIKE.assign(ok=1 - ALIKE["ok"])
    found = compare(SMALL, changed, ks=(1,), direction="positive")["st", 1]
    assert found["case"].tolist() == [False] * 4
    found = compare(SMALL, ALIKE, ks=(1,), direction="positive")["st", 1]
    assert found["case"].tolist() == [True, True, True, False]


# --- equations ---------------------------------------------------------------------------------


def test_scores_are_rounded_half_to_even_and_residuals_to_cents() -> None:
    table = pd.DataFrame(
        {
            "woman": [1, 1, 1, 0, 0, 0],
            "score": [30.5, 31.5, 34.0, 40.0, 41.5, 39.0],
            "salary": [10.006, 20.0, 30.0, 40.0, 50.0, 60.0],
        }
    )
    equations = {
        "score": Equation(parents=("woman",), decimals=9, factual_decimals=0),
        "salary": Equation(parents=("woman",), decimals=9, residual_decimals=2),
    }
    found = find_counterfactuals(replace(SMALL, equations=equations), table)
    # 30, 32, 34 have mean 32; 40, 42, 39 have mean 121/3
    means = 121 / 3 - 32
    expected = [30 + means, 32 + means, 34 + means, 40, 42, 39]
    assert found["score"].tolist() == pytest.approx(expected, abs=1e-8)
    # the women's mean is 20.002: residuals -9.996, -0.002, 9.998 become -10, 0, 10
    assert found["salary"].tolist() == pytest.approx([40, 50, 60, 40, 50, 60], abs=1e-8)
    assert set(found["woman"]) == {0}


def test_each_equation_reads_the_rounded_and_bounded_counterfactual() -> None:
    table = pd.DataFrame({"woman": [1, 1, 0, 0], "x": [1.0, 3.0, 4.0, 6.0]})
    table["y"] = 2 * table["x"]
    equations = {
        "x": Equation(parents=("woman",), decimals=0, bounds=(0, 5)),
        "y": Equation(parents=("x",), decimals=3),
    }
    found = find_counterfactuals(replace(SMALL, equations=equations), table)
    assert found["x"].tolist() == [4, 5, 4, 5]
    assert found["y"].tolist() == [8, 10, 8, 10]


# --- reading -----------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.key)
def test_absent_files_are_named(run: Run, tmp_path: Path) -> None:
    for read in (run.read, run.read_counterfactuals):
        with pytest.raises(InputError, match=r"The data folder has no file '\w+\.csv'\. Name the"):
            read(tmp_path)


def test_small_tables_are_read_as_published(tmp_path: Path) -> None:
    """Fields are separated by bars; the counterfactual law files name their rows, as R does."""
    (tmp_path / "loan_application.csv").write_text("LoanApproval|AnnualSalary\n-1.0|5.5\n")
    (tmp_path / "loan_application_do_male.csv").write_text("LoanApproval|AnnualSalary\n1.0|7.5\n")
    (tmp_path / "law_school.csv").write_text(
        "race_nonwhite|sex|LSAT|UGPA\nWhite|Male|48.0|2.7\nNonWhite|Female|47.0|3.0\n"
    )
    (tmp_path / "law_school_do_white.csv").write_text(
        '"Sex"|"scf_LSAT"|"scf_UGPA"\n"1"|"Male"|40.5|3.1\n"2"|"Female"|41.5|3.2\n'
    )
    loan, race, _ = RUNS
    assert loan.read(tmp_path).to_dict("list") == {"LoanApproval": [-1.0], "AnnualSalary": [5.5]}
    assert loan.read_counterfactuals(tmp_path)["AnnualSalary"].tolist() == [7.5]
    # 0.6 · 2.7 + 0.4 · 48 = 20.82 and 0.6 · 3 + 0.4 · 47 = 20.6, against 20.8
    assert race.read(tmp_path)["admitted"].tolist() == [1, 0]
    assert race.read_counterfactuals(tmp_path).to_dict("list") == {
        "LSAT": [40.5, 41.5],
        "UGPA": [3.1, 3.2],
        "sex": ["Male", "Female"],
    }
    assert INTERSECTION.read(tmp_path)["status"].tolist() == ["other", "non-white woman"]
