"""How a column of any type becomes numbers or levels."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data.columns import (
    Categories,
    Numbers,
    describe_levels,
    factorise,
    in_order,
    read_categories,
    read_column,
    read_numbers,
)
from mutandis.errors import KindError
from mutandis.frames import open_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import narwhals as nw

    AsFrame = Callable[[Mapping[str, Sequence[Any]]], Any]

SECRET = "SECRET-NAME"
DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12)  # noqa: DTZ001 - tables hold naive times


def series_of(values: Any) -> nw.Series[Any]:
    return open_frame(pd.DataFrame({"x": values}))["x"]


def polars_series(values: Any, dtype: Any = None) -> nw.Series[Any]:
    return open_frame(pl.DataFrame({"x": pl.Series(values, dtype=dtype, strict=False)}))["x"]


def arrow_series(values: Any, dtype: Any = None) -> nw.Series[Any]:
    return open_frame(pa.table({"x": pa.array(values, dtype)}))["x"]


def test_names_are_read_from_every_frame(as_frame: AsFrame) -> None:
    column = read_column(open_frame(as_frame({"x": ["cook", "clerk", None, "cook"]}))["x"])
    assert isinstance(column, Categories)
    assert column.levels == ("clerk", "cook")
    assert column.codes.dtype == np.int32
    assert column.codes.tolist() == [1, 0, -1, 1]
    assert column.missing().tolist() == [False, False, True, False]
    assert column.counts().tolist() == [1, 2]


def test_truth_values_are_names_unless_declared_as_numbers(as_frame: AsFrame) -> None:
    series = open_frame(as_frame({"x": [True, False, True]}))["x"]
    column = read_column(series)
    assert isinstance(column, Categories)
    assert column.levels == (False, True)
    assert column.codes.tolist() == [1, 0, 1]
    assert read_numbers(series).values.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "series",
    [
        series_of(pd.array([3, None, 2], dtype="Int64")),
        series_of(pd.array([3, None, 2], dtype="Float64")),
        series_of(pd.array([3, None, 2], dtype="int64[pyarrow]")),
        series_of(pd.Series([3, None, 2], dtype=pd.ArrowDtype(pa.decimal128(9)))),
        series_of(pd.Series([3, None, 2], dtype=object)),
        series_of(pd.Series([3, pd.NA, 2.0], dtype=object)),
        series_of(pd.Series([Decimal("3.0"), None, Decimal(2)], dtype=object)),
        series_of(pd.Series([Decimal("3.0"), float("nan"), 2], dtype=object)),
        series_of(pd.Series([np.int8(3), np.nan, np.float32(2)], dtype=object)),
        polars_series([3, None, 2]),
        polars_series([3.0, float("nan"), 2.0]),
        polars_series([3, None, 2], pl.UInt8),
        polars_series([Decimal("3.0"), None, Decimal("2.0")]),
        arrow_series([3, None, 2]),
        arrow_series([3, None, 2], pa.float32()),
        arrow_series([Decimal(3), None, Decimal(2)], pa.decimal128(9, 2)),
    ],
    ids=lambda series: (
        f"{series.implementation.name}-{series.to_native().dtype}"
        if hasattr(series.to_native(), "dtype")
        else f"{series.implementation.name}-{series.to_native().type}"
    ),
)
def test_every_type_of_number_becomes_float64(series: nw.Series[Any]) -> None:
    for column in (read_column(series), read_numbers(series)):
        assert isinstance(column, Numbers)
        assert column.values.dtype == np.float64
        np.testing.assert_array_equal(column.values, [3.0, np.nan, 2.0])
        assert column.missing().tolist() == [False, True, False]


@pytest.mark.parametrize(
    "series",
    [
        series_of(pd.Series(["b", "a", "b"], dtype=object)),
        series_of(pd.Series(["b", "a", "b"], dtype="string[python]")),
        series_of(pd.Series(["b", "a", "b"], dtype="string[pyarrow]")),
        series_of(pd.Series(["b", "a", "b"], dtype=pd.ArrowDtype(pa.string()))),
        series_of(pd.Categorical(["b", "a", "b"], categories=["c", "b", "a"])),
        series_of(pd.Categorical(["b", "a", "b"], categories=["b", "a"], ordered=True)),
        polars_series(["b", "a", "b"]),
        polars_series(["b", "a", "b"], pl.Categorical),
        polars_series(["b", "a", "b"], pl.Enum(["c", "b", "a"])),
        arrow_series(["b", "a", "b"], pa.large_string()),
        arrow_series(pa.array(["b", "a", "b"]).dictionary_encode()),
    ],
)
def test_every_type_of_name_becomes_sorted_levels(series: nw.Series[Any]) -> None:
    column = read_column(series)
    assert isinstance(column, Categories)
    # a category that no row has is no level
    assert column.levels == ("a", "b")
    assert column.codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("series", "levels"),
    [
        (series_of(pd.array([1, None, -1], dtype="Int64")), (-1, 1)),
        (series_of(pd.array([True, None, False], dtype="boolean")), (False, True)),
        (series_of(pd.Series([True, None, False], dtype=object)), (False, True)),
        (series_of(pd.Categorical([1, None, -1])), (-1, 1)),
        (polars_series([1, None, -1]), (-1, 1)),
        (polars_series([True, None, False]), (False, True)),
        (arrow_series([1, None, -1]), (-1, 1)),
        (arrow_series([True, None, False]), (False, True)),
    ],
)
def test_a_missing_value_does_not_change_the_type_of_the_others(
    series: nw.Series[Any], levels: tuple[Any, ...]
) -> None:
    column = read_categories(series)
    assert column.levels == levels
    assert [type(level) for level in column.levels] == [type(level) for level in levels]
    assert column.codes.tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    "make", [lambda ids: series_of(pd.array(ids)), polars_series, arrow_series]
)
def test_a_missing_value_does_not_merge_large_numbers(make: Callable[[Any], Any]) -> None:
    ids = [2**53, None, 2**53 + 1]
    column = read_categories(make(ids))
    assert column.levels == (2**53, 2**53 + 1)
    assert column.codes.tolist() == [0, -1, 1]


def test_a_column_without_any_value_is_missing_not_misread(as_frame: AsFrame) -> None:
    series = open_frame(as_frame({"x": [None, None]}))["x"]
    assert read_column(series).missing().all()
    assert read_numbers(series).missing().all()
    assert read_categories(series, ("low", "high")).missing().all()


@pytest.mark.parametrize("value", [DAY, NOON, dt.timedelta(days=1)])
def test_dates_are_neither_numbers_nor_names_by_themselves(as_frame: AsFrame, value: Any) -> None:
    series = open_frame(as_frame({"born": [value, value]}))["born"]
    with pytest.raises(KindError, match=r"'born' holds .* Declare it as nominal"):
        read_column(series)
    with pytest.raises(KindError, match="'born' is to be read as numbers but has type"):
        read_numbers(series)


@pytest.mark.parametrize("value", [DAY, dt.time(12)])
def test_dates_among_objects_are_recognised(value: Any) -> None:
    series = series_of(pd.Series([None, "never", value], dtype=object))
    with pytest.raises(KindError, match="'x' holds dates or times"):
        read_column(series)


@pytest.mark.parametrize(
    "series",
    [
        series_of([SECRET, "12"]),
        series_of(pd.Series([1, SECRET], dtype=object)),
        series_of(pd.Series([1, "2"], dtype=object)),
        series_of(pd.Series([1, 10**400], dtype=object)),
        series_of(pd.Categorical([SECRET, SECRET])),
        series_of(pd.Categorical([SECRET, SECRET], ordered=True)),
        series_of([1j, 2j]),
        polars_series([SECRET], pl.Categorical),
        polars_series([SECRET], pl.Enum([SECRET])),
        polars_series([[1.0]]),
        arrow_series([SECRET]),
        arrow_series(pa.array([SECRET]).dictionary_encode()),
    ],
)
def test_what_is_no_number_is_refused_without_being_quoted(series: nw.Series[Any]) -> None:
    with pytest.raises(KindError, match="'x' is to be read as numbers but has type") as caught:
        read_numbers(series)
    assert SECRET not in str(caught.value)
    assert "SECRET" not in repr(caught.value.__context__)


@pytest.mark.parametrize(
    "series",
    [
        series_of(pd.Series([[SECRET], [SECRET]], dtype=object)),
        polars_series([[SECRET]]),
        polars_series([{"name": SECRET}]),
        arrow_series([[SECRET]]),
        arrow_series([{"name": SECRET}]),
    ],
)
def test_nested_values_are_neither_numbers_nor_names(series: nw.Series[Any]) -> None:
    for read in (read_column, read_categories):
        with pytest.raises(KindError, match="'x'") as caught:
            read(series)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("largest", [2**53, -(2**53), 2**62])
def test_whole_numbers_that_float64_confuses_are_refused(as_frame: AsFrame, largest: int) -> None:
    with pytest.raises(KindError, match=r"'account' has whole numbers of 2\*\*53 or more"):
        read_column(open_frame(as_frame({"account": [1, largest]}))["account"])


def test_undeclared_levels_are_counted_not_quoted(as_frame: AsFrame) -> None:
    series = open_frame(as_frame({"grade": ["low", SECRET, "high", SECRET, None]}))["grade"]
    with pytest.raises(KindError, match=r"'grade' has 2 rows with values .* not among") as caught:
        read_categories(series, ("low", "high"))
    assert SECRET not in str(caught.value)
    assert "['low', 'high']" in str(caught.value)


@given(st.lists(st.one_of(st.none(), st.integers(-3, 3), st.sampled_from(["a", "b", ""]))))
def test_codes_give_the_values_back(values: list[Any]) -> None:
    series = series_of(pd.Series(values, dtype=object))
    column = read_categories(series)
    assert [None if code < 0 else column.levels[code] for code in column.codes] == values
    assert set(column.levels) == set(values) - {None}
    codes, found = factorise(series)
    assert found == list(dict.fromkeys(value for value in values if value is not None))
    assert [None if code < 0 else found[code] for code in codes] == values


def test_numbers_sort_by_size_whatever_their_type() -> None:
    assert in_order([Decimal(10), "10", Decimal(9), 2.5]) == (2.5, Decimal(9), Decimal(10), "10")


@pytest.mark.parametrize(("value", "code"), [(-1, 0), (-1.0, 0), (Decimal(1), 1), (True, 1)])
def test_a_level_is_found_by_equality(value: object, code: int) -> None:
    assert Categories(np.array([0, 1]), (-1, 1)).code_of(value) == code
    assert Categories(np.array([0, 1]), (-1.0, 1.0)).code_of(value) == code


@pytest.mark.parametrize("value", ["-1", 0, None, float("nan"), pd.NA, np.array([1, -1])])
def test_what_is_no_level_has_no_code(value: object) -> None:
    assert Categories(np.array([0, 1]), (-1, 1)).code_of(value) is None


def test_columns_are_read_only_copies() -> None:
    memory = np.array([1.0, 2.0])
    series = open_frame(pd.DataFrame({"x": memory}, copy=False))["x"]
    numbers, names = read_numbers(series), read_categories(series)
    memory[0] = 99.0
    assert numbers.values.tolist() == [1.0, 2.0]
    assert names.levels == (1.0, 2.0)
    for array in (numbers.values, names.codes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


@pytest.mark.parametrize(
    ("codes", "levels", "said"),
    [
        ([0, 0, 1], ("no", SECRET), "'no' and 1 more that a single row has"),
        ([0, 0, 1, 2], ("no", SECRET, "x"), "'no' and 2 more that a single row each has"),
        ([0, 1], ("no", SECRET), "not shown: no two rows share one"),
        ([0, 0, -1], ("no", SECRET), "'no'"),
        ([0, 0, 1, 1], ("no", "yes"), "'no', 'yes'"),
        (list(range(11)) * 2, tuple(f"{SECRET}{place}" for place in range(11)), "too many to show"),
    ],
)
def test_levels_that_may_identify_somebody_are_not_shown(
    codes: list[int], levels: tuple[str, ...], said: str
) -> None:
    assert describe_levels(Categories(np.array(codes), levels)) == said
