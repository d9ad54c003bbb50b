"""Compute once what many complainants share.

Without ties, the two shares of a complainant are two whole numbers from 0 to k: a million
complainants have at most (k + 1)² different pairs. Intervals are computed for those alone.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.equal_rows import group_equal

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from mutandis.evidence.interval import Interval
    from mutandis.search.share import Share

__all__ = ["distinct_pairs", "on_distinct"]

# a table of all pairs for two groups of this size takes 8 MB
_LARGEST = 1000


def on_distinct(method: Callable[..., Interval]) -> Callable[..., Interval]:
    """Make an interval method look at each different pair of shares once."""

    @wraps(method)
    def once(control: Share, test: Share, **options: Any) -> Interval:
        first, group = distinct_pairs(control, test)
        return method(control.take(first), test.take(first), **options).take(group)

    return once


def distinct_pairs(control: Share, test: Share) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find one complainant of each different pair of shares, and the pair that each has.

    Examples
    --------
    >>> from mutandis.search.share import Share
    >>> none, two = np.array([1, 2, 1]), np.array([2, 2, 2])
    >>> share = Share(negatives=none, size=two, split=two // 2)
    >>> chosen, pair = distinct_pairs(share, share)
    >>> share.negatives[chosen][pair].tolist()
    [1, 2, 1]
    """
    if _is_plain(control) and _is_plain(test):
        return _group_plain(control, test)
    return group_equal(*_parts(control), *_parts(test))


def _is_plain(share: Share) -> bool:
    """Tell whether all groups have one size, small enough for a table, and no place is split."""
    if not len(share.size):
        return False
    size = int(share.size[0])
    whole = bool((share.split == 1).all() and (share.size == size).all())
    return whole and size <= _LARGEST


def _group_plain(control: Share, test: Share) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Look each pair of whole numbers up in a table of all of them: no hashing."""
    width = int(test.size[0]) + 1
    key = control.negatives * width
    key += test.negatives
    somebody = np.full((int(control.size[0]) + 1) * width, -1, dtype=np.intp)
    somebody[key] = np.arange(len(key))
    taken = np.flatnonzero(somebody >= 0)
    first = somebody[taken]
    somebody[taken] = np.arange(len(taken))
    return first, somebody[key]


def _parts(share: Share) -> tuple[NDArray[np.int64], ...]:
    """Give what tells shares apart: 2/4 of ten and 1/2 of ten are the same evidence."""
    divisor = np.gcd(share.negatives, share.split)
    return share.negatives // divisor, share.split // divisor, share.size
