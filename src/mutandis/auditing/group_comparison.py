"""Compare the groups of one method at one k, as the plan says."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from mutandis.evidence.comparison import compare, too_small
from mutandis.evidence.scales import compare_scaled, differences_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.evidence.comparison import Comparison, Depth, Rule
    from mutandis.evidence.groups import Group, Pair
    from mutandis.evidence.intervals import IntervalName
    from mutandis.evidence.methods import Method
    from mutandis.search.share import Share

__all__ = ["compare_groups", "compare_shares"]


def compare_groups(
    plan: Plan, method: Method, groups: Pair[Group], *, depth: Depth = "bounds"
) -> Comparison:
    """Compare both groups of every complainant; p-values or bounds only where asked for."""
    return compare_shares(
        plan,
        groups.control.share,
        groups.test.share,
        # centers alone, which counterfactual fairness compares, have no test
        depth=depth if method.count_neighbours else "evidence",
        insufficient=too_small(groups, method, least=plan.settings.similarity.min_group),
    )


def compare_shares(
    plan: Plan,
    control: Share,
    test: Share,
    *,
    depth: Depth,
    insufficient: NDArray[np.bool_] | None = None,
) -> Comparison:
    """Compare shares, mean scores or ordered outcomes, by the rules of the audit."""
    scale = plan.outcome.scale
    return compare(
        control,
        test,
        _rule_of(plan, depth),
        direction=plan.settings.evidence.direction,
        insufficient=insufficient,
        differences=None if scale is None else partial(differences_of, scale=scale),
    )


def _rule_of(plan: Plan, depth: Depth) -> Rule:
    settings, scale = plan.settings, plan.outcome.scale
    levels: dict[str, Any] = {"tau": settings.tau, "alpha": settings.alpha}
    if scale is not None:
        return partial(compare_scaled, scale=scale, depth=depth, **levels)
    name = cast("IntervalName", settings.interval)
    interval = plan.semantics.interval(name, depth, settings.measure)
    return partial(plan.semantics.compare, interval=interval, measure=settings.measure, **levels)
