"""Two closed-form intervals between Wald and score: Agresti–Caffo, and Newcombe's hybrid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.evidence.distinct_pairs import on_distinct
from mutandis.evidence.interval import Interval
from mutandis.evidence.interval_bounds import Counts, agreeing, find_crossing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.search.share import Share

__all__ = ["agresti_caffo", "agresti_caffo_rejects", "newcombe", "newcombe_rejects"]

# beyond so many standard errors a p-value is 0 in float64
_FARTHEST = 40.0


@on_distinct
def agresti_caffo(control: Share, test: Share, *, tau: float, alpha: float) -> Interval:
    """Wald's interval after adding one refusal and one approval to each group.

    It is an interval around a difference that is closer to 0 than Δp, and need not contain Δp.

    References
    ----------
    Agresti, Caffo (2000), Simple and effective confidence intervals for proportions and
    differences of proportions, The American Statistician 54, 280-288.

    Examples
    --------
    >>> import numpy as np
    >>> from mutandis.search.share import Share
    >>> one = np.array([1])
    >>> control = Share(negatives=56 * one, size=70 * one, split=one)
    >>> test = Share(negatives=48 * one, size=80 * one, split=one)
    >>> interval = agresti_caffo(control, test, tau=0.0, alpha=0.025)
    >>> round(float(interval.low[0]), 4), round(float(interval.high[0]), 4)
    (0.0525, 0.3358)
    """
    from scipy.special import ndtri

    delta, error = _plus_one(control, test)
    margin = -ndtri(alpha) * error
    p_value = _plus_one_p_value(delta, error, tau)
    return Interval(
        low=agreeing(delta - margin, p_value, tau=tau, alpha=alpha),
        high=delta + margin,
        p_value=p_value,
        degenerate=np.zeros(len(delta), dtype=np.bool_),
    )


def agresti_caffo_rejects(
    control: Share, test: Share, *, tau: float, alpha: float
) -> NDArray[np.bool_]:
    """Tell where π ≤ τ is rejected."""
    p_value = _plus_one_p_value(*_plus_one(control, test), tau)
    return np.asarray(p_value <= alpha, dtype=np.bool_)


def _plus_one(control: Share, test: Share) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the difference with one more of each kind in both groups, and its standard error."""
    sizes = control.size + 2.0, test.size + 2.0
    shares = [
        (share.values() * share.size + 1) / size
        for share, size in zip((control, test), sizes, strict=True)
    ]
    variances = [p * (1 - p) / size for p, size in zip(shares, sizes, strict=True)]
    return shares[0] - shares[1], np.sqrt(variances[0] + variances[1])


def _plus_one_p_value(
    delta: NDArray[np.float64], error: NDArray[np.float64], tau: float
) -> NDArray[np.float64]:
    from scipy.special import ndtr

    return np.asarray(ndtr((tau - delta) / error), dtype=np.float64)


@on_distinct
def newcombe(control: Share, test: Share, *, tau: float, alpha: float) -> Interval:
    """Newcombe's hybrid score interval: Wilson's limits of each share, put together.

    Its p-value is the α at which the bound reaches τ.

    References
    ----------
    Newcombe (1998), Interval estimation for the difference between independent proportions,
    Statistics in Medicine 17, 873-890 (method 10).

    Examples
    --------
    >>> import numpy as np
    >>> from mutandis.search.share import Share
    >>> one = np.array([1])
    >>> control = Share(negatives=56 * one, size=70 * one, split=one)
    >>> test = Share(negatives=48 * one, size=80 * one, split=one)
    >>> interval = newcombe(control, test, tau=0.0, alpha=0.025)
    >>> round(float(interval.low[0]), 4), round(float(interval.high[0]), 4)
    (0.0524, 0.3339)
    """
    from scipy.special import ndtr, ndtri

    counts = Counts.of(control, test)
    delta = counts.delta
    critical = np.full_like(delta, -float(ndtri(alpha)))
    threshold = np.full_like(delta, tau)
    # whichever bound lies between Δp and τ is moved until it reaches τ
    reach = np.where(
        delta >= tau,
        find_crossing(_lower_gap, 0.0, _FARTHEST, (*counts, threshold)),
        -find_crossing(_upper_gap, 0.0, _FARTHEST, (*counts, threshold)),
    )
    low = _lower(critical, *counts)
    return Interval(
        low=low,
        high=_upper(critical, *counts),
        p_value=_agreeing_p_value(ndtr(-reach), low >= tau, alpha),
        degenerate=np.zeros(len(delta), dtype=np.bool_),
    )


def newcombe_rejects(control: Share, test: Share, *, tau: float, alpha: float) -> NDArray[np.bool_]:
    """Tell where π ≤ τ is rejected."""
    from scipy.special import ndtri

    counts = Counts.of(control, test)
    critical = np.full_like(counts.p_control, -float(ndtri(alpha)))
    return np.asarray(_lower(critical, *counts) >= tau, dtype=np.bool_)


def _lower(
    z: NDArray[np.float64],
    p_control: NDArray[np.float64],
    p_test: NDArray[np.float64],
    n_control: NDArray[np.float64],
    n_test: NDArray[np.float64],
) -> NDArray[np.float64]:
    low, _ = _wilson(p_control, n_control, z)
    _, high = _wilson(p_test, n_test, z)
    return p_control - p_test - np.hypot(p_control - low, high - p_test)


def _upper(
    z: NDArray[np.float64],
    p_control: NDArray[np.float64],
    p_test: NDArray[np.float64],
    n_control: NDArray[np.float64],
    n_test: NDArray[np.float64],
) -> NDArray[np.float64]:
    return -_lower(z, p_test, p_control, n_test, n_control)


def _lower_gap(z: NDArray[np.float64], *arguments: NDArray[np.float64]) -> NDArray[np.float64]:
    *counts, tau = arguments
    return _lower(z, *Counts(*counts)) - tau


def _upper_gap(z: NDArray[np.float64], *arguments: NDArray[np.float64]) -> NDArray[np.float64]:
    *counts, tau = arguments
    return tau - _upper(z, *Counts(*counts))


def _agreeing_p_value(
    p_value: NDArray[np.float64], rejected: NDArray[np.bool_], alpha: float
) -> NDArray[np.float64]:
    """Keep the last bit of a p-value from contradicting the bound: here it is derived from it."""
    beyond = np.maximum(p_value, np.nextafter(alpha, 1))
    return np.asarray(np.where(rejected, np.minimum(p_value, alpha), beyond), dtype=np.float64)


def _wilson(
    share: NDArray[np.float64], size: NDArray[np.float64], z: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    center = share + z**2 / (2 * size)
    spread = z * np.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    scale = 1 + z**2 / size
    # at 0 and 1 rounding must not push a limit past the share itself
    low = np.minimum((center - spread) / scale, share)
    high = np.maximum((center + spread) / scale, share)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
