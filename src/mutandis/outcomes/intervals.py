"""Intervals for a difference of two groups, with the tests that belong to them.

There is one entry per complainant. Bounds are one-sided at level 1 - α on either side, and the
p-value tests H0: π ≤ τ with the same statistic. All of it is conditional on the worldview: it
measures chance in the decisions, not the quality of the counterfactuals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from mutandis.data.rows import ByRow
from mutandis.engine.tally import difference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.engine.tally import Sums

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["DEFAULT_INTERVAL", "INTERVALS", "Bounds", "Interval", "IntervalMethod"]

# of a difference of shares, or of a z: far below anything that is ever shown
_TOLERANCE = 1e-13
# where a statistic is infinite, a root finder needs a number: farther than any critical value
_FARTHEST_SCORE = 50.0
# degrees of freedom at which Student's distribution is the normal one
_NORMAL = 1e300


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds(ByRow):
    """Two one-sided bounds at level 1 - α each."""

    low: Floats
    high: Floats

    def inverted(self) -> Bounds:
        """Return the bounds of the reciprocal of a ratio; 0 and infinity change places."""
        with np.errstate(divide="ignore"):
            return Bounds(low=1 / self.high, high=1 / self.low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(ByRow):
    """Two one-sided bounds of Δ at level 1 - α each, and the p-value of H0: π ≤ τ."""

    low: Floats
    high: Floats
    p_value: Floats
    degenerate: NDArray[np.bool_]  # without width, a certainty that no sample of k people has
    measured: Bounds | None = None  # of a ratio, which the p-value is then about

    @classmethod
    def without_bounds(cls, p_value: Floats) -> Interval:
        """Return the result of a test that has no bounds."""
        missing = np.full(len(p_value), np.nan)
        return cls(low=missing, high=missing, p_value=p_value, degenerate=_nowhere(p_value))


def _nowhere(like: Floats) -> NDArray[np.bool_]:
    return np.zeros(len(like), dtype=np.bool_)


class Shares(NamedTuple):
    """The shares of both groups, their sizes, and their variances as estimates, as floats."""

    p_control: Floats
    p_test: Floats
    n_control: Floats
    n_test: Floats
    doubt_control: Floats
    doubt_test: Floats

    @classmethod
    def of(cls, control: Sums, test: Sums) -> Shares:
        """Return those of both sums, rounded once."""
        nothing = np.zeros(len(control.places))
        return cls(
            p_control=control.mean(),
            p_test=test.mean(),
            n_control=control.weight,
            n_test=test.weight,
            doubt_control=nothing if control.doubt is None else control.doubt,
            doubt_test=nothing if test.doubt is None else test.doubt,
        )

    @property
    def delta(self) -> Floats:
        """The difference of the shares."""
        return self.p_control - self.p_test

    @property
    def doubt(self) -> Floats:
        """The variance of the difference that comes from estimates, and not from chance."""
        return self.doubt_control + self.doubt_test

    @property
    def exchanged(self) -> Shares:
        """The same with control and test group exchanged."""
        return Shares(*(self[place] for place in (1, 0, 3, 2, 5, 4)))


def critical_value(alpha: float) -> float:
    """Return the normal quantile of 1 - α."""
    from scipy.special import ndtri

    return -float(ndtri(alpha))


def upper_tail(statistic: Floats) -> Floats:
    """Return the normal probability of a larger value."""
    from scipy.special import ndtr

    return np.asarray(ndtr(-statistic), dtype=np.float64)


def match_bound(low: Floats, p_value: Floats, *, tau: float, alpha: float) -> Floats:
    """Keep the last bit of a lower bound from contradicting the p-value that it belongs to."""
    rejected = p_value <= alpha
    return np.where(rejected, np.maximum(low, tau), np.minimum(low, np.nextafter(tau, -1)))


# --- roots ----------------------------------------------------------------------------------------


def lower_bounds(
    statistic: Callable[[Shares, Floats], Floats],
    shares: Shares,
    low: float,
    high: Floats | float,
    *,
    alpha: float,
) -> tuple[Floats, Floats]:
    """Find where a falling statistic reaches z_α, for the groups and for the exchanged groups.

    The upper bound is on the same curve seen from the other side: exchanging the groups mirrors
    every bit. Both are looked for together, since a search takes long to begin.
    """
    both = Shares(*map(np.concatenate, zip(shares, shares.exchanged, strict=True)))

    def gap(at: Floats, *arguments: Floats) -> Floats:
        *columns, target = arguments
        return np.clip(statistic(Shares(*columns), at) - target, -_FARTHEST_SCORE, _FARTHEST_SCORE)

    critical = np.full_like(both.p_control, critical_value(alpha))
    found = find_crossing(gap, low, high, (*both, critical))
    return found[: len(shares.p_test)], found[len(shares.p_test) :]


def find_crossing(
    falling: Callable[..., Floats],
    low: Floats | float,
    high: Floats | float,
    arguments: Sequence[Floats],
) -> Floats:
    """Find where each of many falling curves crosses zero, between low and high.

    The `arguments` have an entry for each curve. A curve that is below zero throughout has its
    crossing at `low`, one that is above at `high`.
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
    falling: Callable[..., Floats], x1: Floats, x2: Floats, arguments: Sequence[Floats]
) -> Floats:
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


# --- Miettinen–Nurminen: the default --------------------------------------------------------------


def miettinen_nurminen(
    control: Sums, test: Sums, *, tau: float, alpha: float, bounds: bool = True
) -> Interval:
    r"""Compute the score interval and test for a difference of two shares.

    Without `bounds`, which are roots, the p-values are the same.

    Notes
    -----
    The statistic for a hypothetical difference δ, in units of the standard error *that δ implies*
    (so that the interval never has zero width), is

    .. math:: z(\delta) = \frac{\hat p_c - \hat p_t - \delta}
              {\sqrt{\left(\frac{\tilde p_c (1 - \tilde p_c)}{n_c} +
              \frac{\tilde p_t (1 - \tilde p_t)}{n_t}\right) \frac{n_c + n_t}{n_c + n_t - 1} + s^2}}

    with the shares of highest likelihood among those that differ by δ, and the variance s² of
    shares that rest on estimates (0 elsewhere). It falls as δ grows. The lower bound is where it
    reaches :math:`z_\alpha`, the upper where it reaches :math:`-z_\alpha`, the p-value of π ≤ τ is
    :math:`1 - \Phi(z(\tau))`: three readings of one curve, which cannot contradict each other.

    References
    ----------
    Miettinen, Nurminen (1985), Comparative analysis of two rates, Statistics in Medicine 4,
    213-226. Farrington, Manning (1990), ibid. 9, 1447-1454, for the constrained shares.
    """
    shares = Shares.of(control, test)
    p_value = upper_tail(score_statistic(shares, np.full_like(shares.p_control, tau)))
    if not bounds:
        return Interval.without_bounds(p_value)
    highest = np.concatenate([shares.delta, shares.exchanged.delta])
    low, mirrored = lower_bounds(score_statistic, shares, -1.0, highest, alpha=alpha)
    return Interval(
        low=match_bound(low, p_value, tau=tau, alpha=alpha),
        high=-mirrored,
        p_value=p_value,
        degenerate=_nowhere(p_value),
    )


def score_statistic(shares: Shares, delta: Floats) -> Floats:
    """Return z(δ); 0 where Δp is δ itself, infinite where δ leaves no room for chance."""
    first, second = constrained_shares(shares, delta)
    n_control, n_test = shares.n_control, shares.n_test
    together = n_control + n_test
    variance = first * (1 - first) / n_control + second * (1 - second) / n_test
    error = np.sqrt(np.maximum(variance, 0.0) * together / (together - 1) + shares.doubt)
    distance = shares.p_control - shares.p_test - delta
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance == 0, 0.0, distance / error)


def constrained_shares(shares: Shares, delta: Floats) -> tuple[Floats, Floats]:
    """Return the shares of highest likelihood among those whose difference is δ.

    The likelihood equation is a cubic; this is its only root in range, in Farrington and
    Manning's closed form.
    """
    p_control, p_test, n_control, n_test, *_ = shares
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


# --- Wald: the one that the paper uses ------------------------------------------------------------


def wald(control: Sums, test: Sums, *, tau: float, alpha: float, bounds: bool = True) -> Interval:  # noqa: ARG001 - bounds cost nothing
    r"""Compute the Wald interval and test.

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
    p_control, p_test, n_control, n_test, *_ = shares = Shares.of(control, test)
    numerator, denominator = difference(control, test)
    delta = np.asarray(numerator / denominator, dtype=np.float64)
    variance = p_control * (1 - p_control) / n_control + p_test * (1 - p_test) / n_test
    error = np.sqrt(variance + shares.doubt)
    with np.errstate(divide="ignore", invalid="ignore"):
        p_value = upper_tail(np.where(delta == tau, 0.0, (delta - tau) / error))
    margin = critical_value(alpha) * error
    degenerate, low = error == 0, delta - margin
    return Interval(
        low=np.where(degenerate, low, match_bound(low, p_value, tau=tau, alpha=alpha)),
        high=delta + margin,
        p_value=p_value,
        degenerate=degenerate,
    )


# --- differences whose variance is estimated ------------------------------------------------------


class Student(NamedTuple):
    """A test by Student's distribution: its statistic, the standard error, and the interval."""

    statistic: Floats
    error: Floats
    low: Floats
    high: Floats
    p_value: Floats

    @classmethod
    def of(
        cls,
        delta: Floats,
        variances: Sequence[Floats],
        groups: tuple[Sums, Sums],
        *,
        tau: float,
        alpha: float,
        scale: float = 1.0,
    ) -> Student:
        """Test a difference by the variance in both groups and Satterthwaite's degrees of freedom.

        The `variances` are divided by the sizes of their groups; `scale` is what a unit of doubt
        counts. Without any variance there is nothing to estimate it from: no degrees of freedom.
        """
        from scipy.special import stdtr, stdtrit

        sides, free = [], []
        with np.errstate(divide="ignore", invalid="ignore"):
            for variance, group in zip(variances, groups, strict=True):
                # one person alone has no variance
                sides.append(np.where(variance == 0, 0.0, variance / (group.weight - 1)))
                free.append(np.where(sides[-1] == 0, 0.0, sides[-1] ** 2 / (group.weight - 1)))
            chance = sides[0] + sides[1]
            freedom = np.where(chance == 0, _NORMAL, chance**2 / (free[0] + free[1]))
            error = np.sqrt(sum((g.doubt * scale for g in groups if g.doubt is not None), chance))
            statistic = np.where(delta == tau, 0.0, (delta - tau) / error)
        margin = -np.asarray(stdtrit(freedom, alpha)) * error
        p_value = np.asarray(stdtr(freedom, -statistic), dtype=np.float64)
        return cls(statistic, error, delta - margin, delta + margin, p_value)


# --- by name --------------------------------------------------------------------------------------

IntervalMethod = Callable[..., Interval]

DEFAULT_INTERVAL: Final = "miettinen-nurminen"

INTERVALS: Final[Mapping[str, IntervalMethod]] = {
    "miettinen-nurminen": miettinen_nurminen,
    "wald": wald,
}
"""Every interval of shares by its name; `interval=` of an audit picks one."""
