"""Confidence intervals for Δp, behind one interface that other intervals join.

Bounds are two one-sided ones at level 1 - α each, the p-value tests H0: π ≤ τ, and both come from
the same statistic. All of it is conditional on the worldview: it says how far chance in *who was
decided upon* could explain Δp, not whether the counterfactual is the right one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.results.interval import Interval
from mutandis.results.share import difference

if TYPE_CHECKING:
    from mutandis.results.share import Share

__all__ = ["INTERVALS", "IntervalMethod", "IntervalName", "wald"]

IntervalName = Literal["wald"]


def wald(control: Share, test: Share, *, tau: float, alpha: float) -> Interval:
    r"""Wald interval and test: the one the paper uses.

    Notes
    -----
    The statistic is :math:`(\Delta p - \tau) / s` with
    :math:`s^2 = p_c (1 - p_c) / n_c + p_t (1 - p_t) / n_t`: variances add, the paper prints a
    minus (docs/adr/0003-errata.md). Where both shares are 0 or 1 the width is zero and the
    p-value 0 or 1 (0.5 at Δp = τ); these intervals are marked as degenerate.

    References
    ----------
    Thanh, Ruggieri, Turini (2011), k-NN as an implementation of situation testing for
    discrimination discovery and prevention, KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from mutandis.results.share import Share
    >>> thirteen, none, n, whole = (np.array([v]) for v in (13, 0, 16, 1))
    >>> control = Share(negatives=thirteen, size=n, split=whole)
    >>> test = Share(negatives=none, size=n, split=whole)
    >>> interval = wald(control, test, tau=0.0, alpha=0.05)
    >>> round(float(interval.low[0]), 3), round(float(interval.high[0]), 3)
    (0.652, 0.973)
    """
    from scipy.special import ndtr, ndtri

    numerator, denominator = difference(control, test)
    delta = np.asarray(numerator / denominator, dtype=np.float64)
    error = np.sqrt(_variance(control) + _variance(test))
    margin = -ndtri(alpha) * error
    degenerate = error == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(delta == tau, 0.0, (delta - tau) / error)
    return Interval(
        low=delta - margin,
        high=delta + margin,
        p_value=np.asarray(ndtr(-statistic), dtype=np.float64),
        degenerate=degenerate,
    )


def _variance(share: Share) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    p = share.values()
    return np.asarray(p * (1 - p) / share.size, dtype=np.float64)


IntervalMethod = Callable[..., Interval]

INTERVALS: dict[IntervalName, IntervalMethod] = {"wald": wald}
"""Every interval by its name; `interval=` of an audit picks one."""
