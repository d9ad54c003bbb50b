"""Search the spaces of a study for the nearest people, and count them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from mutandis.engine.tally import Nearest
from mutandis.geometry.choose import ChosenSearch
from mutandis.geometry.index import (
    Neighbourhoods,
    Queries,
    RadiusCounts,
    Space,
    find_neighbourhoods,
    find_within,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from mutandis.data.population import Population
    from mutandis.data.spaces import Stratum
    from mutandis.engine.matches import SpaceFacts
    from mutandis.engine.study import Study
    from mutandis.geometry.embedding import Embedded, Embedding
    from mutandis.geometry.index import Progress, Search
    from mutandis.geometry.metric import Metric, Points

__all__ = [
    "Aside",
    "PreparedSpace",
    "Spaces",
    "limits_of",
    "people_of",
]

# complainants who are placed and searched for at a time
_CHUNK = 1 << 17


def limits_of(
    max_distance: float, overflow_distance: NDArray[np.float64], metric: Metric
) -> NDArray[np.int64]:
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
    """A space whose search is ready.

    Of a test space the points are kept, of a control space the point of each row. `repeats` tells
    whether several rows lie on one point, `marks` are those at each point, where they are more than
    a mask, and `facts` are those of a whole test space, where they are known.
    """

    rows: NDArray[np.intp]
    space: Space | None
    search: Search
    standing: NDArray[np.intp] | None
    repeats: bool
    marks: NDArray[np.int64] | None
    facts: SpaceFacts | None = None

    def in_chunks(self, people: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Iterate over people in chunks, so that their places take little memory.

        Duplicates are searched for once, so where rows repeat, all come together.
        """
        size = len(people) if self.repeats else _CHUNK
        for start in range(0, len(people), size):
            yield people[start : start + size]


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

    def get(self, rows: NDArray[np.intp], *, in_control: bool) -> PreparedSpace:
        """Prepare the search of a space, or return the one at hand."""
        for known in self.prepared:
            if known.rows is rows and in_control == (known.standing is not None):
                return known
        if not self.keep:
            self.prepared.clear()  # makes room before the next one is built
        points = self.embedding.apply(self.study.population, rows).points
        space, standing = Space.of(points, self.study.marks(rows), self.embedding.metric)
        self.prepared.append(
            PreparedSpace(
                rows=rows,
                space=None if in_control else space,
                search=ChosenSearch(space, threads=self.threads),
                standing=standing if in_control else None,
                repeats=len(space.points) < len(rows),
                marks=None if space.is_mask else space.marks,
            )
        )
        return self.prepared[-1]

    def queries(
        self, people: NDArray[np.intp], searched: PreparedSpace, centers: Points
    ) -> Queries:
        """Make queries around the centers of some people, whose own rows are excluded."""
        if searched.standing is None:
            return Queries.outside(centers)
        own = searched.standing[np.searchsorted(searched.rows, people)]
        marks = self.study.marks(people)
        return Queries(points=centers, own=own, own_marks=marks.astype(np.int64, copy=False))

    def find(
        self,
        strata: Sequence[Stratum],
        world: Population,
        *,
        in_control: bool,
        progress: Progress,
        aside: Aside | None = None,
    ) -> tuple[Nearest, list[str]]:
        """Find the k nearest of the complainants of each stratum in one of its spaces.

        The result is in the order of all these complainants, with the backends that answered.
        """
        rows = people_of(strata)
        collected, names = self._nothing(rows, world), []
        for stratum in strata:
            space = stratum.control if in_control else stratum.test
            searched = self.get(space, in_control=in_control)
            for some in searched.in_chunks(stratum.complainants):
                centers = self.embedding.apply(world, some)
                queries = self.queries(some, searched, centers.points)
                answers = self._ask(
                    stratum, searched, queries, centers, aside=aside, progress=progress
                )
                mine = np.searchsorted(rows, some)
                collected = _put(collected, mine, answers, centers.overflow_distance)
                _count_within(collected, mine, searched, queries)
            names.append(searched.search.name)
        return collected, names

    def _nothing(self, rows: NDArray[np.intp], world: Population) -> Nearest:
        """Make room for what is counted around people; hardly any, until it is needed."""
        study, limits, within = self.study, None, None
        if study.max_distance is not None:
            overflow = self.embedding.apply(world, rows).overflow_distance
            limits = limits_of(study.max_distance, overflow, self.embedding.metric)
            within = RadiusCounts.empty(len(rows), study.width)
        return Nearest(
            found=Neighbourhoods.empty(0, len(study.ks), study.width),
            overflow_distance=np.broadcast_to(0.0, len(rows)),
            limits=limits,
            within=within,
        )

    def _ask(
        self,
        stratum: Stratum,
        searched: PreparedSpace,
        queries: Queries,
        centers: Embedded,
        *,
        aside: Aside | None,
        progress: Progress,
    ) -> Neighbourhoods:
        """Search for groups, and set the nearest aside that matches need."""
        ks, more = self.study.ks, 0 if aside is None else aside.number_for(stratum)
        answers = find_neighbourhoods(
            searched.search,
            queries,
            (*ks, more) if more else ks,
            marks=searched.marks,
            progress=progress,
        )
        if not more or aside is None:
            return answers
        aside.note(stratum, answers.at(slice(-1, None)), centers)
        return answers.at(slice(len(ks)))


def _put(
    into: Nearest,
    mine: NDArray[np.intp],
    answers: Neighbourhoods,
    overflow_distance: NDArray[np.float64],
) -> Nearest:
    """Put the answers about some people in their places."""
    everyone, ks, width = len(into.overflow_distance), *answers.marks_inside.shape[1:]
    if len(mine) == everyone:
        return replace(into, found=answers, overflow_distance=overflow_distance)
    if not len(into.found.radius):
        into = replace(into, found=Neighbourhoods.empty(everyone, ks, width))
    into.found.put(mine, answers)
    if overflow_distance.any():
        if not into.overflow_distance.flags.writeable:
            into = replace(into, overflow_distance=into.overflow_distance.copy())
        into.overflow_distance[mine] = overflow_distance
    return into


def _count_within(
    into: Nearest, mine: NDArray[np.intp], searched: PreparedSpace, queries: Queries
) -> None:
    """Count people within the caliper of those whose groups reach beyond it."""
    if into.limits is None or into.within is None:
        return
    far = np.flatnonzero(into.found.radius[mine].max(axis=1) > into.limits[mine])
    if len(far):
        asked, reach = queries.take(far), into.limits[mine[far]]
        into.within.put(mine[far], find_within(searched.search, asked, reach, searched.marks))


@dataclass(slots=True, kw_only=True)
class Aside:
    """The nearest to the counterfactuals of complainants, found together with the test groups.

    They are asked for where all who are matched complain: the rows of a tile, or of a space.
    """

    number: int
    rows: NDArray[np.intp] | None = None
    nearest: dict[int, list[Neighbourhoods]] = field(default_factory=dict)
    centers: dict[int, Embedded] = field(default_factory=dict)

    def number_for(self, stratum: Stratum) -> int:
        """Return how many nearest are asked for in a stratum; 0 if some do not complain."""
        whose = stratum.control if self.rows is None else self.rows
        if not np.array_equal(stratum.complainants, whose):
            return 0
        return min(self.number, len(stratum.test))

    def note(self, stratum: Stratum, nearest: Neighbourhoods, centers: Embedded) -> None:
        """Keep what was found, and where people are placed if that was one search."""
        self.nearest.setdefault(id(stratum), []).append(nearest)
        if len(nearest.radius) == len(stratum.complainants):
            self.centers[id(stratum)] = centers

    def take(self, stratum: Stratum) -> tuple[Embedded | None, Neighbourhoods | None]:
        """Return what was noted of a stratum, and let go of it."""
        found = self.nearest.pop(id(stratum), [])
        nearest = Neighbourhoods.join(found) if found else None
        return self.centers.pop(id(stratum), None), nearest


def people_of(strata: Sequence[Stratum]) -> NDArray[np.intp]:
    """Return the complainants of some strata, in the order of the table."""
    if len(strata) == 1:
        return strata[0].complainants
    rows: NDArray[np.intp] = np.concatenate([stratum.complainants for stratum in strata])
    return np.sort(rows)
