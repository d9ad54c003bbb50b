"""The `progress` of an audit: a bar on a terminal, a function of the caller's, or nothing."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mutandis.auditing.progress import Report, Tracker, count_searches
from mutandis.errors import PlanError
from mutandis.search.engine import discard_progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.auditing.plan import Plan
    from mutandis.search.engine import Progress

__all__ = ["check_progress", "following"]


def check_progress(progress: object) -> None:
    """Refuse what is neither yes or no nor a function.

    Examples
    --------
    >>> check_progress("bar")
    Traceback (most recent call last):
    mutandis.errors.PlanError: progress='bar' is not allowed. Give True for a bar on the terminal...
    """
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise PlanError(
            f"progress={progress!r} is not allowed. Give True for a bar on the terminal, or a "
            "function that is told how many complainants are done and of how many."
        )


@contextmanager
def following(plan: Plan, *, progress: bool | Report | None) -> Iterator[Progress]:
    """Follow the run of a plan, and clear the bar away when it ends."""
    if progress is True and sys.stderr.isatty():
        with _bar() as report:
            yield _tracker(report, plan)
    elif callable(progress):
        yield _tracker(progress, plan)
    else:
        yield discard_progress


def _tracker(report: Report, plan: Plan) -> Tracker:
    complainants = sum(len(stratum.complainants) for stratum in plan.strata)
    return Tracker(report, complainants=complainants, searches=count_searches(plan))


@contextmanager
def _bar() -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.completed:,} of {task.total:,} complainants"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("audit", total=0)

        def report(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total)

        yield report
