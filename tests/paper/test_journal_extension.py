"""The journal extension (JAIR 2025) under its preset, and what the page says about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.published.scenarios import SCENARIOS

if TYPE_CHECKING:
    import pandas as pd

LOAN, LAW = SCENARIOS[0], SCENARIOS[2]
KS = (15, 30, 50, 100, 250)
METHODS = ["st", "cst_without", "cst_with", "cf"]
PAGE = Path(__file__).parents[2] / "docs" / "multiple-and-intersectional.md"
QUIET = mm.Uncertainty(placebo=0)
BOTH = [
    mm.Protection("race_nonwhite", value="NonWhite", reference="White"),
    mm.Protection("sex", value="Female", reference="Male"),
]


def counts(found: mm.Audit) -> dict[str, tuple[list[int], list[int]]]:
    table = found.counts()
    return {
        name: (
            table.loc[table["method"] == name, "cases"].tolist(),
            table.loc[table["method"] == name, "significant"].tolist(),
        )
        for name in METHODS
        if (table["method"] == name).any()
    }


def on_page(title: str, method: str, cases: list[int], significant: list[int]) -> bool:
    cells = [f"{a} ({b})" for a, b in zip(cases, significant, strict=True)]
    return f"| {title} | {method} | {' | '.join(cells)} |" in PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def law(data_folder: Path) -> pd.DataFrame:
    table = LAW.read(data_folder)
    both = (table["race_nonwhite"] == "NonWhite") & (table["sex"] == "Female")
    return table.assign(status=np.where(both, "non-white woman", "other"))


def test_positive_discrimination_of_loans_is_the_printed_one(data_folder: Path) -> None:
    found = mm.audit(
        LOAN.read(data_folder),
        **{**LOAN.settings, "ks": KS, "methods": METHODS},
        preset="jair25",
        evidence=mm.Evidence(direction="positive"),
        uncertainty=QUIET,
    )
    cases, significant = counts(found)["st"]
    assert cases == [45, 50, 77, 118, 159]  # as printed in the journal
    assert on_page("loans, treated better", "ST", cases, significant)
    # the rule does not look at gender: nobody gains by it where all else follows
    assert counts(found)["cst_without"][0] == [0] * 5
    assert counts(found)["cf"][0] == [0] * 5


@pytest.mark.slow
def test_negative_discrimination_is_that_of_the_first_publication(data_folder: Path) -> None:
    table = LOAN.read(data_folder)
    settings = {**LOAN.settings, "ks": KS, "methods": METHODS}
    here, there = (
        mm.audit(table, **settings, preset=preset, uncertainty=QUIET)
        for preset in ("jair25", "eaamo23")
    )
    assert here.counts().equals(there.counts())
    assert counts(here)["st"][0] == [55, 65, 84, 107, 204]
    assert counts(here)["cst_without"][0] == [288, 313, 342, 395, 534]


def test_intersectional_with_a_single_regressor(law: pd.DataFrame) -> None:
    """The status of the intersection is the only cause of both scores."""
    settings: dict[str, Any] = {
        **LAW.settings,
        "ks": KS,
        "methods": METHODS,
        "protected": mm.Protection("status", value="non-white woman", reference="other"),
        "worldview": mm.Worldview(
            {
                "LSAT": mm.Linear("status", decimals=3, bounds=(10, 48)),
                "UGPA": mm.Linear("status", decimals=3, bounds=(0, 4)),
            }
        ),
    }
    found = counts(mm.audit(law, **settings, preset="jair25", uncertainty=QUIET))
    assert found["cf"][0] == [113] * 5  # as printed in the journal
    for name, title in (("st", "ST"), ("cst_without", "CST (w/o)"), ("cst_with", "CST (w/)")):
        assert on_page("intersection, one regressor", title, *found[name])


@pytest.mark.slow
def test_multiple_is_tested_at_half_the_level(law: pd.DataFrame) -> None:
    settings: dict[str, Any] = {
        **LAW.settings,
        "ks": KS,
        "methods": METHODS,
        "protected": BOTH,
        "combine": "multiple",
    }
    found = mm.audit(law, **settings, preset="jair25", uncertainty=QUIET)
    assert [part.plan.settings.alpha for part in found.parts] == [0.025, 0.025]
    halved = mm.audit(law, **settings, alpha=0.025, preset="eaamo23", uncertainty=QUIET)
    assert counts(found) == counts(halved)
    for name, title in (("st", "ST"), ("cst_without", "CST (w/o)"), ("cst_with", "CST (w/)")):
        assert on_page("multiple, α/2", title, *counts(found)[name])
    # other levels are divided too
    looser = found.with_levels(alpha=0.1)
    assert [part.plan.settings.alpha for part in looser.parts] == [0.05, 0.05]
