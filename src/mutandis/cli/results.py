"""The commands that read a folder of results."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mutandis.cli.audit import run_with_bars
from mutandis.cli.options import Json, K, Method, PeopleFile, Results, Sign, Threads, TrustCode, app
from mutandis.cli.terminal import answer, collected_notes, echo, invocation, progress_bars
from mutandis.errors import PlanError, SettingsError
from mutandis.registry import find

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutandis.auditing.worldviews import WorldviewVerdicts
    from mutandis.scm import Worldview
    from mutandis.store.verification import Verification


class ExportContent(StrEnum):
    """What `mutandis export` writes."""

    PEOPLE = "people"
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
        bool, typer.Option("--pdf/--no-pdf", help="Print the page as a PDF too, by WeasyPrint.")
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
            help="people: one row per complainant. "
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
    from mutandis.store.files import write_atomically, write_people
    from mutandis.store.saved_audit import open_results

    audit = open_results(folder)
    if content is ExportContent.PEOPLE:
        chosen, size = audit.plan.choose(method, k)
        audit.export(out, chosen.name, k=size)
        people = len(audit.study.people)
        echo(f"{people:,} complainants, {chosen.title} with k = {size}: {out}")
        echo("The file holds personal data: everyone's id, attributes and outcome.")
        echo(f"Next, one person's case file: {invocation()} case {folder} ID")
    elif content is ExportContent.LL144:
        rows = find("room", "compliance").compute_impact_ratios(
            audit,
            by=by or None,
            unknown=unknown or (),
            leave_out_below=leave_out_below,
            score=score,
        )
        write_people(out, {name: [row.as_row()[name] for row in rows] for name in rows[0].as_row()})
        ratios = [row.impact_ratio for row in rows if row.impact_ratio is not None]
        below = sum(ratio < Fraction(4, 5) for ratio in ratios)
        echo(f"{len(ratios)} categories with an impact ratio, {below} below four fifths: {out}")
        echo("It compares whole groups, and is no part of situation testing; no legal advice.")
    else:
        write_atomically(out, find("room", "compliance").write_text(audit, content))
        echo(f"{out}")
        echo("It states what the audit found; it is not legal advice.")


@app.command()
def explore(
    folder: Results,
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on (default: a free one).")
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the address in a browser.")
    ] = True,
) -> None:
    """Look into an audit in a web browser: overview, people, one person, worldviews."""
    from mutandis.store.saved_audit import open_results

    find("room", "explorer").serve(
        open_results(folder),
        name=folder.resolve().name,
        port=port,
        open_browser=open_browser,
        say=echo,
    )


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
    answer(found.as_dict(), _describe_verification(folder, found, key), as_json=json)
    raise typer.Exit(1 if found.differences else 0)


def _describe_verification(folder: Path, found: Verification, key: Path | None) -> Iterator[str]:
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


@app.command()
def compare(
    folder: Results,
    others: Annotated[
        list[Path] | None,
        typer.Argument(help="Files of other worldviews, or audit files that have one."),
    ] = None,
    *,
    variants: Annotated[
        bool, typer.Option("--variants", help="Also try variants that differ in one choice each.")
    ] = False,
    out: PeopleFile = None,
    save: Annotated[
        Path | None, typer.Option(help="A new folder for the results with the answer in them.")
    ] = None,
    sign: Sign = None,
    trust_code: TrustCode = False,
    json: Json = False,
) -> None:
    """Run an audit under other worldviews: which verdicts stay, and which choice breaks them."""
    from mutandis.auditing.robustness import add_robustness
    from mutandis.store.files import write_csv
    from mutandis.store.results_folder import read_key
    from mutandis.store.saved_audit import open_results, save_audit

    key = read_key(sign, "private")
    with collected_notes(show=not json), progress_bars() as bar:
        given = _read(others or (), trust_code=trust_code)
        audit = open_results(folder)
        if given or variants:
            audit = audit.with_worldviews(
                given, variants=variants, progress=bar("Auditing under worldviews")
            )
        found = audit.results.worldviews
        if found is None:
            raise PlanError(
                "No worldviews were compared in these results. Name files of other worldviews, or "
                "add --variants."
            )
        if out is not None:
            known = add_robustness(audit, audit.results.headline).robustness
            line = {} if known is None else {"robustness": known.line}
            write_csv(out, {**found.columns(), **line})
        if save is not None:
            save_audit(audit, save, key=key)
    data = {"method": found.method, "k": found.k, **found.as_dict()}
    answer(data, _describe_comparison(found, save), as_json=json)


def _read(paths: Sequence[Path], *, trust_code: bool) -> dict[str, Worldview]:
    """Read a worldview from each file: its own, or that of an audit file."""
    from mutandis.config.worldview import read_worldview
    from mutandis.store.audit_file import read_plan

    found: dict[str, Worldview] = {}
    for path in paths:
        try:
            worldview: Worldview | None = read_worldview(path)
        except SettingsError as error:
            try:
                worldview = read_plan(path, trust_code=trust_code).worldview
            except SettingsError:
                raise error from None
        if worldview is None:
            raise PlanError(f"{path.name!r} has no worldview.")
        found[path.stem if path.stem not in found else str(path)] = worldview
    return found


def _describe_comparison(found: WorldviewVerdicts, saved: Path | None) -> Iterator[str]:
    from mutandis.engine.tally import METHODS

    yield f"{METHODS[found.method].title}, k = {found.k}, under {len(found.names)} worldviews\n"
    for row in found.summary_records():
        counts = row["verdicts"]
        significant = counts["significant"] + counts["significant-adjusted"]
        broken = f"; weakens {row['breaks']:,} verdicts" if row["name"] != found.names[0] else ""
        yield (
            f"{row['name']}: evidence for {significant + counts['evidence']:,}, significant for "
            f"{significant:,}{broken}"
        )
    yield (
        f"\nVerdicts under {found.names[0]!r} that are the same or stronger, by number of "
        "worldviews:"
    )
    for number, people in found.count_stays().items():
        yield f"  {number:>3} of {len(found.names)}: {people:,}"
    yield "\nNo count is a probability: these worldviews are not a sample of anything."
    if saved is not None:
        yield f"\nThe results in {saved} include this: findings, report, later case files."
        yield f"Next: {invocation()} explore {saved}"
