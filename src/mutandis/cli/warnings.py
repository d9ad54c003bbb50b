"""Warnings of an audit, as sentences for its reader rather than lines of Python."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from mutandis.errors import MutandisWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["collected_notes", "show_notes"]


@contextmanager
def collected_notes() -> Iterator[Callable[[], list[str]]]:
    """Collect the warnings that are meant for the auditor; the function tells those so far.

    Those of other libraries are meant for programmers, and are dropped.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", MutandisWarning)
        yield lambda: list(dict.fromkeys(str(each.message) for each in caught))


def show_notes(notes: list[str]) -> None:
    """Show them on stderr."""
    for note in notes:
        typer.echo(f"Note: {note}", err=True)
