from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import mutandis as mm
from mutandis.cli.terminal import progress_bars

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CONFIG = """\
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous}
ks: [3]
"""


def test_programs_see_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars() as bar:
        advance = bar("Searching")
        for done in range(4):
            advance(done, 3)
    assert capsys.readouterr() == ("", "")


def test_people_see_a_bar_on_stderr_and_stdout_stays_clean(tmp_path: Path) -> None:
    mm.datasets.loan(n=60, seed=1).to_csv(tmp_path / "loan.csv", index=False)
    (tmp_path / "audit.yaml").write_text(CONFIG, encoding="utf-8")
    command = ["audit", str(tmp_path / "audit.yaml"), "--out", str(tmp_path / "out"), "--json"]
    leader, follower = pty.openpty()
    done = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "mutandis", *command],
        stdout=subprocess.PIPE,
        stderr=follower,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:  # what Linux says at the end
            break
        if not part:
            break
        seen += part
    os.close(leader)
    out, _ = done.communicate(timeout=60)
    assert done.returncode == 0
    assert "Searching" in seen.decode()
    assert "left" in seen.decode()
    assert out.startswith("{\n")
    assert "Searching" not in out
