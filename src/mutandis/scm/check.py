"""The check of a worldview: fit, residuals, implied independences, extrapolation.

What is tested, how to read it and what it cannot see is described in docs/diagnostics.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories, Numbers
from mutandis.errors import PlanError
from mutandis.numeric.order import canonical_order
from mutandis.scm.counterfactual import act, require_columns, take_rows
from mutandis.scm.dependence import holm
from mutandis.scm.diagnosis import Diagnosis, EquationCheck, Finding
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
    from mutandis.scm.noise import Leftover
    from mutandis.scm.worldview import FittedWorldview, Worldview


# of a larger table, the tests use as many rows, evenly
_MOST_ROWS = 250_000
# rows whose counterfactuals are computed together
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
    # an attribute that the worldview does not mention has no causes in it
    alone: dict[str, tuple[str, ...]] = {n: () for n in attributes if n not in worldview.names}
    graph = Graph.from_parents({**alone, **worldview.graph.parents})
    explained = tuple(_explain(worldview, fitted, ordered))
    findings = _adjusted(
        [
            *_residual_findings(worldview, explained, ordered, attributes),
            *check_independences(
                implied_independences(graph, hidden=worldview.hidden),
                ordered,
                parents=graph.parents,
                # given a draw of a hidden cause, residuals contain no information on what holds
                # without it
                residuals={
                    each.record.child: each.leftover.vectors
                    for each in explained
                    if each.leftover.vectors and each.record.hidden is None
                },
            ),
        ]
    )
    if do is not None and len(changed := _changed_rows(population, do, order)):
        facts = take_rows(population, changed, population.columns)
        meter = MovementMeter(
            worldview=worldview, fitted=fitted, columns=ordered, do=do, facts=facts
        )
        findings = [
            replace(each, movement=meter.movement_of(each))
            if each.p_adjusted is not None and each.p_adjusted < alpha
            else each
            for each in findings
        ]
    return Diagnosis(
        rows=len(order),
        taken_from=len(population) if len(order) < len(population) else None,
        alpha=alpha,
        equations=tuple(each.record for each in explained),
        findings=tuple(findings),
        protected=attributes,
        roots=graph.roots,
        couplings=MappingProxyType(dict(worldview.couplings)),
        **({} if do is None else _reach(fitted, population, do, everyone)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Explained:
    record: EquationCheck
    leftover: Leftover


def _explain(
    worldview: Worldview, fitted: FittedWorldview, columns: Columns
) -> Iterator[_Explained]:
    """Measure what each equation explains, causes before their effects."""
    noise: dict[str, Any] = {}
    for declared_latent, latent in zip(worldview.latents, fitted.latents, strict=True):
        noise.update(latent.abduct(columns, rng=generator_of(declared_latent.name)))
    driven = {child: name for name, children in worldview.hidden.items() for child in children}
    declared = worldview.all_equations
    for child in (name for name in worldview.names if name in declared):
        equation = fitted.equations[child]
        causes = {name: columns[name] for name in declared[child].parents}
        with naming(child):
            if child not in noise:
                noise[child] = equation.abduct(columns[child], causes, rng=generator_of(child))
            leftover = equation.leftover(columns[child], causes, noise[child])
        record = EquationCheck(
            child=child,
            family=type(declared[child]).__name__,
            parents=tuple(causes),
            measure=leftover.measure,
            fit=leftover.fit,
            hidden=driven.get(child),
        )
        yield _Explained(record=record, leftover=leftover)


def _residual_findings(
    worldview: Worldview,
    explained: Sequence[_Explained],
    columns: Columns,
    attributes: Sequence[str],
) -> Iterator[Finding]:
    """Test all residuals on causes and on the protected attributes."""
    children = {each.record.child for each in explained}
    for each in explained:
        child, parents = each.record.child, each.record.parents
        # what has causes may follow from this very noise: the implied independences take care of it
        further = [name for name in attributes if name in parents or name not in children]
        # what follows from a hidden cause of the child may depend on its noise
        siblings = {name for own in worldview.hidden.values() if child in own for name in own}
        siblings.discard(child)
        yield from check_residuals(
            child,
            each.leftover,
            columns,
            parents=parents,
            attributes=further,
            tied=siblings | set(worldview.graph.descendants(siblings)),
        )


def _adjusted(findings: Sequence[Finding]) -> list[Finding]:
    """Adjust the p-values of all tests that were done, together."""
    adjusted = iter(holm([each.p_value for each in findings if each.p_value is not None]))
    return [
        each if each.p_value is None else replace(each, p_adjusted=next(adjusted))
        for each in findings
    ]


def _changed_rows(
    population: Population, do: Mapping[str, Any], order: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Find the rows that an intervention changes, in the given order."""
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
    """Compute the shares of counterfactuals beyond the facts or cut off at bounds."""
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
