"""Worldviews: what they accept, what they fit, and what they refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.data.population import Population
from mutandis.errors import (
    CycleError,
    EquationError,
    PlanError,
    RootError,
    UnknownColumnError,
    WorldviewError,
)
from mutandis.scm import Count, Linear, Worldview
from mutandis.scm.additive import FittedLinear
from mutandis.scm.predictor import Slope

if TYPE_CHECKING:
    from collections.abc import Sequence

LOAN = Worldview({"Salary": Linear("Gender"), "Balance": Linear("Salary", "Gender")})


def _people(**columns: Any) -> Population:
    table = {
        "Gender": [0, 0, 1, 1],
        "Salary": [40.0, 60.0, 30.0, 40.0],
        "Balance": [8.0, 13.0, 5.0, 6.0],
        **columns,
    }
    return Population.from_frame(pd.DataFrame(table), columns=list(table))


def test_what_a_worldview_knows() -> None:
    assert LOAN.names == ("Gender", "Salary", "Balance")
    assert LOAN.graph.roots == ("Gender",)
    assert dict(LOAN.equations) == {
        "Salary": Linear("Gender"),
        "Balance": Linear("Salary", "Gender"),
    }


def test_repr_equality_and_hash() -> None:
    shown = "Worldview({'Salary': Linear('Gender'), 'Balance': Linear('Salary', 'Gender')})"
    assert repr(LOAN) == shown
    again = eval(shown, {"Worldview": Worldview, "Linear": Linear})  # noqa: S307 - a text of this file
    assert again == LOAN
    other_order = Worldview({name: LOAN.equations[name] for name in ("Balance", "Salary")})
    assert other_order == LOAN
    assert hash(other_order) == hash(LOAN)
    assert Worldview({"Salary": Linear("Gender")}) != LOAN


def test_a_worldview_cannot_be_changed() -> None:
    equations = {"Salary": Linear("Gender")}
    worldview = Worldview(equations)
    equations["Balance"] = Linear("Salary")
    assert worldview.names == ("Gender", "Salary")
    with pytest.raises(TypeError):
        worldview.equations["Balance"] = Linear("Salary")  # type: ignore[index]
    with pytest.raises(AttributeError):
        worldview.graph = LOAN.graph  # type: ignore[misc]


def test_fit_gives_each_equation_its_coefficients() -> None:
    """By hand: mean salaries 50 and 35, so the effect of Gender is -15."""
    fitted = LOAN.fit(_people()).equations["Salary"]
    assert isinstance(fitted, FittedLinear)
    assert fitted.predictor.intercept == pytest.approx(50.0)
    (slope,) = fitted.predictor.terms
    assert isinstance(slope, Slope)
    assert slope.slope == pytest.approx(-15.0)


def test_settings_reach_the_fitted_equation() -> None:
    worldview = Worldview({"Salary": Linear("Gender", link="log", bounds=(1, 99), decimals=2)})
    fitted = worldview.fit(_people()).equations["Salary"]
    assert isinstance(fitted, FittedLinear)
    assert (fitted.link, fitted.bounds, fitted.decimals) == ("log", (1.0, 99.0), 2)


def test_a_cycle_is_refused_at_construction() -> None:
    with pytest.raises(CycleError, match="cycle: Balance → Salary → Balance"):
        Worldview({"Salary": Linear("Balance"), "Balance": Linear("Salary")})
    with pytest.raises(CycleError, match="cycle: Salary → Salary"):
        Worldview({"Salary": Linear("Gender", "Salary")})


def test_parents_must_be_names() -> None:
    wrong: Any = ["Gender", "Age"]
    with pytest.raises(WorldviewError, match="'Salary' has a parent of type list"):
        Worldview({"Salary": Linear(wrong)})
    with pytest.raises(WorldviewError, match="names its parent 'Gender' more than once"):
        Worldview({"Salary": Linear("Gender", "Gender")})


@pytest.mark.parametrize(
    ("given", "shown"), [("Gender", "str"), (Linear, "Linear"), (None, "NoneType")]
)
def test_what_is_no_equation(given: Any, shown: str) -> None:
    with pytest.raises(WorldviewError) as caught:
        Worldview({"Salary": given})
    assert str(caught.value) == (
        f"What is given for 'Salary' is not an equation ({shown}). "
        "An equation has parents and fit(): use Linear('Gender'), for example."
    )


def test_equations_come_in_a_dict() -> None:
    wrong: Any = [("Salary", Linear("Gender"))]
    with pytest.raises(WorldviewError, match="A worldview was made from list"):
        Worldview(wrong)


def test_a_protected_attribute_must_be_a_root() -> None:
    LOAN.check_root("Gender")
    LOAN.check_root("not mentioned")
    Worldview({"Gender": Linear()}).check_root("Gender")  # an equation without causes
    with pytest.raises(RootError) as caught:
        LOAN.check_root("Balance")
    assert str(caught.value) == (
        "The protected attribute 'Balance' must be a root, but the worldview says that it is "
        "caused by 'Salary', 'Gender'. Remove the equation for 'Balance'."
    )


def test_columns_that_the_population_lacks() -> None:
    worldview = Worldview({"Salary": Linear("Sex"), "Savings": Linear("Salary")})
    with pytest.raises(UnknownColumnError) as caught:
        worldview.fit(_people())
    assert str(caught.value) == (
        "The worldview or the intervention names 'Sex', 'Savings', which the population does not "
        "have. It holds 'Gender', 'Salary', 'Balance'. Correct the name, or read that column into "
        "the population too."
    )


def test_many_columns_are_not_all_listed() -> None:
    people = _people(**{f"extra{number}": [1, 2, 3, 4] for number in range(30)})
    with pytest.raises(UnknownColumnError, match=r"'extra16', …\. Correct") as caught:
        Worldview({"Salary": Linear("Sex")}).fit(people)
    assert "extra17" not in str(caught.value)


def test_a_linear_child_must_be_numbers() -> None:
    people = _people(Job=["a", "b", "a", "b"])
    with pytest.raises(EquationError) as caught:
        Worldview({"Job": Linear("Gender")}).fit(people)
    assert str(caught.value) == (
        "Equation for 'Job': it explains numbers, but the attribute holds names. Use an equation "
        "for categories, or give the column as numbers."
    )


def _ladder(**settings: Any) -> Worldview:
    """Gender moves Job and Salary, Job moves Salary, Salary moves Balance."""
    return Worldview(
        {
            "Job": Linear("Gender"),
            "Salary": Linear("Gender", "Job"),
            "Balance": Linear("Salary"),
        },
        **settings,
    )


def _ladder_people() -> Population:
    rng = np.random.default_rng(5)
    gender = rng.integers(0, 2, 200)
    job = 3.0 - gender + rng.normal(size=200)
    salary = 10 + 4 * job - 2 * gender + rng.normal(size=200)
    balance = 0.5 * salary + rng.normal(size=200)
    table = pd.DataFrame({"Gender": gender, "Job": job, "Salary": salary, "Balance": balance})
    return Population.from_frame(table, columns=list(map(str, table)))


def test_a_resolving_attribute_stays_and_paths_through_it_are_not_followed() -> None:
    people = _ladder_people()
    free = _ladder().counterfactuals(people, do={"Gender": 0})
    resolved = _ladder(resolving=("Job",)).counterfactuals(people, do={"Gender": 0})
    assert free.moved == ("Job", "Salary", "Balance")
    assert free.held == ()
    assert resolved.moved == ("Salary", "Balance")
    assert resolved.held == ("Job",)
    job = people.numbers("Job").tolist()
    assert resolved.population.numbers("Job").tolist() == job
    # what is left of the salary's move is the direct effect of gender alone
    fitted = _ladder().fit(people).equations["Salary"]
    direct = fitted.predictor.terms[0].slope  # type: ignore[attr-defined]
    women = people.numbers("Gender") == 1
    shift = resolved.population.numbers("Salary") - people.numbers("Salary")
    assert shift[women] == pytest.approx(np.full(women.sum(), -direct))
    assert (shift[~women] == 0).all()


def test_a_resolving_attribute_that_nothing_moves_is_not_reported() -> None:
    made = _ladder(resolving=("Job",)).counterfactuals(_ladder_people(), do={"Salary": 1.0})
    assert made.held == ()
    assert made.moved == ("Balance",)


def test_resolving_names_must_be_in_the_worldview() -> None:
    with pytest.raises(WorldviewError, match="'Shoe' is not in the worldview"):
        _ladder(resolving=("Shoe",))
    with pytest.raises(WorldviewError, match="one text"):
        _ladder(resolving="Job")


def test_refits_repeat_themselves_and_centre_on_the_point() -> None:
    people = _ladder_people()
    made = [
        _ladder().refits(people, do={"Gender": 0}, refits=40, rng=np.random.default_rng(3))
        for _ in range(2)
    ]
    salaries = [np.array([draw.numbers("Salary") for draw in each]) for each in made]
    assert np.array_equal(salaries[0], salaries[1])
    # a refit is the same whichever were looked at before it
    assert np.array_equal(made[0][7].numbers("Salary"), salaries[0][7])
    assert np.array_equal(made[0][5:8][2].numbers("Salary"), salaries[0][7])
    point = _ladder().counterfactuals(people, do={"Gender": 0}).population
    women = people.numbers("Gender") == 1
    spread = salaries[0][:, women].std(axis=0)
    assert (spread > 0).all()
    off = np.abs(salaries[0][:, women].mean(axis=0) - point.numbers("Salary")[women])
    assert (off < 4 * spread / np.sqrt(40)).all()
    assert (salaries[0][:, ~women] == people.numbers("Salary")[~women]).all()


def test_draws_of_additive_noise_are_the_point() -> None:
    people = _ladder_people()
    made = _ladder().counterfactuals(
        people, do={"Gender": 0}, draws=2, rng=np.random.default_rng(1)
    )
    assert len(made.draws) == 2
    for draw in made.draws:
        assert draw.numbers("Balance").tolist() == made.population.numbers("Balance").tolist()


def test_draws_need_a_generator() -> None:
    with pytest.raises(PlanError, match=r"draws=3 needs a generator.*rng="):
        _ladder().counterfactuals(_ladder_people(), do={"Gender": 0}, draws=3)
    with pytest.raises(PlanError, match="draws=-1 is negative"):
        _ladder().counterfactuals(
            _ladder_people(), do={"Gender": 0}, draws=-1, rng=np.random.default_rng(1)
        )


def test_an_equation_that_cannot_be_fitted_says_whose_it_is() -> None:
    people = _people(Twice=[80.0, 120.0, 60.0, 80.0], Planet=["earth"] * 4)
    with pytest.raises(
        EquationError, match=r"^Equation for 'Balance': parent 'Twice' is perfectly"
    ):
        Worldview({"Balance": Linear("Salary", "Twice")}).fit(people)
    with pytest.raises(EquationError, match=r"^Equation for 'Salary': 'Planet' does not vary"):
        Worldview({"Salary": Linear("Planet")}).fit(people)
    with pytest.raises(EquationError, match=r"^Equation for 'Gender': the log link .* 2 of 4 rows"):
        Worldview({"Gender": Linear("Salary", link="log")}).fit(people)
    with pytest.raises(EquationError, match=r"^Equation for 'Salary': 5 coefficients .* to 4 rows"):
        Worldview({"Salary": Linear("Gender", "Job")}).fit(_people(Job=["a", "b", "c", "d"]))


def test_fitting_does_not_touch_the_population() -> None:
    people = _people(Job=["a", "b", "a", "b"])
    before = {name: people.columns[name] for name in people.columns}
    copies = {name: people.numbers(name).copy() for name in ("Gender", "Salary", "Balance")}
    LOAN.counterfactuals(people, do={"Gender": 0})
    assert all(people.columns[name] is column for name, column in before.items())
    for name, copy in copies.items():
        assert np.array_equal(people.numbers(name), copy)
    assert people.changed == frozenset()


def test_a_resample_that_lost_a_rare_level_is_drawn_again() -> None:
    job = np.array(["cook"] * 30 + ["clerk"] * 29 + ["judge"])
    rng = np.random.default_rng(0)
    gender = rng.integers(0, 2, 60)
    salary = 10.0 + 3 * (job == "judge") - gender + rng.normal(size=60)
    table = pd.DataFrame({"Gender": gender, "Job": job, "Salary": salary})
    people = Population.from_frame(table, columns=list(map(str, table)))
    worldview = Worldview({"Salary": Linear("Gender", "Job")})
    made = worldview.refits(people, do={"Gender": 0}, refits=20, rng=np.random.default_rng(1))
    # more than a third of all resamples have no judge
    assert len({draw.numbers("Salary").tobytes() for draw in made}) == 20


def test_refits_have_the_open_noise_in_common() -> None:
    rng = np.random.default_rng(4)
    gender = rng.integers(0, 2, 3000)
    visits = rng.poisson(np.where(gender == 1, 3.0, 5.0))
    people = Population.from_frame({"g": gender, "v": visits}, columns=["g", "v"])
    worldview = Worldview({"v": Count("g")})

    def spread(worlds: Sequence[Population]) -> float:
        return float(np.std([world.numbers("v") for world in worlds], axis=0).mean())

    settings: dict[str, Any] = {"do": {"g": 0}, "rng": np.random.default_rng(1)}
    refitted = worldview.refits(people, refits=10, **settings)
    drawn = worldview.counterfactuals(people, draws=10, **settings).draws
    # what is left are the coefficients, which 3,000 people determine well
    assert 0 < spread(refitted) < spread(drawn) / 2


def test_a_worldview_that_no_resample_fits_says_so() -> None:
    table = {"Gender": [0.0, 1.0, 1.0], "Salary": [1.0, 2.0, 4.0], "Age": [1.0, 2.0, 3.0]}
    people = Population.from_frame(table, columns=list(table))
    worldview = Worldview({"Salary": Linear("Gender", "Age")})
    made = worldview.refits(people, do={"Gender": 0}, refits=300, rng=np.random.default_rng(1))
    assert len(made) == 300
    rare = Population.from_frame(
        {"Job": [f"job {n}" for n in range(40)], "Salary": np.arange(40.0)},
        columns=["Job", "Salary"],
    )
    lost = Worldview({"Salary": Linear("Job")}).refits(
        rare, do={"Job": "job 1"}, refits=1, rng=np.random.default_rng(1)
    )
    with pytest.raises(EquationError, match="did not occur"):
        lost[0]
