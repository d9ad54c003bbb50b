"""The outcome: two values, one of them negative, kept as the table has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.columns import Categories
from mutandis.data.population import Population
from mutandis.errors import MissingValuesError, OutcomeError
from mutandis.outcomes.binary import Binary, BinaryKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mutandis.outcomes.outcome import Outcome

    AsFrame = Callable[[Mapping[str, Sequence[Any]]], Any]

SECRET = "SECRET-NAME"


def sides(outcome: Outcome) -> BinaryKind:
    assert isinstance(outcome.kind, BinaryKind)
    return outcome.kind


def read(frame: Any, *, negative: object, **options: Any) -> Outcome:
    nominal = [Attribute(name="granted", kind=AttributeKind.NOMINAL)]
    people = Population.from_frame(frame, attributes=nominal, **options)
    return Binary("granted", negative=negative).read(people.categories("granted"))


@pytest.mark.parametrize(
    ("values", "negative", "positive"),
    [
        ([-1, 1, 1, -1], -1, 1),
        ([1, 0, 0, 1], 1, 0),
        ([-1.0, 1.0, 1.0, -1.0], -1.0, 1.0),
        (["no", "yes", "yes", "no"], "no", "yes"),
        ([True, False, False, True], True, False),
    ],
)
def test_both_values_are_found_in_every_frame(
    as_frame: AsFrame, values: list[Any], negative: Any, positive: Any
) -> None:
    outcome = read(as_frame({"granted": values}), negative=negative)
    assert outcome.column == "granted"
    assert (sides(outcome).negative, sides(outcome).positive) == (negative, positive)
    assert type(sides(outcome).negative) is type(negative)
    assert outcome.codes.tolist() == [True, False, False, True]
    labels = outcome.kind.values(np.array([False, True]))
    assert labels.tolist() == [positive, negative]
    assert [type(label) for label in labels.tolist()] == [type(positive), type(negative)]


@pytest.mark.parametrize(("values", "negative"), [([-1, 1], -1.0), ([-1.0, 1.0], -1)])
def test_the_negative_value_is_the_tables_own(values: list[Any], negative: Any) -> None:
    outcome = read({"granted": values}, negative=negative)
    assert sides(outcome).negative == -1
    assert type(sides(outcome).negative) is type(values[0])
    assert outcome.codes.tolist() == [True, False]


def test_labels_belong_to_any_mask() -> None:
    outcome = read({"granted": [0, 1]}, negative=0)
    assert outcome.kind.values(np.array([], dtype=np.bool_)).tolist() == []
    # b() may answer with 0 and 1: they are truth values here, never positions
    assert outcome.kind.values(np.array([1, 0, 2])).tolist() == [0, 1, 0]


def test_values_of_dropped_rows_do_not_count() -> None:
    frame = {"granted": ["no", "yes", "later"], "salary": [1.0, 2.0, None]}
    outcome = read(frame, negative="yes", columns=["salary"], missing="drop")
    assert (sides(outcome).negative, sides(outcome).positive) == ("yes", "no")
    assert outcome.codes.tolist() == [False, True]
    with pytest.raises(OutcomeError, match="negative='later' is not a value"):
        read(frame, negative="later", columns=["salary"], missing="drop")


def test_a_missing_outcome_is_never_read_as_positive() -> None:
    with pytest.raises(MissingValuesError, match="'granted' has 1 missing values"):
        Binary("granted", negative="no").read(Categories(np.array([0, 1, -1]), ("no", "yes")))


@pytest.mark.parametrize(
    ("values", "negative", "said"),
    [
        (["no", "yes", "later"] * 2, "no", "3 distinct values ('later', 'no', 'yes'), not two"),
        (["no", "no"], "no", "1 distinct value ('no'), not two"),
        (list(range(10_000, 14_993)), -1, "4993 distinct values (too many to show)"),
        (["no", "no", "yes", "yes", SECRET], "no", "'yes' and 1 more that a single row has"),
        ([-1, 1, -1, 1], 0, "negative=0 is not a value of outcome 'granted' (-1, 1)"),
        ([-1, 1, -1, 1], "-1", "is not a value of outcome 'granted' (-1, 1)"),
        ([-1, 1, -1, 1], float("nan"), "is not a value of outcome 'granted' (-1, 1)"),
    ],
)
def test_what_is_no_outcome_is_refused(values: list[Any], negative: Any, said: str) -> None:
    with pytest.raises(OutcomeError) as caught:
        read({"granted": values}, negative=negative)
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)
    assert "10000" not in str(caught.value)
