"""`mutandis verify`: whether results are what was written, and whether they come out again."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mutandis.cli.audit import write_numbers
from mutandis.cli.results_folder import open_results
from mutandis.cli.warnings import collected_notes
from mutandis.files.findings_file import compare_findings
from mutandis.files.results_folder import COUNTS, FINDINGS, find_differences, hash_file

if TYPE_CHECKING:
    from mutandis.cli.results_folder import Results

__all__ = ["run_verify"]


def run_verify(
    folder: Path,
    *,
    rerun: bool,
    base: Path | None,
    trust_pickle: bool,
    threads: int | None,
    as_json: bool,
) -> int:
    """Compare hashes, and numbers if asked to; give the exit code."""
    results = open_results(folder, base=base, trust_pickle=trust_pickle, threads=threads)
    differences = [str(each) for each in find_differences(results.record)]
    changed = results.source_changed()
    inputs = [f"the model {name} is not the one that was asked" for name in results.changed_files()]
    if changed:
        inputs.append("the source is not the table that was audited")
    differences += inputs
    if rerun and inputs:
        differences.append("the audit cannot be repeated from something else")
    elif rerun:
        differences += _rerun(results)
    if as_json:
        found = {
            "differences": differences,
            "files": len(results.record.outputs),
            "source": {None: "not reachable", True: "changed", False: "same"}[changed],
            "rerun": rerun,
        }
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _show(results, differences, reachable=changed is not None, rerun=rerun)
    return 1 if differences else 0


def _rerun(results: Results) -> list[str]:
    """Run the audit again, and compare findings and counts bit for bit."""
    folder = results.record.folder
    with collected_notes():
        found = results.run_again(results.prepare())
    with tempfile.TemporaryDirectory() as name:
        again = Path(name)
        write_numbers(again, found)
        differences = []
        if (folder / FINDINGS).is_file():
            differences += [
                f"a rerun gives other findings: {count:,} differences in {column}"
                for column, count in compare_findings(folder / FINDINGS, again / FINDINGS).items()
            ]
        if hash_file(again / COUNTS) != results.record.outputs.get(COUNTS):
            differences.append("a rerun gives other counts")
    return differences


def _show(results: Results, differences: list[str], *, reachable: bool, rerun: bool) -> None:
    if differences:
        typer.echo(f"{results.record.folder} differs from what was written:")
        for each in differences:
            typer.echo(f"  {each}")
    else:
        count = len(results.record.outputs) + 1
        typer.echo(f"{results.record.folder}: all {count} files are as they were written.")
        if rerun:
            typer.echo("A rerun gives the same findings and counts, bit for bit.")
    if not reachable:
        typer.echo("The source cannot be reached from here and was not checked.")
    elif not differences:
        typer.echo("The source is the table that was audited.")
