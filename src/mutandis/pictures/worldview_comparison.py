"""How many cases each worldview finds, and how many of them the others find too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mutandis.pictures.figures import COLOURS, figure, to_svg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["plot_worldviews"]

_PARTS = (
    ("found_by_all", "found under every worldview", COLOURS["shared"]),
    ("found_by_some", "under some others", COLOURS["partly"]),
    ("found_by_it_alone", "under this one alone", COLOURS["alone"]),
)


def plot_worldviews(summary: Sequence[Mapping[str, Any]], *, method: str, k: int) -> str:
    """Draw one bar a worldview, divided by who shares its cases; SVG text."""
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
            drawn.legend(loc="outside upper left", ncols=3, frameon=False)
        return to_svg(drawn, title="Cases by worldview, and who shares them")
