"""What people read is what was written: the report, case files, and what a rerun gives."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.errors import OutputError
from mutandis.report import case_file
from mutandis.report.html import pdf_unavailable
from mutandis.store import output_folder, results_folder
from mutandis.store.files import hash_file
from mutandis.store.results_folder import is_audit_folder, write_record, write_sums

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HTML = "cases/Anna.html"


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def differences(folder: Path, **options: Any) -> tuple[str, ...]:
    return mm.verify_results(folder, **options).differences


@pytest.fixture
def out(written: Path, tmp_path: Path) -> Path:
    shutil.copytree(written, tmp_path / "copy")
    return tmp_path / "copy" / "out"


def change(path: Path) -> None:
    path.write_text(path.read_text("utf-8").replace("%", "0%", 1), encoding="utf-8")


def replace_by_link(path: Path) -> None:
    elsewhere = path.rename(path.parents[2] / path.name)
    path.symlink_to(elsewhere)


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


LINK = "is a link or a pipe, and not the file that was written"
CHANGES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "a percentage": (HTML, change, f"{HTML} is not what was written"),
    "the report": ("report.html", change, "report.html is not what was written"),
    "no page": (HTML, lambda path: path.unlink(), f"{HTML} is missing"),
    "a link": (HTML, replace_by_link, f"{HTML} {LINK}"),
    "a link to the report": ("report.html", replace_by_link, f"report.html {LINK}"),
    "a pipe": (HTML, replace_by_pipe, f"{HTML} {LINK}"),
    "a further page": (
        "cases/Berta.html",
        lambda path: path.write_text("<p>"),
        "cases/Berta.html was not written by `mutandis case`",
    ),
    "a further link": (
        "cases/.DS_Store",
        lambda path: path.symlink_to("/etc/passwd"),
        "cases/.DS_Store is a link, which mutandis does not write",
    ),
    "a signature that is a link": (
        "audit.json.sig",
        lambda path: path.symlink_to("report.html"),
        f"audit.json.sig {LINK}",
    ),
    "an unreadable record of cases": (
        "cases/SHA256SUMS",
        lambda path: path.write_bytes(b"\xff"),
        "cases/SHA256SUMS is not a record of case files, or has been damaged",
    ),
    "a record that points outside": (
        "cases/SHA256SUMS",
        lambda path: path.write_text(f"{path.read_text()}{'0' * 64}  ../../loan.csv\n"),
        "cases/SHA256SUMS is not a record of case files, or has been damaged",
    ),
    "another audit": (
        "cases/SHA256SUMS",
        lambda path: path.write_text("0" * 64 + path.read_text()[64:]),
        "cases/SHA256SUMS belongs to another audit.json",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_named(out: Path, name: str) -> None:
    file, spoil, expected = CHANGES[name]
    spoil(out / file)
    assert expected in differences(out)
    result = run("verify", out)
    assert result.exit_code == 1
    assert expected in result.output


def test_a_folder_of_cases_that_is_a_link(out: Path) -> None:
    (out / "cases").rename(out.parent / "elsewhere")
    (out / "cases").symlink_to(out.parent / "elsewhere")
    assert differences(out) == ("cases is a link, which mutandis does not write",)


def test_nothing_but_what_was_changed_is_named(out: Path) -> None:
    number = len([path for path in out.rglob("*") if path.is_file()])
    assert mm.verify_results(out).files == number
    change(out / HTML)
    assert differences(out) == (f"{HTML} is not what was written",)
    # a whole case, with all its files
    for path in (out / "cases").glob("Anna.*"):
        path.unlink()
    assert {each.rpartition(" is ")[2] for each in differences(out)} == {"missing"}
    # another case does not hide it, the same one mends it
    mm.save_case(out, "Éva / 7", pdf=False)
    assert f"{HTML} is missing" in differences(out)
    mm.save_case(out, "Anna", pdf=False)
    assert differences(out) == ()


def test_older_results_are_replaced_with_their_cases_and_nothing_else(out: Path) -> None:
    config = out.parent / "audit.yaml"
    (out / "cases" / "notes.txt").touch()
    assert isinstance(run("audit", config, "--out", out, "--force").exception, OutputError)
    (out / "cases" / "notes.txt").unlink()
    (out / "audit.json.sig").touch()
    output_folder.check_output(out, replace=True, known=is_audit_folder)


@pytest.mark.slow
def test_a_rerun_gives_everything_again(out: Path) -> None:
    can_print = pdf_unavailable() is None
    mm.save_case(out, "Anna", pdf=can_print)
    assert (out / "cases" / "Anna.pdf").exists() == can_print
    result = run("verify", out, "--rerun")
    assert result.exit_code == 0, (result.output, result.exception)
    assert "the same findings, report and case files, bit for bit" in result.output


def forge(out: Path, **changes: Any) -> None:
    """Change the record, and give all files hashes that fit."""
    data = json.loads((out / "audit.json").read_text("utf-8"))
    sums = {
        path.name: hash_file(path)
        for path in (out / "cases").iterdir()
        if path.suffix in {".html", ".json", ".pdf"}
    }
    for derived in ("format", "version", "outputs", "sha256"):
        del data[derived]
    (out / "audit.json").unlink()
    shutil.move(out / "cases", out.parent / "cases")
    write_record(out, data | changes)
    shutil.move(out.parent / "cases", out / "cases")
    write_sums(out / "cases", out / "audit.json", sums)


def test_a_rerun_finds_what_was_changed_with_hashes_that_fit(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = json.loads((out / "audit.json").read_text("utf-8"))
    data["provenance"]["versions"]["numpy"] = "1.0"
    data["provenance"]["computed"]["moved"] = []
    data["diagnostics"]["checks"] = []
    change(out / "report.html")
    change(out / HTML)
    shutil.copy(out / HTML, out / "cases" / "Berta.html")
    picture = min((out / "plots").iterdir())
    picture.unlink()
    # what was counted, compressed in another way, is the same
    with np.load(out / "audit.npz") as stored:
        arrays = dict(stored)
    np.savez(out / "audit.npz", **arrays)
    forge(out, **{name: data[name] for name in ("provenance", "diagnostics")})
    assert differences(out) == ()
    # a PDF that cannot be made again has not been compared
    (out / "cases" / "Anna.pdf").write_bytes(b"%PDF")
    forge(out)
    monkeypatch.setattr("mutandis.report.html._weasyprint", _absent)
    redacted = f"{results_folder.case_name('Éva / 7')}.redacted"
    assert differences(out, rerun=True) == (
        f"numpy is {np.__version__} here, and was 1.0",
        "a rerun gives other diagnostics in audit.json",
        "a rerun gives other provenance in audit.json",
        f"a rerun gives another plots/{picture.name}",
        "a rerun gives another report.html",
        f"a rerun gives another {HTML}",
        # these print the versions
        "a rerun gives another cases/Anna.json",
        "cases/Anna.pdf was not compared: no WeasyPrint",
        "cases/Berta.html is about no complainant of this audit",
        f"a rerun gives another cases/{redacted}.html",
        f"a rerun gives another cases/{redacted}.json",
    )


def _absent() -> None:
    raise mm.MutandisError("no WeasyPrint")


# --- writing case files ------------------------------------------------------------------------


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


def test_a_file_that_cannot_be_finished_leaves_nothing(out: Path) -> None:
    before = snapshot(out)
    size = (out / HTML).stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # the JSON file still has room, the page has not: like a disk that is full in between
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, hard))
    try:
        result = run("case", out, "Éva / 7", "--no-pdf")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert isinstance(result.exception, OutputError)
    assert "Nothing there has changed" in str(result.exception)
    assert snapshot(out) == before
    assert differences(out) == ()


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize("call", ["chmod", "fsync", "mkdir", "rename"])
def test_a_disk_that_is_full_at_any_call_leaves_nothing(
    out: Path, monkeypatch: pytest.MonkeyPatch, call: str, exchange: bool
) -> None:
    if not exchange:
        monkeypatch.setattr(output_folder, "exchange_names", lambda first, second: False)
    real, made, failing = getattr(os, call), 0, 0

    def counted(*given: Any, **more: Any) -> Any:
        nonlocal made
        made += 1
        if made == failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*given, **more)

    monkeypatch.setattr(os, call, counted)
    contents = {"Zoe.html": "<p>", "Zoe.json": "{}"}
    made_from = hash_file(out / "audit.json")
    results_folder.write_case_files(out, contents, made_from=made_from)
    # the last ones follow the swap
    needed = made - (1 + (not exchange)) * (call == "fsync")
    assert needed or (call == "rename" and exchange)
    before = snapshot(out)
    for failing in range(1, needed + 1):  # noqa: B007 - read by the function above
        made = 0
        with suppress(OutputError):
            changed = {**contents, "Zoe.json": "[]"}
            results_folder.write_case_files(out, changed, made_from=made_from)
            before = snapshot(out)  # making a folder that is there may fail
        assert snapshot(out) == before
    assert json.loads(before["cases/Zoe.json"]) == ([] if call == "mkdir" else {})


def test_a_folder_without_links_takes_copies(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    (out / "cases").chmod(0o700)
    mm.save_case(out, "Éva / 7", pdf=False)
    assert differences(out) == ()
    assert (out / "cases").stat().st_mode & 0o777 == 0o700


def test_what_a_dead_process_has_left_goes(out: Path) -> None:
    left = out / f"{output_folder._stem(out / 'cases')}{'0' * 16}"
    left.mkdir()
    (left / "Anna.html").touch()
    assert differences(out) == ()
    assert not left.exists()


@pytest.mark.parametrize("target", ["file", "folder"])
def test_no_case_is_written_through_a_link(out: Path, tmp_path: Path, target: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    if target == "folder":
        shutil.move(out / "cases", elsewhere)
        (out / "cases").symlink_to(elsewhere)
    else:
        elsewhere.mkdir()
        shutil.move(out / HTML, elsewhere / "Anna.html")
        (out / HTML).symlink_to(elsewhere / "Anna.html")
    before = snapshot(elsewhere)
    result = run("case", out, "Anna", "--no-pdf")
    assert isinstance(result.exception, OutputError)
    assert snapshot(elsewhere) == before


def test_a_case_does_not_get_into_other_results(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace_and_make(*given: Any, **more: Any) -> Any:
        record = out / "audit.json"
        record.write_text(record.read_text("utf-8") + " ", encoding="utf-8")
        return made(*given, **more)

    made = case_file.case_document
    monkeypatch.setattr(case_file, "case_document", replace_and_make)
    before = snapshot(out / "cases")
    with pytest.raises(OutputError, match="were replaced while the case file was made"):
        mm.save_case(out, "Anna", pdf=False)
    assert snapshot(out / "cases") == before


def test_a_disk_that_does_not_confirm_a_case(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def fail_after_the_swap(file: int) -> None:
        real(file)
        if (out / "cases" / "Zoe.html").exists():
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail_after_the_swap)
    with pytest.raises(OutputError, match=r"The new results are in .*cases.* did not confirm") as e:
        results_folder.write_case_files(
            out, {"Zoe.html": "<p>"}, made_from=hash_file(out / "audit.json")
        )
    assert "has changed" not in str(e.value)
    assert (out / "cases" / "Zoe.html").read_text() == "<p>"


def test_one_process_at_a_time(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_folder, "_SECONDS", 0)
    with (
        output_folder.locked_folder(out),
        pytest.raises(OutputError, match="Another process has been working"),
    ):
        mm.save_case(out, "Anna", pdf=False)


@pytest.mark.parametrize("kind", ["link", "dangling link", "folder", "pipe"])
def test_a_draft_replaces_regular_files_alone(tmp_path: Path, kind: str) -> None:
    mm.datasets.loan(n=20, seed=1).to_csv(tmp_path / "loan.csv", index=False)
    target, other = tmp_path / "audit.yaml", tmp_path / "other"
    if kind == "folder":
        target.mkdir()
    elif kind == "pipe":
        os.mkfifo(target)
    else:
        target.symlink_to(other)
        if kind == "link":
            other.write_text("mine")
    mode = target.lstat().st_mode
    result = run("init", tmp_path / "loan.csv", "--out", target, "--force")
    assert isinstance(result.exception, OutputError)
    assert "is not a regular file" in str(result.exception)
    assert target.lstat().st_mode == mode
    assert not other.exists() or other.read_text() == "mine"
