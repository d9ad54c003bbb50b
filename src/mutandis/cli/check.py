"""`mutandis check`: everything short of the search, and what the data say about the worldview."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from mutandis.auditing import draft_plan
from mutandis.io.audit_file import read_audit_file
from mutandis.io.table_files import read_table

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.auditing import Plan

__all__ = ["run_check"]


def run_check(path: Path, *, as_json: bool) -> None:
    """Read the file and its table, check every setting, and look at the worldview."""
    written = read_audit_file(path)
    plan = draft_plan(read_table(written.source), **written.settings)
    diagnosis = None
    if plan.worldview is not None:
        diagnosis = plan.worldview.check(
            plan.population,
            protected=plan.protection.attribute,
            do=plan.do,
        )
    if as_json:
        found = None if diagnosis is None else diagnosis.as_dict()
        typer.echo(json.dumps({**_facts(plan), "worldview": found}, indent=2, ensure_ascii=False))
        return
    typer.echo("\n".join(_sentences(plan)))
    if diagnosis is not None:
        typer.echo(f"\n{diagnosis}")


def _facts(plan: Plan) -> dict[str, Any]:
    return {
        "rows": len(plan.population),
        "dropped": dict(plan.population.dropped),
        "complainants": {s.label: len(s.complainants) for s in plan.strata},
        "reference_rows": len(plan.strata[0].test),
        "refused": int(plan.outcome.is_negative.sum()),
        "methods": [method.name for method in plan.methods],
        "ks": list(plan.settings.ks),
    }


def _sentences(plan: Plan) -> list[str]:
    facts = _facts(plan)
    who = ", ".join(
        f"{count:,} with status {label}" for label, count in facts["complainants"].items()
    )
    methods, ks = ", ".join(facts["methods"]), ", ".join(map(str, facts["ks"]))
    lines = [
        f"{facts['rows']:,} decisions, {facts['refused']:,} of them negative.",
        f"Complainants: {who}; {facts['reference_rows']:,} people of the reference status.",
        f"The audit can run {methods} at k = {ks}.",
    ]
    if facts["dropped"]:
        dropped = ", ".join(f"{count:,} for {name!r}" for name, count in facts["dropped"].items())
        lines.append(f"Rows left out because a value is missing: {dropped}.")
    return lines
