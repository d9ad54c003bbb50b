"""Scores with a threshold, for every kind of decision maker in memory; answers in words."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mutandis.decision import with_threshold
from mutandis.decision.maker import decide, describe_maker, required_columns
from mutandis.decision.model import FunctionMaker, ModelMaker, as_decision_maker
from mutandis.decision.rule import Rule
from mutandis.decision.threshold import RelabelledMaker, Thresholded
from mutandis.errors import DecisionError, FormulaError
from mutandis.outcomes.binary import BinaryKind
from mutandis.outcomes.ordered import OrderedKind
from mutandis.outcomes.outcome import Outcome

TABLE = pd.DataFrame({"salary": [10.0, 20.0, 30.0, 5.0], "job": ["a", "b", "a", "b"]})
YES_NO = Outcome(
    column="granted",
    kind=BinaryKind(negative="no", positive="yes"),
    codes=np.array([True]),
)
# the one outcome for which booleans of a function are refused: a threshold says what is favourable
ONE_IS_BAD = Outcome(
    column="rejected",
    kind=BinaryKind(negative=1, positive=0),
    codes=np.array([True]),
)


def scoring(scores: Any) -> FunctionMaker:
    return FunctionMaker(lambda frame: scores)


@pytest.mark.parametrize(
    "scores",
    [
        [0.2, 0.5, 0.9, 0.1],
        np.array([0.2, 0.5, 0.9, 0.1]),
        np.array([0.2, 0.5, 0.9, 0.1], dtype=np.float32)[:, None],
        pd.Series([0.2, 0.5, 0.9, 0.1]),
        pl.Series([0.2, 0.5, 0.9, 0.1]),
        [Decimal("0.2"), 0.5, 1, 0],
    ],
)
@pytest.mark.parametrize("outcome", [YES_NO, ONE_IS_BAD])
def test_the_threshold_itself_counts_as_above(scores: Any, outcome: Outcome) -> None:
    above = decide(with_threshold(scoring(scores), 0.5), TABLE, outcome)
    assert above.tolist() == [True, False, False, True]
    below = decide(with_threshold(scoring(scores), 0.5, favourable="below"), TABLE, outcome)
    assert below.tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (
            [0.2, None, float("nan"), 0.1],
            "gave no score (a missing value, NaN, or an infinite one)",
        ),
        ([0.2, None, float("nan"), 0.1], "in 2 of 4 rows"),
        (np.array([-np.inf, 0.5, np.inf, 0.1]), "in 2 of 4 rows"),
        (np.array([0.2, np.nan, 0.9, 0.1]), "in 1 of 4 rows"),
        (pd.Series([0.5, None, 1, 1], dtype="Float64"), "in 1 of 4 rows"),
        (["0.2", "0.5", "0.9", "0.1"], "of type str"),
        ([True, False, True, True], "of type bool"),
        (np.array([True, False, True, True]), "of type bool"),
        ([0.2, 0.5], "2 answers (list) for 4 rows"),
        (np.zeros((4, 2)), "shape (4, 2)"),
        (np.array([1j] * 4), "of type complex"),
        (TABLE["salary"].sort_values(), "another order"),
    ],
)
def test_scores_that_are_refused(scores: Any, said: str) -> None:
    with pytest.raises(DecisionError) as caught:
        decide(with_threshold(scoring(scores), 0.5), TABLE, YES_NO)
    assert said in str(caught.value)


def test_a_formula_for_the_score() -> None:
    maker = with_threshold("salary * 2", 40)
    assert required_columns(maker) == ("salary",)
    assert decide(maker, TABLE, YES_NO).tolist() == [True, False, False, True]
    assert describe_maker(maker) == {
        "kind": "rule",
        "rule": "salary * 2",
        "threshold": 40.0,
        "favourable": "above",
    }
    with pytest.raises(FormulaError, match="decides already"):
        with_threshold("salary > 2", 40)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"threshold": float("nan")}, "threshold=nan is not a number"),
        ({"threshold": True}, "threshold=True is not a number"),
        ({"threshold": "0.5"}, "threshold='0.5' is not a number"),
        ({"threshold": 0.5, "favourable": "high"}, "favourable='high' is unknown"),
        ({"threshold": 0.5, "score_of": "yes"}, "not a fitted model"),
    ],
)
def test_thresholds_that_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DecisionError, match=said):
        with_threshold(scoring([1, 2, 3, 4]), **options)


def test_a_maker_of_somebody_else() -> None:
    class Scorer:
        def decide(self, frame: Any, /) -> Any:
            return frame["salary"]

    maker = with_threshold(Scorer(), 20)
    assert decide(maker, TABLE, YES_NO).tolist() == [True, False, False, True]
    assert required_columns(maker) == ()
    assert describe_maker(maker)["type"] == "Scorer"
    with pytest.raises(DecisionError, match=r"\(Scorer\) stopped with KeyError"):
        decide(maker, TABLE[["job"]], YES_NO)


# --- scikit-learn ---------------------------------------------------------------------------------


def _fitted(name: str, *, matrix: bool = False, **options: Any) -> tuple[Any, pd.DataFrame]:
    pytest.importorskip("sklearn")
    from sklearn import linear_model, svm, tree

    rng = np.random.default_rng(3)
    table = pd.DataFrame({"salary": rng.normal(30, 5, 80), "balance": rng.normal(10, 3, 80)})
    granted = np.where(table["salary"] + table["balance"] + rng.normal(0, 3, 80) > 40, "yes", "no")
    homes = (linear_model, svm, tree)
    made = next(getattr(home, name) for home in homes if hasattr(home, name))(**options)
    features = table[["balance", "salary"]]
    target = table["salary"] / 10 if "Regressor" in name else granted
    return made.fit(features.to_numpy() if matrix else features, target), table


def test_the_probability_of_a_class_that_is_named() -> None:
    model, table = _fitted("LogisticRegression")
    approvals = model.predict_proba(table[["balance", "salary"]])[:, 1]
    expected = (approvals < 0.7).tolist()
    assert 0 < sum(expected) < 80
    maker = with_threshold(model, 0.7, score_of="yes")
    assert decide(maker, table, YES_NO).tolist() == expected
    # the same in terms of the other class; no probability lies on the threshold
    other = with_threshold(model, 0.3, score_of="no", favourable="below")
    assert decide(other, table, YES_NO).tolist() == expected
    described = describe_maker(maker)
    assert described["score_of"] == "yes"
    assert described["score_from"] == "predict_proba"
    assert described["columns"] == ["balance", "salary"]


def test_a_decision_function_speaks_for_the_second_class() -> None:
    model, table = _fitted("LinearSVC")
    expected = (model.decision_function(table[["balance", "salary"]]) < 0.25).tolist()
    assert 0 < sum(expected) < 80
    assert decide(with_threshold(model, 0.25, score_of="yes"), table, YES_NO).tolist() == expected
    against = with_threshold(model, -0.25, score_of="no", favourable="below")
    # -score < -0.25 grants what score > 0.25 grants
    assert decide(against, table, YES_NO).tolist() == expected
    logistic, _ = _fitted("LogisticRegression")
    chosen = with_threshold(logistic, 0, score_of="yes", score_from="decision_function")
    predicted = (logistic.predict(table[["balance", "salary"]]) == "no").tolist()
    assert decide(chosen, table, YES_NO).tolist() == predicted


def test_a_regressor_predicts_its_score() -> None:
    model, table = _fitted("DecisionTreeRegressor", max_depth=3)
    expected = (model.predict(table[["balance", "salary"]]) < 3).tolist()
    assert 0 < sum(expected) < 80
    assert decide(with_threshold(model, 3), table, YES_NO).tolist() == expected
    with pytest.raises(DecisionError, match="not the score of a class"):
        with_threshold(model, 3, score_of="yes")


def test_a_class_must_be_named_and_known() -> None:
    model, _ = _fitted("LogisticRegression")
    with pytest.raises(DecisionError, match="classes 'no', 'yes', and no class is named"):
        with_threshold(model, 0.5)
    with pytest.raises(DecisionError, match="'Yes' is not one of them"):
        with_threshold(model, 0.5, score_of="Yes")
    with pytest.raises(DecisionError, match="predicts classes, not scores"):
        with_threshold(model, 0.5, score_from="predict")
    with pytest.raises(DecisionError, match="score_from='proba' is unknown"):
        with_threshold(model, 0.5, score_from="proba")  # type: ignore[call-overload]
    machine, _ = _fitted("LinearSVC")
    with pytest.raises(DecisionError, match="no method 'predict_proba'"):
        with_threshold(machine, 0.5, score_of="yes", score_from="predict_proba")


def test_a_model_that_was_fitted_on_a_matrix_is_told_its_columns() -> None:
    model, table = _fitted("LogisticRegression", matrix=True)
    maker = ModelMaker(model, ("balance", "salary"))
    expected = model.predict(table[["balance", "salary"]].to_numpy()) == "no"
    assert decide(maker, table, YES_NO).tolist() == expected.tolist()
    with pytest.raises(DecisionError, match="fitted on 2 columns, but 1 are named"):
        ModelMaker(model, ("balance",))
    named, _ = _fitted("LogisticRegression")
    with pytest.raises(DecisionError, match="Leave columns out, or name the same ones"):
        ModelMaker(named, ("balance", "wage"))


# --- answers in words -----------------------------------------------------------------------------


def test_answers_in_words() -> None:
    words = FunctionMaker(lambda frame: ["NO", "OK", "OK", "NO"])
    maker = RelabelledMaker(maker=words, favourable="OK", unfavourable="NO")
    for outcome in (YES_NO, ONE_IS_BAD):
        assert decide(maker, TABLE, outcome).tolist() == [True, False, False, True]
    assert describe_maker(maker)["answers"] == {"favourable": "OK", "unfavourable": "NO"}
    with pytest.raises(DecisionError, match="both 'OK'"):
        RelabelledMaker(maker=words, favourable="OK", unfavourable="OK")


def test_true_is_not_one() -> None:
    truths = FunctionMaker(lambda frame: np.array([True, False, True, False]))
    numbers = RelabelledMaker(maker=truths, favourable=1, unfavourable=0)
    with pytest.raises(DecisionError, match="Declare what it answers"):
        decide(numbers, TABLE, YES_NO)
    maker = RelabelledMaker(maker=truths, favourable=False, unfavourable=True)
    assert decide(maker, TABLE, YES_NO).tolist() == [True, False, True, False]
    assert required_columns(
        RelabelledMaker(maker=Rule.parse("a > 1"), favourable=1, unfavourable=0)
    )


def test_wrapped_makers_are_makers() -> None:
    maker = Thresholded(as_decision_maker(len), 1)
    assert as_decision_maker(maker) is maker


@pytest.mark.parametrize(
    ("thresholds", "favourable", "expected"),
    [
        ([25.0, 10.0], "above", [1, 1, 0, 2]),
        ([10.0, 25.0], "below", [1, 1, 2, 0]),
        ((20, 10, 5), "above", [1, 0, 0, 2]),
    ],
)
def test_several_thresholds_make_levels(
    thresholds: Any, favourable: Any, expected: list[int]
) -> None:
    """A score that equals a threshold counts as above: 10 of 25 and 10, 20 of 20."""
    maker = with_threshold("salary", thresholds, favourable=favourable)
    levels = [f"level {place}" for place in range(len(thresholds) + 1)]
    order = Outcome(
        column="grade",
        codes=np.zeros(4, dtype=np.int64),
        kind=OrderedKind(levels=tuple(levels)),
    )
    assert decide(maker, TABLE, order).tolist() == expected
    assert maker.levels == len(levels)
    assert required_columns(maker) == ("salary",)
    assert describe_maker(maker)["threshold"] == [float(each) for each in thresholds]


@pytest.mark.parametrize(
    ("thresholds", "favourable", "said"),
    [
        ([10, 25], "above", "each is lower than the one before"),
        ([25, 10], "below", "each is higher than the one before"),
        ([10, 10], "above", "not in order"),
        ([10, "5"], "above", "is not a number"),
        ([10, 5], "left", "is unknown"),
    ],
)
def test_thresholds_are_numbers_in_order(thresholds: Any, favourable: Any, said: str) -> None:
    with pytest.raises(DecisionError, match=said):
        with_threshold("salary", thresholds, favourable=favourable)
