"""Intervals for Δp with the test that belongs to them, one entry per complainant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
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

    @classmethod
    def without_bounds(cls, p_value: NDArray[np.float64]) -> Interval:
        """Give what a test alone says: bounds are missing."""
        missing = np.full(len(p_value), np.nan)
        return cls(
            low=missing,
            high=missing,
            p_value=p_value,
            degenerate=np.zeros(len(p_value), dtype=np.bool_),
        )

    def take(self, complainants: NDArray[np.intp]) -> Interval:
        """Give the chosen complainants' intervals, repeated as often as asked for."""
        return Interval(
            low=self.low[complainants],
            high=self.high[complainants],
            p_value=self.p_value[complainants],
            degenerate=self.degenerate[complainants],
        )
