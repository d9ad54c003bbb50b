"""Compare control and test groups by a rule, and adjust for the number of complainants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mutandis.data.rows import ByRow, group_equal, number_equal
from mutandis.outcomes.intervals import Bounds, Interval
from mutandis.outcomes.outcome import Comparison

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.engine.tally import Sums
    from mutandis.outcomes.outcome import Depth, Rule

__all__ = ["Adjustment", "adjust", "compare", "join"]

# a table of all pairs for two groups of this size takes 8 MB
_LARGEST_TABLE = 1000
# pairs that are compared together: what is worked out on the way stays in the cache
_BLOCK = 1 << 15


def compare(
    control: Sums,
    test: Sums,
    rule: Rule,
    *,
    depth: Depth = "bounds",
    insufficient: NDArray[np.bool_] | None = None,
) -> Comparison:
    """Compare the groups of every complainant.

    Better treatment is Δ < -τ, the mirror image of Δ > τ: the groups change places, so that a kind
    which finds Δ > τ and tests π ≤ τ finds Δ < -τ and tests π ≥ -τ; then Δ and its bounds get their
    signs back. There, significant ⇔ p ≤ α ⇔ the *upper* bound is at most -τ.

    A complainant who is `insufficient` has neither evidence nor a test: bounds and p-value are
    missing. Δ is there where neither group is empty, since it describes them all the same. Groups
    of equal sizes are insufficient or not together.
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
    found = _in_blocks(here, there, rule, depth=depth)
    if len(others):
        delta = np.full(len(first), np.nan)
        delta[others] = _known_differences(control.take(others), test.take(others), rule)
        found = _among_insufficient(found, enough, delta)
    return found if alone else found.take(pair)


def join(grounds: Sequence[Comparison], chosen: NDArray[np.intp]) -> Comparison:
    """Join comparisons on several grounds to one on all of them (an intersection-union test).

    The claim is "on every ground", so each test must reject at level α, and no correction is due: p
    is the largest p-value. The bounds are the outermost ones; both are at least as safe for the
    smallest difference as for each of them. `chosen` is the ground whose Δ is shown, by
    complainant.
    """
    intervals = [each.interval for each in grounds]
    measured = [each.measured for each in intervals if each.measured is not None]
    rows = np.arange(len(chosen))
    return Comparison(
        delta_p=np.stack([each.delta_p for each in grounds])[chosen, rows],
        evidence=np.all([each.evidence for each in grounds], axis=0),
        significant=np.all([each.significant for each in grounds], axis=0),
        interval=Interval(
            **_outermost(intervals),
            p_value=np.max([each.p_value for each in intervals], axis=0),
            degenerate=np.any([each.degenerate for each in intervals], axis=0),
            measured=Bounds(**_outermost(measured)) if measured else None,
        ),
        # a complainant who cannot be compared on some ground cannot be on all of them
        insufficient=np.any([each.insufficient for each in grounds], axis=0),
    )


def _outermost(bounds: Sequence[Interval] | Sequence[Bounds]) -> dict[str, NDArray[np.float64]]:
    return {
        "low": np.min([each.low for each in bounds], axis=0),
        "high": np.max([each.high for each in bounds], axis=0),
    }


def _in_blocks(control: Sums, test: Sums, rule: Rule, *, depth: Depth) -> Comparison:
    """Compare some at a time; no comparison depends on another."""
    parts = []
    for start in range(0, max(1, len(control.places)), _BLOCK):
        block = slice(start, start + _BLOCK)
        here, there = control.take(block), test.take(block)
        if rule.worse:
            parts.append(rule.kind.compare(here, there, rule, depth=depth))
        else:
            parts.append(rule.kind.compare(there, here, rule, depth=depth).mirrored())
    return Comparison.join(parts)


def _known_differences(control: Sums, test: Sums, rule: Rule) -> NDArray[np.float64]:
    """Return Δ where neither group is empty."""
    delta = np.full(len(control.places), np.nan)
    filled = np.flatnonzero((control.places > 0) & (test.places > 0))
    delta[filled] = rule.kind.differences(control.take(filled), test.take(filled))
    return delta


def _among_insufficient(
    found: Comparison, enough: NDArray[np.intp], delta_p: NDArray[np.float64]
) -> Comparison:
    """Insert the comparisons of some among those of complainants who cannot be compared."""
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
    """Spread values of some rows over all rows."""
    if isinstance(values, ByRow):
        parts = {f.name: _spread(getattr(values, f.name), rows, count) for f in fields(values)}
        return type(values)(**parts)
    if values is None:
        return None
    column = np.full(count, np.nan if values.dtype.kind == "f" else 0, values.dtype)
    column[rows] = values
    return column


def distinct_pairs(
    control: Sums, test: Sums, insufficient: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return one complainant for each different pair of sums, and the pair of each complainant.

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
    """Return whether all groups have one size, small enough for a table, and no place is split."""
    if not len(share.places):
        return False
    size = int(share.places[0])
    whole = bool((share.parts[:, 0] == 1).all() and (share.places == size).all())
    return whole and size <= _LARGEST_TABLE and bool((share.marks[:, 0] <= size).all())


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
    """Return all that a comparison reads of shares, as integers that are equal where it is."""
    floats = [each for each in (share.people, share.doubt) if each is not None]
    whole = [share.marks[:, 0], share.parts[:, 0]]
    whole = [number_equal(each) if each.dtype == object else each for each in whole]
    return [share.places, *whole, *(each.view(np.int64) for each in floats)]


def _parts(share: Sums) -> tuple[NDArray[np.int64], ...]:
    """Return shares in lowest terms: 2/4 of ten and 1/2 of ten are the same evidence."""
    divisor = np.gcd(share.marks[:, 0], share.parts[:, 0])
    return share.marks[:, 0] // divisor, share.parts[:, 0] // divisor, share.places


# --- many complainants at once -------------------------------------------------------------------

Adjustment = Literal["benjamini-hochberg", "benjamini-yekutieli", "holm", "none"]


def adjust(p_values: NDArray[np.float64], *, method: Adjustment) -> NDArray[np.float64]:
    """Adjust p-values for the number of tests; missing ones stay missing and do not count.

    Parameters
    ----------
    p_values
        One per complainant.
    method
        "benjamini-hochberg" bounds the expected share of false findings among all findings, if
        tests are independent or rise and fall together; "benjamini-yekutieli" does so under any
        dependence; "holm" bounds the chance of a single false finding, under any dependence;
        "none" changes nothing.

    References
    ----------
    Benjamini, Hochberg (1995), Controlling the false discovery rate, Journal of the Royal
    Statistical Society B 57, 289-300. Benjamini, Yekutieli (2001), The control of the false
    discovery rate in multiple testing under dependency, Annals of Statistics 29, 1165-1188.
    Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6, 65-70.

    Examples
    --------
    >>> import numpy as np
    >>> adjust(np.array([0.01, 0.04, np.nan]), method="benjamini-hochberg").tolist()
    [0.02, 0.04, nan]
    >>> adjust(np.array([0.01, 0.04, 0.03]), method="holm").tolist()
    [0.03, 0.06, 0.06]
    """
    q_values = np.array(p_values, dtype=np.float64)
    tested = ~np.isnan(q_values)
    # equal p-values have equal q-values, and many are equal
    kinds = number_equal(q_values[tested])
    counts = np.bincount(kinds)
    distinct = np.empty(len(counts))
    distinct[kinds] = q_values[tested]
    order = np.argsort(distinct, kind="stable")
    distinct[order] = _METHODS[method](distinct[order], counts[order])
    q_values[tested] = distinct[kinds]
    return q_values


def _benjamini_hochberg(
    p_values: NDArray[np.float64], counts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Multiply each by the tests per rank, as its last equal has it; never rise on the way down."""
    ranks = np.cumsum(counts)
    return _falling(p_values * (counts.sum() / ranks))


def _benjamini_yekutieli(
    p_values: NDArray[np.float64], counts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Do so with the factor 1 + 1/2 + … + 1/m on top."""
    tests = counts.sum()
    harmonic = np.sum(1 / np.arange(1, tests + 1, dtype=np.float64))
    return _falling(p_values * (tests / np.cumsum(counts)) * harmonic)


def _falling(bounds: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.minimum(np.minimum.accumulate(bounds[::-1])[::-1], 1.0)


def _holm(p_values: NDArray[np.float64], counts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Multiply the smallest by their number, the next by what is left; never fall on the way up."""
    remaining = counts.sum() - np.cumsum(counts) + counts
    return np.minimum(np.maximum.accumulate(p_values * remaining), 1.0)


def _as_they_are(
    p_values: NDArray[np.float64],
    counts: NDArray[np.intp],  # noqa: ARG001 - however many there are
) -> NDArray[np.float64]:
    return p_values


_Method = Callable[["NDArray[np.float64]", "NDArray[np.intp]"], "NDArray[np.float64]"]

_METHODS: dict[Adjustment, _Method] = {
    "benjamini-hochberg": _benjamini_hochberg,
    "benjamini-yekutieli": _benjamini_yekutieli,
    "holm": _holm,
    "none": _as_they_are,
}
"""How different p-values, smallest first, are adjusted, given how often each occurs."""
