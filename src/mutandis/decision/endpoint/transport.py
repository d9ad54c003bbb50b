"""One connection to one address: POST a text, get a text, within a time that is kept."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mutandis.decision.endpoint.address import Address
    from mutandis.decision.endpoint.retry_policy import RetryPolicy

__all__ = ["Reply", "Transport", "TransportError"]

# answers are short; what is longer is something else, and must not fill the memory
_BYTES = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back."""

    status: int
    body: bytes
    retry_after: str | None
    location: str | None


class TransportError(Exception):
    """No answer came: in a few words why, and whether it may come another time."""

    def __init__(self, reason: str, *, retry: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry = retry


class Transport:
    """A connection that is kept open from one batch to the next, and never redirected.

    Proxies that the environment names are not used: questions go to the address itself.
    """

    def __init__(self, address: Address, headers: Mapping[str, str], patience: RetryPolicy) -> None:
        self._address = address
        self._headers = headers
        self._patience = patience
        self._connection: http.client.HTTPConnection | None = None

    def post(self, body: bytes, *, within: float) -> Reply:
        """Send a text and wait for the whole answer, for so many seconds at most."""
        try:
            return self._post(body, within=min(within, self._patience.timeout))
        except TransportError:
            self.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise _explained(error) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _post(self, body: bytes, *, within: float) -> Reply:
        started = monotonic()
        connection = self._connected(within)
        left = within - (monotonic() - started)
        with _cut_off(connection.sock, left) as is_cut:
            try:
                connection.request("POST", self._address.target, body, dict(self._headers))
                response = connection.getresponse()
                # what is read or given up is let go of; the connection stays for the next batch
                with response:
                    content = _read(response)
            except (OSError, http.client.HTTPException):
                if is_cut.is_set():
                    raise TransportError("time-out", retry=True) from None
                raise
            if is_cut.is_set():
                raise TransportError("time-out", retry=True)
        if response.will_close:
            self.close()
        return Reply(
            status=response.status,
            body=content,
            retry_after=response.getheader("Retry-After"),
            location=response.getheader("Location"),
        )

    def _connected(self, within: float) -> http.client.HTTPConnection:
        if self._connection is not None and self._connection.sock is not None:
            return self._connection
        address, limit = self._address, min(within, self._patience.connect_timeout)
        if address.scheme == "https":
            self._connection = http.client.HTTPSConnection(
                address.host, address.port, timeout=limit, context=ssl.create_default_context()
            )
        else:
            self._connection = http.client.HTTPConnection(address.host, address.port, timeout=limit)
        self._connection.connect()
        return self._connection


@contextmanager
def _cut_off(connected: socket.socket, seconds: float) -> Iterator[threading.Event]:
    """Shut a connection after so many seconds, however slowly something still trickles in.

    A socket's own time-out starts anew with every byte.
    """
    is_cut = threading.Event()

    def cut() -> None:
        is_cut.set()
        with suppress(OSError):  # it may be closed in the same moment
            # the plain socket's method: that of an encrypted one would wait for the other side
            socket.socket.shutdown(connected, socket.SHUT_RDWR)

    connected.settimeout(max(seconds, 0.001))
    timer = threading.Timer(max(seconds, 0.001), cut)
    timer.daemon = True
    timer.start()
    try:
        yield is_cut
    finally:
        timer.cancel()


def _read(response: http.client.HTTPResponse) -> bytes:
    parts, size = [], 0
    while part := response.read1(65_536):
        parts.append(part)
        size += len(part)
        if size > _BYTES:
            raise TransportError("an answer without end", retry=False)
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(parts)


def _explained(error: Exception) -> TransportError:
    kinds: list[tuple[type[Exception], str, bool]] = [
        (TimeoutError, "time-out", True),
        (ssl.SSLCertVerificationError, "a certificate that is not trusted", False),
        (ssl.SSLError, "a failed encryption handshake", False),
        (socket.gaierror, "no such host", False),
        (ConnectionRefusedError, "connection refused", True),
        (ConnectionError, "a broken connection", True),
        (http.client.IncompleteRead, "a broken connection", True),
        (http.client.HTTPException, "something that is not HTTP", False),
    ]
    for kind, reason, retry in kinds:
        if isinstance(error, kind):
            return TransportError(reason, retry=retry)
    return TransportError("no connection", retry=True)
