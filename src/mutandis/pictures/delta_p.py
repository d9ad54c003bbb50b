"""How Δp is distributed over the complainants, for each method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.pictures.figures import COLOURS, figure, to_svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["Differences", "count_differences", "plot_delta_p"]

_BARS = 40
"""From -1 to 1: bars of 0.05."""
_QUIET = "#a9a397"


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Δp of many complainants under one method.

    Parameters
    ----------
    title
        The method in words.
    delta_p
        Their differences, without those who cannot be compared.
    evidence
        Whether each is a case.
    """

    title: str
    delta_p: NDArray[np.float64]
    evidence: NDArray[np.bool_]


def count_differences(delta_p: NDArray[np.float64]) -> NDArray[np.intp]:
    """Count differences by bars of 0.05, each with its upper end: 0 belongs to (-0.05, 0].

    Examples
    --------
    >>> count_differences(np.array([0.0, 0.05, 0.051, 1.0])).nonzero()[0].tolist()
    [19, 20, 21, 39]
    """
    # a ten-thousandth of a bar forgives the rounding of floats, and no two shares are so close
    bar = np.ceil((np.asarray(delta_p) + 1) * (_BARS / 2) - 1e-4).astype(np.intp) - 1
    return np.bincount(np.clip(bar, 0, _BARS - 1), minlength=_BARS)


def plot_delta_p(differences: Sequence[Differences], *, threshold: float) -> str:
    """Draw one row of bars a method, cases apart from the others; SVG text.

    Those who do not differ at all are counted in words: their bar would dwarf the others.

    Parameters
    ----------
    differences
        The methods.
    threshold
        Where evidence begins: τ, or -τ where better treatment is looked for.
    """
    edges = np.linspace(-1, 1, _BARS + 1)
    count = len(differences)
    with figure(width=7.4, height=0.9 + 1.25 * count) as (drawn, unused):
        unused.remove()
        rows = drawn.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        for axes, each in zip(rows, differences, strict=True):
            _draw_bars(axes, each, edges, threshold)
        rows[-1].set_xlabel("Δp, where it is not 0")
        rows[-1].set_xlim(*_limits(differences, edges))
        handles, labels = rows[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False)
        return to_svg(drawn, title="Differences in refusals by method")


def _draw_bars(axes: Axes, each: Differences, edges: NDArray[np.float64], threshold: float) -> None:
    from matplotlib.ticker import MaxNLocator

    apart = each.delta_p != 0
    others = count_differences(each.delta_p[apart & ~each.evidence])
    cases = count_differences(each.delta_p[apart & each.evidence])
    axes.stairs(others, edges, fill=True, color=_QUIET, label="no evidence")
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
