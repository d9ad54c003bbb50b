"""Worldviews from files: YAML, and causal graphs that were drawn elsewhere.

A graph says who causes whom, not how. So every arrow is read as part of a linear equation; write
the worldview out with `Worldview.write` and edit the file to say more.
"""

from __future__ import annotations

import re
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutandis.config.worldview import parse_worldview
from mutandis.config.yaml import read_text
from mutandis.errors import MutandisWarning, SettingsError, WorldviewError, listed, shown
from mutandis.limits import explain_limit, limit
from mutandis.scm import Linear, Worldview

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping


__all__ = ["read_dot", "read_gml", "read_worldview", "worldview_from_graph"]

# what networkx's reader of GML raises on texts that are none
_READER_ERRORS = (
    AttributeError,
    IndexError,
    KeyError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)

_NUMERAL = re.compile(r"-?(\.[0-9]+|[0-9]+(\.[0-9]*)?)")
_DOT_QUOTED = r'"(?:\\.|[^"\\])*"'
_DOT_ID = re.compile(rf"({_DOT_QUOTED}|[^:]*)(:.*)?", re.DOTALL)
# text in quotes or angle brackets, and comments: where '--' is no arrow
_DOT_INERT = re.compile(
    rf"{_DOT_QUOTED}|<[^<>]*>|//[^\n]*|/\*.*?\*/|^#[^\n]*", re.DOTALL | re.MULTILINE
)
# pydot takes some 10 ms for a subgraph, and twice as long for each level of nesting
_DOT_BYTES, _DOT_SUBGRAPHS, _DOT_DEPTH = 100_000, 500, 4
_DOT_BRACKETS = re.compile(r"->|[{<\[]|[}>\]]")
# DOT's statements about all nodes; pydot lists them among the nodes
_DOT_DEFAULTS = {"node", "edge", "graph"}


def read_worldview(source: str | Path) -> Worldview:
    """Read YAML or a graph from a file; text with line breaks is the YAML itself."""
    if isinstance(source, str) and "\n" in source:
        return parse_worldview(source)
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix in GRAPH_READERS:
        return GRAPH_READERS[suffix](read_text(path), path.name)
    if suffix in {".yaml", ".yml"}:
        return parse_worldview(read_text(path), source=path.name)
    raise SettingsError(
        f"The ending of {shown(path.name)} does not tell what it holds. Worldviews are read from "
        f"files that end in .yaml, .yml, {', '.join(GRAPH_READERS)}."
    )


def worldview_from_graph(graph: Any) -> Worldview:  # Any: networkx has no types
    """Make a worldview of a directed graph: every node is linear in the nodes that point to it.

    A node is named by itself if it is text, unless that text is a number and the node has a
    ``label``; any other node is named by its ``label``.
    """
    if not graph.is_directed():
        raise WorldviewError(
            "The graph is undirected: its lines do not tell cause from effect. "
            "Give a directed graph (in GML: 'directed 1'; in DOT: 'digraph' and '->')."
        )
    names = _names_of(graph)
    loops = [name for node, name in names.items() if graph.has_edge(node, node)]
    if loops:
        raise WorldviewError(
            f"The graph has an arrow from {shown(loops[0])} to itself. Nothing can be its own "
            "cause: take the arrow out."
        )
    causes = {
        name: [names[cause] for cause in graph.predecessors(node)] for node, name in names.items()
    }
    worldview = Worldview({name: Linear(*found) for name, found in causes.items() if found})
    alone = [name for name in causes if name not in worldview.names]
    if alone:
        warnings.warn(
            f"No arrow touches {listed(alone)}: the worldview leaves them out, and an intervention "
            "leaves them as they are.",
            MutandisWarning,
            stacklevel=3,
        )
    return worldview


def read_gml(text: str, source: str) -> Worldview:
    """Read a worldview from GML; `source` is the name of the file."""
    import networkx as nx

    try:
        graph: Any = nx.parse_gml(text, label="id")
    except nx.NetworkXError as error:
        found = re.search(r"at \(([0-9]+), [0-9]+\)$", str(error))
        reason = f"the reader says {shown(str(error))}"
        raise _unreadable(source, "GML", found and found[1], reason) from None
    except _READER_ERRORS:
        raise _unreadable(source, "GML", None, "it does not hold one 'graph [ … ]'") from None
    return _named(graph, source)


def read_dot(text: str, source: str) -> Worldview:
    """Read a worldview from DOT, the language of Graphviz. It needs pydot: mutandis[graph]."""
    graph = _parse_dot(text, source)
    return _named(graph, source)


def _named(graph: Any, source: str) -> Worldview:
    """Make the worldview of a graph; errors name the file."""
    try:
        return worldview_from_graph(graph)
    except WorldviewError as error:
        raise type(error)(f"{source}: {error}") from error


GRAPH_READERS: Mapping[str, Callable[[str, str], Worldview]] = {
    ".gml": read_gml,
    ".dot": read_dot,
    ".gv": read_dot,
}


def _unreadable(source: str, language: str, line: str | None, reason: str) -> SettingsError:
    place = f"{source}, line {line}" if line else source
    return SettingsError(
        f"{place}: The file cannot be read as {language}: {reason}. "
        "Correct it, or export it again from the program it comes from."
    )


def _names_of(graph: Any) -> dict[Hashable, str]:
    names: dict[Hashable, str] = {}
    owners: dict[str, Hashable] = {}
    for node, data in graph.nodes(data=True):
        name = _name_of(node, data.get("label"))
        if name in owners:
            raise WorldviewError(
                f"Two nodes of the graph are called {shown(name)}. Give each its own name."
            )
        names[node] = name
        owners[name] = node
    return names


def _name_of(node: object, label: object) -> str:
    named_by_itself = isinstance(node, str) and not (label and _NUMERAL.fullmatch(node))
    name = node if named_by_itself else label
    if isinstance(name, int | float) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str) or not name:
        raise WorldviewError(
            f"The node {shown(node)} of the graph has no name. Nodes are named like the columns: "
            "give it that name as its label."
        )
    return name


def _parse_dot(text: str, source: str) -> Any:
    try:
        import pydot
    except ImportError:
        raise SettingsError(
            f"{source}: Reading DOT needs pydot, which is not installed. "
            "Install it with: pip install 'mutandis[graph]'."
        ) from None
    _refuse_slow(text, source)
    complaint = StringIO()
    try:
        # pydot prints what it cannot read and returns None; the warnings are about its own parser
        with redirect_stdout(complaint), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            found = pydot.graph_from_dot_data(text)
    except RecursionError:
        found = None
    if not found:
        line = re.search(r"\(line:([0-9]+),", complaint.getvalue())
        reason = "it is not of the form 'digraph { cause -> effect; … }' from here on"
        raise _unreadable(source, "DOT", line and line[1], reason)
    if len(found) > 1:
        raise SettingsError(f"{source}: The file holds {len(found)} graphs. Keep one of them.")
    if found[0].get_type() == "digraph" and "--" in _without_inert(text):
        raise SettingsError(
            f"{source}: The graph has a line without direction ('--'). Write '->', from the cause "
            "to the effect."
        )
    return _as_networkx(found[0])


def _refuse_slow(text: str, source: str) -> None:
    """Refuse what pydot would take minutes or, since nesting is exponential, years for."""
    brackets = _DOT_BRACKETS.findall(re.sub(_DOT_QUOTED, "", text))
    depth = deepest = 0
    for found in brackets:
        depth += 0 if found == "->" else 1 if found in "{<[" else -1
        deepest = max(deepest, depth)
    for measured, most, unit in (
        (len(text), _DOT_BYTES, "characters"),
        (brackets.count("{") - 1, _DOT_SUBGRAPHS, "subgraphs"),
        (deepest - 1, _DOT_DEPTH, "levels of nesting"),
    ):
        if measured > limit(most):
            raise SettingsError(
                f"{source}: The graph has {measured:,} {unit}. Take out what is not about causes, "
                f"or write the worldview as YAML. {explain_limit(most, unit)}"
            )


def _without_inert(text: str) -> str:
    """Take out what is no statement; angle brackets are nested, so from the inside outwards."""
    removed = 1
    while removed:
        text, removed = _DOT_INERT.subn(" ", text)
    return text


def _as_networkx(found: Any) -> Any:
    import networkx as nx

    graph: Any = nx.DiGraph() if found.get_type() == "digraph" else nx.Graph()
    for part in _parts(found):
        for node in part.get_nodes():
            name = node.get_name()
            if name not in _DOT_DEFAULTS:
                label = node.get_attributes().get("label")
                graph.add_node(_dot_text(name), **({"label": _dot_text(label)} if label else {}))
        for edge in part.get_edges():
            for cause in _ends(edge.get_source()):
                graph.add_edges_from((cause, effect) for effect in _ends(edge.get_destination()))
    return graph


def _parts(graph: Any) -> Iterator[Any]:
    """Give a graph and the subgraphs in it: those of their own, and those that arrows lead to."""
    import pydot

    yield graph
    ends = [
        end for edge in graph.get_edges() for end in (edge.get_source(), edge.get_destination())
    ]
    inline = [pydot.Subgraph(obj_dict=end) for end in ends if not isinstance(end, str)]
    for part in (*graph.get_subgraphs(), *inline):
        yield from _parts(part)


def _ends(end: Any) -> list[str]:
    """List the nodes at one end of an arrow: one, or all those of a subgraph."""
    import pydot

    if isinstance(end, str):
        return [_dot_text(end)]
    members: dict[str, None] = {}
    for part in _parts(pydot.Subgraph(obj_dict=end)):
        members.update((_dot_text(node.get_name()), None) for node in part.get_nodes())
        for edge in part.get_edges():
            plain = (
                end for end in (edge.get_source(), edge.get_destination()) if isinstance(end, str)
            )
            members.update((_dot_text(end), None) for end in plain)
    return list(members)


def _dot_text(written: str) -> str:
    """Read an identifier: without its port, and without its quotes."""
    match = _DOT_ID.fullmatch(written)
    name = match[1] if match else written
    if name.startswith('"') and name.endswith('"') and len(name) > 1:
        return name[1:-1].replace('\\"', '"')
    return name
