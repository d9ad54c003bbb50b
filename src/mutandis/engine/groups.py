"""Groups of people in one world, and a tally of all of them: what was counted, as plain arrays.

A caliper leaves out people who are too far away to be comparable. The k nearest are found as ever.
Where the k-th of them lies within the caliper, nothing changes. Where it lies beyond, the group
holds all people within the caliper: fewer than k, and no place has to be shared. So a caliper only
ever removes people, and every number of a group that it does not touch stays the same to the last
bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from mutandis.data.by_row import ByRow
from mutandis.engine.methods import CST_MATCHED
from mutandis.engine.tally import Sums, average

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.engine.methods import Method
    from mutandis.geometry.distance import Metric
    from mutandis.geometry.ties import Neighbourhoods, RadiusCounts, Ties

__all__ = [
    "Group",
    "Links",
    "Matching",
    "Nearest",
    "Pair",
    "Tally",
    "join_pairs",
    "sum_nearest",
    "too_small",
]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Generic[_T]):
    """One thing for the control side of a comparison, and one for the test side."""

    control: _T
    test: _T


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching(ByRow):
    """How well the test groups of the matched comparison represent the counterfactuals."""

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
    """One group (control or test) for each complainant, at one k.

    Parameters
    ----------
    share
        Sums of the marks of the group.
    rows
        Number of rows that hold its places, or share them.
    radius
        Distance of the farthest member, NaN where there is none apart from the center; in a matched
        group, the mean distance of its members from the counterfactuals that they represent.
    reach
        Distance of the k-th nearest before a caliper is applied; None where people are matched.
    matching
        How well a matched group fits.
    """

    share: Sums
    rows: NDArray[np.int64]
    radius: NDArray[np.float64]
    reach: NDArray[np.float64] | None = None
    matching: Matching | None = None

    @classmethod
    def of_centers(cls, marks: NDArray[Any]) -> Group:
        """Make groups of single people with these marks."""
        one = np.ones(len(marks), dtype=np.int64)
        share = Sums.of(marks=marks.astype(np.int64), places=one)
        return cls(share=share, rows=one, radius=np.full(len(one), np.nan))

    @classmethod
    def average(cls, groups: Sequence[Group]) -> Group:
        """Average groups; rows and radius are those of the largest and of the widest."""
        reach = [each.reach for each in groups if each.reach is not None]
        return cls(
            share=average([each.share for each in groups]),
            rows=np.max([each.rows for each in groups], axis=0),
            radius=np.fmax.reduce([each.radius for each in groups]),
            reach=np.max(reach, axis=0) if reach else None,
        )

    def with_center(self, marks: NDArray[Any]) -> Group:
        """Add the search centers, with their marks."""
        return replace(self, share=self.share.with_center(marks), rows=self.rows + 1)

    def with_doubt(self, doubt: NDArray[np.float64] | None) -> Group:
        """Add the variance of the mean that comes from estimates."""
        if doubt is None:
            return self
        return replace(self, share=replace(self.share, doubt=doubt))

    def unfit(self) -> NDArray[np.object_]:
        """Name what keeps matched groups from being compared: "far", or an attribute; else ""."""
        if self.matching is None:
            return np.full(len(self.rows), "", dtype=object)
        names = np.array(["", *self.matching.names, "far"], dtype=object)
        code = np.abs(self.matching.unfit)
        return names[np.where(code == Matching.FAR, len(names) - 1, code)]


def join_pairs(pairs: Sequence[Pair[Group]]) -> Pair[Group]:
    """Concatenate the groups of several worlds, to be compared at once."""
    return Pair(
        control=Group.join([each.control for each in pairs]),
        test=Group.join([each.test for each in pairs]),
    )


def sum_nearest(
    found: Neighbourhoods, column: int, *, k: int | NDArray[np.int64], ties: Ties
) -> Sums:
    """Sum the marks of each group, with the last places shared as the policy says."""
    inside, rim = found.inside[:, column], found.rim[:, column]
    marks, marks_rim = found.marks_inside[:, column], found.marks_rim[:, column]
    if ties == "all":
        return Sums.of(marks=marks + marks_rim, places=inside + rim)
    # with m rows on the rim, the mean is (marks_inside * m + (k - inside) * marks_rim) / (k * m)
    return Sums.of(
        marks=marks * rim[:, np.newaxis] + (k - inside)[:, np.newaxis] * marks_rim,
        places=np.full_like(rim, k),
        parts=rim,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest(ByRow):
    """What a search for the nearest has counted around some centers.

    Parameters
    ----------
    found
        Counts inside and on the radius, for each k.
    overflow_distance
        What the distances of each center lack because it lies out of reach.
    limits
        The largest integer distance within the caliper; None: there is no caliper.
    within
        Counts within the caliper, known where the k nearest reach beyond it.
    """

    found: Neighbourhoods
    overflow_distance: NDArray[np.float64]
    limits: NDArray[np.int64] | None = None
    within: RadiusCounts | None = None

    def group(self, index: int, k: int, *, ties: Ties, metric: Metric) -> Group:
        """Return the groups for the index-th k; an empty one has no mean and no radius."""
        found = self.found
        radius = metric.as_float(found.radius[:, index]) + self.overflow_distance
        group = Group(
            share=sum_nearest(found, index, k=k, ties=ties),
            rows=found.inside[:, index] + found.rim[:, index],
            radius=radius,
            reach=radius,
        )
        if self.limits is None or self.within is None:
            return group
        return self._cut(group, found.radius[:, index] > self.limits, self.within, metric)

    def _cut(
        self, group: Group, cut: NDArray[np.bool_], within: RadiusCounts, metric: Metric
    ) -> Group:
        """Leave out people beyond the caliper, where the k-th nearest lies there."""
        rows, farthest = cut[:, np.newaxis], metric.as_float(within.farthest)
        farthest = np.where(within.people > 0, farthest + self.overflow_distance, np.nan)
        return Group(
            share=Sums(
                marks=np.where(rows, within.marks, group.share.marks),
                parts=np.where(rows, 1, group.share.parts),
                places=np.where(cut, within.people, group.share.places),
            ),
            rows=np.where(cut, within.people, group.rows),
            radius=np.where(cut, farthest, group.radius),
            reach=group.reach,
        )


def too_small(pair: Pair[Group], method: Method, *, least: int) -> NDArray[np.bool_]:
    """Mark groups that hold fewer people than asked for, without centers, or that do not match.

    A method that compares nothing but the centers has no groups that could be too small.
    """
    control, test = pair.control.share.places, pair.test.share.places
    if not method.count_neighbours:
        return np.zeros(len(control), dtype=np.bool_)
    fewest = np.minimum(control, test) - int(method.count_centers)
    small = np.asarray(fewest < least, dtype=np.bool_)
    return small if pair.test.matching is None else small | (pair.test.matching.unfit != 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Who matches whom in one stratum.

    Parameters
    ----------
    key
        The row of `people` for each row of the control space.
    people
        Sparse matrix of the places that reference people hold, in `parts`: a column per point of
        the test space.
    parts
        Parts of a place.
    """

    key: NDArray[np.intp]
    people: Any
    parts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What was counted in one world: plain arrays, for every complainant and k.

    Parameters
    ----------
    ks, ties, metric
        Sizes of groups, how last places are shared, and what integer distances stand for.
    control
        Counts of the control groups; None if none were searched.
    test
        Counts of test groups by their center: "factual", "counterfactual".
    made
        Test groups for each k by method, where they are matched, or averaged over a mixture.
    own, decided
        Marks of the complainants' outcomes: recorded, and in the counterfactual world.
    matches
        Sums over each complainant's own matches.
    links
        Who matches whom, by stratum, as far as that was kept.
    backends
        Which search has answered, by what was searched.
    distance_rules
        How equal distances were recognised, by attribute.
    """

    ks: tuple[int, ...] = ()
    ties: Ties = "fair"
    metric: Metric
    control: Nearest | None = None
    test: Mapping[str, Nearest] = field(default_factory=dict)
    made: Mapping[str, tuple[Group, ...]] = field(default_factory=dict)
    own: NDArray[Any] | None = None
    decided: NDArray[Any] | None = None
    matches: Sums | None = None
    links: tuple[Links, ...] = ()
    backends: Mapping[str, str] = field(default_factory=dict)
    distance_rules: Mapping[str, str] = field(default_factory=dict)

    def at(self, method: Method, index: int) -> Pair[Group]:
        """Return both groups of a method, for every complainant at the index-th k."""
        return Pair(control=self._control(method, index), test=self._test(method, index))

    def group(self, nearest: Nearest, index: int) -> Group:
        """Return groups of the k nearest, without any centers."""
        return nearest.group(index, self.ks[index], ties=self.ties, metric=self.metric)

    def _control(self, method: Method, index: int) -> Group:
        if not method.count_neighbours:
            return Group.of_centers(_known(self.own))
        group = self.group(_known(self.control), index)
        return group.with_center(_known(self.own)) if method.count_centers else group

    def _test(self, method: Method, index: int) -> Group:
        if method.name in self.made:
            return self.made[method.name][index]
        if not method.count_neighbours:
            return Group.of_centers(_known(self.decided))
        group = self.group(self.test[method.center.value], index)
        return group.with_center(_known(self.decided)) if method.count_centers else group

    def with_doubt(self, doubts: Mapping[int, NDArray[np.float64]]) -> Tally:
        """Add the variance of the means in matched test groups, by the index of k."""
        name = CST_MATCHED.name
        if name not in self.made or not doubts:
            return self
        doubted = (each.with_doubt(doubts[index]) for index, each in enumerate(self.made[name]))
        return replace(self, made={**self.made, name: tuple(doubted)})


def _known(value: _T | None) -> _T:
    if value is None:
        raise TypeError("the plan admits no method that needs what was not counted or decided")
    return value
