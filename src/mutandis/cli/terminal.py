"""What a command prints: lines, JSON, tables, notes and progress.

Nothing in it steers the terminal, and a failed write is explained.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import StringIO, TextIOWrapper
from pathlib import Path
from shutil import which
from textwrap import fill
from typing import TYPE_CHECKING, Any, TextIO

import typer

from mutandis.cli.exit_codes import Stopped
from mutandis.errors import MutandisWarning, OutputError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.progress import Progress, TaskID

__all__ = [
    "answer",
    "collected_notes",
    "echo",
    "explained_writes",
    "invocation",
    "progress_bars",
    "table_lines",
    "wrap",
]

_CLOSED_PIPE = 141  # 128 + SIGPIPE
_WIDTH = 80


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line on stdout or stderr."""
    typer.echo(printable(text), err=err)


def answer(data: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a result: as JSON and nothing else, or line by line."""
    for line in [json.dumps(data, indent=2)] if as_json else lines:
        echo(line)


def wrap(sentence: str, *, mark: str = "") -> str:
    """Break a sentence into lines of the width of a terminal."""
    return fill(
        sentence,
        _WIDTH,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )


def invocation() -> str:
    """Return what to type to call this program: its name, or its path where it is not found."""
    called = Path(sys.argv[0])
    if called.name != "mutandis" or which("mutandis") == str(called.absolute()):
        return "mutandis"
    return os.path.relpath(called)


@contextmanager
def collected_notes(*, show: bool = True) -> Iterator[Callable[[], list[str]]]:
    """Collect the warnings meant for the auditor, and show them on stderr at the end.

    The function returns those so far. Warnings of other libraries are dropped.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", MutandisWarning)
        yield lambda: list(dict.fromkeys(str(each.message) for each in caught))
    for note in dict.fromkeys(str(each.message) for each in caught if show):
        echo(f"Note: {note}", err=True)


def table_lines(title: str, *rows: Sequence[str]) -> Iterator[str]:
    """Lay out a table, headings first; the first columns without a number are text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = next(n for n in range(1, len(widths)) if any(c.isdigit() for c in rows[-1][n]))
    width = sum(widths) + 3 * len(widths) + 1
    for line in title.splitlines():
        yield fill(line, width, break_long_words=False)
    yield ""
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(size) if place < text else cell.rjust(size)
            for place, (cell, size) in enumerate(zip(row, widths, strict=True))
        ]
        yield ("  " + "   ".join(cells)).rstrip()
        if number == 0:
            yield " " + "─" * (width - 2)
    yield ""


@dataclass(slots=True)
class Bar:
    """A bar that appears when it is first moved; without a terminal, it does nothing."""

    bars: Progress | None
    title: str
    task: TaskID | None = None
    done: int = 0
    total: int = 0

    def __call__(self, done: int, total: int) -> None:
        """Move the bar; a total of 0 is not known."""
        self.done, self.total = done, total
        # without a total, the bar moves but tells no time; what is done goes
        self._update(completed=done, total=total or None, visible=not 0 < total <= done)

    def count_tasks(self, done: int, total: int) -> None:
        """Show how many of the tasks that were sent out together are done."""
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
    """Yield a maker of bars that show the time left, on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda title: Bar(None, title)
        return
    from rich.console import Console
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
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield lambda title: Bar(bars, title)


class _Output(TextIOWrapper):
    """A stream of text that says in a sentence why it cannot be written to."""

    def write(self, text: str) -> int:
        with self._explained():
            return super().write(text)

    def flush(self) -> None:
        with self._explained():
            super().flush()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # what is still in the buffer has to go somewhere when the program ends
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if isinstance(error, BrokenPipeError):
                raise Stopped(_CLOSED_PIPE) from None
            reason = error.strerror or type(error).__name__
            raise OutputError(f"The output cannot be written: {reason}.") from None


@contextmanager
def explained_writes() -> Iterator[None]:
    """Explain failed writes to stdout and stderr, and print what they cannot encode as '?'."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = streams = tuple(map(_wrapped, before))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in streams:
            if isinstance(stream, _Output):
                with suppress(Stopped, OutputError):
                    stream.detach()  # or the stream below is closed with it


def _wrapped(stream: TextIO | None) -> TextIO:
    if stream is None:  # it was closed when the program began
        return StringIO()
    if not isinstance(stream, TextIOWrapper):
        return stream
    stream.flush()
    return _Output(
        stream.buffer,
        encoding=stream.encoding,
        # a terminal that knows no Δ gets a question mark, not the end of the program
        errors="replace",
        line_buffering=stream.line_buffering,
    )
