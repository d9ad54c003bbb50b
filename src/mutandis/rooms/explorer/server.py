"""The server of the explorer: one process, one visitor, one computation at a time."""

from __future__ import annotations

import asyncio
import secrets
import socket
import sys
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from mutandis.errors import MutandisError, OutputError, PlanError, printable
from mutandis.rooms.explorer.pages import Explorer, MissingPageError, Request
from mutandis.rooms.explorer.security import Guard

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette import requests
    from starlette.responses import Response

    from mutandis.auditing.audit import Audit
    from mutandis.rooms.explorer.pages import Page

__all__ = ["Listening", "listen", "make_application", "serve"]

_STATIC = Path(__file__).with_name("static")
_PAGE_SECONDS = 120.0
_HEAD_SECONDS = 10.0
# requests that may wait for their turn, and connections that may be open; others are refused
_MOST_WAITING = 32
_MOST_CONNECTIONS = 200
_BACKLOG = 64
_LOOPBACK = "127.0.0.1"


class _Turns:
    """Lets one page be computed at a time: audits keep what they have worked out."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._waiting = 0
        self._turn = asyncio.Semaphore(1)

    async def answer(self, make: Callable[[Request], Page], request: Request) -> Response:
        """Compute a page in a thread, or explain why there is none."""
        from starlette.responses import Response

        try:
            page = await self._take_turn(make, request)
        except MissingPageError:
            return self.refuse_missing()
        except MutandisError as error:
            return self._failure(400, str(error))
        except (TimeoutError, BlockingIOError):
            return self._failure(503, "The explorer is busy. Try again in a moment.")
        except Exception as error:  # noqa: BLE001 - a page must never show what went wrong inside
            # the kind alone: a message may hold values of the table
            sys.stderr.write(f"mutandis explore: a page failed ({type(error).__name__})\n")
            return self._failure(500, "This page could not be made. The others still can.")
        headers = {}
        if page.see_other:
            return Response(status_code=303, headers={"location": page.see_other})
        if page.file_name:
            headers["content-disposition"] = f'attachment; filename="{page.file_name}"'
        return Response(page.content, media_type=page.media_type, headers=headers)

    def refuse_missing(self) -> Response:
        """Return the page for what does not exist."""
        return self._failure(404, "There is no such page, or no such complainant.")

    async def _take_turn(self, make: Callable[[Request], Page], request: Request) -> Page:
        if self._waiting >= _MOST_WAITING:
            raise BlockingIOError
        self._waiting += 1
        try:
            async with asyncio.timeout(_PAGE_SECONDS), self._turn:
                return await asyncio.shield(asyncio.to_thread(make, request))
        finally:
            self._waiting -= 1

    def _failure(self, status: int, sentence: str) -> Response:
        from starlette.responses import HTMLResponse

        return HTMLResponse(self._explorer.failure(sentence), status_code=status)


def make_application(explorer: Explorer, *, token: str, hosts: list[str], ticket: str = "") -> Any:
    """Put pages, files and the guard together as an ASGI application."""
    from starlette.applications import Starlette
    from starlette.responses import FileResponse
    from starlette.routing import Route

    turns = _Turns(explorer)

    def page(path: str, make: Callable[[Request], Page], *methods: str) -> Route:
        async def answer(request: requests.Request) -> Response:
            body = await request.body()
            asked = Request(
                query=request.query_params.multi_items(),
                form=parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True),
                number=int(request.path_params.get("number", 0)),
            )
            return await turns.answer(make, asked)

        return Route(path, answer, methods=list(methods or ("GET",)))

    async def missing(*_: Any) -> Response:
        return turns.refuse_missing()

    def static(name: str, media_type: str) -> Route:
        async def answer(_: requests.Request) -> Response:
            return FileResponse(_STATIC / name, media_type=media_type)

        return Route(f"/{name}", answer)

    application = Starlette(
        routes=[
            page("/", explorer.overview),
            page("/people", explorer.people),
            page("/person/{number:int}", explorer.person),
            page("/person/{number:int}/case-file", explorer.case_file),
            page("/workbench", explorer.workbench),
            page("/workbench/run", explorer.run_draft, "POST"),
            page("/workbench/cancel", explorer.cancel_run, "POST"),
            page("/workbench/audit.yaml", explorer.save_draft),
            page("/workbench.svg", explorer.draw_draft),
            static("explore.css", "text/css; charset=utf-8"),
            static("explore.js", "text/javascript; charset=utf-8"),
            static("icon.svg", "image/svg+xml"),
        ],
        exception_handlers={404: missing, 405: missing},
    )
    return Guard(application, token=token, hosts=hosts, ticket=ticket)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """A server that listens already, and does not answer yet."""

    server: Any
    socket: socket.socket
    address: str
    once: str  # an address that works once

    def run(self) -> None:
        """Answer until it is told to end."""
        with self.socket:
            self.server.run(sockets=[self.socket])


def listen(audit: Audit, *, name: str = "audit", port: int = 0) -> Listening:
    """Make a server for the pages of an audit; port 0 takes one that is free."""
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise PlanError(
            "The explorer needs Starlette and uvicorn. Install them: pip install "
            "'mutandis[explorer]'."
        ) from None
    explorer = Explorer(audit, name=printable(name))
    token, ticket = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    listening = _bind(port)
    bound = listening.getsockname()[1]
    hosts = [f"{each}:{bound}" for each in (_LOOPBACK, "localhost")]
    address = f"http://{hosts[0]}/?token="
    config = uvicorn.Config(
        make_application(explorer, token=token, hosts=hosts, ticket=ticket),
        http=_make_protocol(),
        ws="none",
        lifespan="off",
        # no address, and so no id, gets into a log
        access_log=False,
        log_config=None,
        log_level="critical",
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=1,
    )
    return Listening(
        server=uvicorn.Server(config),
        socket=listening,
        address=f"{address}{token}",
        once=f"{address}{ticket}",
    )


def serve(
    audit: Audit, *, open_browser: bool = True, say: Callable[[str], Any] = print, **where: Any
) -> None:
    """Serve the pages of an audit until it is interrupted; its address is said first."""
    listening = listen(audit, **where)
    say(f"Explorer: {listening.address} (Ctrl-C ends it)")
    if open_browser:
        with suppress(webbrowser.Error):
            webbrowser.open(listening.once)
    with suppress(KeyboardInterrupt):
        listening.run()


def _bind(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_LOOPBACK, port))
        # a browser may come before the first request is answered
        listening.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or "there is no such port"
        raise OutputError(
            f"The explorer cannot listen on {_LOOPBACK} port {port}: {reason}. Give another "
            "--port, or leave it out to take a free one."
        ) from None
    listening.set_inheritable(False)
    return listening


def _make_protocol() -> Any:
    """Make a protocol that hangs up on too many clients, and on those who are too slow."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):  # type: ignore[misc]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > _MOST_CONNECTIONS:
                transport.abort()
            self.loop.call_later(_HEAD_SECONDS, self._end_idle)

        def _end_idle(self) -> None:
            if self.cycle is None and not self.transport.is_closing():
                self.transport.close()

    return Protocol
