"""What groups are built from, and the groups of all methods."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.evidence.drawn_groups import DrawnCenters, DrawnGroups
from mutandis.evidence.group_builder import GroupBuilder, SharedSpaces, Wanted
from mutandis.evidence.groups import Centers, Groups, NearestGroups, Pair, RowIdentity
from mutandis.evidence.matches import MATCHES
from mutandis.evidence.methods import Center
from mutandis.outcomes.binary import REFUSED
from mutandis.search.distances import Sample, fit_distance
from mutandis.search.embedding import Embedding
from mutandis.search.engine import discard_progress

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.attribute import Attribute
    from mutandis.data.population import Population
    from mutandis.engine.tally import Sums
    from mutandis.evidence.groups import Counted, Group
    from mutandis.evidence.matched_groups import HasEvidence, MatchedGroups
    from mutandis.evidence.methods import Method
    from mutandis.evidence.settings import Similarity
    from mutandis.evidence.spaces import Stratum
    from mutandis.outcomes.outcome import Kind
    from mutandis.search.engine import Progress
    from mutandis.workers import Workers

__all__ = [
    "Grouping",
    "Situation",
    "build_groups",
    "regroup",
    "worlds_at_once",
]

# people who are matched at once in several worlds, and places of control groups and matches that
# are added up: beyond that it takes no less time, and libraries are loaded that small audits spare
_MATCHED, _ADDED_UP = 10_000, 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything that groups are built from."""

    # D, and D^CF where there is one
    population: Population
    counterfactual: Population | None
    attributes: tuple[Attribute, ...]  # what people are compared on
    strata: tuple[Stratum, ...]  # complainants and their search spaces
    # who was refused in D, and who would have been in D^CF (None: not decided); where the outcome
    # is a score or has an order, the steps of each from the best value
    is_negative: NDArray[Any]
    is_negative_cf: NDArray[Any] | None
    # how to search
    ks: tuple[int, ...]
    similarity: Similarity
    threads: int
    workers: Workers | None = None  # who answers in tasks; None: nothing is cut into tasks
    # draws of D^CF, where the facts leave it open, and which complainants would have been refused
    # in each (draws × complainants; None: not decided)
    draws: Sequence[Population] = ()
    # worlds to average over instead, each with a whole number as its weight
    worlds: Sequence[tuple[Population, int]] = ()
    # the strata that distances are fitted on, where some of their rows were left out; else the same
    fitted_on: tuple[Stratum, ...] = ()
    parts: int = 1  # of a step from one value to the next, in which distances are exact
    refused_in_draws: NDArray[Any] | None = None
    kind: Kind = REFUSED  # of the outcome

    def _marks(self, outcomes: NDArray[Any]) -> NDArray[Any]:
        """Return what is summed over groups, by column."""
        if outcomes.ndim > 1:  # tasks are given marks instead of outcomes
            return outcomes
        return self.kind.marks(outcomes)

    def marks_of(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return the marks of the outcomes of some rows, by column."""
        return self._marks(self.is_negative[rows])

    @property
    def width(self) -> int:
        """Number of columns of marks."""
        return int(self._marks(self.is_negative[:1]).shape[1])

    @property
    def complainants(self) -> NDArray[np.intp]:
        """The complainants' rows, in the order of the table."""
        if len(self.strata) == 1:
            return self.strata[0].complainants
        return np.sort(np.concatenate([stratum.complainants for stratum in self.strata]))

    @property
    def protected(self) -> NDArray[np.intp]:
        """The rows of all control spaces, in the order of the table."""
        if len(self.strata) == 1:
            return self.strata[0].control
        return np.unique(np.concatenate([stratum.control for stratum in self.strata]))

    @property
    def reference(self) -> NDArray[np.intp]:
        """The rows of all test spaces, in the order of the table."""
        first = self.strata[0].test
        if all(stratum.test is first for stratum in self.strata):
            return first
        return np.unique(np.concatenate([stratum.test for stratum in self.strata]))

    @property
    def world(self) -> Population:
        """D^CF; D where there is none."""
        return self.counterfactual or self.population

    @property
    def weighted_worlds(self) -> Sequence[tuple[Population, int]]:
        """The counterfactual worlds that groups are averaged over; none where D^CF is one."""
        return self.worlds or [(drawn, 1) for drawn in self.draws]

    @property
    def identity(self) -> RowIdentity:
        """The ids and outcomes of the rows of D."""
        return RowIdentity(ids=self.population.ids, is_negative=self.is_negative)

    def centers(self) -> Pair[Centers]:
        """Give the complainants' own outcomes: as they are, and as they would have been."""
        if self.is_negative_cf is None:
            raise TypeError("the plan admits no method that needs an outcome that was not decided")
        rows = self.complainants
        ids = self.population.ids[rows]
        return Pair(
            control=self._centers(ids, self.is_negative[rows]),
            test=self._centers(ids, self.is_negative_cf[rows]),
        )

    def _centers(self, ids: NDArray[Any], outcomes: NDArray[Any]) -> Centers:
        return Centers(ids=ids, is_negative=outcomes, marks=self._marks(outcomes))

    @property
    def refusal_cf(self) -> NDArray[Any] | None:
        """Outcomes in D^CF, as codes; of complainants with draws, what is averaged over these."""
        would_be = self.is_negative_cf
        if would_be is None:
            return None
        return self.kind.expected(would_be, self.complainants, self.refused_in_draws)

    def embed(self) -> Embedding:
        """Fit the distance on D."""
        embedding = Embedding.fit(
            self.population, self.attributes, scaling=self.similarity.scaling, parts=self.parts
        )
        learn = partial(self._sample, embedding)
        return fit_distance(self.similarity.distance, embedding, self.attributes, learn)

    def _sample(self, embedding: Embedding) -> Sample:
        """Give what a distance may learn from."""
        protected, reference = (np.zeros(len(self.population), dtype=np.bool_) for _ in range(2))
        for stratum in self.fitted_on or self.strata:
            protected[stratum.control] = True
            reference[stratum.test] = True
        names = (self.population.categories(name) for name in embedding.nominal)
        return Sample(
            points=embedding.apply(self.population).points,
            is_protected=protected,
            is_reference=reference & ~protected,
            is_negative=self.is_negative,
            levels=tuple(len(each.levels) for each in names),
        )

    def drawn_centers(self) -> tuple[Centers, ...]:
        """Give the outcomes that the complainants would have had in each draw."""
        refused = () if self.refused_in_draws is None else self.refused_in_draws
        ids = self.population.ids[self.complainants]
        return tuple(self._centers(ids, each) for each in refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The groups of every method, with what provenance wants to know."""

    pairs: Mapping[str, Pair[Groups]]  # by method name
    distance_rules: Mapping[str, str]  # how equal distances were told, by attribute
    backends: Mapping[str, str]  # which search answered, by what was searched
    # where people stand; None where there is one for each ground
    embedding: Embedding | None = None
    # the groups of people, without any centers, by what was searched: "control", and "factual" or
    # "counterfactual" for the test groups around such centers, or "counterfactual 0",
    # "counterfactual 1" … around draws. Empty where no groups were searched
    nearest: Mapping[str, NearestGroups] = field(default_factory=dict)
    matched: MatchedGroups | None = None  # the test groups of the matched comparison

    @property
    def own_matches(self) -> Sums | None:
        """Sums over each complainant's own matches, where people were matched."""
        return None if self.matched is None else self.matched.own

    @property
    def counted(self) -> dict[str, Counted]:
        """What was counted, by what was searched."""
        return {what: each.counted for what, each in self.nearest.items()}

    def matched_arrays(self) -> dict[str, Any] | None:
        """Return what was found of matched groups as arrays: what `group` takes as `matched`."""
        return None if self.matched is None else self.matched.arrays()

    @property
    def control(self) -> NearestGroups | None:
        """The control groups, which do not depend on the counterfactuals.

        A grouping of the same people under other counterfactuals can take them over.
        """
        return self.nearest.get("control")

    def with_doubt(self, doubts: Mapping[int, NDArray[np.float64]]) -> Grouping:
        """Add the variance of the shares in matched test groups, by the index of k."""
        if self.matched is None or not doubts:
            return self
        matched = self.matched.with_doubt(doubts)
        pairs = {
            name: replace(pair, test=matched) if pair.test is self.matched else pair
            for name, pair in self.pairs.items()
        }
        return replace(self, pairs=pairs, matched=matched)

    def around(self, center: Center) -> tuple[NearestGroups, ...]:
        """Give the test groups that were searched around such centers: one, or one per draw."""
        found = self.nearest.items()
        return tuple(each for what, each in found if what.partition(" ")[0] == center.value)

    def at(self, method: Method, index: int, *, draw: int | None = None) -> Pair[Group]:
        """Give both groups of a method, for every complainant at the index-th k.

        With `draw`, the test group of this draw alone, where groups are averaged over draws.
        """
        pair = self.pairs[method.name]
        test = pair.test
        if draw is not None and isinstance(test, DrawnGroups | DrawnCenters):
            test = test.draws[draw]
        return Pair(control=pair.control.at(index), test=test.at(index))


def build_groups(
    situation: Situation,
    methods: Collection[Method],
    *,
    control: NearestGroups | None = None,
    counted: Mapping[str, Counted] | None = None,
    matched: Mapping[str, Any] | None = None,
    shared: SharedSpaces | None = None,
    counts_only: bool = False,
    has_evidence: HasEvidence | None = None,
    progress: Progress = discard_progress,
) -> Grouping:
    """Build the groups of all methods and all k; each space is searched once per kind of center.

    Control groups that are known already are not searched for again; where everything was counted
    already, by what was searched, nothing is. `shared` is filled by the first of several groupings
    of the same people. With `counts_only`, how far the test groups of matched people lie, which no
    count depends on, is left out; with `has_evidence`, so may be all but the shares of matched
    groups that have none.
    """
    embedding = None if shared is None else shared.embedding
    if embedding is None:
        embedding = situation.embed()
    if shared is not None:
        shared.embedding = embedding
    compared = any(m.count_neighbours for m in methods)
    # how far matched people lie is asked in the world of the audit alone
    wanted = Wanted.of(
        methods,
        has_worlds=bool(situation.weighted_worlds),
        measured=control is None and not counts_only,
    )
    backends: dict[str, str] = {}
    if situation.workers is not None and counted is None and compared:
        from mutandis.evidence.tiles import count_in_tiles

        tiled = count_in_tiles(
            situation, embedding, wanted, control=control, shared=shared, progress=progress
        )
        counted, matched, backends = tiled.counted, tiled.matched, tiled.backends
    builder = GroupBuilder(
        situation,
        embedding,
        progress,
        counted=counted,
        matched=matched,
        shared=shared,
        has_evidence=has_evidence,
    )
    tests: dict[str, NearestGroups] = {}
    # one space after the other, so that each is prepared once
    for center in wanted.centers:
        tests |= builder.test(center, over_draws=wanted.over_draws, matched=wanted.matched)
    if wanted.matched:
        builder.match(control)
    searched: dict[str, NearestGroups] = {}
    if compared:
        searched["control"] = builder.control() if control is None else control
    searched |= tests
    tested = builder.matched(searched["control"]) if wanted.matched else None
    if wanted.matched and Center.COUNTERFACTUAL not in wanted.centers:
        progress(len(situation.complainants))
    backends |= builder.backends
    return Grouping(
        pairs=_pairs(situation, methods, searched, tested),
        distance_rules=embedding.rules,
        backends={
            what: backends[what]
            for what in ("control", *(each.value for each in Center))
            if what in backends
        },
        embedding=embedding,
        nearest=searched,
        matched=tested,
    )


def _pairs(
    situation: Situation,
    methods: Collection[Method],
    searched: Mapping[str, NearestGroups],
    matched: MatchedGroups | None,
) -> dict[str, Pair[Groups]]:
    """Put the two groups of each method together from what was searched and from the centers."""
    centers = situation.centers() if any(m.count_centers for m in methods) else None
    drawn = situation.drawn_centers()

    def test(method: Method) -> Groups:
        if method.center.value in searched:
            found = searched[method.center.value]
            return (
                replace(found, centers=centers.test) if centers and method.count_centers else found
            )
        around = [each for what, each in searched.items() if what.startswith(method.center.value)]
        if method.count_centers:
            around = [replace(a, centers=c) for a, c in zip(around, drawn, strict=True)]
        return DrawnGroups(
            draws=tuple(around), origins=replace(around[0].origins, population=situation.world)
        )

    def pair(method: Method) -> Pair[Groups]:
        if method.matched and matched is not None:
            return Pair(control=searched["control"], test=matched)
        if centers is None or not method.count_centers:
            return Pair(control=searched["control"], test=test(method))
        if not method.count_neighbours:
            return Pair(
                control=centers.control, test=DrawnCenters(draws=drawn) if drawn else centers.test
            )
        return Pair(
            control=replace(searched["control"], centers=centers.control), test=test(method)
        )

    return {method.name: pair(method) for method in methods}


def regroup(
    worlds: Iterable[Situation],
    methods: Collection[Method],
    *,
    control: NearestGroups | None,
    shared: SharedSpaces,
    has_evidence: HasEvidence | None = None,
    progress: Progress = discard_progress,
) -> Iterator[dict[tuple[str, int], Group]]:
    """Give the test groups of the same people in several worlds, by method and index of k.

    Control groups stay as they are. Few people are matched in many worlds at once, which takes
    hardly longer than in one.
    """
    waiting = iter(worlds)
    matched = [method for method in methods if method.matched]
    for first in waiting:
        here = [first, *islice(waiting, worlds_at_once(first) - 1 if matched else 0)]
        found: list[dict[tuple[str, int], Group]] = [{} for _ in here]
        others, averaged = methods, any(each.weighted_worlds for each in here)
        if control is not None and len(here) > 1 and not averaged:
            others = [method for method in methods if not method.matched]
            if shared.embedding is None:
                shared.embedding = first.embed()
            builder = GroupBuilder(
                first, shared.embedding, progress, shared=shared, has_evidence=has_evidence
            )
            for world, at_k in zip(found, builder.matched_in(here, control), strict=True):
                world |= {(matched[0].name, index): each for index, each in enumerate(at_k)}
            progress(0 if others else len(here) * len(first.complainants))
        for world, situation in zip(found, here if others else (), strict=False):
            grouping = build_groups(
                situation,
                others,
                control=control,
                shared=shared,
                has_evidence=has_evidence,
                progress=progress,
            )
            world |= {
                (method.name, index): grouping.at(method, index).test
                for method in others
                for index in range(len(situation.ks))
            }
        yield from found


def worlds_at_once(situation: Situation) -> int:
    """Tell in how many worlds like that of a situation people are matched at once."""
    if situation.workers is not None or situation.weighted_worlds:
        return 1
    people = max(1, len(situation.protected))
    places = MATCHES * people + max(situation.ks) * len(situation.complainants)
    return max(1, min(_MATCHED // people, _ADDED_UP // places))
