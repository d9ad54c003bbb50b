"""Rows of a table as JSON, and JSON as answers."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mutandis.data.columns import factorise
from mutandis.decision.maker import select_columns
from mutandis.errors import DecisionError, MissingValuesError

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["distinct_rows", "read_reply"]

# whole numbers up to here are the same number as a float and as an integer
_EXACT = 2**53
# some model servers call any answer a prediction
_EITHER = "predictions"
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "a boolean"}


def distinct_rows(frame: Any, columns: tuple[str, ...]) -> tuple[list[str], NDArray[np.intp]]:
    """Write each distinct row as a JSON object; return its place for each row of the table."""
    import pandas as pd

    opened = select_columns(frame, columns)
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
    """Return a code for each row, and the JSON of each code."""
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
    """Write one value; empty for a number that JSON does not have."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        if not isfinite(value):
            return ""
        # so that a row that a counterfactual has not moved reads as it did
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
    """Read the answers to one batch: ``[…]``, ``{"decisions": […]}`` or ``{"scores": […]}``."""
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
    plain = (int, float) if scores else (str, int, float)
    for answer in answers:
        if not isinstance(answer, plain) or (scores and isinstance(answer, bool)):
            kind = _KINDS.get(type(answer), "something else")
            wanted = "a number" if scores else "a text, a number or a boolean"
            hint = " A threshold is declared, which takes scores." if scores else ""
            raise DecisionError(f"The {label} answered a row with {kind}, not with {wanted}.{hint}")
    return answers


def _parse(body: bytes, *, label: str) -> Any:
    try:
        return json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        start = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        what = "something that is not JSON" if start else "nothing"
        if start == b"<":
            what = "an HTML or XML page, such as a login or an error page,"
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
