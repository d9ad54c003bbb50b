"""`mutandis audit`: from an audit file to a folder of results."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from mutandis.cli.load import diagnose, prepare, run_prepared
from mutandis.cli.progress import progress_bars
from mutandis.cli.warnings import collected_notes, show_notes
from mutandis.decision import query_records
from mutandis.files.findings_file import write_findings
from mutandis.files.output_folder import check_output, output_folder
from mutandis.files.results_folder import (
    COUNTS,
    FINDINGS,
    PLOTS,
    QUERIES,
    REPORT,
    is_audit_folder,
    write_record,
)
from mutandis.files.text_files import write_csv
from mutandis.files.yaml_nodes import plain_data, read_yaml
from mutandis.frames import columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mutandis.auditing.audit import Audit
    from mutandis.causal import Diagnosis
    from mutandis.cli.load import Prepared
    from mutandis.cli.progress import Advance
    from mutandis.evidence.findings import Findings

__all__ = ["run_audit", "write_counts", "write_numbers"]


def run_audit(
    config: Path, out: Path, *, force: bool, trust_pickle: bool, threads: int | None, as_json: bool
) -> None:
    """Check everything, run, write the folder, and print the counts."""
    check_output(out, replace=force, known=is_audit_folder)
    with collected_notes() as notes:
        prepared = prepare(config, trust_pickle=trust_pickle, threads=threads)
        with output_folder(out, replace=force, known=is_audit_folder) as folder:
            found = run_prepared(prepared)
            diagnosis = diagnose(prepared.plan)
            write_numbers(folder, found)
            _write_report(folder, found, diagnosis, prepared)
            _write_queries(folder, found)
            write_record(folder, _record(prepared, found, diagnosis, notes(), out=out))
    show_notes(notes())
    if as_json:
        typer.echo(json.dumps(found.count_records(), indent=2))
    else:
        _show(found, out)


def write_numbers(folder: Path, found: Audit) -> None:
    """Write the findings and the counts: what a rerun has to give again, bit for bit."""
    with progress_bars() as bar:
        write_findings(folder / FINDINGS, _told(found, bar("Comparing")))
    write_counts(folder, found)


def _told(found: Audit, advance: Advance) -> Iterator[Findings]:
    """Give the findings one after the other, and tell how many there are still to come."""
    total = len(found.methods) * len(found.ks)
    for done, findings in enumerate(found.each_findings(), start=1):
        yield findings
        advance(done, total)


def write_counts(folder: Path, found: Audit) -> None:
    """Write the counts alone."""
    write_csv(folder / COUNTS, columns_of(found.count_records()))


def _write_report(
    folder: Path, found: Audit, diagnosis: Diagnosis | None, prepared: Prepared
) -> None:
    report = found.make_report(diagnosis=diagnosis, source=prepared.source)
    (folder / REPORT).write_text(report.html, encoding="utf-8")
    (folder / PLOTS).mkdir()
    for name, svg in report.plots.items():
        (folder / PLOTS / f"{name}.svg").write_text(svg, encoding="utf-8")


def _write_queries(folder: Path, found: Audit) -> None:
    """Keep the log of what an endpoint was asked, without any row that was sent."""
    decision = found.result.plan.decision
    records = () if decision is None else query_records(decision)
    if records:
        lines = (json.dumps(each, ensure_ascii=False) for each in records)
        (folder / QUERIES).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _shared_neighbours(found: Audit) -> list[str]:
    """Say how far the tests depend on each other, once for each attribute audited by itself."""
    parts = [found.part(name) for name in found.result.parts] or [found]
    return [part.shared_neighbours().sentence() for part in parts if _has_groups(part)]


def _has_groups(found: Audit) -> bool:
    return found.result.grouping.control is not None


def _record(
    prepared: Prepared,
    found: Audit,
    diagnosis: Diagnosis | None,
    notes: list[str],
    *,
    out: Path,
) -> dict[str, Any]:
    folder = os.path.relpath(prepared.folder.resolve(), out.resolve())
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": {"name": prepared.name, "folder": folder, "text": prepared.text},
        "settings": plain_data(read_yaml(prepared.text)),
        "source": prepared.source,
        "files": prepared.file_hashes(),
        "provenance": found.provenance.as_dict(),
        "diagnostics": None if diagnosis is None else diagnosis.as_dict(),
        "disagreement": found.disagreement,
        "shared_neighbours": _shared_neighbours(found),
        "notes": notes,
    }


def _show(found: Audit, out: Path) -> None:
    from rich.console import Console

    from mutandis.cli.render import counts_table

    settings = found.result.plan.settings
    beyond = ">" if settings.direction == "negative" else "< -"
    console = Console()
    console.print(
        counts_table(
            found,
            f"Complainants with evidence: Δp {beyond} {settings.tau:g}\n"
            f"(* significant: one-sided test, α = {100 * settings.alpha:g} %)",
        )
    )
    console.print(
        "Evidence is prima facie, and given the worldview: it is no proof.\n",
        highlight=False,
    )
    console.print(f"{out / REPORT}", highlight=False, markup=False, soft_wrap=True)
    console.print(
        f"One person's case file: mutandis case {out} ID (ids are in the report).",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
