"""A folder that appears whole or not at all, whichever system call fails."""

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
from mutandis.store.output_folder import check_output, exchange_names, recover_output
from mutandis.store.output_folder import output_folder as open_output
from mutandis.store.results_folder import find_differences, read_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def is_result(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} == {"result"}


def write(
    target: Path, text: str, *, replace: bool = False, then: Callable[[], None] = lambda: None
) -> None:
    with open_output(target, replace=replace, known=is_result) as folder:
        (folder / "result").write_text(text, encoding="utf-8")
        then()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def text_of(target: Path) -> str:
    return (target / "result").read_text(encoding="utf-8")


@pytest.fixture(params=["exchange", "two renames"])
def swap(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "two renames":
        monkeypatch.setattr(output_folder, "exchange_names", lambda first, second: False)
    return str(request.param)


def test_names_are_exchanged(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    (first / "one").touch()
    if not exchange_names(first, second):
        pytest.skip("this file system cannot exchange names")
    assert (names(first), names(second)) == ([], ["one"])


def test_an_exchange_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(FileNotFoundError):
        exchange_names(tmp_path / "there", tmp_path / "absent")

    def refuse(first: bytes, second: bytes) -> int:
        ctypes.set_errno(errno.ENOSYS)
        return -1

    for call in (refuse, None):
        monkeypatch.setattr(output_folder, "_exchange_call", lambda call=call: call)
        assert exchange_names(tmp_path / "a", tmp_path / "b") is False


def test_the_folder_appears_at_the_end_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with open_output(target, replace=False, known=is_result) as folder:
        (folder / "result").write_text("new", encoding="utf-8")
        assert not target.exists()
        assert folder.parent == tmp_path
    assert names(tmp_path) == ["out"]
    assert text_of(target) == "new"


def test_an_older_result_is_replaced_only_on_request(tmp_path: Path, swap: str) -> None:
    target = tmp_path / "out"
    write(target, "old")
    with pytest.raises(OutputError, match="holds results already"):
        write(target, "new")
    assert text_of(target) == "old"
    write(target, "new", replace=True)
    assert text_of(target) == "new"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("replace", [True, False])
def test_targets_that_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replace: bool
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "mounted").mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: path.name == "mounted")
    for name, message in {
        "": "did not write",
        "file": "is a file",
        "file/deeper": "cannot hold a folder",
        "mounted": "Name a folder inside it",
    }.items():
        with pytest.raises(OutputError, match=message):
            write(tmp_path / name, "new", replace=replace)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(OutputError, match="permission is denied"):
        check_output(tmp_path / "out", replace=replace, known=is_result)
    assert names(tmp_path) == ["file", "mounted"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write(tmp_path / "out", "new")
    assert text_of(tmp_path / "out") == "new"


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path, swap: str) -> None:
    write(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", "new", replace=True)
    assert (tmp_path / "link").is_symlink()
    assert text_of(tmp_path / "real") == "new"


def test_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    target = tmp_path / ("ä" * 127)
    write(target, "old")
    write(target, "new", replace=True)
    assert text_of(target) == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_whatever_ends_the_block_leaves_the_old_result(
    tmp_path: Path, error: type[BaseException]
) -> None:
    target = tmp_path / "out"
    write(target, "old")

    def end() -> None:
        raise error

    with pytest.raises(error):
        write(target, "half", replace=True, then=end)
    assert text_of(target) == "old"
    assert names(tmp_path) == ["out"]


def test_folders_above_are_made_and_removed_again_on_failure(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "out"
    with pytest.raises(ValueError, match="no"), open_output(target, replace=False, known=is_result):
        raise ValueError("no")
    assert names(tmp_path) == []
    write(target, "new")
    assert text_of(target) == "new"


def test_what_appears_in_the_meantime_is_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with pytest.raises(OutputError, match="holds results already"):
        write(target, "slow", then=lambda: write(target, "fast"))
    assert text_of(target) == "fast"
    assert names(tmp_path) == ["out"]


def test_two_renames_put_the_old_result_back_if_the_second_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pathlib import Path as AnyPath

    target = tmp_path / "out"
    write(target, "old")
    monkeypatch.setattr(output_folder, "exchange_names", lambda first, second: False)
    rename = AnyPath.rename

    def fail_once(self: Path, to: Path) -> Path:
        if to == target and not self.name.endswith(".old"):
            raise OSError(errno.EIO, "broken")
        return rename(self, to)

    monkeypatch.setattr(AnyPath, "rename", fail_once)
    with pytest.raises(OutputError, match="broken"):
        write(target, "new", replace=True)
    assert text_of(target) == "old"
    assert names(tmp_path) == ["out"]


def test_leftovers_of_dead_runs_are_removed_and_those_of_living_ones_kept(tmp_path: Path) -> None:
    dead = tmp_path / f".mutandis-{'0' * 12}-{'1' * 16}"
    dead.mkdir()
    (dead / "half").touch()
    similar = tmp_path / ".mutandis-settings"
    similar.mkdir()
    with open_output(tmp_path / "other", replace=False, known=is_result) as living:
        (living / "result").touch()
        write(tmp_path / "out", "new")
        assert living.exists()
    assert names(tmp_path) == [".mutandis-settings", "other", "out"]


def test_a_leftover_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from mutandis.store.output_folder import output_folder\n"
        "with output_folder(Path(sys.argv[1]), replace=False, known=lambda f: True):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "out")]
    assert subprocess.run(command, check=False).returncode == -9  # noqa: S603
    assert len(names(tmp_path)) == 1
    recover_output(tmp_path / "out")
    assert names(tmp_path) == []


def test_an_old_result_that_stepped_aside_comes_back(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, "old")
    aside = tmp_path / f"{output_folder._stem(target)}{'1' * 16}.old"
    target.rename(aside)
    # it belongs to this target, and nobody else may touch it
    recover_output(tmp_path / "other")
    assert names(tmp_path) == [aside.name]
    with pytest.raises(OutputError, match="holds results already"):
        check_output(target, replace=False, known=is_result)
    assert text_of(target) == "old"
    assert names(tmp_path) == ["out"]


def test_an_old_result_that_was_replaced_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, "new")
    aside = tmp_path / f"{output_folder._stem(target)}{'1' * 16}.old"
    aside.mkdir()
    recover_output(target)
    assert names(tmp_path) == ["out"]
    assert text_of(target) == "new"


# --- every call fails in turn ---------------------------------------------------------------------

CALLS = ["open", "close", "mkdir", "rename", "replace", "fsync", "listdir", "scandir", "rmdir"]
CALLS += ["unlink", "stat", "lstat"]


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


def is_whole(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} == {"result", "more"}


def write_two(target: Path, text: str) -> None:
    with open_output(target, replace=True, known=is_whole) as folder:
        (folder / "result").write_text(text, encoding="utf-8")
        (folder / "more").mkdir()
        (folder / "more" / "result").write_text(text, encoding="utf-8")


def text_of_two(target: Path) -> str | None:
    """Return the text of whole results; None if there are none, and an error if they are half."""
    if not target.exists():
        return None
    assert text_of(target) == text_of(target / "more")
    return text_of(target)


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
            write_two(target, before)
        with monkeypatch.context() as patched:
            faults = Faults(patched, fail_at, code)
            told = None
            try:
                write_two(target, "new")
            except OutputError as error:
                told = str(error)
        where = f"{faults.made[-1]}, call {fail_at} of {len(faults.made)}: {told}"
        found = text_of_two(target)
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
        assert text_of_two(target) == found, where
        if len(faults.made) < fail_at:
            break
        seen.append(faults.made[fail_at - 1])
    assert {"open", "mkdir", "fsync", "rename"} - set(seen) <= {"rename"}
    assert fail_at < 199, "the calls have no end"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
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
