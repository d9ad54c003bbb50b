"""Control and test groups: the k nearest in each space, for every complainant and every k.

A caliper leaves out people who are too far away to be comparable. The k nearest are found as ever.
Where the k-th of them lies within the caliper, nothing changes. Where it lies beyond, the group
holds all people within the caliper: fewer than k, and no place has to be shared. So a caliper only
ever removes people, and every number of a group that it does not touch stays the same to the last
bit.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from mutandis.data.by_row import ByRow
from mutandis.engine.nearest import sum_nearest
from mutandis.engine.tally import Sums
from mutandis.numeric.order import rank_ids
from mutandis.search.engine import find_within
from mutandis.search.ties import Neighbourhoods, RadiusCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.evidence.methods import Method
    from mutandis.search.distance import Metric
    from mutandis.search.embedding import LazyEmbedding
    from mutandis.search.engine import Queries, Search
    from mutandis.search.ties import Ties

__all__ = [
    "Caliper",
    "Centers",
    "Counted",
    "Group",
    "Groups",
    "Matching",
    "Members",
    "NearestGroups",
    "Pair",
    "RowIdentity",
    "join_pairs",
]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Generic[_T]):
    """One thing for the control side of a comparison, and one for the test side."""

    control: _T
    test: _T


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching(ByRow):
    """How well the test groups of the matched comparison stand for the counterfactuals."""

    FAR: ClassVar[int] = 2**15 - 1

    # the number of people with equal weights who would be as informative (Kish)
    n_effective: NDArray[np.float64]
    # why groups are not comparable: 0 they are; `FAR` where most people have no match within the
    # radius of the control group; ±i where the averages differ in the i-th attribute, + where the
    # matches lie above
    unfit: NDArray[np.int16]
    names: tuple[str, ...]  # the attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(ByRow):
    """One group (control or test) for each complainant, at one k."""

    share: Sums  # sums of its marks
    rows: NDArray[np.int64]  # how many rows hold its places, or share them
    # the distance of its farthest member, NaN where it has none beside the center; in a matched
    # group, the mean distance of its members from the counterfactuals that they stand for
    radius: NDArray[np.float64]
    matching: Matching | None = None  # where the group was matched: how well

    def unfit(self) -> NDArray[np.object_]:
        """Name what keeps matched groups from being compared: "far", or an attribute; else ""."""
        if self.matching is None:
            return np.full(len(self.rows), "", dtype=object)
        names = np.array(["", *self.matching.names, "far"], dtype=object)
        code = np.abs(self.matching.unfit)
        return names[np.where(code == Matching.FAR, len(names) - 1, code)]


def join_pairs(pairs: Sequence[Pair[Group]]) -> Pair[Group]:
    """Put the groups of several worlds behind each other, to be compared at once."""
    return Pair(
        control=Group.join([each.control for each in pairs]),
        test=Group.join([each.test for each in pairs]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Members(ByRow):
    """The people in one complainant's group."""

    # their ids, nearest first; people at the same distance in the order of their ids
    ids: NDArray[Any]
    distance: NDArray[np.float64]  # how far they are from the search center
    # the part of a place that each holds: 1, or less where several share the last places
    place: NDArray[np.float64]
    is_negative: NDArray[Any]  # whether they were refused; of a score, its steps
    is_center: NDArray[np.bool_]  # marks the search center where it is counted in

    def __len__(self) -> int:
        """Count the people."""
        return len(self.ids)


class Groups(Protocol):
    """One group for each complainant, for every k."""

    def at(self, index: int) -> Group:
        """Give the groups for the index-th k."""
        ...

    def members(self, complainant: int, index: int) -> Members:
        """List the people in one complainant's group."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RowIdentity:
    """The ids and outcomes of the rows of D, for listing the members of a group."""

    ids: NDArray[Any]
    is_negative: NDArray[Any]

    def members(
        self, rows: NDArray[np.intp], distance: NDArray[np.float64], place: NDArray[np.float64]
    ) -> Members:
        """List rows, nearest first; at the same distance by their ids."""
        order = np.lexsort((rank_ids(self.ids[rows]), distance))
        rows = rows[order]
        return Members(
            ids=self.ids[rows],
            distance=distance[order],
            place=place[order],
            is_negative=self.is_negative[rows],
            is_center=np.zeros(len(rows), dtype=np.bool_),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Centers:
    """The search centers with their outcomes.

    Alone, they are what counterfactual fairness compares. They can be added to
    groups of people: the denominator is then k + 1.
    """

    ids: NDArray[Any]
    is_negative: NDArray[Any]
    marks: NDArray[Any]  # of these outcomes, by column

    def at(self, index: int) -> Group:  # noqa: ARG002 - the same for every k
        """Return the centers as groups of one."""
        one = np.ones(len(self.ids), dtype=np.int64)
        share = Sums.of(marks=self.marks.astype(np.int64), places=one)
        return Group(share=share, rows=one, radius=np.full(len(one), np.nan))

    def members(self, complainant: int, index: int) -> Members:  # noqa: ARG002
        """List the one center."""
        one = np.array([complainant])
        return Members(
            ids=self.ids[one],
            distance=np.zeros(1),
            place=np.ones(1),
            is_negative=self.is_negative[one],
            is_center=np.ones(1, dtype=np.bool_),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Caliper:
    """How far each complainant's group may reach, and whom she has within that."""

    # the largest integer distance that is not beyond the caliper; -1 where even 0 would be
    limits: NDArray[np.int64]
    within: RadiusCounts  # who is there: known for those whose k nearest reach beyond the caliper

    @classmethod
    def of(
        cls,
        max_distance: float,
        overflow_distance: NDArray[np.float64],
        metric: Metric,
        *,
        width: int = 1,
    ) -> Caliper:
        """Read a distance as the decimal that was written, and as integers of the metric.

        `overflow_distance` is what the distances of each center lack because it lies out of reach;
        `width` is the number of columns of marks.
        """
        farthest = Fraction(str(max_distance))
        limits = np.full(len(overflow_distance), metric.limit(farthest), dtype=np.int64)
        for row in np.flatnonzero(overflow_distance > 0):
            limits[row] = max(-1, metric.limit(farthest - Fraction(float(overflow_distance[row]))))
        return cls(limits=limits, within=RadiusCounts.empty(len(overflow_distance), width))

    def count(
        self,
        mine: NDArray[np.intp],
        search: Search,
        queries: Queries,
        found: Neighbourhoods,
        marks: NDArray[np.int64] | None = None,
    ) -> None:
        """Count people within the caliper for those of `mine` whose group goes beyond it."""
        far = np.flatnonzero(found.radius.max(axis=1) > self.limits[mine])
        if len(far):
            limits = self.limits[mine[far]]
            self.within.put(mine[far], find_within(search, queries.take(far), limits, marks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a search has counted: all that groups need to be put together again."""

    found: Neighbourhoods
    within: RadiusCounts

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """Give the counts as arrays by name."""
        return {
            f.name: getattr(part, f.name)
            for part in (self.found, self.within)
            for f in fields(part)
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[np.int64]]) -> Counted:
        """Put counts together from their arrays."""
        return cls(
            found=Neighbourhoods(**{f.name: arrays[f.name] for f in fields(Neighbourhoods)}),
            within=RadiusCounts(**{f.name: arrays[f.name] for f in fields(RadiusCounts)}),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestGroups:
    """The k nearest people, ties shared by policy."""

    found: Neighbourhoods  # counts inside and on the radius, per complainant and k
    ks: tuple[int, ...]
    ties: Ties
    origins: LazyEmbedding  # where each complainant's search starts, placed when it is asked for
    own_rows: NDArray[np.intp]  # her own row, where she stands in the space herself; -1 elsewhere
    # what each origin's distances lack because it lies out of reach
    overflow_distance: NDArray[np.float64]
    # all of D, to list members when they are asked for; no place is kept until then
    points: LazyEmbedding
    metric: Metric
    # the rows of each search space, and which space each complainant is searched in
    spaces: tuple[NDArray[np.intp], ...]
    space_of: NDArray[np.intp]
    identity: RowIdentity  # the ids and outcomes of the rows
    caliper: Caliper | None = None  # how far the groups may reach; None: any distance
    # the search centers that are added to the groups; None: they are not
    centers: Centers | None = None

    @property
    def counted(self) -> Counted:
        """What the search has counted."""
        within = RadiusCounts.empty(0) if self.caliper is None else self.caliper.within
        return Counted(found=self.found, within=within)

    def radius(self, index: int) -> NDArray[np.float64]:
        """Give the distance of the k-th nearest, whatever caliper is applied after."""
        return self.metric.as_float(self.found.radius[:, index]) + self.overflow_distance

    def at(self, index: int) -> Group:
        """Give the groups for the index-th k; an empty one has no share and no radius."""
        group = Group(
            share=sum_nearest(self.found, index, k=self.ks[index], ties=self.ties),
            rows=self.found.inside[:, index] + self.found.rim[:, index],
            radius=self.radius(index),
        )
        if self.caliper is not None:
            group = self._cut(group, self.caliper, index)
        if self.centers is None:
            return group
        return Group(
            share=group.share.with_center(self.centers.marks),
            rows=group.rows + 1,
            radius=group.radius,
        )

    def members(self, complainant: int, index: int) -> Members:
        """List the people in one complainant's group, measuring her space once more.

        The center comes first, where it is counted.
        """
        rows, distance = self.others(complainant, self.reach(complainant, index))
        place = self.place_at(distance, complainant, index)
        near = place > 0
        apart = self.metric.as_float(distance[near]) + self.overflow_distance[complainant]
        members = self.identity.members(rows[near], apart, place[near])
        if self.centers is None:
            return members
        return Members.join([self.centers.members(complainant, index), members])

    def others(
        self, complainant: int, limit: int | None = None
    ) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Give the other rows of one complainant's space, and how far each is from her center.

        With a `limit`, those within this distance.
        """
        rows = self.spaces[self.space_of[complainant]]
        origin, points = self.origins.take(np.array([complainant])), self.points.take(rows)
        if limit is None:
            distance = self.metric.from_center(origin, points)
        else:
            near, distance = self.metric.within(origin, points, limit)
            rows = rows[near]
        others = rows != self.own_rows[complainant]
        return rows[others], distance[others]

    def reach(self, complainant: int, index: int) -> int:
        """Give the distance within which the people of one complainant's group stand."""
        radius = int(self.found.radius[complainant, index])
        if self.caliper is None:
            return radius
        return min(radius, int(self.caliper.limits[complainant]))

    def place_at(
        self, distance: NDArray[np.int64], complainant: int, index: int
    ) -> NDArray[np.float64]:
        """Give the part of a place in one complainant's group that a row at each distance holds."""
        radius = self.found.radius[complainant, index]
        if self.caliper is not None and radius > self.caliper.limits[complainant]:
            return np.asarray(distance <= self.caliper.limits[complainant], dtype=np.float64)
        on_rim = 1.0
        if self.ties == "fair":
            left = self.ks[index] - self.found.inside[complainant, index]
            on_rim = float(left / self.found.rim[complainant, index])
        return np.where(distance < radius, 1.0, np.where(distance == radius, on_rim, 0.0))

    def _cut(self, group: Group, caliper: Caliper, index: int) -> Group:
        """Leave out people beyond the caliper, where the k-th nearest lies there."""
        cut = self.found.radius[:, index] > caliper.limits
        rows, within = cut[:, np.newaxis], caliper.within
        farthest = np.asarray(self.metric.as_float(within.farthest) + self.overflow_distance)
        return Group(
            share=Sums(
                marks=np.where(rows, within.marks, group.share.marks),
                parts=np.where(rows, 1, group.share.parts),
                places=np.where(cut, within.people, group.share.places),
            ),
            rows=np.where(cut, within.people, group.rows),
            radius=np.where(cut, np.where(within.people > 0, farthest, np.nan), group.radius),
        )


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
