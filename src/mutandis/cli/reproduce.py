"""`mutandis reproduce`: the paper's tables beside ours, and then the definitions' own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mutandis.cli.terminal import echo, make_console
from mutandis.published.printed_tables import CASE_TABLES, COUNT_TABLES
from mutandis.published.reproduction import Reproduction, case_rows, count_cells, reproduce
from mutandis.published.scenarios import SCENARIOS

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

__all__ = ["run_reproduce"]

_WHY = (
    "They differ because the definitions put facts and counterfactuals on one scale (the "
    "publication standardised each world by itself, which takes part of the counterfactual shift "
    "away again) and let people at equal distance share the last places (the publication took "
    "those who stood lower in the file)."
)


def run_reproduce(folder: Path, *, as_json: bool) -> int:
    """Run and print everything; give the exit code."""
    found = reproduce(folder)
    unexplained = [d for d in found.differences() if not d.is_known]
    if as_json:
        echo(json.dumps(found.as_json(), indent=2))
    else:
        _show(found)
    return 1 if unexplained else 0


def _show(found: Reproduction) -> None:

    console = make_console()
    console.rule("As published (preset eaamo23)")
    _show_published(console, found)
    console.rule("As defined (the default)")
    _show_defined(console, found)


def _show_published(console: Console, found: Reproduction) -> None:
    from mutandis.cli.render import case_table, printed_counts_table

    titles = {scenario.key: scenario.title for scenario in SCENARIOS}
    for table in COUNT_TABLES:
        audit = found.published[table.scenario]
        complainants = audit.count_records()[0]["complainants"]
        console.print(
            printed_counts_table(
                count_cells(table, audit),
                f"Table {table.number}. {titles[table.scenario]} ({complainants:,} complainants)",
            )
        )
        if table.number == 1:
            for cases in CASE_TABLES:
                console.print(
                    case_table(
                        case_rows(cases, audit),
                        f"Table {cases.number}. Single complainants, CST (w/), k = 15",
                    )
                )
    differences = found.differences()
    if not differences:
        console.print("exact: every printed cell comes out.", highlight=False)
        return
    console.print(
        f"exact, but for {len(differences)} printed cells:"
        if all(d.is_known for d in differences)
        else "NOT exact:",
        highlight=False,
    )
    for difference in differences:
        known = (
            f" ({difference.reason}: the printed cell cannot follow)" if difference.reason else ""
        )
        console.print(
            f"  {difference.where}: printed {difference.printed}, ours {difference.ours}{known}",
            highlight=False,
            soft_wrap=True,
        )
    console.print()


def _show_defined(console: Console, found: Reproduction) -> None:
    from mutandis.cli.render import counts_table, invocation

    for scenario in SCENARIOS:
        console.print(
            counts_table(found.defined[scenario.key], f"{scenario.title} (* significant, α = 5 %)")
        )
    console.print(_WHY, highlight=False)
    console.print(f"Next, the same on new data: {invocation()} demo", highlight=False)
