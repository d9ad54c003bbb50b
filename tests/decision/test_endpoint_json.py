"""Rows of a table as JSON, each distinct one once."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from mutandis.decision.endpoint_json import distinct_rows


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
