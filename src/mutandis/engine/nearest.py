"""Search the spaces of a study for the nearest people, and count them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from mutandis.engine.pack import gather, pack, unpack
from mutandis.engine.tally import Nearest
from mutandis.geometry.choose import ChosenSearch
from mutandis.geometry.index import (
    Queries,
    RadiusCounts,
    Space,
    find_neighbourhoods,
    find_within,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutandis.data.population import Population
    from mutandis.data.protection import Stratum
    from mutandis.engine.balance import SpaceFacts
    from mutandis.engine.study import Study
    from mutandis.geometry.embedding import Embedded, Embedding
    from mutandis.geometry.index import Progress, Search
    from mutandis.geometry.metric import Metric, Points
    from mutandis.mapped import Floats, Ints, Rows

_CHUNK = 1 << 17  # complainants who are placed and searched for at a time


def limits_of(max_distance: float, overflow_distance: Floats, metric: Metric) -> Ints:
    """Compute the largest integer distance that is not beyond a caliper; -1 where even 0 is.

    `max_distance` is read as the decimal that was written; `overflow_distance` is what the
    distances of each center lack because it lies out of reach.
    """
    farthest = Fraction(str(max_distance))
    limits = np.full(len(overflow_distance), metric.limit(farthest), dtype=np.int64)
    for row in np.flatnonzero(overflow_distance > 0):
        limits[row] = max(-1, metric.limit(farthest - Fraction(float(overflow_distance[row]))))
    return limits


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSpace:
    """A space whose search is ready."""

    rows: Rows
    search: Search
    marks: Ints | None  # at each point, where they are more than a mask
    space: Space | None = None  # of a test space
    standing: Rows | None = None  # of a control space: the point of each row
    repeats: bool = False  # whether several rows lie on one point
    facts: SpaceFacts | None = None  # of a whole test space, where they are known


@dataclass(slots=True, kw_only=True)
class Spaces:
    """The spaces of a study, and the scale on which they are measured.

    Spaces are prepared when they are first searched. With `keep` all stay, without it the last one.
    """

    study: Study
    embedding: Embedding
    threads: int
    keep: bool = True
    prepared: list[PreparedSpace] = field(default_factory=list)

    def get(self, rows: Rows, *, in_control: bool) -> PreparedSpace:
        """Prepare the search of a space, or return the one at hand."""
        for known in self.prepared:
            if known.rows is rows and in_control == (known.standing is not None):
                return known
        if not self.keep:
            self.prepared.clear()  # makes room before the next one is built
        points = self.embedding.apply(self.study.population, rows).points
        space, standing = Space.of(points, self.study.marks(rows), self.embedding.metric)
        made = PreparedSpace(
            rows=rows,
            search=ChosenSearch(space, threads=self.threads),
            marks=None if space.is_mask else space.marks,
            space=None if in_control else space,
            standing=standing if in_control else None,
            repeats=len(space.points) < len(rows),
        )
        self.prepared.append(made)
        return made

    def queries(self, people: Rows, searched: PreparedSpace, centers: Points) -> Queries:
        """Make queries around the centers of some people, whose own rows are excluded."""
        if searched.standing is None:
            return Queries.outside(centers)
        own = searched.standing[np.searchsorted(searched.rows, people)]
        return Queries.inside(centers, own, self.study.marks(people))

    def around_facts(self, stratum: Stratum) -> tuple[PreparedSpace, Queries]:
        """Make queries around complainants as they are, in their control space."""
        searched, people = self.get(stratum.control, in_control=True), stratum.complainants
        points = self.embedding.apply(self.study.population, people).points
        return searched, self.queries(people, searched, points)

    def find(
        self,
        stratum: Stratum,
        world: Population,
        *,
        in_control: bool,
        progress: Progress,
        more: Sequence[int] = (),
    ) -> tuple[Nearest, str, Embedded | None]:
        """Find the k nearest of complainants in a space, for the study's ks and some more.

        Beside the counts: the backend that answered, and where people are placed if that was one
        search.
        """
        people, parts = stratum.complainants, []
        searched = self.get(stratum.control if in_control else stratum.test, in_control=in_control)
        # repeated centers are searched for once, so where rows repeat, all come together
        size = max(1, len(people) if searched.repeats else _CHUNK)
        for start in range(0, max(1, len(people)), size):
            some = people[start : start + size]
            centers = self.embedding.apply(world, some)
            queries = self.queries(some, searched, centers.points)
            nearest = self._ask(searched, queries, centers, more, progress)
            if len(some) == len(people):
                return nearest, searched.search.name, centers
            parts.append((np.arange(start, start + len(some)), pack(nearest)))
        return unpack(Nearest, gather(parts, len(people))), searched.search.name, None

    def _ask(
        self,
        searched: PreparedSpace,
        queries: Queries,
        centers: Embedded,
        more: Sequence[int],
        progress: Progress,
    ) -> Nearest:
        """Count the nearest, and the people within the caliper where groups reach beyond it."""
        study, overflow = self.study, centers.overflow_distance
        found = find_neighbourhoods(
            searched.search,
            queries,
            (*study.ks, *more),
            marks=searched.marks,
            progress=progress,
        )
        if study.max_distance is None:
            return Nearest(found=found, overflow_distance=overflow)
        limits = limits_of(study.max_distance, overflow, self.embedding.metric)
        within = RadiusCounts.empty(len(queries), study.width)
        far = np.flatnonzero(found.radius[:, : len(study.ks)].max(axis=1) > limits)
        if len(far):
            some = find_within(searched.search, queries.take(far), limits[far], searched.marks)
            within.put(far, some)
        return Nearest(found=found, overflow_distance=overflow, limits=limits, within=within)


def people_of(strata: Sequence[Stratum]) -> Rows:
    """Return the complainants of some strata, in the order of the table."""
    if len(strata) == 1:
        return strata[0].complainants
    return np.sort(np.concatenate([stratum.complainants for stratum in strata]))
