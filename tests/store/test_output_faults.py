"""Every system call of the swap fails in turn: the results stay whole, and the message is true."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm
from mutandis.errors import OutputError
from mutandis.store import output_folder, saved_audit
from mutandis.store.files import write_atomically
from mutandis.store.output_folder import output_folder as open_output
from mutandis.store.output_folder import recover_output
from mutandis.store.results_folder import find_differences, read_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CALLS = [
    "open",
    "close",
    "mkdir",
    "rename",
    "replace",
    "fsync",
    "listdir",
    "scandir",
    "rmdir",
    "unlink",
    "stat",
    "lstat",
]
CODES = [errno.ENOSPC, errno.EIO]


class Faults:
    """Counts calls of the system, and lets one of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail_at: int, code: int) -> None:
        self.made: list[str] = []
        self._fail_at, self._code = fail_at, code
        for name in CALLS:
            monkeypatch.setattr(os, name, self._failing(name, getattr(os, name)))
        exchange = output_folder._exchange_call()
        if exchange is not None:
            counted = self._failing("exchange", exchange)

            def call(first: bytes, second: bytes) -> int:
                try:
                    return int(counted(first, second))
                except OSError:
                    ctypes.set_errno(code)
                    return -1

            monkeypatch.setattr(output_folder, "_exchange_call", lambda: call)

    def _failing(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            self.made.append(name)
            if len(self.made) != self._fail_at:
                return real(*given, **more)
            if name == "close":
                real(*given, **more)  # the system closes even where it reports an error
            raise OSError(self._code, os.strerror(self._code))

        return call


def is_result(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} == {"result", "more"}


def write(target: Path, text: str) -> None:
    with open_output(target, replace=True, known=is_result) as folder:
        (folder / "result").write_text(text, encoding="utf-8")
        (folder / "more").mkdir()
        (folder / "more" / "result").write_text(text, encoding="utf-8")


def text_of(target: Path) -> str | None:
    """Give the text of whole results; None if there are none, and an error if they are half."""
    if not target.exists():
        return None
    first, second = target / "result", target / "more" / "result"
    assert first.read_text(encoding="utf-8") == second.read_text(encoding="utf-8")
    return first.read_text(encoding="utf-8")


@pytest.mark.parametrize("before", ["old", None])
@pytest.mark.parametrize(
    ("swap", "code"), [("exchange", errno.ENOSPC), ("two renames", errno.EIO)], ids=["one", "two"]
)
def test_every_call_fails_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swap: str, before: str | None, code: int
) -> None:
    target = tmp_path / "out"
    monkeypatch.setattr(os, "fsync", lambda file: None)  # counted below; the disk is not needed
    if swap == "two renames":
        monkeypatch.setattr(output_folder, "exchange_names", lambda first, second: False)
    seen = []
    for fail_at in range(1, 200):
        if target.exists():
            shutil.rmtree(target)
        if before is not None:
            write(target, before)
        with monkeypatch.context() as patched:
            faults = Faults(patched, fail_at, code)
            told = None
            try:
                write(target, "new")
            except OutputError as error:
                told = str(error)
        where = f"{faults.made[-1]}, call {fail_at} of {len(faults.made)}: {told}"
        found = text_of(target)
        assert found in (before, "new"), where
        # what is said is true
        if told is None:
            assert found == "new", where
        else:
            assert ("Nothing there has changed" in told) == (found == before), where
        recover_output(target)
        assert [path.name for path in tmp_path.iterdir()] == ([] if found is None else ["out"]), (
            where
        )
        assert text_of(target) == found, where
        if len(faults.made) < fail_at:
            break
        seen.append(faults.made[fail_at - 1])
    assert {"open", "mkdir", "fsync", "rename"} - set(seen) <= {"rename"}
    assert fail_at < 199, "the calls have no end"


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_a_single_file_is_whole_or_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    target = tmp_path / "case.html"
    for fail_at in range(1, 50):
        target.write_text("old", encoding="utf-8")
        with monkeypatch.context() as patched:
            faults = Faults(patched, fail_at, code)
            told = None
            try:
                write_atomically(target, "new")
            except OutputError as error:
                told = str(error)
        expected = "new" if told is None else "old"
        assert target.read_text(encoding="utf-8") == expected, faults.made
        for left in tmp_path.glob(".mutandis-*"):  # only where removing it failed
            assert faults.made[fail_at - 1] == "unlink"
            left.unlink()
        assert [path.name for path in tmp_path.iterdir()] == ["case.html"]
        if len(faults.made) < fail_at:
            return
    pytest.fail("the calls have no end")


@pytest.fixture(scope="module")
def audit() -> mm.Audit:
    return mm.audit(
        mm.datasets.loan(n=60, seed=1),
        outcome="LoanApproval",
        negative=-1,
        protected=mm.Protection("Gender", value=1, reference=0),
        attributes={"AnnualSalary": "continuous"},
        ks=(2,),
    )


STEPS = ("write_findings", "write_csv", "_write_report", "_write_state", "write_record")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "fault",
    [MemoryError(), OSError(errno.ENOSPC, "No space left on device")],
    ids=["memory", "disk"],
)
def test_a_step_that_fails_leaves_the_old_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, audit: mm.Audit, step: str, fault: Exception
) -> None:
    from mutandis.report.report import Report

    monkeypatch.setattr(mm.Audit, "report", lambda self, **more: Report(html="<p>", plots={}))
    target = tmp_path / "out"
    audit.save(target)
    real = getattr(saved_audit, step)

    def fail(*given: Any, **more: Any) -> None:
        real(*given, **more)
        raise fault

    monkeypatch.setattr(saved_audit, step, fail)
    with pytest.raises((MemoryError, OutputError)):
        audit.save(target, overwrite=True)
    assert find_differences(read_record(target)) == []
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


PROGRAM = """
import resource, sys
import mutandis as mm
from mutandis.report.report import Report

table = mm.datasets.loan(n=400, seed=1)
found = mm.audit(table, outcome="LoanApproval", negative=-1, ks=(2, 3), id=None,
    protected=mm.Protection("Gender", value=1, reference=0),
    attributes={"AnnualSalary": "continuous"})
mm.Audit.report = lambda self, **more: Report(html="<p>" * 30_000, plots={})
found.save(sys.argv[1])
for most in (0, 1_000, 5_000, 20_000, 50_000, 80_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    try:
        found.save(sys.argv[1], overwrite=True)
    except mm.MutandisError as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        assert "Nothing there has changed" in str(error), error
        assert not mm.verify_results(sys.argv[1]).differences
        print(most)
"""


@pytest.mark.slow
def test_files_that_may_not_grow_leave_the_old_results(tmp_path: Path) -> None:
    # the system writes a part of what it is given, and then refuses
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path / "out")],
        capture_output=True,
        check=False,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "1000", "5000", "20000", "50000", "80000"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["audit.json", "audit.npz"])
def test_a_file_that_ends_early_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, audit: mm.Audit, name: str
) -> None:
    from mutandis.report.report import Report

    monkeypatch.setattr(mm.Audit, "report", lambda self, **more: Report(html="<p>", plots={}))
    audit.save(tmp_path / "out")
    whole = (tmp_path / "out" / name).read_bytes()
    for part in range(20):
        (tmp_path / "out" / name).write_bytes(whole[: len(whole) * part // 20])
        with pytest.raises(OutputError, match="damaged"):
            mm.open_results(tmp_path / "out")
