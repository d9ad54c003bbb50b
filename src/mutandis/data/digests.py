"""One number for each row of several columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["row_digests"]

# The golden ratio in 64 bits, and two multipliers of the finaliser of splitmix64 (Steele, Lea and
# Flood 2014, OOPSLA), which spread every bit of a number over all others.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
# so many rows at a time stay in the processor's cache
_BLOCK = 1 << 14


def row_digests(keys: Sequence[NDArray[Any]]) -> NDArray[np.uint64]:
    """Mix the bits of each row into one number.

    Each step can be undone, given the column: rows that differ in one column never meet, and rows
    that differ in several meet once in 2**64 pairs.

    Parameters
    ----------
    keys
        Columns of integers or booleans, at least one.

    Examples
    --------
    >>> one, other, same = row_digests([np.array([1, 2, 1]), np.array([3, 3, 3])]).tolist()
    >>> one == same, one == other
    (True, False)
    """
    digests = np.zeros(len(keys[0]), dtype=np.uint64)
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
