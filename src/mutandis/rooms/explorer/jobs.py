"""Work in the background: one thread each, with its progress, and an end on request."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

from mutandis.errors import MutandisError, MutandisWarning

__all__ = ["Job"]

Report = Callable[[int, int], None]


class _CancelledError(Exception):
    """The work was cancelled."""


class Job:
    """Something that takes long: a function that reports what is done of all.

    Parameters
    ----------
    work
        Is called with a function to report to, and gives the result.
    """

    def __init__(self, work: Callable[[Report], Any]) -> None:
        self._work = work
        self.result: Any = None
        self.failure = ""
        self.done, self.total = 0, 0
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._thread.is_alive()

    def cancel(self) -> None:
        """Stop it at the next report."""
        self._cancelled.set()

    def wait(self, seconds: float) -> None:
        """Wait for its end."""
        self._thread.join(seconds)

    def _report(self, done: int, total: int) -> None:
        if self._cancelled.is_set():
            raise _CancelledError
        self.done, self.total = done, total

    def _run(self) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MutandisWarning)
                found = self._work(self._report)
            self._report(self.total, self.total)
            self.result = found
        except _CancelledError:
            self.failure = "The run was cancelled."
        except MutandisError as error:
            self.failure = str(error)
        except Exception as error:  # noqa: BLE001 - a message may hold values of the table
            self.failure = f"The run failed ({type(error).__name__})."
