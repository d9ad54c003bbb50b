"""A picture that shows itself in a notebook and can be saved, and the colours that plots share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mutandis.errors import PlanError

if TYPE_CHECKING:
    from os import PathLike

# dark enough to stand on white, and apart in every common form of colour blindness
COLOURS = {
    "control": "#b8500f",
    "test": "#1f5fa8",
    "shared": "#1f5fa8",
    "partly": "#7aa6d6",
    "alone": "#d9a441",
    "quiet": "#5f5a50",
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

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        path
            A file that ends in .svg.
        """
        if Path(path).suffix.lower() != ".svg":
            found = Path(path).suffix or "a file without an ending"
            raise PlanError(
                f"A picture is written as .svg, not as {found!r}. Give the path this ending."
            )
        Path(path).write_text(self.svg, encoding="utf-8", newline="\n")

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Picture({self.title!r})"
