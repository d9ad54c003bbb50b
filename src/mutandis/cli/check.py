"""`mutandis check`: everything short of the search, and what the data say about the worldview."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from mutandis.cli.run import collected_notes, show_notes
from mutandis.files.audit_file import read_plan

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.causal import Diagnosis

__all__ = ["run_check"]

_SENTENCES = 20


def run_check(path: Path, *, trust_pickle: bool, full: bool, as_json: bool) -> None:
    """Read the file and its table, check every setting, and try worldview and decision maker."""
    with collected_notes() as notes:
        found = read_plan(path, trust_pickle=trust_pickle).check()
    if as_json:
        typer.echo(json.dumps({**found.as_dict(), "notes": notes()}, indent=2, ensure_ascii=False))
        return
    show_notes(notes())
    typer.echo("\n".join(found.sentences()))
    if found.worldview is not None:
        _show_diagnosis(found.worldview, full=full)


def _show_diagnosis(diagnosis: Diagnosis, *, full: bool) -> None:
    """Show what was found, problems first; of much, the beginning."""
    sentences = diagnosis.sentences()
    shown = sentences if full or len(sentences) <= 2 * _SENTENCES else sentences[:_SENTENCES]
    typer.echo("\nWhat the table says about the worldview:")
    typer.echo("\n".join(shown))
    if len(shown) < len(sentences):
        more = len(sentences) - len(shown)
        typer.echo(f"… and {more} further sentences, which `mutandis check --full` prints.")
