"""Independences that a worldview implies (d-separation), and their tests.

The noises of equations are independent unless a hidden common cause is declared. Hence an attribute
is independent of everything before it in the order of causes, given its parents; all other
independences of the graph follow from that (Verma and Pearl 1990, "Causal networks: semantics and
expressiveness"). Taken apart, it is one statement for each pair without an arrow.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from mutandis.data.columns import Categories
from mutandis.scm.dependence import (
    Conditioning,
    Dependence,
    crossed,
    g_dependence,
    group_codes,
    indicators,
    is_nominal,
    mean_dependence,
    takes_few_values,
)
from mutandis.scm.diagnosis import Finding
from mutandis.scm.graph import arrows_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.scm.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Independence:
    """`first` and `second` are independent given the attributes in `given`."""

    first: str
    second: str
    given: tuple[str, ...] = ()


def implied_independences(
    graph: Graph, *, hidden: Mapping[str, Collection[str]] | None = None
) -> tuple[Independence, ...]:
    """List a basis of the independences that a graph implies, one for each separable pair.

    `hidden` has the attributes that each hidden common cause drives.
    """
    # roots first: the later of a pair then has parents to condition on, if one of them has any
    names = (*graph.roots, *(name for name in graph.names if name not in graph.roots))
    arrows: Any = None
    if hidden:
        arrows = arrows_of(graph.parents)
        # a pair, so that no attribute can have the same name
        arrows.add_edges_from(
            (("hidden", name), child) for name, driven in hidden.items() for child in driven
        )
    basis = []
    # combinations come in an order of causes, so `second` is not a cause of `first`
    for first, second in combinations(names, 2):
        if first in graph.parents[second]:
            continue
        given = _separator(arrows, first, second, graph)
        if given is not None:
            ordered = tuple(sorted(given, key=names.index))
            basis.append(Independence(first=first, second=second, given=ordered))
    return tuple(basis)


def _separator(arrows: Any, first: str, second: str, graph: Graph) -> Collection[str] | None:
    """Find observed attributes that separate a pair: the parents of the later, or others."""
    parents = graph.parents[second]
    if arrows is None:
        return parents
    from networkx.algorithms import d_separation

    separation: Any = d_separation  # which the stubs lack
    if separation.is_d_separator(arrows, {first}, {second}, set(parents)):
        return parents
    observed = set(graph.names) - {first, second}
    found: set[str] | None = separation.find_minimal_d_separator(
        arrows, {first}, {second}, restricted=observed
    )
    return found


def check_independences(
    implied: Iterable[Independence],
    columns: Columns,
    *,
    parents: Mapping[str, Sequence[str]],
    residuals: Mapping[str, Sequence[Floats]],
) -> Iterator[Finding]:
    held: dict[tuple[str, ...], Conditioning] = {}
    for statement in implied:
        first, second, given = statement.first, statement.second, statement.given
        fixed = [columns[name] for name in given]
        if given not in held:
            held[given] = Conditioning.on_columns(fixed, rows=len(columns[first]))
        # given its own causes, an attribute is represented by its residuals
        own = residuals.get(second) if set(given) == set(parents[second]) else None
        result = _dependence(columns[first], columns[second], own, fixed=fixed, given=held[given])
        yield Finding(
            aspect="independence", child=second, on=first, further=given, **asdict(result)
        )


def _dependence(
    first: Column,
    second: Column,
    residuals: Sequence[Floats] | None,
    *,
    fixed: Sequence[Column],
    given: Conditioning,
) -> Dependence:
    """Test by counting if both are nominal, by means otherwise."""
    nominal = is_nominal(first), is_nominal(second)
    by_counting = None
    if all(nominal) and all(map(takes_few_values, fixed)):
        strata = crossed(fixed, rows=len(first))
        by_counting = g_dependence(group_codes(first), group_codes(second), strata)
        if by_counting.p_value is not None or not fixed:
            return by_counting
    if any(nominal):
        test = "robust regression score"
    else:
        test = "robust partial correlation" if fixed else "robust correlation"
    by_means = mean_dependence(
        residuals or _vectors(second), _vectors(first), given=given, test=test
    )
    return by_counting if by_counting and by_means.p_value is None else by_means


def _vectors(column: Column) -> Sequence[Floats]:
    if isinstance(column, Categories) or is_nominal(column):
        return indicators(group_codes(column))
    return [column.values]
