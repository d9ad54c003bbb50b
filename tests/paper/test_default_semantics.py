"""The paper's data under the definitions read correctly, against plain implementations of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

import mutandis as mm
from mutandis.replication.eaamo import RUNS

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from mutandis.config.schema import MethodName

KS = (15, 30, 50, 100)
METHODS: tuple[MethodName, ...] = ("st", "cst_without", "cst_with", "cf")
LOAN, LAW_RACE, _ = RUNS
Shares = dict[tuple[str, int], tuple[Fraction, Fraction]]


# --- loan: truly continuous --------------------------------------------------------------------


@dataclass(frozen=True)
class LoanRun:
    table: pd.DataFrame
    counterfactuals: pd.DataFrame
    audit: mm.Audit


@pytest.fixture(scope="module")
def loan(data_folder: Path) -> LoanRun:
    table, published = LOAN.read(data_folder), LOAN.read_counterfactuals(data_folder)
    settings = {name: value for name, value in LOAN.settings.items() if name != "worldview"}
    found = mm.audit(table, **settings, counterfactuals=published, methods=METHODS)
    return LoanRun(table, published, found)


def test_counts_on_the_published_loan_counterfactuals(loan: LoanRun) -> None:
    counts = loan.audit.counts()
    found = {name: rows["cases"].tolist() for name, rows in counts.groupby("method")}
    assert found == {
        "st": [54, 65, 79, 102],
        "cst_without": [431, 454, 482, 537],
        "cst_with": [438, 459, 485, 537],
        "cf": [376, 376, 376, 376],
    }


@pytest.mark.slow
def test_every_loan_share_equals_that_of_a_plain_sort(loan: LoanRun) -> None:
    """Balances never tie but for rows that are equal, so sorting floats tells who is nearest."""
    names = list(LOAN.settings["attributes"])
    facts, others = loan.table[names].to_numpy(), loan.counterfactuals[names].to_numpy()
    # each column's range is taken over all of D, once, and serves the counterfactuals too
    width = facts.max(axis=0) - facts.min(axis=0)
    facts, others = facts / width, others / width
    female = loan.table["Gender"].to_numpy() == 1
    women, men = np.flatnonzero(female), np.flatnonzero(~female)
    refused = loan.table["LoanApproval"].to_numpy() == -1
    refused_cf = loan.counterfactuals["LoanApproval"].to_numpy() == -1

    def shares(center: NDArray[np.float64], among: NDArray[np.intp]) -> list[Fraction]:
        distance = np.abs(facts[among] - center).sum(axis=1)
        nearest = np.sort(distance)
        found = []
        for k in KS:
            radius = nearest[k - 1]
            inside, rim = distance < radius - 1e-12, np.abs(distance - radius) <= 1e-12
            left = k - int(inside.sum())
            fair = Fraction(left * int(refused[among[rim]].sum()), int(rim.sum()))
            found.append((int(refused[among[inside]].sum()) + fair) / k)
        return found

    expected: dict[int, Shares] = {}
    for row in women.tolist():
        mine = expected.setdefault(row, {})
        controls = shares(facts[row], women[women != row])
        tests = shares(facts[row], men), shares(others[row], men)
        for k, control, around, around_cf in zip(KS, controls, *tests, strict=True):
            mine["st", k] = control, around
            mine["cst_without", k] = control, around_cf
            mine["cst_with", k] = (
                (control * k + int(refused[row])) / (k + 1),
                (around_cf * k + int(refused_cf[row])) / (k + 1),
            )
    assert_equal(loan.audit, expected)


# --- law school: decimal, ties everywhere ------------------------------------------------------


@dataclass(frozen=True)
class LawRun:
    table: pd.DataFrame
    audit: mm.Audit


@pytest.fixture(scope="module")
def law(data_folder: Path) -> LawRun:
    table = LAW_RACE.read(data_folder)
    return LawRun(table, mm.audit(table, **LAW_RACE.settings))


def thousandths(column: pd.Series[float]) -> NDArray[np.int64]:
    """Read a column of numbers with at most three decimals as the integers they are."""
    values = column.to_numpy()
    whole = np.rint(1000 * values).astype(np.int64)
    assert (whole / 1000 == values).all()
    return whole


@pytest.mark.slow
def test_every_law_school_share_is_exact(law: LawRun) -> None:
    """With ranges 37 and 4.2, 3 · 37 · 4.2 times the distance is a whole number of millionths."""
    would_be = law.audit.counterfactuals()
    score, grade = thousandths(law.table["LSAT"]), thousandths(law.table["UGPA"])
    score_cf, grade_cf = thousandths(would_be["LSAT"]), thousandths(would_be["UGPA"])
    assert int(np.ptp(score)) == 37_000
    assert int(np.ptp(grade)) == 4_200
    sex = (law.table["sex"] == "Female").to_numpy()
    refused = law.table["admitted"].to_numpy() == 0
    refused_cf = 0.6 * would_be["UGPA"].to_numpy() + 0.4 * would_be["LSAT"].to_numpy() < 20.8
    nonwhite = (law.table["race_nonwhite"] == "NonWhite").to_numpy()
    protected, reference = np.flatnonzero(nonwhite), np.flatnonzero(~nonwhite)

    def shares(center: tuple[bool, int, int], among: NDArray[np.intp]) -> list[Fraction]:
        distance = 37_000 * 4_200 * (sex[among] != center[0])
        distance += 4_200 * np.abs(score[among] - center[1])
        distance += 37_000 * np.abs(grade[among] - center[2])
        ordered = np.sort(distance)
        found = []
        for k in KS:
            inside, rim = distance < ordered[k - 1], distance == ordered[k - 1]
            fair = Fraction(k - int(inside.sum()), int(rim.sum())) * int(refused[among[rim]].sum())
            found.append((int(refused[among[inside]].sum()) + fair) / k)
        return found

    expected: dict[int, Shares] = {}
    split = 0
    for row in protected.tolist():
        here = (bool(sex[row]), int(score[row]), int(grade[row]))
        there = (bool(sex[row]), int(score_cf[row]), int(grade_cf[row]))
        controls = shares(here, protected[protected != row])
        mine = expected.setdefault(row, {})
        tests, tests_cf = shares(here, reference), shares(there, reference)
        for k, control, test, test_cf in zip(KS, controls, tests, tests_cf, strict=True):
            split += test.denominator > k
            mine["st", k] = control, test
            mine["cst_without", k] = control, test_cf
            mine["cst_with", k] = (
                (control * k + int(refused[row])) / (k + 1),
                (test_cf * k + int(refused_cf[row])) / (k + 1),
            )
    assert split > 50  # places really are shared here
    assert_equal(law.audit, expected)


def test_shuffled_law_school_rows_give_the_same_findings(law: LawRun) -> None:
    """The published groups do not survive this: their ties are broken by row number."""
    order = np.random.default_rng(7).permutation(len(law.table))
    shuffled = law.table.assign(row=np.arange(len(law.table))).iloc[order]
    again = mm.audit(shuffled, **LAW_RACE.settings, id="row")
    for method in again.methods:
        for k in (15, 100):
            found = again.findings(method, k=k).sort_values("id", ignore_index=True)
            assert found.equals(law.audit.findings(method, k=k)), (method, k)


def assert_equal(audit: mm.Audit, expected: dict[int, Shares]) -> None:
    """Compare floats of exact fractions: each is the nearest float to the same number."""
    rows = sorted(expected)
    for method, k in expected[rows[0]]:
        found = audit.findings(method, k=k).set_index("id").loc[rows]
        controls, tests = zip(*(expected[row][method, k] for row in rows), strict=True)
        assert found["p_control"].tolist() == [float(share) for share in controls], (method, k)
        assert found["p_test"].tolist() == [float(share) for share in tests], (method, k)
        differences = [c - t for c, t in zip(controls, tests, strict=True)]
        assert found["delta_p"].tolist() == [float(share) for share in differences], (method, k)
        evidence = (found["verdict"] != "no-evidence").tolist()
        assert evidence == [share > 0 for share in differences], (method, k)
