"""Charts of plain shapes, written as SVG.

All lengths are points of 1/72 inch, from the upper left corner.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import TYPE_CHECKING, Any

from mutandis.pictures.picture import Picture
from mutandis.pictures.svg import element, number, printable, text_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Point = tuple[float, float]
Key = tuple[str, "Callable[[float, float], None]"]

INK = "#222222"
SIZE = 10.0
DASHED, DOTTED = "6 3", "1.5 2.5"
_AXIS = "#333333"
_FONTS = "Helvetica, Arial, sans-serif"
# where the lines of letters stand, below the middle of a line of text
_BASELINE = 0.35
_SAMPLE = 24.0
# corners of marks, in halves of their size
_MARKS = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "up": ((0, -1.2), (1.1, 0.9), (-1.1, 0.9)),
    "down": ((0, 1.2), (1.1, -0.9), (-1.1, -0.9)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Path:
    """A line through points, or with a `fill` the area within."""

    points: tuple[Point, ...]
    stroke: str = "none"
    width: float = 1.0
    dash: str = ""
    fill: str = "none"
    opacity: float = 1.0

    def svg(self) -> str:
        corners = " L".join(f"{number(x)},{number(y)}" for x, y in self.points)
        look: dict[str, Any] = {"fill": self.fill}
        if self.stroke != "none":
            look |= {"stroke": self.stroke, "stroke_width": self.width}
        if self.dash:
            look["stroke_dasharray"] = self.dash
        if self.opacity < 1:
            look["opacity"] = f"{self.opacity:g}"
        return element("path", d=f"M{corners}{'' if self.fill == 'none' else ' Z'}", **look)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Circle:
    center: Point
    radius: float
    stroke: str
    fill: str

    def svg(self) -> str:
        x, y = self.center
        return element("circle", cx=x, cy=y, r=self.radius, stroke=self.stroke, fill=self.fill)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """A line of text around the height of a point: from there (start), to there (end) or both."""

    at: Point
    text: str
    size: float
    anchor: str
    bold: bool
    colour: str
    turned: bool

    def svg(self) -> str:
        x, y = self.at
        down = self.size * _BASELINE
        look: dict[str, Any] = {"x": x, "y": y + down}
        if self.turned:
            look = {"transform": f"translate({number(x + down)},{number(y)}) rotate(-90)"}
        if self.anchor != "start":
            look["text_anchor"] = self.anchor
        if self.bold:
            look["font_weight"] = "bold"
        return element("text", text=self.text, font_size=self.size, fill=self.colour, **look)


class Chart:
    """A sheet with shapes, which lie on each other in the order in which they were added."""

    def __init__(self, *, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._shapes: list[_Path | _Circle | _Text] = []

    def line(self, points: Iterable[Point], colour: str, **look: Any) -> None:
        """Draw a line; `look` is a `width`, a `dash` and an `opacity`."""
        if known := tuple(points):
            self._shapes.append(_Path(points=known, stroke=colour, **look))

    def area(self, points: Iterable[Point], fill: str, **look: Any) -> None:
        """Fill an area; `look` is a `stroke`, and what a line has."""
        self._shapes.append(_Path(points=tuple(points), fill=fill, **look))

    def box(self, one: Point, two: Point, fill: str, **look: Any) -> None:
        """Fill the box with these corners."""
        (left, top), (right, bottom) = one, two
        self.area([(left, top), (right, top), (right, bottom), (left, bottom)], fill, **look)

    def mark(self, kind: str, at: Point, colour: str, *, size: float = 5, fill: str = "") -> None:
        """Mark a point by a circle, square, diamond, or triangle (up, down)."""
        half, fill = size / 2, fill or colour
        if kind == "circle":
            self._shapes.append(_Circle(center=at, radius=half, stroke=colour, fill=fill))
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
        if text:
            self._shapes.append(
                _Text(
                    at=at,
                    text=printable(text),
                    size=size,
                    anchor=anchor,
                    bold=bold,
                    colour=colour,
                    turned=turned,
                )
            )

    def legend(self, keys: Sequence[Key], *, width: float | None = None) -> float:
        """Explain looks at the top, in as many rows as they need; give where the rows end.

        A key is a label and a function that draws a sample, 24 points wide, from a point on.
        """
        left, x, y = 4.0, 4.0, 10.0
        for label, draw in keys:
            needed = _SAMPLE + 6 + text_width(label, SIZE)
            if x > left and x + needed > (self.width if width is None else width):
                x, y = left, y + 16
            draw(x, y)
            self.text((x + _SAMPLE + 6, y), label)
            x += needed + 9
        return y + 14

    def picture(self, title: str) -> Picture:
        """Write the chart."""
        width, height = number(self.width), number(self.height)
        drawn = element(
            "svg",
            [
                f"\n{part}"
                for part in (
                    element("title", text=printable(title)),
                    element("rect", width=self.width, height=self.height, fill="#ffffff"),
                    *(shape.svg() for shape in self._shapes),
                )
            ],
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width} {height}",
            width=f"{width}pt",
            height=f"{height}pt",
            role="img",
            font_family=_FONTS,
        )
        return Picture(f"{drawn}\n", title)


class Frame:
    """A rectangle of a chart (left, top, right, bottom) in which values have places."""

    def __init__(
        self, chart: Chart, sides: tuple[float, float, float, float], x: Point, y: Point
    ) -> None:
        self.chart = chart
        self.left, self.top, self.right, self.bottom = sides
        self._x, self._y = x, y

    def x(self, value: float) -> float:
        """Give the place of a value from left to right."""
        low, high = self._x
        return self.left + (value - low) / (high - low) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Give the place of a value from the bottom up."""
        low, high = self._y
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)

    def at(self, x: float, y: float) -> Point:
        return self.x(x), self.y(y)

    def steps(self, edges: Sequence[float], heights: Sequence[float]) -> list[Point]:
        """Lead a line from the ground over the tops of bars to the ground."""
        corners = [self.at(edges[0], 0)]
        for height, left, right in zip(heights, edges[:-1], edges[1:], strict=True):
            corners += [self.at(left, height), self.at(right, height)]
        return [*corners, self.at(edges[-1], 0)]

    def upright(self, x: float, colour: str, **look: Any) -> None:
        """Draw a line from bottom to top."""
        self.chart.line([(self.x(x), self.bottom), (self.x(x), self.top)], colour, **look)

    def level(self, y: float, colour: str, **look: Any) -> None:
        """Draw a line from left to right."""
        self.chart.line([(self.left, self.y(y)), (self.right, self.y(y))], colour, **look)

    def x_axis(self, labels: Mapping[float, str], title: str = "", *, marked: bool = True) -> None:
        """Draw the axis below, with labels at their values."""
        chart, bottom = self.chart, self.bottom
        chart.line([(self.left, bottom), (self.right, bottom)], _AXIS, width=0.8)
        for value, label in labels.items():
            x = self.x(value)
            if marked:
                chart.line([(x, bottom), (x, bottom + 3.5)], _AXIS, width=0.8)
            chart.text((x, bottom + 11), label, anchor="middle")
        chart.text(((self.left + self.right) / 2, bottom + 26), title, anchor="middle")

    def y_axis(self, labels: Mapping[float, str], title: str = "", *, marked: bool = True) -> None:
        """Draw the axis on the left, with labels at their values and its title at the margin."""
        chart, left = self.chart, self.left
        chart.line([(left, self.top), (left, self.bottom)], _AXIS, width=0.8)
        for value, label in labels.items():
            y = self.y(value)
            if marked:
                chart.line([(left - 3.5, y), (left, y)], _AXIS, width=0.8)
            chart.text((left - 6, y), label, anchor="end")
        out = left - room_for(labels.values()) - SIZE / 2 - 2
        chart.text((out, (self.top + self.bottom) / 2), title, anchor="middle", turned=True)


def room_for(labels: Iterable[str]) -> float:
    """Give the room that labels need on the left of an axis."""
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
