"""One complainant's differences under every method and k, with their intervals: a forest plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mutandis.pictures.figures import COLOURS, figure, to_svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = ["ForestRow", "plot_forest"]

_TINT = "#f1ede3"
_FOUND = COLOURS["control"]
_QUIET = COLOURS["quiet"]
# height of a row, and of everything else, in inches
_ROW, _REST = 0.235, 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow:
    """One line of a forest plot.

    Parameters
    ----------
    group, label
        The method, which is written once for all its rows, and the group size.
    delta_p, low, high
        The difference and its bounds; without bounds a point is drawn, without a difference the
        words alone.
    words, verdict
        What stands at the end of the line: the numbers, and what they amount to.
    found
        Whether the verdict is evidence of some kind.
    primary
        Whether this is the line of the headline.
    """

    group: str
    label: str
    delta_p: float | None
    low: float | None
    high: float | None
    words: str
    verdict: str
    found: bool
    primary: bool = False


def plot_forest(rows: Sequence[ForestRow], *, threshold: float, threshold_name: str) -> str:
    """Draw differences with their intervals, one line each; SVG text.

    Parameters
    ----------
    rows
        From top to bottom.
    threshold
        The difference beyond which there is evidence: τ, or -τ.
    threshold_name
        What it is called on the axis.

    Examples
    --------
    >>> row = ForestRow(
    ...     group="ST", label="k = 15", delta_p=0.2, low=0.1, high=0.3, words="0.200",
    ...     verdict="significant", found=True,
    ... )
    >>> "k = 15" in plot_forest([row], threshold=0.0, threshold_name="τ = 0")
    True
    """
    with figure(width=8.6, height=_REST + _ROW * len(rows)) as (drawn, axes):
        for place, row in enumerate(rows):
            _draw(axes, -place, row, first=not place or rows[place - 1].group != row.group)
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
        return to_svg(drawn, title="Differences and intervals by method and group size")


def _draw(axes: Axes, height: float, row: ForestRow, *, first: bool) -> None:
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
        axes.plot(
            [row.low, row.high], [height, height], color=colour, lw=1.6, solid_capstyle="butt"
        )
        axes.plot(
            [row.low, row.high], [height, height], color=colour, ls="", marker="|", markersize=6
        )
        axes.plot([row.delta_p], [height], color=colour, ls="", marker="s", markersize=5)
    else:
        axes.plot(
            [row.delta_p], [height], color=colour, ls="", marker="D", markersize=5, fillstyle="none"
        )
