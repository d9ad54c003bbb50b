"""How often each interval contains the true difference or ratio, and how often tests are wrong.

python benchmarks/interval_coverage.py [FOLDER]

For two groups of k people with true shares π_c and π_t there are (k + 1)² outcomes. Their
probabilities are added up exactly, over a grid of (π_c, π_t): nothing is simulated. Prints the
tables of coverage.md, and writes coverage.json and coverage.svg to FOLDER (default: this one).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom

from mutandis.engine.tally import Sums
from mutandis.outcomes.intervals import INTERVALS
from mutandis.outcomes.measures import MEASURES
from mutandis.report.chart import COLOURS, SIZE, Chart, Frame, numbered, text_width, ticks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.report.chart import Picture

ALPHA = 0.05
KS = (5, 15, 30, 100)
TAUS = (0.0, 0.05, 0.1)
RATIO_TAUS: dict[str, tuple[float, ...]] = {
    "risk-ratio": (1.0, 1.25, 2.0),
    "selection-ratio": (1.0, 0.8, 0.5),
    "odds-ratio": (1.0, 1.5, 3.0),
}
# 0.02, 0.04, …, 0.98
GRID = np.arange(1, 50) / 50
TOLERANCE = 0.02
_STYLES = (
    (COLOURS["test"], "circle"),
    (COLOURS["control"], "square"),
    (COLOURS["alone"], "up"),
    (COLOURS["quiet"], "down"),
)


def outcomes(k: int) -> tuple[Sums, Sums]:
    """List all pairs of refusals in two groups of k."""
    control, test = np.divmod(np.arange((k + 1) ** 2), k + 1)
    ones = np.ones_like(control)
    return (
        Sums.of(marks=control, places=k * ones, parts=ones),
        Sums.of(marks=test, places=k * ones, parts=ones),
    )


def probabilities(k: int, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the probability of each number of refusals (column) under each true share (row)."""
    return np.asarray(binom.pmf(np.arange(k + 1), k, shares[:, None]), dtype=np.float64)


def coverage(
    name: str, k: int, *, alpha: float = ALPHA, grid: NDArray[np.float64] = GRID
) -> dict[str, NDArray[np.float64]]:
    """Give, for each (π_c, π_t) of an evenly spaced grid, how often π_c − π_t is covered.

    "interval" is by both bounds together (nominal: 1 − 2α), "lower" by the lower bound alone
    (nominal: 1 − α).
    """
    bounds = INTERVALS[name](*outcomes(k), tau=0.0, alpha=alpha)
    weights = probabilities(k, grid)
    size = len(grid)
    step = float(grid[1] - grid[0])
    covered = {part: np.empty((size, size)) for part in ("interval", "lower")}
    for offset in range(-(size - 1), size):
        difference = offset * step
        # a bound that is met is a bound that holds, also after rounding
        above = (bounds.low <= difference + 1e-9).reshape(k + 1, k + 1)
        below = (bounds.high >= difference - 1e-9).reshape(k + 1, k + 1)
        control = np.arange(max(0, offset), min(size, size + offset))
        test = control - offset
        for part, holds in (("interval", above & below), ("lower", above)):
            joint = ((weights[control] @ holds) * weights[test]).sum(axis=1)
            covered[part][control, test] = joint
    return covered


def size_of_test(name: str, k: int, tau: float, *, alpha: float = ALPHA) -> NDArray[np.float64]:
    """Give how often π ≤ τ is rejected where π = τ, for each π_t of a fine grid."""
    tests = np.linspace(0, 1 - tau, 201)
    p_value = INTERVALS[name](*outcomes(k), tau=tau, alpha=alpha, bounds=False).p_value
    rejected = (p_value <= alpha).reshape(k + 1, k + 1)
    joint = (probabilities(k, tests + tau) @ rejected) * probabilities(k, tests)
    return np.asarray(joint.sum(axis=1), dtype=np.float64)


def ratio(
    name: str, control: NDArray[np.float64], test: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give the true ratio of shares between 0 and 1."""
    if name == "risk-ratio":
        return control / test
    if name == "selection-ratio":
        return (1 - control) / (1 - test)
    return control * (1 - test) / (test * (1 - control))


def control_at(name: str, tau: float, test: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the share of the control group where the ratio is τ."""
    if name == "risk-ratio":
        return tau * test
    if name == "selection-ratio":
        return 1 - tau * (1 - test)
    return tau * test / (1 - test + tau * test)


def ratio_coverage(
    name: str, k: int, *, alpha: float = ALPHA, grid: NDArray[np.float64] = GRID
) -> dict[str, NDArray[np.float64]]:
    """Give, for each (π_c, π_t), how often the true ratio is covered.

    "interval" is by both bounds together (nominal: 1 − 2α), "deciding" by the bound that decides
    significance (nominal: 1 − α): the upper one of the selection ratio, else the lower one.
    """
    measure, shares = MEASURES[name], outcomes(k)
    bounds = measure.test(*shares, tau=1.0, alpha=alpha).measured
    weights = probabilities(k, grid)
    covered = {part: np.empty((len(grid), len(grid))) for part in ("interval", "deciding")}
    for row, control in enumerate(grid):
        for column, true in enumerate(ratio(name, np.full_like(grid, control), grid)):
            above = (bounds.low <= true * (1 + 1e-9)).reshape(k + 1, k + 1)
            below = (bounds.high >= true * (1 - 1e-9)).reshape(k + 1, k + 1)
            deciding = above if measure.worse_above else below
            for part, holds in (("interval", above & below), ("deciding", deciding)):
                covered[part][row, column] = weights[row] @ holds @ weights[column]
    return covered


def size_of_ratio_test(
    name: str, k: int, tau: float, *, alpha: float = ALPHA
) -> NDArray[np.float64]:
    """Give how often the test rejects where the ratio is τ, for each π_t of a fine grid."""
    most = 1 / tau if name == "risk-ratio" else 1.0
    tests = np.linspace(0, most, 201)
    found = MEASURES[name].test(*outcomes(k), tau=tau, alpha=alpha, bounds=False)
    rejected = (found.p_value <= alpha).reshape(k + 1, k + 1)
    controls = np.clip(control_at(name, tau, tests), 0, 1)
    joint = (probabilities(k, controls) @ rejected) * probabilities(k, tests)
    return np.asarray(joint.sum(axis=1), dtype=np.float64)


def measure_ratios() -> dict[str, Any]:
    """Measure the intervals and the tests of ratios."""
    both = {name: {k: ratio_coverage(name, k) for k in KS} for name in RATIO_TAUS}
    nominal = {"interval": 1 - 2 * ALPHA, "deciding": 1 - ALPHA}
    sizes = {
        name: {tau: {k: size_of_ratio_test(name, k, tau) for k in KS} for tau in taus}
        for name, taus in RATIO_TAUS.items()
    }
    return {
        **{
            part: {
                name: {k: summary(rows[k][part], level) for k in KS} for name, rows in both.items()
            }
            for part, level in nominal.items()
        },
        "size": {
            name: {
                tau: {
                    k: {"mean": float(found.mean()), "largest": float(found.max())}
                    for k, found in rows.items()
                }
                for tau, rows in by_tau.items()
            }
            for name, by_tau in sizes.items()
        },
    }


def summary(found: NDArray[np.float64], nominal: float) -> dict[str, float]:
    """Give the mean, how it spreads, and where the grid is worst."""
    control, test = np.unravel_index(int(found.argmin()), found.shape)
    return {
        "mean": float(found.mean()),
        "low": float(np.quantile(found, 0.05)),
        "high": float(np.quantile(found, 0.95)),
        "share_within_tolerance": float((np.abs(found - nominal) <= TOLERANCE).mean()),
        "least": float(found.min()),
        "least_at_control": float(GRID[control]),
        "least_at_test": float(GRID[test]),
    }


def measure() -> dict[str, Any]:
    """Measure everything."""
    both = {name: {k: coverage(name, k) for k in KS} for name in INTERVALS}
    nominal = {"interval": 1 - 2 * ALPHA, "lower": 1 - ALPHA}
    return {
        "alpha": ALPHA,
        "grid": GRID.tolist(),
        "ratios": measure_ratios(),
        **{
            part: {
                name: {k: summary(rows[k][part], level) for k in KS} for name, rows in both.items()
            }
            for part, level in nominal.items()
        },
        "size": {
            name: {tau: {k: _size(name, k, tau) for k in KS} for tau in TAUS} for name in INTERVALS
        },
    }


def _size(name: str, k: int, tau: float) -> dict[str, float]:
    found = size_of_test(name, k, tau)
    return {"mean": float(found.mean()), "largest": float(found.max())}


def print_tables(measured: dict[str, Any]) -> None:
    for part, title in (("interval", "1 − 2α = 90 %"), ("lower", "1 − α = 95 %")):
        _print_coverage(f"{part}, nominal {title}", "interval", measured[part])
    _print_sizes("test", measured["size"])
    for part, title in (("interval", "1 − 2α = 90 %"), ("deciding", "1 − α = 95 %")):
        _print_coverage(f"ratios, {part}, nominal {title}", "measure", measured["ratios"][part])
    _print_sizes("measure", measured["ratios"]["size"])


def _print_coverage(title: str, what: str, by_name: Mapping[str, Any]) -> None:
    print(f"\n{title}, in percent\n")
    print(f"| {what} | k | mean | 5–95 % of cells | within ±2 points | worst cell |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, rows in by_name.items():
        for k, row in rows.items():
            where = f"({row['least_at_control']:.2f}, {row['least_at_test']:.2f})"
            print(
                f"| {name} | {k} | {100 * row['mean']:.1f} "
                f"| {100 * row['low']:.1f}–{100 * row['high']:.1f} "
                f"| {100 * row['share_within_tolerance']:.0f} "
                f"| {100 * row['least']:.1f} at {where} |"
            )


def _print_sizes(what: str, by_name: Mapping[str, Any]) -> None:
    print("\nsize of the one-sided test, nominal 5 %: mean (largest) over π_t, in percent\n")
    print(f"| {what} | τ | " + " | ".join(f"k = {k}" for k in KS) + " |")
    print("|---|--:|" + "--:|" * len(KS))
    for name, by_tau in by_name.items():
        for tau, rows in by_tau.items():
            cells = (f"{100 * r['mean']:.1f} ({100 * r['largest']:.1f})" for r in rows.values())
            print(f"| {name} | {tau:g} | " + " | ".join(cells) + " |")


def plot_coverage(
    covered: Mapping[str, Mapping[int, Sequence[float]]], *, nominal: float, tolerance: float = 0.02
) -> Picture:
    """Draw, for each interval and k, the mean, 5th and 95th percentile of the coverage."""
    sizes = sorted({k for rows in covered.values() for k in rows})
    lows = [low for rows in covered.values() for _, low, _ in rows.values()]
    highs = [high for rows in covered.values() for _, _, high in rows.values()]
    low = min(*lows, nominal - tolerance) - 0.01
    high = max(*highs, nominal + tolerance) + 0.01
    chart = Chart(width=504, height=245)

    def sample(place: int) -> Callable[[float, float], None]:
        colour, mark = _STYLES[place % len(_STYLES)]
        return lambda x, y: chart.mark(mark, (x + 16, y), colour, size=6)

    top, left = 24.0, 4.0
    for place, name in enumerate(covered):
        sample(place)(left, 10.0)
        chart.text((left + 30, 10.0), name)
        left += 39 + text_width(name, SIZE)
    frame = Frame(chart, (50, top, 494, 220), (-0.5, len(sizes) - 0.5), (low, high))
    band = (frame.left, frame.y(nominal + tolerance)), (frame.right, frame.y(nominal - tolerance))
    chart.box(*band, "#eeeae0")
    frame.level(nominal, COLOURS["quiet"], width=0.8)
    for place, rows in enumerate(covered.values()):
        colour, mark = _STYLES[place % len(_STYLES)]
        shift = (place - (len(covered) - 1) / 2) * 0.16
        for k, (mean, lowest, highest) in rows.items():
            x = sizes.index(k) + shift
            chart.line([frame.at(x, lowest), frame.at(x, highest)], colour, width=1.2)
            chart.mark(mark, frame.at(x, mean), colour, size=6)
    frame.x_axis({place: f"k = {k}" for place, k in enumerate(sizes)})
    frame.y_axis(numbered(ticks(low, high, most=8)), "coverage")
    return chart.picture("Coverage of the intervals by the size of the groups")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    measured = measure()
    print_tables(measured)
    (folder / "coverage.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    drawn = {
        name: {k: (row["mean"], row["low"], row["high"]) for k, row in rows.items()}
        for name, rows in measured["interval"].items()
    }
    picture = plot_coverage(drawn, nominal=1 - 2 * ALPHA, tolerance=TOLERANCE)
    picture.save(folder / "coverage.svg")


if __name__ == "__main__":
    main()
