"""Additive equations: any regressor, with noise that is added to what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.data.population import Population
from mutandis.errors import EquationError
from mutandis.scm import Additive, Linear, Worldview
from mutandis.scm.additive import AdditiveNoise, _features

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
    """A regressor that knows its function and remembers what it was shown."""

    def __init__(self, function: Callable[[NDArray[np.float64]], Any]) -> None:
        self.function = function
        self.seen: list[tuple[list[list[float]], list[float]]] = []

    def fit(self, features: NDArray[np.float64], target: NDArray[np.float64]) -> None:
        self.seen.append((features.tolist(), target.tolist()))

    def predict(self, features: NDArray[np.float64]) -> Any:
        return self.function(features)

    def __repr__(self) -> str:
        return "Stated()"


def _first(features: NDArray[np.float64]) -> NDArray[np.float64]:
    return features[:, 0]


def _truth(female: Any, age: Any) -> Any:
    """A step, a curve and an interaction: nothing that a straight line could follow."""
    return 20 * np.sin(age / 9) - 6 * female * (age > 45) + 0.01 * (1 + female) * age**2


def _simulated(rows: int, seed: int) -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """Facts, and the true counterfactual of do(Gender := m)."""
    rng = np.random.default_rng(seed)
    gender, age = rng.choice(["f", "m"], rows), rng.uniform(20, 70, rows)
    noise = rng.normal(0, 2, rows)
    facts = {"Gender": gender, "Age": age, "Score": _truth(gender == "f", age) + noise}
    return pd.DataFrame(facts), _truth(0.0, age) + noise


def test_the_true_function_gives_the_true_counterfactual() -> None:
    facts, truth = _simulated(500, seed=0)
    # one column for f, one for m, then the age
    regressor = Stated(lambda features: _truth(features[:, 0], features[:, 2]))
    worldview = Worldview({"Score": Additive("Gender", "Age", regressor=regressor)})
    after = worldview.counterfactuals(_people(facts), do={"Gender": "m"}).population
    assert after.numbers("Score") == pytest.approx(truth, abs=1e-9)


@pytest.mark.slow
def test_the_error_of_gradient_boosting_shrinks_with_the_number_of_rows() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    regressor = ensemble.GradientBoostingRegressor(
        n_estimators=150, max_depth=4, min_samples_leaf=20, random_state=0
    )
    worldview = Worldview({"Score": Additive("Gender", "Age", regressor=regressor)})
    straight = Worldview({"Score": Linear("Gender", "Age", interactions=True)})

    def error(worldview: Worldview, rows: int, seed: int) -> float:
        facts, truth = _simulated(rows, seed)
        after = worldview.counterfactuals(_people(facts), do={"Gender": "m"}).population
        women = (facts["Gender"] == "f").to_numpy()
        return float(np.sqrt(np.mean((after.numbers("Score") - truth)[women] ** 2)))

    errors = [
        np.mean([error(worldview, rows, seed) for seed in range(2)]) for rows in (300, 1500, 7500)
    ]
    assert errors[1] < errors[0] / 1.3
    assert errors[2] < errors[1] / 1.3
    assert errors[2] < 0.8  # the noise has a standard deviation of 2
    assert error(straight, 7500, seed=0) > 2


def test_a_chain_of_equations() -> None:
    """B = A² + U, C = B·A + V. Row: A = 3, B = 10 (U = 1), C = 32 (V = 2). At A = 1: B = 2, C = 4.

    Another row: A = 1, B = 0 (U = -1), C = 5 (V = 5) stays as it is.
    """
    facts = pd.DataFrame({"A": [3.0, 1.0], "B": [10.0, 0.0], "C": [32.0, 5.0]})
    worldview = Worldview(
        {
            "B": Additive("A", regressor=Stated(lambda features: features[:, 0] ** 2)),
            "C": Additive("B", "A", regressor=Stated(lambda features: features.prod(axis=1))),
        }
    )
    after = worldview.counterfactuals(_people(facts), do={"A": 1}).population
    assert after.numbers("B").tolist() == [2.0, 0.0]
    assert after.numbers("C").tolist() == [4.0, 5.0]


def test_abduction_by_hand() -> None:
    fitted = Additive("A", regressor=Stated(_first)).fit(_numbers(1, 2), {"A": _numbers(0, 1)})
    noise = fitted.abduct(_numbers(10, 7), {"A": _numbers(3, 4)})
    assert isinstance(noise, AdditiveNoise)
    assert noise.explained.tolist() == [3.0, 4.0]
    assert noise.residual.tolist() == [7.0, 3.0]
    assert fitted.predict({"A": _numbers(0, 0.5)}, noise).values.tolist() == [7.0, 3.5]
    assert fitted.explained({"A": _numbers(8)}).tolist() == [8.0]


def test_names_become_one_column_a_level_that_occurs() -> None:
    regressor = Stated(_first)
    fitted = Additive("Job", "Age", "Town", regressor=regressor).fit(
        _numbers(5, 6, 7),
        {
            "Job": _names([2, 0, 2], ["cook", "none", "clerk"]),
            "Age": _numbers(30, 40, 50),
            "Town": _names([1, 1, 0], [10, 20]),
        },
    )
    assert isinstance(fitted.regressor, Stated)
    assert fitted.regressor.seen == [
        ([[0, 1, 30, 0, 1], [1, 0, 40, 0, 1], [0, 1, 50, 1, 0]], [5, 6, 7])
    ]
    # another table has other codes for the same levels
    other: dict[str, Column] = {
        "Job": _names([0, 1], ["clerk", "cook"]),
        "Age": _numbers(1, 2),
        "Town": _names([0, 2], [20, 30, 10]),
    }
    assert _features(fitted.encoding, other).tolist() == [[0, 1, 1, 0, 1], [1, 0, 2, 1, 0]]


def test_the_declared_regressor_is_never_fitted() -> None:
    regressor = Stated(_first)
    fitted = Additive("A", regressor=regressor).fit(_numbers(1, 2), {"A": _numbers(0, 1)})
    assert regressor.seen == []
    assert isinstance(fitted.regressor, Stated)
    assert fitted.regressor.seen == [([[0.0], [1.0]], [1.0, 2.0])]


def test_a_regressor_that_was_fitted_before_starts_afresh() -> None:
    tree = pytest.importorskip("sklearn.ensemble").GradientBoostingRegressor(
        n_estimators=3, warm_start=True, random_state=0
    )
    tree.fit([[0.0], [1.0]], [1000.0, 2000.0])
    fitted = Additive("A", regressor=tree).fit(_numbers(1, 2, 1, 2), {"A": _numbers(0, 1, 0, 1)})
    assert fitted.regressor is not tree
    assert fitted.explained({"A": _numbers(0)})[0] < 2
    assert tree.predict([[0.0]])[0] > 1000


def test_a_regressor_whose_get_params_is_its_own() -> None:
    class Peculiar(Stated):
        def get_params(self, deep: bool = True) -> dict[str, Any]:
            return {"unknown": 1}

    regressor = Peculiar(_first)
    fitted = Additive("A", regressor=regressor).fit(_numbers(1, 2), {"A": _numbers(0, 1)})
    assert isinstance(fitted.regressor, Peculiar)
    assert fitted.regressor is not regressor
    assert regressor.seen == []


def test_a_regressor_may_write_to_what_it_gets() -> None:
    class Vandal(Stated):
        def fit(self, features: NDArray[np.float64], target: NDArray[np.float64]) -> None:
            features[:] = target[:] = np.nan

        def predict(self, features: NDArray[np.float64]) -> Any:
            features[:] = 1.0
            return features[:, 0]

    facts = _people({"A": [0.0, 1.0, 1.0], "X": [1.0, 2.0, 3.0]})
    worldview = Worldview({"X": Additive("A", regressor=Vandal(_first))})
    after = worldview.counterfactuals(facts, do={"A": 0}).population
    assert facts.numbers("X").tolist() == [1.0, 2.0, 3.0]
    assert facts.numbers("A").tolist() == [0.0, 1.0, 1.0]
    assert after.numbers("X").tolist() == [1.0, 2.0, 3.0]


class Sloppy:
    """A regressor whose answers depend on how many rows it is asked about, and on their places."""

    def __init__(self) -> None:
        self.calls = 0

    def fit(self, features: Any, target: Any) -> None:
        self.means = features.mean(axis=0)

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        self.calls += 1
        places = np.arange(len(features)) + 7 * self.calls
        answers: NDArray[np.float64] = (features - self.means).sum(axis=1) + 1e-3 * places
        return answers


def test_unchanged_causes_give_the_same_bits_from_whatever_regressor() -> None:
    facts, _ = _simulated(200, seed=1)
    facts.loc[0, "Score"] = -0.0
    facts.loc[0, "Gender"] = "m"
    people = _people(facts)
    worldview = Worldview({"Score": Additive("Gender", "Age", regressor=Sloppy())})
    after = worldview.counterfactuals(people, do={"Gender": "m"}).population
    men = (facts["Gender"] == "m").to_numpy()
    factual, counterfactual = people.numbers("Score"), after.numbers("Score")
    assert counterfactual[men].tobytes() == factual[men].tobytes()
    assert (counterfactual[~men] != factual[~men]).all()


def test_the_order_of_the_rows_changes_nothing_for_whatever_regressor() -> None:
    facts, _ = _simulated(120, seed=2)
    facts["Age"] = facts["Age"].round(-1)  # so that some rows have the same causes
    results = set()
    for seed in range(6):
        shuffled = facts.sample(frac=1, random_state=seed)
        worldview = Worldview({"Score": Additive("Gender", "Age", regressor=Sloppy())})
        after = worldview.counterfactuals(_people(shuffled), do={"Gender": "m"}).population
        # equal rows may change places, but then they are equal in all they hold
        found = pd.DataFrame({"x": shuffled["Score"].to_numpy(), "y": after.numbers("Score")})
        results.add(found.sort_values(["x", "y"]).to_numpy().tobytes())
    assert len(results) == 1


def test_people_with_the_same_causes_are_explained_alike() -> None:
    fitted = Additive("A", "B", regressor=Sloppy()).fit(
        _numbers(1, 2, 4), {"A": _numbers(1, 2, 1), "B": _numbers(3, 4, 4)}
    )
    explained = fitted.explained({"A": _numbers(5, 6, 5, 6, 5), "B": _numbers(1, 1, 1, 2, 1)})
    assert explained[0] == explained[2] == explained[4]
    assert len(set(explained.tolist())) == 3


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
                "It must return one number per row."
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
                "its regressor (Stated) predicted list, which does not hold one number per row. "
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
                "Use one that has, such as a regressor of scikit-learn."
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
