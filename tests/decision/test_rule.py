"""Rules as decision makers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mutandis.data.formula import Formula
from mutandis.decision.rule import Rule
from mutandis.errors import (
    FormulaError,
    KindError,
    MissingValuesError,
    UnknownColumnError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PEOPLE: dict[str, list[Any]] = {
    "Annual Salary": [10, 20, 30, 40],
    "balance": [5.0, -1.0, 0.5, 2.0],
    "job": ["cook", "clerk", "clerk", "judge"],
    "owner": [True, False, True, False],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`Annual Salary` + 5 * balance > 30", [True, False, True, True]),
        ("job == 'clerk'", [False, True, True, False]),
        ("job != 'clerk' and not owner", [False, False, False, True]),
        ("owner", [True, False, True, False]),
        ("owner + (balance > 0) == 2", [True, False, True, False]),
        ("where(job == 'judge', balance > 100, `Annual Salary` >= 20)", [False, True, True, False]),
        ("1 > 2", [False, False, False, False]),
    ],
)
def test_a_rule_on_every_frame_type(
    as_frame: Callable[[Any], Any], text: str, expected: list[bool]
) -> None:
    decided = Rule.parse(text).decide(as_frame(PEOPLE))
    assert decided.dtype == np.bool_
    assert decided.tolist() == expected


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"job": pd.Series(["cook", "clerk"], dtype="category")}),
        pd.DataFrame({"job": pd.Series(["cook", "clerk"], dtype=object)}),
        pl.DataFrame({"job": pl.Series(["cook", "clerk"], dtype=pl.Categorical)}),
        pl.DataFrame({"job": pl.Series(["cook", "clerk"], dtype=pl.Enum(["cook", "clerk"]))}),
        pa.table({"job": pa.array(["cook", "clerk"]).dictionary_encode()}),
    ],
    ids=["pandas-category", "pandas-object", "polars-categorical", "polars-enum", "pyarrow"],
)
def test_names_of_every_type(frame: Any) -> None:
    assert Rule.parse("job == 'cook'").decide(frame).tolist() == [True, False]


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([1, 0], dtype="Int64"),
        pd.Series([1, 0], dtype="int8[pyarrow]"),
        pd.Series([1, 0], dtype="category"),
        pd.Series([1, 0], dtype=object),
        pd.Series([True, False]),
        pd.Series([True, False], dtype="boolean"),
    ],
    ids=lambda series: str(series.dtype),
)
def test_numbers_of_every_type(series: pd.Series[Any]) -> None:
    frame = pd.DataFrame({"code": series})
    assert Rule.parse("code == 1").decide(frame).tolist() == [True, False]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.Series([1, None], dtype="Int64")}),
        pd.DataFrame({"a": ["x", None]}),
        pd.DataFrame({"a": pd.Series([True, None], dtype="boolean")}),
        pl.DataFrame({"a": [1, None]}),
        pl.DataFrame({"a": ["x", None]}),
        pa.table({"a": [True, None]}),
    ],
)
def test_a_rule_needs_every_value(frame: Any) -> None:
    with pytest.raises(MissingValuesError, match="Column 'a' has 1 missing"):
        Rule.parse("a == 1").decide(frame)


def test_a_rule_reads_only_the_columns_it_names() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [None, None], "c": [object(), object()]})
    assert Rule.parse("a > 1").decide(frame).tolist() == [False, True]


def test_unknown_columns_come_with_the_nearest_known_one(as_frame: Callable[[Any], Any]) -> None:
    with pytest.raises(UnknownColumnError, match=r"'ballance'\. Did you mean 'balance'"):
        Rule.parse("ballance > 1").decide(as_frame(PEOPLE))


def test_a_rule_is_a_condition() -> None:
    with pytest.raises(FormulaError, match=r"'salary \+ 1' gives numbers"):
        Rule.parse("salary + 1")
    # what a lone column gives is known only from the table
    lone = Rule.parse("balance")
    with pytest.raises(FormulaError, match="'balance' gives numbers"):
        lone.decide(PEOPLE)


def test_whole_numbers_that_float64_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(KindError, match=r"2\*\*53"):
        Rule.parse("account == 9007199254740993").decide({"account": [2**53 + 1, 2**53]})


def test_a_rule_decides_from_columns_too() -> None:
    rule = Rule.parse("salary + 5 * balance > 15")
    assert rule.names == ("salary", "balance")
    columns = {"salary": np.array([10.0, 20.0]), "balance": np.array([1.0, -1.0])}
    assert rule.decide_columns(columns, rows=2).tolist() == [False, False]
    assert rule.decide_columns({**columns, "balance": np.array([2.0, 0.0])}, rows=2).all()


def test_rules_are_values() -> None:
    assert Rule.parse("a > 1") == Rule(Formula.parse("a > 1"))
    assert Rule.parse("a > 1") != Rule.parse("a > 2")
    assert len({Rule.parse("a > 1"), Rule.parse("a > 1")}) == 1
