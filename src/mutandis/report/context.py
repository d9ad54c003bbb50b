"""What documents are made of: an audit, its findings, and the words for who is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.evidence.methods import CST_MATCHED
from mutandis.report.formatting import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.data.labels import Labels
    from mutandis.data.population import Population
    from mutandis.data.protection import Protection
    from mutandis.evidence.findings import Findings
    from mutandis.evidence.methods import Method

__all__ = ["ReportContext", "compared", "rows_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContext:
    """An audit with its findings, and the words for who is compared with whom."""

    audit: Audit

    def findings(self, method: str, k: int) -> Findings:
        return self.audit.evaluate(method, k)

    @property
    def plan(self) -> Plan:
        return self.audit.plan

    @property
    def labels(self) -> Labels:
        return self.plan.labels

    @property
    def methods(self) -> tuple[Method, ...]:
        return self.plan.methods

    @property
    def primary(self) -> tuple[Method, int]:
        name, k = self.plan.settings.primary
        return next(method for method in self.methods if method.name == name), k

    @property
    def headline(self) -> Findings:
        return self.findings(*self.plan.settings.primary)

    @property
    def matched(self) -> Findings | None:
        """The matched comparison at the headline's k, which knows everyone's own case."""
        k = self.plan.settings.primary[1]
        return self.findings(CST_MATCHED.name, k) if CST_MATCHED in self.methods else None

    @property
    def own(self) -> NDArray[np.bool_] | None:
        """Who has a case of her own; None where people were not matched."""
        return None if self.matched is None else self.matched.has_own_case

    @property
    def parts(self) -> Mapping[str, Audit]:
        """The audits with groups of their own: one by attribute, or just this one, unnamed."""
        return self.audit.by_ground

    @property
    def grounds(self) -> str:
        """Name the protected attributes, in quotation marks."""
        return listed(f"“{self.labels.column(each.attribute)}”" for each in self.plan.protections)

    @property
    def where(self) -> str:
        """Say what the headline is about: "CST (w/o) with k = 30"."""
        method, k = self.primary
        return f"{method.title} with k = {k}" if method.count_neighbours else method.title

    @property
    def complainants(self) -> str:
        """Say who complains, by their protected values: "Gender = 1"."""
        return " and ".join(_protected(each) for each in self.plan.protections)

    @property
    def reference(self) -> str:
        """Say what status the counterfactual takes: "Gender = 0"."""
        # multiple discrimination intervenes on each ground by itself
        together = " or " if self.plan.combine == "multiple" else " and "
        return together.join(
            f"{each.attribute} = {each.reference}" for each in self.plan.protections
        )

    @property
    def others(self) -> str:
        """Say with whom complainants are compared."""
        if self.plan.settings.similarity.test_space == "complement":
            return f"everybody but those with {self.complainants}"
        return f"people with {self.reference}"

    @property
    def refused(self) -> str:
        """Say what a refusal is here."""
        outcome = self.plan.outcome
        said = outcome.said(self.labels, outcome.negative)
        return f"{self.labels.column(outcome.column)} = {said}"

    @property
    def worse(self) -> bool:
        """Whether worse treatment is looked for, not better."""
        return self.plan.settings.evidence.direction == "negative"

    @property
    def source_of_counterfactuals(self) -> str:
        """Say where counterfactuals come from; empty if there are none."""
        if self.plan.worldview is not None:
            return "the worldview"
        return "" if self.plan.counterfactuals is None else "the counterfactuals supplied"

    @property
    def decided_worlds(self) -> list[tuple[str, NDArray[Any]]]:
        """The counterfactual worlds that were decided on: the status there, and who is refused.

        Where counterfactuals are open, that is a share of draws.
        """
        references = {
            each.attribute: f"{each.attribute} = {each.reference}" for each in self.plan.protections
        }
        return [
            (references.get(part, self.reference), refusal)
            for part, audit in self.parts.items()
            if (refusal := audit.situation.refusal_cf) is not None
        ]

    def by_part(self, part: str) -> str:
        """Name the attribute that a part intervenes on, in brackets; empty where there is one."""
        return f" (do {part})" if part else ""


def _protected(protection: Protection) -> str:
    if not protection.values:
        return f"{protection.attribute} other than {protection.reference}"
    return f"{protection.attribute} = {listed(protection.values, last='or')}"


def compared(found: Findings) -> NDArray[np.bool_]:
    """Mark the complainants who could be compared."""
    return ~found.comparison.insufficient


def rows_of(population: Population, ids: NDArray[Any]) -> NDArray[np.intp]:
    """Find the rows of people by their ids."""
    rows = np.flatnonzero(np.isin(population.ids, ids))
    found = dict(zip(population.ids[rows].tolist(), rows.tolist(), strict=True))
    return np.array([found[each] for each in ids.tolist()], dtype=np.intp)
