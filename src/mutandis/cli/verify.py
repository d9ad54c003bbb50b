"""`mutandis verify`: whether results are what was written, and whether they come out again."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from mutandis.cli.progress import progress_bars
from mutandis.cli.render import invocation
from mutandis.cli.run import collected_notes, run_with_bars
from mutandis.cli.terminal import echo
from mutandis.files.verification import verify_results

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.files.verification import Verification

__all__ = ["run_verify"]


def run_verify(
    folder: Path,
    *,
    rerun: bool,
    key: Path | None,
    base: Path | None,
    trust_code: bool,
    threads: int | None,
    as_json: bool,
) -> int:
    """Compare hashes, and numbers if asked to; give the exit code."""
    with collected_notes():
        found = verify_results(
            folder,
            rerun=rerun,
            key=key,
            base=base,
            trust_code=trust_code,
            run=partial(_run, threads=threads),
        )
    if as_json:
        echo(json.dumps(found.as_dict(), indent=2))
    else:
        _show(folder, found, key)
    return 1 if found.differences else 0


def _run(plan: Plan, *, threads: int | None) -> Audit:
    found = run_with_bars(plan, threads=threads)
    with progress_bars() as bar:
        found.measure_noise_floor(bar("Running placebo audits"))
    return found


def _show(folder: Path, found: Verification, key: Path | None) -> None:
    if found.differences:
        echo(f"{folder} differs from what was written:")
        for each in found.differences:
            echo(f"  {each}")
    else:
        echo(f"{folder}: all {found.files} files are as they were written.")
        if found.rerun:
            echo("A rerun gives the same findings, report and case files, bit for bit.")
        if key is not None:
            echo(f"They are signed with {key}.")
    if found.source == "not reachable":
        echo("The source cannot be reached from here and was not checked.")
    elif not found.differences:
        echo("The source is the table that was audited.")
    _show_next(folder, found)


def _show_next(folder: Path, found: Verification) -> None:
    if found.differences:
        return
    if not found.rerun:
        echo(f"Next, to see whether they come out again: {invocation()} verify {folder} --rerun")
    else:
        echo(f"Next: {invocation()} explore {folder}")
