"""`kill -9` at any moment leaves no results, the complete old ones or the complete new ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mutandis as mm

# One process starts the audits, each in a fork of its own, so that loading the libraries, which
# touches no file, is not paid for each time. It only starts, kills and looks.
HARNESS = """
import json, os, signal, sys
from pathlib import Path
import duckdb, narwhals, pandas, scipy.spatial, scipy.stats, yaml
from mutandis.auditing.audit import Audit
from mutandis.cli import app
from mutandis.report.report import Report
from mutandis.errors import OutputError
from mutandis.store import output_folder, saved_audit
from mutandis.store.results_folder import find_differences, read_record

# drawing takes most of the time and touches no file: the pages here are drawn by nobody
page = Report(html="<p>" * 10_000, plots={"one": "<svg/>", "two": "<svg/>"})
Audit.report = lambda self, **more: page

folder, out = Path(sys.argv[1]), Path(sys.argv[1]) / "out"


def state():
    try:
        record = read_record(out)
    except OutputError:
        return "half" if out.exists() else "absent"
    return "damaged" if find_differences(record) else record.data["config"]["name"]


def start(config, prepare):
    child = os.fork()
    if child:
        return child
    try:
        sys.stdout = sys.stderr = open(os.devnull, "w")
        prepare()
        sys.argv = ["mutandis", "audit", str(folder / config), "--out", str(out), "--force"]
        app.main()
    finally:
        os._exit(0)


def attempt(config, prepare=lambda: None):
    before = state()
    child = start(config, prepare)
    _, status = os.waitpid(child, 0)
    after = state()
    output_folder.recover_output(out)
    return {"before": before, "config": config, "after": after, "recovered": state(),
            "left": sorted(path.name for path in folder.iterdir()),
            "killed": os.WIFSIGNALED(status)}
"""


AT_THE_SWAP = """
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def before(module, name):
    setattr(module, name, die)


def after(module, name):
    real = getattr(module, name)
    setattr(module, name, lambda *given, **more: (real(*given, **more), die()))


def two_steps(then):
    def prepare():
        output_folder.exchange_names = lambda first, second: False
        then()
    return prepare


def second_rename():
    from pathlib import PosixPath
    real = PosixPath.rename
    PosixPath.rename = lambda self, to: die() if to == out.resolve() else real(self, to)


moments = {
    "first rename": second_rename,
    "before the swap": lambda: before(output_folder, "_put_in_place"),
    "before the exchange": lambda: before(output_folder, "exchange_names"),
    "after the exchange": lambda: after(output_folder, "exchange_names"),
    "after the swap": lambda: after(output_folder, "_put_in_place"),
    "between two renames": two_steps(second_rename),
    "before the old one goes": two_steps(lambda: before(output_folder.shutil, "rmtree")),
}
found = {"first": attempt("a.yaml", moments.pop("first rename")), "whole": attempt("a.yaml")}
for moment, prepare in moments.items():
    found[moment] = attempt("b.yaml", prepare)
    if found[moment]["recovered"] != "a.yaml":
        attempt("a.yaml")
print(json.dumps(found))
"""

TOOL = Path(__file__).parents[2] / "tools" / "kills.py"
CONFIG = """\
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
worldview: {AnnualSalary: {equation: linear, parents: [Gender]}}
ks: [K]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    mm.datasets.loan(n=60, seed=1).to_csv(tmp_path / "loan.csv", index=False)
    for name, k in (("a", "2"), ("b", "3")):
        (tmp_path / f"{name}.yaml").write_text(CONFIG.replace("K", k), encoding="utf-8")
    return tmp_path


def attempts(folder: Path, program: str, *more: str) -> Any:
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-W", "ignore", "-c", HARNESS + program, str(folder), *more],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_killed_around_the_swap(folder: Path) -> None:
    found = attempts(folder, AT_THE_SWAP)
    assert all(each["killed"] for name, each in found.items() if name != "whole")
    after = {name: (each["after"], each["recovered"]) for name, each in found.items()}
    assert after == {
        "first": ("absent", "absent"),
        "whole": ("a.yaml", "a.yaml"),
        "before the swap": ("a.yaml", "a.yaml"),
        "before the exchange": ("a.yaml", "a.yaml"),
        "after the exchange": ("b.yaml", "b.yaml"),
        "after the swap": ("b.yaml", "b.yaml"),
        # the old results stepped aside, and come back
        "between two renames": ("absent", "a.yaml"),
        "before the old one goes": ("b.yaml", "b.yaml"),
    }
    for each in found.values():
        assert set(each["left"]) <= {"a.yaml", "b.yaml", "loan.csv", "out"}


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names cannot be exchanged there")
def test_a_few_kills_damage_nothing() -> None:
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-W", "ignore", str(TOOL), "--kills", "6", "--seed", "2"],
        capture_output=True,
        check=False,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    assert (seen["killed"], seen["failures"], seen["reads"]["failed"]) == (6, 0, 0)
    assert seen["reads"]["read"] > 0
