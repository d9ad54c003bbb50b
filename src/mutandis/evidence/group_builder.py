"""Find the groups of every complainant: one pass over the strata of a situation.

No places are kept: a space is placed when it is searched, its complainants when they are searched
for, and both are placed anew when a case is asked for. All that stays are integer counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from mutandis.engine.tally import Sums
from mutandis.evidence.groups import Caliper, Counted, Group, NearestGroups
from mutandis.evidence.matched_groups import (
    MatchedGroups,
    MatchedSpace,
    compare_matched,
    reach_of,
)
from mutandis.evidence.matches import (
    DRAWS,
    MATCHES,
    Matcher,
    Matches,
    Scale,
    SpaceFacts,
    draw_values,
    parts_for,
)
from mutandis.evidence.methods import Center
from mutandis.search.choose import choose_search
from mutandis.search.embedding import Embedding, LazyEmbedding
from mutandis.search.engine import Queries, Space, find_neighbourhoods
from mutandis.search.ties import Neighbourhoods

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.population import Population
    from mutandis.evidence.matched_groups import HasEvidence
    from mutandis.evidence.methods import Method
    from mutandis.evidence.semantics import Situation
    from mutandis.evidence.spaces import Stratum
    from mutandis.search.distance import Points
    from mutandis.search.embedding import Embedded
    from mutandis.search.engine import Listing, Progress, Search

__all__ = ["GroupBuilder", "PreparedSpace", "SharedSpaces", "Wanted", "name_backends"]

_T = TypeVar("_T", bound=np.generic)

# complainants who are placed and searched for at a time
_CHUNK = 1 << 17


@dataclass(slots=True)
class SharedSpaces:
    """What groupings of the same people in several worlds have in common, prepared once."""

    embedding: Embedding | None = None
    spaces: list[PreparedSpace] = field(default_factory=list)
    stored: list[Any] = field(default_factory=list)  # what workers read, by `tiles`


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be searched for."""

    centers: tuple[Center, ...]  # of test groups
    over_draws: bool  # whether test groups are averaged over draws
    matched: bool
    listed: bool  # whether it is kept who stands for whom

    @classmethod
    def of(cls, methods: Iterable[Method], *, has_worlds: bool, measured: bool) -> Wanted:
        """Settle what methods need; how far matched people lie is `measured` or not."""
        compared = [m for m in methods if m.count_neighbours]
        wanted = {m.center for m in compared if measured or not m.matched}
        # the matched comparison has draws of its own, and one search says how far they lie
        open_groups = any(m.needs_counterfactual and not m.matched for m in compared)
        return cls(
            centers=tuple(each for each in Center if each in wanted),
            over_draws=has_worlds and open_groups,
            matched=any(m.matched for m in compared),
            listed=measured,
        )

    def searches(self, worlds: Sequence[tuple[Population, int]], *, known: bool) -> int:
        """Count the groups that each complainant is searched for; control groups may be known."""
        many = sum(weight for _, weight in worlds) if self.over_draws else 1
        tests = (many if each is Center.COUNTERFACTUAL else 1 for each in self.centers)
        return (not known) + sum(tests)


class GroupBuilder:
    """One pass over the strata of a situation: holds what its searches share."""

    def __init__(
        self,
        situation: Situation,
        embedding: Embedding,
        progress: Progress,
        *,
        counted: Mapping[str, Counted] | None = None,
        matched: Mapping[str, Any] | None = None,
        shared: SharedSpaces | None = None,
        to_match: NDArray[np.intp] | None = None,
        has_evidence: HasEvidence | None = None,
    ) -> None:
        self._situation = situation
        self._to_match = to_match  # rows of the control space, where not all of them
        self._has_evidence = has_evidence
        self._counted, self._matched = counted, matched
        self._embedding = embedding
        self._progress = progress
        self._everyone = LazyEmbedding(embedding=embedding, population=situation.population)
        self._spaces = [] if shared is None else shared.spaces
        self._keeps_spaces = shared is not None
        self._matches: list[tuple[Matches, Scale]] = []
        # by stratum: the nearest to everyone's counterfactual, found with the test groups
        self._nearest: dict[int, list[Neighbourhoods]] = {}
        self._centers: dict[int, Embedded] = {}  # around which, where that was one search
        self.backends: dict[str, str] = {}

    def control(self) -> NearestGroups:
        """Find the control groups, each complainant excluded from her own by identity."""
        return self._find("control", self._situation.population, in_control=True)

    def test(
        self, center: Center, *, over_draws: bool = False, matched: bool = False
    ) -> dict[str, NearestGroups]:
        """Find the test groups around factual or counterfactual centers, or around each draw.

        With `matched`, the nearest to determined counterfactuals are found as well, for `match`.
        """
        name = center.value
        if center is Center.FACTUAL:
            return {name: self._find(name, self._situation.population, in_control=False)}
        if not over_draws:
            more = MATCHES if matched and not self._situation.weighted_worlds else 0
            return {name: self._find(name, self._situation.world, in_control=False, more=more)}
        found: dict[str, NearestGroups] = {}
        for world, weight in self._situation.weighted_worlds:
            groups = self._find(f"{name} {len(found)}", world, in_control=False)
            found |= {f"{name} {len(found) + each}": groups for each in range(weight)}
        return found

    def matched(self, control: NearestGroups) -> MatchedGroups:
        """Match the people of the control groups, which were the last to be searched for."""
        situation, embedding = self._situation, self._embedding
        centers = LazyEmbedding(
            embedding=embedding, population=situation.world, among=situation.complainants
        )
        if self._matched is not None:
            tests = [stratum.test for stratum in situation.strata]
            return MatchedGroups.restored(self._matched, control, centers, tests)
        found = self._matches or self.match()
        spaces, groups, own, everyone = [], [], [], []
        for stratum, (matches, scale) in zip(situation.strata, found, strict=True):
            mine, in_worlds = self._compare(stratum, control, matches, scale)
            groups.append(in_worlds[0])
            spaces.append(
                MatchedSpace(
                    test=stratum.test, key=matches.key, people=matches.people, parts=matches.parts
                )
            )
            own.append(matches.sums(np.searchsorted(stratum.control, stratum.complainants)))
            everyone.append(mine)
        return MatchedGroups(
            at_k=_in_order(groups, everyone),
            own=own[0] if len(own) == 1 else Sums.join(own).take(_back(everyone)),
            spaces=tuple(spaces),
            control=control,
            centers=centers,
        )

    def matched_in(
        self, worlds: Sequence[Situation], control: NearestGroups
    ) -> list[tuple[Group, ...]]:
        """Give the groups of matched people for each k in several worlds, all at once."""
        groups, everyone = [], []
        for stratum in self._situation.strata:
            matcher, facts = self._matcher(stratum)
            rows = self._matched_rows(stratum, control)
            found = matcher.find_each(
                (self._places_in(world, rows, facts) for world in worlds), MATCHES
            )
            together = Matches.join([_for_all(each, stratum, rows) for each in found])
            mine, in_worlds = self._compare(
                stratum, control, together, matcher.scale, worlds=len(worlds)
            )
            groups.append(in_worlds)
            everyone.append(mine)
        return [_in_order(each, everyone) for each in zip(*groups, strict=True)]

    def _compare(
        self,
        stratum: Stratum,
        control: NearestGroups,
        matches: Matches,
        scale: Scale,
        *,
        worlds: int = 1,
    ) -> tuple[NDArray[np.intp], list[tuple[Group, ...]]]:
        """Give the places of a stratum's complainants among all, and their groups in each world."""
        searched = self._search(stratum.control, in_control=True)
        points = self._embedding.apply(self._situation.population, stratum.complainants).points
        # the control groups may be those of more people
        mine = np.searchsorted(control.own_rows, stratum.complainants)
        groups = compare_matched(
            control,
            mine,
            rows=np.searchsorted(stratum.control, stratum.complainants),
            queries=self._queries(stratum.complainants, searched, points),
            standing=cast("NDArray[np.intp]", searched.standing),
            search=searched.search,
            matches=matches,
            scale=scale,
            names=self._embedding.names,
            worlds=worlds,
            has_evidence=self._has_evidence,
        )
        return mine, groups

    def match(self, control: NearestGroups | None = None) -> list[tuple[Matches, Scale]]:
        """Find the matches of everyone in the control spaces, for `matched`.

        Of those who are in none of the `control` groups, where these are known, any will do.
        """
        if self._matched is not None:
            return []
        for stratum in self._situation.strata:
            matcher, facts = self._matcher(stratum)
            nearest: list[Neighbourhoods] = []
            rows = self._matched_rows(stratum, control)
            placed = self._centers.pop(id(stratum), None)
            if placed is not None and len(placed.points) != len(rows):
                placed = None
            centers = self._places_in(self._situation, rows, facts, placed)
            # where values between are drawn, these are not what was searched around
            if isinstance(centers, list) and len(centers) == 1:
                nearest = self._nearest.pop(id(stratum), nearest)
            known = Neighbourhoods.join(nearest) if nearest else None
            matches = matcher.find(centers, MATCHES, known)
            if self._to_match is None:
                matches = _for_all(matches, stratum, rows)
            self._matches.append((matches, matcher.scale))
        return self._matches

    def _matcher(self, stratum: Stratum) -> tuple[Matcher, SpaceFacts]:
        """Prepare the search for matches in the test space of a stratum."""
        situation, searched = self._situation, self._search(stratum.test, in_control=False)
        space = cast("Space", searched.space)
        facts = searched.facts or SpaceFacts.of(space)
        matcher = Matcher(
            embedding=self._embedding,
            scale=self.scale(stratum, facts),
            space=space,
            search=searched.search,
            ties=situation.similarity.ties,
            max_distance=situation.similarity.max_distance,
            parts=parts_for(max(situation.ks)),
        )
        return matcher, facts

    def _places_in(
        self,
        situation: Situation,
        rows: NDArray[np.intp],
        facts: SpaceFacts,
        placed: Embedded | None = None,
    ) -> Iterable[tuple[Embedded, int]]:
        """Give where rows stand in each counterfactual world, with its weight.

        `placed` is where they stand in the only one, where that is known.
        """
        worlds = situation.weighted_worlds or ((situation.world, 1),)
        if placed is not None:
            centers: Iterable[tuple[Embedded, int]] = [(placed, 1)]
        else:
            centers = ((self._embedding.apply(world, rows), weight) for world, weight in worlds)
        if situation.draws:
            return centers
        return [(each, w) for world, w in centers for each in draw_values(world, facts)]

    def scale(self, stratum: Stratum, facts: SpaceFacts) -> Scale:
        """Give the scale on which the matched groups of a stratum are balanced."""
        situation, names = self._situation, self._embedding.nominal
        levels = tuple(len(situation.population.categories(name).levels) for name in names)
        # no group, nor all matches of one person, can hold more
        most = max(len(stratum.control), len(stratum.test))
        # nor do weights add up to more, also where values between are drawn in each world
        most = max(most, DRAWS * sum(weight for _, weight in situation.worlds))
        return Scale.of(self._embedding, facts, levels, most)

    def _matched_rows(
        self, stratum: Stratum, control: NearestGroups | None = None
    ) -> NDArray[np.intp]:
        """Give the rows of a control space that are matched: all, or those in groups of a few."""
        if self._to_match is not None:
            return self._to_match
        few = 2 * len(stratum.complainants) < len(stratum.control)
        if control is None or not few or not self._keeps_spaces:
            return stratum.control
        searched = self._search(stratum.control, in_control=True)
        standing = cast("NDArray[np.intp]", searched.standing)
        points = self._embedding.apply(self._situation.population, stratum.complainants).points
        queries = self._queries(stratum.complainants, searched, points)
        reached = np.zeros(int(standing.max()) + 1, dtype=np.bool_)
        reached[queries.own] = True

        def note(_: NDArray[np.intp], listing: Listing) -> None:
            reached[listing.points] = True

        mine, caliper = np.searchsorted(control.own_rows, stratum.complainants), control.caliper
        limits = None if caliper is None else caliper.limits[mine]
        searched.search.visit(queries, *reach_of(control.found.take(mine), limits), note)
        return stratum.control[reached[standing]]

    def _find(
        self, what: str, world: Population, *, in_control: bool, more: int = 0
    ) -> NearestGroups:
        situation, embedding = self._situation, self._embedding
        rows = situation.complainants
        spaces = tuple(s.control if in_control else s.test for s in situation.strata)
        answered = _Accumulator(rows, situation.strata, situation.ks, situation.width)
        caliper = self._caliper(world, rows)
        if self._counted is not None:
            answered.found = self._counted[what].found
            answered.overflow_distance = embedding.apply(world, rows).overflow_distance
            within = self._counted[what].within
            caliper = caliper if caliper is None else replace(caliper, within=within)
        names = []
        for stratum, space in zip(situation.strata, spaces, strict=True):
            answered.note_stratum(stratum)
            if self._counted is not None:
                continue
            searched = self._search(space, in_control=in_control)
            for complainants in searched.in_chunks(stratum.complainants):
                centers = embedding.apply(world, complainants)
                queries = self._queries(complainants, searched, centers.points)
                answers = self._ask(stratum, searched, queries, more)
                if more and id(stratum) in self._nearest and len(queries) == len(rows):
                    self._centers[id(stratum)] = centers
                mine = answered.note(complainants, answers, centers.overflow_distance)
                if caliper is not None:
                    caliper.count(mine, searched.search, queries, answers, searched.marks)
            names.append(searched.search.name)
        if names:
            self.backends[what.partition(" ")[0]] = name_backends(names, situation.strata)
        return NearestGroups(
            found=answered.found,
            ks=situation.ks,
            ties=situation.similarity.ties,
            origins=LazyEmbedding(embedding=embedding, population=world, among=rows),
            own_rows=rows if in_control else np.broadcast_to(np.intp(-1), len(rows)),
            overflow_distance=answered.overflow_distance,
            points=self._everyone,
            metric=embedding.metric,
            spaces=spaces,
            space_of=answered.space_of,
            identity=situation.identity,
            caliper=caliper,
        )

    def _ask(
        self,
        stratum: Stratum,
        searched: PreparedSpace,
        queries: Queries,
        more: int,
    ) -> Neighbourhoods:
        """Search for groups; the `more` nearest of everyone in the control space are set aside."""
        ask = partial(
            find_neighbourhoods,
            searched.search,
            queries,
            marks=searched.marks,
            progress=self._progress,
        )
        sizes = self._situation.ks
        if not more or not np.array_equal(stratum.complainants, self._matched_rows(stratum)):
            return ask(sizes)
        answers = ask((*sizes, min(more, len(stratum.test))))
        self._nearest.setdefault(id(stratum), []).append(answers.at(slice(-1, None)))
        return answers.at(slice(len(sizes)))

    def _caliper(self, world: Population, rows: NDArray[np.intp]) -> Caliper | None:
        farthest = self._situation.similarity.max_distance
        if farthest is None:
            return None
        overflow_distance = self._embedding.apply(world, rows).overflow_distance
        return Caliper.of(
            farthest, overflow_distance, self._embedding.metric, width=self._situation.width
        )

    def _search(self, rows: NDArray[np.intp], *, in_control: bool) -> PreparedSpace:
        """Prepare the search of a space; the last one is at hand for centers in another world."""
        for known in self._spaces:
            if known.rows is rows and in_control == (known.standing is not None):
                return known
        if not self._keeps_spaces:
            self._spaces.clear()  # makes room before the next one is built
        points = self._embedding.apply(self._situation.population, rows).points
        marks = self._situation.marks_of(rows)
        space, standing = Space.of(points, marks, self._embedding.metric)
        self._spaces.append(
            PreparedSpace(
                rows=rows,
                space=None if in_control else space,
                search=choose_search(space, threads=self._situation.threads),
                standing=standing if in_control else None,
                repeats=len(space.points) < len(rows),
                marks=space.marks,
            )
        )
        return self._spaces[-1]

    def _queries(
        self, complainants: NDArray[np.intp], searched: PreparedSpace, centers: Points
    ) -> Queries:
        if searched.standing is None:
            return Queries.outside(centers)
        own = searched.standing[np.searchsorted(searched.rows, complainants)]
        marks = self._situation.marks_of(complainants)
        if searched.marks is None:
            return Queries(points=centers, own=own, own_negative=marks[:, 0])
        nothing = np.zeros(len(own), dtype=np.bool_)
        own_marks = marks.astype(np.int64, copy=False)
        return Queries(points=centers, own=own, own_negative=nothing, own_marks=own_marks)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSpace:
    """A space whose search is ready, and whether several rows stand on one point.

    Of a test space the points are kept, of a control space the point on which each row stands.
    """

    rows: NDArray[np.intp]
    space: Space | None
    search: Search
    standing: NDArray[np.intp] | None
    repeats: bool
    marks: NDArray[np.int64] | None  # those at each point, where they are more than a mask
    facts: SpaceFacts | None = None  # of a whole test space, where they are known

    def in_chunks(self, complainants: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Give complainants a part at a time, so that their places take little memory.

        Duplicate complainants are searched for once, so where rows repeat, all come together.
        """
        size = len(complainants) if self.repeats else _CHUNK
        for start in range(0, len(complainants), size):
            yield complainants[start : start + size]


def _for_all(matches: Matches, stratum: Stratum, rows: NDArray[np.intp]) -> Matches:
    """Give any matches to the rows of a control space for which none were looked for."""
    if len(rows) == len(stratum.control):
        return matches
    key = np.zeros(len(stratum.control), dtype=np.intp)
    key[np.searchsorted(stratum.control, rows)] = matches.key
    return replace(matches, key=key)


def _in_order(
    groups: Sequence[tuple[Group, ...]], everyone: Sequence[NDArray[np.intp]]
) -> tuple[Group, ...]:
    """Put the groups of the strata together for each k, in the order of all complainants."""
    if len(groups) == 1:
        return groups[0]
    back = _back(everyone)
    return tuple(Group.join(parts).take(back) for parts in zip(*groups, strict=True))


def _back(everyone: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
    return np.argsort(np.concatenate(everyone), kind="stable")


class _Accumulator:
    """What was answered so far; little memory for what all complainants have in common."""

    def __init__(
        self, rows: NDArray[np.intp], strata: Sequence[Stratum], ks: Sequence[int], width: int
    ) -> None:
        self._rows, self._width = rows, width
        self._order = {id(stratum): place for place, stratum in enumerate(strata)}
        alone = len(strata) == 1
        self.found = Neighbourhoods.empty(0, len(ks), width)
        self.overflow_distance: NDArray[np.float64] = np.broadcast_to(0.0, len(rows))
        zeros = np.broadcast_to(np.intp(0), len(rows))
        self.space_of: NDArray[np.intp] = zeros if alone else np.array(zeros)

    def note(
        self,
        complainants: NDArray[np.intp],
        answers: Neighbourhoods,
        overflow_distance: NDArray[np.float64],
    ) -> NDArray[np.intp]:
        """Write down what some complainants were answered; give their places among all."""
        mine = np.searchsorted(self._rows, complainants)
        if len(mine) == len(self._rows):
            self.found = answers
        else:
            if not len(self.found.radius):
                ks = self.found.radius.shape[1]
                self.found = Neighbourhoods.empty(len(self._rows), ks, self._width)
            self.found.put(mine, answers)
        if overflow_distance.any():
            self.overflow_distance = _written(self.overflow_distance, mine, overflow_distance)
        return mine

    def note_stratum(self, stratum: Stratum) -> None:
        """Record which space the complainants of a stratum are searched in."""
        if len(self._order) > 1:
            mine = np.searchsorted(self._rows, stratum.complainants)
            self.space_of[mine] = self._order[id(stratum)]


def _written(array: NDArray[_T], rows: NDArray[np.intp], values: Any) -> NDArray[_T]:
    """Write into an array, of which a copy is made if it stands for one value throughout."""
    array = array if array.flags.writeable else array.copy()
    array[rows] = values
    return array


def name_backends(names: Sequence[str], strata: Sequence[Stratum]) -> str:
    """Name the search that answered, and where there were several, in which space each did."""
    if len(set(names)) == 1:
        return names[0]
    return ", ".join(f"{n} ({each.label})" for n, each in zip(names, strata, strict=True))
