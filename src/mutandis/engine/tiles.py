"""Groups of an audit that many workers search for, or one with little memory: tile by tile.

The points of both spaces are sorted in space, a tree is grown over them, and both are stored in
files that every task maps: what it looks at is read, and the system takes the memory back. The
control space is cut into tiles of neighbours. A first task of each tile finds the groups of its
complainants and the matches of its people; a second one compares them, with the matches that the
first tasks of tiles around it have found (`geometry/cells.py`). A task runs the functions of an
audit on one machine (`find_tests`, `match`, `compare_matched`). All that it counts are integers
that no other tile has a part in, so that the number of tiles and workers, their order, and failures
change no bit of the result.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from math import lcm
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.data.population import Population
from mutandis.data.protection import Stratum
from mutandis.engine.balance import SpaceFacts
from mutandis.engine.engine import Counted, Wanted, find_tests, match, scale_of
from mutandis.engine.matched import compare_matched, reach_of
from mutandis.engine.matches import Matches, parts_for
from mutandis.engine.nearest import PreparedSpace, Spaces
from mutandis.engine.pack import gather, pack, read_integers, sparse_arrays, sparse_of, unpack
from mutandis.engine.study import Study, World, columns
from mutandis.engine.tally import Group, Links, Nearest, Sums
from mutandis.geometry.cells import CELL, Cells, NearbySearch, sort_in_space
from mutandis.geometry.choose import ChosenSearch, choose
from mutandis.geometry.index import Space, discard_progress
from mutandis.geometry.metric import Points
from mutandis.mapped import in_file
from mutandis.workers import Task, digest, threads_of_task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from mutandis.engine.engine import Engine
    from mutandis.engine.tally import Method
    from mutandis.geometry.embedding import Embedding
    from mutandis.geometry.index import Progress, Ties
    from mutandis.mapped import Rows
    from mutandis.workers import Workers

# rows of a control space in a tile: enough that what lies around it is little beside it
_LARGEST_TILE, _SMALLEST_TILE = 1 << 17, 1 << 14
# tiles of a space, where that does not make them too small or too large, and of the rows that a
# worker may hold
_TILES, _OF_MEMORY = 8, 8
# how the names of arrays in answers begin: the search that answered, and matches
_BACKEND, _MATCHES = "backend:", "matches:"
# and of those in files: the tree over a space, and points where they are measured
_GROWN, _PLACED = "grown-", "placed-"

_Arrays = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """The spaces of a stratum in files, its rows and points sorted in space."""

    stratum: Stratum
    control: Path  # files of the points of both spaces, and of the control rows as they are in D
    test: Path
    people: Path
    facts: SpaceFacts
    levels: Mapping[str, int]
    # places in the control space, and numbers of points of the test space, in the order of files
    rows: Rows
    points: Rows
    backends: Mapping[str, str]  # that one machine would search these spaces with


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the tasks of a stratum have in common: all but the data, which lie in files."""

    embedding: Embedding
    ties: Ties
    max_distance: float | None
    ks: tuple[int, ...]
    methods: tuple[Method, ...]
    measured: bool
    # how many rows the spaces have, and how many levels each name
    control_rows: int
    test_rows: int
    levels: Mapping[str, int]
    facts: SpaceFacts
    control: Path
    test: Path
    people: Path
    world: Path  # files of people in the counterfactual world
    parts: tuple[tuple[Path, int], ...]  # and in the parts of a mixture, each with its weight
    drawn: bool  # whether these are draws
    complaining: Path
    known: Path | None  # what is known of control groups already

    def task(self, function: Any, *more: Any, people: int = 0) -> Task:
        """Name a task by all that its answer depends on."""
        name = digest(version("mutandis"), function.__name__, self, *more)
        return Task(function=function, arguments=(self, *more), name=name, people=people)


class Tiles:
    """Counts the groups of an engine's study on its workers; what these read is stored once."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._study, self._embedding = engine, engine.study, engine.embedding
        self._workers = cast("Workers", engine.workers)
        self._stored: list[_Stored] = []

    def count(self, wanted: Wanted, world: World, counted: Counted, progress: Progress) -> None:
        """Count the groups of one world."""
        people, known = wanted.people, counted.control
        counts: list[tuple[Rows, Path]] = []
        compared: list[tuple[Rows, Path]] = []
        searches = wanted.searches(world) + (known is None)
        for stratum in wanted.strata:
            stored = self._store(stratum)
            asked = self._ask(wanted, world, stored, known)
            starts = _starts(len(stratum.control), self._workers.rows)
            complaining = np.load(asked.complaining / "complaining.npy")
            number = np.add.reduceat(complaining, starts[:-1], dtype=np.intp)
            tiles = list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
            tasks = [
                asked.task(search_tile, *tile, people=each * searches)
                for tile, each in zip(tiles, number.tolist(), strict=True)
            ]
            found = self._workers.answer(tasks, progress)
            mine = np.searchsorted(people, stratum.control[stored.rows[complaining]])
            by_tile = np.split(mine, np.cumsum(number)[:-1])
            counts += zip(by_tile, found, strict=True)
            counted.note(_name_backends(stored, found))
            if wanted.matched:
                starts_found = tuple(zip(starts[:-1].tolist(), found, strict=True))
                wholes = tuple(lcm(*column) for column in zip(*map(_wholes_in, found), strict=True))
                tasks = [asked.task(compare_tile, *tile, starts_found, wholes) for tile in tiles]
                answers = self._workers.answer(tasks, discard_progress)
                compared += zip(by_tile, answers, strict=True)
                if wanted.measured:
                    counted.links.append(_links(stored, found, self._study.ks))
        self._collect(counted, counts, compared)

    def _collect(
        self,
        counted: Counted,
        counts: Sequence[tuple[Rows, Path]],
        compared: Sequence[tuple[Rows, Path]],
    ) -> None:
        """Put the answers of all tiles together, in the order of complainants."""
        size = sum(len(mine) for mine, _ in counts)
        found = _by_what(gather(((mine, _read(path)) for mine, path in counts), size))
        test = {what: unpack(Nearest, each) for what, each in found.items()}
        control = test.pop("control", None)
        counted.control = counted.control or control
        counted.test.append(test)
        if compared:
            groups = _by_what(gather(((mine, _read(path)) for mine, path in compared), size))
            counted.own = unpack(Sums, groups["own"])
            names = self._embedding.names
            at_k = (groups[str(index)] for index in range(len(self._study.ks)))
            counted.matched.append(tuple(unpack(Group, each, names=names) for each in at_k))

    # --- what workers read ---

    def _store(self, stratum: Stratum) -> _Stored:
        """Store the spaces of a stratum, once for all worlds."""
        study, embedding = self._study, self._embedding
        for known in self._stored:
            if known.stratum.control is stratum.control and known.stratum.test is stratum.test:
                return replace(known, stratum=stratum)
        spaces: list[Space] = []
        files, orders, backends = [], [], {}
        for side, rows in (("control", stratum.control), ("test", stratum.test)):
            points = embedding.apply(study.population, rows).points
            space, standing = Space.of(points, study.marks(rows), embedding.metric)
            placed = replace(
                space, points=space.metric.place(space.points), metric=space.metric.in_place
            )
            backends[side] = choose(placed, len(stratum.complainants))
            path, order = self._store_space(
                space,
                standing if side == "control" else None,
                threads=self._engine.threads if backends[side] == "compiled" else 0,
            )
            spaces.append(space)
            files.append(path)
            orders.append(order)
        at = stratum.control[orders[0]]
        people = {name: study.population.part(name, at) for name in embedding.names}
        names = embedding.nominal
        stored = _Stored(
            stratum=stratum,
            control=files[0],
            test=files[1],
            people=self._store_people(people, study.marks(at)),
            facts=SpaceFacts.of(spaces[1]),
            levels={name: len(study.population.categories(name).levels) for name in names},
            rows=orders[0],
            points=orders[1],
            backends=backends,
        )
        self._stored.append(stored)
        return stored

    def _store_space(
        self, space: Space, standing: Rows | None, *, threads: int
    ) -> tuple[Path, Rows]:
        """Store points sorted in space; return the file, and the order of rows or points.

        With `threads` the tree over them is grown here, once for all tasks.
        """
        placed, metric = space.metric.place(space.points), space.metric.in_place
        size = max(1, min(CELL, self._workers.rows // 64))
        order, start = sort_in_space(placed, metric, size=size)
        space = space.take(order)
        placed = space.points if space.metric.move is None else placed.take(order)
        cells = Cells.around(placed, start)
        arrays = _space_arrays(space) | {f.name: getattr(cells, f.name) for f in fields(Cells)}
        rows = order
        if standing is not None:
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            here = place[standing]
            rows = np.argsort(here, kind="stable")
            arrays["standing"] = here[rows]
        name = digest(arrays, threads != 0)
        if threads and not (self._workers.folder / name).is_dir():
            from mutandis.geometry.compiled import CompiledSearch

            there = replace(space, points=placed, metric=metric)
            grown = CompiledSearch(there, threads=threads).arrays()
            arrays |= {f"{_GROWN}{name}": each for name, each in grown.items()}
            if space.metric.move is not None:
                arrays |= {f"{_PLACED}{name}": each for name, each in _space_arrays(there).items()}
        return self._workers.store(name, arrays), rows

    def _store_people(self, cells: Mapping[str, Column], marks: NDArray[Any] | None = None) -> Path:
        arrays = {f"column-{n}": each.data for n, each in enumerate(cells.values())}
        if marks is not None:
            arrays["marks"] = marks
        names = np.array([*cells, ""])
        return self._workers.store(digest(arrays, names), arrays | {"names": names})

    def _ask(
        self, wanted: Wanted, world: World, stored: _Stored, control: Nearest | None
    ) -> _Asked:
        """Store what one world has of its own: moved people, complainants, known groups."""
        study, workers, stratum = self._study, self._workers, stored.stratum
        population, rows = study.population, stratum.control[stored.rows]

        def store_world(other: Population) -> Path:
            moved = {}
            for name in self._embedding.names:
                column, fact = other.part(name, rows), population.part(name, rows)
                if not np.array_equal(column.data, fact.data):
                    moved[name] = column
            return self._store_people(moved)

        complaining = np.isin(rows, stratum.complainants)
        known = None
        if control is not None:
            mine = np.searchsorted(wanted.people, rows[complaining])
            arrays = pack(control.take(mine))
            known = workers.store(digest(arrays), arrays)
        return _Asked(
            embedding=self._embedding,
            ties=study.ties,
            max_distance=study.max_distance,
            ks=study.ks,
            methods=wanted.methods,
            measured=wanted.measured,
            control_rows=len(stratum.control),
            test_rows=len(stratum.test),
            levels=stored.levels,
            facts=stored.facts,
            control=stored.control,
            test=stored.test,
            people=stored.people,
            world=store_world(world.point or population),
            parts=tuple((store_world(part), weight) for part, weight in world.parts),
            drawn=world.drawn,
            complaining=workers.store(digest(complaining), {"complaining": complaining}),
            known=known,
        )


def _starts(rows: int, held: int) -> Rows:
    """Cut rows that were sorted in space into tiles."""
    size = min(max(rows // _TILES, _SMALLEST_TILE), _LARGEST_TILE, max(1, held // _OF_MEMORY))
    return np.append(np.arange(0, rows, size), rows)


def _space_arrays(space: Space) -> _Arrays:
    coordinates, codes = space.points.coordinates, space.points.codes
    return {
        "coordinates": coordinates,
        "codes": codes,
        "counts": space.counts,
        "summed": space.marks,
    }


# --- the tasks ------------------------------------------------------------------------------------


class _Tile:
    """A tile as a worker sees it: complainants and rows of a study, on spaces in files."""

    def __init__(self, asked: _Asked, first: int, last: int) -> None:
        self.asked, self.rows = asked, np.arange(first, last)
        complaining = _mapped(asked.complaining / "complaining.npy")
        self.people = self.rows[complaining[first:last]]
        self.stratum = Stratum(
            label="",
            complainants=self.people,
            control=np.arange(asked.control_rows),
            test=np.broadcast_to(np.intp(-1), asked.test_rows),
        )
        self.wanted = Wanted(
            strata=(self.stratum,),
            people=self.people,
            methods=asked.methods,
            measured=asked.measured,
        )
        self._before = int(np.count_nonzero(complaining[:first]))
        no_ids = np.broadcast_to(np.intp(0), asked.control_rows)
        population = Population(
            columns=MappingProxyType(_columns(asked, asked.people)),
            ids=no_ids,
            positions=no_ids,
            open_source=_no_table,
        )
        study = Study(
            population=population,
            strata=(self.stratum,),
            attributes=(),
            outcomes=_mapped(asked.people / "marks.npy"),
            mark=columns,
            ks=asked.ks,
            ties=asked.ties,
            max_distance=asked.max_distance,
        )
        self.world = World(
            point=self._moved(population, asked.world),
            parts=tuple((self._moved(population, path), n) for path, n in asked.parts),
            drawn=asked.drawn,
        )
        self.spaces = Spaces(
            study=study,
            embedding=asked.embedding,
            threads=threads_of_task(),
            prepared=[self._space("control"), self._space("test")],
        )

    def _moved(self, population: Population, path: Path) -> Population:
        moved = {**population.columns, **_columns(self.asked, path)}
        return replace(population, columns=MappingProxyType(moved))

    def _space(self, side: str) -> PreparedSpace:
        space, search = _space(self.asked, side), _open_search(self.asked, side)
        marks = None if space.is_mask else space.marks
        if side == "control":
            standing = _mapped(self.asked.control / "standing.npy")
            rows = self.stratum.control
            return PreparedSpace(rows=rows, search=search, marks=marks, standing=standing)
        rows, facts = self.stratum.test, self.asked.facts
        return PreparedSpace(rows=rows, search=search, marks=marks, space=space, facts=facts)

    def control_groups(self, answer: Path) -> Nearest:
        """Return the control groups that the first task has counted, or that were known before."""
        known = self.asked.known
        if known is None:
            return unpack(Nearest, _by_what(_read(answer, "control:"))["control"])
        mine = slice(self._before, self._before + len(self.people))
        return unpack(Nearest, {each.stem: _mapped(each)[mine] for each in known.glob("*.npy")})


def search_tile(asked: _Asked, first: int, last: int) -> _Arrays:
    """Find the groups of the complainants of a tile, and the matches of all its people."""
    tile = _Tile(asked, first, last)
    spaces, stratum, wanted = tile.spaces, tile.stratum, tile.wanted
    found: dict[str, Nearest] = {}
    backends: dict[str, str] = {}
    tests = None
    answer: _Arrays = {}
    if len(tile.people):
        tests = find_tests(spaces, stratum, tile.world, wanted, rows=tile.rows)
        found, backends = dict(tests.test), dict(tests.backends)
    if wanted.matched:
        ((matches,), _) = match(spaces, stratum, [tile.world], tile.rows, tests)
        answer |= _matches_arrays(matches)
    if len(tile.people) and asked.known is None:
        found["control"], backends["control"], _ = spaces.find(
            stratum, spaces.study.population, in_control=True, progress=discard_progress
        )
    for what, nearest in found.items():
        answer |= {f"{what}:{name}": each for name, each in pack(nearest).items()}
    return answer | {f"{_BACKEND}{what}": np.array(name) for what, name in backends.items()}


def compare_tile(
    asked: _Asked,
    first: int,
    last: int,
    found: tuple[tuple[int, Path], ...],
    wholes: tuple[int, ...],
) -> _Arrays:
    """Compare the complainants of a tile with the matches of the people around them.

    `found` are the answers of `search_tile`, each with the first row of its tile; means of marks
    are counted in parts of `wholes`.
    """
    tile = _Tile(asked, first, last)
    if not len(tile.people):
        return {}
    people, control = tile.people, tile.control_groups(dict(found)[first])
    searched, queries = tile.spaces.around_facts(tile.stratum)
    standing = cast("Rows", searched.standing)
    reach, _ = reach_of(control)
    cells = Cells(**{f.name: np.load(asked.control / f"{f.name}.npy") for f in fields(Cells)})
    metric = asked.embedding.metric
    index = cells.points_near(queries.points, reach.astype(np.float64), metric)
    start, stop = (np.searchsorted(standing, index, side) for side in ("left", "right"))
    number = stop - start  # how many rows lie on each point, one after the other
    rows = np.arange(number.sum()) + np.repeat(start - np.cumsum(number) + number, number)
    matches = _gather_matches(asked, rows, found, wholes)
    places = np.searchsorted(rows, people)
    (groups,) = compare_matched(
        control,
        tile.spaces.study,
        rows=places,
        queries=replace(queries, own=np.searchsorted(index, queries.own)),
        standing=np.repeat(np.arange(len(index)), number),
        search=NearbySearch(searched.search, index),
        matches=matches,
        scale=scale_of(tile.spaces, tile.stratum, tile.world, asked.facts),
        embedding=asked.embedding,
    )
    records = {"own": matches.sums(places)} | {str(k): group for k, group in enumerate(groups)}
    return {
        f"{what}:{name}": each
        for what, record in records.items()
        for name, each in pack(record).items()
    }


def _mapped(path: Path) -> NDArray[Any]:
    """Map an array from its file; what is written to it stays in memory."""
    return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))


def _columns(asked: _Asked, path: Path) -> dict[str, Column]:
    names = np.load(path / "names.npy", allow_pickle=False).tolist()[:-1]
    cells: dict[str, Column] = {}
    for number, name in enumerate(names):
        data = _mapped(path / f"column-{number}.npy")
        is_name = np.issubdtype(data.dtype, np.integer)
        levels = tuple(range(asked.levels.get(name, 0)))  # what they are called does not matter
        cells[name] = Categories(data, levels) if is_name else Numbers(data)
    return cells


def _no_table() -> Any:
    raise RuntimeError("a task has no table: please report this")


def _space(asked: _Asked, side: str, part: str = "") -> Space:
    folder = asked.control if side == "control" else asked.test
    names = ("coordinates", "codes", "counts", "summed")
    coordinates, codes, counts, summed = (_mapped(folder / f"{part}{name}.npy") for name in names)
    recorded = _mapped(asked.people / "marks.npy")
    return Space(
        points=Points(coordinates=coordinates, codes=codes),
        counts=counts,
        marks=summed,
        metric=asked.embedding.metric,
        is_mask=recorded.dtype == np.bool_ and summed.shape[1] == 1,
    )


# The searches of the last tasks, which the next one often asks again.
_OPENED: dict[tuple[Path, str, int, bool], ChosenSearch] = {}


def _open_search(asked: _Asked, side: str) -> ChosenSearch:
    """Search in the tree that lies in files, or in points that are read."""
    folder = asked.control if side == "control" else asked.test
    threads, metric = threads_of_task(), asked.embedding.metric
    space = _space(asked, side)
    # numbers of refusals and sums of marks may be the same files
    key = (folder, digest(metric), threads, space.is_mask)
    if key in _OPENED:
        return _OPENED[key]
    grown = {each.stem.removeprefix(_GROWN): each for each in folder.glob(f"{_GROWN}*.npy")}
    if grown:
        from mutandis.geometry.compiled import CompiledSearch

        measured = _space(asked, side, "" if metric.move is None else _PLACED)
        measured = replace(measured, metric=metric.in_place)
        arrays = {name: _mapped(path) for name, path in grown.items()}
        search = CompiledSearch(measured, threads=threads, grown=arrays)
        made = ChosenSearch.of(measured, metric, search)
    else:
        made = ChosenSearch(space, threads=threads)
    while len(_OPENED) > 1:
        del _OPENED[next(iter(_OPENED))]
    _OPENED[key] = made
    return made


# --- answers --------------------------------------------------------------------------------------

_BY_KEY = ("marks", "found", "distance", "numbers")
_SPARSE = ("people", "levels")


def _matches_arrays(matches: Matches) -> _Arrays:
    arrays: _Arrays = {"key": matches.key, "wholes": np.array([str(w) for w in matches.wholes])}
    arrays |= {name: getattr(matches, name) for name in _BY_KEY}
    if matches.marks.dtype == object:  # integers that no array holds are written as text
        arrays["marks"] = matches.marks.astype(np.str_)
    for name in _SPARSE:
        matrix = sparse_arrays(getattr(matches, name))
        arrays |= {f"{name}-{part}": each for part, each in matrix.items()}
    return {f"{_MATCHES}{name}": each for name, each in arrays.items()}


def _read(path: Path, prefix: str = "") -> _Arrays:
    """Read the arrays of an answer whose names begin so; without prefix, those about people."""
    with np.load(path, allow_pickle=False) as answer:
        chosen = (name for name in answer.files if name.startswith(prefix))
        if not prefix:
            chosen = (name for name in chosen if not name.startswith((_BACKEND, _MATCHES)))
        return {name: answer[name] for name in chosen}


def _by_what(arrays: Mapping[str, Any]) -> dict[str, _Arrays]:
    """Split arrays by what they are about."""
    found: dict[str, _Arrays] = {}
    for key, array in arrays.items():
        what, _, name = key.partition(":")
        found.setdefault(what, {})[name] = array
    return found


def _read_matches(path: Path) -> _Arrays:
    return {name.removeprefix(_MATCHES): each for name, each in _read(path, _MATCHES).items()}


def _wholes_in(path: Path) -> tuple[int, ...]:
    wholes = _read(path, f"{_MATCHES}wholes").popitem()[1]
    return tuple(int(each) for each in wholes.tolist())


def _sparse(answer: _Arrays, name: str) -> Any:
    names = (each for each in answer if each.startswith(f"{name}-"))
    return sparse_of({each.removeprefix(f"{name}-"): answer[each] for each in names})


def _gather_matches(
    asked: _Asked, rows: Rows, found: Sequence[tuple[int, Path]], wholes: tuple[int, ...]
) -> Matches:
    """Put together the matches of some rows of the control space."""
    starts = np.array([first for first, _ in found])
    of_tile = np.searchsorted(starts, rows, side="right") - 1
    counts, parts = _mapped(asked.test / "counts.npy"), []
    for number in np.unique(of_tile).tolist():
        answer = _read_matches(found[number][1])
        chosen = answer["key"][rows[of_tile == number] - starts[number]]
        used, key = np.unique(chosen, return_inverse=True)
        by_key = {name: read_integers(answer[name][used]) for name in _BY_KEY}
        part = Matches(
            key=key,
            **by_key,
            wholes=tuple(int(each) for each in answer["wholes"].tolist()),
            people=_sparse(answer, "people")[used],
            levels=_sparse(answer, "levels")[used],
            parts=parts_for(max(asked.ks)),
            counts=counts,
            squared=asked.embedding.metric.squared,
        )
        parts.append(part.in_parts(wholes))
    joined = Matches.join(parts)
    people = joined.people
    points, people.indices = np.unique(people.indices, return_inverse=True)
    people.resize(people.shape[0], len(points))
    return replace(joined, people=people, counts=counts[points])


def _name_backends(stored: _Stored, found: Sequence[Path]) -> dict[str, str]:
    """Name the searches that one machine would have answered with, by what was searched."""
    answers = [_read(path, _BACKEND) for path in found]
    names: dict[str, str] = {}
    for key in {each for answer in answers for each in answer}:
        what = key.removeprefix(_BACKEND)
        names[what] = stored.backends["control" if what == "control" else "test"]
        if names[what] == "compiled":
            used = {str(answer[key]) for answer in answers if key in answer}
            names[what] = "compiled scan" if "compiled scan" in used else "compiled tree"
    return names


def _links(stored: _Stored, found: Sequence[Path], ks: tuple[int, ...]) -> Links:
    """Put together who matches whom in a stratum, in the order of its rows."""
    from scipy.sparse import vstack

    keys, parts, number = [], [], 0
    for path in found:
        answer = _read_matches(path)
        keys.append(answer["key"] + number)
        parts.append(_sparse(answer, "people"))
        number += parts[-1].shape[0]
    people = vstack(parts, format="csr")
    people.indices = stored.points[people.indices]
    key = np.empty(len(stored.rows), dtype=np.intp)
    key[stored.rows] = np.concatenate(keys)
    kept = {name: in_file(each) for name, each in sparse_arrays(people).items()}
    kept["width"] = np.array(len(stored.points))
    return Links(key=in_file(key), people=sparse_of(kept), parts=parts_for(max(ks)))
