"""A model behind an HTTP address: it stays where it is, and is asked row by row.

Extra ``endpoint``: httpx.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isfinite
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mutandis.data.columns import factorise, is_number
from mutandis.decision.maker import DescribedMaker, Made, read_columns, select_columns
from mutandis.errors import DecisionError, MissingValuesError, MutandisWarning
from mutandis.rooms.endpoint.client import (
    Address,
    Reply,
    Transport,
    TransportError,
    check_token,
    read_token,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import narwhals as nw
    from numpy.typing import NDArray

    from mutandis.decision.maker import DecisionContext

__all__ = ["HttpMaker", "distinct_rows", "make", "read_reply"]

_BACKOFF = 0.5  # seconds before the first retry; doubled each time
_LONGEST_WAIT = 60.0  # seconds before a retry, also where the endpoint asks for more
_LONGEST = 1_000_000  # seconds: systems have no clocks for much longer times
_EXACT = 2**53  # whole numbers up to here are the same number as a float and as an integer
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


def make(settings: dict[str, Any], context: DecisionContext) -> Made:
    """Make the endpoint that ``http`` describes: an address, or its settings."""
    written = settings["http"]
    options: dict[str, Any] = {"url": written} if isinstance(written, str) else written
    return Made(maker=HttpMaker(columns=settings.get("columns", context.columns), **options))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    number: int
    rows: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpMaker(DescribedMaker):
    """A model that stays where it is: rows go to its address as JSON, answers come back.

    Each distinct row is sent once, also if it occurs again in another table. Requests go to the
    named address alone, by POST: redirections are refused.

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
    token_variable, token_header
        The environment variable that holds a token, and the header that carries it.
    timeout
        Seconds for the whole answer to one batch, to its last byte.
    deadline
        Seconds for all batches of one table together, waiting included.
    retries
        How often a batch is sent again after the first time. Waits between attempts double each
        time; if the endpoint names a number of seconds (Retry-After), they are waited instead.
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
    token_variable: str | None = None
    token_header: str = "Authorization"  # noqa: S105 - a name, not a secret
    timeout: float = 60.0
    deadline: float = 3600.0
    retries: int = 5
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
        for name, least, most in (("batch", 1, 1_000_000), ("retries", 0, 100)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise DecisionError(
                    f"{name}={value!r} is not allowed. Give a whole number from {least} to "
                    f"{most:,}."
                )
        for name in ("timeout", "deadline"):
            value = getattr(self, name)
            if not is_number(value) or not 0 < value <= _LONGEST:
                raise DecisionError(
                    f"{name}={value!r} is not allowed. Give a number of seconds above 0 and up to "
                    f"{_LONGEST:,}."
                )
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
        transport = Transport(address, self._headers(), self.timeout)
        until, total = monotonic() + self.deadline, len(texts)
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

    def _headers(self) -> dict[str, str]:
        token = {}
        if self.token_variable is not None:
            token = read_token(self.token_variable, self.token_header)
        own = {"User-Agent": "mutandis", "Accept": "application/json"}
        return {**own, **token, "Content-Type": "application/json"}

    def _body(self, texts: Sequence[str]) -> bytes:
        rows = f"[{','.join(texts)}]"
        body = rows if self.envelope is None else f"{{{json.dumps(self.envelope)}:{rows}}}"
        return body.encode()

    def _ask_batch(self, transport: Transport, batch: _Batch, *, until: float) -> list[Any]:
        for attempt in range(1, self.retries + 2):
            found = self._send(transport, batch, attempt=attempt, until=until)
            if isinstance(found, Reply) and 200 <= found.status < 300:
                return read_reply(found.body, rows=batch.rows, scores=self.scores, label=self.label)
            if not found.retry or attempt > self.retries:
                break
            wait = _wait(attempt, found.retry_after if isinstance(found, Reply) else "")
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
        return found

    def _too_late(self, batch: _Batch) -> DecisionError:
        return DecisionError(
            f"The {self.label} did not finish within {self.deadline:g} seconds; batch "
            f"{batch.number} is unanswered. Raise the deadline, or ask when it is less busy."
        )

    def _refusal(
        self, found: Reply | TransportError, batch: _Batch, attempts: int
    ) -> DecisionError:
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
        return DecisionError(
            f"The {self.label} answered {found.status} ({found.phrase}). {sent}"
            f"{_HINTS.get(found.status, '')} Its message is not repeated here, because it may "
            "contain personal data."
        )


def _wait(attempt: int, retry_after: str) -> float:
    """Return the seconds to wait after an attempt, so that several audits do not ask in step."""
    from secrets import SystemRandom

    asked = retry_after.strip()
    if asked.isascii() and asked.isdigit():
        return min(float(asked[:12]), _LONGEST_WAIT)
    doubled = _BACKOFF * 2.0 ** min(attempt - 1, 60)
    return min(doubled, _LONGEST_WAIT) * (0.5 + 0.5 * SystemRandom().random())


def _shown_location(location: str) -> str:
    """Return where a redirection points, without what may be secret."""
    try:
        return Address.parse(location).origin
    except DecisionError:
        return "another address"


# --- rows of a table as JSON ----------------------------------------------------------------------


def distinct_rows(frame: Any, columns: tuple[str, ...]) -> tuple[list[str], NDArray[np.intp]]:
    """Write each distinct row as a JSON object; return its place for each row of the table."""
    import pandas as pd

    opened = select_columns(frame, columns)
    encoded = [_encode(opened[name]) for name in columns]
    places = np.zeros(len(opened), dtype=np.int64)
    for own, texts in encoded:
        # numbered anew after each column, so that the product cannot grow beyond an int64
        places = pd.factorize(places * (len(texts) + 1) + own)[0]
    _, some_row = np.unique(places, return_index=True)
    rows = [
        "{" + ",".join(texts[own[row]] for own, texts in encoded) + "}" for row in some_row.tolist()
    ]
    return rows, places


def _encode(series: nw.Series[Any]) -> tuple[NDArray[np.intp], list[str]]:
    """Return a code for each row, and the JSON of each code, its key included."""
    codes, found = factorise(series)
    texts = [_json(value, series.name) for value in found]
    bad = [code for code, text in enumerate(texts) if not text]
    missing = int(np.count_nonzero((codes < 0) | np.isin(codes, bad)))
    if missing:
        raise MissingValuesError(
            f"Column {series.name!r} has {missing} missing or infinite values, which cannot be "
            "sent to the endpoint. Complete them, or leave these rows out."
        )
    return codes, [f"{json.dumps(series.name)}:{text}" for text in texts]


def _json(value: Any, column: str) -> str:
    """Write one value; empty for a number that JSON does not have."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        if not isfinite(value):
            return ""
        # a value that a counterfactual has not moved reads as it did
        value = int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, date | datetime | time):
        value = value.isoformat()
    if not isinstance(value, str | int | float):
        raise DecisionError(
            f"Column {column!r} holds values of type {type(value).__name__}, which JSON does not "
            "have. Turn it into text or numbers, or leave it out of columns."
        )
    return json.dumps(value, ensure_ascii=False)


# --- JSON as answers ------------------------------------------------------------------------------


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
    plain = (int, float) if scores else (str, int, float)
    for answer in answers:
        if not isinstance(answer, plain) or (scores and isinstance(answer, bool)):
            wanted = "a number" if scores else "a text, a number or a boolean"
            hint = " A threshold is declared, which takes scores." if scores else ""
            raise DecisionError(
                f"The {label} answered a row with a value of type {type(answer).__name__}, not "
                f"with {wanted}.{hint}"
            )
    return answers


def _parse(body: bytes, *, label: str) -> Any:
    try:
        return json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        start = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        what = "something that is not JSON" if start else "nothing"
        if start == b"<":
            what = "an HTML or XML page, such as a login or an error page,"
        raise _unreadable(what, label) from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _answers(found: dict[str, Any], *, scores: bool, label: str) -> Any:
    wanted, other = ("scores", "decisions") if scores else ("decisions", "scores")
    for key in (wanted, "predictions"):  # some model servers call any answer a prediction
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
