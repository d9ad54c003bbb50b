"""A model behind an HTTP address: it stays where it is, and is asked row by row."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isfinite
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mutandis.data.columns import factorise, is_number
from mutandis.decision.maker import DescribedMaker, read_columns, select_columns
from mutandis.errors import DecisionError, MissingValuesError, MutandisWarning
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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import narwhals as nw
    from numpy.typing import NDArray

# whole numbers up to here are the same number as a float and as an integer
_EXACT = 2**53
# systems have no clocks for much longer times
_LONGEST = 1_000_000
# some model servers call what they send back predictions, whatever it is
_EITHER = "predictions"

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
    connect_timeout
        For a connection.
    timeout
        For the whole answer to one batch, to its last byte.
    deadline
        For all batches of one table together, waiting included.
    retries
        How often a batch is sent again after the first time.
    backoff
        The wait before the first retry; it doubles each time, less a random part of up to a half,
        so that several audits do not ask in step.
    longest_wait
        The cap on any wait, also on one that the endpoint asks for (Retry-After).

    Examples
    --------
    >>> policy = RetryPolicy(backoff=0.5)
    >>> [policy.wait(attempt, retry_after=None, jitter=1.0) for attempt in (1, 2, 3, 10)]
    [0.5, 1.0, 2.0, 60.0]
    >>> policy.wait(1, retry_after="7", jitter=1.0)
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
            if each.name == "retries":
                if type(value) is not int or not 0 <= value <= 100:
                    raise DecisionError(
                        f"retries={value!r} is not allowed. Give a whole number from 0 to 100."
                    )
            elif not is_number(value) or not (value > 0 or (value == 0 and "wait" in each.name)):
                raise DecisionError(
                    f"{each.name}={value!r} is not allowed. Give a number of seconds above 0."
                )
            elif value > _LONGEST:
                raise DecisionError(
                    f"{each.name} is longer than {_LONGEST:,} seconds, which is eleven days. Give "
                    "a shorter time."
                )

    def wait(self, attempt: int, *, retry_after: str | None, jitter: float) -> float:
        """Say how long to wait after an attempt; `jitter` is a random number from 0 to 1."""
        asked = _read_retry_after(retry_after)
        if asked is not None:
            return min(asked, self.longest_wait)
        doubled = self.backoff * 2.0 ** min(attempt - 1, 60)
        return min(doubled, self.longest_wait) * (0.5 + 0.5 * jitter)


def _read_retry_after(header: str | None) -> float | None:
    from email.utils import parsedate_to_datetime

    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    number: int
    rows: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpMaker(DescribedMaker):
    """A model that stays where it is: rows go to its address as JSON, answers come back.

    Each distinct row is sent once, also if it occurs again in another table (a counterfactual
    that changes nothing). Requests go to the address that is named, by POST, and nowhere else:
    redirections are refused.

    Parameters
    ----------
    url
        The address, http or https, without secrets.
    columns
        What is sent of each row: these columns, and no others.
    batch
        Rows in one request.
    envelope
        The key that the list of rows is sent under, such as "instances". Default: the bare list.
    scores
        Whether it answers with scores, for a threshold (see `with_threshold`).
    headers
        Further headers; not those that hold secrets.
    token_variable, token_header
        The environment variable that holds a token, and the header that carries it.
    retry_policy
        Time-outs and retries.
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
            "columns": list(self.columns),
            "batch": self.batch,
            "envelope": self.envelope,
            "headers": sorted(self.headers),
            "token_variable": self.token_variable,
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
        self._warn_if_unencrypted()
        self._append_to_log("")  # before anything is asked: can it be written?
        transport = Transport(Address.parse(self.url), self._all_headers(), self.retry_policy)
        until = monotonic() + self.retry_policy.deadline
        total = len(texts)
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

        attempt = 0
        while True:
            attempt += 1
            found = self._send(transport, batch, attempt=attempt, until=until)
            retry_after = None
            if isinstance(found, Reply):
                if 200 <= found.status < 300:
                    return read_reply(
                        found.body, rows=batch.rows, scores=self.scores, label=self.label
                    )
                retry_after = found.retry_after
            if not found.retry or attempt > self.retry_policy.retries:
                raise self._refusal(found, batch, attempt)
            jitter = SystemRandom().random()
            wait = self.retry_policy.wait(attempt, retry_after=retry_after, jitter=jitter)
            if monotonic() + wait >= until:
                raise self._too_late(batch)
            sleep(wait)

    def _send(
        self, transport: Transport, batch: _Batch, *, attempt: int, until: float
    ) -> Reply | TransportError:
        """Send a batch once, and log it; give the reply, or why there is none."""
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
        # hashes stand for the data: whoever kept the two texts can show later that these were they
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
        return {
            "User-Agent": "mutandis",
            "Accept": "application/json",
            **self.headers,
            **token,
            "Content-Type": "application/json",
        }

    def _warn_if_unencrypted(self) -> None:
        address = Address.parse(self.url)
        if address.in_the_clear and not self._queries:
            warnings.warn(
                f"Rows are sent to {address.origin} unencrypted and can be read on the way. "
                "Use https:// if the endpoint supports it.",
                MutandisWarning,
                stacklevel=2,
            )

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


def _shown_location(location: str | None) -> str:
    """Show where a redirection points, without what may be secret."""
    try:
        return Address.parse(location or "").origin
    except DecisionError:
        return "another address"


# --- rows as JSON, and JSON as answers ------------------------------------------------------------


def distinct_rows(frame: Any, columns: tuple[str, ...]) -> tuple[list[str], NDArray[np.intp]]:
    """Write each distinct row as a JSON object; say which one each row of the table is."""
    import pandas as pd

    opened = select_columns(frame, columns)
    codes, fields = [], []
    for name in columns:
        own, texts = _encode(opened[name])
        codes.append(own)
        fields.append([f"{json.dumps(name)}:{text}" for text in texts])
    places = np.zeros(len(opened), dtype=np.int64)
    for own, texts in zip(codes, fields, strict=True):
        # numbered anew after each column, so that the product cannot grow beyond an int64
        places = pd.factorize(places * (len(texts) + 1) + own)[0]
    _, some_row = np.unique(places, return_index=True)
    rows = [
        "{" + ",".join(texts[own[row]] for own, texts in zip(codes, fields, strict=True)) + "}"
        for row in some_row.tolist()
    ]
    return rows, places


def _encode(series: nw.Series[Any]) -> tuple[NDArray[np.intp], list[str]]:
    """Give a code for each row, and the JSON of each code."""
    codes, found = factorise(series)
    texts = [_json(value, series.name) for value in found]
    bad = [code for code, text in enumerate(texts) if not text]
    missing = int(np.count_nonzero((codes < 0) | np.isin(codes, bad)))
    if missing:
        raise MissingValuesError(
            f"Column {series.name!r} has {missing} missing or infinite values, which cannot be "
            "sent to the endpoint. Complete them, or leave these rows out."
        )
    return codes, texts


def _json(value: Any, column: str) -> str:
    """Write one value; nothing for a number that JSON does not have."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        if not isfinite(value):
            return ""
        # so that a row that a counterfactual has not moved reads as it did
        value = int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, date | datetime | time):
        value = value.isoformat()
    if not isinstance(value, str | int | float):
        raise DecisionError(
            f"Column {column!r} holds values of type {type(value).__name__}, which JSON does not "
            "have. Turn it into text or numbers, or leave it out of columns."
        )
    return json.dumps(value, ensure_ascii=False)


def read_reply(body: bytes, *, rows: int, scores: bool, label: str) -> list[Any]:
    """Read the answers to one batch: ``[…]``, ``{"decisions": […]}`` or ``{"scores": […]}``."""
    found = _parse(body, label=label)
    answers = _answers(found, scores=scores, label=label) if isinstance(found, dict) else found
    if not isinstance(answers, list):
        raise _unreadable(f"{type(answers).__name__} where a list is needed", label)
    if len(answers) != rows:
        raise DecisionError(
            f"The {label} returned {len(answers)} answers to a batch of {rows} rows. It must "
            "answer each row, in the order in which they were sent."
        )
    missing = sum(answer is None for answer in answers)
    if missing:
        raise DecisionError(
            f"The {label} gave no answer (null) in {missing} of {rows} rows of a batch. It must "
            "decide on every row: complete what it needs, or leave these rows out."
        )
    odd = next((answer for answer in answers if not _is_plain(answer, scores=scores)), None)
    if odd is not None:
        raise DecisionError(
            f"The {label} answered a row with {_kind(odd)}, not with "
            f"{'a number' if scores else 'a text, a number or a boolean'}."
            + (" A threshold is declared, which takes scores." if scores else "")
        )
    return answers


def _parse(body: bytes, *, label: str) -> Any:
    try:
        return json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        start = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        what = "something that is not JSON"
        if start == b"<":
            what = "an HTML or XML page, such as a login or an error page,"
        elif not start:
            what = "nothing"
        raise _unreadable(what, label) from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _answers(found: dict[str, Any], *, scores: bool, label: str) -> Any:
    wanted, other = ("scores", "decisions") if scores else ("decisions", "scores")
    for key in (wanted, _EITHER):
        if key in found:
            return found[key]
    if other in found:
        remedy = "Leave the threshold out." if scores else "Declare a threshold."
        raise DecisionError(f"The {label} returned {other}, but {wanted} are expected. {remedy}")
    raise _unreadable("an object without 'decisions' or 'scores'", label)


def _unreadable(what: str, label: str) -> DecisionError:
    return DecisionError(
        f"The {label} returned {what} instead of its answers. Expected is JSON: a list with one "
        'answer for each row, or {"decisions": […]} or {"scores": […]} with such a list. What it '
        "sent is not repeated here, because it may contain personal data."
    )


def _is_plain(answer: Any, *, scores: bool) -> bool:
    if scores:
        return isinstance(answer, int | float) and not isinstance(answer, bool)
    return isinstance(answer, str | int | float | bool)


def _kind(answer: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean"}
    return names.get(type(answer), "something else")
