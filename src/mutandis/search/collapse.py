"""Collapse rows that repeat: on discrete data a few points stand for many people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.data.equal_rows import group_equal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.search.distance import Points

__all__ = ["group_rows"]


def group_rows(
    points: Points, *labels: NDArray[np.integer] | NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Group rows that agree in every coordinate, every code and every further label.

    Returns
    -------
    first
        For each group, the row where it first appears.
    group
        For each row, its group.

    Examples
    --------
    >>> import numpy as np
    >>> from mutandis.search.distance import Points
    >>> rows = Points(coordinates=np.array([[5], [7], [5]]), codes=np.empty((3, 0), np.int32))
    >>> [part.tolist() for part in group_rows(rows)]
    [[0, 1], [0, 1, 0]]
    """
    everything = [*points.coordinates.T, *points.codes.T, *labels]
    # without a single column all rows are equal
    return group_equal(*(everything or [np.zeros(len(points), dtype=np.int8)]))
