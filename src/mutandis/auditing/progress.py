"""Tell how many complainants are done while an audit runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mutandis.evidence.methods import Center

if TYPE_CHECKING:
    from mutandis.auditing.plan import Plan

__all__ = ["Report", "Tracker", "count_searches"]

Report = Callable[[int, int], None]
"""Is told how many complainants are done, and of how many."""


class Tracker:
    """Turn "so many more searches" into "so many complainants of all".

    A complainant is searched for several times: for her control group, and for a test group around
    each center. As the audit does this for everybody, one kind of group after the other, a search
    counts as that part of a complainant.

    Parameters
    ----------
    report
        Whom to tell. It is told at the start, and whenever another complainant is done.
    complainants
        How many there are.
    searches
        How often each of them is searched for.

    Examples
    --------
    >>> tracker = Tracker(lambda done, total: print(done, total), complainants=2, searches=3)
    0 2
    >>> tracker(2)
    >>> tracker(4)
    2 2
    """

    def __init__(self, report: Report, *, complainants: int, searches: int) -> None:
        self._report = report
        self._complainants = complainants
        self._searches = max(1, searches)
        self._searched = 0
        report(0, complainants)

    def __call__(self, more: int) -> None:
        """Note that so many more searches are done."""
        before = self._searched // self._searches
        self._searched += more
        done = self._searched // self._searches
        if done > before:
            self._report(min(done, self._complainants), self._complainants)


def count_searches(plan: Plan) -> int:
    """Count how often each complainant is searched for."""
    centers = {method.center for method in plan.methods if method.count_neighbours}
    if not centers:
        return 0
    drawn = plan.settings.draws if Center.COUNTERFACTUAL in centers else 0
    audits = len(plan.protections) if plan.combine == "multiple" else 1
    return audits * (1 + len(centers) + drawn)
