"""The contract that every equation family keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.data.attribute import read_attributes
from mutandis.data.columns import Categories, Numbers
from mutandis.data.population import Population
from mutandis.errors import EquationError, KindError, UnknownColumnError, WorldviewError
from mutandis.scm import Additive, Categorical, Count, Linear, Ordinal, Stated, Worldview

if TYPE_CHECKING:
    from mutandis.data.columns import Column
    from mutandis.scm.family import Equation

ROWS = 300
KINDS: Any = {"grade": {"kind": "ordinal", "levels": ["low", "mid", "top"]}}


@dataclass(frozen=True)
class Waves:
    """A regressor whose fit does not depend on how a library rounds."""

    def fit(self, features: Any, target: Any) -> Any:
        return self

    def predict(self, features: Any) -> Any:
        return np.sin(features).sum(axis=1)


CASES: dict[str, tuple[str, Equation]] = {
    "linear": ("pay", Linear("sex", "age", "place")),
    "linear, interactions": ("pay", Linear("sex", "age", interactions=True)),
    "linear, log link": ("pay", Linear("sex", "age", link="log")),
    "linear, finished": ("rank", Linear("sex", "age", decimals=0, bounds=(-50, None))),
    "count": ("jobs", Count("sex", "age", bounds=(0, None))),
    "ordinal": ("grade", Ordinal("sex", "age", levels=["low", "mid", "top"])),
    "categorical": ("trade", Categorical("sex", "age")),
    "stated": ("pay", Stated('b * (sex == "f") + 0.3 * age', fit=("b",))),
    "additive": ("pay", Additive("sex", "age", regressor=Waves())),
}


@pytest.fixture(params=CASES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def people(seed: int = 1, rows: int = ROWS) -> Population:
    rng = np.random.default_rng(seed)
    female = rng.random(rows) < 0.4
    age = np.round(rng.normal(40, 10, rows), 1)
    height = 0.05 * (age - 40) + female + rng.logistic(size=rows)
    table = pd.DataFrame(
        {
            "sex": np.where(female, "f", "m"),
            "place": rng.choice(["x", "y", "z"], rows),
            "age": age,
            "pay": np.exp(0.02 * age - 0.3 * female + rng.normal(0, 0.3, rows)),
            "rank": np.round(age - 5 * female + rng.normal(0, 5, rows)),
            "jobs": rng.poisson(np.exp(0.5 + 0.4 * female + 0.01 * age)).astype(float),
            "grade": np.array(["low", "mid", "top"])[(height > 0).astype(int) + (height > 1)],
            "trade": rng.choice(["baker", "clerk", "cook"], rows),
        },
        index=pd.RangeIndex(rows),
    )
    return Population.from_frame(
        table, columns=table.columns.tolist(), attributes=read_attributes(KINDS)
    )


def parts(name: str, population: Population) -> tuple[Equation, Column, dict[str, Column]]:
    child, equation = CASES[name]
    columns = population.columns
    return equation, columns[child], {cause: columns[cause] for cause in equation.parents}


def bits(column: Column) -> bytes:
    return column.data.tobytes()


# --- declarations -----------------------------------------------------------------------------


def test_repr_makes_the_same_equation_again(name: str) -> None:
    equation = CASES[name][1]
    again = eval(repr(equation), {**globals(), "Waves": Waves})  # noqa: S307 - of our own making
    assert again == equation
    assert hash(again) == hash(equation)
    assert len({equation, *(other for _, other in CASES.values())}) == len(CASES)


def test_an_equation_cannot_be_changed(name: str) -> None:
    with pytest.raises(AttributeError):
        CASES[name][1].parents = ("place",)  # type: ignore[misc]


def test_an_equation_can_be_given_further_causes(name: str) -> None:
    equation = CASES[name][1]
    wider = equation.with_parents("height")
    if wider is None:
        assert isinstance(equation, Stated)
        return
    assert wider.parents == (*equation.parents, "height")
    kept, given = equation.arguments(), wider.arguments()
    assert {**kept, "parents": None} == {**given, "parents": None}


def test_a_file_holds_every_family_but_regressors(name: str) -> None:
    child, equation = CASES[name]
    worldview = Worldview({child: equation})
    if isinstance(equation, Additive):
        with pytest.raises(WorldviewError, match="Additive"):
            worldview.write()
        return
    assert Worldview.read(worldview.write()) == worldview


# --- noise and predictions --------------------------------------------------------------------


@pytest.mark.parametrize("draw", [False, True])
def test_unchanged_causes_give_the_facts_bit_for_bit(name: str, draw: bool) -> None:
    equation, child, causes = parts(name, people())
    fitted = equation.fit(child, causes)
    noise = fitted.abduct(child, causes, rng=np.random.default_rng(3) if draw else None)
    predicted = fitted.predict(causes, noise)
    assert bits(predicted.column) == bits(child)
    assert predicted.clipped == 0


def test_the_order_of_rows_changes_nothing(name: str) -> None:
    population, (child, equation) = people(), CASES[name]
    worldview, do = Worldview({child: equation}), {"sex": "m"}
    order = np.random.default_rng(2).permutation(ROWS)
    shuffled = replace(
        population,
        columns={each: column.take(order) for each, column in population.columns.items()},
        ids=population.ids[order],
        positions=population.positions[order],
    )
    made = [
        worldview.counterfactuals(each, do=do, draws=2, rng=np.random.default_rng(4))
        for each in (population, shuffled)
    ]
    assert made[0].moved == (child,)
    for one, other in zip(
        [made[0].population, *made[0].draws], [made[1].population, *made[1].draws], strict=True
    ):
        assert bits(one.columns[child].take(order)) == bits(other.columns[child])


def test_a_row_does_not_depend_on_other_rows(name: str) -> None:
    equation, child, causes = parts(name, people())
    fitted = equation.fit(child, causes)
    some = np.arange(0, ROWS, 7)
    changed = {**causes, "sex": causes["sex"].filled(1)}  # type: ignore[union-attr]
    whole = fitted.predict(changed, fitted.abduct(child, causes)).column.take(some)
    few = {cause: column.take(some) for cause, column in causes.items()}
    few_changed = {cause: column.take(some) for cause, column in changed.items()}
    alone = fitted.predict(few_changed, fitted.abduct(child.take(some), few)).column
    assert bits(whole) == bits(alone)


def test_draws_are_seeded_and_differ_where_the_facts_leave_noise_open(name: str) -> None:
    child, equation = CASES[name]
    worldview, do = Worldview({child: equation}), {"sex": "m"}

    def drawn(seed: int) -> list[bytes]:
        made = worldview.counterfactuals(people(), do=do, draws=3, rng=np.random.default_rng(seed))
        return [bits(each.columns[child]) for each in made.draws]

    assert drawn(1) == drawn(1)
    is_open = equation.coupling is not None
    assert (len(set(drawn(1) + drawn(2))) > 1) == is_open
    assert dict(worldview.couplings) == ({child: equation.coupling} if is_open else {})


def test_what_is_left_over_has_a_number_for_each_row(name: str) -> None:
    equation, child, causes = parts(name, people())
    fitted = equation.fit(child, causes)
    noise = fitted.abduct(child, causes, rng=np.random.default_rng(1))
    left = fitted.leftover(child, causes, noise)
    assert left.vectors
    assert {len(vector) for vector in left.vectors} == {ROWS}
    assert np.isfinite(left.vectors).all()
    assert left.fit is not None
    assert left.fit <= 1.0
    assert left.standard == (name in {"count", "ordinal"})


# --- refusals ---------------------------------------------------------------------------------


def test_a_cause_that_changed_its_kind_is_refused(name: str) -> None:
    equation, child, causes = parts(name, people())
    fitted = equation.fit(child, causes)
    numbers = {**causes, "sex": Numbers(np.zeros(ROWS))}
    if isinstance(equation, Stated):  # comparing a number with a name is never true
        return
    with pytest.raises(KindError, match="'sex' held names when its equation was fitted"):
        fitted.abduct(child, numbers)


def test_a_level_that_the_fit_did_not_see_is_counted_and_not_quoted(name: str) -> None:
    equation, child, causes = parts(name, people())
    fitted = equation.fit(child, causes)
    if isinstance(equation, Stated):
        return
    codes = np.zeros(ROWS, dtype=np.int32)
    codes[:2] = 2
    strangers = {**causes, "sex": Categories(codes, ("f", "m", "secret"))}
    with pytest.raises(
        EquationError, match=r"2 (of 300 )?rows with a|2 of 300 rows have a"
    ) as caught:
        fitted.abduct(child, strangers)
    assert "secret" not in str(caught.value)


def test_a_cause_that_does_not_vary_is_refused(name: str) -> None:
    equation, child, causes = parts(name, people())
    constant = {**causes, "sex": causes["sex"].filled(0)}  # type: ignore[union-attr]
    if isinstance(equation, Stated):
        only_men = Categories(np.zeros(ROWS, dtype=np.int32), ("m",))
        with pytest.raises(EquationError, match="not a value of that column"):
            equation.fit(child, {**causes, "sex": only_men})
    else:
        with pytest.raises(EquationError, match="'sex' does not vary"):
            equation.fit(child, constant)


def test_a_missing_column_is_named(name: str) -> None:
    child, equation = CASES[name]
    table = {each: column.data for each, column in people().columns.items() if each != "sex"}
    with pytest.raises(UnknownColumnError, match="'sex'"):
        Worldview({child: equation}).fit(Population.from_frame(table, columns=list(table)))


def test_errors_name_the_attribute(name: str) -> None:
    child, equation = CASES[name]
    table = {each: column.data for each, column in people().columns.items()}
    wrong = [0.0] * ROWS if isinstance(people().columns[child], Categories) else ["a"] * ROWS
    with pytest.raises(EquationError, match=f"Equation for '{child}': it explains"):
        Worldview({child: equation}).fit(
            Population.from_frame({**table, child: wrong}, columns=list(table))
        )


@pytest.mark.parametrize("name", ["count", "ordinal", "categorical"])
def test_too_large_a_level_of_another_table_is_refused(name: str) -> None:
    equation, child, causes = parts(name, people())
    fitted = equation.fit(child, causes)
    if isinstance(child, Numbers):
        strange: Column = Numbers(np.full(ROWS, 0.5))
    else:
        strange = Categories(np.full(ROWS, 3), (*child.levels, "secret"))
    with pytest.raises(EquationError, match="300 of 300 rows have a") as caught:
        fitted.abduct(strange, causes)
    assert "secret" not in str(caught.value)
