"""Rows of several arrays: records of arrays with the same rows, and groups of equal rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mutandis.mapped import empty, in_file, take, uses_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Rows = NDArray[np.intp]

# The golden ratio in 64 bits, and two multipliers of the finaliser of splitmix64 (Steele, Lea and
# Flood 2014, OOPSLA), which spread every bit of a number over all others.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
# rows per block, which stays in the processor's cache
_BLOCK = 1 << 14
# a sample of this size shows a duplicate, if rows repeat often enough to matter
_SAMPLE = 4096
# rows up to which sorting takes less time than loading pandas
_FEW = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRow:
    """Arrays, and records of arrays, with the same rows; other fields are the same for all rows."""

    def take(self, rows: NDArray[Any] | slice) -> Self:
        """Return the chosen rows, repeated as often as asked for."""
        return type(self)(**{f.name: _taken(getattr(self, f.name), rows) for f in fields(self)})

    def put(self, rows: NDArray[Any], others: Self) -> None:
        """Write others into some of the rows."""
        for f in fields(self):
            getattr(self, f.name)[rows] = getattr(others, f.name)

    def kept(self) -> Self:
        """Return the same, with large arrays in files where these are used."""
        if not uses_files():
            return self
        return type(self)(**{f.name: _kept(getattr(self, f.name)) for f in fields(self)})

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Concatenate row-wise; one part alone stays as it is."""
        if len(parts) == 1:
            return parts[0]
        return cls(**{f.name: _joined([getattr(p, f.name) for p in parts]) for f in fields(cls)})


def _taken(value: Any, rows: NDArray[Any] | slice) -> Any:
    if isinstance(value, np.ndarray):
        return take(value, rows)
    if isinstance(value, Mapping):
        return {name: _taken(each, rows) for name, each in value.items()}
    return value.take(rows) if isinstance(value, ByRow) else value


def _kept(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return in_file(value)
    if isinstance(value, Mapping):
        return {name: _kept(each) for name, each in value.items()}
    return value.kept() if isinstance(value, ByRow) else value


def _joined(values: Sequence[Any]) -> Any:
    first = values[0]
    if isinstance(first, np.ndarray):
        return in_file(np.concatenate(values))
    return first.join(values) if isinstance(first, ByRow) else first


def row_digests(keys: Sequence[NDArray[Any]]) -> NDArray[np.uint64]:
    """Mix the bits of each row, of at least one column of integers or booleans, into one number."""
    # each step can be undone, given the column: rows that differ in one column never collide, and
    # rows that differ in several collide once in 2**64 pairs
    digests = empty(len(keys[0]), np.uint64)
    for start in range(0, len(digests), _BLOCK):
        block = digests[start : start + _BLOCK]
        for key in keys:
            block ^= key[start : start + _BLOCK].astype(np.uint64, copy=False)
            block += _GOLDEN
            block ^= block >> np.uint64(30)
            block *= _FIRST
            block ^= block >> np.uint64(27)
            block *= _SECOND
            block ^= block >> np.uint64(31)
    return digests


def group_equal(*columns: NDArray[Any]) -> tuple[Rows, Rows]:
    """Group equal rows: each group's first row, in order of appearance, and each row's group."""
    digests = row_digests(columns)
    if _all_differ(digests):
        rows = np.arange(len(digests), dtype=np.intp)
        return rows, rows
    group = number_equal(digests)
    first = _first_rows(group)
    if all((column == column[first[group]]).all() for column in columns):
        return first, group
    # rows that differ have the same digest: one column after the other
    group = np.zeros(len(digests), dtype=np.intp)
    for column in columns:
        # two dense codes below n make one key below n squared
        codes = number_equal(column)
        group = number_equal(group * (int(codes.max(initial=0)) + 1) + codes)
    return _first_rows(group), group


def number_equal(values: NDArray[Any]) -> Rows:
    """Assign a number to equal values, in order of first appearance; a few are sorted for that."""
    if len(values) > _FEW:
        import pandas as pd

        return pd.factorize(values)[0].astype(np.intp, copy=False)
    order = np.argsort(values)
    ordered = values[order]
    is_new = np.ones(len(values), dtype=np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    first = np.minimum.reduceat(order, np.flatnonzero(is_new)) if len(order) else order
    place = np.empty(len(first), dtype=np.intp)
    place[np.argsort(first)] = np.arange(len(first))
    group = np.empty(len(values), dtype=np.intp)
    group[order] = place[np.cumsum(is_new) - 1]
    return group


def _all_differ(digests: NDArray[np.uint64]) -> bool:
    """Return whether no digest repeats; a sort takes less time and memory than a hash table."""
    for some in (digests[:_SAMPLE], digests):
        ordered = np.sort(some)
        if (ordered[1:] == ordered[:-1]).any():
            return False
    return True


def _first_rows(group: Rows) -> Rows:
    """Find the row at which each group appears: where the number is larger than all before."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(group), prepend=-1))
