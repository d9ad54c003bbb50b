"""Multiple discrimination: one intervention per attribute, flagged only if flagged on each."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.protections import apart_from, draw_spaces
from mutandis.auditing.provenance import record
from mutandis.auditing.run import AuditResult, run
from mutandis.errors import PlanError
from mutandis.evidence.findings import combine_findings
from mutandis.evidence.semantics import Grouping, Situation
from mutandis.evidence.spaces import check_group_sizes
from mutandis.search.engine import discard_progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.data.protection import Protection
    from mutandis.evidence.case import Case
    from mutandis.evidence.comparison import Depth
    from mutandis.evidence.findings import Findings
    from mutandis.evidence.groups import Members, Pair
    from mutandis.evidence.methods import Method
    from mutandis.evidence.spaces import Combine
    from mutandis.search.engine import Progress

__all__ = ["MultipleResult", "plan_for", "run_multiple"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipleResult(AuditResult):
    """What an audit of multiple discrimination found.

    There is no one D^CF and no one pair of groups: each of the `parts`, the audits of one
    attribute with those who are protected on all as complainants, has its own.
    """

    def findings(self, method: Method, k: int, *, depth: Depth = "bounds") -> Findings:
        """Put the findings on each attribute together."""
        return combine_findings(
            MappingProxyType(
                {name: part.findings(method, k, depth=depth) for name, part in self.parts.items()}
            ),
            outcome_cf=self._outcome_cf(),
            weakest=self._weakest,
            adjust=self._q_values,
        )

    def count(self, method: Method, k: int) -> dict[str, Any]:
        """Count the cases under one method and one k."""
        return self.findings(method, k, depth="significance").counts()

    def case(
        self,
        id: Any,  # noqa: A002 - the public name
        findings: Iterable[tuple[tuple[str, int], Findings]],
    ) -> Case:
        """Give everything about one complainant, but for her groups: they are the attributes'."""
        names = ", ".join(map(repr, self.parts))

        def members(method: str, k: int) -> Pair[Members]:  # noqa: ARG001
            raise PlanError(
                f"Each attribute has its own groups. Ask for one of {names}: "
                "audit.part(attribute).case(id).groups(method, k=k)."
            )

        # zero-argument super() does not work in a class with slots
        return replace(AuditResult.case(self, id, findings), _members=members)

    def _outcome_cf(self) -> NDArray[Any] | None:
        """Give the outcome that counts for the claim, whichever attribute is intervened on.

        Treated worse on every attribute means: favourable under every intervention. Treated
        better on every attribute means: unfavourable under every one.
        """
        situations = [part.situation for part in self.parts.values()]
        decided = [each.is_negative_cf for each in situations if each.is_negative_cf is not None]
        if not decided:
            return None
        some = np.any if self.plan.settings.direction == "negative" else np.all
        return self.plan.outcome.labels(some(decided, axis=0)[situations[0].complainants])

    def _weakest(self, delta_p: NDArray[np.float64]) -> NDArray[np.intp]:
        towards_zero = delta_p if self.plan.settings.direction == "negative" else -delta_p
        return np.asarray(np.argmin(towards_zero, axis=0), dtype=np.intp)


def plan_for(plan: Plan, protections: Sequence[Protection], combine: Combine | None) -> Plan:
    """Give the same audit about some of its protections, combined in another way."""
    settings = plan.settings
    spaces = draw_spaces(
        protections, plan.population, combine=combine, test_space=settings.test_space
    )
    for strata in spaces:
        check_group_sizes(strata, settings.ks, group_size=settings.group_size)
    return replace(
        plan,
        protection=protections[0],
        further=tuple(protections[1:]),
        combine=combine,
        strata=spaces[0],
        attributes=plan.attributes
        if combine == "multiple"
        else apart_from(plan.attributes, protections),
    )


def run_multiple(plan: Plan, *, progress: Progress = discard_progress) -> MultipleResult:
    """Run the audit of each attribute for those who are protected on all of them."""
    settings = plan.settings
    spaces = draw_spaces(
        plan.protections, plan.population, combine="multiple", test_space=settings.test_space
    )
    parts = {
        each.attribute: run(replace(plan_for(plan, [each], None), strata=strata), progress=progress)
        for each, strata in zip(plan.protections, spaces, strict=True)
    }
    first = next(iter(parts.values()))
    grouping = Grouping(pairs={}, distance_rules={}, backends={})
    provenance = record(plan, grouping, None, with_record=first.with_record)
    computed = {name: part.provenance.computed for name, part in parts.items()}
    return MultipleResult(
        plan=plan,
        situation=_without_counterfactuals(first.situation),
        grouping=grouping,
        clipped={},
        disagreement=first.disagreement,
        draw_counts={},
        provenance=replace(
            provenance,
            computed={
                **provenance.computed,
                "couplings": dict(ChainMap(*(each["couplings"] for each in computed.values()))),
                "parts": computed,
            },
        ),
        parts=MappingProxyType(parts),
        with_record=first.with_record,
    )


def _without_counterfactuals(situation: Situation) -> Situation:
    return replace(situation, counterfactual=None, is_negative_cf=None)
