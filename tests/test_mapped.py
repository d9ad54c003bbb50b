"""Large arrays in files hold the same numbers, and leave nothing behind."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.data.columns import Categories
from mutandis.mapped import arrays_in_files, copy, empty, in_file, is_mapped, take, uses_files
from mutandis.store.tables import read_source
from mutandis.workers import LocalWorkers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mutandis.workers import Task


@pytest.fixture(autouse=True)
def small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutandis.mapped._LEAST_BYTES", 100)
    monkeypatch.setattr("mutandis.mapped._BLOCK", 128)  # several parts


def test_without_a_folder_everything_stays_in_memory() -> None:
    array = np.arange(100)
    assert not uses_files()
    assert in_file(array) is array
    assert not is_mapped(empty(100, np.int64))
    assert not is_mapped(take(array, np.array([1, 2])))


def test_arrays_in_files_hold_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    with arrays_in_files(tmp_path):
        for array in (rng.normal(size=99), rng.normal(size=(50, 3)), rng.random(2000) < 0.5):
            rows = rng.integers(0, len(array), size=400)
            for found, expected in (
                (in_file(array), array),
                (copy(array), array),
                (take(array, rows), array[rows]),
            ):
                assert is_mapped(found)
                assert found.dtype == expected.dtype
                assert np.array_equal(found, expected)
            assert in_file(found) is found
        assert not np.any(empty((40, 2), np.float64))
        assert list(tmp_path.iterdir()) == []
    assert np.array_equal(found, expected)  # and after the block


def test_what_is_written_to_a_copy_stays_there(tmp_path: Path) -> None:
    array = np.zeros(100)
    with arrays_in_files(tmp_path):
        first = in_file(array)
        second = copy(first)
        second[:] = 1
    assert first.sum() == array.sum() == 0


def test_small_arrays_objects_and_constants_stay_in_memory(tmp_path: Path) -> None:
    with arrays_in_files(tmp_path):
        for array in (np.zeros(3), np.full(100, None), np.broadcast_to(np.int64(1), 1000)):
            assert in_file(array) is array
        assert not is_mapped(take(np.full(100, None), np.arange(50)))
        marked = take(np.arange(100), np.arange(100) % 2 == 0)
        assert marked.tolist() == list(range(0, 100, 2))
        assert take(np.arange(100), slice(3, 5)).tolist() == [3, 4]


def write_parts(folder: Path, rows: int) -> pd.DataFrame:
    """Write columns of many types, some with gaps, into files of different lengths."""
    rng = np.random.default_rng(3)
    number = rng.normal(size=rows)
    table = pd.DataFrame(
        {
            "number": number,
            "gaps": np.where(number > 1, np.nan, number),
            "whole": rng.integers(-(2**40), 2**40, rows),
            "small": rng.integers(0, 100, rows).astype(np.int8),
            "flag": number > 0,
            "some": pd.array(rng.integers(0, 9, rows), dtype="Int64"),
            "name": np.array(["clerk", "cook", None])[rng.integers(0, 3, rows)],
            "key": [f"person {each}" for each in range(rows)],
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(rows), unit="D"),
        }
    )
    table.loc[5, "some"] = pd.NA
    folder.mkdir()
    for part, start in enumerate(range(0, rows, 700)):
        table[start : start + 700].to_parquet(folder / f"part-{part}.parquet", index=False)
    return table


def test_tables_are_read_a_part_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutandis.store.duckdb_reader._VECTORS", 1)
    table = write_parts(tmp_path / "table", 5_000)
    expected = read_source(tmp_path / "table")
    with arrays_in_files(tmp_path):
        found = read_source(tmp_path / "table")
    pd.testing.assert_frame_equal(found.frame, expected.frame)
    assert found.text == expected.text
    assert found.frame["whole"].tolist() == table["whole"].tolist()
    assert is_mapped(found.frame["number"].to_numpy())


def test_names_and_rows_of_a_population_lie_in_files(tmp_path: Path) -> None:
    write_parts(tmp_path / "table", 900)
    with arrays_in_files(tmp_path):
        plan = mm.plan(
            tmp_path / "table",
            outcome="flag",
            negative=True,
            protected=mm.Protection("small", value=list(range(50)), reference=99, pool=True),
            attributes={"number": "continuous", "whole": "continuous"},
            ks=(3,),
        )
    status = plan.population.columns["small"]
    assert isinstance(status, Categories)
    for array in (status.codes, plan.population.numbers("whole"), plan.strata[0].control):
        assert is_mapped(array)


@dataclass(frozen=True)
class UntracedWorkers(LocalWorkers):
    """Workers whose own memory, which the size of their tasks limits, is not counted."""

    rows: int = 10_000
    peaks: list[int] = field(default_factory=list)

    def answer(self, tasks: Sequence[Task], progress: Callable[[int], None]) -> list[Path]:
        self.peaks.append(tracemalloc.get_traced_memory()[1])
        try:
            return super().answer(tasks, progress)
        finally:
            tracemalloc.reset_peak()


def audit_traced(folder: Path, rows: int) -> int:
    """Audit a table from reading to results; give the most bytes that arrays in memory took."""
    rng = np.random.default_rng(rows)
    woman = rng.random(rows) < 0.35
    x = rng.normal(size=rows) - 0.3 * woman
    y = rng.normal(size=rows) + 0.5 * x
    z = rng.normal(size=rows) - 0.2 * woman
    refused = rng.random(rows) < 1 / (1 + np.exp(1 + x + y))
    folder.mkdir()
    table = {"woman": woman, "x": x, "y": y, "z": z, "refused": refused}
    pd.DataFrame(table).to_parquet(folder / "table.parquet", index=False)
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # what users have: reading an array leaves cycles behind
    tracemalloc.start()
    try:
        with arrays_in_files(folder):
            plan = mm.plan(
                folder / "table.parquet",
                outcome="refused",
                negative=True,
                protected=mm.Protection("woman", value=True, reference=False),
                attributes=dict.fromkeys("xyz", "continuous"),
                worldview=mm.Worldview(
                    {"x": mm.Linear("woman"), "y": mm.Linear("x"), "z": mm.Linear("woman")}
                ),
                methods=("st", "cst_matched"),
                ks=(10,),
                uncertainty=mm.Uncertainty(refits=0, tipping=False),
            )
            workers = UntracedWorkers(folder, threads=1)
            plan.run(cluster=workers).save(folder / "results")
        return max(*workers.peaks, tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
        gc.set_threshold(*thresholds)


@pytest.mark.slow
def test_memory_hardly_grows_with_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # blocks of rows that are small beside the tables, as they are beside large ones
    for name in (
        "mapped._LEAST_BYTES",
        "data.columns._AT_ONCE",
        "numeric.order._BLOCK",
        "scm.check._BLOCK",
        "scm.check._MOST_ROWS",
        "verdicts.compare._BLOCK",
        "engine.nearest._CHUNK",
        "engine.pack._TAKEN",
        "auditing.results._BLOCK",
    ):
        monkeypatch.setattr(f"mutandis.{name}", 1 << 12)
    monkeypatch.setattr("mutandis.mapped._BLOCK", 1 << 16)
    # it takes memory of its own, and is left out of tables that need workers
    monkeypatch.setattr("mutandis.auditing.answer.MOST_ROWS", 0)
    sizes = (60_001, 20_000, 60_000)  # the first loads what the others need
    _, small, large = (audit_traced(tmp_path / str(rows), rows) for rows in sizes)
    assert (large - small) / 40_000 < 100  # bytes per row
