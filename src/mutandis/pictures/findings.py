"""Findings: by difference, by group size, by method, by worldview, and of one complainant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.pictures.picture import COLOURS, Picture, figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

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


def plot_delta_p(differences: Sequence[Differences], *, threshold: float) -> Picture:
    """Draw one row of bars per method, cases apart from the others; Δp = 0 is counted in words."""
    edges = np.linspace(-1, 1, _BARS + 1)
    count = len(differences)
    size = {"width": 7.4, "height": 0.9 + 1.25 * count}
    with figure(**size, nrows=count, sharex=True, squeeze=False) as (drawn, grid):
        rows = grid[:, 0]
        for axes, each in zip(rows, differences, strict=True):
            _draw_histogram(axes, each, edges, threshold)
        rows[-1].set_xlabel("Δp, where it is not 0")
        rows[-1].set_xlim(*_limits(differences, edges))
        handles, labels = rows[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper left", ncols=3)
        return Picture.of_figure(drawn, title="Differences in refusals by method")


def _draw_histogram(
    axes: Axes, each: Differences, edges: NDArray[np.float64], threshold: float
) -> None:
    from matplotlib.ticker import MaxNLocator

    apart = each.delta_p != 0
    others = count_differences(each.delta_p[apart & ~each.evidence])
    cases = count_differences(each.delta_p[apart & each.evidence])
    axes.stairs(others, edges, fill=True, color=_OTHERS, label="no evidence")
    axes.stairs(
        others + cases,
        edges,
        baseline=others,
        fill=True,
        color=COLOURS["control"],
        label="evidence",
    )
    axes.axvline(
        threshold,
        color="#333333",
        linewidth=0.9,
        linestyle="--",
        label=f"threshold {threshold:+g}" if threshold else "threshold 0",
    )
    axes.set_ylabel(each.title, rotation=0, ha="right", va="center")
    axes.set_ylim(bottom=0, top=max(1, int((others + cases).max())) * 1.2)
    axes.text(0.01, 0.97, f"Δp = 0: {int((~apart).sum()):,}", transform=axes.transAxes, va="top")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")


def _limits(differences: Sequence[Differences], edges: NDArray[np.float64]) -> tuple[float, float]:
    """Leave out empty ends, but keep a window around 0."""
    total = np.sum([count_differences(each.delta_p) for each in differences], axis=0)
    filled = np.flatnonzero(total)
    first, last = (filled[0], filled[-1]) if len(filled) else (_BARS // 2, _BARS // 2)
    return min(float(edges[first]), -0.2) - 0.02, max(float(edges[last + 1]), 0.2) + 0.02


# dark enough on white, apart in every common form of colour blindness, and marked apart in print
_LINES = (
    ("#1f5fa8", "-", "o"),
    ("#b8500f", "--", "s"),
    ("#2e7d4f", "-.", "^"),
    ("#5f5a50", ":", "D"),
    ("#7a3b8f", "-", "v"),
)
# beyond so many sizes markers would cover the lines
_MARKED = 30


def plot_k_sweep(
    records: Sequence[Mapping[str, Any]], *, titles: Mapping[str, str], main: str | None = None
) -> Picture:
    """Draw one line per method over k: the share of cases (of `main`, adjusted), and mean Δp."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    height = 3.4 if main is None else 3.9
    with figure(width=8.0, height=height, ncols=2) as (drawn, (shares, means)):
        light = {} if main is None else {"linewidth": 0.9, "alpha": 0.6}
        for (name, title), (colour, line, marker) in zip(titles.items(), _LINES, strict=False):
            mine = [record for record in records if record["method"] == name]
            ks = [record["k"] for record in mine]
            look = {"color": colour, "linestyle": line, "markersize": 4}
            look["marker"] = marker if len(ks) <= _MARKED else None
            label = title if main is None else f"{title}: evidence"
            shares.plot(ks, [record["share"] for record in mine], label=label, **look | light)
            means.plot(ks, [record["mean_delta_p"] for record in mine], **look)
            if name == main:
                shares.plot(
                    ks,
                    [record["adjusted"] for record in mine],
                    label=f"{title}: significant after adjustment",
                    **look | {"color": COLOURS["control"], "linewidth": 2.6, "zorder": 3},
                )
        shares.set_ylim(bottom=0)
        shares.yaxis.set_major_formatter(PercentFormatter(1.0))
        shares.set_ylabel("complainants with evidence" if main is None else "complainants")
        means.axhline(0, color="#999999", linewidth=0.8, zorder=0)
        means.set_ylabel("mean Δp")
        for axes in (shares, means):
            axes.set_xlabel("group size k")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        drawn.legend(loc="outside upper left", ncols=len(titles) if main is None else 3)
        return Picture.of_figure(drawn, title="Cases and mean difference by group size k")


_UNFOUND = "#d8d4cc"


def plot_agreement(
    records: Sequence[Mapping[str, Any]],
    totals: Mapping[str, int],
    *,
    titles: Mapping[str, str],
    caption: str,
) -> Picture:
    """Draw a bar for each combination of finders, and below it which finders they are."""
    # Lex, Gehlenborg, Strobelt, Vuillemot, Pfister (2014), UpSet: visualization of intersecting
    # sets, IEEE Transactions on Visualization and Computer Graphics 20, 1983-1992
    below = 0.28 * len(totals)
    size = {"width": 2.8 + 0.55 * max(len(records), 3), "height": 2.4 + below}
    with figure(**size, nrows=2, sharex=True, height_ratios=[2.0, below]) as (drawn, (bars, dots)):
        _draw_bars(bars, [int(record["cases"]) for record in records], caption)
        _draw_dots(dots, records, totals, titles)
        return Picture.of_figure(drawn, title=f"Who finds the same cases: {caption}")


def _draw_bars(axes: Axes, cases: Sequence[int], caption: str) -> None:
    from matplotlib.ticker import MaxNLocator

    bars = axes.bar(range(len(cases)), cases, color=COLOURS["shared"], width=0.6)
    axes.bar_label(bars, [f"{count:,}" for count in cases], padding=3)
    axes.set_xlim(-0.6, max(len(cases), 1) - 0.4)
    axes.margins(y=0.15)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
    axes.set_title(caption, loc="left", fontsize=10, color=COLOURS["quiet"])
    axes.tick_params(bottom=False)


def _draw_dots(
    axes: Axes,
    records: Sequence[Mapping[str, Any]],
    totals: Mapping[str, int],
    titles: Mapping[str, str],
) -> None:
    names = list(totals)
    for place, record in enumerate(records):
        rows = [row for row, name in enumerate(names) if record[name]]
        others = [row for row in range(len(names)) if row not in rows]
        axes.scatter([place] * len(others), others, s=34, color=_UNFOUND)
        axes.plot([place] * len(rows), rows, "o-", color=COLOURS["shared"], markersize=6)
    axes.set_yticks(range(len(names)), [f"{titles[name]}  {totals[name]:,}" for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xticks([])
    axes.tick_params(left=False)
    axes.spines[:].set_visible(False)


_PARTS = (
    ("found_by_all", "found under every worldview", COLOURS["shared"]),
    ("found_by_some", "under some others", COLOURS["partly"]),
    ("found_by_it_alone", "under this one alone", COLOURS["alone"]),
)


def plot_worldviews(summary: Sequence[Mapping[str, Any]], *, method: str, k: int) -> Picture:
    """Draw one bar per worldview, divided by how many other worldviews find the same cases."""
    from matplotlib.ticker import MaxNLocator

    names = [str(row["worldview"]) for row in summary]
    with figure(height=1.2 + 0.45 * len(names)) as (drawn, axes):
        left = [0] * len(names)
        for key, label, colour in _PARTS:
            widths = [int(row[key]) for row in summary]
            if any(widths):
                axes.barh(names, widths, left=left, label=label, color=colour, height=0.6)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        for place, (total, row) in enumerate(zip(left, summary, strict=True)):
            axes.annotate(
                f"{total:,} ({total / row['complainants']:.1%})",
                (total, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
            )
        axes.invert_yaxis()
        axes.margins(x=0.18)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(f"complainants with Δp > τ ({method}, k = {k})")
        if any(left):
            drawn.legend(loc="outside upper left", ncols=3)
        return Picture.of_figure(drawn, title="Cases by worldview, and who shares them")


_TINT = "#f1ede3"
_FOUND = COLOURS["control"]
_QUIET = COLOURS["quiet"]
# height of a row, and of everything else, in inches
_ROW, _REST = 0.235, 0.8


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


def plot_forest(rows: Sequence[ForestRow], *, threshold: float, threshold_name: str) -> Picture:
    """Draw differences with their intervals, one line each, from top to bottom."""
    with figure(width=8.6, height=_REST + _ROW * len(rows)) as (drawn, axes):
        for place, row in enumerate(rows):
            _draw_forest_row(
                axes, -place, row, first=not place or rows[place - 1].group != row.group
            )
        axes.axvline(0, color="#8d877b", lw=0.9, zorder=0)
        if threshold:
            axes.axvline(threshold, color=_FOUND, lw=0.9, ls=(0, (4, 3)), zorder=0)
        axes.set_xlim(-1.03, 1.03)
        axes.set_ylim(-len(rows) + 0.4, 0.7)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["−1", "−0.5", "0", "0.5", "1"])
        mark = f"; dashed: {threshold_name}" if threshold else ""
        axes.set_xlabel(
            f"Δp, share refused in the control group less that in the test group{mark}", fontsize=9
        )
        # room for the words on both sides, which no layout engine would make
        drawn.set_layout_engine("none")
        bottom = 0.56 / (_REST + _ROW * len(rows))
        axes.set_position((0.19, bottom, 0.43, 1 - bottom - 0.01))
        return Picture.of_figure(drawn, title="Differences and intervals by method and group size")


def _draw_forest_row(axes: Axes, height: float, row: ForestRow, *, first: bool) -> None:
    if row.primary:
        axes.axhspan(
            height - 0.5,
            height + 0.5,
            xmin=-0.44,
            xmax=1.9,
            color=_TINT,
            zorder=-1,
            clip_on=False,
            lw=0,
        )
    weight = "bold" if row.primary else "normal"
    side = axes.get_yaxis_transform()
    common: dict[str, Any] = {"transform": side, "va": "center_baseline", "fontsize": 9}
    if first:
        axes.text(-0.43, height, row.group, fontweight="bold", **common)
    axes.text(-0.04, height, row.label, ha="right", fontweight=weight, **common)
    axes.text(1.05, height, row.words, fontweight=weight, **common)
    axes.text(1.49, height, row.verdict, fontweight=weight, **common)
    if row.delta_p is None:
        return
    colour = _FOUND if row.found else _QUIET
    if row.low is not None and row.high is not None:
        bounds: dict[str, Any] = {"lw": 1.6, "solid_capstyle": "butt", "marker": "|"}
        axes.plot([row.low, row.high], [height, height], color=colour, markersize=6, **bounds)
        look: dict[str, Any] = {"marker": "s"}
    else:
        look = {"marker": "D", "fillstyle": "none"}
    axes.plot([row.delta_p], [height], color=colour, ls="", markersize=5, **look)
