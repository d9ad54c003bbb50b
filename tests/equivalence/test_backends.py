"""Every search backend against `brute`, and `brute` against fractions on the raw values."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.columns import Categories, Numbers
from mutandis.data.population import Population
from mutandis.engine.tally import sum_nearest
from mutandis.errors import MutandisWarning
from mutandis.geometry.choose import ChosenSearch
from mutandis.geometry.compiled import CompiledSearch
from mutandis.geometry.embedding import Embedding
from mutandis.geometry.index import Queries, Search, Space, find_neighbourhoods
from mutandis.geometry.plain import BruteSearch, TreeSearch
from tests.oracle import Gower, assert_equal_fields, fractions, list_near, nearest, radius_of, share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mutandis.geometry.index import Neighbourhoods


BACKENDS: dict[str, Callable[[Space], Search]] = {
    "tree": lambda space: TreeSearch.build(space, threads=1),
    "chosen": lambda space: ChosenSearch(space, threads=1),
    "compiled tree": lambda space: CompiledSearch(space, threads=1, kernel="tree"),
    "compiled scan": lambda space: CompiledSearch(space, threads=2, kernel="scan"),
    "compiled": lambda space: CompiledSearch(space, threads=2),
}
WEIGHTS = st.sampled_from([1.0, 1.0, 1.0, 0.1, 0.5, 3.0, 0.3])
Cells = list[Any]


@dataclass(frozen=True)
class Table:
    """Raw cells, as a person would type them: D, one search center a row, and the outcomes."""

    attributes: tuple[Attribute, ...]
    rows: dict[str, Cells]
    centers: dict[str, Cells]
    negative: list[bool]

    def __len__(self) -> int:
        return len(self.negative)


# --- what is tested ---


@dataclass(frozen=True)
class Searched:
    embedding: Embedding
    space: Space
    own: Queries
    outside: Queries
    overflow_distance: np.ndarray[Any, np.dtype[np.float64]]


def population_of(table: Table) -> Population:
    return Population.from_frame(table.rows, attributes=table.attributes)


def counterfactual_of(table: Table, population: Population) -> Population:
    columns: dict[str, Numbers | Categories] = {}
    for attribute in table.attributes:
        cells = table.centers[attribute.name]
        if attribute.kind is AttributeKind.CONTINUOUS:
            columns[attribute.name] = Numbers(np.array(cells, dtype=np.float64))
            continue
        known = population.categories(attribute.name).levels
        levels = (*known, *sorted(set(cells) - set(known)))
        columns[attribute.name] = Categories(
            np.array([levels.index(cell) for cell in cells], dtype=np.int32), levels
        )
    return population.with_columns(columns)


def prepare(table: Table) -> Searched:
    population = population_of(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)  # constant columns are wanted here
        embedding = Embedding.fit(population, table.attributes)
    points = embedding.apply(population).points
    negative = np.array(table.negative, dtype=np.bool_)
    space, standing = Space.of(points, negative, embedding.metric)
    centers = embedding.apply(counterfactual_of(table, population))
    return Searched(
        embedding,
        space,
        Queries.inside(points, standing, negative),
        Queries.outside(centers.points),
        centers.overflow_distance,
    )


def ks_up_to(largest: int) -> list[int]:
    return sorted({1, max(1, largest // 2), largest})


def check_backends(table: Table) -> None:
    """Every backend gives what `brute` gives, to the last bit, for every k up to all rows."""
    searched = prepare(table)
    for queries, largest in ((searched.own, len(table) - 1), (searched.outside, len(table))):
        if not largest:
            continue
        ks = ks_up_to(largest)
        brute = BruteSearch(space=searched.space)
        expected = brute.neighbourhoods(queries, ks)
        # the middle k, and once a limit that falls short of it
        limits, rows = expected.radius[:, len(ks) // 2].copy(), np.full(len(queries), len(table))
        limits[::3] -= 1
        listed = list_near(brute, queries, limits, rows)
        for name, build in BACKENDS.items():
            if name != "chosen" and not can_search(name, searched):
                continue
            search = build(searched.space)
            assert_equal_fields(find_neighbourhoods(search, queries, ks), expected, what=name)
            assert list_near(search, queries, limits, rows) == listed


def can_search(backend: str, searched: Searched) -> bool:
    """KD-trees have at least one coordinate, and kernels want distances that float64 holds."""
    if backend == "tree":
        return bool(searched.embedding.axes or searched.embedding.nominal)
    return CompiledSearch.can_search(searched.space)


def check_oracle(table: Table, searched: Searched) -> None:
    """`brute` finds the tie sets, shares and radii that fractions give."""
    brute = BruteSearch(space=searched.space)
    if len(table) > 1:
        ks = ks_up_to(len(table) - 1)
        check_answers(table, searched, brute.neighbourhoods(searched.own, ks), ks, own=True)
    ks = ks_up_to(len(table))
    check_answers(table, searched, brute.neighbourhoods(searched.outside, ks), ks, own=False)


def check_answers(
    table: Table, searched: Searched, found: Neighbourhoods, ks: Sequence[int], *, own: bool
) -> None:
    rows = list(zip(*table.rows.values(), strict=True))
    centers = rows if own else list(zip(*table.centers.values(), strict=True))
    kinds = [each.levels or each.kind.value for each in table.attributes]
    gower = Gower(rows, kinds, [each.weight for each in table.attributes])
    # what float64 leaves of tenths next to 1e9 is all that a far center can be measured with
    tolerance = 1e-12 + 100 * max((axis.noise for axis in searched.embedding.axes), default=0.0)
    shares = [
        fractions(sum_nearest(found, column, k=k, ties="fair")) for column, k in enumerate(ks)
    ]
    for query, center in enumerate(centers):
        apart = gower.among(center, [row for row in range(len(rows)) if not (own and row == query)])
        for column, k in enumerate(ks):
            expected = radius_of(apart, k)
            inside = [table.negative[row] for row, far in apart.items() if far < expected]
            rim = [table.negative[row] for row, far in apart.items() if far == expected]
            at = (query, column)
            assert (found.inside[at], found.marks_inside[at][0]) == (len(inside), sum(inside))
            assert (found.rim[at], found.marks_rim[at][0]) == (len(rim), sum(rim))
            assert shares[column][query] == share(nearest(apart, k), table.negative)
            radius = float(searched.embedding.metric.as_float(found.radius[at]))
            radius += 0.0 if own else float(searched.overflow_distance[query])
            assert radius == pytest.approx(float(expected), rel=1e-12, abs=tolerance)


# --- tables ---


def decimals(places: int, low: int, high: int) -> st.SearchStrategy[float]:
    return st.integers(low, high).map(lambda whole: whole / 10**places)


def _numbers(cells: st.SearchStrategy[Any], centers: st.SearchStrategy[Any]) -> Any:
    return AttributeKind.CONTINUOUS, (), cells, centers


# places, where the cells lie, and where the centers do (out of range by up to 80 ranges)
DECIMAL_COLUMNS = [
    _numbers(decimals(0, 0, 6), decimals(1, -5, 65)),
    _numbers(decimals(1, 10, 42), decimals(1, 0, 60)),
    _numbers(decimals(2, 150, 160), decimals(2, -1000, 1000)),
    _numbers(decimals(3, 0, 100_000), decimals(3, -500, 200_000)),
    _numbers(decimals(2, 0, 10**8), decimals(2, 0, 2 * 10**8)),
    _numbers(decimals(0, 1950, 2010), decimals(0, 1900, 2100)),
    _numbers(decimals(1, 10**10, 10**10 + 9), decimals(1, 10**10 - 90, 10**10 + 90)),
    _numbers(st.sampled_from([0.1, 0.2, 0.3]), st.sampled_from([-3.9, 0.1, 0.15, 0.2, 0.3])),
    _numbers(st.just(7.5), st.just(9.5)),
]
LEVEL_COLUMNS = [
    (AttributeKind.ORDINAL, tuple("abcd"), st.sampled_from("abcd"), st.sampled_from("abcd")),
    (AttributeKind.ORDINAL, tuple(range(70)), st.integers(0, 69), st.integers(0, 69)),
    (AttributeKind.NOMINAL, (), st.integers(0, 2), st.integers(0, 3)),
    (AttributeKind.NOMINAL, (), st.integers(0, 69), st.integers(0, 80)),
    (AttributeKind.NOMINAL, (), st.just(1), st.integers(1, 2)),
]
ANY_NUMBER = st.floats(-1e6, 1e6)
CONTINUOUS_COLUMNS = [
    _numbers(ANY_NUMBER, ANY_NUMBER),
    _numbers(st.floats(-1.0, 1.0), st.floats(-100.0, 100.0)),
    _numbers(st.floats(1e9, 1e9 + 1), st.floats(1e9, 1e9 + 100)),
    _numbers(st.floats(-1e300, 1e300), st.floats(-1e308, 1e308)),
    _numbers(st.floats(0, 1e-300), st.floats(-1.0, 1.0)),
]


@st.composite
def tables(draw: st.DrawFn, columns: Sequence[Any], most_rows: int) -> Table:
    size = draw(st.integers(1, most_rows))
    chosen = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=4))
    attributes, rows, centers = [], {}, {}
    for index, (kind, levels, cells, center_cells) in enumerate(chosen):
        name = f"x{index}"
        attributes.append(Attribute(name=name, kind=kind, levels=levels, weight=draw(WEIGHTS)))
        rows[name] = draw(st.lists(cells, min_size=size, max_size=size))
        centers[name] = draw(st.lists(center_cells, min_size=size, max_size=size))
    negative = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    return Table(tuple(attributes), rows, centers, negative)


@settings(max_examples=90)
@given(tables(DECIMAL_COLUMNS + LEVEL_COLUMNS, most_rows=14))
def test_brute_finds_what_fractions_find(table: Table) -> None:
    searched = prepare(table)
    rules = str(searched.embedding.rules)
    assert "quantised" not in rules
    # where int64 has no room for the common multiple, ties between attributes are not promised
    assume("rounded" not in rules)
    check_oracle(table, searched)


@settings(max_examples=40)
@given(tables(LEVEL_COLUMNS[2:4], most_rows=14))
def test_nominal_only_agrees_with_fractions(table: Table) -> None:
    check_oracle(table, prepare(table))


@settings(max_examples=90)
@given(tables(DECIMAL_COLUMNS + LEVEL_COLUMNS + CONTINUOUS_COLUMNS, most_rows=30))
def test_backends_agree_on_mixed_data(table: Table) -> None:
    check_backends(table)


def simulated(seed: int, *, size: int) -> Table:
    """A table too large to draw cell by cell: heavy ties, all kinds of attributes."""
    rng = np.random.default_rng(seed)

    def pick(high: int, places: int) -> Cells:
        return [whole / 10**places for whole in rng.integers(0, high, size).tolist()]

    attributes = (
        Attribute(name="grade", kind=AttributeKind.CONTINUOUS, weight=0.5),
        Attribute(name="age", kind=AttributeKind.CONTINUOUS),
        Attribute(name="band", kind=AttributeKind.ORDINAL, levels=tuple(range(5)), weight=3.0),
        Attribute(name="job", kind=AttributeKind.NOMINAL, weight=0.1),
    )
    rows = {
        "grade": pick(12, 1),
        "age": pick(8, 0),
        "band": rng.integers(0, 5, size).tolist(),
        "job": rng.integers(0, 3, size).tolist(),
    }
    centers = {
        "grade": pick(40, 1),
        "age": pick(900, 0),
        "band": rng.integers(0, 5, size).tolist(),
        "job": rng.integers(0, 4, size).tolist(),
    }
    return Table(attributes, rows, centers, (rng.random(size) < 0.4).tolist())


@pytest.mark.parametrize("size", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_backends_agree_on_many_rows_with_ties(size: int) -> None:
    check_backends(simulated(0, size=size))


def test_brute_finds_what_fractions_find_among_a_hundred_rows() -> None:
    table = simulated(7, size=100)
    check_oracle(table, prepare(table))


def test_the_complainant_is_excluded_and_equal_rows_stay() -> None:
    grade = Attribute(name="grade", kind=AttributeKind.CONTINUOUS)
    table = Table((grade,), {"grade": [1.0, 1.0, 1.0, 5.0]}, {"grade": [1.0] * 4}, [True] * 4)
    searched = prepare(table)
    for search in (BruteSearch(space=searched.space), TreeSearch.build(searched.space, threads=1)):
        found = find_neighbourhoods(search, searched.own, [2, 3])
        # two equal rows are at distance 0, the fourth row is not; k = 3 needs all others
        assert found.radius[0].tolist() == [0, searched.embedding.axes[0].length]
        assert found.rim[0].tolist() == [2, 1]
        assert found.inside[0].tolist() == [0, 2]
        assert found.rim[3].tolist() == [3, 3]
