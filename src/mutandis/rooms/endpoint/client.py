"""The client of one endpoint: its address, its headers, and POST within a time limit.

httpx carries the requests. Its `HTTPTransport` is used without the `Client` around it, which would
follow redirections, keep cookies, use proxies and passwords of the environment, and log addresses.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from mutandis.errors import DecisionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


_SECRET_PARAMETER = re.compile(
    r"code|.*(key|token|secret|password|passwd|pwd|credentials?|signature|sig|auth)", re.IGNORECASE
)
_OURS = {"host", "content-length", "content-type", "transfer-encoding", "connection", "expect"}
_LOCAL = {"localhost", "127.0.0.1", "::1"}
_CONNECT = 10.0  # seconds
# answers are short; longer ones must not fill the memory
_BYTES = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A checked address: the host to connect to, and the path and query (`target`) there."""

    scheme: str
    host: str
    port: int | None
    target: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """Check an address; errors never repeat what may be secret."""
        if re.search(r"[^\x21-\x7e]", url):
            raise DecisionError(
                "The address of the endpoint contains a space or a non-ASCII character. Write it "
                "as a browser copies it, with %20 for a space."
            )
        try:
            parts = urlsplit(url)
            port = parts.port  # checked only when it is read
        except ValueError:
            raise DecisionError(
                "The address of the endpoint cannot be read: its host or its port is malformed. "
                "Write it as in https://models.bank.example:8443/credit."
            ) from None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise DecisionError(
                "The address of the endpoint is not a web address. It begins with https:// or "
                "http:// and names a host, as in https://models.bank.example/credit."
            )
        if parts.username is not None or parts.password is not None:
            raise DecisionError(
                "The address of the endpoint contains a user name or a password. Put the secret "
                "into an environment variable and name the variable (token_variable)."
            )
        for name, _ in parse_qsl(parts.query, keep_blank_values=True):
            if _SECRET_PARAMETER.fullmatch(name):
                raise DecisionError(
                    f"The address of the endpoint contains {name!r}, which looks like a secret, "
                    "and addresses are kept with the results. Put it into an environment variable "
                    "and name the variable (token_variable), with token_header for the header in "
                    "which the endpoint expects it."
                )
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(scheme=parts.scheme, host=parts.hostname, port=port, target=target)

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port is None else f":{self.port}")

    @property
    def shown(self) -> str:
        """The address without its query."""
        return self.origin + self.target.partition("?")[0]

    @property
    def in_the_clear(self) -> bool:
        """Whether requests travel unencrypted to another machine."""
        return self.scheme == "http" and self.host not in _LOCAL


def check_token(variable: str, header: str) -> None:
    """Refuse a name that no environment variable, or no header with a token, can have."""
    if not _HEADER_NAME.fullmatch(header) or header.lower() in _OURS:
        raise DecisionError(
            f"token_header={header!r} cannot carry a token. Leave it out for Authorization, or "
            "name a header such as X-Api-Key."
        )
    if not variable or "=" in variable or "\0" in variable:
        raise DecisionError(
            "token_variable takes the name of an environment variable, such as BANK_TOKEN "
            "(not the token itself)."
        )


def read_token(variable: str, header: str) -> dict[str, str]:
    """Read a secret from the environment when it is needed; it is not stored."""
    secret = os.environ.get(variable, "").strip()
    if not secret:
        # it may be a secret written here by mistake: only what looks like a name is repeated
        plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,40}", variable)
        named = repr(variable) if plain else "that token_variable names"
        raise DecisionError(
            f"The environment variable {named} is not set, and the endpoint's token should be "
            "in it. Set it before the audit."
        )
    if not re.fullmatch(r"[\x21-\x7e]+", secret):
        raise DecisionError(
            f"The environment variable {variable!r} contains characters that are not allowed in "
            "a token (a space, a line break, a non-ASCII letter). Set it again."
        )
    return {header: f"Bearer {secret}" if header.lower() == "authorization" else secret}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    body: bytes
    retry_after: str
    location: str
    phrase: str  # of the standard: the server's own words may be anything

    @property
    def retry(self) -> bool:
        """Whether another attempt may help: too many requests, or an error of the server."""
        return self.status in {408, 429} or self.status >= 500


class TransportError(Exception):
    """No answer came: the reason in a few words, and whether another attempt may help."""

    def __init__(self, reason: str, *, retry: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry = retry


class Transport:
    """A connection to one address, kept open from one batch to the next and never redirected."""

    def __init__(self, address: Address, headers: Mapping[str, str], timeout: float) -> None:
        try:
            import httpx
        except ModuleNotFoundError:
            raise DecisionError(
                "Endpoints are asked through the library httpx. Install it: "
                "pip install 'mutandis[endpoint]'."
            ) from None
        self._url = address.origin + address.target
        # compressed answers could grow without limit; the log has the hash of what was sent
        self._headers = {**headers, "Accept-Encoding": "identity"}
        self._timeout = timeout
        # the system's certificates and SSL_CERT_FILE, not the list of httpx
        verify = ssl.create_default_context()
        limits = httpx.Limits(max_connections=1)
        self._http = httpx.HTTPTransport(verify=verify, trust_env=False, limits=limits)
        self._socket: socket.socket | None = None
        self._cause: BaseException | None = None

    def post(self, body: bytes, *, within: float) -> Reply:
        """Send a body and wait for the whole answer, for at most `within` seconds."""
        import httpx

        within, self._cause = max(min(within, self._timeout), 0.001), None
        with self._cut_off(within) as is_cut:
            try:
                reply = self._exchange(body, within)
            except (OSError, httpx.TransportError, httpx.InvalidURL) as error:
                if not is_cut.is_set():
                    raise _explain(error, self._cause) from None
        if is_cut.is_set():
            raise TransportError("time-out", retry=True)
        return reply

    def close(self) -> None:
        self._socket = None
        self._http.close()

    def _exchange(self, body: bytes, within: float) -> Reply:
        import httpx

        timeout = httpx.Timeout(within, connect=min(within, _CONNECT))
        request = httpx.Request(
            "POST",
            self._url,
            headers=self._headers,
            content=body,
            extensions={"timeout": timeout.as_dict(), "trace": self._watch},
        )
        response = self._http.handle_request(request)
        content = bytearray()
        try:
            for part in response.iter_raw():
                content += part
                if len(content) > _BYTES:
                    raise TransportError("an answer that is too long", retry=False)
        except httpx.RemoteProtocolError:
            raise TransportError("a broken connection", retry=True) from None
        finally:
            response.close()
        return Reply(
            status=response.status_code,
            phrase=httpx.codes.get_reason_phrase(response.status_code) or "an unknown status",
            body=bytes(content),
            retry_after=response.headers.get("Retry-After", ""),
            location=response.headers.get("Location", ""),
        )

    def _watch(self, event: str, info: Mapping[str, Any]) -> None:
        """Note the socket of a new connection, and the cause of a failure, which httpx loses."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._socket = info["return_value"].get_extra_info("socket")
        elif event.endswith(".failed"):
            self._cause = info["exception"].__cause__

    @contextmanager
    def _cut_off(self, seconds: float) -> Iterator[threading.Event]:
        """Shut the connection after some seconds, even if bytes still arrive one by one."""
        # the time limits of httpx, as those of a socket, start anew with every byte
        is_cut = threading.Event()

        def cut() -> None:
            is_cut.set()
            with suppress(OSError):  # it may be closed in the same moment
                if self._socket is not None:
                    # the plain socket's method: that of an encrypted one waits for the other side
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

        timer = threading.Timer(seconds, cut)
        timer.daemon = True
        timer.start()
        try:
            yield is_cut
        finally:
            timer.cancel()


def _explain(error: Exception, cause: BaseException | None) -> TransportError:
    """Describe a failure without the text of the error, which may quote anything."""
    import httpx

    kinds: list[tuple[type[Exception], str, bool]] = [
        (httpx.TimeoutException, "time-out", True),
        (TimeoutError, "time-out", True),
        (ssl.SSLCertVerificationError, "a certificate that is not trusted", False),
        (ssl.SSLError, "a failed encryption handshake", False),
        (socket.gaierror, "no such host", False),
        (httpx.InvalidURL, "no such host", False),
        (ConnectionRefusedError, "connection refused", True),
        (ConnectionError, "a broken connection", True),
    ]
    for kind, reason, retry in kinds:
        if isinstance(error, kind) or isinstance(cause, kind):
            return TransportError(reason, retry=retry)
    if not isinstance(error, httpx.RemoteProtocolError):
        return TransportError("no connection", retry=True)
    if cause is not None:
        return TransportError("something that is not HTTP", retry=False)
    # a connection that was closed before its answer leaves the parser without complaint
    return TransportError("a broken connection", retry=True)
