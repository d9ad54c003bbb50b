"""A case file: everything about one complainant, as a page and as data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.case_sentences import explanation_context
from mutandis.errors import PlanError
from mutandis.evidence.methods import METHODS
from mutandis.files.text_files import write_atomically
from mutandis.report.case_changes import changes_of
from mutandis.report.case_groups import group_lists, support_checks
from mutandis.report.case_model import (
    SCHEMA,
    SCHEMA_VERSION,
    Complainant,
    Figures,
    Part,
    Redaction,
    Status,
    VerdictText,
)
from mutandis.report.case_movement import movements_of, value_at
from mutandis.report.case_sentences import assumptions_of, limits_of, shared_neighbours_of
from mutandis.report.redact import redact_case
from mutandis.report.redact_inference import LEAST, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from mutandis.auditing.run import AuditResult
    from mutandis.evidence.case import Case
    from mutandis.evidence.findings import Findings
    from mutandis.pictures.picture import Picture

__all__ = ["CaseDocument", "case_document"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDocument:
    """What is to be said about one complainant.

    Parameters
    ----------
    complainant
        Who, and what was decided.
    verdict
        The headline.
    figures
        Her results under every method and k.
    parts
        The comparison on each ground: her counterfactual, her groups, what would change it.
    assumptions, limits, shared_neighbours
        What the answer takes for granted and what it cannot carry, in words.
    redaction
        Whether identifiers, values and small cells are withheld.
    provenance
        What is needed to repeat the audit.
    alpha, tau, direction
        The level, the minimum deviation, and what was looked for.
    drawings
        Pictures for the page, as SVG; they are no part of the data.
    """

    complainant: Complainant
    verdict: VerdictText
    figures: tuple[Figures, ...]
    parts: tuple[Part, ...]
    assumptions: tuple[str, ...]
    limits: tuple[str, ...]
    shared_neighbours: tuple[str, ...]
    redaction: Redaction
    provenance: Mapping[str, Any]
    alpha: float
    tau: float
    direction: str
    drawings: Mapping[str, Picture] = field(default_factory=dict, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Give it as plain data: texts, numbers, truth values, lists and dicts with text keys."""
        named = {
            each.name: getattr(self, each.name) for each in fields(self) if each.name != "drawings"
        }
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            **{name: _plain(value) for name, value in named.items()},
        }

    def to_json(self) -> str:
        """Write it as JSON; the same audit gives the same text."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """Write it as one page that needs nothing else: no script, no network, no other file."""
        from mutandis.report.case_page import render_case

        return render_case(self)

    def write(self, path: str | PathLike[str]) -> None:
        """Write it to a file, whole or not at all: .html, .json or .pdf (the extra `pdf`)."""
        suffix = Path(path).suffix.lower()
        if suffix not in _WRITERS:
            raise PlanError(
                f"A case file is written as {', '.join(_WRITERS)}, not as {suffix or 'a file'!r}. "
                "Give the path one of these endings."
            )
        _WRITERS[suffix](self, path)


def _write_html(document: CaseDocument, path: str | PathLike[str]) -> None:
    write_atomically(path, document.to_html())


def _write_json(document: CaseDocument, path: str | PathLike[str]) -> None:
    write_atomically(path, document.to_json())


def _write_pdf(document: CaseDocument, path: str | PathLike[str]) -> None:
    from mutandis.report.pdf import write_pdf

    write_pdf(document.to_html(), path)


_WRITERS: dict[str, Callable[[CaseDocument, str | PathLike[str]], None]] = {
    ".html": _write_html,
    ".json": _write_json,
    ".pdf": _write_pdf,
}


def case_document(
    result: AuditResult,
    id: Any,  # noqa: A002 - the public name
    *,
    redact: bool = False,
    source: Mapping[str, Any] | None = None,
    findings: Mapping[tuple[str, int], Findings] | None = None,
) -> CaseDocument:
    """Collect everything about one complainant.

    Parameters
    ----------
    result
        The audit.
    id
        The complainant's id in the table.
    redact
        Replace the ids of the people she is compared with, coarsen their values, and withhold
        numbers behind which fewer than five of them stand. Her own data and the verdict stay.
    source
        Where the table came from, for the provenance: names and hashes, no secrets.
    findings
        The findings by method and k, where they are known already.

    Examples
    --------
    >>> import mutandis as mm
    >>> audit = mm.audit(
    ...     mm.datasets.loan(seed=7),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
    ...     worldview=mm.Worldview(
    ...         {
    ...             "AnnualSalary": mm.Linear("Gender"),
    ...             "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
    ...         }
    ...     ),
    ...     decision="AnnualSalary + 5 * AccountBalance > 225000",
    ...     ks=(15, 30),
    ... )
    >>> document = case_document(audit.result, 5)
    >>> document.verdict.verdict, document.parts[0].control.refused
    ('significant-adjusted', 19)
    >>> approved = document.parts[0].changes.outcomes[0]
    >>> approved.group, approved.outcome, [(step.people, step.verdict) for step in approved.steps]
    ('control', 1, [(15, 'significant'), (17, 'evidence'), (19, 'no-evidence')])
    """
    settings = result.plan.settings
    # what a redacted file does not count, it does not say in words either
    least = LEAST if redact else 0
    found = findings or _all_findings(result)
    case = result.case(id, found.items())
    built = _Builder(result, case, found)
    parts = built.parts()
    method, k = settings.primary
    verdict = str(case.result(method, k=k)["verdict"])
    document = CaseDocument(
        complainant=built.complainant(),
        verdict=VerdictText(method=method, k=k, verdict=verdict, sentence=case.explain()),
        figures=built.figures(),
        parts=parts,
        assumptions=assumptions_of(result, least=least),
        limits=limits_of(result, parts, verdict, least=least),
        shared_neighbours=shared_neighbours_of(result, least=least),
        redaction=Redaction(redacted=False),
        provenance={
            **result.provenance.as_dict(),
            "source": None if source is None else dict(source),
            "redacted": False,
        },
        alpha=settings.alpha,
        tau=settings.tau,
        direction=settings.direction,
        drawings=_drawings(result),
    )
    return (
        redact_case(document, explanation_context(result.plan), built.runs) if redact else document
    )


def _all_findings(result: AuditResult) -> dict[tuple[str, int], Findings]:
    return {
        (method.name, k): result.findings(method, k)
        for method in result.plan.methods
        for k in result.plan.settings.ks
    }


class _Builder:
    """One complainant of one audit: holds what the sections share."""

    def __init__(
        self, result: AuditResult, case: Case, found: Mapping[tuple[str, int], Findings]
    ) -> None:
        self._result, self._case, self._found = result, case, found
        population = result.plan.population
        self._row = int(np.flatnonzero(population.ids == case.id)[0])
        self._place = int(np.searchsorted(result.situation.complainants, self._row))
        # one for each attribute, where several were audited one by one
        self.runs = tuple(self._run(part) for part in result.parts.values()) or (
            Run(result=result, case=case, findings=found),
        )

    def complainant(self) -> Complainant:
        plan, case = self._result.plan, self._case
        return Complainant(
            id=case.id,
            statuses=tuple(
                Status(
                    attribute=each.attribute,
                    value=value_at(plan.population, each.attribute, self._row),
                    reference=each.reference,
                )
                for each in plan.protections
            ),
            outcome_column=plan.outcome.column,
            outcome=case.outcome,
            negative=plan.outcome.negative,
            refused=bool(self._result.situation.is_negative[self._row]),
            outcome_cf=case.outcome_cf,
            attributes=dict(case.factual),
        )

    def figures(self) -> tuple[Figures, ...]:
        primary = self._result.plan.settings.primary
        columns = {each.name for each in fields(Figures)} - {"method", "title", "k", "primary"}
        return tuple(
            Figures(
                method=method,
                title=METHODS[method].title,
                k=k,
                primary=(method, k) == primary,
                **{"draw_share": None, **_chosen(row, columns)},
            )
            for (method, k), row in self._case.results.items()
        )

    def parts(self) -> tuple[Part, ...]:
        return tuple(self._part(run) for run in self.runs)

    def _run(self, part: AuditResult) -> Run:
        found = _all_findings(part)
        return Run(result=part, case=part.case(self._case.id, found.items()), findings=found)

    def _part(self, run: Run) -> Part:
        result, case, found = run.result, run.case, run.findings
        method, k = result.plan.settings.primary
        groups = group_lists(result, case, self._place, method=method, k=k)
        control, test = groups or (None, None)
        return Part(
            ground=tuple(each.attribute for each in result.plan.protections),
            do=result.plan.do,
            verdict=str(case.result(method, k=k)["verdict"]),
            outcome_cf=case.outcome_cf,
            movements=movements_of(result, self._row),
            control=control,
            test=test,
            support=support_checks(result, case, self._place, method=method, k=k),
            changes=changes_of(result, case, found[method, k], self._place),
        )


def _chosen(row: Mapping[str, Any], columns: set[str]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and np.isnan(value) else value
        for name, value in row.items()
        if name in columns
    }


def _drawings(result: AuditResult) -> dict[str, Picture]:
    plan = result.plan
    if plan.worldview is None:
        return {}
    from mutandis.decision import required_columns
    from mutandis.pictures.worldview import draw_worldview

    needed = () if plan.decision is None else required_columns(plan.decision)
    return {
        "worldview": draw_worldview(
            plan.worldview,
            protected=[each.attribute for each in plan.protections],
            outcome=plan.outcome.column if needed else None,
            decision_inputs=needed,
        )
    }


def _plain(value: Any) -> Any:
    """Give a value in types that every reader of JSON has."""
    if hasattr(value, "__dataclass_fields__"):
        return _plain(asdict(value))
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
