"""Rows of a table as JSON, each distinct one once."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import factorise
from mutandis.decision.selection import opened_columns
from mutandis.errors import DecisionError, MissingValuesError

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["distinct_rows"]

# whole numbers up to here are the same number as a float and as an integer
_EXACT = 2**53


def distinct_rows(frame: Any, columns: tuple[str, ...]) -> tuple[list[str], NDArray[np.intp]]:
    """Write each distinct row as a JSON object; say which one each row of the table is.

    A whole number is written without a decimal point whatever type its column has, so that a row
    that a counterfactual has not moved reads as it did.

    Parameters
    ----------
    frame
        Any dataframe.
    columns
        The columns that are written, and no others.

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
        own, texts = _encoded(opened[name])
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


def _encoded(series: nw.Series[Any]) -> tuple[NDArray[np.intp], list[str]]:
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
    """Write one value; nothing for a number that JSON does not know."""
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
            "know. Turn it into text or numbers, or leave it out of columns."
        )
    return json.dumps(value, ensure_ascii=False)
