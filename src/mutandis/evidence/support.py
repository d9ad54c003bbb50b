"""Support: whether there is anyone to compare with, and how comparable they are.

A group of the k nearest always exists, however far away its people are. These measures say how far
that is. They inform and decide nothing: only a caliper (`max_distance`) and `min_group`, both
chosen before the run, make a verdict insufficient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.attribute import AttributeKind
from mutandis.errors import PlanError
from mutandis.evidence.groups import Pair, too_small
from mutandis.evidence.matches import MATCHES
from mutandis.evidence.methods import Center
from mutandis.evidence.sentences import explain_insufficient, explain_unfit
from mutandis.search.samples import SortedPoints, rows_at_ranks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column
    from mutandis.data.population import Population
    from mutandis.evidence.groups import Members, NearestGroups
    from mutandis.evidence.methods import Method
    from mutandis.evidence.semantics import Grouping, Situation
    from mutandis.search.distance import Metric, Points
    from mutandis.search.embedding import Embedding

__all__ = ["Reach", "Support", "measure_balance", "measure_support", "typical_radii"]

# people of a space who stand for all of it
SAMPLE = 200
_PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far groups of one kind reach, against what is usual in their space."""

    # the distance of each complainant's k-th nearest, whatever caliper is applied after
    radius: NDArray[np.float64]
    # the median, the 95th and the 99th percentile of the same distance among people of that space;
    # NaN where the space holds no more than k
    typical: NDArray[np.float64]
    large: NDArray[np.float64]
    limit: NDArray[np.float64]

    @property
    def off_support(self) -> NDArray[np.bool_]:
        """Whose group reaches farther than 99 of 100 in that space; False where not known."""
        return np.asarray(self.radius > self.limit, dtype=np.bool_)

    def columns(self, group: str) -> dict[str, NDArray[Any]]:
        """Give the columns of the support table for this group."""
        return {
            f"radius_{group}": self.radius,
            f"typical_{group}": self.typical,
            f"large_{group}": self.large,
            f"limit_{group}": self.limit,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """How well each complainant's comparison is supported, under one method and one k."""

    ids: NDArray[Any]  # the complainants
    # how far their groups reach
    control: Reach
    test: Reach
    # by attribute: whose search center stands outside the range of the test space, or at a level
    # that does not occur there
    outside: Mapping[str, NDArray[np.bool_]]
    # why a verdict is "insufficient", in words; empty where it is not
    insufficient: NDArray[np.object_]

    def columns(self) -> dict[str, NDArray[Any]]:
        """Compute the support table: one row per complainant."""
        off = {"control": self.control.off_support, "test": self.test.off_support}
        return {
            "id": self.ids,
            **self.control.columns("control"),
            **self.test.columns("test"),
            "off_support": _listed(off, len(self.ids)),
            "outside": _listed(self.outside, len(self.ids)),
            "insufficient": self.insufficient,
        }


def _listed(marks: Mapping[str, NDArray[np.bool_]], size: int) -> NDArray[np.object_]:
    """List, for each complainant, the names that are marked: "a, b"."""
    listed = np.full(size, "", dtype=object)
    for name, marked in marks.items():
        already = marked & (listed != "")
        listed[already] += ", "
        listed[marked] += name
    return listed


def measure_support(
    situation: Situation, grouping: Grouping, method: Method, k: int, *, min_group: int
) -> Support:
    """Measure how well each complainant's groups support the comparison."""
    if not method.count_neighbours:
        raise PlanError(
            f"Method {method.name!r} compares no groups that could support it. "
            "Ask for one of the other methods."
        )
    if grouping.embedding is None:
        raise PlanError(
            "Support is measured within one pair of groups on one scale. An audit of multiple "
            "discrimination has a pair for each attribute: ask audit.part(attribute)."
        )
    index = situation.ks.index(k)
    tests = grouping.around(method.center)
    return Support(
        ids=situation.population.ids[situation.complainants],
        control=_measure_reach([grouping.nearest["control"]], index),
        test=_measure_matches(grouping, index) if method.matched else _measure_reach(tests, index),
        outside=_outside_range(tests, grouping.embedding),
        insufficient=_reasons(situation, grouping, method, index, min_group=min_group),
    )


def _reasons(
    situation: Situation, grouping: Grouping, method: Method, index: int, *, min_group: int
) -> NDArray[np.object_]:
    groups, centers = grouping.at(method, index), int(method.count_centers)
    insufficient = np.flatnonzero(too_small(groups, method, least=min_group))
    known = (groups.test.unfit(), groups.control.share.places, groups.test.share.places)
    why = list(zip(*(each[insufficient].tolist() for each in known), strict=True))
    # the same is said of many: once each
    said = {
        (unfit, control, test): explain_unfit(unfit)
        or explain_insufficient(
            control - centers,
            test - centers,
            max_distance=situation.similarity.max_distance,
            min_group=min_group,
        )
        for unfit, control, test in set(why)
    }
    reasons = np.full(len(groups.control.rows), "", dtype=object)
    reasons[insufficient] = [said[each] for each in why]
    return reasons


def typical_radii(points: Points, metric: Metric, k: int) -> NDArray[np.float64]:
    """Give the distance of the k-th nearest other for a sample of the people of a space.

    Empty where no person has k others.
    """
    if k >= len(points):
        return np.empty(0)
    sorted_points = SortedPoints.of(points, metric)
    place = np.empty(len(points), dtype=np.intp)
    place[sorted_points.order] = np.arange(len(points))
    sample = place[_sample(points, metric)].tolist()
    return metric.as_float(np.array([sorted_points.radius(each, k) for each in sample]))


def _sample(points: Points, metric: Metric) -> NDArray[np.intp]:
    """Choose at most 200 people, evenly spaced in the order of their attributes.

    They are the same people, however the file is sorted.
    """
    points, size = metric.place(points), len(points)
    number = min(size, SAMPLE)
    return rows_at_ranks(
        [*points.coordinates.T, *points.codes.T], np.arange(number) * size // number
    )


def _measure_matches(grouping: Grouping, index: int) -> Reach:
    """Compare the mean distance of each group's matches with that of as many nearest others."""
    nearest, matched = grouping.around(Center.COUNTERFACTUAL)[0], grouping.matched
    if matched is None:
        raise TypeError("the plan matches no groups")
    reach = _measure_reach([replace(nearest, ks=(MATCHES,))], 0)
    return replace(reach, radius=matched.at(index).radius)


def _measure_reach(draws: Sequence[NearestGroups], index: int) -> Reach:
    """Compare the radius of each group at the index-th k with what is usual in its space.

    Of several draws, the one that reaches farthest counts.
    """
    nearest = draws[0]
    usual = np.full((len(nearest.spaces), len(_PERCENTILES)), np.nan)
    for space, rows in enumerate(nearest.spaces):
        points, k = nearest.points.take(rows), nearest.ks[index]
        radii = _known_radii(nearest, points, rows, index)
        if radii is None:
            radii = typical_radii(points, nearest.metric, k)
        if len(radii):
            usual[space] = np.percentile(radii, _PERCENTILES)
    typical, large, limit = usual[nearest.space_of].T
    radius = np.max([each.radius(index) for each in draws], axis=0)
    return Reach(radius=radius, typical=typical, large=large, limit=limit)


def _known_radii(
    nearest: NearestGroups, points: Points, rows: NDArray[np.intp], index: int
) -> NDArray[np.float64] | None:
    """Give the typical radii of a space in which the search was for everyone, herself left out."""
    if nearest.own_rows.max(initial=-1) < 0:
        return None
    sample = rows[_sample(points, nearest.metric)]
    mine = np.searchsorted(nearest.own_rows, sample)
    if (nearest.own_rows[np.minimum(mine, len(nearest.own_rows) - 1)] != sample).any():
        return None
    return nearest.metric.as_float(nearest.found.radius[mine, index])


def _outside_range(
    draws: Sequence[NearestGroups], embedding: Embedding
) -> dict[str, NDArray[np.bool_]]:
    """Tell, by attribute, which search centers no person of the search space reaches.

    For attributes with an order: below the smallest or above the largest value there. For nominal
    ones: at a level that does not occur there. Compared on exact coordinates, so that rounding
    puts no center outside. Of several draws, one is enough.
    """
    nearest = draws[0]
    outside = {name: np.zeros(len(nearest.origins), dtype=np.bool_) for name in embedding.names}
    for space, rows in enumerate(nearest.spaces):
        mine = np.flatnonzero(nearest.space_of == space)
        there = nearest.points.take(rows)
        for here in (each.origins.take(mine) for each in draws):
            for place, axis in enumerate(embedding.axes):
                values, column = here.coordinates[:, place], there.coordinates[:, place]
                outside[axis.name][mine] |= (values < column.min()) | (values > column.max())
            for place, name in enumerate(embedding.nominal):
                codes = there.codes[:, place], here.codes[:, place]
                known = np.zeros(1 + max(int(each.max(initial=0)) for each in codes), np.bool_)
                known[codes[0]] = True
                outside[name][mine] |= ~known[codes[1]]
    return outside


def measure_balance(
    situation: Situation, row: int, method: Method, groups: Pair[Members]
) -> Pair[Mapping[str, float]]:
    """Compare one complainant's search centers with the people around them, by attribute.

    Each difference is (center - mean of the group) / standard deviation in D; for a nominal
    attribute, the same of the indicator of the center's own level. NaN where a group is empty or
    where D does not vary. Search centers among the members are left out. Where the counterfactual
    is open, the difference is the average over its draws.
    """
    worlds: Sequence[Population] = (situation.population,)
    if method.center is Center.COUNTERFACTUAL and situation.counterfactual is not None:
        worlds = situation.draws or (situation.counterfactual,)
    drawn = [_balance(situation, groups.test, world, row) for world in worlds]
    return Pair(
        control=_balance(situation, groups.control, situation.population, row),
        test={name: fsum(each[name] for each in drawn) / len(drawn) for name in drawn[0]},
    )


def _balance(
    situation: Situation, members: Members, world: Population, row: int
) -> Mapping[str, float]:
    population, people = situation.population, ~members.is_center
    rows = _rows_of(population, members.ids[people])
    place = members.place[people]
    found = {}
    for attribute in situation.attributes:
        everyone = _numbers(population.columns[attribute.name])
        center = float(_numbers(world.part(attribute.name, np.array([row])))[0])
        if attribute.kind is AttributeKind.NOMINAL:
            # the indicator of the center's own level
            everyone, center = (everyone == center).astype(np.float64), 1.0
        # sorted, or summed exactly, so that no rounding depends on the order of rows
        spread = float(np.sort(everyone).std())
        if not len(rows) or spread == 0:
            found[attribute.name] = float("nan")
            continue
        mean = fsum((everyone[rows] * place).tolist()) / fsum(place.tolist())
        found[attribute.name] = (center - mean) / spread
    return found


def _rows_of(population: Population, ids: NDArray[np.generic]) -> NDArray[np.intp]:
    rows = np.flatnonzero(np.isin(population.ids, ids))
    place = dict(zip(population.ids[rows].tolist(), rows, strict=True))
    return np.array([place[each] for each in ids.tolist()], dtype=np.intp)


def _numbers(column: Column) -> NDArray[np.float64]:
    """Give a column's numbers, or its codes, which are ranks where the attribute is ordinal."""
    return column.data.astype(np.float64, copy=False)
