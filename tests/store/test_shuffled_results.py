"""A table with ids, its rows in another order: the same bytes, but for what is named here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from tests.store.conftest import CONFIG

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


def run(*arguments: object) -> None:
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, (done.output, done.exception)


def folder_of(rows: pd.DataFrame, folder: Path) -> dict[str, bytes]:
    """Give every file that `audit` and `case` write; the hash of the table's file is left out."""
    folder.mkdir()
    rows.to_csv(folder / "loan.csv", index=False)
    (folder / "audit.yaml").write_text(CONFIG, encoding="utf-8")
    run("audit", folder / "audit.yaml", "--out", folder / "out")
    run("case", folder / "out", rows.loc[rows["Gender"] == 1, "person"].min(), "--no-pdf")
    record = json.loads((folder / "out" / "audit.json").read_text("utf-8"))
    own = record["source"]["sha256"].encode()
    return {
        path.relative_to(folder / "out").as_posix(): path.read_bytes().replace(own, b"the file")
        for path in sorted((folder / "out").rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("name", ["person {}", pytest.param("{}", marks=pytest.mark.slow)])
def test_all_files_are_the_same_but_for_what_is_named(tmp_path: Path, name: str) -> None:
    rows = mm.datasets.loan(n=90, seed=1)
    rows["person"] = [name.format(each) for each in np.random.default_rng(0).permutation(90)]
    before = folder_of(rows, tmp_path / "straight")
    after = folder_of(rows.sample(frac=1, random_state=1), tmp_path / "shuffled")
    assert before.keys() == after.keys()
    assert {"findings.parquet", "counts.csv", "report.html", "audit.npz"} <= before.keys()
    # the table itself, in its order; and hashes of files that hold the hash of the table's file
    named = {"audit.npz", "audit.json", "cases/SHA256SUMS"}
    assert {each for each in before if before[each] != after[each]} == named & before.keys()
    first, second = (_plain(files["audit.json"]) for files in (before, after))
    assert first == second


def _plain(record: bytes) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(record)
    del data["created"], data["sha256"]
    data["outputs"] = {
        name: value
        for name, value in data["outputs"].items()
        if name not in {"audit.npz", "report.html"}
    }
    return data
