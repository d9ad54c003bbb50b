"""A model behind an HTTP address: requests, failures, logs; addresses, secrets and connections."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.decision import with_threshold
from mutandis.decision.maker import decide, query_records, with_progress
from mutandis.errors import DecisionError, MissingValuesError, MutandisWarning, UnknownColumnError
from mutandis.outcomes.binary import BinaryKind
from mutandis.outcomes.outcome import Outcome
from mutandis.rooms.endpoint import HttpMaker, distinct_rows
from mutandis.rooms.endpoint.client import Address, Transport, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


SECRET = "Jane Roe 1970-05-17"
TABLE = pd.DataFrame(
    {
        "id": [SECRET, *map(str, range(1, 10))],
        "salary": [10, 20, 30, 10, 20, 40, 50, 10, 60, 10],
        "job": ["cook", "clerk", "cook", "cook", "judge", "cook", "clerk", "cook", "cook", "cook"],
        "granted": ["no", "yes"] * 5,
    }
)
GRANTED = Outcome(
    column="granted",
    kind=BinaryKind(negative="no", positive="yes"),
    codes=(TABLE["granted"] == "no").to_numpy(),
)
REFUSED = (TABLE["salary"] < 20).tolist()
# seconds that no test waits for, and retries that follow at once
SWIFT: dict[str, Any] = {"timeout": 2, "deadline": 20, "retries": 3}

Answer = tuple[int, dict[str, str], bytes]
TOKEN: dict[str, Any] = {"token_variable": "BANK_TOKEN"}


@dataclass
class Endpoint:
    """A local server: what it was sent, and how it answers each request."""

    respond: Callable[[Any], Answer]
    port: int = 0
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    scripted: list[Callable[[Any], Answer]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/credit"

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for body in self.bodies for row in json.loads(body)]

    def maker(self, **options: Any) -> HttpMaker:
        chosen: dict[str, Any] = {"columns": ("salary", "job"), **SWIFT, **options}
        return HttpMaker(url=self.url, **chosen)


def ok(answers: Any) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(answers).encode()


def by_salary(rows: Any) -> Answer:
    return ok(["yes" if row["salary"] >= 20 else "no" for row in rows])


def failing(status: int, **headers: str) -> Callable[[Any], Answer]:
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda rows: (status, said, f"stack trace with {SECRET}".encode())


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setattr("mutandis.rooms.endpoint._BACKOFF", 0.001)
    served = Endpoint(by_salary)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            served.bodies.append(body)
            served.headers.append(dict(self.headers))
            respond = served.scripted.pop(0) if served.scripted else served.respond
            try:
                status, headers, content = respond(json.loads(body))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                self.close_connection = True  # the other side did not wait

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    server.shutdown()
    server.server_close()
    thread.join(10)


def refusal(maker: Any, table: pd.DataFrame = TABLE) -> str:
    with pytest.raises(DecisionError) as caught:
        decide(maker, table, GRANTED)
    message = str(caught.value)
    assert SECRET not in message
    assert "Jane" not in message
    return message


# --- what it is asked -----------------------------------------------------------------------------


def test_each_distinct_row_is_asked_once_with_the_listed_columns_only(endpoint: Endpoint) -> None:
    maker = endpoint.maker()
    assert decide(maker, TABLE, GRANTED).tolist() == REFUSED
    assert endpoint.rows == TABLE[["salary", "job"]].drop_duplicates().to_dict("records")
    assert SECRET.encode() not in b"".join(endpoint.bodies)
    # again, with a column that has become a float: nothing new to ask
    moved = TABLE.assign(salary=TABLE["salary"].astype(float))
    moved.loc[1, "salary"] = 19.5
    refused = decide(maker, moved, GRANTED)
    assert refused.tolist() == (moved["salary"] < 20).tolist()
    assert endpoint.rows[7:] == [{"salary": 19.5, "job": "clerk"}]


def test_batches_are_as_large_as_agreed_and_progress_is_told(endpoint: Endpoint) -> None:
    told: list[tuple[int, int]] = []
    maker = with_progress(endpoint.maker(batch=3), lambda done, total: told.append((done, total)))
    assert decide(maker, TABLE, GRANTED).tolist() == REFUSED
    assert [len(json.loads(body)) for body in endpoint.bodies] == [3, 3, 1]
    assert told == [(0, 7), (3, 7), (6, 7), (7, 7)]


def test_rows_in_an_envelope(endpoint: Endpoint) -> None:
    endpoint.respond = lambda sent: by_salary(sent["instances"])
    decide(endpoint.maker(envelope="instances"), TABLE, GRANTED)
    assert list(json.loads(endpoint.bodies[0])) == ["instances"]


def test_the_token_comes_from_the_environment_and_is_shown_nowhere(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = endpoint.maker(**TOKEN)
    assert "BANK_TOKEN' is not set" in refusal(maker)
    assert not endpoint.bodies
    monkeypatch.setenv("BANK_TOKEN", " s3cret\n")
    decide(maker, TABLE, GRANTED)
    assert endpoint.headers[0]["Authorization"] == "Bearer s3cret"
    endpoint.respond = failing(401)
    other = endpoint.maker(**TOKEN, token_header="X-Api-Key")  # noqa: S106
    message = refusal(other)
    assert endpoint.headers[-1]["X-Api-Key"] == "s3cret"
    assert "answered 401 (Unauthorized)" in message
    assert "Check the token" in message
    shown = f"{message} {maker!r} {maker.describe()} {maker.queries}"
    assert "s3cret" not in shown
    monkeypatch.setenv("BANK_TOKEN", "s3cret\r\nX-Evil: 1")
    assert "characters that are not allowed in a token" in refusal(endpoint.maker(**TOKEN))


def test_only_what_is_meant_is_sent_and_to_no_other_address(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # what an HTTP client does unasked: proxies and passwords of the environment, cookies, logs
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    cookie = {"Set-Cookie": "session=s3cret; Path=/", "Content-Type": "application/json"}
    endpoint.respond = lambda rows: (200, cookie, by_salary(rows)[2])
    caplog.set_level("INFO")
    url = f"{endpoint.url}?client=s3cret"
    maker = HttpMaker(url=url, columns=("salary", "job"), batch=4, **SWIFT)
    assert decide(maker, TABLE, GRANTED).tolist() == REFUSED
    assert [sorted(sent) for sent in endpoint.headers] == [
        ["Accept", "Accept-Encoding", "Content-Length", "Content-Type", "Host", "User-Agent"]
    ] * 2
    assert endpoint.headers[0]["Accept-Encoding"] == "identity"
    assert "s3cret" not in caplog.text


def test_scores_need_a_threshold_and_a_threshold_needs_scores(endpoint: Endpoint) -> None:
    endpoint.respond = lambda rows: ok({"scores": [row["salary"] / 100 for row in rows]})
    assert decide(with_threshold(endpoint.maker(), 0.2), TABLE, GRANTED).tolist() == REFUSED
    below = with_threshold(endpoint.maker(), 0.2, favourable="below")
    assert decide(below, TABLE, GRANTED).tolist() == [not refused for refused in REFUSED]
    assert "Declare a threshold" in refusal(endpoint.maker())
    endpoint.respond = lambda rows: ok({"decisions": ["yes"] * len(rows)})
    assert decide(endpoint.maker(), TABLE, GRANTED).tolist() == [False] * 10
    assert "Leave the threshold out" in refusal(with_threshold(endpoint.maker(), 0.2))
    endpoint.respond = lambda rows: ok({"predictions": [row["salary"] for row in rows]})
    assert decide(with_threshold(endpoint.maker(), 20), TABLE, GRANTED).tolist() == REFUSED


def test_columns_that_cannot_be_sent(endpoint: Endpoint) -> None:
    gaps = TABLE.assign(salary=[np.nan, np.inf, *range(8)])
    with pytest.raises(MissingValuesError, match="'salary' has 2 missing or infinite"):
        decide(endpoint.maker(), gaps, GRANTED)
    with pytest.raises(UnknownColumnError, match="Did you mean 'salary'"):
        decide(endpoint.maker(columns=("salry",)), TABLE, GRANTED)
    odd = TABLE.assign(job=[complex(0, 1)] * 10)
    assert "'job' holds values of type complex" in refusal(endpoint.maker(), odd)
    assert not endpoint.bodies


# --- failures that pass ---------------------------------------------------------------------------


def test_errors_of_the_server_are_tried_again(endpoint: Endpoint) -> None:
    endpoint.scripted = [failing(500), failing(503), failing(429, Retry_After="0"), by_salary]
    maker = endpoint.maker(batch=5)
    assert decide(maker, TABLE, GRANTED).tolist() == REFUSED
    lines = list(query_records(maker))
    assert [line["status"] for line in lines] == [500, 503, 429, 200, 200]
    assert [line["attempt"] for line in lines] == [1, 2, 3, 4, 1]
    assert [(line["batch"], line["rows"]) for line in lines] == [(1, 5)] * 4 + [(2, 2)]
    assert lines[3]["request_sha256"] == hashlib.sha256(endpoint.bodies[3]).hexdigest()
    answer = json.dumps(["no", "yes", "yes", "yes", "yes"]).encode()
    assert lines[3]["answer_sha256"] == hashlib.sha256(answer).hexdigest()
    assert all(line["seconds"] >= 0 and line["time"].endswith("+00:00") for line in lines)
    assert "salary" not in json.dumps(lines)
    assert "cook" not in json.dumps(lines)


def test_a_server_that_says_when_to_come_back_is_heeded(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("mutandis.rooms.endpoint.sleep", waits.append)
    monkeypatch.setattr("mutandis.rooms.endpoint._BACKOFF", 0.5)
    endpoint.scripted = [failing(429, Retry_After="7"), failing(503, Retry_After="86400")]
    policy: dict[str, Any] = {"timeout": 5, "deadline": 100, "retries": 3}
    decide(endpoint.maker(**policy), TABLE, GRANTED)
    assert waits == [7, 60]
    endpoint.scripted = [failing(500)] * 3
    decide(endpoint.maker(**policy), TABLE, GRANTED)
    for wait, longest in zip(waits[2:], (0.5, 1, 2), strict=True):
        assert longest / 2 <= wait <= longest


def test_a_wait_beyond_the_deadline_is_not_begun(endpoint: Endpoint) -> None:
    endpoint.respond = failing(429, Retry_After="30")
    policy: dict[str, Any] = {"timeout": 1, "deadline": 5, "retries": 3}
    started = time.monotonic()
    assert "did not finish within 5 seconds; batch 1" in refusal(endpoint.maker(**policy))
    assert time.monotonic() - started < 4
    assert len(endpoint.bodies) == 1


# --- failures that do not -------------------------------------------------------------------------


def test_errors_without_end(endpoint: Endpoint) -> None:
    endpoint.respond = failing(500)
    message = refusal(endpoint.maker())
    origin = f"http://127.0.0.1:{endpoint.port}"
    assert f"endpoint {origin} answered 500 (Internal Server Error)" in message
    assert "Batch 1 (7 rows) was sent 4 times" in message
    assert len(endpoint.bodies) == 4


@pytest.mark.parametrize(
    ("status", "hint"),
    [(400, "check columns"), (404, "Check the address"), (413, "smaller batches"), (418, "418")],
)
def test_what_is_refused_is_not_sent_again(endpoint: Endpoint, status: int, hint: str) -> None:
    endpoint.respond = failing(status)
    message = refusal(endpoint.maker())
    assert f"answered {status}" in message
    assert hint in message
    assert len(endpoint.bodies) == 1


def test_a_slow_endpoint(endpoint: Endpoint) -> None:
    done = threading.Event()

    def slow(rows: Any) -> Answer:
        done.wait(5)
        return by_salary(rows)

    endpoint.respond = slow
    policy: dict[str, Any] = {"timeout": 0.1, "deadline": 5, "retries": 1}
    started = time.monotonic()
    message = refusal(endpoint.maker(**policy))
    done.set()
    assert time.monotonic() - started < 3
    assert "gave no answer: time-out. Batch 1 (7 rows) was sent 2 times" in message


def test_an_answer_that_trickles_in_is_cut_off() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def trickle() -> None:
        with listener, listener.accept()[0] as connection:
            connection.recv(65_536)
            try:
                for _ in range(100):
                    connection.sendall(b"H")
                    time.sleep(0.05)
            except OSError:
                pass

    thread = threading.Thread(target=trickle)
    thread.start()
    policy: dict[str, Any] = {"timeout": 0.4, "deadline": 5, "retries": 0}
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    started = time.monotonic()
    message = refusal(HttpMaker(url=url, columns=("salary",), **policy))
    assert time.monotonic() - started < 3
    thread.join(10)
    assert "gave no answer: time-out" in message


def test_a_connection_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutandis.rooms.endpoint._BACKOFF", 0.001)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    maker = HttpMaker(url=f"http://127.0.0.1:{port}/", columns=("salary",), **SWIFT)
    message = refusal(maker)
    assert "gave no answer: connection refused" in message
    assert "4 times" in message
    assert [query["answer_sha256"] for query in maker.queries] == [None] * 4


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("http://elsewhere.example/credit?v=s3cret", "http://elsewhere.example"),
        ("http://elsewhere.example/credit?key=s3cret", "another address"),
        ("/credit/", "another address"),
    ],
)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirection_is_not_followed(
    endpoint: Endpoint, status: int, location: str, shown: str
) -> None:
    endpoint.respond = failing(status, Location=location)
    message = refusal(endpoint.maker())
    assert f"redirects to {shown}" in message
    assert "s3cret" not in message
    assert len(endpoint.bodies) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{not json", "returned something that is not JSON"),
        (f"<html><body>{SECRET}</body></html>".encode(), "an HTML or XML page"),
        (b"", "returned nothing"),
        (b"\x80\x81", "returned something that is not JSON"),
        (b"[" * 100_000, "returned something that is not JSON"),
        (b"[NaN, NaN, NaN, NaN, NaN, NaN, NaN]", "returned something that is not JSON"),
        (b'"yes"', "str where a list is needed"),
        (f'{{"error": "{SECRET}"}}'.encode(), "an object without 'decisions' or 'scores'"),
        (b'["yes", "no"]', "2 answers to a batch of 7 rows"),
        (b'["yes", "no", null, null, "no", "no", "no"]', "no answer (null) in 2 of 7 rows"),
        (b'[["yes"], "no", "no", "no", "no", "no", "no"]', "a value of type list"),
        (b'["yes", "no", "no", "perhaps", "no", "no", "no"]', "distinct answers"),
        (b"[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]", "distinct answers"),
    ],
)
def test_garbage(endpoint: Endpoint, body: bytes, said: str) -> None:
    endpoint.respond = lambda rows: (200, {}, body)
    assert said in refusal(endpoint.maker())
    assert len(endpoint.bodies) == 1


# --- rows as JSON ---------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(-5, 5), st.floats(-3, 3, allow_nan=False)),
            st.text(max_size=3),
            st.booleans(),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_rows_read_back_as_they_were(rows: list[tuple[float, str, bool]]) -> None:
    names = ("a", 'b"', "c")
    frame = pd.DataFrame(rows, columns=list(names))
    texts, places = distinct_rows(frame, names)
    assert len(set(texts)) == len(texts)
    read = [json.loads(texts[place]) for place in places.tolist()]
    assert read == [dict(zip(names, row, strict=True)) for row in rows]


def test_values_of_other_types() -> None:
    frame = pd.DataFrame(
        {
            "price": [Decimal("1.5"), Decimal(2)],
            "born": [dt.date(1970, 5, 17)] * 2,
            "kind": pd.Categorical(["a", "b"]),
            "big": np.array([2**60, 2**60 + 1]),
        }
    )
    texts, _ = distinct_rows(frame, ("price", "born", "kind", "big"))
    assert json.loads(texts[0]) == {"price": 1.5, "born": "1970-05-17", "kind": "a", "big": 2**60}
    assert json.loads(texts[1])["big"] == 2**60 + 1


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


def _read_batch(connection: socket.socket) -> None:
    """Read a request whose body is an empty list."""
    asked = b""
    while not asked.endswith(b"[]") and (part := connection.recv(65_536)):
        asked += part


@contextmanager
def _connected(
    listener: socket.socket, serve: Callable[[], None], *, scheme: str
) -> Iterator[Transport]:
    """Serve in a thread, and connect to it; both end with the block."""
    thread = threading.Thread(target=serve)
    thread.start()
    address = Address.parse(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/")
    transport = Transport(address, {}, TIMEOUT)
    try:
        yield transport
    finally:
        transport.close()
        thread.join(10)
        listener.close()


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
                    _read_batch(connection)
                    connection.sendall(answer)

    with _connected(listener, serve, scheme="http") as transport:
        yield transport


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
                    _read_batch(encrypted)
                    encrypted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")

    with _connected(listener, serve, scheme="https") as transport:
        yield transport


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
