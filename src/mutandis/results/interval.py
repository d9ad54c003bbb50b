"""Intervals for Δp with the test that belongs to them, one entry per complainant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Interval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Two one-sided bounds at level 1 - α each, and the p-value of H0: π ≤ τ.

    Parameters
    ----------
    low, high
        The bounds; together an interval at level 1 - 2α.
    p_value
        One-sided.
    degenerate
        Where the method gives an interval of zero width, which claims a certainty that no sample
        of k people has.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    p_value: NDArray[np.float64]
    degenerate: NDArray[np.bool_]
