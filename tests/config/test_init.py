"""The draft of an audit file: what columns are taken for, and that it is an audit file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.config.init import draft_config
from mutandis.errors import InputError
from mutandis.store.audit_file import read_arguments
from tests.config.test_yaml import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 60


def table(**columns: Any) -> pd.DataFrame:
    generator = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "approved": generator.integers(0, 2, ROWS),
            "gender": ["woman", "man", "man"] * (ROWS // 3),
            "salary": generator.normal(1000, 100, ROWS),
            **columns,
        }
    )


def text_of(frame: pd.DataFrame, **known: str) -> str:
    return draft_config(frame, data={"source": "t.csv"}, title="t.csv", **known)


def comments(text: str) -> str:
    return " ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))


def drafted(frame: pd.DataFrame, folder: Path, **known: str) -> dict[str, Any]:
    return read_arguments(text_of(frame, **known), folder=folder, name="audit.yaml")[2]


def test_every_column_is_taken_for_something(tmp_path: Path) -> None:
    frame = table(
        applicant_id=[f"A{n}" for n in range(ROWS)],
        job=["cook", "clerk", "nurse"] * (ROWS // 3),
        grade=[1, 2, 3, 4] * (ROWS // 4),
        member=[True, False] * (ROWS // 2),
        debt=np.linspace(-5, 5, ROWS),
        wealth=[*np.arange(ROWS - 1) / 2, 999_999],
        born=pd.date_range("1990-01-01", periods=ROWS),
        bank=["A"] * ROWS,
        nothing=[None] * ROWS,
        remark=[f"called on day {n}" for n in range(ROWS)],
        race=["a", "b"] * (ROWS // 2),
        rejected_by=[0, 1] * (ROWS // 2),
        holes=[1.5, None, 2.5, None] * (ROWS // 4),
        row_count=range(ROWS),
        mixed=[1, "one"] * (ROWS // 2),
    )
    frame["action"] = np.where(frame["approved"] == 1, np.arange(ROWS) % 2, 2)
    frame["y" * 2000] = np.linspace(0, 1, ROWS)
    frame.loc[3, "salary"] = np.nan
    read = drafted(frame, tmp_path)
    assert (read["id"], read["outcome"], read["negative"]) == ("applicant_id", "approved", 0)
    status = read["protected"]
    assert (status.attribute, status.values, status.reference) == ("gender", ("woman",), "man")
    assert read["attributes"] == {
        "salary": "continuous",
        "job": "nominal",
        "grade": {"kind": "ordinal", "levels": (1, 2, 3, 4)},
        "member": "nominal",
        "debt": "continuous",
        "wealth": "continuous",
    }
    assert {name: repr(each) for name, each in read["worldview"].equations.items()} == {
        "salary": "Linear('gender', bounds=(0.0, None))",
        "job": "Categorical('gender')",
        "grade": "Ordinal('gender')",
        "member": "Categorical('gender')",
        "debt": "Linear('gender')",
        "wealth": "Linear('gender', bounds=(0.0, None))",
    }
    assert (read["missing"], read["ks"]) == ("drop", (10,))  # the smaller group has 20 people
    text = text_of(frame)
    for reason, name in {
        "a date: turn it into a number, such as an age": "born",
        "the same value in every row": "bank",
        "no values": "nothing",
        "free text, or too many names to compare people on": "remark",
        "sounds like a protected ground": "race",
        "sounds like a record of the decision": "rejected_by",
        "50% of its values are missing": "holes",
        "another value in every row, like an identifier": "row_count",
        "values of several types": "mixed",
        "each of its values goes with one outcome": "action",
    }.items():
        assert f"# - {reason}: {name!r}" in text
    assert "its name is too long" in text
    assert "TO BE ARGUED" in text


@pytest.mark.parametrize("code", [-9, -999, 99, 9999])
def test_a_number_far_from_all_others_may_be_a_code(code: int) -> None:
    children = np.array([0, 1, 2, 3, 0, 1, 2, 3, code, code, 0, 1] * (ROWS // 12))
    text = text_of(table(children=children))
    assert f"{code} in 10 rows: a code for missing values?" in text
    assert f"`missing_text: ['{code}'], missing: drop`" in comments(text)


@pytest.mark.parametrize(
    "numbers",
    [
        [*range(ROWS - 1), 9999],  # once: one person
        [*range(100 - ROWS, 100)],  # in line with the others
        [0, 999] * (ROWS // 2),  # two values
        [*range(ROWS - 2), 1000, 1000],  # not nines
    ],
)
def test_other_numbers_are_no_codes(numbers: list[int]) -> None:
    assert "code" not in text_of(table(points=numbers))


def test_a_column_that_is_called_so_is_the_id(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).choice(10**6, ROWS, replace=False)
    # another number in every row may be an amount
    assert drafted(table(applicant=numbers), tmp_path)["id"] is None
    named = table(applicant=numbers, case_id=[f"c{n}" for n in range(ROWS)])
    assert drafted(named, tmp_path)["id"] == "case_id"


def test_what_is_told_is_not_guessed(tmp_path: Path) -> None:
    halves = {"race": ["a", "b"] * (ROWS // 2), "good": [0, 1] * (ROWS // 2)}
    frame = table(**halves, code=range(100, 100 + ROWS))
    known = {"outcome": "good", "protected": "race", "id": "code", "reference": "a"}
    read = drafted(frame, tmp_path, **known, negative="1")
    assert (read["outcome"], read["negative"], read["id"]) == ("good", 1, "code")
    assert (read["protected"].attribute, read["protected"].values) == ("race", ("b",))
    assert list(read["attributes"]) == ["salary"]
    with pytest.raises(InputError, match="'2' is not a value of the column 'good', which has"):
        text_of(frame, **known, negative="2")
    plain = pd.DataFrame({"a": np.linspace(0, 1, 50)})
    with pytest.raises(
        InputError, match=r"not clear which column that is\. Name it with --outcome"
    ):
        text_of(plain, negative="x")


@pytest.mark.parametrize(
    ("name", "values", "negative"),
    [
        ("approved", [0, 1], 0),
        ("LoanApproval", [-1, 1], -1),
        ("rejected", [0, 1], 1),
        ("decision", ["granted", "denied"], "denied"),
        ("decision", ["no", "yes"], "no"),
        ("hired", [False, True], False),
    ],
)
def test_the_unfavourable_value(
    tmp_path: Path, name: str, values: list[Any], negative: Any
) -> None:
    frame = table(**{name: values * (ROWS // 2)})
    read = drafted(frame, tmp_path, outcome=name)
    assert (read["outcome"], read["negative"]) == (name, negative)


def test_what_cannot_be_guessed_is_to_be_filled_in(tmp_path: Path) -> None:
    text = text_of(pd.DataFrame({"a": np.linspace(0, 1, 50), "b": [0, 1] * 25}))
    assert "outcome: {column: FILL IN, negative: FILL IN}" in text
    assert "protected: {attribute: FILL IN, value: FILL IN, reference: FILL IN}" in text
    assert "# Other columns with two values: 'b'." in text
    text = text_of(table(approved=["yes", "later", "no"] * (ROWS // 3)), outcome="approved")
    assert "negative: ['later', …]; or" in comments(text)
    assert "best_to_worst: [the best, …, the worst]" in comments(text)
    text = text_of(table(rate=np.linspace(0, 9, ROWS)), outcome="rate")
    assert "outcome: {column: rate, worse: higher}" in text
    several = table(race=["a", "b", "b", "c"] * (ROWS // 4)).drop(columns="gender")
    protected = drafted(several, tmp_path)["protected"]
    assert (protected.attribute, protected.values, protected.reference) == ("race", (), "b")


NAMES = [each for each in HOSTILE if len(each) < 1000]  # a longer one cannot be a key


def test_hostile_names_come_back_as_they_were(tmp_path: Path) -> None:
    for start in range(0, len(NAMES), 15):
        some = NAMES[start : start + 15]
        columns = {name: np.linspace(0, 1 + n, ROWS) for n, name in enumerate(some)}
        read = drafted(table(**columns), tmp_path)
        assert list(read["attributes"]) == ["salary", *some]
        assert list(read["worldview"].equations) == ["salary", *some]
    other = "=cmd|' /C calc'!A0"
    for name in NAMES:
        frame = table()
        frame[name] = frame["gender"].map({"woman": other, "man": name or "none"})
        status = drafted(frame, tmp_path, protected=name)["protected"]
        assert status.attribute == name
        assert {*status.values, status.reference} == {other, name or "none"}
        read = drafted(frame, tmp_path, outcome=name, protected="gender")
        assert (read["outcome"], read["negative"] in {other, name or "none"}) == (name, True)


def test_of_many_columns_those_that_go_with_the_decision_are_kept(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    noise = {f"noise{n}": generator.normal(size=ROWS) for n in range(300)}
    frame = pd.concat([table(), pd.DataFrame(noise)], axis=1)
    frame["signal"] = frame["approved"] * 2 + generator.normal(size=ROWS)
    frame["kind"] = np.where(frame["approved"] + generator.normal(size=ROWS) / 2 > 0.5, "x", "y")
    attributes = drafted(frame, tmp_path)["attributes"]
    assert len(attributes) == 20
    assert {"signal", "kind"} <= set(attributes)
    assert len(text_of(frame)) < 20_000
