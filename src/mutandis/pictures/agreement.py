"""All intersections of several sets of cases, as an UpSet plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mutandis.pictures.figures import COLOURS, figure, to_svg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

__all__ = ["plot_agreement"]

_UNFOUND = "#d8d4cc"


def plot_agreement(
    records: Sequence[Mapping[str, Any]],
    totals: Mapping[str, int],
    *,
    titles: Mapping[str, str],
    caption: str,
) -> str:
    """Draw a bar for each combination of finders, and below it who they are; SVG text.

    Parameters
    ----------
    records
        One per combination: whether each finder belongs to it, and its `cases`.
    totals
        How many cases each finder has in all.
    titles
        What each finder is called.
    caption
        What is counted.

    Notes
    -----
    Lex, Gehlenborg, Strobelt, Vuillemot, Pfister (2014), UpSet: visualization of intersecting
    sets, IEEE Transactions on Visualization and Computer Graphics 20, 1983-1992.
    """
    with figure(width=2.8 + 0.55 * max(len(records), 3), height=2.4 + 0.28 * len(totals)) as (
        drawn,
        unused,
    ):
        unused.remove()
        bars, dots = drawn.subplots(
            2, 1, sharex=True, height_ratios=[2.0, 0.28 * len(totals)], squeeze=True
        )
        _draw_bars(bars, [int(record["cases"]) for record in records], caption)
        _draw_dots(dots, records, totals, titles)
        return to_svg(drawn, title=f"Who finds the same cases: {caption}")


def _draw_bars(axes: Axes, cases: Sequence[int], caption: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.bar(range(len(cases)), cases, color=COLOURS["shared"], width=0.6)
    for place, count in enumerate(cases):
        axes.annotate(
            f"{count:,}",
            (place, count),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
        )
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
