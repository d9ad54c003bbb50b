"""The paper's data under the definitions read correctly, against plain implementations of them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest

import mutandis as mm
from mutandis.replication.eaamo import RUNS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from mutandis.config.schema import MethodName

KS = (15, 30, 50, 100)
METHODS: tuple[MethodName, ...] = ("st", "cst_without", "cst_with", "cf")
LOAN, LAW_RACE, _ = RUNS
Rows: TypeAlias = "NDArray[np.intp]"
Run: TypeAlias = "tuple[pd.DataFrame, pd.DataFrame, mm.Audit]"


@pytest.fixture(scope="module")
def loan(data_folder: Path) -> Run:
    table, published = LOAN.read(data_folder), LOAN.read_counterfactuals(data_folder)
    settings = {name: value for name, value in LOAN.settings.items() if name != "worldview"}
    found = mm.audit(table, **settings, counterfactuals=published, methods=METHODS)
    return table, published, found


@pytest.fixture(scope="module")
def law(data_folder: Path) -> Run:
    table = LAW_RACE.read(data_folder)
    found = mm.audit(table, **LAW_RACE.settings)
    return table, found.counterfactuals(), found


def check_shares(
    audit: mm.Audit,
    distance: Callable[[int, Rows, bool], NDArray[Any]],
    *,
    is_protected: NDArray[np.bool_],
    refused: NDArray[np.bool_],
    refused_cf: NDArray[np.bool_],
    closest: float = 0.0,
) -> int:
    """Compare all shares with those of a plain sort, and count those with shared places.

    `distance` is that of a row, or of its counterfactual, to others; distances that differ by less
    than `closest` are equal.
    """
    protected, reference = np.flatnonzero(is_protected), np.flatnonzero(~is_protected)
    split = 0

    def shares(distance: NDArray[Any], among: Rows) -> list[Fraction]:
        ordered, found = np.sort(distance), []
        for k in KS:
            radius = ordered[k - 1]
            inside, rim = distance < radius - closest, np.abs(distance - radius) <= closest
            fair = Fraction(k - int(inside.sum()), int(rim.sum())) * int(refused[among[rim]].sum())
            found.append((int(refused[among[inside]].sum()) + fair) / k)
        return found

    expected: dict[tuple[str, int], list[tuple[Fraction, Fraction]]] = {}
    for row in protected.tolist():
        others = protected[protected != row]
        controls = shares(distance(row, others, False), others)
        tests, tests_cf = (shares(distance(row, reference, cf), reference) for cf in (False, True))
        for k, control, test, test_cf in zip(KS, controls, tests, tests_cf, strict=True):
            split += test.denominator > k
            own, own_cf = int(refused[row]), int(refused_cf[row])
            for method, pair in (
                ("st", (control, test)),
                ("cst_without", (control, test_cf)),
                ("cst_with", ((control * k + own) / (k + 1), (test_cf * k + own_cf) / (k + 1))),
            ):
                expected.setdefault((method, k), []).append(pair)
    for (method, k), pairs in expected.items():
        found = audit.findings(method, k=k).set_index("id").loc[protected]
        # floats of exact fractions: each is the nearest float to the same number
        assert found["p_control"].tolist() == [float(control) for control, _ in pairs], (method, k)
        assert found["p_test"].tolist() == [float(test) for _, test in pairs], (method, k)
        differences = [control - test for control, test in pairs]
        assert found["delta_p"].tolist() == [float(each) for each in differences], (method, k)
        evidence = (found["verdict"] != "no-evidence").tolist()
        assert evidence == [each > 0 for each in differences], (method, k)
    return split


def test_counts_on_the_published_loan_counterfactuals(loan: Run) -> None:
    found = {name: rows["cases"].tolist() for name, rows in loan[2].counts().groupby("method")}
    assert found == {
        "st": [54, 65, 79, 102],
        "cst_without": [431, 454, 482, 537],
        "cst_with": [438, 459, 485, 537],
        "cf": [376, 376, 376, 376],
    }


@pytest.mark.slow
def test_every_loan_share_equals_that_of_a_plain_sort(loan: Run) -> None:
    """Balances never tie but for rows that are equal, so sorting floats tells who is nearest."""
    table, would_be, audit = loan
    names = list(LOAN.settings["attributes"])
    facts, others = table[names].to_numpy(), would_be[names].to_numpy()
    # each column's range is taken over all of D, once, and serves the counterfactuals too
    width = facts.max(axis=0) - facts.min(axis=0)
    facts, others = facts / width, others / width
    check_shares(
        audit,
        lambda row, among, cf: np.abs(facts[among] - (others if cf else facts)[row]).sum(axis=1),
        is_protected=table["Gender"].to_numpy() == 1,
        refused=table["LoanApproval"].to_numpy() == -1,
        refused_cf=would_be["LoanApproval"].to_numpy() == -1,
        closest=1e-12,
    )


def thousandths(column: pd.Series[float]) -> NDArray[np.int64]:
    """Read a column of numbers with at most three decimals as the integers they are."""
    values = column.to_numpy()
    whole = np.rint(1000 * values).astype(np.int64)
    assert (whole / 1000 == values).all()
    return whole


@pytest.mark.slow
def test_every_law_school_share_is_exact(law: Run) -> None:
    """With ranges 37 and 4.2, 3 · 37 · 4.2 times the distance is a whole number of millionths."""
    table, would_be, audit = law
    facts, others = (
        (thousandths(each["LSAT"]), thousandths(each["UGPA"])) for each in (table, would_be)
    )
    assert [int(np.ptp(each)) for each in facts] == [37_000, 4_200]
    sex = (table["sex"] == "Female").to_numpy()

    def distance(row: int, among: Rows, cf: bool) -> NDArray[np.int64]:
        score, grade = others if cf else facts
        found: NDArray[np.int64] = 37_000 * 4_200 * (sex[among] != sex[row])
        found = found + 4_200 * np.abs(facts[0][among] - score[row])
        return np.asarray(found + 37_000 * np.abs(facts[1][among] - grade[row]))

    split = check_shares(
        audit,
        distance,
        is_protected=(table["race_nonwhite"] == "NonWhite").to_numpy(),
        refused=table["admitted"].to_numpy() == 0,
        refused_cf=(0.6 * would_be["UGPA"] + 0.4 * would_be["LSAT"] < 20.8).to_numpy(),
    )
    assert split > 50  # places really are shared here


def test_shuffled_law_school_rows_give_the_same_findings(law: Run) -> None:
    """The published groups do not survive this: their ties are broken by row number."""
    table, _, audit = law
    order = np.random.default_rng(7).permutation(len(table))
    shuffled = table.assign(row=np.arange(len(table))).iloc[order]
    again = mm.audit(shuffled, **LAW_RACE.settings, id="row")
    for method in again.methods:
        for k in (15, 100):
            found = again.findings(method, k=k).sort_values("id", ignore_index=True)
            assert found.equals(audit.findings(method, k=k)), (method, k)
