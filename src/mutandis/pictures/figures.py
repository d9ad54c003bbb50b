"""Figures as SVG: one look for all, no script, the same bytes for the same numbers."""

from __future__ import annotations

import io
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "figure", "to_svg"]

# dark enough to stand on white, and apart in every common form of colour blindness
COLOURS = {
    "control": "#b8500f",
    "test": "#1f5fa8",
    "shared": "#1f5fa8",
    "partly": "#7aa6d6",
    "alone": "#d9a441",
    "quiet": "#5f5a50",
}


@contextmanager
def figure(*, width: float = 7.0, height: float = 3.0) -> Iterator[tuple[Figure, Axes]]:
    """Give an empty figure of the house style, without touching matplotlib's global state."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "svg.fonttype": "none",  # text stays text: small files that can be searched and read out
        "svg.hashsalt": "mutandis",  # element ids, which would be random otherwise
        "text.parse_math": False,  # a name is a name: no mathematics between dollar signs
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#333333",
    }
    with mpl.rc_context(style):
        drawn = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(drawn)
        yield drawn, drawn.add_subplot()


def to_svg(drawn: Figure, *, title: str) -> str:
    """Write a figure as SVG text; `title` is what a screen reader says."""
    buffer = io.BytesIO()
    # dates and versions would make the same picture two different files
    drawn.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    return buffer.getvalue().decode("utf-8")
