"""The generated loan scenario: the paper's equations, and a seed."""

from __future__ import annotations

import numpy as np
import pytest

import mutandis as mm
from mutandis.errors import PlanError
from tests.tables import LOAN


def test_columns_and_size() -> None:
    table = mm.datasets.loan()
    assert table.columns.tolist() == [
        "LoanApproval",
        "AnnualSalary",
        "AccountBalance",
        "u1",
        "u2",
        "Gender",
    ]
    # some rows have a negative salary or balance and are dropped, as the publication did
    assert 4_950 < len(table) < 5_000
    assert table.index.tolist() == list(range(len(table)))
    assert (table[["AnnualSalary", "AccountBalance"]] >= 0).all(axis=None)


def test_the_equations_hold_row_by_row() -> None:
    table = mm.datasets.loan(seed=3)
    men, women = table[table["Gender"] == 0], table[table["Gender"] == 1]
    assert men["AnnualSalary"].tolist() == men["u1"].tolist()
    balance = 0.3 * men["AnnualSalary"] + men["u2"]
    assert men["AccountBalance"].tolist() == pytest.approx(balance.tolist())
    # women lose -1500 Poi(10) of their salary and -300 χ²(4) of their balance
    lost = women["u1"] - women["AnnualSalary"]
    assert (lost % 1500 == 0).all()
    assert lost.mean() / 1500 == pytest.approx(10, rel=0.05)
    assert lost.var() / 1500**2 == pytest.approx(10, rel=0.1)
    lost = 0.3 * women["AnnualSalary"] + women["u2"] - women["AccountBalance"]
    assert (lost > 0).all()
    assert lost.mean() / 300 == pytest.approx(4, rel=0.05)
    assert lost.var() / 300**2 == pytest.approx(8, rel=0.15)
    # U1 ~ 10000 Poi(10), U2 ~ 2500 N(0, 1)
    assert (table["u1"] % 10_000 == 0).all()
    assert table["u1"].mean() / 10_000 == pytest.approx(10, rel=0.02)
    assert table["u2"].std() / 2_500 == pytest.approx(1, rel=0.05)
    granted = table["AnnualSalary"] + 5 * table["AccountBalance"] > 225_000
    assert table["LoanApproval"].tolist() == np.where(granted, 1, -1).tolist()


def test_a_seed_is_a_table() -> None:
    table = mm.datasets.loan(n=200, seed=11)
    assert mm.datasets.loan(n=200, seed=11).equals(table)
    assert mm.datasets.loan(n=200, seed=np.random.default_rng(11)).equals(table)
    assert not mm.datasets.loan(n=200, seed=12).equals(table)
    rng = np.random.default_rng(11)
    assert not mm.datasets.loan(n=200, seed=rng).equals(mm.datasets.loan(n=200, seed=rng))


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(PlanError, match=r"n=0 applications cannot be drawn\. Give a positive"):
        mm.datasets.loan(n=0)
    for share in (0, 1, -0.2):
        with pytest.raises(PlanError, match=r"protected_share=.* is outside \(0, 1\)"):
            mm.datasets.loan(protected_share=share)


def test_an_audit_of_generated_data_finds_the_built_in_discrimination() -> None:
    found = mm.audit(
        mm.datasets.loan(n=1500, seed=2),
        **LOAN,
        decision="AnnualSalary + 5 * AccountBalance > 225000",
        ks=(15,),
    )
    assert found.disagreement == 0.0
    cases = found.counts().set_index("method")["cases"]
    # all else equal hides what mutatis mutandis shows
    assert cases["cst_without"] > 5 * cases["st"]
    assert cases["cf"] > 0.15 * len(found.findings("cf", k=15))
