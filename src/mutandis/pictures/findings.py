"""Charts of findings: differences, worldviews, and one complainant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.pictures.chart import Chart, Frame, numbered, room_for, ticks
from mutandis.pictures.picture import COLOURS
from mutandis.pictures.svg import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.pictures.picture import Picture

# from -1 to 1 in bars of 0.05
_BARS = 40
_OTHERS = "#a9a397"


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Δp of the complainants who can be compared under one method, and who of them is a case."""

    title: str
    delta_p: NDArray[np.float64]
    evidence: NDArray[np.bool_]


def count_differences(delta_p: NDArray[np.float64]) -> NDArray[np.intp]:
    """Count differences by bars of 0.05, each with its upper end: 0 belongs to (-0.05, 0]."""
    # a ten-thousandth of a bar forgives the rounding of floats, and no two shares are so close
    bar = np.ceil((np.asarray(delta_p) + 1) * (_BARS / 2) - 1e-4).astype(np.intp) - 1
    return np.bincount(np.clip(bar, 0, _BARS - 1), minlength=_BARS)


def reach_of(differences: Sequence[Differences]) -> float:
    """Choose how far bars reach on both sides of 0: 1, 2 or 5 times a power of ten."""
    farthest = max(float(np.abs(each.delta_p).max(initial=0.0)) for each in differences)
    if not farthest:
        return 1.0
    power = 10.0 ** np.floor(np.log10(farthest))
    return float(next(power * each for each in (1, 2, 5, 10) if power * each >= farthest))


def plot_delta_p(
    differences: Sequence[Differences],
    *,
    threshold: float | None,
    symbol: str = "Δp",
    reach: float = 1.0,
) -> Picture:
    """Draw one row of bars per method, cases apart from the others; Δp = 0 is counted in words.

    Differences of shares reach from -1 to 1, those of scores as far as `reach` says.
    """
    if reach != 1:
        differences = [replace(each, delta_p=each.delta_p / reach) for each in differences]
    edges = np.linspace(-1, 1, _BARS + 1)
    chart = Chart(width=533, height=48 + 90 * len(differences))
    keys: list[tuple[str, Callable[[float, float], None]]] = [
        ("no evidence", lambda x, y: chart.box((x, y - 4), (x + 24, y + 4), _OTHERS)),
        ("evidence", lambda x, y: chart.box((x, y - 4), (x + 24, y + 4), COLOURS["control"])),
    ]
    if threshold is not None:
        named = f"threshold {threshold:+g}" if threshold else "threshold 0"
        line = "#333333"
        keys.append((named, lambda x, y: chart.line([(x, y), (x + 24, y)], line, dash="4 2")))
    top = chart.legend(keys)
    low, high = _limits(differences, edges)
    left = room_for(each.title for each in differences) + 34
    for place, each in enumerate(differences):
        apart = each.delta_p != 0
        others = count_differences(each.delta_p[apart & ~each.evidence])
        cases = others + count_differences(each.delta_p[apart & each.evidence])
        most = max(1, int(cases.max())) * 1.2
        above = top + 90 * place
        frame = Frame(chart, (left, above, 523, above + 72), (low, high), (0, most))
        _draw_bars_between(frame, edges, np.zeros_like(others), others, _OTHERS)
        _draw_bars_between(frame, edges, others, cases, COLOURS["control"])
        if threshold is not None and low <= threshold / reach <= high:
            frame.upright(threshold / reach, "#333333", width=0.9, dash="4 2")
        is_last = place == len(differences) - 1
        frame.x_axis(
            {
                v / reach: said if is_last else ""
                for v, said in numbered(ticks(low * reach, high * reach, most=10)).items()
            },
            f"{symbol}, where it is not 0" if is_last else "",
        )
        frame.y_axis({v: f"{v:,.0f}" for v in ticks(0, most, most=4, whole=True)})
        chart.text((left - 38, above + 36), each.title, anchor="end")
        chart.text((left + 4, above + 5), f"{symbol} = 0: {int((~apart).sum()):,}")
    return chart.picture("Differences by method")


def _draw_bars_between(
    frame: Frame,
    edges: NDArray[np.float64],
    below: NDArray[np.intp],
    above: NDArray[np.intp],
    colour: str,
) -> None:
    for bar in np.flatnonzero(above > below).tolist():
        frame.chart.box(
            frame.at(edges[bar], above[bar]), frame.at(edges[bar + 1], below[bar]), colour
        )


def _limits(differences: Sequence[Differences], edges: NDArray[np.float64]) -> tuple[float, float]:
    """Leave out empty ends, but keep a window around 0."""
    total = np.sum([count_differences(each.delta_p) for each in differences], axis=0)
    filled = np.flatnonzero(total)
    first, last = (filled[0], filled[-1]) if len(filled) else (_BARS // 2, _BARS // 2)
    return min(float(edges[first]), -0.2) - 0.02, max(float(edges[last + 1]), 0.2) + 0.02


# dark enough on white, apart in every common form of colour blindness, and marked apart in print
_PARTS = (
    ("found_by_all", "found under every worldview", COLOURS["shared"]),
    ("found_by_some", "under some others", COLOURS["partly"]),
    ("found_by_it_alone", "under this one alone", COLOURS["alone"]),
)


def plot_worldviews(summary: Sequence[Mapping[str, Any]], *, method: str, k: int) -> Picture:
    """Draw one bar per worldview, divided by how many other worldviews find the same cases."""
    names = [printable(str(row["worldview"])) for row in summary]
    chart = Chart(width=504, height=86 + 32 * len(names))
    counts = [[int(row[key]) for key, _, _ in _PARTS] for row in summary]

    def sample(colour: str) -> Callable[[float, float], None]:
        return lambda x, y: chart.box((x, y - 4), (x + 24, y + 4), colour)

    top = chart.legend(
        [
            (label, sample(colour))
            for place, (_, label, colour) in enumerate(_PARTS)
            if any(row[place] for row in counts)
        ]
    )
    most = max(1, *map(sum, counts), 1) * 1.25
    sides = (room_for(names), top, 494, top + 32 * len(names))
    frame = Frame(chart, sides, (0, most), (len(names) - 0.5, -0.5))
    for place, (row, widths) in enumerate(zip(summary, counts, strict=True)):
        start = 0
        for width, (_, _, colour) in zip(widths, _PARTS, strict=True):
            if width:
                one, two = frame.at(start, place - 0.3), frame.at(start + width, place + 0.3)
                chart.box(one, two, colour)
            start += width
        x, y = frame.at(start, place)
        chart.text((x + 4, y), f"{start:,} ({start / row['complainants']:.1%})")
    frame.x_axis(
        {v: f"{v:,.0f}" for v in ticks(0, most, most=8, whole=True)},
        f"complainants with Δp > τ ({method}, k = {k})",
    )
    frame.y_axis(dict(enumerate(names)))
    return chart.picture("Cases by worldview, and who shares them")


_TINT = "#f1ede3"
_FOUND = COLOURS["control"]
_QUIET = COLOURS["quiet"]
# height of a row, and the size of its words
_ROW, _WORDS = 17.0, 9.0
_WIDEST = 110.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow:
    """One line of a forest plot: without bounds a point is drawn, or else the words alone."""

    group: str  # the method, written once for all its rows
    label: str
    delta_p: float | None
    low: float | None
    high: float | None
    words: str
    verdict: str
    found: bool
    primary: bool = False


def plot_forest(
    rows: Sequence[ForestRow],
    *,
    threshold: float,
    threshold_name: str,
    axis: tuple[str, str] = ("Δp, share {} in the control group less that in the test group", ""),
    share: bool = True,
) -> Picture:
    """Draw differences with their intervals, one line each, from top to bottom.

    The title of the `axis` has a name put into it. Differences of shares are drawn from -1 to 1,
    others as far as they reach.
    """
    chart = Chart(width=620, height=48 + _ROW * len(rows))
    sides = (118, 4, 384, 8 + _ROW * len(rows))
    farthest = 1.0
    if not share:
        ends = [each for row in rows for each in (row.delta_p, row.low, row.high)]
        farthest = max([abs(each) for each in ends if each is not None], default=1.0) or 1.0
    frame = Frame(chart, sides, (-1.03 * farthest, 1.03 * farthest), (len(rows) - 0.4, -0.5))
    for place, row in enumerate(rows):
        if row.primary:
            y = frame.y(place)
            chart.box((2, y - _ROW / 2), (618, y + _ROW / 2), _TINT)
    frame.upright(0, "#8d877b", width=0.9)
    if threshold:
        frame.upright(threshold, _FOUND, width=0.9, dash="4 3")
    for place, row in enumerate(rows):
        _draw_forest_row(frame, place, row, first=not place or rows[place - 1].group != row.group)
    mark = f"; dashed: {threshold_name}" if threshold else ""
    shares = {-1: "−1", -0.5: "−0.5", 0: "0", 0.5: "0.5", 1: "1"}
    frame.x_axis(shares if share else numbered(ticks(-farthest, farthest, most=7)))
    name = shortened(printable(axis[1]), width=_WIDEST, size=_WORDS)
    title = axis[0].format(name) + mark
    chart.text((251, frame.bottom + 26), title, size=_WORDS, anchor="middle")
    return chart.picture("Differences and intervals by method and group size")


def _draw_forest_row(frame: Frame, place: int, row: ForestRow, *, first: bool) -> None:
    chart, y = frame.chart, frame.y(place)
    if first:
        chart.text((4, y), row.group, size=_WORDS, bold=True)
    chart.text((108, y), row.label, size=_WORDS, anchor="end", bold=row.primary)
    chart.text((397, y), row.words, size=_WORDS, bold=row.primary)
    chart.text((514, y), row.verdict, size=_WORDS, bold=row.primary)
    if row.delta_p is None:
        return
    colour, x = _FOUND if row.found else _QUIET, frame.x(row.delta_p)
    if row.low is None or row.high is None:
        chart.mark("diamond", (x, y), colour, fill="#ffffff")
        return
    low, high = frame.x(row.low), frame.x(row.high)
    chart.line([(low, y), (high, y)], colour, width=1.6)
    for end in (low, high):
        chart.line([(end, y - 3), (end, y + 3)], colour)
    chart.mark("square", (x, y), colour)
