"""How a command ends: its exit code, and one paragraph on stderr if it did not end well."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from mutandis.errors import DecisionError, MutandisError, shown
from mutandis.limits import address_space

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EXIT_CODES", "Stopped", "end_now", "explain", "stoppable"]

EXIT_CODES = {
    0: "done",
    1: "`verify` or `reproduce` found a difference",
    2: "the command, the settings, the data or the output folder are at fault",
    3: "the decision maker is at fault: it failed, or did not answer as agreed",
    70: "something unexpected, which is a defect of mutandis",
    130: "stopped by Ctrl-C",
    141: "what reads the output (a pipe) was closed",
    143: "stopped by the system (SIGTERM)",
}
"""What each exit code means."""

_STOPPED = {
    130: "Stopped by Ctrl-C. No half-written results are left.",
    141: "",
    143: "Stopped on request (SIGTERM). No half-written results are left.",
}
# what libraries say that cannot be loaded, or cannot start their threads
_NO_MEMORY = re.compile(
    r"cannot allocate memory|failed to map segment|out of memory|can't start new thread",
    re.IGNORECASE,
)
# how long the main thread may take to tidy up before the process ends without it
_SECONDS = 1.0
_ending = threading.Lock()


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

    The list tells which signal came: libraries that run for long in C catch the exception and raise
    one of their own. Where the main thread does not get to the exception, or loses it, a thread
    ends the process after a second; the next run removes a temporary folder that was left.
    """
    came: list[int] = []
    done = threading.Event()

    def stop(number: int, _: Any) -> None:
        if not came:  # a second one does not interrupt the tidying
            came.append(128 + number)
            raise Stopped(128 + number)

    heard, written = socket.socketpair()
    written.settimeout(0)
    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    # the number of a signal is written there even while the main thread is in a library
    wakeup = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_end_in_time, args=(heard, done), daemon=True).start()
    try:
        yield came
    finally:
        done.set()
        signal.set_wakeup_fd(wakeup)
        written.close()
        for each, handler in before.items():
            signal.signal(each, handler)


def _end_in_time(heard: socket.socket, done: threading.Event) -> None:
    with heard:
        while number := heard.recv(1):
            code = 128 + number[0]
            if code in _STOPPED and not done.wait(_SECONDS):
                end_now(code)


def end_now(code: int) -> NoReturn:
    """End the process on a signal, with threads that are still searching."""
    _ending.acquire()  # and never release it: one line is enough
    with suppress(OSError):
        # bars hide the cursor of a terminal
        shown = "\x1b[?25h" if os.isatty(2) else ""
        os.write(2, f"{shown}mutandis: {_STOPPED[code]}\n".encode())
    os._exit(code)


def explain(error: BaseException, came: list[int]) -> tuple[int, str]:
    """Return the exit code and the paragraph for what ended a command."""
    if came or isinstance(error, Stopped | KeyboardInterrupt):
        code = came[0] if came else getattr(error, "code", 130)
        return code, _STOPPED[code]
    if isinstance(error, MutandisError):
        return 3 if isinstance(error, DecisionError) else 2, " ".join(str(error).split())
    allowed = address_space()
    # a library that cannot be loaded under such a limit is one that does not fit
    if allowed is not None and (type(error) is ImportError or _is_want_of_memory(error)):
        return 2, (
            f"There is not enough memory: this process may use {allowed:,} KB of address space. "
            "Raise the limit (ulimit -v), or use fewer rows."
        )
    if _is_want_of_memory(error):
        return 2, "There is not enough memory for this table. Use a larger machine or fewer rows."
    if isinstance(error, OSError) and error.errno:
        what = f"{shown(error.filename)} cannot be used" if error.filename else "The system refuses"
        return 2, f"{what}: {os.strerror(error.errno)}. Check the name, the disk and the rights."
    # its message may quote cells of the table
    return 70, (
        f"Something went wrong that should not have ({type(error).__name__}). This is a defect of "
        "mutandis: please report it. `mutandis --debug …` shows where it happened; look through "
        "what it prints before you pass it on, since it may quote values of your table."
    )


def _is_want_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or bool(_NO_MEMORY.search(str(error)))
