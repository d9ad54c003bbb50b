"""Support: whether there is anyone to compare with, and how comparable they are.

A group of the k nearest always exists, however far away its people are. These measures say how far
that is. They inform and decide nothing: only a caliper (`max_distance`) and `min_group`, both
chosen before the run, make a verdict insufficient.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.attribute import AttributeKind
from mutandis.engine.matches import MATCHES
from mutandis.engine.methods import Center
from mutandis.engine.tally import Pair, too_small
from mutandis.errors import PlanError
from mutandis.evidence.sentences import explain_insufficient, explain_unfit
from mutandis.geometry.samples import SortedPoints, rows_at_ranks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column
    from mutandis.data.population import Population
    from mutandis.engine.engine import Engine
    from mutandis.engine.members import Members
    from mutandis.engine.methods import Method
    from mutandis.engine.study import Study, World
    from mutandis.engine.tally import Group, Nearest, Tally
    from mutandis.geometry.metric import Metric, Points

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
    engine: Engine, world: World, tally: Tally, method: Method, k: int, *, min_group: int
) -> Support:
    """Measure how well each complainant's groups support the comparison."""
    if not method.count_neighbours:
        raise PlanError(
            f"Method {method.name!r} compares no groups that could support it. "
            "Ask for one of the other methods."
        )
    study, index = engine.study, tally.ks.index(k)
    groups = tally.at(method, index)
    if groups.control.reach is None or tally.control is None:
        raise TypeError("the plan compares no groups")
    control = _Usual(engine=engine, in_control=True, counted=tally.control, index=index)
    if method.matched:
        usual = _Usual(engine=engine, in_control=False, number=MATCHES)
        test = usual.reach(k, groups.test.radius)
    elif groups.test.reach is None:
        raise TypeError("the plan compares no groups")
    else:
        test = _Usual(engine=engine, in_control=False).reach(k, groups.test.reach)
    return Support(
        ids=study.population.ids[study.people],
        control=control.reach(k, groups.control.reach),
        test=test,
        outside=_outside_range(engine, _centers(engine, world, tally, method)),
        insufficient=_reasons(study, groups, method, min_group=min_group),
    )


def _centers(engine: Engine, world: World, tally: Tally, method: Method) -> Sequence[Population]:
    """Return the tables in which search centers are."""
    if method.center is Center.FACTUAL or world.point is None:
        return (engine.study.population,)
    if method.center.value in tally.test:
        return (world.point,)
    return world.draws or (world.point,)


def _reasons(
    study: Study, groups: Pair[Group], method: Method, *, min_group: int
) -> NDArray[np.object_]:
    centers = int(method.count_centers)
    insufficient = np.flatnonzero(too_small(groups, method, least=min_group))
    known = (groups.test.unfit(), groups.control.share.places, groups.test.share.places)
    why = list(zip(*(each[insufficient].tolist() for each in known), strict=True))
    # the same is said of many: once each
    said = {
        (unfit, control, test): explain_unfit(unfit)
        or explain_insufficient(
            control - centers,
            test - centers,
            max_distance=study.max_distance,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usual:
    """How far groups usually reach in one kind of spaces.

    Parameters
    ----------
    engine
        The spaces.
    in_control
        Whether they are control spaces.
    number
        The size of groups, where it is not that of the audit.
    counted, index
        What was counted of complainants, at the index of k, where they are people of the spaces.
    """

    engine: Engine
    in_control: bool
    number: int | None = None
    counted: Nearest | None = None
    index: int = 0

    def reach(self, k: int, radius: NDArray[np.float64]) -> Reach:
        """Compare the radius of each group with what is usual in its space."""
        study = self.engine.study
        usual = np.full((len(study.strata), len(_PERCENTILES)), np.nan)
        space_of = np.zeros(len(study.people), dtype=np.intp)
        for number, stratum in enumerate(study.strata):
            space_of[np.searchsorted(study.people, stratum.complainants)] = number
            radii = self._radii(stratum.control if self.in_control else stratum.test, k)
            if len(radii):
                usual[number] = np.percentile(radii, _PERCENTILES)
        typical, large, limit = usual[space_of].T
        return Reach(radius=radius, typical=typical, large=large, limit=limit)

    def _radii(self, rows: NDArray[np.intp], k: int) -> NDArray[np.float64]:
        embedding = self.engine.embedding
        points = embedding.apply(self.engine.study.population, rows).points
        known = self._known_radii(points, rows)
        if known is not None:
            return known
        return typical_radii(points, embedding.metric, self.number or k)

    def _known_radii(self, points: Points, rows: NDArray[np.intp]) -> NDArray[np.float64] | None:
        """Return the typical radii of a space in which the search was for everyone else."""
        people, metric = self.engine.study.people, self.engine.embedding.metric
        if self.counted is None or not len(people):
            return None
        sample = rows[_sample(points, metric)]
        mine = np.searchsorted(people, sample)
        if (people[np.minimum(mine, len(people) - 1)] != sample).any():
            return None
        return metric.as_float(self.counted.found.radius[mine, self.index])


def _outside_range(engine: Engine, worlds: Sequence[Population]) -> dict[str, NDArray[np.bool_]]:
    """Mark, by attribute, which search centers no person of the test space reaches.

    For attributes with an order: below the smallest or above the largest value there. For nominal
    ones: at a level that does not occur there. Compared on exact coordinates, so that rounding
    puts no center outside. Of several draws, one is enough.
    """
    study, embedding = engine.study, engine.embedding
    outside = {name: np.zeros(len(study.people), dtype=np.bool_) for name in embedding.names}
    for stratum in study.strata:
        mine = np.searchsorted(study.people, stratum.complainants)
        there = embedding.apply(study.population, stratum.test).points
        for world in worlds:
            here = embedding.apply(world, stratum.complainants).points
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
    study: Study, world: World, row: int, method: Method, groups: Pair[Members]
) -> Pair[Mapping[str, float]]:
    """Compare one complainant's search centers with the people around them, by attribute.

    Each difference is (center - mean of the group) / standard deviation in D; for a nominal
    attribute, the same of the indicator of the center's own level. NaN where a group is empty or
    where D does not vary. Search centers among the members are left out. Where the counterfactual
    is open, the difference is the average over its draws.
    """
    worlds: Sequence[Population] = (study.population,)
    if method.center is Center.COUNTERFACTUAL and world.point is not None:
        worlds = world.draws or (world.point,)
    drawn = [_balance(study, groups.test, each, row) for each in worlds]
    return Pair(
        control=_balance(study, groups.control, study.population, row),
        test={name: fsum(each[name] for each in drawn) / len(drawn) for name in drawn[0]},
    )


def _balance(study: Study, members: Members, world: Population, row: int) -> Mapping[str, float]:
    population, people = study.population, ~members.is_center
    rows = _rows_of(population, members.ids[people])
    place = members.place[people]
    found = {}
    for attribute in study.attributes:
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
