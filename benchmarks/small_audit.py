"""What `mutandis audit` costs on a small table: the paper's loans, report included.

``python benchmarks/small_audit.py`` runs the command in turns with a process that does nothing but
load the modules that the command loads, and prints the processor time of both, and what the command
takes beyond that: Python's start-up is what the second one takes. ``--runs N`` takes N turns. Both
are run once before, so that bytecode is at hand.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import mutandis as mm

_EXAMPLE = Path(__file__).parents[1] / "examples" / "loan" / "audit.yaml"
_ENVIRONMENT = dict(os.environ)
_ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)
_AUDIT = ["-m", "mutandis", "audit", "audit.yaml", "--out", "results"]
_LIST = """
import runpy, sys
from pathlib import Path
sys.argv = sys.argv[1:]
try:
    runpy.run_module("mutandis", run_name="__main__")
except SystemExit:
    pass
Path("modules.txt").write_text("\\n".join(name for name in sys.modules if name != "__main__"))
"""
_LOAD = """
import importlib
from contextlib import suppress
from pathlib import Path
for name in Path("modules.txt").read_text().split("\\n"):
    with suppress(ImportError):  # some libraries enter names that are no files
        importlib.import_module(name)
"""


def seconds(folder: Path, *arguments: str) -> float:
    """Run Python in a folder; give the processor time that it takes."""
    shutil.rmtree(folder / "results", ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # noqa: S603 - our own command
        [sys.executable, *arguments], cwd=folder, env=_ENVIRONMENT, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=5, help="turns (5)")
    runs = parser.parse_args().runs
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(_EXAMPLE, folder)
        (folder / "mutandis-demo").mkdir()
        mm.datasets.loan().to_csv(folder / "mutandis-demo" / "decisions.csv", index=False)
        seconds(folder, "-c", _LIST, "mutandis", *_AUDIT[2:])
        seconds(folder, "-c", _LOAD)
        print("processor seconds:  audit  loading  beyond it")
        for _ in range(runs):
            audited, loaded = seconds(folder, *_AUDIT), seconds(folder, "-c", _LOAD)
            print(f"{audited:25.2f} {loaded:8.2f} {audited - loaded:10.2f}", flush=True)


if __name__ == "__main__":
    main()
