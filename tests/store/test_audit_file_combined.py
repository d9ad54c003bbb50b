"""Several protections, and the other direction, in an audit file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.errors import PlanError, SettingsError
from mutandis.store.audit_file import read_arguments

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
data: {source: people.csv}
outcome: {column: granted, negative: 0}
protected:
  - {attribute: race, value: black, reference: white}
  - {attribute: sex, value: f, reference: m}
combine: intersectional
attributes: {score: continuous}
worldview:
  score: {equation: linear, parents: [race, sex]}
decision: {rule: "score >= 4"}
ks: [2]
evidence: {direction: positive}
similarity: {test_space: complement}
"""
BOTH = [
    mm.Protection("race", value="black", reference="white"),
    mm.Protection("sex", value="f", reference="m"),
]


def write(folder: Path, text: str) -> Path:
    path = folder / "audit.yaml"
    path.write_text(text, encoding="utf-8")
    table = pd.DataFrame(
        {
            "race": ["black", "white"] * 12,
            "sex": ["f", "f", "m", "m"] * 6,
            "score": [number % 7 for number in range(24)],
        }
    )
    table.assign(granted=(table["score"] >= 4).astype(int)).to_csv(
        folder / "people.csv", index=False
    )
    return path


def test_a_file_with_several_protections(tmp_path: Path) -> None:
    _, _, settings = read_arguments(TEXT, folder=tmp_path, name="audit.yaml")
    assert settings["protected"] == BOTH
    assert settings["combine"] == "intersectional"
    assert settings["evidence"].direction == "positive"
    assert settings["similarity"].test_space == "complement"
    found = mm.read_plan(write(tmp_path, TEXT)).run()
    assert set(found.counts()["complainants"]) == {6}
    assert found.plan.settings.evidence.direction == "positive"


def test_the_command_checks_it(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["check", str(write(tmp_path, TEXT)), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["complainants"] == {"black × f": 6}


def test_a_list_without_a_word_on_how(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no word on how they are combined"):
        mm.read_plan(write(tmp_path, TEXT.replace("combine: intersectional\n", "")))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("intersectional", "both", r"line 6.*multiple"),
        ("direction: positive", "direction: up", r"line 12.*negative"),
        ("{attribute: sex, value: f, reference: m}", "sex", r"line 5"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        mm.read_plan(write(tmp_path, TEXT.replace(old, new)))
