"""Statistics behind the findings: power by group size, and coverage of the intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.pictures.picture import COLOURS, Picture, figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


_STYLES = (
    (COLOURS["test"], "o"),
    (COLOURS["control"], "s"),
    (COLOURS["alone"], "^"),
    (COLOURS["quiet"], "v"),
)


def plot_coverage(
    covered: Mapping[str, Mapping[int, Sequence[float]]], *, nominal: float, tolerance: float = 0.02
) -> Picture:
    """Draw, for each interval and k, the mean, 5th and 95th percentile of the coverage."""
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
        drawn.legend(loc="outside upper left", ncols=len(covered))
        return Picture.of_figure(drawn, title="Coverage of the intervals by the size of the groups")
