"""Exact coordinates, and the common unit of all attributes."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.columns import Numbers
from mutandis.data.population import Population
from mutandis.errors import InputError, MutandisWarning, PlanError
from mutandis.geometry.embedding import FINEST, Embedding, Scaling, Term, choose_unit


def number(name: str, weight: float = 1.0) -> Attribute:
    return Attribute(name=name, kind=AttributeKind.CONTINUOUS, weight=weight)


def ranked(name: str, levels: tuple[Any, ...], weight: float = 1.0) -> Attribute:
    return Attribute(name=name, kind=AttributeKind.ORDINAL, levels=levels, weight=weight)


def named(name: str, weight: float = 1.0) -> Attribute:
    return Attribute(name=name, kind=AttributeKind.NOMINAL, weight=weight)


def distances(
    columns: dict[str, Any],
    attributes: list[Attribute],
    *,
    scaling: Scaling = "range",
    center: dict[str, Any] | None = None,
) -> list[float]:
    """Measure from the first row (or from a center of numbers) to every row."""
    population = Population.from_frame(columns, attributes=attributes)
    embedding = Embedding.fit(population, attributes, scaling=scaling)
    rows = embedding.apply(population)
    start = rows
    if center is not None:
        moved = {n: Numbers(np.full(len(population), v)) for n, v in center.items()}
        start = embedding.apply(population.with_columns(moved))
    found = embedding.metric.from_center(start.points.take(np.array([0])), rows.points)
    return [float(d) + float(start.overflow_distance[0]) for d in embedding.metric.as_float(found)]


def rules(columns: dict[str, Any], attributes: list[Attribute]) -> dict[str, str]:
    population = Population.from_frame(columns, attributes=attributes)
    return Embedding.fit(population, attributes).rules


MIXED = {"wage": [10.0, 20.0, 50.0], "grade": ["low", "mid", "high"], "job": ["a", "b", "a"]}
MIXED_ATTRIBUTES = [
    number("wage"),
    ranked("grade", ("low", "mid", "high", "top")),
    named("job", 2.0),
]


def test_the_distance_is_the_weighted_mean_over_attributes() -> None:
    # (10/40 + 1/3 + 2·1)/4 and (40/40 + 2/3 + 0)/4
    expected = [0.0, (0.25 + 1 / 3 + 2) / 4, (1 + 2 / 3) / 4]
    assert distances(MIXED, MIXED_ATTRIBUTES) == pytest.approx(expected, rel=1e-15)


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(
            st.floats(-1e6, 1e6), st.integers(0, 500).map(lambda x: x / 10), st.integers(0, 2)
        ),
        min_size=3,
        max_size=10,
    ),
    st.sampled_from([0.1, 1.0, 3.0]),
)
def test_unscaled_distances_are_the_plain_mean(
    cells: list[tuple[float, float, int]], weight: float
) -> None:
    cells = [(0.0, 0.0, 0), (1.0, 0.1, 1), *cells]  # nothing is constant
    x, y, z = zip(*cells, strict=True)
    attributes = [number("x"), number("y", weight), named("z")]
    columns = {"x": x, "y": y, "z": z}
    population = Population.from_frame(columns, attributes=attributes)
    is_rounded = "rounded" in str(Embedding.fit(population, attributes, scaling="none").rules)
    found = distances(columns, attributes, scaling="none")
    expected = [
        (abs(a - x[0]) + weight * abs(b - y[0]) + (c != z[0])) / (2 + weight) for a, b, c in cells
    ]
    # where int64 has no room for all steps, weights are rounded to 24 bits, and the rules say so
    rel = 2**-24 if is_rounded else 1e-12
    assert found == pytest.approx(expected, rel=rel, abs=1e-12 * np.ptp(x))


@pytest.mark.parametrize("scaling", ["range", "none"])
@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e9, 1e300])
def test_any_magnitude_can_be_measured(size: float, scaling: Scaling) -> None:
    found = distances({"x": [0.0, size / 4, size]}, [number("x")], scaling=scaling)
    unit = size if scaling == "none" else 1.0
    assert found == pytest.approx([0.0, unit / 4, unit], rel=1e-12, abs=0.0)


def test_a_counterfactual_outside_the_range_is_not_clipped() -> None:
    columns = {"x": [0.0, 1.0, 4.0]}
    assert distances(columns, [number("x")], center={"x": 6.0}) == [1.5, 1.25, 0.5]
    assert distances(columns, [number("x")], center={"x": -400.0}) == [100.0, 100.25, 101.0]


def test_a_counterfactual_at_the_end_of_the_floats_is_infinitely_far_without_noise() -> None:
    found = distances({"x": [0.0, 1e-300]}, [number("x")], center={"x": 1e308})
    assert found == [np.inf, np.inf]


def test_equal_differences_are_equal_where_floats_say_otherwise() -> None:
    assert 3.3 - 3.2 != 3.2 - 3.1
    found = distances({"x": [3.2, 3.1, 3.3, 0.0, 4.2]}, [number("x")])
    assert found[1] == found[2]


def test_rules_say_what_was_done() -> None:
    rng = np.random.default_rng(5)
    columns = {
        "grade": rng.integers(0, 43, 200) / 10,
        "noise": rng.normal(size=200),
        "band": rng.integers(0, 3, 200),
        "job": rng.integers(0, 3, 200),
        "filled": np.append(rng.integers(0, 40, 199) / 10, np.pi),
    }
    attributes = [
        number("grade"),
        number("noise"),
        ranked("band", (0, 1, 2)),
        named("job"),
        number("filled"),
    ]
    assert rules(columns, attributes) == {
        "grade": "lattice of 42 steps",
        "noise": "quantised to 2^-40",
        "band": "lattice of 2 steps",
        "job": "equal or different",
        "filled": "lattice of 39 steps, 1 values off it quantised to 2^-40",
    }


def test_symmetric_ties_survive_where_the_common_multiple_does_not_fit() -> None:
    """Six columns with coprime grids: int64 has no room for all, each keeps its own steps."""
    ends = {"a": 987_653, "b": 34_987, "c": 57, "d": 41, "e": 2_111, "f": 99_989}
    columns = {name: [20.0, 17.0, 23.0, 0.0, float(end)] for name, end in ends.items()}
    attributes = [number(name) for name in columns]
    assert "weight rounded" in str(rules(columns, attributes))
    found = distances(columns, attributes)
    exact = sum((Fraction(3, end) for end in ends.values()), Fraction(0)) / len(ends)
    assert found[1] == found[2] == pytest.approx(float(exact), rel=1e-7)
    # and around a center midway between two steps
    found = distances(columns, attributes, center=dict.fromkeys(columns, 18.5))
    assert found[0] == found[1]


def test_a_lattice_too_fine_to_be_rounded_is_quantised() -> None:
    columns = {name: [0.0, 1.0, end] for name, end in {"a": 1e9 + 7, "b": 1e9 + 9}.items()}
    assert rules(columns, [number("a")]) == {"a": "lattice of 1000000007 steps"}
    assert rules(columns, [number("a"), number("b")]) == {
        "a": "lattice of 1000000007 steps",
        "b": "quantised to 2^-40",
    }


@pytest.mark.parametrize(
    "attribute",
    [number("same"), ranked("same", (3.5, 4.5)), named("same")],
    ids=lambda attribute: str(attribute.kind),
)
def test_a_constant_attribute_contributes_nothing_and_is_named(attribute: Attribute) -> None:
    columns = {"x": [0.0, 1.0, 2.0], "same": [3.5] * 3}
    with pytest.warns(MutandisWarning, match="'same' is constant"):
        found = distances(columns, [number("x"), attribute])
    # it still counts among the attributes over which the mean is taken
    assert found == [0.0, 0.25, 0.5]


def test_with_nothing_but_constants_everybody_is_at_distance_zero() -> None:
    with pytest.warns(MutandisWarning, match="constant"):
        assert distances({"x": [1.5, 1.5]}, [number("x")]) == [0.0, 0.0]


def test_ordinal_ranks_count_all_declared_levels() -> None:
    levels = tuple(range(70))
    assert distances({"x": [3, 10, 3]}, [ranked("x", levels)]) == [0.0, 7 / 69, 0.0]


def test_fit_once_apply_twice() -> None:
    """The scale is D's: applied to other rows, it does not look at them."""
    attributes = [number("x")]
    population = Population.from_frame({"x": [0.0, 10.0]}, attributes=attributes)
    embedding = Embedding.fit(population, attributes)
    moved = population.with_columns({"x": Numbers(np.array([5.0, 5.0]))})
    halves = embedding.apply(moved).points.coordinates[:, 0]
    assert halves.tolist() == [embedding.axes[0].length // 2] * 2


def test_weights_of_any_length_are_used_as_they_are() -> None:
    columns = {"x": [0.0, 1.0, 0.0, 8.0], "y": [0.0, 0.0, 1.0, 5.0]}
    for weight in (1 / 3, 0.123456789012345, 1e-6):
        found = distances(columns, [number("x"), number("y", weight)])
        expected = [0.0, 1 / 8 / (1 + weight), weight / 5 / (1 + weight), 1.0]
        assert found == pytest.approx(expected, rel=1e-9)


def test_weights_too_far_apart_are_refused() -> None:
    columns = {"x": [0.0, 0.1, 1.0], "y": [0.0, 1.0, 2.0]}
    with pytest.raises(PlanError, match="'y' counts so little beside the others"):
        distances(columns, [number("x"), number("y", 1e-30)])


def test_unscaled_values_too_far_apart_are_refused() -> None:
    columns = {"x": [0.0, 1e200], "y": [0.0, 1.0]}
    with pytest.raises(PlanError, match="scaling='none'"):
        distances(columns, [number("x"), number("y")], scaling="none")


def test_a_range_beyond_floats_is_refused() -> None:
    with pytest.raises(InputError, match="'x' spans more than float64"):
        distances({"x": [-1.7e308, 1.7e308]}, [number("x")])


terms = st.lists(
    st.builds(
        Term,
        name=st.just("x"),
        weight=st.sampled_from([Fraction(1), Fraction("0.1"), Fraction("0.5"), Fraction(3)]),
        steps=st.integers(1, 5000),
    ),
    min_size=1,
    max_size=3,
)


@given(terms)
def test_every_half_step_is_whole_where_all_fit(chosen: list[Term]) -> None:
    weight = sum((term.weight for term in chosen), Fraction(0))
    unit = choose_unit(chosen, weight=weight)
    for term in chosen:
        assert term.is_exact(unit)
        half_step = unit * term.weight / (2 * term.steps)
        assert half_step.denominator == 1
        assert term.length(unit) == half_step * 2 * term.steps
    # as large as there is room for, to a factor of two
    assert FINEST / 2 < unit * weight <= FINEST


def test_what_does_not_fit_is_rounded_and_the_others_stay_exact() -> None:
    steps = {"age": 57, "score": 549, "rate": 21, "price": 99_999_989, "income": 99_999_971}
    chosen = [Term(name=name, weight=Fraction(1), steps=count) for name, count in steps.items()]
    units = {choose_unit(order, weight=Fraction(5)) for order in permutations(chosen)}
    assert len(units) == 1
    (unit,) = units
    assert [term.is_exact(unit) for term in chosen] == [True, True, True, False, True]
    for term in chosen:
        length = term.length(unit)
        assert length % (2 * term.steps) == 0
        assert length == pytest.approx(float(unit), rel=2**-24)
