"""Worldviews: what they accept and refuse; abduction, action, prediction; draws and refits."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.columns import Column, Numbers
from mutandis.data.population import Population
from mutandis.errors import (
    CycleError,
    EquationError,
    PlanError,
    RootError,
    UnknownColumnError,
    WorldviewError,
)
from mutandis.scm import Count, Linear, Stated, Worldview
from mutandis.scm.additive import FittedLinear, finish
from mutandis.scm.counterfactual import FittedWorldview, act
from mutandis.scm.family import Equation, Fitted, Predicted, numbers_of
from mutandis.scm.graph import Graph
from mutandis.scm.predictor import LinearPredictor, Term
from tests.scm.columns import people

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.scm.family import Rng

LOAN = Worldview({"Salary": Linear("Gender"), "Balance": Linear("Salary", "Gender")})
FOUR = {
    "Gender": [0, 0, 1, 1],
    "Salary": [40.0, 60.0, 30.0, 40.0],
    "Balance": [8.0, 13.0, 5.0, 6.0],
}


# --- declarations ---------------------------------------------------------------------------------


def test_a_worldview_is_a_value() -> None:
    assert LOAN.names == ("Gender", "Salary", "Balance")
    shown = "Worldview({'Salary': Linear('Gender'), 'Balance': Linear('Salary', 'Gender')})"
    assert repr(LOAN) == shown
    assert eval(shown, {"Worldview": Worldview, "Linear": Linear}) == LOAN  # noqa: S307 - as above
    other_order = Worldview({name: LOAN.equations[name] for name in ("Balance", "Salary")})
    assert (other_order, hash(other_order)) == (LOAN, hash(LOAN))
    equations = {"Salary": Linear("Gender")}
    worldview = Worldview(equations)
    assert worldview != LOAN
    equations["Balance"] = Linear("Salary")
    assert worldview.names == ("Gender", "Salary")
    with pytest.raises(TypeError):
        worldview.equations["Balance"] = Linear("Salary")  # type: ignore[index]
    with pytest.raises(AttributeError):
        worldview.graph = LOAN.graph  # type: ignore[misc]


_NO = "What is given for 'Salary' is not an equation"


@pytest.mark.parametrize(
    ("equations", "options", "error", "message"),
    [
        (
            {"Salary": Linear("Balance"), "Balance": Linear("Salary")},
            {},
            CycleError,
            "cycle: Balance → Salary → Balance",
        ),
        ({"Salary": Linear("Gender", "Salary")}, {}, CycleError, "cycle: Salary → Salary"),
        (
            {"Salary": Linear(["Gender", "Age"])},  # type: ignore[arg-type]
            {},
            WorldviewError,
            "'Salary' has a parent of type list",
        ),
        (
            {"Salary": Linear("Gender", "Gender")},
            {},
            WorldviewError,
            "names its parent 'Gender' more than once",
        ),
        ({"Salary": "Gender"}, {}, WorldviewError, f"{_NO} (str). An equation has parents"),
        ({"Salary": Linear}, {}, WorldviewError, f"{_NO} (Linear)"),
        ({"Salary": None}, {}, WorldviewError, f"{_NO} (NoneType)"),
        ([("Salary", Linear("Gender"))], {}, WorldviewError, "A worldview was made from list"),
        (dict(LOAN.equations), {"resolving": ("Shoe",)}, WorldviewError, "'Shoe' is not in the"),
        (dict(LOAN.equations), {"resolving": "Salary"}, WorldviewError, "one text"),
    ],
)
def test_what_is_no_worldview(
    equations: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        Worldview(equations, **options)


def test_a_protected_attribute_must_be_a_root() -> None:
    LOAN.check_root("Gender")
    LOAN.check_root("not mentioned")
    Worldview({"Gender": Linear()}).check_root("Gender")  # an equation without causes
    with pytest.raises(RootError, match="'Balance' must be a root, but the worldview says that it"):
        LOAN.check_root("Balance")


@pytest.mark.parametrize(
    ("equations", "further", "error", "message"),
    [
        (
            {"Salary": Linear("Sex"), "Savings": Linear("Salary")},
            {},
            UnknownColumnError,
            "names 'Sex', 'Savings', which the population does not have. It holds 'Gender', 'Salar",
        ),
        (
            {"Salary": Linear("Sex")},
            {f"extra{number}": [1, 2, 3, 4] for number in range(30)},
            UnknownColumnError,
            "'extra16', …. Correct",  # not all of them
        ),
        (
            {"Job": Linear("Gender")},
            {"Job": list("abab")},
            EquationError,
            "Equation for 'Job': it explains numbers, but the attribute holds names.",
        ),
        (
            {"Balance": Linear("Salary", "Twice")},
            {"Twice": [80.0, 120.0, 60.0, 80.0]},
            EquationError,
            "Equation for 'Balance': parent 'Twice' is perfectly",
        ),
        (
            {"Gender": Linear("Salary", link="log")},
            {},
            EquationError,
            "Equation for 'Gender': the log link needs values above 0, but 2 of 4 rows",
        ),
        (
            {"Salary": Linear("Gender", "Job")},
            {"Job": list("abcd")},
            EquationError,
            "Equation for 'Salary': 5 coefficients cannot be fitted to 4 rows",
        ),
    ],
)
def test_tables_that_cannot_be_fitted_to(
    equations: Any, further: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        Worldview(equations).fit(people({**FOUR, **further}))
    assert "extra17" not in str(caught.value)


# --- three steps ----------------------------------------------------------------------------------


def _stated(intercept: float = 0.0, settings: Any = None, **slopes: float) -> FittedLinear:
    terms = tuple(Term.slope(name, slope) for name, slope in slopes.items())
    predictor = LinearPredictor(intercept=intercept, terms=terms)
    return FittedLinear(predictor=predictor, **(settings or {}))


def _worldview(**equations: FittedLinear) -> FittedWorldview:
    """Build a worldview whose coefficients are stated instead of fitted."""
    parents = {
        child: [term.parents[0] for term in fitted.predictor.terms]
        for child, fitted in equations.items()
    }
    graph = Graph.from_parents(parents)
    return FittedWorldview(graph=graph, equations=MappingProxyType(dict(equations)))


# Appendix A.1 with α = 2, β1 = 3, β2 = 1/2 and one individual at (X1, X2, X3) = (1, 5, 4)
APPENDIX = _worldview(X2=_stated(X1=2.0), X3=_stated(X1=3.0, X2=0.5))
INDIVIDUAL = {"X1": [1.0], "X2": [5.0], "X3": [4.0], "Shoe": [42.0]}


def test_the_appendix_step_by_step() -> None:
    person = people(INDIVIDUAL)
    noise = {child: APPENDIX.abduct(person, child) for child in ("X2", "X3")}
    assert noise["X2"].residual.tolist() == [3.0]  # 5 - 2·1
    # 4 - 3·1 - 1/2·5; the paper prints + β2·X2, which would give 3.5
    assert noise["X3"].residual.tolist() == [-1.5]
    intervened = act(person, {"X1": 0})
    assert [intervened.numbers(name).tolist() for name in INDIVIDUAL] == [[0.0], [5.0], [4], [42]]
    changed, clipped = APPENDIX.predict(intervened, "X2", noise["X2"])
    assert (changed.numbers("X2").tolist(), clipped) == ([3.0], 0)  # 2·0 + 3
    changed, _ = APPENDIX.predict(changed, "X3", noise["X3"])
    assert changed.numbers("X3").tolist() == [0.0]  # 3·0 + 1/2·3 - 3/2


@pytest.mark.parametrize(
    ("do", "moved", "after"),
    [
        ({"X1": 2}, ("X2", "X3"), (2.0, 7.0, 8.0, 42.0)),  # 2·2 + 3, 3·2 + 1/2·7 - 3/2
        ({"X2": 9}, ("X3",), (1.0, 9.0, 6.0, 42.0)),  # an equation is cut: 3·1 + 1/2·9 - 3/2
        ({"X1": 0, "X2": 9}, ("X3",), (0.0, 9.0, 3.0, 42.0)),  # both are held
        ({"X3": 1.0}, (), (1.0, 5.0, 1.0, 42.0)),
        ({"Shoe": 1.0}, (), (1.0, 5.0, 4.0, 1.0)),
    ],
)
def test_the_three_steps_together(
    do: dict[str, Any], moved: tuple[str, ...], after: tuple[float, ...]
) -> None:
    person = people(INDIVIDUAL)
    found = APPENDIX.counterfactuals(person, do=do)
    assert (found.moved, set(found.clipped)) == (moved, set(moved))
    assert tuple(float(found.population.numbers(name)[0]) for name in INDIVIDUAL) == after
    assert found.population.changed == {*do, *moved}
    for name in INDIVIDUAL:
        if name not in found.population.changed:
            assert found.population.columns[name] is person.columns[name]
        with pytest.raises(ValueError, match="read-only"):
            found.population.numbers(name)[0] = 1.0


def test_finished_values_and_links_feed_the_next_equation() -> None:
    """4.26 → 4.3 → 4, 2.25 → 2.2 (half to even), 3; and C moves by ten times those differences.

    Under the log link, halving B by A := -log 2 takes B off C = 2·B + V.
    """
    bounded = _stated(settings={"bounds": (0.0, 4.0), "decimals": 1}, A=1.0)
    table = {"A": [0.0, 0.0, 0.0], "B": [3.26, 1.25, 2.0], "C": [32.6, 12.5, 20.0]}
    made = _worldview(B=bounded, C=_stated(B=10.0)).counterfactuals(people(table), do={"A": 1.0})
    assert made.population.numbers("B").tolist() == [4.0, 2.2, 3.0]
    assert made.population.numbers("C") == pytest.approx([40.0, 22.0, 30.0])
    assert dict(made.clipped) == {"B": 1, "C": 0}
    factor = _worldview(B=_stated(settings={"link": "log"}, A=1.0), C=_stated(B=2.0))
    facts = people({"A": [0.0], "B": [6.0], "C": [13.0]})
    after = factor.counterfactuals(facts, do={"A": -math.log(2)}).population
    assert (after.numbers("B")[0], after.numbers("C")[0]) == pytest.approx((3.0, 7.0))


def test_do_on_names() -> None:
    shifts = Term.shifts("Race", {"a": 0.0, "b": 5.0, "c": -2.0})
    fitted = FittedLinear(predictor=LinearPredictor(intercept=1.0, terms=(shifts,)))
    graph = Graph.from_parents({"Score": ("Race",)})
    worldview = FittedWorldview(graph=graph, equations={"Score": fitted})
    facts = people({"Race": ["a", "b", "c"], "Score": [10.0, 10.0, 10.0]})
    after = worldview.counterfactuals(facts, do={"Race": "b"}).population
    assert after.numbers("Score").tolist() == [15.0, 10.0, 17.0]
    assert after.frame()["Race"].tolist() == ["b", "b", "b"]


def test_numbers_read_as_names_and_names_as_numbers_agree() -> None:
    """A 0/1 status gives the same counterfactuals, whichever way it was read."""
    rng = np.random.default_rng(3)
    gender = rng.integers(0, 2, 100)
    table = pd.DataFrame({"Gender": gender, "Salary": 50.0 - 10.0 * gender + rng.normal(size=100)})
    nominal = Attribute(name="Gender", kind=AttributeKind.NOMINAL)
    as_names = Population.from_frame(table, columns=["Salary"], attributes=[nominal])
    worldview = Worldview({"Salary": Linear("Gender")})
    first, second = (
        worldview.counterfactuals(each, do={"Gender": 0}).population
        for each in (people(table), as_names)
    )
    assert first.numbers("Salary").tolist() == second.numbers("Salary").tolist()
    assert first.frame()["Gender"].tolist() == second.frame()["Gender"].tolist() == [0] * 100


@pytest.mark.parametrize(
    "equations",
    [
        {"Balance": Linear("Salary", "A"), "Salary": Linear("A")},
        {
            "Salary": Stated("b * A", fit=("b",)),
            "Balance": Stated("0.3 * Salary + b * A + c", fit=("b", "c")),
        },
    ],
)
def test_a_fitted_worldview_recovers_the_truth(equations: Mapping[str, Equation]) -> None:
    """Noise is exactly uncorrelated with every cause, so that least squares finds the truth.

    Status, U and V take all combinations of their values: Salary = 100 - 15·A + U, and
    Balance = 20 + 0.3·Salary - 4·A + V.
    """
    combinations = itertools.product([0, 1], [-6.0, -1.0, 1.0, 6.0], [-2.5, 0.0, 2.5])
    status, u, v = (np.array(values) for values in zip(*combinations, strict=True))

    def world(a: NDArray[Any]) -> pd.DataFrame:
        salary = 100 - 15 * a + u
        return pd.DataFrame({"A": a, "Salary": salary, "Balance": 20 + 0.3 * salary - 4 * a + v})

    worldview, truth = Worldview(equations), world(np.zeros_like(status))
    after = worldview.counterfactuals(people(world(status)), do={"A": 0}).population
    for name in ("Salary", "Balance"):
        assert after.numbers(name) == pytest.approx(truth[name].to_numpy(), abs=1e-10)


def test_a_nominal_cause_against_explicit_dummies() -> None:
    rng = np.random.default_rng(8)
    race, age = (
        rng.choice(["w", "x", "y", "z"], 400, p=[0.4, 0.3, 0.2, 0.1]),
        rng.normal(30, 5, 400),
    )
    score = 20 + 0.2 * age + pd.Series(race).map({"w": 3, "x": 0, "y": -2, "z": 5}).to_numpy()
    score = score + rng.normal(size=400)
    facts = people({"Race": race, "Age": age, "Score": score})
    worldview = Worldview({"Score": Linear("Race", "Age")})
    after = worldview.counterfactuals(facts, do={"Race": "y"}).population
    design = np.column_stack([np.ones(400), *(race == level for level in "xyz"), age])
    weights = np.linalg.lstsq(design, score, rcond=None)[0]
    moved = design.copy()
    moved[:, 1:4] = [0, 1, 0]
    oracle = moved @ weights + (score - design @ weights)
    assert after.numbers("Score") == pytest.approx(oracle, rel=1e-12)


@dataclass(frozen=True)
class _Rounded(Equation, Fitted[Any]):
    """An equation that is no kin of ours: its noise is a rounded residual."""

    linear: Linear
    fitted: FittedLinear | None = None

    @property
    def parents(self) -> tuple[str, ...]:
        return self.linear.parents

    def fit(self, child: Column, parents: Mapping[str, Column]) -> _Rounded:
        return _Rounded(self.linear, self.linear.fit(child, parents))

    def abduct(self, child: Column, parents: Mapping[str, Column], *, rng: Rng = None) -> Any:
        assert self.fitted is not None
        return np.round(numbers_of(child) - self.fitted.explained(parents, rows=len(child)), 1)

    def predict(self, parents: Mapping[str, Column], noise: Any) -> Predicted:
        assert self.fitted is not None
        explained = self.fitted.explained(parents, rows=len(noise))
        return finish(explained + noise, decimals=1, bounds=(0.0, 56.0))


def test_an_equation_from_elsewhere() -> None:
    """Mean salaries 50.5 and 35: residuals ±9.75 → ±9.8 (half to even) and ±5."""
    facts = people({"Gender": [0, 0, 1, 1], "Salary": [40.75, 60.25, 30.0, 40.0]})
    made = Worldview({"Salary": _Rounded(Linear("Gender"))}).counterfactuals(
        facts, do={"Gender": 0}
    )
    assert made.population.numbers("Salary") == pytest.approx([40.7, 56.0, 45.5, 55.5], abs=1e-12)
    assert dict(made.clipped) == {"Salary": 1}


@dataclass(frozen=True)
class _Broken(Equation, Fitted[Any]):
    """Predicts whatever it was told to."""

    values: Any
    parents: tuple[str, ...] = ("Gender",)

    def fit(self, child: Column, parents: Mapping[str, Column]) -> _Broken:
        return self

    def abduct(self, child: Column, parents: Mapping[str, Column], *, rng: Rng = None) -> str:
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
    facts = people({"Gender": [0, 1], "Salary": [1.0, 2.0]})
    with pytest.raises(EquationError, match=re.escape(f"Equation for 'Salary': {message}")):
        Worldview({"Salary": _Broken(values)}).counterfactuals(facts, do={"Gender": 0})


NOMINAL = {"Race": list("aabb"), "Age": [1.0, 2.0, 3.0, 4.0], "Score": [1.0, 2.0, 5.0, 7.0]}


@pytest.mark.parametrize(
    ("do", "error", "message"),
    [
        ({}, PlanError, "The intervention is empty: do={} changes nothing."),
        ({"Race": "c"}, PlanError, "not a value of that column. Its values are 'a', 'b'. Name one"),
        ({"Race": ["a", "b"]}, PlanError, "do sets 'Race' to a list. An intervention sets one"),
        ({"Age": np.zeros(4)}, PlanError, "do sets 'Age' to a ndarray. An intervention sets one"),
        ({"Age": "old"}, PlanError, "do sets 'Age' to 'old', but the column holds numbers."),
        ({"Age": math.nan}, PlanError, "do sets 'Age' to nan, but the column holds numbers."),
        ({"Age": math.inf}, PlanError, "Give a finite number, or declare the column as nominal."),
        ({"Rcae": "a"}, UnknownColumnError, "names 'Rcae', which the population does not"),
    ],
)
def test_bad_interventions(do: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        Worldview({"Score": Linear("Race", "Age")}).counterfactuals(people(NOMINAL), do=do)


def test_many_levels_are_not_listed() -> None:
    table = {"Name": [f"person {i}" for i in range(40)], "Score": np.arange(40.0)}
    with pytest.raises(PlanError, match="not a value of that column") as caught:
        act(people(table), {"Name": "nobody"})
    assert "person" not in str(caught.value)


def test_another_population_than_the_fitted_one() -> None:
    worldview = Worldview({"Score": Linear("Race")})
    fitted = worldview.fit(people(NOMINAL))
    # levels are ('b', 'n') here: codes mean something else than in the fitted table
    newcomers = people({"Race": ["b", "n"], "Score": [7.0, 1.0]})
    with pytest.raises(
        EquationError, match=r"^Equation for 'Score': parent 'Race' has 1 rows with"
    ):
        fitted.counterfactuals(newcomers, do={"Race": "b"})
    with pytest.raises(UnknownColumnError, match="names 'Race', which"):
        fitted.counterfactuals(people({"Sex": ["b"], "Score": [1.0]}), do={"Race": "b"})
    only_b = fitted.counterfactuals({"Race": ["b"], "Score": [9.0]}, do={"Race": "b"})
    assert only_b.population.numbers("Score").tolist() == [9.0]
    levels = Attribute(name="Race", kind=AttributeKind.ORDINAL, levels=("a", "b", "c"))
    table = pd.DataFrame(NOMINAL)
    facts = Population.from_frame(table, columns=["Age", "Score"], attributes=[levels])
    with pytest.raises(EquationError, match=r"^Equation for 'Score': parent 'Race' has 4 rows"):
        worldview.counterfactuals(facts, do={"Race": "c"})


# --- resolving attributes, draws and refits -------------------------------------------------------


def _ladder(**settings: Any) -> Worldview:
    """Gender moves Job and Salary, Job moves Salary, Salary moves Balance."""
    equations = {
        "Job": Linear("Gender"),
        "Salary": Linear("Gender", "Job"),
        "Balance": Linear("Salary"),
    }
    return Worldview(equations, **settings)


def _ladder_people() -> Population:
    rng = np.random.default_rng(5)
    gender = rng.integers(0, 2, 200)
    job = 3.0 - gender + rng.normal(size=200)
    salary = 10 + 4 * job - 2 * gender + rng.normal(size=200)
    balance = 0.5 * salary + rng.normal(size=200)
    return people({"Gender": gender, "Job": job, "Salary": salary, "Balance": balance})


def test_a_resolving_attribute_stays_and_paths_through_it_are_not_followed() -> None:
    facts = _ladder_people()
    free = _ladder().counterfactuals(facts, do={"Gender": 0})
    resolved = _ladder(resolving=("Job",)).counterfactuals(facts, do={"Gender": 0})
    assert (free.moved, free.held) == (("Job", "Salary", "Balance"), ())
    assert (resolved.moved, resolved.held) == (("Salary", "Balance"), ("Job",))
    assert resolved.population.numbers("Job").tolist() == facts.numbers("Job").tolist()
    # what is left of the salary's move is the direct effect of gender alone
    fitted: Any = _ladder().fit(facts).equations["Salary"]
    women = facts.numbers("Gender") == 1
    shift = resolved.population.numbers("Salary") - facts.numbers("Salary")
    direct = fitted.predictor.terms[0].effects[None,]
    assert shift[women] == pytest.approx(np.full(women.sum(), -direct))
    assert (shift[~women] == 0).all()
    # one that nothing moves is not reported
    other = _ladder(resolving=("Job",)).counterfactuals(facts, do={"Salary": 1.0})
    assert (other.moved, other.held) == (("Balance",), ())


def test_refits_repeat_themselves_and_centre_on_the_point() -> None:
    facts = _ladder_people()
    made = [
        _ladder().refits(facts, do={"Gender": 0}, refits=40, rng=np.random.default_rng(3))
        for _ in range(2)
    ]
    salaries = [np.array([draw.numbers("Salary") for draw in each]) for each in made]
    assert np.array_equal(salaries[0], salaries[1])
    # a refit is the same whichever were looked at before it
    assert np.array_equal(made[0][7].numbers("Salary"), salaries[0][7])
    assert np.array_equal(made[0][5:8][2].numbers("Salary"), salaries[0][7])
    point = _ladder().counterfactuals(facts, do={"Gender": 0}).population
    women = facts.numbers("Gender") == 1
    spread = salaries[0][:, women].std(axis=0)
    assert (spread > 0).all()
    off = np.abs(salaries[0][:, women].mean(axis=0) - point.numbers("Salary")[women])
    assert (off < 4 * spread / np.sqrt(40)).all()
    assert (salaries[0][:, ~women] == facts.numbers("Salary")[~women]).all()


def test_draws_of_additive_noise_are_the_point() -> None:
    made = _ladder().counterfactuals(
        _ladder_people(), do={"Gender": 0}, draws=2, rng=np.random.default_rng(1)
    )
    assert len(made.draws) == 2
    for draw in made.draws:
        assert draw.numbers("Balance").tolist() == made.population.numbers("Balance").tolist()
    for draws, message in [(3, r"draws=3 needs a generator.*rng="), (-1, "draws=-1 is negative")]:
        with pytest.raises(PlanError, match=message):
            _ladder().counterfactuals(_ladder_people(), do={"Gender": 0}, draws=draws)


def test_a_resample_that_lost_a_rare_level_is_drawn_again() -> None:
    job = np.array(["cook"] * 30 + ["clerk"] * 29 + ["judge"])
    rng = np.random.default_rng(0)
    gender = rng.integers(0, 2, 60)
    salary = 10.0 + 3 * (job == "judge") - gender + rng.normal(size=60)
    facts = people({"Gender": gender, "Job": job, "Salary": salary})
    made = Worldview({"Salary": Linear("Gender", "Job")}).refits(
        facts, do={"Gender": 0}, refits=20, rng=np.random.default_rng(1)
    )
    # more than a third of all resamples have no judge
    assert len({draw.numbers("Salary").tobytes() for draw in made}) == 20
    rare = people({"Job": [f"job {n}" for n in range(40)], "Salary": np.arange(40.0)})
    lost = Worldview({"Salary": Linear("Job")}).refits(
        rare, do={"Job": "job 1"}, refits=1, rng=np.random.default_rng(1)
    )
    with pytest.raises(EquationError, match="did not occur"):
        lost[0]


def test_refits_have_the_open_noise_in_common() -> None:
    rng = np.random.default_rng(4)
    gender = rng.integers(0, 2, 3000)
    facts = people({"g": gender, "v": rng.poisson(np.where(gender == 1, 3.0, 5.0))})
    worldview = Worldview({"v": Count("g")})

    def spread(worlds: Sequence[Population]) -> float:
        return float(np.std([world.numbers("v") for world in worlds], axis=0).mean())

    settings: dict[str, Any] = {"do": {"g": 0}, "rng": np.random.default_rng(1)}
    refitted = worldview.refits(facts, refits=10, **settings)
    drawn = worldview.counterfactuals(facts, draws=10, **settings).draws
    # what is left are the coefficients, which 3,000 people determine well
    assert 0 < spread(refitted) < spread(drawn) / 2
