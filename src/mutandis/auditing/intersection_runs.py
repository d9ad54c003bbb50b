"""The lattice of several protected attributes: each alone, all ways to combine them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.multiple import plan_for
from mutandis.auditing.run import run
from mutandis.errors import PlanError
from mutandis.evidence.agreement import Agreement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.auditing.run import AuditResult
    from mutandis.data.protection import Protection
    from mutandis.evidence.findings import Findings
    from mutandis.evidence.methods import Method
    from mutandis.evidence.spaces import Combine

__all__ = ["LatticeResult", "Node", "run_lattice"]

# with more, there are too many combinations to reconcile by eye (and most have nobody in them)
_MOST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One audit of the lattice.

    Parameters
    ----------
    attributes
        The protected attributes that it is about.
    combine
        How they are combined; None for one alone.
    """

    attributes: tuple[str, ...]
    combine: Combine | None

    @property
    def kind(self) -> str:
        """Say "single", "multiple" or "intersectional"."""
        return self.combine or "single"

    @property
    def label(self) -> str:
        """Write race, race + sex (multiple) or race × sex (intersectional)."""
        return (" × " if self.combine == "intersectional" else " + ").join(self.attributes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeResult:
    """Every audit of the lattice.

    Parameters
    ----------
    plan
        What they have in common.
    results
        The audit at each node, by label: singles first, then pairs, then all.
    nodes
        What each label stands for.
    """

    plan: Plan
    results: Mapping[str, AuditResult]
    nodes: Mapping[str, Node]

    def findings(self, method: Method, k: int) -> dict[str, Findings]:
        """Give the findings at every node."""
        return {label: result.findings(method, k) for label, result in self.results.items()}

    def reconcile(self, findings: Mapping[str, Findings], *, k: int) -> Agreement:
        """See by which audits each of those is found who are protected on every attribute."""
        everything = self.results[list(self.nodes)[-1]]
        rows = everything.situation.complainants
        found = {label: self._found(label, findings[label], rows) for label in self.nodes}
        return Agreement(
            complainants=self.plan.population.ids[rows],
            found=MappingProxyType(found),
            caption=f"people protected on all attributes with evidence, k = {k}",
            _like=self.plan.population.source,
        )

    def only_intersectional(self, agreement: Agreement) -> NDArray[Any]:
        """Give those whom some intersection finds, and no attribute by itself."""
        masks: dict[str, list[NDArray[np.bool_]]] = {"single": [], "intersectional": []}
        for label, node in self.nodes.items():
            masks.setdefault(node.kind, []).append(agreement.found[label])
        together = np.logical_or.reduce(masks["intersectional"], axis=0)
        alone = np.logical_or.reduce(masks["single"], axis=0)
        return np.asarray(agreement.complainants[together & ~alone])

    def _found(self, label: str, findings: Findings, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Pick the rows out of those who complain at a node; there, all of them do."""
        mine = np.searchsorted(self.results[label].situation.complainants, rows)
        return np.asarray(findings.comparison.evidence[mine], dtype=np.bool_)


def run_lattice(plan: Plan) -> LatticeResult:
    """Run each attribute alone, and every two or more of them in both ways."""
    protections = plan.protections
    if not 2 <= len(protections) <= _MOST:
        raise PlanError(
            f"A lattice takes two or three protections, not {len(protections)}. "
            "Make the plan with a list of them, and combine='multiple'."
        )
    if plan.counterfactuals is not None:
        raise PlanError(
            "The plan was made with counterfactuals=, one table for one intervention. A lattice "
            "has several interventions: make it with worldview=."
        )
    results, nodes = {}, {}
    for node, several in _nodes(protections):
        results[node.label] = run(plan_for(plan, several, node.combine))
        nodes[node.label] = node
    return LatticeResult(
        plan=plan, results=MappingProxyType(results), nodes=MappingProxyType(nodes)
    )


def _nodes(protections: Sequence[Protection]) -> list[tuple[Node, tuple[Protection, ...]]]:
    nodes = []
    for size in range(1, len(protections) + 1):
        ways: tuple[Combine | None, ...] = ("multiple", "intersectional") if size > 1 else (None,)
        for several in combinations(protections, size):
            attributes = tuple(each.attribute for each in several)
            nodes += [(Node(attributes=attributes, combine=way), several) for way in ways]
    return nodes
