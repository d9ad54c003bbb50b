"""How well an audit's comparisons are supported: its support table, and the balance of a case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.auditing.group_comparison import compare_groups
from mutandis.errors import PlanError
from mutandis.evidence.methods import METHODS, Center
from mutandis.evidence.sentences import explain_insufficient
from mutandis.evidence.support import Support
from mutandis.evidence.support_measures import balance_of, measure_reach, outside_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.auditing.run import AuditResult
    from mutandis.evidence.case import GroupMembers
    from mutandis.evidence.methods import Method
    from mutandis.evidence.support import Balance

__all__ = ["balance_case", "measure_support"]


def measure_support(result: AuditResult, method: Method, k: int) -> Support:
    """Measure how well each complainant's groups support the comparison."""
    grouping, plan = result.grouping, result.plan
    if not method.count_neighbours:
        raise PlanError(
            f"Method {method.name!r} compares no groups, and nobody supports it or fails to. "
            "Ask for one of the other methods."
        )
    if grouping.embedding is None:
        raise PlanError(
            "Support is measured within one pair of groups on one scale. An audit of multiple "
            "discrimination has a pair for each attribute: ask audit.part(attribute). The preset "
            "'eaamo23' has a scale for each world: leave it out."
        )
    index, threads = plan.settings.ks.index(k), plan.settings.threads
    tests = grouping.nearest[method.center.value]
    return Support(
        ids=plan.population.ids[result.situation.complainants],
        control=measure_reach(grouping.nearest["control"], index, threads=threads),
        test=measure_reach(tests, index, threads=threads),
        outside=outside_range(tests, grouping.embedding),
        insufficient=_reasons(result, method, index),
    )


def _reasons(result: AuditResult, method: Method, index: int) -> NDArray[np.object_]:
    settings = result.plan.settings
    compared = compare_groups(result.plan, result.grouping, method, index, depth="evidence")
    centers = int(method.count_centers)
    reasons = np.full(len(compared.insufficient), "", dtype=object)
    for place in np.flatnonzero(compared.insufficient):
        reasons[place] = explain_insufficient(
            int(compared.control.share.size[place]) - centers,
            int(compared.test.share.size[place]) - centers,
            max_distance=settings.max_distance,
            min_group=settings.min_group,
        )
    return reasons


def balance_case(result: AuditResult, row: int, method: str, groups: GroupMembers) -> Balance:
    """Compare one complainant's search centers with the people around them."""
    plan, counterfactual = result.plan, result.situation.counterfactual
    world = plan.population
    if METHODS[method].center is Center.COUNTERFACTUAL and counterfactual is not None:
        world = counterfactual
    return balance_of(
        plan.attributes,
        plan.population,
        groups,
        control_center=(plan.population, row),
        test_center=(world, row),
    )
