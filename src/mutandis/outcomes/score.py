"""Outcomes that are numbers: an interest rate, a rank, a sum granted.

A score is coded in equal steps from its best value, so that larger is worse and every sum over a
group is a sum of integers. Where all values are decimals, the steps are exact. Where they are finer
than sums in 64 bits have room for, they are rounded to steps, and a caution says so.

Groups sum the steps and their squares. Δ is the difference of means, in units of the score and
oriented so that larger is worse; means and variances are exact. The number of people that a group
counts as is its size, or the effective number of a matched group.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor, fsum, log10
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, get_args

import numpy as np

from mutandis.data.columns import Numbers, frozen
from mutandis.errors import OutcomeError, PlanError, suggest
from mutandis.outcomes.intervals import Interval, Student, match_bound
from mutandis.outcomes.measures import Measure
from mutandis.outcomes.outcome import Declaration, Kind, Outcome, Words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column
    from mutandis.data.labels import Labels
    from mutandis.engine.tally import Sums
    from mutandis.outcomes.outcome import Rule

    Floats = NDArray[np.float64]
    Steps = NDArray[np.int64]

__all__ = ["MEAN_DIFFERENCE", "Score", "ScoreKind", "ScoreWords", "Worse"]

Worse = Literal["higher", "lower"]

# sums over a group of squares, in parts of a place, stay below 2**62
_ROOM = 2**31
# decimal places that are looked for
_PLACES = 12
# beyond this skewness, Welch's test may not keep its level (docs/outcomes.md)
_SKEWED = 3

MEAN_DIFFERENCE: Final = Measure(
    name="mean-difference",
    symbol="Δ",
    formula="mean of the control group − mean of the test group, larger being worse",
    tau="below 0, or infinite. Give the least difference between two means that counts as "
    "evidence, in units of the score; 0 takes any.",
    largest=np.inf,
)


@dataclass(frozen=True, slots=True)
class Score(Declaration):
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
    Score(column='rate', worse='higher')
    >>> Score("points", worse="less")
    Traceback (most recent call last):
    mutandis.errors.PlanError: worse='less' is unknown. Allowed: higher, lower.
    """

    column: str
    worse: Worse = field(kw_only=True)

    key: ClassVar[str] = "worse"
    title: ClassVar[str] = "a score"
    plural: ClassVar[str] = "scores"
    example: ClassVar[str] = "Score({}, worse='higher')"
    numeric: ClassVar[bool] = True
    measure: ClassVar[Measure] = MEAN_DIFFERENCE
    interval: ClassVar[str] = "welch"

    def __post_init__(self) -> None:
        if self.worse not in get_args(Worse):
            near = suggest(self.worse, get_args(Worse))
            raise PlanError(f"worse={self.worse!r} is unknown.{near} Allowed: higher, lower.")

    def read(self, column: Column, *, finest: bool = False) -> Outcome:
        """Read numbers; in the `finest` steps where values between those on record may follow."""
        if not isinstance(column, Numbers):
            raise TypeError("a score is read as numbers")
        kind = ScoreKind.fit(self.column, column.values, worse=self.worse, finest=finest)
        codes = frozen(kind.count(column.values))
        return Outcome(column=self.column, kind=kind, codes=codes, on_record=column)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreKind(Kind):
    """Numbers, coded as steps from the best value."""

    worse: Worse
    best: Fraction
    step: Fraction
    exact_steps: bool  # whether every value on record is a whole number of steps
    places: int  # decimals with which means are shown: a thousandth of the range or less
    # the fewest people that a group counts as for its mean to be tested: with fewer, the mean of a
    # skewed score is not near enough to normal
    fewest: int = 15

    numeric: ClassVar[bool] = True
    renamed: ClassVar[Mapping[str, str]] = {
        "p_control": "mean_control",
        "p_test": "mean_test",
        "delta_p": "delta",
        "p_own": "mean_own",
        "cases_refused": "cases_worse",
    }

    @classmethod
    def fit(cls, column: str, values: Floats, *, worse: Worse, finest: bool = False) -> ScoreKind:
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
        shown = max(0, 3 - floor(log10(float(distinct[-1]) - float(distinct[0]))))
        numerators, decimals = _decimals(distinct)
        low, high = Fraction(float(distinct[0])), Fraction(float(distinct[-1]))
        unit = Fraction(0)  # the step of the values themselves
        if numerators is not None:
            # the decimals that are meant, which floats are near
            unit = Fraction(1, 10**decimals)
            low, high = (int(end) * unit for end in numerators[[0, -1]])
        if numerators is not None and not finest:
            step = int(np.gcd.reduce(numerators - numerators[0])) * unit
            if (high - low) / step <= most:
                best = low if worse == "higher" else high
                return cls(worse=worse, best=best, step=step, exact_steps=True, places=shown)
        # the finest decimal steps of which there are at most so many
        step = Fraction(1, 10**_PLACES)
        while (Fraction(float(distinct[-1])) - Fraction(float(distinct[0]))) / step > most - 1:
            step *= 10
        best = (low // step if worse == "higher" else -(-high // step)) * step
        exact = unit > 0 and (unit / step).denominator == 1
        return cls(worse=worse, best=best, step=step, exact_steps=exact, places=shown)

    @property
    def sign(self) -> int:
        """1 where more is worse, -1 where less is."""
        return 1 if self.worse == "higher" else -1

    def count(self, values: Floats) -> Steps:
        """Count the steps of values from the best one; values between steps are rounded."""
        (up, down), best = self._in_common()
        # exact for decimals: the product is rounded to the whole number that it is
        return np.asarray(np.rint((values * down - best) / up).astype(np.int64) * self.sign)

    def _in_common(self) -> tuple[tuple[int, int], int]:
        """Return the step as a fraction, and the best value in the same parts."""
        down = self.step.denominator * self.best.denominator
        return (int(self.step * down), down), int(self.best * down)

    @property
    def width(self) -> int:
        return 2

    def marks(self, codes: NDArray[Any]) -> Steps:
        """Return the steps and their squares."""
        return np.stack([codes, codes * codes], axis=-1).astype(np.int64)

    def code(self, values: Column) -> tuple[Steps, NDArray[np.bool_]]:
        if not isinstance(values, Numbers):
            raise TypeError("a score is read as numbers")
        known = np.isfinite(values.values)
        return self.count(np.where(known, values.values, 0.0)), known

    @property
    def unknown(self) -> str:
        return "not a number"

    @property
    def allowed(self) -> str:
        return "numbers"

    def values(self, codes: NDArray[Any]) -> Floats:
        return self._scores(codes, np.ones((), dtype=np.int64))

    def _scores(self, steps: NDArray[Any], whole: NDArray[Any]) -> Floats:
        """Return the scores of steps / whole, missing where `whole` is 0."""
        (up, down), best = self._in_common()
        steps = np.asarray(steps).astype(object)
        denominators = np.broadcast_to(whole.astype(object), steps.shape)
        found = np.full(steps.shape, np.nan)
        filled = np.flatnonzero(denominators > 0)
        some, below = steps[filled], denominators[filled]
        found[filled] = (best * below + self.sign * up * some) / (down * below)
        return found

    def mean(self, steps: float) -> float:
        """Return the score of a mean number of steps."""
        return float(self.best + self.sign * self.step * Fraction(steps))

    def response(self, codes: NDArray[Any]) -> Floats:
        """Return steps from the best value in units of the score."""
        return codes.astype(np.float64) * float(self.unit)

    def pool(self, decided: Sequence[NDArray[Any]], point: NDArray[Any]) -> Steps:
        """Return the mean of the draws, in whole steps."""
        return np.asarray(np.rint(np.sum(decided, axis=0) / len(decided)), dtype=np.int64)

    def unexplained(self, recorded: NDArray[Any], decided: NDArray[Any]) -> float:
        """Return Σ(b - y)² / Σ(y - ȳ)², in whole steps: free of the order of rows."""
        steps = recorded.astype(object)
        number, total = len(steps), int(steps.sum())
        spread = number * int((steps * steps).sum()) - total * total
        apart = decided.astype(object) - steps
        return number * int((apart * apart).sum()) / spread

    @property
    def unit(self) -> Fraction:
        return self.step

    def test(
        self, control: Sums, test: Sums, rule: Rule, delta: Floats, *, bounds: bool
    ) -> Interval:
        r"""Compute Welch's interval and test.

        Notes
        -----
        The statistic is :math:`t = (\Delta - \tau) / s` with :math:`s^2 = v_c / n_c + v_t / n_t
        + d`, the unbiased variances v of both groups and the variance d of means that rest on
        estimates (0 elsewhere). It is compared with Student's distribution with

        .. math:: \nu = \frac{(v_c / n_c + v_t / n_t)^2}
                  {(v_c / n_c)^2 / (n_c - 1) + (v_t / n_t)^2 / (n_t - 1)}

        degrees of freedom. Where all values within each group are equal, the interval has
        no width and is marked as degenerate. Groups that count as fewer than 15 people are not
        tested.

        References
        ----------
        Welch (1947), The generalization of "Student's" problem when several different population
        variances are involved, Biometrika 34, 28-35.
        """
        tau, groups, scale = float(rule.tau), (control, test), float(self.step) ** 2
        variances = [variance_of(each) * scale for each in groups]
        found = Student.of(delta, variances, groups, tau=tau, alpha=rule.alpha, scale=scale)
        few = np.minimum(control.weight, test.weight) < max(2, self.fewest)
        p_value, low, high = (
            np.where(few, np.nan, each) for each in (found.p_value, found.low, found.high)
        )
        degenerate = ~few & (found.error == 0)
        matched = match_bound(low, p_value, tau=tau, alpha=rule.alpha)
        low = np.where(few | degenerate, low, matched)
        return Interval(low=low, high=high, p_value=p_value, degenerate=degenerate)

    def averages(self, control: Sums, test: Sums) -> tuple[Floats, Floats]:
        """Return the means of both groups, in units of the score."""
        first, second = (
            self._scores(each.marks[:, 0], each.places.astype(object) * each.parts[:, 0])
            for each in (control, test)
        )
        return first, second

    def against(self, own: Floats) -> Floats:
        return np.asarray(-self.sign * own)

    def for_small_groups(self) -> ScoreKind:
        """Test means of two people or more."""
        return replace(self, fewest=2)

    def words(self, column: str, labels: Labels) -> ScoreWords:
        name = labels.column(column)
        one, other = ("control", "test") if self.sign > 0 else ("test", "control")
        return ScoreWords(
            kind=self,
            column=column,
            labels=labels,
            averaged=f"mean {name}",
            compared=f"mean {name}",
            worse=f"a {self.worse} {name}",
            caption=f"Means of {name}, their difference, and the verdict.",
            definition=f"Δ = mean {name} of the {one} group − mean {name} of the {other} group: "
            "more is worse.",
            counts=f"What counts is the {name}; {self.worse} is worse.",
        )

    def declaration(self) -> Mapping[str, Any]:
        return {"worse": self.worse}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreWords(Words):
    """Words for means of a score."""

    kind: ScoreKind

    @property
    def decimals(self) -> int:
        return self.kind.places

    def share(self, value: float) -> str:
        return self.number(value)

    def value(self, value: Any) -> str:
        return f"{value:,.6g}"

    def average_of(self, codes: NDArray[Any]) -> float | str:
        # sums of integers have no order; averages over draws are whole steps or parts of them
        return self.kind.mean(fsum(codes.tolist()) / len(codes)) if len(codes) else float("nan")

    def facts(self, outcome: Outcome) -> tuple[str, dict[str, Any]]:
        scores = outcome.recorded(np.arange(len(outcome.codes)))
        low, high, worse = float(scores.min()), float(scores.max()), self.kind.worse
        return (
            f", scored from {low:g} to {high:g}; {worse} is worse.",
            {"score": {"lowest": low, "highest": high, "worse": worse}},
        )

    def cautions(self, outcome: Outcome) -> Iterable[str]:
        if not self.kind.exact_steps:
            yield (
                f"Scores are rounded to steps of {float(self.kind.step):g}, so that sums over "
                "groups are exact: finer ones have no room in so large a table."
            )
        skew = _skewness(outcome.codes)
        if skew < -_SKEWED:
            yield (
                f"Scores have a long tail on the better side (skewness {abs(skew):.1f}): with "
                "tails like this, tests of means are significant more often than they should be."
            )


def _skewness(steps: Steps) -> float:
    """Return the skewness, larger being worse: from sums of integers, which have no order."""
    whole, number = steps.astype(object), len(steps)
    first, second, third = (int((whole**power).sum()) for power in (1, 2, 3))
    # moments around the mean, times powers of the number of rows
    square = number * second - first**2
    cube = number**2 * third - 3 * number * first * second + 2 * first**3
    return float(cube / square**1.5)


def variance_of(share: Sums) -> Floats:
    """Return the variance of the steps in each group, divided by its size: exact, rounded once."""
    marks, parts = share.marks.astype(object), share.parts.astype(object)
    whole = share.places.astype(object)[:, np.newaxis] * parts
    # E[y²] - E[y]² over a common denominator
    numerator = marks[:, 1] * whole[:, 0] ** 2 - marks[:, 0] ** 2 * whole[:, 1]
    denominator = whole[:, 1] * whole[:, 0] ** 2
    variance = np.full(len(share.places), np.nan)
    filled = np.flatnonzero(denominator > 0)
    variance[filled] = numerator[filled] / denominator[filled]
    return variance


def _decimals(distinct: Floats) -> tuple[Steps | None, int]:
    """Read sorted values as whole numbers over a power of ten; None if they are no decimals."""
    for places in range(_PLACES + 1):
        scaled = np.rint(distinct * 10.0**places)
        if np.abs(scaled).max() >= 2**53:
            break
        # a quotient is rounded correctly, so this is the float that stands for the decimal
        if np.array_equal(scaled / 10.0**places, distinct):
            return scaled.astype(np.int64), places
    return None, 0
