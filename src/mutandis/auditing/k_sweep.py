"""How the findings depend on k: any list of group sizes from one search."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mutandis.auditing.group_comparison import compare_groups
from mutandis.auditing.plan import read_ks
from mutandis.errors import MutandisWarning, PlanError
from mutandis.evidence.spaces import check_group_sizes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mutandis.auditing.run import AuditResult
    from mutandis.evidence.comparison import Comparison

__all__ = ["sweep_ks"]


def sweep_ks(result: AuditResult, ks: Iterable[int]) -> list[dict[str, Any]]:
    """Count cases and average Δp for every method and every k, smallest first.

    The counterfactuals and the decisions on them are those of the audit: nothing is fitted and
    nobody is asked again. Evidence alone is decided; intervals and tests are left to audits.
    """
    plan, sizes = result.plan, read_ks(ks)
    if not result.grouping.pairs:
        raise PlanError(
            "An audit of multiple discrimination has a pair of groups for each attribute. Sweep "
            "one of them: audit.part(attribute).k_sweep(ks)."
        )
    check_group_sizes(plan.strata, sizes, group_size=plan.settings.group_size)
    with warnings.catch_warnings():
        # the audit itself has said it already
        warnings.simplefilter("ignore", MutandisWarning)
        grouping = plan.semantics.group(replace(result.situation, ks=sizes), plan.methods)
    return [
        {
            "method": method.name,
            "k": k,
            **_counts(compare_groups(plan, method, grouping.at(method, index), depth="evidence")),
        }
        for method in plan.methods
        for index, k in enumerate(sizes)
    ]


def _counts(comparison: Comparison) -> dict[str, Any]:
    cases = int(comparison.evidence.sum())
    delta_p = comparison.delta_p[~comparison.insufficient]
    return {
        "cases": cases,
        "share": cases / len(comparison.evidence),
        "mean_delta_p": float(delta_p.mean()) if len(delta_p) else float("nan"),
    }
