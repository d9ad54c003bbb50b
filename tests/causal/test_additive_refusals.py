"""What additive equations refuse, of regressors and of their answers; and how they are declared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.causal import Additive, Equation, FittedAdditive, Worldview
from mutandis.data.columns import Categories, Column, Numbers
from mutandis.data.population import Population
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray


def _numbers(*values: float) -> Numbers:
    return Numbers(np.array(values, dtype=np.float64))


def _names(codes: Sequence[int], levels: Sequence[Any]) -> Categories:
    return Categories(np.array(codes, dtype=np.int32), tuple(levels))


def _people(table: Mapping[str, Any] | pd.DataFrame) -> Population:
    return Population.from_frame(pd.DataFrame(table), columns=map(str, table))


class Stated:
    """A regressor that knows its function."""

    def __init__(self, function: Callable[[NDArray[np.float64]], Any]) -> None:
        self.function = function

    def fit(self, features: Any, target: Any) -> None:
        pass

    def predict(self, features: NDArray[np.float64]) -> Any:
        return self.function(features)

    def __repr__(self) -> str:
        return "Stated()"


def _first(features: NDArray[np.float64]) -> NDArray[np.float64]:
    return features[:, 0]


def test_answers_in_a_single_column_are_understood() -> None:
    regressor = Stated(lambda features: (2 * features).tolist())
    fitted = Additive("A", regressor=regressor).fit(_numbers(1, 2), {"A": _numbers(0, 1)})
    assert fitted.explained({"A": _numbers(3, 4)}).tolist() == [6.0, 8.0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda features: features,
            (
                "its regressor (Stated) predicted values of shape (2, 2) for 2 rows. "
                "It must give one number a row."
            ),
        ),
        (
            lambda features: features[:1, 0],
            "its regressor (Stated) predicted values of shape (1,) for 2 rows.",
        ),
        (
            lambda features: np.array([np.nan, np.inf]),
            (
                "its regressor (Stated) predicted 2 of 2 values that are not finite numbers. "
                "Scale the causes, or use another regressor."
            ),
        ),
        (
            lambda features: ["secret", "cell"],
            (
                "its regressor (Stated) predicted list, which does not hold one number a row. "
                "Use a regressor, not a classifier."
            ),
        ),
        (lambda features: None, "its regressor (Stated) predicted "),
        (
            lambda features: dict[str, Any]()["secret"],
            (
                "its regressor (Stated) raised KeyError in predict(). "
                "Try it on the parents' columns alone to see why."
            ),
        ),
    ],
)
def test_bad_predictions(function: Any, message: str) -> None:
    parents = {"A": _numbers(0, 1), "B": _numbers(1, 0)}
    fitted = Additive("A", "B", regressor=Stated(function)).fit(_numbers(1, 2), parents)
    with pytest.raises(EquationError) as caught:
        fitted.abduct(_numbers(1, 2), parents)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_regressor_that_cannot_be_fitted_is_named_with_the_type_of_its_error() -> None:
    class Failing(Stated):
        def fit(self, features: Any, target: Any) -> None:
            raise ZeroDivisionError("the secret cell 4711")

    facts = _people({"A": [0.0, 1.0], "X": [1.0, 2.0]})
    with pytest.raises(EquationError) as caught:
        Worldview({"X": Additive("A", regressor=Failing(_first))}).fit(facts)
    assert str(caught.value) == (
        "Equation for 'X': its regressor (Failing) raised ZeroDivisionError in fit(). "
        "Try it on the parents' columns alone to see why."
    )


def test_a_regressor_that_cannot_be_copied() -> None:
    class Unique(Stated):
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("no")

    with pytest.raises(
        EquationError, match=r"its regressor \(Unique\) raised TypeError in being copied"
    ):
        Additive("A", regressor=Unique(_first)).fit(_numbers(1, 2), {"A": _numbers(0, 1)})


def test_a_child_of_names_is_refused() -> None:
    with pytest.raises(EquationError, match="it explains numbers, but the attribute holds names"):
        Additive("A", regressor=Stated(_first)).fit(_names([0, 1], "ab"), {"A": _numbers(0, 1)})


def test_a_parent_that_does_not_vary_has_no_effect_to_learn() -> None:
    parents: dict[str, Column] = {"A": _numbers(0, 1), "B": _names([1, 1], "xy")}
    with pytest.raises(EquationError, match="'B' does not vary from row to row"):
        Additive("A", "B", regressor=Stated(_first)).fit(_numbers(1, 2), parents)


def test_a_single_row_teaches_nothing() -> None:
    with pytest.raises(EquationError, match="a regressor cannot learn anything from 1 rows"):
        Additive("A", regressor=Stated(_first)).fit(_numbers(1), {"A": _numbers(0)})


@pytest.mark.parametrize(
    ("regressor", "message"),
    [
        (Stated, "regressor=Stated is a class. Give an object of it: regressor=Stated()."),
        (
            len,
            (
                "the regressor (builtin_function_or_method) does not have fit() and predict(). "
                "Give one that has, such as a regressor of scikit-learn."
            ),
        ),
        (None, "the regressor (NoneType) does not have fit() and predict()."),
    ],
)
def test_what_is_no_regressor(regressor: Any, message: str) -> None:
    with pytest.raises(EquationError) as caught:
        Additive("A", regressor=regressor)
    assert message in str(caught.value)


def test_an_equation_without_parents_has_nothing_to_learn_from() -> None:
    with pytest.raises(EquationError, match="has no parents for its regressor to learn from"):
        Additive(regressor=Stated(_first))


def test_declarations() -> None:
    regressor = Stated(_first)
    equation = Additive("A", "B", regressor=regressor, bounds=(0, None), decimals=2)
    assert (
        repr(equation) == "Additive('A', 'B', regressor=Stated(), bounds=(0.0, None), decimals=2)"
    )
    assert isinstance(equation, Equation)
    same = Additive("A", "B", regressor=regressor, bounds=(0, None), decimals=2)
    assert (same, hash(same)) == (equation, hash(equation))
    assert equation != Additive("A", "B", regressor=Stated(_first), bounds=(0, None), decimals=2)
    assert equation != Additive("A", "B", regressor=regressor, bounds=(0, None))
    with pytest.raises(AttributeError):
        equation.decimals = 3  # type: ignore[misc]
    fitted = equation.fit(_numbers(1, 2), {"A": _numbers(0, 1), "B": _numbers(2, 1)})
    assert isinstance(fitted, FittedAdditive)
    assert (fitted.bounds, fitted.decimals) == ((0.0, None), 2)
