from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.store.audit_file import read_arguments
from mutandis.store.initial_config import (
    association,
    draft_config,
    gives_away,
    guess_columns,
    profile_columns,
    unfavourable,
)

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


def guessed(frame: pd.DataFrame, **known: str) -> dict[str, str]:
    return {each.name: each.role for each in guess_columns(profile_columns(frame), **known)}


def drafted(frame: pd.DataFrame, folder: Path, **known: str) -> dict[str, Any]:
    text = draft_config(frame, data={"source": "t.csv"}, title="t.csv", **known)
    return read_arguments(text, folder=folder, name="audit.yaml")[2]


def test_each_column_has_a_part() -> None:
    frame = table(
        applicant_id=[f"A{n}" for n in range(ROWS)],
        job=["cook", "clerk", "nurse"] * (ROWS // 3),
        grade=[1, 2, 3, 4] * (ROWS // 4),
        member=[True, False] * (ROWS // 2),
        born=pd.date_range("1990-01-01", periods=ROWS),
        bank=["A"] * ROWS,
        nothing=[None] * ROWS,
        remark=[f"called on day {n}" for n in range(ROWS)],
        race=["a", "b"] * (ROWS // 2),
        rejected_by=[0, 1] * (ROWS // 2),
        holes=[1.5, None] * (ROWS // 2),
        row_count=range(ROWS),
        mixed=[1, "one"] * (ROWS // 2),
    )
    assert guessed(frame) == {
        "approved": "outcome",
        "gender": "protected",
        "salary": "continuous",
        "applicant_id": "id",
        "job": "nominal",
        "grade": "ordinal",
        "member": "nominal",
        "born": "left out",
        "bank": "left out",
        "nothing": "left out",
        "remark": "left out",
        "race": "left out",
        "rejected_by": "left out",
        "holes": "left out",
        "row_count": "left out",
        "mixed": "left out",
    }


def test_a_column_that_numbers_rows_is_the_id(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).choice(10**6, ROWS, replace=False)
    frame = table(applicant=numbers)
    assert guessed(frame)["applicant"] == "id"
    text = draft_config(frame, data={"source": "t.csv"}, title="t.csv")
    lines = text.splitlines()
    place = lines.index("data: {source: t.csv, id: applicant}")
    said = " ".join(line.removeprefix("# ") for line in lines[place - 2 : place])
    assert "'applicant' has another whole number in every row" in said
    assert "strike `id`" in said
    assert "identifier" not in text
    assert drafted(frame, tmp_path)["id"] == "applicant"
    # a name tells more than values, and of two that may be meant neither is
    named = table(applicant=numbers, case_id=[f"c{n}" for n in range(ROWS)])
    assert guessed(named)["case_id"] == "id"
    assert guessed(named)["applicant"] == "left out"
    assert "another whole number" not in draft_config(named, data={"source": "t"}, title="t")
    several = guessed(table(applicant=numbers, branch=numbers[::-1]))
    assert several["applicant"] == several["branch"] == "left out"
    # and what the caller names is taken, without a word
    text = draft_config(frame, data={"source": "t.csv"}, title="t.csv", id="applicant")
    assert "another whole number" not in text


def test_what_is_known_is_not_guessed() -> None:
    frame = table(
        race=["a", "b"] * (ROWS // 2), good=[0, 1] * (ROWS // 2), code=range(100, 100 + ROWS)
    )
    roles = guessed(frame, outcome="good", protected="race", id="code")
    assert (roles["good"], roles["race"], roles["code"]) == ("outcome", "protected", "id")
    assert roles["approved"] == roles["gender"] == "left out"


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
def test_the_unfavourable_value(name: str, values: list[Any], negative: Any) -> None:
    [profile] = profile_columns(pd.DataFrame({name: values * 5}))
    assert unfavourable(profile) == negative


def test_several_values_may_have_an_order() -> None:
    frame = table(approved=["yes", "later", "no"] * (ROWS // 3))
    text = draft_config(frame, data={"source": "t.csv"}, title="t.csv", outcome="approved")
    said = " ".join(line.removeprefix("# ") for line in text.splitlines())
    assert "List the unfavourable ones: negative: ['later', …]" in said
    assert "best_to_worst: [the best, …, the worst]" in said


def test_a_draft_is_an_audit_file(tmp_path: Path) -> None:
    frame = table(
        grade=[1, 2, 3, 4] * (ROWS // 4),
        job=["cook", "clerk", None] * (ROWS // 3),
        debt=np.linspace(-5, 5, ROWS),
    )
    frame.loc[3, "salary"] = np.nan
    read = drafted(frame, tmp_path)
    settings = read
    assert (settings["outcome"], settings["negative"]) == ("approved", 0)
    protected = settings["protected"]
    assert (protected.attribute, protected.values, protected.reference) == (
        "gender",
        ("woman",),
        "man",
    )
    assert settings["attributes"] == {
        "salary": "continuous",
        "grade": {"kind": "ordinal", "levels": (1, 2, 3, 4)},
        "debt": "continuous",
    }
    assert settings["missing"] == "drop"
    equations = settings["worldview"].equations
    assert {name: repr(each) for name, each in equations.items()} == {
        "salary": "Linear('gender', bounds=(0.0, None))",
        "grade": "Ordinal('gender')",
        "debt": "Linear('gender')",
    }
    assert settings["ks"] == (10,)  # the smaller group has 20 people


def test_comments_say_why(tmp_path: Path) -> None:
    frame = table(bank=["A"] * ROWS, action=[0] * ROWS)
    frame["action"] = np.where(frame["approved"] == 1, np.arange(ROWS) % 2, 2)
    frame["wealth"] = [*np.arange(ROWS - 1) / 2, 999_999]
    text = draft_config(frame, data={"source": "t.csv"}, title="t.csv")
    assert "# - the same value in every row: 'bank'" in text
    assert "# - each of its values goes with one outcome: 'action'" in text
    assert "TO BE ARGUED" in text
    assert "wealth: continuous  # its largest value may stand for 'unknown'" in text
    assert "999" not in text
    assert max(map(len, text.splitlines())) <= 110


def test_what_cannot_be_guessed_is_to_be_filled_in(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.linspace(0, 1, 50), "b": [0, 1] * 25})
    text = draft_config(frame, data={"source": "t.csv"}, title="t.csv")
    assert "outcome: {column: FILL IN, negative: FILL IN}" in text
    assert "protected: {attribute: FILL IN, value: FILL IN, reference: FILL IN}" in text
    assert "# Other columns with two values: 'b'." in text


def test_a_protected_attribute_with_several_values(tmp_path: Path) -> None:
    frame = table(race=["a", "b", "b", "c"] * (ROWS // 4)).drop(columns="gender")
    protected = drafted(frame, tmp_path)["protected"]
    assert (protected.attribute, protected.values, protected.reference) == ("race", (), "b")


HOSTILE = [
    "no",
    "null",
    "1e5",
    "2020",
    "a: b",
    "# comment",
    "- item",
    "{x}",
    "[x]",
    "*alias",
    "&anchor",
    "!tag",
    "%x",
    "@x",
    "`x`",
    "=cmd()",
    "'",
    '"',
    "a'b\"c",
    "line\nbreak",
    "tab\there",
    " space ",
    "",
    "~",
    "<script>alert(1)</script>",
    "Größe (€)",
    "面接",
    "\u2028",
    "a, b",
    "edges",
    "equations",
    "?",
    ":",
    "x" * 300,
    "-5",
    "$protected?",
]


def test_hostile_names_come_back_as_they_were(tmp_path: Path) -> None:
    columns = {name: np.linspace(0, 1 + n, ROWS) for n, name in enumerate(HOSTILE)}
    for start in range(0, len(HOSTILE), 15):
        some = HOSTILE[start : start + 15]
        frame = table(**{name: columns[name] for name in some})
        settings = drafted(frame, tmp_path)
        assert list(settings["attributes"]) == ["salary", *some]
        assert list(settings["worldview"].equations) == ["salary", *some]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_and_values_in_every_role(tmp_path: Path, name: str) -> None:
    other = "=cmd|' /C calc'!A0"
    frame = table()
    frame[name] = frame["gender"].map({"woman": other, "man": name or "none"})
    read = drafted(frame, tmp_path, protected=name)
    assert read["protected"].attribute == name
    assert {*read["protected"].values, read["protected"].reference} == {other, name or "none"}
    read = drafted(frame, tmp_path, outcome=name, protected="gender")
    assert (read["outcome"], read["negative"] in {other, name or "none"}) == (name, True)


def test_a_name_that_no_yaml_key_can_hold_is_left_out(tmp_path: Path) -> None:
    frame = table(**{"y" * 2000: np.linspace(0, 1, ROWS)})
    assert list(drafted(frame, tmp_path)["attributes"]) == ["salary"]


def test_of_many_columns_those_that_go_with_the_decision_are_kept(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    frame = table(**{f"noise{n}": generator.normal(size=ROWS) for n in range(40)})
    frame["signal"] = frame["approved"] * 2 + generator.normal(size=ROWS)
    attributes = drafted(frame, tmp_path)["attributes"]
    assert len(attributes) == 20
    assert "signal" in attributes


@pytest.mark.slow
def test_thousands_of_columns(tmp_path: Path) -> None:
    wide = pd.DataFrame(
        np.random.default_rng(1).normal(size=(20, 2_000)),
        columns=[f"column_{n}" for n in range(2_000)],
    )
    frame = pd.concat([table().head(20), wide], axis=1)
    text = draft_config(frame, data={"source": "t.csv"}, title="t.csv")
    assert len(text) < 20_000
    assert len(read_arguments(text, folder=tmp_path, name="a")[2]["attributes"]) == 20


def test_association_against_numbers_by_hand() -> None:
    frame = pd.DataFrame({"y": [0, 0, 0, 1, 1, 1], "x": ["a", "a", "b", "b", "b", "b"]})
    [_, profile] = profile_columns(frame)
    # counts (2, 0), (1, 3); expected (1, 1), (2, 2): χ² = 1 + 1 + 0.5 + 0.5 = 3, V = √(3/6)
    assert association(frame, profile, "y") == pytest.approx(0.5**0.5)
    assert not gives_away(frame, profile, "y")
