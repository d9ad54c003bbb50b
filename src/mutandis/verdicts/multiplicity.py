"""Many complainants are tested at once: q-values say what is left of their p-values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.data.rows import number_equal

if TYPE_CHECKING:
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
    q_values = np.array(p_values, dtype=np.float64)
    tested = ~np.isnan(q_values)
    # equal p-values have equal q-values, and many are equal
    kinds = number_equal(q_values[tested])
    counts = np.bincount(kinds)
    distinct = np.empty(len(counts))
    distinct[kinds] = q_values[tested]
    order = np.argsort(distinct, kind="stable")
    distinct[order] = _METHODS[method](distinct[order], counts[order])
    q_values[tested] = distinct[kinds]
    return q_values


def _benjamini_hochberg(
    p_values: NDArray[np.float64], counts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Multiply each by the tests per rank, as its last equal has it; never rise on the way down."""
    ranks = np.cumsum(counts)
    return _falling(p_values * (counts.sum() / ranks))


def _benjamini_yekutieli(
    p_values: NDArray[np.float64], counts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Do so with the factor 1 + 1/2 + … + 1/m on top."""
    tests = counts.sum()
    harmonic = np.sum(1 / np.arange(1, tests + 1, dtype=np.float64))
    return _falling(p_values * (tests / np.cumsum(counts)) * harmonic)


def _falling(bounds: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.minimum(np.minimum.accumulate(bounds[::-1])[::-1], 1.0)


def _holm(p_values: NDArray[np.float64], counts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Multiply the smallest by their number, the next by what is left; never fall on the way up."""
    remaining = counts.sum() - np.cumsum(counts) + counts
    return np.minimum(np.maximum.accumulate(p_values * remaining), 1.0)


def _as_they_are(
    p_values: NDArray[np.float64],
    counts: NDArray[np.intp],  # noqa: ARG001 - however many there are
) -> NDArray[np.float64]:
    return p_values


_Method = Callable[["NDArray[np.float64]", "NDArray[np.intp]"], "NDArray[np.float64]"]

_METHODS: dict[Adjustment, _Method] = {
    "benjamini-hochberg": _benjamini_hochberg,
    "benjamini-yekutieli": _benjamini_yekutieli,
    "holm": _holm,
    "none": _as_they_are,
}
"""How different p-values, smallest first, are adjusted, given how often each occurs."""
