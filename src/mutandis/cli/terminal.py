"""What a command prints: nothing in it steers the terminal, and a write that fails is explained."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from io import StringIO, TextIOWrapper
from typing import TYPE_CHECKING, TextIO

import typer

from mutandis.cli.exit_codes import Stopped
from mutandis.errors import OutputError, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

__all__ = ["echo", "explained_writes", "make_console"]

_CLOSED_PIPE = 141  # 128 + SIGPIPE


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line on stdout or stderr."""
    typer.echo(printable(text), err=err)


def make_console(*, stderr: bool = False) -> Console:
    """Give a console whose own styles are the only thing that steers the terminal."""
    from rich.console import Console

    class PlainConsole(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for each in super().render(renderable, options):
                yield each if each.control else each._replace(text=printable(each.text))

    return PlainConsole(stderr=stderr)


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
