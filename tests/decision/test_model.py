"""Rules, functions and fitted models as decision makers; thresholds on scores; answers in words."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mutandis.data.formula import Formula
from mutandis.decision import with_threshold
from mutandis.decision.maker import decide, describe_maker, required_columns
from mutandis.decision.model import FunctionMaker, ModelMaker, RelabelledMaker, as_decision_maker
from mutandis.decision.rule import Rule
from mutandis.errors import (
    DecisionError,
    FormulaError,
    KindError,
    MissingValuesError,
    UnknownColumnError,
)
from mutandis.outcomes.binary import BinaryKind
from mutandis.outcomes.ordered import OrderedKind
from mutandis.outcomes.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = pd.DataFrame({"salary": [10.0, 20.0, 30.0, 5.0], "job": ["a", "b", "a", "b"]})
YES_NO = Outcome(
    column="granted", kind=BinaryKind(negative="no", positive="yes"), codes=np.array([True])
)
# the one outcome for which booleans of a function are refused: a threshold says what is favourable
ONE_IS_BAD = Outcome(
    column="rejected", kind=BinaryKind(negative=1, positive=0), codes=np.array([True])
)

# --- rules ----------------------------------------------------------------------------------------

PEOPLE: dict[str, list[Any]] = {
    "Annual Salary": [10, 20, 30, 40],
    "balance": [5.0, -1.0, 0.5, 2.0],
    "job": ["cook", "clerk", "clerk", "judge"],
    "owner": [True, False, True, False],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`Annual Salary` + 5 * balance > 30", [True, False, True, True]),
        ("job == 'clerk'", [False, True, True, False]),
        ("job != 'clerk' and not owner", [False, False, False, True]),
        ("owner", [True, False, True, False]),
        ("owner + (balance > 0) == 2", [True, False, True, False]),
        ("where(job == 'judge', balance > 100, `Annual Salary` >= 20)", [False, True, True, False]),
        ("1 > 2", [False, False, False, False]),
    ],
)
def test_a_rule_on_every_frame_type(
    as_frame: Callable[[Any], Any], text: str, expected: list[bool]
) -> None:
    decided = Rule.parse(text).decide(as_frame(PEOPLE))
    assert decided.dtype == np.bool_
    assert decided.tolist() == expected
    with pytest.raises(UnknownColumnError, match=r"'ballance'\. Did you mean 'balance'"):
        Rule.parse("ballance > 1").decide(as_frame(PEOPLE))


@pytest.mark.parametrize(
    ("rule", "series"),
    [
        ("a == 'cook'", pd.Series(["cook", "clerk"], dtype="category")),
        ("a == 'cook'", pd.Series(["cook", "clerk"], dtype=object)),
        ("a == 'cook'", pl.Series(["cook", "clerk"], dtype=pl.Categorical)),
        ("a == 'cook'", pl.Series(["cook", "clerk"], dtype=pl.Enum(["cook", "clerk"]))),
        ("a == 'cook'", pa.array(["cook", "clerk"]).dictionary_encode()),
        ("a == 1", pd.Series([1, 0], dtype="Int64")),
        ("a == 1", pd.Series([1, 0], dtype="int8[pyarrow]")),
        ("a == 1", pd.Series([1, 0], dtype="category")),
        ("a == 1", pd.Series([1, 0], dtype=object)),
        ("a == 1", pd.Series([True, False], dtype="boolean")),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
def test_names_and_numbers_of_every_type(rule: str, series: Any) -> None:
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    frame = make[type(series).__module__.split(".")[0]]({"a": series})
    assert Rule.parse(rule).decide(frame).tolist() == [True, False]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.Series([1, None], dtype="Int64")}),
        pd.DataFrame({"a": ["x", None]}),
        pl.DataFrame({"a": [1, None]}),
        pa.table({"a": [True, None]}),
    ],
)
def test_a_rule_needs_every_value(frame: Any) -> None:
    with pytest.raises(MissingValuesError, match="Column 'a' has 1 missing"):
        Rule.parse("a == 1").decide(frame)


def test_rules_are_conditions_on_the_columns_that_they_name() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [None, None], "c": [object(), object()]})
    assert Rule.parse("a > 1").decide(frame).tolist() == [False, True]
    rule = Rule.parse("salary + 5 * balance > 15")
    assert rule.names == ("salary", "balance")
    columns = {"salary": np.array([10.0, 20.0]), "balance": np.array([2.0, -1.0])}
    assert rule.decide_columns(columns, rows=2).tolist() == [True, False]
    assert len({Rule.parse("a > 1"), Rule(Formula.parse("a > 1")), Rule.parse("a > 2")}) == 2
    with pytest.raises(FormulaError, match=r"'salary \+ 1' gives numbers"):
        Rule.parse("salary + 1")
    with pytest.raises(FormulaError, match="'balance' gives numbers"):
        Rule.parse("balance").decide(PEOPLE)  # known only from the table
    with pytest.raises(KindError, match=r"2\*\*53"):
        Rule.parse("account == 9007199254740993").decide({"account": [2**53 + 1, 2**53]})


# --- functions, models, and whatever people have --------------------------------------------------


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_function_gets_the_very_frame(make: Callable[[Any], Any]) -> None:
    frame = make({"salary": [10, 20]})
    assert FunctionMaker(lambda seen: seen).decide(frame) is frame


class Clerk:
    """Decides, predicts and can be called: deciding comes first."""

    def decide(self, frame: Any, /) -> Any:
        return ["decided"]

    def predict(self, frame: Any) -> Any:
        return ["predicted"]

    def __call__(self, frame: Any) -> Any:
        return ["called"]


def test_each_form_becomes_its_own_decision_maker() -> None:
    clerk, rule = Clerk(), Rule.parse("a > 1")
    both = SimpleNamespace(predict=clerk.predict, __call__=clerk)
    forms: list[tuple[Any, Any]] = [
        ("a > 1", rule),
        (Formula.parse("a > 1"), rule),
        (clerk, clerk),
        (rule, rule),
        (len, FunctionMaker(len)),
        (both, ModelMaker(both)),
    ]
    for given, made in forms:
        assert as_decision_maker(given) == made
    assert as_decision_maker(clerk.predict).decide(None) == ["predicted"]
    assert required_columns(Rule.parse("b > a")) == ("b", "a")
    assert required_columns(FunctionMaker(len)) == required_columns(clerk) == ()


@pytest.mark.parametrize("value", [None, 3, ["a > 1"], {"rule": "a > 1"}, b"a > 1", Clerk, int])
def test_other_things_are_refused_with_what_is_allowed(value: Any) -> None:
    with pytest.raises(DecisionError) as caught:
        as_decision_maker(value)
    if isinstance(value, type):
        assert f"{value.__name__} is a class" in str(caught.value)
        return
    assert str(caught.value).startswith(f"{type(value).__name__} is not a decision maker")
    assert all(word in str(caught.value) for word in ("rule", "function", "predict", "decide"))


def test_a_bad_rule_is_refused_at_once() -> None:
    with pytest.raises(FormulaError, match="calls something"):
        as_decision_maker("__import__('os').system('true')")


FEATURES = ["balance", "salary"]


def _fitted(name: str, *, matrix: bool = False, **options: Any) -> tuple[Any, pd.DataFrame]:
    """Fit a scikit-learn model, or skip the test: the library is optional."""
    pytest.importorskip("sklearn")
    from sklearn import linear_model, svm, tree

    rng = np.random.default_rng(3)
    table = pd.DataFrame({"salary": rng.normal(30, 5, 80), "balance": rng.normal(10, 3, 80)})
    granted = np.where(table["salary"] + table["balance"] + rng.normal(0, 3, 80) > 40, "yes", "no")
    homes = (linear_model, svm, tree)
    made = next(getattr(home, name) for home in homes if hasattr(home, name))(**options)
    features = table[FEATURES]
    target = table["salary"] / 10 if "Regressor" in name else granted
    return made.fit(features.to_numpy() if matrix else features, target), table


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_a_fitted_model_gets_its_own_columns_in_its_own_order(
    convert: Callable[[pd.DataFrame], Any],
) -> None:
    model, table = _fitted("LogisticRegression")
    expected = model.predict(table[FEATURES]) == "no"
    assert 0 < expected.sum() < 80
    maker = as_decision_maker(model)
    assert required_columns(maker) == ("balance", "salary")
    assert decide(maker, convert(table), YES_NO).tolist() == expected.tolist()
    with pytest.raises(UnknownColumnError, match="Unknown column 'balance'"):
        decide(maker, convert(table[["salary"]]), YES_NO)


def test_models_without_columns() -> None:
    model, table = _fitted("LogisticRegression", matrix=True)
    expected = (model.predict(table[FEATURES].to_numpy()) == "no").tolist()
    assert decide(ModelMaker(model, ("balance", "salary")), table, YES_NO).tolist() == expected
    with pytest.raises(DecisionError, match="fitted on 2 columns, but 1 are named"):
        ModelMaker(model, ("balance",))
    named, _ = _fitted("LogisticRegression")
    with pytest.raises(DecisionError, match="Leave columns out, or name the same ones"):
        ModelMaker(named, ("balance", "wage"))
    with pytest.raises(DecisionError, match="stopped with NotFittedError"):
        decide(as_decision_maker(type(named)()), table, YES_NO)
    # one that does not remember its columns gets the table itself
    maker = as_decision_maker(SimpleNamespace(predict=lambda frame: frame))
    assert required_columns(maker) == ()
    assert maker.decide(table) is table


# --- thresholds -----------------------------------------------------------------------------------


def scoring(scores: Any) -> FunctionMaker:
    return FunctionMaker(lambda frame: scores)


@pytest.mark.parametrize(
    "scores",
    [
        [0.2, 0.5, 0.9, 0.1],
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
        ([0.2, None, float("nan"), 0.1], "(a missing value, NaN, or an infinite one) in 2 of 4"),
        (np.array([-np.inf, 0.5, np.inf, 0.1]), "in 2 of 4 rows"),
        ([0.2, 10**400, 0.9, 0.1], "in 1 of 4 rows"),
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


@pytest.mark.parametrize(
    ("threshold", "options", "said"),
    [
        (float("nan"), {}, "threshold=nan is not a number"),
        (True, {}, "threshold=True is not a number"),
        ("0.5", {}, "threshold='0.5' is not a number"),
        (0.5, {"favourable": "high"}, "favourable='high' is unknown"),
        (0.5, {"score_of": "yes"}, "not a fitted model"),
        ([10, 25], {}, "each is lower than the one before"),
        ([25, 10], {"favourable": "below"}, "each is higher than the one before"),
        ([10, 10], {}, "not in order"),
        ([10, "5"], {}, "is not a number"),
        ([10, 5], {"favourable": "left"}, "is unknown"),
    ],
)
def test_thresholds_that_are_refused(threshold: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(DecisionError, match=said):
        with_threshold(scoring([1, 2, 3, 4]), threshold, **options)


def test_scores_of_a_formula_and_of_a_maker_of_somebody_else() -> None:
    class Scorer:
        def decide(self, frame: Any, /) -> Any:
            return frame["salary"]

    formula, foreign = with_threshold("salary * 2", 40), with_threshold(Scorer(), 20)
    for maker in (formula, foreign):
        assert decide(maker, TABLE, YES_NO).tolist() == [True, False, False, True]
        assert as_decision_maker(maker) is maker
    assert (required_columns(formula), required_columns(foreign)) == (("salary",), ())
    rule = {"kind": "rule", "rule": "salary * 2", "threshold": 40.0, "favourable": "above"}
    assert describe_maker(formula) == rule
    assert describe_maker(foreign)["type"] == "Scorer"
    with pytest.raises(DecisionError, match=r"\(Scorer\) stopped with KeyError"):
        decide(foreign, TABLE[["job"]], YES_NO)
    with pytest.raises(FormulaError, match="decides already"):
        with_threshold("salary > 2", 40)


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
    maker: Any = with_threshold("salary", thresholds, favourable=favourable)
    levels = tuple(f"level {place}" for place in range(len(thresholds) + 1))
    codes = np.zeros(4, dtype=np.int64)
    order = Outcome(column="grade", codes=codes, kind=OrderedKind(levels=levels))
    assert decide(maker, TABLE, order).tolist() == expected
    assert maker.levels == len(levels)
    assert required_columns(maker) == ("salary",)
    assert describe_maker(maker)["threshold"] == [float(each) for each in thresholds]


def test_scores_of_the_class_that_is_named() -> None:
    logistic, table = _fitted("LogisticRegression")
    machine, _ = _fitted("LinearSVC")
    features = table[FEATURES]
    approvals = logistic.predict_proba(features)[:, 1]
    # the same in terms of the other class; no score lies on a threshold
    cases: list[tuple[Any, float, dict[str, Any], Any]] = [
        (logistic, 0.7, {"score_of": "yes"}, approvals < 0.7),
        (logistic, 0.3, {"score_of": "no", "favourable": "below"}, approvals < 0.7),
        (machine, 0.25, {"score_of": "yes"}, machine.decision_function(features) < 0.25),
        (
            machine,
            -0.25,
            {"score_of": "no", "favourable": "below"},
            machine.decision_function(features) < 0.25,
        ),
    ]
    for model, threshold, options, expected in cases:
        assert 0 < expected.sum() < 80
        maker = with_threshold(model, threshold, **options)
        assert decide(maker, table, YES_NO).tolist() == expected.tolist()
    described = describe_maker(with_threshold(logistic, 0.7, score_of="yes"))
    assert described["columns"] == FEATURES
    assert (described["score_of"], described["score_from"]) == ("yes", "predict_proba")
    refusals: list[tuple[Any, dict[str, Any], str]] = [
        (logistic, {}, "classes 'no', 'yes', and no class is named"),
        (logistic, {"score_of": "Yes"}, "'Yes' is not one of them"),
    ]
    for model, options, said in refusals:
        with pytest.raises(DecisionError, match=said):
            with_threshold(model, 0.5, **options)


def test_a_regressor_predicts_its_score() -> None:
    model, table = _fitted("DecisionTreeRegressor", max_depth=3)
    expected = (model.predict(table[FEATURES]) < 3).tolist()
    assert 0 < sum(expected) < 80
    assert decide(with_threshold(model, 3), table, YES_NO).tolist() == expected
    with pytest.raises(DecisionError, match="not the score of a class"):
        with_threshold(model, 3, score_of="yes")


def test_answers_in_words() -> None:
    words = FunctionMaker(lambda frame: ["NO", "OK", "OK", "NO"])
    maker = RelabelledMaker(maker=words, favourable="OK", unfavourable="NO")
    for outcome in (YES_NO, ONE_IS_BAD):
        assert decide(maker, TABLE, outcome).tolist() == [True, False, False, True]
    assert describe_maker(maker)["answers"] == {"favourable": "OK", "unfavourable": "NO"}
    with pytest.raises(DecisionError, match="both 'OK'"):
        RelabelledMaker(maker=words, favourable="OK", unfavourable="OK")
    # True is not 1
    truths = FunctionMaker(lambda frame: np.array([True, False, True, False]))
    with pytest.raises(DecisionError, match="Declare what it answers"):
        decide(RelabelledMaker(maker=truths, favourable=1, unfavourable=0), TABLE, YES_NO)
    turned = RelabelledMaker(maker=truths, favourable=False, unfavourable=True)
    assert decide(turned, TABLE, YES_NO).tolist() == [True, False, True, False]
