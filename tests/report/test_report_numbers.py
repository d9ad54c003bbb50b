"""Every number of a report comes from the findings: its tables are read back and compared."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm
from tests.report.pages import Page, number
from tests.tables import LOAN

if TYPE_CHECKING:
    import pandas as pd

TITLES = {
    "st": "ST",
    "cst_without": "CST (w/o)",
    "cst_with": "CST (w/)",
    "cf": "CF",
    "cst_matched": "CST (matched)",
}


def shows(text: str, value: float, *, digits: int) -> bool:
    """Tell whether a text is this value, rounded for show."""
    return bool(abs(number(text) - value) <= 0.5 * 10**-digits + 1e-12)


@cache
def loan_audit() -> mm.Audit:
    return mm.audit(
        mm.datasets.loan(n=1490, seed=1),
        **LOAN,
        decision="AnnualSalary + 5 * AccountBalance > 225000",
        ks=(15, 30),
        uncertainty=mm.Uncertainty(refits=3),
    )


@cache
def loan_page() -> str:
    return loan_audit().report().html


def answers(audit: mm.Audit, method: str, k: int | None = None) -> pd.DataFrame:
    """Give the findings about those who could be compared."""
    found: pd.DataFrame = audit.findings(method, k=k)
    return found.loc[found["verdict"] != "insufficient"]


def check_counts(audit: mm.Audit, page: str) -> None:
    rows = Page(page).tables["counts"][1:]
    counts = audit.counts().to_dict("records")
    assert len(rows) == len(counts) == len(audit.methods) * len(audit.ks)
    for cells, row in zip(rows, counts, strict=True):
        findings = answers(audit, row["method"], row["k"])
        assert cells[0] == TITLES[row["method"]]
        assert [number(cells[place]) for place in (1, 6, 8)] == [
            row["k"],
            row["cases"],
            row["cases_refused"],
        ]
        assert shows(cells[7], row["share"], digits=3)
        assert shows(cells[9], findings["delta_p"].mean(), digits=3)
        if row["method"] == "cf":
            assert cells[2:6] == ["–"] * 4
        else:
            assert number(cells[2]) == row["significant_adjusted"]
            assert shows(cells[3], row["significant_adjusted"] / row["complainants"], digits=3)
            assert number(cells[4]) == row["significant"]
            assert shows(cells[5], row["significant_share"], digits=3)


def check_people(audit: mm.Audit, page: str) -> None:
    found = audit.findings().set_index("id")
    rows = Page(page).tables["people-table"][1:]
    strongest = found[found["verdict"] == "significant-adjusted"]
    refused = strongest["outcome"] == audit.plan.outcome.kind.negative
    own = audit.findings("cst_matched").set_index("id")["own_case"].astype(bool)[strongest.index]
    # the rule once more: largest first, of equal ones the smaller id
    ranked = strongest.sort_index().sort_values("delta_p", ascending=False, kind="stable")
    assert [int(cells[0]) for cells in rows] == ranked.index.tolist()[:20]
    for cells in rows:
        who = int(cells[0])
        row = found.loc[who]
        assert cells[1] == row["verdict"]
        answer = f"own case: {'yes' if own[who] else 'no'}"
        assert cells[2] == f"{answer} {'refused' if refused[who] else 'granted'}"
        assert cells[9] == f"{row['outcome']} → {row['outcome_cf']}"
        assert shows(cells[3], row["p_control"], digits=3)
        assert shows(cells[4], row["p_test"], digits=3)
        assert shows(cells[5], row["delta_p"], digits=3)
        low, high = cells[6].split(" to ")
        assert shows(low, row["ci_low"], digits=3)
        assert shows(high, row["ci_high"], digits=3)


CHECKS = (check_counts, check_people)


@pytest.mark.parametrize("check", CHECKS)
def test_the_loan_reports_tables_are_the_findings(check: Any) -> None:
    check(loan_audit(), loan_page())


def test_rates_are_those_of_the_table_and_of_its_counterfactuals() -> None:
    audit, table = loan_audit(), mm.datasets.loan(n=1490, seed=1)
    refused, women = table["LoanApproval"] == -1, table["Gender"] == 1
    would_be = audit.counterfactuals()["LoanApproval"] == -1
    rows = Page(loan_page()).tables["rates"][1:]
    for cells, people in zip(rows, (women, ~women, women | ~women), strict=True):
        assert number(cells[1]) == people.sum()
        assert shows(cells[2], refused[people].mean(), digits=3)
        assert shows(cells[3], would_be[people].mean(), digits=3)
    changed = (refused & women & ~would_be).sum()
    assert f"{changed:,} of the {(refused & women).sum():,}" in loan_page()


def test_attributes_are_described_by_their_means_in_both_worlds() -> None:
    table, would_be = mm.datasets.loan(n=1490, seed=1), loan_audit().counterfactuals()
    women = table["Gender"] == 1
    rows = Page(loan_page()).tables["attributes"][1:]
    for (name, *cells), column in zip(rows, ("AnnualSalary", "AccountBalance"), strict=True):
        assert name == column
        means = [table[column][women], would_be[column][women], table[column][~women]]
        assert [number(cell.removeprefix("mean ")) for cell in cells] == [
            pytest.approx(each.mean(), abs=0.5) for each in means
        ]


def test_the_headline_is_the_primary_row_of_the_counts() -> None:
    audit, page = loan_audit(), loan_page()
    counts = audit.counts()
    row = counts[(counts["method"] == "cst_matched") & (counts["k"] == 30)].iloc[0]
    figures = page.split('<ul class="figures">')[1].split("</ul>")[0]
    told = [part.split("</strong>")[0] for part in figures.split("<strong>")[1:]]
    found = audit.findings()
    own = found["own_case"].astype(bool) & (found["verdict"] == "significant-adjusted")
    assert 0 < own.sum() < row["significant_adjusted"]
    assert told == [
        f"{row['complainants']:,}",
        f"{row['significant_adjusted']:,}",
        f"{own.sum():,}",
    ]
    table = {tuple(cells[:2]): cells for cells in Page(page).tables["counts"][1:]}
    primary = table["CST (matched)", "30"]
    assert [number(primary[place]) for place in (2, 4, 6)] == [
        row[name] for name in ("significant_adjusted", "significant", "cases")
    ]


def test_b_beside_the_record_is_counted_anew() -> None:
    table = mm.datasets.loan(n=600, seed=2)
    # a decision maker who is stricter than the one on record
    audit = mm.audit(
        table,
        **LOAN,
        decision="AnnualSalary + 5 * AccountBalance > 250000",
        uncertainty=mm.Uncertainty(refits=0),
        ks=(5,),
    )
    page = audit.report().html
    decided = table["AnnualSalary"] + 5 * table["AccountBalance"] > 250000
    rows = Page(page).tables["record"][1:]
    for cells, recorded in zip(rows, (-1, 1), strict=True):
        mine = table["LoanApproval"] == recorded
        assert cells[0] == f"LoanApproval = {recorded}"
        assert [number(cell) for cell in cells[1:]] == [
            (mine & ~decided).sum(),
            (mine & decided).sum(),
            mine.sum(),
        ]
    same = (decided == (table["LoanApproval"] == 1)).sum()
    assert 0 < same < len(table)
    assert f"in {same:,} of {len(table):,} rows" in page


def test_verdicts_are_counted_that_fall_under_more_than_a_tenth_of_refits() -> None:
    audit = mm.audit(
        mm.datasets.loan(n=800, seed=1),
        **LOAN,
        decision="AnnualSalary + 5 * AccountBalance > 225000",
        uncertainty=mm.Uncertainty(refits=20),
        seed=1,
        methods=["cst_without"],
        ks=(10,),
    )
    found = audit.findings()
    # 18 of 20 are exactly the border
    assert {1.0, 0.9, 0.85} <= set(found["verdict_share"])
    rows = Page(audit.report().html).tables["doubt"][1:]
    numbers = [int(cell) for cells in rows for cell in cells[1:]]
    expected = []
    for verdict in ("significant-adjusted", "significant", "evidence"):
        shares = found.loc[found["verdict"] == verdict, "verdict_share"]
        expected += [len(shares), int((shares < 0.9).sum())]
    assert numbers == expected
    assert expected[1] > 0


@pytest.mark.slow
def test_the_same_audit_gives_the_same_page_whatever_the_order_of_rows() -> None:
    table = mm.datasets.loan(n=400, seed=3)
    table["who"] = [f"person-{place:03d}" for place in range(len(table))]

    def page(rows: pd.DataFrame) -> str:
        audit = mm.audit(
            rows,
            id="who",
            **LOAN,
            decision="AnnualSalary + 5 * AccountBalance > 225000",
            ks=(5, 10),
        )
        return audit.report().html.replace(audit.provenance.data["sha256"], "")

    assert page(table) == page(table)
    assert page(table) == page(table.sample(frac=1, random_state=0))
