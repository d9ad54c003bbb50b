"""Every distance against its published formula, in plain Python."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.population import Population
from mutandis.errors import PlanError
from mutandis.evidence.settings import Similarity
from mutandis.search.brute import BruteSearch
from mutandis.search.choose import choose_search
from mutandis.search.distances import DESCRIPTIONS, DistanceName, fit_distance
from mutandis.search.embedding import Embedding
from mutandis.search.engine import Queries, Space
from mutandis.search.kd_tree import TreeSearch
from mutandis.search.kernel_search import CompiledSearch

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = st.integers(0, 10**6)
GRADES = ("low", "mid", "high", "top")


@dataclass(frozen=True)
class Table:
    """People as a person would type them: a row each, with status and outcome."""

    attributes: tuple[Attribute, ...]
    rows: list[dict[str, Any]]

    @property
    def population(self) -> Population:
        cells = {a.name: [row[a.name] for row in self.rows] for a in self.attributes}
        return Population.from_frame(cells, attributes=self.attributes)


def make_table(seed: int, *, size: int = 40, weighted: bool = True) -> Table:
    rng = random.Random(seed)  # noqa: S311

    def weight() -> float:
        return rng.choice([1.0, 1.0, 4.0, 0.25]) if weighted else 1.0

    attributes = (
        Attribute(name="age", kind=AttributeKind.CONTINUOUS, weight=weight()),
        Attribute(name="grade", kind=AttributeKind.ORDINAL, levels=GRADES, weight=weight()),
        Attribute(name="income", kind=AttributeKind.CONTINUOUS, weight=weight()),
        Attribute(name="job", kind=AttributeKind.NOMINAL, weight=weight()),
    )
    rows = [
        {
            "age": rng.randint(20, 28),
            "grade": rng.choice(GRADES),
            "income": rng.randint(0, 8) / 2,
            "job": rng.choice("abc"),
        }
        for _ in range(size)
    ]
    rows[0] |= {"age": 20, "income": 0.0}  # so that ranges have a common measure
    rows[1] |= {"age": 28, "income": 4.0}
    return Table(attributes, rows)


def measured(table: Table, name: DistanceName) -> tuple[Embedding, list[list[int]]]:
    """Give the integer distances between all rows of a table."""
    population = table.population
    embedding = Embedding.fit(population, table.attributes)
    embedding = fit_distance(name, embedding, table.attributes)
    points = embedding.apply(population).points
    return embedding, [
        embedding.metric.from_center(points.take(np.array([row])), points).tolist()
        for row in range(len(points))
    ]


# --- the oracles: the formulas as printed, in fractions or floats ---


def range_difference(table: Table, attribute: Attribute, here: Any, there: Any) -> Fraction:
    """Give |difference| / range, and overlap for names."""
    if attribute.kind is AttributeKind.NOMINAL:
        return Fraction(here != there)
    if attribute.kind is AttributeKind.ORDINAL:
        return Fraction(abs(GRADES.index(here) - GRADES.index(there)), len(GRADES) - 1)
    values = [Fraction(str(row[attribute.name])) for row in table.rows]
    return abs(Fraction(str(here)) - Fraction(str(there))) / (max(values) - min(values))


def gower(table: Table, here: dict[str, Any], there: dict[str, Any]) -> Fraction:
    weights = [Fraction(str(a.weight)) for a in table.attributes]
    terms = [range_difference(table, a, here[a.name], there[a.name]) for a in table.attributes]
    return sum((w * t for w, t in zip(weights, terms, strict=True)), Fraction(0)) / sum(weights)


def heom_squared(table: Table, here: dict[str, Any], there: dict[str, Any]) -> Fraction:
    return sum(
        (
            Fraction(str(a.weight)) * range_difference(table, a, here[a.name], there[a.name]) ** 2
            for a in table.attributes
        ),
        Fraction(0),
    )


EXACT: dict[DistanceName, Callable[..., Fraction]] = {"gower": gower, "heom": heom_squared}


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_people_are_ranked_exactly_as_by_the_formula(name: DistanceName, seed: int) -> None:
    """Equal distances are equal integers, and the farther of two is the larger integer."""
    table = make_table(seed)
    embedding, integers = measured(table, name)
    for row, found in zip(table.rows, integers, strict=True):
        exact = [EXACT[name](table, row, other) for other in table.rows]
        pairs = set(zip(exact, found, strict=True))
        assert len({e for e, _ in pairs}) == len({f for _, f in pairs}) == len(pairs)
        assert [f for _, f in sorted(pairs)] == sorted(f for _, f in pairs)
        shown = embedding.metric.as_float(np.array(found)).tolist()
        power = 2 if embedding.metric.squared else 1
        assert [each**power for each in shown] == pytest.approx([float(e) for e in exact])


def test_heom_of_two_people_by_hand() -> None:
    """A third of the ages' range and another job: √(1/9 + 1)."""
    attributes = (
        Attribute(name="age", kind=AttributeKind.CONTINUOUS),
        Attribute(name="job", kind=AttributeKind.NOMINAL),
    )
    rows = [{"age": 20, "job": "a"}, {"age": 50, "job": "a"}, {"age": 30, "job": "b"}]
    embedding, integers = measured(Table(attributes, rows), "heom")
    shown = embedding.metric.as_float(np.array(integers[0]))
    assert shown.tolist() == pytest.approx([0.0, 1.0, sqrt(1 / 9 + 1)])


@pytest.mark.parametrize("name", get_args(DistanceName))
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_neither_the_order_of_rows_nor_the_unit_of_a_number_matters(
    name: DistanceName, seed: int
) -> None:
    table = make_table(seed)
    _, before = measured(table, name)
    rng = random.Random(seed)  # noqa: S311
    order = rng.sample(range(len(table.rows)), len(table.rows))
    rows = [table.rows[row] | {"income": table.rows[row]["income"] * 1000} for row in order]
    _, after = measured(Table(table.attributes, rows), name)
    assert after == [[before[one][other] for other in order] for one in order]


@pytest.mark.parametrize("name", get_args(DistanceName))
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_a_distance_is_symmetric_and_keeps_the_triangle(name: DistanceName, seed: int) -> None:
    embedding, integers = measured(make_table(seed, size=12), name)
    shown = embedding.metric.as_float(np.array(integers))
    np.testing.assert_array_equal(shown, shown.T)
    assert (np.diag(shown) == 0).all()
    detours = (shown[:, :, None] + shown[None, :, :]).min(axis=1)
    assert (shown <= detours * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", get_args(DistanceName))
@settings(max_examples=8, deadline=None)
@given(seed=SEEDS)
def test_every_backend_finds_what_brute_finds(name: DistanceName, seed: int) -> None:
    table = make_table(seed, size=60)
    population = table.population
    embedding = fit_distance(name, Embedding.fit(population, table.attributes), table.attributes)
    metric, points = embedding.metric, embedding.apply(population).points
    negative = np.array([row["job"] == "a" for row in table.rows])
    space, standing = Space.of(points, negative, metric)
    queries = Queries(points=points, own=standing, own_negative=negative)
    moved = Space(
        points=metric.place(space.points),
        counts=space.counts,
        negatives=space.negatives,
        metric=metric.in_place,
    )
    here = Queries(points=metric.place(points), own=standing, own_negative=negative)
    ks = [1, 7, 59]
    expected = BruteSearch(space=space).neighbourhoods(queries, ks)
    answers = {
        "chosen": choose_search(space).neighbourhoods(queries, ks),
        "tree": TreeSearch.build(moved).neighbourhoods(here, ks),
        "compiled tree": CompiledSearch(moved, kernel="tree").neighbourhoods(here, ks),
        "compiled scan": CompiledSearch(moved, kernel="scan").neighbourhoods(here, ks),
    }
    for backend, found in answers.items():
        for each in fields(found):
            np.testing.assert_array_equal(
                getattr(found, each.name), getattr(expected, each.name), err_msg=backend
            )


@pytest.mark.parametrize("name", get_args(DistanceName))
def test_the_parts_of_attributes_add_up_to_the_distance(name: DistanceName) -> None:
    table = make_table(3)
    embedding, integers = measured(table, name)
    points = embedding.apply(table.population).points
    split = embedding.split(points.take(np.array([5])), points)
    if split is None:
        assert embedding.metric.move is not None
        assert embedding.metric.move.columns is None
        return
    assert set(split) == {"age", "grade", "income", "job"}
    total = sum(split.values())
    np.testing.assert_allclose(total, embedding.metric.as_float(np.array(integers[5])))


def test_a_caliper_is_read_exactly_where_distances_are_squared() -> None:
    embedding, integers = measured(make_table(1), "heom")
    metric = embedding.metric
    for distance in sorted(set(integers[0])):
        shown = metric.as_float(np.array([distance]))[0]
        assert metric.limit(Fraction(shown) + Fraction(1, 10**9)) >= distance
        if distance:
            assert metric.limit(Fraction(shown) - Fraction(1, 10**9)) < distance
    assert metric.limit(Fraction(-1)) == -1


def test_far_centers_are_measured_exactly_whatever_the_backend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From thirty ranges away a sum of squares has more than 53 bits: no kernel may measure it."""
    table = make_table(2, size=50)
    embedding, _ = measured(table, "heom")
    points = embedding.apply(table.population).points
    far = embedding.apply(
        Table(
            table.attributes, [row | {"age": row["age"] + 8 * 30} for row in table.rows]
        ).population
    ).points
    space, _ = Space.of(points, np.zeros(50, dtype=np.bool_), embedding.metric)
    monkeypatch.setattr("mutandis.search.choose._WORTH_LOADING", 0.0)
    search = choose_search(space)
    queries = Queries.outside(points)
    search.neighbourhoods(queries, [3])
    assert search.name.startswith("compiled")
    found = search.neighbourhoods(Queries.outside(far), [3])
    assert search.name == "tree"
    expected = BruteSearch(space=space).neighbourhoods(Queries.outside(far), [3])
    np.testing.assert_array_equal(found.radius, expected.radius)
    assert found.radius.max() > 2**53
    search.neighbourhoods(queries, [3])
    assert search.name.startswith("compiled")


def test_a_fine_grid_without_common_measure_is_quantised() -> None:
    attributes = (
        Attribute(name="a", kind=AttributeKind.CONTINUOUS),
        Attribute(name="b", kind=AttributeKind.CONTINUOUS),
    )
    rows = [{"a": i * 7919 % 65537, "b": i * 104729 % 65539} for i in range(500)]
    rows += [{"a": 0, "b": 0}, {"a": 65537, "b": 65539}, {"a": 1, "b": 1}]
    embedding, _ = measured(Table(attributes, rows), "heom")
    assert "lattice" in embedding.rules["a"] + embedding.rules["b"]
    assert "quantised" in embedding.rules["a"] + embedding.rules["b"]


@pytest.mark.parametrize("name", [each for each in get_args(DistanceName) if each != "gower"])
def test_scaling_has_no_say_in_a_distance_that_scales_itself(name: DistanceName) -> None:
    with pytest.raises(PlanError, match="scales numbers itself"):
        Similarity(distance=name, scaling="none")


def test_every_distance_is_described() -> None:
    assert set(DESCRIPTIONS) == set(get_args(DistanceName))
