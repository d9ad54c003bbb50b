from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

runner = CliRunner()

LOAN = """\
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
worldview:
  AnnualSalary:   {equation: linear, parents: [Gender]}
  AccountBalance: {equation: linear, parents: [Gender]}
decision: {rule: "AnnualSalary + 5 * AccountBalance > 225000"}
ks: [15, 30]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    mm.datasets.loan(n=1000, seed=1).to_csv(tmp_path / "loan.csv", index=False)
    path = tmp_path / "audit.yaml"
    path.write_text(LOAN, encoding="utf-8")
    return path


def test_check_says_what_the_audit_will_do_and_what_is_wrong_with_the_worldview(
    config: Path,
) -> None:
    result = runner.invoke(app, ["check", str(config)])
    assert result.exit_code == 0, result.output
    rows = len(mm.datasets.loan(n=1000, seed=1))
    assert f"{rows:,} decisions" in result.output
    assert "st, cst_without, cst_with, cf, cst_matched at k = 15, 30" in result.output
    # the balance follows from the salary, which this worldview leaves out
    assert "AccountBalance" in result.output
    assert "AnnualSalary" in result.output
    assert "independent" in result.output


def test_check_as_json(config: Path) -> None:
    result = runner.invoke(app, ["check", str(config), "--json"])
    found = json.loads(result.output)
    assert found["ks"] == [15, 30]
    assert found["complainants"]["1"] > 0
    assert found["worldview"]["rows"] == found["rows"]


def test_check_fits_a_terminal_and_puts_good_news_apart(config: Path) -> None:
    lines = runner.invoke(app, ["check", str(config)]).output.splitlines()
    # the next command is not broken, so that it can be copied
    assert lines.pop() == f"Run the audit: mutandis audit {config}"
    assert max(map(len, lines)) <= 80
    headings = [line for before, line in pairwise(lines) if not before]
    assert headings[:3] == [
        "What the table says about the worldview",
        # the balance follows from the salary, but both are shifted by gender as they are
        "Problems that move no counterfactual",
        "What agrees with the worldview",
    ]
    assert headings[-2] == "What no table can show"
    text = " ".join(line.strip() for line in lines)
    assert "in either direction, no counterfactual moves." in text
    assert "A hidden cause of both Gender and AnnualSalary or AccountBalance" in text


def test_check_prints_no_control_characters_of_a_column(config: Path) -> None:
    table = mm.datasets.loan(n=300, seed=1).rename(columns={"AccountBalance": "Bal\x1b[31mance"})
    table.to_csv(config.parent / "loan.csv", index=False)
    name = '"Bal\\x1b[31mance"'
    text = LOAN.replace("AccountBalance", name).replace(f"5 * {name}", "0")
    config.write_text(text, encoding="utf-8")
    result = runner.invoke(app, ["check", str(config)])
    assert result.exit_code == 0, result.output
    assert "Bal�[31mance" in result.output
    assert "\x1b" not in result.output


def test_check_without_a_worldview(config: Path) -> None:
    lines = LOAN.splitlines()
    config.write_text("\n".join([*lines[:4], *lines[7:]]), encoding="utf-8")
    result = runner.invoke(app, ["check", str(config)])
    assert result.exit_code == 0, result.output
    assert "The audit can run st at k = 15, 30." in result.output


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "Measure 'risk-difference': p_control − p_test; evidence is Δp > 0."),
        (
            "tau: 0.8\nevidence: {measure: selection-ratio}\n",
            "'selection-ratio': (1 − p_control) / (1 − p_test); evidence is selection ratio < 0.8.",
        ),
        (
            "tau: 1.25\nevidence: {measure: risk-ratio, direction: positive}\n",
            "Measure 'risk-ratio': p_control / p_test; evidence is risk ratio < 0.8.",
        ),
    ],
)
def test_check_says_how_people_and_groups_are_compared(config: Path, more: str, said: str) -> None:
    config.write_text(LOAN + more, encoding="utf-8")
    result = runner.invoke(app, ["check", str(config)])
    assert result.exit_code == 0, result.output
    lines = " ".join(result.output.split())
    assert said in lines
    assert "Distance 'gower': each difference divided by its range in the table, then" in lines


def test_check_tries_the_decision_maker_on_some_people(config: Path) -> None:
    result = runner.invoke(app, ["check", str(config), "--json"])
    # the generator decides by this very rule
    assert json.loads(result.output)["decision"] == {"asked": 100, "as_recorded": 100}
    config.write_text(LOAN.replace("> 225000", "> 0"), encoding="utf-8")
    result = runner.invoke(app, ["check", str(config), "--json"])
    some = json.loads(result.output)["decision"]
    assert some["asked"] == 100
    assert some["as_recorded"] < 80
    result = runner.invoke(app, ["check", str(config)])
    text = " ".join(result.output.split())
    assert "Asked about 100 people, the decision maker answers" in text
    assert f"on record for {some['as_recorded']} of them" in text


def test_check_shows_the_beginning_of_much(config: Path) -> None:
    names = [f"a{number}" for number in range(9)]
    table = mm.datasets.loan(n=300, seed=1)
    generator = np.random.default_rng(1)
    for name in names:
        table[name] = generator.normal(size=len(table))
    table.to_csv(config.parent / "loan.csv", index=False)
    equations = "".join(f"  {name}: {{equation: linear, parents: [Gender]}}\n" for name in names)
    config.write_text(LOAN.replace("decision:", f"{equations}decision:"), encoding="utf-8")
    short, full = (
        runner.invoke(app, ["check", str(config), *more]).output.splitlines()
        for more in ((), ("--full",))
    )
    assert "… and 6 more, which `mutandis check --full` prints." in short
    assert not any(line.startswith("… and") for line in full)
    bullets = [sum(line.startswith("- ") for line in lines) for lines in (short, full)]
    assert bullets[0] < bullets[1] - 10
    # what to do next is said at the end of both
    for lines in (short, full):
        assert lines[max(n for n, line in enumerate(lines) if not line) + 1].startswith("Next: ")
