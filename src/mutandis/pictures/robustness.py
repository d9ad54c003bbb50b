"""Robustness to the worldview: of one verdict, over parts of the effect, and of all verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.pictures.chart import Chart, Frame, numbered, room_for, ticks
from mutandis.pictures.picture import COLOURS
from mutandis.pictures.svg import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.hidden_cause import LinearEffect
    from mutandis.auditing.tipping import CurvePoint
    from mutandis.pictures.picture import Picture

__all__ = ["plot_curve", "plot_hidden_cause", "plot_tipping_points", "plot_verdict_matrix"]

_BAND = "#f3dccb"
_GRADES = {"robust": COLOURS["test"], "sensitive": COLOURS["alone"], "fragile": COLOURS["control"]}
_BARS = 21  # from 0 to 1 in twentieths
_VERDICTS = ("significant-adjusted", "significant", "evidence", "no-evidence", "insufficient")
_FOUND = 3  # the first so many of them are evidence


def plot_curve(points: Sequence[CurvePoint], *, threshold: float, symbol: str = "Δp") -> Picture:
    """Draw Δp and its interval over parts of the effect; points are full where it stands."""
    chart = Chart(width=430, height=190)
    known = [
        (each.part, each.delta_p, each.low, each.high, each.stands)
        for each in points
        if each.delta_p is not None and each.low is not None and each.high is not None
    ]
    lows, highs = ([*(row[place] for row in known), 0.0] for place in (2, 3))
    room = 0.03 if symbol == "Δp" else 0.03 * (max(highs) - min(lows) or 1.0)
    low, high = min(lows) - room, max(highs) + room
    labels = numbered(ticks(low, high, most=7))
    frame = Frame(
        chart,
        (20 + room_for(labels.values()), 8, 420, 150),
        (-0.02, points[-1].part + 0.02),
        (low, high),
    )
    for run in _runs(known):
        corners = [frame.at(part, end) for part, _, end, _, _ in run]
        corners += [frame.at(part, end) for part, _, _, end, _ in reversed(run)]
        chart.area(corners, _BAND)
    frame.level(0, "#999999", width=0.8)
    if threshold:
        frame.level(threshold, "#333333", width=0.9, dash="4 2")
    for run in _runs(known):
        chart.line([frame.at(part, delta_p) for part, delta_p, *_ in run], COLOURS["control"])
    for part, delta_p, _, _, stands in known:
        fill = COLOURS["control"] if stands else "#ffffff"
        chart.mark("circle", frame.at(part, delta_p), COLOURS["control"], size=5, fill=fill)
    frame.x_axis(
        numbered(ticks(0, points[-1].part, most=8), percent=True), "part of the effect that is real"
    )
    frame.y_axis(labels, symbol)
    return chart.picture("Difference by how much of the effect is real")


_Known = tuple[float, float, float, float, bool]


def _runs(known: Sequence[_Known]) -> list[list[_Known]]:
    """Part points where some between them are missing."""
    runs: list[list[_Known]] = []
    for row in known:
        if runs and row[0] - runs[-1][-1][0] < 1.5 / (_BARS - 1):
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def plot_hidden_cause(
    effect: LinearEffect,
    status: str,
    point: float | None = None,
    *,
    label: Callable[[str], str] = str,
) -> Picture:
    """Draw how much of an effect remains, by what a hidden cause explains of both sides.

    A line is where so much remains; with the tipping point of a verdict, where that falls. Observed
    causes are marked, and such as are two and three times as strong.
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
    lines = [(0.75, False), (0.5, False), (0.25, False), (0.0, False)]
    for remains, hers in [*lines, *([] if point is None or np.isnan(point) else [(point, True)])]:
        needed = ((1 - remains) * effect.strength) ** 2
        # R²_x = (1 - λ)² f² (1 - R²_a) / R²_a, from the upper edge of the frame on
        first = needed / (needed + far)
        xs = np.geomspace(first, far, 80) if 0 < first < far else np.array([])
        colour = COLOURS["control"] if hers else COLOURS["quiet"]
        curve = [frame.at(x, needed * (1 - x) / x) for x in xs.tolist()]
        chart.line(curve, colour, width=2 if hers else 1, dash="" if hers else "4 2")
        # written where as much is explained of the one as of the other
        middle = effect.robustness_value(1 - remains)
        said = f"falls: {remains:.0%}" if hers else f"{remains:.0%} remains"
        x, y = frame.at(middle, middle)
        if curve:
            away = 12 if hers else -7
            chart.text((x + 4, y + away), said, size=8, colour=colour, bold=hers)
    for name, x, y in marks:
        chart.mark("diamond", frame.at(x, y), COLOURS["test"], size=5)
        chart.text((frame.x(x) + 6, frame.y(y)), name, size=8, colour=COLOURS["test"])
    frame.x_axis(labels, f"explains of {status}")
    frame.y_axis(labels, f"explains of {label(effect.attribute)}")
    return chart.picture("How strong a hidden common cause would have to be")


def plot_verdict_matrix(cells: Mapping[str, Mapping[str, float]], caption: str) -> Picture:
    """Draw a row per worldview and a column per verdict; the darker a cell, the more it holds.

    Whole numbers are counts. A difference fills its cell, and is written in it.
    """
    names = [printable(name) for name in cells]
    shown = [each for each in _VERDICTS if any(each in row for row in cells.values())]
    verdicts = _VERDICTS if len(shown) < 2 else shown
    left = 1.15 * room_for(names)
    chart = Chart(width=left + 92 * len(verdicts) + 8, height=44 + 24 * len(names))
    chart.text((left, 10), caption, colour=COLOURS["quiet"])
    frame = Frame(
        chart,
        (left, 38, chart.width - 8, 40 + 24 * len(names)),
        (-0.5, len(verdicts) - 0.5),
        (len(names) - 0.5, -0.5),
    )
    for column, verdict in enumerate(verdicts):
        chart.text((frame.x(column), 28), verdict, size=8.5, anchor="middle")
    for row, (name, counts) in enumerate(zip(names, cells.values(), strict=True)):
        chart.text((left - 6, frame.y(row)), name, anchor="end")
        total = max(sum(abs(value) for value in counts.values()), 1)
        for column, verdict in enumerate(verdicts):
            value = counts.get(verdict)
            colour = COLOURS["control" if verdict in _VERDICTS[:_FOUND] else "quiet"]
            counted = isinstance(value, int)
            share = 0.0 if value is None else value / total if counted else 0.8
            one, two = frame.at(column - 0.48, row - 0.46), frame.at(column + 0.48, row + 0.46)
            chart.box(one, two, "#f4f2ee")
            if share:
                chart.box(one, two, colour, opacity=round(0.15 + 0.75 * share, 3))
            if value is not None:
                said = f"{value:,}" if counted else "–" if np.isnan(value) else f"{value:+.3f}"
                ink = "#ffffff" if share > 0.5 else "#222222"
                said = said.replace("-", "−")
                chart.text(frame.at(column, row), said, size=9, anchor="middle", colour=ink)
    return chart.picture(f"Verdicts by worldview: {caption}")


def plot_tipping_points(
    point: NDArray[np.float64], grade: NDArray[np.object_], *, counts: Mapping[str, int]
) -> Picture:
    """Draw a histogram of tipping points, by grade; `counts` are written beside the grades."""
    chart = Chart(width=480, height=190)

    def sample(colour: str) -> Callable[[float, float], None]:
        return lambda x, y: chart.box((x, y - 4), (x + 24, y + 4), colour)

    top = chart.legend(
        [(f"{name}: {counts[name]:,}", sample(colour)) for name, colour in _GRADES.items()]
    )
    bars = {
        name: np.bincount(np.rint(point[grade == name] * (_BARS - 1)).astype(int), minlength=_BARS)
        for name in _GRADES
    }
    most = max(1, int(np.sum(list(bars.values()), axis=0).max())) * 1.1
    labels = {each: f"{each:,.0f}" for each in ticks(0, most, most=5, whole=True)}
    left = 20 + room_for(labels.values())
    frame = Frame(chart, (left, top, 470, 150), (-0.035, 1.035), (0, most))
    below = np.zeros(_BARS, dtype=int)
    for name, heights in bars.items():
        for bar in np.flatnonzero(heights).tolist():
            middle = bar / (_BARS - 1)
            chart.box(
                frame.at(middle - 0.02, below[bar] + heights[bar]),
                frame.at(middle + 0.02, below[bar]),
                _GRADES[name],
            )
        below += heights
    frame.x_axis(
        numbered(ticks(0, 1, most=6), percent=True), "part of the effect that must be real, λ*"
    )
    frame.y_axis(labels, "verdicts")
    return chart.picture("How much of the effect must be real")
