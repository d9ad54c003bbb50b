"""The case file as a page: every table and picture of it, from the document alone."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from mutandis.evidence.findings import Verdict
from mutandis.evidence.methods import METHODS
from mutandis.pictures.findings import ForestRow, plot_forest
from mutandis.report.case_model import WITHHELD
from mutandis.report.case_numbers import known, written
from mutandis.report.case_page_changes import changes_table, thresholds
from mutandis.report.case_page_parts import (
    balance_table,
    movement_lines,
    movement_table,
    summary_table,
    support_table,
)
from mutandis.report.case_page_people import Listing, listings
from mutandis.report.formatting import MISSING, listed, p_value, percent, plain, signed, value
from mutandis.report.html import CaptionedPicture, Column, Row, Section, Table, render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mutandis.report.case_document import CaseDocument
    from mutandis.report.case_model import Figures, Number, Part

__all__ = ["render_case"]

_FOUND = {Verdict.EVIDENCE, Verdict.SIGNIFICANT, Verdict.SIGNIFICANT_ADJUSTED}
_SECTIONS = (
    Section(name="verdict", title="The verdict"),
    Section(name="complainant", title="The complainant and her counterfactual"),
    Section(name="groups", title="The two groups"),
    Section(name="methods", title="Every method and group size"),
    Section(name="support", title="Whether there is anyone to compare with"),
    Section(name="changes", title="What would change the verdict"),
    Section(name="assumptions", title="Assumptions and limits"),
    Section(name="people", title="The people in the groups"),
    Section(name="provenance", title="How to repeat this"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartPage:
    """What the page shows of the comparison on one ground."""

    title: str
    outcome_cf: str
    movements: Table | None
    lines: tuple[str, ...]
    summary: Table | None
    support: Table | None
    balance: Table | None
    changes: Table | None
    thresholds: tuple[str, ...]
    listings: tuple[Listing, ...]


def render_case(document: CaseDocument) -> str:
    """Write the page."""
    return render(
        "case.html",
        case=document,
        sections=_SECTIONS,
        footer=_css_text(f"Case file · complainant {value(document.complainant.id)}"),
        facts=_facts(document),
        key_figures=_key_figures(document),
        parts=tuple(_part(document, part, place) for place, part in enumerate(document.parts)),
        worldview=_worldview(document),
        methods=_methods_table(document),
        forest=_forest(document),
        settings=_yaml(document.provenance),
        shown=value,
        found=document.verdict.verdict in _FOUND,
    )


def _facts(document: CaseDocument) -> list[tuple[str, str]]:
    who = document.complainant
    facts = [
        (each.attribute, f"{value(each.value)}, compared with {value(each.reference)}")
        for each in who.statuses
    ]
    facts.append(
        (
            f"{who.outcome_column} on record",
            f"{value(who.outcome)} ({'un' if who.refused else ''}favourable)",
        )
    )
    if who.outcome_cf is not None:
        fate = "un" if who.outcome_cf == who.negative else ""
        facts.append(
            (
                f"{who.outcome_column} of her counterfactual",
                f"{value(who.outcome_cf)} ({fate}favourable)",
            )
        )
    return facts


def _key_figures(document: CaseDocument) -> list[tuple[str, str]]:
    row = next(each for each in document.figures if each.primary)
    method = f"{row.title}, k = {row.k}"
    interval = (
        f"; {1 - 2 * document.alpha:.0%} interval {_interval(row)}"
        if row.ci_low is not None
        else ""
    )
    figures = [
        (_share(row.p_control), "refused in the control group"),
        (_share(row.p_test), "refused in the test group"),
        (_difference(row.delta_p), f"Δp, {method}{interval}"),
    ]
    if row.q_value is not None:
        figures.append((_p(row.q_value), "q: p-value, all complainants taken into account"))
    return figures


def _part(document: CaseDocument, part: Part, place: int) -> _PartPage:
    several = len(document.parts) > 1
    ground = listed(part.ground, last="and")
    prefix = f"part{place + 1}"
    return _PartPage(
        title=f"On the ground of {ground}" if several else "",
        outcome_cf=value(part.outcome_cf),
        movements=movement_table(part, prefix),
        lines=movement_lines(part),
        summary=summary_table(part, prefix, negative=document.complainant.negative),
        support=support_table(part, prefix),
        balance=balance_table(part, prefix),
        changes=changes_table(part, prefix),
        thresholds=thresholds(part, document),
        listings=listings(part, prefix),
    )


def _methods_table(document: CaseDocument) -> Table:
    drawn = any(row.draw_share is not None for row in document.figures)
    names = ["Method", "k", "Control", "Test", "Δp", "Interval", "p", "q", "Verdict"]
    columns = [Column(label=name, numeric=name not in {"Method", "Verdict"}) for name in names]
    if drawn:
        columns.append(Column(label="Draws with evidence"))
    rows = [
        Row(
            cells=(
                row.title,
                row.k if METHODS[row.method].count_neighbours else "any",
                _share(row.p_control),
                _share(row.p_test),
                _difference(row.delta_p),
                _interval(row),
                _p(row.p_value),
                _p(row.q_value),
                row.verdict,
                *(
                    [MISSING if row.draw_share is None else percent(row.draw_share)]
                    if drawn
                    else []
                ),
            ),
            primary=row.primary,
        )
        for row in _once(document.figures)
    ]
    return Table(
        name="figures",
        caption="Shares refused, their difference, and the verdict.",
        aside=f"Intervals are {1 - 2 * document.alpha:.0%} intervals.",
        columns=tuple(columns),
        rows=tuple(rows),
        note="The shaded line is the one of the headline, fixed before the audit was run."
        + (
            " Each line shows the figures of the ground with the weakest evidence, and bounds that "
            "hold for all grounds."
            if len(document.parts) > 1
            else ""
        ),
    )


def _once(figures: Sequence[Figures]) -> list[Figures]:
    """Leave out what is said already: a method that compares no groups knows no k."""
    primary = {row.method for row in figures if row.primary}
    told: set[str] = set()
    kept = []
    for row in figures:
        if not METHODS[row.method].count_neighbours:
            if row.method in told or (row.method in primary and not row.primary):
                continue
            told.add(row.method)
        kept.append(row)
    return kept


def _forest(document: CaseDocument) -> CaptionedPicture:
    sign = -1 if document.direction == "positive" else 1
    rows = [
        _forest_row(row, label=f"k = {row.k}" if METHODS[row.method].count_neighbours else "")
        for row in _once(document.figures)
    ]
    drawing = plot_forest(
        rows,
        threshold=sign * document.tau,
        threshold_name=f"{'−' if sign < 0 else ''}τ = {sign * document.tau:g}".replace(
            "= -", "= −"
        ),
    )
    return CaptionedPicture(
        name="forest",
        drawing=drawing,
        title="Δp and its interval under every method and group size",
        caption="Squares are differences, lines their intervals; a diamond is a comparison of two "
        "single decisions, which has no interval. Colour marks evidence.",
        description="; ".join(f"{r.group} {r.label}: {r.words}, {r.verdict}" for r in rows) + ".",
    )


def _forest_row(row: Figures, *, label: str) -> ForestRow:
    bounded = known(row.delta_p) is not None and row.ci_low is not None
    words = f"{_difference(row.delta_p)}  {_interval(row) if bounded else ''}".strip()
    return ForestRow(
        verdict=row.verdict,
        group=row.title,
        label=label,
        delta_p=known(row.delta_p),
        low=known(row.ci_low),
        high=known(row.ci_high),
        words=words,
        found=row.verdict in _FOUND,
        primary=row.primary,
    )


def _worldview(document: CaseDocument) -> CaptionedPicture | None:
    drawing = document.drawings.get("worldview")
    if drawing is None:
        return None
    return CaptionedPicture(
        name="worldview",
        drawing=drawing,
        title="The worldview: who causes whom",
        caption="Changes start at the attribute with the double border and follow the arrows.",
        description=" ".join(document.assumptions[:1]),
    )


def _share(number: Number) -> str:
    return written(number, percent)


def _difference(number: Number) -> str:
    return written(number, signed)


def _p(number: Number) -> str:
    return written(number, p_value)


def _interval(row: Figures) -> str:
    if row.ci_low is None or row.ci_high is None:
        return MISSING
    if row.ci_low == WITHHELD:
        return WITHHELD
    return f"[{_difference(row.ci_low)}, {_difference(row.ci_high)}]"


def _css_text(text: str) -> str:
    """Write a text so that a style sheet takes every letter of it as a letter."""
    return "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):x} " for c in text)


def _yaml(provenance: Mapping[str, Any]) -> str:
    writer = YAML(typ="safe", pure=True)
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.default_flow_style = None  # short lists stay on one line
    writer.width = 78
    text = StringIO()
    writer.dump(plain(dict(provenance)), text)
    return text.getvalue()
