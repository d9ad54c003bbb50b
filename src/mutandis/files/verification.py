"""Whether results are what was written, and whether they come out again."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mutandis.data.columns import jsonable
from mutandis.errors import InputError, OutputError
from mutandis.files.audit_file import read_plan_text
from mutandis.files.findings_file import compare_findings
from mutandis.files.output_folder import recover_output
from mutandis.files.results_folder import COUNTS, FINDINGS, find_differences, read_record
from mutandis.files.saved_audit import write_numbers
from mutandis.files.sources import source_of
from mutandis.files.table_files import hash_file

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Origin, Plan
    from mutandis.files.results_folder import AuditRecord

__all__ = ["Verification", "verify_results"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was found about a results folder.

    Parameters
    ----------
    differences
        What is not as it was written, in words; empty if everything is.
    files
        The number of files that were compared.
    source
        The table that was audited: the same, changed, or not reachable from here.
    rerun
        Whether the audit was run again.
    """

    differences: tuple[str, ...]
    files: int
    source: Literal["same", "changed", "not reachable"]
    rerun: bool

    def as_dict(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {**asdict(self), "differences": list(self.differences)}


def verify_results(
    folder: str | os.PathLike[str],
    *,
    rerun: bool = False,
    base: str | os.PathLike[str] | None = None,
    trust_code: bool = False,
    run: Callable[[Plan], Audit] | None = None,
) -> Verification:
    """Compare a results folder with its record, and with a rerun of the audit if asked to.

    Parameters
    ----------
    folder
        The results folder.
    rerun
        Run the audit again, and compare findings and counts bit for bit.
    base
        The folder that paths in the audit file start from, if it has moved.
    trust_code
        As for `read_plan`.
    run
        How the plan is run; default: `Plan.run`.

    Examples
    --------
    >>> import tempfile
    >>> import mutandis as mm
    >>> found = mm.audit(
    ...     mm.datasets.loan(n=400, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous"},
    ...     ks=(10,),
    ... )
    >>> folder = f"{tempfile.mkdtemp()}/results"
    >>> found.save(folder)
    >>> mm.verify_results(folder).differences
    ()
    """
    path = Path(folder)
    recover_output(path)
    record = read_record(path)
    origin = record.origin if base is None else replace(record.origin, folder=Path(base))
    differences = find_differences(record)
    changed = _source_changed(origin)
    # a file that is not there has not changed
    inputs = [
        f"the model {name} is not the one that was asked"
        for name, expected in origin.files.items()
        if (path := origin.folder / name).is_file() and hash_file(path) != expected
    ]
    if changed:
        inputs.append("the source is not the table that was audited")
    differences += inputs
    # nothing is loaded that is not what the record, as it was written, names
    if rerun and (inputs or not record.is_intact):
        differences.append("the audit cannot be repeated from something else")
    elif rerun:
        differences += _compare_rerun(record, origin, trust_code=trust_code, run=run)
    return Verification(
        differences=tuple(differences),
        files=len(record.outputs) + 1,
        source="not reachable" if changed is None else "changed" if changed else "same",
        rerun=rerun,
    )


def _source_changed(origin: Origin) -> bool | None:
    """Tell whether the source is another one now; None if it cannot be reached from here."""
    # from what is on record alone: neither a model nor a module is loaded for this
    try:
        source = source_of(origin.source, folder=origin.folder)
        return source.sha256() != str(origin.source["sha256"])
    except InputError:
        return None


def _compare_rerun(
    record: AuditRecord,
    origin: Origin,
    *,
    trust_code: bool,
    run: Callable[[Plan], Audit] | None,
) -> list[str]:
    plan = read_plan_text(
        origin.text, folder=origin.folder, name=origin.name, trust_code=trust_code
    )
    found = plan.run() if run is None else run(plan)
    _check_same(record, found)
    differences = []
    with tempfile.TemporaryDirectory() as name:
        again = Path(name)
        write_numbers(again, found)
        if (record.folder / FINDINGS).is_file():
            differences += [
                f"a rerun gives other findings: {count:,} differences in {column}"
                for column, count in compare_findings(
                    record.folder / FINDINGS, again / FINDINGS
                ).items()
            ]
        if hash_file(again / COUNTS) != record.outputs.get(COUNTS):
            differences.append("a rerun gives other counts")
    return differences


def _check_same(record: AuditRecord, found: Audit) -> None:
    """Refuse what is not the same audit of the same rows."""
    before, now = record.data["provenance"], jsonable(found.provenance.as_dict())
    changed = [
        name
        for part in ("data", "settings")
        for name, value in now[part].items()
        if before[part].get(name) != value
    ]
    if changed:
        raise OutputError(
            f"The audit in {str(record.folder)!r} was made with something else than is here now: "
            f"{', '.join(map(repr, changed))} differ. Restore what has changed, or run the audit "
            "again."
        )
