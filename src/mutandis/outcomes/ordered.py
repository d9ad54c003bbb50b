"""Outcomes with an order and no distances: approved, approved on conditions, refused.

A level is coded by its place from the best one, so that larger is worse. Groups sum how many people
are beyond each level but the last, which tells how many are at each of them.

The relative effect θ is the probability that a person of the control group has a worse outcome than
a person of the test group, ties counted half: ½ where neither group is worse off. Δ = θ - ½ is
compared with τ. Both are exact: numbers of pairs. The number of people that a group counts as is
its size, or the effective number of a matched group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import comb, floor
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mutandis.data.columns import Categories, Numbers, describe_levels, frozen
from mutandis.engine.tally import SAFE, Sums, exceeds
from mutandis.errors import OutcomeError, PlanError
from mutandis.outcomes.intervals import Interval, match_bound
from mutandis.outcomes.outcome import Comparison, Kind, Outcome, array_of, read_complete
from mutandis.outcomes.words import (
    Concerned,
    Words,
    compared_with,
    count_moved,
    listed,
    set_against,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column
    from mutandis.data.labels import Labels
    from mutandis.outcomes.outcome import Depth, Rule

__all__ = ["Ordered", "OrderedKind", "OrderedWords"]

# a group sums a column for each level but one
_MOST_LEVELS = 32
# degrees of freedom at which Student's distribution is the normal one
_NORMAL = 1e300
# up to so many tables are listed; of more, so many are drawn
_MOST_TABLES = 20_000
# statistics that differ by less are equal
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, init=False)
class Ordered:
    """An outcome whose values have an order, from the best to the worst.

    Parameters
    ----------
    column
        The column with the outcome.
    best_to_worst
        All its values, at least three; some may be missing on record.

    Examples
    --------
    >>> Ordered("answer", best_to_worst=["approved", "on conditions", "refused"])
    Ordered('answer', best_to_worst=['approved', 'on conditions', 'refused'])
    >>> Ordered("answer", best_to_worst=["approved", "refused"])
    Traceback (most recent call last):
    mutandis.errors.PlanError: best_to_worst= has 2 levels, and an order takes from 3 to 32. An ...
    """

    column: str
    best_to_worst: tuple[Any, ...]

    key: ClassVar[str] = "best_to_worst"
    numeric: ClassVar[bool] = False
    title: ClassVar[str] = "an ordered outcome"
    plural: ClassVar[str] = "ordered outcomes"
    example: ClassVar[str] = "Ordered({}, best_to_worst=[…])"
    measure: ClassVar[str | None] = "relative-effect"
    interval: ClassVar[str | None] = "brunner-munzel"

    def __init__(self, column: str, *, best_to_worst: Iterable[Any]) -> None:
        listed = isinstance(best_to_worst, Iterable) and not isinstance(
            best_to_worst, str | set | frozenset
        )
        if not listed:
            raise PlanError(
                "best_to_worst= takes a list of all values in their order, the best one first, not "
                f"{type(best_to_worst).__name__}."
            )
        levels = tuple(best_to_worst)
        if any(level in levels[:place] for place, level in enumerate(levels)):
            raise PlanError(
                f"best_to_worst= names a value of {column!r} more than once. Name each value once."
            )
        if not 3 <= len(levels) <= _MOST_LEVELS:
            raise PlanError(
                f"best_to_worst= has {len(levels)} levels, and an order takes from 3 to "
                f"{_MOST_LEVELS}. An outcome with two values has negative= instead."
            )
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "best_to_worst", levels)

    def __repr__(self) -> str:
        """Show it as it is written."""
        return f"Ordered({self.column!r}, best_to_worst={list(self.best_to_worst)!r})"

    @property
    def values(self) -> int | None:
        """Number of levels."""
        return len(self.best_to_worst)

    def read(self, column: Column, *, finest: bool = False) -> Outcome:
        """Read the outcome column, all of whose values are in the declared order.

        Parameters
        ----------
        column
            Its categories.
        finest
            Has no effect: levels have no values between them.
        """
        if not isinstance(column, Categories):
            raise TypeError("an ordered outcome is read as categories")
        occurring, kind = read_complete(self.column, column), OrderedKind(levels=self.best_to_worst)
        codes, known = kind.code(column)
        if not known.all():
            others = Categories(column.codes[~known], column.levels)
            raise OutcomeError(
                f"Outcome {self.column!r} has {len(others.occurring())} values that best_to_worst= "
                f"does not name ({describe_levels(others)}). Name every value, from the best to "
                "the worst."
            )
        if len(occurring) < 2:
            raise OutcomeError(
                f"Outcome {self.column!r} is the same in every row: there is nothing to compare."
            )
        return Outcome(column=self.column, kind=kind, codes=frozen(codes))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedKind(Kind):
    """Levels, coded by their places from the best one."""

    levels: tuple[Any, ...]  # from the best to the worst
    # the fewest people that both groups count as for the test by Student's distribution; with
    # fewer, it is by permutation
    fewest: int = 15

    renamed: ClassVar[Mapping[str, str]] = {
        "p_control": "worse_control",
        "p_test": "worse_test",
        "delta_p": "delta",
        "p_own": "theta_own",
        "cases_refused": "cases_worse",
    }

    @property
    def width(self) -> int:
        """One less than there are levels."""
        return len(self.levels) - 1

    def marks(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Return who is beyond each level but the last."""
        return np.asarray(codes[..., np.newaxis] > np.arange(self.width), dtype=np.bool_)

    def codes(self, marks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of levels that each row is beyond."""
        return np.asarray(marks.sum(axis=-1), dtype=np.int64)

    def code(self, values: Column) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the places of levels, and which values are levels."""
        if isinstance(values, Numbers):
            raise TypeError("an ordered outcome is read as categories")
        places = np.full(len(values.levels) + 1, -1)
        for place, level in enumerate(self.levels):
            code = values.code_of(level)
            if code is not None:
                places[code] = place
        codes = places[values.codes].astype(np.int64)
        return codes, codes >= 0

    @property
    def listing(self) -> tuple[Any, ...]:
        """The levels, from the best to the worst."""
        return self.levels

    @property
    def unknown(self) -> str:
        """No level."""
        return "none of its levels"

    @property
    def allowed(self) -> str:
        """The levels."""
        return f"its levels, {', '.join(map(repr, self.levels[:-1]))} and {self.levels[-1]!r}"

    def values(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the levels of places."""
        return array_of(self.levels)[np.asarray(codes, dtype=np.intp)]

    def column(self, codes: NDArray[Any]) -> Column:
        """Return the levels as categories."""
        return Categories(codes.astype(np.int32), self.levels)

    def shares(self, codes: NDArray[Any]) -> list[float]:
        """Return the share of each level among some people."""
        found = np.bincount(codes, minlength=len(self.levels))
        return [int(each) / len(codes) for each in found]

    def ends(self, codes: NDArray[Any]) -> tuple[int, int]:
        """Return the best and the worst level."""
        return 0, len(self.levels) - 1

    def pool(
        self,
        decided: Sequence[NDArray[Any]],
        point: NDArray[Any],
    ) -> NDArray[np.int64]:
        """Return the middle level of the draws; of two, the worse."""
        return np.asarray(np.sort(decided, axis=0)[len(decided) // 2])

    def expected(
        self,
        pooled: NDArray[Any],
        rows: NDArray[np.intp],
        decided: NDArray[Any] | None,
    ) -> NDArray[Any]:
        """Return the pooled levels, which have no average."""
        return pooled

    def compare(self, control: Sums, test: Sums, rule: Rule, *, depth: Depth) -> Comparison:
        r"""Compare ordered outcomes, looking for θ - ½ > τ; evidence is decided on integers.

        Notes
        -----
        With the placements :math:`F_t(y)` of the people in the control group, the share of the test
        group that has a better outcome than y and half of the share that has the same, θ is their
        mean, and Brunner and Munzel's statistic is :math:`t = (\theta - ½ - \tau) / s` with
        :math:`s^2 = v_c / n_c + v_t / n_t + d`: the unbiased variances v of the placements in both
        groups, and the variance d of θ where it rests on estimates (0 elsewhere). It is compared
        with Student's distribution, the degrees of freedom being Satterthwaite's as in Welch's
        test. For two groups of people without weights, this is the test as published.

        Where a group counts as fewer than 15 people, t is compared with its own distribution over
        all ways to split the people of both groups (Neubert and Brunner): tables of levels are
        listed with their exact probabilities, or 20,000 of them drawn where there are more, with a
        seed that follows from the levels and the sizes alone. Sizes that are not whole are rounded
        down for it.

        Where nobody of the control group has a better outcome, or the same, as one of the test
        group, there is no variance. The interval has no width then and is marked as degenerate, and
        the p-value is the probability of splitting the people in that way.

        References
        ----------
        Brunner and Munzel (2000), The nonparametric Behrens-Fisher problem: asymptotic theory and a
        small-sample approximation, Biometrical Journal 42, 17-25. Neubert and Brunner (2007), A
        studentized permutation test for the non-parametric Behrens-Fisher problem, Computational
        Statistics & Data Analysis 51, 5192-5204.
        """
        pairs = _Pairs.of(control, test)
        numerator, denominator = pairs.effects()
        delta = _divide(numerator, denominator)
        if depth == "evidence":
            interval = Interval.without_bounds(np.full(len(delta), np.nan))
        else:
            interval = _Tested.of(pairs, delta, control, test).interval(
                tau=float(rule.tau), alpha=rule.alpha, fewest=self.fewest
            )
        evidence = exceeds(numerator, denominator, rule.tau)
        return Comparison.of(delta, evidence, interval, alpha=rule.alpha)

    def differences(self, control: Sums, test: Sums) -> NDArray[np.float64]:
        """Return θ - ½."""
        return _divide(*_Pairs.of(control, test).effects())

    def averages(
        self, control: Sums, test: Sums
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the shares of pairs in which either group has the worse outcome."""
        found = np.full((2, len(control.places)), np.nan)
        filled = np.flatnonzero((control.places > 0) & (test.places > 0))
        pairs = _Pairs.of(control.take(filled), test.take(filled))
        for side, worse in enumerate(pairs.worse()):
            found[side, filled] = _divide(worse, pairs.number)
        return found[0], found[1]

    def doubted(self, control: Sums, test: Sums) -> NDArray[np.float64]:
        """Return θ - ½."""
        worse, better = self.averages(control, test)
        return (worse - better) / 2

    def is_worse(
        self, codes: NDArray[Any], others: Sums, *, tau: Fraction, worse: bool = True
    ) -> NDArray[np.bool_]:
        """Mark levels whose own θ against a group is above ½ by more than τ (or below), exactly.

        They are not where the group is empty.
        """
        found = np.zeros(len(codes), dtype=np.bool_)
        filled = np.flatnonzero(others.places > 0)
        own, there = self._alone(codes[filled]), others.take(filled)
        sides = (own, there) if worse else (there, own)
        found[filled] = exceeds(*_Pairs.of(*sides).effects(), tau)
        return found

    def own_case(
        self, codes: NDArray[Any], matches: Sums, rule: Rule
    ) -> tuple[NDArray[np.float64], NDArray[np.object_]]:
        """Beyond one's own matches by more than τ; θ of each complainant alone is shown."""
        answer = self.is_worse(codes, matches, tau=rule.tau, worse=rule.worse).astype(object)
        answer[matches.places == 0] = None
        found = np.full(len(codes), np.nan)
        filled = np.flatnonzero(matches.places > 0)
        pairs = _Pairs.of(self._alone(codes[filled]), matches.take(filled))
        numerator, denominator = pairs.effects()
        found[filled] = _divide(2 * numerator + denominator, 2 * denominator)
        return found, answer

    def against(self, own: NDArray[np.float64]) -> NDArray[np.float64]:
        """Keep θ: a larger one supports a case."""
        return own

    def _alone(self, codes: NDArray[np.int64]) -> Sums:
        """Return single people as groups."""
        marks = self.marks(codes).astype(np.int64)
        return Sums.of(marks=marks, places=np.ones(len(codes), dtype=np.int64))

    def words(self, column: str, labels: Labels) -> OrderedWords:
        """Return the words of pairs of people."""
        return OrderedWords(kind=self, column=column, labels=labels)

    def declaration(self) -> Mapping[str, Any]:
        """List the levels."""
        return {"best_to_worst": list(self.levels)}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedWords(Words):
    """Words for shares of pairs."""

    kind: OrderedKind

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(self.labels.level(self.column, each) for each in self.kind.levels)

    def average_of(self, codes: NDArray[Any]) -> float | str:
        if not len(codes):
            return float("nan")
        shares = zip(self.levels, self.kind.shares(codes), strict=True)
        return ", ".join(f"{level} {share:.1%}" for level, share in shares)

    def facts(self, outcome: Outcome) -> tuple[str, dict[str, Any]]:
        counts = np.bincount(outcome.codes, minlength=len(self.kind.levels)).tolist()
        levels = dict(zip(self.levels, counts, strict=True))
        shown = ", ".join(f"{level} {number:,}" for level, number in levels.items())
        return f", from the best to the worst: {shown}.", {"levels": levels}

    @property
    def averaged(self) -> str:
        return "worse off in pairs"

    @property
    def described(self) -> str:
        return f"levels of {self.name}"

    @property
    def worse(self) -> str:
        return f"farther to the right in: {', '.join(self.levels)}"

    @property
    def axis(self) -> tuple[str, str]:
        return "Δ = θ − ½, how much more often the {} of the control group is worse", self.name

    @property
    def own_average(self) -> str:
        return "θ against own matches"

    @property
    def caption(self) -> str:
        return (
            f"Shares of pairs in which a group has the worse {self.name}, Δ = θ − ½ (half of their "
            "difference), and the verdict."
        )

    @property
    def dots(self) -> tuple[str, str]:
        return "as bad as hers, or worse", "better than hers"

    def is_filled(self, value: Any, own: Any) -> bool:
        return self.kind.levels.index(value) >= self.kind.levels.index(own)

    @property
    def definition(self) -> str:
        return (
            "Each person of the control group is paired with each one of the test group. θ is the "
            f"share of pairs in which the one of the control group had the worse {self.name}, and "
            "half of the share in which both had the same; Δ = θ − ½: more is worse. From the best "
            f"to the worst: {', '.join(self.levels)}."
        )

    @property
    def counts(self) -> str:
        return f"What counts is the {self.name}, from best to worst: {listed(self.levels)}."

    def no_evidence(self, *, worse: bool) -> str:
        than = "worse" if worse else "better"
        return f"did not have a {than} {self.name} than the test group,"

    def evidence(self) -> str:
        return "had"

    @property
    def with_evidence(self) -> str:
        return (
            f"those with evidence whose own {self.name} was worse than those of their test group "
            "by more than τ"
        )

    def concerned(self, *, worse: bool) -> Concerned:
        return compared_with("their test group")

    def themselves(self, *, worse: bool) -> str:
        return "themselves worse off than their test group"

    def have_own_case(self, number: str, *, worse: bool, tau: float) -> str:
        return (
            f"{number} have a case of their own as well: their own {self.name} is "
            f"{'worse' if worse else 'better'} than those of the people most like their own "
            f"counterfactual, by more than τ = {tau:g}"
        )

    def on_record(self, mine: str, theirs: str | None) -> str:
        others = "" if theirs is None else f"; of those they are compared with, {theirs}"
        return f"On record, the {self.name} of the complainants was {mine}{others}"

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
        worse = f"had the worse {self.name} in {self.average(control)}"
        return ("of all pairs,", worse), f"{self.average(test)} for"

    def delta(self, value: float, *, decisions: bool = False) -> str:
        return f"θ = {self.number(value + 1 / 2)}, Δ = θ − ½ = {self.number(value)}"

    def untested(self, *, several: bool) -> str:
        if several:
            return "a difference between too few people to be tested"
        return "a single comparison to which no test applies"

    def own_matches(self, own: float, *, has_case: bool, worse: bool, tau: float) -> str:
        shown = f"θ = {self.number(own)}, where ½ is neither worse nor better"
        return set_against("those", shown, has_case=has_case, worse=worse, tau=tau)

    def counterfactual(self, value: Any, own: Any) -> str:
        return f"would have had the {self.name} {self.value(value)}"

    def row(self) -> tuple[tuple[str, str], int]:
        return Words.row(self)[0], 11


def _divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(numerator / denominator, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Levels:
    """How many parts of places in each group are beyond each level, over one denominator."""

    beyond: tuple[NDArray[Any], ...]  # from all to none: one more than there are levels
    whole: NDArray[Any]

    @classmethod
    def of(cls, share: Sums) -> _Levels:
        found = [
            (up, share.places * parts)
            for up, parts in zip(share.marks.T, share.parts.T, strict=True)
        ]
        whole = found[0][1]
        if not all(np.array_equal(down, whole) for _, down in found):
            # fractions in lowest terms
            columns = [(up.astype(object), down.astype(object)) for up, down in found]
            whole = np.lcm.reduce([down for _, down in columns])
            found = [(up * (whole // np.maximum(down, 1)), whole) for up, down in columns]
        return cls((whole, *(up for up, _ in found), np.zeros_like(whole)), whole)

    def as_type(self, kind: Any) -> _Levels:
        return _Levels(tuple(each.astype(kind) for each in self.beyond), self.whole.astype(kind))

    @property
    def counts(self) -> list[NDArray[Any]]:
        """The parts of places at each level."""
        beyond = self.beyond
        return [here - there for here, there in pairwise(beyond)]

    @property
    def placements(self) -> list[NDArray[Any]]:
        """Twice the parts that are better than each level, and those that are at it once."""
        beyond = self.beyond
        return [2 * self.whole - here - there for here, there in pairwise(beyond)]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The pairs of one person of the control group and one of the test group."""

    control: _Levels
    test: _Levels

    @classmethod
    def of(cls, control: Sums, test: Sums) -> _Pairs:
        here, there = _Levels.of(control), _Levels.of(test)
        largest = [float(np.max(each.whole, initial=1)) for each in (here, there)]
        # sums of squares are at most this
        kind: Any = np.int64 if 4 * (largest[0] * largest[1]) ** 2 < SAFE else object
        return cls(here.as_type(kind), there.as_type(kind))

    @property
    def number(self) -> NDArray[Any]:
        return np.asarray(self.control.whole * self.test.whole)

    def effects(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return θ - ½ as numerators over positive denominators, in lowest terms."""
        twice = _sum_products(self.control.counts, self.test.placements)
        numerator, denominator = twice - self.number, 2 * self.number
        divisor = np.gcd(numerator, denominator)
        return numerator // divisor, denominator // divisor

    def worse(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Count the pairs in which the control group has it worse, and the test group."""

        def count(one: _Levels, other: _Levels) -> NDArray[Any]:
            better = [other.whole - each for each in other.beyond[:-1]]
            return _sum_products(one.counts, better)

        return count(self.control, self.test), count(self.test, self.control)

    def variances(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the variance of the placements in both groups, divided by their sizes: exact."""

        def spread(one: _Levels, other: _Levels) -> NDArray[np.float64]:
            counts, placements = one.counts, other.placements
            total = _sum_products(counts, placements)
            squares = _sum_products(counts, [each**2 for each in placements])
            whole = (2 * one.whole * other.whole) ** 2
            return _divide(squares * one.whole - total**2, whole)

        return spread(self.control, self.test), spread(self.test, self.control)


def _sum_products(one: Sequence[NDArray[Any]], other: Sequence[NDArray[Any]]) -> NDArray[Any]:
    first, *rest = (a * b for a, b in zip(one, other, strict=True))
    return np.asarray(sum(rest, first))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tested:
    """What Brunner and Munzel's statistic is made of."""

    pairs: _Pairs
    delta: NDArray[np.float64]
    error: NDArray[np.float64]  # of θ
    freedom: NDArray[np.float64]
    people: tuple[NDArray[np.float64], NDArray[np.float64]]

    @classmethod
    def of(cls, pairs: _Pairs, delta: NDArray[np.float64], control: Sums, test: Sums) -> _Tested:
        people = control.weight, test.weight
        sides, free = [], []
        with np.errstate(divide="ignore", invalid="ignore"):
            for variance, number in zip(pairs.variances(), people, strict=True):
                # one person alone has no variance
                sides.append(np.where(variance == 0, 0.0, variance / (number - 1)))
                free.append(np.where(sides[-1] == 0, 0.0, sides[-1] ** 2 / (number - 1)))
            chance = sides[0] + sides[1]
            freedom = np.where(chance == 0, _NORMAL, chance**2 / (free[0] + free[1]))
        known = [share.doubt for share in (control, test) if share.doubt is not None]
        error = np.sqrt(sum(known, chance))
        return cls(pairs=pairs, delta=delta, error=error, freedom=freedom, people=people)

    def interval(self, *, tau: float, alpha: float, fewest: int) -> Interval:
        from scipy.special import stdtr, stdtrit

        statistic = self.statistic(tau)
        p_value = np.asarray(stdtr(self.freedom, -statistic), dtype=np.float64)
        margin = -np.asarray(stdtrit(self.freedom, alpha)) * self.error
        low, high = self.delta - margin, self.delta + margin
        number = np.minimum(*self.people)
        few, alone = number < fewest, number < 2
        certain = self.error == 0
        for row in np.flatnonzero(few & ~certain & ~alone).tolist():
            chances = self._permuted(row)
            p_value[row] = chances.tail(float(statistic[row]))
            error = float(self.error[row])
            low[row] = self.delta[row] - chances.upper(alpha) * error
            high[row] = self.delta[row] - chances.lower(alpha) * error
        for row in np.flatnonzero(certain).tolist():
            p_value[row] = self._parted(row) if self.delta[row] > tau else 1.0
        low, high = np.maximum(low, -0.5), np.minimum(high, 0.5)
        low = np.where(certain, low, match_bound(low, p_value, tau=tau, alpha=alpha))
        for column in (low, high, p_value):
            column[alone] = np.nan
        return Interval(low=low, high=high, p_value=p_value, degenerate=certain & ~alone)

    def statistic(self, tau: float) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.delta == tau, 0.0, (self.delta - tau) / self.error)

    def _sizes(self, row: int) -> tuple[int, int]:
        return floor(self.people[0][row]), floor(self.people[1][row])

    def _parted(self, row: int) -> float:
        """Return the probability of splitting people into groups, one worse throughout."""
        here, there = self._sizes(row)
        return float(Fraction(1, comb(here + there, here)))

    def _permuted(self, row: int) -> _Permuted:
        here, there = self._sizes(row)
        pairs, beyond = self.pairs, []
        for ours, theirs in zip(pairs.control.beyond, pairs.test.beyond, strict=True):
            expected = Fraction(int(ours[row]) * here, int(pairs.control.whole[row])) + Fraction(
                int(theirs[row]) * there, int(pairs.test.whole[row])
            )
            beyond.append(floor(expected + Fraction(1, 2)))
        levels = [one - other for one, other in pairwise(beyond)]
        return _permute(tuple(each for each in levels if each), here)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Permuted:
    """The statistic over all ways to split the people of both groups, in ascending order."""

    statistic: NDArray[np.float64]
    at_least: NDArray[np.float64]  # the probability of each value, or a larger one
    at_most: NDArray[np.float64]

    def tail(self, value: float) -> float:
        """Return the probability of a value or a larger one; at least that of the largest."""
        near = value - _ROUNDING * (1 + abs(value)) if np.isfinite(value) else value
        place = int(np.searchsorted(self.statistic, near))
        return float(self.at_least[min(place, len(self.at_least) - 1)])

    def upper(self, alpha: float) -> float:
        """Return the least value that is reached, or exceeded, with a probability of at most α."""
        rare = np.flatnonzero(self.at_least <= alpha)
        return float(self.statistic[rare[0]]) if len(rare) else np.inf

    def lower(self, alpha: float) -> float:
        """Return the largest value that is not exceeded with a probability of at most α."""
        rare = np.flatnonzero(self.at_most <= alpha)
        return float(self.statistic[rare[-1]]) if len(rare) else -np.inf


@lru_cache(maxsize=4096)
def _permute(levels: tuple[int, ...], size: int) -> _Permuted:
    """Split people at these levels into a control group of this size, and a test group."""
    tables, chance = _list_tables(levels, size)
    pooled = np.array(levels, dtype=np.int64)
    found = _statistics(tables, pooled - tables)
    order = np.argsort(found, kind="stable")
    found, chance = found[order], chance[order]
    # equal statistics are one value, whose probability is theirs together
    with np.errstate(invalid="ignore"):
        gap = np.diff(found) > _ROUNDING * (1 + np.abs(found[1:]))
    infinite = np.isinf(found[1:]) & (found[1:] != found[:-1])
    first = np.flatnonzero(np.concatenate([[True], gap | infinite]))
    chances = np.add.reduceat(chance, first)
    return _Permuted(
        statistic=found[first],
        at_least=np.minimum(np.cumsum(chances[::-1])[::-1], 1.0),
        at_most=np.minimum(np.cumsum(chances), 1.0),
    )


def _list_tables(
    levels: tuple[int, ...], size: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return tables of levels that a group of this size may have, with their probabilities."""
    if _count_tables(levels, size) > _MOST_TABLES:
        # the numbers themselves are the seed: neither rows nor their order matter
        rng = np.random.default_rng([size, *levels])
        drawn = rng.multivariate_hypergeometric(list(levels), size, size=_MOST_TABLES)
        return drawn, np.full(_MOST_TABLES, 1 / _MOST_TABLES)
    tables, weight = np.zeros((1, 0), dtype=np.int64), np.ones(1)
    left, rest = np.array([size]), sum(levels)
    for number in levels:
        rest -= number
        low, high = np.maximum(0, left - rest), np.minimum(number, left)
        times = high - low + 1
        row = np.repeat(np.arange(len(left)), times)
        taken = low[row] + np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
        ways = np.array([float(comb(number, each)) for each in range(number + 1)])
        tables = np.column_stack([tables[row], taken])
        weight, left = weight[row] * ways[taken], left[row] - taken
    return tables, weight / float(comb(sum(levels), size))


def _count_tables(levels: tuple[int, ...], size: int) -> int:
    """Count the tables, up to more than are listed."""
    ways = np.zeros(size + 1, dtype=np.int64)
    ways[0] = 1
    for number in levels:
        summed = np.concatenate([[0], np.cumsum(ways)])
        places = np.arange(size + 1)
        ways = summed[places + 1] - summed[np.maximum(places - number, 0)]
        ways = np.minimum(ways, _MOST_TABLES + 1)
    return int(ways[size])


def _statistics(control: NDArray[np.int64], test: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return Brunner and Munzel's statistic for tables; infinite where groups are apart."""

    def placements(counts: NDArray[np.int64]) -> NDArray[np.int64]:
        return 2 * np.cumsum(counts, axis=1) - counts

    sizes = int(control[0].sum()), int(test[0].sum())
    variance = np.zeros(len(control))
    for one, other, (size, others) in ((control, test, sizes), (test, control, sizes[::-1])):
        placed = placements(other)
        total = (one * placed).sum(axis=1)
        squares = (one * placed**2).sum(axis=1)
        exact = squares * size - total**2
        variance += exact / (size**2 * (2 * others) ** 2 * (size - 1))
    twice = (control * placements(test)).sum(axis=1) - sizes[0] * sizes[1]
    delta = twice / (2 * sizes[0] * sizes[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(twice == 0, 0.0, delta / np.sqrt(variance))
