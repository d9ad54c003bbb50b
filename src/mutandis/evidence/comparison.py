"""Compare control and test group: Δp, evidence (Def. 5) and significance (Def. 6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mutandis.data.by_row import ByRow
from mutandis.data.equal_rows import group_equal, number_equal
from mutandis.engine.tally import Sums, difference
from mutandis.evidence.measures import RISK_DIFFERENCE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.evidence.groups import Group, Pair
    from mutandis.evidence.intervals import Interval, IntervalMethod
    from mutandis.evidence.measures import Measure
    from mutandis.evidence.methods import Method

__all__ = ["Comparison", "Depth", "Direction", "compare", "compare_exactly", "too_small"]

Direction = Literal["negative", "positive"]
"""Whether complainants who are treated worse are looked for, or those who are treated better."""

Depth = Literal["evidence", "significance", "bounds"]
"""How far a comparison goes: each takes longer than the one before."""

# a table of all pairs for two groups of this size takes 8 MB
_LARGEST_TABLE = 1000
# pairs that are compared together: what is worked out on the way stays in the cache
_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(ByRow):
    """Control against test group, for each complainant."""

    delta_p: NDArray[np.float64]  # p_control - p_test
    evidence: NDArray[np.bool_]  # whether Δp > τ (Def. 5), or another measure is beyond its τ
    significant: NDArray[np.bool_]  # whether the one-sided test rejects at level α (Def. 6)
    interval: Interval  # the bounds and the p-value
    # who has too few people to be compared with: neither tested nor counted as a case
    insufficient: NDArray[np.bool_]

    def mirrored(self) -> Comparison:
        """Give what comparing the test group with the control group says of the contrary."""
        # taken from zero, since turning the sign of 0 would give -0
        found = self.interval
        bounds = replace(
            found,
            low=0.0 - found.high,
            high=0.0 - found.low,
            measured=None if found.measured is None else found.measured.inverted(),
        )
        return replace(self, delta_p=0.0 - self.delta_p, interval=bounds)


Rule = Callable[[Sums, Sums], Comparison]
"""Compares shares, looking for Δp > τ; nothing but the shares has a part in it."""

Differences = Callable[[Sums, Sums], "NDArray[np.float64]"]
"""Gives Δ of groups that are not empty, where outcomes are more than two values."""


def compare_exactly(
    control: Sums,
    test: Sums,
    *,
    tau: float,
    alpha: float,
    interval: IntervalMethod,
    measure: Measure = RISK_DIFFERENCE,
) -> Comparison:
    """Compare shares, looking for Δp > τ: evidence is decided on integers, with τ as a decimal.

    Nothing is rounded before it is compared.
    """
    numerator, denominator = difference(control, test)
    evidence = measure.is_beyond(control, test, Fraction(str(tau)))
    bounds = interval(control, test, tau=tau, alpha=alpha)
    return Comparison(
        delta_p=np.asarray(numerator / denominator, dtype=np.float64),
        evidence=evidence,
        significant=evidence & (bounds.p_value <= alpha),
        interval=bounds,
        insufficient=np.zeros_like(evidence),
    )


def compare(
    control: Sums,
    test: Sums,
    rule: Rule,
    *,
    direction: Direction = "negative",
    insufficient: NDArray[np.bool_] | None = None,
    differences: Differences | None = None,
) -> Comparison:
    """Compare the groups of every complainant, each different pair of shares once.

    Positive discrimination is Δp < -τ, the mirror image of Δp > τ: the groups change places, so
    that any rule which finds Δp > τ and tests π ≤ τ finds Δp < -τ and tests π ≥ -τ; then Δp and
    its bounds get their signs back. There, significant ⇔ p ≤ α ⇔ the *upper* bound is at most -τ.

    Whoever is `insufficient` has neither evidence nor a test: bounds and p-value are missing. Δp
    is given where neither group is empty, since it describes them all the same. Groups of equal
    sizes are insufficient or not together. `differences` gives Δ where it is not that of shares.
    """
    first, pair = distinct_pairs(control, test, insufficient)
    alone = first is pair  # no two complainants have the same
    if not alone:
        control, test = control.take(first), test.take(first)
    enough, others = np.arange(len(first)), np.empty(0, dtype=np.intp)
    here, there = control, test
    if insufficient is not None and insufficient[first].any():
        enough, others = (np.flatnonzero(each[first]) for each in (~insufficient, insufficient))
        here, there = control.take(enough), test.take(enough)
    found = _in_blocks(rule, here, there, direction)
    if len(others):
        delta_p = np.full(len(first), np.nan)
        here, there = control.take(others), test.take(others)
        delta_p[others] = _known_differences(here, there, differences)
        found = _among_insufficient(found, enough, delta_p)
    return found if alone else found.take(pair)


def _in_blocks(rule: Rule, control: Sums, test: Sums, direction: Direction) -> Comparison:
    """Compare some at a time, of whom no one has a part in another's comparison."""
    parts = []
    for start in range(0, max(1, len(control.places)), _BLOCK):
        block = slice(start, start + _BLOCK)
        here, there = control.take(block), test.take(block)
        parts.append(rule(here, there) if direction == "negative" else rule(there, here).mirrored())
    return Comparison.join(parts)


def _known_differences(
    control: Sums, test: Sums, differences: Differences | None
) -> NDArray[np.float64]:
    """Give Δp where neither group is empty."""
    delta_p = np.full(len(control.places), np.nan)
    filled = np.flatnonzero((control.places > 0) & (test.places > 0))
    here, there = control.take(filled), test.take(filled)
    if differences is None:
        numerator, denominator = difference(here, there)
        delta_p[filled] = numerator / denominator
    else:
        delta_p[filled] = differences(here, there)
    return delta_p


def _among_insufficient(
    found: Comparison, enough: NDArray[np.intp], delta_p: NDArray[np.float64]
) -> Comparison:
    """Put the comparisons of some among those who cannot be compared."""
    count = len(delta_p)
    delta_p[enough] = found.delta_p
    insufficient = np.ones(count, dtype=np.bool_)
    insufficient[enough] = False
    return Comparison(
        delta_p=delta_p,
        evidence=_spread(found.evidence, enough, count),
        significant=_spread(found.significant, enough, count),
        interval=_spread(found.interval, enough, count),
        insufficient=insufficient,
    )


def _spread(values: Any, rows: NDArray[np.intp], count: int) -> Any:
    """Put what is known of some rows among others of which nothing is."""
    if isinstance(values, ByRow):
        parts = {f.name: _spread(getattr(values, f.name), rows, count) for f in fields(values)}
        return type(values)(**parts)
    if values is None:
        return None
    column = np.full(count, np.nan if values.dtype.kind == "f" else 0, values.dtype)
    column[rows] = values
    return column


def too_small(pair: Pair[Group], method: Method, *, least: int) -> NDArray[np.bool_]:
    """Tell whose groups hold fewer people than asked for, or do not match.

    Search centers are not counted.
    A method that compares nothing but the centers has no groups that could be too small.
    """
    control, test = pair.control.share.places, pair.test.share.places
    if not method.count_neighbours:
        return np.zeros(len(control), dtype=np.bool_)
    fewest = np.minimum(control, test) - int(method.count_centers)
    small = np.asarray(fewest < least, dtype=np.bool_)
    return small if pair.test.matching is None else small | (pair.test.matching.unfit != 0)


def distinct_pairs(
    control: Sums, test: Sums, insufficient: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find one complainant of each different pair of shares, and the pair that each has.

    Without ties, the two shares of a complainant are two whole numbers from 0 to k: a million
    complainants have at most (k + 1)² different pairs. Matched groups hardly ever agree in both
    the share and the number of people that it counts as, and neither do means over draws: these
    are compared one by one, unless their integers are those of Python, which take long.
    """
    several = control.width > 1  # of several marks, all hardly ever agree
    if not several and object in (test.marks.dtype, test.parts.dtype):
        whether = () if insufficient is None else (insufficient,)
        return group_equal(*_bits(control), *_bits(test), *whether)
    if several or control.people is not None or test.people is not None:
        everyone = np.arange(len(control.places))
        return everyone, everyone
    if _is_plain(control) and _is_plain(test):
        return _group_plain(control, test)
    return group_equal(*_parts(control), *_parts(test))


def _is_plain(share: Sums) -> bool:
    """Tell whether all groups have one size, small enough for a table, and no place is split."""
    if not len(share.places):
        return False
    size = int(share.places[0])
    whole = bool((share.parts[:, 0] == 1).all() and (share.places == size).all())
    return whole and size <= _LARGEST_TABLE


def _group_plain(control: Sums, test: Sums) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Look each pair of whole numbers up in a table of all of them: no hashing."""
    width = int(test.places[0]) + 1
    key = control.marks[:, 0] * width
    key += test.marks[:, 0]
    example = np.full((int(control.places[0]) + 1) * width, -1, dtype=np.intp)
    example[key] = np.arange(len(key))
    taken = np.flatnonzero(example >= 0)
    first = example[taken]
    example[taken] = np.arange(len(taken))
    return first, example[key]


def _bits(share: Sums) -> list[NDArray[Any]]:
    """Give all that a comparison reads of shares, as integers that are equal where it is."""
    floats = [each for each in (share.people, share.doubt) if each is not None]
    whole = [share.marks[:, 0], share.parts[:, 0]]
    whole = [number_equal(each) if each.dtype == object else each for each in whole]
    return [share.places, *whole, *(each.view(np.int64) for each in floats)]


def _parts(share: Sums) -> tuple[NDArray[np.int64], ...]:
    """Give what tells shares apart: 2/4 of ten and 1/2 of ten are the same evidence."""
    divisor = np.gcd(share.marks[:, 0], share.parts[:, 0])
    return share.marks[:, 0] // divisor, share.parts[:, 0] // divisor, share.places
