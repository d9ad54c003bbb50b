"""Stated equations: what the expert states, and what is left to be estimated."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mutandis.data.columns import Column, Numbers
from mutandis.errors import CycleError, EquationError, FormulaError, UnknownColumnError
from mutandis.scm import Linear, Stated, Worldview
from tests.scm.columns import names, numbers, people

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from mutandis.data.population import Population
    from mutandis.scm.family import Equation


def _after(table: Any, equations: Mapping[str, Equation], **do: Any) -> Population:
    return Worldview(equations).counterfactuals(people(table), do=do).population


@pytest.mark.parametrize(
    ("formula", "settings", "table", "after"),
    [
        # f = 0.5·S - 20·A. At A = 1, S = 100: f = 30; at A = 0: 50, 20 more
        ("0.5 * S - 20 * A", {}, {"A": [1, 0], "S": [100, 80], "X": [37, 41]}, [57.0, 41.0]),
        # a constant makes no difference
        ("2 * (A - 1)", {}, {"A": [0, 1, 3], "X": [2, 5, 4]}, [2.0, 3.0, -2.0]),
        ("2 * A + 64", {}, {"A": [0, 1, 3], "X": [2, 5, 4]}, [2.0, 3.0, -2.0]),
        # log f = A·log 2: each unit of A doubles
        ("A * log(2)", {"link": "log"}, {"A": [0, 1, 3], "X": [3, 3, 8]}, [3.0, 1.5, 1.0]),
        ("1 / (A + 1)", {}, {"A": [0, 1], "X": [1, 2]}, [1.0, 2.5]),
        ("3 * (A == 7)", {}, {"A": [0, 7], "X": [1, 2]}, [1.0, -1.0]),
    ],
)
def test_stated_equations_by_hand(
    formula: str, settings: dict[str, Any], table: Any, after: list[float]
) -> None:
    found = _after(table, {"X": Stated(formula, **settings)}, A=0).numbers("X")
    assert found.tolist() == pytest.approx(after)


def test_the_true_function_gives_the_true_counterfactual() -> None:
    rng = np.random.default_rng(0)
    gender, age = rng.choice(["female", "male"], 400), rng.uniform(18, 70, 400)
    u, v = rng.normal(0, 5, 400), rng.normal(0, 0.2, 400)

    def world(female: NDArray[np.bool_]) -> dict[str, NDArray[np.float64]]:
        salary = 30 + np.where(female & (age > 40), -9, 0.1 * age**2) / np.sqrt(age) + u
        return {"Salary": salary, "Balance": np.exp(1 - 0.3 * female + np.log(age) / 4 + v)}

    equations = {
        "Salary": Stated('where(Gender == "female" and Age > 40, -9, 0.1 * Age ** 2) / sqrt(Age)'),
        "Balance": Stated('-0.3 * (Gender == "female") + log(Age) / 4', link="log"),
    }
    facts = {"Gender": gender, "Age": age, **world(gender == "female")}
    truth = world(np.zeros(400, dtype=np.bool_))
    after = _after(facts, equations, Gender="male")
    for name in ("Salary", "Balance"):
        assert after.numbers(name) == pytest.approx(truth[name], abs=1e-9)


def test_names_of_all_kinds_of_levels() -> None:
    """Levels are text, numbers or truths, and a formula reads each as what it is."""
    parents: dict[str, Column] = {
        "Town": names([1, 0, 1], ["Aix", "Ulm"]),
        "Grade": names([0, 2, 1], [1, 2, 3]),
        "Member": names([0, 1, 1], [False, True]),
    }
    equation = Stated('10 * (Town == "Ulm") + Grade + 100 * (Member and Grade != 3)')
    assert equation.parents == ("Town", "Grade", "Member")
    fitted = equation.fit(numbers(0, 0, 0), parents)
    assert fitted.explained(parents, rows=3).tolist() == [11.0, 3.0, 112.0]
    # another table has other codes for the same levels
    other: dict[str, Column] = {**parents, "Town": names([0, 1, 2], ["Ulm", "Aix", "Rom"])}
    assert fitted.explained(other, rows=3).tolist() == [11.0, 3.0, 102.0]


@pytest.mark.parametrize(
    ("equation", "shown"),
    [
        (Stated(" 2 * A "), "Stated('2 * A')"),
        (Stated("A + b * B", fit=["b"]), "Stated('A + b * B', fit=('b',))"),
        (
            Stated("A", link="log", bounds=(0, None), decimals=1, levels=(0, 1)),
            "Stated('A', link='log', bounds=(0.0, None), decimals=1, levels=(0.0, 1.0))",
        ),
        (Stated("3 * ('A B' == `C` and 1 < 2 or 7 > 3 * `x y`)"), None),
    ],
)
def test_repr_makes_the_same_equation_again(equation: Stated, shown: str | None) -> None:
    assert shown is None or repr(equation) == shown
    again = eval(repr(equation), {"Stated": Stated})  # noqa: S307 - a text of this file
    assert (again, hash(again)) == (equation, hash(equation))


_NOT_LINEAR = "the formula is not linear in 'b': "


@pytest.mark.parametrize(
    ("formula", "settings", "message"),
    [
        ("A > 3", {}, "the formula gives true or false, but it explains a number. Say how much"),
        ("A", {"link": "logit"}, "link='logit' is not known. Use 'identity' or 'log'."),
        ("A + b ** 2", {"fit": ("b",)}, f"{_NOT_LINEAR}'b ** 2' (character 5) does more with it"),
        ("exp(b) * A", {"fit": ("b",)}, f"{_NOT_LINEAR}'exp(b)' (character 1)"),
        ("A / b", {"fit": ("b",)}, f"{_NOT_LINEAR}'A / b'"),
        ("b * (A + b)", {"fit": ("b",)}, f"{_NOT_LINEAR}'b * (A + b)'"),
        ("where(A > b, 1, 2)", {"fit": ("b",)}, f"{_NOT_LINEAR}'where(A > b, 1, 2)'"),
        ("3 * (A > b)", {"fit": ("b",)}, f"{_NOT_LINEAR}'A > b'"),
        ("3 * (not (A > b and A > 0))", {"fit": ("b",)}, _NOT_LINEAR),
        ("min(A, b)", {"fit": ("b",)}, f"{_NOT_LINEAR}'min(A, b)'"),
        ("b * c * A", {"fit": ("b", "c")}, "the formula is not linear in 'b' and 'c' together"),
        ("b * A", {"fit": ("b", "d")}, "fit names 'd', which the formula does not hold. It holds"),
        ("b * A", {"fit": "b"}, "fit='b' are not names. Give a tuple of names"),
        ("b * A", {"fit": ("b", "b")}, "fit names something twice. Name each once."),
        ("b * A", {"fit": (1,)}, "fit=(1,) are not names. Give a tuple of names"),
    ],
)
def test_bad_declarations(formula: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(EquationError) as caught:
        Stated(formula, **settings)
    assert message in str(caught.value)


@pytest.mark.parametrize("formula", ["__import__('os')", "A.real", "(lambda: 1)()", "A ** 99", ""])
def test_what_is_not_in_the_language_does_not_become_an_equation(formula: str) -> None:
    with pytest.raises(FormulaError):
        Stated(formula)


_ZERO = r"Equation for 'X': '1 / A' \(character 1\) has no finite result in 2 of 3 rows \(a div"
_ODD = "the formula compares 'G' with 'femal', which is not a value of that column. Its values are"


@pytest.mark.parametrize(
    ("equation", "error", "message"),
    [
        (Stated("2 * X + A"), CycleError, "The worldview has a cycle: X → X"),
        (Stated("b * A"), UnknownColumnError, "names 'b', which the population does not have"),
        (Stated("1 / A + B"), FormulaError, _ZERO),
        (Stated("1 / A + b * B", fit=("b",)), FormulaError, _ZERO),
        (Stated("2 * G"), FormulaError, "^Equation for 'X': 'G' .* is text where a number is"),
        (Stated("M"), EquationError, "Equation for 'X': the formula gives true or false"),
        (Stated('3 * (G == "femal")'), EquationError, f"Equation for 'X': {_ODD}"),
        (Stated('3 * ("femal" != G)'), EquationError, _ODD),
        (Stated('3 * (not ("femal" == G))'), EquationError, _ODD),
        (Stated("A", link="log"), EquationError, "Equation for 'X': the log link needs values abo"),
    ],
)
def test_tables_that_do_not_fit(equation: Stated, error: type[Exception], message: str) -> None:
    table = {
        "A": [1.0, 0.0, 0.0],
        "B": [1.0, 2.0, 5.0],
        "G": ["female", "male", "male"],
        "M": [True, False, True],
        "X": [1.0, 0.0, 3.0],
    }
    with pytest.raises(error, match=message):
        Worldview({"X": equation}).fit(people(table))


def test_a_division_by_zero_under_an_intervention() -> None:
    with pytest.raises(FormulaError, match=r"^Equation for 'X': '1 / A' .* in 2 of 2 rows"):
        _after({"A": [1.0, 2.0], "X": [1.0, 2.0]}, {"X": Stated("1 / A")}, A=0)


# --- coefficients ---------------------------------------------------------------------------------


def test_coefficients_are_those_of_least_squares_on_what_the_fixed_part_leaves() -> None:
    rng = np.random.default_rng(6)
    salary, age = rng.lognormal(10, 0.4, 300), rng.uniform(20, 60, 300)
    gender = rng.integers(0, 2, 300)
    balance = 0.25 * salary - 900 * gender + 3 * age**2 / 10 + 5000 + rng.normal(0, 500, 300)
    parents: dict[str, Column] = {
        "Salary": Numbers(salary),
        "Gender": names(gender, ["male", "female"]),
        "Age": Numbers(age),
    }
    equation = Stated(
        '0.3 * Salary + b * (Gender == "female") - (d * Age ** 2 - c) / 10', fit=("b", "c", "d")
    )
    fitted = equation.fit(Numbers(balance), parents)
    design = np.column_stack([gender, np.full(300, 0.1), -(age**2) / 10])
    oracle = np.linalg.lstsq(design, balance - 0.3 * salary, rcond=None)[0]
    found = dict(zip("bcd", oracle.tolist(), strict=True))
    assert dict(fitted.coefficients) == pytest.approx(found, rel=1e-9)
    explained = 0.3 * salary + design @ oracle
    assert fitted.explained(parents, rows=300) == pytest.approx(explained, rel=1e-10)


def test_everything_estimated_is_a_linear_equation() -> None:
    rng = np.random.default_rng(7)
    table = {"A": rng.normal(size=90), "B": rng.normal(size=90), "X": rng.normal(size=90)}
    linear = _after(table, {"X": Linear("A", "B")}, A=2).numbers("X")
    for formula in ("a * A + b * B + c", "a * A + b * B", "a * A + b * B + 77"):
        fit = ("a", "b", "c") if formula.endswith("c") else ("a", "b")
        stated = _after(table, {"X": Stated(formula, fit=fit)}, A=2).numbers("X")
        assert stated == pytest.approx(linear, rel=1e-11), formula


_FOUR = {"A": [0, 0, 1, 1], "X": [49, 51, 55, 57]}
_WAYS = {"A": [1, 2, 3, 1, 2], "G": list("fffmm"), "X": [3, 5, 7, 9, 4]}


@pytest.mark.parametrize(
    ("formula", "settings", "table", "found"),
    [
        # X is 50 where A is 0 and 56 where it is 1: the effect is 6, whatever constant is stated
        ("b * A", {}, _FOUR, {"b": 6.0}),
        ("b * A + 10", {}, _FOUR, {"b": 6.0}),
        ("b * A + c", {}, _FOUR, {"b": 6.0, "c": 50.0}),
        ("b * A - 4 * c", {}, _FOUR, {"b": 6.0, "c": -12.5}),
        ("c", {}, _FOUR, {"c": 53.0}),
        ("7", {}, _FOUR, {}),
        # branches have their own
        ('where(G == "f", b * A, d * A) + c', {}, _WAYS, None),
        ("b * A", {"link": "log"}, {"A": [0, 0, 1, 1], "X": [1, 4, 9, 16]}, {"b": math.log(6)}),
    ],
)
def test_coefficients_by_hand(
    formula: str, settings: Any, table: Any, found: dict[str, float] | None
) -> None:
    if found is None:
        a, female = np.array(table["A"], dtype=float), np.array(table["G"]) == "f"
        design = np.column_stack([a * female, a * ~female, np.ones(len(a))])
        found = dict(zip("bdc", np.linalg.lstsq(design, table["X"], rcond=None)[0], strict=True))
    equation = Stated(formula, fit=tuple(found), **settings)
    fitted: Any = Worldview({"X": equation}).fit(people(table)).equations["X"]
    assert dict(fitted.coefficients) == pytest.approx(found)


@pytest.mark.parametrize(
    ("formula", "fit", "message"),
    [
        ("b * A + c * 2 * A", "bc", "'c' cannot be told apart from 'b': what they are multiplied"),
        ("b * A + c * (A + 3)", "bc", "'c' cannot be told apart from 'b':"),
        ("b + c + d * A", "bcd", "'c' cannot be told apart from 'b':"),
        ("b * A + c * (A + 3) + d", "bcd", "'c' cannot be told apart from 'b':"),
        (
            "b * (A > 5) + A",
            "b",
            "nothing can be learnt about 'b': what it is multiplied with is 0",
        ),
        ("a + b * A + c * A ** 2 + d * A ** 3 + e * A ** 4", "abcde", "5 coefficients cannot be"),
    ],
)
def test_coefficients_that_the_data_say_nothing_about(formula: str, fit: str, message: str) -> None:
    with pytest.raises(EquationError, match=re.escape(message)):
        Stated(formula, fit=tuple(fit)).fit(numbers(1, 3, 2, 7), {"A": numbers(0, 1, 2, 3)})


def test_columns_far_from_zero_are_told_apart() -> None:
    """Without a constant beside them, offsets of 1e12 leave next to nothing to tell them apart."""
    first, second = np.random.default_rng(4).integers(0, 100, (2, 60)).astype(np.float64)
    fitted = Stated("b * A + c * B", fit=("b", "c")).fit(
        Numbers(2.0 * first - 3.0 * second),
        {"A": Numbers(1e12 + first), "B": Numbers(1e12 + second)},
    )
    assert list(fitted.coefficients.values()) == pytest.approx([2.0, -3.0], rel=1e-3)
