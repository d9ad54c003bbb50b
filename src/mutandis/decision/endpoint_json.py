"""What an endpoint is sent and sends back: rows as JSON objects, answers as a JSON list."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mutandis.data.columns import factorise
from mutandis.decision.selection import opened_columns
from mutandis.errors import DecisionError, MissingValuesError

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["distinct_rows", "read_reply"]

# whole numbers up to here are the same number as a float and as an integer
_EXACT = 2**53
# some model servers call what they send back predictions, whatever it is
_EITHER = "predictions"


def distinct_rows(frame: Any, columns: tuple[str, ...]) -> tuple[list[str], NDArray[np.intp]]:
    """Write each distinct row as a JSON object; say which one each row of the table is.

    A whole number is written without a decimal point whatever type its column has, so that a row
    that a counterfactual has not moved reads as it did.

    Examples
    --------
    >>> table = {"salary": [10.0, 20.5, 10.0], "job": ["cook", "clerk", "cook"], "id": [1, 2, 3]}
    >>> texts, places = distinct_rows(table, ("salary", "job"))
    >>> texts
    ['{"salary":10,"job":"cook"}', '{"salary":20.5,"job":"clerk"}']
    >>> places.tolist()
    [0, 1, 0]
    """
    import pandas as pd

    opened = opened_columns(frame, columns)
    codes, fields = [], []
    for name in columns:
        own, texts = _encode(opened[name])
        codes.append(own)
        fields.append([f"{json.dumps(name)}:{text}" for text in texts])
    places = np.zeros(len(opened), dtype=np.int64)
    for own, texts in zip(codes, fields, strict=True):
        # numbered anew after each column, so that the product cannot grow beyond an int64
        places = pd.factorize(places * (len(texts) + 1) + own)[0]
    _, some_row = np.unique(places, return_index=True)
    rows = [
        "{" + ",".join(texts[own[row]] for own, texts in zip(codes, fields, strict=True)) + "}"
        for row in some_row.tolist()
    ]
    return rows, places


def _encode(series: nw.Series[Any]) -> tuple[NDArray[np.intp], list[str]]:
    """Give a code for each row, and the JSON of each code."""
    codes, found = factorise(series)
    texts = [_json(value, series.name) for value in found]
    bad = [code for code, text in enumerate(texts) if not text]
    missing = int(np.count_nonzero((codes < 0) | np.isin(codes, bad)))
    if missing:
        raise MissingValuesError(
            f"Column {series.name!r} has {missing} missing or infinite values, which cannot be "
            "sent to the endpoint. Complete them, or leave these rows out."
        )
    return codes, texts


def _json(value: Any, column: str) -> str:
    """Write one value; nothing for a number that JSON does not have."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        if not isfinite(value):
            return ""
        value = int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, date | datetime | time):
        value = value.isoformat()
    if not isinstance(value, str | int | float):
        raise DecisionError(
            f"Column {column!r} holds values of type {type(value).__name__}, which JSON does not "
            "have. Turn it into text or numbers, or leave it out of columns."
        )
    return json.dumps(value, ensure_ascii=False)


def read_reply(body: bytes, *, rows: int, scores: bool, label: str) -> list[Any]:
    """Read the answers to one batch: ``[…]``, ``{"decisions": […]}`` or ``{"scores": […]}``.

    Examples
    --------
    >>> read_reply(b'{"decisions": ["yes", "no"]}', rows=2, scores=False, label="endpoint")
    ['yes', 'no']
    """
    found = _parse(body, label=label)
    answers = _answers(found, scores=scores, label=label) if isinstance(found, dict) else found
    if not isinstance(answers, list):
        raise _unreadable(f"{type(answers).__name__} where a list is needed", label)
    if len(answers) != rows:
        raise DecisionError(
            f"The {label} returned {len(answers)} answers to a batch of {rows} rows. It must "
            "answer each row, in the order in which they were sent."
        )
    missing = sum(answer is None for answer in answers)
    if missing:
        raise DecisionError(
            f"The {label} gave no answer (null) in {missing} of {rows} rows of a batch. It must "
            "decide on every row: complete what it needs, or leave these rows out."
        )
    odd = next((answer for answer in answers if not _is_plain(answer, scores=scores)), None)
    if odd is not None:
        raise DecisionError(
            f"The {label} answered a row with {_kind(odd)}, not with "
            f"{'a number' if scores else 'a text, a number or a boolean'}."
            + (" A threshold is declared, which takes scores." if scores else "")
        )
    return answers


def _parse(body: bytes, *, label: str) -> Any:
    try:
        return json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        start = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        what = "something that is not JSON"
        if start == b"<":
            what = "an HTML or XML page, such as a login or an error page,"
        elif not start:
            what = "nothing"
        raise _unreadable(what, label) from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _answers(found: dict[str, Any], *, scores: bool, label: str) -> Any:
    wanted, other = ("scores", "decisions") if scores else ("decisions", "scores")
    for key in (wanted, _EITHER):
        if key in found:
            return found[key]
    if other in found:
        remedy = "Leave the threshold out." if scores else "Declare a threshold."
        raise DecisionError(f"The {label} returned {other}, but {wanted} are expected. {remedy}")
    raise _unreadable("an object without 'decisions' or 'scores'", label)


def _unreadable(what: str, label: str) -> DecisionError:
    return DecisionError(
        f"The {label} returned {what} instead of its answers. Expected is JSON: a list with one "
        'answer for each row, or {"decisions": […]} or {"scores": […]} with such a list. What it '
        "sent is not repeated here, because it may contain personal data."
    )


def _is_plain(answer: Any, *, scores: bool) -> bool:
    if scores:
        return isinstance(answer, int | float) and not isinstance(answer, bool)
    return isinstance(answer, str | int | float | bool)


def _kind(answer: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean"}
    return names.get(type(answer), "something else")
