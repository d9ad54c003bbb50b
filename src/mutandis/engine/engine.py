"""The only route from worlds to counts: `Engine.tallies`.

An engine prepares the spaces of a study and its control groups once. Draws, refits, parts of an
effect, other worldviews and relabelled decisions differ only in the worlds and marks that are
handed in.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mutandis.data.protection import restrict_complainants
from mutandis.engine.balance import DRAWS, Scale, SpaceFacts, draw_values
from mutandis.engine.matched import compare_matched, reach_of
from mutandis.engine.matches import MATCHES, Matcher, Matches, parts_for
from mutandis.engine.nearest import Spaces, people_of
from mutandis.engine.pack import gather, pack, unpack
from mutandis.engine.study import columns
from mutandis.engine.tally import CST_MATCHED, Center, Group, Links, Nearest, Sums, Tally
from mutandis.errors import MutandisWarning, PlanError
from mutandis.geometry.distances import distance_named
from mutandis.geometry.index import discard_progress

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.population import Population
    from mutandis.data.protection import Stratum
    from mutandis.engine.study import Study, World
    from mutandis.engine.tally import Method
    from mutandis.geometry.embedding import Embedded, Embedding
    from mutandis.geometry.index import Listing, Neighbourhoods, Progress, Space
    from mutandis.mapped import Rows
    from mutandis.workers import Workers

# people who are matched at once in several worlds, and places of control groups and matches that
# are added up: beyond that it takes no less time, and libraries are loaded that small audits spare
_MATCHED, _ADDED_UP = 10_000, 300_000


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
    embedding
        The scale, where it is at hand.
    """

    def __init__(
        self,
        study: Study,
        *,
        threads: int = -1,
        workers: Workers | None = None,
        embedding: Embedding | None = None,
    ) -> None:
        self.study, self.threads, self.workers = study, threads, workers
        self._embedding = embedding
        # groups around parts of a mixture, which are asked for one by one after the mixture
        self._around_parts: list[tuple[Population, Rows, Nearest]] = []
        self._finer: tuple[tuple[int, int], Engine] | None = None
        # the control groups that were searched last, and of whom
        self._control: tuple[Rows, Nearest] | None = None

    @cached_property
    def embedding(self) -> Embedding:
        """The scale on which people are measured."""
        return self._embedding or self.study.embed()

    @cached_property
    def _spaces(self) -> Spaces:
        return Spaces(study=self.study, embedding=self.embedding, threads=self.threads)

    @cached_property
    def _tiles(self) -> Any:
        from mutandis.engine.tiles import Tiles

        return Tiles(self)

    def tallies(
        self,
        worlds: Iterable[World],
        methods: Collection[Method],
        *,
        who: Rows | None = None,
        marks: NDArray[Any] | None = None,
        measured: bool = False,
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
        marks
            What is summed instead of the marks of the recorded outcomes: of each row, by column.
        measured
            Whether it is kept who matches whom, and how far matched people lie.
        progress
            Called with the number of further complainants that were searched for.
        """
        if marks is not None:
            other = self._with_marks(marks)
            yield from other.tallies(worlds, methods, who=who, measured=measured, progress=progress)
            return
        strata = self.study.strata if who is None else restrict_complainants(self.study.strata, who)
        wanted = Wanted(
            strata=strata,
            people=people_of(strata),
            methods=tuple(methods),
            measured=measured,
        )
        waiting = iter(worlds)
        for first in waiting:
            several = wanted.matched and not measured
            here = [first, *islice(waiting, self._at_once(strata, first) - 1 if several else 0)]
            if any(each.parts for each in here):
                for each in here:
                    yield from self._count(wanted, [each], progress)
            else:
                yield from self._count(wanted, here, progress)

    def _with_marks(self, marks: NDArray[Any]) -> Engine:
        """Return an engine on the same scale that sums other marks."""
        if distance_named(self.study.distance).needs_refusals:
            raise PlanError(
                f"distance={self.study.distance!r} learns from the recorded outcomes, so groups "
                "cannot be counted for other ones. Plan another audit, or take distance='gower'."
            )
        study = replace(self.study, outcomes=marks, mark=columns)
        return Engine(study, threads=self.threads, workers=self.workers, embedding=self.embedding)

    def finer(self, k: int, parts: int, *, keep: bool) -> Engine:
        """Return an engine for groups of k on a finer scale; with `keep`, again the same one."""
        if self._finer is not None and self._finer[0] == (k, parts):
            return self._finer[1]
        study = replace(self.study, ks=(k,), finer=parts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MutandisWarning)  # this engine has said it already
            embedding = study.embed()
        finer = Engine(study, threads=self.threads, workers=self.workers, embedding=embedding)
        if keep:
            self._finer = (k, parts), finer
        return finer

    def at_once(self, who: Rows, world: World) -> int:
        """Return in how many worlds like this some people are matched in about the time of one."""
        return self._at_once(restrict_complainants(self.study.strata, who), world)

    def _at_once(self, strata: Sequence[Stratum], world: World) -> int:
        if self.workers is not None or world.parts:
            return 1
        largest = max(self.study.ks)
        # an estimate of how many people of the control spaces are matched
        few = (min(len(e.control), len(e.complainants) * (largest + 1)) for e in strata)
        matched = max(1, sum(few))
        places = MATCHES * matched + largest * len(people_of(strata))
        return max(1, min(_MATCHED // matched, _ADDED_UP // places))

    def _known_control(self, people: Rows) -> Nearest | None:
        """Return the control groups of complainants that were counted already."""
        if self._control is None:
            return None
        known, found = self._control
        if known is people:
            return found
        place = np.minimum(np.searchsorted(known, people), len(known) - 1)
        return found.take(place) if np.array_equal(known[place], people) else None

    def release(self) -> None:
        """Let go of spaces and control groups; they are made again when they are asked for."""
        self._control = None
        self._around_parts.clear()
        self._spaces.prepared.clear()

    def _count(
        self, wanted: Wanted, worlds: Sequence[World], progress: Progress
    ) -> Iterator[Tally]:
        """Count the groups of one world, or of several at once."""
        known = self._known_control(wanted.people)
        counted = Counted(control=known)
        if self.workers is not None and wanted.compared:
            self._tiles.count(wanted, worlds[0], counted, progress)
        else:
            self._count_here(wanted, worlds, counted, progress)
        if known is None and counted.control is not None:
            # no world changes them, and each complainant is excluded by identity
            self._control = wanted.people, counted.control
        for number, world in enumerate(worlds):
            if wanted.over_parts(world):
                for place, (part, _) in enumerate(world.parts):
                    nearest = counted.test[number][key_of(Center.COUNTERFACTUAL, place)]
                    self._around_parts.append((part, wanted.people, nearest))
            yield self._tally(wanted, world, counted, number)

    def _count_here(
        self, wanted: Wanted, worlds: Sequence[World], counted: Counted, progress: Progress
    ) -> None:
        """Search one space after the other, so that each is prepared once."""
        people = wanted.people
        self._spaces.keep = not wanted.measured
        if self._spaces.keep:
            self._find_control(wanted, counted, progress)  # so that only their people are matched
        known = [self._known_test(wanted, world) for world in worlds]
        tests: list[list[_Part]] = [[] for _ in worlds]
        matched = []
        for stratum in wanted.strata:
            mine = np.searchsorted(people, stratum.complainants)
            rows = self._matched_rows(wanted, stratum, counted.control, mine)
            found = [
                find_tests(
                    self._spaces, stratum, world, wanted, rows=rows, known=there, progress=progress
                )
                for world, there in zip(worlds, known, strict=True)
            ]
            counted.note(found[0].backends)
            for parts, each in zip(tests, found, strict=True):
                parts.append((mine, each.test))
            if wanted.matched:
                by_world, scale = match(self._spaces, stratum, worlds, rows, found[0])
                matched.append((_for_all(by_world, stratum, rows), scale))
        for parts, there in zip(tests, known, strict=True):
            counted.test.append(_merge_by_name(parts, len(people)) | there)
        self._find_control(wanted, counted, progress)
        if wanted.matched:
            self._compare(wanted, counted, matched, len(worlds))
            if Center.COUNTERFACTUAL.value not in counted.backends:
                progress(len(people) * len(worlds))

    def _matched_rows(
        self, wanted: Wanted, stratum: Stratum, control: Nearest | None, mine: Rows
    ) -> Rows:
        """Return the rows of a control space that are matched: all, or those in groups of a few."""
        few = wanted.matched and 2 * len(stratum.complainants) < len(stratum.control)
        if control is None or not few or not self._spaces.keep:
            return stratum.control
        searched, queries = self._spaces.around_facts(stratum)
        standing = cast("Rows", searched.standing)
        reached = np.zeros(int(standing.max()) + 1, dtype=np.bool_)
        reached[queries.own] = True

        def note(_: Rows, listing: Listing) -> None:
            reached[listing.points] = True

        searched.search.visit(queries, *reach_of(control.take(mine)), note)
        return stratum.control[reached[standing]]

    def _find_control(self, wanted: Wanted, counted: Counted, progress: Progress) -> None:
        """Find the control groups, if any method compares them and they are not known."""
        if counted.control is not None or not wanted.compared:
            return
        found = []
        for stratum in wanted.strata:
            nearest, name, _ = self._spaces.find(
                stratum, self.study.population, in_control=True, progress=progress
            )
            found.append((np.searchsorted(wanted.people, stratum.complainants), nearest))
            counted.note({"control": name})
        counted.control = _merge(Nearest, found, len(wanted.people))

    def _known_test(self, wanted: Wanted, world: World) -> dict[str, Nearest]:
        """Return the groups around a world that was a part of a mixture."""
        if wanted.over_parts(world) or Center.COUNTERFACTUAL not in wanted.centers:
            return {}
        for part, people, nearest in self._around_parts:
            if part is world.point and np.array_equal(people, wanted.people):
                return {key_of(Center.COUNTERFACTUAL, 0): nearest}
        return {}

    def _compare(
        self,
        wanted: Wanted,
        counted: Counted,
        matched: Sequence[tuple[list[Matches], Scale]],
        worlds: int,
    ) -> None:
        """Compare control groups with the matches of their people, stratum by stratum."""
        people, control = wanted.people, cast("Nearest", counted.control)
        groups, own = [], []
        for stratum, (found, scale) in zip(wanted.strata, matched, strict=True):
            mine = np.searchsorted(people, stratum.complainants)
            rows = np.searchsorted(stratum.control, stratum.complainants)
            searched, queries = self._spaces.around_facts(stratum)
            in_worlds = compare_matched(
                control if len(mine) == len(people) else control.take(mine),
                self.study,
                rows=rows,
                queries=queries,
                standing=cast("Rows", searched.standing),
                search=searched.search,
                matches=Matches.join(found),
                scale=scale,
                embedding=self.embedding,
                worlds=worlds,
            )
            groups.append((mine, in_worlds))
            own.append((mine, found[0].sums(rows)))
            if wanted.measured:
                links = Links(key=found[0].key, people=found[0].people, parts=found[0].parts)
                counted.links.append(links)
        names = self.embedding.names
        for number in range(worlds):
            at_k = [
                [(mine, in_worlds[number][index]) for mine, in_worlds in groups]
                for index in range(len(self.study.ks))
            ]
            counted.matched.append(
                tuple(_merge(Group, each, len(people), names=names) for each in at_k)
            )
        if worlds == 1:
            counted.own = _merge(Sums, own, len(people))

    def _tally(self, wanted: Wanted, world: World, counted: Counted, number: int) -> Tally:
        """Put together what was counted in one world."""
        study, decided = self.study, world.decided_on(wanted.people)
        test, backends = counted.test[number], counted.backends
        searched = (each for each in ("control", "factual", "counterfactual") if each in backends)
        mixed = wanted.over_parts(world)
        tally = Tally(
            ks=study.ks,
            ties=study.ties,
            metric=self.embedding.metric,
            control=counted.control,
            test={
                center.value: test[key_of(center, 0)]
                for center in wanted.centers
                if not (mixed and center is Center.COUNTERFACTUAL)
            },
            own=study.marks(wanted.people),
            decided=None if decided is None else study.mark(decided),
            matches=counted.own,
            links=tuple(counted.links),
            backends={what: _join(backends[what], wanted.strata) for what in searched},
            distance_rules=self.embedding.rules,
        )
        made = {
            method.name: tuple(
                Group.average(list(self._over_parts(tally, method, k, test=test, world=world)))
                for k in range(len(study.ks))
            )
            for method in wanted.methods
            if world.parts and method.needs_counterfactual and not method.matched
        }
        if wanted.matched:
            made[CST_MATCHED.name] = counted.matched[number]
        return replace(tally, made=made)

    def _over_parts(
        self, tally: Tally, method: Method, index: int, *, test: Mapping[str, Nearest], world: World
    ) -> Iterator[Group]:
        """Iterate over a method's test groups in each part of a mixture."""
        decided = () if world.decided_parts is None else world.decided_parts
        if not method.count_neighbours:
            yield from (Group.of_centers(self.study.mark(each)) for each in decided)
            return
        for number, (_, weight) in enumerate(world.parts):
            group = tally.group(test[key_of(method.center, number)], index)
            if method.count_centers:
                group = group.with_center(self.study.mark(decided[number]))
            yield from [group] * weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Whom to search for, and what methods need of it."""

    strata: tuple[Stratum, ...]
    people: Rows  # all complainants, in the order of the table
    methods: tuple[Method, ...]
    measured: bool

    @property
    def compared(self) -> bool:
        """Whether any method compares groups."""
        return any(method.count_neighbours for method in self.methods)

    @property
    def matched(self) -> bool:
        """Whether people are matched."""
        return any(method.matched for method in self.methods)

    @property
    def centers(self) -> tuple[Center, ...]:
        """Around whom test groups are searched; of matched people, to measure how far they lie."""
        compared = [method for method in self.methods if method.count_neighbours]
        used = {each.center for each in compared if self.measured or not each.matched}
        return tuple(each for each in Center if each in used)

    def over_parts(self, world: World) -> bool:
        """Return whether test groups are averaged over the parts of a mixture."""
        # the matched comparison has parts of its own, and one search tells how far they lie
        return bool(world.parts) and any(
            method.count_neighbours and method.needs_counterfactual and not method.matched
            for method in self.methods
        )

    def searches(self, world: World) -> int:
        """Count the test groups that each complainant is searched for."""
        parts = world.weight if self.over_parts(world) else 1
        return sum(parts if each is Center.COUNTERFACTUAL else 1 for each in self.centers)

    def around(self, center: Center, world: World, facts: Population) -> list[Population]:
        """List the tables in which people are search centers."""
        if center is Center.FACTUAL:
            return [facts]
        if self.over_parts(world):
            return [part for part, _ in world.parts]
        return [world.point or facts]


@dataclass(slots=True, kw_only=True)
class Counted:
    """What was counted so far, in the order of all complainants."""

    control: Nearest | None
    test: list[dict[str, Nearest]] = field(default_factory=list)  # by world, by `key_of`
    matched: list[tuple[Group, ...]] = field(default_factory=list)  # by world, for each k
    own: Sums | None = None  # over everyone's own matches
    links: list[Links] = field(default_factory=list)  # by stratum
    backends: dict[str, list[str]] = field(default_factory=dict)  # by what was searched, by stratum

    def note(self, names: Mapping[str, str]) -> None:
        """Note which searches answered in a stratum."""
        for what, name in names.items():
            self.backends.setdefault(what, []).append(name)


def key_of(center: Center, part: int) -> str:
    """Name the groups around a part of a mixture, or around the only world there is."""
    return f"{center.value} {part}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tests:
    """The test groups of a stratum, and what matching can use of their search."""

    test: dict[str, Nearest]
    backends: dict[str, str]
    nearest: Neighbourhoods | None = None  # the matches of counterfactuals
    placed: Embedded | None = None  # and where these are


def find_tests(
    spaces: Spaces,
    stratum: Stratum,
    world: World,
    wanted: Wanted,
    *,
    rows: Rows,
    known: Collection[str] = (),
    progress: Progress = discard_progress,
) -> Tests:
    """Find the test groups of a stratum around each kind of center, or around each part.

    Where all `rows` that are matched complain, the nearest to their determined counterfactuals are
    found as well.
    """
    found: dict[str, Nearest] = {}
    backends: dict[str, str] = {}
    aside: Neighbourhoods | None = None
    placed: Embedded | None = None
    all_complain = wanted.matched and not world.parts
    all_complain = all_complain and np.array_equal(stratum.complainants, rows)
    for center in wanted.centers:
        more = all_complain and center is Center.COUNTERFACTUAL
        for number, around in enumerate(wanted.around(center, world, spaces.study.population)):
            if key_of(center, number) in known:
                continue
            nearest, backends[center.value], centers = spaces.find(
                stratum,
                around,
                in_control=False,
                progress=progress,
                more=(min(MATCHES, len(stratum.test)),) if more else (),
            )
            if more:
                aside, placed = nearest.found.at(slice(-1, None)), centers
                nearest = replace(nearest, found=nearest.found.at(slice(-1)))
            found[key_of(center, number)] = nearest
    return Tests(test=found, backends=backends, nearest=aside, placed=placed)


def match(
    spaces: Spaces, stratum: Stratum, worlds: Sequence[World], rows: Rows, tests: Tests | None
) -> tuple[list[Matches], Scale]:
    """Find the matches of some rows of a control space in each world."""
    study, searched = spaces.study, spaces.get(stratum.test, in_control=False)
    space = cast("Space", searched.space)
    facts = searched.facts or SpaceFacts.of(space)
    matcher = Matcher(
        embedding=spaces.embedding,
        scale=scale_of(spaces, stratum, worlds[0], facts),
        space=space,
        search=searched.search,
        ties=study.ties,
        max_distance=study.max_distance,
        parts=parts_for(max(study.ks)),
    )
    placed, nearest = None, None
    if tests is not None and len(worlds) == 1:
        placed, nearest = tests.placed, tests.nearest
    centers = [_places_in(spaces, world, rows, facts, placed) for world in worlds]
    # where values between are drawn, these are not what was searched around
    if isinstance(centers[0], list) and len(centers[0]) > 1:
        nearest = None
    return matcher.find(centers, nearest), matcher.scale


def scale_of(spaces: Spaces, stratum: Stratum, world: World, facts: SpaceFacts) -> Scale:
    """Return the scale on which the matched groups of a stratum are balanced."""
    population, embedding = spaces.study.population, spaces.embedding
    levels = tuple(len(population.categories(name).levels) for name in embedding.nominal)
    # no group, nor all matches of one person, can hold more, nor do weights add up to more, also
    # where values between are drawn in each world
    most = world.weight * (1 if world.drawn else DRAWS)
    most = max(most, len(stratum.control), len(stratum.test))
    return Scale.of(embedding, facts, levels, most)


def _places_in(
    spaces: Spaces, world: World, rows: Rows, facts: SpaceFacts, placed: Embedded | None
) -> Iterable[tuple[Embedded, int]]:
    """Place rows in each part of a counterfactual world, with its weight.

    `placed` is where they are in the only one, where that is known.
    """
    parts = world.parts or ((world.point or spaces.study.population, 1),)
    apply = spaces.embedding.apply
    centers = ((placed or apply(part, rows), weight) for part, weight in parts)
    if world.drawn:
        return centers
    return [(each, weight) for part, weight in centers for each in draw_values(part, facts)]


def _for_all(found: list[Matches], stratum: Stratum, rows: Rows) -> list[Matches]:
    """Assign any matches to the rows of a control space for which none were looked for."""
    if len(rows) == len(stratum.control):
        return found
    place, keys = np.searchsorted(stratum.control, rows), []
    for each in found:
        keys.append(np.zeros(len(stratum.control), dtype=np.intp))
        keys[-1][place] = each.key
    return [replace(each, key=key) for each, key in zip(found, keys, strict=True)]


_Part = tuple["Rows", Any]  # the places of some complainants, and what is about them


def _merge(kind: Any, parts: Sequence[_Part], size: int, **known: Any) -> Any:
    """Put records about the complainants of each stratum into one about all of them."""
    if len(parts) == 1:
        return parts[0][1]
    return unpack(kind, gather(((rows, pack(each)) for rows, each in parts), size), **known)


def _merge_by_name(parts: Sequence[_Part], size: int) -> dict[str, Nearest]:
    names = parts[0][1]
    return {n: _merge(Nearest, [(rows, each[n]) for rows, each in parts], size) for n in names}


def _join(names: Sequence[str], strata: Sequence[Stratum]) -> str:
    """Name the search that answered, and where there were several, in which space each did."""
    if len(set(names)) == 1:
        return names[0]
    return ", ".join(f"{n} ({each.label})" for n, each in zip(names, strata, strict=True))
