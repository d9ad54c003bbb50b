"""`mutandis compare` and `mutandis robustness`: what verdicts owe to the worldview."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mutandis.cli.options import Json, K, PeopleFile, Results, Sign, TrustCode, app
from mutandis.cli.terminal import answer, collected_notes, invocation, progress_bars
from mutandis.errors import PlanError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.worldview_comparison import WorldviewVerdicts
    from mutandis.scm import Worldview

_Compared = tuple["WorldviewVerdicts", dict[str, Any]]


@app.command()
def compare(
    config: Annotated[
        Path,
        typer.Argument(help="An audit in a YAML file, or a folder that `mutandis audit` wrote."),
    ],
    others: Annotated[
        list[Path] | None,
        typer.Argument(help="Files of other worldviews, or audit files that have one."),
    ] = None,
    *,
    variants: Annotated[
        bool,
        typer.Option("--variants", help="Also try variants that differ in one choice each."),
    ] = False,
    out: PeopleFile = None,
    picture: Annotated[
        Path | None, typer.Option(help="An SVG file for worldviews against verdicts.")
    ] = None,
    sign: Sign = None,
    trust_code: TrustCode = False,
    json: Json = False,
) -> None:
    """Run one audit under several worldviews: which verdicts stay, and which choice breaks them.

    Where a folder of results is named, they are written anew with the answer in them.
    """
    from mutandis.store.text_files import write_atomically, write_csv

    is_saved = config.is_dir()
    if sign is not None and not is_saved:
        raise PlanError("--sign is for a folder of results, which are written anew. Leave it out.")
    with collected_notes(show=not json):
        if is_saved:
            found, table = _compare_saved(
                config, others or (), variants=variants, sign=sign, trust_code=trust_code
            )
        else:
            found, table = _compare_plan(
                config, others or (), variants=variants, trust_code=trust_code
            )
        if out is not None:
            write_csv(out, table)
        if picture is not None:
            write_atomically(picture, str(found.plot_matrix()))
    data = {"method": found.method, "k": found.k, **found.as_dict()}
    answer(data, _describe_comparison(found, config, is_saved=is_saved), as_json=json)


def _compare_plan(
    config: Path, others: Sequence[Path], *, variants: bool, trust_code: bool
) -> _Compared:
    from mutandis.auditing.worldview_comparison import compare_worldviews
    from mutandis.auditing.worldview_variants import merge_worldviews, vary_worldview
    from mutandis.config.schema import AS_GIVEN
    from mutandis.store.audit_file import read_plan

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
    from mutandis.config.schema import AS_GIVEN
    from mutandis.store.results_folder import read_key
    from mutandis.store.saved_audit import open_results, save_again

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
    from mutandis.store.audit_file import read_plan
    from mutandis.store.worldview_files import read_worldview

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


def _describe_comparison(
    found: WorldviewVerdicts, config: Path, *, is_saved: bool
) -> Iterator[str]:
    from mutandis.engine.methods import METHODS

    yield f"{METHODS[found.method].title}, k = {found.k}, under {len(found.names)} worldviews\n"
    for row in found.summary_records():
        counts = row["verdicts"]
        significant = counts["significant"] + counts["significant-adjusted"]
        broken = f"; weakens {row['breaks']:,} verdicts" if row["name"] != found.names[0] else ""
        yield (
            f"{row['name']}: evidence for {significant + counts['evidence']:,}, significant for "
            f"{significant:,}{broken}"
        )
    yield (
        f"\nVerdicts under {found.names[0]!r} that are the same or stronger, by number of "
        "worldviews:"
    )
    for number, people in found.count_stays().items():
        yield f"  {number:>3} of {len(found.names)}: {people:,}"
    yield "\nNo count is a probability: these worldviews are not a sample of anything."
    if is_saved:
        yield f"\nThe results in {config} now include this: findings, report, later case files."
    yield f"Next: {invocation()} {'explore' if is_saved else 'audit'} {config}"


@app.command()
def robustness(
    folder: Results,
    *,
    method: Annotated[
        str | None, typer.Option(help="cst_matched or cst_without (default: the primary one).")
    ] = None,
    k: K = None,
    out: PeopleFile = None,
    json: Json = False,
) -> None:
    """Count how much of the effect of the status must be real for each verdict to hold."""
    from mutandis.auditing.tipping import count_grades, rules_of
    from mutandis.store.saved_audit import open_results
    from mutandis.store.text_files import write_csv

    audit = open_results(folder)
    chosen, size = audit.plan.choose(method, k)
    with progress_bars() as bar:
        found = audit.measure_tipping(chosen.name, size, bar("Trying parts of the effect"))
    verdicts = audit.evaluate(chosen.name, size).verdicts()
    counts = count_grades(found, verdicts)
    if out is not None:
        columns = {"verdict": verdicts, **found.columns()}
        if (chosen.name, size) == audit.plan.settings.primary:
            columns |= _headline_columns(audit)
        write_csv(out, columns)

    def lines() -> Iterator[str]:
        yield f"{chosen.title}, k = {size}: how much of the effect of {audit.plan.status_label}, as"
        yield "modelled by the worldview, must be real for each verdict to hold\n"
        for verdict, grades in counts.items():
            yield f"{verdict}: {sum(grades.values()):,}"
            for grade, rule in rules_of(audit).items():
                yield f"  {grade:<10} {grades[grade]:>7,}  {rule}"
        if out is None:
            yield "\nTo write one row per complainant, add --out robustness.csv."
        yield f"Next, one person's case file: {invocation()} case {folder} ID"

    answer({"method": chosen.name, "k": size, "verdicts": counts}, lines(), as_json=json)


def _headline_columns(audit: Audit) -> dict[str, Any]:
    """Return what is known of the headline alone: hidden causes and other worldviews."""
    compared = audit.measure_worldviews()
    hidden = {} if audit.plan.worldview is None else audit.hidden_cause().columns
    return {**hidden, **({} if compared is None else compared.columns())}
