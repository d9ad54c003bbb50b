"""Power: how likely a true difference is found, before an audit.

Two groups of k people are refused with probabilities p_control and p_test, each person
independently. There are (k + 1)² outcomes; power is the probability of those that an audit calls
significant, added up exactly, not simulated.

One more refusal in the control group never makes a difference less significant, under any of the
tests (the tests of this module look at every outcome). So for each number of refusals in the test
group there is a least number in the control group, and the outcomes beyond it need no look.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from mutandis.engine.tally import Sums
from mutandis.errors import PlanError, suggest
from mutandis.outcomes.intervals import DEFAULT_INTERVAL, IntervalName
from mutandis.outcomes.measures import MEASURES, MeasureName

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["PowerAnalysis", "analyse_power"]

# outcomes that are less likely than this are left out: of a thousand they make up 1e-15
_NEGLIGIBLE = 1e-18

# a difference of shares is found to this precision
_PRECISION = 1e-6


def smallest_difference(
    k: int,
    p_test: float,
    *,
    power: float,
    alpha: float,
    tau: float,
    interval: IntervalName,
    measure: MeasureName = "risk-difference",
) -> float | None:
    """Give the smallest difference above p_test that groups of k people show with this power.

    None: not even a control group that is refused throughout is enough.
    """
    tests = np.arange(k + 1)
    least = _least_refusals(
        tests, np.full_like(tests, k), alpha=alpha, tau=tau, interval=interval, measure=measure
    )
    weights = _binomial(tests, k, p_test)

    def reached(p_control: float) -> bool:
        return float((weights * _at_least(least, k, p_control)).sum()) >= power

    low, high = float(p_test), 1.0
    if not reached(high):
        return None
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high - p_test


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerAnalysis:
    """What groups of different sizes can show.

    Parameters
    ----------
    p_control, p_test
        The true probabilities of a negative outcome.
    target
        The power that is asked for.
    alpha, tau, interval, measure
        The test.
    ks, powers, smallest_differences
        Group sizes; the power each has; and the smallest difference above `p_test` that each
        shows with the power asked for (None: none).
    smallest_k, k_max
        The smallest k from which on the power stays at its target, up to `k_max` (None: none).
    curve
        The power at k = 1, 2, …, for a picture.
    """

    p_control: float
    p_test: float
    target: float
    alpha: float
    tau: float
    interval: IntervalName
    ks: tuple[int, ...]
    powers: tuple[float, ...]
    smallest_differences: tuple[float | None, ...]
    smallest_k: int | None
    k_max: int
    curve: tuple[float, ...]
    measure: MeasureName = "risk-difference"

    def table(self) -> pd.DataFrame:
        """Give one row for each k: its power, and the smallest difference that it shows."""
        import pandas as pd

        return pd.DataFrame(
            {
                "k": self.ks,
                "power": self.powers,
                "smallest_difference": np.array(self.smallest_differences, dtype=np.float64),
            }
        )

    def as_dict(self) -> dict[str, Any]:
        """Give everything but the curve as plain values, for JSON."""
        rows = zip(self.ks, self.powers, self.smallest_differences, strict=True)
        return {
            "p_control": self.p_control,
            "p_test": self.p_test,
            "target": self.target,
            "alpha": self.alpha,
            "tau": self.tau,
            "interval": self.interval,
            "measure": self.measure,
            "smallest_k": self.smallest_k,
            "k_max": self.k_max,
            "rows": [{"k": k, "power": p, "smallest_difference": d} for k, p, d in rows],
        }

    def __str__(self) -> str:
        """Give the analysis as a page of text."""
        refused = f"{self.p_control:.3g} in the control group, {self.p_test:.3g} in the test group"
        lines = [
            f"Refused: {refused}.",
            f"Test of {self._null()} at α = {self.alpha:g} ({self.interval}).",
            f"     k   power   smallest Δp found with power {self.target:g}",
        ]
        rows = zip(self.ks, self.powers, self.smallest_differences, strict=True)
        lines.extend(
            f"  {k:>4}   {found:.3f}   {'none' if least is None else format(least, '.3f')}"
            for k, found, least in rows
        )
        lines.append(self._conclusion())
        return "\n".join(lines)

    def _null(self) -> str:
        measure = MEASURES[self.measure]
        name = measure.symbol if measure.is_ratio else "π"
        return f"{name} {'≤' if measure.worse_above else '≥'} {self.tau:g}"

    def _conclusion(self) -> str:
        if self.smallest_k is None:
            return f"Power {self.target:g} is not reached up to k = {self.k_max}."
        return (
            f"From k = {self.smallest_k} on, power stays at or above {self.target:g} "
            f"(looked at up to k = {self.k_max})."
        )


def analyse_power(
    p_control: float,
    p_test: float,
    *,
    power: float = 0.8,
    ks: Iterable[int] = (15, 30, 50, 100),
    alpha: float = 0.05,
    tau: float = 0.0,
    interval: IntervalName = DEFAULT_INTERVAL,
    measure: MeasureName = "risk-difference",
    k_max: int = 500,
) -> PowerAnalysis:
    """Ask, before an audit, what groups of k people can show.

    Parameters
    ----------
    p_control, p_test
        The true probabilities of a negative outcome, among people like the complainant and among
        people like her counterfactual.
    power
        The probability with which this difference is to be found.
    ks
        Group sizes to look at.
    alpha, tau, interval, measure
        As in an audit; a ratio has its own τ.
    k_max
        How far to look for the smallest k.

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
    _check(p_control, p_test, alpha=alpha, interval=interval)
    _check_measure(measure, tau=tau, interval=interval)
    _check_target(power)
    sizes = tuple(sorted({_size("k", k) for k in ks}))
    if not sizes:
        raise PlanError("ks is empty. Give at least one group size: ks=(15, 30).")
    options: dict[str, Any] = {
        "alpha": alpha,
        "tau": tau,
        "interval": interval,
        "measure": measure,
    }
    longest = max(_size("k_max", k_max), *sizes)
    curve = tuple(_powers(p_control, p_test, range(1, longest + 1), **options).tolist())
    return PowerAnalysis(
        p_control=float(p_control),
        p_test=float(p_test),
        target=float(power),
        ks=sizes,
        powers=tuple(curve[k - 1] for k in sizes),
        smallest_differences=tuple(
            smallest_difference(k, p_test, power=power, **options) for k in sizes
        ),
        smallest_k=_stays(np.array(curve[:k_max]), power),
        k_max=int(k_max),
        curve=curve,
        **options,
    )


def _stays(powers: NDArray[np.float64], target: float) -> int | None:
    """Give the smallest k from which on the powers at k = 1, 2, … stay at the target.

    Counts are whole numbers, so power moves up and down a little as k grows: one k that reaches
    the target does not mean that the next one does.
    """
    too_low = np.flatnonzero(powers < target)
    k = int(too_low[-1]) + 2 if len(too_low) else 1
    return k if k <= len(powers) else None


def _powers(
    p_control: float, p_test: float, ks: Iterable[int], **options: Any
) -> NDArray[np.float64]:
    """Give the power at each k, all of them in one go."""
    ks = np.array(list(ks), dtype=np.int64)
    sizes = np.repeat(ks, ks + 1)
    starts = np.cumsum(ks + 1) - (ks + 1)
    tests = np.arange(len(sizes)) - np.repeat(starts, ks + 1)
    weights = _binomial(tests, sizes, p_test)
    likely = np.flatnonzero(weights > _NEGLIGIBLE)
    least = _least_refusals(tests[likely], sizes[likely], **options)
    weights[likely] *= _at_least(least, sizes[likely], p_control)
    return np.asarray(np.minimum(np.add.reduceat(weights, starts), 1.0), dtype=np.float64)


def _least_refusals(
    tests: NDArray[np.int64],
    sizes: NDArray[np.int64],
    *,
    alpha: float,
    tau: float,
    interval: IntervalName,
    measure: MeasureName,
) -> NDArray[np.int64]:
    """Find the least refusals in the control group that are significant (k + 1: none are)."""
    least, unknown = np.zeros_like(sizes), sizes + 1
    while (least < unknown).any():
        open_ = np.flatnonzero(least < unknown)
        middle = (least[open_] + unknown[open_]) // 2
        found = _significant(
            middle,
            tests[open_],
            sizes[open_],
            alpha=alpha,
            tau=tau,
            interval=interval,
            measure=measure,
        )
        unknown[open_] = np.where(found, middle, unknown[open_])
        least[open_] = np.where(found, least[open_], middle + 1)
    return least


def _significant(
    controls: NDArray[np.int64],
    tests: NDArray[np.int64],
    sizes: NDArray[np.int64],
    *,
    alpha: float,
    tau: float,
    interval: IntervalName,
    measure: MeasureName,
) -> NDArray[np.bool_]:
    """Tell which pairs of refusals an audit would call significant."""
    ones = np.ones_like(sizes)
    control = Sums.of(marks=controls, places=sizes, parts=ones)
    test = Sums.of(marks=tests, places=sizes, parts=ones)
    by = MEASURES[measure]
    evidence = by.is_beyond(control, test, Fraction(str(tau)))
    tested = by.test(interval)(control, test, tau=tau, alpha=alpha)
    return np.asarray(evidence & (tested.p_value <= alpha), dtype=np.bool_)


def _binomial(
    counts: NDArray[np.int64], sizes: NDArray[np.int64] | int, probability: float
) -> NDArray[np.float64]:
    from scipy.stats import binom

    return np.asarray(binom.pmf(counts, sizes, probability), dtype=np.float64)


def _at_least(
    counts: NDArray[np.int64], sizes: NDArray[np.int64] | int, probability: float
) -> NDArray[np.float64]:
    from scipy.stats import binom

    return np.asarray(binom.sf(counts - 1, sizes, probability), dtype=np.float64)


def _check(p_control: object, p_test: object, *, alpha: object, interval: object) -> None:
    for name, value in (("p_control", p_control), ("p_test", p_test)):
        if not (isinstance(value, Real) and 0 <= float(value) <= 1):
            raise PlanError(f"{name}={value!r} is not a probability. Give a number from 0 to 1.")
    if not (isinstance(alpha, Real) and 0 < float(alpha) < 0.5):
        raise PlanError(f"alpha={alpha!r} is outside (0, 0.5). Give a level such as 0.05.")
    if interval not in get_args(IntervalName):
        allowed = ", ".join(get_args(IntervalName))
        raise PlanError(f"interval={interval!r} is unknown. Allowed: {allowed}.")


def _check_measure(measure: MeasureName, *, tau: object, interval: IntervalName) -> None:
    if measure not in MEASURES:
        allowed = ", ".join(MEASURES)
        raise PlanError(
            f"measure={measure!r} is unknown.{suggest(measure, MEASURES)} Allowed: {allowed}."
        )
    if measure != "risk-difference":
        MEASURES[measure].read_tau(tau)
        MEASURES[measure].check_interval(interval)
    elif not (isinstance(tau, Real) and 0 <= float(tau) < 1):
        raise PlanError(f"tau={tau!r} is outside [0, 1). Give a least difference such as 0.1.")


def _check_target(power: object) -> None:
    if not (isinstance(power, Real) and 0 < float(power) < 1):
        raise PlanError(f"power={power!r} is outside (0, 1). Give a probability such as 0.8.")


def _size(name: str, value: object) -> int:
    if not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 1:
        return int(value)
    raise PlanError(f"{name}={value!r} is not allowed. Give an integer of at least 1.")
