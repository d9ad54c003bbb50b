"""From an audit file to a plan: what `check`, `audit`, `case` and `verify` begin with."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutandis.auditing.audit import Audit
from mutandis.auditing.plan import draft_plan
from mutandis.auditing.progress_bar import following
from mutandis.auditing.run import run
from mutandis.cli.progress import progress_bars
from mutandis.data.protection import Protection
from mutandis.decision import as_decision_maker, required_columns, with_progress
from mutandis.files.audit_file import read_audit_text
from mutandis.files.results_folder import hash_file
from mutandis.files.sources import hash_source, read_source
from mutandis.files.text_files import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutandis.auditing.plan import Plan
    from mutandis.causal import Diagnosis
    from mutandis.files.audit_file import AuditFile

__all__ = ["Prepared", "diagnose", "hash_files", "prepare", "prepare_text", "run_prepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An audit that can be run, and where it comes from.

    Parameters
    ----------
    text, name, folder
        The audit file: its text, its name, and the folder its paths are relative to.
    written
        What it says.
    plan
        The plan, with the table read and every setting checked.
    source_sha256
        The hash of the source, taken before it was read; empty if nobody needs it.
    """

    text: str
    name: str
    folder: Path
    written: AuditFile
    plan: Plan
    source_sha256: str

    @property
    def source(self) -> dict[str, Any]:
        """Where the table is and what it hashes to, for the record; no secret is in it."""
        return {**self.written.source.describe(), "sha256": self.source_sha256}

    def file_hashes(self) -> dict[str, str]:
        """Hash the further files that were read, such as a model."""
        return hash_files(self.written, self.folder)


def prepare(
    path: Path, *, trust_pickle: bool = False, threads: int | None = None, hashed: bool = True
) -> Prepared:
    """Read an audit file and its table, and check everything."""
    return prepare_text(
        read_text(path),
        folder=path.parent,
        name=path.name,
        trust_pickle=trust_pickle,
        threads=threads,
        hashed=hashed,
    )


def prepare_text(
    text: str,
    *,
    folder: Path,
    name: str,
    trust_pickle: bool = False,
    threads: int | None = None,
    hashed: bool = True,
) -> Prepared:
    """Do the same for the text of an audit file, as a results folder keeps it."""
    written = read_audit_text(text, folder=folder, name=name, trust_pickle=trust_pickle)
    settings = dict(written.settings)
    if threads is not None:
        settings["threads"] = threads
    sha256 = hash_source(written.source) if hashed else ""
    table = read_source(written.source, columns=_columns_needed(settings))
    return Prepared(
        text=text,
        name=name,
        folder=folder,
        written=written,
        plan=draft_plan(table, **settings),
        source_sha256=sha256,
    )


def hash_files(written: AuditFile, folder: Path) -> dict[str, str]:
    """Hash the further files of an audit, by their paths as seen from the audit file."""
    return {
        Path(os.path.relpath(path, folder)).as_posix(): hash_file(path) for path in written.files
    }


def diagnose(plan: Plan) -> Diagnosis | None:
    """Ask what the table says about the worldview; None without one."""
    if plan.worldview is None:
        return None
    return plan.worldview.check(plan.population, protected=plan.protection.attribute, do=plan.do)


def run_prepared(prepared: Prepared) -> Audit:
    """Run an audit, with bars for those who wait."""
    plan = prepared.plan
    with progress_bars() as bar:
        if plan.decision is not None:
            plan = replace(plan, decision=with_progress(plan.decision, bar("Asking the model")))
        with following(plan, progress=bar("Searching")) as told:
            return Audit(run(plan, progress=told))


def _columns_needed(settings: Mapping[str, Any]) -> list[str] | None:
    """Name the columns that the audit reads; None for all, if b() does not say what it needs."""
    protected = settings["protected"]
    protections = [protected] if isinstance(protected, Protection) else protected
    names = [
        settings.get("id"),
        settings["outcome"],
        *(each.attribute for each in protections),
        *settings["attributes"],
    ]
    if settings.get("worldview") is not None:
        names += settings["worldview"].names
    if settings.get("decision") is not None:
        needed = required_columns(as_decision_maker(settings["decision"]))
        if not needed:
            return None
        names += needed
    return [name for name in dict.fromkeys(names) if name is not None]
