"""The difference of the median scores of both groups, on request: a few outliers do not move it.

Medians are exact: of the people in each group, with the parts of places that they hold. They are no
sums, so the people of each complainant are listed again, and no verdict rests on them.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, floor, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import plain_value
from mutandis.data.score import ScoreScale
from mutandis.errors import PlanError
from mutandis.evidence.intervals import critical_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.auditing.audit import Audit
    from mutandis.evidence.groups import Members

__all__ = ["median_records"]

_LARGEST = 10**7  # no group of people is larger, and places are fractions of its size

_Weighted = list[tuple[int, Fraction]]  # steps of a score, and the weight that they have


def median_records(audit: Audit, method: str | None, k: int | None) -> list[dict[str, Any]]:
    """Give one record per complainant: both medians, their difference, its interval and test."""
    chosen, size = audit.plan.choose(method, k)
    scale = audit.plan.outcome.scale
    if not isinstance(scale, ScoreScale):
        raise PlanError(
            f"Outcome {audit.plan.outcome.column!r} is no score, and has no median in units. Audit "
            "a score: outcome=Score(…)."
        )
    if not chosen.count_neighbours or len(audit.parts) > 1:
        raise PlanError(
            "Medians are those of the two groups of one method on one ground. Ask for "
            "'cst_matched', 'cst_without' or 'st', and of several grounds for one: "
            "audit.part(…).medians()."
        )
    found = audit.compute_findings(chosen.name, size, depth="evidence")
    people = found.control.share.weight, found.test.share.weight
    records = []
    for place, id in enumerate(found.ids):  # noqa: A001 - the column's name
        record = {"id": plain_value(id), "median_control": np.nan, "median_test": np.nan}
        record |= dict.fromkeys(("delta", "ci_low", "ci_high", "p_value"), np.nan)
        if not found.comparison.insufficient[place]:
            sides = audit.members(place, chosen.name, size)
            groups = _weigh(sides.control), _weigh(sides.test)
            numbers = float(people[0][place]), float(people[1][place])
            record |= _compare(audit, scale, groups, numbers)
        records.append(record)
    return records


def _compare(
    audit: Audit,
    scale: ScoreScale,
    groups: tuple[_Weighted, _Weighted],
    people: tuple[float, float],
) -> dict[str, float]:
    settings = audit.plan.settings
    middle = [_median(each) for each in groups]
    shown = [float(scale.best + scale.sign * scale.step * each) for each in middle]
    delta = float((middle[0] - middle[1]) * scale.step)
    record = {"median_control": shown[0], "median_test": shown[1], "delta": delta}
    if min(people) < scale.fewest:
        return record
    error = float(scale.step) * sqrt(
        sum(variance_of_median(*each) for each in zip(groups, people, strict=True))
    )
    margin = critical_value(settings.alpha) * error
    record |= {"ci_low": delta - margin, "ci_high": delta + margin}
    worse = settings.evidence.direction == "negative"
    if error:
        # looking for better treatment, how far it is below -τ
        beyond = (delta if worse else -delta) - settings.tau
        record["p_value"] = _upper_tail(beyond / error)
    return record


def _upper_tail(z: float) -> float:
    from scipy.special import ndtr

    return float(ndtr(-z))


def _weigh(members: Members) -> _Weighted:
    """Sort the people of a group by their scores; equal ones are one."""
    weights: dict[int, Fraction] = {}
    for steps, place in zip(members.is_negative.tolist(), members.place.tolist(), strict=True):
        part = Fraction(place).limit_denominator(_LARGEST)
        weights[int(steps)] = weights.get(int(steps), Fraction(0)) + part
    return sorted(weights.items())


def _median(group: _Weighted) -> Fraction:
    """Give the score that parts the weight in two halves; between two of them, their middle."""
    half = sum((weight for _, weight in group), Fraction(0)) / 2
    low = next(steps for steps, total in _running(group) if total >= half)
    high = next(steps for steps, total in _running(group) if total > half)
    return Fraction(low + high, 2)


def variance_of_median(group: _Weighted, people: float) -> float:
    r"""Estimate the variance of a median, in steps, by Price and Bonett's method.

    Notes
    -----
    With :math:`a = (n + 1)/2 - \sqrt n`, rounded, the a-th smallest and the a-th largest of n
    values are a distribution-free interval of the median at level :math:`1 - p`,
    :math:`p = \sum_{i < a} \binom n i 2^{1-n}`; the variance is that of a normal distribution with
    this interval. Of weighted values, n is the effective number, rounded down, and the a-th
    smallest is where :math:`(a - ½)/n` of the weight is reached.

    References
    ----------
    Price and Bonett (2001), Estimating the variance of the sample median, Journal of Statistical
    Computation and Simulation 68, 295-305.
    """
    from scipy.special import ndtri

    number = floor(people)
    rank = max(1, floor((number + 1) / 2 - sqrt(number) + 0.5))
    outside = Fraction(sum(comb(number, each) for each in range(rank)), 2 ** (number - 1))
    total = sum((weight for _, weight in group), Fraction(0))
    ends = [Fraction(2 * rank - 1, 2 * number), Fraction(2 * (number - rank) + 1, 2 * number)]
    low, high = (
        next(steps for steps, reached in _running(group) if reached >= end * total) for end in ends
    )
    return float(((high - low) / (2 * -ndtri(float(outside) / 2))) ** 2)


def _running(group: _Weighted) -> Iterator[tuple[int, Fraction]]:
    """Give each score with the weight of all up to it."""
    total = Fraction(0)
    for steps, weight in group:
        total += weight
        yield steps, total
