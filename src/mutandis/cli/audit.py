"""`mutandis check` and `mutandis audit`: from an audit file to a folder of results."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mutandis.cli.options import Config, Json, Sign, Threads, TrustCode, app
from mutandis.cli.terminal import (
    answer,
    collected_notes,
    echo,
    invocation,
    progress_bars,
    table_lines,
    wrap,
)
from mutandis.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.check import PlanCheck
    from mutandis.auditing.plan import Plan
    from mutandis.workers import Workers

# in a folder of tasks: it was made for them, and may be removed
_MARK = ".mutandis-tasks"


@app.command()
def check(
    config: Config,
    *,
    trust_code: TrustCode = False,
    json: Json = False,
) -> None:
    """Do everything short of the search: settings, table, worldview, a trial of the model."""
    from mutandis.store.audit_file import read_plan

    with collected_notes(show=not json) as notes:
        found = read_plan(config, trust_code=trust_code).check()
    answer({**found.as_dict(), "notes": notes()}, _describe_check(found, config), as_json=json)


def _describe_check(found: PlanCheck, config: Path) -> Iterator[str]:
    yield from map(wrap, found.sentences())
    if found.diagnosis is not None:
        yield "\nWhat the table says about the worldview"
        yield wrap(found.diagnosis.summary)
        for heading, sentences in found.diagnosis.sections().items():
            yield f"\n{wrap(heading)}"
            yield from (wrap(sentence, mark="- ") for sentence in sentences)
        yield f"\n{wrap(found.diagnosis.next_step)}"
    yield f"Run the audit: {invocation()} audit {config}"


@app.command()
def audit(
    config: Config,
    *,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace older results in that folder.")
    ] = False,
    sign: Sign = None,
    trust_code: TrustCode = False,
    threads: Threads = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Compute elsewhere: local:4 for four processes, tcp://host:8786 for a Dask "
            "scheduler.",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="About how much memory each process may use, such as 4GB."
        ),
    ] = None,
    sham: Annotated[
        int,
        typer.Option(
            min=0, help="Sham audits to run: the same audit where there is nothing to find."
        ),
    ] = 0,
    json: Json = False,
) -> None:
    """Run an audit and write its results: findings, counts, record, report, pictures."""
    from mutandis.mapped import arrays_in_files
    from mutandis.store.audit_file import read_plan
    from mutandis.store.output_folder import check_output
    from mutandis.store.results_folder import is_audit_folder, read_key
    from mutandis.store.saved_audit import save_audit

    key = read_key(sign, "private")
    check_output(out, replace=force, known=is_audit_folder)
    with collected_notes() as notes, ExitStack() as stack:
        workers = None
        if cluster is not None or memory is not None:
            folder = stack.enter_context(_task_folder(out))
            workers = stack.enter_context(_workers(cluster, folder, memory, threads))
            stack.enter_context(arrays_in_files(folder))
        plan = read_plan(config, trust_code=trust_code)
        found = run_with_bars(plan, threads=threads, workers=workers)
        with progress_bars() as bar:
            if sham:
                found = found.with_sham(sham, progress=bar("Running sham audits"))
            save_audit(
                found, out, overwrite=force, key=key, notes=notes(), progress=bar("Comparing")
            )
    answer(summary_of(found), _describe_audit(found, out), as_json=json)


def run_with_bars(
    plan: Plan, *, threads: int | None = None, workers: Workers | None = None
) -> Audit:
    """Run a plan, with a bar for the decision maker and one for the search."""
    from mutandis.auditing.run import run_plan
    from mutandis.decision.maker import with_progress

    with progress_bars() as bar:
        if plan.decision is not None:
            plan = replace(plan, decision=with_progress(plan.decision, bar("Asking the model")))
        search = bar("Searching")
        if workers is not None:
            workers = workers.following(search.count_tasks)
        return run_plan(plan, threads=threads, progress=search, cluster=workers, bars=bar)


def summary_of(found: Audit) -> dict[str, Any]:
    """Return what a run prints as data: the headline, sham audits, cautions and all counts."""
    from mutandis.auditing.robustness import count_grades
    from mutandis.engine.tally import CST_MATCHED

    method, k = found.plan.settings.primary
    results, findings = found.results, found.results.headline
    matched = CST_MATCHED in found.plan.methods
    own = (
        found.evaluate(CST_MATCHED.name, k, depth="significance").has_own_case if matched else None
    )
    pattern, compared = findings.has_pattern, results.worldviews
    return {
        "answer": [each.as_dict() for each in found.answers],
        "headline": {
            **found.results.summaries[method, k].counts,
            "pattern": int(pattern.sum()),
            "pattern_refused": int((pattern & findings.is_negative).sum()),
            "pattern_and_own_case": None if own is None else int((pattern & own).sum()),
        },
        **({} if results.sham is None else {"sham": results.sham.as_dict()}),
        "robustness": None
        if results.tipping is None
        else count_grades(results.tipping, findings.verdicts()),
        **({} if compared is None else {"worldviews": compared.as_dict()}),
        "cautions": found.cautions(),
        "counts": found.results.records(),
    }


def _describe_audit(found: Audit, out: Path) -> Iterator[str]:
    from mutandis.store.results_folder import REPORT

    yield from headline_lines(found)
    yield from count_lines(found)
    yield "Evidence is prima facie, and given the worldview: it is no proof.\n"
    yield f"{out / REPORT}"
    yield f"Look into it in a browser: {invocation()} explore {out}"
    yield f"One person's case file: {invocation()} case {out} ID (ids are in the report)."


def headline_lines(found: Audit) -> Iterator[str]:
    """Yield the answer, the headline, and what a reader of it has to know."""
    from mutandis.auditing.robustness import summarise_grades
    from mutandis.report.sentences import describe_headline

    yield from (f"{each!r}\n" for each in found.answers)
    for each in (describe_headline(found), summarise_grades(found), *found.cautions()):
        yield from map(wrap, each.splitlines())
    yield ""


def count_lines(found: Audit, title: str | None = None) -> Iterator[str]:
    """Yield cases with their share, and how many are significant before and after adjustment."""
    from mutandis.engine.tally import METHODS

    settings = found.plan.settings
    beyond = settings.measure.condition(settings.tau, worse=settings.worse)
    title = title or (
        f"Complainants with evidence: {beyond}\n"
        f"(* significant: one-sided test, α = {100 * settings.alpha:g} %; adjusted: for their "
        "number)"
    )
    records = {(r["method"], r["k"]): r for r in found.results.records()}
    tested = {"  significant": ("significant", "*")}
    if settings.evidence.adjust != "none":
        tested["  adjusted"] = ("significant_adjusted", "")
    rows = [["Method", *(f"k = {k}" for k in found.ks)]]
    for name in found.methods:
        kinds = {METHODS[name].title: ("cases", "")}
        kinds |= tested if METHODS[name].count_neighbours else {}
        for heading, (key, mark) in kinds.items():
            cells = (
                f"{r[key]:,} ({r[key] / r['complainants']:.1%}){mark}"
                for r in (records[name, k] for k in found.ks)
            )
            rows.append([heading, *cells])
    yield from table_lines(title, *rows)


@contextmanager
def _task_folder(out: Path) -> Iterator[Path]:
    """Yield a folder next to the results for inputs and answers of tasks.

    It is removed at the end. Where the block ends by an error it stays if there are answers in it:
    they are named by all that they depend on, and the next run goes on from there.
    """
    from mutandis.store.output_folder import locked_folder

    target = out.resolve()
    folder = target.with_name(f"{target.name}.tasks")
    if os.path.lexists(folder) and not _is_ours(folder):
        raise OutputError(
            f"{str(folder)!r} is needed for the tasks of the audit, and is not a folder that "
            "mutandis has made and this user alone can write to. Move it away."
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked_folder(folder):
        (folder / _MARK).touch()
        try:
            yield folder
        except BaseException:
            if not _answers(folder):
                shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    is_own = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    is_private = stat.S_ISDIR(found.st_mode) and is_own and not found.st_mode & 0o022
    return is_private and ((folder / _MARK).exists() or not any(folder.iterdir()))


def _answers(folder: Path) -> int:
    return sum(1 for _ in folder.glob("*.npz"))


@contextmanager
def _workers(
    cluster: str | None, folder: Path, memory: str | None, threads: int | None
) -> Iterator[Workers | None]:
    """Open workers, print where they can be watched, and what is kept if the block ends early."""
    from mutandis.workers import open_workers

    with open_workers(cluster, folder, memory, threads=threads or -1) as workers:
        if workers is not None and workers.dashboard is not None:
            echo(f"Dask dashboard: {workers.dashboard}", err=True)
        try:
            yield workers
        except BaseException:
            # printed before the cluster is closed, which can take longer than a signal allows
            if done := _answers(folder):
                kept = f"{done:,} finished tasks are kept in {folder.name}"
                echo(f"{kept}: the same command goes on from there.", err=True)
            raise
