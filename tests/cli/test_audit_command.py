from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import duckdb
import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import OutputError
from mutandis.store.files import hash_file
from mutandis.verdicts.findings import COLUMNS
from tests.cli.conftest import LOAN, run, write_config

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the audit once; most tests look at a copy of what it wrote."""
    folder = tmp_path_factory.mktemp("audited")
    result = run("audit", write_config(folder), "--out", folder / "out")
    assert result.exit_code == 0, result.exception
    return folder


@pytest.fixture
def out(audited: Path, tmp_path: Path) -> Path:
    shutil.copytree(audited, tmp_path / "copy")
    return tmp_path / "copy" / "out"


@pytest.fixture(scope="module")
def by_api(audited: Path) -> mm.Audit:
    return mm.audit(
        pd.read_csv(audited / "loan.csv"),
        outcome="LoanApproval",
        negative=-1,
        protected=mm.Protection("Gender", value=1, reference=0),
        attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
        worldview=mm.Worldview(
            {
                "AnnualSalary": mm.Linear("Gender"),
                "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
            }
        ),
        decision="AnnualSalary + 5 * AccountBalance > 225000",
        uncertainty=mm.Uncertainty(refits=2),
        ks=(5, 9),
    )


def test_audit_writes_what_the_api_finds(out: Path, by_api: mm.Audit) -> None:
    expected = by_api
    findings = duckdb.read_parquet(str(out / "findings.parquet")).df()
    doubted = ["verdict_share", "fragile", "tipping", "grade", "robustness"]
    assert list(findings.columns) == ["method", "k", *COLUMNS, *doubted]
    assert findings["method"].unique().tolist() == [
        *("st", "cst_without", "cst_with", "cf", "cst_matched")
    ]
    for method in expected.methods:
        for k in expected.ks:
            part = findings[(findings["method"] == method) & (findings["k"] == k)]
            ours = part.drop(columns=["method", "k"]).reset_index(drop=True)
            # counts and answers are nullable in the file's frame, and nothing else differs
            ours["own_case"] = ours["own_case"].astype(object).where(ours["own_case"].notna(), None)
            theirs = expected.findings(method, k=k)
            if (method, k) != expected.plan.settings.primary:
                # only the headline is graded
                assert ours[["tipping", "grade", "robustness"]].isna().all(axis=None)
                ours = ours.drop(columns=["tipping", "grade", "robustness"])
            else:
                for name in ("grade", "robustness"):
                    ours[name] = ours[name].astype(object).where(ours[name].notna(), None)
            pd.testing.assert_frame_equal(ours, theirs, check_dtype=False, check_exact=True)
    counts = pd.read_csv(out / "counts.csv")
    pd.testing.assert_frame_equal(counts, expected.counts(), check_dtype=False, check_exact=True)


def test_the_record(out: Path, by_api: mm.Audit) -> None:
    config = out.parent / "audit.yaml"
    record = json.loads((out / "audit.json").read_text(encoding="utf-8"))
    assert record["settings"]["ks"] == [5, 9]
    assert record["config"]["text"] == LOAN
    assert record["source"]["sha256"] == hash_file(config.parent / "loan.csv")
    files = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}
    assert set(record["outputs"]) == files - {"audit.json"}
    assert {"findings.parquet", "counts.csv", "report.html", "plots/worldview.svg"} <= files
    for name, sha256 in record["outputs"].items():
        assert hash_file(out / name) == sha256
    assert record["disagreement"] == by_api.disagreement
    assert record["provenance"]["data"] == by_api.provenance.data
    assert record["diagnostics"]["rows"] == record["provenance"]["data"]["rows"]
    # nobody's machine is named
    assert str(config.parent) not in (out / "audit.json").read_text(encoding="utf-8")


@pytest.mark.usefixtures("no_report")
def test_json_is_all_that_is_printed(config: Path, by_api: mm.Audit) -> None:
    result = run("audit", config, "--out", config.parent / "out", "--json")
    printed, expected = json.loads(result.stdout), by_api
    assert list(printed) == ["answer", "headline", "robustness", "cautions", "counts"]
    assert printed["answer"] == [each.as_dict() for each in expected.answers]
    assert (
        sum(printed["robustness"]["significant-adjusted"].values())
        == (printed["headline"]["significant_adjusted"])
    )
    assert printed["counts"] == expected.results.records()
    assert printed["cautions"] == expected.cautions() != []
    rows = expected.findings()
    pattern = rows["verdict"] == "significant-adjusted"
    assert printed["headline"] == {
        **expected.results.summaries["cst_matched", 9].counts,
        "pattern": pattern.sum(),
        "pattern_refused": (pattern & (rows["outcome"] == -1)).sum(),
        "pattern_and_own_case": (pattern & rows["own_case"]).sum(),
    }
    assert result.stderr == ""


@pytest.mark.usefixtures("no_report")
def test_force_replaces_results_but_no_other_folder(out: Path) -> None:
    config = out.parent / "audit.yaml"
    config.write_text(LOAN.replace("[5, 9]", "[7]"), encoding="utf-8")
    assert run("audit", config, "--out", out, "--force").exit_code == 0
    assert set(pd.read_csv(out / "counts.csv")["k"]) == {7}
    (out / "cases").mkdir()
    for name in ("notes.docx", "cases/notes.docx"):
        (out / name).touch()
        result = run("audit", config, "--out", out, "--force")
        assert isinstance(result.exception, OutputError)
        assert "did not write" in str(result.exception)
        assert (out / name).exists()
        (out / name).unlink()
    (out / "cases" / "7.html").touch()
    assert run("audit", config, "--out", out, "--force").exit_code == 0
    assert not (out / "cases").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("no_report")
def test_a_small_audit_loads_no_more_than_it_needs(config: Path) -> None:
    # kernels take most of a second to load, and the others a quarter of one each
    mm.datasets.loan(n=2000, seed=1).to_csv(config.with_name("loan.csv"), index=False)
    program = (
        "import sys\n"
        "from mutandis.cli.app import app\n"
        "try:\n"
        "    app(['audit', *sys.argv[1:]])\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        "heavy = {'httpx', 'networkx', 'numba', 'scipy.optimize', 'scipy.stats',\n"
        "         'sklearn', 'starlette', 'weasyprint'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    out = config.with_name("out")
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program, str(config), "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (out / "report.html").is_file()


class TestVerify:
    def test_untouched(self, out: Path) -> None:
        result = run("verify", out, "--rerun")
        assert result.exit_code == 0, result.output
        assert "as they were written" in result.output
        assert "bit for bit" in result.output

    def test_each_kind_of_difference_is_named(self, out: Path) -> None:
        (out / "counts.csv").write_text("method\n", encoding="utf-8")
        (out / "findings.parquet").unlink()
        (out / "more.txt").touch()
        result = run("verify", out, "--json")
        assert result.exit_code == 1
        assert json.loads(result.stdout)["differences"] == [
            "counts.csv is not what was written",
            "findings.parquet is missing",
            "more.txt was not written by the audit",
        ]

    @pytest.mark.usefixtures("no_report")
    def test_no_module_of_anybody_is_loaded_to_compare_hashes(self, config: Path) -> None:
        module = config.parent / "lender_module.py"
        module.write_text("def decide(table):\n    return table['Gender'] == 0\n", "utf-8")
        rule = 'rule: "AnnualSalary + 5 * AccountBalance > 225000"'
        config.write_text(LOAN.replace(rule, "python: lender_module:decide"), encoding="utf-8")
        done = run("audit", config, "--out", config.parent / "out", "--trust-code")
        assert done.exit_code == 0
        module.write_text("raise SystemExit\n", encoding="utf-8")
        result = run("verify", config.parent / "out", "--rerun", "--trust-code")
        assert result.exit_code == 1
        assert "the model lender_module.py is not the one that was asked" in result.output
        for more in ((), ("--rerun",)):
            assert "differs" in run("verify", config.parent / "out", *more).output
        refused = run("case", config.parent / "out", "0")
        assert refused.exit_code != 0
        module.unlink()
        assert run("verify", config.parent / "out").exit_code == 0

    def test_a_source_that_has_changed(self, out: Path) -> None:
        with (out.parent / "loan.csv").open("a", encoding="utf-8") as file:
            file.write("\n")
        result = run("verify", out, "--rerun")
        assert result.exit_code == 1
        assert "the source is not the table that was audited" in result.output

    @pytest.mark.usefixtures("no_report")
    def test_a_source_that_is_elsewhere(self, config: Path) -> None:
        bare = config.parent / "out"
        assert run("audit", config, "--out", bare).exit_code == 0
        elsewhere = bare.parent / "elsewhere"
        elsewhere.mkdir()
        (bare.parent / "loan.csv").rename(elsewhere / "loan.csv")
        result = run("verify", bare)
        assert result.exit_code == 0
        assert "cannot be reached" in result.output
        assert run("verify", bare, "--rerun", "--base", elsewhere).exit_code == 0

    def test_a_record_cannot_point_outside(self, out: Path) -> None:
        record = json.loads((out / "audit.json").read_text(encoding="utf-8"))
        record["outputs"] = {"../loan.csv": "0"}
        (out / "audit.json").write_text(json.dumps(record), encoding="utf-8")
        assert "not a record" in str(run("verify", out).exception)
