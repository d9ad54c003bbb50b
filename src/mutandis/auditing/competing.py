"""Competing worldviews: the same audit under each, and whom they agree on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.checks import check_worldview
from mutandis.auditing.run import AuditResult, run
from mutandis.data.population import Population
from mutandis.errors import PlanError
from mutandis.evidence.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.causal import Worldview
    from mutandis.evidence.findings import Findings

__all__ = ["CompetingWorldviews", "run_competing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompetingWorldviews:
    """One audit under several worldviews.

    Parameters
    ----------
    method, k
        Where they are compared.
    results
        The whole audit under each worldview, by name.
    findings
        The findings that are compared, by name: the same complainants in the same order.
    """

    method: str
    k: int
    results: Mapping[str, AuditResult]
    findings: Mapping[str, Findings]

    @property
    def found_under(self) -> NDArray[np.int64]:
        """Under how many worldviews there is evidence for each complainant."""
        evidence = [found.comparison.evidence for found in self.findings.values()]
        return np.asarray(np.sum(evidence, axis=0, dtype=np.int64))

    def agreement(self) -> NDArray[np.object_]:
        """Say for each complainant whether "all", "some" or "none" of the worldviews find her."""
        found = self.found_under
        agreement = np.full(len(found), "some", dtype=object)
        agreement[found == 0] = "none"
        agreement[found == len(self.findings)] = "all"
        return agreement

    def columns(self) -> dict[str, NDArray[Any]]:
        """Compute a table with one row per complainant: her verdict under each worldview."""
        first = next(iter(self.findings.values()))
        return {
            "id": first.ids,
            "outcome": first.outcome,
            **{f"verdict_{name}": found.verdicts() for name, found in self.findings.items()},
            **{
                f"delta_p_{name}": found.comparison.delta_p for name, found in self.findings.items()
            },
            "found_under": self.found_under,
            "agreement": self.agreement(),
        }

    def summary(self) -> list[dict[str, Any]]:
        """Count, for each worldview, its cases, and how many of them the others find too."""
        found = self.found_under
        everyone = found == len(self.findings)
        rows = []
        for name, findings in self.findings.items():
            evidence = findings.comparison.evidence
            rows.append(
                {
                    "worldview": name,
                    "complainants": len(findings),
                    "cases": int(evidence.sum()),
                    "found_by_all": int((evidence & everyone).sum()),
                    "found_by_some": int((evidence & ~everyone & (found > 1)).sum()),
                    "found_by_it_alone": int((evidence & (found == 1)).sum()),
                    "significant": int(findings.comparison.significant.sum()),
                }
            )
        return rows


def run_competing(
    plan: Plan,
    worldviews: Mapping[str, Worldview],
    *,
    method: str | None = None,
    k: int | None = None,
) -> CompetingWorldviews:
    """Run the plan under each worldview and compare the verdicts at one method and k."""
    if len(worldviews) < 2:
        raise PlanError(
            f"{len(worldviews)} worldview cannot compete. Give at least two, by name: "
            "{'bank': …, 'regulator': …}."
        )
    method, k = _choose(plan, method, k)
    results = {name: run(_under(plan, worldview)) for name, worldview in worldviews.items()}
    return CompetingWorldviews(
        method=method,
        k=k,
        results=MappingProxyType(results),
        findings=MappingProxyType(
            {name: result.findings(METHODS[method], k) for name, result in results.items()}
        ),
    )


def _choose(plan: Plan, method: str | None, k: int | None) -> tuple[str, int]:
    method = plan.settings.primary[0] if method is None else method
    k = plan.settings.primary[1] if k is None else k
    names = [each.name for each in plan.methods]
    if method not in names or k not in plan.settings.ks:
        raise PlanError(
            f"The plan does not run method {method!r} at k={k}. "
            f"Methods: {', '.join(names)}; ks: {list(plan.settings.ks)}."
        )
    return method, k


def _under(plan: Plan, worldview: Worldview) -> Plan:
    """Give the plan with another worldview, which may look at columns that were not read so far."""
    if plan.worldview is None:
        raise PlanError(
            "The plan has no worldview to exchange: it was made with counterfactuals=, or without "
            "either. Make it with worldview=."
        )
    check_worldview(worldview, plan.protection, outcome=plan.outcome.column)
    known = plan.population.columns
    more = [name for name in worldview.names if name not in known]
    if not more:
        return replace(plan, worldview=worldview)
    read = Population.from_frame(plan.population.source, columns=more)
    population = replace(plan.population, columns=MappingProxyType({**known, **dict(read.columns)}))
    return replace(plan, worldview=worldview, population=population)
