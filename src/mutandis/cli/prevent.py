"""`mutandis prevent`: what remains of a saved audit when confirmed cases are relabelled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mutandis.cli.options import Json, K, Results, app
from mutandis.cli.terminal import answer, collected_notes, wrap
from mutandis.registry import find

if TYPE_CHECKING:
    from collections.abc import Iterator


@app.command()
def prevent(
    folder: Results,
    *,
    rule: Annotated[
        str,
        typer.Option(
            help="Whose decisions are changed: own-case (verdict and own case) or pattern "
            "(verdict alone)."
        ),
    ] = "own-case",
    method: Annotated[
        str | None, typer.Option(help="Whose verdicts are taken (default: the primary method).")
    ] = None,
    k: K = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A file for the table with the changed decisions: .csv, .xlsx, .parquet."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Study what remains when the decisions on confirmed cases are changed; it is no remedy."""
    from mutandis.store.people_file import write_people
    from mutandis.store.saved_audit import open_results

    with collected_notes():
        study = find("room", "prevention").study_prevention(
            open_results(folder), rule=rule, method=method, k=k
        )
    if out is not None:
        write_people(out, _table(study), sheet="decisions")
    data = {
        "rule": study.rule,
        "method": study.method,
        "k": study.k,
        "relabelled": study.relabelled,
        "counts": study.count_records(),
    }
    answer(data, _describe(study, out), as_json=json)


def _describe(study: Any, out: Path | None) -> Iterator[str]:
    yield wrap(study.sentence()) + "\n"
    for each in study.count_records():
        own = each["pattern_and_own_case"]
        also = "" if own is None else f", {own:,} of them with a case of their own"
        yield wrap(
            f"{each['decisions']}: {each['cases']:,} of {each['complainants']:,} with evidence, "
            f"{each['significant_adjusted']:,} significant after adjustment{also}."
        )
    if out is None:
        yield "\nTo write the table with the changed decisions, add --out relabelled.csv."
    else:
        yield f"\nThe table with the changed decisions, which holds personal data: {out}"
    yield "To train a model on it and audit that: mutandis.rooms.prevention in Python."


def _table(study: Any) -> dict[str, Any]:
    """Return the changed table as columns, with a column for changed decisions."""
    import numpy as np

    from mutandis.frames import open_frame

    frame = open_frame(study.decisions())
    ids = study.audits["relabelled"].plan.population.ids
    columns = {name: frame[name].to_numpy() for name in frame.columns}
    return {"id": ids, **columns, "relabelled": np.isin(ids, study.ids)}
