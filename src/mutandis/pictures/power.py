"""Statistics behind the findings: power by group size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.pictures.picture import COLOURS, Picture, figure

if TYPE_CHECKING:
    from mutandis.evidence.power import PowerAnalysis


def plot_power(found: PowerAnalysis) -> Picture:
    """Draw the power at every k, and the k from which on it stays at its target."""
    shown = min(len(found.curve), max(*found.ks, 2 * (found.smallest_k or found.k_max)))
    with figure(height=3.2) as (drawn, axes):
        axes.plot(
            range(1, shown + 1), found.curve[:shown], color=COLOURS["test"], lw=1.4, label="power"
        )
        axes.axhline(found.target, color=COLOURS["quiet"], lw=0.8, ls="--")
        if found.smallest_k is not None:
            axes.axvline(found.smallest_k, color=COLOURS["control"], lw=0.8, ls="--")
            axes.annotate(
                f"k = {found.smallest_k}",
                (found.smallest_k, 0.02),
                xytext=(4, 0),
                textcoords="offset points",
                color=COLOURS["control"],
            )
        axes.set_xlim(0, shown)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("k, the size of each group")
        axes.set_ylabel("power")
        axes.set_title(
            f"refused {found.p_control:g} and {found.p_test:g}, α = {found.alpha:g}, "
            f"τ = {found.tau:g}, {found.interval}",
            fontsize=10,
            loc="left",
        )
        return Picture.of_figure(drawn, title="Power by the size of the groups")
