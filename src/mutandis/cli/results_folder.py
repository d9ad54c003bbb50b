"""An audit run again from its results folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mutandis.cli.load import prepare_text, run_prepared
from mutandis.errors import InputError, OutputError
from mutandis.files.output_folder import recover_output
from mutandis.files.results_folder import AuditRecord, hash_file, jsonable, read_record
from mutandis.files.sources import hash_source, source_of

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.auditing.audit import Audit
    from mutandis.cli.load import Prepared

__all__ = ["Results", "open_results"]

# it changes no number
_FREE = {"threads"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A results folder, with what is needed to run its audit again.

    Parameters
    ----------
    record
        What `audit.json` says.
    base
        The folder that the paths in the audit file are relative to now.
    trust_pickle, threads
        As for `mutandis audit`.
    """

    record: AuditRecord
    base: Path
    trust_pickle: bool = False
    threads: int | None = None

    def source_changed(self) -> bool | None:
        """Tell whether the source is another one now; None if it cannot be reached from here."""
        # from what is on record alone: neither a model nor anybody's module is loaded for this
        try:
            source = source_of(self.record.data["source"], folder=self.base)
            return hash_source(source) != self.record.source_sha256
        except InputError:
            return None

    def changed_files(self) -> list[str]:
        """Name the further files, such as a model, that are others now; absent ones are not."""
        there = {name: self.base / name for name in self.record.data["files"]}
        return [
            name
            for name, path in there.items()
            if path.is_file() and hash_file(path) != self.record.data["files"][name]
        ]

    def prepare(self) -> Prepared:
        """Read the table again; refuse a source or a model that has changed."""
        if self.source_changed():
            raise OutputError(
                f"The table is not the one that {str(self.record.folder)!r} was made from: its "
                "hash has changed. Restore that table, or run the audit again."
            )
        prepared = prepare_text(
            self.record.config_text,
            folder=self.base,
            name=self.record.config_name,
            trust_pickle=self.trust_pickle,
            threads=self.threads,
            hashed=False,
        )
        if prepared.file_hashes() != self.record.data["files"]:
            raise OutputError(
                f"The model is not the one that {str(self.record.folder)!r} was made with: its "
                "hash has changed. Restore it, or run the audit again."
            )
        return prepared

    def run_again(self, prepared: Prepared) -> Audit:
        """Run the audit again; refuse what is not the same audit of the same rows."""
        found = run_prepared(prepared)
        self._check_same(found)
        return found

    def _check_same(self, found: Audit) -> None:
        before, now = self.record.data["provenance"], jsonable(found.provenance.as_dict())
        changed = [
            name
            for part in ("data", "settings")
            for name, value in now[part].items()
            if name not in _FREE and before[part].get(name) != value
        ]
        if changed:
            raise OutputError(
                f"The audit in {str(self.record.folder)!r} was made with something else than is "
                f"here now: {', '.join(map(repr, changed))} differ. Restore what has changed, or "
                "run the audit again."
            )


def open_results(
    folder: Path,
    *,
    base: Path | None,
    trust_pickle: bool = False,
    threads: int | None = None,
) -> Results:
    """Open a results folder; `base` says where the audit file's paths start, if that has moved."""
    recover_output(folder)
    record = read_record(folder)
    return Results(
        record=record,
        base=record.config_folder if base is None else base,
        trust_pickle=trust_pickle,
        threads=threads,
    )
