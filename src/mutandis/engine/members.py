"""The people of one complainant's groups, listed when a page asks for them.

Nothing of this is kept by a search: all distances from one center are measured once more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.rows import ByRow
from mutandis.engine.nearest import limits_of
from mutandis.engine.tally import Center, Pair
from mutandis.geometry.index import group_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.data.population import Population
    from mutandis.data.protection import Stratum
    from mutandis.engine.engine import Engine
    from mutandis.engine.study import World
    from mutandis.engine.tally import Links, Method
    from mutandis.geometry.embedding import Embedded
    from mutandis.geometry.metric import Points
    from mutandis.mapped import Bools, Floats, Ints, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed(ByRow):
    """Some people of one group, by their rows in the table."""

    rows: Rows
    distance: Floats  # from the search center
    place: Floats  # part of a place: 1, or less where several share the last places


@dataclass(frozen=True, slots=True, kw_only=True)
class Members(ByRow):
    """The people in one complainant's group.

    Parameters
    ----------
    ids
        Their ids, nearest first; people at the same distance in the order of their ids.
    distance
        How far they are from the search center.
    place
        The part of a place that each holds: 1, or less where several share the last places.
    is_negative
        Whether they were refused; of a score, its steps.
    is_center
        Marks the search center, where it is counted in.
    """

    ids: NDArray[Any]
    distance: Floats
    place: Floats
    is_negative: NDArray[Any]
    is_center: Bools

    def __len__(self) -> int:
        """Count the people."""
        return len(self.ids)


@dataclass(slots=True, kw_only=True)
class Lister:
    """Lists groups in one world; `links` tell who matches whom, by stratum."""

    engine: Engine
    world: World
    links: tuple[Links, ...] = ()
    _placed: dict[int, Points] = field(default_factory=dict, init=False, repr=False)

    def people(self, row: int, method: Method, index: int) -> Pair[Listed]:
        """List the people of both groups of a complainant at the index-th k, without centers."""
        number, stratum = self._stratum(row)
        k, population = self.engine.study.ks[index], self.engine.study.population
        control = self._nearest(self._center(population, row), stratum.control, k, own=row)
        if method.matched:
            test = self._matched(row, stratum, self.links[number], control)
        elif method.center is Center.FACTUAL:
            test = self._nearest(self._center(population, row), stratum.test, k)
        elif self.world.parts:
            test = self._average(row, stratum, k, counted=int(method.count_centers))
        else:
            test = self._nearest(self._center(self._point, row), stratum.test, k)
        return Pair(control=control, test=test)

    def part_weights(self, row: int, index: int) -> Floats:
        """Return how much a place in the group of each part counts, where centers are counted."""
        return self._parts(row, self._stratum(row)[1], self.engine.study.ks[index], counted=1)[1]

    def _stratum(self, row: int) -> tuple[int, Stratum]:
        strata = enumerate(self.engine.study.strata)
        return next(each for each in strata if row in each[1].complainants)

    @property
    def _point(self) -> Population:
        return self.world.point or self.engine.study.population

    def _center(self, world: Population, row: int) -> Embedded:
        return self.engine.embedding.apply(world, np.array([row]))

    def _points(self, space: Rows) -> Points:
        """Place a whole space; once, as every part of a mixture asks for it."""
        if id(space) not in self._placed:
            population = self.engine.study.population
            self._placed[id(space)] = self.engine.embedding.apply(population, space).points
        return self._placed[id(space)]

    def _nearest(self, center: Embedded, space: Rows, k: int, own: int = -1) -> Listed:
        """List the k nearest in a space, apart from a complainant's own row."""
        distance, place = self._places(center, space, k, own)
        near = place > 0
        apart = self.engine.embedding.metric.as_float(distance[near]) + center.overflow_distance[0]
        return Listed(rows=space[near], distance=apart, place=place[near])

    def _places(self, center: Embedded, space: Rows, k: int, own: int = -1) -> tuple[Ints, Floats]:
        """Return how far the rows of a space are, and their places in a group of k others."""
        study, metric = self.engine.study, self.engine.embedding.metric
        distance, others = metric.from_center(center.points, self._points(space)), space != own
        radius = int(np.partition(distance[others], k - 1)[k - 1])
        if study.max_distance is not None:
            limit = int(limits_of(study.max_distance, center.overflow_distance, metric)[0])
            if radius > limit:
                return distance, np.asarray(others & (distance <= limit), dtype=np.float64)
        inside, rim = others & (distance < radius), others & (distance == radius)
        on_rim = 1.0
        if study.ties == "fair":
            on_rim = (k - np.count_nonzero(inside)) / np.count_nonzero(rim)
        return distance, np.where(inside, 1.0, np.where(rim, on_rim, 0.0))

    def _parts(
        self, row: int, stratum: Stratum, k: int, *, counted: int
    ) -> tuple[list[Floats], Floats]:
        """Return the places in each part of a mixture, and how much they count in each."""
        places: list[Floats] = []
        for part, weight in self.world.parts:
            here = self._places(self._center(part, row), stratum.test, k)[1]
            places += [here] * weight
        # means are averaged: a place in a larger group is a smaller part of it
        sizes = np.array([round(float(each.sum())) for each in places])
        weights = (sizes.min() + counted) / np.maximum(sizes + counted, 1)
        return places, weights * bool(sizes.min())

    def _average(self, row: int, stratum: Stratum, k: int, *, counted: int) -> Listed:
        """List everyone in the groups of the parts, with their places on average.

        Distances are those from the counterfactual that is shown.
        """
        places, weights = self._parts(row, stratum, k, counted=counted)
        total = sum(each * part for each, part in zip(places, weights, strict=True))
        return self._seen_from(row, stratum.test, np.asarray(total / len(places)))

    def _seen_from(self, row: int, space: Rows, place: Floats) -> Listed:
        """List those who hold places, seen from the counterfactual that is shown."""
        center, metric, near = (
            self._center(self._point, row),
            self.engine.embedding.metric,
            place > 0,
        )
        apart = metric.from_center(center.points, self._points(space).take(near))
        distance = metric.as_float(apart) + center.overflow_distance[0]
        return Listed(rows=space[near], distance=distance, place=place[near])

    def _matched(self, row: int, stratum: Stratum, links: Links, control: Listed) -> Listed:
        """List the matches of a control group, with the places that they hold.

        Distances are those from the complainant's own counterfactual.
        """
        keys = links.key[np.searchsorted(stratum.control, control.rows)]
        whole, shared = control.place == 1, control.place < 1
        ones = np.ones(len(keys), dtype=np.int64)
        weight = ones[whole] @ links.people[keys[whole]]
        rest = ones[shared] @ links.people[keys[shared]]
        weight = weight + rest * control.place.max(where=shared, initial=0.0)
        point = group_rows(self._points(stratum.test))[1]
        held = (weight / np.bincount(point) / links.parts)[point]
        return self._seen_from(row, stratum.test, held)
