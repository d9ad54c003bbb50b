"""`mutandis audit`: from an audit file to a folder of results."""

from __future__ import annotations

import json
import os
import shutil
import stat
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from mutandis.cli.progress import progress_bars
from mutandis.cli.render import counts_table, invocation, show_headline, summary_of
from mutandis.cli.run import collected_notes, run_with_bars, show_notes
from mutandis.cli.terminal import echo, make_console
from mutandis.errors import OutputError
from mutandis.files.audit_file import read_plan
from mutandis.files.output_folder import check_output, locked_folder
from mutandis.files.results_folder import REPORT, is_audit_folder, read_key
from mutandis.files.saved_audit import save_audit
from mutandis.mapped import arrays_in_files
from mutandis.workers import open_workers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mutandis.auditing.audit import Audit
    from mutandis.workers import Workers

__all__ = ["run_audit"]

# in a folder of tasks: it was made for them, and may be removed
_MARK = ".mutandis-tasks"


def run_audit(
    config: Path,
    out: Path,
    *,
    force: bool,
    sign: Path | None,
    trust_code: bool,
    threads: int | None,
    cluster: str | None,
    memory: str | None,
    resume: bool,
    as_json: bool,
) -> None:
    """Check everything, run, write the folder, and print the counts."""
    key = read_key(sign, "private")
    check_output(out, replace=force, known=is_audit_folder)
    with collected_notes() as notes, ExitStack() as stack:
        workers = None
        if cluster is not None or memory is not None or resume:
            folder = stack.enter_context(_task_folder(out, resume=resume))
            workers = stack.enter_context(_workers(cluster, folder, memory, threads))
            stack.enter_context(arrays_in_files(folder))
        plan = read_plan(config, trust_code=trust_code)
        found = run_with_bars(plan, threads=threads, workers=workers)
        with progress_bars() as bar:
            found.measure_noise_floor(bar("Running placebo audits"))
            found.measure_worldviews(bar("Auditing under worldviews"))
            if found.plan.settings.uncertainty.tipping:
                found.measure_tipping(progress=bar("Trying parts of the effect"))
            save_audit(
                found, out, overwrite=force, key=key, notes=notes(), progress=bar("Comparing")
            )
    show_notes(notes())
    if as_json:
        echo(json.dumps(summary_of(found), indent=2))
    else:
        _show(found, out)


@contextmanager
def _task_folder(out: Path, *, resume: bool) -> Iterator[Path]:
    """Give a folder beside the results for inputs and answers of tasks.

    It is removed at the end. Where the block ends by an error it stays if there are answers in it,
    for the next run to go on from.
    """
    target = out.resolve()
    folder = target.with_name(f"{target.name}.tasks")
    if os.path.lexists(folder):
        _check_leftover(folder, resume=resume)
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


def _answers(folder: Path) -> int:
    return sum(1 for _ in folder.glob("*.npz"))


def _check_leftover(folder: Path, *, resume: bool) -> None:
    """Refuse what mutandis or this user did not write, and to go on without being asked to."""
    found = folder.lstat()
    is_own = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    is_safe = stat.S_ISDIR(found.st_mode) and is_own and not found.st_mode & 0o022
    if not is_safe or not ((folder / _MARK).exists() or not any(folder.iterdir())):
        raise OutputError(
            f"{str(folder)!r} is needed for the tasks of the audit, and is not a folder that "
            "mutandis has made and this user alone can write to. Move it away."
        )
    if _answers(folder) and not resume:
        raise OutputError(
            f"The folder {str(folder)!r} holds the tasks of an audit that was ended early. Add "
            "--resume to go on from there, or remove the folder to begin anew."
        )


@contextmanager
def _workers(
    cluster: str | None, folder: Path, memory: str | None, threads: int | None
) -> Iterator[Workers | None]:
    """Open workers, say where they can be watched, and what is kept if the block ends early."""
    with open_workers(cluster, folder, memory, threads=threads or -1) as workers:
        if workers is not None and workers.dashboard is not None:
            echo(f"Dask dashboard: {workers.dashboard}", err=True)
        try:
            yield workers
        except BaseException:
            # said before the cluster is closed, which can take longer than a signal leaves time for
            if done := _answers(folder):
                echo(
                    f"{done:,} finished tasks are kept in {folder.name}: the same command with "
                    "--resume goes on from there.",
                    err=True,
                )
            raise


def _show(found: Audit, out: Path) -> None:
    settings = found.plan.settings
    beyond = settings.measure.condition(settings.tau, worse=settings.worse)
    console = make_console()
    show_headline(console, found)
    console.print(
        counts_table(
            found,
            f"Complainants with evidence: {beyond}\n"
            f"(* significant: one-sided test, α = {100 * settings.alpha:g} %; adjusted: for their "
            "number)",
        )
    )
    console.print(
        "Evidence is prima facie, and given the worldview: it is no proof.\n",
        highlight=False,
    )
    console.print(f"{out / REPORT}", highlight=False, markup=False, soft_wrap=True)
    for next_step in (
        f"Look into it in a browser: {invocation()} explore {out}",
        f"One person's case file: {invocation()} case {out} ID (ids are in the report).",
    ):
        console.print(next_step, highlight=False, markup=False, soft_wrap=True)
