"""A picture that shows itself in a notebook and can be saved, and the look that plots share."""

from __future__ import annotations

import io
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutandis.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

    from matplotlib.figure import Figure

# dark enough to stand on white, and apart in every common form of colour blindness
COLOURS = {
    "control": "#b8500f",
    "test": "#1f5fa8",
    "shared": "#1f5fa8",
    "partly": "#7aa6d6",
    "alone": "#d9a441",
    "quiet": "#5f5a50",
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: small files that can be searched and read out
    "svg.hashsalt": "mutandis",  # element ids, which would be random otherwise
    "text.parse_math": False,  # a name is a name: no mathematics between dollar signs
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#333333",
    "legend.frameon": False,
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: shown by notebooks, written to a file by `save`, and SVG text as a string.

    Parameters
    ----------
    svg
        The picture as SVG text: no script, and no reference to anything outside itself. The same
        numbers give the same text.
    title
        What it shows.

    Examples
    --------
    >>> import mutandis as mm
    >>> picture = mm.Worldview({"salary": mm.Linear("gender")}).draw()
    >>> picture
    Picture('Worldview')
    >>> str(picture).startswith("<svg")
    True
    """

    svg: str = field(repr=False)
    title: str
    _figure: Figure | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of_figure(cls, drawn: Figure, *, title: str) -> Picture:
        """Draw a matplotlib figure; `title` is what a screen reader says."""
        buffer = io.BytesIO()
        # dates and versions would make the same picture two different files
        metadata = {"Date": None, "Creator": None, "Title": title}
        drawn.savefig(buffer, format="svg", metadata=metadata)
        return cls(buffer.getvalue().decode("utf-8"), title, drawn)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        path
            A file that ends in .svg; plots, but not drawings of worldviews, can be written as .png
            too.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".svg":
            Path(path).write_text(self.svg, encoding="utf-8", newline="\n")
        elif suffix == ".png" and self._figure is not None:
            import matplotlib as mpl

            with mpl.rc_context(_STYLE):
                self._figure.savefig(path, dpi=200)
        else:
            allowed = ".svg" if self._figure is None else ".svg or .png"
            raise PlanError(
                f"This picture is written as {allowed}, not as {suffix or 'a file'!r}. Give the "
                "path this ending."
            )

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Picture({self.title!r})"


@contextmanager
def figure(
    *, width: float = 7.0, height: float = 3.0, **subplots: Any
) -> Iterator[tuple[Figure, Any]]:
    """Give an empty figure of the common look, and its axes as `Figure.subplots` makes them."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        drawn = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(drawn)
        yield drawn, drawn.subplots(**subplots)
