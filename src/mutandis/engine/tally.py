"""The methods, and what is counted: exact sums of marks, and the tally of groups in one world.

A mark is an integer per row of the table: 1 for a refusal, the steps of a score, their square,
1 for an outcome beyond a level. Groups sum several columns of marks at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from mutandis.data.rows import ByRow, group_equal, number_equal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from mutandis.geometry.index import Neighbourhoods, RadiusCounts, Ties
    from mutandis.geometry.metric import Metric
    from mutandis.mapped import Bools, Floats, Ints, Rows

# Below this, products of int64 are exact and so are the floats made of them; beyond it, Python's
# integers are used, whose quotients are rounded correctly too.
SAFE = 2**53
ROOM = 2**62
"""Sums up to this are exact in int64."""
_MANY = 10_000  # means from which on equal ones are computed once

_T = TypeVar("_T")


# --- the methods ----------------------------------------------------------------------------------
#
# The four of the paper differ in three choices only: where the test group is searched, whether the
# neighbours count, and whether the search centers count. The matched comparison takes its test
# group from the counterfactuals of the whole control group.


class Center(Enum):
    """Around whom the test group is searched."""

    FACTUAL = "factual"
    """The complainant's facts: all else equal (ceteris paribus)."""
    COUNTERFACTUAL = "counterfactual"
    """The complainant's counterfactual: changing what needs to be changed (mutatis mutandis)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A way to compare a complainant with people of the reference status."""

    # for tables: short, and in words
    name: str
    title: str
    center: Center = Center.COUNTERFACTUAL  # around whom the test group is searched
    count_neighbours: bool = True  # whether the k nearest people count
    count_centers: bool = False  # whether the own outcome and the counterfactual's count
    matched: bool = False  # whether the test group holds the matches of the control group

    @property
    def needs_counterfactual(self) -> bool:
        """Whether D^CF is needed."""
        return self.center is Center.COUNTERFACTUAL

    @property
    def needs_counterfactual_outcome(self) -> bool:
        """Whether a decision on the counterfactual is needed."""
        return self.count_centers

    @property
    def has_tipping(self) -> bool:
        """Whether a part of the effect can be tried: b() is not asked about people on the way."""
        return self.needs_counterfactual and not self.count_centers


ST = Method(name="st", title="ST", center=Center.FACTUAL)
CST_WITHOUT = Method(name="cst_without", title="CST (w/o)")
CST_WITH = Method(name="cst_with", title="CST (w/)", count_centers=True)
CF = Method(name="cf", title="CF", count_neighbours=False, count_centers=True)
CST_MATCHED = Method(name="cst_matched", title="CST (matched)", matched=True)

METHODS = {method.name: method for method in (ST, CST_WITHOUT, CST_WITH, CF, CST_MATCHED)}
"""All methods by name, in the order of the tables."""


# --- sums -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums(ByRow):
    """Sums of marks over many groups: a row per group, a column per mark.

    The mean of a mark in a group is ``marks / (places * parts)``. Where m rows tie for the last
    places of a group, each holds 1/m of a place: counting in m-ths keeps everything whole.

    Examples
    --------
    >>> sums = Sums.of(marks=np.array([3, 1]), places=np.array([4, 2]))
    >>> sums.mean().tolist()
    [0.75, 0.5]
    """

    marks: NDArray[Any]  # in parts of a place; Python's integers where int64 has no room
    parts: NDArray[Any]  # of a place, in the same shape
    places: Ints  # of each group; 0 if it is empty
    people: Floats | None = None  # effective number, if it is not that of places
    doubt: Floats | None = None  # variance of the mean due to an estimated worldview

    @classmethod
    def of(cls, *, marks: NDArray[Any], places: Ints, parts: Any = 1, **more: Any) -> Sums:
        """Make sums of one column of marks, or of several in two dimensions."""
        marks, parts = (_in_columns(np.asarray(each)) for each in (marks, parts))
        return cls(marks=marks, parts=np.broadcast_to(parts, marks.shape), places=places, **more)

    @property
    def width(self) -> int:
        """Number of columns of marks."""
        return int(self.marks.shape[1])

    @property
    def weight(self) -> Floats:
        """Number of people that each group counts as."""
        return self.places.astype(np.float64) if self.people is None else self.people

    def mean(self) -> Floats:
        """Compute the mean of the first column of marks, missing for an empty group."""
        marks, parts = self.marks[:, 0], self.parts[:, 0]
        if object in (marks.dtype, parts.dtype) and len(self.places) > _MANY:
            first, same = group_equal(self.places, number_equal(marks), number_equal(parts))
            if first is not same:
                return self.take(first).mean()[same]
        whole = self.places * parts
        means = np.full(whole.shape, np.nan)
        filled = np.flatnonzero(whole > 0)
        means[filled] = _quotients(marks[filled], whole[filled])
        return means

    def with_center(self, marks: NDArray[Any]) -> Sums:
        """Add the search center to each group: one more place, with its own `marks`."""
        return Sums(marks=self.marks + marks * self.parts, parts=self.parts, places=self.places + 1)


def _in_columns(array: NDArray[Any]) -> NDArray[Any]:
    return array[:, np.newaxis] if array.ndim == 1 else array


def _quotients(up: NDArray[Any], down: NDArray[Any]) -> Floats:
    """Divide integers, each quotient rounded once."""
    if object in (up.dtype, down.dtype):
        return np.asarray(up / down, dtype=np.float64)
    large = np.flatnonzero(np.maximum(np.abs(up), down) >= SAFE)
    quotients: Floats = up / down
    # there int64 would be rounded before it is divided
    quotients[large] = up[large].astype(object) / down[large].astype(object)
    return quotients


def average(each: Sequence[Sums]) -> Sums:
    """Average the means of several groups of the same people with equal weights.

    An average counts as the smallest of its groups, and is empty where one of them is.
    """
    places = np.min([sums.places for sums in each], axis=0)
    columns = [_average_column(each, places, column) for column in range(each[0].width)]
    marks, parts = (np.column_stack(side) for side in zip(*columns, strict=True))
    return Sums(marks=marks, parts=parts, places=places)


def _average_column(
    each: Sequence[Sums], places: Ints, column: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Average one column of marks: sums and parts of a place, in lowest terms."""
    filled = np.flatnonzero(places > 0)
    fractions = [
        (sums.marks[filled, column], sums.places[filled] * sums.parts[filled, column])
        for sums in each
    ]
    largest_means = [np.max(np.abs(_quotients(*both)), initial=1) for both in fractions]
    most = float(max(largest_means))
    up, down = np.zeros_like(filled), np.ones_like(filled)
    for marks, whole in fractions:
        divisor = np.gcd(marks, whole)
        marks, whole = marks // divisor, whole // divisor  # noqa: PLW2901
        rest = whole // np.gcd(down, whole)
        # the sum of the means is at most their number times the largest
        largest = np.max(down.astype(np.float64) * rest * places[filled], initial=0)
        if largest * most * len(each) >= ROOM:
            up, down = up.astype(object), down.astype(object)
        up = up * rest + marks * (down * rest // whole)
        down *= rest
    up, down = up * places[filled], down * len(each)
    divisor = np.gcd(up, down)
    sums_of, parts_of = np.zeros(len(places), dtype=up.dtype), np.ones(len(places), dtype=up.dtype)
    sums_of[filled], parts_of[filled] = up // divisor, down // divisor
    tops = np.maximum(parts_of * np.maximum(places, 1), np.abs(sums_of))
    if np.max(tops, initial=0) < ROOM:
        return sums_of.astype(np.int64), parts_of.astype(np.int64)
    return sums_of, parts_of


def difference(control: Sums, test: Sums) -> tuple[NDArray[Any], NDArray[Any]]:
    """Subtract the mean of the first column of marks of `test` from that of `control`, exactly.

    The results are numerators over positive denominators, in lowest terms.
    """
    bottom_control = control.places * control.parts[:, 0]
    bottom_test = test.places * test.parts[:, 0]
    up_control, up_test = control.marks[:, 0], test.marks[:, 0]
    # float64 is precise enough to tell whether an int64 product would overflow
    sides = (up_control, bottom_control), (up_test, bottom_test)
    tops = [np.maximum(np.abs(up.astype(float)), bottom) for up, bottom in sides]
    largest = np.max(tops[0] * tops[1], initial=0)
    kind: Any = np.int64 if largest < SAFE else object
    up, down = up_control.astype(kind), bottom_control.astype(kind)
    numerator = up * bottom_test - up_test * down
    denominator = down * bottom_test
    divisor = np.gcd(numerator, denominator)
    return numerator // divisor, denominator // divisor


def exceeds(numerator: NDArray[Any], denominator: NDArray[Any], threshold: Fraction) -> Bools:
    """Find where numerator/denominator > threshold, by cross-multiplication of integers."""
    up, down = threshold.numerator, threshold.denominator
    top = max(int(np.max(denominator, initial=0)), int(np.max(np.abs(numerator), initial=0)))
    if top * max(abs(up), down) >= SAFE:
        numerator, denominator = numerator.astype(object), denominator.astype(object)
    return np.asarray(numerator * down > denominator * up, dtype=np.bool_)


# --- groups ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Generic[_T]):
    """One thing for the control side of a comparison, and one for the test side."""

    control: _T
    test: _T


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching(ByRow):
    """How well the test groups of the matched comparison represent the counterfactuals."""

    FAR: ClassVar[int] = 2**15 - 1

    n_effective: Floats  # people of equal weight who would be as informative (Kish)
    # why groups are not comparable: 0 they are; `FAR` where most people have no match within the
    # radius of the control group; ±i where the averages differ in the i-th attribute, + where the
    # matches lie above
    unfit: NDArray[np.int16]
    names: tuple[str, ...]  # the attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(ByRow):
    """One group (control or test) for each complainant, at one k."""

    share: Sums
    rows: Ints  # how many hold its places, or share them
    # distance of the farthest member, NaN where there is none apart from the center; of matched
    # groups, the mean distance of members from the counterfactuals that they represent
    radius: Floats
    reach: Floats | None = None  # of the k-th nearest, before a caliper is applied
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

    def with_doubt(self, doubt: Floats | None) -> Group:
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


def too_small(pair: Pair[Group], method: Method, *, least: int) -> Bools:
    """Mark groups that hold fewer people than asked for, without centers, or that do not match.

    A method that compares nothing but the centers has no groups that could be too small.
    """
    control, test = pair.control.share.places, pair.test.share.places
    if not method.count_neighbours:
        return np.zeros(len(control), dtype=np.bool_)
    fewest = np.minimum(control, test) - int(method.count_centers)
    small = np.asarray(fewest < least, dtype=np.bool_)
    return small if pair.test.matching is None else small | (pair.test.matching.unfit != 0)


def sum_nearest(found: Neighbourhoods, column: int, *, k: int, ties: Ties) -> Sums:
    """Sum the marks of each group, with the last places shared as the policy says."""
    inside, rim = found.inside[:, column], found.rim[:, column]
    marks, marks_rim = found.marks_inside[:, column], found.marks_rim[:, column]
    if ties == "all":
        return Sums.of(marks=marks + marks_rim, places=inside + rim)
    # with m rows on the rim, the mean is (marks_inside * m + (k - inside) * marks_rim) / (k * m)
    return Sums.of(
        marks=marks * rim[:, np.newaxis] + (k - inside)[:, np.newaxis] * marks_rim,
        places=np.full_like(rim, k),
        parts=rim[:, np.newaxis],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest(ByRow):
    """What a search for the nearest has counted around some centers.

    A caliper leaves out people who are too far away to be comparable. Where the k-th nearest lies
    beyond it, the group holds all people within it, fewer than k, and no place is shared. Other
    groups stay the same to the last bit.
    """

    found: Neighbourhoods  # counts inside and on the radius, for each k
    overflow_distance: Floats  # what distances of centers out of reach lack
    limits: Ints | None = None  # largest integer distance within the caliper
    within: RadiusCounts | None = None  # counts within it, where the k nearest reach beyond

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
        within, cut = self.within, found.radius[:, index] > self.limits
        rows, farthest = cut[:, np.newaxis], metric.as_float(within.farthest)
        farthest = np.where(within.people > 0, farthest + self.overflow_distance, np.nan)
        share = Sums(
            marks=np.where(rows, within.marks, group.share.marks),
            parts=np.where(rows, 1, group.share.parts),
            places=np.where(cut, within.people, group.share.places),
        )
        return Group(
            share=share,
            rows=np.where(cut, within.people, group.rows),
            radius=np.where(cut, farthest, radius),
            reach=radius,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Who matches whom in one stratum."""

    key: Rows  # the row of `people` for each row of the control space
    people: Any  # sparse: the places that each point of the test space holds, in `parts`
    parts: int  # of a place


# --- the tally ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What was counted in one world: plain arrays, for every complainant and k."""

    ks: tuple[int, ...] = ()
    ties: Ties = "fair"
    metric: Metric  # what integer distances mean
    control: Nearest | None = None  # None if no control groups were searched
    test: Mapping[str, Nearest] = field(default_factory=dict)  # by center
    # test groups for each k by method, where they are matched, or averaged over a mixture
    made: Mapping[str, tuple[Group, ...]] = field(default_factory=dict)
    own: NDArray[Any] | None = None  # marks of the complainants' recorded outcomes
    decided: NDArray[Any] | None = None  # and of those in the counterfactual world
    matches: Sums | None = None  # over each complainant's own matches
    links: tuple[Links, ...] = ()  # by stratum, as far as that was kept
    backends: Mapping[str, str] = field(default_factory=dict)  # by what was searched
    distance_rules: Mapping[str, str] = field(default_factory=dict)  # by attribute

    def at(self, method: Method, index: int) -> Pair[Group]:
        """Return both groups of a method, for every complainant at the index-th k."""
        if method.name in self.made:
            test = self.made[method.name][index]
        else:
            test = self._group(self.test.get(method.center.value), self.decided, method, index)
        return Pair(control=self._group(self.control, self.own, method, index), test=test)

    def group(self, nearest: Nearest, index: int) -> Group:
        """Return groups of the k nearest, without any centers."""
        return nearest.group(index, self.ks[index], ties=self.ties, metric=self.metric)

    def _group(
        self, nearest: Nearest | None, centers: NDArray[Any] | None, method: Method, index: int
    ) -> Group:
        if not method.count_neighbours:
            return Group.of_centers(_known(centers))
        group = self.group(_known(nearest), index)
        return group.with_center(_known(centers)) if method.count_centers else group

    def with_doubt(self, doubts: Mapping[int, Floats]) -> Tally:
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
