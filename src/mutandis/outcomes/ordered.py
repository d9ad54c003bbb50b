"""Outcomes with an order and no distances: approved, approved on conditions, refused.

A level is coded by its place from the best one, so that larger is worse. Groups sum how many people
are beyond each level but the last, from which follows how many are at each of them.

The relative effect θ is the probability that a person of the control group has a worse outcome than
a person of the test group, ties counted half: ½ where neither group is worse off. Δ = θ - ½ is
compared with τ. Both are exact: numbers of pairs. The number of people that a group counts as is
its size, or the effective number of a matched group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import comb, floor
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from mutandis.data.columns import Categories, Numbers, describe_levels, frozen
from mutandis.engine.tally import SAFE
from mutandis.errors import OutcomeError, PlanError
from mutandis.outcomes.intervals import Interval, Student, match_bound
from mutandis.outcomes.measures import Measure
from mutandis.outcomes.outcome import (
    Declaration,
    Kind,
    Outcome,
    Words,
    array_of,
    listed,
    read_complete,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column
    from mutandis.data.labels import Labels
    from mutandis.engine.tally import Sums
    from mutandis.outcomes.outcome import Rule

    Floats = NDArray[np.float64]
    Codes = NDArray[np.int64]

__all__ = ["RELATIVE_EFFECT", "Ordered", "OrderedKind", "OrderedWords"]

# a group sums a column for each level but one
_MOST_LEVELS = 32
# up to so many tables are listed; of more, so many are drawn
_MOST_TABLES = 20_000
# statistics that differ by less are equal
_ROUNDING = 1e-9

RELATIVE_EFFECT: Final = Measure(
    name="relative-effect",
    symbol="Δ",
    formula="θ − ½, θ = P(control worse) + ½ P(both equal)",
    tau="outside [0, 0.5). Give the least θ - ½ that counts as evidence, such as 0.05: θ is the "
    "probability that a person of the control group has a worse outcome than one of the test "
    "group, equal ones counted half. 0 takes any.",
    largest=0.5,
)


@dataclass(frozen=True, slots=True)
class Ordered(Declaration):
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
    Ordered(column='answer', best_to_worst=('approved', 'on conditions', 'refused'))
    >>> Ordered("answer", best_to_worst=["approved", "refused"])
    Traceback (most recent call last):
    mutandis.errors.PlanError: best_to_worst= has 2 levels, and an order takes from 3 to 32. An ...
    """

    column: str
    best_to_worst: Iterable[Any] = field(kw_only=True)

    key: ClassVar[str] = "best_to_worst"
    title: ClassVar[str] = "an ordered outcome"
    plural: ClassVar[str] = "ordered outcomes"
    example: ClassVar[str] = "Ordered({}, best_to_worst=[…])"
    measure: ClassVar[Measure] = RELATIVE_EFFECT
    interval: ClassVar[str] = "brunner-munzel"

    def __post_init__(self) -> None:
        given = self.best_to_worst
        if not isinstance(given, Iterable) or isinstance(given, str | set | frozenset):
            raise PlanError(
                "best_to_worst= takes a list of all values in their order, the best one first, not "
                f"{type(given).__name__}."
            )
        levels = tuple(given)
        if any(level in levels[:place] for place, level in enumerate(levels)):
            raise PlanError(
                f"best_to_worst= names a value of {self.column!r} more than once. Name each value "
                "once."
            )
        if not 3 <= len(levels) <= _MOST_LEVELS:
            raise PlanError(
                f"best_to_worst= has {len(levels)} levels, and an order takes from 3 to "
                f"{_MOST_LEVELS}. An outcome with two values has negative= instead."
            )
        object.__setattr__(self, "best_to_worst", levels)

    @property
    def values(self) -> int:
        """Number of levels."""
        return len(tuple(self.best_to_worst))

    def read(self, column: Column, *, finest: bool = False) -> Outcome:
        """Read categories, all of which are in the declared order."""
        if not isinstance(column, Categories):
            raise TypeError("an ordered outcome is read as categories")
        occurring = read_complete(self.column, column)
        kind = OrderedKind(levels=tuple(self.best_to_worst))
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
        return len(self.levels) - 1

    def marks(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Return who is beyond each level but the last."""
        return np.asarray(codes[..., np.newaxis] > np.arange(self.width), dtype=np.bool_)

    def codes(self, marks: NDArray[np.int64]) -> Codes:
        return np.asarray(marks.sum(axis=-1), dtype=np.int64)

    def code(self, values: Column) -> tuple[Codes, NDArray[np.bool_]]:
        if isinstance(values, Numbers):
            raise TypeError("an ordered outcome is read as categories")
        places = {level: place for place, level in enumerate(self.levels)}
        codes = values.look_up(places, otherwise=-1).astype(np.int64)
        return codes, codes >= 0

    @property
    def listing(self) -> tuple[Any, ...]:
        return self.levels

    @property
    def unknown(self) -> str:
        return "none of its levels"

    @property
    def allowed(self) -> str:
        return f"its levels, {', '.join(map(repr, self.levels[:-1]))} and {self.levels[-1]!r}"

    def values(self, codes: NDArray[Any]) -> NDArray[Any]:
        return array_of(self.levels)[np.asarray(codes, dtype=np.intp)]

    def column(self, codes: NDArray[Any]) -> Column:
        return Categories(codes.astype(np.int32), self.levels)

    def pool(self, decided: Sequence[NDArray[Any]], point: NDArray[Any]) -> Codes:
        """Return the middle level of the draws; of two, the worse."""
        return np.asarray(np.sort(decided, axis=0)[len(decided) // 2])

    def expected(
        self, pooled: NDArray[Any], rows: NDArray[np.intp], decided: NDArray[Any] | None
    ) -> NDArray[Any]:
        """Return the pooled levels, which have no average."""
        return pooled

    def exact(self, control: Sums, test: Sums) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return θ - ½, in lowest terms."""
        return _Pairs.of(control, test).effects()

    def test(
        self, control: Sums, test: Sums, rule: Rule, delta: Floats, *, bounds: bool
    ) -> Interval:
        r"""Compute Brunner and Munzel's interval and test.

        Notes
        -----
        The placement :math:`F_t(y)` of a person of the control group is the share of the test group
        with a better outcome than y, and half of the share with the same. θ is their mean, and
        :math:`t = (\theta - ½ - \tau) / s` with :math:`s^2 = v_c / n_c + v_t / n_t + d`, the
        unbiased variances v of the placements in both groups, and the variance d of θ where it
        rests on estimates. It is compared with Student's distribution with Satterthwaite's degrees
        of freedom, as published for two groups of people without weights.

        Where a group counts as fewer than 15 people, t is compared with its distribution over all
        ways to split the people of both groups (Neubert and Brunner): tables of levels are listed
        with their probabilities, or 20,000 of them drawn where there are more, with a seed that
        follows from levels and sizes. Sizes that are not whole are rounded down for it.

        Where the groups do not overlap, there is no variance: the interval is marked as degenerate,
        and the p-value is the probability of splitting the people in that way.

        References
        ----------
        Brunner and Munzel (2000), The nonparametric Behrens-Fisher problem: asymptotic theory and a
        small-sample approximation, Biometrical Journal 42, 17-25. Neubert and Brunner (2007), A
        studentized permutation test for the non-parametric Behrens-Fisher problem, Computational
        Statistics & Data Analysis 51, 5192-5204.
        """
        tau, alpha, pairs = float(rule.tau), rule.alpha, _Pairs.of(control, test)
        statistic, error, low, high, p_value = Student.of(
            delta, pairs.variances(), (control, test), tau=tau, alpha=alpha
        )
        people = np.minimum(control.weight, test.weight)
        certain, alone = error == 0, people < 2
        for row in np.flatnonzero((people < self.fewest) & ~certain & ~alone).tolist():
            chances = _permute(*pairs.pooled(row, *_sizes(control, test, row)))
            p_value[row] = chances.tail(float(statistic[row]))
            low[row] = delta[row] - chances.upper(alpha) * error[row]
            high[row] = delta[row] - chances.lower(alpha) * error[row]
        for row in np.flatnonzero(certain).tolist():
            here, there = _sizes(control, test, row)
            split = float(Fraction(1, comb(here + there, here)))
            p_value[row] = split if delta[row] > tau else 1.0
        low, high = np.maximum(low, -0.5), np.minimum(high, 0.5)
        low = np.where(certain, low, match_bound(low, p_value, tau=tau, alpha=alpha))
        low, high, p_value = (np.where(alone, np.nan, each) for each in (low, high, p_value))
        return Interval(low=low, high=high, p_value=p_value, degenerate=certain & ~alone)

    def averages(self, control: Sums, test: Sums) -> tuple[Floats, Floats]:
        """Return the shares of pairs in which either group has the worse outcome."""
        found = np.full((2, len(control.places)), np.nan)
        filled = np.flatnonzero((control.places > 0) & (test.places > 0))
        pairs = _Pairs.of(control.take(filled), test.take(filled))
        for side, worse in enumerate(pairs.worse()):
            found[side, filled] = _divide(worse, pairs.number)
        return found[0], found[1]

    def doubted(self, control: Sums, test: Sums) -> Floats:
        worse, better = self.averages(control, test)
        return (worse - better) / 2

    def own_shown(self, codes: NDArray[Any], matches: Sums) -> Floats:
        """Return θ of each complainant alone."""
        found = np.full(len(codes), np.nan)
        filled = np.flatnonzero(matches.places > 0)
        numerator, denominator = self.exact(self.alone(codes[filled]), matches.take(filled))
        found[filled] = _divide(2 * numerator + denominator, 2 * denominator)
        return found

    def against(self, own: Floats) -> Floats:
        return own

    def words(self, column: str, labels: Labels) -> OrderedWords:
        name, levels = labels.column(column), [labels.level(column, each) for each in self.levels]
        return OrderedWords(
            kind=self,
            column=column,
            labels=labels,
            averaged="worse off in pairs",
            compared=name,
            described=f"levels of {name}",
            worse=f"farther to the right in: {', '.join(levels)}",
            caption=f"Shares of pairs in which a group has the worse {name}, Δ = θ − ½ (half of "
            "their difference), and the verdict.",
            definition="Each person of the control group is paired with each one of the test "
            f"group. θ is the share of pairs in which the one of the control group had the worse "
            f"{name}, and half of the share in which both had the same; Δ = θ − ½: more is worse. "
            f"From the best to the worst: {', '.join(levels)}.",
            counts=f"What counts is the {name}, from best to worst: {listed(levels)}.",
            theirs="those",
            width=11,
        )

    def declaration(self) -> Mapping[str, Any]:
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
        counts = np.bincount(codes, minlength=len(self.levels)).tolist()
        shares = zip(self.levels, counts, strict=True)
        return ", ".join(f"{level} {number / len(codes):.1%}" for level, number in shares)

    def facts(self, outcome: Outcome) -> tuple[str, dict[str, Any]]:
        counts = np.bincount(outcome.codes, minlength=len(self.kind.levels)).tolist()
        levels = dict(zip(self.levels, counts, strict=True))
        shown = ", ".join(f"{level} {number:,}" for level, number in levels.items())
        return f", from the best to the worst: {shown}.", {"levels": levels}

    def averages(
        self, control: float | str | None, test: float | str | None
    ) -> tuple[tuple[str, str], str]:
        worse = f"had the worse {self.name} in {self.average(control)}"
        return ("of all pairs,", worse), f"{self.average(test)} for"

    def delta(self, value: float, *, decisions: bool = False) -> str:
        return f"θ = {self.number(value + 1 / 2)}, Δ = θ − ½ = {self.number(value)}"

    def own_shown(self, own: float) -> str:
        return f"θ = {self.number(own)}, where ½ is neither worse nor better"


# --- pairs of people ------------------------------------------------------------------------------


def _divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> Floats:
    return np.asarray(numerator / denominator, dtype=np.float64)


def _beyond(share: Sums) -> NDArray[Any]:
    """Count parts of places beyond each level, from all to none: a column more than levels."""
    beyond, whole = share.marks, share.places[:, np.newaxis] * share.parts
    total = whole[:, :1]
    if not (whole == total).all():
        # fractions in lowest terms, put over one denominator
        whole = whole.astype(object)
        total = np.lcm.reduce(whole, axis=1, keepdims=True)
        beyond = beyond * (total // np.maximum(whole, 1))
    return np.hstack([total, beyond, np.zeros_like(total)])


class _Pairs(NamedTuple):
    """The pairs of one person of the control group and one of the test group."""

    control: NDArray[Any]
    test: NDArray[Any]

    @classmethod
    def of(cls, control: Sums, test: Sums) -> _Pairs:
        both = [_beyond(control), _beyond(test)]
        largest = [float(np.max(each[:, 0], initial=1)) for each in both]
        # sums of squares are at most this
        kind: Any = np.int64 if 4 * (largest[0] * largest[1]) ** 2 < SAFE else object
        return cls(*(each.astype(kind) for each in both))

    @property
    def number(self) -> NDArray[Any]:
        return np.asarray(self.control[:, 0] * self.test[:, 0])

    def effects(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return θ - ½ as numerators over positive denominators, in lowest terms."""
        twice = (_at_levels(self.control) * _placements(self.test)).sum(axis=1)
        numerator, denominator = twice - self.number, 2 * self.number
        divisor = np.gcd(numerator, denominator)
        return numerator // divisor, denominator // divisor

    def worse(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Count the pairs in which the control group has it worse, and the test group."""

        def count(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
            better = other[:, :1] - other[:, :-1]
            return np.asarray((_at_levels(one) * better).sum(axis=1))

        return count(self.control, self.test), count(self.test, self.control)

    def variances(self) -> tuple[Floats, Floats]:
        """Return the variance of the placements in both groups, divided by their sizes: exact."""

        def spread(one: NDArray[Any], other: NDArray[Any]) -> Floats:
            counts, placements = _at_levels(one), _placements(other)
            total = (counts * placements).sum(axis=1)
            squares = (counts * placements**2).sum(axis=1)
            return _divide(squares * one[:, 0] - total**2, (2 * one[:, 0] * other[:, 0]) ** 2)

        return spread(self.control, self.test), spread(self.test, self.control)

    def pooled(self, row: int, here: int, there: int) -> tuple[tuple[int, ...], int]:
        """Count both groups at each level that occurs; the size of the control group."""
        beyond = []
        for ours, theirs in zip(self.control[row], self.test[row], strict=True):
            expected = Fraction(int(ours) * here, int(self.control[row, 0]))
            expected += Fraction(int(theirs) * there, int(self.test[row, 0]))
            beyond.append(floor(expected + Fraction(1, 2)))
        levels = [one - other for one, other in pairwise(beyond)]
        return tuple(each for each in levels if each), here


def _at_levels(beyond: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(beyond[:, :-1] - beyond[:, 1:])


def _placements(beyond: NDArray[Any]) -> NDArray[Any]:
    """Return twice the parts that are better than each level, and those that are at it once."""
    return np.asarray(2 * beyond[:, :1] - beyond[:, :-1] - beyond[:, 1:])


# --- small groups: a permutation test -------------------------------------------------------------


def _sizes(control: Sums, test: Sums, row: int) -> tuple[int, int]:
    return floor(control.weight[row]), floor(test.weight[row])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Permuted:
    """The statistic over all ways to split the people of both groups, in ascending order."""

    statistic: Floats
    at_least: Floats  # the probability of each value, or a larger one
    at_most: Floats

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
