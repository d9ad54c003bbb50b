"""One connection: answers in pieces, answers cut short, and a connection that is used again."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from mutandis.decision import RetryPolicy
from mutandis.decision.endpoint.address import Address
from mutandis.decision.endpoint.transport import Transport, TransportError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REQUEST = (
    "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
    "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
)
PATIENCE = RetryPolicy(connect_timeout=2, timeout=2, deadline=5)


@contextmanager
def serving(*connections: list[bytes]) -> Iterator[Transport]:
    """Answer each request of each connection with the bytes that are given, then hang up."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(5)

    def serve() -> None:
        for answers in connections:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(5)
                for answer in answers:
                    asked = b""
                    while not asked.endswith(b"[]") and (part := connection.recv(65_536)):
                        asked += part
                    connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    address = Address.parse(f"http://127.0.0.1:{listener.getsockname()[1]}/")
    transport = Transport(address, {}, PATIENCE)
    try:
        yield transport
    finally:
        transport.close()
        thread.join(10)
        listener.close()


def test_one_connection_serves_many_batches() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"
    with serving([answer, answer, answer]) as transport:
        assert [transport.post(b"[]", within=5).body for _ in range(3)] == [b"[]"] * 3


def test_an_answer_in_chunks() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunked = head + b'4\r\n["ye\r\n3\r\ns"]\r\n0\r\n\r\n'
    with serving([chunked, chunked]) as transport:
        assert transport.post(b"[]", within=5).body == b'["yes"]'
        assert transport.post(b"[]", within=5).body == b'["yes"]'


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n[]",
        b"",
    ],
)
def test_an_answer_that_breaks_off_may_come_another_time(answer: bytes) -> None:
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"
    with serving([answer], [whole]) as transport:
        with pytest.raises(TransportError) as caught:
            transport.post(b"[]", within=5)
        assert (caught.value.reason, caught.value.retry) == ("a broken connection", True)
        assert transport.post(b"[]", within=5).body == b"[]"


def test_a_server_that_hangs_up_after_each_answer() -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n[]"
    with serving([closing], [closing]) as transport:
        assert [transport.post(b"[]", within=5).status for _ in range(2)] == [200, 200]


def test_an_answer_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutandis.decision.endpoint.transport._BYTES", 100)
    endless = b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 1000
    with serving([endless]) as transport, pytest.raises(TransportError) as caught:
        transport.post(b"[]", within=5)
    assert (caught.value.reason, caught.value.retry) == ("an answer without end", False)


def test_a_host_that_does_not_exist() -> None:
    # reserved for tests by RFC 2606: it never resolves
    transport = Transport(Address.parse("http://nowhere.invalid/"), {}, PATIENCE)
    with pytest.raises(TransportError) as caught:
        transport.post(b"[]", within=5)
    assert caught.value.reason == "no such host"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 that nobody vouches for."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    folder = tmp_path_factory.mktemp("certificate")
    key, made = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(  # noqa: S603 - fixed arguments
        [openssl, *REQUEST.split(), "-keyout", str(key), "-out", str(made)],
        check=True,
        capture_output=True,
        timeout=30,
    )
    return made, key


@contextmanager
def serving_encrypted(made: Path, key: Path, *, plainly: bool = False) -> Iterator[Transport]:
    """Answer two requests of one encrypted connection, or speak in plain text all the same."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(5)

    def serve() -> None:
        connection, _ = listener.accept()
        connection.settimeout(5)
        with suppress(OSError), connection:
            if plainly:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                return
            with context.wrap_socket(connection, server_side=True) as encrypted:
                for _ in range(2):
                    asked = b""
                    while not asked.endswith(b"[]") and (part := encrypted.recv(65_536)):
                        asked += part
                    encrypted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")

    thread = threading.Thread(target=serve)
    thread.start()
    address = Address.parse(f"https://127.0.0.1:{listener.getsockname()[1]}/")
    transport = Transport(address, {}, PATIENCE)
    try:
        yield transport
    finally:
        transport.close()
        thread.join(10)
        listener.close()


def test_an_encrypted_connection(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # how a bank's own authority is made known to Python
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with serving_encrypted(*certificate) as transport:
        assert [transport.post(b"[]", within=5).body for _ in range(2)] == [b"[]"] * 2


def test_a_certificate_that_nobody_vouches_for(certificate: tuple[Path, Path]) -> None:
    with serving_encrypted(*certificate) as transport, pytest.raises(TransportError) as caught:
        transport.post(b"[]", within=5)
    assert (caught.value.reason, caught.value.retry) == ("a certificate that is not trusted", False)


def test_an_encrypted_answer_is_cut_off_too(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with serving_encrypted(*certificate) as transport, pytest.raises(TransportError) as caught:
        transport.post(b"not the end that the server waits for", within=0.5)
    assert (caught.value.reason, caught.value.retry) == ("time-out", True)


def test_plain_text_where_encryption_is_expected(certificate: tuple[Path, Path]) -> None:
    with (
        serving_encrypted(*certificate, plainly=True) as transport,
        pytest.raises(TransportError) as caught,
    ):
        transport.post(b"[]", within=5)
    assert (caught.value.reason, caught.value.retry) == ("a failed encryption handshake", False)
