"""How one attribute is distributed: as it is, as it would have been, and among the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.pictures.figures import COLOURS, figure, to_svg
from mutandis.pictures.svg import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["Spread", "bin_edges", "plot_levels", "plot_numbers"]

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
    """One group of people in one world.

    Parameters
    ----------
    role
        Who they are.
    label
        That in words, for the legend.
    values
        Their numbers; for names, the share of each level.
    """

    role: Role
    label: str
    values: NDArray[np.float64]


def bin_edges(groups: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Choose the edges of bars, the same for every group.

    Where a group takes few values at equal steps (whole numbers, tens of thousands), bars are laid
    around them: bars of any other width would show gaps that are not there.

    Examples
    --------
    >>> bin_edges([np.array([1.0, 2.0, 2.0, 3.0])]).tolist()
    [0.5, 1.5, 2.5, 3.5]
    >>> len(bin_edges([np.linspace(0.0, 1.0, 400) ** 2]))
    21
    """
    pooled = np.concatenate(groups)
    low, high = np.quantile(pooled, [_TAIL, 1 - _TAIL], method="inverted_cdf").tolist()
    if low == high:
        low, high = float(pooled.min()), float(pooled.max())
    if low == high:
        return np.array([low - 0.5, high + 0.5])
    grids = [grid for group in groups if (grid := _grid(group)) is not None]
    if grids:
        step, start = max(grids)
        first = start + np.floor((low - start) / step + 0.5) * step
        count = int(np.floor((high - first) / step + 0.5)) + 1
        return np.asarray(first + (np.arange(count + 1) - 0.5) * step)
    count = int(np.clip(np.sqrt(len(pooled)), 8, _MOST_BINS))
    return np.linspace(low, high, count + 1)


def _grid(values: NDArray[np.float64]) -> tuple[float, float] | None:
    """Find the step of values that lie on a grid of few points, and one of them; else nothing."""
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


def plot_numbers(name: str, spreads: Sequence[Spread]) -> str:
    """Draw a histogram of each group over the same bars; SVG text."""
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
        drawn.legend(loc="outside upper left", frameon=False, ncols=1, borderaxespad=0.2)
        return to_svg(drawn, title=f"Distribution of {printable(name)}")


def _draw_steps(axes: Axes, spread: Spread, edges: NDArray[np.float64]) -> None:
    colour, line, width = _LOOKS[spread.role]
    inside = np.clip(spread.values, edges[0], edges[-1])
    heights = np.histogram(inside, bins=edges)[0] / max(len(inside), 1)
    if spread.role == "factual":
        axes.stairs(heights, edges, fill=True, color=colour, alpha=0.18)
    axes.stairs(heights, edges, color=colour, linestyle=line, linewidth=width, label=spread.label)


def plot_levels(name: str, levels: Sequence[str], spreads: Sequence[Spread]) -> str:
    """Draw the share of each level in each group, as bars side by side; SVG text."""
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
        drawn.legend(loc="outside upper left", frameon=False, ncols=1, borderaxespad=0.2)
        return to_svg(drawn, title=f"Distribution of {printable(name)}")
