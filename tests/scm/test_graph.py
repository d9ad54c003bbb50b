"""The causal graph: order, descendants, and arrows that cannot be."""

from __future__ import annotations

import itertools
import random
from typing import Any

import networkx as nx
import pytest

from mutandis.errors import CycleError, WorldviewError
from mutandis.scm.graph import Graph


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


def test_order_does_not_depend_on_hashing() -> None:
    names = [f"node{number}" for number in range(40)]
    graph = Graph.from_parents({"child": tuple(names)})
    assert graph.names == (*names, "child")


def test_descendants_are_in_causal_order_without_the_nodes_themselves() -> None:
    graph = Graph.from_parents({"C": ("B",), "D": ("C",), "B": ("A",), "E": ("F",)})
    assert graph.descendants(["A"]) == ("B", "C", "D")
    assert graph.descendants(["A", "C"]) == ("B", "D")
    assert graph.descendants(["D"]) == ()
    assert graph.descendants(["B", "F"]) == ("C", "D", "E")
    assert graph.descendants(["nobody"]) == ()


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


@pytest.mark.parametrize(
    ("parents", "cycle"),
    [
        ({"A": ("A",)}, "A → A"),
        ({"B": ("A",), "A": ("B",)}, "A → B → A"),
        ({"Root": (), "C": ("B", "Root"), "B": ("A",), "A": ("C",)}, "B → C → A → B"),
    ],
)
def test_a_cycle_is_named(parents: dict[str, tuple[str, ...]], cycle: str) -> None:
    with pytest.raises(CycleError) as caught:
        Graph.from_parents(parents)
    assert str(caught.value) == (
        f"The worldview has a cycle: {cycle}. Nothing can be its own cause, directly or through "
        "others: take one of these arrows out, by removing the parent from the equation it "
        "points to."
    )


def test_only_what_is_in_the_cycle_is_named() -> None:
    with pytest.raises(CycleError, match=r"cycle: X → Y → X\.") as caught:
        Graph.from_parents({"Y": ("X", "Before"), "X": ("Y",), "After": ("Y",)})
    assert "Before" not in str(caught.value)
    assert "After" not in str(caught.value)


def test_a_parent_named_twice() -> None:
    with pytest.raises(WorldviewError) as caught:
        Graph.from_parents({"Salary": ("Gender", "Age", "Gender")})
    assert str(caught.value) == (
        "The equation for 'Salary' names its parent 'Gender' more than once. Name each parent once."
    )


def test_names_must_be_text() -> None:
    wrong: Any = {"Salary": ("Gender", 3)}
    with pytest.raises(WorldviewError, match="'Salary' has a parent of type int"):
        Graph.from_parents(wrong)
    wrong = {7: ("Gender",)}
    with pytest.raises(WorldviewError, match="an equation for 7, which is not text"):
        Graph.from_parents(wrong)
    with pytest.raises(WorldviewError, match=r"Give a tuple of column names: \('Gender',\)"):
        Graph.from_parents({"Salary": "Gender"})


def test_a_long_chain_is_no_problem() -> None:
    parents = {f"n{i + 1}": (f"n{i}",) for i in range(3000)}
    graph = Graph.from_parents(dict(reversed(parents.items())))
    assert graph.descendants(["n0"]) == tuple(f"n{i}" for i in range(1, 3001))
