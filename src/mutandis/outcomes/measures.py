r"""Measures of how differently two groups were treated: the difference, and three ratios.

Courts and authorities look at different ones (docs/outcomes.md). Each has a threshold τ, an exact
comparison in integers, and a score test with the bounds that belong to it.

Notes
-----
Let p be shares of refusals. The *risk ratio* is :math:`p_c / p_t`, the *selection ratio*
:math:`(1 - p_c) / (1 - p_t)`, the *odds ratio*
:math:`\frac{p_c}{1 - p_c} / \frac{p_t}{1 - p_t}`. The score statistic of a hypothetical risk ratio
θ is

.. math:: z(\theta) = \frac{\hat p_c - \theta \hat p_t}
          {\sqrt{\left(\frac{\tilde p_c (1 - \tilde p_c)}{n_c} +
          \theta^2 \frac{\tilde p_t (1 - \tilde p_t)}{n_t}\right) \frac{n_c + n_t}{n_c + n_t - 1}
          + s_c^2 + \theta^2 s_t^2}}

with the shares of highest likelihood among those whose ratio is θ, and the variances s² of shares
that rest on estimates. That of the selection ratio is the same of approvals, with its sign turned;
that of a hypothetical odds ratio compares :math:`(\hat p - \tilde p) / (\tilde p (1 - \tilde p))`.
Each falls (that of the selection ratio rises) as θ grows: the bounds are where it reaches
:math:`\pm z_\alpha`, and the p-value is read at τ, so that significance, p-value and bound cannot
contradict each other. At τ = 1 all of them are the test of equal shares, and so is the
difference's at τ = 0.

References
----------
Miettinen, Nurminen (1985), Comparative analysis of two rates, Statistics in Medicine 4, 213-226,
for all of them. Koopman (1984), Confidence intervals for the ratio of two binomial proportions,
Biometrics 40, 513-517.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from mutandis.data.columns import is_number
from mutandis.engine.tally import SAFE, difference, exceeds
from mutandis.errors import PlanError
from mutandis.outcomes.intervals import (
    DEFAULT_INTERVAL,
    INTERVALS,
    Bounds,
    Interval,
    Shares,
    lower_bounds,
    miettinen_nurminen,
    upper_tail,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from numpy.typing import NDArray

    from mutandis.engine.tally import Sums

    Floats: TypeAlias = NDArray[np.float64]
    Terms: TypeAlias = tuple[NDArray[Any], NDArray[Any]]

__all__ = ["MEASURES", "RISK_DIFFERENCE", "Measure"]

# of the logarithm of a ratio: beyond, it is 0 or infinite
_FARTHEST_LOG = 40.0
# relative: a bound that does not reach τ differs from it by this, and so does its reciprocal
_LAST_BITS = 1e-15


# --- score statistics -----------------------------------------------------------------------------


def shares_of_ratio(shares: Shares, ratio: Floats) -> tuple[Floats, Floats]:
    """Return the shares of highest likelihood among those whose ratio is as given.

    The likelihood equation is quadratic; its discriminant is written as a sum of squares, so that
    nothing is lost where both of its roots meet.
    """
    p_control, p_test, n_control, n_test, *_ = shares
    first, second = ratio * (n_control + n_test * p_test), n_test + n_control * p_control
    apart = (first - second) ** 2
    apart += 4 * ratio * n_control * (1 - p_control) * n_test * (1 - p_test)
    refused = n_control * p_control + n_test * p_test
    test = np.minimum(2 * refused / (first + second + np.sqrt(apart)), np.minimum(1, 1 / ratio))
    return np.minimum(ratio * test, 1.0), test


def _ratio_statistic(shares: Shares, ratio: Floats) -> Floats:
    p_control, p_test, n_control, n_test, doubt_control, doubt_test = shares
    control, test = shares_of_ratio(shares, ratio)
    together = n_control + n_test
    variance = control * (1 - control) / n_control + ratio**2 * test * (1 - test) / n_test
    doubt = doubt_control + ratio**2 * doubt_test
    return _standardized(p_control - ratio * p_test, variance * together / (together - 1) + doubt)


def odds_of_ratio(shares: Shares, ratio: Floats) -> tuple[Floats, Floats]:
    """Return the odds of highest likelihood among those whose ratio is as given.

    The likelihood equation is quadratic in the odds of the test group, and has one root that is not
    negative: 0 without a single refusal, infinite without an approval.
    """
    p_control, p_test, n_control, n_test, *_ = shares
    refused = n_control * p_control + n_test * p_test
    square = ratio * (n_control * (1 - p_control) + n_test * (1 - p_test))
    linear = n_control * ratio + n_test - refused * (1 + ratio)
    root = np.sqrt(linear**2 + 4 * square * refused)
    with np.errstate(divide="ignore", invalid="ignore"):
        test = np.where(linear >= 0, 2 * refused / (linear + root), (root - linear) / (2 * square))
    return ratio * test, test


def _odds_statistic(shares: Shares, ratio: Floats) -> Floats:
    p_control, p_test, n_control, n_test, doubt_control, doubt_test = shares
    # without a refusal, or an approval, every odds ratio is as likely as every other
    alike = (p_control == p_test) & np.isin(p_test, (0.0, 1.0))
    odds_control, odds_test = (np.where(alike, 1.0, odds) for odds in odds_of_ratio(shares, ratio))
    control, test = odds_control / (1 + odds_control), odds_test / (1 + odds_test)
    together = n_control + n_test
    # both sides of the comparison times both variances, which may be very small
    spread_control, spread_test = control / (1 + odds_control), test / (1 + odds_test)
    distance = (p_control - control) * spread_test - (p_test - test) * spread_control
    variance = spread_control * spread_test**2 / n_control
    variance += spread_test * spread_control**2 / n_test
    doubt = _log_odds_doubt(p_control, n_control, doubt_control)
    doubt = (doubt + _log_odds_doubt(p_test, n_test, doubt_test)) * (
        spread_control * spread_test
    ) ** 2
    return _standardized(
        np.where(alike, 0.0, distance), variance * together / (together - 1) + doubt
    )


def _log_odds_doubt(share: Floats, size: Floats, doubt: Floats) -> Floats:
    """Return the variance of estimated log odds, with half a refusal and half an approval added.

    It is taken at the share itself, and not at the one that a hypothetical ratio implies: the
    statistic would not fall everywhere.
    """
    share = (share * size + 0.5) / (size + 1)
    return doubt / (share * (1 - share)) ** 2


def _standardized(distance: Floats, variance: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance == 0, 0.0, distance / np.sqrt(np.maximum(variance, 0.0)))


# --- exact terms: what is divided by what ---------------------------------------------------------


def _wholes(control: Sums, test: Sums, factor: int) -> tuple[NDArray[Any], ...]:
    """Return refusals and places of both groups, in integers that have room for their products."""
    places = control.places * control.parts[:, 0], test.places * test.parts[:, 0]
    largest = np.max(places[0].astype(float) * places[1], initial=0) * factor
    kind: Any = np.int64 if largest < SAFE else object
    wholes = (control.marks[:, 0], places[0], test.marks[:, 0], places[1])
    return tuple(each.astype(kind) for each in wholes)


def _difference_terms(control: Sums, test: Sums, factor: int) -> Terms:  # noqa: ARG001
    return difference(control, test)


def _risk_terms(control: Sums, test: Sums, factor: int) -> Terms:
    refused, places, refused_test, places_test = _wholes(control, test, factor)
    return refused * places_test, refused_test * places


def _odds_terms(control: Sums, test: Sums, factor: int) -> Terms:
    refused, places, refused_test, places_test = _wholes(control, test, factor)
    return refused * (places_test - refused_test), refused_test * (places - refused)


# --- the measures ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """How differently two groups were treated, as one number."""

    name: str
    symbol: str  # in a sentence
    formula: str
    tau: str  # which thresholds it has, as it follows "tau=3 is"
    worse_above: bool = True  # whether it is larger where the control group is treated worse
    largest: float = 1.0  # of a difference: every τ is below
    terms: Callable[[Sums, Sums, int], Terms] = _difference_terms
    # of a hypothetical ratio; None: the measure is a difference
    statistic: Callable[[Shares, Floats], Floats] | None = None

    @property
    def is_ratio(self) -> bool:
        """Whether it is a ratio, and not a difference."""
        return self.statistic is not None

    @property
    def column(self) -> str:
        """The name of its column in the findings; its bounds end in ``_low`` and ``_high``."""
        return self.name.replace("-", "_")

    def read_tau(self, value: object) -> float:
        """Check that a threshold is one of this measure."""
        if is_number(value):
            tau = float(value)  # type: ignore[arg-type]  # a number
            if self.is_ratio:
                allowed = 1 <= tau < np.inf if self.worse_above else 0 < tau <= 1
            else:
                allowed = 0 <= tau < self.largest
            if allowed:
                return tau
        raise PlanError(f"tau={value!r} is {self.tau}")

    def threshold(self, tau: float, *, worse: bool) -> float:
        """Return the value beyond which there is evidence, in the direction that is looked for."""
        if worse:
            return tau
        return 1 / tau if self.is_ratio else 0 - tau

    def above(self, *, worse: bool) -> bool:
        """Whether evidence lies above the threshold, in the direction that is looked for."""
        return self.worse_above == worse

    def condition(self, tau: float, *, worse: bool) -> str:
        """Write what evidence is: "Δp > 0.1"."""
        sign = ">" if self.above(worse=worse) else "<"
        return f"{self.symbol} {sign} {self.threshold(tau, worse=worse):g}"

    def describe(self, value: float) -> str:
        """Write a value of it: "risk ratio = 1.500"."""
        if np.isnan(value):
            return f"{self.symbol} not defined, since it would divide 0 by 0"
        return f"{self.symbol} {'infinite' if np.isinf(value) else f'= {value:.3f}'}"

    def values(self, control: Sums, test: Sums) -> Floats:
        """Compute it from exact shares: infinite where it divides by 0, missing where 0 by 0."""
        numerator, denominator = self.terms(*self._counted(control, test), 1)
        found = np.full(len(control.places), np.nan)
        found[np.flatnonzero(numerator > 0)] = np.inf
        whole = np.flatnonzero(denominator)
        found[whole] = numerator[whole] / denominator[whole]
        return found

    def is_beyond(self, control: Sums, test: Sums, tau: Fraction) -> NDArray[np.bool_]:
        """Find where the control group is treated worse by more than τ, on integers."""
        factor = max(tau.numerator, tau.denominator)
        numerator, denominator = self.terms(*self._counted(control, test), factor)
        if not self.is_ratio:
            return exceeds(numerator, denominator, tau)
        left, right = numerator * tau.denominator, denominator * tau.numerator
        return np.asarray(left > right if self.worse_above else left < right, dtype=np.bool_)

    def check_interval(self, name: str | None) -> None:
        """Refuse intervals that know no ratios."""
        if self.is_ratio and name in INTERVALS and name != DEFAULT_INTERVAL:
            raise PlanError(
                f"interval={name!r} is about differences, and measure={self.name!r} is a ratio: "
                "the interval of a ratio is 'miettinen-nurminen'. Leave interval out, or take "
                "measure='risk-difference'."
            )

    def test(
        self,
        control: Sums,
        test: Sums,
        *,
        tau: float,
        alpha: float,
        interval: str = DEFAULT_INTERVAL,
        bounds: bool = True,
    ) -> Interval:
        """Test it against τ; without `bounds`, those that take longer than the test are missing."""
        if self.statistic is None:
            return INTERVALS[interval](control, test, tau=tau, alpha=alpha, bounds=bounds)
        shares = Shares.of(*self._counted(control, test))
        found = self.statistic(shares, np.full_like(shares.p_control, tau))
        p_value = upper_tail(found if self.worse_above else -found)
        if not bounds:
            return Interval.without_bounds(p_value)
        # on a scale of logarithms
        logs = lower_bounds(
            lambda counts, log: self.statistic(counts, np.exp(log)),  # type: ignore[misc]
            shares,
            -_FARTHEST_LOG,
            _FARTHEST_LOG,
            alpha=alpha,
        )
        low, mirrored = (np.where(log <= -_FARTHEST_LOG, 0.0, np.exp(log)) for log in logs)
        with np.errstate(divide="ignore"):
            high = 1 / mirrored
        # the last bit of a bound must not contradict the p-value that it belongs to
        rejected = p_value <= alpha
        if self.worse_above:
            low = np.where(rejected, np.maximum(low, tau), np.minimum(low, tau * (1 - _LAST_BITS)))
        else:
            above = np.maximum(high, tau * (1 + _LAST_BITS))
            high = np.where(rejected, np.minimum(high, tau), above)
        difference_of = miettinen_nurminen(control, test, tau=0.0, alpha=alpha)
        return replace(difference_of, p_value=p_value, measured=Bounds(low=low, high=high))

    def _counted(self, control: Sums, test: Sums) -> tuple[Sums, Sums]:
        """Return the sums of refusals; of approvals, where it is a ratio of them."""
        return (control, test) if self.worse_above else (_approvals(control), _approvals(test))


def _approvals(share: Sums) -> Sums:
    return replace(share, marks=share.places[:, np.newaxis] * share.parts - share.marks)


RISK_DIFFERENCE: Final = Measure(
    name="risk-difference",
    symbol="Δp",
    formula="p_control − p_test",
    tau="outside [0, 1). Give the least difference between two shares that counts as evidence, "
    "such as 0.1; 0 takes any.",
)
"""The measure of the paper, and the default."""

_RATIOS = (
    Measure(
        name="risk-ratio",
        symbol="risk ratio",
        formula="p_control / p_test",
        tau="below 1, or infinite. Give the least ratio p_control / p_test that counts as "
        "evidence, such as 1.25; 1 takes any (measure='risk-ratio').",
        terms=_risk_terms,
        statistic=_ratio_statistic,
    ),
    Measure(
        name="selection-ratio",
        symbol="selection ratio",
        formula="(1 − p_control) / (1 − p_test)",
        tau="outside (0, 1]. Give the ratio (1 - p_control) / (1 - p_test) below which there is "
        "evidence, such as 0.8 for the four-fifths rule; 1 takes any (measure='selection-ratio').",
        worse_above=False,
        terms=_risk_terms,
        statistic=_ratio_statistic,
    ),
    Measure(
        name="odds-ratio",
        symbol="odds ratio",
        formula="p_control / (1 − p_control) · (1 − p_test) / p_test",
        tau="below 1, or infinite. Give the least odds ratio that counts as evidence, such as "
        "1.5; 1 takes any (measure='odds-ratio').",
        terms=_odds_terms,
        statistic=_odds_statistic,
    ),
)

MEASURES: Final[Mapping[str, Measure]] = {each.name: each for each in (RISK_DIFFERENCE, *_RATIOS)}
"""Every measure of shares by its name; `measure=` of `Evidence` picks one."""
