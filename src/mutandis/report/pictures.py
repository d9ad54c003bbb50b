"""The pictures of a report, each with its words."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.auditing.tipping import RULES
from mutandis.data.columns import Categories, Numbers
from mutandis.decision.maker import required_columns
from mutandis.pictures.attributes import (
    Spread,
    plot_levels,
    plot_numbers,
    plot_roles,
)
from mutandis.pictures.findings import plot_delta_p, reach_of
from mutandis.pictures.robustness import plot_tipping_points
from mutandis.pictures.worldview import draw_worldview
from mutandis.report.formatting import count, listed, percent, value
from mutandis.report.html import CaptionedPicture
from mutandis.report.tables import count_verdict_grades, differences_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutandis.auditing.audit import Audit
    from mutandis.data.attribute import Attribute
    from mutandis.data.columns import Column
    from mutandis.data.labels import Labels
    from mutandis.pictures.attributes import Role as WorldRole
    from mutandis.pictures.picture import Picture
    from mutandis.report.context import ReportContext

__all__ = ["Pictures", "captioned_worldview", "draw_pictures"]

# more histograms than these would hide the findings
_MOST_WORLDS = 12
_MOST_LEVELS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """All pictures of a report; those that the audit gives no reason for are missing."""

    worldview: CaptionedPicture | None
    worlds: tuple[CaptionedPicture, ...]
    worlds_legend: CaptionedPicture | None
    delta_p: CaptionedPicture | None
    tipping: CaptionedPicture | None
    hidden_cause: CaptionedPicture | None
    worldviews: CaptionedPicture | None

    def files(self) -> dict[str, str]:
        """Give the drawings as files: the stem of each name, and the SVG text."""
        alone = [self.worldview, self.delta_p, self.tipping, self.hidden_cause]
        alone += [self.worldviews, self.worlds_legend]
        every = (*(each for each in alone if each is not None), *self.worlds)
        return {picture.name: picture.drawing.svg for picture in every}


def draw_pictures(context: ReportContext) -> Pictures:
    """Draw everything that this audit gives reason for."""
    worlds = _draw_worlds(context)
    return Pictures(
        worldview=captioned_worldview(context),
        worlds=worlds,
        worlds_legend=_explain_worlds(context) if worlds else None,
        delta_p=_draw_delta_p(context),
        tipping=_draw_tipping(context),
        hidden_cause=_draw_hidden_cause(context),
        worldviews=_draw_worldviews(context),
    )


def captioned_worldview(context: ReportContext) -> CaptionedPicture | None:
    plan = context.plan
    if plan.worldview is None:
        return None
    protected = [each.attribute for each in plan.protections]
    inputs = () if plan.decision is None else required_columns(plan.decision)
    used = [name for name in inputs if name in plan.worldview.names]
    column = context.labels.column
    outcome = column(plan.outcome.column)
    arrows = [
        f"{column(child)} is caused by {listed(map(column, causes))}"
        for child, causes in plan.worldview.graph.parents.items()
        if causes
    ]
    alike = [each.name for each in plan.attributes]
    leads = (
        f"The decision on {outcome} reads {listed(map(column, used))}"
        if used
        else f"People are compared on {listed(map(column, alike))}, and by {outcome}"
    )
    return CaptionedPicture(
        name="worldview",
        drawing=draw_worldview(
            plan.worldview,
            protected=protected,
            outcome=plan.outcome.column,
            decision_inputs=used,
            compared=alike,
            label=column,
        ),
        title="The worldview",
        caption=(
            "An arrow says that one thing is a cause of another. "
            + (
                f"Dotted arrows show what the decision rule reads to decide {outcome}."
                if used
                else f"What the decision on {outcome} reads is not known here; broken arrows come "
                "from what people are compared on."
            )
        ),
        description=f"{'; '.join(arrows) if arrows else 'Nothing causes anything'}. {leads}.",
    )


def _draw_delta_p(context: ReportContext) -> CaptionedPicture | None:
    k = context.primary[1]
    tested = [method.name for method in context.methods if method.count_neighbours]
    found = [differences_of(context, method) for method in tested]
    differences = [each for each in found if each is not None]
    if not differences:
        return None
    settings = context.plan.settings
    measure = settings.measure
    side = "right" if context.worse else "left"
    return CaptionedPicture(
        name="delta-p",
        drawing=plot_delta_p(
            differences,
            threshold=None
            if measure.is_ratio
            else measure.threshold(settings.tau, worse=context.worse),
            symbol=context.words.symbol,
            reach=1.0 if context.words.kind.two_sided else reach_of(differences),
        ),
        title=f"{context.words.symbol} over the complainants, k = {k}",
        caption=(
            "Each bar counts complainants; how many do not differ at all is written beside. "
            + (
                f"Evidence is {measure.condition(settings.tau, worse=context.worse)}, so that no "
                "one difference is its threshold. What lies beyond 0 on the other side are "
                if measure.is_ratio
                else f"Evidence lies to the {side} of the threshold. What lies on the other side "
                "are "
            )
            + "differences in the other direction: they show how far differences reach where none "
            "is looked for."
        ),
        description="; ".join(
            f"{each.title}: median {context.words.difference(float(np.median(each.delta_p)))}, "
            f"{count(int(each.evidence.sum()))} with evidence"
            for each in differences
        )
        + ".",
    )


def _draw_tipping(context: ReportContext) -> CaptionedPicture | None:
    counts = count_verdict_grades(context)
    if counts is None or not any(sum(grades.values()) for grades in counts.values()):
        return None
    found = context.audit.measure_tipping()
    total = {grade: sum(each[grade] for each in counts.values()) for grade in RULES}
    return CaptionedPicture(
        name="tipping",
        drawing=plot_tipping_points(found.point, found.grade, counts=total),
        title="How much of the effect must be real",
        caption=f"Each bar counts verdicts by the least part of the effect of "
        f"{context.grounds} that must be real for them to stand, all else unchanged. It says how "
        "wrong the worldview may be, and not how wrong it is.",
        description="; ".join(f"{number:,} {grade}" for grade, number in total.items()) + ".",
    )


def _draw_hidden_cause(context: ReportContext) -> CaptionedPicture | None:
    if not context.plan.settings.uncertainty.tipping or context.plan.worldview is None:
        return None
    cause = context.audit.hidden_cause()
    effects = cause.effects[0][1]
    if not effects:
        return None
    weakest = effects[0]
    return CaptionedPicture(
        name="hidden-cause",
        drawing=cause.plot(),
        title="How strong a hidden common cause would have to be",
        caption=f"An unmeasured cause of both {context.grounds} and "
        f"{context.labels.column(weakest.attribute)}, the attribute whose effect takes least to "
        "explain away, by what it explains of what is left of each. Lines: how much "
        "of the effect remains; a verdict falls where less remains than "
        "its λ*. Diamonds: causes as strong as the observed ones, and two and three times as "
        "strong.",
        description=f"A cause that explains {percent(weakest.robustness_value(1))} of both would "
        "account for all of the effect.",
    )


def _draw_worldviews(context: ReportContext) -> CaptionedPicture | None:
    compared = context.audit.measure_worldviews()
    if compared is None:
        return None
    stays = compared.count_stays().items()
    return CaptionedPicture(
        name="worldviews",
        drawing=compared.plot_matrix(),
        title="Verdicts under other worldviews",
        caption="Complainants by their verdict under each worldview. No count is a probability: "
        "the worldviews that were thought of are not a sample of anything.",
        description="; ".join(
            f"{people:,} {'holds' if people == 1 else 'hold'} under {number} of "
            f"{len(compared.names)}"
            for number, people in stays
        )
        + ".",
    )


def _in_order_of_interest(audit: Audit) -> list[tuple[Attribute, bool]]:
    """List the attributes with whether they move: those first, otherwise as they were declared."""
    counterfactual = audit.world.point
    moved = frozenset() if counterfactual is None else counterfactual.changed
    every = [(attribute, attribute.name in moved) for attribute in audit.plan.attributes]
    return sorted(every, key=lambda pair: not pair[1])


def _draw_worlds(context: ReportContext) -> tuple[CaptionedPicture, ...]:
    """Draw each attribute, those that move first; of many attributes, the first ones."""
    pictures: list[CaptionedPicture] = []
    for number, (part, audit) in enumerate(context.parts.items(), start=1):
        prefix = f"distribution-{number}" if part else "distribution"
        for place, (attribute, moves) in enumerate(_in_order_of_interest(audit), start=1):
            if len(pictures) == _MOST_WORLDS:
                return tuple(pictures)
            name = f"{prefix}-{place}-{_slug(attribute.name)}"
            pictures.append(_draw_world(context, part, attribute, name, moves=moves))
    return tuple(pictures)


def _draw_world(
    context: ReportContext,
    part: str,
    attribute: Attribute,
    name: str,
    *,
    moves: bool,
) -> CaptionedPicture:
    audit = context.parts[part]
    groups = list(_world_groups(audit, attribute.name, moves=moves))
    columns = [column for _, _, column in groups]
    called = context.labels.column(attribute.name)
    if all(isinstance(column, Numbers) for column in columns):
        drawing, said = _numbers(called, groups)
    else:
        drawing, said = _levels(attribute, groups, context.labels)
    draws = _count_draws(audit, attribute.name) if moves else 0
    held = attribute.name in audit.provenance.computed["held"]
    why = "held: it is resolving" if held else "the same in both worlds"
    known = audit.world.point is not None
    return CaptionedPicture(
        name=name,
        drawing=drawing,
        title=f"{called}{context.by_part(part)}",
        caption=f"The counterfactual over {draws} draws."
        if draws
        else ""
        if moves or not known
        else f"For the complainants, {why}.",
        description=f"{called}. {said}",
    )


_Group = tuple["WorldRole", str, "Column"]
_ROLES: dict[WorldRole, str] = {
    "factual": "complainants, as they are",
    "counterfactual": "complainants, counterfactual",
    "reference": "those compared with",
}


def _explain_worlds(context: ReportContext) -> CaptionedPicture:
    """Draw the one legend of all pictures of both worlds."""
    known = any(audit.world.point is not None for audit in context.parts.values())
    labels = {role: said for role, said in _ROLES.items() if known or role != "counterfactual"}
    return CaptionedPicture(
        name="legend-worlds",
        drawing=plot_roles(labels),
        title="Legend: whose values are drawn",
        caption="",
        description=f"Drawn are: {'; '.join(labels.values())}.",
    )


def _world_groups(audit: Audit, name: str, *, moves: bool) -> Iterator[_Group]:
    """Give the complainants in one world or both, and the others they are compared with."""
    study, world = audit.study, audit.world
    rows = study.people
    yield "factual", _ROLES["factual"], study.population.columns[name].take(rows)
    if moves and world.point is not None:
        open_to = _count_draws(audit, name)
        drawn = [draw.part(name, rows) for draw in world.draws[:open_to]]
        moved = _joined(drawn) if drawn else world.point.part(name, rows)
        yield "counterfactual", _ROLES["counterfactual"], moved
    others = study.population.columns[name].take(study.reference)
    yield "reference", _ROLES["reference"], others


def _count_draws(audit: Audit, name: str) -> int:
    """Count the draws of an attribute of the complainants; none where all are the same."""
    rows = audit.study.people
    drawn = [_bytes_of(draw.part(name, rows)) for draw in audit.world.draws]
    return len(drawn) if len(set(drawn)) > 1 else 0


def _bytes_of(column: Column) -> bytes:
    return (column.values if isinstance(column, Numbers) else column.codes).tobytes()


def _joined(columns: Sequence[Column]) -> Column:
    """Put columns of the same kind and levels below each other."""
    numbers = [each.values for each in columns if isinstance(each, Numbers)]
    if numbers:
        return Numbers(np.concatenate(numbers))
    names = [each for each in columns if isinstance(each, Categories)]
    return Categories(np.concatenate([each.codes for each in names]), names[0].levels)


def _numbers(called: str, groups: Sequence[_Group]) -> tuple[Picture, str]:
    spreads = [
        Spread(role=role, label=label, values=column.values)
        for role, label, column in groups
        if isinstance(column, Numbers)
    ]
    said = "; ".join(f"{each.label}: mean {value(float(each.values.mean()))}" for each in spreads)
    return plot_numbers(called, spreads, legend=False), f"{said[0].upper()}{said[1:]}."


def _levels(attribute: Attribute, groups: Sequence[_Group], labels: Labels) -> tuple[Picture, str]:
    named = [(role, label, _level_shares(column)) for role, label, column in groups]
    order = _level_order(attribute, [shares for _, _, shares in named])
    shown, rest = order[:_MOST_LEVELS], order[_MOST_LEVELS:]
    levels = [labels.level(attribute.name, level) for level in shown] + (
        [f"{len(rest)} others"] if rest else []
    )
    spreads = []
    for role, label, shares in named:
        values = [shares.get(level, 0.0) for level in shown]
        values += [sum(shares.get(level, 0.0) for level in rest)] if rest else []
        spreads.append(Spread(role=role, label=label, values=np.array(values)))
    said = "; ".join(
        f"{each.label}: "
        + ", ".join(
            f"{level} {percent(share)}"
            for level, share in zip(levels, each.values.tolist(), strict=True)
        )
        for each in spreads
    )
    called, said = labels.column(attribute.name), f"{said[0].upper()}{said[1:]}."
    return plot_levels(called, levels, spreads, legend=False), said


def _level_shares(column: Column) -> dict[object, float]:
    """Count the levels of a column as shares; numbers among names count as their own names."""
    if isinstance(column, Numbers):
        levels, counts = np.unique(column.values, return_counts=True)
        pairs = zip(levels.tolist(), counts.tolist(), strict=True)
    else:
        pairs = zip(column.levels, column.counts().tolist(), strict=True)
    return {level: number / max(len(column), 1) for level, number in pairs if number}


def _level_order(attribute: Attribute, shares: Sequence[dict[object, float]]) -> list[object]:
    """Put levels into their declared order, or the commonest first."""
    if attribute.levels:
        return list(attribute.levels)
    every = dict.fromkeys(level for each in shares for level in each)
    return sorted(
        every, key=lambda level: (-max(each.get(level, 0.0) for each in shares), str(level))
    )


def _slug(name: str) -> str:
    """Give a name that files and ids can have: a few small letters and digits of it."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", letters.lower()).strip("-")[:40].strip("-") or "x"
