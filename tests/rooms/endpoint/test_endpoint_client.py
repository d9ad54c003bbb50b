"""The client of an endpoint: addresses, headers and tokens; one connection and how it fails."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from mutandis.errors import DecisionError, MutandisWarning
from mutandis.rooms.endpoint import HttpMaker
from mutandis.rooms.endpoint.client import Address, Transport, TransportError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# --- addresses, headers, tokens ----------------------------------------------------------------

URL = "https://models.bank.example/credit"


def refused(**options: Any) -> str:
    chosen: dict[str, Any] = {"url": URL, "columns": ("salary",), **options}
    with pytest.raises(DecisionError) as caught:
        HttpMaker(**chosen)
    return str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://bank.example/", "not a web address"),
        ("file:///etc/passwd", "not a web address"),
        ("bank.example/credit", "not a web address"),
        ("https://", "not a web address"),
        ("", "not a web address"),
        ("https://bank.example:port/", "malformed"),
        ("https://bank.example:99999/", "malformed"),
        ("https://[::1/", "malformed"),
        ("https://bank.example/a b", "a space"),
        ("https://bank.example/\r\nX-Evil: 1", "a space"),
        ("https://bänk.example/", "non-ASCII"),
        ("https://jane:s3cret@bank.example/", "a user name or a password"),
        ("https://s3cret@bank.example/", "a user name or a password"),
        ("https://bank.example/credit?v=2&key=s3cret", "contains 'key', which looks like a secret"),
        ("https://bank.example/credit?apiKey=s3cret", "looks like a secret"),
        ("https://bank.example/credit?access_token=s3cret", "looks like a secret"),
        ("https://bank.example/credit?code=s3cret", "looks like a secret"),
        ("https://bank.example/credit?sig=s3cret", "looks like a secret"),
    ],
)
def test_addresses_that_are_refused(url: str, said: str) -> None:
    message = refused(url=url)
    assert said in message
    assert "s3cret" not in message


def test_addresses_are_shown_without_what_may_be_secret() -> None:
    maker = HttpMaker(url=f"{URL}?client=s3cret&country_code=DE", columns=("salary",))
    assert "s3cret" not in f"{maker!r} {maker.describe()} {maker.label}"
    assert maker.describe()["url"] == URL
    address = Address.parse("http://[::1]:8000")
    assert (address.host, address.port, address.target) == ("::1", 8000, "/")
    assert address.shown == "http://[::1]:8000/"
    assert Address.parse(f"{URL}?version=1").target == "/credit?version=1"


def test_what_is_listened_to_is_warned_of_before_it_is_sent() -> None:
    assert not Address.parse("http://127.0.0.1:8000/").in_the_clear
    assert not Address.parse(URL).in_the_clear
    # a host that cannot exist (RFC 2606)
    maker = HttpMaker(url="http://models.invalid/credit", columns=("salary",))
    with pytest.raises(MutandisWarning, match=r"http://models\.invalid unencrypted"):
        maker.decide({"salary": [1]})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": ()}, "and none are"),
        ({"columns": "salary"}, "takes a list"),
        ({"columns": ("salary", "salary")}, "more than once"),
        ({"batch": 0}, "batch=0"),
        ({"batch": True}, "batch=True"),
        ({"retries": -1}, "retries=-1"),
        ({"retries": 1.5}, "retries=1.5"),
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": True}, "timeout=True"),
        ({"deadline": float("inf")}, "deadline=inf"),
        ({"token_variable": ""}, "name of an environment variable"),
        ({"token_variable": "T", "token_header": "Host"}, "cannot carry a token"),
    ],
)
def test_settings_that_are_refused(options: dict[str, Any], said: str) -> None:
    message = refused(**options)
    assert said in message
    assert "s3cret" not in message


# --- one connection -------------------------------------------------------------------------------

REQUEST = (
    "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
    "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
)
TIMEOUT = 2.0


@contextmanager
def serving(*connections: list[bytes]) -> Iterator[Transport]:
    """Answer each request of each connection with the bytes that are given, then hang up."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(5)

    def serve() -> None:
        for answers in connections:
            connection, _ = listener.accept()
            with suppress(ConnectionResetError), connection:  # by a client that read no further
                connection.settimeout(5)
                for answer in answers:
                    asked = b""
                    while not asked.endswith(b"[]") and (part := connection.recv(65_536)):
                        asked += part
                    connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    address = Address.parse(f"http://127.0.0.1:{listener.getsockname()[1]}/")
    transport = Transport(address, {}, TIMEOUT)
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


def test_an_answer_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutandis.rooms.endpoint.client._BYTES", 100)
    endless = b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 1000
    with serving([endless]) as transport, pytest.raises(TransportError) as caught:
        transport.post(b"[]", within=5)
    assert (caught.value.reason, caught.value.retry) == ("an answer that is too long", False)


def test_something_that_is_not_http() -> None:
    with (
        serving([b"HTTP/1.1 perhaps\r\n\r\n"]) as transport,
        pytest.raises(TransportError) as caught,
    ):
        transport.post(b"[]", within=5)
    assert (caught.value.reason, caught.value.retry) == ("something that is not HTTP", False)


def test_a_host_that_does_not_exist() -> None:
    # reserved for tests by RFC 2606: it never resolves
    transport = Transport(Address.parse("http://nowhere.invalid/"), {}, TIMEOUT)
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
    transport = Transport(address, {}, TIMEOUT)
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
