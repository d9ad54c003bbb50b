"""Pictures of worldviews, as SVG text."""

from mutandis.plots.competing import plot_worldviews
from mutandis.plots.worldview import draw_worldview

__all__ = ["draw_worldview", "plot_worldviews"]
