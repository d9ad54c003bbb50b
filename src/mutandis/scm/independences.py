"""Which attributes a worldview says to be independent, and given which others (d-separation).

The equations' noises are independent of each other unless a hidden common cause says otherwise.
Hence an attribute is independent of everything before it in the order of causes, given its parents;
all else that the graph implies follows from that (Verma and Pearl 1990, "Causal networks: semantics
and expressiveness"). Taken apart, it is one statement for each pair without an arrow.
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
from mutandis.scm.diagnosis import IndependenceCheck
from mutandis.scm.graph import arrows_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.scm.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Independence:
    """Among people who are alike in `given`, `first` says nothing about `second`."""

    first: str
    second: str
    given: tuple[str, ...] = ()


def implied_independences(
    graph: Graph, *, hidden: Mapping[str, Collection[str]] | None = None
) -> tuple[Independence, ...]:
    """List a basis of the independences that a graph implies, one for each separable pair.

    `hidden` has the attributes that each hidden common cause drives.
    """
    # roots first: the later of a pair then has parents to be given, wherever one of them has
    names = (*graph.roots, *(name for name in graph.names if name not in graph.roots))
    place = {name: position for position, name in enumerate(names)}
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
            ordered = tuple(sorted(given, key=place.__getitem__))
            basis.append(Independence(first=first, second=second, given=ordered))
    return tuple(basis)


def _separator(arrows: Any, first: str, second: str, graph: Graph) -> Collection[str] | None:
    """Find observed attributes that separate a pair: the parents of the later, or what else can."""
    parents = graph.parents[second]
    if arrows is None:
        return parents
    from networkx.algorithms import d_separation

    # the stubs do not know these functions
    separation: Any = d_separation
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
) -> Iterator[IndependenceCheck]:
    held: dict[tuple[str, ...], Conditioning] = {}
    for statement in implied:
        first, second, given = statement.first, statement.second, statement.given
        fixed = [columns[name] for name in given]
        if given not in held:
            held[given] = Conditioning.on_columns(fixed, rows=len(columns[first]))
        own = residuals.get(second) if set(given) == set(parents[second]) else None
        result = _dependence(columns[first], columns[second], own, fixed=fixed, given=held[given])
        yield IndependenceCheck(first=first, second=second, given=given, **asdict(result))


def _dependence(
    first: Column,
    second: Column,
    residuals: Sequence[Floats] | None,
    *,
    fixed: Sequence[Column],
    given: Conditioning,
) -> Dependence:
    """Choose the test: by counting if both are nominal, by means otherwise."""
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
    # given its own causes, an attribute is what its equation leaves over
    by_means = mean_dependence(
        residuals or _vectors(second), _vectors(first), given=given, test=test
    )
    return by_counting if by_counting and by_means.p_value is None else by_means


def _vectors(column: Column) -> Sequence[Floats]:
    if isinstance(column, Categories) or is_nominal(column):
        return indicators(group_codes(column))
    return [column.values]
