"""How far the tests of many complainants are one test: neighbours who are in many groups.

Complainants who are alike have nearly the same control group, and their tests succeed or fail
together. Adjusted p-values keep their meaning (Benjamini–Hochberg allows for tests that lean the
same way), but "40 significant complainants" may be one finding, reported forty times.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mutandis.errors import PlanError
from mutandis.search.engine import group_rows
from mutandis.search.samples import SortedPoints, rows_at_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.evidence.groups import NearestGroups

__all__ = ["SharedNeighbours", "measure_shared_neighbours"]

# complainants whose pairs are looked at: 19,900 pairs are enough for two digits
_SAMPLE = 200
_STRONG = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNeighbours:
    """How much control groups overlap.

    Parameters
    ----------
    k, complainants
        What was asked.
    mean_overlap
        The part of its places that a control group shares with another complainant's, on average
        over pairs.
    """

    k: int
    complainants: int
    mean_overlap: float

    @property
    def effective(self) -> float:
        """The number of tests without any overlap that would carry as much information.

        That is n / (1 + (n - 1) ρ), the design effect of survey sampling with the mean overlap as
        correlation.
        """
        return self.complainants / (1 + (self.complainants - 1) * self.mean_overlap)

    @property
    def strong(self) -> bool:
        """Whether the tests depend on each other enough for a caution."""
        return self.mean_overlap > _STRONG

    def sentence(self) -> str:
        """Describe the dependence in words."""
        start = (
            f"At k = {self.k}, the control groups of two complainants share "
            f"{self.mean_overlap:.1%} of their places on average"
        )
        if not self.strong:
            return f"{start}: their tests depend on each other little."
        return (
            f"{start}: their tests depend on each other strongly. The {self.complainants:,} tests "
            f"carry about as much information as {self.effective:,.0f} independent ones; counts of "
            "cases are not counts of independent findings."
        )


def measure_shared_neighbours(result: Audit, k: int) -> SharedNeighbours:
    """Measure the overlap of control groups, on a sample of complainants if there are many."""
    control = result.grouping.control
    if control is None:
        raise PlanError(
            "This audit has no control groups of neighbours that could overlap: it ran 'cf' alone, "
            "or the preset."
        )
    complainants = len(control.origins)
    groups = _point_groups(control, control.ks.index(k), _sample(control))
    sizes = [max(group.size, 1) for group in groups]
    pairs = combinations(zip(groups, sizes, strict=True), 2)
    overlaps = [one.overlap(other) / size for (one, size), (other, _) in pairs]
    mean = fsum(overlaps) / len(overlaps) if overlaps else 0.0
    return SharedNeighbours(k=k, complainants=complainants, mean_overlap=mean)


def _sample(control: NearestGroups) -> NDArray[np.intp]:
    """Choose complainants evenly spaced by radius, and where that is equal, by where they stand.

    Those who stand on one point of one space are interchangeable: their groups differ in nothing
    but that each leaves herself out. So the order of the table has no part in this.
    """
    complainants = len(control.origins)
    points = control.origins.take(np.arange(complainants))
    radius = control.at(len(control.ks) - 1).radius
    places = [*points.coordinates.T[::-1], *points.codes.T[::-1]]
    ranks = np.linspace(0, complainants - 1, min(_SAMPLE, complainants)).astype(np.intp)
    return rows_at_ranks([radius, control.space_of, *places], ranks)


class _PointGroup(NamedTuple):
    """One complainant's group by distinct points, which may stand for many people.

    At each point: the part of a place that every person there holds, and how many people of the
    space stand there, the complainant on her own point among them.
    """

    space: int
    own: int
    parts: dict[int, float]
    people: dict[int, int]

    @property
    def size(self) -> float:
        """The places that are held; she who stands on her own point is not in her group."""
        # an exact sum does not depend on the order of what is added
        own, people = self.own, self.people
        return fsum(part * (people[at] - (at == own)) for at, part in self.parts.items())

    def overlap(self, other: _PointGroup) -> float:
        """Give the places that both groups hold; spaces of different strata share no person."""
        if self.space != other.space:
            return 0.0
        here, there, people = self.parts, other.parts, self.people
        one, two = self.own, other.own
        return fsum(
            min(here[at], there[at]) * (people[at] - (at == one) - (at == two))
            for at in here.keys() & there.keys()
        )


def _point_groups(
    control: NearestGroups, index: int, sample: NDArray[np.intp]
) -> list[_PointGroup]:
    """Measure the sampled complainants' groups, each space collapsed to its distinct points."""
    groups: dict[int, _PointGroup] = {}
    metric = control.metric
    for space, rows in enumerate(control.spaces):
        everyone = control.points.take(rows)
        first, standing = group_rows(everyone)
        points, counts = SortedPoints.of(everyone.take(first), metric), np.bincount(standing)
        mine = sample[control.space_of[sample] == space]
        centers = metric.place(control.origins.take(mine))
        for number, complainant in enumerate(mine.tolist()):
            center, reach = centers.take(np.array([number])), control.reach(complainant, index)
            near, distance = points.within(center, reach)
            place = control.place_at(distance, complainant, index)
            near = points.order[near]
            groups[complainant] = _PointGroup(
                space=space,
                own=int(standing[np.searchsorted(rows, control.own_rows[complainant])]),
                parts=dict(zip(near.tolist(), place.tolist(), strict=True)),
                people=dict(zip(near.tolist(), counts[near].tolist(), strict=True)),
            )
    return [groups[complainant] for complainant in sample.tolist()]
