from __future__ import annotations

import errno
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mutandis.errors import OutputError
from mutandis.store import output_folder
from mutandis.store.output_folder import check_output, exchange_names, recover_output
from mutandis.store.output_folder import output_folder as open_output

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


def test_an_exchange_that_fails_for_another_reason_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(FileNotFoundError):
        exchange_names(tmp_path / "there", tmp_path / "absent")


def test_a_system_that_knows_no_exchange_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(first: bytes, second: bytes) -> int:
        import ctypes

        ctypes.set_errno(errno.ENOSYS)
        return -1

    monkeypatch.setattr(output_folder, "_exchange_call", lambda: refuse)
    assert exchange_names(tmp_path / "a", tmp_path / "b") is False
    monkeypatch.setattr(output_folder, "_exchange_call", lambda: None)
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
def test_a_folder_of_somebody_else_is_never_replaced(tmp_path: Path, replace: bool) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(OutputError, match="did not write"):
        write(tmp_path, "new", replace=replace)
    assert names(tmp_path) == ["thesis.tex"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(OutputError, match="is a file"):
        write(tmp_path / "out", "new", replace=True)
    with pytest.raises(OutputError, match="cannot hold a folder"):
        write(tmp_path / "out" / "deeper", "new")


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


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match="No space left on device"),
        open_output(tmp_path / "out", replace=False, known=is_result),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert names(tmp_path) == []


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


def test_a_place_where_nothing_can_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(OutputError, match="permission is denied"):
        check_output(tmp_path / "out", replace=False, known=is_result)


def test_a_mounted_volume_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: True)
    with pytest.raises(OutputError, match="Name a folder inside it"):
        write(tmp_path / "out", "new")
