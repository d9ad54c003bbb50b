"""Implied independences: held against d-separation by networkx, on every small graph."""

from __future__ import annotations

from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest

from mutandis.scm.check import Independence, implied_independences
from mutandis.scm.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NODES = ("a", "b", "c", "d")
PAIRS = tuple(combinations(NODES, 2))

# the stubs do not know it
is_d_separator: Any = getattr(nx, "is_d_separator")  # noqa: B009


def _graphs() -> Iterator[Mapping[str, tuple[str, ...]]]:
    """Give all graphs on four nodes, up to their names: arrows go from earlier to later letters."""
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
