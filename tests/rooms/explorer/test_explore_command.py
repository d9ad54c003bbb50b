"""`mutandis explore`: one line, and an end; what is missing is said."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import webbrowser
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from mutandis.rooms.explorer import server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mutandis.auditing.audit import Audit


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
