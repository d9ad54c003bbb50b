"""Who is like whom: the matches and neighbours on which the answer at three scales rests.

Reference people and comparable protected people are put into an order that depends on what they
hold alone, so that sums over them do not depend on the order of the table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mutandis.data.columns import Numbers
from mutandis.engine.balance import SpaceFacts, draw_values
from mutandis.geometry.choose import ChosenSearch
from mutandis.geometry.index import Queries, Space, group_rows
from mutandis.geometry.metric import Points
from mutandis.numeric.order import canonical_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutandis.data.columns import Column
    from mutandis.engine.study import Study, World
    from mutandis.geometry.embedding import Embedded, Embedding
    from mutandis.geometry.index import Listing

__all__ = ["Approach", "Cloud", "Likeness", "Surroundings", "Weighed", "sum_neighbourhoods"]

Floats = NDArray[np.float64]
Ints = NDArray[np.signedinteger]
Rows = NDArray[np.intp]

NEAREST = 5
"""How many people are matched, and how many neighbours tell what is usual."""
FARTHEST = 0.99
"""The quantile of usual distances up to which people are comparable."""
_ROUNDING = 1e-9
_MANY = 300_000  # rows from which on a person between two values is placed 10 times, not 20
_WORTH_LOADING = 3_000  # people for whose neighbourhoods kernels are loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """Rows that are not independent, such as applications to one employer."""

    number: int
    people: Rows  # the cluster of each comparable person
    reference: Rows  # and of each reference row
    own: Any  # comparable people x facts: the 5 nearest of other clusters
    near: Any  # reference rows x points: the same among these


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Who is like whom in one world. Sparse matrices hold the weight of each single row."""

    key: Rows  # the counterfactual of each comparable person: a row of `match`
    fact: Rows  # the point of each comparable person as recorded: a row of `own`
    counts: Ints  # reference rows on each point
    standing: Rows  # the point of each reference row
    near: Any  # points x points: the 5 nearest other reference rows; rows sum to 1
    match: Any  # counterfactuals x points: the 5 nearest reference rows
    back: Any  # points x counterfactuals: the 5 comparable people nearest to a reference row
    own: Any  # facts x facts: the 5 nearest other comparable people
    clusters: Clusters | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """Distinct points of some rows, and a search among them."""

    space: Space
    points: Points
    counts: Ints
    standing: Rows  # the point of each row
    embedding: Embedding
    search: Any

    @classmethod
    def of(cls, points: Points, embedding: Embedding, *, threads: int) -> Cloud:
        """Collapse rows on equal points, in order of appearance."""
        nothing = np.zeros((len(points), 1), dtype=np.bool_)
        space, standing = Space.of(points, nothing, embedding.metric)
        return cls(
            space=space,
            points=space.points,
            counts=np.array(space.counts),
            standing=standing,
            embedding=embedding,
            search=ChosenSearch(space, threads=threads),
        )

    def nearest(self, centers: Points | Rows, k: int) -> tuple[Any, Floats]:
        """Find the k nearest rows of distinct centers, with ties shared.

        Centers that are given by number are points of the cloud, and one row on them is left out.
        The result is the weight of each single row, by center and point, and mean distances.
        """
        from scipy.sparse import csr_array

        order = np.arange(len(centers))
        if isinstance(centers, Points):
            order = self.search.arrange(centers)
            queries = Queries.outside(centers.take(order))
        else:
            queries = self.from_inside(centers)
        found = self.search.neighbourhoods(queries, (k,))
        radius, inside, rim = (each[:, 0] for each in (found.radius, found.inside, found.rim))
        on_rim = (k - inside) / (rim * k)
        metric, left_out = self.embedding.metric, queries.own
        listed: list[tuple[Rows, Any, Any, Any]] = []
        distance = np.zeros(len(order))

        def use(chosen: Rows, listing: Listing) -> None:
            size = np.diff(listing.start)
            query = np.repeat(np.arange(len(chosen)), size)
            sorting = np.lexsort((listing.points, query))
            points, apart = listing.points[sorting], listing.distances[sorting]
            whose = chosen[query]
            weight = np.where(apart < radius[whose], 1.0 / k, on_rim[whose])
            rows = self.counts[points] - (points == left_out[whose])
            each = weight * rows * metric.as_float(apart)
            distance[chosen] = np.bincount(query, weights=each, minlength=len(chosen))
            listed.append((chosen, size, points.astype(np.int32), weight))

        self.search.visit(queries, radius, inside + rim + (left_out >= 0), use)
        start, points, weights = _in_order(listed, len(order))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        matrix = csr_array((weights, points, start), shape=(len(order), len(self.points)))
        return (matrix if isinstance(centers, np.ndarray) else matrix[back]), distance[back]

    def nearest_outside(self, clusters: Rows, k: int) -> Any:
        """Find the k nearest rows of other clusters than each row's own, with ties shared.

        The result is the weight of each single row of other clusters, by row and point.
        """
        from scipy.sparse import csr_array

        rows, number = np.arange(len(self.standing)), int(clusters.max()) + 1
        ones = np.ones(len(rows), dtype=np.int64)
        shape = (len(self.points), number)
        held = csr_array((ones, (self.standing, clusters)), shape=shape)
        listed: list[tuple[Rows, Any, Any, Any]] = []
        size, most = k, len(rows) - 1

        def use(chosen: Rows, listing: Listing) -> None:
            query = np.repeat(np.arange(len(chosen)), np.diff(listing.start))
            sorting = np.lexsort((listing.points, listing.distances, query))
            points, apart = listing.points[sorting], listing.distances[sorting]
            asked = waiting[chosen]
            others = self.counts[points] - held[points, clusters[asked[query]]]
            for one in range(len(chosen)):
                part = slice(listing.start[one], listing.start[one + 1])
                before = np.cumsum(others[part])
                if before[-1] < k and size < most:
                    continue
                enough = min(k, int(before[-1]))
                radius = apart[part][np.searchsorted(before, enough)]
                near, at_it = apart[part] < radius, apart[part] == radius
                inside, rim = others[part][near].sum(), others[part][at_it].sum()
                weight = np.where(near, 1.0, (enough - inside) / rim)[near | at_it] / enough
                some = points[part][near | at_it].astype(np.int32)
                listed.append((asked[[one]], np.array([len(some)]), some, weight))

        waiting = rows
        while len(waiting):
            queries = self.from_inside(self.standing[waiting])
            found = self.search.neighbourhoods(queries, (size,))
            rows_within = found.inside[:, 0] + found.rim[:, 0] + 1
            self.search.visit(queries, found.radius[:, 0], rows_within, use)
            known = np.concatenate([each[0] for each in listed]) if listed else rows[:0]
            waiting, size = np.setdiff1d(rows, known), min(4 * size, most)
        start, points, weights = _in_order(listed, len(rows))
        return csr_array((weights, points, start), shape=(len(rows), len(self.points)))

    def from_inside(self, centers: Rows) -> Queries:
        """Make queries from rows on some points, each of which leaves itself out."""
        nothing = np.zeros(len(centers), dtype=np.bool_)
        return Queries.inside(self.points.take(centers), centers, nothing)


def _in_order(
    listed: Sequence[tuple[Rows, Any, Any, Any]], number: int
) -> tuple[Rows, NDArray[np.int32], Floats]:
    """Put what was listed of each query behind what was listed of those before it."""
    size = np.zeros(number, dtype=np.intp)
    for chosen, sizes, *_ in listed:
        size[chosen] = sizes
    start = np.concatenate([[0], np.cumsum(size)])
    points, weights = np.empty(start[-1], dtype=np.int32), np.empty(start[-1])
    for chosen, sizes, some, weight in listed:
        first = np.repeat(start[chosen], sizes)
        within = np.arange(len(some)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        points[first + within], weights[first + within] = some, weight
    return start, points, weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Approach:
    """How near reference people come to the counterfactuals of all protected people in a world."""

    parts: tuple[Points, ...]  # counterfactuals of the protected people, in each draw
    key: Rows  # the distinct counterfactual of each person
    match: Any  # distinct counterfactuals x points
    distance: Floats  # mean distance of each person's matches


@dataclass(slots=True, kw_only=True)
class Surroundings:
    """The reference people of a study, and the protected people in any of its worlds."""

    study: Study
    embedding: Embedding
    threads: int = -1
    outcome: Floats  # of all rows, larger is worse
    cluster: Rows | None = None  # of all rows; None: rows are independent
    people: Rows = field(init=False)  # rows of the protected people, in an order of their own
    reference: Rows = field(init=False)
    cloud: Cloud = field(init=False)
    near: Any = field(init=False)
    usual: float = field(init=False)  # mean distances beyond it are unusual
    facts_of_reference: SpaceFacts = field(init=False)

    def __post_init__(self) -> None:
        self.people = self._sorted(self.study.people)
        self.reference = self._sorted(self.study.reference)
        points = self.embedding.apply(self.study.population, self.reference).points
        self.cloud = Cloud.of(points, self.embedding, threads=self.threads)
        self.facts_of_reference = SpaceFacts.of(self.cloud.space)
        everyone = np.arange(len(self.cloud.points))
        self.near, distance = self.cloud.nearest(everyone, min(NEAREST, len(self.reference) - 1))
        self.usual = float(np.quantile(distance[self.cloud.standing], FARTHEST))

    def _sorted(self, rows: Rows) -> Rows:
        """Order rows by all that they hold, equal ones by their ids, as those who draw do."""
        population = self.study.population
        columns: dict[str, Column] = {
            f"{place:06}": population.part(name, rows)
            for place, name in enumerate(population.columns)
        }
        columns["outcome"] = Numbers(self.outcome[rows])
        return rows[canonical_order(columns, ids=population.ids[rows])]

    def placed(self, world: World) -> list[Points]:
        """Place the protected people in a world, in each of its draws."""
        return [each.points for each in self._embedded(world)]

    def _embedded(self, world: World) -> list[Embedded]:
        if world.draws:
            return [self.embedding.apply(each, self.people) for each in world.draws]
        # between two values that reference people have, people are placed at both
        placed = self.embedding.apply(world.point or self.study.population, self.people)
        drawn = draw_values(placed, self.facts_of_reference)
        many = len(self.people) + len(self.reference) > _MANY
        return drawn[::2] if many else drawn

    def approach(self, world: World) -> Approach:
        """Match all protected people in a world; in none, as they are."""
        placed = self._embedded(world)
        parts = tuple(each.points for each in placed)
        first, key = group_rows(_side_by_side(parts))
        k = min(NEAREST, len(self.reference))
        # most people have few different points in all draws
        together = Points.join([part.take(first) for part in parts])
        distinct, which = group_rows(together)
        weights, apart = self.cloud.nearest(together.take(distinct), k)
        match: Any = 0
        for each in np.split(which, len(parts)):
            match = match + weights[each]
        distance = np.mean(np.split(apart[which], len(parts)), axis=0)
        beyond = np.mean([each.overflow_distance for each in placed], axis=0)
        return Approach(
            parts=parts,
            key=key,
            match=match / len(parts),
            distance=distance[key] + beyond,
        )

    def comparable(self, approach: Approach) -> NDArray[np.bool_]:
        """Mark people with reference people as near as these are to each other."""
        limit = self.usual
        if self.study.max_distance is not None:
            limit = min(limit, self.study.max_distance)
        return np.asarray(approach.distance <= limit * (1 + _ROUNDING) + _ROUNDING)

    def apart(self, approach: Approach) -> Ints:
        """Find the attribute, from 1, in which each person is farthest from their matches."""
        names = [each.name for each in self.study.attributes]
        axes, metric = self.embedding.axes, self.embedding.metric
        weights, each = approach.match[approach.key].tocoo(), approach.parts[0]
        counts, here, there = self.cloud.counts[weights.col], weights.row, self.cloud.points
        terms = np.zeros((len(self.people), len(names)))
        for axis, one, other in zip(axes, each.coordinates.T, there.coordinates.T, strict=True):
            apart = np.abs(one[here] - other[weights.col]) * counts * weights.data
            terms[:, names.index(axis.name)] = np.bincount(here, apart, len(terms))
        nominal = zip(
            self.embedding.nominal, metric.mismatch, each.codes.T, there.codes.T, strict=False
        )
        for name, cost, one, other in nominal:
            apart = (one[here] != other[weights.col]) * cost * counts * weights.data
            terms[:, names.index(name)] = np.bincount(here, apart, len(terms))
        return np.asarray(terms.argmax(axis=1) + 1)

    def likeness(self, approach: Approach, kept: NDArray[np.bool_]) -> Likeness:
        """Find matches and neighbours among the comparable people."""
        parts = [each.take(np.flatnonzero(kept)) for each in approach.parts]
        first, key = group_rows(_side_by_side(parts))
        k = min(NEAREST, int(kept.sum()))
        back: Any = 0
        for part in parts:
            here = Cloud.of(part, self.embedding, threads=self.threads)
            weights, _ = here.nearest(self.cloud.points, k)
            back = back + weights.tocsc()[:, here.standing[first]]
        facts = self.facts(kept)
        others = min(NEAREST, int(kept.sum()) - 1)
        own, _ = facts.nearest(np.arange(len(facts.points)), others)
        return Likeness(
            key=key,
            fact=facts.standing,
            counts=self.cloud.counts,
            standing=self.cloud.standing,
            near=self.near,
            match=approach.match[approach.key[np.flatnonzero(kept)[first]]],
            clusters=self._cluster(facts, kept),
            back=back.tocsr() / len(parts),
            own=own,
        )

    def _cluster(self, facts: Cloud, kept: NDArray[np.bool_]) -> Clusters | None:
        if self.cluster is None:
            return None
        people, reference = self.cluster[self.people[kept]], self.cluster[self.reference]
        return Clusters(
            number=int(self.cluster.max()) + 1,
            people=people,
            reference=reference,
            own=facts.nearest_outside(people, NEAREST),
            near=self.cloud.nearest_outside(reference, NEAREST),
        )

    def facts(self, kept: NDArray[np.bool_]) -> Cloud:
        """Place the comparable people as they are."""
        points = self.embedding.apply(self.study.population, self.people[kept]).points
        return Cloud.of(points, self.embedding, threads=self.threads)


def _side_by_side(parts: Sequence[Points]) -> Points:
    """Put the points of several draws into one row per person."""
    return Points(
        coordinates=np.concatenate([each.coordinates for each in parts], axis=1),
        codes=np.concatenate([each.codes for each in parts], axis=1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """What is summed over neighbourhoods of people: by person, and by counterfactual and point."""

    columns: Floats  # averaged: a row per person
    squared: Floats  # summed with squared weights of people
    key: Rows
    weights: Any  # counterfactuals x points
    metrics: Floats  # by point: what squares of summed weights are multiplied by


def sum_neighbourhoods(
    cloud: Cloud, people: Rows, sizes: Sequence[int], weighed: Weighed
) -> tuple[Floats, Floats, Floats] | None:
    """Sum over the nearest others of some people, with ties shared.

    None where there are no kernels, or so few people that it does not pay to load them.

    The results are means of columns, sums of squares, and sums of squared weights by metric: of
    each person and size.
    """
    if len(people) < _WORTH_LOADING:
        return None
    try:
        from mutandis.engine import neighbourhood_sums as kernels
    except ImportError:
        return None
    ks, points = np.sort(sizes), len(weighed.metrics)
    queries = cloud.from_inside(cloud.standing[people])
    found = cloud.search.neighbourhoods(queries, ks.tolist())
    shape = len(people), len(sizes)
    sums = kernels.Sums(
        np.zeros((*shape, weighed.columns.shape[1])),
        np.zeros((*shape, weighed.squared.shape[1])),
        np.zeros((*shape, weighed.metrics.shape[1])),
    )
    share = (ks - found.inside) / found.rim
    order = np.argsort(cloud.standing, kind="stable")
    start = np.concatenate([[0], np.cumsum(cloud.counts)])
    everyone = kernels.People(
        start,
        order,
        np.ascontiguousarray(weighed.columns),
        np.ascontiguousarray(weighed.squared),
        weighed.key,
        weighed.weights.indptr.astype(np.int32),
        weighed.weights.indices.astype(np.int32),
        weighed.weights.data,
        np.ascontiguousarray(weighed.metrics),
    )

    def held() -> Any:
        return kernels.Held(
            np.zeros(points),
            np.zeros(points, dtype=np.bool_),
            np.zeros(points, dtype=np.int32),
            np.zeros(1, dtype=np.int64),
        )

    def group() -> Any:
        return kernels.Group(
            *(np.zeros(each.shape[1]) for each in (weighed.columns, weighed.squared))
        )

    def use(chosen: Rows, listing: Listing) -> None:
        query = np.repeat(np.arange(len(chosen)), np.diff(listing.start))
        sorting = np.lexsort((listing.points, listing.distances, query))
        listed = kernels.Listed(
            people[chosen],
            listing.start,
            listing.points[sorting].astype(np.int32),
            listing.distances[sorting],
            found.radius[chosen],
            share[chosen],
        )
        here = kernels.Sums(*(each[chosen] for each in sums))
        room = kernels.Room(held(), held(), group(), group(), np.zeros(1))
        kernels.add_neighbourhoods(listed, everyone, room, here)
        for whole, part in zip(sums, here, strict=True):
            whole[chosen] = part

    most = found.inside[:, -1] + found.rim[:, -1] + 1
    cloud.search.visit(queries, found.radius[:, -1], most, use)
    back = np.searchsorted(ks, sizes)
    return (
        (sums.total / ks[None, :, None])[:, back],
        (sums.squared / ks[None, :, None] ** 2)[:, back],
        (sums.products / ks[None, :, None] ** 2)[:, back],
    )
