"""`mutandis prevent`: what remains of a saved audit when confirmed cases are relabelled."""

from __future__ import annotations

import json
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.prevention import study_prevention
from mutandis.cli.run import collected_notes, show_notes
from mutandis.cli.terminal import echo
from mutandis.files.people_file import write_people
from mutandis.files.saved_audit import open_results
from mutandis.frames import open_frame

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.auditing.prevention import Prevention

__all__ = ["run_prevent"]

_WIDTH = 80


def run_prevent(
    folder: Path, *, rule: Any, method: str | None, k: int | None, out: Path | None, as_json: bool
) -> None:
    """Open the results, relabel, audit again, and say what remains."""
    with collected_notes() as notes:
        study = study_prevention(
            open_results(folder), None, rule=rule, method=method, k=k, keep_status=False
        )
    show_notes(notes())
    counts = study.count_records()
    if out is not None:
        write_people(out, _table(study), sheet="decisions")
    if as_json:
        asked = {"rule": study.rule, "method": study.method, "k": study.k}
        echo(json.dumps(asked | {"relabelled": study.relabelled, "counts": counts}, indent=2))
        return
    echo(fill(study.sentence(), _WIDTH))
    echo()
    for each in counts:
        own = each["pattern_and_own_case"]
        also = "" if own is None else f", {own:,} of them with a case of their own"
        said = (
            f"{each['decisions']}: {each['cases']:,} of {each['complainants']:,} with evidence, "
            f"{each['significant_adjusted']:,} significant after adjustment{also}."
        )
        echo(fill(said, _WIDTH))
    echo()
    if out is None:
        echo("To write the table with the changed decisions, add --out relabelled.csv.")
    else:
        echo(f"The table with the changed decisions, which holds personal data: {out}")
    echo("To train a model on it and audit that: audit.prevent(model) in Python.")


def _table(study: Prevention) -> dict[str, Any]:
    """Give the changed table as columns, and say which decisions were changed."""
    frame = open_frame(study.decisions())
    ids = study.audits["relabelled"].plan.population.ids
    columns = {name: frame[name].to_numpy() for name in frame.columns}
    return {"id": ids, **columns, "relabelled": np.isin(ids, study.ids)}
