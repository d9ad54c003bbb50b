"""The check of a worldview: fit, residuals, implied independences, extrapolation.

What is tested, how to read it and what it cannot see is said in docs/diagnostics.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mutandis.data.columns import Categories, Numbers
from mutandis.errors import PlanError
from mutandis.numeric.order import canonical_order
from mutandis.scm.counterfactual import act, require_columns, take_rows
from mutandis.scm.dependence import holm
from mutandis.scm.diagnosis import (
    Diagnosis,
    EquationCheck,
    IndependenceCheck,
    ResidualCheck,
)
from mutandis.scm.family import naming
from mutandis.scm.graph import Graph
from mutandis.scm.independences import check_independences, implied_independences
from mutandis.scm.movement import MovementMeter, generator_of
from mutandis.scm.residuals import check_residuals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column, Columns
    from mutandis.data.population import Population
    from mutandis.scm.leftover import Leftover
    from mutandis.scm.worldview import FittedWorldview, Worldview


# Tests on so many rows see what matters; of a larger table they look at as many, evenly.
_MOST_ROWS = 250_000
# rows whose counterfactuals are looked at together
_BLOCK = 1 << 18


def check_worldview(
    worldview: Worldview,
    population: Population,
    *,
    protected: str | None = None,
    do: Mapping[str, Any] | None = None,
    alpha: float = 0.01,
) -> Diagnosis:
    if not 0.0 < alpha < 0.5:
        raise PlanError(f"alpha={alpha} is outside (0, 0.5). Give the level of the tests: 0.01.")
    if protected is not None:
        worldview.check_root(protected)
    attributes = tuple(dict.fromkeys([*([protected] if protected else []), *(do or {})]))
    names = tuple(dict.fromkeys([*worldview.names, *attributes]))
    require_columns(population, names)
    fitted = worldview.fit(population)
    columns = {name: population.columns[name] for name in names}
    # equal rows are interchangeable, so nothing below depends on how the table was sorted
    everyone = canonical_order(columns)
    order = everyone[:: -(-len(everyone) // _MOST_ROWS) or 1]
    ordered = {name: column.take(order) for name, column in columns.items()}
    # an attribute that the worldview does not know is one that it says to be without causes
    alone: dict[str, tuple[str, ...]] = {n: () for n in attributes if n not in worldview.names}
    graph = Graph.from_parents({**alone, **worldview.graph.parents})
    leftovers = dict(_leftovers(worldview, fitted, ordered))
    residuals = [
        check
        for child, (equation, left) in leftovers.items()
        for check in check_residuals(
            child,
            left,
            ordered,
            parents=equation.parents,
            # what has causes may follow from this very noise: the implied independences know
            attributes=[n for n in attributes if n in equation.parents or n not in leftovers],
            tied=_tied(child, worldview),
        )
    ]
    independences = check_independences(
        implied_independences(
            graph, hidden={latent.name: tuple(latent.equations) for latent in worldview.latents}
        ),
        ordered,
        parents=graph.parents,
        # given a draw of a hidden cause, residuals say nothing about what holds without it
        residuals={
            child: left.vectors
            for child, (equation, left) in leftovers.items()
            if left.vectors and equation.hidden is None
        },
    )
    checks = _adjusted([*residuals, *independences])
    some = None if do is None else _changed_rows(population, do, order)
    if do is not None and some is not None and len(some):
        facts = take_rows(population, some, population.columns)
        meter = MovementMeter(
            worldview=worldview, fitted=fitted, columns=ordered, do=do, facts=facts
        )
        checks = [
            replace(check, movement=meter.movement_of(check))
            if check.p_adjusted is not None and check.p_adjusted < alpha
            else check
            for check in checks
        ]
    return Diagnosis(
        rows=len(order),
        taken_from=len(population) if len(order) < len(population) else None,
        alpha=alpha,
        equations=tuple(equation for equation, _ in leftovers.values()),
        residuals=tuple(check for check in checks if isinstance(check, ResidualCheck)),
        independences=tuple(check for check in checks if isinstance(check, IndependenceCheck)),
        protected=attributes,
        roots=graph.roots,
        couplings=MappingProxyType(dict(worldview.couplings)),
        **({} if do is None else _reach(fitted, population, do, everyone)),
    )


_Explained: TypeAlias = "tuple[EquationCheck, Leftover]"
"""How much an equation explains, and what it leaves over."""


def _leftovers(
    worldview: Worldview, fitted: FittedWorldview, columns: Columns
) -> Iterator[tuple[str, _Explained]]:
    """Find what each equation explains and what it leaves over, causes before their effects."""
    declared = dict(worldview.equations)
    noise: dict[str, Any] = {}
    hidden: dict[str, str] = {}
    for before, latent in zip(worldview.latents, fitted.latents, strict=True):
        declared.update(before.equations)
        hidden.update(dict.fromkeys(before.equations, before.name))
        noise.update(latent.abduct(columns, rng=generator_of(before.name)))
    for child in worldview.names:
        if child not in declared:
            continue
        equation = fitted.equations[child]
        causes = {name: columns[name] for name in declared[child].parents}
        with naming(child):
            if child not in noise:
                noise[child] = equation.abduct(columns[child], causes, rng=generator_of(child))
            left = equation.leftover(columns[child], causes, noise[child])
        check = EquationCheck(
            child=child,
            family=type(declared[child]).__name__,
            parents=tuple(causes),
            measure=left.measure,
            fit=left.fit,
            hidden=hidden.get(child),
        )
        yield child, (check, left)


def _tied(child: str, worldview: Worldview) -> frozenset[str]:
    """Find what follows from a hidden cause of the child, and so may depend on its noise."""
    driven = {
        name
        for latent in worldview.latents
        if child in latent.equations
        for name in latent.equations
        if name != child
    }
    return frozenset(driven | set(worldview.graph.descendants(driven)))


_Check = ResidualCheck | IndependenceCheck


def _adjusted(checks: Sequence[_Check]) -> list[_Check]:
    """Adjust the p-values of all tests that were done, together."""
    adjusted = iter(holm([check.p_value for check in checks if check.p_value is not None]))
    return [
        check if check.p_value is None else replace(check, p_adjusted=next(adjusted))
        for check in checks
    ]


def _changed_rows(
    population: Population, do: Mapping[str, Any], order: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Find the rows that an intervention changes, in the order that is given."""
    act(population, do)  # refuses what is not an intervention
    changed = np.zeros(len(population), dtype=np.bool_)
    for name, value in do.items():
        column = population.columns[name]
        changed |= (
            column.codes != column.code_of(value)
            if isinstance(column, Categories)
            else column.values != value
        )
    return order[changed[order]]


def _reach(
    fitted: FittedWorldview,
    population: Population,
    do: Mapping[str, Any],
    order: NDArray[np.intp],
) -> dict[str, Any]:
    """Find how far the counterfactuals of those who are changed reach beyond the facts."""
    rows = _changed_rows(population, do, order)
    clipped: Counter[str] = Counter()
    outside: Counter[str] = Counter()
    for start in range(0, len(rows), _BLOCK):
        facts = take_rows(population, rows[start : start + _BLOCK], population.columns)
        made = fitted.counterfactuals_once(facts, do=do)
        for name in made.moved:
            beyond = _outside(made.population.columns[name], population.columns[name])
            clipped[name] += made.clipped[name]
            outside[name] += int(beyond.sum())

    def shares(counts: Mapping[str, int]) -> Mapping[str, float]:
        return MappingProxyType({name: count / len(rows) for name, count in counts.items()})

    found = {"clipped": shares(clipped), "outside": shares(outside)} if len(rows) else {}
    return {"changed": len(rows), **found}


def _outside(counterfactual: Column, factual: Column) -> NDArray[np.bool_]:
    """Mark numbers beyond all facts, and names that no fact has."""
    if isinstance(counterfactual, Numbers) and isinstance(factual, Numbers):
        below = counterfactual.values < factual.values.min()
        return np.asarray(below | (counterfactual.values > factual.values.max()))
    if isinstance(counterfactual, Categories) and isinstance(factual, Categories):
        facts = dict.fromkeys(factual.occurring(), False)
        return counterfactual.look_up(facts, otherwise=True)
    return np.ones(len(counterfactual), dtype=np.bool_)
