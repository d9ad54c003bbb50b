"""Who was compared with whom: one attribute in the groups of a few complainants (Fig. 2 right)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.pictures.figures import COLOURS, figure, to_svg
from mutandis.pictures.svg import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["Box", "box_of", "plot_groups"]

GroupName = Literal["control", "st", "cst"]

_LOOKS: dict[GroupName, tuple[str, str, str]] = {
    "control": (COLOURS["control"], "", "control group"),
    "st": (COLOURS["quiet"], "//", "ST test group"),
    "cst": (COLOURS["test"], "", "CST test group"),
}
_LEVEL_NAME = 110.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Five numbers about one group, and the search center it was found around.

    Parameters
    ----------
    low, first, median, third, high
        The smallest value, the quartiles and the largest value.
    center
        The value of the search center.
    """

    low: float
    first: float
    median: float
    third: float
    high: float
    center: float


def box_of(values: NDArray[np.float64], place: NDArray[np.float64], *, center: float) -> Box:
    """Summarise a group in which people may share places.

    A quantile is the smallest value that so large a part of the places does not exceed.

    Examples
    --------
    >>> box = box_of(np.array([1.0, 2.0, 9.0]), np.array([1.0, 0.5, 0.5]), center=4.0)
    >>> box.median, box.third, box.high
    (1.0, 2.0, 9.0)
    """
    order = np.argsort(values, kind="stable")
    ranked, filled = values[order], np.cumsum(place[order])
    # sums of shared places are rounded: 1.9999999999999998 of 2 places are 2
    needed = np.array([0.25, 0.5, 0.75]) * filled[-1] * (1 - 1e-9)
    first, median, third = ranked[np.searchsorted(filled, needed)].tolist()
    return Box(
        low=float(ranked[0]),
        first=first,
        median=median,
        third=third,
        high=float(ranked[-1]),
        center=center,
    )


def plot_groups(
    name: str,
    complainants: Mapping[str, Mapping[GroupName, Box]],
    *,
    levels: Sequence[str] = (),
) -> str:
    """Draw, for each complainant, a box per group; SVG text.

    Parameters
    ----------
    name
        The attribute.
    complainants
        By id as text: the groups that she has.
    levels
        The names of the values 0, 1, 2 …, where they are ranks.
    """
    names = [group for group in _LOOKS if any(group in boxes for boxes in complainants.values())]
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
        _draw_legend(axes, names)
        return to_svg(drawn, title=f"Groups of sample complainants by {printable(name)}")


def _draw_boxes(axes: Axes, boxes: Mapping[float, Box], group: GroupName) -> None:
    colour, hatch, _ = _LOOKS[group]
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
        shown = [shortened(printable(each), width=_LEVEL_NAME, size=13) for each in levels]
        axes.set_yticks(range(len(levels)), shown)
    elif max(map(abs, axes.get_ylim())) >= 10_000:
        axes.yaxis.set_major_formatter("{x:,.0f}")
    for place in range(1, len(ids)):
        axes.axvline(place - 0.5, color="#d8d3c7", linewidth=0.8, zorder=0)


def _draw_legend(axes: Axes, names: Sequence[GroupName]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [
        Patch(
            facecolor=f"{_LOOKS[group][0]}33",
            edgecolor=_LOOKS[group][0],
            hatch=_LOOKS[group][1],
            label=_LOOKS[group][2],
        )
        for group in names
    ]
    marks = {"complainant": "o", "counterfactual": "D"} if "cst" in names else {"complainant": "o"}
    handles += [
        Line2D([], [], linestyle="", marker=marker, color="#111111", markerfacecolor="w", label=who)
        for who, marker in marks.items()
    ]
    drawn = axes.get_figure()
    if drawn is not None:
        drawn.legend(
            handles=handles,
            loc="outside upper left",
            ncols=len(handles),
            frameon=False,
            columnspacing=1.2,
        )
