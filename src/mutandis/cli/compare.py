"""`mutandis compare`: one audit under several worldviews, and which choice breaks its verdicts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mutandis.auditing.worldview_comparison import compare_worldviews
from mutandis.auditing.worldview_variants import merge_worldviews, vary_worldview
from mutandis.cli.progress import progress_bars
from mutandis.cli.run import collected_notes, show_notes
from mutandis.cli.terminal import echo
from mutandis.errors import PlanError, SettingsError
from mutandis.files.audit_file import read_plan
from mutandis.files.text_files import write_atomically, write_csv
from mutandis.files.worldview_file import read_worldview

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mutandis.auditing.plan import Plan
    from mutandis.auditing.worldview_comparison import WorldviewComparison
    from mutandis.causal import Worldview

__all__ = ["run_compare"]


def run_compare(
    config: Path,
    others: Sequence[Path],
    *,
    variants: bool,
    out: Path | None,
    picture: Path | None,
    trust_code: bool,
    as_json: bool,
) -> None:
    """Run the audit under each worldview, and say how many verdicts stay under how many."""
    with collected_notes() as notes:
        plan = read_plan(config, trust_code=trust_code)
        worldviews = _read(plan, config, others, trust_code=trust_code)
        if variants:
            worldviews |= {n: each for n, each in vary_worldview(plan).items() if n != "as given"}
        with progress_bars() as bar:
            merged = merge_worldviews(plan, worldviews)
            compared = compare_worldviews(plan, merged, progress=bar("Auditing under worldviews"))
    table = compared.robustness_columns()
    if out is not None:
        write_csv(out, table)
    if picture is not None:
        write_atomically(picture, str(compared.plot_matrix()))
    if as_json:
        echo(json.dumps(_as_dict(compared), indent=2))
        return
    show_notes(notes())
    _show(compared)


def _read(
    plan: Plan, config: Path, others: Sequence[Path], *, trust_code: bool
) -> dict[str, Worldview]:
    """Read a worldview from each file: its own, or that of an audit file."""
    if plan.worldview is None:
        raise PlanError(f"{config.name!r} has no worldview. Give an audit file with one.")
    found = {config.stem: plan.worldview}
    for path in others:
        try:
            worldview = read_worldview(path)
        except SettingsError as error:
            try:
                other = read_plan(path, trust_code=trust_code).worldview
            except SettingsError:
                raise error from None
            if other is None:
                raise PlanError(f"{path.name!r} has no worldview.") from None
            worldview = other
        name = path.stem if path.stem not in found else str(path)
        found[name] = worldview
    return found


def _as_dict(compared: WorldviewComparison) -> dict[str, object]:
    counts = compared.verdict_counts()
    breaks = {row["worldview"]: row["breaks"] for row in compared.summary_records()}
    return {
        "method": compared.method.name,
        "k": compared.k,
        "worldviews": [
            {"name": name, "verdicts": each, "breaks": breaks[name]}
            for name, each in counts.items()
        ],
        "stays_under": compared.count_stays(),
    }


def _show(compared: WorldviewComparison) -> None:
    names = list(compared.audits)
    echo(f"{compared.method.title}, k = {compared.k}, under {len(names)} worldviews")
    echo()
    for row in compared.summary_records():
        echo(
            f"{row['worldview']}: evidence for {row['cases']:,}, significant for "
            f"{row['significant']:,}"
            + (f"; weakens {row['breaks']:,} verdicts" if row["worldview"] != names[0] else "")
        )
    echo()
    echo(f"Verdicts under {names[0]!r} that are the same or stronger, by number of worldviews:")
    for number, people in compared.count_stays().items():
        echo(f"  {number:>3} of {len(names)}: {people:,}")
    echo("\nNo count is a probability: these worldviews are not a sample of anything.")
