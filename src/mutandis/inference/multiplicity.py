"""Many complainants are tested at once: q-values say what is left of their p-values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["Adjustment", "adjust"]

Adjustment = Literal["benjamini-hochberg", "benjamini-yekutieli", "holm", "none"]


def adjust(p_values: NDArray[np.float64], *, method: Adjustment) -> NDArray[np.float64]:
    """Adjust p-values for the number of tests; missing ones stay missing and do not count.

    Parameters
    ----------
    p_values
        One per complainant.
    method
        "benjamini-hochberg" bounds the expected share of false findings among all findings, if
        tests are independent or rise and fall together; "benjamini-yekutieli" does so under any
        dependence; "holm" bounds the chance of a single false finding, under any dependence;
        "none" changes nothing.

    References
    ----------
    Benjamini, Hochberg (1995), Controlling the false discovery rate, Journal of the Royal
    Statistical Society B 57, 289-300. Benjamini, Yekutieli (2001), The control of the false
    discovery rate in multiple testing under dependency, Annals of Statistics 29, 1165-1188.
    Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6, 65-70.

    Examples
    --------
    >>> import numpy as np
    >>> adjust(np.array([0.01, 0.04, np.nan]), method="benjamini-hochberg").tolist()
    [0.02, 0.04, nan]
    >>> adjust(np.array([0.01, 0.04, 0.03]), method="holm").tolist()
    [0.03, 0.06, 0.06]
    """
    adjusted = np.array(p_values, dtype=np.float64)
    known = ~np.isnan(adjusted)
    if known.any():
        adjusted[known] = _METHODS[method](adjusted[known])
    return adjusted


def _benjamini_hochberg(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(p_values, method="bh"), dtype=np.float64)


def _benjamini_yekutieli(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(p_values, method="by"), dtype=np.float64)


def _holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply the smallest by their number, the next by one less; never fall on the way up."""
    order = np.argsort(p_values, kind="stable")
    remaining = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    # equal p-values come out equal: the first of them has the largest factor, and carries over
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * remaining), 1.0)
    return adjusted


def _as_they_are(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    return p_values


_METHODS: dict[Adjustment, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "benjamini-hochberg": _benjamini_hochberg,
    "benjamini-yekutieli": _benjamini_yekutieli,
    "holm": _holm,
    "none": _as_they_are,
}
