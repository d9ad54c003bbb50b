"""`mutandis case`: the file of one complainant, from a folder of results."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from mutandis.data.columns import plain_value
from mutandis.errors import OutputError
from mutandis.files.results_folder import CASES
from mutandis.files.saved_audit import open_results
from mutandis.files.text_files import remove_leftovers, write_atomically
from mutandis.report.pdf import pdf_unavailable, to_pdf

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.auditing.audit import Audit
    from mutandis.report.case_model import CaseDocument

__all__ = ["case_name", "run_case"]

# names that mean a device to Windows, whatever follows the dot
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def run_case(folder: Path, id: str, *, redact: bool, pdf: bool | None) -> None:  # noqa: A002
    """Open the results, and write the file of one complainant."""
    if pdf:
        to_pdf("<p>")  # what is missing is said now, and not after the work
    audit = open_results(folder)
    document = audit.case_file(_read_id(audit, id), redact=redact)
    stem = folder / CASES / f"{case_name(id)}{'.redacted' if redact else ''}"
    html = document.to_html()
    without_pdf = pdf_unavailable() if pdf is None else None
    contents: dict[str, str | bytes] = {"html": html, "json": document.to_json()}
    if pdf is not False and without_pdf is None:
        contents["pdf"] = to_pdf(html)
    _write(stem, contents)
    for answer in _answers(document):
        typer.echo(answer)
    for ending in contents:
        typer.echo(f"{stem}.{ending}")
    if without_pdf is not None:
        typer.echo(f"No PDF was written. {without_pdf}", err=True)


def _answers(document: CaseDocument) -> tuple[str, str]:
    """Give both answers in a line each, without any value of the table."""
    pattern, refused = document.verdict, document.complainant.refused
    return (
        f"Pattern among people like her: {pattern.verdict} ({pattern.method} at k = {pattern.k})",
        f"Her own case: {document.own_case.answer} (she was {'refused' if refused else 'granted'})",
    )


def _read_id(audit: Audit, text: str) -> Any:
    """Find the id that is written like this; ids on a command line are text."""
    ids = audit.plan.population.ids
    same = np.flatnonzero(ids.astype(np.str_) == text)
    return plain_value(ids[same[0]]) if len(same) else text


def _write(stem: Path, contents: dict[str, str | bytes]) -> None:
    try:
        stem.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"The folder {str(stem.parent)!r} cannot be made: {error.strerror}."
        ) from error
    remove_leftovers(stem.parent)
    for ending, content in contents.items():
        write_atomically(stem.with_name(f"{stem.name}.{ending}"), content)


def case_name(text: str) -> str:
    """Make a file name of an id: the id itself if it is plain, else what is plain in it and a hash.

    Examples
    --------
    >>> case_name("4711"), case_name("../../etc/passwd")
    ('4711', 'etc-passwd-3754d6cb3a')
    """
    if _PLAIN.fullmatch(text) and not _DEVICES.fullmatch(text):
        return text
    plain = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40].strip("-")
    return f"{plain or 'id'}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:10]}"
