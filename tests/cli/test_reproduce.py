"""`mutandis reproduce`: the tables, and what differs from them."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from mutandis.cli.app import app
from mutandis.replication import printed
from mutandis.replication.printed import COUNT_TABLES, half_up

if TYPE_CHECKING:
    from pathlib import Path

runner = CliRunner()


def test_json_has_exactly_the_three_runs_and_the_published_counts(data_folder: Path) -> None:
    result = runner.invoke(app, ["reproduce", "--data", str(data_folder), "--json"])
    assert result.exit_code == 0, result.output
    expected = {
        table.run: {
            str(k): {
                method: table.cells[method][index][0]
                for method in ("st", "cst_without", "cst_with", "cf")
            }
            for index, k in enumerate((15, 30, 50, 100))
        }
        for table in COUNT_TABLES
    }
    assert json.loads(result.output) == expected
    assert result.output == json.dumps(expected, indent=2) + "\n"


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


def test_a_wrong_cell_is_named_and_fails(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = COUNT_TABLES
    cells = {**first.cells, "cf": ((377, "22"), *first.cells["cf"][1:])}
    monkeypatch.setattr(printed, "COUNT_TABLES", (replace(first, cells=cells), *others))
    result = runner.invoke(app, ["reproduce", "--data", str(data_folder), "--json"])
    assert result.exit_code == 1


def test_half_up_rounds_as_the_tables_do() -> None:
    assert half_up(0.125, 2) == Decimal("0.13")
    assert half_up(0.8125, 2) == Decimal("0.81")
    assert half_up(4.907, 1) == Decimal("4.9")
    assert half_up(-0.0110, 2) == Decimal("-0.01")
    assert half_up(-0.0375, 2) == Decimal("-0.04")
