"""`mutandis case`, `export` and `explore`: what is read from a folder of results."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mutandis.cli.options import K, Method, Results, Sign, app
from mutandis.cli.terminal import echo, invocation
from mutandis.registry import find

if TYPE_CHECKING:
    from mutandis.auditing.audit import Audit


class ExportContent(StrEnum):
    """What `mutandis export` writes."""

    PEOPLE = "people"
    COUNTS = "counts"
    LL144 = "ll144"
    PRIMA_FACIE = "prima-facie"
    MODEL_CARD = "model-card"


@app.command()
def case(
    folder: Results,
    id: Annotated[str, typer.Argument(help="The complainant.")],  # noqa: A002 - the public name
    *,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact", help="Leave out all other people: verdicts and coarse shares stay."
        ),
    ] = False,
    pdf: Annotated[
        bool,
        typer.Option("--pdf/--no-pdf", help="Print the page as a PDF too, by WeasyPrint."),
    ] = False,
    sign: Sign = None,
) -> None:
    """Write the case file of one complainant, HTML and JSON, into the folder's `cases`."""
    from mutandis.report.case_file import save_case

    document, files = save_case(folder, id, redact=redact, pdf=pdf, sign=sign)
    pattern, refused = document.verdict, document.complainant.refused
    decided = "" if refused is None else f" (decided: {document.labels.decided(refused)})"
    # no value of the table is printed
    echo(f"Pattern among similar people: {pattern.verdict} ({pattern.method} at k = {pattern.k})")
    echo(f"Own case: {document.own_case.answer}{decided}")
    for path in files:
        echo(str(path))
    echo(f"Next: {invocation()} verify {folder}")


@app.command()
def export(
    folder: Results,
    out: Annotated[Path, typer.Argument(help="A file: .csv, .xlsx or .parquet; a text: .md.")],
    *,
    content: Annotated[
        ExportContent,
        typer.Option(
            "--as",
            help="people: one row per complainant. counts: one per method and k. "
            "ll144: rates and impact ratios of groups, as New York's Local Law 144 asks for "
            "them. prima-facie, model-card: a text in Markdown.",
        ),
    ] = ExportContent.PEOPLE,
    method: Method = None,
    k: K = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="ll144: a column of categories (default: the protected statuses)."),
    ] = None,
    unknown: Annotated[
        list[str] | None, typer.Option(help="ll144: a value that means that nothing is known.")
    ] = None,
    leave_out_below: Annotated[
        float, typer.Option(help="ll144: the share below which a category gets no ratio.")
    ] = 0.0,
    score: Annotated[
        str | None, typer.Option(help="ll144: a column of scores, for scoring rates.")
    ] = None,
) -> None:
    """Write an audit for others: people, rates of groups, or a text."""
    from mutandis.store.saved_audit import open_results

    audit = open_results(folder)
    if content is ExportContent.PEOPLE:
        chosen, size = audit.plan.choose(method, k)
        audit.export(out, chosen.name, k=size)
        people = len(audit.study.people)
        echo(f"{people:,} complainants, {chosen.title} with k = {size}: {out}")
        echo("The file holds personal data: everyone's id, attributes and outcome.")
        echo(f"Next, one person's case file: {invocation()} case {folder} ID")
    elif content is ExportContent.COUNTS:
        audit.export(out, table="counts")
        echo(f"The counts of all methods and group sizes: {out}")
        echo(f"Next, one row per complainant: {invocation()} export {folder} people{out.suffix}")
    elif content is ExportContent.LL144:
        _write_impact_ratios(
            audit,
            out,
            by=by or None,
            unknown=unknown or (),
            leave_out_below=leave_out_below,
            score=score,
        )
    else:
        _write_text(audit, out, content)


def _write_impact_ratios(audit: Audit, out: Path, **options: Any) -> None:
    from fractions import Fraction

    from mutandis.store.people_file import write_people

    rows = find("room", "compliance").compute_impact_ratios(audit, **options)
    write_people(out, {name: [row.as_row()[name] for row in rows] for name in rows[0].as_row()})
    ratios = [row.impact_ratio for row in rows if row.impact_ratio is not None]
    below = sum(ratio < Fraction(4, 5) for ratio in ratios)
    echo(f"{len(ratios)} categories with an impact ratio, {below} of them below four fifths: {out}")
    echo("It compares whole groups, and is no part of situation testing; no legal advice.")


def _write_text(audit: Audit, out: Path, kind: str) -> None:
    from mutandis.store.text_files import write_atomically

    write_atomically(out, find("room", "compliance").write_text(audit, kind))
    echo(f"{out}")
    echo("It states what the audit found; it is not legal advice.")


@app.command()
def explore(
    folder: Results,
    other: Annotated[
        Path | None, typer.Argument(help="Another such folder, to compare it with.")
    ] = None,
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on (default: a free one).")
    ] = 0,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but 127.0.0.1 shows the data to others.")
    ] = "127.0.0.1",
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the address in a browser.")
    ] = True,
) -> None:
    """Look into an audit in a web browser: overview, people, one person, worldviews."""
    from mutandis.store.saved_audit import open_results

    find("room", "explorer").serve(
        open_results(folder),
        name=folder.resolve().name,
        other=None if other is None else open_results(other),
        other_name="" if other is None else other.resolve().name,
        host=host,
        port=port,
        open_browser=open_browser,
        say=echo,
    )
