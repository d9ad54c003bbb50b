"""Compare the groups of one method at one k, by the rule of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.engine.tally import too_small
from mutandis.verdicts.compare import compare

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.engine.matched import HasEvidence
    from mutandis.engine.methods import Method
    from mutandis.engine.tally import Group, Pair, Sums
    from mutandis.outcomes.outcome import Comparison, Depth

__all__ = ["compare_groups", "evidence_by"]


def compare_groups(
    plan: Plan, method: Method, groups: Pair[Group], *, depth: Depth = "bounds"
) -> Comparison:
    """Compare both groups of every complainant; p-values or bounds only where asked for."""
    return compare(
        groups.control.share,
        groups.test.share,
        plan.rule,
        # centers alone, which counterfactual fairness compares, have no test
        depth=depth if method.count_neighbours else "evidence",
        insufficient=too_small(groups, method, least=plan.settings.similarity.min_group),
    )


def evidence_by(plan: Plan) -> HasEvidence:
    """Return what marks groups with evidence by the rule of the audit.

    Verdicts and their counts depend on nothing else of groups without evidence: their p-values are
    one half or more, while α is less, so no adjustment can make more or fewer of others
    significant.
    """
    rule = plan.rule

    def has_evidence(control: Sums, test: Sums) -> NDArray[np.bool_]:
        evidence = np.zeros(len(control.places), dtype=np.bool_)
        filled = np.flatnonzero((control.places > 0) & (test.places > 0))
        sums = control.take(filled), test.take(filled)
        evidence[filled] = compare(*sums, rule, depth="evidence").evidence
        return evidence

    return has_evidence
