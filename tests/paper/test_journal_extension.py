"""The journal extension (JAIR 2025), and what the page says about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mutandis.replication.eaamo import (
    EXTENDED_KS,
    INTERSECTION,
    KS,
    METHODS,
    RUNS,
    compare,
    compare_multiple,
)

if TYPE_CHECKING:
    from mutandis.replication.eaamo import Tests

LOAN, RACE, GENDER = RUNS
PAGE = Path(__file__).parents[2] / "docs" / "published-runs.md"
TITLES = {"st": "ST", "cst_without": "CST (w/o)", "cst_with": "CST (w/)"}


def cases(found: Tests, method: str, column: str = "case") -> list[int]:
    return [int(found[method, k][column].sum()) for k in EXTENDED_KS]


def on_page(title: str, found: Tests, method: str) -> bool:
    pairs = zip(cases(found, method), cases(found, method, "significant"), strict=True)
    cells = " | ".join(f"{a} ({b})" for a, b in pairs)
    return f"| {title} | {TITLES[method]} | {cells} |" in PAGE.read_text(encoding="utf-8")


def test_positive_discrimination_of_loans_is_the_printed_one(data_folder: Path) -> None:
    found = compare(LOAN, LOAN.read(data_folder), ks=EXTENDED_KS, direction="positive")
    assert cases(found, "st") == [45, 50, 77, 118, 159]  # as printed in the journal
    assert on_page("loans, treated better", found, "st")
    # the rule does not look at gender: nobody gains by it where all else follows
    assert cases(found, "cst_without") == cases(found, "cf") == [0] * 5


def test_negative_discrimination_is_that_of_the_first_publication(data_folder: Path) -> None:
    table = LOAN.read(data_folder)
    found, first = compare(LOAN, table, ks=EXTENDED_KS), compare(LOAN, table)
    for method in METHODS:
        for k in KS:
            assert found[method, k].equals(first[method, k])
    assert cases(found, "st") == [55, 65, 84, 107, 204]
    assert cases(found, "cst_without") == [288, 313, 342, 395, 534]


def test_intersectional_with_a_single_regressor(data_folder: Path) -> None:
    """The status of the intersection is the only cause of both scores."""
    found = compare(INTERSECTION, INTERSECTION.read(data_folder), ks=EXTENDED_KS)
    assert cases(found, "cf") == [113] * 5  # as printed in the journal
    assert all(on_page("intersection, one regressor", found, method) for method in TITLES)


def test_multiple_is_tested_at_half_the_level(data_folder: Path) -> None:
    table = RACE.read(data_folder)
    # both grounds are compared on the scores alone
    race = replace(RACE, nominal=())
    found = compare_multiple([race, GENDER], table, ks=EXTENDED_KS)
    assert all(on_page("multiple, α/2", found, method) for method in TITLES)
    halved = [compare(run, table, alpha=0.025) for run in (race, GENDER)]
    by_race, by_sex = (each["cst_without", 15].set_index("id")["significant"] for each in halved)
    both = by_race & by_sex.reindex(by_race.index, fill_value=False)
    assert cases(found, "cst_without", "significant")[0] == int(both.sum())
    assert set(found["st", 15]["id"]) == set(by_race.index) & set(by_sex.index)
