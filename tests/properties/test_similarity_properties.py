"""What must not matter to who is like whom: order, units, shifts, the arrangement of attributes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.columns import Categories, Numbers
from mutandis.data.population import Population
from mutandis.geometry.choose import ChosenSearch
from mutandis.geometry.embedding import Embedded, Embedding
from mutandis.geometry.index import Neighbourhoods, Queries, Space, find_neighbourhoods

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.geometry.metric import Points

KINDS = {
    "grade": Attribute(name="grade", kind=AttributeKind.CONTINUOUS, weight=0.3),
    "wage": Attribute(name="wage", kind=AttributeKind.CONTINUOUS),
    "noise": Attribute(name="noise", kind=AttributeKind.CONTINUOUS, weight=2.0),
    "band": Attribute(name="band", kind=AttributeKind.ORDINAL, levels=(0, 1, 2, 3)),
    "job": Attribute(name="job", kind=AttributeKind.NOMINAL),
}


@dataclass(frozen=True)
class World:
    """D and D^CF as columns of numbers, and the outcomes."""

    names: tuple[str, ...]
    factual: dict[str, NDArray[np.float64]]
    counterfactual: dict[str, NDArray[np.float64]]
    negative: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.negative)

    def changed(self, name: str, *, factor: float = 1.0, shift: float = 0.0) -> World:
        """Measure one column in another unit."""
        return replace(
            self,
            factual={**self.factual, name: self.factual[name] * factor + shift},
            counterfactual={
                **self.counterfactual,
                name: self.counterfactual[name] * factor + shift,
            },
        )


@dataclass(frozen=True)
class Looked:
    """All that a world gives: its embedding, its points, and who is around every row."""

    embedding: Embedding
    rows: Points
    centers: Embedded
    control: Neighbourhoods
    test: Neighbourhoods


def as_column(name: str, values: NDArray[np.float64]) -> Numbers | Categories:
    if KINDS[name].kind is AttributeKind.CONTINUOUS:
        return Numbers(values)
    return Categories(values.astype(np.int32), (0, 1, 2, 3))


def look(world: World, ks: tuple[int, ...]) -> Looked:
    attributes = [KINDS[name] for name in world.names]
    read = Population.from_frame(world.factual, columns=world.names)
    population = read.with_columns({n: as_column(n, world.factual[n]) for n in world.names})
    imagined = read.with_columns({n: as_column(n, world.counterfactual[n]) for n in world.names})
    embedding = Embedding.fit(population, attributes)
    rows, centers = embedding.apply(population).points, embedding.apply(imagined)
    space, standing = Space.of(rows, world.negative, embedding.metric)
    search = ChosenSearch(space, threads=1)
    own = Queries.inside(rows, standing, world.negative)
    return Looked(
        embedding,
        rows,
        centers,
        find_neighbourhoods(search, own, ks),
        find_neighbourhoods(search, Queries.outside(centers.points), ks),
    )


def make_world(seed: int, *, size: int = 40) -> World:
    """Grades in tenths, wages in cents, one column without any grid, ranks and names."""
    rng = np.random.default_rng(seed)
    factual = {
        "grade": rng.integers(10, 43, size) / 10,
        "wage": rng.integers(0, 3_000_000, size) / 100,
        "noise": rng.normal(size=size),
        "band": rng.integers(0, 4, size).astype(np.float64),
        "job": rng.integers(0, 4, size).astype(np.float64),
    }
    # the first rows differ in everything: no column is constant
    factual["band"][:2] = factual["job"][:2] = 0, 3
    shift = {"grade": 0.15, "wage": -1234.5678, "noise": 0.7, "band": 0.0, "job": 0.0}
    counterfactual = {name: values + shift[name] for name, values in factual.items()}
    names = tuple(rng.permutation(sorted(factual))[: rng.integers(1, 6)].tolist())
    return World(names, factual, counterfactual, rng.random(size) < 0.5)


worlds = st.integers(0, 10**6).map(make_world)
KS = (1, 7, 20, 39)


def assert_equal(found: Neighbourhoods, expected: Neighbourhoods) -> None:
    for field in fields(Neighbourhoods):
        np.testing.assert_array_equal(getattr(found, field.name), getattr(expected, field.name))


def assert_same_groups(found: Neighbourhoods, expected: Neighbourhoods) -> None:
    """The same people inside and on the rim, whatever integer their distance is."""
    for name in ("inside", "rim", "marks_inside", "marks_rim"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@settings(max_examples=40)
@given(worlds, st.randoms(use_true_random=False))
def test_shuffling_rows_changes_nothing(world: World, random: Any) -> None:
    order = np.array(random.sample(range(len(world)), len(world)))
    shuffled = replace(
        world,
        factual={name: values[order] for name, values in world.factual.items()},
        counterfactual={name: values[order] for name, values in world.counterfactual.items()},
        negative=world.negative[order],
    )
    before, after = look(world, KS), look(shuffled, KS)
    assert after.embedding.axes == before.embedding.axes
    np.testing.assert_array_equal(after.rows.coordinates, before.rows.coordinates[order])
    assert_equal(after.control, before.control.take(order))
    assert_equal(after.test, before.test.take(order))


@settings(max_examples=60)
@given(worlds, st.integers(-30, 30), st.sampled_from(["grade", "wage", "noise"]))
def test_another_unit_by_a_power_of_two_changes_nothing(
    world: World, exponent: int, name: str
) -> None:
    world = replace(world, names=tuple(sorted({*world.names, name})))
    before, after = look(world, KS), look(world.changed(name, factor=2.0**exponent), KS)
    assert after.embedding.rules == before.embedding.rules
    np.testing.assert_array_equal(after.rows.coordinates, before.rows.coordinates)
    np.testing.assert_array_equal(
        after.centers.points.coordinates, before.centers.points.coordinates
    )
    assert_equal(after.control, before.control)
    assert_equal(after.test, before.test)


@settings(max_examples=40)
@given(worlds, st.sampled_from([0.45359237, 1 / 3, 7.0, 1e-6, 1e5]))
def test_another_unit_changes_no_group_of_grades(world: World, factor: float) -> None:
    only = replace(world, names=("grade", "band"))
    before, after = look(only, KS), look(only.changed("grade", factor=factor), KS)
    assert after.embedding.rules == before.embedding.rules
    assert_equal(after.control, before.control)
    assert_same_groups(after.test, before.test)


@settings(max_examples=40)
@given(worlds, st.integers(-(10**12), 10**12))
def test_shifting_whole_numbers_changes_nothing(world: World, shift: int) -> None:
    whole = replace(
        world,
        names=tuple(sorted({*world.names, "wage"})),
        factual={**world.factual, "wage": np.floor(world.factual["wage"])},
        counterfactual={**world.counterfactual, "wage": np.floor(world.factual["wage"]) + 3.5},
    )
    before, after = look(whole, KS), look(whole.changed("wage", shift=float(shift)), KS)
    assert after.embedding.rules == before.embedding.rules
    assert_equal(after.control, before.control)
    assert_equal(after.test, before.test)


@settings(max_examples=40)
@given(worlds, st.permutations(sorted(KINDS)))
def test_the_order_of_attributes_changes_nothing(world: World, order: list[str]) -> None:
    arranged = replace(world, names=tuple(name for name in order if name in world.names))
    before, after = look(world, KS), look(arranged, KS)
    assert after.embedding.rules == before.embedding.rules
    assert_equal(after.control, before.control)
    assert_equal(after.test, before.test)


@settings(max_examples=30)
@given(worlds)
def test_groups_nest_as_k_grows(world: World) -> None:
    ks = tuple(range(1, len(world)))
    seen = look(world, ks)
    for found in (seen.control, seen.test):
        within = found.inside + found.rim
        assert (np.diff(found.radius, axis=1) >= 0).all()
        assert (np.diff(within, axis=1) >= 0).all()
        assert (np.diff(found.inside, axis=1) >= 0).all()
        # the k-th nearest stands on the rim: fewer than k inside, at least k with the rim
        assert (found.inside < ks).all()
        assert (within >= ks).all()
        # until the rim is used up, a larger k changes neither the radius nor the rim
        same = found.radius[:, 1:] == found.radius[:, :-1]
        np.testing.assert_array_equal(same, within[:, :-1] >= ks[1:])
        np.testing.assert_array_equal(found.rim[:, 1:][same], found.rim[:, :-1][same])


@settings(max_examples=40)
@given(worlds)
def test_a_center_that_is_a_row_lands_on_that_row(world: World) -> None:
    seen = look(replace(world, counterfactual=world.factual), KS)
    np.testing.assert_array_equal(seen.centers.points.coordinates, seen.rows.coordinates)
    np.testing.assert_array_equal(seen.centers.points.codes, seen.rows.codes)
    assert not seen.centers.overflow_distance.any()


def embed(columns: dict[str, Any], centers: dict[str, Any]) -> tuple[Embedding, Points, Points]:
    attributes = [Attribute(name=name, kind=AttributeKind.CONTINUOUS) for name in columns]
    population = Population.from_frame(columns, attributes=attributes)
    embedding = Embedding.fit(population, attributes)
    there = Population.from_frame(centers, attributes=attributes)
    return embedding, embedding.apply(population).points, embedding.apply(there).points


@settings(max_examples=100)
@given(
    low=st.integers(-5000, 5000),
    others=st.lists(st.integers(1, 10_000), min_size=1, max_size=8),
    odd=st.integers(0, 300),
    places=st.integers(0, 3),
)
def test_rows_on_both_sides_of_a_center_between_them_tie(
    low: int, others: list[int], odd: int, places: int
) -> None:
    """The center midway between two rows, one decimal finer than all of D, is as near to both."""
    values = [low, low + 2 * odd + 1, *(low + other for other in others)]
    typed = [value / 10**places for value in values]
    center = (10 * low + 10 * odd + 5) / 10 ** (places + 1)
    embedding, rows, centers = embed({"x": typed}, {"x": [center]})
    distances = embedding.metric.from_center(centers, rows)
    assert distances[0] == distances[1] > 0


@settings(max_examples=40)
@given(worlds, st.floats(50.0, 1e12))
def test_a_center_far_outside_keeps_the_order_of_all_rows(world: World, ranges: float) -> None:
    """Seen from far beyond the top of the range, rows are ordered from the largest value down."""
    values = world.factual["wage"]
    embedding, rows, centers = embed(
        {"wage": values}, {"wage": [values.min() + ranges * np.ptp(values)]}
    )
    distances = embedding.metric.from_center(centers, rows)
    np.testing.assert_array_equal(np.argsort(distances), np.argsort(-values))
