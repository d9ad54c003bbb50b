"""Confidence intervals for Δp with the tests that belong to them, one entry per complainant.

Bounds are two one-sided ones at level 1 - α each, the p-value tests H0: π ≤ τ, and both come from
the same statistic. All of it is conditional on the worldview: it says how far chance in *who was
decided upon* could explain Δp, not whether the counterfactual is the right one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from mutandis.data.by_row import ByRow
from mutandis.engine.tally import difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.engine.tally import Sums

__all__ = [
    "DEFAULT_INTERVAL",
    "INTERVALS",
    "TESTS",
    "Bounds",
    "Interval",
    "IntervalMethod",
    "IntervalName",
    "no_interval",
]

# of a difference of shares, or of a z: far below anything that is ever shown
_TOLERANCE = 1e-13
# where a statistic is infinite, a root finder needs a number: farther than any critical value
_FARTHEST_SCORE = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds(ByRow):
    """Two one-sided bounds at level 1 - α each."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def inverted(self) -> Bounds:
        """Give the bounds of the reciprocal of a ratio; 0 and infinity are those of each other."""
        with np.errstate(divide="ignore"):
            return Bounds(low=1 / self.high, high=1 / self.low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(ByRow):
    """Two one-sided bounds of Δp at level 1 - α each, and the p-value of H0: π ≤ τ.

    Together the bounds are an interval at level 1 - 2α. It is `degenerate` where it has no width,
    which claims a certainty that no sample of k people has. Where the measure is a ratio, its own
    bounds are `measured`, and the p-value is that of the ratio.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    p_value: NDArray[np.float64]
    degenerate: NDArray[np.bool_]
    measured: Bounds | None = None

    @classmethod
    def without_bounds(cls, p_value: NDArray[np.float64]) -> Interval:
        """Make the result of a test that has no bounds."""
        missing = np.full(len(p_value), np.nan)
        return cls(low=missing, high=missing, p_value=p_value, degenerate=_nowhere(p_value))


def _nowhere(like: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.zeros(len(like), dtype=np.bool_)


class Counts(NamedTuple):
    """The shares of both groups, their sizes, and the variance of estimates, as floats."""

    p_control: NDArray[np.float64]
    p_test: NDArray[np.float64]
    n_control: NDArray[np.float64]
    n_test: NDArray[np.float64]
    doubt: NDArray[np.float64]

    @classmethod
    def of(cls, control: Sums, test: Sums) -> Counts:
        return cls(
            p_control=control.mean(),
            p_test=test.mean(),
            n_control=control.weight,
            n_test=test.weight,
            doubt=_doubt(control, test),
        )

    @property
    def delta(self) -> NDArray[np.float64]:
        return self.p_control - self.p_test

    @property
    def exchanged(self) -> Counts:
        """The same with control and test group exchanged."""
        return Counts(self.p_test, self.p_control, self.n_test, self.n_control, self.doubt)


def _doubt(control: Sums, test: Sums) -> NDArray[np.float64]:
    """Give the variance of Δp that comes from estimates, and not from who was decided upon."""
    known = [share.doubt for share in (control, test) if share.doubt is not None]
    return np.asarray(sum(known, np.zeros(len(control.places))), dtype=np.float64)


def find_crossing(
    falling: Callable[..., NDArray[np.float64]],
    low: NDArray[np.float64] | float,
    high: NDArray[np.float64] | float,
    arguments: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Find where each of many falling curves crosses zero, between low and high.

    The `arguments` have an entry for each curve. A curve that lies below zero throughout gives
    `low`, one that lies above gives `high`.
    """
    low = np.broadcast_to(np.asarray(low, dtype=np.float64), arguments[0].shape)
    high = np.broadcast_to(np.asarray(high, dtype=np.float64), arguments[0].shape)
    above, below = falling(low, *arguments) > 0, falling(high, *arguments) < 0
    found = np.where(above, high, low)
    crosses = above & below
    if crosses.any():
        some = [column[crosses] for column in arguments]
        found[crosses] = _find_roots(falling, low[crosses], high[crosses], some)
    return found


def _find_roots(
    falling: Callable[..., NDArray[np.float64]],
    x1: NDArray[np.float64],
    x2: NDArray[np.float64],
    arguments: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Find the roots of many curves that change their sign between x1 and x2.

    Chandrupatla (1997), A new hybrid quadratic/bisection algorithm, Advances in Engineering
    Software 28, 145-149: bisection, and inverse quadratic interpolation where that is safe. The
    arithmetic is that of SciPy's `elementwise.find_root`, which takes ten times as long for a few
    curves: it is made for arrays of any library.
    """
    found, left, t = np.empty_like(x1), np.arange(len(x1)), np.full_like(x1, 0.5)
    f1, f2 = falling(x1, *arguments), falling(x2, *arguments)
    while True:
        x = x1 + t * (x2 - x1)
        f = falling(x, *arguments)
        same = np.sign(f) == np.sign(f1)
        x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
        x2, f2 = np.where(same, x2, x1), np.where(same, f2, f1)
        x1, f1 = x, f
        best = np.where(np.abs(f1) < np.abs(f2), x1, x2)
        apart, tolerance = np.abs(x2 - x1), np.abs(best) * _TOLERANCE + _TOLERANCE
        goes_on = (np.minimum(np.abs(f1), np.abs(f2)) > 0) & (apart >= tolerance)
        found[left[~goes_on]] = best[~goes_on]
        if not goes_on.any():
            return found
        arguments, left = [column[goes_on] for column in arguments], left[goes_on]
        x1, x2, x3, f1, f2, f3 = (each[goes_on] for each in (x1, x2, x3, f1, f2, f3))
        with np.errstate(divide="ignore", invalid="ignore"):
            xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
            quadratic = f1 / (f1 - f2) * f3 / (f3 - f2) - (x3 - x1) / (x2 - x1) * f1 / (
                f3 - f1
            ) * f2 / (f2 - f3)
        safe = (1 - np.sqrt(1 - xi) < phi) & (phi < np.sqrt(xi))
        edge = 0.5 * tolerance[goes_on] / apart[goes_on]
        t = np.clip(np.where(safe, quadratic, 0.5), edge, 1 - edge)


def match_bound(
    low: NDArray[np.float64], p_value: NDArray[np.float64], *, tau: float, alpha: float
) -> NDArray[np.float64]:
    """Keep the last bit of a lower bound from contradicting the p-value that it belongs to."""
    rejected = p_value <= alpha
    return np.where(rejected, np.maximum(low, tau), np.minimum(low, np.nextafter(tau, -1)))


def critical_value(alpha: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri(alpha))


# --- Miettinen–Nurminen: the default -----------------------------------------------------------


def miettinen_nurminen(control: Sums, test: Sums, *, tau: float, alpha: float) -> Interval:
    r"""Score interval and test for a difference of two shares.

    A score test asks how far Δp lies from a hypothetical difference δ in units of the standard
    error *that δ implies*. So it never has zero width: if both groups were refused throughout, a
    smaller true difference is still possible, and the interval says so.

    Notes
    -----
    The statistic for a hypothetical difference δ is

    .. math:: z(\delta) = \frac{\hat p_c - \hat p_t - \delta}
              {\sqrt{\left(\frac{\tilde p_c (1 - \tilde p_c)}{n_c} +
              \frac{\tilde p_t (1 - \tilde p_t)}{n_t}\right) \frac{n_c + n_t}{n_c + n_t - 1} + s^2}}

    with the shares of highest likelihood among those that differ by δ, and the variance s² of
    shares that rest on estimates (0 elsewhere). It falls as δ grows. The
    lower bound is where it reaches :math:`z_\alpha`, the upper where it reaches
    :math:`-z_\alpha`, the p-value of π ≤ τ is :math:`1 - \Phi(z(\tau))`: three readings of one
    curve, so that significance, p-value and bound cannot contradict each other.

    References
    ----------
    Miettinen, Nurminen (1985), Comparative analysis of two rates, Statistics in Medicine 4,
    213-226. Farrington, Manning (1990), ibid. 9, 1447-1454, for the constrained shares.
    """
    counts = Counts.of(control, test)
    # the upper bound is on the same curve seen from the other side: exchanging the groups mirrors
    # every bit; both are looked for together, since a search takes long to begin
    both = Counts(*map(np.concatenate, zip(counts, counts.exchanged, strict=True)))
    critical = np.full_like(both.delta, critical_value(alpha))
    bounds = find_crossing(_score_gap, -1.0, both.delta, (*both, critical))
    p_value = _score_p_value(control, test, tau=tau)
    return Interval(
        low=match_bound(bounds[: len(p_value)], p_value, tau=tau, alpha=alpha),
        high=-bounds[len(p_value) :],
        p_value=p_value,
        degenerate=_nowhere(p_value),
    )


def _score_gap(delta: NDArray[np.float64], *arguments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Tell how far the statistic lies above its target, which is the last argument."""
    *counts, target = arguments
    gap = score_statistic(*Counts(*counts), delta) - target
    return np.clip(gap, -_FARTHEST_SCORE, _FARTHEST_SCORE)


def _score_p_value(control: Sums, test: Sums, *, tau: float) -> NDArray[np.float64]:
    from scipy.special import ndtr

    counts = Counts.of(control, test)
    statistic = score_statistic(*counts, np.full_like(counts.p_control, tau))
    return np.asarray(ndtr(-statistic), dtype=np.float64)


def score_statistic(  # noqa: PLR0917 - the columns of `Counts`
    p_control: NDArray[np.float64],
    p_test: NDArray[np.float64],
    n_control: NDArray[np.float64],
    n_test: NDArray[np.float64],
    doubt: NDArray[np.float64],
    delta: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Give z(δ); 0 where Δp is δ itself, infinite where δ leaves no room for chance."""
    first, second = constrained_shares(p_control, p_test, n_control, n_test, delta)
    together = n_control + n_test
    variance = first * (1 - first) / n_control + second * (1 - second) / n_test
    error = np.sqrt(np.maximum(variance, 0.0) * together / (together - 1) + doubt)
    distance = p_control - p_test - delta
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance == 0, 0.0, distance / error)


def constrained_shares(
    p_control: NDArray[np.float64],
    p_test: NDArray[np.float64],
    n_control: NDArray[np.float64],
    n_test: NDArray[np.float64],
    delta: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the shares of highest likelihood among those whose difference is δ.

    The likelihood equation is a cubic; this is its only root in range, in Farrington and
    Manning's closed form.
    """
    ratio = n_test / n_control
    cubic = 1 + ratio
    if not delta.any():
        # without a difference it is the share of both groups together, to the last bit
        first = (p_control + ratio * p_test) / cubic
        return first, first
    square = -(cubic + p_control + ratio * p_test + delta * (ratio + 2))
    linear = delta**2 + delta * (2 * p_control + cubic) + p_control + ratio * p_test
    constant = -p_control * delta * (1 + delta)
    third = square / (3 * cubic)
    # cubes as products: a power of a negative number takes a hundred times as long, and its last
    # bits depend on the processor
    v = third * third * third - square * linear / (6 * cubic**2) + constant / (2 * cubic)
    u = np.sqrt(np.maximum(third**2 - linear / (3 * cubic), 0.0))
    u = np.where(v >= 0, u, -u)
    with np.errstate(divide="ignore", invalid="ignore"):
        angle = np.arccos(np.clip(np.where(u == 0, 0.0, v / (u * u * u)), -1.0, 1.0))
    first = 2 * u * np.cos((np.pi + angle) / 3) - third
    first = np.where(delta == 0, (p_control + ratio * p_test) / cubic, first)
    low, high = np.maximum(0.0, delta), np.minimum(1.0, 1 + delta)
    first = np.clip(first, low, high)
    # Without a single refusal, or approval, the likelihood is highest at an end, where roots of the
    # cubic meet and its closed form is right to the root of the machine precision only.
    first = np.where((p_control == 0) & (p_test == 0), low, first)
    first = np.where((p_control == 1) & (p_test == 1), high, first)
    return first, first - delta


# --- Wald: the one that the paper uses ---------------------------------------------------------


def wald(control: Sums, test: Sums, *, tau: float, alpha: float) -> Interval:
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
    """
    delta, error = _difference_and_error(control, test)
    margin = critical_value(alpha) * error
    p_value = _wald_p_value(control, test, tau=tau)
    degenerate = error == 0
    low = delta - margin
    return Interval(
        low=np.where(degenerate, low, match_bound(low, p_value, tau=tau, alpha=alpha)),
        high=delta + margin,
        p_value=p_value,
        degenerate=degenerate,
    )


def _difference_and_error(
    control: Sums, test: Sums
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    numerator, denominator = difference(control, test)
    delta = np.asarray(numerator / denominator, dtype=np.float64)
    return delta, np.sqrt(_variance(control) + _variance(test) + _doubt(control, test))


def _variance(share: Sums) -> NDArray[np.float64]:
    p = share.mean()
    return np.asarray(p * (1 - p) / share.weight, dtype=np.float64)


def _wald_p_value(control: Sums, test: Sums, *, tau: float) -> NDArray[np.float64]:
    from scipy.special import ndtr

    delta, error = _difference_and_error(control, test)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(delta == tau, 0.0, (delta - tau) / error)
    return np.asarray(ndtr(-statistic), dtype=np.float64)


# --- by name -----------------------------------------------------------------------------------

IntervalName = Literal["miettinen-nurminen", "wald"]
IntervalMethod = Callable[..., Interval]

DEFAULT_INTERVAL: IntervalName = "miettinen-nurminen"


def score_test(control: Sums, test: Sums, *, tau: float, alpha: float) -> Interval:  # noqa: ARG001 - as every test
    """Compute the p-values of `miettinen_nurminen` without its bounds, whose roots take time."""
    return Interval.without_bounds(_score_p_value(control, test, tau=tau))


def no_interval(control: Sums, test: Sums, **options: float) -> Interval:  # noqa: ARG001
    """Leave bounds and p-values out: for comparisons that ask for evidence alone."""
    return Interval.without_bounds(np.full(len(control.places), np.nan))


INTERVALS: dict[IntervalName, IntervalMethod] = {
    "miettinen-nurminen": miettinen_nurminen,
    "wald": wald,
}
"""Every interval by its name; `interval=` of an audit picks one."""

TESTS: dict[IntervalName, IntervalMethod] = {**INTERVALS, "miettinen-nurminen": score_test}
"""The same p-values, without bounds that take longer than the test itself: for counting."""
