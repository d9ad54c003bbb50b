"""Group rows that are equal in every one of several columns, by hashing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.digests import row_digests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["group_equal"]

# among so many rows a repeated one shows, if rows repeat often enough to matter
_SAMPLE = 4096


def group_equal(*columns: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Group equal rows.

    Parameters
    ----------
    *columns
        At least one, of integers or booleans; all of the same length.

    Returns
    -------
    first
        For each group, the row where it first appears.
    group
        For each row, its group; groups are numbered in order of first appearance. Where no two
        rows are equal, both are the same array of all rows.

    Notes
    -----
    Rows are told apart by a 64-bit digest. Different digests are different rows; rows with equal
    ones are looked at. If ever they differ, the columns themselves decide.

    Examples
    --------
    >>> import numpy as np
    >>> [part.tolist() for part in group_equal(np.array([5, 7, 5]), np.array([1, 1, 1]))]
    [[0, 1], [0, 1, 0]]
    """
    import pandas as pd

    digests = row_digests(columns)
    if _all_differ(digests):
        everybody = np.arange(len(digests), dtype=np.intp)
        return everybody, everybody
    group = pd.factorize(digests)[0].astype(np.intp, copy=False)
    first = _first_rows(group)
    if not _agree(columns, first, group):
        group = _grouped_by_columns(columns)
        first = _first_rows(group)
    return first, group


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


def _grouped_by_columns(columns: Sequence[NDArray[Any]]) -> NDArray[np.intp]:
    """Give groups their numbers by one column after the other."""
    import pandas as pd

    group = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        # two dense codes below n make one key below n squared
        codes, distinct = pd.factorize(column)
        group, _ = pd.factorize(group * max(1, len(distinct)) + codes)
    return group.astype(np.intp, copy=False)
