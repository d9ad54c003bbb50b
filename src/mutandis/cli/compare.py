"""`mutandis compare`: one audit under several worldviews, and which choice breaks its verdicts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mutandis.auditing.worldview_comparison import compare_worldviews
from mutandis.auditing.worldview_variants import merge_worldviews, vary_worldview
from mutandis.cli.progress import progress_bars
from mutandis.cli.render import invocation
from mutandis.cli.run import collected_notes, show_notes
from mutandis.cli.terminal import echo
from mutandis.errors import PlanError, SettingsError
from mutandis.evidence.methods import METHODS
from mutandis.evidence.settings import AS_GIVEN
from mutandis.files.audit_file import read_plan
from mutandis.files.results_folder import read_key
from mutandis.files.saved_audit import open_results, save_again
from mutandis.files.text_files import write_atomically, write_csv
from mutandis.files.worldview_file import read_worldview

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mutandis.auditing.worldview_comparison import WorldviewVerdicts
    from mutandis.scm import Worldview

__all__ = ["run_compare"]

_Compared = tuple["WorldviewVerdicts", dict[str, Any]]


def run_compare(
    config: Path,
    others: Sequence[Path],
    *,
    variants: bool,
    out: Path | None,
    picture: Path | None,
    sign: Path | None,
    trust_code: bool,
    as_json: bool,
) -> None:
    """Run the audit under each worldview, and say how many verdicts stay under how many."""
    is_saved = config.is_dir()
    if sign is not None and not is_saved:
        raise PlanError("--sign is for a folder of results, which are written anew. Leave it out.")
    with collected_notes() as notes:
        if is_saved:
            found, table = _compare_saved(
                config, others, variants=variants, sign=sign, trust_code=trust_code
            )
        else:
            found, table = _compare_plan(config, others, variants=variants, trust_code=trust_code)
    if out is not None:
        write_csv(out, table)
    if picture is not None:
        write_atomically(picture, str(found.plot_matrix()))
    if as_json:
        echo(json.dumps({"method": found.method, "k": found.k, **found.as_dict()}, indent=2))
        return
    show_notes(notes())
    _show(found)
    if is_saved:
        echo(f"\nThe results in {config} say so now: findings, report, and case files to come.")
    doing = "explore" if is_saved else "audit"
    echo(f"Next: {invocation()} {doing} {config}")


def _compare_plan(
    config: Path, others: Sequence[Path], *, variants: bool, trust_code: bool
) -> _Compared:
    plan = read_plan(config, trust_code=trust_code)
    if plan.worldview is None:
        raise PlanError(f"{config.name!r} has no worldview. Give an audit file with one.")
    given = {config.stem: plan.worldview, **_read(others, {config.stem}, trust_code=trust_code)}
    more = vary_worldview(plan) if variants else {}
    with progress_bars() as bar:
        tried = [(name, each) for name, each in more.items() if name != AS_GIVEN]
        merged = merge_worldviews(plan, given, tried)
        compared = compare_worldviews(plan, merged, progress=bar("Auditing under worldviews"))
    return compared.verdicts(), compared.robustness_columns()


def _compare_saved(
    folder: Path, others: Sequence[Path], *, variants: bool, sign: Path | None, trust_code: bool
) -> _Compared:
    """Compare with what the results know already as well, and put the answer into them."""
    key = read_key(sign, "private")
    audit = open_results(folder)
    more = _read(others, {AS_GIVEN}, trust_code=trust_code)
    if more or variants:
        audit = audit.with_worldviews(more, variants=variants)
    with progress_bars() as bar:
        found = audit.measure_worldviews(bar("Auditing under worldviews"))
        if found is None:
            raise PlanError(
                "No worldviews were compared in these results. Name files of other worldviews, or "
                "add --variants."
            )
        if more or variants:
            save_again(audit, folder, key=key)
    known = audit.graded(audit.evaluate()).robustness
    return found, {**found.columns(), **({} if known is None else {"robustness": known.line})}


def _read(paths: Sequence[Path], taken: set[str], *, trust_code: bool) -> dict[str, Worldview]:
    """Read a worldview from each file: its own, or that of an audit file."""
    found: dict[str, Worldview] = {}
    for path in paths:
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
        name = path.stem if path.stem not in taken | found.keys() else str(path)
        found[name] = worldview
    return found


def _show(found: WorldviewVerdicts) -> None:
    echo(f"{METHODS[found.method].title}, k = {found.k}, under {len(found.names)} worldviews")
    echo()
    for row in found.summary_records():
        counts = row["verdicts"]
        significant = counts["significant"] + counts["significant-adjusted"]
        echo(
            f"{row['name']}: evidence for {significant + counts['evidence']:,}, significant for "
            f"{significant:,}"
            + (f"; weakens {row['breaks']:,} verdicts" if row["name"] != found.names[0] else "")
        )
    echo()
    echo(
        f"Verdicts under {found.names[0]!r} that are the same or stronger, by number of worldviews:"
    )
    for number, people in found.count_stays().items():
        echo(f"  {number:>3} of {len(found.names)}: {people:,}")
    echo("\nNo count is a probability: these worldviews are not a sample of anything.")
