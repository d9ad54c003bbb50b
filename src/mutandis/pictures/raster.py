"""Our own drawings as PNG, by matplotlib: of SVG, what `chart.py` and `worldview.py` write.

Fonts are matplotlib's own, so that the same drawing gives the same bytes on every machine; a text
is as wide as the drawing takes it to be.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from mutandis.pictures.svg import text_width

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["to_png"]

_DPI = 200
_INHERITED = ("fill", "stroke", "stroke-width", "font-size", "font-weight", "font-style")
_INITIAL = {"fill": "#000000", "stroke": "none", "stroke-width": "1", "font-size": "16"}
_TOKEN = re.compile(r"[MLHVCAZmlhvcaz]|[-+]?(?:\d*\.\d+|\d+\.?)(?:e[-+]?\d+)?")
_NUMBERS = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "A": 7, "Z": 0}
_STEP = re.compile(r"(translate|rotate|scale)\(([^)]*)\)")
_SIDES = {"start": 0.0, "middle": 0.5, "end": 1.0}


def to_png(svg: str) -> bytes:
    r"""Draw a picture of ours; global state of matplotlib is not touched.

    Examples
    --------
    >>> import mutandis as mm
    >>> picture = mm.Worldview({"salary": mm.Linear("gender")}).draw()
    >>> to_png(picture.svg)[:4]
    b'\x89PNG'
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.transforms import Affine2D

    root = ET.fromstring(svg)  # noqa: S314 - our own drawing, not a stranger's
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    written = BytesIO()
    with mpl.rc_context(mpl.rcParamsDefault), warnings.catch_warnings():
        # a letter that the font does not have is drawn as a box
        warnings.filterwarnings("ignore", "Glyph")
        figure = Figure(figsize=(width / 72, height / 72))
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        _draw(axes, root, _INITIAL, Affine2D())
        figure.savefig(written, dpi=_DPI, format="png", metadata={"Software": None})
    return written.getvalue()


def _draw(axes: Any, element: ET.Element, inherited: Mapping[str, str], placed: Any) -> None:
    """Draw an element and what it holds, with the looks and the place that it has."""
    own = {name: element.attrib[name] for name in _INHERITED if name in element.attrib}
    look = {**inherited, **own}
    placed = _transform(element.attrib.get("transform", "")) + placed
    draw = _SHAPES.get(element.tag.rpartition("}")[2])
    if draw is not None:
        _add(axes, draw(element, look), element, look, placed)
    for child in element:
        _draw(axes, child, look, placed)


def _add(axes: Any, path: Any, element: ET.Element, look: Mapping[str, str], placed: Any) -> None:
    from matplotlib.patches import PathPatch

    if path is None:
        return
    width = float(look["stroke-width"])
    dash = [float(each) / width for each in element.attrib.get("stroke-dasharray", "").split()]
    letters = element.tag.rpartition("}")[2] == "text"
    stroke = "none" if letters else look["stroke"]
    # not add_patch: it looks for the limits of the drawing, which are known
    axes.add_artist(
        PathPatch(
            placed.transform_path(path),
            facecolor=look["fill"],
            edgecolor=stroke,
            fill=look["fill"] != "none",
            linewidth=0 if stroke == "none" else width,
            linestyle=(0, dash) if dash else "-",
            capstyle="round" if element.attrib.get("stroke-linecap") == "round" else "butt",
            alpha=float(element.attrib.get("opacity", 1)),
        )
    )


def _transform(text: str) -> Any:
    """Read translate, rotate and scale, of which the last comes first."""
    from matplotlib.transforms import Affine2D

    found = Affine2D()
    for name, arguments in reversed(_STEP.findall(text)):
        values = [float(each) for each in re.split(r"[\s,]+", arguments.strip())]
        if name == "rotate":
            found.rotate_deg(values[0])
        else:
            getattr(found, name)(*values)
    return found


def _number(element: ET.Element, name: str) -> float:
    return float(element.attrib.get(name, 0))


def _rectangle(element: ET.Element, _: Mapping[str, str]) -> Any:
    from matplotlib.patches import BoxStyle
    from matplotlib.path import Path

    x, y, width, height = (_number(element, name) for name in ("x", "y", "width", "height"))
    radius = min(_number(element, "rx"), width / 2, height / 2)
    if radius:
        return BoxStyle.Round(pad=0, rounding_size=radius)(x, y, width, height, 1.0)
    corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
    return Path(corners, closed=True)


def _circle(element: ET.Element, _: Mapping[str, str]) -> Any:
    from matplotlib.path import Path

    return Path.circle((_number(element, "cx"), _number(element, "cy")), _number(element, "r"))


def _text(element: ET.Element, look: Mapping[str, str]) -> Any:
    """Give the outlines of a line of text, not wider than a browser would write it."""
    from matplotlib.transforms import Affine2D

    text, size = element.text or "", float(look["font-size"])
    if not text.strip():
        return None
    italic = look.get("font-style") == "italic"
    outline, wide = _outline(text, size, look.get("font-weight", "normal"), italic=italic)
    if outline is None:
        return None
    narrow = min(1.0, text_width(text, size) / wide) if wide > 0 else 1.0
    start = _SIDES[element.attrib.get("text-anchor", "start")] * wide * narrow
    # letters stand up, and lengths of a drawing go down
    place = Affine2D().scale(narrow, -1).translate(-start, 0)
    return place.translate(_number(element, "x"), _number(element, "y")).transform_path(outline)


@lru_cache(maxsize=2000)
def _outline(text: str, size: float, weight: str, *, italic: bool) -> tuple[Any, float]:
    """Give the outlines of letters and how far they reach; None for marks that are not seen."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.textpath import text_to_path
    from matplotlib.transforms import Affine2D

    font = FontProperties(
        family="DejaVu Sans", weight=weight, style="italic" if italic else "normal"
    )
    corners, codes = text_to_path.get_text_path(font, text, ismath=False)
    if not len(corners):
        return None, 0.0
    letters = Affine2D().scale(size / text_to_path.FONT_SCALE)
    outline = letters.transform_path(Path(corners, codes))
    return outline, float(outline.get_extents().x1)


def _line(element: ET.Element, _: Mapping[str, str]) -> Any:
    """Read what a path is drawn by: straight lines, cubic curves, and the half circle of a lock."""
    from matplotlib.path import Path

    points: list[tuple[float, float]] = []
    codes: list[Any] = []

    def go(code: Any, *through: tuple[float, float]) -> None:
        points.extend(through)
        codes.extend([code] * len(through))

    tokens = _TOKEN.findall(element.attrib["d"])
    here, command = (0.0, 0.0), "M"
    while tokens:
        if tokens[0].upper() in _NUMBERS:
            command = tokens.pop(0)
        kind, relative = command.upper(), command.islower()
        given = [float(tokens.pop(0)) for _ in range(_NUMBERS[kind])]
        if kind == "Z":
            go(Path.CLOSEPOLY, points[0])
            continue
        ends = _corners(kind, given, here, relative=relative)
        go({"M": Path.MOVETO, "C": Path.CURVE4, "A": Path.CURVE4}.get(kind, Path.LINETO), *ends)
        here = ends[-1]
        command = "L" if kind == "M" else command
    return Path(points, codes)


def _corners(
    kind: str, given: list[float], here: tuple[float, float], *, relative: bool
) -> list[tuple[float, float]]:
    """Give the points that a command of a path leads through."""
    x, y = here if relative else (0.0, 0.0)
    if kind == "H":
        return [(x + given[0], here[1])]
    if kind == "V":
        return [(here[0], y + given[0])]
    if kind == "A":  # from left to right over the top
        to, up = (x + given[5], y + given[6]), 4 / 3 * given[1]
        return [(here[0], here[1] - up), (to[0], to[1] - up), to]
    return [(x + a, y + b) for a, b in zip(given[::2], given[1::2], strict=True)]


_SHAPES = {"rect": _rectangle, "circle": _circle, "text": _text, "path": _line}
