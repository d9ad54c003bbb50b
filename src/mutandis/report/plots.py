"""Plots of results: robustness to the worldview, and power."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.report.chart import (
    COLOURS,
    DASHED,
    Chart,
    Frame,
    numbered,
    printable,
    room_for,
    ticks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mutandis.auditing.hidden_cause import LinearEffect
    from mutandis.auditing.robustness import CurvePoint
    from mutandis.report.chart import Picture
    from mutandis.verdicts.power import PowerAnalysis

__all__ = [
    "plot_curve",
    "plot_forest",
    "plot_hidden_cause",
    "plot_power",
    "plot_verdict_matrix",
]

_FOUND, _QUIET = COLOURS["control"], COLOURS["quiet"]
_BAND, _GROUND = "#f3dccb", "#f4f2ee"
_LINE = "#333333"
_STEP = 1 / 20  # between the shares of an effect that a curve is drawn at
_VERDICTS = ("significant-adjusted", "significant", "evidence", "no-evidence", "insufficient")
_EVIDENCE = _VERDICTS[:3]


def plot_curve(points: Sequence[CurvePoint], *, threshold: float, symbol: str = "Δp") -> Picture:
    """Draw Δp and its interval by share of the effect; points are full where the verdict stands."""
    chart = Chart(width=430, height=190)
    known = [
        (each.part, each.delta_p, each.low, each.high, each.stands)
        for each in points
        if each.delta_p is not None and each.low is not None and each.high is not None
    ]
    low, high = min([0.0, *(row[2] for row in known)]), max([0.0, *(row[3] for row in known)])
    room = 0.03 if symbol == "Δp" else 0.03 * (high - low or 1.0)
    labels = numbered(ticks(low - room, high + room, most=7))
    sides = (20 + room_for(labels.values()), 8, 420, 150)
    last = points[-1].part
    frame = Frame(chart, sides, (-0.02, last + 0.02), (low - room, high + room))
    # interrupted where there was no one to compare with
    starts = [i for i, row in enumerate(known) if not i or row[0] - known[i - 1][0] > 1.5 * _STEP]
    runs = [known[a:b] for a, b in zip(starts, [*starts[1:], len(known)], strict=True)]
    for run in runs:
        corners = [frame.at(part, end) for part, _, end, _, _ in run]
        corners += [frame.at(part, end) for part, _, _, end, _ in reversed(run)]
        chart.area(corners, _BAND)
    frame.level(0, "#999999", width=0.8)
    if threshold:
        frame.level(threshold, _LINE, width=0.9, dash="4 2")
    for run in runs:
        chart.line([frame.at(part, delta_p) for part, delta_p, *_ in run], _FOUND)
    for part, delta_p, _, _, stands in known:
        fill = _FOUND if stands else "#ffffff"
        chart.mark("circle", frame.at(part, delta_p), _FOUND, size=5, fill=fill)
    frame.x_axis(numbered(ticks(0, last, most=8), percent=True), "part of the effect that is real")
    frame.y_axis(labels, symbol)
    return chart.picture("Difference by how much of the effect is real")


def plot_forest(rows: Sequence[tuple[str, float, float, float]], title: str) -> Picture:
    """Draw estimates with their intervals, one below the other, and a line at no difference."""
    names = [printable(name) for name, *_ in rows]
    left = 12 + 1.1 * room_for(names)
    chart = Chart(width=left + 330, height=34 + 20 * len(rows))
    ends = [value for _, *values in rows for value in values if np.isfinite(value)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.05 * (high - low or 1.0)
    sides = (left, 6, chart.width - 12, chart.height - 28)
    frame = Frame(chart, sides, (low - room, high + room), (len(rows) - 0.5, -0.5))
    frame.upright(0, _LINE, width=0.8)
    for place, (name, estimate, lower, upper) in enumerate(rows):
        chart.text((left - 8, frame.y(place)), printable(name), anchor="end")
        if np.isfinite(lower) and np.isfinite(upper):
            chart.line([frame.at(lower, place), frame.at(upper, place)], _FOUND, width=2)
        if np.isfinite(estimate):
            chart.mark("square", frame.at(estimate, place), _FOUND, size=6, fill=_FOUND)
    frame.x_axis(numbered(ticks(low - room, high + room, most=7)))
    return chart.picture(title)


def plot_hidden_cause(
    effect: LinearEffect,
    status: str,
    point: float | None = None,
    *,
    label: Callable[[str], str] = str,
) -> Picture:
    """Draw how much of an effect remains, by what a hidden cause explains of both sides.

    With the tipping point of a verdict, a bold line is where it falls. Observed causes are marked,
    and causes that are two and three times as strong.
    """
    chart = Chart(width=430, height=300)
    marks = [
        (label(each.name) if times == 1 else f"{times} × {label(each.name)}", *each.times(times))
        for each in effect.benchmarks
        for times in (1, 2, 3)
    ]
    marks = [(name, x, y) for name, x, y in marks if x < 1 and y < 1]
    far = max([2.5 * effect.robustness_value(1), *(1.2 * max(x, y) for _, x, y in marks), 0.05])
    far = min(far, 1.0)
    labels = numbered(ticks(0, far, most=6), percent=True)
    frame = Frame(chart, (24 + room_for(labels.values()), 10, 420, 256), (0, far), (0, far))
    for remains in (0.75, 0.5, 0.25, 0.0):
        _draw_contour(frame, effect, remains, far)
    if point is not None and not np.isnan(point):
        _draw_contour(frame, effect, point, far, falls=True)
    for name, x, y in marks:
        chart.mark("diamond", frame.at(x, y), COLOURS["test"], size=5)
        chart.text((frame.x(x) + 6, frame.y(y)), name, size=8, colour=COLOURS["test"])
    frame.x_axis(labels, f"explains of {status}")
    frame.y_axis(labels, f"explains of {label(effect.attribute)}")
    return chart.picture("How strong a hidden common cause would have to be")


def _draw_contour(
    frame: Frame, effect: LinearEffect, remains: float, far: float, *, falls: bool = False
) -> None:
    """Draw where this share of the effect remains."""
    needed = ((1 - remains) * effect.strength) ** 2
    # R²_x = (1 - λ)² f² (1 - R²_a) / R²_a, from the upper edge of the frame on
    first = needed / (needed + far)
    if not 0 < first < far:
        return
    colour = _FOUND if falls else _QUIET
    curve = [frame.at(x, needed * (1 - x) / x) for x in np.geomspace(first, far, 80).tolist()]
    frame.chart.line(curve, colour, width=2 if falls else 1, dash="" if falls else "4 2")
    # labelled where the cause explains as much of one side as of the other
    middle = effect.robustness_value(1 - remains)
    x, y = frame.at(middle, middle)
    said = f"falls: {remains:.0%}" if falls else f"{remains:.0%} remains"
    frame.chart.text((x + 4, y + (12 if falls else -7)), said, size=8, colour=colour, bold=falls)


def plot_verdict_matrix(cells: Mapping[str, Mapping[str, float]], caption: str) -> Picture:
    """Draw a row per worldview and a column per verdict; the darker a cell, the more it holds.

    Whole numbers are counts. A difference fills its cell, and is written in it.
    """
    names = [printable(name) for name in cells]
    shown = [each for each in _VERDICTS if any(each in row for row in cells.values())]
    verdicts = _VERDICTS if len(shown) < 2 else shown
    left = 1.15 * room_for(names)
    chart = Chart(width=left + 92 * len(verdicts) + 8, height=44 + 24 * len(names))
    chart.text((left, 10), caption, colour=_QUIET)
    sides = (left, 38, chart.width - 8, 40 + 24 * len(names))
    frame = Frame(chart, sides, (-0.5, len(verdicts) - 0.5), (len(names) - 0.5, -0.5))
    for column, verdict in enumerate(verdicts):
        chart.text((frame.x(column), 28), verdict, size=8.5, anchor="middle")
    for row, (name, counts) in enumerate(zip(names, cells.values(), strict=True)):
        chart.text((left - 6, frame.y(row)), name, anchor="end")
        total = max(sum(abs(value) for value in counts.values()), 1)
        for column, verdict in enumerate(verdicts):
            one, two = frame.at(column - 0.48, row - 0.46), frame.at(column + 0.48, row + 0.46)
            chart.box(one, two, _GROUND)
            if verdict not in counts:
                continue
            value = counts[verdict]
            counted = isinstance(value, int)
            share = value / total if counted else 0.8
            if share:
                colour = _FOUND if verdict in _EVIDENCE else _QUIET
                chart.box(one, two, colour, opacity=f"{0.15 + 0.75 * share:.3f}")
            said = f"{value:,}" if counted else "–" if np.isnan(value) else f"{value:+.3f}"
            ink = "#ffffff" if share > 0.5 else "#222222"
            at = frame.at(column, row)
            chart.text(at, said.replace("-", "−"), size=9, anchor="middle", colour=ink)
    return chart.picture(f"Verdicts by worldview: {caption}")


def plot_power(found: PowerAnalysis) -> Picture:
    """Draw the power at every k, and the k from which on it stays at its target."""
    shown = min(len(found.curve), max(*found.ks, 2 * (found.smallest_k or found.k_max)))
    chart = Chart(width=504, height=230)
    frame = Frame(chart, (44, 24, 494, 192), (0, shown), (0, 1.02))
    frame.level(found.target, _QUIET, width=0.8, dash=DASHED)
    if found.smallest_k is not None:
        frame.upright(found.smallest_k, _FOUND, width=0.8, dash=DASHED)
        x, y = frame.at(found.smallest_k, 0.04)
        chart.text((x + 4, y), f"k = {found.smallest_k}", colour=_FOUND)
    points = [frame.at(k, power) for k, power in enumerate(found.curve[:shown], start=1)]
    chart.line(points, COLOURS["test"], width=1.4)
    frame.x_axis(numbered(ticks(0, shown, most=10, whole=True)), "k, the size of each group")
    frame.y_axis(numbered(ticks(0, 1, most=6)), "power")
    chart.text(
        (44, 10),
        f"refused {found.p_control:g} and {found.p_test:g}, α = {found.alpha:g}, "
        f"τ = {found.tau:g}, {found.interval}",
    )
    return chart.picture("Power by the size of the groups")
