"""Additive noise: links, regressors, and what is done to predictions at the end."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.errors import EquationError, FormulaError
from mutandis.scm import Additive, Linear, Stated, Worldview
from mutandis.scm.additive import FittedLinear, _features, finish
from mutandis.scm.family import naming
from mutandis.scm.predictor import LinearPredictor, Term
from tests.scm.columns import names, numbers, people

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from mutandis.data.columns import Column


def _doubling(**settings: Any) -> FittedLinear:
    """η = 1 + 2·A."""
    slope = Term.slope("A", 2.0)
    return FittedLinear(predictor=LinearPredictor(intercept=1.0, terms=(slope,)), **settings)


# --- settings -------------------------------------------------------------------------------------

_PAIR = "is not a pair of the lowest and the highest value. Give finite numbers"
_WHOLE = "is not a whole number from -15 to 15."
_ASCENDING = "are not two or more finite numbers in ascending order"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"link": "logit"}, "link='logit' is not known. Use 'identity' or 'log'."),
        *(
            ({"bounds": bounds}, f"bounds={bounds!r} {_PAIR}")
            for bounds in [(0, 1, 2), 3, ("a", None), (0, math.inf), (True, None)]
        ),
        ({"bounds": (4, 0)}, "bounds=(4.0, 0.0) leave no room"),
        ({"bounds": (4, 4)}, "bounds=(4.0, 4.0) leave no room"),
        *(({"decimals": each}, f"decimals={each} {_WHOLE}") for each in [1.5, True, 400]),
        *(
            ({"levels": levels}, _ASCENDING)
            for levels in [{1, 2}, "123", {1: 2}, 3, (1,), (), (1, 1), (2, 1), (1, "b")]
        ),
        ({"levels": (1, math.inf)}, _ASCENDING),
        ({"levels": (False, True)}, _ASCENDING),
        (
            {"levels": (1, 2, 3), "bounds": (1.5, None)},
            "levels from 1.0 to 3.0 go beyond bounds=(1.5, None). Widen the bounds",
        ),
        ({"levels": (1, 2, 3), "bounds": (None, 2.5)}, "go beyond bounds=(None, 2.5)"),
        ({"interactions": "all"}, "interactions='all' is neither True nor False"),
        ({"interactions": True}, "interactions=True needs two parents or more, and the equation"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(EquationError) as caught:
        Linear("A", **settings)
    assert message in str(caught.value)


@pytest.mark.parametrize("levels", [(1, 2, 3), [1.0, 2, 3], range(1, 4), np.array([1, 2, 3])])
def test_settings_may_come_as_from_a_file(levels: Any) -> None:
    pair: Any = [1, None]
    found = Linear("a", levels=levels, bounds=pair)
    assert (found.levels, found.bounds) == ((1.0, 2.0, 3.0), (1.0, None))


# --- links ----------------------------------------------------------------------------------------


def test_links_by_hand() -> None:
    """Identity: x = 10 at A = 3: f = 7, U = 3; at A = 0: 1 + 3 = 4.

    Logarithm: x = e³·5 at A = 1: η = 3, U = log 5; at A = 0: e¹·5, that is x·e⁻².
    """
    for fitted, x, a, residual, moved in [
        (_doubling(), 10.0, 3, 3.0, 4.0),
        (_doubling(link="log"), math.exp(3) * 5, 1, math.log(5), math.e * 5),
    ]:
        noise = fitted.abduct(numbers(x), {"A": numbers(a)})
        assert noise.residual.tolist() == pytest.approx([residual], rel=1e-14)
        predicted = fitted.predict({"A": numbers(0)}, noise).values
        assert predicted.tolist() == pytest.approx([moved], rel=1e-14)
        with pytest.raises(ValueError, match="read-only"):
            noise.factual[0] = 2.0


def test_the_log_link_is_fitted_on_logarithms() -> None:
    """Geometric means 2 (A = 0: 1 and 4) and 12 (A = 1: 9 and 16): a factor of 6."""
    fitted = Linear("A", link="log").fit(numbers(1, 4, 9, 16), {"A": numbers(0, 0, 1, 1)})
    assert fitted.predictor.intercept == pytest.approx(math.log(2))
    (slope,) = fitted.predictor.terms
    assert slope.effects == pytest.approx({(None,): math.log(6)})
    noise = fitted.abduct(numbers(9, 16), {"A": numbers(1, 1)})
    predicted = fitted.predict({"A": numbers(0, 0)}, noise).values
    assert predicted.tolist() == pytest.approx([1.5, 16 / 6])


def test_unchanged_causes_keep_every_bit() -> None:
    """The reason for the form x + (f(pa') - f(pa)): f + (x - f) loses bits."""
    factual, explained = 0.1, 1e9 / 3
    assert explained + (factual - explained) != factual
    causes = {"A": numbers(5)}
    predicted = _doubling().predict(causes, _doubling().abduct(numbers(-0.0), causes))
    assert np.signbit(predicted.values).tolist() == [True]


def test_the_log_link_refuses_values_that_are_not_positive() -> None:
    child, causes = numbers(1, 0, -3), {"A": numbers(0, 1, 1)}
    message = "^the log link needs values above 0, but 2 of 3 rows have a value of 0 or below"
    with pytest.raises(EquationError, match=message):
        Linear("A", link="log").fit(child, causes)
    with pytest.raises(EquationError, match=message):
        _doubling(link="log").abduct(child, causes)


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"link": "log"}, 1000.0),
        ({}, 1e308),
        ({"link": "log"}, 1e308),
        ({"link": "log", "bounds": (0.0, 10.0)}, 1000.0),
    ],
)
def test_predictions_that_overflow_are_counted(settings: dict[str, Any], cause: float) -> None:
    fitted = _doubling(**settings)
    noise = fitted.abduct(numbers(1, 2), {"A": numbers(0, 0)})
    with pytest.raises(EquationError, match="1 of 2 predicted values are not finite numbers"):
        fitted.predict({"A": numbers(cause, 1)}, noise)
    small = _doubling(link="log")
    noise = small.abduct(numbers(1), {"A": numbers(0)})
    assert small.predict({"A": numbers(-1000)}, noise).values.tolist() == [0.0]


# --- decimals, then levels, then bounds -----------------------------------------------------------

_LARGE = float(np.finfo(np.float64).max)


@pytest.mark.parametrize(
    ("values", "settings", "expected", "clipped"),
    [
        (
            [0.125, 0.375, 0.5, 2.5, -7.0, 48.3],
            {"decimals": 2, "bounds": (0.25, 48.0)},
            [0.25, 0.38, 0.5, 2.5, 0.25, 48.0],
            3,
        ),
        ([0.5, 1.5, 2.5], {"decimals": 0}, [0.0, 2.0, 2.0], 0),
        ([1250.0, 1350.0], {"decimals": -2}, [1200.0, 1400.0], 0),
        # a value that rounding brings within bounds is not clipped
        ([4.0004, 4.0], {"decimals": 3, "bounds": (None, 4.0)}, [4.0, 4.0], 0),
        ([-1.0, 0.5, 2.0], {"bounds": (0.0, None)}, [0.0, 0.5, 2.0], 1),
        ([-1.0, 0.5, 2.0], {"bounds": (None, 0.0)}, [-1.0, 0.0, 0.0], 2),
        ([-1.0, 0.5, 2.0], {}, [-1.0, 0.5, 2.0], 0),
        # the nearest level, and the lower of two
        ([1.2, 1.5, 1.6, 3.0, 6.9, 7.0], {"levels": (1, 2, 4, 10)}, [1, 1, 2, 2, 4, 4], 0),
        ([0.9, 1.0, 3.0, 3.1, 50.0], {"levels": (1, 2, 3)}, [1, 1, 3, 3, 3], 3),
        # 0.46 is nearer to 0.9 than to 0; rounded it is 0. 3.04 is beyond the last; rounded not
        ([0.46], {"levels": (0.0, 0.9, 3.0)}, [0.9], 0),
        ([0.46], {"levels": (0.0, 0.9, 3.0), "decimals": 0}, [0.0], 0),
        ([3.04], {"levels": (0.0, 0.9, 3.0), "decimals": 1}, [3.0], 0),
        ([3.04], {"levels": (0.0, 0.9, 3.0)}, [3.0], 1),
        # 9 is beyond the levels and beyond the bounds, and counts once
        ([0.4, 2.2, 9.0], {"levels": (0, 1, 2, 3), "bounds": (1.0, 2.0)}, [1, 2, 2], 2),
        ([0.9 * _LARGE, -_LARGE], {"levels": (-_LARGE, _LARGE)}, [_LARGE, -_LARGE], 0),
    ],
)
def test_predictions_are_finished(
    values: list[float], settings: dict[str, Any], expected: list[float], clipped: int
) -> None:
    given = np.array(values)
    finished = finish(given, **settings)
    assert (finished.values.tolist(), finished.clipped) == (expected, clipped)
    assert given.tolist() == values


_QUARTERS = st.integers(-40, 40).map(lambda number: number / 4)


@given(
    values=st.lists(_QUARTERS, min_size=1, max_size=20),
    levels=st.lists(_QUARTERS, min_size=2, max_size=6, unique=True).map(sorted),
)
def test_levels_against_a_search_through_all_of_them(
    values: list[float], levels: list[float]
) -> None:
    finished = finish(np.array(values), levels=tuple(levels))
    nearest = [
        min(levels, key=lambda level, value=value: (abs(Fraction(value) - Fraction(level)), level))  # type: ignore[misc]
        for value in values
    ]
    assert finished.values.tolist() == nearest
    assert finished.clipped == sum(not levels[0] <= value <= levels[-1] for value in values)


@pytest.mark.parametrize("settings", [{"decimals": 2}, {"levels": (1.0, 2.0)}])
def test_finish_counts_what_is_no_number(settings: dict[str, Any]) -> None:
    with pytest.raises(EquationError, match="2 of 3 predicted values are not finite numbers"):
        finish(np.array([np.nan, np.inf, 1.0]), **settings)


class Told:
    """A regressor that knows its function and remembers what it was shown."""

    def __init__(self, function: Callable[[NDArray[np.float64]], Any]) -> None:
        self.function = function
        self.seen: list[tuple[list[list[float]], list[float]]] = []

    def fit(self, features: NDArray[np.float64], target: NDArray[np.float64]) -> None:
        self.seen.append((features.tolist(), target.tolist()))

    def predict(self, features: NDArray[np.float64]) -> Any:
        return self.function(features)


def _first(features: NDArray[np.float64]) -> NDArray[np.float64]:
    return features[:, 0]


_OUTPUT: dict[str, Any] = {"decimals": 1, "levels": (0.0, 2.5, 5.0), "bounds": (0.0, None)}


@pytest.mark.parametrize(
    "equation",
    [
        Linear("A", **_OUTPUT),
        Stated("2 * A", **_OUTPUT),
        Additive("A", regressor=Told(lambda features: 2.0 * features[:, 0]), **_OUTPUT),
    ],
)
def test_every_additive_family_finishes_its_predictions(
    equation: Linear | Stated | Additive,
) -> None:
    """f = 2·A. At A = 0 the values 2, 3.26 and 9 become 0, 1.26 and 3: by levels 0, 2.5 (of 1.3,
    which is nearer to it than 1.26 is to 0) and 2.5. At A = 3 they are 6, 7.26 and 9: 5, 5, 5.
    """
    fitted = equation.fit(numbers(0, 2, 4, 6), {"A": numbers(0, 1, 2, 3)})
    noise: Any = fitted.abduct(numbers(2, 3.26, 9), {"A": numbers(1, 1, 3)})
    for causes, expected, clipped in [
        ((0, 0, 0), [0.0, 2.5, 2.5], 0),
        ((3, 3, 3), [5.0, 5.0, 5.0], 3),
        ((1, 1, 3), [2.5, 2.5, 5.0], 1),  # rows without a change are finished too
    ]:
        predicted = fitted.predict({"A": numbers(*causes)}, noise)
        assert (predicted.values.tolist(), predicted.clipped) == (expected, clipped)


def test_errors_of_formulas_name_the_attribute_too() -> None:
    said = r"^Equation for 'Salary': a formula that fails$"
    with pytest.raises(FormulaError, match=said), naming("Salary"):
        raise FormulaError("a formula that fails")


# --- regressors -----------------------------------------------------------------------------------


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
    regressor = Told(lambda features: _truth(features[:, 0], features[:, 2]))
    worldview = Worldview({"Score": Additive("Gender", "Age", regressor=regressor)})
    after = worldview.counterfactuals(people(facts), do={"Gender": "m"}).population
    assert after.numbers("Score") == pytest.approx(truth, abs=1e-9)


@pytest.mark.slow
def test_the_error_of_gradient_boosting_shrinks_with_the_number_of_rows() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    regressor = ensemble.GradientBoostingRegressor(
        n_estimators=150, max_depth=4, min_samples_leaf=20, random_state=0
    )
    boosted = Worldview({"Score": Additive("Gender", "Age", regressor=regressor)})
    straight = Worldview({"Score": Linear("Gender", "Age", interactions=True)})

    def error(worldview: Worldview, rows: int, seed: int) -> float:
        facts, truth = _simulated(rows, seed)
        after = worldview.counterfactuals(people(facts), do={"Gender": "m"}).population
        women = (facts["Gender"] == "f").to_numpy()
        return float(np.sqrt(np.mean((after.numbers("Score") - truth)[women] ** 2)))

    few, more, many = (
        np.mean([error(boosted, rows, seed) for seed in range(2)]) for rows in (300, 1500, 7500)
    )
    assert many < more / 1.3 < few / 1.69
    assert many < 0.8  # the noise has a standard deviation of 2
    assert error(straight, 7500, seed=0) > 2


def test_a_chain_of_equations() -> None:
    """B = A² + U, C = B·A + V. Row: A = 3, B = 10 (U = 1), C = 32 (V = 2). At A = 1: B = 2, C = 4.

    Another row: A = 1, B = 0 (U = -1), C = 5 (V = 5) stays as it is.
    """
    worldview = Worldview(
        {
            "B": Additive("A", regressor=Told(lambda features: features[:, 0] ** 2)),
            "C": Additive("B", "A", regressor=Told(lambda features: features.prod(axis=1))),
        }
    )
    facts = people({"A": [3.0, 1.0], "B": [10.0, 0.0], "C": [32.0, 5.0]})
    after = worldview.counterfactuals(facts, do={"A": 1}).population
    assert after.numbers("B").tolist() == [2.0, 0.0]
    assert after.numbers("C").tolist() == [4.0, 5.0]


def test_names_become_one_column_a_level_that_occurs() -> None:
    regressor = Told(_first)
    fitted = Additive("Job", "Age", "Town", regressor=regressor).fit(
        numbers(5, 6, 7),
        {
            "Job": names([2, 0, 2], ["cook", "none", "clerk"]),
            "Age": numbers(30, 40, 50),
            "Town": names([1, 1, 0], [10, 20]),
        },
    )
    assert regressor.seen == []  # a copy was fitted
    assert isinstance(fitted.regressor, Told)
    assert fitted.regressor.seen == [
        ([[0, 1, 30, 0, 1], [1, 0, 40, 0, 1], [0, 1, 50, 1, 0]], [5, 6, 7])
    ]
    # another table has other codes for the same levels
    other: dict[str, Column] = {
        "Job": names([0, 1], ["clerk", "cook"]),
        "Age": numbers(1, 2),
        "Town": names([0, 2], [20, 30, 10]),
    }
    assert _features(fitted.encoding, other).tolist() == [[0, 1, 1, 0, 1], [1, 0, 2, 1, 0]]


def test_a_regressor_that_was_fitted_before_starts_afresh() -> None:
    tree = pytest.importorskip("sklearn.ensemble").GradientBoostingRegressor(
        n_estimators=3, warm_start=True, random_state=0
    )
    tree.fit([[0.0], [1.0]], [1000.0, 2000.0])
    fitted = Additive("A", regressor=tree).fit(numbers(1, 2, 1, 2), {"A": numbers(0, 1, 0, 1)})
    assert fitted.regressor is not tree
    assert fitted.explained({"A": numbers(0)})[0] < 2
    assert tree.predict([[0.0]])[0] > 1000


def test_a_regressor_that_writes_to_what_it_gets_does_no_harm() -> None:
    class Vandal(Told):
        def fit(self, features: Any, target: Any) -> None:
            features[:] = target[:] = 7.0

        def predict(self, features: Any) -> Any:
            features[:] = 1.0
            return features[:, 0]

    facts = people({"A": [0.0, 1.0, 1.0], "X": [1.0, 2.0, 3.0]})
    worldview = Worldview({"X": Additive("A", regressor=Vandal(_first))})
    after = worldview.counterfactuals(facts, do={"A": 0}).population
    assert facts.numbers("A").tolist() == [0.0, 1.0, 1.0]
    assert facts.numbers("X").tolist() == after.numbers("X").tolist() == [1.0, 2.0, 3.0]


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


def test_unchanged_causes_and_any_order_of_rows_give_the_same_bits_from_any_regressor() -> None:
    facts, _ = _simulated(120, seed=2)
    facts["Age"] = facts["Age"].round(-1)  # so that some rows have the same causes
    facts.loc[0, ["Score", "Gender"]] = -0.0, "m"
    results = set()
    for seed in range(6):
        shuffled = people(facts.sample(frac=1, random_state=seed))
        worldview = Worldview({"Score": Additive("Gender", "Age", regressor=Sloppy())})
        after = worldview.counterfactuals(shuffled, do={"Gender": "m"}).population
        men = shuffled.frame()["Gender"].to_numpy() == "m"
        factual, counterfactual = shuffled.numbers("Score"), after.numbers("Score")
        assert counterfactual[men].tobytes() == factual[men].tobytes()
        assert (counterfactual[~men] != factual[~men]).all()
        # equal rows may change places, but then they are equal in all they hold
        found = pd.DataFrame({"x": factual, "y": counterfactual})
        results.add(found.sort_values(["x", "y"]).to_numpy().tobytes())
    assert len(results) == 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda features: features, "predicted ndarray, which does not hold one number for each"),
        (lambda features: features[:1, 0], "predicted ndarray, which does not hold one number"),
        (lambda features: features[:, :1].T, "predicted ndarray, which does not hold one number"),
        (lambda features: [np.nan, np.inf], "predicted 2 of 2 values that are not finite numbers."),
        (lambda features: ["secret", "cell"], "predicted list, which does not hold one number"),
        (lambda features: None, "predicted "),
        (lambda features: dict[str, Any]()["secret"], "raised KeyError in predict(). Try it on"),
    ],
)
def test_bad_predictions(function: Any, message: str) -> None:
    parents = {"A": numbers(0, 1), "B": numbers(1, 0)}
    fitted = Additive("A", "B", regressor=Told(function)).fit(numbers(1, 2), parents)
    with pytest.raises(EquationError) as caught:
        fitted.abduct(numbers(1, 2), parents)
    assert str(caught.value).startswith(f"its regressor (Told) {message}")
    assert "secret" not in str(caught.value)


def test_a_regressor_that_fails_is_named_with_the_type_of_its_error() -> None:
    class Failing(Told):
        def fit(self, features: Any, target: Any) -> None:
            raise ZeroDivisionError("the secret cell 4711")

    class Unique(Told):
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("no")

    facts = people({"A": [0.0, 1.0], "X": [1.0, 2.0]})
    for regressor, message in [
        (Failing(_first), r"\(Failing\) raised ZeroDivisionError in fit\(\). Try it on the par"),
        (Unique(_first), r"\(Unique\) raised TypeError in being copied"),
    ]:
        worldview = Worldview({"X": Additive("A", regressor=regressor)})
        with pytest.raises(EquationError, match=f"Equation for 'X': its regressor {message}") as e:
            worldview.fit(facts)
        assert "secret" not in str(e.value)
    with pytest.raises(EquationError, match="a regressor cannot learn anything from 1 rows"):
        Additive("A", regressor=Told(_first)).fit(numbers(1), {"A": numbers(0)})


@pytest.mark.parametrize(
    ("parents", "regressor", "message"),
    [
        ("A", Told, "the regressor (Told) is not an object with fit() and predict()."),
        ("A", len, "the regressor (builtin_function_or_method) is not an object with fit() and"),
        ("A", None, "the regressor (NoneType) is not an object with fit() and predict()."),
        ("", Told(_first), "has no parents for its regressor to learn from"),
    ],
)
def test_what_is_no_regressor(parents: str, regressor: Any, message: str) -> None:
    with pytest.raises(EquationError) as caught:
        Additive(*parents, regressor=regressor)
    assert message in str(caught.value)
