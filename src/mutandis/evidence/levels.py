"""Compare ordered outcomes of control and test group: the relative effect θ, and its test.

θ is the probability that a person of the control group has a worse outcome than one of the test
group, equal ones counted half: ½ where no group is worse off. What is compared with τ is Δ = θ - ½.
Both are exact: numbers of pairs, from the people beyond each level. The number of people that a
group counts as is that of shares: its size, or the effective number of a matched group.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import comb, floor
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.engine.tally import SAFE, Sums, exceeds
from mutandis.evidence.comparison import Comparison
from mutandis.evidence.intervals import Interval, match_bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.data.ordered import LevelScale
    from mutandis.evidence.comparison import Depth

__all__ = ["compare_levels", "effects_of", "is_beyond", "own_effect", "worse_shares"]

# degrees of freedom at which Student's distribution is the normal one
_NORMAL = 1e300
# up to so many tables are listed; of more, so many are drawn
_MOST_TABLES = 20_000
# statistics that differ by less are equal
_ROUNDING = 1e-9


def compare_levels(
    control: Sums, test: Sums, *, scale: LevelScale, tau: float, alpha: float, depth: Depth
) -> Comparison:
    r"""Compare ordered outcomes, looking for θ - ½ > τ.

    Evidence is decided on integers, with τ read as the decimal that was written.

    Notes
    -----
    With the placements :math:`F_t(y)` of the people in the control group, the share of the test
    group that has a better outcome than y and half of the share that has the same, θ is their mean,
    and Brunner and Munzel's statistic is :math:`t = (\theta - ½ - \tau) / s` with
    :math:`s^2 = v_c / n_c + v_t / n_t + d`: the unbiased variances v of the placements in both
    groups, and the variance d of θ where it rests on estimates (0 elsewhere). It is compared with
    Student's distribution, the degrees of freedom being Satterthwaite's as in Welch's test. For two
    groups of people without weights, this is the test as published.

    Where a group counts as fewer than 15 people, t is compared with its own distribution over all
    ways to part the people of both groups (Neubert and Brunner): tables of levels are listed with
    their exact probabilities, or 20,000 of them drawn where there are more, with a seed that
    follows from the levels and the sizes alone. Sizes that are not whole are rounded down for it.

    Where no one of the control group has a better outcome, or the same, as one of the test group,
    there is no variance. The interval has no width then and is marked as degenerate, and the
    p-value is the probability of parting the people in that way.

    References
    ----------
    Brunner and Munzel (2000), The nonparametric Behrens-Fisher problem: asymptotic theory and a
    small-sample approximation, Biometrical Journal 42, 17-25. Neubert and Brunner (2007), A
    studentized permutation test for the non-parametric Behrens-Fisher problem, Computational
    Statistics & Data Analysis 51, 5192-5204.
    """
    pairs = _Pairs.of(control, test)
    numerator, denominator = pairs.effects()
    evidence = exceeds(numerator, denominator, Fraction(str(tau)))
    delta = _divide(numerator, denominator)
    if depth == "evidence":
        interval = Interval.without_bounds(np.full(len(delta), np.nan))
    else:
        tested = _Tested.of(pairs, delta, control, test)
        interval = tested.interval(tau=tau, alpha=alpha, fewest=scale.fewest)
    return Comparison(
        delta_p=delta,
        evidence=evidence,
        significant=evidence & (interval.p_value <= alpha),
        interval=interval,
        insufficient=np.zeros_like(evidence),
    )


def effects_of(control: Sums, test: Sums) -> NDArray[np.float64]:
    """Give θ - ½ for groups that are not empty, rounded once."""
    return _divide(*_Pairs.of(control, test).effects())


def worse_shares(control: Sums, test: Sums) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the shares of pairs in which the control group has it worse, and the test group.

    They are missing where a group is empty.
    """
    found = np.full((2, len(control.places)), np.nan)
    filled = np.flatnonzero((control.places > 0) & (test.places > 0))
    pairs = _Pairs.of(control.take(filled), test.take(filled))
    for side, worse in enumerate(pairs.worse()):
        found[side, filled] = _divide(worse, pairs.number)
    return found[0], found[1]


def own_effect(places: NDArray[np.int64], others: Sums, scale: LevelScale) -> NDArray[np.float64]:
    """Give θ of each one alone against others; missing where there are none."""
    found = np.full(len(places), np.nan)
    filled = np.flatnonzero(others.places > 0)
    pairs = _Pairs.of(_alone(places[filled], scale), others.take(filled))
    numerator, denominator = pairs.effects()
    found[filled] = _divide(2 * numerator + denominator, 2 * denominator)
    return found


def is_beyond(
    places: NDArray[np.int64], others: Sums, *, scale: LevelScale, tau: float, worse: bool = True
) -> NDArray[np.bool_]:
    """Tell whose own θ against others is above ½ by more than τ, exactly.

    With `worse` false: below. It is false where there are no others.
    """
    found = np.zeros(len(places), dtype=np.bool_)
    filled = np.flatnonzero(others.places > 0)
    own, there = _alone(places[filled], scale), others.take(filled)
    sides = (own, there) if worse else (there, own)
    found[filled] = exceeds(*_Pairs.of(*sides).effects(), Fraction(str(tau)))
    return found


def _alone(places: NDArray[np.int64], scale: LevelScale) -> Sums:
    """Give single people as groups."""
    one = np.ones(len(places), dtype=np.int64)
    return Sums.of(marks=scale.marks(places).astype(np.int64), places=one)


def _divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(numerator / denominator, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Levels:
    """How many parts of places in each group are beyond each level, over one denominator."""

    beyond: tuple[NDArray[Any], ...]  # from all to none: one more than there are levels
    whole: NDArray[Any]

    @classmethod
    def of(cls, share: Sums) -> _Levels:
        places = share.places
        found = [
            (up, places * parts) for up, parts in zip(share.marks.T, share.parts.T, strict=True)
        ]
        whole = found[0][1]
        if not all(np.array_equal(down, whole) for _, down in found):
            # fractions in lowest terms
            parts = [(up.astype(object), down.astype(object)) for up, down in found]
            whole = np.lcm.reduce([down for _, down in parts])
            found = [(up * (whole // np.maximum(down, 1)), whole) for up, down in parts]
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
        """Give θ - ½ as numerators over positive denominators, in lowest terms."""
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
        """Give the variance of the placements in both groups, divided by their sizes: exact."""

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
        """Give the probability that people part into these two groups, one worse throughout."""
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
    """The statistic over all ways to part the people of both groups, in ascending order."""

    statistic: NDArray[np.float64]
    at_least: NDArray[np.float64]  # the probability of each value, or a larger one
    at_most: NDArray[np.float64]

    def tail(self, value: float) -> float:
        """Give the probability of a value or a larger one; at least that of the largest."""
        near = value - _ROUNDING * (1 + abs(value)) if np.isfinite(value) else value
        place = int(np.searchsorted(self.statistic, near))
        return float(self.at_least[min(place, len(self.at_least) - 1)])

    def upper(self, alpha: float) -> float:
        """Give the least value that is reached, or exceeded, with a probability of at most α."""
        rare = np.flatnonzero(self.at_least <= alpha)
        return float(self.statistic[rare[0]]) if len(rare) else np.inf

    def lower(self, alpha: float) -> float:
        """Give the largest value that is not exceeded with a probability of at most α."""
        rare = np.flatnonzero(self.at_most <= alpha)
        return float(self.statistic[rare[-1]]) if len(rare) else -np.inf


@lru_cache(maxsize=4096)
def _permute(levels: tuple[int, ...], size: int) -> _Permuted:
    """Part people at these levels into a control group of this size, and a test group."""
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
    """Give tables of levels that a group of this size may have, with their probabilities."""
    if _count_tables(levels, size) > _MOST_TABLES:
        # the numbers themselves are the seed: neither rows nor their order have a part in it
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
    """Give Brunner and Munzel's statistic for tables of levels; infinite where groups are apart."""

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
