"""Numbers, values and lists as documents write them."""

from __future__ import annotations

import numpy as np
import pytest

from mutandis.data.columns import jsonable
from mutandis.report.formatting import (
    count,
    distance,
    group_by_value,
    known,
    listed,
    p_value,
    percent,
    plural,
    signed,
    value,
)


def test_numbers() -> None:
    assert count(12345) == "12,345"
    assert percent(0.1684) == "16.8%"
    assert [signed(each) for each in (-0.25, 0.5, -0.0001)] == ["−0.250", "0.500", "0.000"]
    assert [p_value(each) for each in (0.0001, 0.0314)] == ["<0.001", "0.031"]
    assert distance(0.25) == "0.2500"
    assert plural(1, "row") == "1 row"
    assert plural(2000, "person", "people") == "2,000 people"


@pytest.mark.parametrize("write", [count, percent, signed, p_value, distance])
def test_what_is_missing_or_withheld_is_not_a_number(write: object) -> None:
    assert callable(write)
    assert [write(each) for each in (None, float("nan"), "withheld")] == ["–", "–", "withheld"]


def test_numpys_numbers_are_rounded_as_pythons() -> None:
    # numpy's own round() multiplies first, and gives 0.918
    assert signed(0.9175) == signed(np.float64(0.9175)) == "0.917"


def test_values() -> None:
    assert [value(each) for each in (1234567.891, "clerk", None)] == ["1,234,568", "clerk", "–"]
    assert [known(each) for each in (np.float64("nan"), np.int64(3), "a")] == [None, 3, "a"]


def test_lists() -> None:
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b"], last="or") == "a or b"
    assert (listed(["a"]), listed([])) == ("a", "")
    assert group_by_value({"a": "x", "b": "y", "c": "x"}) == {"x": ["a", "c"], "y": ["b"]}


def test_plain_data() -> None:
    shown = {1: (np.int64(2), float("inf")), "b": {np.str_("c")}, "d": Ellipsis}
    assert jsonable(shown) == {"1": [2, None], "b": ["c"], "d": "Ellipsis"}
