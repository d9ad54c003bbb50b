"""Compare the groups of one method at one k, as the plan says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mutandis.inference import INTERVALS
from mutandis.results.interval import Interval
from mutandis.situation.caliper import compare_sufficient, too_small
from mutandis.situation.compare import compare_centers, compare_in_direction

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.results.findings import Comparison, Group
    from mutandis.results.share import Share
    from mutandis.situation.methods import Method
    from mutandis.situation.semantics import Grouping

__all__ = ["Compared", "compare_groups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Both groups of every complainant, what comparing them gives, and who has too few people."""

    control: Group
    test: Group
    comparison: Comparison
    insufficient: NDArray[np.bool_]


def compare_groups(
    plan: Plan, grouping: Grouping, method: Method, index: int, *, bounds: bool = True
) -> Compared:
    """Compare a method's groups at the index-th k; without bounds, evidence alone is decided."""
    settings = plan.settings
    pair = grouping.pairs[method.name]
    control, test = pair.control.at(index), pair.test.at(index)
    # the default asks for one person, which groups of k always have
    asked = settings.max_distance is not None or settings.min_group > 1
    least = settings.min_group if asked else 0
    insufficient = too_small(control, test, method, least=least)
    rule = _rule(plan, method, bounds=bounds)
    return Compared(
        control=control,
        test=test,
        comparison=compare_sufficient(
            control,
            test,
            lambda first, second: compare_in_direction(settings.direction, first, second, rule),
            insufficient=insufficient,
        ),
        insufficient=insufficient,
    )


def _rule(plan: Plan, method: Method, *, bounds: bool) -> Callable[[Group, Group], Comparison]:
    """Give the rule by which two groups are compared, looking for Δp > τ."""
    settings = plan.settings
    if not method.count_neighbours:
        return partial(compare_centers, tau=settings.tau)
    return partial(
        plan.semantics.compare,
        tau=settings.tau,
        alpha=settings.alpha,
        interval=INTERVALS[settings.interval] if bounds else _no_bounds,
    )


def _no_bounds(control: Share, test: Share, **options: float) -> Interval:  # noqa: ARG001
    """Stand in for an interval nobody will look at: most of an audit's time is spent on them."""
    missing = np.full(len(control.size), np.nan)
    return Interval(
        low=missing,
        high=missing,
        p_value=missing,
        degenerate=np.zeros(len(missing), dtype=np.bool_),
    )
