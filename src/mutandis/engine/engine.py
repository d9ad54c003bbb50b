"""The only route from worlds to counts: `Engine.tallies`.

An engine prepares the spaces of a study and its control groups once. Draws, refits, parts of an
effect and other worldviews differ only in the worlds that are handed in.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mutandis.data.spaces import restrict_complainants
from mutandis.engine.matched import HasEvidence, compare_matched, reach_of
from mutandis.engine.matches import (
    DRAWS,
    MATCHES,
    Matcher,
    Matches,
    Scale,
    SpaceFacts,
    draw_values,
    parts_for,
)
from mutandis.engine.methods import CST_MATCHED, Center
from mutandis.engine.nearest import Aside, PreparedSpace, Spaces, people_of
from mutandis.engine.tally import Group, Links, Nearest, Sums, Tally
from mutandis.errors import MutandisWarning
from mutandis.geometry.index import discard_progress

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.population import Population
    from mutandis.data.spaces import Stratum
    from mutandis.engine.methods import Method
    from mutandis.engine.study import Mark, Study, World
    from mutandis.geometry.embedding import Embedded, Embedding
    from mutandis.geometry.index import Listing, Progress, Queries, Space
    from mutandis.workers import Workers

__all__ = ["Engine", "Pass", "Wanted", "name_backends"]

# people who are matched at once in several worlds, and places of control groups and matches that
# are added up: beyond that it takes no less time, and libraries are loaded that small audits spare
_MATCHED, _ADDED_UP = 10_000, 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be searched for.

    Parameters
    ----------
    centers
        Around whom test groups are searched.
    over_parts
        Whether test groups are averaged over the parts of a mixture.
    matched
        Whether people are matched.
    listed
        Whether it is kept who matches whom.
    """

    centers: tuple[Center, ...]
    over_parts: bool
    matched: bool
    listed: bool

    @classmethod
    def of(cls, methods: Iterable[Method], world: World, *, measured: bool) -> Wanted:
        """Settle what methods need; how far matched people lie is `measured` or not."""
        compared = [m for m in methods if m.count_neighbours]
        wanted = {m.center for m in compared if measured or not m.matched}
        # the matched comparison has parts of its own, and one search tells how far they lie
        open_groups = any(m.needs_counterfactual and not m.matched for m in compared)
        return cls(
            centers=tuple(each for each in Center if each in wanted),
            over_parts=bool(world.parts) and open_groups,
            matched=any(m.matched for m in compared),
            listed=measured,
        )

    def searches(self, world: World, *, known: bool) -> int:
        """Count the groups that each complainant is searched for; control groups may be known."""
        many = world.weight if self.over_parts else 1
        tests = (many if each is Center.COUNTERFACTUAL else 1 for each in self.centers)
        return (not known) + sum(tests)


class Engine:
    """Counts the groups of a study in one world after the other.

    Parameters
    ----------
    study
        Who is compared with whom, on what, and how.
    threads
        Number of threads, -1 for all.
    workers
        Workers that answer in tasks; None: nothing is cut into tasks.
    embedding, prepared
        The scale and the spaces, where they are at hand.
    """

    def __init__(
        self,
        study: Study,
        *,
        threads: int = -1,
        workers: Workers | None = None,
        embedding: Embedding | None = None,
        prepared: Sequence[PreparedSpace] = (),
    ) -> None:
        self.study, self.threads, self.workers = study, threads, workers
        self._embedding, self._prepared = embedding, list(prepared)
        self.stored: list[Any] = []  # what workers read, by `tiles`
        # groups around parts of a mixture, which are asked for one by one after the mixture
        self.found: list[tuple[Population, NDArray[np.intp], Nearest]] = []
        self._finer: tuple[tuple[int, int], Engine] | None = None
        # the control groups that were searched last, and of whom
        self._control: tuple[NDArray[np.intp], Nearest] | None = None

    @cached_property
    def embedding(self) -> Embedding:
        """The scale on which people are measured."""
        return self._embedding or self.study.embed()

    @cached_property
    def spaces(self) -> Spaces:
        """The spaces of the study."""
        return Spaces(
            study=self.study,
            embedding=self.embedding,
            threads=self.threads,
            keep=bool(self._prepared),
            prepared=self._prepared,
        )

    def tallies(
        self,
        worlds: Iterable[World],
        methods: Collection[Method],
        *,
        who: NDArray[np.intp] | None = None,
        measured: bool = False,
        needed: HasEvidence | None = None,
        progress: Progress = discard_progress,
    ) -> Iterator[Tally]:
        """Count the groups of all methods and all k in one world after the other.

        Parameters
        ----------
        worlds
            Made when they are asked for.
        methods
            Whose groups are counted; each space is searched once per kind of center.
        who
            Rows of complainants; default: all of them.
        measured
            Whether it is kept who matches whom, and how far matched people lie.
        needed
            Returns from sums of control and test groups who has evidence: of others, matched groups
            may have nothing but their sums.
        progress
            Called with the number of further complainants that were searched for.
        """
        strata = self.study.strata
        if who is not None:
            strata = restrict_complainants(strata, who)
        waiting = iter(worlds)
        several = any(each.matched for each in methods) and not measured
        for first in waiting:
            at_once = self._at_once(strata, first) if several else 1
            here = [first, *islice(waiting, at_once - 1)]
            asked = Pass(self, strata, methods, needed=needed, progress=progress)
            if len(here) > 1 and not any(each.parts for each in here):
                yield from asked.count_at_once(here)
            else:
                yield from (asked.count(each, measured=measured) for each in here)

    def at_once(self, who: NDArray[np.intp], world: World) -> int:
        """Return in how many worlds like this some people are matched in about the time of one."""
        return self._at_once(restrict_complainants(self.study.strata, who), world)

    def _at_once(self, strata: Sequence[Stratum], world: World) -> int:
        if self.workers is not None or world.parts:
            return 1
        matched = max(1, sum(self._number_matched(stratum) for stratum in strata))
        places = MATCHES * matched + max(self.study.ks) * len(people_of(strata))
        return max(1, min(_MATCHED // matched, _ADDED_UP // places))

    def _number_matched(self, stratum: Stratum) -> int:
        """Estimate how many people of a control space are matched."""
        few = len(stratum.complainants) * (max(self.study.ks) + 1)
        return min(len(stratum.control), few)

    def finer(self, k: int, parts: int, *, keep: bool) -> Engine:
        """Return an engine for groups of k on a finer scale.

        With `keep`, later calls return the same one.
        """
        if self._finer is not None and self._finer[0] == (k, parts):
            return self._finer[1]
        study = replace(self.study, ks=(k,), finer=parts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MutandisWarning)  # this engine has said it already
            finer = Engine(study, threads=self.threads, workers=self.workers)
            _ = finer.embedding
        if keep:
            self._finer = (k, parts), finer
        return finer

    def control(self, strata: Sequence[Stratum], progress: Progress) -> tuple[Nearest, str]:
        """Return the control groups of complainants: searched once, and then remembered.

        Each complainant is excluded by identity. The second result names the search that answered,
        empty where nothing was searched.
        """
        rows = people_of(strata)
        known = self.known_control(rows)
        if known is not None:
            return known, ""
        found, names = self.spaces.find(
            strata, self.study.population, in_control=True, progress=progress
        )
        self.remember_control(rows, found)
        return found, name_backends(names, strata)

    def known_control(self, rows: NDArray[np.intp]) -> Nearest | None:
        """Return the control groups of complainants that were counted already."""
        if self._control is None:
            return None
        known, found = self._control
        if known is rows:
            return found
        place = np.minimum(np.searchsorted(known, rows), len(known) - 1)
        return found.take(place) if np.array_equal(known[place], rows) else None

    def remember_control(self, rows: NDArray[np.intp], found: Nearest) -> None:
        """Keep the control groups of complainants, which no world changes."""
        self._control = rows, found

    def release(self) -> None:
        """Let go of spaces and control groups; they are made again when they are asked for."""
        self._control = None
        self.found.clear()
        self.spaces.prepared.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What one world adds to a study.

    Parameters
    ----------
    control
        Counts of control groups; None if none were searched.
    test
        Counts around each center, in each part of a mixture where groups are averaged over these.
    matched
        Matched groups for each k, and the sums over everyone's own matches.
    links
        Who matches whom, by stratum.
    backends
        Which search has answered, by what was searched.
    """

    control: Nearest | None
    test: Mapping[Center, Sequence[Nearest]]
    matched: tuple[tuple[Group, ...], Sums] | None
    links: tuple[Links, ...]
    backends: Mapping[str, str]


class Pass:
    """One pass over the strata of a study: what its searches share.

    Of a control space only some `rows` are matched where these are given.
    """

    def __init__(
        self,
        engine: Engine,
        strata: Sequence[Stratum],
        methods: Collection[Method],
        *,
        rows: NDArray[np.intp] | None = None,
        needed: HasEvidence | None = None,
        progress: Progress = discard_progress,
    ) -> None:
        self._engine, self._study, self._spaces = engine, engine.study, engine.spaces
        self._strata, self._methods, self._rows = strata, methods, rows
        self._needed, self._progress = needed, progress
        self._people = people_of(strata)
        self.backends: dict[str, str] = {}
        self.searched = False  # whether counterfactuals were searched around, and that was told

    def count(self, world: World, *, measured: bool) -> Tally:
        """Count the groups of one world."""
        wanted = Wanted.of(self._methods, world, measured=measured)
        compared = any(m.count_neighbours for m in self._methods)
        self._spaces.keep = not measured
        if compared and self._engine.workers is not None:
            from mutandis.engine.tiles import count_in_tiles

            counts = count_in_tiles(self._engine, self._strata, world, wanted, self._progress)
        else:
            counts = self._count(world, wanted, compared=compared)
        return self._tally(world, counts)

    def count_at_once(self, worlds: Sequence[World]) -> Iterator[Tally]:
        """Count the groups of several worlds; matched groups of all of them at once."""
        self._spaces.keep = True
        others = [method for method in self._methods if not method.matched]
        control = self.control()
        made = self._match_at_once(worlds, control)
        rest = Pass(
            self._engine, self._strata, others, needed=self._needed, progress=self._progress
        )
        for world, at_k in zip(worlds, made, strict=True):
            if others:
                tally = rest.count(world, measured=False)
            else:
                nothing: dict[Center, Sequence[Nearest]] = {}
                tally = self._tally(
                    world,
                    Counts(control=control, test=nothing, matched=None, links=(), backends={}),
                )
            if not rest.searched:
                self._progress(len(self._people))
            yield replace(tally, made={**tally.made, CST_MATCHED.name: at_k})

    def _count(self, world: World, wanted: Wanted, *, compared: bool) -> Counts:
        """Search one space after the other, so that each is prepared once."""
        self.searched = False
        if not wanted.listed and compared:
            self.control()  # so that only people in these groups are matched
        aside = Aside(number=MATCHES, rows=self._rows)
        test = {center: self.test(center, world, wanted, aside) for center in wanted.centers}
        matches = self.match(world, aside) if wanted.matched else []
        control = self.control() if compared else None
        matched: tuple[tuple[Group, ...], Sums] | None = None
        links: tuple[Links, ...] = ()
        if control is not None and matches:
            matched, links = self._compare_all(control, matches)
        if wanted.matched and not self.searched:
            self._progress(len(self._people))
        return Counts(
            control=control,
            test=test,
            matched=matched,
            links=links if wanted.listed else (),
            backends=self.backends,
        )

    def _tally(self, world: World, counts: Counts) -> Tally:
        study, decided = self._study, world.decided_on(self._people)
        tally = Tally(
            ks=study.ks,
            ties=study.ties,
            metric=self._engine.embedding.metric,
            control=counts.control,
            test={center.value: each[0] for center, each in counts.test.items() if len(each) == 1},
            own=study.marks(self._people),
            decided=None if decided is None else study.mark(decided),
            backends={
                what: counts.backends[what]
                for what in ("control", *(each.value for each in Center))
                if what in counts.backends
            },
            distance_rules=self._engine.embedding.rules,
        )
        made = {
            method.name: tuple(
                Group.average(
                    list(_over_parts(tally, method, k, counts=counts, world=world, mark=study.mark))
                )
                for k in range(len(study.ks))
            )
            for method in self._methods
            if world.parts and method.needs_counterfactual and not method.matched
        }
        if counts.matched is None:
            return replace(tally, made=made, links=counts.links)
        at_k, matches = counts.matched
        made[CST_MATCHED.name] = at_k
        return replace(tally, made=made, matches=matches, links=counts.links)

    def control(self) -> Nearest:
        """Find the control groups, each complainant excluded from their own by identity."""
        found, backend = self._engine.control(self._strata, self._progress)
        if backend:
            self.backends["control"] = backend
        return found

    def test(
        self, center: Center, world: World, wanted: Wanted, aside: Aside
    ) -> tuple[Nearest, ...]:
        """Find the test groups around factual or counterfactual centers, or around each part.

        The nearest to determined counterfactuals are found as well, for `match`.
        """
        population = self._study.population
        if center is Center.FACTUAL:
            return (self._find(center, population),)
        if not wanted.over_parts:
            also = aside if wanted.matched and not world.parts else None
            around = world.point or population
            for part, people, nearest in self._engine.found:
                if part is around and people is self._people:
                    return (nearest,)
            return (self._find(center, around, also),)
        found: list[Nearest] = []
        for part, weight in world.parts:
            nearest = self._find(center, part)
            self._engine.found.append((part, self._people, nearest))
            found += [nearest] * weight
        return tuple(found)

    def _find(self, center: Center, world: Population, aside: Aside | None = None) -> Nearest:
        self.searched |= center is Center.COUNTERFACTUAL
        found, names = self._spaces.find(
            self._strata, world, in_control=False, progress=self._progress, aside=aside
        )
        if names:
            self.backends[center.value] = name_backends(names, self._strata)
        return found

    def match(self, world: World, aside: Aside | None = None) -> list[tuple[Matches, Scale]]:
        """Find the matches of everyone in the control spaces, by stratum.

        Of those who are in none of the control groups, where these are known, any will do.
        """
        found = []
        for stratum in self._strata:
            matcher, facts = self._matcher(stratum, world)
            rows = self._matched_rows(stratum)
            placed, nearest = (None, None) if aside is None else aside.take(stratum)
            if placed is not None and len(placed.points) != len(rows):
                placed = None
            centers = self._places_in(world, rows, facts, placed)
            # where values between are drawn, these are not what was searched around
            if not isinstance(centers, list) or len(centers) > 1:
                nearest = None
            matches = matcher.find(centers, MATCHES, nearest)
            if self._rows is None:
                matches = _for_all(matches, stratum, rows)
            found.append((matches, matcher.scale))
        return found

    def _match_at_once(self, worlds: Sequence[World], control: Nearest) -> list[tuple[Group, ...]]:
        """Return the groups of matched people for each k in several worlds."""
        groups, everyone = [], []
        for stratum in self._strata:
            matcher, facts = self._matcher(stratum, worlds[0])
            rows = self._matched_rows(stratum)
            found = matcher.find_each(
                (self._places_in(world, rows, facts) for world in worlds), MATCHES
            )
            together = Matches.join([_for_all(each, stratum, rows) for each in found])
            in_worlds = self._compare(stratum, control, together, matcher.scale, worlds=len(worlds))
            groups.append(in_worlds)
            everyone.append(stratum.complainants)
        return [_in_order(each, everyone) for each in zip(*groups, strict=True)]

    def _compare_all(
        self, control: Nearest, matches: Sequence[tuple[Matches, Scale]]
    ) -> tuple[tuple[tuple[Group, ...], Sums], tuple[Links, ...]]:
        groups, own, links = [], [], []
        for stratum, (found, scale) in zip(self._strata, matches, strict=True):
            groups.append(self._compare(stratum, control, found, scale)[0])
            links.append(Links(key=found.key, people=found.people, parts=found.parts))
            own.append(found.sums(np.searchsorted(stratum.control, stratum.complainants)))
        everyone = [stratum.complainants for stratum in self._strata]
        sums = own[0] if len(own) == 1 else Sums.join(own).take(_back(everyone))
        return (_in_order(groups, everyone), sums), tuple(links)

    def _compare(
        self,
        stratum: Stratum,
        control: Nearest,
        matches: Matches,
        scale: Scale,
        *,
        worlds: int = 1,
    ) -> list[tuple[Group, ...]]:
        """Return the matched groups of a stratum's complainants in each world."""
        searched = self._spaces.get(stratum.control, in_control=True)
        if len(stratum.complainants) < len(self._people):
            control = control.take(np.searchsorted(self._people, stratum.complainants))
        return compare_matched(
            control,
            self._study,
            rows=np.searchsorted(stratum.control, stratum.complainants),
            queries=self._around_facts(stratum),
            standing=cast("NDArray[np.intp]", searched.standing),
            search=searched.search,
            matches=matches,
            scale=scale,
            embedding=self._engine.embedding,
            worlds=worlds,
            has_evidence=self._needed,
        )

    def _around_facts(self, stratum: Stratum) -> Queries:
        """Make queries around complainants as they are, in their control space."""
        people = stratum.complainants
        points = self._engine.embedding.apply(self._study.population, people).points
        searched = self._spaces.get(stratum.control, in_control=True)
        return self._spaces.queries(people, searched, points)

    def _matcher(self, stratum: Stratum, world: World) -> tuple[Matcher, SpaceFacts]:
        """Prepare the search for matches in the test space of a stratum."""
        study, searched = self._study, self._spaces.get(stratum.test, in_control=False)
        space = cast("Space", searched.space)
        facts = searched.facts or SpaceFacts.of(space)
        matcher = Matcher(
            embedding=self._engine.embedding,
            scale=self.scale(stratum, world, facts),
            space=space,
            search=searched.search,
            ties=study.ties,
            max_distance=study.max_distance,
            parts=parts_for(max(study.ks)),
        )
        return matcher, facts

    def scale(self, stratum: Stratum, world: World, facts: SpaceFacts) -> Scale:
        """Return the scale on which the matched groups of a stratum are balanced."""
        population, embedding = self._study.population, self._engine.embedding
        levels = tuple(len(population.categories(name).levels) for name in embedding.nominal)
        # no group, nor all matches of one person, can hold more, nor do weights add up to more,
        # also where values between are drawn in each world
        most = world.weight * (1 if world.drawn else DRAWS)
        most = max(most, len(stratum.control), len(stratum.test))
        return Scale.of(embedding, facts, levels, most)

    def _places_in(
        self,
        world: World,
        rows: NDArray[np.intp],
        facts: SpaceFacts,
        placed: Embedded | None = None,
    ) -> Iterable[tuple[Embedded, int]]:
        """Place rows in each part of a counterfactual world, with its weight.

        `placed` is where they are in the only one, where that is known.
        """
        parts = world.parts or ((world.point or self._study.population, 1),)
        if placed is not None:
            centers: Iterable[tuple[Embedded, int]] = [(placed, 1)]
        else:
            apply = self._engine.embedding.apply
            centers = ((apply(part, rows), weight) for part, weight in parts)
        if world.drawn:
            return centers
        return [(each, w) for part, w in centers for each in draw_values(part, facts)]

    def _matched_rows(self, stratum: Stratum) -> NDArray[np.intp]:
        """Return the rows of a control space that are matched: all, or those in groups of a few."""
        if self._rows is not None:
            return self._rows
        control = self._engine.known_control(self._people)
        few = 2 * len(stratum.complainants) < len(stratum.control)
        if control is None or not few or not self._spaces.keep:
            return stratum.control
        queries = self._around_facts(stratum)
        searched = self._spaces.get(stratum.control, in_control=True)
        standing = cast("NDArray[np.intp]", searched.standing)
        reached = np.zeros(int(standing.max()) + 1, dtype=np.bool_)
        reached[queries.own] = True

        def note(_: NDArray[np.intp], listing: Listing) -> None:
            reached[listing.points] = True

        mine = np.searchsorted(self._people, stratum.complainants)
        searched.search.visit(queries, *reach_of(control.take(mine)), note)
        return stratum.control[reached[standing]]


def _over_parts(
    tally: Tally, method: Method, index: int, *, counts: Counts, world: World, mark: Mark
) -> Iterator[Group]:
    """Iterate over a method's test groups in each part of a mixture."""
    decided = () if world.decided_parts is None else world.decided_parts
    if not method.count_neighbours:
        yield from (Group.of_centers(mark(each)) for each in decided)
        return
    for number, nearest in enumerate(counts.test[method.center]):
        group = tally.group(nearest, index)
        yield group.with_center(mark(decided[number])) if method.count_centers else group


def _for_all(matches: Matches, stratum: Stratum, rows: NDArray[np.intp]) -> Matches:
    """Assign any matches to the rows of a control space for which none were looked for."""
    if len(rows) == len(stratum.control):
        return matches
    key = np.zeros(len(stratum.control), dtype=np.intp)
    key[np.searchsorted(stratum.control, rows)] = matches.key
    return replace(matches, key=key)


def _in_order(
    groups: Sequence[tuple[Group, ...]], everyone: Sequence[NDArray[np.intp]]
) -> tuple[Group, ...]:
    """Join the groups of the strata for each k, in the order of all complainants."""
    if len(groups) == 1:
        return groups[0]
    back = _back(everyone)
    return tuple(Group.join(parts).take(back) for parts in zip(*groups, strict=True))


def _back(everyone: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
    return np.argsort(np.concatenate(everyone), kind="stable")


def name_backends(names: Sequence[str], strata: Sequence[Stratum]) -> str:
    """Name the search that answered, and where there were several, in which space each did."""
    if len(set(names)) == 1:
        return names[0]
    return ", ".join(f"{n} ({each.label})" for n, each in zip(names, strata, strict=True))
