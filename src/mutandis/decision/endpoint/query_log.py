"""What was asked and when: one line a request, with hashes instead of data."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mutandis.errors import DecisionError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["QueryLog", "QueryRecord", "sha256_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRecord:
    """One request: when, which batch, how many rows, and what came of it.

    Parameters
    ----------
    time
        When it was sent, in UTC.
    batch, rows, attempt
        The number of the batch, its rows, and which attempt at it this was.
    status
        The HTTP status, or in words what kept the answer from coming.
    seconds
        How long it took.
    request_sha256, answer_sha256
        Of the two texts: whoever kept them can show later that these were they.
    """

    time: str
    batch: int
    rows: int
    attempt: int
    status: int | str
    seconds: float
    request_sha256: str
    answer_sha256: str | None


@dataclass(slots=True)
class QueryLog:
    """All requests so far, in memory and, if there is a path, at the end of a file.

    Examples
    --------
    >>> log = QueryLog()
    >>> log.add(batch=1, rows=2, attempt=1, status=200, seconds=0.25, request=b"[]", answer=b"[]")
    >>> log.records[0].rows, log.records[0].answer_sha256[:8]
    (2, '4f53cda1')
    """

    path: Path | None = None
    records: list[QueryRecord] = field(default_factory=list)

    def check(self) -> None:
        """See that the file can be written, before anything is asked."""
        self._append("")

    def add(
        self,
        *,
        batch: int,
        rows: int,
        attempt: int,
        status: int | str,
        seconds: float,
        request: bytes,
        answer: bytes | None,
    ) -> None:
        """Note one request."""
        record = QueryRecord(
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            batch=batch,
            rows=rows,
            attempt=attempt,
            status=status,
            seconds=round(seconds, 3),
            request_sha256=sha256_of(request),
            answer_sha256=None if answer is None else sha256_of(answer),
        )
        self.records.append(record)
        self._append(json.dumps(asdict(record)) + "\n")

    def as_dicts(self) -> tuple[dict[str, Any], ...]:
        """Give the records as plain data."""
        return tuple(asdict(record) for record in self.records)

    def _append(self, line: str) -> None:
        if self.path is None:
            return
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            raise DecisionError(
                f"The query log {self.path.name!r} cannot be written: {error.strerror}. Name "
                "another file (log), or leave it out."
            ) from None


def sha256_of(content: bytes) -> str:
    """Hash a text.

    Examples
    --------
    >>> sha256_of(b"[]")[:8]
    '4f53cda1'
    """
    return hashlib.sha256(content).hexdigest()
