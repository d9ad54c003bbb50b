from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import mutandis as mm
from mutandis.errors import OutputError, UnknownIdError
from mutandis.store.results_folder import case_name
from tests.cli.conftest import run, without_report

if TYPE_CHECKING:
    from pathlib import Path


HOSTILE = (
    "../../../tmp/evil",
    "..",
    ".",
    "",
    " ",
    "a/b",
    "a\\b",
    "a\0b",
    "<script>alert(1)</script>",
    "=HYPERLINK(1)",
    "-5",
    "--force",
    "Ünïcödé 面接",
    "面接",
    "試験",
    "CON",
    "nul",
    "x" * 5000,
    "x" * 5001,
    "a.html",
    "a\nb",
    "a.redacted",
    "\ud800",
)

CONFIG = """\
data: {source: loan.csv, id: Person}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
worldview: {AnnualSalary: {equation: linear, parents: [$protected]}}
decision: {rule: "AnnualSalary + 5 * AccountBalance > 225000"}
uncertainty: {refits: 2}
ks: [5, 9]
"""
EVIL = "../<script>alert(1)</script>"


def audit(*arguments: object) -> None:
    """Run an audit without its report: drawing takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        without_report(patch)
        result = run("audit", *arguments)
    assert result.exit_code == 0, result.exception


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    decisions = mm.datasets.loan(n=200, seed=1)
    decisions["Person"] = [f"p{row}" for row in range(len(decisions))]
    women = decisions.index[decisions["Gender"] == 1]
    decisions.loc[women[0], "Person"] = EVIL
    decisions.loc[women[1], "Person"] = "Anna"
    men = decisions.index[decisions["Gender"] == 0]
    decisions.loc[men[0], "Person"] = "Otto"
    decisions.to_csv(folder / "loan.csv", index=False)
    (folder / "audit.yaml").write_text(CONFIG, encoding="utf-8")
    audit(folder / "audit.yaml", "--out", folder / "out")
    return folder


@pytest.fixture
def out(audited: Path, tmp_path: Path) -> Path:
    shutil.copytree(audited, tmp_path / "copy")
    return tmp_path / "copy" / "out"


@pytest.mark.slow
def test_a_case_loads_nothing_that_it_can_do_without(out: Path) -> None:
    # most of the time that a case takes is that of imports: 0.3 s for pandas, 0.2 s for networkx
    program = (
        "import sys\n"
        "from mutandis.cli.app import app\n"
        "try:\n"
        "    app(['case', sys.argv[1], 'Anna'])\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        "heavy = {'duckdb', 'httpx', 'narwhals', 'networkx', 'numba', 'pandas', 'pyarrow',\n"
        "         'scipy.optimize', 'scipy.spatial', 'scipy.stats', 'sklearn',\n"
        "         'weasyprint'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program, str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (out / "cases" / "Anna.html").is_file()


def test_names_stay_in_the_folder_and_apart() -> None:
    names = [case_name(each) for each in HOSTILE]
    assert len(set(names)) == len(names)
    for name in names:
        assert name.isascii()
        assert name.replace("-", "").replace("_", "").isalnum()
        assert 0 < len(name) <= 64
        assert name.lower() not in {"con", "nul"}
    assert case_name("4711") == "4711"
    # no name can be that of somebody else's redacted file
    assert not any("." in name for name in names)


def test_html_json_and_pdf(out: Path) -> None:
    result = run("case", out, "Anna", "--no-pdf")
    assert result.exit_code == 0, result.exception
    names = ["Anna.html", "Anna.json", "SHA256SUMS"]
    assert sorted(p.name for p in (out / "cases").iterdir()) == names
    document = json.loads((out / "cases" / "Anna.json").read_text(encoding="utf-8"))
    verdict, own = document["verdict"]["verdict"], document["own_case"]["answer"]
    refused = document["complainant"]["refused"]
    assert own in {"yes", "no"}
    assert result.output.splitlines() == [
        f"Pattern among similar people: {verdict} (cst_matched at k = 9)",
        f"Own case: {own} (decided: {'refused' if refused else 'granted'})",
        f"{out}/cases/Anna.html",
        f"{out}/cases/Anna.json",
        f"Next: mutandis verify {out}",
    ]
    assert document["complainant"]["id"] == "Anna"
    # case files are recorded, and do not stand in the way of anything
    assert run("verify", out).exit_code == 0


def test_a_hostile_id(out: Path) -> None:
    before = {path for path in out.parent.parent.rglob("*") if path.parent.name != "cases"}
    result = run("case", out, "--no-pdf", "--", EVIL)
    assert result.exit_code == 0, result.exception
    files = sorted((out / "cases").iterdir())
    assert [path.suffix for path in files] == ["", ".html", ".json"]
    assert "<script" not in files[1].name
    assert "<script" not in files[1].read_text(encoding="utf-8").lower()
    after = {path for path in out.parent.parent.rglob("*") if path.parent.name != "cases"}
    assert after - before == {out / "cases"}


def test_redacted_files_stand_beside_the_others(out: Path) -> None:
    run("case", out, "Anna", "--no-pdf")
    run("case", out, "Anna", "--no-pdf", "--redact")
    names = sorted(path.name for path in (out / "cases").iterdir())
    redacted_names = ["Anna.redacted.html", "Anna.redacted.json"]
    assert names == ["Anna.html", "Anna.json", *redacted_names, "SHA256SUMS"]
    full, redacted = (
        (out / "cases" / name).read_text(encoding="utf-8") for name in (names[1], names[3])
    )
    comparators = set(re.findall(r"\bp[0-9]+\b", full))
    assert len(comparators) >= 9
    assert not comparators & set(re.findall(r"\bp[0-9]+\b", redacted))


def test_who_is_no_complainant(out: Path) -> None:
    for who, words in (("Otto", "not a complainant"), ("Nobody", "the values of 'Person'")):
        result = run("case", out, who)
        assert isinstance(result.exception, UnknownIdError)
        assert words in str(result.exception)
        assert who not in str(result.exception)
    assert not (out / "cases").exists()


def test_a_case_needs_neither_the_table_nor_a_search(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("case", out, "Anna", "--no-pdf")
    (first,) = (out / "cases").glob("*.json")
    before = first.read_text(encoding="utf-8")
    first.unlink()
    (out.parent / "loan.csv").unlink()

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("nothing is searched or decided again")

    monkeypatch.setattr("mutandis.engine.nearest.ChosenSearch", fail)
    monkeypatch.setattr("mutandis.auditing.run.decide", fail)
    result = run("case", out, "Anna", "--no-pdf")
    assert result.exit_code == 0, result.exception
    assert first.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_what_was_counted_must_be_as_it_was_written(out: Path, damage: str) -> None:
    state = out / "audit.npz"
    if damage == "missing":
        state.unlink()
    else:
        content = bytearray(state.read_bytes())
        content[len(content) // 2] ^= 1
        state.write_bytes(content)
    result = run("case", out, "Anna")
    assert isinstance(result.exception, OutputError)
    assert "is missing or has been damaged" in str(result.exception)
    assert not (out / "cases").exists()
