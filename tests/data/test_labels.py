"""Labels: words for columns, values and outcomes, and what is refused as one."""

from __future__ import annotations

import numpy as np
import pytest

from mutandis import Labels
from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import PlanError

COLUMNS: dict[str, Column] = {
    "Gender": Categories(np.array([0, 1], dtype=np.int32), (0, 1)),
    "Job": Categories(np.array([0, 1], dtype=np.int32), ("cook", "clerk")),
    "Salary": Numbers(np.array([1.0, 2.0])),
}


def test_without_labels_names_and_values_stay_as_they_are() -> None:
    labels = Labels()
    assert not labels
    assert (labels.negative, labels.decided(False)) == ("refused", "granted")
    assert labels.column("Gender") == "Gender"
    assert labels.quoted("Gender") == "'Gender'"
    assert labels.level("Gender", 1) == "1"
    assert labels.level("Salary", 1.25, "{:.1f}".format) == "1.2"
    assert labels.equals("Gender", 1) == "Gender = 1"
    assert labels.people("Gender", 1) is None
    assert labels.as_dict() == {}


@pytest.mark.parametrize("value", [1, 1.0, np.int64(1), np.float64(1), "1"])
def test_a_value_is_found_by_what_it_says_and_not_by_its_type(value: object) -> None:
    for key in (1, 1.0, "1", np.int64(1)):
        labels = Labels(levels={"Gender": {key: "woman"}}, statuses={"Gender": {key: "women"}})
        assert labels.level("Gender", value) == "woman"
        assert labels.people("Gender", value) == "women"


def test_labels_are_frozen_and_compared_by_what_they_say() -> None:
    given = {"Salary": "pay"}
    labels = Labels(columns=given)
    given["Salary"] = "changed later"
    assert labels.column("Salary") == "pay"
    with pytest.raises(TypeError):
        labels.columns["Salary"] = "x"  # type: ignore[index]
    assert labels == Labels(columns={"Salary": "pay"})
    assert Labels(**labels.as_dict()) == labels


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"columns": {"Salary": ""}}, "no text"),
        ({"columns": {"Salary": 3}}, "no text"),
        ({"columns": {"Salary": "pay\nrise"}}, "printable"),
        ({"columns": {"Salary": "\x1b[2Jpay"}}, "printable"),
        ({"columns": {"Salary": "pay\u202e"}}, "printable"),
        ({"columns": {"Salary": "x" * 81}}, "has 81 characters"),
        ({"columns": {"Salary": "pay", "Job": "pay"}}, "could not tell them apart"),
        ({"levels": {"Gender": {0: "one", 1: "one"}}}, "could not tell them apart"),
        ({"outcome": {"negativ": "refused"}}, "Did you mean 'negative'"),
        ({"outcome": {"negative": "granted"}}, "same label"),
        ({"levels": {"Gender": "woman"}}, "not a mapping"),
        ({"columns": ["pay"]}, "not a mapping"),
    ],
)
def test_what_cannot_be_a_label_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        Labels(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"columns": {"Salry": "pay"}}, "no column of this audit. Did you mean 'Salary'"),
        ({"levels": {"job": {"cook": "chef"}}}, "no column of this audit"),
        ({"statuses": {"Job": {"cook": "cooks"}}}, "no protected attribute of this audit"),
        ({"levels": {"Job": {"chef": "cook"}}}, "which never has it"),
        ({"levels": {"Salary": {1: "one"}}}, "holds numbers"),
        ({"columns": {"Salary": "Job"}}, "the name of another column"),
        ({"levels": {"Job": {"cook": "clerk"}}}, "another of its values"),
    ],
)
def test_labels_of_what_an_audit_does_not_have_are_refused(
    given: dict[str, object], said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        Labels(**given).check(COLUMNS, ["Gender"])  # type: ignore[arg-type]


def test_restricted_labels_tell_of_no_other_value() -> None:
    labels = Labels(
        columns={"Job": "occupation"},
        levels={"Job": {"cook": "a cook", "clerk": "a clerk"}},
        statuses={"Gender": {0: "men", 1: "women"}},
    )
    kept = labels.restricted({"Job": ["cook"], "Gender": [1]})
    assert kept.as_dict() == {
        "columns": {"Job": "occupation"},
        "levels": {"Job": {"cook": "a cook"}},
        "statuses": {"Gender": {"1": "women"}},
    }
