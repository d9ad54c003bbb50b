"""A finished audit in a folder: written whole or not at all, and read back without a rerun.

Beside what people read (report, pictures, counts, findings) the folder keeps what was counted, so
that the audit can answer further questions: the columns that were used, the counterfactual ones,
and the integer counts of the search. Nothing that is read back is executed: neither a model nor a
module is loaded, and the decision maker is only described.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from mutandis.auditing.audit import Audit
from mutandis.auditing.counterfactual_table import CounterfactualTable
from mutandis.auditing.multiple import run_multiple
from mutandis.auditing.provenance import Provenance, hash_population
from mutandis.auditing.run import make_situation
from mutandis.data.columns import Categories, Numbers, frozen
from mutandis.data.population import Population
from mutandis.decision import DescribedMaker, RecordAgreement, query_records
from mutandis.errors import DecisionError, OutputError
from mutandis.evidence.groups import Counted
from mutandis.files.audit_file import SavedInputs, read_plan_text, write_plan
from mutandis.files.findings_file import write_findings
from mutandis.files.output_folder import check_output, output_folder, recover_output
from mutandis.files.results_folder import (
    COUNTS,
    FINDINGS,
    PLOTS,
    QUERIES,
    REPORT,
    STATE,
    hash_file,
    is_audit_folder,
    read_record,
    write_record,
)
from mutandis.files.text_files import write_csv
from mutandis.files.yaml_nodes import plain_data, read_yaml, write_yaml
from mutandis.frames import columns_of, open_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.causal import Diagnosis
    from mutandis.data.columns import Column
    from mutandis.evidence.findings import Findings

__all__ = ["open_results", "save_audit", "write_numbers"]


def save_audit(
    audit: Audit,
    folder: Path,
    *,
    overwrite: bool = False,
    notes: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write an audit into a folder; the parameters are those of `Audit.save`.

    Parameters
    ----------
    audit, folder, overwrite
        As for `Audit.save`.
    notes
        What was said to the auditor while the audit ran.
    progress
        Is called with the findings that are written, and all that there are.
    """
    check_output(folder, replace=overwrite, known=is_audit_folder)
    with output_folder(folder, replace=overwrite, known=is_audit_folder) as temporary:
        diagnosis = audit.plan.check_worldview()
        write_numbers(temporary, audit, progress=progress)
        _write_report(temporary, audit, diagnosis)
        _write_queries(temporary, audit)
        _write_state(temporary / STATE, audit)
        write_record(temporary, _record(audit, diagnosis, notes, folder))


def write_numbers(
    folder: Path, audit: Audit, *, progress: Callable[[int, int], None] | None = None
) -> None:
    """Write the findings and the counts: what a rerun has to give again, bit for bit."""
    write_findings(folder / FINDINGS, _followed(audit, progress))
    write_csv(folder / COUNTS, columns_of(audit.count_records()))


def _followed(audit: Audit, progress: Callable[[int, int], None] | None) -> Iterator[Findings]:
    total = len(audit.methods) * len(audit.ks)
    for done, findings in enumerate(audit.each_findings(), start=1):
        yield findings
        if progress is not None:
            progress(done, total)


def _write_report(folder: Path, audit: Audit, diagnosis: Diagnosis | None) -> None:
    report = audit.report(diagnosis=diagnosis)
    (folder / REPORT).write_text(report.html, encoding="utf-8")
    (folder / PLOTS).mkdir()
    for name, svg in report.plots.items():
        (folder / PLOTS / f"{name}.svg").write_text(str(svg), encoding="utf-8")


def _write_queries(folder: Path, audit: Audit) -> None:
    """Keep the log of what an endpoint was asked, without any row that was sent."""
    decision = audit.plan.decision
    records = () if decision is None else query_records(decision)
    if records:
        lines = (json.dumps(each, ensure_ascii=False) for each in records)
        (folder / QUERIES).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _record(
    audit: Audit, diagnosis: Diagnosis | None, notes: Sequence[str], out: Path
) -> dict[str, Any]:
    origin = audit.plan.origin
    text = _data_section(audit.plan) + write_plan(audit.plan) if origin is None else origin.text
    base = Path.cwd() if origin is None else origin.folder
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": {
            "name": "audit.yaml" if origin is None else origin.name,
            "folder": os.path.relpath(base.resolve(), out.resolve()),
            "text": text,
        },
        "settings": plain_data(read_yaml(text)),
        "source": {"kind": "memory", "sha256": ""} if origin is None else dict(origin.source),
        "files": {} if origin is None else dict(origin.files),
        "provenance": audit.provenance.as_dict(),
        "diagnostics": None if diagnosis is None else diagnosis.as_dict(),
        "disagreement": audit.disagreement,
        "shared_neighbours": [
            part.shared_neighbours().sentence()
            for part in audit.parts
            if part.grouping.control is not None
        ],
        "notes": list(notes),
    }


def _data_section(plan: Plan) -> str:
    """Write the section on data for a table that came from memory: there is no file to name."""
    return write_yaml({"data": {"source": "(memory)", **({"id": plan.id} if plan.id else {})}})


def _write_state(path: Path, audit: Audit) -> None:
    """Write what was counted: arrays, and a header that says what they are."""
    population = audit.plan.population
    arrays: dict[str, NDArray[Any]] = {"positions": population.positions}
    header: dict[str, Any] = {
        "columns": _store_columns(arrays, "column", population.columns),
        "id": audit.plan.id,
        "dropped": dict(population.dropped),
        "parts": [],
    }
    arrays["ids"] = _storable_ids(population.ids)
    for number, part in enumerate(audit.parts):
        situation, name = part.situation, f"part {number}"
        stored: dict[str, Any] = {"counterfactual": None, "draws": list(part.draw_counts)}
        if situation.counterfactual is not None:
            changed = sorted(situation.counterfactual.changed)
            columns = {each: situation.counterfactual.columns[each] for each in changed}
            stored["counterfactual"] = _store_columns(arrays, f"{name} counterfactual", columns)
        if situation.is_negative_cf is not None:
            arrays[f"{name} refused"] = situation.is_negative_cf
        for what, nearest in part.grouping.nearest.items():
            for key, counts in nearest.counted.arrays().items():
                arrays[f"{name} counted {what} {key}"] = counts
        stored["counted"] = list(part.grouping.nearest)
        for method, counts in part.draw_counts.items():
            arrays[f"{name} draws {method}"] = counts
        header["parts"].append(stored)
    text = json.dumps(header, ensure_ascii=True)
    arrays["header"] = np.frombuffer(text.encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # names are not its options


def _store_columns(
    arrays: dict[str, NDArray[Any]], prefix: str, columns: Mapping[str, Column]
) -> list[dict[str, Any]]:
    """Put columns among the arrays by number, since names may hold anything."""
    described: list[dict[str, Any]] = []
    for number, (name, column) in enumerate(columns.items()):
        if isinstance(column, Numbers):
            arrays[f"{prefix} {number}"] = column.values
            described.append({"name": name, "levels": None})
        else:
            arrays[f"{prefix} {number}"] = column.codes
            described.append({"name": name, "levels": [_storable(each) for each in column.levels]})
    return described


def _storable(level: Any) -> Any:
    """Give a level as JSON has it; what JSON does not know becomes text."""
    value = level.item() if isinstance(level, np.generic) else level
    return value if isinstance(value, str | int | float | bool) else str(value)


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
    if not (path / STATE).is_file() or hash_file(path / STATE) != record.outputs.get(STATE):
        raise _damaged(path / STATE)
    state = _read_state(path / STATE)
    population = state.population()
    provenance = Provenance(**record.data["provenance"])
    if hash_population(population) != provenance.data["sha256"]:
        raise _damaged(path / STATE)
    described = provenance.settings["decision"]
    plan = read_plan_text(
        record.config_text,
        folder=record.config_folder,
        name=record.config_name,
        saved=SavedInputs(
            population=population,
            counterfactuals=_supplied(state, population),
            decision=None if described is None else _Described(described),
        ),
    )
    plan = replace(plan, origin=record.origin)
    counts = provenance.computed["with_record"]
    with_record = (
        None
        if counts is None
        else RecordAgreement(
            negative=plan.outcome.negative, positive=plan.outcome.positive, **counts
        )
    )
    numbers = iter(range(len(state.header["parts"])))

    def restore(planned: Plan) -> Audit:
        return _restore(state, next(numbers), planned, provenance, with_record)

    if plan.combine == "multiple":
        return replace(run_multiple(plan, restore), provenance=provenance)
    return restore(plan)


def _supplied(state: _State, population: Population) -> CounterfactualTable | None:
    """Take stored counterfactuals for a supplied table, where no file can hold the worldview."""
    counterfactual = state.counterfactual(0, population)
    if counterfactual is None:
        return None
    return CounterfactualTable(population=counterfactual, is_negative=state.refused(0))


def _restore(
    state: _State,
    number: int,
    plan: Plan,
    provenance: Provenance,
    with_record: RecordAgreement | None,
) -> Audit:
    """Put one audit together from what was stored about it."""
    computed = provenance.computed
    if "parts" in computed:
        computed = computed["parts"][plan.protections[0].attribute]
    situation = make_situation(
        plan,
        state.counterfactual(number, plan.population),
        state.refused(number),
        threads=-1,
    )
    return Audit(
        plan=plan,
        situation=situation,
        grouping=plan.semantics.group(situation, plan.methods, counted=state.counted(number)),
        clipped=computed["clipped"],
        draw_counts={
            method: state.arrays[f"part {number} draws {method}"]
            for method in state.header["parts"][number]["draws"]
        },
        provenance=replace(provenance, computed=computed),
        with_record=with_record,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What was counted, as it was stored."""

    header: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]

    def population(self) -> Population:
        columns = self._columns("column", self.header["columns"])
        ids = frozen(self.arrays["ids"])
        return Population(
            columns=MappingProxyType(columns),
            ids=ids,
            positions=frozen(self.arrays["positions"].astype(np.intp)),
            source=open_frame(_as_table(columns, self.header["id"], ids)),
            dropped=MappingProxyType(self.header["dropped"]),
        )

    def counterfactual(self, number: int, population: Population) -> Population | None:
        described = self.header["parts"][number]["counterfactual"]
        if described is None:
            return None
        columns = self._columns(f"part {number} counterfactual", described)
        return population.with_columns(columns)

    def refused(self, number: int) -> NDArray[np.bool_] | None:
        return self.arrays.get(f"part {number} refused")

    def counted(self, number: int) -> dict[str, Counted]:
        """Give what the search has counted, by what was searched."""
        return {
            what: Counted.of_arrays(
                {
                    name.rpartition(" ")[2]: array
                    for name, array in self.arrays.items()
                    if name.startswith(f"part {number} counted {what} ")
                }
            )
            for what in self.header["parts"][number]["counted"]
        }

    def _columns(self, prefix: str, described: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
        columns: dict[str, Column] = {}
        for number, each in enumerate(described):
            values = self.arrays[f"{prefix} {number}"]
            columns[each["name"]] = (
                Numbers(frozen(values))
                if each["levels"] is None
                else Categories(frozen(values), tuple(each["levels"]))
            )
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


def _read_state(path: Path) -> _State:
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(arrays.pop("header").tobytes())
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        raise _damaged(path) from None
    return _State(header=header, arrays=arrays)


def _damaged(path: Path) -> OutputError:
    return OutputError(
        f"{str(path)!r} is missing or has been damaged, and the audit cannot be opened without it. "
        "Run the audit again."
    )


@dataclass(frozen=True, slots=True)
class _Described(DescribedMaker):
    """A decision maker that is described in a results folder, and was not loaded."""

    described: Mapping[str, Any]

    def decide(self, frame: Any, /) -> Any:  # noqa: ARG002
        raise DecisionError(
            "This audit was read from its results folder, and its decision maker was not loaded. "
            "Run the audit file again to ask it."
        )

    def describe(self) -> dict[str, Any]:
        return dict(self.described)
