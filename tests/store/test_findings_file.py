from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.data.columns import jsonable
from mutandis.store import findings_file
from mutandis.store.findings_file import compare_findings, write_findings
from mutandis.verdicts.findings import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def audit(outcomes: Sequence[Any], ids: Sequence[Any] | None = None, **options: Any) -> mm.Audit:
    table: dict[str, Any] = {
        "woman": [1, 1, 0, 0, 0, 0],
        "salary": [10.0, 11.0, 10.0, 11.0, 15.0, 16.0],
        "granted": [outcomes[0]] * 4 + [outcomes[1]] * 2,
    }
    if ids is not None:
        table["who"] = ids
        options["id"] = "who"
    return mm.audit(
        table,
        outcome="granted",
        negative=outcomes[0],
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous"},
        counterfactuals={"salary": [15.0, 16.0, 10.0, 11.0, 15.0, 16.0]},
        decision="salary > 12",
        ks=(1,),
        **options,
    )


def written(found: mm.Audit, folder: Path) -> duckdb.DuckDBPyRelation:
    write_findings(folder / "findings.parquet", found.each_findings())
    assert [path.name for path in folder.iterdir()] == ["findings.parquet"]
    return duckdb.read_parquet(str(folder / "findings.parquet"))


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        (("no", "yes"), "VARCHAR"),
        ((0, 1), "BIGINT"),
        ((False, True), "BOOLEAN"),
        ((0.5, 1.5), "DOUBLE"),
    ],
)
def test_outcomes_keep_their_type(tmp_path: Path, outcomes: tuple[Any, Any], kind: str) -> None:
    table = written(audit(outcomes), tmp_path)
    kinds = dict(zip(table.columns, map(str, table.types), strict=True))
    assert (kinds["outcome"], kinds["outcome_cf"]) == (kind, kind)
    rows = table.filter("method = 'cst_without'").project("outcome, outcome_cf").fetchall()
    assert rows == [outcomes, outcomes]


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([7, 8, 9, 10, 11, 12], "BIGINT"),
        (["=a", "b", "c", "d", "e", "f"], "VARCHAR"),
        ([0.5, 1.5, 2.5, 3.5, 4.5, 5.5], "DOUBLE"),
        (list(pd.date_range("2020-01-01", periods=6)), "VARCHAR"),
    ],
)
def test_ids_keep_their_type(tmp_path: Path, ids: list[Any], kind: str) -> None:
    table = written(audit(("no", "yes"), ids), tmp_path)
    assert str(table.types[2]) == kind
    [(first,)] = table.filter("method = 'st'").project("id").limit(1).fetchall()
    assert str(first) == str(np.array(ids)[0]) or first == ids[0]


def test_columns_in_order_and_all_methods_and_ks(tmp_path: Path) -> None:
    table = written(audit(("no", "yes")), tmp_path)
    assert table.columns == ["method", "k", *COLUMNS, "tipping", "grade", "robustness"]
    found = table.project("method, k, id, delta_p, ci_low").order("method, id").fetchall()
    assert [row[:4] for row in found] == [
        ("cf", 1, 0, 1.0),
        ("cf", 1, 1, 1.0),
        ("cst_matched", 1, 0, 0.5),
        ("cst_matched", 1, 1, 0.5),
        ("cst_with", 1, 0, 1.0),
        ("cst_with", 1, 1, 1.0),
        ("cst_without", 1, 0, 1.0),
        ("cst_without", 1, 1, 1.0),
        ("st", 1, 0, 0.0),
        ("st", 1, 1, 0.0),
    ]
    # CF counts no neighbours; the four men are too far from the men whom the women would have been
    assert [row[4] is None for row in found] == [True] * 4 + [False] * 6


def test_the_same_findings_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        written(audit(("no", "yes")), tmp_path / name)
    paths = [tmp_path / name / "findings.parquet" for name in ("a", "b")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert compare_findings(*paths) == {}


def test_blocks_are_written_as_all_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    for name, block in (("a", 1 << 18), ("b", 1)):
        monkeypatch.setattr(findings_file, "_BLOCK", block)
        (tmp_path / name).mkdir()
        written(audit((False, True), ids=["x", "y", "z", "p", "q", "r"]), tmp_path / name)
        paths.append(tmp_path / name / "findings.parquet")
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_words_are_written_as_texts_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = []
    for name, words in (("a", 64), ("b", 0)):
        monkeypatch.setattr(findings_file, "_WORDS", words)
        (tmp_path / name).mkdir()
        found = written(audit((False, True), ids=["x", "y", "z", "p", "q", "r"]), tmp_path / name)
        assert found.aggregate("count(DISTINCT id), count(outcome_cf)").fetchall() == [(2, 10)]
        paths.append(tmp_path / name / "findings.parquet")
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_differences_are_counted_to_the_last_bit(tmp_path: Path) -> None:
    written(audit(("no", "yes"), methods=["st", "cst_without", "cst_with", "cf"]), tmp_path)
    first, second = tmp_path / "findings.parquet", tmp_path / "other.parquet"
    table = duckdb.read_parquet(str(first)).df()
    table["p_control"] = -0.0 * (table["p_control"] + 1)
    table.loc[0, "radius_test"] = np.nextafter(table.loc[0, "radius_test"], 1)
    table.loc[1, "verdict"] = None
    duckdb.from_df(table).write_parquet(str(second))
    assert compare_findings(first, second) == {"p_control": 8, "radius_test": 1, "verdict": 1}
    duckdb.from_df(table.head(7)).write_parquet(str(second))
    assert compare_findings(first, second) == {"the number of rows or columns": 1}


def test_plain_data_for_json() -> None:
    given = {1: np.int64(2), "x": (np.nan, np.float64(0.5), np.bool_(True)), "d": {"p": None}}
    assert jsonable(given) == {"1": 2, "x": [None, 0.5, True], "d": {"p": None}}
