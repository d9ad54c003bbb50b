"""Compare the groups of one method at one k, as the plan says."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mutandis.evidence.comparison import compare, compare_exactly, too_small
from mutandis.evidence.intervals import no_interval
from mutandis.evidence.scales import compare_scaled, differences_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.engine.tally import Sums
    from mutandis.evidence.comparison import Comparison, Depth, Rule
    from mutandis.evidence.groups import Group, Pair
    from mutandis.evidence.intervals import IntervalName
    from mutandis.evidence.matched_groups import HasEvidence
    from mutandis.evidence.methods import Method

__all__ = ["compare_groups", "compare_shares", "evidence_by"]


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
    control: Sums,
    test: Sums,
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


def evidence_by(plan: Plan) -> HasEvidence:
    """Give what tells from shares who has evidence by the rules of the audit.

    Verdicts and their counts depend on nothing else of those who have none: their p-values are
    one half or more, while α is less, so no adjustment can make more or fewer of others
    significant.
    """

    def has_evidence(control: Sums, test: Sums) -> NDArray[np.bool_]:
        evidence = np.zeros(len(control.places), dtype=np.bool_)
        filled = np.flatnonzero((control.places > 0) & (test.places > 0))
        shares = control.take(filled), test.take(filled)
        evidence[filled] = compare_shares(plan, *shares, depth="evidence").evidence
        return evidence

    return has_evidence


def _rule_of(plan: Plan, depth: Depth) -> Rule:
    settings, scale = plan.settings, plan.outcome.scale
    levels: dict[str, Any] = {"tau": settings.tau, "alpha": settings.alpha}
    if scale is not None:
        return partial(compare_scaled, scale=scale, depth=depth, **levels)
    name = cast("IntervalName", settings.interval)
    measure = settings.measure
    if depth == "evidence":
        interval = no_interval
    else:
        interval = measure.test(name) if depth == "significance" else measure.interval(name)
    return partial(compare_exactly, interval=interval, measure=measure, **levels)
