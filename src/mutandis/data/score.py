"""Outcomes that are numbers: an interest rate, a rank, a sum granted.

A score is counted in equal steps from its best value, so that larger is worse and every sum over a
group is a sum of integers, as the counts of refusals are. Where all values are decimals, the steps
are exact. Where they are finer than sums in 64 bits have room for, they are rounded to steps, and
that is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor, log10
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from mutandis.errors import OutcomeError, PlanError, suggest

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Score", "ScoreScale", "Worse"]

Worse = Literal["higher", "lower"]

# sums over a group of squares, in parts of a place, stay below 2**62
_ROOM = 2**31
# decimal places that are looked for
_PLACES = 12


@dataclass(frozen=True, slots=True, init=False)
class Score:
    """An outcome that is a number, and which end of it is worse.

    Parameters
    ----------
    column
        The column with the score.
    worse
        "higher" (an interest rate, a waiting time) or "lower" (a sum granted, points).

    Examples
    --------
    >>> Score("rate", worse="higher")
    Score('rate', worse='higher')
    >>> Score("points", worse="less")
    Traceback (most recent call last):
    mutandis.errors.PlanError: worse='less' is unknown. Allowed: higher, lower.
    """

    column: str
    worse: Worse

    def __init__(self, column: str, *, worse: Worse) -> None:
        if worse not in get_args(Worse):
            allowed = get_args(Worse)
            raise PlanError(
                f"worse={worse!r} is unknown.{suggest(worse, allowed)} Allowed: higher, lower."
            )
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "worse", worse)

    def __repr__(self) -> str:
        """Show it as it is written."""
        return f"Score({self.column!r}, worse={self.worse!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreScale:
    """How a score is counted: in steps from its best value, more of them being worse."""

    worse: Worse
    best: Fraction
    step: Fraction
    exact: bool  # whether every value on record is a whole number of steps
    places: int  # decimals with which means are shown: a thousandth of the range or less
    # the fewest people that a group counts as for its mean to be tested: with fewer, the mean of a
    # skewed score is not near enough to normal
    fewest: int = 15

    @classmethod
    def fit(
        cls, column: str, values: NDArray[np.float64], *, worse: Worse, finest: bool = False
    ) -> ScoreScale:
        """Find the steps of a column; the `finest` that there is room for, if others may follow."""
        if not len(values) or not np.isfinite(values).all():
            raise OutcomeError(
                f"Outcome {column!r} has infinite values. Complete them, or leave these rows out."
            )
        distinct = np.unique(values)
        if len(distinct) == 1:
            raise OutcomeError(
                f"Outcome {column!r} is the same number in every row: there is nothing to compare."
            )
        most = max(1, _ROOM // len(values))
        numerators, places = _decimals(distinct)
        if numerators is not None and not finest:
            unit = int(np.gcd.reduce(numerators - numerators[0]))
            if int(numerators[-1] - numerators[0]) // unit <= most:
                ends = numerators[0], numerators[-1]
                return cls(
                    worse=worse,
                    best=Fraction(int(ends[worse == "lower"]), 10**places),
                    step=Fraction(unit, 10**places),
                    exact=True,
                    places=_shown_places(distinct),
                )
        if numerators is None:
            return cls._rounded(distinct, Fraction(0), worse, most)
        decimal = Fraction(int(numerators[0]), 10**places), Fraction(1, 10**places)
        return cls._rounded(distinct, decimal[1], worse, most, low=decimal[0])

    @classmethod
    def _rounded(
        cls,
        distinct: NDArray[np.float64],
        unit: Fraction,
        worse: Worse,
        most: int,
        *,
        low: Fraction | None = None,
    ) -> ScoreScale:
        """Take the finest decimal steps of which there are at most so many.

        `unit` is the step of the values themselves, 0 if they have none.
        """
        first, last = Fraction(float(distinct[0])), Fraction(float(distinct[-1]))
        step = Fraction(1, 10**_PLACES)
        while (last - first) / step > most - 1:
            step *= 10
        if low is not None:
            # the decimals that are meant, which floats are near
            first, last = low, low + round((last - first) / unit) * unit
        best = (first // step if worse == "higher" else -(-last // step)) * step
        return cls(
            worse=worse,
            best=best,
            step=step,
            exact=unit > 0 and (unit / step).denominator == 1,
            places=_shown_places(distinct),
        )

    @property
    def sign(self) -> int:
        """1 where more is worse, -1 where less is."""
        return 1 if self.worse == "higher" else -1

    def count(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count the steps of values from the best one; values between steps are rounded."""
        unit, best = _in_common(self.step, self.best)
        denominator = unit[1]
        # exact for decimals: the product is rounded to the whole number that it is
        steps = np.rint((values * denominator - best) / unit[0]).astype(np.int64)
        return np.asarray(steps * self.sign)

    def marks(self, steps: NDArray[Any]) -> NDArray[np.int64]:
        """Return what is summed over groups, by column: the steps and their squares."""
        return np.column_stack([steps, steps * steps]).astype(np.int64)

    def values(self, steps: NDArray[Any], whole: NDArray[Any] | int = 1) -> NDArray[np.float64]:
        """Give the scores that so many steps, divided by a `whole`, stand for."""
        (up, down), best = _in_common(self.step, self.best)
        steps = np.asarray(steps).astype(object)
        denominators = np.broadcast_to(np.asarray(whole).astype(object), steps.shape)
        found = np.full(steps.shape, np.nan)
        filled = np.flatnonzero(denominators > 0)
        some, below = steps[filled], denominators[filled]
        found[filled] = (best * below + self.sign * up * some) / (down * below)
        return found

    def differences(self, numerators: NDArray[Any], denominators: NDArray[Any]) -> Any:
        """Give differences of steps in units, larger being worse, rounded once."""
        up, down = self.step.numerator, self.step.denominator
        return ((numerators.astype(object) * up) / (denominators.astype(object) * down)).astype(
            np.float64
        )


def _shown_places(distinct: NDArray[np.float64]) -> int:
    return max(0, 3 - floor(log10(float(distinct[-1]) - float(distinct[0]))))


def _in_common(step: Fraction, best: Fraction) -> tuple[tuple[int, int], int]:
    """Give a step as a fraction, and the best value in the same parts."""
    down = step.denominator * best.denominator
    return (int(step * down), down), int(best * down)


def _decimals(distinct: NDArray[np.float64]) -> tuple[NDArray[np.int64] | None, int]:
    """Read sorted values as whole numbers over a power of ten; None if they are no decimals."""
    for places in range(_PLACES + 1):
        scaled = np.rint(distinct * 10.0**places)
        if np.abs(scaled).max() >= 2**53:
            break
        # a quotient is rounded correctly, so this is the float that stands for the decimal
        if np.array_equal(scaled / 10.0**places, distinct):
            return scaled.astype(np.int64), places
    return None, 0
