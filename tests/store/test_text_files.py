from __future__ import annotations

import csv
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from mutandis.errors import OutputError
from mutandis.store.text_files import write_atomically, write_csv

if TYPE_CHECKING:
    from pathlib import Path


def read(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_numbers_round_trip_to_the_last_bit(tmp_path: Path) -> None:
    values = np.array([0.1 + 0.2, 1 / 3, -5e-324, 1.7976931348623157e308])
    write_csv(tmp_path / "t.csv", {"x": values, "n": np.arange(4)})
    rows = read(tmp_path / "t.csv")
    assert rows[0] == ["x", "n"]
    assert [float(row[0]) for row in rows[1:]] == values.tolist()
    assert [row[1] for row in rows[1:]] == ["0", "1", "2", "3"]


def test_missing_values_are_empty(tmp_path: Path) -> None:
    write_csv(
        tmp_path / "t.csv",
        {"x": np.array([np.nan, 1.0]), "y": np.array([None, "no"], dtype=object)},
    )
    assert read(tmp_path / "t.csv")[1:] == [["", ""], ["1.0", "no"]]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_text_that_a_spreadsheet_would_run_is_defused(tmp_path: Path, start: str) -> None:
    hostile = f"{start}cmd|' /C calc'!A0"
    write_csv(tmp_path / "t.csv", {hostile: np.array([hostile, "fine"], dtype=object)})
    assert read(tmp_path / "t.csv") == [[f"'{hostile}"], [f"'{hostile}"], ["fine"]]


def test_negative_numbers_are_left_alone(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", {"x": np.array([-1, 1]), "y": np.array([-0.5, 0.5])})
    assert read(tmp_path / "t.csv")[1] == ["-1", "-0.5"]


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    write_atomically(tmp_path / "case.pdf", b"%PDF")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["case.pdf"]
    with pytest.raises(OutputError, match="cannot be written"):
        write_atomically(tmp_path / "absent" / "case.pdf", b"%PDF")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="cannot be written"):
        write_atomically(tmp_path / "folder", "text")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="a folder, a pipe or a device"):
        write_csv(tmp_path / "pipe", {"x": np.arange(4)})
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["case.pdf", "folder", "pipe"]


def test_a_file_is_as_open_as_any_other(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "report.html", "<p>")
    finally:
        os.umask(before)

    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o640
