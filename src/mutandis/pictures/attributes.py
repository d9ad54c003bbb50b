"""Attributes: how they are distributed in both worlds, and in the groups of complainants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.pictures.picture import COLOURS, Picture, figure
from mutandis.pictures.svg import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

Role = Literal["factual", "counterfactual", "reference"]

# roles differ in their strokes too, for print in grey
_LOOKS: dict[Role, tuple[str, str, float]] = {
    "factual": (COLOURS["control"], "-", 1.6),
    "counterfactual": (COLOURS["test"], "--", 1.8),
    "reference": (COLOURS["quiet"], ":", 1.4),
}
_WIDTH = 4.4
_MOST_BINS = 40
_MOST_STEPS = 60
# a few far values would squeeze all others into one bar: they are counted in the outermost ones
_TAIL = 0.001
_NAME = 300.0
_LEVEL_NAME = 150.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """One group of people in one world: their numbers or, for names, the share of each level."""

    role: Role
    label: str
    values: NDArray[np.float64]


def bin_edges(groups: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Choose the edges of bars, the same for every group."""
    pooled = np.concatenate(groups)
    low, high = np.quantile(pooled, [_TAIL, 1 - _TAIL], method="inverted_cdf").tolist()
    if low == high:
        low, high = float(pooled.min()), float(pooled.max())
    if low == high:
        return np.array([low - 0.5, high + 0.5])
    # around values at equal steps (whole numbers, tens of thousands), bars of any other width would
    # show gaps that are not there
    grids = [grid for group in groups if (grid := _grid(group)) is not None]
    if grids:
        step, start = max(grids)
        first = start + np.floor((low - start) / step + 0.5) * step
        count = int(np.floor((high - first) / step + 0.5)) + 1
        return np.asarray(first + (np.arange(count + 1) - 0.5) * step)
    count = int(np.clip(np.sqrt(len(pooled)), 8, _MOST_BINS))
    return np.linspace(low, high, count + 1)


def _grid(values: NDArray[np.float64]) -> tuple[float, float] | None:
    """Find the step of values that lie on a grid of few points, and one of them."""
    # sorting a million numbers takes its time, and the first few tell whether there are many
    if len(np.unique(values[: 20 * _MOST_STEPS])) > _MOST_STEPS:
        return None
    distinct = np.unique(values)
    if not 2 <= len(distinct) <= _MOST_STEPS:
        return None
    gaps = np.diff(distinct)
    step = float(gaps.min())
    on_grid = bool(np.allclose(gaps / step, np.round(gaps / step), rtol=0, atol=1e-6))
    few = (distinct[-1] - distinct[0]) / step < _MOST_STEPS
    return (step, float(distinct[0])) if on_grid and few else None


def plot_numbers(name: str, spreads: Sequence[Spread]) -> Picture:
    """Draw a histogram of each group over the same bars."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    edges = bin_edges([each.values for each in spreads])
    with figure(width=_WIDTH, height=2.7) as (drawn, axes):
        for each in spreads:
            _draw_steps(axes, each, edges)
        axes.set_ylim(bottom=0)
        axes.set_xlim(edges[0], edges[-1])
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
        if max(abs(edges[0]), abs(edges[-1])) >= 10_000:
            axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylabel("share of the group")
        axes.set_xlabel(shortened(printable(name), width=_NAME, size=13))
        drawn.legend(loc="outside upper left", ncols=1, borderaxespad=0.2)
        return Picture.of_figure(drawn, title=f"Distribution of {printable(name)}")


def _draw_steps(axes: Axes, spread: Spread, edges: NDArray[np.float64]) -> None:
    colour, line, width = _LOOKS[spread.role]
    inside = np.clip(spread.values, edges[0], edges[-1])
    heights = np.histogram(inside, bins=edges)[0] / max(len(inside), 1)
    if spread.role == "factual":
        axes.stairs(heights, edges, fill=True, color=colour, alpha=0.18)
    axes.stairs(heights, edges, color=colour, linestyle=line, linewidth=width, label=spread.label)


def plot_levels(name: str, levels: Sequence[str], spreads: Sequence[Spread]) -> Picture:
    """Draw the share of each level in each group, as bars side by side."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    height = 0.8 / len(spreads)
    size = 1.2 + 0.2 * len(spreads) + max(len(levels) * len(spreads) * 0.14, 0.5)
    with figure(width=_WIDTH, height=size) as (drawn, axes):
        places = np.arange(len(levels))
        for index, each in enumerate(spreads):
            colour = _LOOKS[each.role][0]
            axes.barh(
                places - 0.4 + (index + 0.5) * height,
                each.values,
                height=height * 0.9,
                color=colour,
                alpha=0.45 if each.role == "reference" else 1.0,
                label=each.label,
            )
        shown = [shortened(printable(level), width=_LEVEL_NAME, size=13) for level in levels]
        axes.set_yticks(places, shown)
        axes.invert_yaxis()
        axes.tick_params(left=False)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.set_xlabel(shortened(f"{printable(name)}: share of the group", width=_NAME, size=13))
        drawn.legend(loc="outside upper left", ncols=1, borderaxespad=0.2)
        return Picture.of_figure(drawn, title=f"Distribution of {printable(name)}")


GroupName = Literal["control", "st", "cst"]

_GROUP_LOOKS: dict[GroupName, tuple[str, str, str]] = {
    "control": (COLOURS["control"], "", "control group"),
    "st": (COLOURS["quiet"], "//", "ST test group"),
    "cst": (COLOURS["test"], "", "CST test group"),
}
_GROUP_LEVEL_NAME = 110.0


@dataclass(frozen=True, slots=True)
class Box:
    """Five numbers about one group, and the value of the search center it was found around."""

    low: float
    first: float
    median: float
    third: float
    high: float
    center: float


def box_of(values: NDArray[np.float64], place: NDArray[np.float64], *, center: float) -> Box:
    """Summarise a group in which people may share places."""
    # sums of shared places are rounded: 1.9999999999999998 of 2 places are 2
    parts = np.array([0.25, 0.5, 0.75]) * (1 - 1e-9)
    quartiles = np.quantile(values, parts, weights=place, method="inverted_cdf")
    first, median, third = quartiles.tolist()
    return Box(float(values.min()), first, median, third, float(values.max()), center)


def plot_groups(
    name: str,
    complainants: Mapping[str, Mapping[GroupName, Box]],
    *,
    levels: Sequence[str] = (),
) -> Picture:
    """Draw, for each complainant (by id), a box per group; `levels` names the values 0, 1, 2 …."""
    names = [
        group for group in _GROUP_LOOKS if any(group in boxes for boxes in complainants.values())
    ]
    with figure(width=7.4, height=3.0) as (drawn, axes):
        for row, group in enumerate(names):
            shift = (row - (len(names) - 1) / 2) * 0.26
            found = {
                place + shift: boxes[group]
                for place, boxes in enumerate(complainants.values())
                if group in boxes
            }
            _draw_boxes(axes, found, group)
        _draw_axes(axes, name, list(complainants), levels)
        handles = _legend_handles(names)
        drawn.legend(
            handles=handles, loc="outside upper left", ncols=len(handles), columnspacing=1.2
        )
        return Picture.of_figure(drawn, title=f"Groups of sample complainants by {printable(name)}")


def _draw_boxes(axes: Axes, boxes: Mapping[float, Box], group: GroupName) -> None:
    colour, hatch, _ = _GROUP_LOOKS[group]
    axes.bxp(
        [
            {
                "med": box.median,
                "q1": box.first,
                "q3": box.third,
                "whislo": box.low,
                "whishi": box.high,
            }
            for box in boxes.values()
        ],
        positions=list(boxes),
        widths=0.2,
        patch_artist=True,
        showfliers=False,
        manage_ticks=False,
        boxprops={"facecolor": f"{colour}33", "edgecolor": colour, "hatch": hatch},
        medianprops={"color": colour, "linewidth": 2.2},
        whiskerprops={"color": colour},
        capprops={"color": colour},
    )
    axes.plot(
        list(boxes),
        [box.center for box in boxes.values()],
        linestyle="",
        marker="D" if group == "cst" else "o",
        markersize=5,
        color="#111111",
        markerfacecolor="#ffffff",
    )


def _draw_axes(axes: Axes, name: str, ids: Sequence[str], levels: Sequence[str]) -> None:
    shown = [shortened(printable(each), width=110.0, size=13) for each in ids]
    axes.set_xticks(range(len(ids)), shown)
    axes.set_xlim(-0.55, len(ids) - 0.45)
    axes.tick_params(bottom=False)
    axes.set_xlabel("complainant")
    axes.set_ylabel(shortened(printable(name), width=190.0, size=13))
    if levels:
        shown = [shortened(printable(each), width=_GROUP_LEVEL_NAME, size=13) for each in levels]
        axes.set_yticks(range(len(levels)), shown)
    elif max(map(abs, axes.get_ylim())) >= 10_000:
        axes.yaxis.set_major_formatter("{x:,.0f}")
    for place in range(1, len(ids)):
        axes.axvline(place - 0.5, color="#d8d3c7", linewidth=0.8, zorder=0)


def _legend_handles(names: Sequence[GroupName]) -> list[Artist]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    looks = [_GROUP_LOOKS[group] for group in names]
    groups = [
        Patch(facecolor=f"{colour}33", edgecolor=colour, hatch=hatch, label=label)
        for colour, hatch, label in looks
    ]
    marks = {"complainant": "o", "counterfactual": "D"} if "cst" in names else {"complainant": "o"}
    centers = [
        Line2D([], [], linestyle="", marker=marker, color="#111111", markerfacecolor="w", label=who)
        for who, marker in marks.items()
    ]
    return [*groups, *centers]
