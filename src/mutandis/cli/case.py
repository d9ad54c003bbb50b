"""`mutandis case`: the file of one complainant, from a folder of results."""

from __future__ import annotations

import hashlib
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mutandis.cli.audit import write_counts
from mutandis.cli.results_folder import open_results
from mutandis.cli.warnings import collected_notes
from mutandis.errors import OutputError, UnknownIdError
from mutandis.files.results_folder import CASES, COUNTS, hash_file
from mutandis.files.text_files import remove_leftovers, write_atomically
from mutandis.report.pdf import pdf_unavailable, to_pdf

if TYPE_CHECKING:
    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.cli.results_folder import Results

__all__ = ["case_name", "run_case"]

# names that mean a device to Windows, whatever follows the dot
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def run_case(
    folder: Path,
    id: str,  # noqa: A002 - the public name
    *,
    redact: bool,
    pdf: bool | None,
    base: Path | None,
    trust_pickle: bool,
    threads: int | None,
) -> None:
    """Run the audit again on the table it was made from, and write the file of one complainant."""
    if pdf:
        to_pdf("<p>")  # what is missing is said now, and not after the search
    results = open_results(folder, base=base, trust_pickle=trust_pickle, threads=threads)
    with collected_notes():
        prepared = results.prepare()
        who = _complainant(results, prepared.plan, id)
        found = results.run_again(prepared)
        _check_counts(results, found)
        document = found.case_file(who, redact=redact, source=results.record.data["source"])
    stem = results.record.folder / CASES / f"{case_name(str(who))}{'.redacted' if redact else ''}"
    html = document.to_html()
    # a PDF that was asked for has been tried above
    without_pdf = pdf_unavailable() if pdf is None else None
    contents: dict[str, str | bytes] = {"html": html, "json": document.to_json()}
    if pdf is not False and without_pdf is None:
        contents["pdf"] = to_pdf(html)
    _write(stem, contents)
    for ending in contents:
        typer.echo(f"{stem}.{ending}")
    if without_pdf is not None:
        typer.echo(f"No PDF was written. {without_pdf}", err=True)


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


def _check_counts(results: Results, found: Audit) -> None:
    """Refuse to write a case file that would not agree with the results it belongs to."""
    with tempfile.TemporaryDirectory() as name:
        write_counts(Path(name), found)
        if hash_file(Path(name) / COUNTS) == results.record.outputs.get(COUNTS):
            return
    raise OutputError(
        "The audit gives other numbers here than the results folder holds, perhaps because other "
        "versions of the libraries are installed. `mutandis verify --rerun` shows where; run the "
        "audit again."
    )


def _complainant(results: Results, plan: Plan, text: str) -> Any:
    """Find the id that is written like this; ids on a command line are text."""
    ids = plan.population.ids
    rows = [row for row, each in enumerate(ids.tolist()) if str(each) == text]
    if not rows:
        column = results.record.data["settings"]["data"].get("id")
        known = "row positions, from 0" if column is None else f"the values of {column!r}"
        raise UnknownIdError(f"No row has this id. Ids in this audit are {known}.")
    if not any(rows[0] in stratum.complainants for stratum in plan.strata):
        attributes = " × ".join(repr(each.attribute) for each in plan.protections)
        raise UnknownIdError(
            f"This row is no complainant: {attributes} does not have a protected value in it. Case "
            "files are about complainants."
        )
    return ids.tolist()[rows[0]]


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
