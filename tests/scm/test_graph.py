"""The causal graph: order, descendants, paths; and its independences, against networkx."""

from __future__ import annotations

import itertools
import random
import re
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest

from mutandis.errors import CycleError, WorldviewError
from mutandis.scm.check import Independence, implied_independences
from mutandis.scm.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def test_causes_come_before_effects_and_ties_follow_the_declaration() -> None:
    graph = Graph.from_parents({"Z": ("Y", "B"), "Y": ("A",), "X": ("A",)})
    # mentioned in the order Y B Z A X; of the roots B and A, B was mentioned first
    assert graph.names == ("B", "A", "Y", "Z", "X")
    assert graph.roots == ("B", "A")
    assert dict(graph.parents) == {"B": (), "A": (), "Y": ("A",), "Z": ("Y", "B"), "X": ("A",)}


@pytest.mark.parametrize("seed", range(60))
def test_order_is_the_lexicographic_one_of_networkx(seed: int) -> None:
    choose = random.Random(seed)  # noqa: S311 - a graph, no secret
    names = [f"N{number}" for number in range(choose.randint(1, 9))]
    parents = {
        name: tuple(choose.sample(names[:place], choose.randint(0, min(3, place))))
        for place, name in enumerate(names)
    }
    declared = dict(choose.sample(list(parents.items()), choose.randint(1, len(names))))
    arrows = nx.DiGraph()
    for child, causes in declared.items():
        arrows.add_nodes_from((*causes, child))
        arrows.add_edges_from((cause, child) for cause in causes)
    place_of = {name: place for place, name in enumerate(arrows)}
    expected = nx.lexicographical_topological_sort(arrows, key=place_of.__getitem__)
    assert Graph.from_parents(declared).names == tuple(expected)


def test_every_graph_of_four_nodes_against_path_search() -> None:
    """All 2^12 sets of arrows between four nodes: acyclic ones are ordered, others are refused."""
    names = "ABCD"
    arrows = list(itertools.permutations(names, 2))
    acyclic = 0
    for chosen in itertools.product([False, True], repeat=len(arrows)):
        edges = {arrow for arrow, there in zip(arrows, chosen, strict=True) if there}
        reach = _reachable(edges, names)
        parents = {child: tuple(n for n in names if (n, child) in edges) for child in names}
        if any(node in reach[node] for node in names):
            with pytest.raises(CycleError):
                Graph.from_parents(parents)
            continue
        acyclic += 1
        graph = Graph.from_parents(parents)
        place = {name: position for position, name in enumerate(graph.names)}
        assert all(place[cause] < place[effect] for cause, effect in edges)
        assert set(graph.roots) == {n for n in names if not parents[n]}
        for node in names:
            assert set(graph.descendants([node])) == reach[node]
    assert acyclic == 543  # the number of labelled acyclic graphs on four nodes


def _reachable(edges: set[tuple[str, str]], names: str) -> dict[str, set[str]]:
    reach = {name: {b for a, b in edges if a == name} for name in names}
    for middle, start in itertools.product(names, names):
        if middle in reach[start]:
            reach[start] |= reach[middle]
    return reach


def test_a_long_chain_is_no_problem() -> None:
    parents = {f"n{i + 1}": (f"n{i}",) for i in range(3000)}
    graph = Graph.from_parents(dict(reversed(parents.items())))
    assert graph.descendants(["n0"]) == tuple(f"n{i}" for i in range(1, 3001))


def test_order_does_not_depend_on_hashing() -> None:
    nodes = [f"node{number}" for number in range(40)]
    assert Graph.from_parents({"child": tuple(nodes)}).names == (*nodes, "child")


@pytest.mark.parametrize(
    ("parents", "error", "message"),
    [
        ({"A": ("A",)}, CycleError, "cycle: A → A. Nothing can be its own cause"),
        ({"B": ("A",), "A": ("B",)}, CycleError, "cycle: A → B → A."),
        (
            {"Root": (), "C": ("B", "Root"), "B": ("A",), "A": ("C",)},
            CycleError,
            "cycle: B → C → A → B.",
        ),
        ({"Y": ("X", "1"), "X": ("Y",), "2": ("Y",)}, CycleError, "cycle: X → Y → X."),
        ({"S": ("G", "A", "G")}, WorldviewError, "for 'S' names its parent 'G' more than once."),
        ({"Salary": ("Gender", 3)}, WorldviewError, "'Salary' has a parent of type int"),
        ({7: ("Gender",)}, WorldviewError, "an equation for 7, which is not text"),
        ({"Salary": "Gender"}, WorldviewError, "Give a tuple of column names: ('Gender',)"),
    ],
)
def test_what_is_no_graph(parents: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        Graph.from_parents(parents)


def test_every_path_is_found_once_and_none_through_what_is_held() -> None:
    graph = Graph.from_parents({"B": ("A",), "C": ("A", "B"), "D": ("C", "B"), "E": ("X",)})
    found = list(graph.paths(["A"], "D"))
    assert sorted(found) == [("A", "B", "C", "D"), ("A", "B", "D"), ("A", "C", "D")]
    assert list(graph.paths(["A"], "D", held=["B"])) == [("A", "C", "D")]
    assert list(graph.paths(["A"], "E")) == []
    assert graph.descendants(["A", "C"]) == ("B", "D")
    assert graph.descendants(["A"], held=["C"]) == ("B", "D")
    assert graph.descendants(["nobody"]) == ()


# --- implied independences ------------------------------------------------------------------------


NODES = ("a", "b", "c", "d")
PAIRS = tuple(combinations(NODES, 2))

# the stubs do not know it
is_d_separator: Any = getattr(nx, "is_d_separator")  # noqa: B009


def _graphs() -> Iterator[Mapping[str, tuple[str, ...]]]:
    """Yield all graphs on four nodes: arrows go from earlier to later letters."""
    for chosen in range(2 ** len(PAIRS)):
        arrows = [pair for place, pair in enumerate(PAIRS) if chosen >> place & 1]
        yield {node: tuple(cause for cause, child in arrows if child == node) for node in NODES}


def _subsets(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, size) for size in range(len(names) + 1))


def _networkx_graph(
    parents: Mapping[str, tuple[str, ...]], hidden: Mapping[str, tuple[str, ...]]
) -> Any:
    arrows = nx.DiGraph()
    arrows.add_nodes_from(parents)
    arrows.add_edges_from((cause, child) for child in parents for cause in parents[child])
    arrows.add_edges_from((f"U {name}", child) for name in hidden for child in hidden[name])
    return arrows


def _separable(arrows: Any, first: str, second: str) -> bool:
    others = tuple(node for node in NODES if node not in {first, second})
    return any(is_d_separator(arrows, {first}, {second}, set(given)) for given in _subsets(others))


def _check(parents: Mapping[str, tuple[str, ...]], hidden: Mapping[str, tuple[str, ...]]) -> None:
    arrows = _networkx_graph(parents, hidden)
    found = implied_independences(Graph.from_parents(parents), hidden=hidden)
    for statement in found:
        given = set(statement.given)
        assert is_d_separator(arrows, {statement.first}, {statement.second}, given), statement
    stated = sorted(tuple(sorted((one.first, one.second))) for one in found)
    assert stated == [pair for pair in PAIRS if _separable(arrows, *pair)]


def test_every_graph_of_four_nodes() -> None:
    """Each statement holds, each pair that anything separates has one, and only these have."""
    for parents in _graphs():
        _check(parents, {})


@pytest.mark.slow
def test_every_graph_with_one_hidden_cause() -> None:
    driven = [names for names in _subsets(NODES) if len(names) >= 2]
    for parents in _graphs():
        for names in driven:
            _check(parents, {"talent": names})


@pytest.mark.parametrize(
    "hidden",
    [
        {"one": ("a", "b"), "two": ("c", "d")},
        {"one": ("a", "c"), "two": ("b", "d")},
        {"one": ("a", "b"), "two": ("b", "c")},
        {"one": ("a", "b", "c"), "two": ("c", "d")},
    ],
)
def test_every_graph_with_two_hidden_causes(hidden: Mapping[str, tuple[str, ...]]) -> None:
    for parents in _graphs():
        _check(parents, hidden)


def test_given_are_the_parents_of_the_later_one() -> None:
    """Where nothing is hidden, whatever the order in which equations were written."""
    for parents in _graphs():
        for declared in (parents, {node: parents[node] for node in reversed(NODES)}):
            for statement in implied_independences(Graph.from_parents(declared)):
                assert set(statement.given) == set(parents[statement.second])


def test_a_chain_by_hand() -> None:
    chain_of_three = Graph.from_parents({"b": ("a",), "c": ("b",)})
    assert implied_independences(chain_of_three) == (
        Independence(first="a", second="c", given=("b",)),
    )


def test_a_root_that_is_mentioned_late_is_held_against_what_equations_leave_over() -> None:
    """Given nothing, the pair would be tested with the effect of `a` in the way."""
    graph = Graph.from_parents({"x": ("a",), "y": ("late",)})
    assert graph.names.index("late") > graph.names.index("x")
    assert Independence(first="late", second="x", given=("a",)) in implied_independences(graph)


def test_a_hidden_cause_may_be_called_like_an_attribute() -> None:
    graph = Graph.from_parents({"x": ("a",), "y": ("a",)})
    assert implied_independences(graph, hidden={"a": ("x", "y")}) == ()


def test_what_follows_from_a_driven_attribute_is_separated_by_it() -> None:
    """x <- U -> y -> z: the parents of x do not separate x and z, but y does."""
    graph = Graph.from_parents({"z": ("y",), "x": ("a",), "y": ("a",)})
    found = implied_independences(graph, hidden={"U": ("x", "y")})
    assert {(one.first, one.second): one.given for one in found} == {
        ("a", "z"): ("y",),
        ("z", "x"): ("y",),
    }
