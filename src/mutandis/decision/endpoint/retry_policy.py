"""How long to wait for an endpoint, and how often to ask again."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from math import isfinite
from numbers import Real

from mutandis.errors import DecisionError

__all__ = ["RetryPolicy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long to wait, in seconds, and how often to try again.

    Parameters
    ----------
    connect_timeout
        For a connection.
    timeout
        For the whole answer to one batch, to its last byte.
    deadline
        For all batches of one table together, waiting included.
    retries
        How often a batch is asked again after the first time.
    backoff
        The wait before the first retry; it doubles each time, less a random part of up to a half,
        so that several audits do not ask in step.
    longest_wait
        The cap on any wait, also on one that the endpoint asks for (Retry-After).

    Examples
    --------
    >>> patience = RetryPolicy(backoff=0.5)
    >>> [patience.wait(attempt, retry_after=None, jitter=1.0) for attempt in (1, 2, 3, 10)]
    [0.5, 1.0, 2.0, 60.0]
    >>> patience.wait(1, retry_after="7", jitter=1.0)
    7.0
    """

    connect_timeout: float = 10.0
    timeout: float = 60.0
    deadline: float = 3600.0
    retries: int = 5
    backoff: float = 0.5
    longest_wait: float = 60.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            is_number = type(value) is not bool and isinstance(value, Real) and isfinite(value)
            if each.name == "retries":
                if type(value) is not int or not 0 <= value <= 100:
                    raise DecisionError(
                        f"retries={value!r} is not allowed. Give a whole number from 0 to 100."
                    )
            elif not is_number or value < 0 or (value == 0 and "wait" not in each.name):
                raise DecisionError(
                    f"{each.name}={value!r} is not allowed. Give a number of seconds above 0."
                )

    def wait(self, attempt: int, *, retry_after: str | None, jitter: float) -> float:
        """Say how long to wait before the next attempt.

        Parameters
        ----------
        attempt
            How many attempts there were.
        retry_after
            What the endpoint asked for: seconds, or a date.
        jitter
            A random number between 0 and 1.
        """
        asked = _seconds(retry_after)
        if asked is not None:
            return min(asked, self.longest_wait)
        doubled = self.backoff * 2.0 ** min(attempt - 1, 60)
        return min(doubled, self.longest_wait) * (0.5 + 0.5 * jitter)


def _seconds(retry_after: str | None) -> float | None:
    """Read a Retry-After header; None if there is none that can be read."""
    from email.utils import parsedate_to_datetime

    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
