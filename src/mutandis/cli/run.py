"""Run a plan with bars on stderr for people who wait, and collect what is said to the auditor."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from mutandis.cli.progress import progress_bars
from mutandis.cli.terminal import echo
from mutandis.decision.maker import with_progress
from mutandis.errors import MutandisWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.workers import Workers

__all__ = ["collected_notes", "run_with_bars", "show_notes"]


def run_with_bars(
    plan: Plan, *, threads: int | None = None, workers: Workers | None = None
) -> Audit:
    """Run a plan, with a bar for the decision maker and one for the search."""
    with progress_bars() as bar:
        if plan.decision is not None:
            plan = replace(plan, decision=with_progress(plan.decision, bar("Asking the model")))
        search = bar("Searching")
        if workers is not None:
            workers = workers.following(search.count_tasks)
        return plan.run(threads=threads, progress=search, cluster=workers)


@contextmanager
def collected_notes() -> Iterator[Callable[[], list[str]]]:
    """Collect the warnings that are meant for the auditor; the function gives those so far.

    Those of other libraries are meant for programmers, and are dropped.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", MutandisWarning)
        yield lambda: list(dict.fromkeys(str(each.message) for each in caught))


def show_notes(notes: list[str]) -> None:
    """Show notes on stderr."""
    for note in notes:
        echo(f"Note: {note}", err=True)
