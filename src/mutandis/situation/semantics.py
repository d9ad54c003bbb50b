"""What the definitions mean, as one exchangeable object.

An audit asks its semantics four things: which equations to use, whom each group holds, how two
groups are compared, and how distances were told equal. `DEFINED` answers by the paper's
definitions, read correctly. The publication's own answers are in `as_published`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mutandis.similarity.choose import choose_search
from mutandis.similarity.embedding import Embedded, Embedding
from mutandis.similarity.progress import silent
from mutandis.similarity.search import Queries, Space, find_neighbourhoods
from mutandis.similarity.ties import Neighbourhoods
from mutandis.situation.caliper import Caliper, CaliperGroups
from mutandis.situation.compare import compare
from mutandis.situation.group_size import rows_in_test
from mutandis.situation.groups import CenteredGroups, Centers, Groups, NearestGroups, Roll
from mutandis.situation.methods import Center

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from mutandis.causal.worldview import Worldview
    from mutandis.domain.attribute import Attribute
    from mutandis.domain.population import Population
    from mutandis.inference.intervals import IntervalMethod
    from mutandis.results.findings import Comparison, Group
    from mutandis.similarity.embedding import Scaling
    from mutandis.similarity.progress import Progress
    from mutandis.similarity.search import Search
    from mutandis.similarity.ties import Ties
    from mutandis.situation.group_size import GroupSize
    from mutandis.situation.methods import Method
    from mutandis.situation.spaces import Stratum

__all__ = ["DEFINED", "Defined", "GroupPair", "Grouping", "Semantics", "Situation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything that groups are built from.

    Parameters
    ----------
    population, counterfactual
        D, and D^CF where there is one.
    attributes
        What people are compared on.
    strata
        Complainants and their search spaces.
    is_negative, is_negative_cf
        Who was refused in D, and who would have been in D^CF (None: nobody decided).
    ks, ties, scaling, threads
        How to search.
    group_size
        How many rows a test group takes.
    max_distance
        How far away people may be who are compared (None: any distance).
    """

    population: Population
    counterfactual: Population | None
    attributes: tuple[Attribute, ...]
    strata: tuple[Stratum, ...]
    is_negative: NDArray[np.bool_]
    is_negative_cf: NDArray[np.bool_] | None
    ks: tuple[int, ...]
    ties: Ties
    scaling: Scaling
    threads: int
    group_size: GroupSize = "k"
    max_distance: float | None = None

    @property
    def complainants(self) -> NDArray[np.intp]:
        """The complainants' rows, in the order of the table."""
        return np.sort(np.concatenate([stratum.complainants for stratum in self.strata]))

    @property
    def roll(self) -> Roll:
        """Who the rows of D are."""
        return Roll(ids=self.population.ids, is_negative=self.is_negative)

    def centers(self, *, counterfactual: bool) -> Centers:
        """Give the complainants' own outcomes, as they are or as they would have been."""
        mask = self.is_negative_cf if counterfactual else self.is_negative
        if mask is None:
            raise TypeError("the plan admits no method that needs an outcome nobody decided")
        rows = self.complainants
        return Centers(ids=self.population.ids[rows], is_negative=mask[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPair:
    """The control and the test group of one method."""

    control: Groups
    test: Groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The groups of every method, with what provenance wants to know.

    Parameters
    ----------
    pairs
        By method name.
    distance_rules
        How equal distances were told, by attribute.
    backends
        Which search answered, by what was searched.
    control
        The control groups, which do not depend on the counterfactuals: a grouping of the same
        people under other counterfactuals can take them over. None if nobody was searched for.
    embedding, nearest
        Where people stand, and the groups as they are before any caliper, by what was searched:
        "control", and "factual" or "counterfactual" for the test groups around such centers.
        Missing where the semantics has a scale of its own.
    """

    pairs: Mapping[str, GroupPair]
    distance_rules: Mapping[str, str]
    backends: Mapping[str, str]
    control: Groups | None = None
    embedding: Embedding | None = None
    nearest: Mapping[str, NearestGroups] = field(default_factory=dict)


class Semantics(Protocol):
    """How the definitions are read."""

    @property
    def name(self) -> str:
        """For the provenance."""
        ...

    def worldview(self, worldview: Worldview) -> Worldview:
        """Give the worldview whose equations are to be used."""
        ...

    def group(
        self,
        situation: Situation,
        methods: Collection[Method],
        *,
        control: Groups | None = None,
        progress: Progress = silent,
    ) -> Grouping:
        """Build the groups of all methods and all k in one pass.

        Parameters
        ----------
        situation, methods
            What the groups are built from, and who uses them.
        control
            The control groups, where they are known already.
        progress
            Is told for how many more complainants a search is done.
        """
        ...

    def compare(
        self,
        control: Group,
        test: Group,
        *,
        tau: float,
        alpha: float,
        interval: IntervalMethod,
    ) -> Comparison:
        """Compare the groups of every complainant."""
        ...


@dataclass(frozen=True, slots=True)
class Defined:
    """The paper's definitions: one scale for both worlds, fair ties, exact evidence."""

    name: str = "defined"

    def worldview(self, worldview: Worldview) -> Worldview:
        """Take the equations as they were declared."""
        return worldview

    def group(
        self,
        situation: Situation,
        methods: Collection[Method],
        *,
        control: Groups | None = None,
        progress: Progress = silent,
    ) -> Grouping:
        """Search each space once per kind of center; every method and k is served by that."""
        embedding = Embedding.fit(
            situation.population, situation.attributes, scaling=situation.scaling
        )
        finder = _Finder(situation, embedding, progress)
        searched: dict[str, Groups] = {}
        wanted = {m.center for m in methods if m.count_neighbours}
        if wanted:
            searched["control"] = finder.control() if control is None else control
        for center in (center for center in Center if center in wanted):
            searched[center.value] = finder.test(center)
        return Grouping(
            pairs={method.name: pair(situation, method, searched) for method in methods},
            distance_rules=embedding.rules,
            backends=finder.backends,
            control=searched.get("control"),
            embedding=embedding,
            nearest=finder.nearest,
        )

    def compare(
        self,
        control: Group,
        test: Group,
        *,
        tau: float,
        alpha: float,
        interval: IntervalMethod,
    ) -> Comparison:
        """Decide evidence on integers."""
        return compare(control, test, tau=tau, alpha=alpha, interval=interval)


def pair(situation: Situation, method: Method, searched: Mapping[str, Groups]) -> GroupPair:
    """Put a method's two groups together from what was searched and from the centers."""
    if not method.count_centers:
        return GroupPair(control=searched["control"], test=searched[method.center.value])
    here = situation.centers(counterfactual=False)
    there = situation.centers(counterfactual=True)
    if not method.count_neighbours:
        return GroupPair(control=here, test=there)
    return GroupPair(
        control=CenteredGroups(neighbours=searched["control"], centers=here),
        test=CenteredGroups(neighbours=searched[method.center.value], centers=there),
    )


class _Finder:
    """One pass over the strata of a situation: holds what its searches share."""

    def __init__(self, situation: Situation, embedding: Embedding, progress: Progress) -> None:
        self._situation = situation
        self._embedding = embedding
        self._progress = progress
        self._factual = embedding.apply(situation.population)
        self.backends: dict[str, str] = {}
        self.nearest: dict[str, NearestGroups] = {}

    def control(self) -> Groups:
        """Find the control groups, each complainant excluded from her own by identity."""
        return self._find("control", self._factual, in_control=True)

    def test(self, center: Center) -> Groups:
        """Find the test groups around factual or counterfactual centers."""
        population = self._situation.counterfactual
        if center is Center.FACTUAL or population is None:
            return self._find(center.value, self._factual, in_control=False)
        return self._find(center.value, self._embedding.apply(population), in_control=False)

    def _find(self, what: str, centers: Embedded, *, in_control: bool) -> Groups:
        situation = self._situation
        rows = situation.complainants
        found = Neighbourhoods.empty(len(rows), len(situation.ks))
        space_of = np.empty(len(rows), dtype=np.intp)
        spaces = tuple(s.control if in_control else s.test for s in situation.strata)
        group_size: GroupSize = "k" if in_control else situation.group_size
        places = np.empty((len(rows), len(situation.ks)), dtype=np.int64)
        caliper = self._caliper(centers.beyond[rows])
        for index, (stratum, space) in enumerate(zip(situation.strata, spaces, strict=True)):
            mine = np.searchsorted(rows, stratum.complainants)
            search, queries = self._search(stratum, space, centers, in_control=in_control)
            sizes = rows_in_test(stratum, situation.ks, group_size=group_size)
            answers = find_neighbourhoods(search, queries, sizes)
            self._progress(len(queries))
            found.put(mine, answers)
            if caliper is not None:
                caliper.count(mine, search, queries, answers)
            places[mine] = sizes
            space_of[mine] = index
            self.backends[what] = search.name
        self.nearest[what] = nearest = NearestGroups(
            found=found,
            ks=situation.ks,
            ties=situation.ties,
            centers=centers.points.take(rows),
            own_rows=rows if in_control else np.full_like(rows, -1),
            beyond=centers.beyond[rows],
            points=self._factual.points,
            metric=self._embedding.metric,
            spaces=spaces,
            space_of=space_of,
            roll=situation.roll,
            places=None if group_size == "k" else places,
        )
        return nearest if caliper is None else CaliperGroups(nearest=nearest, caliper=caliper)

    def _caliper(self, beyond: NDArray[np.float64]) -> Caliper | None:
        farthest = self._situation.max_distance
        return None if farthest is None else Caliper.of(farthest, beyond, self._embedding.metric)

    def _search(
        self,
        stratum: Stratum,
        rows: NDArray[np.intp],
        centers: Embedded,
        *,
        in_control: bool,
    ) -> tuple[Search, Queries]:
        negative = self._situation.is_negative
        metric = self._embedding.metric
        space, standing = Space.of(self._factual.points.take(rows), negative[rows], metric)
        points = centers.points.take(stratum.complainants)
        queries = Queries.outside(points)
        if in_control:
            queries = Queries(
                points=points,
                own=standing[np.searchsorted(rows, stratum.complainants)],
                own_negative=negative[stratum.complainants],
            )
        return choose_search(space, threads=self._situation.threads), queries


DEFINED = Defined()
"""The default semantics."""
