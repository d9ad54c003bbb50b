"""Outcomes that are numbers: an interest rate, a rank, a sum granted.

A score is coded in equal steps from its best value, so that larger is worse and every sum over a
group is a sum of integers. Where all values are decimals, the steps are exact. Where they are finer
than sums in 64 bits have room for, they are rounded to steps, and a caution says so.

Groups sum the steps and their squares. Δ is the difference of means, in units of the score and
oriented so that larger is worse; means and variances are exact. The number of people that a group
counts as is its size, or the effective number of a matched group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, fsum, isnan, log10
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from mutandis.data.columns import Numbers, frozen
from mutandis.engine.tally import Sums, difference, exceeds
from mutandis.errors import OutcomeError, PlanError, suggest
from mutandis.outcomes.intervals import Interval, match_bound
from mutandis.outcomes.outcome import Comparison, Kind, Outcome
from mutandis.outcomes.words import Concerned, Words, compared_with, count_moved, set_against

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column
    from mutandis.data.labels import Labels
    from mutandis.outcomes.outcome import Depth, Rule

__all__ = ["Score", "ScoreKind", "ScoreWords", "Worse"]

Worse = Literal["higher", "lower"]

# sums over a group of squares, in parts of a place, stay below 2**62
_ROOM = 2**31
# decimal places that are looked for
_PLACES = 12
# degrees of freedom at which Student's distribution is the normal one
_NORMAL = 1e300
# beyond this skewness, Welch's test may not keep its level (docs/outcomes.md)
_SKEWED = 3


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

    key: ClassVar[str] = "worse"
    numeric: ClassVar[bool] = True
    title: ClassVar[str] = "a score"
    plural: ClassVar[str] = "scores"
    example: ClassVar[str] = "Score({}, worse='higher')"
    measure: ClassVar[str | None] = "mean-difference"
    interval: ClassVar[str | None] = "welch"
    values: ClassVar[int | None] = None

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

    def read(self, column: Column, *, finest: bool = False) -> Outcome:
        """Read the outcome column; in the `finest` steps where other values may be decided.

        Parameters
        ----------
        column
            Its numbers.
        finest
            Whether the values of counterfactuals may lie between those on record.
        """
        if not isinstance(column, Numbers):
            raise TypeError("a score is read as numbers")
        kind = ScoreKind.fit(self.column, column.values, worse=self.worse, finest=finest)
        return Outcome(
            column=self.column,
            kind=kind,
            codes=frozen(kind.count(column.values)),
            on_record=column,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreKind(Kind):
    """Numbers, coded as steps from the best value."""

    worse: Worse
    best: Fraction
    step: Fraction
    exact: bool  # whether every value on record is a whole number of steps
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
    def fit(
        cls, column: str, values: NDArray[np.float64], *, worse: Worse, finest: bool = False
    ) -> ScoreKind:
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
    ) -> ScoreKind:
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

    @property
    def width(self) -> int:
        """Two: the steps and their squares."""
        return 2

    def marks(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """Return the steps and their squares."""
        return np.stack([codes, codes * codes], axis=-1).astype(np.int64)

    def codes(self, marks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the steps."""
        return np.asarray(marks[..., 0], dtype=np.int64)

    def code(self, values: Column) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the steps of numbers, and which numbers are finite."""
        if not isinstance(values, Numbers):
            raise TypeError("a score is read as numbers")
        known = np.isfinite(values.values)
        return self.count(np.where(known, values.values, 0.0)), known

    @property
    def unknown(self) -> str:
        """No number."""
        return "not a number"

    @property
    def allowed(self) -> str:
        """Any number."""
        return "numbers"

    def values(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the scores of steps."""
        return self._scores(codes, np.ones((), dtype=np.int64))

    def _scores(self, steps: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
        """Return the scores of steps / whole, missing where `whole` is 0."""
        (up, down), best = _in_common(self.step, self.best)
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

    def ends(self, codes: NDArray[Any]) -> tuple[int, int]:
        """Return the best and the worst score on record."""
        return int(codes.min()), int(codes.max())

    def pool(
        self,
        decided: Sequence[NDArray[Any]],
        point: NDArray[Any],
    ) -> NDArray[np.int64]:
        """Return the mean of the draws, in whole steps."""
        mean = np.sum(decided, axis=0) / len(decided)
        return np.asarray(np.rint(mean), dtype=np.int64)

    def unexplained(self, recorded: NDArray[Any], decided: NDArray[Any]) -> float:
        """Return Σ(b - y)² / Σ(y - ȳ)², in whole steps: free of the order of rows."""
        steps = recorded.astype(object)
        number, total = len(steps), int(steps.sum())
        spread = number * int((steps * steps).sum()) - total * total
        apart = decided.astype(object) - steps
        return number * int((apart * apart).sum()) / spread

    def compare(self, control: Sums, test: Sums, rule: Rule, *, depth: Depth) -> Comparison:
        r"""Compare means, looking for Δ > τ in units of the score; evidence is decided on integers.

        Notes
        -----
        The statistic is :math:`t = (\Delta - \tau) / s` with :math:`s^2 = v_c / n_c + v_t / n_t
        + d`, the unbiased variances v of both groups and the variance d of means that rest on
        estimates (0 elsewhere). It is compared with Student's distribution with

        .. math:: \nu = \frac{(v_c / n_c + v_t / n_t)^2}
                  {(v_c / n_c)^2 / (n_c - 1) + (v_t / n_t)^2 / (n_t - 1)}

        degrees of freedom. Where nobody differs from the others in either group, the interval has
        no width and is marked as degenerate. Groups that count as fewer than 15 people are not
        tested.

        References
        ----------
        Welch (1947), The generalization of "Student's" problem when several different population
        variances are involved, Biometrika 34, 28-35.
        """
        numerator, denominator = difference(control, test)
        delta = self._in_units(numerator, denominator)
        if depth == "evidence":
            interval = Interval.without_bounds(np.full(len(delta), np.nan))
        else:
            interval = self._welch(delta, control, test, tau=float(rule.tau), alpha=rule.alpha)
        evidence = exceeds(numerator, denominator, rule.tau / self.step)
        return Comparison.of(delta, evidence, interval, alpha=rule.alpha)

    def differences(self, control: Sums, test: Sums) -> NDArray[np.float64]:
        """Return the difference of means."""
        return self._in_units(*difference(control, test))

    def _in_units(
        self, numerators: NDArray[Any], denominators: NDArray[Any]
    ) -> NDArray[np.float64]:
        up, down = self.step.numerator, self.step.denominator
        found = (numerators.astype(object) * up) / (denominators.astype(object) * down)
        return np.asarray(found.astype(np.float64))

    def averages(
        self, control: Sums, test: Sums
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the means of both groups, in units of the score."""
        return self._mean(control), self._mean(test)

    def _mean(self, share: Sums) -> NDArray[np.float64]:
        return self._scores(share.marks[:, 0], share.places.astype(object) * share.parts[:, 0])

    def is_worse(
        self, codes: NDArray[Any], others: Sums, *, tau: Fraction, worse: bool = True
    ) -> NDArray[np.bool_]:
        """Mark scores that are worse than the mean of a group by more than τ, exactly.

        They are not where the group is empty.
        """
        found = np.zeros(len(codes), dtype=np.bool_)
        filled = np.flatnonzero(others.places > 0)
        own = Sums.of(marks=codes[filled], places=np.ones(len(filled), dtype=np.int64))
        there = others.take(filled)
        sides = (own, there) if worse else (there, own)
        found[filled] = exceeds(*difference(*sides), tau / self.step)
        return found

    def own_case(
        self, codes: NDArray[Any], matches: Sums, rule: Rule
    ) -> tuple[NDArray[np.float64], NDArray[np.object_]]:
        """Worse than the mean of one's own matches by more than τ."""
        answer = self.is_worse(codes, matches, tau=rule.tau, worse=rule.worse).astype(object)
        answer[matches.places == 0] = None
        return self._mean(matches), answer

    def against(self, own: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn means of one's matches: a better one supports a case."""
        return np.asarray(-self.sign * own)

    def for_small_groups(self) -> ScoreKind:
        """Test means of two people or more."""
        return replace(self, fewest=2)

    def words(self, column: str, labels: Labels) -> ScoreWords:
        """Return the words of means."""
        return ScoreWords(kind=self, column=column, labels=labels)

    def declaration(self) -> Mapping[str, Any]:
        """Name the end that is worse."""
        return {"worse": self.worse}

    def _welch(
        self,
        delta: NDArray[np.float64],
        control: Sums,
        test: Sums,
        *,
        tau: float,
        alpha: float,
    ) -> Interval:
        from scipy.special import stdtr, stdtrit

        unit, fewest = float(self.step), max(2, self.fewest)
        sides, free = [], []
        for share in (control, test):
            people = share.weight
            with np.errstate(divide="ignore", invalid="ignore"):
                sides.append(variance_of(share) * unit**2 / (people - 1))
                free.append(sides[-1] ** 2 / (people - 1))
        chance = sides[0] + sides[1]
        known = [share.doubt * unit**2 for share in (control, test) if share.doubt is not None]
        error = np.sqrt(sum(known, chance))
        degenerate = chance == 0
        with np.errstate(divide="ignore", invalid="ignore"):
            # without any spread there is nothing to estimate it from
            freedom = np.where(degenerate, _NORMAL, chance**2 / (free[0] + free[1]))
            statistic = np.where(delta == tau, 0.0, (delta - tau) / error)
        p_value = np.asarray(stdtr(freedom, -statistic), dtype=np.float64)
        margin = -np.asarray(stdtrit(freedom, alpha)) * error
        few = np.minimum(control.weight, test.weight) < fewest
        p_value[few] = margin[few] = np.nan
        low = delta - margin
        width = margin == 0
        return Interval(
            low=np.where(few | width, low, match_bound(low, p_value, tau=tau, alpha=alpha)),
            high=delta + margin,
            p_value=p_value,
            degenerate=width,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreWords(Words):
    """Words for means of a score."""

    kind: ScoreKind

    @property
    def decimals(self) -> int:
        return self.kind.places

    def average(self, value: float | str | None) -> str:
        if isinstance(value, str) or value is None or isnan(value):
            return Words.average(self, value)
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

    @property
    def averaged(self) -> str:
        return f"mean {self.name}"

    @property
    def worse(self) -> str:
        return f"a {self.kind.worse} {self.name}"

    @property
    def own_average(self) -> str:
        return f"Mean {self.name}, own matches"

    @property
    def caption(self) -> str:
        return f"Means of {self.name}, their difference, and the verdict."

    @property
    def dots(self) -> tuple[str, str]:
        return "as high as hers, or higher", "lower than hers"

    def is_filled(self, value: Any, own: Any) -> bool:
        return bool(value >= own)

    @property
    def definition(self) -> str:
        sides = ("control", "test") if self.kind.sign > 0 else ("test", "control")
        return (
            f"Δ = mean {self.name} of the {sides[0]} group − that of the {sides[1]} group: more "
            "is worse."
        )

    @property
    def counts(self) -> str:
        return f"What counts is the {self.name}; {self.kind.worse} is worse."

    def no_evidence(self, *, worse: bool) -> str:
        than = "worse" if worse else "better"
        return f"did not have a {than} mean {self.name} than the test group,"

    def evidence(self) -> str:
        return "had"

    @property
    def with_evidence(self) -> str:
        return (
            f"those with evidence whose own {self.name} was worse than the mean of their test "
            "group by more than τ"
        )

    def concerned(self, *, worse: bool) -> Concerned:
        return compared_with("the mean of their test group")

    def themselves(self, *, worse: bool) -> str:
        return "themselves worse off than the mean of their test group"

    def cautions(self, outcome: Outcome) -> Iterable[str]:
        if not self.kind.exact:
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

    def have_own_case(self, number: str, *, worse: bool, tau: float) -> str:
        return (
            f"{number} have a case of their own as well: their own {self.name} is "
            f"{'worse' if worse else 'better'} than the mean of the people most like their own "
            f"counterfactual, by more than τ = {tau:g}"
        )

    def on_record(self, mine: str, theirs: str | None) -> str:
        others = "" if theirs is None else f", against {theirs} of those they are compared with"
        return f"On record, the mean {self.name} of the complainants was {mine}{others}"

    def would_have_been(self, average: str) -> str:
        return f"it would have been {average}"

    def changed(self, before: NDArray[Any], after: NDArray[Any], *, drawn: bool) -> str:
        return count_moved(self.name, before, after)

    def in_groups(self, control: float, test: float) -> str:
        return (
            f"{self.averaged} {self.average(control)} in the control group, {self.average(test)} "
            "in the test group"
        )

    def in_group(self, average: float) -> str:
        return f"{self.averaged} {self.average(average)}"

    def had(self, value: Any) -> str:
        return f"had the {self.name} {self.value(value)}"

    def averages(
        self, control: float | str | None, test: float | str | None
    ) -> tuple[tuple[str, str], str]:
        return (f"the mean {self.name} of", f"was {self.average(control)}"), (
            f"{self.average(test)} in"
        )

    def own_matches(self, own: float, *, has_case: bool, worse: bool, tau: float) -> str:
        shown = f"{self.average(own)} on average"
        return set_against("that", shown, has_case=has_case, worse=worse, tau=tau)

    def counterfactual(self, value: Any, own: Any) -> str:
        return f"would have had the {self.name} {self.value(value)}"


def _skewness(steps: NDArray[np.int64]) -> float:
    """Return the skewness, larger being worse: from sums of integers, which have no order."""
    whole, number = steps.astype(object), len(steps)
    first, second, third = (int((whole**power).sum()) for power in (1, 2, 3))
    # moments around the mean, times powers of the number of rows
    square = number * second - first**2
    cube = number**2 * third - 3 * number * first * second + 2 * first**3
    return float(cube / square**1.5)


def variance_of(share: Sums) -> NDArray[np.float64]:
    """Return the variance of the steps in each group, divided by its size: exact, rounded once."""
    mean, square = (_fraction(share, column) for column in range(2))
    # E[y²] - E[y]² over a common denominator
    numerator = square[0] * mean[1] ** 2 - mean[0] ** 2 * square[1]
    denominator = square[1] * mean[1] ** 2
    variance = np.full(len(share.places), np.nan)
    filled = np.flatnonzero(denominator > 0)
    variance[filled] = numerator[filled] / denominator[filled]
    return variance


def _fraction(share: Sums, column: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return exact means of a mark as numerators and denominators of Python's integers."""
    whole = share.places.astype(object) * share.parts[:, column].astype(object)
    return share.marks[:, column].astype(object), whole


def _shown_places(distinct: NDArray[np.float64]) -> int:
    return max(0, 3 - floor(log10(float(distinct[-1]) - float(distinct[0]))))


def _in_common(step: Fraction, best: Fraction) -> tuple[tuple[int, int], int]:
    """Return a step as a fraction, and the best value in the same parts."""
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
