"""Groups of an audit that many workers search for, or one with little memory: tile by tile.

The points of both spaces are sorted in space, a tree is grown over them, and both are stored in
files that every task maps: what it looks at is read, and the system takes the memory back. The
control space is cut into tiles of neighbours. A first task of each tile finds the groups of its
complainants and the matches of its people; a second one compares them, with the matches that the
first tasks of tiles around it have found (`geometry/cells.py`). A task runs the code of an audit on
one machine (`Pass`, `compare_matched`). All that it counts are integers that no other tile
has a part in, so that the number of tiles and workers, their order, and failures change no bit of
the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from math import lcm
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.data.population import Population
from mutandis.data.spaces import Stratum
from mutandis.engine.engine import Counts, Engine, Pass, Wanted, name_backends
from mutandis.engine.matched import compare_matched, reach_of
from mutandis.engine.matches import MATCHES, Matches, SpaceFacts, in_wholes, parts_for
from mutandis.engine.methods import Center
from mutandis.engine.nearest import Aside, PreparedSpace, limits_of, people_of
from mutandis.engine.pack import (
    group_arrays,
    group_of,
    nearest_arrays,
    nearest_of,
    read_integers,
    sums_arrays,
    sums_of,
)
from mutandis.engine.study import Study, World
from mutandis.engine.tally import Group, Links, Nearest
from mutandis.geometry.cells import CELL, Cells, NearbySearch, sort_in_space
from mutandis.geometry.choose import ChosenSearch, choose
from mutandis.geometry.index import Queries, Space, discard_progress
from mutandis.geometry.metric import Points
from mutandis.mapped import empty, in_file
from mutandis.workers import Task, digest, threads_of_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from mutandis.geometry.embedding import Embedding
    from mutandis.geometry.index import Progress, Ties
    from mutandis.workers import Workers

__all__ = ["count_in_tiles"]

# rows of a control space in a tile: enough that what lies around it is little beside it
_LARGEST_TILE, _SMALLEST_TILE = 1 << 17, 1 << 14
# tiles of a space, where that does not make them too small or too large, and of the rows that a
# worker may hold
_TILES, _OF_MEMORY = 8, 8

# under which names an answer says which search has answered, and holds matches
_BACKEND, _MATCHES = "backend:", "matches:"
_WHOLES = f"{_MATCHES}wholes"
# how the names of files begin that hold the tree over a space, and points where they are measured
_GROWN, _PLACED = "grown-", "placed-"

_Arrays = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredStratum:
    """The spaces of a stratum in files, its rows and points sorted in space."""

    stratum: Stratum
    # files of the points of both spaces, and of the control rows as they are in D
    control: Path
    test: Path
    people: Path
    facts: SpaceFacts
    levels: Mapping[str, int]
    # places in the control space, and numbers of points of the test space, in the order of files
    rows: NDArray[np.intp]
    points: NDArray[np.intp]
    backends: Mapping[str, str]  # that one machine would search these spaces with


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the tasks of a stratum have in common: all but the data, which lie in files."""

    embedding: Embedding
    ties: Ties
    max_distance: float | None
    ks: tuple[int, ...]
    wanted: Wanted
    # how many rows the spaces have, and how many levels each name
    control_rows: int
    test_rows: int
    levels: Mapping[str, int]
    facts: SpaceFacts
    # files: points of the spaces, people in D, in the counterfactual world, and in others, each
    # with its weight; who complains, and what is known of control groups already
    control: Path
    test: Path
    people: Path
    world: Path
    worlds: tuple[tuple[Path, int], ...]
    drawn: bool  # whether these are draws
    complaining: Path
    known: Path | None

    def task(self, function: Any, *more: Any, people: int = 0) -> Task:
        """Name a task by all that its answer depends on."""
        name = digest(version("mutandis"), function.__name__, self, *more)
        return Task(function=function, arguments=(self, *more), name=name, people=people)


def count_in_tiles(
    engine: Engine, strata: Sequence[Stratum], world: World, wanted: Wanted, progress: Progress
) -> Counts:
    """Count the groups of complainants on the workers of an engine."""
    workers, people = cast("Workers", engine.workers), people_of(strata)
    control = engine.known_control(people)
    merged = _Merged(engine=engine, strata=strata, people=people)
    for stratum in strata:
        stored = _stored(engine, stratum, workers)
        asked = _ask(engine, world, wanted, stored, None if control is None else (people, control))
        cuts = _cut(len(stratum.control), workers.rows)
        complaining = np.load(asked.complaining / "complaining.npy")
        asked_about = wanted.searches(world, known=control is not None)
        number = (np.add.reduceat(complaining, cuts[:-1], dtype=np.intp) * asked_about).tolist()
        tiles = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
        tasks = [
            asked.task(search_tile, *tile, people=each)
            for tile, each in zip(tiles, number, strict=True)
        ]
        found = workers.answer(tasks, progress)
        mine = np.searchsorted(people, stratum.control[stored.rows[complaining]])
        merged.note_counts(mine, found, stored)
        if wanted.matched:
            known = tuple(zip(cuts[:-1].tolist(), found, strict=True))
            each_in = zip(*(_wholes(_read(each, _WHOLES)) for each in found), strict=True)
            wholes = tuple(lcm(*column) for column in each_in)
            tasks = [asked.task(compare_tile, *tile, known, wholes) for tile in tiles]
            merged.note_matched(mine, workers.answer(tasks, discard_progress))
            if wanted.listed:
                merged.links.append(_links_of(stored, found, engine.study.ks))
    return merged.counts(world, wanted, control)


def _cut(rows: int, held: int) -> NDArray[np.intp]:
    """Cut rows that were sorted in space into tiles."""
    size = min(max(rows // _TILES, _SMALLEST_TILE), _LARGEST_TILE, max(1, held // _OF_MEMORY))
    return np.append(np.arange(0, rows, size), rows)


# --- what workers read ---


def _stored(engine: Engine, stratum: Stratum, workers: Workers) -> _StoredStratum:
    """Store the spaces of a stratum, once for all worlds."""
    study, embedding = engine.study, engine.embedding
    for known in engine.stored:
        same = known.stratum.control is stratum.control and known.stratum.test is stratum.test
        if same:
            return cast("_StoredStratum", replace(known, stratum=stratum))
    complainants = len(stratum.complainants)
    spaces: list[Space] = []
    files, orders, backends = [], [], {}
    for side, rows in (("control", stratum.control), ("test", stratum.test)):
        points = embedding.apply(study.population, rows).points
        space, standing = Space.of(points, study.marks(rows), embedding.metric)
        backends[side] = choose(_placed(space), complainants)
        path, order = _store_space(
            workers,
            space,
            standing if side == "control" else None,
            threads=engine.threads if backends[side] == "compiled" else 0,
        )
        spaces.append(space)
        files.append(path)
        orders.append(order)
    at = stratum.control[orders[0]]
    people = {name: study.population.part(name, at) for name in embedding.names}
    stored = _StoredStratum(
        stratum=stratum,
        control=files[0],
        test=files[1],
        people=_store_people(workers, people, study.marks(at)),
        facts=SpaceFacts.of(spaces[1]),
        levels={name: len(study.population.categories(name).levels) for name in embedding.nominal},
        rows=orders[0],
        points=orders[1],
        backends=backends,
    )
    engine.stored.append(stored)
    return stored


def _placed(space: Space) -> Space:
    """Give a space as its search sees it."""
    return replace(space, points=space.metric.place(space.points), metric=space.metric.in_place)


def _store_space(
    workers: Workers, space: Space, standing: NDArray[np.intp] | None, *, threads: int
) -> tuple[Path, NDArray[np.intp]]:
    """Store points as they are sorted in space; give the file, and the order of rows or points.

    With `threads` the tree over them is grown here, once for all tasks.
    """
    placed, metric = space.metric.place(space.points), space.metric.in_place
    size = max(1, min(CELL, workers.rows // 64))
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
    if threads and not (workers.folder / name).is_dir():
        from mutandis.geometry.compiled import CompiledSearch

        measured = replace(space, points=placed, metric=metric)
        grown = CompiledSearch(measured, threads=threads).arrays()
        arrays |= {f"{_GROWN}{name}": each for name, each in grown.items()}
        if space.metric.move is not None:
            arrays |= {f"{_PLACED}{name}": each for name, each in _space_arrays(measured).items()}
    return workers.store(name, arrays), rows


def _space_arrays(space: Space) -> _Arrays:
    coordinates, codes = space.points.coordinates, space.points.codes
    return {
        "coordinates": coordinates,
        "codes": codes,
        "counts": space.counts,
        "summed": space.marks,
    }


def _store_people(
    workers: Workers, columns: Mapping[str, Column], marks: NDArray[Any] | None = None
) -> Path:
    arrays = {f"column-{n}": each.data for n, each in enumerate(columns.values())}
    if marks is not None:
        arrays["marks"] = marks
    names = np.array([*columns, ""])
    return workers.store(digest(arrays, names), arrays | {"names": names})


def _ask(
    engine: Engine,
    world: World,
    wanted: Wanted,
    stored: _StoredStratum,
    counted: tuple[NDArray[np.intp], Nearest] | None,
) -> _Asked:
    """Store what one pass has of its own: worlds, complainants, groups known already."""
    workers, study, embedding = cast("Workers", engine.workers), engine.study, engine.embedding
    population, stratum = study.population, stored.stratum
    rows = stratum.control[stored.rows]

    def store_world(other: Population) -> Path:
        moved = {}
        for name in embedding.names:
            column, fact = other.part(name, rows), population.part(name, rows)
            if not np.array_equal(column.data, fact.data):
                moved[name] = column
        return _store_people(workers, moved)

    complaining = np.isin(rows, stratum.complainants)
    known = None
    if counted is not None:
        people, control = counted
        mine = np.searchsorted(people, rows[complaining])
        arrays = {name: each[mine] for name, each in nearest_arrays(control).items()}
        known = workers.store(digest(arrays), arrays)
    return _Asked(
        embedding=embedding,
        ties=study.ties,
        max_distance=study.max_distance,
        ks=study.ks,
        wanted=wanted,
        control_rows=len(stratum.control),
        test_rows=len(stratum.test),
        levels=stored.levels,
        facts=stored.facts,
        control=stored.control,
        test=stored.test,
        people=stored.people,
        world=store_world(world.point or population),
        worlds=tuple((store_world(part), weight) for part, weight in world.parts),
        drawn=world.drawn,
        complaining=workers.store(digest(complaining), {"complaining": complaining}),
        known=known,
    )


# --- the tasks ---


class _Tile:
    """A tile as a worker sees it: a study of its complainants, on spaces in files."""

    def __init__(self, asked: _Asked, first: int, last: int) -> None:
        self.asked, self.rows = asked, np.arange(first, last)
        complaining = _mapped(asked.complaining / "complaining.npy")
        self.stratum = Stratum(
            label="",
            complainants=self.rows[complaining[first:last]],
            control=np.arange(asked.control_rows),
            test=np.broadcast_to(np.intp(-1), asked.test_rows),
        )
        # how many complain before this tile
        self._before = int(np.count_nonzero(complaining[:first]))
        self.people = _population(asked, asked.people, asked.control_rows)
        self.control_search = _open_search(asked, "control")
        self.test_search = _open_search(asked, "test")
        self.standing = _mapped(asked.control / "standing.npy")

    def study(self) -> Study:
        """Make the study of the complainants of the tile."""
        asked = self.asked
        return Study(
            population=self.people,
            strata=(self.stratum,),
            attributes=(),
            outcomes=_mapped(asked.people / "marks.npy"),
            mark=_as_they_are,
            ks=asked.ks,
            ties=asked.ties,
            max_distance=asked.max_distance,
        )

    def world(self) -> World:
        """Read the world that is asked about."""
        return World(
            point=self._world(self.asked.world),
            parts=tuple((self._world(path), weight) for path, weight in self.asked.worlds),
            drawn=self.asked.drawn,
        )

    def _world(self, path: Path) -> Population:
        moved = _columns(self.asked, path)
        return replace(self.people, columns=MappingProxyType({**self.people.columns, **moved}))

    def search(self) -> Pass:
        """Prepare the searches of the tile, of whose rows all are matched."""
        asked = self.asked
        control, test = (_space(asked, side) for side in ("control", "test"))
        spaces = [
            PreparedSpace(
                rows=self.stratum.control,
                space=None,
                search=self.control_search,
                standing=self.standing,
                repeats=False,
                marks=None if control.is_mask else control.marks,
            ),
            PreparedSpace(
                rows=self.stratum.test,
                space=test,
                search=self.test_search,
                standing=None,
                repeats=False,
                marks=None if test.is_mask else test.marks,
                facts=asked.facts,
            ),
        ]
        engine = Engine(
            self.study(),
            threads=threads_of_task(),
            embedding=asked.embedding,
            prepared=spaces,
        )
        return Pass(engine, (self.stratum,), (), rows=self.rows)

    def cells(self) -> Cells:
        """Give the boxes around the points of the control space."""
        names = (f.name for f in fields(Cells))
        return Cells(**{name: np.load(self.asked.control / f"{name}.npy") for name in names})

    def control_groups(self, answer: Path) -> Nearest:
        """Return the control groups that the first task has counted, or that were known before."""
        asked, people = self.asked, self.stratum.complainants
        if asked.known is None:
            found = _read(answer, "control:")
            arrays = {name.removeprefix("control:"): each for name, each in found.items()}
        else:
            mine = slice(self._before, self._before + len(people))
            files = asked.known.glob("*.npy")
            arrays = {path.stem: _mapped(path)[mine] for path in files}
        overflow = asked.embedding.apply(self.people, people).overflow_distance
        limits = None
        if asked.max_distance is not None:
            limits = limits_of(asked.max_distance, overflow, asked.embedding.metric)
        return nearest_of(arrays, overflow, limits)


def _as_they_are(marks: NDArray[Any]) -> NDArray[Any]:
    return marks


def search_tile(asked: _Asked, first: int, last: int) -> _Arrays:
    """Find the groups of the complainants of a tile, and the matches of all its people."""
    tile = _Tile(asked, first, last)
    search, world = tile.search(), tile.world()
    aside, found = Aside(number=MATCHES, rows=tile.rows), dict[str, Nearest]()
    if len(tile.stratum.complainants):
        for center in asked.wanted.centers:
            parts = search.test(center, world, asked.wanted, aside)
            found |= {_name_of(center, number): each for number, each in enumerate(parts)}
    answer: _Arrays = {"complainants": np.array(len(tile.stratum.complainants))}
    if asked.wanted.matched:
        ((matches, _),) = search.match(world, aside)
        answer |= _matches_arrays(matches)
    if len(tile.stratum.complainants) and asked.known is None:
        found["control"] = search.control()
    written: set[int] = set()
    for what, nearest in found.items():
        if id(nearest) not in written:  # a world that weighs more is there more than once
            written.add(id(nearest))
            arrays = nearest_arrays(nearest)
            answer |= {f"{what}:{name}": each for name, each in arrays.items()}
    answer |= {f"{_BACKEND}{what}": np.array(name) for what, name in search.backends.items()}
    return answer


def _name_of(center: Center, part: int) -> str:
    return f"{center.value} {part}"


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
    people = tile.stratum.complainants
    flat: _Arrays = {"complainants": np.array(len(people))}
    if not len(people):
        return flat
    control = tile.control_groups(dict(found)[first])
    points, own = asked.embedding.apply(tile.people, people).points, tile.standing[people]
    queries = Queries(points=points, own=own, own_marks=np.zeros((len(own), 1), dtype=np.int64))
    reach, _ = reach_of(control)
    index = tile.cells().points_near(points, reach.astype(np.float64), asked.embedding.metric)
    start, stop = (np.searchsorted(tile.standing, index, side) for side in ("left", "right"))
    number = stop - start  # how many rows lie on each point, one after the other
    rows = np.arange(number.sum()) + np.repeat(start - np.cumsum(number) + number, number)
    matches = _gather(asked, rows, found, wholes)
    places = np.searchsorted(rows, people)
    (groups,) = compare_matched(
        control,
        tile.study(),
        rows=places,
        queries=replace(queries, own=np.searchsorted(index, own)),
        standing=np.repeat(np.arange(len(index)), number),
        search=NearbySearch(tile.control_search, index),
        matches=matches,
        scale=tile.search().scale(tile.stratum, tile.world(), asked.facts),
        embedding=asked.embedding,
    )
    flat |= {f"own:{name}": each for name, each in sums_arrays(matches.sums(places)).items()}
    for k, group in enumerate(groups):
        flat |= {f"{k}:{name}": each for name, each in group_arrays(group).items()}
    return flat


def _mapped(path: Path) -> NDArray[Any]:
    """Map an array from its file; what is written to it stays in memory."""
    return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))


def _columns(asked: _Asked, path: Path) -> dict[str, Column]:
    names = np.load(path / "names.npy", allow_pickle=False).tolist()[:-1]
    columns: dict[str, Column] = {}
    for number, name in enumerate(names):
        data = _mapped(path / f"column-{number}.npy")
        is_name = np.issubdtype(data.dtype, np.integer)
        levels = tuple(range(asked.levels.get(name, 0)))  # what they are called does not matter
        columns[name] = Categories(data, levels) if is_name else Numbers(data)
    return columns


def _population(asked: _Asked, path: Path, rows: int) -> Population:
    no_ids = np.broadcast_to(np.intp(0), rows)
    return Population(
        columns=MappingProxyType(_columns(asked, path)),
        ids=no_ids,
        positions=no_ids,
        open_source=_no_table,
    )


def _no_table() -> Any:
    raise RuntimeError("a task has no table: please report this")


def _space(asked: _Asked, side: str, part: str = "") -> Space:
    folder = asked.control if side == "control" else asked.test
    names = ("coordinates", "codes", "counts", "summed")
    coordinates, codes, counts, summed = (_mapped(folder / f"{part}{name}.npy") for name in names)
    return Space(
        points=Points(coordinates=coordinates, codes=codes),
        counts=counts,
        marks=summed,
        metric=asked.embedding.metric,
        is_mask=summed.shape[1] == 1 and _mapped(asked.people / "marks.npy").dtype == np.bool_,
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


# --- matches in files ---

_BY_KEY = ("marks", "found", "distance", "numbers")
_SPARSE = ("people", "levels")


def _matches_arrays(matches: Matches) -> _Arrays:
    arrays: _Arrays = {"key": matches.key, "wholes": np.array([str(w) for w in matches.wholes])}
    arrays |= {name: getattr(matches, name) for name in _BY_KEY}
    if matches.marks.dtype == object:  # integers that no array holds are written as text
        arrays["marks"] = matches.marks.astype(np.str_)
    for name in _SPARSE:
        matrix = getattr(matches, name)
        arrays |= {f"{name}:{part}": getattr(matrix, part) for part in _CSR}
        arrays[f"{name}:width"] = np.array(matrix.shape[1])
    return {f"matches:{name}": each for name, each in arrays.items()}


_CSR = ("data", "indices", "indptr")


def _wholes(answer: _Arrays) -> tuple[int, ...]:
    return tuple(int(each) for each in answer[_WHOLES].tolist())


def _read(path: Path, prefix: str = "", but: str | None = None) -> _Arrays:
    """Read the arrays of an answer whose names begin so, and not in the other way."""
    with np.load(path, allow_pickle=False) as answer:
        return {
            name: answer[name]
            for name in answer.files
            if name.startswith(prefix) and not (but and name.startswith(but))
        }


def _sparse(answer: _Arrays, name: str) -> Any:
    from scipy.sparse import csr_array

    data, indices, indptr = (answer[f"matches:{name}:{part}"] for part in _CSR)
    width = int(answer[f"matches:{name}:width"])
    return csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))


def _gather(
    asked: _Asked,
    rows: NDArray[np.intp],
    found: Sequence[tuple[int, Path]],
    wholes: tuple[int, ...],
) -> Matches:
    """Put together the matches of some rows of the control space."""
    from scipy.sparse import vstack

    starts = np.array([first for first, _ in found])
    of_tile = np.searchsorted(starts, rows, side="right") - 1
    parts: dict[str, list[Any]] = {name: [] for name in ("key", *_BY_KEY, *_SPARSE)}
    keys = 0
    for number in np.unique(of_tile).tolist():
        answer = _read(found[number][1], _MATCHES)
        chosen = answer["matches:key"][rows[of_tile == number] - starts[number]]
        used, key = np.unique(chosen, return_inverse=True)
        parts["key"].append(key + keys)
        keys += len(used)
        for name in _BY_KEY:
            parts[name].append(answer[f"matches:{name}"][used])
        marks = read_integers(parts["marks"][-1])
        parts["marks"][-1] = in_wholes(marks, _wholes(answer), wholes)
        for name in _SPARSE:
            parts[name].append(_sparse(answer, name)[used])
    joined = {name: np.concatenate(parts[name]) for name in ("key", *_BY_KEY)}
    people, levels = (vstack(parts[name], format="csr") for name in _SPARSE)
    points, people.indices = np.unique(people.indices, return_inverse=True)
    people.resize(people.shape[0], len(points))
    counts = _mapped(asked.test / "counts.npy")[points]
    return Matches(
        **joined,
        wholes=wholes,
        people=people,
        levels=levels,
        parts=parts_for(max(asked.ks)),
        counts=counts,
        squared=asked.embedding.metric.squared,
    )


# --- all tiles together ---


@dataclass(slots=True)
class _Merged:
    """The answers of all tiles of all strata, in the order of complainants."""

    engine: Engine
    strata: Sequence[Stratum]
    people: NDArray[np.intp]
    counted: dict[str, _Arrays] = field(default_factory=dict)
    own: _Arrays = field(default_factory=dict)
    at_k: list[_Arrays] = field(default_factory=list)
    links: list[Links] = field(default_factory=list)
    backends: dict[str, list[str]] = field(default_factory=dict)

    def note_counts(
        self, mine: NDArray[np.intp], found: Sequence[Path], stored: _StoredStratum
    ) -> None:
        """Write down the counts of a stratum whose complainants have these places."""
        for rows, answer in _by_tile(mine, found):
            for key, array in answer.items():
                what, _, name = key.partition(":")
                if array.ndim:
                    _write(self.counted.setdefault(what, {}), name, rows, array, len(self.people))
        for what in {key for path in found for key in _backends_in(path)}:
            name = stored.backends["control" if what == "control" else "test"]
            if name == "compiled":
                used = {_backends_in(path).get(what) for path in found}
                name = "compiled scan" if "compiled scan" in used else "compiled tree"
            self.backends.setdefault(what, []).append(name)

    def note_matched(self, mine: NDArray[np.intp], found: Sequence[Path]) -> None:
        """Write down the matched groups of a stratum."""
        if not self.at_k:
            self.at_k = [{} for _ in self.engine.study.ks]
        for rows, answer in _by_tile(mine, found):
            for key, array in answer.items():
                what, _, name = key.partition(":")
                into = self.own if what == "own" else self.at_k[int(what)]
                _write(into, name, rows, array, len(self.people))

    def counts(self, world: World, wanted: Wanted, control: Nearest | None) -> Counts:
        """Return everything that was written down."""
        population = self.engine.study.population
        if control is None:
            control = self._nearest("control", population)
            self.engine.remember_control(self.people, control)
        test: dict[Center, tuple[Nearest, ...]] = {}
        for center in wanted.centers:
            if center is Center.FACTUAL or not wanted.over_parts:
                around = population if center is Center.FACTUAL else world.point or population
                test[center] = (self._nearest(_name_of(center, 0), around),)
                continue
            parts: list[Nearest] = []
            for part, weight in world.parts:
                parts += [self._nearest(_name_of(center, len(parts)), part)] * weight
            test[center] = tuple(parts)
        matched = None
        if wanted.matched:
            names = self.engine.embedding.names
            groups: tuple[Group, ...] = tuple(group_of(each, names) for each in self.at_k)
            matched = groups, sums_of(self.own)
        return Counts(
            control=control,
            test=test,
            matched=matched,
            links=tuple(self.links),
            backends={
                what: name_backends(names, self.strata) for what, names in self.backends.items()
            },
        )

    def _nearest(self, what: str, world: Population) -> Nearest:
        embedding, study = self.engine.embedding, self.engine.study
        overflow = embedding.apply(world, self.people).overflow_distance
        limits = None
        if study.max_distance is not None:
            limits = limits_of(study.max_distance, overflow, embedding.metric)
        return nearest_of(self.counted[what], overflow, limits)


def _backends_in(path: Path) -> dict[str, str]:
    """Give the search that answered, by what was searched."""
    answer = _read(path, _BACKEND)
    return {key.removeprefix(_BACKEND): str(name) for key, name in answer.items()}


def _by_tile(
    mine: NDArray[np.intp], found: Sequence[Path]
) -> Iterator[tuple[NDArray[np.intp], _Arrays]]:
    """Give the complainants of each tile, and what was answered about them."""
    first = 0
    for path in found:
        answer = _read(path, but=_MATCHES)
        last = first + int(answer.pop("complainants"))
        yield mine[first:last], answer
        first = last


def _write(
    into: _Arrays, name: str, rows: NDArray[np.intp], array: NDArray[Any], size: int
) -> None:
    array = read_integers(array)
    if array.dtype == object:
        into |= {name: into[name].astype(object)} if name in into else {}
    if name not in into:
        into[name] = empty((size, *array.shape[1:]), array.dtype)
    into[name][rows] = array


def _links_of(stored: _StoredStratum, found: Sequence[Path], ks: tuple[int, ...]) -> Links:
    """Put together who matches whom in a stratum, in the order of its rows."""
    from scipy.sparse import csr_array, vstack

    keys, parts, number = [], [], 0
    for path in found:
        answer = _read(path, _MATCHES)
        keys.append(answer["matches:key"] + number)
        parts.append(_sparse(answer, "people"))
        number += parts[-1].shape[0]
    people = vstack(parts, format="csr")
    people.indices = stored.points[people.indices]
    key = np.empty(len(stored.rows), dtype=np.intp)
    key[stored.rows] = np.concatenate(keys)
    arrays = tuple(in_file(getattr(people, name)) for name in _CSR)
    matrix = csr_array(arrays, shape=(number, len(stored.points)))
    return Links(key=in_file(key), people=matrix, parts=parts_for(max(ks)))
