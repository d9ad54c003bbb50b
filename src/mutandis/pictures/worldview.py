"""A worldview as a picture: who causes whom, and what is special about whom."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from mutandis.errors import PlanError
from mutandis.pictures.layout import Layout, Rectangle, Spacing, lay_out, longest_paths
from mutandis.pictures.picture import Picture
from mutandis.pictures.svg import element, number, printable, shortened, text_width
from mutandis.scm.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from mutandis.scm import Worldview

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


class _NodeKind(Enum):
    """What a node is; the value says it in the legend."""

    PROTECTED = "protected attribute"
    ATTRIBUTE = "attribute"
    RESOLVING = "resolving: kept as it is"
    LATENT = "hidden common cause"
    OUTCOME = "decision"


class _ArrowKind(Enum):
    """What an arrow says; the value says it in the legend."""

    CAUSE = "is a cause of"
    HIDDEN = "drives, unobserved"
    READ = "is used to decide"
    COMPARED = "is what people are compared on"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """An attribute, a hidden cause or the decision; `locked` if interventions leave it alone."""

    name: str
    kind: _NodeKind
    locked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Diagram:
    """Nodes, arrows between them by their positions, and the layer of each node."""

    nodes: tuple[_Node, ...]
    arrows: Mapping[tuple[int, int], _ArrowKind]
    layers: tuple[int, ...]

    def described(self) -> str:
        """Say in words what the picture shows, to those who cannot see it."""
        kinds: dict[_NodeKind, list[str]] = {}
        for node in self.nodes:
            kinds.setdefault(node.kind, []).append(printable(node.name))
        said = [
            f"{kind.value[0].upper()}{kind.value[1:]}: {', '.join(kinds[kind])}."
            for kind in _NodeKind
            if kind in kinds and kind is not _NodeKind.ATTRIBUTE
        ]
        effects: dict[int, list[str]] = {}
        for cause, effect in self.arrows:
            effects.setdefault(cause, []).append(printable(self.nodes[effect].name))
        said += [
            f"{printable(self.nodes[cause].name)} → {', '.join(names)}."
            for cause, names in sorted(effects.items())
        ]
        return " ".join(said)


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
    _NodeKind.PROTECTED: _Look(
        fill="#fdf0e6", stroke="#b8500f", text="#7a340a", double=True, font=_BOLD
    ),
    _NodeKind.ATTRIBUTE: _Look(fill="#f6f5f2", stroke="#55524a"),
    _NodeKind.RESOLVING: _Look(
        fill="#e6f1e8", stroke="#2f6b3a", text="#1d4a26", radius=0.0, width=2.0
    ),
    _NodeKind.LATENT: _Look(
        fill="#ffffff",
        stroke="#55524a",
        radius=0.5,
        border=_DASHED,
        font={"font_style": "italic"},
    ),
    _NodeKind.OUTCOME: _Look(
        fill="#1f4a80", stroke="#1f4a80", text="#ffffff", radius=0.08, font=_BOLD
    ),
}

_STROKES: Mapping[_ArrowKind, Mapping[str, str]] = {
    _ArrowKind.CAUSE: {"stroke": "#55524a"},
    _ArrowKind.HIDDEN: {"stroke": "#55524a", **_DASHED},
    _ArrowKind.READ: {"stroke": "#1f5fa8", "stroke_dasharray": "0.5 4", "stroke_linecap": "round"},
    _ArrowKind.COMPARED: {"stroke": "#8a857a", "stroke_dasharray": "8 3 1 3"},
}


def draw_worldview(
    worldview: Worldview,
    *,
    protected: Collection[str] | str = (),
    outcome: str | None = None,
    decision_inputs: Collection[str] = (),
    compared: Collection[str] = (),
    label: Callable[[str], str] = str,
) -> Picture:
    """Draw a worldview: see `Worldview.draw`.

    Where it is not known what a decision reads, `compared` are the attributes that people are
    compared on; `label` says what a column is called.
    """
    marked = (protected,) if isinstance(protected, str) else tuple(protected)
    inputs = (decision_inputs,) if isinstance(decision_inputs, str) else tuple(decision_inputs)
    if inputs and outcome is None:
        raise PlanError(
            "decision_inputs are given, but not the outcome that they lead to. Give outcome= too."
        )
    alike = () if inputs or outcome is None else tuple(compared)
    graph = _with_decision(worldview.graph.parents, marked, outcome, (*inputs, *alike))
    hidden = [_Node(name=latent.name, kind=_NodeKind.LATENT) for latent in worldview.latents]
    nodes = [
        replace(_node(name, worldview, marked, outcome), name=label(name)) for name in graph.names
    ]
    place = {name: len(hidden) + index for index, name in enumerate(graph.names)}
    arrows = {
        (place[cause], place[child]): _ArrowKind.CAUSE
        for child, causes in graph.parents.items()
        for cause in causes
    }
    for index, latent in enumerate(worldview.latents):
        arrows.update({(index, place[child]): _ArrowKind.HIDDEN for child in latent.equations})
    if outcome is not None:
        arrows.update({(place[name], place[outcome]): _ArrowKind.READ for name in inputs})
        arrows.update({(place[name], place[outcome]): _ArrowKind.COMPARED for name in alike})
    layers = longest_paths(len(hidden) + len(nodes), tuple(arrows))
    _move_hidden(layers, len(hidden), arrows)
    if outcome is not None:
        _move_outcome(layers, place[outcome], arrows)
    diagram = _Diagram(nodes=(*hidden, *nodes), arrows=arrows, layers=tuple(layers))
    return Picture(_render(diagram), "Worldview")


def _with_decision(
    parents: Mapping[str, tuple[str, ...]],
    protected: tuple[str, ...],
    outcome: str | None,
    inputs: tuple[str, ...],
) -> Graph:
    """Add what the worldview does not mention: lone attributes, and the decision."""
    everything = {**dict.fromkeys((*protected, *inputs), ()), **parents}
    if outcome is not None:
        everything[outcome] = tuple(dict.fromkeys((*everything.get(outcome, ()), *inputs)))
    return Graph.from_parents(everything)


def _node(
    name: str, worldview: Worldview, protected: Collection[str], outcome: str | None
) -> _Node:
    locked = name in worldview.resolving
    kind = _NodeKind.RESOLVING if locked else _NodeKind.ATTRIBUTE
    if name in protected:
        kind = _NodeKind.PROTECTED
    if name == outcome:
        kind = _NodeKind.OUTCOME
    return _Node(name=name, kind=kind, locked=locked)


def _move_hidden(layers: list[int], hidden: int, arrows: Collection[tuple[int, int]]) -> None:
    """Put hidden causes right before what they drive; nothing leads to them."""
    for index in range(hidden):
        driven = [layers[effect] for cause, effect in arrows if cause == index]
        layers[index] = min(driven) - 1


def _move_outcome(layers: list[int], outcome: int, arrows: Collection[tuple[int, int]]) -> None:
    """Put the decision last, if it has no effects itself."""
    if all(cause != outcome for cause, _ in arrows):
        others = (layer for node, layer in enumerate(layers) if node != outcome)
        layers[outcome] = max(others, default=-1) + 1


def _render(diagram: _Diagram) -> str:
    sheet = _sheet(diagram)
    width, height = sheet.size
    key, key_height = _legend(diagram, below=2 * _MARGIN + height, width=max(width, _LEGEND_WIDTH))
    total = (max(width, _LEGEND_WIDTH) + 2 * _MARGIN, height + key_height + 3 * _MARGIN)
    about = diagram.described()
    # several drawings may share a page: their ids must not
    own = f"worldview-{zlib.crc32(about.encode()):08x}"
    inset = (total[0] - 2 * _MARGIN - width) / 2
    parts = [
        element("title", text="Worldview", id=f"{own}-title"),
        element("desc", text=about, id=f"{own}-desc"),
        element("rect", width=total[0], height=total[1], fill="#ffffff"),
        element(
            "g",
            [*_arrows(diagram, sheet), *_nodes(diagram, sheet)],
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
        length, breadth = self.layout.length, self.layout.breadth
        return (breadth, length) if self.downwards else (length, breadth)

    def point(self, forward: float, across: float) -> str:
        x, y = (across, forward) if self.downwards else (forward, across)
        return f"{number(_MARGIN + x)},{number(_MARGIN + y)}"

    def rectangle(self, box: Rectangle) -> tuple[float, float, float, float]:
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
        forward, across = tip
        corners = [(forward - _HEAD, across - 4.2), tip, (forward - _HEAD, across + 4.2)]
        return "M" + " L".join(self.point(*corner) for corner in corners) + " Z"


def _sheet(diagram: _Diagram) -> _Sheet:
    """Run to the right as long as that fits on a page, else downwards if that is narrower."""
    sizes = [_size(node) for node in diagram.nodes]
    strands = {arrow: strand for strand, arrow in enumerate(_ArrowKind, start=1)}
    edges = {ends: strands[arrow] for ends, arrow in diagram.arrows.items()}
    right = lay_out(sizes, edges, layers=diagram.layers, spacing=_TO_THE_RIGHT)
    if right.length + 2 * _MARGIN <= _PAGE:
        return _Sheet(layout=right)
    turned = [(height, width) for width, height in sizes]
    down = lay_out(turned, edges, layers=diagram.layers, spacing=_DOWNWARDS)
    if down.breadth < right.length:
        return _Sheet(layout=down, downwards=True)
    return _Sheet(layout=right)


def _label(node: _Node) -> str:
    return shortened(printable(node.name), width=_WIDEST_NAME, size=_FONT)


def _size(node: _Node) -> tuple[float, float]:
    bold = 1.08 if _LOOKS[node.kind].font is _BOLD else 1.0
    width = text_width(_label(node), _FONT) * bold + 2 * _PADDING + _LOCK * node.locked
    return max(float(round(width)), _NARROWEST), _HEIGHT


def _arrows(diagram: _Diagram, sheet: _Sheet) -> Iterable[str]:
    for (cause, effect), arrow in diagram.arrows.items():
        points = sheet.layout.routes[cause, effect]
        names = [printable(diagram.nodes[node].name) for node in (cause, effect)]
        children = [
            element("title", text=" → ".join(names)),
            element("path", d=sheet.path(points), fill="none", stroke_width=1.5, **_STROKES[arrow]),
            element("path", d=sheet.head(points[-1]), fill=_STROKES[arrow]["stroke"]),
        ]
        yield "\n" + element("g", children, class_=f"arrow {arrow.name.lower()}")


def _nodes(diagram: _Diagram, sheet: _Sheet) -> Iterable[str]:
    for node, box in zip(diagram.nodes, sheet.layout.boxes, strict=True):
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


def _legend(diagram: _Diagram, *, below: float, width: float) -> tuple[list[str], float]:
    """Explain the kinds of nodes and arrows that occur, in as many lines as that takes."""
    kinds = {node.kind for node in diagram.nodes}
    arrows = set(diagram.arrows.values())
    entries: list[_NodeKind | _ArrowKind] = [
        *(kind for kind in _NodeKind if kind in kinds),
        *(arrow for arrow in _ArrowKind if arrow in arrows),
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


def _sample(entry: _NodeKind | _ArrowKind, left: float, middle: float) -> Iterable[str]:
    width, height = _SAMPLE
    if isinstance(entry, _NodeKind):
        look = _LOOKS[entry]
        yield from _shape(look, (left, middle - height / 2, width, height), inset=3.0)
        if entry is _NodeKind.RESOLVING:
            yield _lock(left + width / 2 - 4.4, middle - 1.0, look.text, scale=0.8)
    else:
        line = f"M{number(left)},{number(middle)} h{number(width - _HEAD)}"
        head = f"M{number(left + width)},{number(middle)} l-9,-4.2 v8.4 Z"
        yield element("path", d=line, fill="none", stroke_width=1.5, **_STROKES[entry])
        yield element("path", d=head, fill=_STROKES[entry]["stroke"])
    yield element("text", text=entry.value, x=left + width + 8.0, y=middle + 0.35 * _SMALL)
