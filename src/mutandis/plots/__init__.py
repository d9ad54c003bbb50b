"""Pictures, as SVG text."""

from mutandis.plots.agreement import plot_agreement
from mutandis.plots.competing import plot_worldviews
from mutandis.plots.coverage import plot_coverage
from mutandis.plots.k_sweep import plot_k_sweep
from mutandis.plots.power import plot_power
from mutandis.plots.worldview import draw_worldview

__all__ = [
    "draw_worldview",
    "plot_agreement",
    "plot_coverage",
    "plot_k_sweep",
    "plot_power",
    "plot_worldviews",
]
