"""Charts as SVG text: shapes, axes, and how wide a text will be.

Lengths are points of 1/72 inch, from the upper left corner.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from math import ceil, floor, isfinite, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from mutandis import errors
from mutandis.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

Point = tuple[float, float]

# dark enough to stand on white, and distinct in every common form of colour blindness
COLOURS = {
    "control": "#b8500f",
    "test": "#1f5fa8",
    "alone": "#d9a441",
    "quiet": "#5f5a50",
}
NAMESPACE = "http://www.w3.org/2000/svg"
INK = "#222222"
SIZE = 10.0
DASHED = "6 3"
FONTS = "Helvetica, Arial, sans-serif"
BASELINE = 0.35  # of the font size, below the middle of a line of text
_AXIS = "#333333"
# corners of marks, in halves of their size
_MARKS = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "up": ((0, -1.2), (1.1, 0.9), (-1.1, 0.9)),
    "down": ((0, 1.2), (1.1, -0.9), (-1.1, -0.9)),
}
# characters of Helvetica and Arial that are narrower or wider than most
_NARROW, _BROAD = " !,./:;I[\\]ft()-`r{}\"'ijl|", "wmMW@%…—→"


def number(value: float) -> str:
    """Write a coordinate with one decimal, and none if it is whole."""
    rounded = round(value, 1) + 0.0
    return f"{rounded:.0f}" if rounded.is_integer() else f"{rounded:.1f}"


def element(
    tag: str, children: Iterable[str] | None = None, *, text: str = "", **attributes: str | float
) -> str:
    """Write one element; an underscore in an attribute's name stands for a hyphen."""
    written = "".join(
        f" {name.rstrip('_').replace('_', '-')}="
        + quoteattr(value if isinstance(value, str) else number(value))
        for name, value in attributes.items()
    )
    if children is None and not text:
        return f"<{tag}{written}/>"
    return f"<{tag}{written}>{escape(text)}{''.join(children or ())}</{tag}>"


def sheet(
    parts: Iterable[str],
    *,
    title: str,
    width: float,
    height: float,
    unit: str,
    description: str = "",
    **attributes: Any,
) -> Picture:
    """Draw on a white sheet, with its lengths in a unit of CSS."""
    words = {"title": printable(title), "desc": description}
    known = [element(tag, text=text) for tag, text in words.items() if text]
    ground = element("rect", width=width, height=height, fill="#ffffff")
    drawn = element(
        "svg",
        [f"\n{part}" for part in (*known, ground, *parts)],
        xmlns=NAMESPACE,
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=f"{number(width)}{unit}",
        height=f"{number(height)}{unit}",
        role="img",
        font_family=FONTS,
        **attributes,
    )
    return Picture(f"{drawn}\n", title, description)


def printable(name: str) -> str:
    """Replace what XML cannot hold, and control and direction characters."""
    return errors.printable(name, keep="") or '""'


def text_width(text: str, size: float) -> float:
    """Estimate how wide a text is, rather too wide than too narrow."""
    return sum(map(_character_width, text)) * size


def _character_width(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if character in _BROAD or unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in _NARROW:
        return 0.36
    return 0.59 if character.isascii() and not character.isupper() else 0.76


def shortened(text: str, *, width: float, size: float) -> str:
    """Leave out the middle of a text that is too wide: names often differ at their ends."""
    if text_width(text, size) <= width:
        return text
    kept = len(text) - 1
    while kept > 2:
        short = f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"
        if text_width(short, size) <= width:
            return short
        # a long name is cut down in large steps first
        kept -= max(1, (kept - 60) // 2)
    return f"{text[:1]}…{text[-1:]}"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: shown by notebooks, written to a file by `save`, and SVG text as a string.

    It has no script and loads nothing; the same numbers give the same text.
    """

    svg: str = field(repr=False)
    title: str
    description: str = field(default="", repr=False)  # in words, for screen readers

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file that ends in .svg."""
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


class Chart:
    """A sheet with shapes, which lie on each other in the order in which they were added."""

    def __init__(self, *, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._shapes: list[str] = []

    def line(
        self, points: Iterable[Point], colour: str, *, width: float = 1.0, dash: str = ""
    ) -> None:
        """Draw a line through points."""
        if known := tuple(points):
            look: dict[str, Any] = {"stroke": colour, "stroke_width": width}
            look |= {"stroke_dasharray": dash} if dash else {}
            self._shapes.append(element("path", d=_way(known), fill="none", **look))

    def area(self, points: Iterable[Point], fill: str, **look: Any) -> None:
        """Fill an area; `look` has further attributes, such as `stroke` or `opacity`."""
        self._shapes.append(element("path", d=f"{_way(points)} Z", fill=fill, **look))

    def box(self, one: Point, two: Point, fill: str, **look: Any) -> None:
        """Fill the box with these corners."""
        (left, top), (right, bottom) = one, two
        self.area([(left, top), (right, top), (right, bottom), (left, bottom)], fill, **look)

    def mark(self, kind: str, at: Point, colour: str, *, size: float = 5, fill: str = "") -> None:
        """Mark a point by a circle, square, diamond, or triangle (up, down)."""
        half, fill = size / 2, fill or colour
        if kind == "circle":
            x, y = at
            self._shapes.append(element("circle", cx=x, cy=y, r=half, stroke=colour, fill=fill))
        else:
            corners = [(at[0] + half * x, at[1] + half * y) for x, y in _MARKS[kind]]
            self.area(corners, fill, stroke=colour)

    def text(
        self,
        at: Point,
        text: str,
        *,
        size: float = SIZE,
        anchor: str = "start",
        bold: bool = False,
        colour: str = INK,
        turned: bool = False,
    ) -> None:
        """Write a line of text around the height of a point."""
        if not text:
            return
        (x, y), down = at, size * BASELINE
        look: dict[str, Any] = {"x": x, "y": y + down}
        if turned:
            look = {"transform": f"translate({number(x + down)},{number(y)}) rotate(-90)"}
        if anchor != "start":
            look["text_anchor"] = anchor
        if bold:
            look["font_weight"] = "bold"
        self._shapes.append(
            element("text", text=printable(text), font_size=size, fill=colour, **look)
        )

    def picture(self, title: str) -> Picture:
        return sheet(self._shapes, title=title, width=self.width, height=self.height, unit="pt")


def _way(points: Iterable[Point]) -> str:
    return "M" + " L".join(f"{number(x)},{number(y)}" for x, y in points)


class Frame:
    """A rectangle of a chart (left, top, right, bottom) in which values have places."""

    def __init__(
        self, chart: Chart, sides: tuple[float, float, float, float], x: Point, y: Point
    ) -> None:
        self.chart = chart
        self.left, self.top, self.right, self.bottom = sides
        self._x, self._y = x, y

    def x(self, value: float) -> float:
        """Place of a value from left to right."""
        low, high = self._x
        return self.left + (value - low) / (high - low) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Place of a value from the bottom up."""
        low, high = self._y
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)

    def at(self, x: float, y: float) -> Point:
        return self.x(x), self.y(y)

    def upright(self, x: float, colour: str, **look: Any) -> None:
        """Draw a line from bottom to top."""
        self.chart.line([(self.x(x), self.bottom), (self.x(x), self.top)], colour, **look)

    def level(self, y: float, colour: str, **look: Any) -> None:
        """Draw a line from left to right."""
        self.chart.line([(self.left, self.y(y)), (self.right, self.y(y))], colour, **look)

    def x_axis(self, labels: Mapping[float, str], title: str = "") -> None:
        """Draw the axis below, with labels at their values."""
        chart, bottom = self.chart, self.bottom
        chart.line([(self.left, bottom), (self.right, bottom)], _AXIS, width=0.8)
        for value, label in labels.items():
            x = self.x(value)
            chart.line([(x, bottom), (x, bottom + 3.5)], _AXIS, width=0.8)
            chart.text((x, bottom + 11), label, anchor="middle")
        chart.text(((self.left + self.right) / 2, bottom + 26), title, anchor="middle")

    def y_axis(self, labels: Mapping[float, str], title: str = "") -> None:
        """Draw the axis on the left, with labels at their values and its title at the margin."""
        chart, left = self.chart, self.left
        chart.line([(left, self.top), (left, self.bottom)], _AXIS, width=0.8)
        for value, label in labels.items():
            y = self.y(value)
            chart.line([(left - 3.5, y), (left, y)], _AXIS, width=0.8)
            chart.text((left - 6, y), label, anchor="end")
        out = left - room_for(labels.values()) - SIZE / 2 - 2
        chart.text((out, (self.top + self.bottom) / 2), title, anchor="middle", turned=True)


def room_for(labels: Iterable[str]) -> float:
    """Width that labels need on the left of an axis."""
    return 8 + max((text_width(label, SIZE) for label in labels), default=0.0)


def ticks(low: float, high: float, *, most: int, whole: bool = False) -> list[float]:
    """Choose at most so many round values between two others, both included."""
    span = high - low
    if not (isfinite(span) and span > 1e-300):
        return [low]
    unit = 10.0 ** floor(log10(span / most))
    steps = [unit * each for each in (1, 2, 2.5, 5, 10, 20)]
    if whole:
        steps = [max(1.0, each) for each in steps if each < 1 or each == int(each)]
    for step in steps:
        first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
        if last - first < most:
            break
    return [each * step for each in range(first, last + 1)]


def numbered(values: Iterable[float], *, percent: bool = False) -> dict[float, str]:
    """Write the labels of ticks, all with as many decimals as one of them needs."""
    known = list(values)
    shown = [100 * value for value in known] if percent else known
    largest = max(map(abs, shown), default=0.0)
    if not 1e-5 < largest < 1e15:
        return {value: f"{each:g}" for value, each in zip(known, shown, strict=True)}
    decimals = next(
        (d for d in range(8) if all(abs(round(v, d) - v) <= 1e-9 * largest for v in shown)), 8
    )
    mark = "," if largest >= 10_000 else ""
    sign = "%" if percent else ""
    labels = [f"{each + 0.0:{mark}.{decimals}f}{sign}".replace("-", "−") for each in shown]
    return dict(zip(known, labels, strict=True))
