"""An audit's report: one page of HTML that needs nothing but itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from mutandis.files.audit_file import write_plan
from mutandis.files.text_files import write_atomically
from mutandis.report import tables
from mutandis.report.context import ReportContext
from mutandis.report.html import render
from mutandis.report.pictures import draw_pictures
from mutandis.report.reproducibility import (
    describe_decision,
    facts_of_data,
    facts_of_run,
)
from mutandis.report.sentences import (
    cautions_of,
    describe_flips,
    diagnosis_sentences,
    summarise,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.placebo import Placebo
    from mutandis.causal import Diagnosis

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

    def write(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        write_atomically(path, self.html)

    def _repr_html_(self) -> str:
        """Show the page in a notebook."""
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="800"></iframe>'


def make_report(
    result: Audit,
    *,
    placebo: Placebo | None = None,
    diagnosis: Diagnosis | None = None,
) -> Report:
    """Write the report of an audit.

    The placebo is the audit's noise floor, if it was measured; the diagnosis of the worldview is
    made here if it is not given.
    """
    context, origin = ReportContext(result=result), result.plan.origin
    if diagnosis is None:
        diagnosis = result.plan.check_worldview()
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
        settings_text=write_plan(result.plan),
        data=facts_of_data(context, None if origin is None else origin.source),
        run=facts_of_run(context),
    )
    return Report(html=html, plots=pictures.files())
