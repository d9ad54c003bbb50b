"""Calipers: people too far away to be comparable are left out of the groups.

The k nearest are found as ever. Where the k-th of them lies within the caliper, nothing changes.
Where it lies beyond, the group holds everybody within the caliper: fewer than k, and nobody has to
share a place. So a caliper only ever removes people, and every number of a group that it does not
touch stays the same to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from mutandis.evidence.findings import Comparison, Group
from mutandis.evidence.interval import Interval
from mutandis.search.engine import find_within
from mutandis.search.share import Share, difference
from mutandis.search.ties import RadiusCounts

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from mutandis.evidence.case import Members
    from mutandis.evidence.groups import NearestGroups
    from mutandis.evidence.methods import Method
    from mutandis.search.distance import Metric
    from mutandis.search.engine import Queries, Search
    from mutandis.search.ties import Neighbourhoods

__all__ = ["Caliper", "CaliperGroups", "compare_sufficient", "too_small"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caliper:
    """How far each complainant's group may reach, and whom she has within that.

    Parameters
    ----------
    limits
        The largest integer distance that is not beyond the caliper; -1 where even 0 would be.
    within
        Who is there: known for those whose k nearest reach beyond the caliper.
    """

    limits: NDArray[np.int64]
    within: RadiusCounts

    @classmethod
    def of(
        cls, max_distance: float, overflow_distance: NDArray[np.float64], metric: Metric
    ) -> Caliper:
        """Read a distance as the decimal that was written, and as integers of the metric.

        Parameters
        ----------
        max_distance
            The caliper.
        overflow_distance
            What the distances of each center lack because it lies out of reach.
        metric
            How distance is measured.
        """
        farthest = Fraction(str(max_distance))
        limits = np.full(len(overflow_distance), metric.limit(farthest), dtype=np.int64)
        for row in np.flatnonzero(overflow_distance > 0):
            limits[row] = max(-1, metric.limit(farthest - Fraction(float(overflow_distance[row]))))
        return cls(limits=limits, within=RadiusCounts.empty(len(overflow_distance)))

    def count(
        self, mine: NDArray[np.intp], search: Search, queries: Queries, found: Neighbourhoods
    ) -> None:
        """Count people within the caliper for those of `mine` whose largest group goes beyond."""
        far = np.flatnonzero(found.radius.max(axis=1) > self.limits[mine])
        if len(far):
            limits = self.limits[mine[far]]
            self.within.put(mine[far], find_within(search, queries.take(far), limits))


@dataclass(frozen=True, slots=True, kw_only=True)
class CaliperGroups:
    """The k nearest people, without those beyond the caliper."""

    nearest: NearestGroups
    caliper: Caliper

    def at(self, index: int) -> Group:
        """Give the groups for the index-th k; an empty one has no share and no radius."""
        group = self.nearest.at(index)
        cut = self._cut(index)
        within = self.caliper.within
        left = np.asarray(
            self.nearest.metric.as_float(within.farthest) + self.nearest.overflow_distance
        )
        return Group(
            share=Share(
                negatives=np.where(cut, within.negatives, group.share.negatives),
                size=np.where(cut, within.people, group.share.size),
                split=np.where(cut, 1, group.share.split),
            ),
            rows=np.where(cut, within.people, group.rows),
            radius=np.where(cut, np.where(within.people > 0, left, np.nan), group.radius),
        )

    def members(self, complainant: int, index: int) -> Members:
        """List the people in one complainant's group."""
        if not self._cut(index)[complainant]:
            return self.nearest.members(complainant, index)
        rows, distance = self.nearest.others(complainant)
        near = distance <= self.caliper.limits[complainant]
        apart = (
            self.nearest.metric.as_float(distance[near])
            + self.nearest.overflow_distance[complainant]
        )
        return self.nearest.roll.members(rows[near], apart, np.ones(int(near.sum())))

    def _cut(self, index: int) -> NDArray[np.bool_]:
        """Tell whose k-th nearest lies beyond the caliper."""
        return np.asarray(self.nearest.found.radius[:, index] > self.caliper.limits, dtype=np.bool_)


def too_small(control: Group, test: Group, method: Method, *, least: int) -> NDArray[np.bool_]:
    """Tell whose groups hold fewer people than asked for; search centers are not counted.

    A method that compares nothing but the centers has no groups that could be too small.
    """
    if not method.count_neighbours:
        return np.zeros(len(control.rows), dtype=np.bool_)
    fewest = np.minimum(control.share.size, test.share.size) - int(method.count_centers)
    return np.asarray(fewest < least, dtype=np.bool_)


def compare_sufficient(
    control: Group,
    test: Group,
    compare: Callable[[Group, Group], Comparison],
    *,
    insufficient: NDArray[np.bool_],
) -> Comparison:
    """Compare the groups of those who have enough people in both.

    The others have neither evidence nor a test: bounds and p-value are missing. Their Δp is
    given where both groups hold somebody, since it describes them all the same.
    """
    if not insufficient.any():
        return compare(control, test)
    size = len(insufficient)
    delta_p, low, high, p_value = (np.full(size, np.nan) for _ in range(4))
    evidence, significant, degenerate = (np.zeros(size, dtype=np.bool_) for _ in range(3))
    somebody = np.flatnonzero((control.share.size > 0) & (test.share.size > 0))
    up, down = difference(control.share.take(somebody), test.share.take(somebody))
    delta_p[somebody] = up / down
    known = np.flatnonzero(~insufficient)
    if len(known):
        found = compare(control.take(known), test.take(known))
        delta_p[known] = found.delta_p
        evidence[known], significant[known] = found.evidence, found.significant
        low[known], high[known] = found.interval.low, found.interval.high
        p_value[known], degenerate[known] = found.interval.p_value, found.interval.degenerate
    return Comparison(
        delta_p=delta_p,
        evidence=evidence,
        significant=significant,
        interval=Interval(low=low, high=high, p_value=p_value, degenerate=degenerate),
    )
