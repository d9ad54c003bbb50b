"""Multiple and intersectional discrimination on the law-school data: the numbers of the docs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.replication.eaamo import RUNS

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.config.schema import MethodName

LAW = RUNS[2]
KS = (15, 30, 50, 100)
BY_RACE = mm.Protection("race_nonwhite", value="NonWhite", reference="White")
BY_SEX = mm.Protection("sex", value="Female", reference="Male")
SETTINGS: dict[str, Any] = {**LAW.settings, "protected": [BY_RACE, BY_SEX]}

# (cases, significant) at k = 15, 30, 50, 100
EXPECTED: dict[tuple[str, str], dict[MethodName, tuple[list[int], list[int]]]] = {
    ("multiple", "reference"): {
        "st": ([1, 3, 8, 16], [0, 3, 6, 10]),
        "cst_without": ([10, 11, 18, 21], [10, 10, 15, 17]),
        "cst_with": ([10, 11, 18, 21], [10, 10, 15, 17]),
        "cf": ([5] * 4, [0] * 4),
    },
    ("intersectional", "reference"): {
        "st": ([14, 14, 18, 19], [14, 14, 14, 18]),
        "cst_without": ([149, 173, 180, 198], [144, 173, 180, 197]),
        "cst_with": ([158, 173, 180, 198], [149, 173, 180, 197]),
        "cf": ([129] * 4, [0] * 4),
    },
    ("intersectional", "complement"): {
        "st": ([14, 14, 17, 18], [14, 14, 14, 18]),
        "cst_without": ([143, 155, 173, 186], [136, 155, 173, 186]),
        "cst_with": ([157, 158, 173, 186], [136, 155, 173, 186]),
        "cf": ([129] * 4, [0] * 4),
    },
}


@pytest.fixture(scope="module")
def table(data_folder: Path) -> pd.DataFrame:
    return LAW.read(data_folder)


@pytest.mark.parametrize(("combine", "test_space"), EXPECTED)
def test_one_call_each(table: pd.DataFrame, combine: Any, test_space: Any) -> None:
    found = mm.audit(
        table,
        **SETTINGS,
        combine=combine,
        similarity=mm.Similarity(test_space=test_space),
        methods=list(EXPECTED[combine, test_space]),
    )
    counts = found.counts()
    assert set(counts["complainants"]) == {1833}
    assert {
        method: (rows["cases"].tolist(), rows["significant"].tolist())
        for method, rows in counts.groupby("method", sort=False)
    } == EXPECTED[combine, test_space]


def flips(table: pd.DataFrame, *changed: str) -> set[int]:
    """Find those whom the rule refuses, and would admit after do(): least squares by hand."""
    protected = {"race_nonwhite": "NonWhite", "sex": "Female"}
    marks = {name: (table[name] == value).to_numpy(float) for name, value in protected.items()}
    design = np.column_stack([np.ones(len(table)), *marks.values()])
    moved = {}
    for name, low, high in (("LSAT", 10, 48), ("UGPA", 0, 4)):
        values = table[name].to_numpy(float)
        fitted = np.linalg.lstsq(design.astype(np.float64), values, rcond=None)[0]
        slopes = dict(zip(marks, fitted[1:], strict=True))
        shift = sum(slopes[attribute] * marks[attribute] for attribute in changed)
        moved[name] = np.clip(np.round(values - shift, 3), low, high)
    admitted = 0.6 * moved["UGPA"] + 0.4 * moved["LSAT"] >= 20.8
    refused = (table["admitted"] == 0) & (marks["race_nonwhite"] == 1) & (marks["sex"] == 1)
    return set(np.flatnonzero(refused & admitted))


def test_flips_by_hand(table: pd.DataFrame) -> None:
    by_race, by_sex = flips(table, "race_nonwhite"), flips(table, "sex")
    together = flips(table, "race_nonwhite", "sex")
    ways: dict[Any, set[int]] = {"multiple": by_race & by_sex, "intersectional": together}
    for combine, expected in ways.items():
        found = mm.audit(table, **SETTINGS, combine=combine, methods=["cf"]).findings("cf", k=15)
        assert set(found.loc[found["verdict"] == "evidence", "id"]) == expected
    assert (len(by_race & by_sex), len(together)) == (5, 129)
    # the two shifts add up: 21 need both of them to pass the cutoff
    assert len(together - by_race - by_sex) == 21


# found by race alone, by sex alone, by both (multiple), by the intersection
RACE_AND_JOINT = (True, False, False, True)
JOINT_ONLY = (False, False, False, True)
RACE_ONLY = (True, False, False, False)
ALL = (True, True, True, True)
RECONCILED = {
    ("st", 15): {RACE_AND_JOINT: 9, JOINT_ONLY: 4, ALL: 1},
    ("cst_without", 15): {RACE_AND_JOINT: 116, JOINT_ONLY: 23, ALL: 10, RACE_ONLY: 9},
    ("cst_without", 100): {RACE_AND_JOINT: 141, JOINT_ONLY: 36, ALL: 21},
    ("cf", 15): {RACE_AND_JOINT: 103, JOINT_ONLY: 21, ALL: 5},
}


def test_who_is_found_only_intersectionally(table: pd.DataFrame) -> None:
    audits = mm.audit_intersections(mm.plan(table, **SETTINGS, combine="multiple"))
    counts = {
        name: each.results.summaries["cst_without", 15].counts["cases"]
        for name, each in audits.items()
    }
    assert counts == {
        "race_nonwhite": 296,
        "sex": 148,
        "race_nonwhite + sex": 10,
        "race_nonwhite × sex": 149,
    }
    people = audits["race_nonwhite × sex"].findings()["id"]
    for (method, k), expected in RECONCILED.items():
        found = pd.DataFrame(index=people)
        for name, each in audits.items():
            rows = each.findings(method, k=k).set_index("id")
            found[name] = rows["verdict"].reindex(people) != "no-evidence"
        assert found[found.any(axis=1)].value_counts().to_dict() == expected
