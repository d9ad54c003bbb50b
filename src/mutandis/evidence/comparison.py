"""Compare control and test group: Δp, evidence (Def. 5) and significance (Def. 6)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.evidence.distinct_pairs import distinct_pairs
from mutandis.evidence.findings import Comparison
from mutandis.evidence.interval import Interval
from mutandis.search.share import difference, exceeds

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutandis.evidence.findings import Group
    from mutandis.evidence.intervals import IntervalMethod

__all__ = ["Direction", "compare", "compare_centers", "compare_distinct", "compare_in_direction"]

Direction = Literal["negative", "positive"]


def compare_distinct(
    control: Group, test: Group, comparing: Callable[[Group, Group], Comparison]
) -> Comparison:
    """Compare each different pair of shares once: nothing else has a part in a comparison.

    Parameters
    ----------
    control, test
        The groups of every complainant.
    comparing
        The rule, which looks at shares alone.
    """
    first, pair = distinct_pairs(control.share, test.share)
    return comparing(control.take(first), test.take(first)).take(pair)


def compare_in_direction(
    direction: Direction,
    control: Group,
    test: Group,
    comparing: Callable[[Group, Group], Comparison],
) -> Comparison:
    """Compare as it is, or in the mirror: positive discrimination is Δp < -τ.

    In the mirror the groups change places, so that any rule which finds Δp > τ and tests π ≤ τ
    finds Δp < -τ and tests π ≥ -τ; then Δp and its bounds get their signs back. There,
    significant ⇔ p ≤ α ⇔ the *upper* bound is at most -τ.

    Parameters
    ----------
    direction
        "negative" looks for complainants who are treated worse, "positive" for those treated
        better.
    control, test
        The groups of every complainant.
    comparing
        A rule that looks for Δp > τ.
    """
    if direction == "negative":
        return comparing(control, test)
    mirrored = comparing(test, control)
    bounds = mirrored.interval
    return replace(
        mirrored,
        # taken from zero, since turning the sign of 0 would give -0
        delta_p=0.0 - mirrored.delta_p,
        interval=replace(bounds, low=0.0 - bounds.high, high=0.0 - bounds.low),
    )


def compare(
    control: Group, test: Group, *, tau: float, alpha: float, interval: IntervalMethod
) -> Comparison:
    """Compare the groups of every complainant.

    Evidence is decided on integers, with τ read as the decimal that was written: nothing is
    rounded before it is compared.
    """
    numerator, denominator = difference(control.share, test.share)
    evidence = exceeds(numerator, denominator, Fraction(str(tau)))
    bounds = interval(control.share, test.share, tau=tau, alpha=alpha)
    return Comparison(
        delta_p=np.asarray(numerator / denominator, dtype=np.float64),
        evidence=evidence,
        significant=evidence & (bounds.p_value <= alpha),
        interval=bounds,
    )


def compare_centers(control: Group, test: Group, *, tau: float) -> Comparison:
    """Compare single centers, as counterfactual fairness does: evidence or none, no interval."""
    numerator, denominator = difference(control.share, test.share)
    evidence = exceeds(numerator, denominator, Fraction(str(tau)))
    return Comparison(
        delta_p=np.asarray(numerator / denominator, dtype=np.float64),
        evidence=evidence,
        significant=np.zeros_like(evidence),
        interval=Interval.without_bounds(np.full(len(evidence), np.nan)),
    )
