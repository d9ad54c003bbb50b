"""The prima facie summary and the section of a model card: complete, escaped, and careful."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.errors import PlanError
from mutandis.rooms.compliance import write_text

if TYPE_CHECKING:
    from pathlib import Path


def small_audit(status: str = "Gender", **options: Any) -> mm.Audit:
    table = mm.datasets.loan(n=400, seed=1).rename(columns={"Gender": status})
    return mm.audit(
        table,
        outcome="LoanApproval",
        negative=-1,
        protected=mm.Protection(status, value=1, reference=0),
        attributes={"AnnualSalary": "continuous"},
        worldview=mm.Worldview({"AnnualSalary": mm.Linear(status)}),
        ks=(15,),
        uncertainty=mm.Uncertainty(refits=0, tipping=False),
        **options,
    )


@pytest.fixture(scope="module")
def audit() -> mm.Audit:
    return small_audit()


@pytest.mark.parametrize("kind", ["prima-facie", "model-card"])
def test_every_count_is_the_audits(audit: mm.Audit, kind: Any) -> None:
    text = write_text(audit, kind)
    for row in audit.counts().to_dict("records"):
        title = {"st": "ST", "cst_without": "CST (w/o)", "cst_matched": "CST (matched)"}
        cells = [row["cases"], row["significant"], row["significant_adjusted"]]
        line = next(
            line
            for line in text.splitlines()
            if line.startswith(f"| {title.get(row['method'], row['method'])}")
        )
        assert [int(each) for each in re.findall(r"\d+", line)[1:4]] == cells
    assert "not legal advice" in text
    assert audit.provenance.data["sha256"] in text
    number = audit.results.summaries[audit.plan.settings.primary].counts["significant_adjusted"]
    assert f"{number} of {len(audit.findings())} complainants" in text


def test_names_of_the_table_make_no_markup() -> None:
    hostile = "<script>|*x*`\n# y"
    text = write_text(small_audit(hostile), "prima-facie")
    assert "<script>" not in text
    assert "\n# y" not in text
    assert "|*x*" not in text


def test_an_unknown_text_is_refused(audit: mm.Audit) -> None:
    with pytest.raises(PlanError, match=r"'prima' is not a text that can be written.*prima-facie"):
        write_text(audit, "prima")


def test_the_command_writes_each(audit: mm.Audit, tmp_path: Path) -> None:
    results = tmp_path / "results"
    audit.save(results)
    runner = CliRunner()

    def export(*arguments: str) -> str:
        done = runner.invoke(app, ["export", str(results), *arguments])
        assert done.exit_code == 0, done.output
        return done.output

    csv = tmp_path / "ll144.csv"
    assert "2 categories with an impact ratio" in export(str(csv), "--as", "ll144")
    assert csv.read_text().splitlines()[0] == (
        "table,category,applicants,selected,rate,impact_ratio,note"
    )
    text = tmp_path / "summary.md"
    assert "not legal advice" in export(str(text), "--as", "prima-facie")
    assert text.read_text() == write_text(mm.open_results(results), "prima-facie")
    export(str(tmp_path / "card.md"), "--as", "model-card")
    export(str(tmp_path / "people.csv"))
    assert (tmp_path / "people.csv").exists()
