"""Answers of decision makers: what is accepted, what is refused, and agreement with the record."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data.columns import Numbers
from mutandis.decision.maker import DecisionMaker, compare_with_record, decide
from mutandis.decision.model import FunctionMaker
from mutandis.decision.rule import Rule
from mutandis.errors import DecisionError, FormulaError
from mutandis.outcomes.binary import BinaryKind
from mutandis.outcomes.outcome import Outcome
from mutandis.outcomes.score import Score

TABLE = pd.DataFrame({"salary": [10.0, 20.0, 30.0, 5.0]})


def outcome(negative: object, positive: object, codes: Any = (True,)) -> Outcome:
    kind = BinaryKind(negative=negative, positive=positive)
    return Outcome(column="granted", kind=kind, codes=np.array(codes))


YES_NO = outcome("no", "yes")
LOAN = outcome(-1, 1)
REJECTED = outcome(negative=True, positive=False)


def answering(answer: Any) -> FunctionMaker:
    return FunctionMaker(lambda frame: answer)


def answered(answer: Any, agreed: Outcome = YES_NO) -> Any:
    refused = decide(answering(answer), TABLE, agreed)
    assert refused.dtype == np.bool_
    return refused.tolist()


def refusal(answer: Any, agreed: Outcome = YES_NO) -> str:
    with pytest.raises(DecisionError) as caught:
        decide(answering(answer), TABLE, agreed)
    return str(caught.value)


def _container(answer: Any) -> str:
    return f"{type(answer).__module__}.{type(answer).__name__}"


LABELS = ["no", "yes", "no", "no"]
TRUTHS = [False, True, True, False]


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
    ids=_container,
)
def test_labels_in_every_container(answer: Any) -> None:
    assert answered(answer) == [True, False, True, True]


@pytest.mark.parametrize(
    ("answer", "agreed", "refused"),
    [
        ([-1, 1, -1, -1], LOAN, [True, False, True, True]),
        (np.array([[-1.0], [1.0], [-1.0], [-1.0]]), LOAN, [True, False, True, True]),
        (pd.Series([-1, 1, -1, -1], dtype="Int64"), LOAN, [True, False, True, True]),
        (["yes"] * 4, YES_NO, [False] * 4),
        (["no"] * 4, YES_NO, [True] * 4),
        # a function answers with the values of a boolean outcome, a model perhaps with 0 and 1
        (TRUTHS, REJECTED, [False, True, True, False]),
        (TRUTHS, outcome(negative=False, positive=True), [True, False, False, True]),
        ([0, 1, 1, 0], REJECTED, [False, True, True, False]),
        ([0, 1, 1, 0], outcome(1, 0), [False, True, True, False]),
    ],
)
def test_answers_that_equal_the_outcomes(answer: Any, agreed: Outcome, refused: list[bool]) -> None:
    assert answered(answer, agreed) == refused


@pytest.mark.parametrize(
    "answer",
    [
        TRUTHS,
        np.array(TRUTHS),
        np.array(TRUTHS, dtype=object),
        np.array(TRUTHS)[:, None],
        pd.Series(TRUTHS, dtype="boolean"),
        pl.Series(TRUTHS),
        pa.chunked_array([TRUTHS]),
    ],
    ids=_container,
)
@pytest.mark.parametrize("agreed", [YES_NO, LOAN, outcome(0, 1), outcome(2, 3)])
def test_true_is_favourable_where_the_outcome_has_other_values(
    answer: Any, agreed: Outcome
) -> None:
    assert answered(answer, agreed) == [True, False, False, True]


@pytest.mark.parametrize("agreed", [REJECTED, outcome(1, 0), outcome(1, -1), LOAN, YES_NO])
def test_a_rule_states_what_is_favourable_whatever_the_outcome_is_called(agreed: Outcome) -> None:
    refused = decide(Rule.parse("salary >= 20"), TABLE, agreed)
    assert refused.tolist() == [True, False, False, True]


@pytest.mark.parametrize("agreed", [outcome(1, 0), outcome(1, -1), outcome(2, 0), outcome(1.0, 0)])
def test_booleans_that_could_mean_the_opposite_are_refused(agreed: Outcome) -> None:
    message = refusal(TRUTHS, agreed)
    assert isinstance(agreed.kind, BinaryKind)
    assert "True could mean either" in message
    assert f"Return {agreed.kind.negative!r} and {agreed.kind.positive!r} themselves" in message


def test_an_empty_table_gets_no_answers_and_nobody_writes_to_a_mask() -> None:
    nobody = decide(answering(np.array([])), TABLE.head(0), YES_NO)
    assert nobody.dtype == np.bool_
    assert nobody.shape == (0,)
    with pytest.raises(ValueError, match="read-only"):
        decide(answering(LABELS), TABLE, YES_NO)[0] = False


@given(st.lists(st.sampled_from(["no", "yes"]), min_size=1, max_size=20))
def test_a_mask_and_its_labels_are_inverse(labels: list[str]) -> None:
    table = pd.DataFrame({"salary": np.arange(len(labels))})
    refused = decide(answering(labels), table, YES_NO)
    assert YES_NO.kind.values(refused).tolist() == labels


# --- answers that are refused ---------------------------------------------------------------------

_ONE = "{}, not one answer per row"
_GAP = "gave no answer in 2 of 4 rows"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, _ONE.format("NoneType")),
        ("yes", _ONE.format("str")),
        (True, _ONE.format("bool")),
        ({"yes", "no"}, _ONE.format("set")),
        (iter(LABELS), _ONE.format("list_iterator")),
        (np.array("yes"), _ONE.format("ndarray")),
        (np.zeros((4, 2)), _ONE.format("ndarray of shape (4, 2)")),
        (np.zeros((1, 4)), _ONE.format("ndarray of shape (1, 4)")),
        (pd.DataFrame({"a": LABELS, "b": LABELS}), _ONE.format("DataFrame of shape (4, 2)")),
        (pl.LazyFrame({"a": LABELS}), _ONE.format("LazyFrame")),
        ([], "returned 0 answers (list) for 4 rows"),
        (["no"] * 5, "returned 5 answers (list) for 4 rows"),
        (["no", None, "yes", None], _GAP),
        (np.array([-1, np.nan, 1, np.nan]), _GAP),
        (np.array([True, None, False, None], dtype=object), _GAP),
        (np.ma.array(LABELS, mask=[False, True, False, True]), _GAP),
        (pd.Series([True, None, False, None], dtype="boolean"), _GAP),
        (pl.Series(["no", None, "yes", None]), _GAP),
        (pa.array([True, None, False, None]), _GAP),
        ([["no"], ["yes", "no"], [], []], "of type list, which cannot be compared"),
        (["no", "no", "maybe", "maybe"], "2 distinct answers of type object ('no', 'maybe')"),
        (["no", "no", "maybe", "maybe"], "'no' and 'yes', or booleans"),
    ],
)
def test_answers_that_are_refused(answer: Any, said: str) -> None:
    assert said in refusal(answer)


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


def test_neither_rare_labels_nor_scores_are_shown() -> None:
    assert "Jane" not in refusal(["no", "no", "yes", "Jane Roe"])
    table = pd.DataFrame({"salary": range(12)})
    scores = np.repeat([0.125, 0.25, 0.375, 0.5, 0.625, 0.75], 2)
    with pytest.raises(DecisionError, match="6 distinct answers of type float64") as caught:
        decide(answering(scores), table, YES_NO)
    assert "0.125" not in str(caught.value)
    assert "threshold" in str(caught.value)


def test_answers_in_another_order_are_refused() -> None:
    labelled = TABLE.set_axis(["a", "b", "c", "d"])
    by_salary = FunctionMaker(lambda frame: frame.sort_values("salary")["salary"] > 15)
    kept = FunctionMaker(lambda frame: frame["salary"] > 15)
    for table in (TABLE, labelled, TABLE.iloc[::-1]):
        with pytest.raises(DecisionError, match="index in another order"):
            decide(by_salary, table, YES_NO)
        assert decide(kept, table, YES_NO).tolist() == [True, False, False, True]
    # a fresh series with the default index is read by position
    fresh = FunctionMaker(lambda frame: pd.Series((frame["salary"] > 15).to_numpy()))
    several = TABLE.set_index(pd.MultiIndex.from_product([[0, 1], [0, 1]]))
    for table in (labelled, several):
        assert decide(fresh, table, YES_NO).tolist() == [True, False, False, True]


class Failing:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def decide(self, frame: Any, /) -> Any:
        raise self.error


def test_a_failure_is_chained_but_its_text_is_not_repeated() -> None:
    error = KeyError("Jane Roe, born 1970")
    said = r"\(Failing\) stopped with KeyError .* 4 rows"
    with pytest.raises(DecisionError, match=said) as caught:
        decide(Failing(error), TABLE, YES_NO)
    assert caught.value.__cause__ is error
    assert "Jane" not in str(caught.value)
    with pytest.raises(KeyboardInterrupt):
        decide(Failing(KeyboardInterrupt()), TABLE, YES_NO)
    assert isinstance(Failing(error), DecisionMaker)
    assert not isinstance(lambda frame: frame, DecisionMaker)


def test_our_own_errors_pass_through() -> None:
    with pytest.raises(FormulaError, match="no finite result in 1 of 4 rows"):
        decide(Rule.parse("1 / (salary - 5) > 3"), TABLE, YES_NO)


# --- the record -----------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_the_counts_are_those_of_a_table(pairs: list[tuple[bool, bool]]) -> None:
    recorded, decided = (np.array(each) for each in zip(*pairs, strict=True))
    found = compare_with_record(outcome("no", "yes", recorded), decided)
    assert found.counts_of_sides() == (
        (pairs.count((True, True)), pairs.count((True, False))),
        (pairs.count((False, True)), pairs.count((False, False))),
    )
    assert found.rows == len(pairs)
    assert found.disagreement == float((recorded != decided).mean())


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3))
def test_scores_leave_a_part_of_the_record_open(pairs: list[tuple[int, int]]) -> None:
    pairs = [(0, 1), (3, 2), *pairs]
    recorded, decided = (np.array(each, dtype=np.float64) for each in zip(*pairs, strict=True))
    score = Score("rate", worse="lower").read(Numbers(recorded), finest=True)
    codes, _ = score.kind.code(Numbers(decided))
    found = compare_with_record(score, codes)
    mean = Fraction(sum(y for y, _ in pairs), len(pairs))
    spread = sum(((y - mean) ** 2 for y, _ in pairs), Fraction(0))
    assert found.disagreement == float(sum(Fraction(b - y) ** 2 for y, b in pairs) / spread)
    assert found.better == sum(b > y for y, b in pairs)
    assert found.worse == sum(b < y for y, b in pairs)
    order = np.random.default_rng(0).permutation(len(pairs))
    assert found == compare_with_record(score.take(order), codes[order])
