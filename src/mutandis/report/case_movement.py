"""How the complainant's attributes moved, and through which parents."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Numbers, plain_value
from mutandis.report.case_model import Cause, Movement
from mutandis.scm import Linear, Worldview

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mutandis.auditing.audit import Audit
    from mutandis.data.columns import Column
    from mutandis.data.population import Population
    from mutandis.scm.additive import Decomposition
    from mutandis.scm.counterfactual import FittedWorldview

__all__ = ["movements_of", "value_at"]

# more ways than these are counted, not written out
_PATHS = 8
_OTHERS = "and others"
# what rounding in float64 leaves of a sum, as a part of the numbers in it
_NOTHING = 1e-9


def value_at(population: Population, name: str, row: int) -> Any:
    """Give one cell as a plain value."""
    column = population.columns[name]
    if isinstance(column, Numbers):
        return float(column.values[row])
    return plain_value(column.levels[column.codes[row]])


def movements_of(audit: Audit, row: int) -> tuple[Movement, ...]:
    """Say how each attribute moved: those compared, and those that pass the change on."""
    after = audit.ground.world.point
    if after is None:
        return ()
    mover = _Mover(audit, after, row)
    return tuple(mover.movement(name) for name in mover.names)


class _Mover:
    """One complainant in both worlds."""

    def __init__(self, audit: Audit, after: Population, row: int) -> None:
        plan = audit.plan
        self._audit = audit
        self._before, self._after, self._row = plan.population, after, row
        self._do = plan.do
        self._worldview = plan.worldview
        self._moved: Sequence[str] = audit.provenance.computed["moved"]
        self._held: Sequence[str] = audit.provenance.computed["held"]
        self._couplings: Mapping[str, str] = audit.provenance.computed["couplings"]
        self._compared = [attribute.name for attribute in plan.attributes]
        self._fitted = _fit_linear(audit, self._moved)

    @property
    def names(self) -> list[str]:
        """The attributes to describe, causes before their effects."""
        passing = [*self._moved, *self._held]
        known = self._worldview.names if self._worldview is not None else ()
        wanted = dict.fromkeys([*self._compared, *passing])
        order = {name: place for place, name in enumerate(known)}
        return sorted(wanted, key=lambda name: order.get(name, len(order)))

    def movement(self, name: str) -> Movement:
        factual = value_at(self._before, name, self._row)
        counterfactual = value_at(self._after, name, self._row)
        numbers = isinstance(factual, float) and isinstance(counterfactual, float)
        change = counterfactual - factual if numbers else None
        how = self._how(name)
        shared: dict[str, Any] = {
            "attribute": name,
            "compared": name in self._compared,
            "factual": factual,
            "counterfactual": counterfactual,
            "change": change,
            "coupling": self._couplings.get(name, ""),
            "drawn": self._audit.drawn_values(self._row).get(name, ()),
        }
        if how != "total":
            return Movement(how=how, **shared)
        parts = self._decomposed(name)
        ways = self._ways(name)
        shared |= {"ways": ways, "paths": tuple(" → ".join(way) for way in ways)}
        if parts is None:
            return Movement(how="total", causes=self._changed(name, change), **shared)
        return Movement(
            how=parts.how,
            causes=tuple(self._cause(*each) for each in parts.contributions.items()),
            remainder=_remainder(parts, factual, counterfactual),
            **shared,
        )

    def _how(self, name: str) -> Any:
        if name in self._do:
            return "intervened"
        if self._worldview is None:
            return "given"
        if name in self._held:
            return "held"
        return "total" if name in self._moved else "unaffected"

    def _decomposed(self, name: str) -> Decomposition | None:
        if self._fitted is None or name not in self._fitted.equations:
            return None
        parents = self._fitted.graph.parents[name]
        fitted: Any = self._fitted.equations[name]
        decomposition: Decomposition = fitted.decompose(
            self._causes(self._before, parents), self._causes(self._after, parents)
        )
        return decomposition

    def _causes(self, world: Population, parents: Sequence[str]) -> dict[str, Column]:
        return {name: world.columns[name].take(np.array([self._row])) for name in parents}

    def _changed(self, name: str, change: float | None) -> tuple[Cause, ...]:
        """Name the causes that changed; one alone has done all of it."""
        if self._worldview is None:
            return ()
        both = [self._cause((parent,), None) for parent in self._worldview.graph.parents[name]]
        changed = [each for each in both if each.before != each.after]
        if len(changed) == 1:
            return (self._cause(changed[0].parents, change),)
        return tuple(changed)

    def _cause(self, parents: tuple[str, ...], amount: float | None) -> Cause:
        alone = len(parents) == 1
        return Cause(
            parents=parents,
            before=value_at(self._before, parents[0], self._row) if alone else None,
            after=value_at(self._after, parents[0], self._row) if alone else None,
            amount=amount,
        )

    def _ways(self, name: str) -> tuple[tuple[str, ...], ...]:
        if self._worldview is None:
            return ()
        ways = self._worldview.graph.paths(self._do, name, held=self._held)
        first = [tuple(way) for way in islice(ways, _PATHS + 1)]
        return (*first[:_PATHS], (_OTHERS,)) if len(first) > _PATHS else tuple(first)


def _remainder(parts: Decomposition, factual: float, counterfactual: float) -> float:
    """Give what rounding, levels and bounds did to the value after its causes had moved it."""
    carried = factual + parts.total if parts.how == "sum" else factual * parts.total
    rest = counterfactual - carried
    size = max(abs(factual), abs(counterfactual), *map(abs, parts.contributions.values()))
    return 0.0 if abs(rest) <= _NOTHING * size else rest


def _fit_linear(audit: Audit, moved: Sequence[str]) -> FittedWorldview | None:
    """Fit once more the equations that can be taken apart: the run keeps their results alone."""
    plan = audit.plan
    if plan.worldview is None:
        return None
    declared = plan.worldview.equations
    wanted = {name: declared[name] for name in moved if _is_linear(declared.get(name))}
    return Worldview(wanted).fit(plan.population) if wanted else None


def _is_linear(equation: object) -> bool:
    return isinstance(equation, Linear)
