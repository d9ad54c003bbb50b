"""Ensembles of worldviews: which verdicts stay, which choice breaks them, and the variants."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pandas as pd
import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.auditing.worldview_variants import merge_worldviews
from mutandis.cli.app import app
from mutandis.errors import MutandisWarning, PlanError
from tests.tables import LOAN

if TYPE_CHECKING:
    from pathlib import Path

GIVEN = LOAN["worldview"]
SETTINGS: dict[str, Any] = {
    **LOAN,
    "ks": (15,),
    "methods": ["cst_matched"],
    "uncertainty": mm.Uncertainty(refits=0),
}


def plan(**other: Any) -> mm.Plan:
    options = {**SETTINGS, **other}
    return mm.plan(mm.datasets.loan(n=400, seed=2), **options)


@pytest.fixture(scope="module")
def variants() -> dict[str, mm.Worldview]:
    return mm.vary_worldview(plan())


@pytest.fixture(scope="module")
def compared(variants: dict[str, mm.Worldview]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        return mm.compare_worldviews(plan(), variants)


def test_variants_differ_in_one_choice_each(variants: dict[str, mm.Worldview]) -> None:
    assert list(variants) == [
        "as given",
        "AnnualSalary is a root = AnnualSalary is resolving",
        "AnnualSalary by factors",
        "AccountBalance is a root = AccountBalance is resolving",
        "AccountBalance by factors",
        "AccountBalance with interactions",
    ]
    assert variants["as given"] == GIVEN
    alone = dict(GIVEN.equations)
    del alone["AnnualSalary"]
    # held at its fact, it is as if it had no cause
    merged = "AnnualSalary is a root = AnnualSalary is resolving"
    assert variants[merged] == mm.Worldview(alone)
    factors = {**GIVEN.equations, "AnnualSalary": mm.Linear("Gender", link="log")}
    assert variants["AnnualSalary by factors"] == mm.Worldview(factors)


def test_variants_go_back_as_well() -> None:
    other = mm.Worldview(
        {
            "AnnualSalary": mm.Linear("Gender", link="log"),
            "AccountBalance": mm.Linear("AnnualSalary", "Gender", interactions=True),
        },
        resolving=["AnnualSalary"],
    )
    names = list(mm.vary_worldview(plan(worldview=other)))
    assert any("AnnualSalary is not resolving" in name for name in names)
    assert any("AccountBalance without interactions" in name for name in names)
    # of a resolving attribute the equation has no say
    assert "AnnualSalary by straight lines" in names[0]


def test_an_attribute_without_causes_may_be_an_effect() -> None:
    alone = mm.Worldview({"AnnualSalary": mm.Linear("Gender")})
    names = list(mm.vary_worldview(plan(worldview=alone)))
    assert "AccountBalance is an effect of Gender" in names


def test_equal_counterfactuals_are_one_worldview() -> None:
    """In linear worldviews in which every equation has the status, the arrow between is free."""
    reversed_arrow = mm.Worldview(
        {
            "AccountBalance": mm.Linear("Gender"),
            "AnnualSalary": mm.Linear("AccountBalance", "Gender"),
        }
    )
    bank = mm.Worldview({"AnnualSalary": mm.Linear("Gender")})
    three = {"given": GIVEN, "reversed": reversed_arrow, "bank": bank}
    assert list(merge_worldviews(plan(), three)) == ["given = reversed", "bank"]


def test_the_matrix_counts_verdicts(compared: Any) -> None:
    drawing = compared.plot_matrix()
    assert drawing == compared.plot_matrix()
    root = ET.fromstring(drawing.svg)  # noqa: S314 - our own drawing
    texts = [element.text for element in root.iter() if element.tag.endswith("}text")]
    for name, audit in compared.audits.items():
        assert name in texts
        counts = audit.findings()["verdict"].value_counts()
        start = texts.index(name) + 1
        assert texts[start : start + 5] == [
            f"{counts.get(each, 0):,}"
            for each in (
                *("significant-adjusted", "significant", "evidence"),
                *("no-evidence", "insufficient"),
            )
        ]
    who = compared.robustness()["id"].iloc[0]
    mine = compared.plot_matrix(who).svg
    for audit in compared.audits.values():
        row = audit.findings().set_index("id").loc[who]
        assert f">{row['verdict']}</text>" in mine
        if row["verdict"] != "insufficient":
            assert f"{row['delta_p']:+.3f}".replace("-", "−") in mine


def test_what_cannot_be_varied() -> None:
    with pytest.raises(PlanError, match="no worldview to vary"):
        mm.vary_worldview(plan(worldview=None, methods=["st"]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare")
    mm.datasets.loan(n=400, seed=2).to_csv(path / "loan.csv", index=False)
    (path / "audit.yaml").write_text(
        """
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: {kind: continuous}, AccountBalance: {kind: continuous}}
worldview:
  equations:
    AnnualSalary: {equation: linear, parents: [Gender]}
    AccountBalance: {equation: linear, parents: [AnnualSalary, Gender]}
methods: [cst_matched]
ks: [15]
uncertainty: {refits: 0, tipping: false}
""",
        encoding="utf-8",
    )
    mm.Worldview({"AnnualSalary": mm.Linear("Gender")}).write(path / "bank.yaml")
    return path


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def test_files_are_compared_from_the_command_line(folder: Path) -> None:
    answer = run(
        *(folder / "audit.yaml", folder / "bank.yaml"),
        *("--out", folder / "people.csv", "--picture", folder / "matrix.svg", "--json"),
    )
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.stdout)
    assert [each["name"] for each in told["worldviews"]] == ["audit", "bank"]
    people = pd.read_csv(folder / "people.csv")
    assert sum(told["stays_under"].values()) == people["robustness"].notna().sum()
    assert told["worldviews"][1]["breaks"] == (people["breaks_under"] == "bank").sum() > 0
    assert (folder / "matrix.svg").read_text(encoding="utf-8").startswith("<svg")


def test_one_worldview_is_not_enough(folder: Path) -> None:
    answer = run(folder / "audit.yaml")
    assert isinstance(answer.exception, PlanError)
    assert "Give at least two" in str(answer.exception)
