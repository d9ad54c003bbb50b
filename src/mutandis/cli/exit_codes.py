"""How a command ends: its exit code, and one paragraph on stderr if it did not end well."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from mutandis.errors import DecisionError, MutandisError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EXIT_CODES", "Stopped", "explain", "stoppable"]

EXIT_CODES = {
    0: "done",
    1: "`verify` or `reproduce` found a difference",
    2: "the command, the settings, the data or the output folder are at fault",
    3: "the decision maker is at fault: it failed, or did not answer as agreed",
    70: "something unexpected, which is a defect of mutandis",
    130: "stopped by Ctrl-C",
    143: "stopped by the system (SIGTERM)",
}
"""What each exit code means."""

_WORDS = {130: "Stopped by Ctrl-C.", 143: "Stopped on request (SIGTERM)."}


class Stopped(BaseException):
    """The process was asked to end.

    Not a `KeyboardInterrupt`, which libraries on the way up would take for theirs.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@contextmanager
def stoppable() -> Iterator[list[int]]:
    """Make Ctrl-C and SIGTERM unwind the program, so that temporary folders are removed.

    The list tells which signals came: libraries that run for long in C catch the exception and
    raise one of their own.
    """
    came: list[int] = []

    def stop(number: int, _: Any) -> NoReturn:
        came.append(128 + number)
        raise Stopped(128 + number)

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def explain(error: BaseException, came: list[int]) -> tuple[int, str]:
    """Give the exit code and the paragraph for what ended a command.

    Examples
    --------
    >>> explain(DecisionError("The model gave 3 answers for 4 rows."), [])
    (3, 'The model gave 3 answers for 4 rows.')
    """
    if came or isinstance(error, Stopped | KeyboardInterrupt):
        code = came[0] if came else 130
        return code, f"{_WORDS[code]} No half-written results are left."
    if isinstance(error, MutandisError):
        return 3 if isinstance(error, DecisionError) else 2, _one_paragraph(str(error))
    if isinstance(error, MemoryError):
        return 2, "There is not enough memory for this table. Use a larger machine or fewer rows."
    # its message may quote cells of the table
    return 70, (
        f"Something went wrong that should not have ({type(error).__name__}). This is a defect of "
        "mutandis: please report it. `mutandis --debug …` shows where it happened; look through "
        "what it prints before you pass it on, since it may quote values of your table."
    )


def _one_paragraph(text: str) -> str:
    return " ".join(text.split())
