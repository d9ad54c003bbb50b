"""`mutandis case`: the file of one complainant, from a folder of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.cli.render import invocation
from mutandis.cli.terminal import echo
from mutandis.report.case_file import save_case

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.report.case_model import CaseDocument

__all__ = ["run_case"]


def run_case(
    folder: Path,
    id: str,  # noqa: A002 - the public name
    *,
    redact: bool,
    pdf: bool,
    sign: Path | None,
) -> None:
    """Open the results, and write the file of one complainant."""
    document, files = save_case(folder, id, redact=redact, pdf=pdf, sign=sign)
    for answer in _answers(document):
        echo(answer)
    for path in files:
        echo(str(path))
    echo(f"Next: {invocation()} verify {folder}")


def _answers(document: CaseDocument) -> tuple[str, str]:
    """Give both answers in a line each, without any value of the table."""
    pattern = document.verdict
    refused = document.complainant.refused
    decided = "" if refused is None else f" (she was {document.labels.decided(refused)})"
    return (
        f"Pattern among people like her: {pattern.verdict} ({pattern.method} at k = {pattern.k})",
        f"Her own case: {document.own_case.answer}{decided}",
    )
