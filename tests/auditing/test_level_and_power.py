"""Every distance and every measure: small versions of benchmarks/null_simulations.py.

Complainants share neighbours, so the tolerance is three standard errors over data sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mutandis.outcomes.measures import MEASURES
from mutandis.registry import names

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType


@pytest.fixture(scope="module")
def simulations(load_benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return load_benchmark("null_simulations")


def upper(shares: Any) -> float:
    """Give what shares with a mean of 5 % would not exceed, with three standard errors."""
    return 0.05 + 3 * float(shares.std(ddof=1) / np.sqrt(len(shares)))


@pytest.mark.parametrize(
    "name",
    [
        name if name in {"gower", "hvdm"} else pytest.param(name, marks=pytest.mark.slow)
        for name in names("distance")
    ],
)
def test_a_distance_keeps_the_level_and_has_power(simulations: ModuleType, name: str) -> None:
    options: Any = {"names": name == "zhang", "differs": "compensation", "sharp": False}
    null, harmful = (
        simulations.simulate_distance(
            name, simulations.DistanceWorld(**options, harm=harm), tables=8, rows=600
        )
        for harm in (0.0, simulations.HARM)
    )
    assert null["significant"].mean() <= upper(null["significant"])
    assert (null["adjusted"] > 0).sum() <= 2
    assert harmful["tested"].mean() > 0.5
    assert harmful["found"].mean() > 0.3


@pytest.mark.parametrize("measure", list(MEASURES))
def test_a_measure_keeps_the_level_at_its_threshold_and_has_power(
    simulations: ModuleType, measure: str
) -> None:
    options: Any = {"between": (0.15, 0.5), "tables": 8, "rows": 600}
    at_tau = simulations.simulate_measure(measure, (measure, simulations.TAUS[measure]), **options)
    beyond = simulations.simulate_measure(measure, ("risk-difference", 0.3), **options)
    assert at_tau["significant"].mean() <= upper(at_tau["significant"])
    assert (at_tau["adjusted"] > 0).sum() <= 2
    assert beyond["significant"].mean() > 0.4


def test_people_are_apart_by_what_is_said(simulations: ModuleType) -> None:
    test = np.array([0.2, 0.5])
    for measure, value, expected in (
        ("risk-difference", 0.1, [0.3, 0.6]),
        ("risk-ratio", 1.5, [0.3, 0.75]),
        ("selection-ratio", 0.5, [0.6, 0.75]),
        ("odds-ratio", 4.0, [0.5, 0.8]),
    ):
        assert simulations._refused(measure, value, test).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("table", ["measures", "distances-power"])
@pytest.mark.few("measures")
def test_the_tables_are_written_between_their_markers(
    simulations: ModuleType,
    table: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"a\n<!-- begin {table} -->\nold\n<!-- end {table} -->\nz\n", "utf-8")
    monkeypatch.setattr(simulations, "PAGE", page)
    monkeypatch.setattr(simulations, "DISTANCES", page)
    monkeypatch.setattr(simulations, "HARM", 2.0)
    simulations.main(["--only", table, "--tables", "1", "--rows", "1500", "--write"])
    first, *lines, last = page.read_text("utf-8").splitlines()
    assert (first, last) == ("a", "z")
    assert "old" not in lines
    shown = capsys.readouterr().out
    rows = [line for line in lines if line.startswith("| ") and line in shown]
    every = {"measures": 2 * 4, "distances-power": 8 + 8}[table]
    assert len(rows) == 1 + every
    assert all(line.count("|") == rows[0].count("|") for line in rows)
