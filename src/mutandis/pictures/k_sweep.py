"""How the share of cases and the mean Δp depend on k, for all methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mutandis.pictures.figures import figure, to_svg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

__all__ = ["plot_k_sweep"]

# dark enough on white, apart in every common form of colour blindness, and marked apart in print
_LOOKS = (
    ("#1f5fa8", "-", "o"),
    ("#b8500f", "--", "s"),
    ("#2e7d4f", "-.", "^"),
    ("#5f5a50", ":", "D"),
)
# beyond so many sizes markers would cover the lines
_MARKED = 30


def plot_k_sweep(records: Sequence[Mapping[str, Any]], *, titles: Mapping[str, str]) -> str:
    """Draw one line a method over k: the share of cases, and the mean Δp; SVG text.

    Parameters
    ----------
    records
        Method, k, share and mean Δp, as an audit's k-sweep gives them.
    titles
        The methods in words, in the order of the legend.
    """
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    with figure(width=8.0, height=3.4) as (drawn, shares):
        grid = drawn.add_gridspec(1, 2)
        shares.set_subplotspec(grid[0])
        means = drawn.add_subplot(grid[1])
        for (name, title), look in zip(titles.items(), _LOOKS, strict=False):
            mine = [record for record in records if record["method"] == name]
            _draw(shares, mine, "share", look, title)
            _draw(means, mine, "mean_delta_p", look, None)
        shares.set_ylim(bottom=0)
        shares.yaxis.set_major_formatter(PercentFormatter(1.0))
        shares.set_ylabel("complainants with evidence")
        means.axhline(0, color="#999999", linewidth=0.8, zorder=0)
        means.set_ylabel("mean Δp")
        for axes in (shares, means):
            axes.set_xlabel("group size k")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        drawn.legend(loc="outside upper left", ncols=len(titles), frameon=False)
        return to_svg(drawn, title="Cases and mean difference by group size k")


def _draw(
    axes: Axes,
    records: Sequence[Mapping[str, Any]],
    column: str,
    look: tuple[str, str, str],
    label: str | None,
) -> None:
    colour, line, marker = look
    axes.plot(
        [record["k"] for record in records],
        [record[column] for record in records],
        color=colour,
        linestyle=line,
        marker=marker if len(records) <= _MARKED else None,
        markersize=4,
        label=label,
    )
