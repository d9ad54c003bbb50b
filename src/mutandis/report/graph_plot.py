"""Drawing of a worldview: causes and effects in layers, with a legend of both.

The layer of a node is the longest path from a root, and its place in the layer follows the mean
place of its neighbours (Sugiyama, Tagawa and Toda 1981).
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from mutandis.errors import PlanError
from mutandis.report.chart import (
    BASELINE,
    INK,
    element,
    number,
    printable,
    sheet,
    shortened,
    text_width,
)
from mutandis.scm.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from mutandis.report.chart import Picture
    from mutandis.scm import Worldview

_FONT, _SMALL = 14.0, 12.0
_HEIGHT, _PADDING = 38.0, 16.0
_NARROWEST, _WIDEST_NAME = 64.0, 190.0
_MARGIN, _HEAD = 24.0, 9.0
_PAGE = 1000.0  # a drawing that would be wider runs downwards instead
_LEGEND_WIDTH, _SAMPLE, _SAMPLE_HEIGHT = 580.0, 30.0, 17.0
_GAP, _LAYER_GAP, _PORT_GAP = 24.0, 90.0, 11.0
_SWEEPS = 12


class _Look(NamedTuple):
    """Look of a kind of node; kinds differ in shape too, for print in grey."""

    label: str
    fill: str
    stroke: str
    text: str = INK
    corner: float = 0.2  # its radius, as a share of the height
    insets: tuple[float, ...] = (0.0,)  # of its borders
    border: Mapping[str, Any] = {"stroke_width": 1.4}
    font: Mapping[str, str] = {}


_BOLD, _ITALIC = {"font_weight": "bold"}, {"font_style": "italic"}
_DASHED, _THICK = {"stroke_dasharray": "5 4"}, {"stroke_width": 2.0}
_TWO = (0.0, 3.5)
_NODES = {
    "protected": _Look(
        "protected attribute", "#fdf0e6", "#b8500f", "#7a340a", insets=_TWO, font=_BOLD
    ),
    "attribute": _Look("attribute", "#f6f5f2", "#55524a"),
    "resolving": _Look(
        "resolving: kept as it is", "#e6f1e8", "#2f6b3a", "#1d4a26", corner=0.0, border=_THICK
    ),
    "latent": _Look(
        "hidden common cause", "#ffffff", "#55524a", corner=0.5, border=_DASHED, font=_ITALIC
    ),
    "outcome": _Look("decision", "#1f4a80", "#1f4a80", "#ffffff", corner=0.08, font=_BOLD),
}
_DOTTED = {"stroke_dasharray": "0.5 4", "stroke_linecap": "round"}
_ARROWS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "cause": ("is a cause of", {"stroke": "#55524a"}),
    "hidden": ("drives, unobserved", {"stroke": "#55524a", **_DASHED}),
    "read": ("is used to decide", {"stroke": "#1f5fa8", **_DOTTED}),
    "compared": (
        "is what people are compared on",
        {"stroke": "#8a857a", "stroke_dasharray": "8 3 1 3"},
    ),
}


class _Node(NamedTuple):
    name: str
    kind: str

    @property
    def label(self) -> str:
        return shortened(printable(self.name), width=_WIDEST_NAME, size=_FONT)

    def extent(self, *, downwards: bool) -> tuple[float, float]:
        """Length along the arrows, and breadth across them."""
        needed = text_width(self.label, 1.08 * _FONT) + 2 * _PADDING
        width = max(float(round(needed)), _NARROWEST)
        return (_HEIGHT, width) if downwards else (width, _HEIGHT)


class _Vertex(NamedTuple):
    """A node in its layer, or (with a strand) where its arrows of one kind pass a later layer."""

    layer: int
    node: int
    strand: str = ""


_Arrows = dict[tuple[int, int], str]
_Near = dict[_Vertex, list[_Vertex]]


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
    compared on; `label` returns the label of a column.
    """
    marked = (protected,) if isinstance(protected, str) else tuple(protected)
    inputs = (decision_inputs,) if isinstance(decision_inputs, str) else tuple(decision_inputs)
    if inputs and outcome is None:
        raise PlanError(
            "decision_inputs are given, but not the outcome that they lead to. Give outcome= too."
        )
    read = dict.fromkeys(inputs, "read")
    if not inputs and outcome is not None:
        read = dict.fromkeys(compared, "compared")
    parents = {**dict.fromkeys((*marked, *read), ()), **worldview.graph.parents}
    if outcome is not None:
        parents[outcome] = tuple(dict.fromkeys((*parents.get(outcome, ()), *read)))
    graph = Graph.from_parents(parents)  # refuses cycles
    nodes = [_Node(latent.name, "latent") for latent in worldview.latents]
    place = {name: len(nodes) + index for index, name in enumerate(graph.names)}
    arrows: _Arrows = {
        (place[cause], place[child]): read.get(cause, "cause") if child == outcome else "cause"
        for child, causes in graph.parents.items()
        for cause in causes
    }
    for index, latent in enumerate(worldview.latents):
        arrows |= {(index, place[child]): "hidden" for child in latent.equations}
    for name in graph.names:
        kind = "resolving" if name in worldview.resolving else "attribute"
        kind = "protected" if name in marked else kind
        nodes.append(_Node(label(name), "outcome" if name == outcome else kind))
    last = None if outcome is None else place[outcome]
    layers = _layers(len(nodes), arrows, hidden=len(worldview.latents), last=last)
    return _render(nodes, arrows, layers)


def _layers(nodes: int, arrows: _Arrows, *, hidden: int, last: int | None) -> list[int]:
    """Return each node's layer: the longest path from a root."""
    layers = [0] * nodes
    for cause, effect in sorted(arrows):
        layers[effect] = max(layers[effect], layers[cause] + 1)
    for latent in range(hidden):  # right before their effects
        layers[latent] = min(layers[effect] for cause, effect in arrows if cause == latent) - 1
    if last is not None and all(cause != last for cause, _ in arrows):
        layers[last] = max((layers[node] for node in range(nodes) if node != last), default=-1) + 1
    return layers


class _Layout:
    """Places along the arrows (forward) and across them, running to the right or downwards."""

    def __init__(
        self, nodes: Sequence[_Node], arrows: _Arrows, layers: Sequence[int], *, downwards: bool
    ) -> None:
        self.nodes, self.downwards = nodes, downwards
        self.own = [_Vertex(layer, node) for node, layer in enumerate(layers)]
        # an arrow that passes layers has a vertex in each, shared by arrows of one kind from a node
        self.routes = {
            (cause, effect): [
                self.own[cause],
                *(_Vertex(at, cause, kind) for at in range(layers[cause] + 1, layers[effect])),
                self.own[effect],
            ]
            for (cause, effect), kind in arrows.items()
        }
        before, after = defaultdict(list), defaultdict(list)
        pieces = (piece for route in self.routes.values() for piece in pairwise(route))
        for one, two in dict.fromkeys(pieces):
            after[one].append(two)
            before[two].append(one)
        rows: list[list[_Vertex]] = [[] for _ in range(max(layers, default=-1) + 1)]
        for vertex in sorted({*self.own, *before, *after}, key=lambda each: (each.node, each)):
            rows[vertex.layer].append(vertex)
        self._place(_ordered(rows, before, after))
        self.ports = self._ports(before) | self._ports(after)

    def _place(self, rows: Sequence[Sequence[_Vertex]]) -> None:
        """Put the vertices of a row next to each other, and the rows around one line."""
        self.middles: dict[_Vertex, float] = {}
        self.spans: list[tuple[float, float]] = []  # start and end of each row
        forward = 0.0
        for row in rows:
            at = 0.0
            for vertex in row:
                breadth = self._breadth(vertex)
                self.middles[vertex] = at + breadth / 2
                at += breadth + _GAP
            for vertex in row:
                self.middles[vertex] -= (at - _GAP) / 2
            length = max(self._extent(vertex.node)[0] for vertex in row if not vertex.strand)
            self.spans.append((forward, forward + length))
            forward += length + _LAYER_GAP
        half = max((at + self._breadth(each) / 2 for each, at in self.middles.items()), default=0.0)
        self.middles = {vertex: at + half for vertex, at in self.middles.items()}
        self.size = (self.spans[-1][1] if rows else 0.0), 2 * half

    def _extent(self, node: int) -> tuple[float, float]:
        return self.nodes[node].extent(downwards=self.downwards)

    def _breadth(self, vertex: _Vertex) -> float:
        return 0.0 if vertex.strand else self._extent(vertex.node)[1]

    def _ports(self, near: _Near) -> dict[tuple[_Vertex, _Vertex], float]:
        """Spread the points where arrows leave (or enter) a node, so that they do not pile up."""
        ports = {}
        for vertex in self.own:
            others = sorted(near[vertex], key=self.middles.__getitem__)
            step = min(_PORT_GAP, (self._breadth(vertex) - _PADDING) / max(len(others) - 1, 1))
            for place, other in enumerate(others):
                ports[vertex, other] = self.middles[vertex] + step * (place - (len(others) - 1) / 2)
        return ports

    @property
    def paper(self) -> tuple[float, float]:
        """Width and height."""
        return self.size[::-1] if self.downwards else self.size

    def box(self, node: int) -> tuple[float, float, float, float]:
        """Return the left, top, width and height of a node."""
        length, breadth = self._extent(node)
        start, end = self.spans[self.own[node].layer]
        forward = _MARGIN + (start + end - length) / 2
        across = _MARGIN + self.middles[self.own[node]] - breadth / 2
        if self.downwards:
            return across, forward, breadth, length
        return forward, across, length, breadth

    def point(self, forward: float, across: float) -> str:
        x, y = (across, forward) if self.downwards else (forward, across)
        return f"{number(_MARGIN + x)},{number(_MARGIN + y)}"

    def arrow(self, ends: tuple[int, int]) -> tuple[str, str]:
        """Return the line of an arrow, straight past layers and curved between, and its head."""
        route = self.routes[ends]
        lengths = [self._extent(node)[0] for node in ends]
        first, final = self.spans[route[0].layer], self.spans[route[-1].layer]
        leave, tip = (sum(first) + lengths[0]) / 2, (sum(final) - lengths[1]) / 2
        at, entry = self.ports[route[0], route[1]], self.ports[route[-1], route[-2]]
        written, end = [f"M{self.point(leave, at)}", f"L{self.point(first[1], at)}"], first[1]
        for vertex in route[1:]:
            is_last = vertex is route[-1]
            start = self.spans[vertex.layer][0] - _HEAD * is_last
            there = entry if is_last else self.middles[vertex]
            half = (end + start) / 2
            bend = f"{self.point(half, at)} {self.point(half, there)} {self.point(start, there)}"
            end, at = tip - _HEAD if is_last else self.spans[vertex.layer][1], there
            written += [f"C{bend}", f"L{self.point(end, at)}"]
        corners = [(tip - _HEAD, at - 4.2), (tip, at), (tip - _HEAD, at + 4.2)]
        return " ".join(written), "M" + " L".join(self.point(*each) for each in corners) + " Z"


def _ordered(rows: list[list[_Vertex]], before: _Near, after: _Near) -> list[list[_Vertex]]:
    """Sort each row by the mean place of its neighbours, forth and back; keep the best order."""
    best, fewest = [list(row) for row in rows], _crossings(rows, after)
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        around = before if forth else after
        for row in rows if forth else rows[::-1]:
            places = {vertex: place for each in rows for place, vertex in enumerate(each)}
            means = {
                v: sum(places[other] for other in around[v]) / len(around[v])
                if around[v]
                else places[v]
                for v in row
            }
            row.sort(key=means.__getitem__)
        found = _crossings(rows, after)
        if found < fewest:
            best, fewest = [list(row) for row in rows], found
    return best


def _crossings(rows: Sequence[Sequence[_Vertex]], after: _Near) -> int:
    """Count the crossings between neighbouring rows."""
    places = {vertex: place for row in rows for place, vertex in enumerate(row)}
    count = 0
    for row in rows:
        ends = [(places[v], places[other]) for v in row for other in after[v]]
        count += sum(a < c and b > d for a, b in ends for c, d in ends)
    return count


def _render(nodes: Sequence[_Node], arrows: _Arrows, layers: Sequence[int]) -> Picture:
    """Draw to the right if that fits on a page, else downwards if that is narrower."""
    layout = _Layout(nodes, arrows, layers, downwards=False)
    if layout.size[0] + 2 * _MARGIN > _PAGE:
        down = _Layout(nodes, arrows, layers, downwards=True)
        layout = min(layout, down, key=lambda each: each.paper[0])
    width, height = layout.paper
    room = max(width, _LEGEND_WIDTH)
    legend, below = _legend(nodes, arrows, top=2 * _MARGIN + height, width=room)
    shift = f"translate({number((room - width) / 2)},0)"
    parts = [
        element("g", [*_draw_arrows(layout, arrows), *_draw_nodes(layout)], transform=shift),
        element("g", legend, class_="legend", font_size=_SMALL, fill="#333333"),
    ]
    return sheet(
        parts,
        title="Worldview",
        description=_described(nodes, arrows),
        width=room + 2 * _MARGIN,
        height=height + below + 3 * _MARGIN,
        unit="",
        font_size=_FONT,
    )


def _described(nodes: Sequence[_Node], arrows: _Arrows) -> str:
    """Describe the drawing in words, for screen readers."""
    names = [printable(node.name) for node in nodes]
    said = []
    for kind, look in _NODES.items():
        these = [name for name, node in zip(names, nodes, strict=True) if node.kind == kind]
        if these and kind != "attribute":
            said.append(f"{look.label[0].upper()}{look.label[1:]}: {', '.join(these)}.")
    effects: dict[int, list[str]] = {}
    for cause, effect in arrows:
        effects.setdefault(cause, []).append(names[effect])
    said += [f"{names[cause]} → {', '.join(theirs)}." for cause, theirs in sorted(effects.items())]
    return " ".join(said)


def _draw_arrows(layout: _Layout, arrows: _Arrows) -> Iterator[str]:
    for ends, kind in arrows.items():
        names = [printable(layout.nodes[node].name) for node in ends]
        children = [element("title", text=" → ".join(names)), *_arrow(kind, *layout.arrow(ends))]
        yield "\n" + element("g", children, class_=f"arrow {kind}")


def _arrow(kind: str, line: str, head: str) -> Iterator[str]:
    look = _ARROWS[kind][1]
    yield element("path", d=line, fill="none", stroke_width=1.5, **look)
    yield element("path", d=head, fill=look["stroke"])


def _draw_nodes(layout: _Layout) -> Iterator[str]:
    for place, node in enumerate(layout.nodes):
        left, top, width, height = layout.box(place)
        look = _NODES[node.kind]
        at: dict[str, Any] = {"x": left + width / 2, "y": top + height / 2 + BASELINE * _FONT}
        name = element(
            "text", text=node.label, text_anchor="middle", fill=look.text, **at, **look.font
        )
        shape = _shape(look, (left, top, width, height))
        children = [element("title", text=printable(node.name)), *shape, name]
        yield "\n" + element("g", children, class_=f"node {node.kind}")


def _shape(look: _Look, box: tuple[float, float, float, float]) -> Iterator[str]:
    left, top, width, height = box
    for inset in look.insets:
        yield element(
            "rect",
            fill="none" if inset else look.fill,
            x=left + inset,
            y=top + inset,
            width=width - 2 * inset,
            height=height - 2 * inset,
            rx=max(look.corner * height - inset, 0.0),
            stroke=look.stroke,
            **look.border,
        )


def _legend(
    nodes: Sequence[_Node], arrows: _Arrows, *, top: float, width: float
) -> tuple[list[str], float]:
    """Explain the kinds of nodes and arrows that occur; return their height too."""
    used = {node.kind for node in nodes} | set(arrows.values())
    labels = {kind: look.label for kind, look in _NODES.items() if kind in used}
    labels |= {kind: label for kind, (label, _) in _ARROWS.items() if kind in used}
    drawn: list[str] = []
    x, y = 0.0, 0.0
    for kind, label in labels.items():
        needed = _SAMPLE + 8.0 + text_width(label, _SMALL)
        if x and x + needed > width:
            x, y = 0.0, y + 26.0
        left, middle = _MARGIN + x, top + y + _SAMPLE_HEIGHT / 2
        if kind in _NODES:
            sample = _shape(_NODES[kind], (left, top + y, _SAMPLE, _SAMPLE_HEIGHT))
        else:
            line = f"M{number(left)},{number(middle)} h{number(_SAMPLE - _HEAD)}"
            head = f"M{number(left + _SAMPLE)},{number(middle)} l-9,-4.2 v8.4 Z"
            sample = _arrow(kind, line, head)
        at: dict[str, Any] = {"x": left + _SAMPLE + 8.0, "y": middle + BASELINE * _SMALL}
        drawn.append("\n" + "".join(sample) + element("text", text=label, **at))
        x += needed + 22.0
    return drawn, y + _SAMPLE_HEIGHT if labels else 0.0
