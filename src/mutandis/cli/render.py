"""Tables for the terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

from mutandis.auditing.tipping import count_grades, summarise_grades
from mutandis.evidence.methods import CST_MATCHED, METHODS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from mutandis.auditing.audit import Audit

__all__ = [
    "counts_table",
    "invocation",
    "make_table",
    "show_headline",
    "summary_of",
]


def invocation() -> str:
    """Give what to type to call this program: its name, or its path where it is not found."""
    called = Path(sys.argv[0])
    if called.name != "mutandis" or which("mutandis") == str(called.absolute()):
        return "mutandis"
    return os.path.relpath(called)


def summary_of(found: Audit) -> dict[str, Any]:
    """Give what a run prints as data: the headline, its noise floor, cautions and all counts."""
    method, k = found.plan.settings.primary
    findings = found.evaluate()
    matched = CST_MATCHED in found.plan.methods
    own = found.evaluate(CST_MATCHED.name, k).has_own_case if matched else None
    pattern, compared = findings.has_pattern, found.measure_worldviews()
    return {
        "headline": {
            **found.count(method, k),
            "pattern": int(pattern.sum()),
            "pattern_refused": int((pattern & findings.is_negative).sum()),
            "pattern_and_own_case": None if own is None else int((pattern & own).sum()),
        },
        "noise_floor": found.noise_floor.as_dict(),
        "robustness": count_grades(found.measure_tipping(), findings.verdicts())
        if found.plan.settings.uncertainty.tipping
        else None,
        **({} if compared is None else {"worldviews": compared.as_dict()}),
        "cautions": found.cautions(),
        "counts": found.count_records(),
    }


def show_headline(console: Console, found: Audit) -> None:
    """Show the headline beside its noise floor, and what a reader of it has to know."""
    floor = found.noise_floor
    said = [floor.sentence(), floor.verdict(), summarise_grades(found), *found.cautions()]
    console.print("\n".join(each for each in said if each), highlight=False, markup=False)
    console.print()


def make_table(title: str) -> Table:
    """Make an empty table with a title."""
    from rich import box
    from rich.table import Table

    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)


def counts_table(found: Audit, title: str) -> Table:
    """Show cases with their share, and below how many are significant, and after adjustment."""
    table = make_table(title)
    table.add_column("Method")
    for k in found.ks:
        table.add_column(f"k = {k}", justify="right")
    records = {(r["method"], r["k"]): r for r in found.count_records()}
    for name in found.methods:
        rows = [records[name, k] for k in found.ks]
        table.add_row(METHODS[name].title, *(f"{r['cases']:,} ({r['share']:.1%})" for r in rows))
        if METHODS[name].count_neighbours:
            starred = (f"{r['significant']:,} ({r['significant_share']:.1%})*" for r in rows)
            table.add_row("  significant", *starred, style="dim")
            if found.plan.settings.evidence.adjust != "none":
                shares = (r["significant_adjusted"] / r["complainants"] for r in rows)
                pairs = zip(rows, shares, strict=True)
                adjusted = (f"{r['significant_adjusted']:,} ({share:.1%})" for r, share in pairs)
                table.add_row("  adjusted", *adjusted, style="bold")
    return table
