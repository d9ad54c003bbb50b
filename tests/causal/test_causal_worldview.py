"""Worldviews: what they accept, what they fit, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from mutandis.causal import FittedLinear, Linear, Worldview
from mutandis.causal.fitting import Slope
from mutandis.domain import Population
from mutandis.errors import (
    CycleError,
    EquationError,
    KindError,
    RootError,
    UnknownColumnError,
    WorldviewError,
)

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
        f"What is given for 'Salary' is no equation ({shown}). "
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


def test_children_must_be_numbers() -> None:
    people = _people(Job=["a", "b", "a", "b"])
    with pytest.raises(KindError) as caught:
        Worldview({"Job": Linear("Gender")}).fit(people)
    assert str(caught.value) == (
        "Column 'Job' has an equation but holds names; equations explain numbers. "
        "Remove its equation if it is a root, or give the column as numbers."
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
