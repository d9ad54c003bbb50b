"""Compare the groups of one method at one k, as the plan says."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mutandis.evidence.comparison import compare, too_small

if TYPE_CHECKING:
    from mutandis.auditing.plan import Plan
    from mutandis.evidence.comparison import Comparison, Depth
    from mutandis.evidence.groups import Group, Pair
    from mutandis.evidence.methods import Method

__all__ = ["compare_groups"]


def compare_groups(
    plan: Plan, method: Method, groups: Pair[Group], *, depth: Depth = "bounds"
) -> Comparison:
    """Compare both groups of every complainant; p-values or bounds only where asked for."""
    settings, semantics = plan.settings, plan.semantics
    # centers alone, which counterfactual fairness compares, have no test
    name, depth = settings.interval, depth if method.count_neighbours else "evidence"
    rule = partial(
        semantics.compare,
        tau=settings.tau,
        alpha=settings.alpha,
        interval=semantics.interval(name, depth),
    )
    return compare(
        groups.control.share,
        groups.test.share,
        rule,
        direction=settings.evidence.direction,
        insufficient=too_small(groups, method, least=settings.similarity.min_group),
    )
