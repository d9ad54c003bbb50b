"""The server: who is answered, what browsers are told, and the command that starts it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from mutandis.auditing.audit import Audit
from mutandis.rooms.explorer import security, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


Visit = Callable[[Audit], Any]
# as conftest.py has them
HOST = "127.0.0.1:8765"
TOKEN = "the-token-of-the-tests"
HOSTILE_ID = '"><img src=x onerror=alert(1)>'
HOSTILE_COLUMN = "<script>alert('c')</script>"
PAGES = ("/", "/people", "/person/0", "/workbench.svg", "/person/0/case-file", "/explore.css")


@pytest.fixture
def client(visit: Visit, loan: Audit) -> Any:
    return visit(loan)


def test_nothing_is_shown_without_the_token(client: Any) -> None:
    client.cookies.clear()
    for page in PAGES:
        answer = client.get(page)
        assert answer.status_code == 403
        assert "token" in answer.text
        assert "AnnualSalary" not in answer.text


@pytest.mark.parametrize("token", ["", "the-token-of-the-test", "the-token-of-the-tests2", "ü"])
def test_another_token_is_refused(client: Any, token: str) -> None:
    client.cookies.clear()
    assert client.get("/", params={"token": token}).status_code == 403
    client.cookies.set("mutandis-08765", token.encode("ascii", "replace").decode())
    assert client.get("/").status_code == 403


def test_the_token_moves_from_the_address_into_a_cookie(client: Any) -> None:
    client.cookies.clear()
    answer = client.get(f"/people?id=3&token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/people?id=3")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


def test_a_ticket_admits_once(loan: Audit, visit: Visit) -> None:
    from mutandis.rooms.explorer.pages import Explorer
    from mutandis.rooms.explorer.server import make_application

    client = visit(loan)
    fresh = type(client)(
        make_application(Explorer(loan, name="x"), token=TOKEN, hosts=[HOST], ticket="once")
    )
    assert fresh.get("/people").status_code == 403
    assert fresh.get("/people?token=once").status_code == 200
    assert fresh.get("/people").status_code == 200
    fresh.cookies.clear()
    assert fresh.get("/people?token=once").status_code == 403
    assert fresh.get("/people?token=").status_code == 403
    assert fresh.get(f"/people?token={TOKEN}").status_code == 200


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example", "///evil.example"])
def test_the_first_address_leads_nowhere_else(client: Any, path: str) -> None:
    answer = client.get(f"http://{HOST}{path}?token={TOKEN}", follow_redirects=False)
    assert not urlsplit(answer.headers.get("location", "")).netloc
    assert not answer.headers.get("location", "").startswith(("//", "/\\"))


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil:8765", ""]
)
def test_another_name_of_the_machine_is_refused(client: Any, host: str) -> None:
    """DNS rebinding: a page of another site reaches the port under its own name."""
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 421
    assert "complainant" not in answer.text


def test_another_origin_is_refused(client: Any) -> None:
    assert client.get("/", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get("/", headers={"origin": f"http://{HOST}"}).status_code == 200
    for headers in (
        {},
        {"origin": "null"},
        {"origin": "null", "sec-fetch-site": "cross-site"},
        {"origin": "http://evil.example", "sec-fetch-site": "same-origin"},
    ):
        assert client.post("/", headers=headers).status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client: Any, method: str) -> None:
    assert client.request(method, "/").status_code == 405


@pytest.mark.parametrize("page", [*PAGES, "/nowhere"])
def test_every_answer_tells_browsers_what_to_refuse(client: Any, page: str) -> None:
    headers = client.get(page).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/explore.css/../server.py",
        "/server.py",
        "/static/explore.css",
        "/person/..%2f..%2fetc%2fpasswd/case-file",
        "/person/-1",
        "/person/99999999999999999999",
        "/person/0x1",
        "/audit.npz",
    ],
)
def test_no_other_file_is_given(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text
    assert "Traceback" not in answer.text


def test_a_large_body_is_refused(client: Any) -> None:
    ours = {"origin": f"http://{HOST}"}
    assert client.post("/", content=b"x" * 100_001, headers=ours).status_code == 413

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 10_000

    assert client.post("/", content=pieces(), headers=ours).status_code == 413
    assert client.get(f"/?{'a' * 20_001}").status_code == 414


@pytest.mark.parametrize(
    "query",
    [
        "k=11",
        "k=x",
        "k=1e400",
        "alpha=2",
        "alpha=nan",
        "tau=-1",
        "method=nothing",
        "sort=nothing",
        "is:nothing=1",
        "min:delta_p=x",
        "min:nothing=1",
        "page=99999999999999999999",
        "effect=x",
        "effect=1e999",
        "%00=%ff",
    ],
)
def test_strange_settings_are_said_to_be_strange(client: Any, query: str) -> None:
    for page in ("/people", "/", "/person/1"):
        answer = client.get(f"{page}?{query}")
        assert answer.status_code in {200, 400}
        assert "Traceback" not in answer.text


def test_what_fails_inside_is_not_shown(
    client: Any, visit: Visit, loan: Audit, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from mutandis.rooms.explorer.views import PeopleTable

    def fail(*_: Any) -> None:
        raise ValueError("a value of the table")

    monkeypatch.setattr(PeopleTable, "page", fail)
    answer = client.get("/people")
    assert answer.status_code == 500
    assert "a value of the table" not in answer.text
    said = capsys.readouterr()
    assert said.err == "mutandis explore: a page failed (ValueError)\n"
    assert not said.out


class _Found(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.loaded += [value or "" for name, value in attrs if name in {"src", "href", "action"}]


@pytest.mark.parametrize("page", ["/", "/people", "/person/0", "/person/1"])
def test_hostile_names_stay_text(visit: Visit, hostile: Audit, page: str) -> None:
    client = visit(hostile)
    answer = client.get(page)
    assert answer.status_code == 200
    found = _Found()
    found.feed(answer.text)
    assert not {"b", "i", "iframe", "style", "base", "object"} & found.tags
    assert answer.text.count("<script") == 1
    assert not {name for name in found.attributes if name.startswith("on")} | (
        {"style"} & found.attributes
    )
    # nothing is loaded from elsewhere
    assert all(each.startswith(("/", "#")) and not each.startswith("//") for each in found.loaded)
    assert HOSTILE_ID not in answer.text
    assert HOSTILE_COLUMN not in answer.text
    assert "\u202e" not in answer.text


# over the wire


@pytest.fixture(scope="module")
def address(loan: Audit) -> Iterator[str]:
    pytest.importorskip("uvicorn", reason="the extra `explore` is not installed")
    from mutandis.rooms.explorer.server import listen

    listening = listen(loan)
    thread = threading.Thread(target=listening.run, daemon=True)
    thread.start()
    yield listening.address
    listening.server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


def _port(address: str) -> int:
    return urlsplit(address).port or 0


@pytest.mark.slow
def test_it_listens_on_this_machine_alone(address: str) -> None:
    assert urlsplit(address).hostname == "127.0.0.1"
    others = {
        str(info[4][0])
        for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        if not str(info[4][0]).startswith("127.")
    }
    for each in others:
        with pytest.raises(OSError, match=r"refused|timed out|unreachable"):
            socket.create_connection((each, _port(address)), timeout=2)


@pytest.mark.slow
def test_a_slow_client_is_hung_up_on(
    address: str, loan: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mutandis.rooms.explorer import server

    monkeypatch.setattr(server, "_HEAD_SECONDS", 0.2)
    monkeypatch.setattr(security, "BODY_SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", _port(address)), timeout=20) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert slow.recv(100) == b""
    token = address.partition("token=")[2]
    with socket.create_connection(("127.0.0.1", _port(address)), timeout=20) as slow:
        port = _port(address)
        slow.sendall(
            f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n"
            f"Cookie: mutandis-{f'127001{port}'[-5:]}={token}\r\n"
            "Content-Length: 9\r\n\r\nabc".encode()
        )
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


@pytest.fixture(scope="module")
def results(loan: Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("command") / "results"
    loan.save(folder)
    return folder


@contextmanager
def _started(*arguments: str) -> Iterator[tuple[Any, str]]:
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "mutandis", "explore", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_it_prints_its_address_and_ends_with_ctrl_c(results: Path) -> None:
    pytest.importorskip("uvicorn", reason="the extra `explorer` is not installed")
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*")}
    with _started(str(results), "--no-open") as (process, line):
        said = re.fullmatch(
            r"Explorer: (http://127\.0\.0\.1:\d+/\?token=[\w-]{32}) \(Ctrl-C ends it\)\n", line
        )
        assert said
        with httpx.Client(follow_redirects=True) as client:
            answer = client.get(said[1])
            assert answer.status_code == 200
            assert "What was found" in answer.text
            assert client.get(said[1].partition("?")[0] + "person/0/case-file").status_code == 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out == ""
    assert err == "mutandis: Stopped by Ctrl-C. No half-written results are left.\n"
    # nothing in the folder has changed
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*")} == before


@pytest.mark.slow
def test_a_port_that_is_taken_is_said_to_be(results: Path) -> None:
    pytest.importorskip("uvicorn", reason="the extra `explorer` is not installed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with _started(str(results), "--no-open", "--port", port) as (process, _):
            _, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in err
    assert "Traceback" not in err


def test_the_browser_is_opened_at_the_address(loan: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("uvicorn", reason="the extra `explorer` is not installed")
    opened: list[str] = []
    said: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(server.Listening, "run", lambda listening: listening.socket.close())
    server.serve(loan, say=said.append)
    # another secret, which works once: what starts a browser is seen by others
    printed = re.fullmatch(r"Explorer: (.+\?token=)([\w-]{32}) \(Ctrl-C ends it\)", said[0])
    assert printed
    assert opened[0].startswith(printed[1])
    assert printed[2] not in opened[0]
    server.serve(loan, open_browser=False, say=said.append)
    assert len(opened) == 1
