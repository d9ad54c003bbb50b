"""Progress on stderr, for people; nothing for programs."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mutandis.cli.terminal import make_console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress, TaskID

__all__ = ["progress_bars"]


@dataclass(slots=True)
class Bar:
    """A bar that appears when it is first moved; without a terminal, it does nothing."""

    bars: Progress | None
    title: str
    task: TaskID | None = None
    done: int = 0
    total: int = 0

    def __call__(self, done: int, total: int) -> None:
        """Move it to what is done of what there is to do, 0 if that is not known."""
        self.done, self.total = done, total
        # without a total, the bar moves but tells no time; what is done goes
        self._update(completed=done, total=total or None, visible=not 0 < total <= done)

    def count_tasks(self, done: int, total: int) -> None:
        """Say beside it how far tasks are, of those that are handed out together."""
        people = f"{self.done:,} of {self.total:,} complainants"
        self._update(description=f"{self.title} · {done:,} of {total:,} tasks · {people}")

    def _update(self, **changes: Any) -> None:
        if self.bars is None:
            return
        if self.task is None:
            self.task = self.bars.add_task(self.title, total=None, visible=False)
        self.bars.update(self.task, **changes)


@contextmanager
def progress_bars() -> Iterator[Callable[[str], Bar]]:
    """Give a maker of bars, each with the time left, on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda title: Bar(None, title)
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
        yield lambda title: Bar(bars, title)
