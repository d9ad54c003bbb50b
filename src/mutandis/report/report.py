"""An audit's report: one page of HTML that needs nothing but itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mutandis.report import tables
from mutandis.report.context import ReportContext
from mutandis.report.html import render
from mutandis.report.pictures import draw_pictures
from mutandis.report.reproducibility import (
    describe_decision,
    facts_of_data,
    facts_of_run,
    settings_text,
)
from mutandis.report.sentences import (
    cautions_of,
    describe_flips,
    diagnosis_sentences,
    summarise,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutandis.auditing.placebo import Placebo
    from mutandis.auditing.run import AuditResult
    from mutandis.causal import Diagnosis
    from mutandis.report.context import FindingsOf

__all__ = ["Report", "make_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report and its pictures.

    Parameters
    ----------
    html
        The page; the same audit gives the same text.
    plots
        The pictures in it as SVG texts, by the stems of their file names.
    """

    html: str = field(repr=False)
    plots: Mapping[str, str] = field(repr=False)


def make_report(
    result: AuditResult,
    findings: FindingsOf,
    *,
    placebo: Placebo | None = None,
    diagnosis: Diagnosis | None = None,
    source: Mapping[str, Any] | None = None,
) -> Report:
    """Write the report of an audit.

    The placebo is the audit's noise floor, if it was measured; the diagnosis of the worldview is
    made here if it is not given. `source` is listed under the data: never a password.
    """
    context = ReportContext(result=result, findings=findings)
    if diagnosis is None:
        diagnosis = _diagnose(context)
    samples = tables.choose_samples(context)
    agreement = tables.agreement_of(context).records()
    pictures = draw_pictures(context, samples, agreement)
    html = render(
        "report.html",
        context=context,
        plan=context.plan,
        settings=context.plan.settings,
        tables=tables,
        pictures=pictures,
        summary=summarise(context),
        decision=describe_decision(context),
        diagnosis=diagnosis,
        diagnosis_sentences=() if diagnosis is None else diagnosis_sentences(diagnosis),
        flips=describe_flips(context),
        agreement=agreement,
        samples=samples,
        cautions=cautions_of(context, diagnosis),
        placebo=placebo,
        settings_text=settings_text(context),
        data=facts_of_data(context, source),
        run=facts_of_run(context),
    )
    return Report(html=html, plots=pictures.files())


def _diagnose(context: ReportContext) -> Diagnosis | None:
    """Check the worldview against the table, if there is one."""
    plan = context.plan
    if plan.worldview is None:
        return None
    return plan.worldview.check(
        plan.population, protected=plan.protection.attribute, do=dict(plan.do)
    )
