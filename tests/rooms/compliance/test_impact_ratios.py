"""Impact ratios of whole groups, by fractions and plain loops."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import PlanError
from mutandis.rooms.compliance import compute_impact_ratios, impact_ratios

if TYPE_CHECKING:
    from mutandis.rooms.compliance import ImpactRatio


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    n = 600
    sex = rng.choice(["F", "M"], n)
    race = rng.choice(["A", "B", "C", "?", "D"], n, p=[0.4, 0.3, 0.2, 0.09, 0.01])
    score = rng.normal(size=n).round(1) + (sex == "M") * 0.3
    return pd.DataFrame(
        {"sex": sex, "race": race, "score": score, "hired": np.where(score > 0.4, "yes", "no")}
    )


def run(table: pd.DataFrame, **options: Any) -> mm.Audit:
    return mm.audit(
        table,
        outcome="hired",
        negative="no",
        protected=mm.Protection("sex", value="F", reference="M"),
        attributes={"race": "nominal", "score": "continuous"},
        ks=(10,),
        **options,
    )


@pytest.fixture(scope="module")
def audit(table: pd.DataFrame) -> mm.Audit:
    return run(table)


def rows_of(audit: mm.Audit, **options: Any) -> dict[tuple[str, str], ImpactRatio]:
    arguments: dict[str, Any] = {
        "by": ["sex", "race"],
        "unknown": ["?"],
        "leave_out_below": 0.0,
        "score": None,
        **options,
    }
    return {(row.table, row.category): row for row in compute_impact_ratios(audit, **arguments)}


@pytest.mark.parametrize("scored", [False, True])
def test_against_plain_loops(audit: mm.Audit, table: pd.DataFrame, scored: bool) -> None:
    found = rows_of(audit, score="score" if scored else None)
    middle = sorted(table["score"])[299:301]
    median = sum(middle) / 2
    people = [
        (row.sex, row.race, row.score > median if scored else row.hired == "yes")
        for row in table.itertuples()
    ]
    for name, key in (
        ("sex", lambda p: p[0]),
        ("race", lambda p: p[1]),
        ("sex × race", lambda p: f"{p[0]} × {p[1]}"),
    ):
        known = [p for p in people if "?" not in key(p)]
        everyone, chosen = Counter(map(key, known)), Counter(key(p) for p in known if p[2])
        rates = {each: Fraction(chosen[each], n) for each, n in everyone.items()}
        best = max(rates.values())
        for each, n in everyone.items():
            row = found[name, each]
            assert (row.applicants, row.selected) == (n, chosen[each])
            assert row.impact_ratio == rates[each] / best
        unknown = len(people) - len(known)
        if unknown:
            assert found[name, "unknown"].applicants == unknown
            assert found[name, "unknown"].impact_ratio is None


def test_small_categories_are_left_out_and_counted(audit: mm.Audit) -> None:
    everyone, most = rows_of(audit), rows_of(audit, leave_out_below=0.02)
    small = most["race", "D"]
    assert small.applicants < 12  # of 600
    assert small.impact_ratio is None
    assert "left out of the impact ratios" in small.note
    assert small.rate == everyone["race", "D"].rate
    # who is left out is not the best group either
    ratios = [row.impact_ratio for row in most.values() if row.table == "race"]
    assert max(each for each in ratios if each is not None) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": ["gender"]}, "'gender' is no column of categories in this audit"),
        ({"by": ["score"]}, "'score' is no column of categories"),
        ({"by": "sex"}, r"by= takes a list, not a text. Write by=\['sex'\]"),
        ({"by": []}, "by= is empty"),
        ({"score": "race"}, "score='race' is no column of numbers"),
        ({"leave_out_below": 2}, r"leave_out_below=2 is outside \[0, 1\)"),
    ],
)
def test_what_cannot_be_counted_is_refused(
    audit: mm.Audit, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        rows_of(audit, **options)


def test_rows_that_were_dropped_are_counted(table: pd.DataFrame) -> None:
    holes = table.assign(race=table["race"].mask(table["race"] == "?")).sample(frac=1)
    frame = impact_ratios(run(holes, missing="drop"), by=["sex", "race"])
    assert set(frame["table"]) == {"sex", "race", "sex × race"}
    rows = frame.set_index(["table", "category"])
    assert rows.loc[("race", "missing"), "applicants"] == int((table["race"] == "?").sum())
    assert np.isnan(rows.loc[("race", "missing"), "selected"])
    assert ("sex", "missing") not in rows.index
