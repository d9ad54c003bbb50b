"""Asking a decision maker: what is believed of its answers, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.decision.maker import DecisionMaker, decide
from mutandis.decision.model import FunctionMaker
from mutandis.decision.rule import Rule
from mutandis.errors import DecisionError, FormulaError, MissingValuesError, UnknownColumnError
from mutandis.outcomes.binary import BinaryKind
from mutandis.outcomes.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = pd.DataFrame({"salary": [10.0, 20.0, 30.0, 5.0]})


def outcome(negative: object, positive: object) -> Outcome:
    return Outcome(
        column="granted",
        kind=BinaryKind(negative=negative, positive=positive),
        codes=np.array([True]),
    )


YES_NO = outcome("no", "yes")
LOAN = outcome(-1, 1)


def answering(answer: Any) -> FunctionMaker:
    return FunctionMaker(lambda frame: answer)


def refusal(answer: Any, agreed: Outcome = YES_NO) -> str:
    with pytest.raises(DecisionError) as caught:
        decide(answering(answer), TABLE, agreed)
    return str(caught.value)


# --- answers in the outcome's own values ----------------------------------------------------------

LABELS = ["no", "yes", "no", "no"]


@pytest.mark.parametrize(
    "answer",
    [
        LABELS,
        tuple(LABELS),
        np.array(LABELS),
        np.array(LABELS, dtype=object),
        np.array(LABELS, dtype=np.dtypes.StringDType()),
        np.array(LABELS).reshape(-1, 1),
        [[label] for label in LABELS],
        np.ma.array(LABELS, mask=[False] * 4),
        pd.Series(LABELS),
        pd.Series(LABELS, dtype="category"),
        pd.Series(LABELS, index=["a", "b", "c", "d"]),
        pd.DataFrame({"granted": LABELS}),
        pd.Index(LABELS),
        pl.Series(LABELS),
        pl.Series(LABELS, dtype=pl.Categorical),
        pl.DataFrame({"granted": LABELS}),
        pa.array(LABELS),
        pa.chunked_array([LABELS[:1], LABELS[1:]]),
    ],
    ids=lambda answer: f"{type(answer).__module__}.{type(answer).__name__}",
)
def test_labels_in_every_container(answer: Any) -> None:
    refused = decide(answering(answer), TABLE, YES_NO)
    assert refused.dtype == np.bool_
    assert refused.tolist() == [True, False, True, True]


@pytest.mark.parametrize(
    "answer",
    [
        [-1, 1, -1, -1],
        [-1.0, 1.0, -1.0, -1.0],
        np.array([-1, 1, -1, -1], dtype=np.int8),
        np.array([[-1.0], [1.0], [-1.0], [-1.0]]),
        pd.Series([-1, 1, -1, -1], dtype="Int64"),
    ],
)
def test_numbers_that_equal_the_outcomes(answer: Any) -> None:
    assert decide(answering(answer), TABLE, LOAN).tolist() == [True, False, True, True]


def test_everybody_may_get_the_same_answer() -> None:
    assert decide(answering(["yes"] * 4), TABLE, YES_NO).tolist() == [False] * 4
    assert decide(answering(["no"] * 4), TABLE, YES_NO).tolist() == [True] * 4


def test_an_empty_table_gets_no_answers() -> None:
    nobody = decide(answering(np.array([])), TABLE.head(0), YES_NO)
    assert nobody.dtype == np.bool_
    assert nobody.shape == (0,)


def test_the_mask_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        decide(answering(LABELS), TABLE, YES_NO)[0] = False


@given(st.lists(st.sampled_from(["no", "yes"]), min_size=1, max_size=20))
def test_a_mask_and_its_labels_are_inverse(labels: list[str]) -> None:
    table = pd.DataFrame({"salary": np.arange(len(labels))})
    refused = decide(answering(labels), table, YES_NO)
    assert YES_NO.kind.values(refused).tolist() == labels


# --- booleans -------------------------------------------------------------------------------------

TRUTHS = [False, True, True, False]


@pytest.mark.parametrize(
    "answer",
    [
        TRUTHS,
        np.array(TRUTHS),
        np.array(TRUTHS, dtype=object),
        np.array(TRUTHS)[:, None],
        pd.Series(TRUTHS),
        pd.Series(TRUTHS, dtype="boolean"),
        pl.Series(TRUTHS),
        pa.array(TRUTHS),
        pa.chunked_array([TRUTHS]),
    ],
    ids=lambda answer: f"{type(answer).__module__}.{type(answer).__name__}",
)
@pytest.mark.parametrize("agreed", [YES_NO, LOAN, outcome(0, 1), outcome(2, 3)])
def test_true_is_favourable_where_the_outcome_has_other_values(
    answer: Any, agreed: Outcome
) -> None:
    assert decide(answering(answer), TABLE, agreed).tolist() == [True, False, False, True]


def test_a_function_answers_with_the_values_of_a_boolean_outcome() -> None:
    rejected = outcome(negative=True, positive=False)
    granted = outcome(negative=False, positive=True)
    assert decide(answering(TRUTHS), TABLE, rejected).tolist() == [False, True, True, False]
    assert decide(answering(TRUTHS), TABLE, granted).tolist() == [True, False, False, True]
    # a model fitted on booleans may answer 0 and 1
    assert decide(answering([0, 1, 1, 0]), TABLE, rejected).tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    "agreed",
    [
        outcome(negative=True, positive=False),
        outcome(negative=False, positive=True),
        outcome(negative=1, positive=0),
        outcome(negative=1, positive=-1),
        YES_NO,
    ],
)
def test_a_rule_states_what_is_favourable_whatever_the_outcome_is_called(agreed: Outcome) -> None:
    refused = decide(Rule.parse("salary >= 20"), TABLE, agreed)
    assert refused.tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    "agreed", [outcome(negative=1, positive=0), outcome(1, -1), outcome(2, 0), outcome(1.0, 0.0)]
)
def test_booleans_that_could_mean_the_opposite_are_refused(agreed: Outcome) -> None:
    message = refusal(TRUTHS, agreed)
    assert "True could mean either" in message
    assert isinstance(agreed.kind, BinaryKind)
    sides = f"{agreed.kind.negative!r} and {agreed.kind.positive!r}"
    assert f"Return {sides} themselves" in message


def test_ones_and_zeros_are_not_booleans() -> None:
    rejected = outcome(negative=1, positive=0)
    assert decide(answering([0, 1, 1, 0]), TABLE, rejected).tolist() == [False, True, True, False]


# --- answers that are refused ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (None, "NoneType"),
        ("yes", "str"),
        (True, "bool"),
        (1.0, "float"),
        ({"a": 1}, "dict"),
        ({"yes", "no"}, "set"),
        (iter(LABELS), "list_iterator"),
        (np.array("yes"), "ndarray"),
        (np.zeros((4, 2)), r"ndarray of shape (4, 2)"),
        (np.zeros((1, 4)), r"ndarray of shape (1, 4)"),
        (pd.DataFrame({"a": LABELS, "b": LABELS}), r"DataFrame of shape (4, 2)"),
        (pl.LazyFrame({"a": LABELS}), "LazyFrame"),
    ],
)
def test_something_else_than_one_answer_per_row(answer: Any, found: str) -> None:
    assert f"returned {found}, not one answer per row" in refusal(answer)


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_too_few_or_too_many(count: int) -> None:
    message = refusal(["no"] * count)
    assert f"returned {count} answers (list) for 4 rows" in message


@pytest.mark.parametrize(
    "answer",
    [
        ["no", None, "yes", None],
        np.array([-1, np.nan, 1, np.nan]),
        np.array([True, None, False, None], dtype=object),
        np.ma.array(LABELS, mask=[False, True, False, True]),
        pd.Series([True, None, False, None], dtype="boolean"),
        pd.Series([-1, None, 1, None], dtype="Int64"),
        pl.Series(["no", None, "yes", None]),
        pa.array([True, None, False, None]),
    ],
)
def test_missing_answers_are_counted(answer: Any) -> None:
    assert "gave no answer in 2 of 4 rows" in refusal(answer)


def test_other_labels_are_counted_and_shown_only_if_shared() -> None:
    message = refusal(["no", "no", "maybe", "maybe"])
    assert "2 distinct answers" in message
    assert "'no', 'maybe'" in message
    assert "'no' and 'yes', or booleans" in message
    assert "Jane" not in refusal(["no", "no", "yes", "Jane Roe"])


def test_scores_are_not_shown() -> None:
    table = pd.DataFrame({"salary": range(12)})
    scores = np.repeat([0.125, 0.25, 0.375, 0.5, 0.625, 0.75], 2)
    with pytest.raises(DecisionError, match="6 distinct answers of type float64") as caught:
        decide(answering(scores), table, YES_NO)
    assert "0.125" not in str(caught.value)
    assert "threshold" in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        ["1", "-1", "1", "1"],  # text is no number
        [b"no", b"yes", b"no", b"no"],
        [0, 1, 1, 0],
        [True, False, -1, 1],  # neither all booleans nor all outcomes
    ],
)
def test_near_misses(answer: Any) -> None:
    assert "distinct answers" in refusal(answer, LOAN)


def test_answers_that_cannot_be_compared() -> None:
    assert "of type list, which cannot be compared" in refusal([["no"], ["yes", "no"], [], []])


def test_answers_in_another_order_are_refused() -> None:
    labelled = TABLE.set_axis(["a", "b", "c", "d"])
    by_salary = FunctionMaker(lambda frame: frame.sort_values("salary")["salary"] > 15)
    for table in (TABLE, labelled, TABLE.iloc[::-1]):
        with pytest.raises(DecisionError, match="index in another order"):
            decide(by_salary, table, YES_NO)
    kept = FunctionMaker(lambda frame: frame["salary"] > 15)
    for table in (TABLE, labelled):
        assert decide(kept, table, YES_NO).tolist() == [True, False, False, True]
    assert decide(kept, TABLE.iloc[::-1], YES_NO).tolist() == [True, False, False, True]
    # a fresh series with the default index is read by position
    fresh = FunctionMaker(lambda frame: pd.Series((frame["salary"] > 15).to_numpy()))
    assert decide(fresh, labelled, YES_NO).tolist() == [True, False, False, True]
    several = TABLE.set_index(pd.MultiIndex.from_product([[0, 1], [0, 1]]))
    assert decide(fresh, several, YES_NO).tolist() == [True, False, False, True]


# --- decision makers that fail --------------------------------------------------------------------


class Failing:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def decide(self, frame: Any, /) -> Any:
        raise self.error


def test_a_failure_is_chained_but_its_text_is_not_repeated() -> None:
    error = KeyError("Jane Roe, born 1970")
    with pytest.raises(
        DecisionError, match=r"\(Failing\) stopped with KeyError .* 4 rows"
    ) as caught:
        decide(Failing(error), TABLE, YES_NO)
    assert caught.value.__cause__ is error
    assert "Jane" not in str(caught.value)


def test_our_own_errors_pass_through() -> None:
    with pytest.raises(UnknownColumnError, match="Did you mean 'salary'"):
        decide(Rule.parse("Salary > 3"), TABLE, YES_NO)
    with pytest.raises(FormulaError, match="no finite result in 1 of 4 rows"):
        decide(Rule.parse("1 / (salary - 5) > 3"), TABLE, YES_NO)
    with pytest.raises(MissingValuesError, match="'salary' has 1 missing"):
        decide(Rule.parse("salary > 3"), pd.DataFrame({"salary": [1.0, None]}), YES_NO)


def test_an_interruption_is_no_decision() -> None:
    class Interrupted:
        def decide(self, frame: Any, /) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decide(Interrupted(), TABLE, YES_NO)


def test_the_protocol_asks_for_one_method() -> None:
    assert isinstance(Failing(ValueError()), DecisionMaker)
    assert not isinstance(lambda frame: frame, DecisionMaker)


def test_every_frame_type_is_counted(as_frame: Callable[[Any], Any]) -> None:
    frame = as_frame({"salary": [10.0, 20.0, 30.0, 5.0]})
    assert decide(answering(LABELS), frame, YES_NO).tolist() == [True, False, True, True]
    with pytest.raises(DecisionError, match="3 answers"):
        decide(answering(LABELS[1:]), frame, YES_NO)
