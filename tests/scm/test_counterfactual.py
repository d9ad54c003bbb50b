"""Abduction, action and prediction: worked by hand, and what is refused."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.columns import Column, Numbers
from mutandis.data.population import Population
from mutandis.errors import EquationError, PlanError, UnknownColumnError
from mutandis.scm import Linear, Worldview
from mutandis.scm.additive import FittedLinear, finish
from mutandis.scm.counterfactual import FittedWorldview, act
from mutandis.scm.family import Equation, Fitted, Predicted, numbers_of
from mutandis.scm.graph import Graph
from mutandis.scm.predictor import LevelShifts, LinearPredictor, Slope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


def _people(table: Mapping[str, Any] | pd.DataFrame) -> Population:
    return Population.from_frame(pd.DataFrame(table), columns=map(str, table))


def _stated(intercept: float, **slopes: float) -> FittedLinear:
    terms = tuple(Slope(parent=name, slope=slope) for name, slope in slopes.items())
    return FittedLinear(predictor=LinearPredictor(intercept=intercept, terms=terms))


def _worldview(**equations: FittedLinear) -> FittedWorldview:
    """Build a worldview whose coefficients are stated instead of fitted."""
    parents = {
        child: [term.parent for term in fitted.predictor.terms if isinstance(term, Slope)]
        for child, fitted in equations.items()
    }
    return FittedWorldview(
        graph=Graph.from_parents(parents), equations=MappingProxyType(dict(equations))
    )


# Appendix A.1 with α = 2, β1 = 3, β2 = 1/2 and one individual at (X1, X2, X3) = (1, 5, 4)
APPENDIX = _worldview(X2=_stated(0.0, X1=2.0), X3=_stated(0.0, X1=3.0, X2=0.5))


INDIVIDUAL = {"X1": [1.0], "X2": [5.0], "X3": [4.0]}


def test_appendix_step_by_step() -> None:
    people = _people(INDIVIDUAL)
    noise = {child: APPENDIX.abduct(people, child) for child in ("X2", "X3")}
    assert noise["X2"].residual.tolist() == [3.0]  # 5 - 2·1
    # 4 - 3·1 - 1/2·5; the paper prints + β2·X2, which would give 3.5
    assert noise["X3"].residual.tolist() == [-1.5]
    intervened = act(people, {"X1": 0})
    assert {name: intervened.numbers(name).tolist() for name in INDIVIDUAL} == {
        "X1": [0.0],
        "X2": [5.0],
        "X3": [4.0],
    }
    changed, clipped = APPENDIX.predict(intervened, "X2", noise["X2"])
    assert (changed.numbers("X2").tolist(), clipped) == ([3.0], 0)  # 2·0 + 3
    changed, _ = APPENDIX.predict(changed, "X3", noise["X3"])
    assert changed.numbers("X3").tolist() == [0.0]  # 3·0 + 1/2·3 - 3/2


def test_the_three_steps_together() -> None:
    counterfactuals = APPENDIX.counterfactuals(_people(INDIVIDUAL), do={"X1": 2})
    # X2 = 2·2 + 3, X3 = 3·2 + 1/2·7 - 3/2
    assert counterfactuals.population.numbers("X1").tolist() == [2.0]
    assert counterfactuals.population.numbers("X2").tolist() == [7.0]
    assert counterfactuals.population.numbers("X3").tolist() == [8.0]
    assert counterfactuals.population.changed == {"X1", "X2", "X3"}


def test_do_on_an_attribute_with_an_equation_cuts_it() -> None:
    counterfactuals = APPENDIX.counterfactuals(_people(INDIVIDUAL), do={"X2": 9})
    assert counterfactuals.moved == ("X3",)
    assert counterfactuals.population.numbers("X1").tolist() == [1.0]
    assert counterfactuals.population.numbers("X2").tolist() == [9.0]
    assert counterfactuals.population.numbers("X3").tolist() == [6.0]  # 3·1 + 1/2·9 - 3/2


def test_a_joint_do_holds_every_intervened_attribute() -> None:
    counterfactuals = APPENDIX.counterfactuals(_people(INDIVIDUAL), do={"X1": 0, "X2": 9})
    assert counterfactuals.moved == ("X3",)
    assert counterfactuals.population.numbers("X2").tolist() == [9.0]
    assert counterfactuals.population.numbers("X3").tolist() == [3.0]  # 3·0 + 1/2·9 - 3/2


def test_do_on_something_without_effects() -> None:
    people = _people({**INDIVIDUAL, "Shoe": [42.0]})
    for do in ({"X3": 1.0}, {"Shoe": 1.0}):
        counterfactuals = APPENDIX.counterfactuals(people, do=do)
        assert counterfactuals.moved == ()
        assert dict(counterfactuals.clipped) == {}
        (name,) = do
        assert counterfactuals.population.changed == {name}
        assert counterfactuals.population.numbers(name).tolist() == [1.0]


def test_what_is_no_effect_keeps_its_very_column() -> None:
    worldview = _worldview(
        B=_stated(0.0, A=2.0), D=_stated(0.0, C=2.0, B=1.0), E=_stated(0.0, C=1.0)
    )
    people = _people({name: [0.1, 1 / 3] for name in "ABCDE"})
    counterfactuals = worldview.counterfactuals(people, do={"A": 0.1})
    assert counterfactuals.moved == ("B", "D")
    for name in "CE":
        assert counterfactuals.population.columns[name] is people.columns[name]


def test_rounded_and_clipped_values_feed_the_next_equation() -> None:
    bounded = FittedLinear(
        predictor=LinearPredictor(intercept=0.0, terms=(Slope(parent="A", slope=1.0),)),
        bounds=(0.0, 4.0),
        decimals=1,
    )
    worldview = _worldview(B=bounded, C=_stated(0.0, B=10.0))
    people = _people({"A": [0.0, 0.0, 0.0], "B": [3.26, 1.25, 2.0], "C": [32.6, 12.5, 20.0]})
    counterfactuals = worldview.counterfactuals(people, do={"A": 1.0})
    # 4.26 → 4.3 → 4, 2.25 → 2.2 (half to even), 3; and C moves by ten times those differences
    assert counterfactuals.population.numbers("B").tolist() == [4.0, 2.2, 3.0]
    assert counterfactuals.population.numbers("C") == pytest.approx([40.0, 22.0, 30.0])
    assert dict(counterfactuals.clipped) == {"B": 1, "C": 0}


def test_log_link_propagates() -> None:
    """B = e^(A)·U, C = 2·B + V: halving B by A := -log 2 takes B off C."""
    predictor = LinearPredictor(intercept=0.0, terms=(Slope(parent="A", slope=1.0),))
    worldview = _worldview(B=FittedLinear(predictor=predictor, link="log"), C=_stated(0.0, B=2.0))
    people = _people({"A": [0.0], "B": [6.0], "C": [13.0]})
    after = worldview.counterfactuals(people, do={"A": -math.log(2)}).population
    assert after.numbers("B") == pytest.approx([3.0])
    assert after.numbers("C") == pytest.approx([7.0])


def test_do_on_a_nominal_root() -> None:
    shifts = LevelShifts(parent="Race", shifts={"a": 0.0, "b": 5.0, "c": -2.0})
    worldview = FittedWorldview(
        graph=Graph.from_parents({"Score": ("Race",)}),
        equations={
            "Score": FittedLinear(predictor=LinearPredictor(intercept=1.0, terms=(shifts,)))
        },
    )
    people = _people({"Race": ["a", "b", "c"], "Score": [10.0, 10.0, 10.0]})
    after = worldview.counterfactuals(people, do={"Race": "b"}).population
    assert after.categories("Race").codes.tolist() == [1, 1, 1]
    assert after.numbers("Score").tolist() == [15.0, 10.0, 17.0]
    assert after.frame()["Race"].tolist() == ["b", "b", "b"]


def test_numbers_read_as_names_and_names_as_numbers_agree() -> None:
    """A 0/1 status gives the same counterfactuals, whichever way it was read."""
    rng = np.random.default_rng(3)
    gender = rng.integers(0, 2, 100)
    salary = 50.0 - 10.0 * gender + rng.normal(size=100)
    table = pd.DataFrame({"Gender": gender, "Salary": salary})
    worldview = Worldview({"Salary": Linear("Gender")})
    as_numbers = Population.from_frame(table, columns=worldview.names)
    nominal = Attribute(name="Gender", kind=AttributeKind.NOMINAL)
    as_names = Population.from_frame(table, columns=["Salary"], attributes=[nominal])
    first = worldview.counterfactuals(as_numbers, do={"Gender": 0}).population
    second = worldview.counterfactuals(as_names, do={"Gender": 0}).population
    assert first.numbers("Salary").tolist() == second.numbers("Salary").tolist()
    assert first.frame()["Gender"].tolist() == second.frame()["Gender"].tolist() == [0] * 100


@dataclass(frozen=True)
class _RoundedNoise(Equation):
    """An equation that is no kin of ours: its noise is a rounded residual."""

    linear: Linear
    decimals: int

    @property
    def parents(self) -> tuple[str, ...]:
        return self.linear.parents

    def fit(self, child: Column, parents: Mapping[str, Column]) -> _FittedRounded:
        return _FittedRounded(self.linear.fit(child, parents), self.decimals)


@dataclass(frozen=True)
class _FittedRounded(Fitted[Any]):
    fitted: FittedLinear
    decimals: int

    def abduct(
        self,
        child: Column,
        parents: Mapping[str, Column],
        *,
        rng: np.random.Generator | None = None,
    ) -> NDArray[np.float64]:
        explained = self.fitted.explained(parents, rows=len(child))
        return np.round(numbers_of(child) - explained, self.decimals)

    def predict(self, parents: Mapping[str, Column], noise: NDArray[np.float64]) -> Predicted:
        explained = self.fitted.explained(parents, rows=len(noise))
        return finish(explained + noise, decimals=self.decimals, bounds=(0.0, 56.0))


def test_an_equation_from_elsewhere() -> None:
    """Mean salaries 50.5 and 35: residuals ±9.75 → ±9.8 (half to even) and ±5."""
    people = _people({"Gender": [0, 0, 1, 1], "Salary": [40.75, 60.25, 30.0, 40.0]})
    worldview = Worldview({"Salary": _RoundedNoise(Linear("Gender"), 1)})
    counterfactuals = worldview.counterfactuals(people, do={"Gender": 0})
    salaries = counterfactuals.population.numbers("Salary")
    assert salaries == pytest.approx([40.7, 56.0, 45.5, 55.5], abs=1e-12)
    assert dict(counterfactuals.clipped) == {"Salary": 1}


@dataclass(frozen=True)
class _Broken(Equation, Fitted[Any]):
    """Predicts whatever it was told to."""

    values: Any
    parents: tuple[str, ...] = ("Gender",)

    def fit(self, child: Column, parents: Mapping[str, Column]) -> _Broken:
        return self

    def abduct(
        self,
        child: Column,
        parents: Mapping[str, Column],
        *,
        rng: np.random.Generator | None = None,
    ) -> str:
        return "any noise"

    def predict(self, parents: Mapping[str, Column], noise: str) -> Predicted:
        assert noise == "any noise"
        return Predicted(column=Numbers(self.values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(3), "it predicted values of shape (3,) for 2 rows."),
        (np.zeros((2, 1)), "it predicted values of shape (2, 1) for 2 rows."),
        (np.array([np.nan, 1.0]), "1 of 2 predicted values are not finite numbers."),
    ],
)
def test_an_equation_that_misbehaves_is_named(values: Any, message: str) -> None:
    people = _people({"Gender": [0, 1], "Salary": [1.0, 2.0]})
    with pytest.raises(EquationError) as caught:
        Worldview({"Salary": _Broken(values)}).counterfactuals(people, do={"Gender": 0})
    assert str(caught.value).startswith(f"Equation for 'Salary': {message}")


NOMINAL = {"Race": ["a", "a", "b", "b"], "Age": [1.0, 2.0, 3.0, 4.0], "Score": [1.0, 2.0, 5.0, 7.0]}


@pytest.mark.parametrize(
    ("do", "message"),
    [
        ({}, "The intervention is empty: do={} changes nothing."),
        (
            {"Race": "c"},
            "which is not a value of that column. Its values are 'a', 'b'. Name one of them.",
        ),
        ({"Race": ["a", "b"]}, "do sets 'Race' to a list. An intervention sets one value in"),
        ({"Age": np.zeros(4)}, "do sets 'Age' to a ndarray. An intervention sets one value in"),
        ({"Age": "old"}, "do sets 'Age' to 'old', but the column holds numbers."),
        ({"Age": math.nan}, "do sets 'Age' to nan, but the column holds numbers."),
        ({"Age": math.inf}, "Give a finite number, or declare the column as nominal."),
    ],
)
def test_bad_interventions(do: dict[str, Any], message: str) -> None:
    worldview = Worldview({"Score": Linear("Race", "Age")})
    with pytest.raises(PlanError) as caught:
        worldview.counterfactuals(_people(NOMINAL), do=do)
    assert message in str(caught.value)


def test_do_on_what_is_no_column() -> None:
    worldview = Worldview({"Score": Linear("Race")})
    with pytest.raises(UnknownColumnError, match="names 'Rcae', which the population does not"):
        worldview.counterfactuals(_people(NOMINAL), do={"Rcae": "a"})


def test_many_levels_are_not_listed() -> None:
    table = {"Name": [f"person {i}" for i in range(40)], "Score": np.arange(40.0)}
    with pytest.raises(PlanError, match="not a value of that column") as caught:
        act(_people(table), {"Name": "nobody"})
    assert "person" not in str(caught.value)


def test_another_population_than_the_fitted_one() -> None:
    fitted = Worldview({"Score": Linear("Race")}).fit(_people(NOMINAL))
    # levels are ('b', 'n') here: codes mean something else than in the fitted table
    newcomers = {"Race": ["b", "n"], "Score": [7.0, 1.0]}
    with pytest.raises(
        EquationError,
        match=r"^Equation for 'Score': parent 'Race' has 1 rows with a level that did not occur",
    ):
        fitted.counterfactuals(_people(newcomers), do={"Race": "b"})
    with pytest.raises(UnknownColumnError, match="names 'Race', which"):
        fitted.counterfactuals(_people({"Sex": ["b"], "Score": [1.0]}), do={"Race": "b"})
    only_b = fitted.counterfactuals(_people({"Race": ["b"], "Score": [9.0]}), do={"Race": "b"})
    assert only_b.population.numbers("Score").tolist() == [9.0]


def test_do_with_a_level_that_nobody_had_at_fit_time() -> None:
    levels = Attribute(name="Race", kind=AttributeKind.ORDINAL, levels=("a", "b", "c"))
    people = Population.from_frame(
        pd.DataFrame(NOMINAL), columns=["Age", "Score"], attributes=[levels]
    )
    with pytest.raises(EquationError, match=r"^Equation for 'Score': parent 'Race' has 4 rows"):
        Worldview({"Score": Linear("Race")}).counterfactuals(people, do={"Race": "c"})


def test_results_cannot_be_written_to() -> None:
    counterfactuals = APPENDIX.counterfactuals(_people(INDIVIDUAL), do={"X1": 0})
    for name in INDIVIDUAL:
        with pytest.raises(ValueError, match="read-only"):
            counterfactuals.population.numbers(name)[0] = 1.0
    with pytest.raises(TypeError):
        counterfactuals.clipped["X2"] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        counterfactuals.moved = ()  # type: ignore[misc]


def _factorial() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Facts and true counterfactuals where noise is exactly uncorrelated with every cause.

    Status, U and V take all combinations of their values, so least squares finds the truth:
    Salary = 100 - 15·A + U, Balance = 20 + 0.3·Salary - 4·A + V.
    """
    combinations = itertools.product([0, 1], [-6.0, -1.0, 1.0, 6.0], [-2.5, 0.0, 2.5])
    status, u, v = (np.array(values) for values in zip(*combinations, strict=True))

    def world(a: NDArray[Any]) -> pd.DataFrame:
        salary = 100 - 15 * a + u
        return pd.DataFrame({"A": a, "Salary": salary, "Balance": 20 + 0.3 * salary - 4 * a + v})

    return world(status), world(np.zeros_like(status))


def test_a_fitted_worldview_recovers_the_truth() -> None:
    facts, truth = _factorial()
    worldview = Worldview({"Balance": Linear("Salary", "A"), "Salary": Linear("A")})
    after = worldview.counterfactuals(_people(facts), do={"A": 0}).population
    for name in ("Salary", "Balance"):
        assert after.numbers(name) == pytest.approx(truth[name].to_numpy(), abs=1e-11)


def test_a_nominal_cause_against_explicit_dummies() -> None:
    rng = np.random.default_rng(8)
    race = rng.choice(["w", "x", "y", "z"], 400, p=[0.4, 0.3, 0.2, 0.1])
    age = rng.normal(30, 5, 400)
    score = 20 + 0.2 * age + pd.Series(race).map({"w": 3, "x": 0, "y": -2, "z": 5}).to_numpy()
    score = score + rng.normal(size=400)
    worldview = Worldview({"Score": Linear("Race", "Age")})
    people = _people({"Race": race, "Age": age, "Score": score})
    after = worldview.counterfactuals(people, do={"Race": "y"}).population

    design = np.column_stack([np.ones(400), *(race == level for level in "xyz"), age])
    weights = np.linalg.lstsq(design, score, rcond=None)[0]
    moved = design.copy()
    moved[:, 1:4] = [0, 1, 0]
    oracle = moved @ weights + (score - design @ weights)
    assert after.numbers("Score") == pytest.approx(oracle, rel=1e-12)
