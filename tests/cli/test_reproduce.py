from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from mutandis.cli import reproduce as reproduce_command
from mutandis.cli.app import app
from mutandis.published import reproduction
from mutandis.published.printed_tables import COUNT_TABLES
from mutandis.published.reproduction import Reproduction, half_up, reproduce

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

runner = CliRunner()

PUBLISHED = {
    "loan": {
        "st": (55, 65, 84, 107),
        "cst_without": (288, 313, 342, 395),
        "cst_with": (420, 434, 453, 480),
        "cf": (376, 376, 376, 376),
    },
    "law_race": {
        "st": (33, 51, 61, 64),
        "cst_without": (256, 309, 337, 400),
        "cst_with": (286, 309, 337, 400),
        "cf": (231, 231, 231, 231),
    },
    "law_gender": {
        "st": (77, 101, 229, 258),
        "cst_without": (78, 120, 253, 296),
        "cst_with": (99, 129, 267, 296),
        "cf": (56, 56, 56, 56),
    },
}


@dataclass(frozen=True)
class Run:
    """What the command printed, what it took, and what it had found."""

    result: Result
    seconds: float
    found: Reproduction


@pytest.fixture(scope="module")
def run(data_folder: Path) -> Run:
    kept: list[Reproduction] = []

    def keep(folder: Path) -> Reproduction:
        kept.append(reproduce(folder))
        return kept[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduce_command, "reproduce", keep)
        # processor time: that of a busy machine is not the command's
        start = time.process_time()
        result = runner.invoke(app, ["reproduce", "--data", str(data_folder), "--json"])
        seconds = time.process_time() - start
    assert result.exit_code == 0, result.output
    return Run(result, seconds, kept[0])


@pytest.fixture
def found(run: Run) -> Reproduction:
    return run.found


def test_json_has_exactly_the_three_runs_and_the_published_counts(run: Run) -> None:
    expected = {
        scenario: {
            str(k): {method: row[index] for method, row in rows.items()}
            for index, k in enumerate((15, 30, 50, 100))
        }
        for scenario, rows in PUBLISHED.items()
    }
    assert json.loads(run.result.output) == expected
    assert run.seconds < 15


@pytest.mark.slow
def test_text_shows_all_tables_the_two_impossible_cells_and_the_definitions(
    data_folder: Path,
) -> None:
    result = runner.invoke(app, ["reproduce", "--data", str(data_folder)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    for number in (1, 2, 3, 4, 5):
        assert f"Table {number}." in result.output
    assert "exact, but for 2 printed cells" in result.output
    assert "complainant 435, upper bound: printed 0.58, ours 0.57" in result.output
    assert "Table 1, ST, k=50, share: printed 5 %, ours 4.9 %" in result.output
    assert "As defined" in result.output
    assert "They differ because" in result.output


def test_only_the_two_known_cells_differ(found: Reproduction) -> None:
    differences = found.differences()
    assert [d.where for d in differences] == [
        "Table 1, ST, k=50, share",
        "Table 3, complainant 435, upper bound",
    ]
    assert all(d.is_known for d in differences)


def test_a_wrong_cell_would_be_named(found: Reproduction, monkeypatch: pytest.MonkeyPatch) -> None:
    first = COUNT_TABLES[0]
    cells = {**first.cells, "cf": ((377, "22"), *first.cells["cf"][1:])}
    monkeypatch.setattr(reproduction, "COUNT_TABLES", (replace(first, cells=cells),))
    unknown = [d for d in found.differences() if not d.is_known]
    assert [(d.where, d.printed, d.ours) for d in unknown] == [
        ("Table 1, CF, k=15, cases", "377", "376")
    ]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = runner.invoke(app, ["reproduce", "--data", str(tmp_path)])
    assert result.exit_code != 0
    assert "'loan_application.csv'" in str(result.exception)
    assert str(tmp_path) not in str(result.exception)


def test_half_up_rounds_as_the_tables_do() -> None:
    assert half_up(0.125, 2) == Decimal("0.13")
    assert half_up(0.8125, 2) == Decimal("0.81")
    assert half_up(4.907, 1) == Decimal("4.9")
    assert half_up(-0.0110, 2) == Decimal("-0.01")
    assert half_up(-0.0375, 2) == Decimal("-0.04")
