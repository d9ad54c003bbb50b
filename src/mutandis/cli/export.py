"""`mutandis export`: the complainants of a saved audit as a file for a spreadsheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.cli.terminal import echo
from mutandis.files.saved_audit import open_results

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["run_export"]


def run_export(folder: Path, out: Path, *, method: str | None, k: int | None) -> None:
    """Open the results, and write the file."""
    audit = open_results(folder)
    chosen, size = audit.plan.choose(method, k)
    audit.export(out, chosen.name, k=size)
    people = len(audit.situation.complainants)
    echo(f"{people:,} complainants, {chosen.title} with k = {size}: {out}")
    echo("The file holds personal data: everyone's id, attributes and outcome.")
