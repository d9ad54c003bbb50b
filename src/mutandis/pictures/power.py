"""Statistics behind the findings: power by group size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.pictures.chart import DASHED, Chart, Frame, numbered, ticks
from mutandis.pictures.picture import COLOURS

if TYPE_CHECKING:
    from mutandis.pictures.picture import Picture
    from mutandis.verdicts.power import PowerAnalysis


def plot_power(found: PowerAnalysis) -> Picture:
    """Draw the power at every k, and the k from which on it stays at its target."""
    shown = min(len(found.curve), max(*found.ks, 2 * (found.smallest_k or found.k_max)))
    chart = Chart(width=504, height=230)
    frame = Frame(chart, (44, 24, 494, 192), (0, shown), (0, 1.02))
    frame.level(found.target, COLOURS["quiet"], width=0.8, dash=DASHED)
    if found.smallest_k is not None:
        frame.upright(found.smallest_k, COLOURS["control"], width=0.8, dash=DASHED)
        x, y = frame.at(found.smallest_k, 0.04)
        chart.text((x + 4, y), f"k = {found.smallest_k}", colour=COLOURS["control"])
    points = [frame.at(k, power) for k, power in enumerate(found.curve[:shown], start=1)]
    chart.line(points, COLOURS["test"], width=1.4)
    frame.x_axis(numbered(ticks(0, shown, most=10, whole=True)), "k, the size of each group")
    frame.y_axis(numbered(ticks(0, 1, most=6)), "power")
    chart.text(
        (44, 10),
        f"refused {found.p_control:g} and {found.p_test:g}, α = {found.alpha:g}, "
        f"τ = {found.tau:g}, {found.interval}",
    )
    return chart.picture("Power by the size of the groups")
