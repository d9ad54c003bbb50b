"""An audit's report: one page of HTML that needs nothing but itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mutandis.report.cautions import cautions_of, diagnose, diagnosis_sentences
from mutandis.report.context import Material
from mutandis.report.formatting import count, listed, percent
from mutandis.report.html import Column, Row, Section, Table, render
from mutandis.report.pictures import draw_pictures
from mutandis.report.reproducibility import (
    describe_decision,
    facts_of_data,
    facts_of_run,
    settings_text,
)
from mutandis.report.samples import (
    choose_samples,
    explain_samples,
    samples_by_method,
    samples_table,
)
from mutandis.report.summary import describe_methods, key_figures, summarise, title_of
from mutandis.report.tables import (
    agreement_of,
    agreement_table,
    counts_table,
    differences_table,
    draws_table,
    rates_table,
    record_table,
    strata_table,
    verdicts_table,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutandis.auditing.placebo import Placebo
    from mutandis.auditing.run import AuditResult
    from mutandis.causal import Diagnosis
    from mutandis.report.context import FindingsOf

__all__ = ["Report", "make_report"]

_SECTIONS = {
    "summary": "In short",
    "question": "What was asked",
    "worldview": "The worldview",
    "worlds": "The two worlds",
    "findings": "What was found",
    "samples": "A few complainants",
    "reading": "How to read a verdict",
    "limits": "Limits",
    "placebo": "Where there is nothing to find",
    "repeat": "To repeat this audit",
}
_MEASURES = {
    "cases": "cases",
    "significant": "significant",
    "significant_adjusted": "significant, adjusted",
}


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

    html: str
    plots: Mapping[str, str]


def make_report(
    result: AuditResult,
    findings: FindingsOf,
    *,
    placebo: Placebo | None = None,
    diagnosis: Diagnosis | None = None,
    source: Mapping[str, Any] | None = None,
) -> Report:
    """Write the report of an audit.

    Parameters
    ----------
    result
        The audit.
    findings
        Gives the findings under a method and a k.
    placebo
        The audit's noise floor, if it was measured.
    diagnosis
        What the data say about the worldview, if that was asked already.
    source
        What is known of where the table came from, to be listed under the data: never a password.
    """
    material = Material(result=result, findings=findings)
    if diagnosis is None:
        diagnosis = diagnose(material)
    samples = choose_samples(material)
    agreement = agreement_of(material).records()
    pictures = draw_pictures(material, samples, agreement)
    html = render(
        "report.html",
        title=title_of(material),
        sections=_sections(material, placebo),
        material=material,
        settings=material.plan.settings,
        summary=summarise(material),
        figures=key_figures(material),
        methods=describe_methods(material),
        question=_question(material),
        pictures=pictures,
        equations=_equations(diagnosis),
        diagnosis=() if diagnosis is None else diagnosis_sentences(diagnosis),
        problems=0 if diagnosis is None else len(diagnosis.problems),
        rates=rates_table(material),
        flips=_flips(material),
        record=record_table(material),
        counts=counts_table(material),
        strata=strata_table(material),
        verdicts=verdicts_table(material),
        differences=differences_table(material),
        agreement=agreement_table(material, agreement) if agreement else None,
        draws=draws_table(material),
        samples=samples,
        samples_table=samples_table(material, samples),
        samples_by_method=samples_by_method(material, samples)
        if len(material.methods) > 1
        else None,
        explained=explain_samples(material, samples),
        cautions=cautions_of(material, diagnosis),
        placebo=None if placebo is None else _placebo_table(material, placebo),
        settings_text=settings_text(material),
        data=facts_of_data(material, source),
        run=facts_of_run(material),
    )
    return Report(html=html, plots=pictures.files())


def _sections(material: Material, placebo: Placebo | None) -> tuple[Section, ...]:
    absent = set()
    if material.plan.worldview is None:
        absent.add("worldview")
    if placebo is None:
        absent.add("placebo")
    return tuple(
        Section(name=f"section-{name}", title=title)
        for name, title in _SECTIONS.items()
        if name not in absent
    )


def _question(material: Material) -> tuple[tuple[str, str], ...]:
    """List what was compared with what, and by which measure."""
    plan, settings = material.plan, material.plan.settings
    group = (
        f"k = {listed(settings.ks)}"
        if len(settings.ks) <= 12
        else (f"{len(settings.ks)} sizes k from {settings.ks[0]} to {settings.ks[-1]}")
    )
    return (
        ("Complainants", material.complainants),
        ("Compared with", material.others),
        ("Refused means", material.refused),
        ("Alike in", listed(f"{each.name} ({each.kind.value})" for each in plan.attributes)),
        ("Decision maker b()", describe_decision(material)),
        ("Counterfactuals from", material.source_of_counterfactuals or "nowhere: none were needed"),
        ("Group sizes", group),
        ("Evidence", f"Δp > {settings.tau:g}" if material.worse else f"Δp < {0 - settings.tau:g}"),
        ("Significance", f"one-sided, α = {settings.alpha:g}, {settings.interval}"),
        ("Adjustment", settings.adjust),
        ("Headline", f"{material.where}, fixed before the run"),
    )


def _equations(diagnosis: Diagnosis | None) -> Table | None:
    if diagnosis is None or not diagnosis.equations:
        return None
    return Table(
        name="equations",
        caption="Equations, and how much of each attribute its causes explain",
        columns=(
            Column(label="Attribute", numeric=False),
            Column(label="Equation", numeric=False),
            Column(label="Causes", numeric=False),
            Column(label="Measure", numeric=False),
            Column(label="Fit"),
        ),
        rows=tuple(
            Row(
                cells=(
                    each.child,
                    each.family if each.hidden is None else f"{each.family}, with {each.hidden}",
                    listed(each.parents),
                    each.measure,
                    "–" if each.fit is None else f"{each.fit:.3f}",
                )
            )
            for each in diagnosis.equations
        ),
    )


def _flips(material: Material) -> tuple[str, ...]:
    """Say how many complainants' outcomes change with their status."""
    said = []
    for part, result in material.parts.items():
        situation = result.situation
        if situation.is_negative_cf is None:
            continue
        rows = situation.complainants
        before, after = situation.is_negative[rows], situation.is_negative_cf[rows]
        said.append(
            f"In the counterfactual world{material.by_part(part)}, "
            f"{count(int((before & ~after).sum()))} of the {count(int(before.sum()))} complainants "
            f"who were refused would not have been, and {count(int((~before & after).sum()))} of "
            f"the {count(int((~before).sum()))} others would."
        )
    return tuple(said)


def _placebo_table(material: Material, placebo: Placebo) -> Table:
    titles = {method.name: method.title for method in material.methods}
    return Table(
        name="placebo-table",
        caption="The audit beside its placebos",
        aside=f"{placebo.repeats} repeats, seed {placebo.seed}; shares of the complainants",
        columns=(
            Column(label="Placebo", numeric=False),
            Column(label="Method", numeric=False),
            Column(label="k"),
            Column(label="Counted", numeric=False),
            Column(label="Audit"),
            Column(label="Placebo, mean"),
            Column(label="5% quantile"),
            Column(label="95% quantile"),
        ),
        rows=tuple(
            Row(
                cells=(
                    line.kind,
                    titles.get(line.method, line.method),
                    count(line.k),
                    _MEASURES.get(line.measure, line.measure),
                    percent(line.share),
                    percent(line.mean),
                    percent(line.low),
                    percent(line.high),
                )
            )
            for line in placebo.lines
        ),
    )
