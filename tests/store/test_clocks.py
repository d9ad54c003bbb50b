"""Clocks that are wrong, and dates of files: nothing depends on them."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm
from mutandis.store import output_folder, saved_audit

if TYPE_CHECKING:
    from pathlib import Path

PAST, FUTURE = datetime(1960, 1, 1, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC)


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    shutil.copytree(written, tmp_path / "copy")
    return tmp_path / "copy"


def set_clock(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return moment.astimezone(tz)

    monkeypatch.setattr(saved_audit, "datetime", Clock)


def set_dates(folder: Path, moment: datetime) -> None:
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (moment.timestamp(), moment.timestamp()))


@pytest.mark.parametrize(("then", "now"), [(FUTURE, PAST), (PAST, FUTURE)], ids=["back", "on"])
def test_a_clock_that_was_set_between_audit_and_verify(
    folder: Path, monkeypatch: pytest.MonkeyPatch, then: datetime, now: datetime
) -> None:
    out = folder / "out"
    set_clock(monkeypatch, then)
    mm.read_plan(folder / "audit.yaml").run().save(out, overwrite=True)
    assert str(then.year) in (out / "audit.json").read_text("utf-8")
    set_clock(monkeypatch, now)
    mm.save_case(out, "Anna", pdf=False)
    found = mm.verify_results(out, rerun=True)
    assert (found.differences, found.source) == ((), "same")


@pytest.mark.parametrize("moment", [PAST, FUTURE], ids=["past", "future"])
def test_dates_of_files(folder: Path, moment: datetime) -> None:
    out = folder / "out"
    left = folder / f"{output_folder._stem(out)}{'0' * 16}"
    left.mkdir()
    set_dates(folder, moment)
    assert mm.verify_results(out).differences == ()
    mm.save_case(out, "Anna", pdf=False)
    # what a dead run has left goes, whatever its date
    assert not left.exists()
    mm.read_plan(folder / "audit.yaml").run().save(out, overwrite=True)
    assert mm.verify_results(out).differences == ()
