"""The progress of a run: a bar on a terminal, a function of the caller's, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mutandis.engine.methods import Center
from mutandis.errors import PlanError
from mutandis.geometry.index import discard_progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.auditing.plan import Plan
    from mutandis.geometry.index import Progress

__all__ = ["Bars", "Report", "Steps", "Tracker", "follow_run"]

Report = Callable[[int, int], None]
"""Is called with the number of complainants done, and of all."""

Bars = Callable[[str], Report]
"""Makes a bar with a title."""


class Tracker:
    """Turn numbers of searches into numbers of complainants.

    A complainant is searched for several times: for the control group, and for a test group around
    each center. As a run does this for all complainants, one kind of group after the other, a
    search counts as that part of a complainant. The report is called at the start, and whenever
    another complainant is done.

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
        before = self._searched // self._searches
        self._searched += more
        done = self._searched // self._searches
        if done > before:
            self._report(min(done, self._complainants), self._complainants)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What the steps of a run report to."""

    search: Progress
    bars: Bars  # of the steps after the search, by what each does


@contextmanager
def follow_run(
    plan: Plan, *, progress: bool | Report | None, bars: Bars | None = None
) -> Iterator[Steps]:
    """Follow the run of a plan, and clear all bars away when it ends."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise PlanError(
            f"progress={progress!r} is not allowed. Give True for a bar on the terminal, or a "
            "function that is called with the numbers of complainants done and of all."
        )
    if progress is True and sys.stderr.isatty():
        with _bars() as shown:
            yield Steps(search=_tracker(shown("Searching"), plan), bars=shown)
    else:
        search = _tracker(progress, plan) if callable(progress) else discard_progress
        yield Steps(search=search, bars=bars or (lambda _: discard_report))


def discard_report(done: int, total: int) -> None:
    """Report to nobody."""


def _tracker(report: Report, plan: Plan) -> Tracker:
    complainants = sum(len(stratum.complainants) for stratum in plan.strata)
    return Tracker(report, complainants=complainants, searches=_count_searches(plan))


def _count_searches(plan: Plan) -> int:
    """Count how often each complainant is searched for."""
    compared = [method for method in plan.methods if method.count_neighbours]
    centers = {method.center for method in compared}
    if not centers:
        return 0
    drawn = (plan.settings.uncertainty.draws or 0) if Center.COUNTERFACTUAL in centers else 0
    if drawn and _is_open(plan):
        # draws take the place of the one counterfactual; matched groups are found anew in each
        averaged = any(m.needs_counterfactual and not m.matched for m in compared)
        matched = any(m.matched for m in compared)
        drawn = averaged * (drawn - 1) + matched * drawn
    if any(m.needs_counterfactual and not m.count_centers for m in compared):
        drawn += plan.settings.uncertainty.refits or 0
    audits = len(plan.protections) if plan.combine == "multiple" else 1
    return audits * (1 + len(centers) + drawn)


def _is_open(plan: Plan) -> bool:
    """Return whether counterfactuals are open, so that groups are averaged over draws."""
    return plan.worldview is not None and bool(plan.worldview.couplings)


@contextmanager
def _bars() -> Iterator[Bars]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}: {task.completed:,} of {task.total:,}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:

        def bar(title: str) -> Report:
            task = shown.add_task(title, total=0)
            return lambda done, total: shown.update(task, completed=done, total=total)

        yield bar
