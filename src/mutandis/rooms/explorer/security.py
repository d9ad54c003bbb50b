"""What stands before every page: who may ask, how much, and what browsers are told.

The explorer shows personal data to the one person who started it. Other users of the machine and
pages of other sites in the same browser reach the port too, so a request is answered only if it
names a known host, does not come from another origin, and brings the token.
"""

from __future__ import annotations

import asyncio
import hmac
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

__all__ = ["BODY_BYTES", "BODY_SECONDS", "Guard", "RefusedError"]

BODY_BYTES = 100_000
BODY_SECONDS = 10.0
_QUERY_BYTES = 20_000

# Nothing from elsewhere, no script and no style in a page itself
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class RefusedError(Exception):
    """A request that is not answered: its status, and what to do."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class Guard:
    """Lets requests through that may be answered, with headers on every answer."""

    def __init__(
        self, application: Application, *, token: str, hosts: Iterable[str], ticket: str = ""
    ) -> None:
        self._application = application
        self._token = token  # the secret of this run
        # stands for the token once: the arguments of a browser are seen by other users
        self._ticket = ticket
        self._hosts = frozenset(hosts)  # names of this server in a browser, ports included
        # cookies know no ports: two explorers would overwrite each other's
        self._cookie = "mutandis-" + "".join(c for c in max(self._hosts) if c.isdigit())[-5:]

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, _with_headers(send))
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        headers = {key.decode("latin-1"): v.decode("latin-1") for key, v in scope["headers"]}
        try:
            self._check_source(scope, headers)
            given = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
            if self._admits(given.get("token", "")):
                await self._welcome(scope, send)
                return
            self._check_cookie(headers)
            body = await _read_body(headers, receive)
        except RefusedError as refusal:
            # what was not read of a body is not waited for
            text = (b"content-type", b"text/plain; charset=utf-8")
            body = f"{refusal.sentence}\n".encode()
            await _send(send, refusal.status, [text, (b"connection", b"close")], body)
            return
        await self._application(scope, _replay(body, receive), send)

    def _check_source(self, scope: MutableMapping[str, Any], headers: dict[str, str]) -> None:
        """Refuse other names of this machine, and requests that other sites make."""
        if headers.get("host", "") not in self._hosts:
            raise RefusedError(
                421, "The explorer does not answer under this name. Use the address it has printed."
            )
        if scope["method"] not in {"GET", "HEAD", "POST"}:
            raise RefusedError(405, "Allowed are GET, HEAD and POST.")
        if len(scope["query_string"]) > _QUERY_BYTES:
            raise RefusedError(414, f"An address holds at most {_QUERY_BYTES:,} bytes of settings.")
        origin, site = headers.get("origin", "null"), headers.get("sec-fetch-site")
        # With `no-referrer`, browsers send "null" as the origin of our own forms, and say
        # otherwise that it is ours
        ours = origin.removeprefix("http://") in self._hosts if origin != "null" else None
        if ours is False or (ours is None and scope["method"] == "POST" and site != "same-origin"):
            raise RefusedError(403, "The explorer does not answer requests that other sites make.")

    def _check_cookie(self, headers: dict[str, str]) -> None:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            found = None
        if found is None or not self._is_token(found.value):
            raise RefusedError(
                403,
                "This address lacks the token of the explorer. Open the whole address that "
                "`mutandis explore` has printed, token included.",
            )

    def _admits(self, given: str) -> bool:
        if self._ticket and hmac.compare_digest(given.encode(), self._ticket.encode()):
            self._ticket = ""
            return True
        return self._is_token(given)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    async def _welcome(self, scope: MutableMapping[str, Any], send: Send) -> None:
        """Put the token into a cookie, and take it out of the address."""
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        rest = urlencode([pair for pair in pairs if pair[0] != "token"])
        cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        # from the first slash on there is one alone, or it would be read as another host
        path = "/" + scope["raw_path"].decode("latin-1").lstrip("/\\")
        address = path + (f"?{rest}" if rest else "")
        location = address.encode("latin-1", "replace")
        await _send(send, 303, [(b"location", location), (b"set-cookie", cookie.encode())])


async def _read_body(headers: dict[str, str], receive: Receive) -> bytes:
    """Take the whole body in before anything is computed: not too much, and not too slowly."""
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > BODY_BYTES:
        raise RefusedError(413, f"A form holds at most {BODY_BYTES:,} bytes.")
    body = b""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                body += bytes(message.get("body", b""))
                if len(body) > BODY_BYTES:
                    raise RefusedError(413, f"A form holds at most {BODY_BYTES:,} bytes.")
                if message["type"] != "http.request" or not message.get("more_body"):
                    return body
    except TimeoutError:
        raise RefusedError(408, f"The form did not arrive within {BODY_SECONDS:.0f} s.") from None


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting = [body]

    async def give() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return give


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            ours = {name.encode(): value.encode() for name, value in _HEADERS.items()}
            given = list(message.get("headers", ()))
            present = {name.lower() for name, _ in given}
            more = [(name, value) for name, value in ours.items() if name not in present]
            message["headers"] = [*given, *more]
        await send(message)

    return sending


async def _send(
    send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes = b""
) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})
