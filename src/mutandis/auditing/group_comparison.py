"""Compare the groups of one method at one k, as the plan says."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mutandis.evidence.comparison import compare, too_small

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.evidence.comparison import Comparison, Depth
    from mutandis.evidence.groups import Group, Pair
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
    """Compare shares by the rules of the audit."""
    settings, semantics = plan.settings, plan.semantics
    rule = partial(
        semantics.compare,
        tau=settings.tau,
        alpha=settings.alpha,
        interval=semantics.interval(settings.interval, depth, settings.measure),
        measure=settings.measure,
    )
    return compare(
        control,
        test,
        rule,
        direction=settings.evidence.direction,
        insufficient=insufficient,
    )
