"""Too little address space (`ulimit -v`) ends in a sentence: no crash, and no defect."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import mutandis as mm
from mutandis.cli.exit_codes import explain
from mutandis.errors import MutandisError
from mutandis.limits import check_address_space

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="other systems do not keep to this limit"
)
CONFIG = """\
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous}
worldview: {AnnualSalary: {equation: linear, parents: [Gender]}}
ks: [3]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("limited")
    table = mm.datasets.loan(n=60, seed=1)
    table.sort_values("Gender").to_csv(folder / "loan.csv", index=False)
    (folder / "audit.yaml").write_text(CONFIG, encoding="utf-8")
    return folder


def run(folder: Path, kilobytes: int, *command: str) -> tuple[int, str]:
    """Run a command on two cores at most, since each core needs some more."""
    cores = sorted(os.sched_getaffinity(0))[:2]

    def limit() -> None:
        os.sched_setaffinity(0, cores)
        resource.setrlimit(resource.RLIMIT_AS, (kilobytes * 1024,) * 2)

    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "mutandis", *command],
        capture_output=True,
        check=False,
        cwd=folder,
        preexec_fn=limit,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stderr


TABLE = (("check", "audit.yaml"), ("audit", "audit.yaml", "--out", "out", "--force"))
RESULTS = (("case", "out", "59"), ("power", "--p-control", "0.4", "--p-test", "0.1"))


@pytest.mark.parametrize("kilobytes", [300_000, 1_000_000, 2_400_000])
@pytest.mark.slow
def test_too_little_to_load_the_libraries(folder: Path, kilobytes: int) -> None:
    needed = f"{2_500_000 + 100_000 * min(len(os.sched_getaffinity(0)), 2):,} KB"
    code, said = run(folder, kilobytes, *TABLE[1])
    assert code == 2
    assert said.startswith(f"mutandis: This process may use {kilobytes:,} KB of address space")
    assert needed in said
    assert "ulimit -v" in said
    assert not (folder / "out").exists()


@pytest.mark.slow
def test_every_limit_ends_in_an_answer_or_a_sentence(folder: Path) -> None:
    codes = {}
    for kilobytes in (2_750_000, 200_000, 550_000, 650_000, 850_000, 1_200_000, 1_900_000):
        for command in (*TABLE, *RESULTS):
            codes[kilobytes, command[0]], said = run(folder, kilobytes, *command)
            assert codes[kilobytes, command[0]] in {0, 2}, (kilobytes, command, said)
            assert said == "" or "KB of address space" in said
    # what is asked for is enough
    assert [codes[2_750_000, each[0]] for each in (*TABLE, *RESULTS)] == [0] * 4
    assert [codes[850_000, each[0]] for each in RESULTS] == [0, 0]


def test_what_cannot_be_loaded_under_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = ImportError("Numba needs NumPy 2.3 or less.")
    assert explain(numba, [])[0] == 70
    monkeypatch.setattr(resource, "getrlimit", lambda _: (3_000_000 * 1024, -1))
    for error in (numba, MemoryError(), OSError(12, "Cannot allocate memory")):
        code, said = explain(error, [])
        assert (code, "3,000,000 KB of address space" in said) == (2, True)
    assert explain(ModuleNotFoundError("No module named 'x'"), [])[0] == 70
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    check_address_space(table=False)
    with pytest.raises(MutandisError, match="needs 3,300,000 KB on 8 cores"):
        check_address_space()
