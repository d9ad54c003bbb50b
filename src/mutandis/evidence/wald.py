"""The Wald interval and test: the one that the paper uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.evidence.distinct_pairs import on_distinct
from mutandis.evidence.interval import Interval
from mutandis.evidence.interval_bounds import agreeing
from mutandis.search.share import difference

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.search.share import Share

__all__ = ["wald", "wald_rejects"]


@on_distinct
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
    >>> from mutandis.search.share import Share
    >>> thirteen, none, n, whole = (np.array([v]) for v in (13, 0, 16, 1))
    >>> control = Share(negatives=thirteen, size=n, split=whole)
    >>> test = Share(negatives=none, size=n, split=whole)
    >>> interval = wald(control, test, tau=0.0, alpha=0.05)
    >>> round(float(interval.low[0]), 3), round(float(interval.high[0]), 3)
    (0.652, 0.973)
    """
    from scipy.special import ndtri

    delta, error = _difference_and_error(control, test)
    margin = -ndtri(alpha) * error
    p_value = _p_value(delta, error, tau)
    degenerate = error == 0
    low = delta - margin
    return Interval(
        low=np.where(degenerate, low, agreeing(low, p_value, tau=tau, alpha=alpha)),
        high=delta + margin,
        p_value=p_value,
        degenerate=degenerate,
    )


def wald_rejects(control: Share, test: Share, *, tau: float, alpha: float) -> NDArray[np.bool_]:
    """Tell where π ≤ τ is rejected."""
    p_value = _p_value(*_difference_and_error(control, test), tau)
    return np.asarray(p_value <= alpha, dtype=np.bool_)


def _difference_and_error(
    control: Share, test: Share
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    numerator, denominator = difference(control, test)
    delta = np.asarray(numerator / denominator, dtype=np.float64)
    return delta, np.sqrt(_variance(control) + _variance(test))


def _variance(share: Share) -> NDArray[np.float64]:
    p = share.values()
    return np.asarray(p * (1 - p) / share.size, dtype=np.float64)


def _p_value(
    delta: NDArray[np.float64], error: NDArray[np.float64], tau: float
) -> NDArray[np.float64]:
    from scipy.special import ndtr

    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(delta == tau, 0.0, (delta - tau) / error)
    return np.asarray(ndtr(-statistic), dtype=np.float64)
