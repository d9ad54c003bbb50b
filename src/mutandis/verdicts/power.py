"""Power: how likely a true difference is found, before an audit.

Two groups of k people are refused with probabilities p_control and p_test, each person
independently. Power is the probability, added up exactly, of those of the (k + 1)² outcomes that
an audit calls significant.

One more refusal in the control group never makes a difference less significant, under any of the
tests (the tests of this module look at every outcome). So for each number of refusals in the test
group, a bisection finds the least significant number in the control group.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.engine.tally import Sums
from mutandis.errors import PlanError, suggest
from mutandis.outcomes.binary import REFUSED
from mutandis.outcomes.intervals import DEFAULT_INTERVAL, INTERVALS
from mutandis.outcomes.measures import MEASURES
from mutandis.outcomes.outcome import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["PowerAnalysis", "analyse_power"]

# outcomes that are less likely than this are left out: of a thousand they make up 1e-15
_NEGLIGIBLE = 1e-18
# precision of the smallest difference
_PRECISION = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerAnalysis:
    """What groups of different sizes can show."""

    # the true probabilities of a negative outcome, and the power that is asked for
    p_control: float
    p_test: float
    target: float
    # the test
    alpha: float
    tau: float
    interval: str
    measure: str
    # group sizes; the power of each; and the smallest difference above `p_test` that each shows
    # with the power asked for (None: none)
    ks: tuple[int, ...]
    powers: tuple[float, ...]
    smallest_differences: tuple[float | None, ...]
    smallest_k: int | None  # from which on the power stays at its target, up to `k_max`
    k_max: int
    curve: tuple[float, ...]  # the power at k = 1, 2, …, for a picture

    def table(self) -> pd.DataFrame:
        """Return one row for each k: its power, and the smallest difference that it shows."""
        import pandas as pd

        return pd.DataFrame(
            {
                "k": self.ks,
                "power": self.powers,
                "smallest_difference": np.array(self.smallest_differences, dtype=np.float64),
            }
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the curve as plain values, for JSON."""
        names = ("p_control", "p_test", "target", "alpha", "tau", "interval", "measure")
        return {
            **{name: getattr(self, name) for name in (*names, "smallest_k", "k_max")},
            "rows": [
                {"k": k, "power": power, "smallest_difference": least}
                for k, power, least in self._rows()
            ],
        }

    def _rows(self) -> Iterable[tuple[int, float, float | None]]:
        return zip(self.ks, self.powers, self.smallest_differences, strict=True)

    def __str__(self) -> str:
        """Describe the analysis in lines of text."""
        measure = MEASURES[self.measure]
        name = measure.symbol if measure.is_ratio else "π"
        null = f"{name} {'≤' if measure.worse_above else '≥'} {self.tau:g}"
        refused = f"{self.p_control:.3g} in the control group, {self.p_test:.3g}"
        end = f"Power {self.target:g} is not reached up to k = {self.k_max}."
        if self.smallest_k is not None:
            end = (
                f"From k = {self.smallest_k} on, power stays at or above {self.target:g} "
                f"(looked at up to k = {self.k_max})."
            )
        return "\n".join(
            [
                f"Refused: {refused} in the test group.",
                f"Test of {null} at α = {self.alpha:g} ({self.interval}).",
                f"     k   power   smallest Δp found with power {self.target:g}",
                *(
                    f"  {k:>4}   {power:.3f}   {'none' if least is None else format(least, '.3f')}"
                    for k, power, least in self._rows()
                ),
                end,
            ]
        )


def analyse_power(
    p_control: float,
    p_test: float,
    *,
    power: float = 0.8,
    ks: Iterable[int] = (15, 30, 50, 100),
    alpha: float = 0.05,
    tau: float = 0.0,
    interval: str = DEFAULT_INTERVAL,
    measure: str = "risk-difference",
    k_max: int = 500,
) -> PowerAnalysis:
    """Compute, before an audit, what groups of k people can show.

    Parameters
    ----------
    p_control, p_test
        The true probabilities of a negative outcome, among people like the complainant and among
        people like the counterfactual.
    power
        The probability with which this difference is to be found.
    ks
        Group sizes.
    alpha, tau, interval, measure
        As in an audit; a ratio has its own τ.
    k_max
        The largest k among which the smallest sufficient one is sought.

    Examples
    --------
    >>> import mutandis as mm
    >>> print(mm.power(0.6, 0.3))
    Refused: 0.6 in the control group, 0.3 in the test group.
    Test of π ≤ 0 at α = 0.05 (miettinen-nurminen).
         k   power   smallest Δp found with power 0.8
        15   0.508   0.437
        30   0.755   0.318
        50   0.915   0.247
       100   0.997   0.171
    From k = 33 on, power stays at or above 0.8 (looked at up to k = 500).
    """
    _check_shares(p_control=p_control, p_test=p_test)
    _check_power(power)
    rule = _read_rule(alpha, tau, interval, measure)
    sizes = tuple(sorted({_read_size("k", k) for k in ks}))
    if not sizes:
        raise PlanError("ks is empty. Give at least one group size: ks=(15, 30).")
    curve = _powers(p_control, p_test, max(_read_size("k_max", k_max), *sizes), rule)
    # counts are whole numbers, so power falls a little at some k: the one after the last that fails
    failing = np.flatnonzero(curve[:k_max] < power)
    smallest = int(failing[-1]) + 2 if len(failing) else 1
    return PowerAnalysis(
        p_control=float(p_control),
        p_test=float(p_test),
        target=float(power),
        alpha=alpha,
        tau=tau,
        interval=interval,
        measure=measure,
        ks=sizes,
        powers=tuple(curve[[k - 1 for k in sizes]].tolist()),
        smallest_differences=tuple(_smallest_difference(k, p_test, power, rule) for k in sizes),
        smallest_k=smallest if smallest <= k_max else None,
        k_max=int(k_max),
        curve=tuple(curve.tolist()),
    )


def _powers(p_control: float, p_test: float, largest: int, rule: Rule) -> NDArray[np.float64]:
    """Compute the power at k = 1, 2, …, `largest` at once."""
    from scipy.stats import binom

    ks = np.arange(1, largest + 1)
    sizes = np.repeat(ks, ks + 1)
    starts = np.cumsum(ks + 1) - (ks + 1)
    refused = np.arange(len(sizes)) - np.repeat(starts, ks + 1)
    weights = np.asarray(binom.pmf(refused, sizes, p_test))
    likely = np.flatnonzero(weights > _NEGLIGIBLE)
    least = _least_refusals(refused[likely], sizes[likely], rule)
    weights[likely] *= binom.sf(least - 1, sizes[likely], p_control)
    return np.asarray(np.minimum(np.add.reduceat(weights, starts), 1.0), dtype=np.float64)


def _smallest_difference(k: int, p_test: float, power: float, rule: Rule) -> float | None:
    """Find the smallest difference above p_test; None if 1 - p_test is too small."""
    from scipy.stats import binom

    refused = np.arange(k + 1)
    least = _least_refusals(refused, np.full_like(refused, k), rule)
    weights = binom.pmf(refused, k, p_test)

    def is_reached(p_control: float) -> bool:
        return float((weights * binom.sf(least - 1, k, p_control)).sum()) >= power

    low, high = float(p_test), 1.0
    if not is_reached(high):
        return None
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if is_reached(middle) else (middle, high)
    return high - p_test


def _least_refusals(
    tests: NDArray[np.int64], sizes: NDArray[np.int64], rule: Rule
) -> NDArray[np.int64]:
    """Find the least refusals in the control group that are significant (k + 1: none are)."""
    least, unknown = np.zeros_like(sizes), sizes + 1
    while (least < unknown).any():
        rows = np.flatnonzero(least < unknown)
        middle = (least[rows] + unknown[rows]) // 2
        control, test = (Sums.of(marks=n, places=sizes[rows]) for n in (middle, tests[rows]))
        found = REFUSED.compare(control, test, rule, depth="significance").significant
        unknown[rows] = np.where(found, middle, unknown[rows])
        least[rows] = np.where(found, least[rows], middle + 1)
    return least


def _check_shares(**shares: object) -> None:
    for name, value in shares.items():
        if not (isinstance(value, Real) and 0 <= float(value) <= 1):
            raise PlanError(f"{name}={value!r} is not a probability. Give a number from 0 to 1.")


def _check_power(power: object) -> None:
    if not (isinstance(power, Real) and 0 < float(power) < 1):
        raise PlanError(f"power={power!r} is outside (0, 1). Give a probability such as 0.8.")


def _read_rule(alpha: Any, tau: Any, interval: str, measure: str) -> Rule:
    if not (isinstance(alpha, Real) and 0 < float(alpha) < 0.5):
        raise PlanError(f"alpha={alpha!r} is outside (0, 0.5). Give a level such as 0.05.")
    if interval not in INTERVALS:
        allowed = ", ".join(INTERVALS)
        raise PlanError(f"interval={interval!r} is unknown. Allowed: {allowed}.")
    if measure not in MEASURES:
        allowed = ", ".join(MEASURES)
        raise PlanError(
            f"measure={measure!r} is unknown.{suggest(measure, MEASURES)} Allowed: {allowed}."
        )
    known = MEASURES[measure]
    if known.is_ratio:
        known.read_tau(tau)
        known.check_interval(interval)
    elif not (isinstance(tau, Real) and 0 <= float(tau) < 1):
        raise PlanError(f"tau={tau!r} is outside [0, 1). Give a least difference such as 0.1.")
    return Rule(
        kind=REFUSED, measure=known, interval=interval, tau=Fraction(str(tau)), alpha=float(alpha)
    )


def _read_size(name: str, value: object) -> int:
    if not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 1:
        return int(value)
    raise PlanError(f"{name}={value!r} is not allowed. Give an integer of at least 1.")
