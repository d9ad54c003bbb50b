"""Columns on their way back into the caller's own kind of table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories, Numbers, factorised, read_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    import narwhals as nw
    from numpy.typing import NDArray

    from mutandis.data.columns import Column

__all__ = ["as_read_by_rules", "with_exchanged"]


def with_exchanged(source: nw.DataFrame[Any], columns: Mapping[str, Column]) -> nw.DataFrame[Any]:
    """Copy a table with some of its columns exchanged; whoever gets it may write to it."""
    rest = [name for name in source.columns if name not in columns]
    changed = [_series_like(source[name], column) for name, column in columns.items()]
    if not changed or not rest:
        return source.with_columns(changed).clone()
    # the columns that go are not copied first
    return source.select(rest).clone().with_columns(changed).select(source.columns)


def as_read_by_rules(original: nw.Series[Any], column: Column, *, changed: bool) -> NDArray[Any]:
    """Give a column as a rule reads it from a table: numbers as float64, all else as it is there.

    Parameters
    ----------
    original
        The column in the table.
    column
        The same as it was read, or what it was exchanged for.
    changed
        Whether it was exchanged.
    """
    if isinstance(column, Numbers) and (changed or original.dtype.is_numeric()):
        return column.values
    series = _series_like(original, column) if changed else original
    return read_numbers(series).values if series.dtype.is_numeric() else series.to_numpy()


def _series_like(original: nw.Series[Any], column: Column) -> nw.Series[Any]:
    """Write a column as a series: numbers as float64, names in the original's own type."""
    import narwhals as nw

    if isinstance(column, Numbers):
        # a copy: not every library makes one
        values = column.values.copy()
        return nw.new_series(original.name, values, backend=original.implementation)
    return _names_like(original, column)


def _names_like(original: nw.Series[Any], column: Categories) -> nw.Series[Any]:
    """Write names in the original series' own type, by picking rows of it that hold them."""
    import narwhals as nw

    codes, own = factorised(original)
    some_row = np.full(len(own) + 1, -1)
    some_row[codes] = np.arange(len(codes))
    some_row[-1] = -1  # no row of its own has a level that is not there
    place = {level: code for code, level in enumerate(own)}
    picked = some_row[[place.get(level, -1) for level in column.levels]][column.codes]
    if (picked >= 0).all():
        return original[picked]
    # names that the table never had
    values = [column.levels[code] for code in column.codes.tolist()]
    fresh = nw.new_series(original.name, values, backend=original.implementation)
    if original.dtype == nw.Categorical:
        return fresh.cast(nw.Categorical())
    return fresh
