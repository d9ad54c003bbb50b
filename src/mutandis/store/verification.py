"""Whether results are what was written, and whether they come out again."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from mutandis.data.columns import jsonable, plain_value
from mutandis.errors import InputError, MutandisError, OutputError
from mutandis.store.audit_file import read_plan_text
from mutandis.store.files import compare_findings, hash_file
from mutandis.store.output_folder import locked_folder, recover_output
from mutandis.store.results_folder import (
    CASES,
    FINDINGS,
    QUERIES,
    RECORD,
    STATE,
    SUMS,
    case_name,
    expected_files,
    find_differences,
    read_key,
    read_record,
)
from mutandis.store.saved_audit import same_state, write_files
from mutandis.store.tables import source_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Origin, Plan
    from mutandis.store.results_folder import AuditRecord

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
        """Return it as plain data."""
        return {**asdict(self), "differences": list(self.differences)}


def verify_results(
    folder: str | os.PathLike[str],
    *,
    rerun: bool = False,
    key: str | os.PathLike[str] | None = None,
    base: str | os.PathLike[str] | None = None,
    trust_code: bool = False,
    run: Callable[[Plan], Audit] | None = None,
) -> Verification:
    """Compare a results folder with its records, and with a rerun of the audit if asked to.

    Every file is compared: report, pictures, findings, case files. Links, and files that mutandis
    did not write, are named.

    Parameters
    ----------
    folder
        The results folder.
    rerun
        Run the audit again, and compare versions, diagnostics and all files bit for bit, but for
        the log of an endpoint, which holds times.
    key
        A public Ed25519 key in PEM: see whether the audit and its case files are signed with it.
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
    public = read_key(key, "public")

    recover_output(path)
    record = read_record(path)
    with locked_folder(path):
        recover_output(path / CASES)
        differences = find_differences(record)
        files = expected_files(record)
    if public is not None:
        records = [name for name in (RECORD, f"{CASES}/{SUMS}") if name in files]
        faults = {name: public.find_fault(path / name) for name in records}
        differences += [f"{name} {fault}" for name, fault in faults.items() if fault]
    origin = record.origin if base is None else replace(record.origin, folder=Path(base))
    changed = _source_changed(origin)
    # a file that is not there has not changed
    inputs = [
        f"the model {name} is not the one that was asked"
        for name, expected in origin.files.items()
        if (model := origin.folder / name).is_file() and hash_file(model) != expected
    ]
    if changed:
        inputs.append("the source is not the table that was audited")
    differences += inputs
    # nothing is loaded that is not what the record, as it was written, names
    if rerun and (inputs or not record.is_intact):
        differences.append("the audit cannot be repeated from something else")
    elif rerun:
        plan = record.label(
            read_plan_text(
                origin.text,
                folder=origin.folder,
                name=origin.name,
                trust_code=trust_code,
                added=record.data["added"],
            )
        )
        again = plan.run() if run is None else run(plan)
        if (sham := record.data["sham"]) is not None:
            again = again.with_sham(len(sham["found"]), seed=sham["seed"])
        differences += _compare_rerun(record, again, files)
    return Verification(
        differences=tuple(differences),
        files=len(files),
        source="not reachable" if changed is None else "changed" if changed else "same",
        rerun=rerun,
    )


def _source_changed(origin: Origin) -> bool | None:
    """Compare the hash of the source with the record; None if it cannot be reached from here."""
    # from what is on record alone: neither a model nor a module is loaded for this
    try:
        source = source_of(origin.source, folder=origin.folder)
        return source.sha256() != str(origin.source["sha256"])
    except InputError:
        return None


def _compare_rerun(record: AuditRecord, found: Audit, files: Mapping[str, str | None]) -> list[str]:
    """Write everything again, elsewhere, and describe what differs."""
    _check_same(record, found)
    before = record.data["provenance"]["versions"]
    here = dict(found.provenance.versions)
    differences = [
        f"{name} is {here.get(name, 'absent')} here, and was {before.get(name, 'not recorded')}"
        for name in {**before, **here}
        if before.get(name) != here.get(name)
    ]
    # pages print the versions: with those on record, all else can be compared
    found = replace(found, provenance=replace(found.provenance, versions=before))
    with tempfile.TemporaryDirectory() as name:
        again = Path(name)
        write_files(again, found, out=record.folder)
        differences += _compare_records(record.data, read_record(again).data)
        differences += _compare_outputs(record, again)
        differences += _compare_cases(found, files, again)
    return differences


def _compare_records(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    names = ("settings", "diagnostics", "answer", "disagreement", "sham", "files", "robustness")
    differing = [name for name in names if before.get(name) != now.get(name)]
    if before["provenance"]["computed"] != now["provenance"]["computed"]:
        differing.append("provenance")
    return [f"a rerun gives other {name} in {RECORD}" for name in differing]


def _compare_outputs(record: AuditRecord, again: Path) -> list[str]:
    now, folder = read_record(again).outputs, record.folder
    differing = {
        name
        for name in {**record.outputs, **now}
        if record.outputs.get(name) != now.get(name) and name != QUERIES
    }
    # other versions compress in other ways
    both = {name for name in (FINDINGS, STATE) if (folder / name).is_file()}
    if STATE in both & differing and same_state(folder / STATE, again / STATE):
        differing.remove(STATE)
    details = []
    if FINDINGS in both:
        differing.discard(FINDINGS)
        details = [
            f"a rerun gives other findings: {count:,} differences in {column}"
            for column, count in compare_findings(folder / FINDINGS, again / FINDINGS).items()
        ]
    return [*details, *(f"a rerun gives another {name}" for name in sorted(differing))]


def _compare_cases(found: Audit, files: Mapping[str, str | None], again: Path) -> list[str]:
    """Make every case file again from the rerun."""
    ids = found.plan.population.ids[found.study.people]
    by_name = {case_name(str(each)): plain_value(each) for each in ids}
    (again / CASES).mkdir()
    documents: dict[str, Any] = {}
    differences = []
    for name, expected in files.items():
        path = PurePosixPath(name)
        if path.parts[0] != CASES or expected is None:
            continue
        who, *further = path.stem.split(".")
        if who not in by_name:
            differences.append(f"{name} is about no complainant of this audit")
            continue
        if path.stem not in documents:
            documents[path.stem] = found.case_file(by_name[who], redact=bool(further))
        try:
            documents[path.stem].write(again / name)
        except MutandisError as error:  # PDF needs what may not be here
            differences.append(f"{name} was not compared: {error}")
            continue
        if hash_file(again / name) != expected:
            differences.append(f"a rerun gives another {name}")
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
