"""Every distance against its published formula, in plain Python."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.population import Population
from mutandis.errors import PlanError
from mutandis.geometry.choose import ChosenSearch
from mutandis.geometry.compiled import CompiledSearch
from mutandis.geometry.distances import Sample, check_distance, distance_named
from mutandis.geometry.embedding import Embedding
from mutandis.geometry.index import Queries, Space
from mutandis.geometry.plain import BruteSearch, TreeSearch
from mutandis.registry import names
from tests.oracle import assert_equal_fields

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = st.integers(0, 10**6)
GRADES = ("low", "mid", "high", "top")


@dataclass(frozen=True, eq=False)
class Table:
    """People as a person would type them: a row each, with status and outcome."""

    attributes: tuple[Attribute, ...]
    rows: list[dict[str, Any]]

    def is_true(self, name: str) -> Any:
        return np.array([row[name] for row in self.rows], dtype=np.bool_)

    @property
    def population(self) -> Population:
        cells = {a.name: [row[a.name] for row in self.rows] for a in self.attributes}
        return Population.from_frame(cells, attributes=self.attributes)


def make_table(seed: int, *, size: int = 40, weighted: bool = True, jobs: str = "abc") -> Table:
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
            "job": rng.choice(jobs),
            "female": rng.random() < 0.4,
            "refused": rng.random() < 0.5,
        }
        for _ in range(size)
    ]
    rows[0] |= {"age": 20, "income": 0.0}  # so that ranges have a common measure
    rows[1] |= {"age": 28, "income": 4.0}
    for row, job in zip(rows, jobs, strict=False):  # every level occurs among men
        row |= {"job": job, "female": False}
    return Table(attributes, rows)


def make_levels(seed: int, *, size: int = 40) -> Table:
    """Make a table in which every attribute has levels, most combinations of which occur."""
    table = make_table(seed, size=size, weighted=False)
    attributes = (
        Attribute(name="age", kind=AttributeKind.ORDINAL, levels=(0, 1)),
        *table.attributes[1:2],
        Attribute(name="income", kind=AttributeKind.NOMINAL),
        *table.attributes[3:],
    )
    rows = [
        row | {"age": int(row["age"] > 24), "income": float(row["income"] > 2)}
        for row in table.rows
    ]
    return Table(attributes, rows)


def fit(table: Table, name: str) -> Embedding:
    population = table.population
    embedding = Embedding.fit(population, table.attributes)

    def learn() -> Sample:
        return Sample(
            points=embedding.apply(population).points,
            is_protected=table.is_true("female"),
            is_reference=~table.is_true("female"),
            is_negative=table.is_true("refused"),
            levels=tuple(len(population.categories(each).levels) for each in embedding.nominal),
        )

    return distance_named(name).fit(embedding, table.attributes, learn)


def table_for(name: str, seed: int, **options: Any) -> Table:
    """Make a table that a distance can be fitted on."""
    if name == "zhang":
        return make_levels(seed, **options)
    unweighted = name in {"mahalanobis", "rank-mahalanobis", "propensity"}
    jobs = "ab" if name == "rank-mahalanobis" else "abc"
    return make_table(seed, weighted=not unweighted, jobs=jobs, **options)


def measured(table: Table, name: str) -> tuple[Embedding, list[list[int]]]:
    """Give the integer distances between all rows of a table."""
    embedding = fit(table, name)
    points = embedding.apply(table.population).points
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
    return abs(Fraction(str(here)) - Fraction(str(there))) / extent(table, attribute)


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


# what is the same for all pairs of rows is worked out once


@lru_cache(maxsize=64)
def column(table: Table, attribute: Attribute) -> list[Fraction]:
    """Give an attribute as numbers: values, ranks from 0, or places among the levels."""
    cells = [row[attribute.name] for row in table.rows]
    if attribute.kind is AttributeKind.ORDINAL:
        return [Fraction(GRADES.index(cell)) for cell in cells]
    if attribute.kind is AttributeKind.NOMINAL:
        return [Fraction(sorted(set(cells)).index(cell)) for cell in cells]
    return [Fraction(str(cell)) for cell in cells]


@lru_cache(maxsize=64)
def extent(table: Table, attribute: Attribute) -> Fraction:
    values = column(table, attribute)
    return max(values) - min(values)


@lru_cache(maxsize=64)
def deviation(table: Table, attribute: Attribute) -> float:
    values = column(table, attribute)
    mean = sum(values, Fraction(0)) / len(values)
    return sqrt(sum((each - mean) ** 2 for each in values) / (len(values) - 1))


def shares(table: Table, cells: list[Any]) -> dict[Any, tuple[float, float]]:
    """Give P(refused | cell) and P(granted | cell) among men; 0 where there are none."""
    found = {}
    for cell in set(cells):
        men = [
            row["refused"]
            for row, here in zip(table.rows, cells, strict=True)
            if here == cell and not row["female"]
        ]
        found[cell] = (sum(men) / len(men), 1 - sum(men) / len(men)) if men else (0.0, 0.0)
    return found


def value_difference(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Wilson & Martinez, eq. 15 (N2) with the root of the erratum."""
    return sqrt(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)))


def thanh(table: Table) -> list[list[float]]:
    def term(attribute: Attribute, one: int, other: int) -> float:
        values = column(table, attribute)
        if attribute.kind is AttributeKind.NOMINAL:
            return float(values[one] != values[other])
        apart = float(abs(values[one] - values[other]))
        ordinal = attribute.kind is AttributeKind.ORDINAL
        return apart / (len(GRADES) - 1 if ordinal else deviation(table, attribute))

    return pairs(table, lambda one, other: averaged(table, term, one, other))


def averaged(table: Table, term: Any, one: int, other: int) -> float:
    weights = [a.weight for a in table.attributes]
    total: float = sum(a.weight * term(a, one, other) for a in table.attributes)
    return total / sum(weights)


def pairs(table: Table, distance: Callable[[int, int], float]) -> list[list[float]]:
    rows = range(len(table.rows))
    return [[distance(one, other) for other in rows] for one in rows]


def hvdm(table: Table) -> list[list[float]]:
    @cache
    def learned(attribute: Attribute) -> dict[Any, tuple[float, float]]:
        return shares(table, column(table, attribute))

    def term(attribute: Attribute, one: int, other: int) -> float:
        values = column(table, attribute)
        if attribute.kind is AttributeKind.NOMINAL:
            found = learned(attribute)
            return value_difference(found[values[one]], found[values[other]])
        return float(abs(values[one] - values[other])) / (4 * deviation(table, attribute))

    return pairs(table, lambda one, other: rooted(table, term, one, other))


def rooted(table: Table, term: Any, one: int, other: int) -> float:
    return sqrt(sum(a.weight * term(a, one, other) ** 2 for a in table.attributes))


def ivdm(table: Table) -> list[list[float]]:
    @cache
    def at(attribute: Attribute, row: int) -> tuple[float, float]:
        values = column(table, attribute)
        if attribute.kind is not AttributeKind.CONTINUOUS:
            return shares(table, values)[values[row]]
        low, width = min(values), (max(values) - min(values)) / 5
        cells = [min(int((each - low) / width), 4) + 1 for each in values]
        found = shares(table, cells)
        # the interval whose middle is the last one not above the value
        u = int((values[row] - low) / width + Fraction(1, 2))
        part = float((values[row] - (low + width * (u - Fraction(1, 2)))) / width)
        before, after = found.get(u, (0.0, 0.0)), found.get(u + 1, (0.0, 0.0))
        refused, granted = (a + part * (b - a) for a, b in zip(before, after, strict=True))
        return refused, granted

    def term(attribute: Attribute, one: int, other: int) -> float:
        return value_difference(at(attribute, one), at(attribute, other))

    return pairs(table, lambda one, other: rooted(table, term, one, other))


def solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Solve linear equations by elimination, in fractions."""
    rows = [[*row, each] for row, each in zip(matrix, right, strict=True)]
    for place, pivot in enumerate(rows):
        for other, row in enumerate(rows):
            if other != place and row[place]:
                factor = row[place] / pivot[place]
                rows[other] = [a - factor * b for a, b in zip(row, pivot, strict=True)]
    return [row[-1] / row[place] for place, row in enumerate(rows)]


def covariance(
    columns: list[list[Fraction]], groups: list[list[int]], freedom: int
) -> list[list[Fraction]]:
    centred = [list(each) for each in columns]
    for group in groups:
        for one, each in enumerate(columns):
            mean = sum((each[row] for row in group), Fraction(0)) / len(group)
            for row in group:
                centred[one][row] = each[row] - mean
    return [
        [
            sum((a * b for a, b in zip(one, other, strict=True)), Fraction(0)) / freedom
            for other in centred
        ]
        for one in centred
    ]


def by_covariance(
    columns: list[list[Fraction]], matrix: list[list[Fraction]], one: int, other: int
) -> float:
    apart = [each[one] - each[other] for each in columns]
    return sqrt(sum(a * b for a, b in zip(apart, solved(matrix, apart), strict=True)))


def mahalanobis(table: Table) -> list[list[float]]:
    columns = []
    for attribute in table.attributes:
        values = column(table, attribute)
        if attribute.kind is AttributeKind.NOMINAL:
            # another level is left out than in the program
            columns += [[Fraction(v == level) for v in values] for level in (0, 1)]
        else:
            columns.append(values)
    status = [row["female"] for row in table.rows]
    groups = [[row for row, each in enumerate(status) if each is sex] for sex in (True, False)]
    matrix = covariance(columns, groups, len(status) - 2)
    return pairs(table, lambda one, other: by_covariance(columns, matrix, one, other))


def rank_mahalanobis(table: Table) -> list[list[float]]:
    size, columns = len(table.rows), []
    for attribute in table.attributes:
        values = column(table, attribute)
        columns.append(
            [
                sum(each < value for each in values)
                + Fraction(sum(each == value for each in values) + 1, 2)
                for value in values
            ]
        )
    matrix = covariance(columns, [list(range(size))], size - 1)
    untied = Fraction(size * (size + 1), 12)
    raised = [sqrt(untied / matrix[place][place]) for place in range(len(matrix))]
    matrix = [
        [each * Fraction(raised[one]) * Fraction(raised[other]) for other, each in enumerate(row)]
        for one, row in enumerate(matrix)
    ]
    return pairs(table, lambda one, other: by_covariance(columns, matrix, one, other))


def zhang(table: Table) -> list[list[float]]:
    """Zhang, Wu & Wu: Σ |CE · VD|, the effect on refusals of each change, one at a time."""
    names = [each.name for each in table.attributes]

    def rate(cell: dict[str, Any]) -> Fraction | None:
        """P(refused | do(cell)), adjusted for the status; None where a status has no one."""
        total = Fraction(0)
        for sex in (True, False):
            group = [row for row in table.rows if row["female"] is sex]
            alike = [row["refused"] for row in group if all(row[n] == cell[n] for n in names)]
            if not alike:
                return None
            total += Fraction(len(group), len(table.rows)) * Fraction(sum(alike), len(alike))
        return total

    def term(attribute: Attribute, here: dict[str, Any], there: dict[str, Any]) -> Fraction:
        name = attribute.name
        if here[name] == there[name]:
            return Fraction(0)
        levels = list(attribute.levels)
        ordered = attribute.kind is AttributeKind.ORDINAL
        apart = Fraction(1)
        if ordered:
            steps = abs(levels.index(here[name]) - levels.index(there[name]))
            apart = Fraction(steps, len(levels) - 1)
        rates = rate(here), rate(here | {name: there[name]})
        effect = Fraction(1) if None in rates else abs(rates[0] - rates[1])  # type: ignore[operator]
        return effect * apart

    def distance(one: int, other: int) -> float:
        here, there = table.rows[one], table.rows[other]
        return float(sum((term(a, here, there) for a in table.attributes), Fraction(0)))

    return pairs(table, distance)


ROUNDED: dict[str, Callable[[Table], list[list[float]]]] = {
    "thanh": thanh,
    "hvdm": hvdm,
    "ivdm": ivdm,
    "mahalanobis": mahalanobis,
    "rank-mahalanobis": rank_mahalanobis,
    "zhang": zhang,
}


@pytest.mark.parametrize("name", ROUNDED)
@settings(max_examples=5, deadline=None)
@given(seed=SEEDS)
def test_distances_are_those_of_the_formula(name: str, seed: int) -> None:
    table = table_for(name, seed, size=30)
    embedding, integers = measured(table, name)
    shown = embedding.metric.as_float(np.array(integers))
    np.testing.assert_allclose(shown, ROUNDED[name](table), rtol=1e-4, atol=1e-5)


@settings(max_examples=5, deadline=None)
@given(seed=SEEDS)
def test_scores_solve_the_equations_of_their_likelihood(seed: int) -> None:
    """At the maximum, expected and observed sums of each attribute over women are the same."""
    table = table_for("propensity", seed, size=60)
    embedding = fit(table, "propensity")
    points = embedding.metric.place(embedding.apply(table.population).points)
    score = points.coordinates[:, 0] / embedding.metric.unit
    female = table.is_true("female")
    log_odds = np.log(score / (1 - score))
    columns = [np.ones(60)]
    for attribute in table.attributes:
        values = np.array([float(each) for each in column(table, attribute)])
        if attribute.kind is AttributeKind.NOMINAL:
            columns += [values == level for level in (0, 1)]
        else:
            columns.append(values)
    design = np.array(columns, dtype=np.float64).T
    np.testing.assert_allclose(design.T @ (score - female), 0, atol=1e-5)
    explained = design @ np.linalg.lstsq(design, log_odds, rcond=None)[0]
    np.testing.assert_allclose(explained, log_odds, atol=1e-6)


def test_values_between_levels_and_beyond_all_of_them_have_places() -> None:
    """Centers of tipping points lie between levels, and counterfactuals may have new names."""
    table = make_table(4)
    for name in names("distance"):
        table = table_for(name, 4)
        embedding = fit(table, name)
        points = embedding.apply(table.population).points
        between = replace(points, coordinates=points.coordinates + 1)
        assert len(embedding.metric.place(between)) == len(points)
        unknown = replace(points, codes=points.codes * 0 + 99)
        if name in {"hvdm", "ivdm"}:
            with pytest.raises(PlanError, match="a level that no one in the table has"):
                embedding.metric.place(unknown)
        elif name != "propensity":
            assert embedding.metric.from_center(unknown.take(np.array([0])), points).min() >= 0


EXACT: dict[str, Callable[..., Fraction]] = {"gower": gower, "heom": heom_squared}


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_people_are_ranked_exactly_as_by_the_formula(name: str, seed: int) -> None:
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


@pytest.mark.parametrize("name", names("distance"))
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_neither_the_order_of_rows_nor_the_unit_of_a_number_matters(name: str, seed: int) -> None:
    table = table_for(name, seed)
    _, before = measured(table, name)
    rng = random.Random(seed)  # noqa: S311
    order = rng.sample(range(len(table.rows)), len(table.rows))
    rows = [table.rows[row] | {"income": table.rows[row]["income"] * 1000} for row in order]
    _, after = measured(Table(table.attributes, rows), name)
    assert after == [[before[one][other] for other in order] for one in order]


METRICS = [each for each in names("distance") if each != "zhang"]


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_a_distance_is_symmetric_and_keeps_the_triangle(name: str, seed: int) -> None:
    embedding, integers = measured(table_for(name, seed, size=25), name)
    shown = embedding.metric.as_float(np.array(integers))
    np.testing.assert_array_equal(shown, shown.T)
    assert (np.diag(shown) == 0).all()
    detours = (shown[:, :, None] + shown[None, :, :]).min(axis=1)
    assert (shown <= detours * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("name", "missing"),
    [*((name, False) for name in names("distance")), ("heom", True), ("thanh", True)],
)
@settings(max_examples=6, deadline=None)
@given(seed=SEEDS)
def test_every_backend_finds_what_brute_finds(name: str, seed: int, *, missing: bool) -> None:
    table = with_gaps(seed, size=60) if missing else table_for(name, seed, size=60)
    embedding = fit(table, name)
    metric, points = embedding.metric, embedding.apply(table.population).points
    negative = table.is_true("refused")
    space, standing = Space.of(points, negative, metric)
    queries = Queries.inside(points, standing, negative)
    ks = [1, 7, 59]
    expected = BruteSearch(space=space).neighbourhoods(queries, ks)
    chosen = ChosenSearch(space)
    assert_equal_fields(chosen.neighbourhoods(queries, ks), expected)
    if metric.weighing is not None:  # no tree can measure from every center in another way
        assert chosen.name == "brute"
        return
    moved = replace(space, points=metric.place(space.points), metric=metric.in_place)
    here = replace(queries, points=metric.as_center(metric.place(points)))
    for search in (
        TreeSearch.build(moved),
        CompiledSearch(moved, kernel="tree"),
        CompiledSearch(moved, kernel="scan"),
    ):
        assert_equal_fields(search.neighbourhoods(here, ks), expected)


@pytest.mark.parametrize("name", names("distance"))
def test_the_parts_of_attributes_add_up_to_the_distance(name: str) -> None:
    table = table_for(name, 3)
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
    monkeypatch.setattr("mutandis.geometry.choose._WORTH_LOADING", 0.0)
    search = ChosenSearch(space)
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


def with_gaps(seed: int, size: int = 40) -> Table:
    """Make a table in which every third job is missing."""
    table = make_table(seed, size=size)
    attributes = (*table.attributes[:3], replace(table.attributes[3], compare_missing=True))
    rows = [row | {"job": None} if i % 3 == 2 else row for i, row in enumerate(table.rows)]
    return Table(attributes, rows)


@settings(max_examples=5, deadline=None)
@given(seed=SEEDS)
def test_a_missing_name_differs_from_every_other_and_from_another_missing_one(seed: int) -> None:
    """Wilson & Martinez, eq. 3: 1 if either value is unknown; so in k-NN situation testing."""
    table = with_gaps(seed, size=30)
    lacking = [row["job"] is None for row in table.rows]
    # to the oracles, missing ones are names that no two rows share
    rows = [row | {"job": row["job"] or f"row {place}"} for place, row in enumerate(table.rows)]
    told = Table(table.attributes, rows)
    weight, total = table.attributes[3].weight, sum(a.weight for a in table.attributes)
    expected = {
        "heom": pairs(told, lambda one, other: float(heom_squared(told, rows[one], rows[other]))),
        "thanh": thanh(told),
    }
    # even from herself, whom no search counts
    for name, own, power in (("heom", weight, 2), ("thanh", weight / total, 1)):
        embedding, integers = measured(table, name)
        shown = embedding.metric.as_float(np.array(integers)) ** power
        apart = np.array(expected[name]) + np.diag(np.where(lacking, own, 0.0))
        np.testing.assert_allclose(shown, apart, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", sorted(set(names("distance")) - {"heom", "thanh"}))
def test_missing_values_are_compared_where_a_distance_defines_it(name: str) -> None:
    job = Attribute(name="job", kind=AttributeKind.NOMINAL, compare_missing=True)
    with pytest.raises(PlanError, match="does not compare missing values here"):
        check_distance(name, [job])
    check_distance("heom", [job])


@pytest.mark.parametrize("name", ["mahalanobis", "rank-mahalanobis", "propensity", "zhang"])
def test_weights_are_refused_where_they_have_no_meaning(name: str) -> None:
    pay = Attribute(name="pay", kind=AttributeKind.NOMINAL, weight=2)
    with pytest.raises(PlanError, match="takes no weights"):
        check_distance(name, [pay])
    check_distance(name, [replace(pay, weight=1)])
    check_distance("heom", [pay])


def test_too_many_combinations_of_levels_are_refused() -> None:
    attributes = tuple(Attribute(name=f"x{i}", kind=AttributeKind.NOMINAL) for i in range(40))
    rows = [
        {each.name: (row * 7 + place) % 3 for place, each in enumerate(attributes)}
        | {"female": row % 2 == 0, "refused": row % 5 == 0}
        for row in range(20)
    ]
    with pytest.raises(PlanError, match="40 attributes have too many of them"):
        fit(Table(attributes, rows), "zhang")


def test_collinear_attributes_are_refused_by_name() -> None:
    table = make_table(7, weighted=False)
    rows = [row | {"income": 2 * row["age"]} for row in table.rows]
    with pytest.raises(PlanError, match="'income' follows from the attributes before it"):
        fit(Table(table.attributes, rows), "mahalanobis")


def test_ranks_need_an_order() -> None:
    with pytest.raises(PlanError, match="'job' has 3 levels without an order"):
        fit(make_table(7, weighted=False), "rank-mahalanobis")


@pytest.mark.parametrize(
    "name", ["gower", "heom", "thanh", "mahalanobis", "rank-mahalanobis", "zhang"]
)
def test_exchanging_the_groups_changes_no_distance(name: str) -> None:
    table = table_for(name, 5)
    mirrored = Table(table.attributes, [row | {"female": not row["female"]} for row in table.rows])
    metric, other = fit(table, name).metric, fit(mirrored, name).metric
    points = fit(table, name).apply(table.population).points
    here, there = (
        each.as_float(each.from_center(points.take(np.array([3])), points))
        for each in (metric, other)
    )
    np.testing.assert_allclose(here, there, rtol=1e-6, atol=1e-6)
