"""`mutandis audit`: from an audit file to a folder of results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mutandis.cli.progress import progress_bars
from mutandis.cli.render import counts_table, invocation, show_headline, summary_of
from mutandis.cli.run import collected_notes, run_with_bars, show_notes
from mutandis.cli.terminal import echo, make_console
from mutandis.files.audit_file import read_plan
from mutandis.files.output_folder import check_output
from mutandis.files.results_folder import REPORT, is_audit_folder
from mutandis.files.saved_audit import save_audit
from mutandis.files.signature import read_signing_key

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.auditing.audit import Audit

__all__ = ["run_audit"]


def run_audit(
    config: Path,
    out: Path,
    *,
    force: bool,
    sign: Path | None,
    trust_code: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Check everything, run, write the folder, and print the counts."""
    key = None if sign is None else read_signing_key(sign)
    check_output(out, replace=force, known=is_audit_folder)
    with collected_notes() as notes:
        found = run_with_bars(read_plan(config, trust_code=trust_code), threads=threads)
        with progress_bars() as bar:
            found.measure_noise_floor(bar("Running placebo audits"))
            found.measure_worldviews(bar("Auditing under worldviews"))
            if found.plan.settings.uncertainty.tipping:
                found.measure_tipping(progress=bar("Trying parts of the effect"))
            save_audit(
                found, out, overwrite=force, key=key, notes=notes(), progress=bar("Comparing")
            )
    show_notes(notes())
    if as_json:
        echo(json.dumps(summary_of(found), indent=2))
    else:
        _show(found, out)


def _show(found: Audit, out: Path) -> None:
    settings = found.plan.settings
    beyond = settings.measure.condition(settings.tau, worse=settings.worse)
    console = make_console()
    show_headline(console, found)
    console.print(
        counts_table(
            found,
            f"Complainants with evidence: {beyond}\n"
            f"(* significant: one-sided test, α = {100 * settings.alpha:g} %; adjusted: for their "
            "number)",
        )
    )
    console.print(
        "Evidence is prima facie, and given the worldview: it is no proof.\n",
        highlight=False,
    )
    console.print(f"{out / REPORT}", highlight=False, markup=False, soft_wrap=True)
    for next_step in (
        f"Look into it in a browser: {invocation()} explore {out}",
        f"One person's case file: {invocation()} case {out} ID (ids are in the report).",
    ):
        console.print(next_step, highlight=False, markup=False, soft_wrap=True)
