"""How often intervals contain the true difference, against how often they should."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.pictures.figures import COLOURS, figure, to_svg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["plot_coverage"]

_STYLES = (
    (COLOURS["test"], "o"),
    (COLOURS["control"], "s"),
    (COLOURS["alone"], "^"),
    (COLOURS["quiet"], "v"),
)


def plot_coverage(
    covered: Mapping[str, Mapping[int, Sequence[float]]], *, nominal: float, tolerance: float = 0.02
) -> str:
    """Draw, for each interval and k, the mean coverage and its range over the grid; SVG text.

    Parameters
    ----------
    covered
        By interval and k: the mean, the 5th and the 95th percentile of the coverage.
    nominal
        What it should be.
    tolerance
        The width of the band around it that is shaded.
    """
    sizes = sorted({k for rows in covered.values() for k in rows})
    with figure(height=3.4) as (drawn, axes):
        axes.axhspan(nominal - tolerance, nominal + tolerance, color="#eeeae0", zorder=0)
        axes.axhline(nominal, color=COLOURS["quiet"], lw=0.8)
        for place, (name, rows) in enumerate(covered.items()):
            colour, marker = _STYLES[place % len(_STYLES)]
            shift = (place - (len(covered) - 1) / 2) * 0.16
            at = [sizes.index(k) + shift for k in rows]
            mean, low, high = zip(*rows.values(), strict=True)
            axes.vlines(at, low, high, color=colour, lw=1.2)
            axes.plot(at, mean, marker=marker, ls="", color=colour, label=name)
        axes.set_xticks(range(len(sizes)), [f"k = {k}" for k in sizes])
        axes.set_ylabel("coverage")
        drawn.legend(loc="outside upper left", ncols=len(covered), frameon=False)
        return to_svg(drawn, title="Coverage of the intervals by the size of the groups")
