"""`mutandis check`: everything short of the search, and what the data say about the worldview."""

from __future__ import annotations

import json
from textwrap import fill
from typing import TYPE_CHECKING

from mutandis.cli.render import invocation
from mutandis.cli.run import collected_notes, show_notes
from mutandis.cli.terminal import echo
from mutandis.files.audit_file import read_plan

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.scm import Diagnosis

__all__ = ["run_check"]

# of a section with more sentences than the first, the second many are shown
_MANY, _FIRST = 8, 5
_WIDTH = 80


def run_check(path: Path, *, trust_code: bool, full: bool, as_json: bool) -> None:
    """Read the file and its table, check every setting, and try worldview and decision maker."""
    with collected_notes() as notes:
        found = read_plan(path, trust_code=trust_code).check()
    if as_json:
        echo(json.dumps({**found.as_dict(), "notes": notes()}, indent=2))
        return
    show_notes(notes())
    for sentence in found.sentences():
        _show(sentence)
    if found.diagnosis is not None:
        _show_diagnosis(found.diagnosis, full=full)
    echo(f"Run the audit: {invocation()} audit {path}")


def _show_diagnosis(diagnosis: Diagnosis, *, full: bool) -> None:
    """Show what was found under headings, problems first; of much, the beginning."""
    echo("\nWhat the table says about the worldview")
    _show(diagnosis.summary)
    for heading, sentences in diagnosis.sections().items():
        shown = sentences if full or len(sentences) <= _MANY else sentences[:_FIRST]
        echo()
        _show(heading)
        for sentence in shown:
            _show(sentence, mark="- ")
        if len(shown) < len(sentences):
            more = len(sentences) - len(shown)
            _show(f"… and {more} more, which `mutandis check --full` prints.")
    echo()
    _show(diagnosis.next_step)


def _show(sentence: str, *, mark: str = "") -> None:
    """Show a sentence within the width of a terminal."""
    echo(
        fill(
            sentence,
            _WIDTH,
            initial_indent=mark,
            subsequent_indent=" " * len(mark),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )
