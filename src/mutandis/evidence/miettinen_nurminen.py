"""The Miettinen–Nurminen score interval and test: the default.

A score test asks how far Δp lies from a hypothetical difference δ in units of the standard error
*that δ implies*. So it never has zero width: if both groups were refused throughout, a smaller true
difference is still possible, and the interval says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.evidence.distinct_pairs import on_distinct
from mutandis.evidence.interval import Interval
from mutandis.evidence.interval_bounds import Counts, agreeing, find_crossing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.search.share import Share

__all__ = [
    "constrained_shares",
    "miettinen_nurminen",
    "score_rejects",
    "score_statistic",
    "score_test",
]

# where the statistic is infinite, a root finder needs a number: farther than any critical value
_FARTHEST = 50.0


@on_distinct
def miettinen_nurminen(control: Share, test: Share, *, tau: float, alpha: float) -> Interval:
    r"""Score interval and test for a difference of two shares.

    Notes
    -----
    The statistic for a hypothetical difference δ is

    .. math:: z(\delta) = \frac{\hat p_c - \hat p_t - \delta}
              {\sqrt{\left(\frac{\tilde p_c (1 - \tilde p_c)}{n_c} +
              \frac{\tilde p_t (1 - \tilde p_t)}{n_t}\right) \frac{n_c + n_t}{n_c + n_t - 1}}}

    with the shares of highest likelihood among those that differ by δ. It falls as δ grows. The
    lower bound is where it reaches :math:`z_\alpha`, the upper where it reaches
    :math:`-z_\alpha`, the p-value of π ≤ τ is :math:`1 - \Phi(z(\tau))`: three readings of one
    curve, so that significance, p-value and bound cannot contradict each other.

    References
    ----------
    Miettinen, Nurminen (1985), Comparative analysis of two rates, Statistics in Medicine 4,
    213-226. Farrington, Manning (1990), ibid. 9, 1447-1454, for the constrained shares.

    Examples
    --------
    >>> import numpy as np
    >>> from mutandis.search.share import Share
    >>> one = np.array([1])
    >>> control = Share(negatives=56 * one, size=70 * one, split=one)
    >>> test = Share(negatives=48 * one, size=80 * one, split=one)
    >>> interval = miettinen_nurminen(control, test, tau=0.0, alpha=0.025)
    >>> round(float(interval.low[0]), 4), round(float(interval.high[0]), 4)
    (0.0528, 0.3382)
    """
    from scipy.special import ndtri

    counts = Counts.of(control, test)
    critical = np.full_like(counts.delta, -float(ndtri(alpha)))
    p_value = _p_value(counts, tau)
    return Interval(
        low=agreeing(_lower_bound(counts, critical), p_value, tau=tau, alpha=alpha),
        # the same curve seen from the other side: exchanging the groups mirrors every bit
        high=-_lower_bound(counts.exchanged, critical),
        p_value=p_value,
        degenerate=np.zeros(len(p_value), dtype=np.bool_),
    )


@on_distinct
def score_test(control: Share, test: Share, *, tau: float, alpha: float) -> Interval:  # noqa: ARG001
    """Give the p-values of `miettinen_nurminen`, and no bounds: their roots take the time."""
    p_value = _p_value(Counts.of(control, test), tau)
    return Interval.without_bounds(p_value)


def _lower_bound(counts: Counts, critical: NDArray[np.float64]) -> NDArray[np.float64]:
    return find_crossing(_gap, -1.0, counts.delta, (*counts, critical))


def score_rejects(control: Share, test: Share, *, tau: float, alpha: float) -> NDArray[np.bool_]:
    """Tell where the score test rejects π ≤ τ; much faster than the interval."""
    return np.asarray(_p_value(Counts.of(control, test), tau) <= alpha, dtype=np.bool_)


def _p_value(counts: Counts, tau: float) -> NDArray[np.float64]:
    from scipy.special import ndtr

    statistic = score_statistic(*counts, np.full_like(counts.p_control, tau))
    return np.asarray(ndtr(-statistic), dtype=np.float64)


def _gap(difference: NDArray[np.float64], *arguments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Tell how far the statistic lies above its target, which is the last argument."""
    *counts, target = arguments
    gap = score_statistic(*Counts(*counts), difference) - target
    return np.clip(gap, -_FARTHEST, _FARTHEST)


def score_statistic(
    p_control: NDArray[np.float64],
    p_test: NDArray[np.float64],
    n_control: NDArray[np.float64],
    n_test: NDArray[np.float64],
    difference: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Give z(δ); 0 where Δp is δ itself, infinite where δ leaves no room for chance."""
    first, second = constrained_shares(p_control, p_test, n_control, n_test, difference)
    together = n_control + n_test
    variance = first * (1 - first) / n_control + second * (1 - second) / n_test
    error = np.sqrt(np.maximum(variance, 0.0) * together / (together - 1))
    distance = p_control - p_test - difference
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance == 0, 0.0, distance / error)


def constrained_shares(
    p_control: NDArray[np.float64],
    p_test: NDArray[np.float64],
    n_control: NDArray[np.float64],
    n_test: NDArray[np.float64],
    difference: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the shares of highest likelihood among those whose difference is δ.

    The likelihood equation is a cubic; this is its only root in range, in Farrington and
    Manning's closed form.

    Examples
    --------
    >>> import numpy as np
    >>> shares = constrained_shares(*(np.array([v]) for v in (0.8, 0.4, 10.0, 10.0, 0.0)))
    >>> [round(float(share[0]), 12) for share in shares]
    [0.6, 0.6]
    """
    ratio = n_test / n_control
    cubic = 1 + ratio
    square = -(cubic + p_control + ratio * p_test + difference * (ratio + 2))
    linear = difference**2 + difference * (2 * p_control + cubic) + p_control + ratio * p_test
    constant = -p_control * difference * (1 + difference)
    third = square / (3 * cubic)
    v = third**3 - square * linear / (6 * cubic**2) + constant / (2 * cubic)
    u = np.sqrt(np.maximum(third**2 - linear / (3 * cubic), 0.0))
    u = np.where(v >= 0, u, -u)
    with np.errstate(divide="ignore", invalid="ignore"):
        angle = np.arccos(np.clip(np.where(u == 0, 0.0, v / u**3), -1.0, 1.0))
    first = 2 * u * np.cos((np.pi + angle) / 3) - third
    # without a difference it is the share of both groups together, to the last bit
    first = np.where(difference == 0, (p_control + ratio * p_test) / cubic, first)
    first = np.clip(first, np.maximum(0.0, difference), np.minimum(1.0, 1 + difference))
    return first, first - difference
