"""The pictures of a report, each with its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.decision import required_columns
from mutandis.pictures.findings import Differences, plot_agreement, plot_delta_p, plot_k_sweep
from mutandis.pictures.worldview import draw_worldview
from mutandis.report.context import compared
from mutandis.report.formatting import count, listed, percent, signed
from mutandis.report.group_pictures import draw_groups
from mutandis.report.html import CaptionedPicture
from mutandis.report.tables import sweep_records
from mutandis.report.world_pictures import draw_worlds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutandis.report.context import Material
    from mutandis.report.samples import Samples

__all__ = ["Pictures", "draw_pictures"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """All pictures of a report; those that the audit gives no reason for are missing.

    Parameters
    ----------
    worldview
        Who causes whom.
    worlds
        The distributions of attributes, as they are and as they would have been.
    k_sweep, delta_p, agreement
        The findings: by group size, over the complainants, and by method.
    groups
        The groups of sample complainants, by attribute.
    """

    worldview: CaptionedPicture | None
    worlds: tuple[CaptionedPicture, ...]
    k_sweep: CaptionedPicture | None
    delta_p: CaptionedPicture | None
    agreement: CaptionedPicture | None
    groups: tuple[CaptionedPicture, ...]

    def files(self) -> dict[str, str]:
        """Give the drawings as files: the stem of each name, and the SVG text."""
        alone = (self.worldview, self.k_sweep, self.delta_p, self.agreement)
        every = (*(each for each in alone if each is not None), *self.worlds, *self.groups)
        return {picture.name: picture.drawing.svg for picture in every}


def draw_pictures(
    material: Material, samples: Samples, agreement: Sequence[dict[str, Any]]
) -> Pictures:
    """Draw everything that this audit gives reason for.

    Parameters
    ----------
    material, samples
        The audit, and the complainants whose groups are drawn.
    agreement
        How many complainants each combination of methods finds.
    """
    return Pictures(
        worldview=_draw_worldview(material),
        worlds=draw_worlds(material),
        k_sweep=_draw_sweep(material),
        delta_p=_draw_delta_p(material),
        agreement=_draw_agreement(material, agreement),
        groups=draw_groups(material, samples),
    )


def _draw_worldview(material: Material) -> CaptionedPicture | None:
    plan = material.plan
    if plan.worldview is None:
        return None
    protected = [each.attribute for each in plan.protections]
    inputs = () if plan.decision is None else required_columns(plan.decision)
    used = [name for name in inputs if name in plan.worldview.names]
    arrows = [
        f"{child} is caused by {listed(causes)}"
        for child, causes in plan.worldview.graph.parents.items()
        if causes
    ]
    return CaptionedPicture(
        name="worldview",
        drawing=draw_worldview(
            plan.worldview,
            protected=protected,
            outcome=plan.outcome.column,
            decision_inputs=used,
        ),
        title="The worldview",
        caption=(
            "An arrow says that one thing is a cause of another. "
            + (
                f"Dotted arrows show what the decision rule reads to decide {plan.outcome.column}."
                if used
                else f"What the decision on {plan.outcome.column} reads is not known here."
            )
        ),
        description=f"{'; '.join(arrows)}." if arrows else "Nothing causes anything.",
    )


def _draw_sweep(material: Material) -> CaptionedPicture | None:
    ks = material.plan.settings.ks
    if len(ks) < 2:
        return None
    records = sweep_records(material)
    titles = {method.name: method.title for method in material.methods}
    said = [
        f"{title}: {percent(mine[0]['share'])} of the complainants at k = {ks[0]}, "
        f"{percent(mine[-1]['share'])} at k = {ks[-1]}"
        for name, title in titles.items()
        if (mine := [record for record in records if record["method"] == name])
    ]
    return CaptionedPicture(
        name="k-sweep",
        drawing=plot_k_sweep(records, titles=titles),
        title="How much depends on the group size k",
        caption=(
            "Left: the share of complainants with evidence. Right: the mean of Δp over all of "
            "them. Small groups vary by chance; large ones reach people who are less alike. A "
            "finding that holds over a range of k is worth more than one that depends on it."
        ),
        description=f"{'; '.join(said)}.",
    )


def _draw_delta_p(material: Material) -> CaptionedPicture | None:
    k = material.primary[1]
    differences = []
    for method in material.methods:
        if not method.count_neighbours:
            continue
        found = material.findings(method.name, k)
        there = compared(found)
        if there.any():
            differences.append(
                Differences(
                    title=method.title,
                    delta_p=found.comparison.delta_p[there],
                    evidence=found.comparison.evidence[there],
                )
            )
    if not differences:
        return None
    tau = material.plan.settings.tau
    side = "right" if material.worse else "left"
    return CaptionedPicture(
        name="delta-p",
        drawing=plot_delta_p(differences, threshold=tau if material.worse else 0 - tau),
        title=f"Δp over the complainants, k = {k}",
        caption=(
            "Each bar counts complainants; how many do not differ at all is written beside. "
            f"Evidence lies to the {side} of the threshold. What lies on the other side are "
            "differences in the other direction: they show how far differences reach where none is "
            "looked for."
        ),
        description="; ".join(
            f"{each.title}: median {signed(float(np.median(each.delta_p)))}, "
            f"{count(int(each.evidence.sum()))} with evidence"
            for each in differences
        )
        + ".",
    )


def _draw_agreement(
    material: Material, records: Sequence[dict[str, Any]]
) -> CaptionedPicture | None:
    if len(material.methods) < 2 or not records:
        return None
    titles = {method.name: method.title for method in material.methods}
    totals = {name: sum(record["cases"] for record in records if record[name]) for name in titles}
    said = [
        f"{count(record['cases'])} by exactly "
        f"{listed(titles[name] for name in titles if record[name])}"
        for record in records
    ]
    return CaptionedPicture(
        name="agreement",
        drawing=plot_agreement(
            records,
            totals,
            titles=titles,
            caption=f"complainants with evidence, k = {material.primary[1]}",
        ),
        title="Agreement of the methods",
        caption=(
            "Each bar counts the complainants whom exactly the methods marked below it find. The "
            "numbers beside the methods are their totals."
        ),
        description=f"Found {'; '.join(said)}.",
    )
