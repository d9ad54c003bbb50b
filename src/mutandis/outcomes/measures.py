r"""Measures of how differently two groups were treated: the difference, and three ratios.

Courts and authorities look at different ones (docs/outcomes.md). Each has its own threshold τ, its
exact comparison in integers, and its score test with the bounds that belong to it.

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

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np

from mutandis.data.columns import is_number
from mutandis.engine.tally import SAFE, difference, exceeds
from mutandis.errors import PlanError
from mutandis.outcomes.intervals import (
    INTERVALS,
    TESTS,
    Bounds,
    Interval,
    critical_value,
    find_crossing,
    miettinen_nurminen,
    no_interval,
)

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from mutandis.engine.tally import Sums
    from mutandis.outcomes.intervals import IntervalMethod, IntervalName
    from mutandis.outcomes.outcome import Depth

__all__ = [
    "MEAN_DIFFERENCE",
    "MEASURES",
    "RISK_DIFFERENCE",
    "AnyMeasure",
    "Measure",
    "MeasureName",
    "measure_named",
]

MeasureName = Literal["risk-difference", "risk-ratio", "selection-ratio", "odds-ratio"]
AnyMeasure = Literal[MeasureName, "mean-difference", "relative-effect"]
"""Those of shares of refusals, and the one of scores."""

# of the logarithm of a ratio: beyond, it is 0 or infinite
_FARTHEST_LOG = 40.0
# where a statistic is far out, a root finder needs a number: farther than any critical value
_FARTHEST_SCORE = 50.0
# relative: a bound that does not reach τ differs from it by this, and so does its reciprocal
_LAST_BITS = 1e-15


class _Counts(NamedTuple):
    """The shares of both groups, their sizes, and their variances as estimates, as floats."""

    p_control: NDArray[np.float64]
    p_test: NDArray[np.float64]
    n_control: NDArray[np.float64]
    n_test: NDArray[np.float64]
    doubt_control: NDArray[np.float64]
    doubt_test: NDArray[np.float64]

    @classmethod
    def of(cls, control: Sums, test: Sums) -> _Counts:
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
    def exchanged(self) -> _Counts:
        """The same with control and test group exchanged."""
        return _Counts(*(self[place] for place in (1, 0, 3, 2, 5, 4)))


# --- score statistics --------------------------------------------------------------------------


def shares_of_ratio(
    counts: _Counts, ratio: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the shares of highest likelihood among those whose ratio is as given.

    The likelihood equation is quadratic; its discriminant is written as a sum of squares, so that
    nothing is lost where both of its roots meet.
    """
    p_control, p_test, n_control, n_test, *_ = counts
    first, second = ratio * (n_control + n_test * p_test), n_test + n_control * p_control
    apart = (first - second) ** 2
    apart += 4 * ratio * n_control * (1 - p_control) * n_test * (1 - p_test)
    refused = n_control * p_control + n_test * p_test
    test = np.minimum(2 * refused / (first + second + np.sqrt(apart)), np.minimum(1, 1 / ratio))
    return np.minimum(ratio * test, 1.0), test


def _ratio_statistic(counts: _Counts, ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    p_control, p_test, n_control, n_test, doubt_control, doubt_test = counts
    control, test = shares_of_ratio(counts, ratio)
    together = n_control + n_test
    variance = control * (1 - control) / n_control + ratio**2 * test * (1 - test) / n_test
    doubt = doubt_control + ratio**2 * doubt_test
    return _standardized(p_control - ratio * p_test, variance * together / (together - 1) + doubt)


def odds_of_ratio(
    counts: _Counts, ratio: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the odds of highest likelihood among those whose ratio is as given.

    The likelihood equation is quadratic in the odds of the test group, and has one root that is not
    negative: 0 without a single refusal, infinite without an approval.
    """
    p_control, p_test, n_control, n_test, *_ = counts
    refused = n_control * p_control + n_test * p_test
    square = ratio * (n_control * (1 - p_control) + n_test * (1 - p_test))
    linear = n_control * ratio + n_test - refused * (1 + ratio)
    root = np.sqrt(linear**2 + 4 * square * refused)
    with np.errstate(divide="ignore", invalid="ignore"):
        test = np.where(linear >= 0, 2 * refused / (linear + root), (root - linear) / (2 * square))
    return ratio * test, test


def _odds_statistic(counts: _Counts, ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    p_control, p_test, n_control, n_test, doubt_control, doubt_test = counts
    # without a refusal, or an approval, every odds ratio is as likely as every other
    alike = (p_control == p_test) & np.isin(p_test, (0.0, 1.0))
    odds_control, odds_test = (np.where(alike, 1.0, odds) for odds in odds_of_ratio(counts, ratio))
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


def _log_odds_doubt(
    share: NDArray[np.float64], size: NDArray[np.float64], doubt: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give the variance of estimated log odds, with half a refusal and half an approval added.

    It is taken at the share itself, and not at the one that a hypothetical ratio implies: the
    statistic would not fall everywhere.
    """
    share = (share * size + 0.5) / (size + 1)
    return doubt / (share * (1 - share)) ** 2


def _standardized(
    distance: NDArray[np.float64], variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance == 0, 0.0, distance / np.sqrt(np.maximum(variance, 0.0)))


_Statistic = Callable[[_Counts, "NDArray[np.float64]"], "NDArray[np.float64]"]


def _ratio_bounds(
    counts: _Counts, statistic: _Statistic, *, alpha: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find where the statistic reaches ±z_α, on a scale of logarithms."""
    # the upper bound is the lower one of the exchanged groups: the same curve from the other side
    both = _Counts(*map(np.concatenate, zip(counts, counts.exchanged, strict=True)))

    def gap(log: NDArray[np.float64], *arguments: NDArray[np.float64]) -> NDArray[np.float64]:
        *columns, target = arguments
        found = statistic(_Counts(*columns), np.exp(log)) - target
        return np.clip(found, -_FARTHEST_SCORE, _FARTHEST_SCORE)

    critical = np.full_like(both.p_control, critical_value(alpha))
    log = find_crossing(gap, -_FARTHEST_LOG, _FARTHEST_LOG, (*both, critical))
    low = np.where(log <= -_FARTHEST_LOG, 0.0, np.exp(log))
    size = len(counts.p_control)
    with np.errstate(divide="ignore"):
        return low[:size], 1 / low[size:]


# --- exact terms -------------------------------------------------------------------------------

_Terms = tuple["NDArray[Any]", "NDArray[Any]"]


def _wholes(control: Sums, test: Sums, factor: int) -> tuple[NDArray[Any], ...]:
    """Give refusals and places of both groups, in integers that have room for their products."""
    places = control.places * control.parts[:, 0], test.places * test.parts[:, 0]
    largest = np.max(places[0].astype(float) * places[1], initial=0) * factor
    kind: Any = np.int64 if largest < SAFE else object
    return (
        control.marks[:, 0].astype(kind),
        places[0].astype(kind),
        test.marks[:, 0].astype(kind),
        places[1].astype(kind),
    )


def _difference_terms(control: Sums, test: Sums, factor: int) -> _Terms:  # noqa: ARG001
    return difference(control, test)


def _risk_terms(control: Sums, test: Sums, factor: int) -> _Terms:
    refused, places, refused_test, places_test = _wholes(control, test, factor)
    return refused * places_test, refused_test * places


def _selection_terms(control: Sums, test: Sums, factor: int) -> _Terms:
    refused, places, refused_test, places_test = _wholes(control, test, factor)
    return (places - refused) * places_test, (places_test - refused_test) * places


def _odds_terms(control: Sums, test: Sums, factor: int) -> _Terms:
    refused, places, refused_test, places_test = _wholes(control, test, factor)
    return refused * (places_test - refused_test), refused_test * (places - refused)


# --- the measures ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One way to say how differently two groups were treated."""

    name: AnyMeasure
    symbol: str  # as it stands in a sentence
    formula: str
    neutral: float  # its value where both groups are treated alike: the τ that takes any
    worse_above: bool  # whether it is larger where the control group is treated worse
    terms: Callable[[Sums, Sums, int], _Terms]  # what is divided by what, exactly
    statistic: _Statistic | None = None  # of a hypothetical ratio; None: the measure is no ratio

    @property
    def is_ratio(self) -> bool:
        """Whether it is a ratio, and not the difference."""
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
                allowed = 0 <= tau < _LARGEST.get(self.name, 1)
            if allowed:
                return tau
        raise PlanError(f"tau={value!r} {_TAU[self.name]}")

    def threshold(self, tau: float, *, worse: bool) -> float:
        """Give the value beyond which there is evidence, in the direction that is looked for."""
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
        """Say a value of it: "risk ratio = 1.500"."""
        if np.isnan(value):
            return f"{self.symbol} not defined, since it would divide 0 by 0"
        return f"{self.symbol} {'infinite' if np.isinf(value) else f'= {value:.3f}'}"

    def values(self, control: Sums, test: Sums) -> NDArray[np.float64]:
        """Compute it from exact shares: infinite where it divides by 0, missing where 0 by 0."""
        numerator, denominator = self.terms(control, test, 1)
        found = np.full(len(control.places), np.nan)
        found[np.flatnonzero(numerator > 0)] = np.inf
        whole = np.flatnonzero(denominator)
        found[whole] = numerator[whole] / denominator[whole]
        return found

    def is_beyond(self, control: Sums, test: Sums, tau: Fraction) -> NDArray[np.bool_]:
        """Tell where the control group is treated worse by more than τ, on integers."""
        factor = max(tau.numerator, tau.denominator)
        numerator, denominator = self.terms(control, test, factor)
        if not self.is_ratio:
            return exceeds(numerator, denominator, tau)
        left, right = numerator * tau.denominator, denominator * tau.numerator
        return np.asarray(left > right if self.worse_above else left < right, dtype=np.bool_)

    def tested(self, name: str, depth: Depth) -> IntervalMethod:
        """Return the method that computes what a comparison of this depth needs."""
        if depth == "evidence":
            return no_interval
        known = cast("IntervalName", name)
        return self.test(known) if depth == "significance" else self.interval(known)

    def interval(self, name: IntervalName) -> IntervalMethod:
        """Give the method that computes bounds and p-values."""
        return self._bounded if self.is_ratio else INTERVALS[name]

    def test(self, name: IntervalName) -> IntervalMethod:
        """Give the same p-values; bounds that take longer than the test itself are missing."""
        return self._tested if self.is_ratio else TESTS[name]

    def check_interval(self, name: str | None) -> None:
        """Refuse intervals that know no ratios."""
        if self.is_ratio and name not in {None, "miettinen-nurminen"}:
            raise PlanError(
                f"interval={name!r} is about differences, and measure={self.name!r} is a ratio: "
                "the interval of a ratio is 'miettinen-nurminen'. Leave interval out, or take "
                "measure='risk-difference'."
            )

    def _counts(self, control: Sums, test: Sums) -> _Counts:
        """Give the counts of refusals; of approvals, where it is a ratio of them."""
        pair = (control, test) if self.worse_above else (_approvals(control), _approvals(test))
        return _Counts.of(*pair)

    def _p_value(self, counts: _Counts, tau: float) -> NDArray[np.float64]:
        from scipy.special import ndtr

        if self.statistic is None:
            raise TypeError("the test of a difference belongs to its interval")
        found = self.statistic(counts, np.full_like(counts.p_control, tau))
        return np.asarray(ndtr(-found if self.worse_above else found), dtype=np.float64)

    def _tested(
        self,
        control: Sums,
        test: Sums,
        *,
        tau: float,
        alpha: float,
    ) -> Interval:
        return Interval.without_bounds(self._p_value(self._counts(control, test), tau))

    def _bounded(self, control: Sums, test: Sums, *, tau: float, alpha: float) -> Interval:
        """Give bounds of the ratio and of the difference, and the p-value of the ratio."""
        if self.statistic is None:
            raise TypeError("the bounds of a difference are its interval")
        counts = self._counts(control, test)
        low, high = _ratio_bounds(counts, self.statistic, alpha=alpha)
        p_value = self._p_value(counts, tau)
        # the last bit of a bound must not contradict the p-value that it belongs to
        rejected = p_value <= alpha
        if self.worse_above:
            low = np.where(rejected, np.maximum(low, tau), np.minimum(low, tau * (1 - _LAST_BITS)))
        else:
            high = np.where(
                rejected, np.minimum(high, tau), np.maximum(high, tau * (1 + _LAST_BITS))
            )
        difference_of = miettinen_nurminen(control, test, tau=0.0, alpha=alpha)
        return replace(difference_of, p_value=p_value, measured=Bounds(low=low, high=high))


def _approvals(share: Sums) -> Sums:
    return replace(share, marks=share.places[:, np.newaxis] * share.parts - share.marks)


# a difference is below this, if not below 1
_LARGEST: dict[AnyMeasure, float] = {"mean-difference": np.inf, "relative-effect": 0.5}

_TAU: dict[AnyMeasure, str] = {
    "relative-effect": "is outside [0, 0.5). Give the least θ - ½ that counts as evidence, such as "
    "0.05: θ is the probability that a person of the control group has a worse outcome than one of "
    "the test group, equal ones counted half. 0 takes any.",
    "mean-difference": "is below 0, or infinite. Give the least difference between two means that "
    "counts as evidence, in units of the score; 0 takes any.",
    "risk-difference": "is outside [0, 1). Give the least difference between two shares that "
    "counts as evidence, such as 0.1; 0 takes any.",
    "risk-ratio": "is below 1, or infinite. Give the least ratio p_control / p_test that counts as "
    "evidence, such as 1.25; 1 takes any (measure='risk-ratio').",
    "selection-ratio": "is outside (0, 1]. Give the ratio (1 - p_control) / (1 - p_test) below "
    "which there is evidence, such as 0.8 for the four-fifths rule; 1 takes any "
    "(measure='selection-ratio').",
    "odds-ratio": "is below 1, or infinite. Give the least odds ratio that counts as evidence, "
    "such as 1.5; 1 takes any (measure='odds-ratio').",
}

RISK_DIFFERENCE = Measure(
    name="risk-difference",
    symbol="Δp",
    formula="p_control − p_test",
    neutral=0.0,
    worse_above=True,
    terms=_difference_terms,
)
"""The measure of the paper, and the default."""

MEASURES: dict[AnyMeasure, Measure] = {
    each.name: each
    for each in (
        RISK_DIFFERENCE,
        Measure(
            name="risk-ratio",
            symbol="risk ratio",
            formula="p_control / p_test",
            neutral=1.0,
            worse_above=True,
            terms=_risk_terms,
            statistic=_ratio_statistic,
        ),
        Measure(
            name="selection-ratio",
            symbol="selection ratio",
            formula="(1 − p_control) / (1 − p_test)",
            neutral=1.0,
            worse_above=False,
            terms=_selection_terms,
            statistic=_ratio_statistic,
        ),
        Measure(
            name="odds-ratio",
            symbol="odds ratio",
            formula="p_control / (1 − p_control) · (1 − p_test) / p_test",
            neutral=1.0,
            worse_above=True,
            terms=_odds_terms,
            statistic=_odds_statistic,
        ),
    )
}
"""Every measure of shares by its name; `measure=` of `Evidence` picks one."""

MEAN_DIFFERENCE = Measure(
    name="mean-difference",
    symbol="Δ",
    formula="mean of the control group − mean of the test group, larger being worse",
    neutral=0.0,
    worse_above=True,
    terms=_difference_terms,
)
"""The measure of scores (docs/outcomes.md)."""

RELATIVE_EFFECT = Measure(
    name="relative-effect",
    symbol="Δ",
    formula="θ − ½, θ = P(control worse) + ½ P(both equal)",
    neutral=0.0,
    worse_above=True,
    terms=_difference_terms,
)
"""The measure of ordered outcomes (docs/outcomes.md)."""

_OTHERS = {each.name: each for each in (MEAN_DIFFERENCE, RELATIVE_EFFECT)}


def measure_named(name: AnyMeasure) -> Measure:
    """Give a measure of shares, or that of scores or of ordered outcomes."""
    return _OTHERS[name] if name in _OTHERS else MEASURES[name]
