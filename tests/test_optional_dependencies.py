"""Optional dependencies are optional: without any extra, an audit runs from table to case file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# extras that are tools of the project itself
TOOLS = {"all", "bench", "dev", "docs", "lint", "test"}
MODULES = {"scikit-learn": "sklearn"}

AUDIT = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())

import json
import mutandis as mm

found = mm.audit(
    mm.datasets.loan(n=400, seed=1),
    outcome="LoanApproval",
    negative=-1,
    protected=mm.Protection("Gender", value=1, reference=0),
    attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
    worldview=mm.Worldview({
        "AnnualSalary": mm.Linear("Gender"),
        "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
    }),
    decision="AnnualSalary + 5 * AccountBalance > 225000",
    ks=(5,),
    uncertainty=mm.Uncertainty(refits=2),
)
found.save("results")
who = mm.open_results("results").findings()["id"].iloc[0]
document = found.case_file(who).to_html()
rooms = sorted(name for name in sys.modules if name.startswith("mutandis.rooms"))
for name in mm.__all__:
    getattr(mm, name)
print(json.dumps({
    "counted": len(found.counts()),
    "report": "</html>" in found.report().html,
    "case": "</html>" in document,
    "rooms": rooms,
    "loaded": sorted({name.partition(".")[0] for name in sys.modules} & set(BLOCKED)),
}))
"""


def blocked() -> list[str]:
    """Give the modules that the extras bring, as pyproject.toml lists them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    listed = [each for name in extras.keys() - TOOLS for each in extras[name]]
    core = {re.split(r"[<>=~\[ ]", each)[0] for each in project["dependencies"]}
    names = {re.split(r"[<>=~\[ ]", each)[0] for each in listed} - {"mutandis"} - core
    return sorted(MODULES.get(name, name.replace("-", "_")) for name in names)


def test_an_audit_runs_without_any_extra(tmp_path: Path) -> None:
    assert {"pyarrow", "sklearn", "weasyprint", "dowhy", "adbc_driver_sqlite"} <= set(blocked())
    done = subprocess.run(  # noqa: S603 - our own interpreter, a text of our own
        [sys.executable, "-c", f"BLOCKED = {blocked()!r}\n{AUDIT}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said == {"counted": 5, "report": True, "case": True, "rooms": [], "loaded": []}
