"""An audit's report: one page of HTML that needs nothing but itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from mutandis.auditing.tipping import rules_of
from mutandis.data.columns import jsonable
from mutandis.report import tables
from mutandis.report.context import ReportContext
from mutandis.report.formatting import listed, value
from mutandis.report.html import render
from mutandis.report.pictures import draw_pictures
from mutandis.report.sentences import (
    cautions_of,
    describe_flips,
    diagnosis_sections,
    summarise,
)
from mutandis.store.audit_file import write_plan
from mutandis.store.text_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from mutandis.auditing.audit import Audit
    from mutandis.scm import Diagnosis

__all__ = ["Report", "make_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report and its pictures."""

    html: str = field(repr=False)  # the page; the same audit gives the same text
    # the pictures in it as SVG texts, by the stems of their file names
    plots: Mapping[str, str] = field(repr=False)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        write_atomically(path, self.html)

    def _repr_html_(self) -> str:
        """Show the page in a notebook."""
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="800"></iframe>'


def make_report(
    audit: Audit,
    *,
    diagnosis: Diagnosis | None = None,
) -> Report:
    """Write the report of an audit.

    The diagnosis of the worldview is
    made here if it is not given.
    """
    context, origin = ReportContext(audit=audit), audit.plan.origin
    if diagnosis is None:
        diagnosis = audit.plan.check_worldview()
    if diagnosis is not None:
        diagnosis = diagnosis.with_labels(context.labels)
    pictures = draw_pictures(context)
    html = render(
        "report.html",
        context=context,
        labels=context.labels,
        plan=context.plan,
        settings=context.plan.settings,
        tables=tables,
        words=context.words,
        pictures=pictures,
        summary=summarise(context),
        decision=_describe_decision(context),
        diagnosis=diagnosis,
        diagnosis_sections={} if diagnosis is None else diagnosis_sections(diagnosis),
        flips=describe_flips(context),
        cautions=cautions_of(context, diagnosis),
        sham=audit.sham_audits,
        rules=rules_of(audit),
        compared=audit.measure_worldviews(),
        settings_text=write_plan(audit.plan),
        data=_facts_of_data(context, None if origin is None else origin.source),
        run=_facts_of_run(context),
    )
    return Report(html=html, plots=pictures.files())


def _describe_decision(context: ReportContext) -> str:
    """Say who decides, from what is on record about them: no secrets, and no rows."""
    described = context.audit.provenance.settings["decision"]
    if described is None:
        return "none: outcomes on record only"
    if set(described) == {"kind", "rule"}:
        return str(described["rule"])
    further = {name: each for name, each in described.items() if name != "kind" and each}
    details = "; ".join(f"{name} {_described(each)}" for name, each in further.items())
    return f"{described['kind']}: {details}" if details else str(described["kind"])


def _described(each: Any) -> str:
    return listed(each) if isinstance(each, list | tuple) else str(jsonable(each))


def _facts_of_data(
    context: ReportContext, source: Mapping[str, Any] | None
) -> tuple[tuple[str, str], ...]:
    """List what identifies the data, with what is known of where it came from."""
    data = context.audit.provenance.data
    given = [(str(name), value(each)) for name, each in (source or {}).items() if each is not None]
    facts = [
        ("Rows", f"{data['rows']:,}"),
        ("Complainants", f"{data['complainants']:,}"),
        ("SHA-256 of the columns used", str(data["sha256"])),
    ]
    if data["sha256_counterfactuals"]:
        facts.append(("SHA-256 of the counterfactuals", str(data["sha256_counterfactuals"])))
    return (*given, *facts)


def _facts_of_run(context: ReportContext) -> tuple[tuple[str, str], ...]:
    """List what computed the numbers, and how distances were told apart."""
    provenance = context.audit.provenance
    facts = [(name, str(version)) for name, version in provenance.versions.items()]
    for part, audit in context.parts.items():
        computed = audit.provenance.computed
        about = context.by_part(part)
        rules = computed["distance_rules"]
        column = context.labels.column
        facts += [
            (f"Distances on {column(name)}{about}", str(rule)) for name, rule in rules.items()
        ]
        searched = computed["search"]
        facts += [(f"Search, {name}{about}", str(backend)) for name, backend in searched.items()]
    return tuple(facts)
