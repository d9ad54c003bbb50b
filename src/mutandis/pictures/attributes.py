"""Attributes: how they are distributed in both worlds, and in the groups of complainants."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.pictures.chart import DASHED, DOTTED, SIZE, Chart, Frame, numbered, room_for, ticks
from mutandis.pictures.picture import COLOURS
from mutandis.pictures.svg import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.pictures.picture import Picture

Corner = tuple[float, float]
Role = Literal["factual", "counterfactual", "reference"]

# roles differ in their strokes too, for print in grey
_LOOKS: dict[Role, tuple[str, str, float]] = {
    "factual": (COLOURS["control"], "", 1.6),
    "counterfactual": (COLOURS["test"], DASHED, 1.8),
    "reference": (COLOURS["quiet"], DOTTED, 1.4),
}
_STRONG: dict[Role, float] = {"factual": 1.0, "counterfactual": 1.0, "reference": 0.45}
_WIDTH = 317.0
_MOST_BINS = 40
_MOST_STEPS = 60
# a few far values would squeeze all others into one bar: they are counted in the outermost ones
_TAIL = 0.001
# values that tell where the far ones begin
_LOOKED_AT = 20_000
_NAME = 230.0
_TOP = 6.0
_ROW_OF_KEYS = 620.0
_LEVEL_NAME = 115.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """One group of people in one world: their numbers or, for names, the share of each level."""

    role: Role
    label: str
    values: NDArray[np.float64]


def bin_edges(groups: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Choose the edges of bars, the same for every group."""
    size = sum(map(len, groups))
    # the ranks of inverted_cdf, the higher one from above
    low = _nth_smallest(groups, max(0, ceil(size * _TAIL - 1)))
    above = size - 1 - max(0, ceil(size * (1 - _TAIL) - 1))
    high = -_nth_smallest([-each for each in groups], above)
    if low == high:
        low = min(float(each.min()) for each in groups if len(each))
        high = max(float(each.max()) for each in groups if len(each))
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
    count = int(np.clip(np.sqrt(size), 8, _MOST_BINS))
    return np.linspace(low, high, count + 1)


def _nth_smallest(groups: Sequence[NDArray[np.float64]], rank: int) -> float:
    """Give the value at a low rank of all groups together, exactly.

    Some values tell below which others it is worth looking for it.
    """
    size = sum(map(len, groups))
    some = np.concatenate([each[:: 1 + size // _LOOKED_AT] for each in groups])
    bound = np.quantile(some, min(1.0, 2 * (rank + 1) / size + 0.001), method="higher")
    near = np.concatenate([each[each <= bound] for each in groups])
    if len(near) <= rank:
        near = np.concatenate(groups)
    return float(np.partition(near, rank)[rank])


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


def plot_roles(labels: Mapping[Role, str]) -> Picture:
    """Draw the legend that pictures of both worlds share: lines of histograms, and bars."""
    chart = Chart(width=_ROW_OF_KEYS, height=40)

    def sample(x: float, y: float, role: Role) -> None:
        colour, dash, width = _LOOKS[role]
        chart.line([(x, y), (x + 12, y)], colour, dash=dash, width=width)
        chart.box((x + 14, y - 4), (x + 24, y + 4), colour, opacity=_STRONG[role])

    keys = [(label, partial(sample, role=role)) for role, label in labels.items()]
    chart.height = chart.legend(keys)
    return chart.picture("Legend: whose values are drawn")


def plot_numbers(name: str, spreads: Sequence[Spread], *, legend: bool = True) -> Picture:
    """Draw a histogram of each group over the same bars."""
    edges = bin_edges([each.values for each in spreads])
    heights = [_heights(each, edges) for each in spreads]
    above = 16 * len(spreads) if legend else 0
    chart = Chart(width=_WIDTH, height=146 + above)

    def sample(x: float, y: float, role: Role) -> None:
        colour, dash, width = _LOOKS[role]
        chart.line([(x, y), (x + 24, y)], colour, dash=dash, width=width)

    keys = [_key(sample, each) for each in spreads]
    top = chart.legend(keys, width=0) if legend else _TOP
    most = max(float(each.max()) for each in heights) * 1.05 or 1.0
    labels = numbered(ticks(0, most, most=5), percent=True)
    x = (float(edges[0]), float(edges[-1]))
    frame = Frame(
        chart, (18 + room_for(labels.values()), top, _WIDTH - 12, 110 + above), x, (0, most)
    )
    for each, tops in zip(spreads, heights, strict=True):
        colour, dash, width = _LOOKS[each.role]
        steps = frame.steps(edges.tolist(), tops.tolist())
        if each.role == "factual":
            chart.area(steps, colour, opacity=0.18)
        chart.line(steps, colour, dash=dash, width=width)
    frame.x_axis(numbered(ticks(*x, most=6)), shortened(printable(name), width=_NAME, size=SIZE))
    frame.y_axis(labels, "share of the group")
    return chart.picture(f"Distribution of {printable(name)}")


def _key(
    sample: Callable[[float, float, Role], None], each: Spread
) -> tuple[str, Callable[[float, float], None]]:
    return each.label, lambda x, y: sample(x, y, each.role)


def _heights(spread: Spread, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    inside = np.clip(spread.values, edges[0], edges[-1])
    return np.asarray(np.histogram(inside, bins=edges)[0] / max(len(inside), 1))


def plot_levels(
    name: str, levels: Sequence[str], spreads: Sequence[Spread], *, legend: bool = True
) -> Picture:
    """Draw the share of each level in each group, as bars side by side."""
    bar = 10.0
    room = bar * len(spreads) * 1.25 * len(levels)
    above = 16 * len(spreads) if legend else 0
    chart = Chart(width=_WIDTH, height=56 + above + max(room, 36))

    def sample(x: float, y: float, role: Role) -> None:
        chart.box((x, y - 4), (x + 24, y + 4), _LOOKS[role][0], opacity=_STRONG[role])

    keys = [_key(sample, each) for each in spreads]
    top = chart.legend(keys, width=0) if legend else _TOP
    shown = [shortened(printable(level), width=_LEVEL_NAME, size=SIZE) for level in levels]
    most = max(float(each.values.max(initial=0.0)) for each in spreads) * 1.05 or 1.0
    sides = (room_for(shown), top, _WIDTH - 12, chart.height - 36)
    frame = Frame(chart, sides, (0, most), (len(levels) - 0.5, -0.5))
    height = 0.8 / len(spreads)
    for index, each in enumerate(spreads):
        for place, share in enumerate(each.values.tolist()):
            middle = place - 0.4 + (index + 0.5) * height
            chart.box(
                frame.at(0, middle - 0.45 * height),
                frame.at(share, middle + 0.45 * height),
                _LOOKS[each.role][0],
                opacity=_STRONG[each.role],
            )
    said = shortened(f"{printable(name)}: share of the group", width=_NAME, size=SIZE)
    frame.x_axis(numbered(ticks(0, most, most=5), percent=True), said)
    frame.y_axis(dict(enumerate(shown)), marked=False)
    return chart.picture(f"Distribution of {printable(name)}")
