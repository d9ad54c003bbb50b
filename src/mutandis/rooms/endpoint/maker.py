"""A model behind an HTTP address: it stays where it is, and is asked row by row."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import is_number
from mutandis.decision.maker import DescribedMaker, read_columns
from mutandis.errors import DecisionError, MutandisWarning
from mutandis.limits import open_regular
from mutandis.rooms.endpoint.client import (
    Address,
    Reply,
    Transport,
    TransportError,
    check_headers,
    check_token,
    read_token,
)
from mutandis.rooms.endpoint.rows import distinct_rows, read_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

_LONGEST_WAIT = 60.0  # seconds before a retry, also where the endpoint asks for more
_LONGEST = 1_000_000  # seconds: systems have no clocks for much longer times
_HINTS = {
    400: " It does not accept the rows as they are: check columns and envelope.",
    401: " Check the token (token_variable).",
    403: " Check the token (token_variable), and that it may use this address.",
    404: " Check the address.",
    405: " Check the address: it must accept POST.",
    413: " Send smaller batches (batch).",
    415: " It must accept JSON.",
    422: " It does not accept the rows as they are: check columns and envelope.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long to wait for an endpoint, in seconds, and how often to try again.

    Parameters
    ----------
    timeout
        For the whole answer to one batch, to its last byte.
    deadline
        For all batches of one table together, waiting included.
    retries
        How often a batch is sent again after the first time.
    backoff
        The wait before the first retry; it doubles each time, up to a minute, less a random part
        of up to a half, so that several audits do not ask in step. If the endpoint names a number
        of seconds (Retry-After), they are waited instead, also up to a minute.

    Examples
    --------
    >>> policy = RetryPolicy(backoff=0.5)
    >>> [policy.wait(attempt, retry_after="", jitter=1.0) for attempt in (1, 2, 3, 10)]
    [0.5, 1.0, 2.0, 60.0]
    >>> policy.wait(1, retry_after="7", jitter=1.0)
    7.0
    """

    timeout: float = 60.0
    deadline: float = 3600.0
    retries: int = 5
    backoff: float = 0.5

    def __post_init__(self) -> None:
        if type(self.retries) is not int or not 0 <= self.retries <= 100:
            raise DecisionError(
                f"retries={self.retries!r} is not allowed. Give a whole number from 0 to 100."
            )
        for name in ("timeout", "deadline", "backoff"):
            value = getattr(self, name)
            if not is_number(value) or not 0 < value <= _LONGEST:
                raise DecisionError(
                    f"{name}={value!r} is not allowed. Give a number of seconds above 0 and up to "
                    f"{_LONGEST:,}."
                )

    def wait(self, attempt: int, *, retry_after: str, jitter: float) -> float:
        """Return the seconds to wait after an attempt; `jitter` is random, from 0 to 1."""
        asked = retry_after.strip()
        if asked.isascii() and asked.isdigit():
            return min(float(asked[:12]), _LONGEST_WAIT)
        doubled = self.backoff * 2.0 ** min(attempt - 1, 60)
        return min(doubled, _LONGEST_WAIT) * (0.5 + 0.5 * jitter)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    number: int
    rows: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpMaker(DescribedMaker):
    """A model that stays where it is: rows go to its address as JSON, answers come back.

    Each distinct row is sent once, also if it occurs again in another table (a counterfactual
    that changes nothing). Requests go to the named address alone, by POST: redirections are
    refused.

    Parameters
    ----------
    url
        The address, http or https, without secrets.
    columns
        The columns of a row that are sent, and no others.
    batch
        Rows in one request.
    envelope
        The key that the list of rows is sent under, such as "instances". Default: the bare list.
    scores
        Whether it answers with scores, for a threshold (see `with_threshold`).
    headers
        Further headers; no secrets.
    token_variable, token_header
        The environment variable that holds a token, and the header that carries it.
    retry_policy
        Time limits and retries.
    log
        A file to which each request is added as one JSON line, with hashes instead of data.
    on_progress
        Called with the number of rows answered, and of all that are sent.

    Examples
    --------
    >>> maker = HttpMaker(url="https://models.bank.example/credit", columns=("salary", "balance"))
    >>> maker.describe()["url"]
    'https://models.bank.example/credit'
    """

    url: str = field(repr=False)
    columns: tuple[str, ...]
    batch: int = 500
    envelope: str | None = None
    scores: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    token_variable: str | None = None
    token_header: str = "Authorization"  # noqa: S105 - a name, not a secret
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    log: Path | None = None
    on_progress: Callable[[int, int], None] | None = field(default=None, compare=False, repr=False)
    _queries: list[dict[str, Any]] = field(
        default_factory=list, init=False, compare=False, repr=False
    )
    _known: dict[bytes, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        Address.parse(self.url)
        object.__setattr__(self, "columns", read_columns(self.columns))
        if not self.columns:
            raise DecisionError(
                "An endpoint is sent only the columns that are listed, and none are. Name those "
                "that the model needs: columns=['salary', 'balance']."
            )
        if type(self.batch) is not int or not 1 <= self.batch <= 1_000_000:
            raise DecisionError(
                f"batch={self.batch!r} is not allowed. Give the number of rows to send at once, "
                "from 1 to 1,000,000."
            )
        check_headers(self.headers)
        if self.token_variable is not None:
            check_token(self.token_variable, self.token_header)

    @property
    def names(self) -> tuple[str, ...]:
        return self.columns

    @property
    def label(self) -> str:
        return f"endpoint {Address.parse(self.url).origin}"

    @property
    def queries(self) -> tuple[dict[str, Any], ...]:
        return tuple(dict(query) for query in self._queries)

    def scoring(self) -> HttpMaker:
        return replace(self, scores=True)

    def with_progress(self, on_progress: Callable[[int, int], None]) -> HttpMaker:
        return replace(self, on_progress=on_progress)

    def describe(self) -> dict[str, Any]:
        """Describe the address without what may be secret, and what it is sent."""
        return {
            "kind": "http",
            "url": Address.parse(self.url).shown,
            **{name: getattr(self, name) for name in ("batch", "envelope", "token_variable")},
            "columns": list(self.columns),
            "headers": sorted(self.headers),
        }

    def decide(self, frame: Any, /) -> NDArray[Any]:
        """Send each distinct row that has not been answered yet, batch by batch."""
        texts, places = distinct_rows(frame, self.columns)
        keys = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts]
        unknown = [index for index, key in enumerate(keys) if key not in self._known]
        if unknown:
            self._ask([texts[index] for index in unknown], [keys[index] for index in unknown])
        answers = np.empty(len(keys), dtype=np.object_)
        answers[:] = [self._known[key] for key in keys]
        return answers[places]

    def _ask(self, texts: Sequence[str], keys: Sequence[bytes]) -> None:
        address = Address.parse(self.url)
        if address.in_the_clear and not self._queries:
            warnings.warn(
                f"Rows are sent to {address.origin} unencrypted and can be read on the way. "
                "Use https:// if the endpoint supports it.",
                MutandisWarning,
                stacklevel=2,
            )
        self._append_to_log("")  # before anything is asked: can it be written?
        transport = Transport(address, self._all_headers(), self.retry_policy.timeout)
        until, total = monotonic() + self.retry_policy.deadline, len(texts)
        report = self.on_progress or (lambda _done, _total: None)
        report(0, total)
        try:
            for number, start in enumerate(range(0, total, self.batch), start=1):
                part = texts[start : start + self.batch]
                batch = _Batch(number=number, rows=len(part), body=self._body(part))
                answers = self._ask_batch(transport, batch, until=until)
                self._known.update(zip(keys[start : start + self.batch], answers, strict=True))
                report(start + len(part), total)
        finally:
            transport.close()

    def _body(self, texts: Sequence[str]) -> bytes:
        rows = f"[{','.join(texts)}]"
        body = rows if self.envelope is None else f"{{{json.dumps(self.envelope)}:{rows}}}"
        return body.encode()

    def _ask_batch(self, transport: Transport, batch: _Batch, *, until: float) -> list[Any]:
        from secrets import SystemRandom

        for attempt in range(1, self.retry_policy.retries + 2):
            found = self._send(transport, batch, attempt=attempt, until=until)
            if isinstance(found, Reply) and 200 <= found.status < 300:
                return read_reply(found.body, rows=batch.rows, scores=self.scores, label=self.label)
            if not found.retry or attempt > self.retry_policy.retries:
                break
            retry_after = found.retry_after if isinstance(found, Reply) else ""
            jitter = SystemRandom().random()
            wait = self.retry_policy.wait(attempt, retry_after=retry_after, jitter=jitter)
            if monotonic() + wait >= until:
                raise self._too_late(batch)
            sleep(wait)
        raise self._refusal(found, batch, attempt)

    def _send(
        self, transport: Transport, batch: _Batch, *, attempt: int, until: float
    ) -> Reply | TransportError:
        """Send a batch once, and log it; return the reply, or the reason why there is none."""
        started = monotonic()
        if started >= until:
            raise self._too_late(batch)
        found: Reply | TransportError
        status: int | str
        try:
            found = transport.post(batch.body, within=until - started)
            status, answer = found.status, hashlib.sha256(found.body).hexdigest()
        except TransportError as error:
            found, status, answer = error, error.reason, None
        # hashes instead of data: with the two texts, anyone can show later what was sent
        query = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "batch": batch.number,
            "rows": batch.rows,
            "attempt": attempt,
            "status": status,
            "seconds": round(monotonic() - started, 3),
            "request_sha256": hashlib.sha256(batch.body).hexdigest(),
            "answer_sha256": answer,
        }
        self._queries.append(query)
        self._append_to_log(json.dumps(query) + "\n")
        return found

    def _append_to_log(self, line: str) -> None:
        if self.log is None:
            return
        path = Path(self.log)
        try:
            with open_regular(path, "ab") as file:
                file.write(line.encode())
        except OSError as error:
            raise DecisionError(
                f"The query log {path.name!r} cannot be written: {error.strerror}. Name another "
                "file (log), or leave it out."
            ) from None

    def _all_headers(self) -> dict[str, str]:
        token = {}
        if self.token_variable is not None:
            token = read_token(self.token_variable, self.token_header)
        own = {"User-Agent": "mutandis", "Accept": "application/json"}
        return {**own, **self.headers, **token, "Content-Type": "application/json"}

    def _too_late(self, batch: _Batch) -> DecisionError:
        return DecisionError(
            f"The {self.label} did not finish within {self.retry_policy.deadline:g} seconds; batch "
            f"{batch.number} is unanswered. Raise the deadline, or ask when it is less busy."
        )

    def _refusal(
        self, found: Reply | TransportError, batch: _Batch, attempts: int
    ) -> DecisionError:
        import httpx

        times = "once" if attempts == 1 else f"{attempts} times"
        sent = f"Batch {batch.number} ({batch.rows} rows) was sent {times}."
        if isinstance(found, TransportError):
            return DecisionError(
                f"The {self.label} gave no answer: {found.reason}. {sent} Check the address, and "
                "that the endpoint is running and can be reached from here."
            )
        if 300 <= found.status < 400:
            return DecisionError(
                f"The {self.label} redirects to {_shown_location(found.location)}. Rows go only to "
                "the address that is named: if that is where the model is, name it instead."
            )
        # in the words of the standard; the server's own words may be anything
        phrase = httpx.codes.get_reason_phrase(found.status) or "an unknown status"
        hint = _HINTS.get(found.status, "")
        return DecisionError(
            f"The {self.label} answered {found.status} ({phrase}). {sent}{hint} "
            "Its message is not repeated here, because it may contain personal data."
        )


def _shown_location(location: str) -> str:
    """Show where a redirection points, without what may be secret."""
    try:
        return Address.parse(location).origin
    except DecisionError:
        return "another address"
