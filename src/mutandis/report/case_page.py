"""The case file as a page, written from the document alone."""

from __future__ import annotations

from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from mutandis.data.columns import jsonable
from mutandis.engine.methods import METHODS
from mutandis.outcomes.measures import measure_named
from mutandis.report.case_sentences import (
    doubt_lines,
    movement_cells,
    movement_lines,
    movement_paths,
    worldview_that_changes,
)
from mutandis.report.formatting import MISSING, signed, value
from mutandis.report.html import CaptionedPicture, render
from mutandis.report.plots import ForestRow, plot_curve, plot_forest
from mutandis.verdicts.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mutandis.outcomes.words import Words
    from mutandis.report.case_model import CaseDocument, Figures, Part

__all__ = ["render_case"]

_FOUND = {Verdict.EVIDENCE, Verdict.SIGNIFICANT, Verdict.SIGNIFICANT_ADJUSTED}


def render_case(document: CaseDocument) -> str:
    """Write the page."""
    figures = _each_once(document.figures)
    return render(
        "case.html",
        case=document,
        footer=_css_text(f"Case file · complainant {value(document.complainant.id)}"),
        figures=figures,
        # a redacted file has no Δp to draw
        forest=None if document.redaction.redacted else _draw_forest(document, figures),
        worldview=_show_worldview(document),
        settings=document.settings_text or _yaml(document.provenance),
        record=_yaml({n: each for n, each in document.provenance.items() if n != "settings"})
        if document.settings_text
        else "",
        found=document.verdict.verdict in _FOUND,
        has_k=_has_k,
        interval=partial(_interval, words=document.words),
        measure=measure_named(document.measure),
        measured=_measured,
        words=document.words,
        movement_cells=movement_cells,
        movement_lines=movement_lines,
        movement_paths=movement_paths,
        doubt_lines=doubt_lines,
        worldview_that_changes=worldview_that_changes,
        curves=[
            _draw_curve(document, part, number)
            for number, part in enumerate(document.parts, start=1)
        ],
    )


def _has_k(row: Figures) -> bool:
    """Whether the method compares groups, whose size matters."""
    return METHODS[row.method].count_neighbours


def _each_once(figures: Sequence[Figures]) -> list[Figures]:
    """Keep one row of a method that compares no groups: it is the same for all k."""
    alone = [row for row in figures if not _has_k(row)]
    kept = {row.method: row for row in reversed(alone)}
    kept |= {row.method: row for row in alone if row.primary}
    return [row for row in figures if _has_k(row) or row is kept[row.method]]


def _draw_forest(document: CaseDocument, figures: Sequence[Figures]) -> CaptionedPicture:
    measure, worse = measure_named(document.measure), document.direction == "negative"
    # τ of a ratio has no place on a scale of differences
    threshold = 0.0 if measure.is_ratio else measure.threshold(document.tau, worse=worse)
    rows = [_forest_row(row, document.words) for row in figures]
    return CaptionedPicture(
        name="forest",
        drawing=plot_forest(
            rows,
            threshold=threshold,
            threshold_name=f"{'' if worse else '−'}τ = {threshold:g}".replace("= -", "= −"),
            axis=document.words.axis,
            share=document.words.kind.two_sided,
        ),
        title=f"{document.words.symbol} and its interval under every method and group size",
        caption="Squares are differences, lines their intervals; a diamond is a comparison of two "
        "single decisions, which has no interval. Colour marks evidence.",
        description="; ".join(f"{r.group} {r.label}: {r.words}, {r.verdict}" for r in rows) + ".",
    )


def _forest_row(row: Figures, words: Words) -> ForestRow:
    bounded = row.delta_p is not None and row.ci_low is not None
    return ForestRow(
        verdict=row.verdict,
        group=row.title,
        label=f"k = {row.k}" if _has_k(row) else "",
        delta_p=row.delta_p,
        low=row.ci_low,
        high=row.ci_high,
        words=f"{words.difference(row.delta_p)}  "
        f"{_interval(row, words) if bounded else ''}".strip(),
        found=row.verdict in _FOUND,
        primary=row.primary,
    )


def _draw_curve(document: CaseDocument, part: Part, number: int) -> CaptionedPicture | None:
    """Draw what her groups say with each part of the effect of her status."""
    points = part.curve
    if not points:
        return None
    found, measure = part.verdict in _FOUND, measure_named(document.measure)
    return CaptionedPicture(
        name=f"part{number}-curve",
        drawing=plot_curve(
            points,
            threshold=0.0
            if measure.is_ratio
            else measure.threshold(document.tau, worse=document.direction == "negative"),
            symbol=document.words.symbol,
        ),
        title=f"{document.words.symbol}, by how much of the effect of her status is real",
        caption="At 100% everyone in the control group has the counterfactual that the worldview "
        "says; at 0% they are compared as they are. The band is the interval. Filled points: "
        + ("the verdict stands." if found else "the difference is significant."),
        description="; ".join(
            f"{each.part:.0%}: {document.words.difference(each.delta_p)}"
            f"{', stands' if each.stands else ''}"
            for each in points
        )
        + ".",
    )


def _show_worldview(document: CaseDocument) -> CaptionedPicture | None:
    if document.worldview is None:
        return None
    return CaptionedPicture(
        name="worldview",
        drawing=document.worldview,
        title="The worldview: who causes whom",
        caption="Changes start at the attribute with the double border and follow the arrows.",
        description=" ".join(document.assumptions[:1]),
    )


def _interval(row: Figures, words: Words) -> str:
    if row.ci_low is None or row.ci_high is None:
        return MISSING
    return f"[{words.difference(row.ci_low)}, {words.difference(row.ci_high)}]"


def _measured(row: Figures, *, value: bool = True) -> str:
    """Write a ratio with its interval, or the interval alone."""
    bounds = signed(row.measured_low), signed(row.measured_high)
    interval = "" if MISSING in bounds else f"[{', '.join(bounds)}]"
    return f"{signed(row.measured)} {interval}".rstrip() if value else interval


def _css_text(text: str) -> str:
    """Write a text so that a style sheet takes every letter of it as a letter."""
    return "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):x} " for c in text)


def _yaml(provenance: Mapping[str, Any]) -> str:
    writer = YAML(typ="safe", pure=True)
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.default_flow_style = None  # short lists stay on one line
    writer.width = 78
    text = StringIO()
    writer.dump(jsonable(provenance), text)
    return text.getvalue()
