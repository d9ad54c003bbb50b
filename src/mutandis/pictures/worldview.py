"""A worldview as a picture: causes and effects in layers, with the kinds of both explained."""

from __future__ import annotations

import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from mutandis.errors import PlanError
from mutandis.pictures.picture import Picture
from mutandis.pictures.svg import element, number, printable, shortened, text_width
from mutandis.scm.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from mutandis.scm import Worldview

_FONT, _SMALL = 14.0, 12.0
_HEIGHT, _PADDING, _LOCK = 38.0, 16.0, 17.0
_NARROWEST, _WIDEST_NAME = 64.0, 190.0
_MARGIN, _HEAD = 24.0, 9.0
_PAGE = 1000.0  # a picture that would be wider runs downwards instead
_LEGEND_WIDTH, _SAMPLE = 580.0, (30.0, 17.0)
_NODE_GAP, _LANE_GAP, _LAYER_GAP, _PORT_GAP = 24.0, 17.0, 60.0, 11.0
_SWEEPS, _ROUNDS = 12, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """How a kind of node looks; kinds differ in shape too, for print in grey."""

    label: str
    fill: str
    stroke: str
    text: str = "#222222"
    corner: float = 0.2  # its radius, as a share of the height
    width: float = 1.4
    double: bool = False
    border: Mapping[str, str] = field(default_factory=dict)
    font: Mapping[str, str] = field(default_factory=dict)


_BOLD, _DASHED = {"font_weight": "bold"}, {"stroke_dasharray": "5 4"}
_NODES = {
    "protected": _Look(
        label="protected attribute",
        fill="#fdf0e6",
        stroke="#b8500f",
        text="#7a340a",
        double=True,
        font=_BOLD,
    ),
    "attribute": _Look(label="attribute", fill="#f6f5f2", stroke="#55524a"),
    "resolving": _Look(
        label="resolving: kept as it is",
        fill="#e6f1e8",
        stroke="#2f6b3a",
        text="#1d4a26",
        corner=0.0,
        width=2.0,
    ),
    "latent": _Look(
        label="hidden common cause",
        fill="#ffffff",
        stroke="#55524a",
        corner=0.5,
        border=_DASHED,
        font={"font_style": "italic"},
    ),
    "outcome": _Look(
        label="decision", fill="#1f4a80", stroke="#1f4a80", text="#ffffff", corner=0.08, font=_BOLD
    ),
}
_ARROWS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "cause": ("is a cause of", {"stroke": "#55524a"}),
    "hidden": ("drives, unobserved", {"stroke": "#55524a", **_DASHED}),
    "read": (
        "is used to decide",
        {"stroke": "#1f5fa8", "stroke_dasharray": "0.5 4", "stroke_linecap": "round"},
    ),
    "compared": (
        "is what people are compared on",
        {"stroke": "#8a857a", "stroke_dasharray": "8 3 1 3"},
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    name: str
    kind: str
    locked: bool = False  # interventions leave it as it is

    @property
    def label(self) -> str:
        return shortened(printable(self.name), width=_WIDEST_NAME, size=_FONT)

    @property
    def width(self) -> float:
        bold = 1.08 if _NODES[self.kind].font is _BOLD else 1.0
        needed = text_width(self.label, _FONT) * bold + 2 * _PADDING + _LOCK * self.locked
        return max(float(round(needed)), _NARROWEST)


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
    nodes = [_Node(name=latent.name, kind="latent") for latent in worldview.latents]
    place = {name: len(nodes) + index for index, name in enumerate(graph.names)}
    arrows: _Arrows = {
        (place[cause], place[child]): read.get(cause, "cause") if child == outcome else "cause"
        for child, causes in graph.parents.items()
        for cause in causes
    }
    for index, latent in enumerate(worldview.latents):
        arrows |= {(index, place[child]): "hidden" for child in latent.equations}
    for name in graph.names:
        locked = name in worldview.resolving
        kind = "resolving" if locked else "attribute"
        kind = "protected" if name in marked else kind
        kind = "outcome" if name == outcome else kind
        nodes.append(_Node(name=label(name), kind=kind, locked=locked))
    last = None if outcome is None else place[outcome]
    layers = _layers(len(nodes), arrows, hidden=len(worldview.latents), last=last)
    return Picture(_render(nodes, arrows, layers), "Worldview")


def _layers(nodes: int, arrows: _Arrows, *, hidden: int, last: int | None) -> list[int]:
    """Return each node's layer: the longest path from a root."""
    layers = [0] * nodes
    for cause, effect in sorted(arrows):
        layers[effect] = max(layers[effect], layers[cause] + 1)
    for latent in range(hidden):  # right before their effects
        layers[latent] = min(layers[effect] for cause, effect in arrows if cause == latent) - 1
    if last is not None and all(cause != last for cause, _ in arrows):
        layers[last] = max((layer for node, layer in enumerate(layers) if node != last), default=-1)
        layers[last] += 1
    return layers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Places along the arrows (forward) and across them, running to the right or downwards."""

    nodes: Sequence[_Node]
    routes: Mapping[tuple[int, int], Sequence[_Vertex]]
    middles: Mapping[_Vertex, float]
    ports: Mapping[tuple[_Vertex, _Vertex], float]  # where arrows leave and enter nodes
    layers: Sequence[tuple[float, float]]  # start and end of each
    own: Sequence[_Vertex]  # of each node
    size: tuple[float, float]  # forward, across
    downwards: bool

    @property
    def paper(self) -> tuple[float, float]:
        """Width and height."""
        forward, across = self.size
        return (across, forward) if self.downwards else (forward, across)

    def box(self, node: int) -> tuple[float, float, float, float]:
        """Return the left, top, width and height of a node."""
        length, breadth = _extent(self.nodes[node], downwards=self.downwards)
        start, end = self.layers[self.own[node].layer]
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
        lengths = [_extent(self.nodes[node], downwards=self.downwards)[0] for node in ends]
        first, final = self.layers[route[0].layer], self.layers[route[-1].layer]
        leave, tip = (sum(first) + lengths[0]) / 2, (sum(final) - lengths[1]) / 2
        at, entry = self.ports[route[0], route[1]], self.ports[route[-1], route[-2]]
        written = [f"M{self.point(leave, at)}"]
        end = first[1]
        if end - leave >= 0.1:
            written.append(f"L{self.point(end, at)}")
        for vertex in route[1:]:
            start, there = self.layers[vertex.layer][0], self.middles[vertex]
            if vertex is route[-1]:
                start, there = start - _HEAD, entry
            half = (end + start) / 2
            bends = f"C{self.point(half, at)} {self.point(half, there)} {self.point(start, there)}"
            written.append(bends if abs(there - at) >= 0.1 else f"L{self.point(start, there)}")
            end, at = self.layers[vertex.layer][1], there
            if vertex is not route[-1]:
                written.append(f"L{self.point(end, at)}")
        if tip - _HEAD - start >= 0.1:
            written.append(f"L{self.point(tip - _HEAD, at)}")
        corners = [(tip - _HEAD, at - 4.2), (tip, at), (tip - _HEAD, at + 4.2)]
        return " ".join(written), "M" + " L".join(self.point(*each) for each in corners) + " Z"


def _extent(node: _Node, *, downwards: bool) -> tuple[float, float]:
    return (_HEIGHT, node.width) if downwards else (node.width, _HEIGHT)


def _lay_out(
    nodes: Sequence[_Node], arrows: _Arrows, layers: Sequence[int], *, downwards: bool
) -> _Layout:
    """Order layers by barycentres for few crossings, then move vertices towards their neighbours.

    An arrow that passes layers has a vertex in each, which arrows of one kind from the same node
    share (Sugiyama, Tagawa and Toda 1981).
    """
    own = [_Vertex(layer, node) for node, layer in enumerate(layers)]
    routes = {
        (cause, effect): (
            own[cause],
            *(_Vertex(at, cause, kind) for at in range(layers[cause] + 1, layers[effect])),
            own[effect],
        )
        for (cause, effect), kind in arrows.items()
    }
    pieces = dict.fromkeys(piece for route in routes.values() for piece in pairwise(route))
    before, after = defaultdict(list), defaultdict(list)
    for one, two in pieces:
        after[one].append(two)
        before[two].append(one)
    rows: list[list[_Vertex]] = [[] for _ in range(max(layers, default=-1) + 1)]
    every = {*own, *(vertex for route in routes.values() for vertex in route)}
    for vertex in sorted(every, key=lambda each: (each.node, each)):
        rows[vertex.layer].append(vertex)
    rows = _ordered(rows, before, after)
    sizes = [_extent(node, downwards=downwards) for node in nodes]
    breadth = {v: 0.0 if v.strand else sizes[v.node][1] for v in every}
    middles = _places_across(rows, breadth, before, after)
    spans, at = [], 0.0
    for row in rows:
        length = max(sizes[vertex.node][0] for vertex in row if not vertex.strand)
        spans.append((at, at + length))
        steep = max((abs(middles[a] - middles[b]) for a in row for b in after[a]), default=0.0)
        at += length + min(1.8 * _LAYER_GAP, _LAYER_GAP + 0.15 * steep)
    across = max((middles[vertex] + breadth[vertex] / 2 for vertex in every), default=0.0)
    return _Layout(
        nodes=nodes,
        routes=routes,
        middles=middles,
        ports=_ports(own, middles, breadth, before) | _ports(own, middles, breadth, after),
        layers=spans,
        own=own,
        size=(spans[-1][1] if spans else 0.0, across),
        downwards=downwards,
    )


def _ordered(rows: list[list[_Vertex]], before: _Near, after: _Near) -> list[list[_Vertex]]:
    """Sort each row by the mean place of its neighbours, forth and back; keep the best order."""
    best, fewest = [list(row) for row in rows], _crossings(rows, after)
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        for row in rows if forth else rows[::-1]:
            around = before if forth else after
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


def _places_across(
    rows: Sequence[Sequence[_Vertex]],
    breadth: Mapping[_Vertex, float],
    before: _Near,
    after: _Near,
) -> dict[_Vertex, float]:
    """Move every vertex towards the mean of its neighbours, as far as its row leaves room."""
    middles: dict[_Vertex, float] = {}
    apart: dict[_Vertex, float] = {}  # from the vertex before it in its row
    for row in rows:
        apart[row[0]] = 0.0
        for one, two in pairwise(row):
            gap = _NODE_GAP if breadth[one] and breadth[two] else _LANE_GAP
            apart[two] = (breadth[one] + breadth[two]) / 2 + gap
        places = list(accumulate(apart[vertex] for vertex in row))
        middles |= {vertex: at - places[-1] / 2 for vertex, at in zip(row, places, strict=True)}
    for turn in range(_ROUNDS):
        for row in rows if turn % 2 == 0 else rows[::-1]:
            wanted = [_wanted(v, [*before[v], *after[v]], middles) for v in row]
            low, high = list(wanted), list(wanted)
            for i in range(1, len(row)):
                low[i] = max(low[i], low[i - 1] + apart[row[i]])
                high[-1 - i] = min(high[-1 - i], high[-i] - apart[row[-i]])
            # both keep the distances, so their mean does
            middles |= {v: (a + b) / 2 for v, a, b in zip(row, low, high, strict=True)}
    first = min((middles[vertex] - breadth[vertex] / 2 for vertex in middles), default=0.0)
    return {vertex: place - first for vertex, place in middles.items()}


def _wanted(vertex: _Vertex, near: Sequence[_Vertex], middles: Mapping[_Vertex, float]) -> float:
    """Return the mean place of a vertex's neighbours; straight arrows past nodes count more."""
    pulls = [4 if vertex.strand and other.strand else 1 for other in near]
    if not near:
        return middles[vertex]
    return sum(p * middles[o] for p, o in zip(pulls, near, strict=True)) / sum(pulls)


def _ports(
    own: Sequence[_Vertex],
    middles: Mapping[_Vertex, float],
    breadth: Mapping[_Vertex, float],
    near: _Near,
) -> dict[tuple[_Vertex, _Vertex], float]:
    """Spread the points where arrows leave (or enter) a node, so that they do not pile up."""
    ports = {}
    for vertex in own:
        others = sorted(near[vertex], key=middles.__getitem__)
        step = min(_PORT_GAP, (breadth[vertex] - _PADDING) / max(len(others) - 1, 1))
        for place, other in enumerate(others):
            ports[vertex, other] = middles[vertex] + step * (place - (len(others) - 1) / 2)
    return ports


def _render(nodes: Sequence[_Node], arrows: _Arrows, layers: Sequence[int]) -> str:
    """Write the drawing to the right if that fits on a page, else downwards if that is narrower."""
    layout = _lay_out(nodes, arrows, layers, downwards=False)
    if layout.size[0] + 2 * _MARGIN > _PAGE:
        down = _lay_out(nodes, arrows, layers, downwards=True)
        layout = min(layout, down, key=lambda each: each.paper[0])
    width, height = layout.paper
    room = max(width, _LEGEND_WIDTH)
    legend, below = _legend(nodes, arrows, top=2 * _MARGIN + height, width=room)
    total = room + 2 * _MARGIN, height + below + 3 * _MARGIN
    about = _described(nodes, arrows)
    # several drawings may share a page: their ids must not
    own = f"worldview-{zlib.crc32(about.encode()):08x}"
    parts = [
        element("title", text="Worldview", id=f"{own}-title"),
        element("desc", text=about, id=f"{own}-desc"),
        element("rect", width=total[0], height=total[1], fill="#ffffff"),
        element(
            "g",
            [*_draw_arrows(layout, arrows), *_draw_nodes(layout)],
            transform=f"translate({number((room - width) / 2)},0)",
        ),
        element("g", legend, class_="legend", font_size=_SMALL, fill="#333333"),
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
        line, head = layout.arrow(ends)
        look = _ARROWS[kind][1]
        names = [printable(layout.nodes[node].name) for node in ends]
        children = [
            element("title", text=" → ".join(names)),
            element("path", d=line, fill="none", stroke_width=1.5, **look),
            element("path", d=head, fill=look["stroke"]),
        ]
        yield "\n" + element("g", children, class_=f"arrow {kind}")


def _draw_nodes(layout: _Layout) -> Iterator[str]:
    for place, node in enumerate(layout.nodes):
        left, top, width, height = layout.box(place)
        look, across = _NODES[node.kind], left + width / 2
        children = [element("title", text=printable(node.name))]
        children += _shape(look, (left, top, width, height), inset=4.0)
        if node.locked:
            children.append(_lock(left + _PADDING - 3.0, top + height / 2, look.text))
            across += _LOCK / 2
        at: dict[str, Any] = {"x": across, "y": top + height / 2 + 0.35 * _FONT}
        children.append(
            element(
                "text", text=node.label, text_anchor="middle", fill=look.text, **at, **look.font
            )
        )
        yield "\n" + element("g", children, class_=f"node {node.kind}")


def _shape(look: _Look, box: tuple[float, float, float, float], *, inset: float) -> Iterator[str]:
    left, top, width, height = box
    radius = look.corner * height
    style: dict[str, Any] = {"stroke": look.stroke, "stroke_width": look.width}
    outer: dict[str, Any] = {"x": left, "y": top, "width": width, "height": height, "rx": radius}
    yield element("rect", fill=look.fill, **outer, **style, **look.border)
    if look.double:
        inner: dict[str, Any] = {
            "x": left + inset,
            "y": top + inset,
            "rx": max(radius - inset, 1.0),
        }
        inner |= {"width": width - 2 * inset, "height": height - 2 * inset}
        yield element("rect", fill="none", **inner, **style)


def _lock(left: float, middle: float, colour: str, *, scale: float = 1.0) -> str:
    """Draw a small padlock: what an intervention leaves as it is."""
    shackle: dict[str, Any] = {"fill": "none", "stroke": colour, "stroke_width": 1.6}
    body = element("rect", x=0.0, y=-1.0, width=11.0, height=8.0, rx=1.5, fill=colour)
    return element(
        "g",
        [body, element("path", d="M2.5,-1 V-3.5 a3,3 0 0 1 6,0 V-1", **shackle)],
        class_="lock",
        transform=f"translate({number(left)},{number(middle)}) scale({scale:g})",
    )


def _legend(
    nodes: Sequence[_Node], arrows: _Arrows, *, top: float, width: float
) -> tuple[list[str], float]:
    """Explain the kinds of nodes and arrows that occur; return their height too."""
    kinds = {node.kind for node in nodes} | set(arrows.values())
    labels = {kind: look.label for kind, look in _NODES.items()}
    labels |= {kind: label for kind, (label, _) in _ARROWS.items()}
    drawn: list[str] = []
    x, y = 0.0, 0.0
    for kind, label in labels.items():
        if kind not in kinds:
            continue
        needed = _SAMPLE[0] + 8.0 + text_width(label, _SMALL)
        if x and x + needed > width:
            x, y = 0.0, y + 26.0
        left, middle = _MARGIN + x, top + y + _SAMPLE[1] / 2
        at: dict[str, Any] = {"x": left + _SAMPLE[0] + 8.0, "y": middle + 0.35 * _SMALL}
        drawn.append(
            "\n" + "".join(_sample(kind, left, middle)) + element("text", text=label, **at)
        )
        x += needed + 22.0
    return drawn, y + _SAMPLE[1] if kinds else 0.0


def _sample(kind: str, left: float, middle: float) -> Iterator[str]:
    width, height = _SAMPLE
    if kind in _NODES:
        look = _NODES[kind]
        yield from _shape(look, (left, middle - height / 2, width, height), inset=3.0)
        if kind == "resolving":
            yield _lock(left + width / 2 - 4.4, middle - 1.0, look.text, scale=0.8)
    else:
        style = _ARROWS[kind][1]
        line = f"M{number(left)},{number(middle)} h{number(width - _HEAD)}"
        head = f"M{number(left + width)},{number(middle)} l-9,-4.2 v8.4 Z"
        yield element("path", d=line, fill="none", stroke_width=1.5, **style)
        yield element("path", d=head, fill=style["stroke"])
