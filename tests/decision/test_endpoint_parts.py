"""Addresses, headers, patience and rows of an endpoint, without a network."""

from __future__ import annotations

import datetime as dt
import json
from datetime import UTC
from decimal import Decimal
from email.utils import format_datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.decision import HttpMaker, RetryPolicy
from mutandis.decision.endpoint.address import Address
from mutandis.decision.endpoint.rows import distinct_rows
from mutandis.errors import DecisionError, MutandisWarning

URL = "https://models.bank.example/credit"


def refused(**options: Any) -> str:
    chosen: dict[str, Any] = {"url": URL, "columns": ("salary",), **options}
    with pytest.raises(DecisionError) as caught:
        HttpMaker(**chosen)
    return str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://bank.example/", "no web address"),
        ("file:///etc/passwd", "no web address"),
        ("bank.example/credit", "no web address"),
        ("https://", "no web address"),
        ("", "no web address"),
        ("https://bank.example:port/", "malformed"),
        ("https://bank.example:99999/", "malformed"),
        ("https://[::1/", "malformed"),
        ("https://bank.example/a b", "a space"),
        ("https://bank.example/\r\nX-Evil: 1", "a space"),
        ("https://bänk.example/", "beyond ASCII"),
        ("https://jane:s3cret@bank.example/", "a user name or a password"),
        ("https://s3cret@bank.example/", "a user name or a password"),
        ("https://bank.example/credit?v=2&key=s3cret", "holds 'key', which looks like a secret"),
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
    with pytest.raises(MutandisWarning, match=r"models\.invalid/credit unencrypted"):
        maker.decide({"salary": [1]})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": ()}, "no columns are"),
        ({"columns": "salary"}, "takes a list"),
        ({"columns": ("salary", "salary")}, "more than once"),
        ({"batch": 0}, "batch=0"),
        ({"batch": True}, "batch=True"),
        ({"headers": {"Authorization": "Bearer s3cret"}}, "is a secret"),
        ({"headers": {"x-api-key": "s3cret"}}, "is a secret"),
        ({"headers": {"Host": "elsewhere"}}, "set by mutandis"),
        ({"headers": {"X-A": "s3cret\r\nX-B: 2"}}, "does not allow"),
        ({"headers": {"X A": "1"}}, "does not allow"),
        ({"headers": {"X-A": 1}}, "Headers are texts"),
        ({"token_variable": ""}, "name of an environment variable"),
        ({"token_variable": "T", "token_header": "Host"}, "cannot carry a token"),
    ],
)
def test_settings_that_are_refused(options: dict[str, Any], said: str) -> None:
    message = refused(**options)
    assert said in message
    assert "s3cret" not in message


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"deadline": float("inf")},
        {"connect_timeout": True},
        {"backoff": "1"},
        {"retries": -1},
        {"retries": 1.5},
        {"retries": 1000},
    ],
)
def test_impossible_patience(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(DecisionError, match=f"{name}="):
        RetryPolicy(**options)


def test_a_date_to_come_back_at() -> None:
    patience = RetryPolicy(longest_wait=100)
    soon = dt.datetime.now(UTC) + dt.timedelta(seconds=30)
    wait = patience.wait(1, retry_after=format_datetime(soon, usegmt=True), jitter=0)
    assert 25 < wait <= 30
    past = soon - dt.timedelta(days=1)
    assert patience.wait(1, retry_after=format_datetime(past), jitter=0) == 0
    assert patience.wait(3, retry_after="soon", jitter=0) == 1.0  # 0.5 · 2² / 2


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
