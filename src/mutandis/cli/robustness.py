"""`mutandis robustness`: how much of an effect must be real for the verdicts of a saved audit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mutandis.auditing.tipping import count_grades, rules_of
from mutandis.cli.progress import progress_bars
from mutandis.cli.render import invocation
from mutandis.cli.terminal import echo
from mutandis.files.saved_audit import open_results
from mutandis.files.text_files import write_csv

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["run_robustness"]


def run_robustness(
    folder: Path, *, method: str | None, k: int | None, out: Path | None, as_json: bool
) -> None:
    """Open the results, find all tipping points, and count verdicts by grade."""
    audit = open_results(folder)
    with progress_bars() as bar:
        chosen, size = audit.plan.choose(method, k)
        found = audit.measure_tipping(chosen.name, size, bar("Trying parts of the effect"))
    verdicts = audit.evaluate(chosen.name, size).verdicts()
    counts, rules = count_grades(found, verdicts), rules_of(audit)
    if out is not None:
        columns = {"verdict": verdicts, **found.columns()}
        is_headline = (chosen.name, size) == audit.plan.settings.primary
        if audit.plan.worldview is not None and is_headline:
            columns |= audit.hidden_cause().columns
        compared = audit.measure_worldviews() if is_headline else None
        columns |= {} if compared is None else compared.columns()
        write_csv(out, columns)
    if as_json:
        echo(json.dumps({"method": chosen.name, "k": size, "verdicts": counts}, indent=2))
        return
    echo(f"{chosen.title}, k = {size}: how much of the effect of {audit.plan.status_label}, as the")
    echo("worldview has it, must be real for each verdict to stand")
    echo()
    for verdict, grades in counts.items():
        echo(f"{verdict}: {sum(grades.values()):,}")
        for grade, rule in rules.items():
            echo(f"  {grade:<10} {grades[grade]:>7,}  {rule}")
    if out is None:
        echo("\nTo write one row per complainant, add --out robustness.csv.")
    echo(f"Next, one person's case file: {invocation()} case {folder} ID")
