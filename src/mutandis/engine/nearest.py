"""Sums over the k nearest, from what a search has counted inside the radius and on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.engine.tally import Sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.search.ties import Neighbourhoods, Ties

__all__ = ["sum_nearest"]


def sum_nearest(
    found: Neighbourhoods, column: int, *, k: int | NDArray[np.int64], ties: Ties
) -> Sums:
    """Sum the marks of each group, with the last places shared as the policy says."""
    inside, rim = found.inside[:, column], found.rim[:, column]
    marks, marks_rim = found.marks_inside[:, column], found.marks_rim[:, column]
    if ties == "all":
        return Sums.of(marks=marks + marks_rim, places=inside + rim)
    # with m rows on the rim, the mean is (marks_inside * m + (k - inside) * marks_rim) / (k * m)
    return Sums.of(
        marks=marks * rim[:, np.newaxis] + (k - inside)[:, np.newaxis] * marks_rim,
        places=np.full_like(rim, k),
        parts=rim,
    )
