"""`mutandis check`: everything short of the search, and what the data say about the worldview."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from mutandis.cli.load import diagnose, prepare
from mutandis.cli.warnings import collected_notes, show_notes
from mutandis.decision import decide
from mutandis.frames import open_frame

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.auditing.plan import Plan
    from mutandis.causal import Diagnosis

__all__ = ["run_check"]

# enough to see whether the decision maker answers as agreed, few enough for one that is slow
_TRIAL = 100
_SENTENCES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """What the decision maker said about some people.

    Parameters
    ----------
    rows
        About how many it was asked.
    agreeing
        On how many it said what is on record.
    """

    rows: int
    agreeing: int


def run_check(path: Path, *, trust_pickle: bool, full: bool, as_json: bool) -> None:
    """Read the file and its table, check every setting, and try worldview and decision maker."""
    with collected_notes() as notes:
        plan = prepare(path, trust_pickle=trust_pickle, hashed=False).plan
        diagnosis = diagnose(plan)
        trial = _try_decision(plan)
    if as_json:
        found = {
            **_facts(plan),
            "decision": None
            if trial is None
            else {"asked": trial.rows, "as_recorded": trial.agreeing},
            "worldview": None if diagnosis is None else diagnosis.as_dict(),
            "notes": notes(),
        }
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    show_notes(notes())
    typer.echo("\n".join(_sentences(plan, trial)))
    if diagnosis is not None:
        _show_diagnosis(diagnosis, full=full)


def _show_diagnosis(diagnosis: Diagnosis, *, full: bool) -> None:
    """Show what was found, problems first; of much, the beginning."""
    sentences = diagnosis.sentences()
    shown = sentences if full or len(sentences) <= 2 * _SENTENCES else sentences[:_SENTENCES]
    typer.echo("\nWhat the table says about the worldview:")
    typer.echo("\n".join(shown))
    if len(shown) < len(sentences):
        more = len(sentences) - len(shown)
        typer.echo(f"… and {more} further sentences, which `mutandis check --full` prints.")


def _try_decision(plan: Plan) -> _Trial | None:
    """Ask b() about some people, spread evenly over the table."""
    if plan.decision is None:
        return None
    total = len(plan.population)
    rows = np.unique(np.linspace(0, total - 1, min(_TRIAL, total)).astype(np.intp))
    some = open_frame(plan.population.frame())[rows].to_native()
    decided = decide(plan.decision, some, plan.outcome)
    return _Trial(rows=len(rows), agreeing=int((decided == plan.outcome.is_negative[rows]).sum()))


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


def _sentences(plan: Plan, trial: _Trial | None) -> list[str]:
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
    if trial is not None:
        lines.append(
            f"Asked about {trial.rows:,} people, the decision maker answers, and says what is on "
            f"record for {trial.agreeing:,} of them."
        )
    return lines
