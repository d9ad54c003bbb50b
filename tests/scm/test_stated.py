"""Given equations: what the expert states, and what is left to be estimated."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.data.population import Population
from mutandis.errors import CycleError, EquationError, FormulaError, UnknownColumnError
from mutandis.scm import Linear, Stated, Worldview
from mutandis.scm.family import Equation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


def _numbers(*values: float) -> Numbers:
    return Numbers(np.array(values, dtype=np.float64))


def _names(codes: Sequence[int], levels: Sequence[Any]) -> Categories:
    return Categories(np.array(codes, dtype=np.int32), tuple(levels))


def _people(table: Mapping[str, Any] | pd.DataFrame) -> Population:
    return Population.from_frame(pd.DataFrame(table), columns=map(str, table))


def _after(table: Any, equations: Mapping[str, Equation], **do: Any) -> Population:
    return Worldview(equations).counterfactuals(_people(table), do=do).population


def test_the_stated_equation_by_hand() -> None:
    """f = 0.5·Salary - 20·Gender. At Gender 1 and Salary 100: f = 30; at Gender 0: 50, 20 more."""
    table = {"Gender": [1, 0], "Salary": [100.0, 80.0], "Balance": [37.0, 41.0]}
    equation = Stated("0.5 * Salary - 20 * Gender")
    assert equation.parents == ("Salary", "Gender")
    assert _after(table, {"Balance": equation}, Gender=0).numbers("Balance").tolist() == [57.0, 41]
    fitted = equation.fit(_numbers(37, 41), {"Gender": _numbers(1, 0), "Salary": _numbers(100, 80)})
    noise = fitted.abduct(_numbers(37, 41), {"Gender": _numbers(1, 0), "Salary": _numbers(100, 80)})
    assert noise.residual.tolist() == [7.0, 1.0]


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


def test_a_constant_in_the_formula_makes_no_difference() -> None:
    table = {"A": [0.0, 1.0, 3.0], "X": [2.0, 5.0, 4.0]}
    plain, shifted = (
        _after(table, {"X": Stated(formula)}, A=1).numbers("X").tolist()
        for formula in ("2 * A", "2 * A + 64")
    )
    assert plain == shifted == [4.0, 5.0, 0.0]


def test_log_link_multiplies() -> None:
    """log f = A·log 2: each unit of A doubles."""
    table = {"A": [0.0, 1.0, 3.0], "X": [3.0, 3.0, 8.0]}
    after = _after(table, {"X": Stated("A * log(2)", link="log")}, A=1)
    assert after.numbers("X").tolist() == pytest.approx([6.0, 3.0, 2.0])
    with pytest.raises(EquationError, match="Equation for 'X': the log link needs values above 0"):
        _after({"A": [0.0, 1.0], "X": [0.0, 1.0]}, {"X": Stated("A", link="log")}, A=1)


def test_names_of_all_kinds_of_levels() -> None:
    """Levels are text, numbers or truths, and a formula reads each as what it is."""
    parents: dict[str, Column] = {
        "Town": _names([1, 0, 1], ["Aix", "Ulm"]),
        "Grade": _names([0, 2, 1], [1, 2, 3]),
        "Member": _names([0, 1, 1], [False, True]),
    }
    equation = Stated('10 * (Town == "Ulm") + Grade + 100 * (Member and Grade != 3)')
    fitted = equation.fit(_numbers(0, 0, 0), parents)
    assert fitted.explained(parents, rows=3).tolist() == [11.0, 3.0, 112.0]
    # another table has other codes for the same levels
    other: dict[str, Column] = {**parents, "Town": _names([0, 1, 2], ["Ulm", "Aix", "Rom"])}
    assert fitted.explained(other, rows=3).tolist() == [11.0, 3.0, 102.0]


@pytest.mark.parametrize(
    ("equation", "shown"),
    [
        (Stated(" 2 * A "), "Stated('2 * A')"),
        (
            Stated("0.3 * A + b * B + c", fit=["b", "c"]),
            "Stated('0.3 * A + b * B + c', fit=('b', 'c'))",
        ),
        (Stated("A + B", parents=("A", "B")), "Stated('A + B')"),
        (Stated("A + B", parents=["B", "A"]), "Stated('A + B', parents=('B', 'A'))"),
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
    assert again == equation
    assert hash(again) == hash(equation)
    assert isinstance(equation, Equation)


@pytest.mark.parametrize(
    ("formula", "settings", "message"),
    [
        (
            "A > 3",
            {},
            (
                "the formula gives true or false, but it explains a number. "
                "Say how much a comparison counts: 2000 * (Gender == 1), for example."
            ),
        ),
        ("A", {"link": "logit"}, "link='logit' is not known. Use 'identity' or 'log'."),
        (
            "A + Bx",
            {"parents": ("A", "B")},
            (
                "the formula holds 'Bx', which is neither among its parents nor in fit. "
                "Correct the name, add it to the parents, or have it estimated with fit."
            ),
        ),
        (
            "A + b",
            {"parents": ("A", "b", "C"), "fit": ("b",)},
            (
                "the parents include 'b' and 'C', which the formula does not read as a column. "
                "A cause that changes nothing is not a parent: take it out, or use it in the "
                "formula."
            ),
        ),
        ("A", {"parents": "A"}, "parents='A' is one text. Give a tuple of names: ('A',)."),
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


def test_nothing_causes_itself() -> None:
    with pytest.raises(CycleError, match="The worldview has a cycle: X → X"):
        Worldview({"X": Stated("2 * X + A")})


def test_a_name_that_is_no_column() -> None:
    with pytest.raises(UnknownColumnError, match="names 'b', which the population does not have"):
        Worldview({"X": Stated("b * A")}).fit(_people({"A": [1.0, 2.0], "X": [1.0, 2.0]}))


@pytest.mark.parametrize("names", [(), ("b",)])
def test_a_division_by_zero_is_counted_and_the_attribute_named(names: tuple[str, ...]) -> None:
    people = _people({"A": [1.0, 0.0, 0.0], "B": [1.0, 2.0, 5.0], "X": [1.0, 2.0, 3.0]})
    formula = "1 / A + b * B" if names else "1 / A + B"
    with pytest.raises(FormulaError) as caught:
        Worldview({"X": Stated(formula, fit=names)}).fit(people)
    assert str(caught.value).startswith(
        "Equation for 'X': '1 / A' (character 1) has no finite result in 2 of 3 rows "
        "(a division by zero,"
    )


def test_a_division_by_zero_under_an_intervention() -> None:
    people = _people({"A": [1.0, 2.0], "X": [1.0, 2.0]})
    worldview = Worldview({"X": Stated("1 / A")})
    assert worldview.counterfactuals(people, do={"A": 2}).population.numbers("X").tolist() == [
        0.5,
        2.0,
    ]
    with pytest.raises(FormulaError, match=r"^Equation for 'X': '1 / A' .* in 2 of 2 rows"):
        worldview.counterfactuals(people, do={"A": 0})


def test_names_where_numbers_are_needed() -> None:
    people = _people({"G": ["f", "m"], "X": [1.0, 2.0]})
    with pytest.raises(FormulaError, match=r"^Equation for 'X': 'G' .* is text where a number is"):
        Worldview({"X": Stated("2 * G")}).fit(people)


def test_truths_alone_are_no_numbers() -> None:
    with pytest.raises(EquationError, match="the formula gives true or false"):
        Stated("G").fit(_numbers(1, 2), {"G": _names([0, 1], [False, True])})


@pytest.mark.parametrize(
    "formula", ['3 * (G == "femal")', '3 * ("femal" != G)', '3 * (not ("femal" == G))']
)
def test_a_comparison_with_a_value_that_does_not_exist(formula: str) -> None:
    people = _people({"G": ["female", "male"] * 2, "X": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(EquationError) as caught:
        Worldview({"X": Stated(formula)}).fit(people)
    assert str(caught.value) == (
        "Equation for 'X': the formula compares 'G' with 'femal', which is not a value of that "
        "column. Its values are 'female', 'male'. Correct the formula."
    )


def test_comparisons_of_numbers_are_left_alone() -> None:
    people = _people({"G": [0.0, 1.0], "X": [1.0, 2.0]})
    Worldview({"X": Stated("3 * (G == 7)")}).fit(people)


def test_a_formula_without_names_is_all_constant() -> None:
    fitted = Stated("7").fit(_numbers(1, 2), {})
    assert fitted.explained({}, rows=2).tolist() == [7.0, 7.0]
    estimated = Stated("c", fit=("c",)).fit(_numbers(1, 2), {})
    assert dict(estimated.coefficients) == {"c": 1.5}
    assert Stated("c", fit=("c",)).parents == ()


def test_coefficients_are_those_of_least_squares_on_what_the_fixed_part_leaves() -> None:
    rng = np.random.default_rng(6)
    salary, age = rng.lognormal(10, 0.4, 300), rng.uniform(20, 60, 300)
    gender = rng.integers(0, 2, 300)
    balance = 0.25 * salary - 900 * gender + 3 * age**2 / 10 + 5000 + rng.normal(0, 500, 300)
    parents: dict[str, Column] = {
        "Salary": Numbers(salary),
        "Gender": _names(gender.tolist(), ["male", "female"]),
        "Age": Numbers(age),
    }
    equation = Stated(
        '0.3 * Salary + b * (Gender == "female") - (d * Age ** 2 - c) / 10', fit=("b", "c", "d")
    )
    assert equation.parents == ("Salary", "Gender", "Age")
    fitted = equation.fit(Numbers(balance), parents)
    design = np.column_stack([gender, np.full(300, 0.1), -(age**2) / 10])
    oracle = np.linalg.lstsq(design, balance - 0.3 * salary, rcond=None)[0]
    assert list(fitted.coefficients) == ["b", "c", "d"]
    assert list(fitted.coefficients.values()) == pytest.approx(oracle.tolist(), rel=1e-9)
    explained = 0.3 * salary + design @ oracle
    assert fitted.explained(parents, rows=300) == pytest.approx(explained, rel=1e-10)


def test_everything_estimated_is_a_linear_equation() -> None:
    rng = np.random.default_rng(7)
    table = {"A": rng.normal(size=90), "B": rng.normal(size=90), "X": rng.normal(size=90)}
    linear = _after(table, {"X": Linear("A", "B")}, A=2).numbers("X")
    for formula in ("a * A + b * B + c", "a * A + b * B", "a * A + b * B + 77"):
        names = ("a", "b", "c") if formula.endswith("c") else ("a", "b")
        stated = _after(table, {"X": Stated(formula, fit=names)}, A=2).numbers("X")
        assert stated == pytest.approx(linear, rel=1e-11), formula


def test_a_constant_that_is_left_out_or_stated_belongs_to_the_noise() -> None:
    """X is 50 where A is 0 and 56 where it is 1: the effect is 6, not 56."""
    for formula in ("b * A", "b * A + 10", "b * A + c"):
        names = ("b", "c") if "c" in formula else ("b",)
        fitted = Stated(formula, fit=names).fit(
            _numbers(49, 51, 55, 57), {"A": _numbers(0, 0, 1, 1)}
        )
        assert fitted.coefficients["b"] == pytest.approx(6.0)
    assert fitted.coefficients["c"] == pytest.approx(50.0)


def test_a_constant_with_a_factor() -> None:
    fitted = Stated("b * A - 4 * c", fit=("b", "c")).fit(
        _numbers(49, 51, 55, 57), {"A": _numbers(0, 0, 1, 1)}
    )
    assert fitted.coefficients["c"] == pytest.approx(-12.5)


def test_coefficients_that_add_up_to_a_constant() -> None:
    """One mean for women and one for men, beside a slope: 10 and 14, and 2 for each year."""
    gender = ["f", "f", "f", "m", "m", "m"]
    years = [0.0, 1.0, 2.0, 0.0, 1.0, 3.0]
    score = [10.0, 12.0, 14.0, 14.0, 16.0, 20.0]
    equation = Stated('w * (G == "f") + s * Years + m * (G == "m")', fit=("w", "s", "m"))
    people = _people({"G": gender, "Years": years, "Score": score})
    fitted: Any = Worldview({"Score": equation}).fit(people).equations["Score"]
    assert dict(fitted.coefficients) == pytest.approx({"w": 10.0, "s": 2.0, "m": 14.0})


def test_branches_of_where_have_their_own_coefficients() -> None:
    table = {"A": [1.0, 2.0, 3.0, 1.0, 2.0], "G": list("fffmm"), "X": [3.0, 5.0, 7.0, 9.0, 4.0]}
    equation = Stated('where(G == "f", b * A, d * A) + c', fit=("b", "d", "c"))
    fitted: Any = Worldview({"X": equation}).fit(_people(table)).equations["X"]
    a, female = np.array(table["A"], dtype=float), np.array(table["G"]) == "f"
    design = np.column_stack([a * female, a * ~female, np.ones(5)])
    oracle = np.linalg.lstsq(design, np.array(table["X"]), rcond=None)[0]
    assert list(fitted.coefficients.values()) == pytest.approx(oracle.tolist())


def test_coefficients_under_the_log_link() -> None:
    a = _numbers(0, 0, 1, 1)
    fitted = Stated("b * A", fit=("b",), link="log").fit(_numbers(1, 4, 9, 16), {"A": a})
    assert fitted.coefficients["b"] == pytest.approx(math.log(6))


@pytest.mark.parametrize(
    ("formula", "names", "message"),
    [
        (
            "A + b ** 2",
            ("b",),
            (
                "the formula is not linear in 'b': 'b ** 2' (character 5) does more with it than "
                "add, subtract or multiply it. State it as a number, or write the formula so that "
                "it is."
            ),
        ),
        ("exp(b) * A", ("b",), "not linear in 'b': 'exp(b)' (character 1)"),
        ("A / b", ("b",), "not linear in 'b': 'A / b'"),
        ("b * (A + b)", ("b",), "not linear in 'b': 'b * (A + b)'"),
        ("where(A > b, 1, 2)", ("b",), "not linear in 'b': 'where(A > b, 1, 2)'"),
        ("3 * (A > b)", ("b",), "not linear in 'b': 'A > b'"),
        ("3 * (not (A > b and A > 0))", ("b",), "not linear in 'b':"),
        ("min(A, b)", ("b",), "not linear in 'b': 'min(A, b)'"),
        (
            "b * c * A",
            ("b", "c"),
            (
                "the formula is not linear in 'b' and 'c' together: they are multiplied with each "
                "other, so neither can be estimated. State one as a number."
            ),
        ),
        (
            "b * A",
            ("b", "d"),
            (
                "fit names 'd', which the formula does not hold. It holds 'b' and 'A'. "
                "Name what is to be estimated as it stands there."
            ),
        ),
        ("b * A", "b", "fit='b' is one text. Give a tuple of names: ('b',)."),
        ("b * A", ("b", "b"), "fit names something twice. Name each once."),
        ("b * A", (1,), "fit has names that are not text. Give a tuple of names."),
    ],
)
def test_what_cannot_be_estimated(formula: str, names: Any, message: str) -> None:
    with pytest.raises(EquationError) as caught:
        Stated(formula, fit=names)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("formula", "names", "message"),
    [
        (
            "b * A + c * 2 * A",
            ("b", "c"),
            (
                "'c' cannot be told apart from 'b': what they are multiplied with follows from "
                "each other. State one of them as a number, or take it out of the formula."
            ),
        ),
        ("b + c + d * A", ("b", "c", "d"), "'c' cannot be told apart from 'b':"),
        ("b * A + c * (A + 3)", ("b", "c"), None),
        ("b * A + c * (A + 3) + d", ("b", "c", "d"), "'c' cannot be told apart from 'b':"),
        (
            "b * (A > 5) + A",
            ("b",),
            (
                "nothing can be learnt about 'b': what it is multiplied with is 0 in all 4 rows. "
                "State it as a number, or take it out of the formula."
            ),
        ),
        (
            "a + b * A + c * A ** 2 + d * A ** 3 + e * A ** 4",
            tuple("abcde"),
            "5 coefficients cannot be fitted to 4 rows.",
        ),
    ],
)
def test_coefficients_that_the_data_say_nothing_about(
    formula: str, names: tuple[str, ...], message: str | None
) -> None:
    equation, child = Stated(formula, fit=names), _numbers(1, 3, 2, 7)
    parents = {"A": _numbers(0, 1, 2, 3)}
    if message is None:
        # A and A + 3 differ by a constant, so they can be told apart without one beside them
        fitted = equation.fit(child, parents)
        line = np.polyfit([0, 1, 2, 3], child.values, 1)
        assert fitted.explained(parents, rows=4) == pytest.approx(np.polyval(line, [0, 1, 2, 3]))
        return
    with pytest.raises(EquationError) as caught:
        equation.fit(child, parents)
    assert message in str(caught.value)


def test_columns_far_from_zero_are_told_apart() -> None:
    """Without a constant beside them, offsets of 1e12 leave next to nothing to tell them apart."""
    rng = np.random.default_rng(4)
    first, second = (1e12 + rng.integers(0, 100, 60) for _ in range(2))
    x = 2.0 * (first - 1e12) - 3.0 * (second - 1e12)
    fitted = Stated("b * A + c * B", fit=("b", "c")).fit(
        Numbers(x), {"A": Numbers(first.astype(float)), "B": Numbers(second.astype(float))}
    )
    assert list(fitted.coefficients.values()) == pytest.approx([2.0, -3.0], rel=1e-3)


def test_a_fitted_worldview_recovers_the_truth() -> None:
    """A, U and V take all combinations of their values, so that least squares finds the truth."""
    combinations = itertools.product([0, 1], [-6.0, -1.0, 1.0, 6.0], [-2.5, 0.0, 2.5])
    status, u, v = (np.array(values) for values in zip(*combinations, strict=True))

    def world(a: NDArray[Any]) -> pd.DataFrame:
        salary = 100 - 15 * a + u
        return pd.DataFrame({"A": a, "Salary": salary, "Balance": 20 + 0.3 * salary - 4 * a + v})

    equations = {
        "Salary": Stated("b * A", fit=("b",)),
        "Balance": Stated("0.3 * Salary + b * A + c", fit=("b", "c")),
    }
    after = _after(world(status), equations, A=0)
    truth = world(np.zeros_like(status))
    for name in ("Salary", "Balance"):
        assert after.numbers(name) == pytest.approx(truth[name].to_numpy(), abs=1e-10)
