"""Equal rows of several integer columns: one digest per row, groups of equal rows, and an order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.mapped import empty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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


def sort_order(keys: NDArray[Any]) -> NDArray[np.intp]:
    """Give the order of a stable sort: of many numbers in a quarter of the time of `np.argsort`.

    The place of each is written behind the leading bits of its key, and these numbers are sorted;
    keys that differ in the bits that had no room are then put in order by themselves.
    """
    if keys.dtype.kind not in "iuf" or len(keys) <= _FEW:
        return np.argsort(keys, kind="stable")
    bits, places = _rising_bits(keys), len(keys).bit_length()
    bits -= bits.min()
    shift = max(0, int(bits.max()).bit_length() + places - 64)
    bits >>= np.uint64(shift)
    bits <<= np.uint64(places)
    bits |= np.arange(len(keys), dtype=np.uint64)
    bits.sort()
    order = (bits & np.uint64((1 << places) - 1)).astype(np.intp)
    if not shift:
        return order
    bits >>= np.uint64(places)
    repeats = bits[1:] == bits[:-1]
    if repeats.any():
        tied = np.flatnonzero(np.append(repeats, False) | np.append(False, repeats))
        if len(tied) > len(keys) // 4:
            return np.argsort(keys, kind="stable")
        rows = order[tied]
        order[tied] = rows[np.lexsort([keys[rows], bits[tied]])]
    return order


def _rising_bits(keys: NDArray[Any]) -> NDArray[np.uint64]:
    """Give unsigned numbers in the order of numbers; what is missing comes last."""
    if keys.dtype.kind == "u":
        return keys.astype(np.uint64)
    if keys.dtype.kind == "f":
        numbers = keys.astype(np.float64) + 0.0  # no -0
        numbers[np.isnan(numbers)] = np.nan  # without a sign
        keys = numbers.view(np.int64)
        keys ^= (keys >> 63) & np.int64(2**63 - 1)
    return keys.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)


def group_equal(*columns: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Group equal rows: each group's first row, in order of appearance, and each row's group."""
    digests = row_digests(columns)
    if _all_differ(digests):
        rows = np.arange(len(digests), dtype=np.intp)
        return rows, rows
    group = number_equal(digests)
    first = _first_rows(group)
    if not _agree(columns, first, group):
        group = _group_by_columns(columns)
        first = _first_rows(group)
    return first, group


def number_equal(values: NDArray[Any]) -> NDArray[np.intp]:
    """Give equal values a number, in order of first appearance; a few are sorted for that."""
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
    """Tell whether no digest repeats; a sort takes less time and memory than a hash table."""
    for some in (digests[:_SAMPLE], digests):
        ordered = np.sort(some)
        if (ordered[1:] == ordered[:-1]).any():
            return False
    return True


def _first_rows(group: NDArray[np.intp]) -> NDArray[np.intp]:
    """Find the row at which each group appears: where the number is larger than all before."""
    largest = np.maximum.accumulate(group)
    return np.flatnonzero(np.diff(largest, prepend=-1))


def _agree(
    columns: Sequence[NDArray[Any]], first: NDArray[np.intp], group: NDArray[np.intp]
) -> bool:
    """Tell whether each row is equal to the first of its group."""
    theirs = first[group]
    repeats = np.flatnonzero(theirs != np.arange(len(theirs)))
    theirs = theirs[repeats]
    return all(bool((column[repeats] == column[theirs]).all()) for column in columns)


def _group_by_columns(columns: Sequence[NDArray[Any]]) -> NDArray[np.intp]:
    """Assign group numbers by one column after the other."""
    group = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        # two dense codes below n make one key below n squared
        codes = number_equal(column)
        group = number_equal(group * (int(codes.max(initial=0)) + 1) + codes)
    return group
