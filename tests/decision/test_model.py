"""Functions, fitted models, and whatever else people have as decision makers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mutandis.data.formula import Formula
from mutandis.decision.maker import decide, required_columns
from mutandis.decision.model import FunctionMaker, ModelMaker, as_decision_maker
from mutandis.decision.rule import Rule
from mutandis.errors import (
    DecisionError,
    FormulaError,
    UnknownColumnError,
)
from mutandis.outcomes.binary import BinaryKind
from mutandis.outcomes.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable


TWO = {"salary": [10, 20], "job": ["cook", "clerk"]}


# --- functions and models -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "frame", [pd.DataFrame(TWO), pl.DataFrame(TWO), pa.table(TWO)], ids=["pd", "pl", "pa"]
)
def test_a_function_gets_the_very_frame(frame: Any) -> None:
    seen: list[Any] = []
    FunctionMaker(seen.append).decide(frame)
    assert seen[0] is frame


def _regression(*, scaled: bool = False) -> Any:
    """Give an unfitted scikit-learn model, or skip the test: the library is optional."""
    model = pytest.importorskip("sklearn.linear_model").LogisticRegression()
    if not scaled:
        return model
    scaler = pytest.importorskip("sklearn.preprocessing").StandardScaler()
    return pytest.importorskip("sklearn.pipeline").make_pipeline(scaler, model)


def _credit() -> tuple[pd.DataFrame, Outcome]:
    rng = np.random.default_rng(7)
    table = pd.DataFrame({"salary": rng.normal(30, 5, 60), "balance": rng.normal(10, 3, 60)})
    table["granted"] = np.where(table["salary"] + 5 * table["balance"] > 80, "yes", "no")
    refused = (table["granted"] == "no").to_numpy()
    return table, Outcome(
        column="granted",
        kind=BinaryKind(negative="no", positive="yes"),
        codes=refused,
    )


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_a_fitted_model_gets_its_own_columns_in_its_own_order(
    convert: Callable[[pd.DataFrame], Any],
) -> None:
    table, outcome = _credit()
    features = table[["balance", "salary"]]
    model = _regression(scaled=True).fit(features, table["granted"])
    expected = model.predict(features) == "no"
    assert 0 < expected.sum() < 60
    maker = as_decision_maker(model)
    assert required_columns(maker) == ("balance", "salary")
    assert decide(maker, convert(table), outcome).tolist() == expected.tolist()


def test_a_model_without_its_column_says_which() -> None:
    table, outcome = _credit()
    model = _regression().fit(table[["balance", "salary"]], table["granted"])
    with pytest.raises(UnknownColumnError, match="Unknown column 'balance'"):
        decide(as_decision_maker(model), table.drop(columns="balance"), outcome)


def test_a_model_that_does_not_remember_its_columns_gets_the_table() -> None:
    table, outcome = _credit()
    seen: list[Any] = []

    def predict(frame: Any) -> Any:
        seen.append(frame)
        return frame["granted"]

    maker = as_decision_maker(SimpleNamespace(predict=predict))
    assert required_columns(maker) == ()
    assert decide(maker, table, outcome).tolist() == outcome.codes.tolist()
    assert seen[0] is table


def test_an_unfitted_model_is_a_decision_error() -> None:
    table, outcome = _credit()
    with pytest.raises(DecisionError, match="stopped with NotFittedError"):
        decide(as_decision_maker(_regression()), table, outcome)


# --- whatever people have -------------------------------------------------------------------------


class Clerk:
    """Decides, predicts and can be called: deciding comes first."""

    def decide(self, frame: Any, /) -> Any:
        return ["decided"]

    def predict(self, frame: Any) -> Any:
        return ["predicted"]

    def __call__(self, frame: Any) -> Any:
        return ["called"]


def test_each_form_becomes_its_own_decision_maker() -> None:
    clerk = Clerk()
    assert as_decision_maker("a > 1") == Rule.parse("a > 1")
    assert as_decision_maker(Formula.parse("a > 1")) == Rule.parse("a > 1")
    assert as_decision_maker(clerk) is clerk
    rule = Rule.parse("a > 1")
    assert as_decision_maker(rule) is rule
    assert as_decision_maker(len) == FunctionMaker(len)
    assert as_decision_maker(clerk.predict).decide(None) == ["predicted"]
    both = SimpleNamespace(predict=clerk.predict, __call__=clerk)
    assert as_decision_maker(both) == ModelMaker(both)


def test_a_bad_rule_is_refused_at_once() -> None:
    with pytest.raises(FormulaError, match="calls something"):
        as_decision_maker("__import__('os').system('true')")


@pytest.mark.parametrize("value", [Clerk, int])
def test_a_class_is_not_yet_a_decision_maker(value: type) -> None:
    with pytest.raises(DecisionError, match=f"{value.__name__} is a class"):
        as_decision_maker(value)


@pytest.mark.parametrize("value", [None, 3, ["a > 1"], {"rule": "a > 1"}, b"a > 1"])
def test_other_things_are_refused_with_what_is_allowed(value: Any) -> None:
    with pytest.raises(DecisionError) as caught:
        as_decision_maker(value)
    assert str(caught.value).startswith(f"{type(value).__name__} is not a decision maker")
    for allowed in ("rule", "function", "predict", "decide method"):
        assert allowed in str(caught.value)


def test_required_columns_are_those_that_are_known() -> None:
    assert required_columns(Rule.parse("b > a")) == ("b", "a")
    assert required_columns(FunctionMaker(len)) == ()
    assert required_columns(Clerk()) == ()
