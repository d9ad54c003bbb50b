"""How far the tests of many complainants are one test: neighbours who are in many groups.

Complainants who are alike have nearly the same control group, and their tests succeed or fail
together. Adjusted p-values keep their meaning (Benjamini–Hochberg allows for tests that lean the
same way), but "40 significant complainants" may be one finding, reported forty times.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mutandis.errors import PlanError
from mutandis.search.engine import group_rows
from mutandis.search.samples import SortedPoints, rows_at_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    groups, people = _point_groups(control, control.ks.index(k), _sample(control))
    sizes = [max(group.size(people), 1) for group in groups]
    whole = _share_whole(groups, people)
    overlaps = [
        fsum([whole[one, other], *groups[one].share_parts(groups[other], people)]) / sizes[one]
        for one, other in combinations(range(len(groups)), 2)
    ]
    mean = fsum(overlaps) / len(overlaps) if overlaps else 0.0
    return SharedNeighbours(k=k, complainants=complainants, mean_overlap=mean)


def _sample(control: NearestGroups) -> NDArray[np.intp]:
    """Choose complainants evenly spaced by radius, and where that is equal, by where they stand.

    Those who stand on one point of one space are interchangeable: their groups differ in nothing
    but that each leaves herself out. So the order of the table has no part in this.
    """
    complainants = len(control.origins)

    def place(rows: NDArray[np.intp]) -> list[NDArray[np.generic]]:
        points = control.origins.take(rows)
        return [*points.coordinates.T[::-1], *points.codes.T[::-1]]

    radius = control.at(len(control.ks) - 1).radius
    ranks = np.linspace(0, complainants - 1, min(_SAMPLE, complainants)).astype(np.intp)
    return rows_at_ranks([radius, control.space_of], ranks, further=place)


class _PointGroup(NamedTuple):
    """One complainant's group by distinct points, which may stand for many people.

    At some `points` each of them holds a whole place, at those of the `rim` a `part` of one. She
    who stands on her own point is not in her group.
    """

    own: int
    points: frozenset[int]
    rim: frozenset[int]
    part: float

    def part_at(self, point: int) -> float:
        return self.part if point in self.rim else 1.0

    def size(self, people: NDArray[np.intp]) -> float:
        """Give the places that are held."""
        # an exact sum does not depend on the order of what is added
        return fsum(self.part_at(at) * (int(people[at]) - (at == self.own)) for at in self.points)

    def share_parts(self, other: _PointGroup, people: NDArray[np.intp]) -> Iterator[float]:
        """Give the places that both groups hold where one of them holds parts."""
        for at in (self.rim & other.points) | (other.rim & self.points):
            others = int(people[at]) - (at == self.own) - (at == other.own)
            yield min(self.part_at(at), other.part_at(at)) * others


def _share_whole(groups: Sequence[_PointGroup], people: NDArray[np.intp]) -> NDArray[np.int64]:
    """Count the places that each two groups hold where both hold whole ones."""
    from scipy.sparse import csr_array

    shape, whole = (len(groups), len(people)), [each.points - each.rim for each in groups]
    start = np.cumsum([0, *map(len, whole)])
    points = np.fromiter(chain.from_iterable(whole), np.intp, start[-1])
    held = csr_array((np.ones(len(points), np.int64), points, start), shape=shape)
    # of each, the place that she herself would hold
    alone = [each.own in some for each, some in zip(groups, whole, strict=True)]
    at, one = [each.own for each in groups], np.arange(len(groups) + 1)
    own = csr_array((np.array(alone, np.int64), np.array(at, np.intp), one), shape=shape)
    own = (own @ held.T).toarray()
    everyone = csr_array((people[points].astype(np.int64), points, start), shape=shape)
    return np.asarray((everyone @ held.T).toarray() - own - own.T)


def _point_groups(
    control: NearestGroups, index: int, sample: NDArray[np.intp]
) -> tuple[list[_PointGroup], NDArray[np.intp]]:
    """Measure the sampled complainants' groups, each space collapsed to its distinct points.

    Beside them: how many people stand at each point, those of one space after the other.
    """
    groups: dict[int, _PointGroup] = {}
    people: list[NDArray[np.intp]] = []
    metric, before = control.metric, 0
    for space, rows in enumerate(control.spaces):
        everyone = control.points.take(rows)
        first, standing = group_rows(everyone)
        points = SortedPoints.of(everyone.take(first), metric)
        mine = sample[control.space_of[sample] == space]
        centers = metric.place(control.origins.take(mine))
        for number, complainant in enumerate(mine.tolist()):
            center, reach = centers.take(np.array([number])), control.reach(complainant, index)
            near, distance = points.within(center, reach)
            place = control.place_at(distance, complainant, index)
            near, rim = points.order[near] + before, place < 1
            own = standing[np.searchsorted(rows, control.own_rows[complainant])]
            groups[complainant] = _PointGroup(
                own=int(own) + before,
                points=frozenset(near.tolist()),
                rim=frozenset(near[rim].tolist()),
                part=float(place.min(initial=1.0)),
            )
        people.append(np.bincount(standing))
        before += len(first)
    return [groups[complainant] for complainant in sample.tolist()], np.concatenate(people)
