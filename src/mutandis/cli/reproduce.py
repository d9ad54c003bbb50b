"""`mutandis reproduce`: the paper's tables next to ours, and then the counts by definition."""

from __future__ import annotations

from dataclasses import astuple
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mutandis.cli.audit import counts_table
from mutandis.cli.options import Json, app
from mutandis.cli.terminal import answer, invocation, make_console, make_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console
    from rich.table import Table

    from mutandis.replication.eaamo import Tests
    from mutandis.replication.printed import CaseTable, CountTable, Difference

_WHY = (
    "They differ because the definitions put facts and counterfactuals on one scale (the "
    "publication standardised each world by itself, which takes part of the counterfactual shift "
    "away again) and let people at equal distance share the last places (the publication took "
    "those who stood lower in the file)."
)


@app.command()
def reproduce(
    data: Annotated[Path, typer.Option(help="Folder with the published data.")],
    *,
    json: Json = False,
) -> None:
    """Repeat the paper's tables exactly, then show the counts under its definitions."""
    from mutandis.replication.eaamo import RUNS, compare
    from mutandis.replication.printed import find_differences

    published = {run.key: compare(run, run.read(data)) for run in RUNS}
    differences = find_differences(published)
    if json:
        answer(_counts(published), (), as_json=True)
    else:
        console = make_console()
        _show_published(console, published, differences)
        _show_defined(console, data)
    raise typer.Exit(0 if all(each.reason for each in differences) else 1)


def _counts(published: Mapping[str, Tests]) -> dict[str, dict[str, dict[str, int]]]:
    """Return the numbers of cases by run, k and method."""
    from mutandis.replication.eaamo import KS, METHODS

    return {
        key: {
            str(k): {method: int(tests[method, k]["case"].sum()) for method in METHODS} for k in KS
        }
        for key, tests in published.items()
    }


def _show_published(
    console: Console, published: Mapping[str, Tests], differences: list[Difference]
) -> None:
    from mutandis.replication.eaamo import KS, RUNS
    from mutandis.replication.printed import CASE_TABLES, COUNT_TABLES

    console.rule("As published")
    titles = {run.key: run.title for run in RUNS}
    for table in COUNT_TABLES:
        tests = published[table.run]
        people = len(tests["cf", KS[0]])
        title = f"Table {table.number}. {titles[table.run]} ({people:,} complainants)"
        console.print(_count_table(table, tests, title))
        for cases in CASE_TABLES if table.number == 1 else ():
            title = f"Table {cases.number}. Single complainants, CST (w/), k = 15"
            console.print(_case_table(cases, tests, title))
    if not differences:
        console.print("exact: every printed cell comes out.", highlight=False)
        return
    is_known = all(each.reason for each in differences)
    summary = f"exact, but for {len(differences)} printed cells:" if is_known else "NOT exact:"
    console.print(summary, highlight=False)
    for each in differences:
        known = f" ({each.reason}: the printed cell cannot follow)" if each.reason else ""
        line = f"  {each.where}: printed {each.printed}, ours {each.ours}{known}"
        console.print(line, highlight=False, soft_wrap=True)
    console.print()


def _count_table(table: CountTable, tests: Tests, title: str) -> Table:
    """Build a table of printed counts, each with ours in the line below."""
    from mutandis.engine.methods import METHODS
    from mutandis.replication.eaamo import KS

    shown, found = make_table(title), table.ours(tests)
    shown.add_column("Method")
    shown.add_column("")
    for k in KS:
        shown.add_column(f"k = {k}", justify="right")
    for method, row in table.cells.items():
        printed = [f"{cases:,} ({share}%)" for cases, share in row]
        ours = [
            (cases == own and Decimal(share) == Decimal(own_share), f"{own:,} ({own_share}%)")
            for (cases, share), (own, own_share) in zip(row, found[method], strict=True)
        ]
        shown.add_row(METHODS[method].title, "printed", *printed)
        shown.add_row("", "ours", *(text if same else f"[bold]{text}[/]" for same, text in ours))
    return shown


def _case_table(table: CaseTable, tests: Tests, title: str) -> Table:
    """Build a table of printed complainants, each with our numbers in the line below."""
    shown = make_table(title)
    for heading in ("Comp. (ID)", "", "p_c", "p_t", "Δp", "CI (α = 5 %)"):
        shown.add_column(heading, justify="left" if not heading else "right")
    for printed, ours in zip(table.cases, table.ours(tests), strict=True):
        for source, each in (("printed", printed), ("ours", ours)):
            p_control, p_test, delta, low, high = (f"{Decimal(x):.2f}" for x in astuple(each)[1:-1])
            shown.add_row(
                str(each.id) if source == "printed" else "",
                source,
                p_control,
                p_test,
                f"{delta}{'*' if each.significant else ' '}",
                f"\\[{low}, {high}]",
            )
    return shown


def _show_defined(console: Console, folder: Path) -> None:
    from mutandis.auditing.plan import audit
    from mutandis.replication.eaamo import RUNS

    console.rule("As defined (the default)")
    for run in RUNS:
        found = audit(run.read(folder), **run.settings)
        console.print(counts_table(found, f"{run.title} (* significant, α = 5 %)"))
    console.print(_WHY, highlight=False)
    console.print(f"Next, the same on new data: {invocation()} demo", highlight=False)
