"""Coverage of the intervals, exactly, on a coarse grid; benchmarks have a fine one."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mutandis.outcomes.intervals import INTERVALS
from mutandis.outcomes.measures import MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


GRID = np.arange(1, 20) / 20


@pytest.fixture(scope="module")
def benchmark(load_benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return load_benchmark("interval_coverage")


def truth(name: str, p: float, q: float) -> float:
    ratios = {
        "risk-ratio": p / q,
        "selection-ratio": (1 - p) / (1 - q),
        "odds-ratio": p / (1 - p) / (q / (1 - q)),
    }
    return ratios.get(name, p - q)


@pytest.mark.parametrize("name", [*INTERVALS, *(each for each in MEASURES if "ratio" in each)])
def test_coverage_is_the_sum_over_all_outcomes(benchmark: Any, name: str) -> None:
    k, grid = 6, np.array([0.25, 0.5, 0.75])
    control, test = benchmark.outcomes(k)
    if name in INTERVALS:
        found = benchmark.coverage(name, k, grid=grid)
        bounds: Any = INTERVALS[name](control, test, tau=0.0, alpha=0.05)
    else:
        found = benchmark.ratio_coverage(name, k, grid=grid)
        bounds = MEASURES[name].test(control, test, tau=1.0, alpha=0.05).measured
    for row, p in enumerate(grid):
        for column, q in enumerate(grid):
            true, covered = truth(name, p, q), 0.0
            slack = 1e-9 * max(1, abs(true))
            for x, y, low, high in zip(
                control.marks[:, 0], test.marks[:, 0], bounds.low, bounds.high, strict=True
            ):
                chance = comb(k, x) * p**x * (1 - p) ** (k - x)
                chance *= comb(k, y) * q**y * (1 - q) ** (k - y)
                covered += chance * (low <= true + slack and true - slack <= high)
            assert found["interval"][row, column] == pytest.approx(covered, abs=1e-12)


@pytest.mark.parametrize("k", [15, 30])
def test_the_default_is_within_two_points_of_nominal_on_average(benchmark: Any, k: int) -> None:
    found = benchmark.coverage("miettinen-nurminen", k, grid=GRID)
    assert found["interval"].mean() == pytest.approx(0.90, abs=0.02)
    assert found["lower"].mean() == pytest.approx(0.95, abs=0.02)
    # and nowhere on this grid far off
    assert found["interval"].min() > 0.85


def test_wald_is_not(benchmark: Any) -> None:
    found = benchmark.coverage("wald", 15, grid=GRID)
    assert found["interval"].mean() < 0.88
    assert found["interval"].min() < 0.80


@pytest.mark.parametrize("tau", [0.0, 0.05, 0.1])
def test_the_default_test_keeps_its_level_on_average(benchmark: Any, tau: float) -> None:
    for k in (15, 30):
        found = benchmark.size_of_test("miettinen-nurminen", k, tau)
        assert 0.03 < found.mean() < 0.056
        assert found.max() < 0.085


@pytest.mark.parametrize("name", ["risk-ratio", "selection-ratio", "odds-ratio"])
def test_ratios_are_covered_and_their_tests_keep_their_level(benchmark: Any, name: Any) -> None:
    for k in (5, 15, 30):
        found = benchmark.ratio_coverage(name, k, grid=GRID)
        # the rarer what is divided by, the less is claimed: above nominal, hardly below
        assert 0.895 < found["interval"].mean() < 0.94
        assert found["deciding"].mean() > 0.945
        assert found["interval"].min() > (0.80 if k == 5 else 0.84)
        for tau in benchmark.RATIO_TAUS[name]:
            size = benchmark.size_of_ratio_test(name, k, tau)
            assert size.mean() < 0.052
            assert size.max() < 0.075
