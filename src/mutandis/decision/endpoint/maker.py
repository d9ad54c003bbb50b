"""A decision maker behind an HTTP address."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from http import HTTPStatus
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.decision.endpoint.address import Address, Token, check_headers
from mutandis.decision.endpoint.query_log import QueryLog
from mutandis.decision.endpoint.replies import read_reply
from mutandis.decision.endpoint.retry_policy import RetryPolicy
from mutandis.decision.endpoint.rows import distinct_rows
from mutandis.decision.maker import DescribedMaker
from mutandis.decision.selection import read_columns
from mutandis.errors import DecisionError, MutandisWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.decision.endpoint.transport import Reply, Transport

__all__ = ["HttpMaker"]

_HINTS = {
    401: " Check the token (token_variable).",
    403: " Check the token (token_variable), and that it may use this address.",
    404: " Check the address.",
    405: " Check the address: it must take POST.",
    413: " Send smaller batches (batch).",
    415: " It must take JSON.",
    422: " It does not accept the rows as they are: check columns and envelope.",
    400: " It does not accept the rows as they are: check columns and envelope.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpMaker(DescribedMaker):
    """A model that stays where it is: rows go to its address as JSON, answers come back.

    Each distinct row is asked about once, also if it comes again in another table (a
    counterfactual that moved nobody). Questions go to the address that is named, by POST, and
    nowhere else: redirections are refused.

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
        Whether it answers with scores, for a threshold (see `Thresholded`).
    headers
        Further headers; not those that hold secrets.
    token_variable, token_header
        The environment variable that holds a token, and the header that carries it.
    patience
        Time-outs and retries.
    log
        A file to which each request is added as one JSON line, with hashes instead of data.
    on_progress
        Called with the number of rows answered, and of all that are asked about.

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
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    log: Path | None = None
    on_progress: Callable[[int, int], None] | None = field(default=None, compare=False, repr=False)
    _log: QueryLog = field(default_factory=QueryLog, init=False, compare=False, repr=False)
    _known: dict[bytes, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        Address.parse(self.url)
        object.__setattr__(self, "columns", read_columns(self.columns))
        if not self.columns:
            raise DecisionError(
                "An endpoint is sent only what is listed, and no columns are. Name those that the "
                "model needs: columns=['salary', 'balance']."
            )
        if type(self.batch) is not int or not 1 <= self.batch <= 1_000_000:
            raise DecisionError(
                f"batch={self.batch!r} is not allowed. Give how many rows to send at once, "
                "from 1 to 1,000,000."
            )
        check_headers(self.headers)
        self._token()
        self._log.path = None if self.log is None else Path(self.log)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are sent."""
        return self.columns

    @property
    def label(self) -> str:
        """What error messages call it."""
        return f"endpoint {Address.parse(self.url).shown}"

    @property
    def queries(self) -> tuple[dict[str, Any], ...]:
        """The requests so far, as plain data."""
        return self._log.as_dicts()

    def scoring(self) -> HttpMaker:
        """Give the same endpoint, which is to answer with scores."""
        return replace(self, scores=True)

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
        """Ask about each distinct row that has not been asked about yet, batch by batch."""
        texts, places = distinct_rows(frame, self.columns)
        keys = [blake2b(text.encode(), digest_size=16).digest() for text in texts]
        unknown = [index for index, key in enumerate(keys) if key not in self._known]
        if unknown:
            self._ask([texts[index] for index in unknown], [keys[index] for index in unknown])
        answers = np.empty(len(keys), dtype=np.object_)
        answers[:] = [self._known[key] for key in keys]
        return answers[places]

    def _ask(self, texts: Sequence[str], keys: Sequence[bytes]) -> None:
        from mutandis.decision.endpoint.transport import Transport

        self._warn_of_listeners()
        self._log.check()
        transport = Transport(Address.parse(self.url), self._all_headers(), self.patience)
        until = monotonic() + self.patience.deadline
        total = len(texts)
        self._tell(0, total)
        try:
            for number, start in enumerate(range(0, total, self.batch), start=1):
                part = texts[start : start + self.batch]
                answers = self._ask_batch(transport, part, number=number, until=until)
                self._known.update(zip(keys[start : start + self.batch], answers, strict=True))
                self._tell(start + len(part), total)
        finally:
            transport.close()

    def _ask_batch(
        self, transport: Transport, texts: Sequence[str], *, number: int, until: float
    ) -> list[Any]:
        from secrets import SystemRandom

        listed = f"[{','.join(texts)}]"
        body = listed if self.envelope is None else f"{{{json.dumps(self.envelope)}:{listed}}}"
        asked = _Batch(number=number, rows=len(texts), body=body.encode())
        for attempt in range(1, self.patience.retries + 2):
            reply, failure = self._attempt(transport, asked, attempt=attempt, until=until)
            if reply is not None and 200 <= reply.status < 300:
                return read_reply(reply.body, rows=asked.rows, scores=self.scores, label=self.label)
            if not _may_recover(reply, failure):
                raise self._refusal(reply, failure, asked, attempt)
            wait = self.patience.wait(
                attempt,
                retry_after=None if reply is None else reply.retry_after,
                jitter=SystemRandom().random(),
            )
            if attempt > self.patience.retries:
                break
            if monotonic() + wait >= until:
                raise self._too_late(asked)
            sleep(wait)
        raise self._refusal(reply, failure, asked, attempt)

    def _attempt(
        self, transport: Transport, asked: _Batch, *, attempt: int, until: float
    ) -> tuple[Reply | None, str | None]:
        """Send a batch once, and note it; give the reply, or why there is none."""
        from mutandis.decision.endpoint.transport import TransportError

        started = monotonic()
        if started >= until:
            raise self._too_late(asked)
        reply, failure, final = None, None, False
        try:
            reply = transport.post(asked.body, within=until - started)
        except TransportError as error:
            failure, final = error.reason, not error.retry
        self._log.add(
            batch=asked.number,
            rows=asked.rows,
            attempt=attempt,
            status=f"{failure}" if reply is None else reply.status,
            seconds=monotonic() - started,
            request=asked.body,
            answer=None if reply is None else reply.body,
        )
        if final:
            raise self._refusal(reply, failure, asked, attempt)
        return reply, failure

    def _all_headers(self) -> dict[str, str]:
        token = self._token()
        return {
            "User-Agent": "mutandis",
            "Accept": "application/json",
            **self.headers,
            **({} if token is None else token.headers()),
            "Content-Type": "application/json",
        }

    def _token(self) -> Token | None:
        if self.token_variable is None:
            return None
        return Token(variable=self.token_variable, header=self.token_header)

    def _warn_of_listeners(self) -> None:
        address = Address.parse(self.url)
        if address.in_the_clear and not self._log.records:
            warnings.warn(
                f"Rows are sent to {address.shown} unencrypted, for everybody on the way to read. "
                "Use https:// if the endpoint has it.",
                MutandisWarning,
                stacklevel=2,
            )

    def _tell(self, done: int, total: int) -> None:
        if self.on_progress is not None:
            self.on_progress(done, total)

    def _too_late(self, asked: _Batch) -> DecisionError:
        return DecisionError(
            f"The {self.label} was not done within {self.patience.deadline:g} seconds; batch "
            f"{asked.number} is unanswered. Raise the deadline, or ask when it is less busy."
        )

    def _refusal(
        self, reply: Reply | None, failure: str | None, asked: _Batch, attempts: int
    ) -> DecisionError:
        times = "once" if attempts == 1 else f"{attempts} times"
        which = f"Batch {asked.number} ({asked.rows} rows) was sent {times}."
        if reply is None:
            return DecisionError(
                f"The {self.label} gave no answer: {failure}. {which} Check the address, and that "
                "the endpoint is running and can be reached from here."
            )
        if 300 <= reply.status < 400:
            return DecisionError(
                f"The {self.label} redirects to {_elsewhere(reply.location)}. Rows go only to the "
                "address that is named: if that is where the model is, name it instead."
            )
        hint = _HINTS.get(reply.status, "")
        return DecisionError(
            f"The {self.label} answered {reply.status} ({_phrase(reply.status)}). {which}{hint} "
            "What it said is not repeated here, because it may quote somebody's data."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    number: int
    rows: int
    body: bytes


def _may_recover(reply: Reply | None, failure: str | None) -> bool:
    """Tell whether asking again may help: too many requests, an error of the server, no answer."""
    if reply is None:
        return failure is not None
    return reply.status in {408, 429} or reply.status >= 500


def _phrase(status: int) -> str:
    """Name a status in the standard's own words; those of the server may be anything."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "an unknown status"


def _elsewhere(location: str | None) -> str:
    """Show where a redirection points, without what may be secret."""
    try:
        return Address.parse(location or "").shown
    except DecisionError:
        return "another address"
