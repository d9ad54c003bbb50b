"""Progress on stderr, for people; nothing for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from mutandis.cli.terminal import make_console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress

__all__ = ["Advance", "progress_bars"]

Advance: TypeAlias = Callable[[int, int], None]
"""To be called with what is done and what there is to do, 0 if that is not known."""


@contextmanager
def progress_bars() -> Iterator[Callable[[str], Advance]]:
    """Give a maker of bars, each with the time left, on stderr if that is a terminal.

    A bar appears when it is first moved. Where nobody is watching, bars do nothing.
    """
    if not sys.stderr.isatty():
        yield lambda title: _nothing  # noqa: ARG005 - nobody reads it
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=make_console(stderr=True), transient=True) as bars:
        yield lambda title: _bar(bars, title)


def _bar(bars: Progress, title: str) -> Advance:
    task = bars.add_task(title, total=None, visible=False)

    def advance(done: int, total: int) -> None:
        # without a total, the bar moves but tells no time; what is done goes
        bars.update(task, completed=done, total=total or None, visible=not 0 < total <= done)

    return advance


def _nothing(done: int, total: int) -> None:
    """Say nothing."""
