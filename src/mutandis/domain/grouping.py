"""Group rows that are equal in every one of several columns, by hashing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["group_equal"]


def group_equal(*columns: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Group equal rows.

    Parameters
    ----------
    *columns
        At least one; all of the same length.

    Returns
    -------
    first
        For each group, the row where it first appears.
    group
        For each row, its group; groups are numbered in order of first appearance.

    Examples
    --------
    >>> import numpy as np
    >>> [part.tolist() for part in group_equal(np.array([5, 7, 5]), np.array([1, 1, 1]))]
    [[0, 1], [0, 1, 0]]
    """
    import pandas as pd

    rows = len(columns[0])
    group = np.zeros(rows, dtype=np.int64)
    for column in columns:
        # two dense codes below n make one key below n squared
        codes, distinct = pd.factorize(column)
        group, _ = pd.factorize(group * max(1, len(distinct)) + codes)
    size = int(group.max(initial=-1)) + 1
    first = np.full(size, rows, dtype=np.intp)
    np.minimum.at(first, group, np.arange(rows))
    return first, group.astype(np.intp)
