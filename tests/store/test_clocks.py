"""Clocks that are wrong, and dates of files: nothing depends on them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm
from mutandis.store import output_folder, saved_audit

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """\
data: {source: loan.csv, id: id}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous}
ks: [3]
"""
PAST, FUTURE = datetime(1960, 1, 1, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clocks")
    table = mm.datasets.loan(n=60, seed=1).sort_values("Gender")
    table.insert(0, "id", range(60))
    table.to_csv(folder / "loan.csv", index=False)
    (folder / "audit.yaml").write_text(CONFIG, encoding="utf-8")
    return folder


def set_clock(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return moment.astimezone(tz)

    monkeypatch.setattr(saved_audit, "datetime", Clock)


def set_dates(folder: Path, moment: datetime) -> None:
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (moment.timestamp(), moment.timestamp()))


@pytest.mark.parametrize(("written", "read"), [(FUTURE, PAST), (PAST, FUTURE)], ids=["back", "on"])
def test_a_clock_that_was_set_between_audit_and_verify(
    folder: Path, monkeypatch: pytest.MonkeyPatch, written: datetime, read: datetime
) -> None:
    out = folder / "out"
    set_clock(monkeypatch, written)
    mm.read_plan(folder / "audit.yaml").run().save(out, overwrite=True)
    assert str(written.year) in (out / "audit.json").read_text("utf-8")
    set_clock(monkeypatch, read)
    mm.save_case(out, 59)
    found = mm.verify_results(out, rerun=True)
    assert (found.differences, found.source) == ((), "same")


@pytest.mark.parametrize("moment", [PAST, FUTURE], ids=["past", "future"])
def test_dates_of_files(folder: Path, moment: datetime) -> None:
    out = folder / "out"
    mm.read_plan(folder / "audit.yaml").run().save(out, overwrite=True)
    left = folder / f"{output_folder._stem(out)}{'0' * 16}"
    left.mkdir()
    set_dates(folder, moment)
    assert mm.verify_results(out).differences == ()
    mm.save_case(out, 59)
    # what a dead run has left goes, whatever its date
    assert not left.exists()
    mm.read_plan(folder / "audit.yaml").run().save(out, overwrite=True)
    assert mm.verify_results(out).differences == ()
