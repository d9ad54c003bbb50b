"""`mutandis verify`: whether results are as they were written, and whether they come out again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mutandis.cli.audit import run_with_bars
from mutandis.cli.options import Json, Results, Threads, TrustCode, app
from mutandis.cli.terminal import answer, collected_notes, invocation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.store.verification import Verification


@app.command()
def verify(
    folder: Results,
    *,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Run the audit again and compare all that it writes.")
    ] = False,
    key: Annotated[
        Path | None,
        typer.Option(
            metavar="PUBKEYFILE", help="See whether the results are signed with this key (PEM)."
        ),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(help="Folder that paths in the audit file start from, if it has moved."),
    ] = None,
    trust_code: TrustCode = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """See whether results are what was written, and with --rerun whether they come out again."""
    from mutandis.store.verification import verify_results

    with collected_notes(show=False):
        found = verify_results(
            folder,
            rerun=rerun,
            key=key,
            base=base,
            trust_code=trust_code,
            run=partial(run_with_bars, threads=threads),
        )
    answer(found.as_dict(), _describe(folder, found, key), as_json=json)
    raise typer.Exit(1 if found.differences else 0)


def _describe(folder: Path, found: Verification, key: Path | None) -> Iterator[str]:
    if found.differences:
        yield f"{folder} differs from what was written:"
        yield from (f"  {each}" for each in found.differences)
    else:
        yield f"{folder}: all {found.files} files are as they were written."
        if found.rerun:
            yield "A rerun gives the same findings, report and case files, bit for bit."
        if key is not None:
            yield f"They are signed with {key}."
    if found.source == "not reachable":
        yield "The source cannot be reached from here and was not checked."
    elif not found.differences:
        yield "The source is the table that was audited."
    if not found.differences and not found.rerun:
        yield f"Next, to see whether they come out again: {invocation()} verify {folder} --rerun"
    elif not found.differences:
        yield f"Next: {invocation()} explore {folder}"
