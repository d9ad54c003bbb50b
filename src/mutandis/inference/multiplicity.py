"""Many complainants are tested at once: q-values say what is left of their p-values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Adjustment", "adjust"]

Adjustment = Literal["benjamini-hochberg", "none"]


def adjust(p_values: NDArray[np.float64], *, method: Adjustment) -> NDArray[np.float64]:
    """Adjust p-values for the number of tests; missing ones stay missing and do not count.

    Examples
    --------
    >>> import numpy as np
    >>> adjust(np.array([0.01, 0.04, np.nan]), method="benjamini-hochberg").tolist()
    [0.02, 0.04, nan]
    """
    from scipy.stats import false_discovery_control

    adjusted = np.array(p_values, dtype=np.float64)
    known = ~np.isnan(adjusted)
    if method == "benjamini-hochberg" and known.any():
        adjusted[known] = false_discovery_control(adjusted[known], method="bh")
    return adjusted
