"""The drawing itself: places, shapes, colours, legend."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mutandis.pictures.graph_picture import Arrow, Kind, Node, Picture
from mutandis.pictures.graph_placement import Box, Layout, Spacing, lay_out
from mutandis.pictures.svg import element, number, printable, shortened, text_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["render"]

_FONT = 14.0
_SMALL = 12.0
_HEIGHT = 38.0
_PADDING = 16.0
_LOCK = 17.0
_WIDEST_NAME = 190.0
_NARROWEST = 64.0
_MARGIN = 24.0
_HEAD = 9.0
# a page in portrait: a picture that would be wider runs downwards instead
_PAGE = 1000.0
_LEGEND_WIDTH = 580.0
_SAMPLE = (30.0, 17.0)
_TO_THE_RIGHT = Spacing(across=22.0, lane=17.0, forward=64.0)
_DOWNWARDS = Spacing(across=28.0, lane=18.0, forward=46.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """Colours and strokes of one kind of node. Kinds differ in shape too, for print in grey."""

    fill: str
    stroke: str
    text: str = "#222222"
    radius: float = 0.2
    """The radius of the corners, as a share of the height."""
    width: float = 1.4
    double: bool = False
    border: Mapping[str, str] = field(default_factory=dict)
    font: Mapping[str, str] = field(default_factory=dict)


_BOLD = {"font_weight": "bold"}
_DASHED = {"stroke_dasharray": "5 4"}
_LOOKS = {
    Kind.PROTECTED: _Look(
        fill="#fdf0e6", stroke="#b8500f", text="#7a340a", double=True, font=_BOLD
    ),
    Kind.ATTRIBUTE: _Look(fill="#f6f5f2", stroke="#55524a"),
    Kind.RESOLVING: _Look(fill="#e6f1e8", stroke="#2f6b3a", text="#1d4a26", radius=0.0, width=2.0),
    Kind.LATENT: _Look(
        fill="#ffffff",
        stroke="#55524a",
        radius=0.5,
        border=_DASHED,
        font={"font_style": "italic"},
    ),
    Kind.OUTCOME: _Look(fill="#1f4a80", stroke="#1f4a80", text="#ffffff", radius=0.08, font=_BOLD),
}

_STROKES: Mapping[Arrow, Mapping[str, str]] = {
    Arrow.CAUSE: {"stroke": "#55524a"},
    Arrow.HIDDEN: {"stroke": "#55524a", **_DASHED},
    Arrow.READ: {"stroke": "#1f5fa8", "stroke_dasharray": "0.5 4", "stroke_linecap": "round"},
}


def render(picture: Picture) -> str:
    """Draw a picture as SVG."""
    sheet = _sheet(picture)
    width, height = sheet.size
    key, key_height = _legend(picture, below=2 * _MARGIN + height, width=max(width, _LEGEND_WIDTH))
    total = (max(width, _LEGEND_WIDTH) + 2 * _MARGIN, height + key_height + 3 * _MARGIN)
    about = picture.described()
    # several drawings may share a page: their ids must not
    own = f"worldview-{zlib.crc32(about.encode()):08x}"
    inset = (total[0] - 2 * _MARGIN - width) / 2
    parts = [
        element("title", text="Worldview", id=f"{own}-title"),
        element("desc", text=about, id=f"{own}-desc"),
        element("rect", width=total[0], height=total[1], fill="#ffffff"),
        element(
            "g",
            [*_arrows(picture, sheet), *_nodes(picture, sheet)],
            transform=f"translate({number(inset)},0)",
        ),
        element("g", key, class_="legend", font_size=_SMALL, fill="#333333"),
    ]
    drawn = element(
        "svg",
        [f"\n{part}" for part in parts],
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(total[0])} {number(total[1])}",
        width=total[0],
        height=total[1],
        role="img",
        aria_labelledby=f"{own}-title {own}-desc",
        font_family="Helvetica, Arial, sans-serif",
        font_size=_FONT,
    )
    return f"{drawn}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sheet:
    """A layout on paper, running to the right or downwards."""

    layout: Layout
    downwards: bool = False

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        length, breadth = self.layout.length, self.layout.breadth
        return (breadth, length) if self.downwards else (length, breadth)

    def point(self, forward: float, across: float) -> str:
        """Write a point."""
        x, y = (across, forward) if self.downwards else (forward, across)
        return f"{number(_MARGIN + x)},{number(_MARGIN + y)}"

    def rectangle(self, box: Box) -> tuple[float, float, float, float]:
        """Give left, top, width and height."""
        if self.downwards:
            return _MARGIN + box.across, _MARGIN + box.forward, box.breadth, box.length
        return _MARGIN + box.forward, _MARGIN + box.across, box.length, box.breadth

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """Lead an arrow straight past layers and in curves between them, up to its head."""
        *before, (passed, entry), (tip, _) = points
        # the head stands in the passage before the layer, on a straight piece
        corners = [*before, (passed - _HEAD, entry), (tip - _HEAD, entry)]
        written = [f"M{self.point(*corners[0])}"]
        for index in range(1, len(corners)):
            (at, here), (forward, there) = corners[index - 1], corners[index]
            if index % 2 == 0 and abs(there - here) >= 0.1:
                half = (at + forward) / 2
                bends = f"{self.point(half, here)} {self.point(half, there)}"
                written.append(f"C{bends} {self.point(forward, there)}")
            elif forward - at >= 0.1:
                written.append(f"L{self.point(forward, there)}")
        return " ".join(written)

    def head(self, tip: tuple[float, float]) -> str:
        """Draw an arrowhead."""
        forward, across = tip
        corners = [(forward - _HEAD, across - 4.2), tip, (forward - _HEAD, across + 4.2)]
        return "M" + " L".join(self.point(*corner) for corner in corners) + " Z"


def _sheet(picture: Picture) -> _Sheet:
    """Run to the right as long as that fits on a page, else downwards if that is narrower."""
    sizes = [_size(node) for node in picture.nodes]
    strands = {arrow: strand for strand, arrow in enumerate(Arrow, start=1)}
    edges = {ends: strands[arrow] for ends, arrow in picture.arrows.items()}
    right = lay_out(sizes, edges, layers=picture.layers, spacing=_TO_THE_RIGHT)
    if right.length + 2 * _MARGIN <= _PAGE:
        return _Sheet(layout=right)
    turned = [(height, width) for width, height in sizes]
    down = lay_out(turned, edges, layers=picture.layers, spacing=_DOWNWARDS)
    if down.breadth < right.length:
        return _Sheet(layout=down, downwards=True)
    return _Sheet(layout=right)


def _label(node: Node) -> str:
    return shortened(printable(node.name), width=_WIDEST_NAME, size=_FONT)


def _size(node: Node) -> tuple[float, float]:
    bold = 1.08 if _LOOKS[node.kind].font is _BOLD else 1.0
    width = text_width(_label(node), _FONT) * bold + 2 * _PADDING + _LOCK * node.locked
    return max(float(round(width)), _NARROWEST), _HEIGHT


def _arrows(picture: Picture, sheet: _Sheet) -> Iterable[str]:
    for (cause, effect), arrow in picture.arrows.items():
        points = sheet.layout.routes[cause, effect]
        names = [printable(picture.nodes[node].name) for node in (cause, effect)]
        children = [
            element("title", text=" → ".join(names)),
            element("path", d=sheet.path(points), fill="none", stroke_width=1.5, **_STROKES[arrow]),
            element("path", d=sheet.head(points[-1]), fill=_STROKES[arrow]["stroke"]),
        ]
        yield "\n" + element("g", children, class_=f"arrow {arrow.name.lower()}")


def _nodes(picture: Picture, sheet: _Sheet) -> Iterable[str]:
    for node, box in zip(picture.nodes, sheet.layout.boxes, strict=True):
        left, top, width, height = sheet.rectangle(box)
        look = _LOOKS[node.kind]
        middle, baseline = left + width / 2, top + height / 2 + 0.35 * _FONT
        children = [
            element("title", text=printable(node.name)),
            *_shape(look, (left, top, width, height), inset=4.0),
        ]
        if node.locked:
            lock_left = left + _PADDING - 3.0
            children.append(_lock(lock_left, top + height / 2, look.text))
            middle += _LOCK / 2
        children.append(
            element(
                "text",
                text=_label(node),
                x=middle,
                y=baseline,
                text_anchor="middle",
                fill=look.text,
                **look.font,
            )
        )
        yield "\n" + element("g", children, class_=f"node {node.kind.name.lower()}")


def _shape(
    look: _Look, rectangle: tuple[float, float, float, float], *, inset: float
) -> Iterable[str]:
    left, top, width, height = rectangle
    radius = look.radius * height
    yield element(
        "rect",
        x=left,
        y=top,
        width=width,
        height=height,
        rx=radius,
        fill=look.fill,
        stroke=look.stroke,
        stroke_width=look.width,
        **look.border,
    )
    if look.double:
        yield element(
            "rect",
            x=left + inset,
            y=top + inset,
            width=width - 2 * inset,
            height=height - 2 * inset,
            rx=max(radius - inset, 1.0),
            fill="none",
            stroke=look.stroke,
            stroke_width=look.width,
        )


def _lock(left: float, middle: float, colour: str, *, scale: float = 1.0) -> str:
    """Draw a small padlock: what an intervention leaves as it is."""
    return element(
        "g",
        [
            element("rect", x=0.0, y=-1.0, width=11.0, height=8.0, rx=1.5, fill=colour),
            element(
                "path",
                d="M2.5,-1 V-3.5 a3,3 0 0 1 6,0 V-1",
                fill="none",
                stroke=colour,
                stroke_width=1.6,
            ),
        ],
        class_="lock",
        transform=f"translate({number(left)},{number(middle)}) scale({scale:g})",
    )


def _legend(picture: Picture, *, below: float, width: float) -> tuple[list[str], float]:
    """Explain the kinds of nodes and arrows that occur, in as many lines as that takes."""
    kinds = {node.kind for node in picture.nodes}
    arrows = set(picture.arrows.values())
    entries: list[Kind | Arrow] = [
        *(kind for kind in Kind if kind in kinds),
        *(arrow for arrow in Arrow if arrow in arrows),
    ]
    drawn: list[str] = []
    x, y = 0.0, 0.0
    for entry in entries:
        needed = _SAMPLE[0] + 8.0 + text_width(entry.value, _SMALL)
        if x and x + needed > width:
            x, y = 0.0, y + 26.0
        middle = below + y + _SAMPLE[1] / 2
        drawn.append("\n" + "".join(_sample(entry, _MARGIN + x, middle)))
        x += needed + 22.0
    return drawn, y + _SAMPLE[1] if entries else 0.0


def _sample(entry: Kind | Arrow, left: float, middle: float) -> Iterable[str]:
    width, height = _SAMPLE
    if isinstance(entry, Kind):
        look = _LOOKS[entry]
        yield from _shape(look, (left, middle - height / 2, width, height), inset=3.0)
        if entry is Kind.RESOLVING:
            yield _lock(left + width / 2 - 4.4, middle - 1.0, look.text, scale=0.8)
    else:
        line = f"M{number(left)},{number(middle)} h{number(width - _HEAD)}"
        head = f"M{number(left + width)},{number(middle)} l-9,-4.2 v8.4 Z"
        yield element("path", d=line, fill="none", stroke_width=1.5, **_STROKES[entry])
        yield element("path", d=head, fill=_STROKES[entry]["stroke"])
    yield element("text", text=entry.value, x=left + width + 8.0, y=middle + 0.35 * _SMALL)
