"""Worldviews from graphs of other programs."""

from __future__ import annotations

import builtins
import sys
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mutandis as mm
from mutandis.config.worldview import read_worldview, worldview_from_graph
from mutandis.errors import (
    CycleError,
    MutandisError,
    MutandisWarning,
    SettingsError,
    WorldviewError,
)
from mutandis.scm import Linear, Worldview

if TYPE_CHECKING:
    from pathlib import Path

LOAN = Worldview({"salary": Linear("gender"), "balance": Linear("gender", "salary")})

GML = """\
# made elsewhere
graph [
  directed 1
  node [ id 7 label "gender" graphics [ x 1.0 ] ]
  node [ id 8 label "salary" ]
  node [ id 9 label "balance" ]
  edge [ source 7 target 8 ]
  edge [ source 7 target 9 label "strong" ]
  edge [ source 8 target 9 ]
]
"""

DOT = """\
// made elsewhere
digraph bank {
  graph [rankdir=LR]; node [shape=box]; edge [color=gray]
  gender -> salary -> balance [weight=2]
  gender -> balance
}
"""


def read(text: str, folder: Path, name: str = "w.dot") -> Worldview:
    (folder / name).write_text(text, encoding="utf-8")
    return read_worldview(folder / name)


def test_arrows_become_linear_equations() -> None:
    graph = nx.DiGraph([("gender", "salary"), ("gender", "balance"), ("salary", "balance")])

    assert worldview_from_graph(graph) == LOAN
    assert mm.Worldview.from_graph(graph) == LOAN


def test_parallel_arrows_count_once() -> None:
    graph = nx.MultiDiGraph([("a", "b"), ("a", "b")])

    assert worldview_from_graph(graph) == Worldview({"b": Linear("a")})


@pytest.mark.parametrize(("name", "text"), [("w.gml", GML), ("w.dot", DOT), ("w.GV", DOT)])
def test_files_are_read_by_their_ending(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")

    found = read_worldview(tmp_path / name)

    assert {child: set(causes) for child, causes in found.graph.parents.items()} == {
        "gender": set(),
        "salary": {"gender"},
        "balance": {"gender", "salary"},
    }
    assert all(isinstance(equation, Linear) for equation in found.equations.values())


def test_numbered_nodes_are_named_by_their_labels() -> None:
    graph = nx.DiGraph()
    graph.add_node(0, label="gender")
    graph.add_node("1", label="salary")
    graph.add_node("balance", label="the balance")
    graph.add_node(3, label=2020)
    graph.add_edges_from([(0, "1"), ("1", "balance"), (3, "balance")])

    assert worldview_from_graph(graph) == Worldview(
        {"salary": Linear("gender"), "balance": Linear("salary", "2020")}
    )


@pytest.mark.parametrize(
    ("text", "parents"),
    [
        ('digraph { 1 [label="a \\"b\\""]; 2 [label=c]; 1 -> 2 }', {"c": ('a "b"',)}),
        ('digraph { 1 -> "x y":port:n; a:p -> 1 }', {"1": ("a",), "x y": ("1",)}),
        ('digraph { "a:b" -> c }', {"c": ("a:b",)}),
        ("strict digraph { a -> b; a -> b }", {"b": ("a",)}),
        ('digraph { a [label="not -- this"]; a -> b // nor -- this\n }', {"b": ("a",)}),
        ("digraph { a [label=<<b>x -- y</b>>]; a -> b /* nor -- this */ }", {"b": ("a",)}),
        ('digraph { "größe" -> "収入" }', {"収入": ("größe",)}),
    ],
)
def test_dot_in_its_many_forms(
    text: str, parents: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    found = read(text, tmp_path)

    assert {child: equation.parents for child, equation in found.equations.items()} == parents


def test_gml_keeps_names_of_any_script(tmp_path: Path) -> None:
    text = 'graph [ directed 1 node [ id 0 label "gr&#246;&#223;e" ] node [ id 1 label "収入" ] \n'

    found = read(text + "edge [ source 0 target 1 ] ]", tmp_path, "w.gml")

    assert found == Worldview({"収入": Linear("größe")})


names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"], exclude_characters='"&'),
    min_size=1,
    max_size=8,
)


@given(labels=st.lists(names, min_size=2, max_size=6, unique=True), data=st.data())
def test_what_networkx_writes_is_read(
    labels: list[str], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pairs = [(a, b) for a in range(len(labels)) for b in range(a + 1, len(labels))]
    chosen = data.draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    graph = nx.DiGraph([(labels[a], labels[b]) for a, b in chosen])
    expected = {labels[b]: {labels[a] for a, end in chosen if end == b} for _, b in chosen}

    found = read("\n".join(nx.generate_gml(graph)), tmp_path_factory.mktemp("gml"), "w.gml")

    assert {child: set(equation.parents) for child, equation in found.equations.items()} == expected


def test_a_node_without_arrows_is_left_out_and_said() -> None:
    graph = nx.DiGraph([("gender", "salary")])
    graph.add_node("age")

    with pytest.warns(MutandisWarning, match="No arrow touches 'age'"):
        found = worldview_from_graph(graph)

    assert found == Worldview({"salary": Linear("gender")})


def _labelled(*labels: Any) -> nx.DiGraph:
    graph = nx.DiGraph()
    for number, label in enumerate(labels):
        graph.add_node(number, label=label)
    graph.add_edge(0, len(labels) - 1)
    return graph


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (nx.Graph([("a", "b")]), "The graph is undirected"),
        (nx.MultiGraph([("a", "b")]), "The graph is undirected"),
        (nx.DiGraph([("a", "b"), ("b", "b")]), "an arrow from 'b' to itself"),
        (nx.DiGraph([(1, 2)]), "The node 1 of the graph has no name"),
        (nx.DiGraph([("a", ("b", 1))]), r"The node \('b', 1\) of the graph has no name"),
        (nx.DiGraph([("", "b")]), "The node '' of the graph has no name"),
        (_labelled("a", None), "The node 1 of the graph has no name"),
        (_labelled("a", True), "The node 1 of the graph has no name"),
        (_labelled("a", "b", "a"), "Two nodes of the graph are called 'a'"),
    ],
)
def test_graphs_that_are_no_worldviews_are_refused(graph: nx.DiGraph, said: str) -> None:
    with pytest.raises(WorldviewError, match=said):
        worldview_from_graph(graph)


def test_a_cycle_is_named(tmp_path: Path) -> None:
    with pytest.raises(CycleError, match="c → a → b → c"):
        worldview_from_graph(nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]))
    with pytest.raises(CycleError, match=r"^w\.dot: The worldview has a cycle: b → a → b"):
        read("digraph { a -> b -> a }", tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("graph [ node [ id 0 label a ] ]", "The graph is undirected"),
        ("graph [\n directed 1\n node [ id 0\n", "line 4: The file cannot be read as GML"),
        ("graph [ directed 1 node [ label 1 ] ]", "the reader says \"node #0 has no 'id'"),
        ("graph [ directed 1 edge [ source 1 target 2 ] ]", "cannot be read as GML"),
        ("graph 5", "cannot be read as GML: it does not hold one"),
        ("", "cannot be read as GML"),
        ("graph [ " * 10_000, "cannot be read as GML"),
        ('"', "cannot be read as GML"),
        ("graph [ directed 1 node 5 ]", "cannot be read as GML"),
        (f"graph [ id {'9' * 5000} ]", "cannot be read as GML"),
    ],
)
def test_gml_that_is_none_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(MutandisError, match=said) as caught:
        read(text, tmp_path, "bank.gml")

    assert str(caught.value).startswith("bank.gml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("graph { a -- b }", "The graph is undirected"),
        ("digraph {\n a -> b\n -> }", "line 3: The file cannot be read as DOT"),
        ("", "cannot be read as DOT"),
        ("digraph { a -> b } digraph { c -> d }", "holds 2 graphs"),
        ("digraph { a -- b }", "a line without direction"),
        ("digraph { a -> a }", "an arrow from 'a' to itself"),
        ("digraph { a -> " + "{" * 2_000 + "b" + "}" * 2_000 + " }", "2,001 levels of nesting"),
        ("digraph { {a b} -> c }", "groups of nodes in braces"),
        ("digraph { subgraph s { a -> b } }", "groups of nodes in braces"),
    ],
)
def test_dot_that_is_none_is_refused(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(MutandisError, match=said) as caught:
        read(text, tmp_path, "bank.dot")

    assert str(caught.value).startswith("bank.dot")
    assert capsys.readouterr() == ("", "")


def test_without_pydot_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    imported = builtins.__import__

    def refuse(name: str, *more: Any, **options: Any) -> Any:
        if name == "pydot":
            raise ImportError(name)
        return imported(name, *more, **options)

    monkeypatch.delitem(sys.modules, "pydot", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse)

    with pytest.raises(SettingsError, match=r"pip install 'mutandis\[graph\]'"):
        read(DOT, tmp_path)
