"""Compare the groups of one method at one k, as the plan says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.evidence.caliper import compare_sufficient, too_small
from mutandis.evidence.comparison import (
    compare_centers,
    compare_distinct,
    compare_in_direction,
)
from mutandis.evidence.interval import Interval
from mutandis.evidence.intervals import INTERVALS, TESTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.evidence.findings import Comparison, Group
    from mutandis.evidence.intervals import IntervalMethod, IntervalName
    from mutandis.evidence.methods import Method
    from mutandis.evidence.semantics import Grouping
    from mutandis.search.share import Share

__all__ = ["Compared", "Depth", "compare_groups"]

Depth = Literal["evidence", "significance", "bounds"]
"""How far a comparison goes: each takes longer than the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Both groups of every complainant, what comparing them gives, and who has too few people."""

    control: Group
    test: Group
    comparison: Comparison
    insufficient: NDArray[np.bool_]


def compare_groups(
    plan: Plan, grouping: Grouping, method: Method, index: int, *, depth: Depth = "bounds"
) -> Compared:
    """Compare a method's groups at the index-th k; p-values or bounds only where asked for."""
    settings = plan.settings
    pair = grouping.pairs[method.name]
    control, test = pair.control.at(index), pair.test.at(index)
    # the default asks for one person, which groups of k always have
    asked = settings.max_distance is not None or settings.min_group > 1
    least = settings.min_group if asked else 0
    insufficient = too_small(control, test, method, least=least)
    rule = _rule(plan, method, depth=depth)

    def directed(first: Group, second: Group) -> Comparison:
        return compare_in_direction(settings.direction, first, second, rule)

    return Compared(
        control=control,
        test=test,
        comparison=compare_sufficient(
            control,
            test,
            partial(compare_distinct, comparing=directed),
            insufficient=insufficient,
        ),
        insufficient=insufficient,
    )


def _rule(plan: Plan, method: Method, *, depth: Depth) -> Callable[[Group, Group], Comparison]:
    """Give the rule by which two groups are compared, looking for Δp > τ."""
    settings = plan.settings
    if not method.count_neighbours:
        return partial(compare_centers, tau=settings.tau)
    return partial(
        plan.semantics.compare,
        tau=settings.tau,
        alpha=settings.alpha,
        interval=_interval(settings.interval, depth=depth),
    )


def _interval(name: IntervalName, *, depth: Depth) -> IntervalMethod:
    if depth == "evidence":
        return _no_interval
    return TESTS[name] if depth == "significance" else INTERVALS[name]


def _no_interval(control: Share, test: Share, **options: float) -> Interval:  # noqa: ARG001
    """Stand in for an interval nobody will look at."""
    return Interval.without_bounds(np.full(len(control.size), np.nan))
