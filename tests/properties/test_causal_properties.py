"""What holds for every worldview and every table: identity, row independence, no side effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from mutandis.data.columns import Categories, Column
from mutandis.data.population import Population
from mutandis.scm import Linear, Worldview

LEVELS = ("p", "q", "r")


@dataclass(frozen=True)
class Case:
    """A worldview over a table; `status` is a root, and row 0 already has `value`."""

    worldview: Worldview
    table: pd.DataFrame
    value: float | str

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.table]

    @property
    def numeric(self) -> list[str]:
        return [name for name in self.names if name != "status"]

    @property
    def population(self) -> Population:
        return Population.from_frame(self.table, columns=self.names)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a graph, the links, and positive data that have nothing to do with the graph."""
    size = draw(st.integers(1, 5))
    names = draw(st.permutations([f"x{number}" for number in range(size)]))
    nominal = draw(st.booleans())
    equations: dict[str, Linear] = {}
    for place, child in enumerate(names):
        before = ["status", *names[:place]]
        parents = draw(st.lists(st.sampled_from(before), unique=True, max_size=4))
        link: Literal["identity", "log"] = draw(st.sampled_from(["identity", "log"]))
        if parents:
            equations[child] = Linear(*parents, link=link)
    declared = draw(st.permutations(list(equations.items())))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = draw(st.integers(12, 40))
    codes = rng.integers(0, 3, rows)
    codes[:3] = [0, 1, 2]
    scale = draw(st.sampled_from([1e-3, 1.0, 1e5]))
    table = pd.DataFrame(
        {
            "status": np.array(LEVELS)[codes] if nominal else codes,
            **{name: scale * rng.lognormal(0.0, 0.3, rows) for name in names},
        }
    )
    return Case(Worldview(dict(declared)), table, "p" if nominal else 0)


def _bits(column: Column, rows: slice | np.ndarray[tuple[int], np.dtype[np.bool_]]) -> bytes:
    values = column.codes if isinstance(column, Categories) else column.values
    return values[rows].tobytes()


EVERYBODY = slice(None)


@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_whoever_has_the_value_already_does_not_change(case: Case) -> None:
    population = case.population
    counterfactuals = case.worldview.counterfactuals(population, do={"status": case.value})
    already = (case.table["status"] == case.value).to_numpy()
    assert already[0]
    for name in case.names:
        before, after = population.columns[name], counterfactuals.population.columns[name]
        assert _bits(before, already) == _bits(after, already)


@settings(max_examples=100, deadline=None)
@given(case=cases())
def test_effects_move_and_nothing_else_does(case: Case) -> None:
    population = case.population
    counterfactuals = case.worldview.counterfactuals(population, do={"status": case.value})
    effects: set[str] = set()
    for _ in case.worldview.equations:  # spread along the arrows until nothing is added
        for child, equation in case.worldview.equations.items():
            if {"status", *effects} & set(equation.parents):
                effects.add(child)
    assert set(counterfactuals.moved) == effects
    for name in case.numeric:
        before, after = population.columns[name], counterfactuals.population.columns[name]
        same = _bits(before, EVERYBODY) == _bits(after, EVERYBODY)
        assert same == (name not in effects)


@settings(max_examples=100, deadline=None)
@given(case=cases(), data=st.data())
def test_a_row_does_not_depend_on_the_rows_beside_it(case: Case, data: st.DataObject) -> None:
    fitted = case.worldview.fit(case.population)
    others = st.lists(st.integers(1, len(case.table) - 1), unique=True, max_size=20)
    chosen = [0, *data.draw(others)]  # row 0 has the value, so that it is a known level
    part = Population.from_frame(case.table.iloc[chosen], columns=case.names)
    whole = fitted.counterfactuals(case.population, do={"status": case.value}).population
    alone = fitted.counterfactuals(part, do={"status": case.value}).population
    for name in case.numeric:
        assert whole.numbers(name)[chosen].tobytes() == alone.numbers(name).tobytes()


@settings(max_examples=100, deadline=None)
@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_shuffling_the_rows_changes_nothing(case: Case, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(case.table))
    shuffled = Population.from_frame(case.table.iloc[order], columns=case.names)
    do = {"status": case.value}
    straight = case.worldview.counterfactuals(case.population, do=do).population
    mixed = case.worldview.counterfactuals(shuffled, do=do).population
    for name in case.numeric:
        assert straight.numbers(name)[order].tobytes() == mixed.numbers(name).tobytes()


@settings(max_examples=50, deadline=None)
@given(case=cases())
def test_the_order_of_declaration_changes_nothing(case: Case) -> None:
    do = {"status": case.value}
    other = Worldview(dict(reversed(list(case.worldview.equations.items()))))
    first = case.worldview.counterfactuals(case.population, do=do).population
    second = other.counterfactuals(case.population, do=do).population
    for name in case.numeric:
        assert first.numbers(name).tobytes() == second.numbers(name).tobytes()


@settings(max_examples=50, deadline=None)
@given(case=cases())
def test_inputs_are_never_modified(case: Case) -> None:
    table = case.table.copy(deep=True)
    population = case.population
    before = {name: _bits(population.columns[name], EVERYBODY) for name in case.names}
    case.worldview.fit(population).counterfactuals(population, do={"status": case.value})
    assert {name: _bits(population.columns[name], EVERYBODY) for name in case.names} == before
    assert population.changed == frozenset()
    pd.testing.assert_frame_equal(case.table, table)


@settings(max_examples=50, deadline=None)
@given(case=cases())
def test_going_there_and_back_returns_to_the_facts(case: Case) -> None:
    """With everybody at one status, do(another) and back is the identity up to rounding."""
    other = "q" if isinstance(case.value, str) else 1
    fitted = case.worldview.fit(case.population)
    held = fitted.counterfactuals(case.population, do={"status": case.value}).population
    there = fitted.counterfactuals(held, do={"status": other}).population
    back = fitted.counterfactuals(there, do={"status": case.value}).population
    for name in case.numeric:
        np.testing.assert_allclose(back.numbers(name), held.numbers(name), rtol=1e-7)
