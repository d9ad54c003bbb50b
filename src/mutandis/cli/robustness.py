"""`mutandis robustness`: how much of an effect must be real for the verdicts of a saved audit."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from mutandis.auditing.tipping import FRAGILE, ROBUST, find_tipping
from mutandis.cli.progress import progress_bars
from mutandis.cli.terminal import echo
from mutandis.files.saved_audit import open_results
from mutandis.files.text_files import write_csv

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.auditing.tipping import Tipping

__all__ = ["run_robustness"]

_RULES = {
    "robust": f"stands with {ROBUST:.0%} of the effect or less",
    "sensitive": f"needs more than {ROBUST:.0%} of the effect",
    "fragile": f"needs {FRAGILE:.0%} of the effect or more, or falls in draws and refits",
}


def run_robustness(
    folder: Path, *, method: str | None, k: int | None, out: Path | None, as_json: bool
) -> None:
    """Open the results, find all tipping points, and count verdicts by grade."""
    audit = open_results(folder)
    with progress_bars() as bar:
        chosen, size = audit.plan.choose(method, k)
        found = find_tipping(audit, chosen, size, progress=bar("Trying parts of the effect"))
    verdicts = audit.evaluate(chosen.name, size).verdicts()
    counts = _count(found, verdicts)
    if out is not None:
        write_csv(out, {"verdict": verdicts, **found.columns()})
    if as_json:
        echo(json.dumps({"method": chosen.name, "k": size, "verdicts": counts}, indent=2))
        return
    echo(f"{chosen.title}, k = {size}: how much of the effect of {audit.plan.status}, as the")
    echo("worldview has it, must be real for each verdict to stand")
    echo()
    for verdict, grades in counts.items():
        echo(f"{verdict}: {sum(grades.values()):,}")
        for grade, rule in _RULES.items():
            echo(f"  {grade:<10} {grades[grade]:>7,}  {rule}")
    if out is None:
        echo("\nNext: --out robustness.csv writes one row per complainant.")


def _count(found: Tipping, verdicts: Any) -> dict[str, dict[str, int]]:
    """Count grades, the strongest verdict first."""
    order = ("significant-adjusted", "significant", "evidence")
    counts = {}
    for verdict in order:
        grades = Counter(found.grade[verdicts == verdict].tolist())
        counts[verdict] = {grade: grades[grade] for grade in _RULES}
    return counts
