"""A finished audit in a folder: written whole or not at all, and read back without a rerun.

Beside what people read (report, pictures, counts, findings) the folder keeps what was counted, so
that the audit can answer further questions: the columns that were used, the counterfactual ones,
and the integer counts of the search. Nothing that is read back is executed: neither a model nor a
module is loaded, and the decision maker is only described.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.answer import Answer
from mutandis.auditing.audit import Audit
from mutandis.auditing.counterfactual_table import CounterfactualTable
from mutandis.auditing.plan import Origin
from mutandis.auditing.provenance import Provenance, hash_population
from mutandis.auditing.results import Ground, assess
from mutandis.auditing.robustness import (
    Tipping,
    count_grades,
    each_findings,
    find_robustness,
    rules_of,
    summarise_grades,
)
from mutandis.auditing.run import refits_once, study_of
from mutandis.auditing.sham import ShamAudits
from mutandis.auditing.worldviews import WorldviewVerdicts
from mutandis.config.yaml import read_yaml, write_yaml
from mutandis.data.columns import Categories, Numbers, frozen, plain_value
from mutandis.data.population import Population, patch_rows
from mutandis.decision.maker import DescribedMaker, query_records, required_columns
from mutandis.engine.engine import Engine
from mutandis.engine.pack import tally_arrays, tally_of
from mutandis.engine.study import World
from mutandis.errors import DecisionError, MutandisError, OutputError
from mutandis.frames import columns_of, open_frame
from mutandis.limits import explain_limit, limit, open_regular, unpacked_bytes
from mutandis.store.audit_file import SavedInputs, added_sections, read_plan_text, write_plan
from mutandis.store.files import hash_file, write_csv, write_findings
from mutandis.store.output_folder import (
    output_folder,
    recover_output,
)
from mutandis.store.results_folder import (
    COUNTS,
    FINDINGS,
    PLOTS,
    QUERIES,
    RECORD,
    REPORT,
    SCHEMAS,
    STATE,
    is_audit_folder,
    read_record,
    write_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.data.columns import Column
    from mutandis.scm import Diagnosis
    from mutandis.store.results_folder import AuditRecord, RecordKey
    from mutandis.verdicts.findings import Findings

__all__ = [
    "open_results",
    "same_state",
    "save_audit",
    "write_files",
]

# ten million rows with fifty attributes
_BYTES = 4_000_000_000
# numbers of an array that are compressed to see whether it gets smaller, and what counts as that
_TRIED, _SHRUNK = 1 << 14, 0.9
# of results, what is stored; for whom is known
_TIPPING = ("point", "fragile", "appears", "without")
_WORLDVIEWS = ("names", "strength", "delta_p")


def save_audit(
    audit: Audit,
    folder: Path,
    *,
    overwrite: bool = False,
    key: RecordKey | None = None,
    notes: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write an audit into a folder, as `Audit.save` says.

    `notes` is what was said to the auditor while the audit ran; `progress` is called with the
    numbers of findings that are written and that there are.
    """
    with output_folder(folder, replace=overwrite, known=is_audit_folder) as temporary:
        write_files(temporary, audit, out=folder, notes=notes, progress=progress)
        if key is not None:
            key.sign(temporary / RECORD)


def write_files(
    folder: Path,
    audit: Audit,
    *,
    out: Path,
    notes: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write all files of an audit, as they are to be in the folder `out`."""
    diagnosis = audit.plan.check_worldview()
    write_findings(folder / FINDINGS, _followed(audit, progress))
    write_csv(folder / COUNTS, columns_of(audit.results.records()))
    _write_report(folder, audit, diagnosis)
    queries = query_records(audit.plan.decision)
    if queries:  # what an endpoint was asked, without any row that was sent
        lines = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in queries)
        (folder / QUERIES).write_text(lines, encoding="utf-8")
    _write_state(folder / STATE, audit)
    (folder / SCHEMAS).mkdir()
    for each in resources.files("mutandis.store").joinpath("schemas").iterdir():
        (folder / SCHEMAS / each.name).write_bytes(each.read_bytes())
    write_record(folder, _record(audit, diagnosis, notes, out))


def _followed(audit: Audit, progress: Callable[[int, int], None] | None) -> Iterator[Findings]:
    total = len(audit.methods) * len(audit.ks)
    for done, findings in enumerate(each_findings(audit), start=1):
        yield findings
        if progress is not None:
            progress(done, total)


def _write_report(folder: Path, audit: Audit, diagnosis: Diagnosis | None) -> None:
    report = audit.report(diagnosis=diagnosis)
    (folder / REPORT).write_text(report.html, encoding="utf-8")
    (folder / PLOTS).mkdir()
    for name, svg in report.plots.items():
        (folder / PLOTS / f"{name}.svg").write_text(str(svg), encoding="utf-8")


def _record(
    audit: Audit, diagnosis: Diagnosis | None, notes: Sequence[str], out: Path
) -> dict[str, Any]:
    origin = audit.plan.origin
    if origin is None:  # a table in memory, without a file to name
        data = {"source": "(memory)", **({"id": audit.plan.id} if audit.plan.id else {})}
        origin = Origin(
            text=write_yaml({"data": data}) + write_plan(audit.plan),
            name="audit.yaml",
            folder=Path.cwd(),
            source={"kind": "memory", "sha256": ""},
            files={},
        )
    text, results = origin.text, audit.results
    added = {} if audit.plan.origin is None else added_sections(text, audit.plan)
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": {
            "name": origin.name,
            "folder": os.path.relpath(origin.folder.resolve(), out.resolve()),
            "text": text,
        },
        "added": added,
        "settings": read_yaml(text).data | added,
        "labels": audit.plan.labels.as_dict(),
        "source": dict(origin.source),
        "files": dict(origin.files),
        "provenance": audit.provenance.as_dict(),
        "diagnostics": None if diagnosis is None else diagnosis.as_dict(),
        "answer": [each.as_dict() for each in audit.answers],
        "disagreement": audit.disagreement,
        "sham": None if results.sham is None else results.sham.as_dict(),
        "robustness": _robustness(audit),
        "notes": list(notes),
    }


def _robustness(audit: Audit) -> dict[str, Any] | None:
    results = audit.results
    if results.tipping is None:
        return None
    return {
        "rules": rules_of(audit),
        "verdicts": count_grades(results.tipping, results.headline.verdicts()),
        "sentence": summarise_grades(audit),
        **({} if results.worldviews is None else results.worldviews.as_dict()),
    }


def _write_state(path: Path, audit: Audit) -> None:
    """Write what was counted: arrays, and a header in JSON that refers to them by number."""
    population, decision = audit.plan.population, audit.plan.decision
    state = {
        "id": audit.plan.id,
        "ids": _storable_ids(population.ids),
        "positions": population.positions,
        "columns": _store_columns(population.columns),
        "dropped": list(population.dropped.items()),
        "decision_inputs": () if decision is None else required_columns(decision),
        "parts": [_ground_state(ground) for ground in audit.grounds],
        "tipping": _arrays_of(audit.results.tipping, _TIPPING),
        "worldviews": _arrays_of(audit.results.worldviews, _WORLDVIEWS),
    }
    arrays: list[NDArray[Any]] = []

    def refer(array: NDArray[Any]) -> dict[str, str]:
        arrays.append(array)
        return {"array": f"arr_{len(arrays) - 1}"}  # the names that NumPy gives

    text = json.dumps(state, default=refer)
    header = np.frombuffer(text.encode(), dtype=np.uint8)
    named = {f"arr_{number}": array for number, array in enumerate(arrays)} | {"header": header}
    # as NumPy writes it, in a quarter of the time: its level of compression is fixed
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in named.items():
            entry: Any = f"{name}.npy"
            if not _shrinks(array):
                entry = zipfile.ZipInfo(entry)  # stored as it is
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _shrinks(array: NDArray[Any]) -> bool:
    """Whether an array is worth compressing, by a part of it: measurements hardly are."""
    part = np.asarray(array).flat[:_TRIED].tobytes()
    return len(zlib.compress(part, 1)) < _SHRUNK * len(part)


def _arrays_of(found: Any, names: Iterable[str]) -> dict[str, Any] | None:
    return None if found is None else {name: getattr(found, name) for name in names}


def _read_tipping(stored: Mapping[str, Any] | None, audit: Audit) -> Tipping | None:
    if stored is None:
        return None
    ids = audit.plan.population.ids[audit.study.people]
    flags = [stored["fragile"], *stored["without"].values()]
    for kind, arrays in (("f", [stored["point"], stored["appears"]]), ("b", flags)):
        for array in arrays:
            _check_array(array, kind, ids.shape)
    method, k = audit.plan.settings.primary
    return Tipping(method=method, k=k, ids=ids, **stored)


def _read_worldviews(stored: Mapping[str, Any] | None, audit: Audit) -> WorldviewVerdicts | None:
    if stored is None:
        return None
    names = tuple(map(str, stored["names"]))
    ids = audit.plan.population.ids[audit.study.people]
    for kind, array in (("i", stored["strength"]), ("f", stored["delta_p"])):
        _check_array(array, kind, (len(ids), len(names)))
    if not (names and np.isin(stored["strength"], range(-1, 4)).all()):
        raise ValueError("other verdicts")
    method, k = audit.plan.settings.primary
    return WorldviewVerdicts(
        names=names,
        method=method,
        k=k,
        worse=audit.plan.settings.evidence.direction == "negative",
        ids=ids,
        strength=stored["strength"],
        delta_p=stored["delta_p"],
    )


def _ground_state(part: Ground) -> dict[str, Any]:
    made, rows = part.world.point, part.study.protected
    changed = {} if made is None else {name: made.columns[name] for name in sorted(made.changed)}
    return {
        "counterfactual": None if made is None else _store_columns(changed),
        "refused": part.world.decided,
        "tally": tally_arrays(part.tally),
        "verdict_shares": dict(part.verdict_shares),
        "drawn": [  # the rows that were compared
            _store_columns({name: each.part(name, rows) for name in sorted(each.changed)})
            for each in part.world.draws
        ],
        "refused_in_draws": part.world.decided_parts,
        "answer": None if part.answer is None else part.answer.packed(),
    }


def _store_columns(columns: Mapping[str, Column]) -> list[tuple[str, NDArray[Any], Any]]:
    """List names, values and levels; what JSON does not know becomes text."""
    stored: list[tuple[str, NDArray[Any], Any]] = []
    for name, column in columns.items():
        if isinstance(column, Numbers):
            stored.append((name, column.values, None))
        else:
            levels = [plain_value(level) for level in column.levels]
            plain = [x if isinstance(x, str | int | float) else str(x) for x in levels]
            stored.append((name, column.codes, plain))
    return stored


def _storable_ids(ids: NDArray[Any]) -> NDArray[Any]:
    if ids.dtype.kind in "iuf":
        return ids
    values = ids.tolist()
    if all(type(each) is int for each in values):
        return np.array(values, dtype=np.int64)
    return np.array([str(each) for each in values], dtype=np.str_)


def open_results(folder: str | os.PathLike[str]) -> Audit:
    """Open a folder that `Audit.save` or `mutandis audit` has written.

    The audit answers from the folder: nothing is fitted or searched again, and no model is loaded.
    Tables come back as pandas frames.

    Parameters
    ----------
    folder
        The results folder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mutandis as mm
    >>> found = mm.audit(
    ...     {
    ...         "woman": [1, 1, 0, 0, 0, 0],
    ...         "salary": [10.0, 11.0, 10.0, 11.0, 15.0, 16.0],
    ...         "granted": ["no", "no", "no", "no", "yes", "yes"],
    ...     },
    ...     outcome="granted",
    ...     negative="no",
    ...     protected=mm.Protection("woman", value=1, reference=0),
    ...     attributes={"salary": "continuous"},
    ...     ks=(1,),
    ... )
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     found.save(Path(parent, "results"))
    ...     again = mm.open_results(Path(parent, "results"))
    ...     again.findings().equals(found.findings())
    True
    """
    path = Path(folder)
    recover_output(path)
    record = read_record(path)
    if not record.is_intact:
        raise _damaged(path / RECORD)
    if not (path / STATE).is_file() or hash_file(path / STATE) != record.outputs.get(STATE):
        raise _damaged(path / STATE)
    with _reject_corrupt(path / STATE):
        return _assemble(record, _read_state(path / STATE))


@contextmanager
def _reject_corrupt(path: Path) -> Iterator[None]:
    """Refuse a file as damaged, whatever its contents lead to: hashes that fit prove nothing."""
    try:
        yield
    except MutandisError:
        raise
    except Exception:  # noqa: BLE001 - what was written by someone else can be anything
        raise _damaged(path) from None


def _assemble(record: AuditRecord, state: Mapping[str, Any]) -> Audit:
    path = record.folder
    population = _population(state)
    provenance = Provenance(**record.data["provenance"])
    if hash_population(population) != provenance.data["sha256"]:
        raise _damaged(path / STATE)
    described = provenance.settings["decision"]
    origin = record.origin
    plan = read_plan_text(
        origin.text,
        folder=origin.folder,
        name=origin.name,
        added=record.data["added"],
        saved=SavedInputs(
            population=population,
            counterfactuals=_supplied(state["parts"][0], population),
            decision=None
            if described is None
            else _Described(described, tuple(state["decision_inputs"])),
        ),
    )
    plan = record.label(replace(plan, origin=origin))
    grounds = tuple(
        _restore(part, each, provenance.computed)
        for part, each in zip(state["parts"], plan.by_ground(), strict=True)
    )
    results = replace(assess(plan, grounds), sham=_read_sham(record.data["sham"]))
    audit = Audit(plan=plan, grounds=grounds, results=results, provenance=provenance)
    results = replace(
        results,
        tipping=_read_tipping(state["tipping"], audit),
        worldviews=_read_worldviews(state["worldviews"], audit),
    )
    return find_robustness(replace(audit, results=results))


def _read_sham(data: Mapping[str, Any] | None) -> ShamAudits | None:
    if data is None:
        return None
    known = {each.name: data[each.name] for each in fields(ShamAudits)}
    return ShamAudits(**{**known, "found": tuple(data["found"])})


def _supplied(part: Mapping[str, Any], population: Population) -> CounterfactualTable | None:
    """Take stored counterfactuals for a supplied table, where no file can hold the worldview."""
    if part["counterfactual"] is None:
        return None
    made = population.with_columns(_columns(part["counterfactual"]))
    return CounterfactualTable(population=made, is_negative=part["refused"])


def _restore(part: Mapping[str, Any], plan: Plan, computed: Mapping[str, Any]) -> Ground:
    """Return a ground as it was stored."""
    if "parts" in computed:
        computed = computed["parts"][plan.protections[0].attribute]
    supplied = _supplied(part, plan.population)
    study = study_of(plan)
    drawn = tuple(
        (patch_rows(plan.population, study.protected, _columns(each)), 1) for each in part["drawn"]
    )
    return Ground(
        plan=plan,
        engine=Engine(study),
        world=World(
            point=None if supplied is None else supplied.population,
            parts=drawn,
            drawn=bool(drawn),
            decided=part["refused"],
            decided_parts=part["refused_in_draws"],
        ),
        tally=tally_of(part["tally"]),
        computed=computed,
        refits=refits_once(plan),
        verdict_shares=part["verdict_shares"],
        answer=None if part["answer"] is None else Answer.unpacked(part["answer"]),
    )


def _check_array(array: NDArray[Any], kinds: str, shape: tuple[int, ...]) -> None:
    if array.dtype.kind not in kinds or array.shape != shape:
        raise ValueError("another array")


def _population(state: Mapping[str, Any]) -> Population:
    columns, ids = _columns(state["columns"]), frozen(state["ids"])
    return Population(
        columns=MappingProxyType(columns),
        ids=ids,
        positions=frozen(state["positions"].astype(np.intp)),
        open_source=cache(lambda: open_frame(_as_table(columns, state["id"], ids))),
        dropped=MappingProxyType(dict(state["dropped"])),
        plain=True,
    )


def _columns(stored: Sequence[tuple[str, NDArray[Any], Any]]) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for name, array, levels in stored:
        _check_array(array, "iufb" if levels is None else "i", (len(array),))
        if levels is None:
            columns[name] = Numbers(frozen(array))
        else:
            columns[name] = Categories(frozen(array), tuple(levels))
    return columns


def _as_table(columns: Mapping[str, Column], id: str | None, ids: NDArray[Any]) -> Any:  # noqa: A002
    """Put columns into a pandas frame, as the table that was read."""
    import pandas as pd

    table: dict[str, Any] = {} if id is None else {id: ids}
    for name, column in columns.items():
        if isinstance(column, Numbers):
            table[name] = column.values
        else:
            levels = np.array([*column.levels, None], dtype=object)
            table[name] = pd.Series(levels[column.codes].tolist())
    return pd.DataFrame(table)


def _read_state(path: Path) -> dict[str, Any]:
    with _open_state(path) as stored:

        def resolve(found: dict[str, Any]) -> Any:
            return stored[found["array"]] if found.keys() == {"array"} else found

        state: dict[str, Any] = json.loads(stored["header"].tobytes(), object_hook=resolve)
    return state


@contextmanager
def _open_state(path: Path) -> Iterator[Any]:
    with _reject_corrupt(path):
        with open_regular(path) as file:
            unpacked = sum(unpacked_bytes(file).values())
        if unpacked > limit(_BYTES):
            raise OutputError(
                f"{str(path)!r} has {unpacked:,} bytes when it is unpacked, and was not opened. "
                f"{explain_limit(_BYTES, 'bytes')}"
            )
        with open_regular(path) as file, np.load(file, allow_pickle=False) as stored:
            yield stored


def same_state(first: Path, second: Path) -> bool:
    """Whether two files of counts hold the same, however they are compressed."""
    with _open_state(first) as one, _open_state(second) as other:
        return sorted(one) == sorted(other) and all(
            one[name].dtype == other[name].dtype and one[name].tobytes() == other[name].tobytes()
            for name in one
        )


def _damaged(path: Path) -> OutputError:
    return OutputError(
        f"{str(path)!r} is missing or has been damaged, and the audit cannot be opened without it. "
        "Run the audit again."
    )


@dataclass(frozen=True, slots=True)
class _Described(DescribedMaker):
    """A decision maker that is described in a results folder, and was not loaded."""

    described: Mapping[str, Any]
    inputs: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.inputs

    def decide(self, frame: Any, /) -> Any:  # noqa: ARG002
        raise DecisionError(
            "This audit was read from its results folder, and its decision maker was not loaded. "
            "Run the audit file again to ask it."
        )

    def describe(self) -> dict[str, Any]:
        return dict(self.described)
