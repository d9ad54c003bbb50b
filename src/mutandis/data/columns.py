"""The two forms a column takes inside: numbers, and codes into named levels.

Both are read-only, and copies unless shared memory is asked for. Nothing that mutandis does can
change the caller's table, and nothing the caller does later can change a result.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mutandis.errors import KindError
from mutandis.mapped import empty, in_file, take

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import narwhals as nw
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Columns = Mapping[str, "Column"]

_T = TypeVar("_T", bound=np.generic)

# A column with more values than this is neither an outcome nor a status; it may hold names.
_SHOWN_LEVELS = 10

INEXACT = 2**53
"""From here on float64 no longer distinguishes neighbouring integers."""

# Rows processed together, so that temporary arrays stay small.
_AT_ONCE = 2**18

_REMEDY = "Convert it to numbers, or declare it as nominal or ordinal."
_REMEDY_DATE = (
    "Convert it to numbers (days since a fixed date, for example), or declare it as nominal."
)


def frozen(array: NDArray[_T]) -> NDArray[_T]:
    """Return a read-only view of the array."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of float64 values; NaN marks a missing one."""

    values: NDArray[np.float64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(np.asarray(self.values, dtype=np.float64)))

    @property
    def data(self) -> NDArray[np.float64]:
        return self.values

    def with_data(self, data: NDArray[Any]) -> Numbers:
        return Numbers(data)

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: NDArray[Any]) -> Numbers:
        return Numbers(take(self.values, rows))

    def missing(self) -> NDArray[np.bool_]:
        return ~np.isfinite(self.values)


@dataclass(frozen=True, slots=True)
class Categories:
    """A column of codes into `levels`; -1 marks a missing value."""

    codes: NDArray[np.int32]
    levels: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", frozen(np.asarray(self.codes, dtype=np.int32)))

    @property
    def data(self) -> NDArray[np.int32]:
        return self.codes

    def with_data(self, data: NDArray[Any]) -> Categories:
        return Categories(data, self.levels)

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: NDArray[Any]) -> Categories:
        return Categories(take(self.codes, rows), self.levels)

    def missing(self) -> NDArray[np.bool_]:
        return self.codes < 0

    def counts(self) -> NDArray[np.intp]:
        """Count the rows of each level; a level can have none left when rows were dropped."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.levels))

    def occurring(self) -> tuple[Any, ...]:
        """List the levels that some row has."""
        return tuple(self.levels[code] for code in np.flatnonzero(self.counts()))

    def look_up(self, values: Mapping[Any, Any], *, otherwise: Any) -> NDArray[Any]:
        """Return each row the value of its level; `otherwise` if it has none, or is missing."""
        # one more slot at the end, which the code -1 of a missing value falls into
        by_code = [*(values.get(level, otherwise) for level in self.levels), otherwise]
        return np.array(by_code)[self.codes]

    def code_of(self, value: object) -> int | None:
        """Find the code of a level; None if there is no such level."""
        return next((code for code, level in enumerate(self.levels) if _same(level, value)), None)

    def filled(self, code: int) -> Categories:
        """Return a column of the same length that holds one level throughout, without memory."""
        return Categories(np.broadcast_to(np.int32(code), len(self.codes)), self.levels)


Column = Numbers | Categories


def plain_values(column: Column) -> NDArray[Any]:
    """Return values as they were read: numbers, or levels with None where one is missing."""
    if isinstance(column, Numbers):
        return column.values
    return np.array([*map(plain_value, column.levels), None], dtype=object)[column.codes]


def write_number(number: float) -> str:
    """Write a number of a table for people to read."""
    return f"{number:,.0f}" if abs(number) >= 10_000 else f"{number:,.6g}"


def describe_levels(categories: Categories) -> str:
    """List the levels that occur, as far as an error message may show them."""
    # A column named by mistake may hold people's names. So a value is shown only if there are few
    # different ones, and if at least two rows share it.
    counts = categories.counts()
    if np.count_nonzero(counts) > _SHOWN_LEVELS:
        return "too many to show"
    shared = [
        repr(level) for level, count in zip(categories.levels, counts, strict=True) if count > 1
    ]
    alone = int(np.count_nonzero(counts == 1))
    if not alone:
        return ", ".join(shared)
    if not shared:
        return "not shown: no two rows share one"
    each = "a single row has" if alone == 1 else "a single row each has"
    return f"{', '.join(shared)} and {alone} more that {each}"


def read_column(series: nw.Series[Any], *, share: bool = False) -> Column:
    """Read a series whose kind was not declared: numbers, or names; refuse to guess at the rest."""
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_numeric():
        return read_numbers(series, share=share)
    if dtype in {nw.Boolean, nw.String, nw.Categorical} or dtype == nw.Enum or _is_void(series):
        return read_categories(series)
    if dtype == nw.Object:
        held = series.drop_nulls().to_list()
        if not any(isinstance(value, date | time | timedelta) for value in held):
            numeric = all(
                _is_number(value) and not isinstance(value, bool | np.bool_) for value in held
            )
            return read_numbers(series, share=share) if numeric else read_categories(series)
        what = "dates or times"
    else:
        what = f"type {_type_name(dtype)}"
    raise KindError(
        f"Column {series.name!r} holds {what}, which could be read in more than one way. Declare "
        "it as nominal or ordinal, or convert it to numbers (days since a fixed date, for example)."
    )


def read_numbers(series: nw.Series[Any], *, share: bool = False) -> Numbers:
    """Read a series as float64; with `share`, as a view of its memory where that is possible."""
    import narwhals as nw

    dtype = series.dtype
    if _is_void(series):
        return Numbers(np.full(len(series), np.nan))
    if dtype.is_numeric() or dtype == nw.Boolean:
        # checked before the cast, which pyarrow would refuse with the value in its message
        if dtype.is_integer() and not -INEXACT < series.min() <= series.max() < INEXACT:
            raise KindError(
                f"Column {series.name!r} has whole numbers of 2**53 or more, which cannot be told "
                "apart as numbers. Rescale it, declare it as nominal, or leave it out."
            )
        values = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
        # the caller's memory is not shared unasked, and a cast to another type has left it
        return Numbers(in_file(values if share or dtype != nw.Float64 else values.copy()))
    if dtype == nw.Object and (numbers := _numbers_in(series)) is not None:
        return Numbers(numbers)
    text = dtype in {nw.String, nw.Categorical}
    found = f"text{_why_not_numbers(*factorise(series))}" if text else _type_name(dtype)
    raise KindError(
        f"Column {series.name!r} is to be read as numbers but has type {found}. "
        f"{_REMEDY_DATE if dtype.is_temporal() else _REMEDY}"
    )


def _why_not_numbers(codes: NDArray[Any], levels: Sequence[object]) -> str:
    """Continue "has type text" with what keeps text that nearly is numbers from being read so."""
    odd = np.array([not _is_numeral(str(level)) for level in levels], dtype=np.bool_)
    rows = int(np.append(odd, False)[codes].sum())  # a missing value is not odd
    if rows and all(_is_numeral(str(level).replace(",", ".")) for level in levels):
        return " (its numbers have a decimal comma: add decimal: ',' to the data of an audit file)"
    if not rows or odd.all():
        return ""
    hold = "row holds" if len(codes) == 1 else "rows holds" if rows == 1 else "rows hold"
    return (
        f" ({rows:,} of {len(codes):,} {hold} something that is not a number; if it means a "
        "missing value, say so where the table is read: 'missing_text' in an audit file)"
    )


def _is_numeral(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def read_categories(series: nw.Series[Any], levels: tuple[Any, ...] = ()) -> Categories:
    """Read a series as codes into its own sorted levels, or into the declared ones."""
    return number_levels(series.name, *factorise(series), levels)


def number_levels(
    name: str, codes: NDArray[np.signedinteger], found: Sequence[Any], levels: tuple[Any, ...] = ()
) -> Categories:
    """Return codes into levels as they were found other ones: into these sorted, or as declared."""
    ordered = levels or in_order(found)
    place = {level: code for code, level in enumerate(ordered)}
    unknown = [code for code, level in enumerate(found) if level not in place]
    if unknown:
        rows = int(np.isin(codes, unknown).sum())
        raise KindError(
            f"Column {name!r} has {rows} rows with values that are not among its declared "
            f"levels {list(levels)}. Declare every level that occurs, lowest first."
        )
    # one more slot at the end, so that code -1 (missing) maps to -1
    recode = np.array([*(place[level] for level in found), -1], dtype=np.int32)
    return Categories(_look_up(recode, codes), ordered)


def _look_up(values: NDArray[np.int32], codes: NDArray[np.signedinteger]) -> NDArray[np.int32]:
    """Return ``values[codes]``, without the full-width copy of the codes that numpy makes first."""
    found = empty(len(codes), np.int32)
    for start in range(0, len(codes), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        found[rows] = values[codes[rows]]
    return found


def in_order(levels: Iterable[Any]) -> tuple[Any, ...]:
    """Sort levels of any type: numbers first, then everything else by its text."""
    return tuple(sorted(levels, key=_sort_key))


def _sort_key(level: object) -> tuple[int, Any, str]:
    if isinstance(level, Real | Decimal):
        return 0, level, ""
    return 1, str(level), type(level).__name__


def factorise(series: nw.Series[Any]) -> tuple[NDArray[np.signedinteger], list[Any]]:
    """Return each distinct value a number, -1 where there is none, and list the values."""
    import pandas as pd
    from narwhals.dependencies import is_pandas_series

    native = series.to_native()
    if is_pandas_series(native) and isinstance(native.dtype, pd.CategoricalDtype):
        # the codes that a categorical has already
        return used_levels(native.cat.codes.to_numpy(), native.cat.categories.tolist())
    # A null would turn integers into floats on the way to numpy, and large ones into each other.
    held = series.drop_nulls() if series.null_count() else series
    try:
        codes, uniques = pd.factorize(held.to_numpy())
    except (TypeError, ValueError):
        raise KindError(
            f"Column {series.name!r} has type {_type_name(series.dtype)}, whose values cannot be "
            "compared. Use a column with one plain value per row."
        ) from None
    # the values are looked up in the table, where they still have their own type
    some_row = np.empty(len(uniques) + 1, dtype=np.intp)
    some_row[codes] = np.arange(len(codes))
    found = [plain_value(value) for value in held[some_row[:-1]].to_list()]
    if len(held) == len(series):
        return codes, found
    spread = np.full(len(series), -1, dtype=np.intp)
    spread[~series.is_null().to_numpy().astype(np.bool_)] = codes
    return spread, found


def used_levels(
    codes: NDArray[Any], categories: list[Any]
) -> tuple[NDArray[np.signedinteger], list[Any]]:
    """Leave out levels that no row has."""
    occurs = np.zeros(len(categories) + 1, dtype=np.bool_)
    for start in range(0, len(codes), _AT_ONCE):  # marking all at once would copy every code
        occurs[codes[start : start + _AT_ONCE]] = True
    occurs = occurs[:-1]
    if occurs.all():
        return codes, categories
    # one more at the end, where code -1 (missing) stays
    recode = np.append(np.cumsum(occurs) - 1, -1)
    return recode[codes], [level for level, used in zip(categories, occurs, strict=True) if used]


def _numbers_in(series: nw.Series[Any]) -> NDArray[np.float64] | None:
    """Read a column of Python numbers; None if it holds anything else, text of digits included."""
    held = series.drop_nulls().to_list()
    if not all(_is_number(value) for value in held):
        return None
    values = np.full(len(series), np.nan)
    try:
        values[~series.is_null().to_numpy().astype(np.bool_)] = [float(value) for value in held]
    except (OverflowError, ValueError):
        return None
    return values


def _is_void(series: nw.Series[Any]) -> bool:
    """Return whether a column has no values at all: then its type says nothing."""
    return series.null_count() == len(series)


def _is_number(value: object) -> bool:
    return isinstance(value, Real | Decimal | np.bool_)


def plain_value(value: Any) -> Any:
    """Return a NumPy scalar as a Python value."""
    return value.item() if isinstance(value, np.generic) else value


def is_number(value: object) -> bool:
    """Return whether a value is a finite number; a boolean is none."""
    try:
        return not isinstance(value, bool) and isinstance(value, Real) and isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def jsonable(value: Any) -> Any:
    """Return anything in the types that JSON and YAML have; what they have no type for, as text."""
    value = plain_value(value)
    if is_dataclass(value):
        return {each.name: jsonable(getattr(value, each.name)) for each in fields(value)}
    if hasattr(value, "items"):
        return {str(key): jsonable(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(part) for part in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)


def _same(level: object, value: object) -> bool:
    try:
        return bool(level == value)
    except (TypeError, ValueError):  # pandas' NA and arrays have no truth
        return False


def _type_name(dtype: object) -> str:
    """Name a type without its parameters: those of an Enum are values of the table."""
    return type(dtype).__name__
