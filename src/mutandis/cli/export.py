"""`mutandis export`: a saved audit as a file for a spreadsheet, or as a text."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from mutandis.auditing.impact_ratios import compute_impact_ratios
from mutandis.cli.render import invocation
from mutandis.cli.terminal import echo
from mutandis.files.people_file import write_people
from mutandis.files.saved_audit import open_results
from mutandis.files.text_files import write_atomically
from mutandis.report.compliance import write_compliance

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["run_counts", "run_export", "run_impact_ratios", "run_text"]


def run_export(folder: Path, out: Path, *, method: str | None, k: int | None) -> None:
    """Open the results, and write one row per complainant."""
    audit = open_results(folder)
    chosen, size = audit.plan.choose(method, k)
    audit.export(out, chosen.name, k=size)
    people = len(audit.situation.complainants)
    echo(f"{people:,} complainants, {chosen.title} with k = {size}: {out}")
    echo("The file holds personal data: everyone's id, attributes and outcome.")
    echo(f"Next, one person's case file: {invocation()} case {folder} ID")


def run_counts(folder: Path, out: Path) -> None:
    """Open the results, and write the counts of all methods and group sizes."""
    open_results(folder).export(out, table="counts")
    echo(f"The counts of all methods and group sizes: {out}")
    echo(f"Next, one row per complainant: {invocation()} export {folder} people{out.suffix}")


def run_impact_ratios(
    folder: Path,
    out: Path,
    *,
    by: list[str] | None,
    unknown: list[str] | None,
    leave_out_below: float,
    score: str | None,
) -> None:
    """Open the results, and write rates and impact ratios of whole groups."""
    audit = open_results(folder)
    rows = compute_impact_ratios(
        audit,
        by=by or None,
        unknown=unknown or (),
        leave_out_below=leave_out_below,
        score=score,
    )
    columns = {name: [row.as_row()[name] for row in rows] for name in rows[0].as_row()}
    write_people(out, columns)
    ratios = [row for row in rows if row.impact_ratio is not None]
    below = sum(row.impact_ratio < Fraction(4, 5) for row in ratios if row.impact_ratio is not None)
    echo(f"{len(ratios)} categories with an impact ratio, {below} of them below four fifths: {out}")
    echo("It compares whole groups, and is no part of situation testing; no legal advice.")


def run_text(folder: Path, out: Path, kind: str) -> None:
    """Open the results, and write a text in Markdown."""
    write_atomically(out, write_compliance(open_results(folder), kind))
    echo(f"{out}")
    echo("It states what the audit found; it is not legal advice.")
