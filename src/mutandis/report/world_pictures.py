"""Attributes as they are and as they would have been (Fig. 2 left), drawn for a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.data.columns import Numbers
from mutandis.pictures.attributes import Spread, plot_levels, plot_numbers
from mutandis.report.context import slug
from mutandis.report.formatting import percent, value
from mutandis.report.html import CaptionedPicture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.run import AuditResult
    from mutandis.data.attribute import Attribute
    from mutandis.data.columns import Categories, Column
    from mutandis.pictures.picture import Picture
    from mutandis.report.context import Material

__all__ = ["MOST_PICTURES", "draw_worlds", "in_order_of_interest"]

MOST_PICTURES = 12
"""A page of fifty histograms would be read by nobody."""
_MOST_LEVELS = 10


def in_order_of_interest(result: AuditResult) -> list[tuple[Attribute, bool]]:
    """List the attributes with whether they move: those first, otherwise as they were declared."""
    counterfactual = result.situation.counterfactual
    moved = frozenset() if counterfactual is None else counterfactual.changed
    listed = [(attribute, attribute.name in moved) for attribute in result.plan.attributes]
    return sorted(listed, key=lambda pair: not pair[1])


def draw_worlds(material: Material) -> tuple[CaptionedPicture, ...]:
    """Draw each attribute, those that move first; of many attributes, the first ones."""
    pictures: list[CaptionedPicture] = []
    for number, (part, result) in enumerate(material.parts.items(), start=1):
        prefix = f"distribution-{number}" if part else "distribution"
        for place, (attribute, moves) in enumerate(in_order_of_interest(result), start=1):
            if len(pictures) == MOST_PICTURES:
                return tuple(pictures)
            name = f"{prefix}-{place}-{slug(attribute.name)}"
            pictures.append(_draw(material, part, attribute, name, moves=moves))
    return tuple(pictures)


def _draw(
    material: Material, part: str, attribute: Attribute, name: str, *, moves: bool
) -> CaptionedPicture:
    result = material.parts[part]
    groups = list(_groups(result, attribute.name, moves=moves))
    columns = [column for _, _, column in groups]
    if all(isinstance(column, Numbers) for column in columns):
        drawing, said = _numbers(attribute, groups)
    else:
        drawing, said = _levels(attribute, groups)
    held = attribute.name in result.provenance.computed["held"]
    why = "held: it is resolving" if held else "the same in both worlds"
    known = result.situation.counterfactual is not None
    return CaptionedPicture(
        name=name,
        drawing=drawing,
        title=f"{attribute.name}{material.by_part(part)}",
        caption="" if moves or not known else f"For the complainants, {why}.",
        description=f"{attribute.name}. {said}",
    )


_Group = tuple[str, str, "Column"]


def _groups(result: AuditResult, name: str, *, moves: bool) -> Iterator[_Group]:
    """Give the complainants in one world or both, and those they are compared with."""
    situation = result.situation
    rows = situation.complainants
    yield "factual", "complainants, as they are", situation.population.columns[name].take(rows)
    if moves and situation.counterfactual is not None:
        moved = situation.counterfactual.columns[name].take(rows)
        yield "counterfactual", "complainants, counterfactual", moved
    others = np.unique(np.concatenate([stratum.test for stratum in situation.strata]))
    yield "reference", "those compared with", situation.population.columns[name].take(others)


def _numbers(attribute: Attribute, groups: Sequence[_Group]) -> tuple[Picture, str]:
    spreads = [
        Spread(role=role, label=label, values=column.values)  # type: ignore[arg-type]
        for role, label, column in groups
        if isinstance(column, Numbers)
    ]
    said = "; ".join(f"{each.label}: mean {value(float(each.values.mean()))}" for each in spreads)
    return plot_numbers(attribute.name, spreads), f"{said[0].upper()}{said[1:]}."


def _levels(attribute: Attribute, groups: Sequence[_Group]) -> tuple[Picture, str]:
    named = [(role, label, _shares(column)) for role, label, column in groups]
    order = _level_order(attribute, [shares for _, _, shares in named])
    shown, rest = order[:_MOST_LEVELS], order[_MOST_LEVELS:]
    levels = [str(level) for level in shown] + ([f"{len(rest)} others"] if rest else [])
    spreads = []
    for role, label, shares in named:
        values = [shares.get(level, 0.0) for level in shown]
        values += [sum(shares.get(level, 0.0) for level in rest)] if rest else []
        spreads.append(
            Spread(role=role, label=label, values=np.array(values))  # type: ignore[arg-type]
        )
    said = "; ".join(
        f"{each.label}: "
        + ", ".join(
            f"{level} {percent(share)}"
            for level, share in zip(levels, each.values.tolist(), strict=True)
        )
        for each in spreads
    )
    return plot_levels(attribute.name, levels, spreads), f"{said[0].upper()}{said[1:]}."


def _shares(column: Column) -> dict[object, float]:
    """Count the levels of a column as shares; numbers among names count as their own names."""
    if isinstance(column, Numbers):
        levels, counts = np.unique(column.values, return_counts=True)
        pairs = zip(levels.tolist(), counts.tolist(), strict=True)
    else:
        pairs = zip(column.levels, _counts(column).tolist(), strict=True)
    return {level: number / max(len(column), 1) for level, number in pairs if number}


def _counts(column: Categories) -> NDArray[np.intp]:
    return column.counts()


def _level_order(attribute: Attribute, shares: Sequence[dict[object, float]]) -> list[object]:
    """Put levels into their declared order, or the commonest first."""
    if attribute.levels:
        return list(attribute.levels)
    every = dict.fromkeys(level for each in shares for level in each)
    return sorted(
        every, key=lambda level: (-max(each.get(level, 0.0) for each in shares), str(level))
    )
