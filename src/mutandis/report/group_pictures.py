"""Who was compared with whom (Fig. 2 right), drawn for a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Numbers
from mutandis.pictures.attributes import box_of, plot_groups
from mutandis.report.context import slug
from mutandis.report.formatting import value
from mutandis.report.html import CaptionedPicture
from mutandis.report.world_pictures import in_order_of_interest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.run import AuditResult
    from mutandis.data.attribute import Attribute
    from mutandis.data.population import Population
    from mutandis.evidence.groups import Members
    from mutandis.pictures.attributes import Box, GroupName
    from mutandis.report.context import Material
    from mutandis.report.samples import Samples

__all__ = ["draw_groups"]

_MOST_PICTURES = 4
_Found = dict["GroupName", tuple["NDArray[np.intp]", "NDArray[np.float64]", "Population"]]


def draw_groups(material: Material, samples: Samples) -> tuple[CaptionedPicture, ...]:
    """Draw the groups of the samples, for the attributes that have an order."""
    pictures: list[CaptionedPicture] = []
    for number, (part, result) in enumerate(material.parts.items(), start=1):
        prefix = f"groups-{number}" if part else "groups"
        attributes = [
            attribute
            for attribute, _ in in_order_of_interest(result)
            if attribute.kind is not AttributeKind.NOMINAL
        ][: max(1, _MOST_PICTURES // len(material.parts))]
        found = {place: _find(material, result, place) for _, place in samples.places}
        if not attributes or not any(found.values()):
            continue
        for place, attribute in enumerate(attributes, start=1):
            name = f"{prefix}-{place}-{slug(attribute.name)}"
            pictures.append(_draw(material, part, attribute, found, name))
    return tuple(pictures)


def _find(material: Material, result: AuditResult, place: int) -> _Found:
    """List the rows of one complainant's groups, with the places they hold and her world."""
    situation, index = result.situation, _index(material)
    names = [method.name for method in material.methods if method.count_neighbours]
    pairs = {name: result.grouping.pairs[name] for name in names}
    found: _Found = {}
    if pairs:
        control = next(iter(pairs.values())).control.members(place, index)
        found["control"] = (*_rows(situation.population, control), situation.population)
    if "st" in pairs:
        test = pairs["st"].test.members(place, index)
        found["st"] = (*_rows(situation.population, test), situation.population)
    # both kinds of CST search the same neighbours
    around = next((name for name in ("cst_without", "cst_with") if name in pairs), None)
    if around is not None and situation.counterfactual is not None:
        test = pairs[around].test.members(place, index)
        found["cst"] = (*_rows(situation.population, test), situation.counterfactual)
    return {group: each for group, each in found.items() if len(each[0])}


def _index(material: Material) -> int:
    return material.plan.settings.ks.index(material.primary[1])


def _rows(population: Population, members: Members) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    people = ~members.is_center
    ids, places = members.ids[people], members.place[people]
    rows = np.flatnonzero(np.isin(population.ids, ids))
    place = dict(zip(population.ids[rows].tolist(), rows.tolist(), strict=True))
    return np.array([place[each] for each in ids.tolist()], dtype=np.intp), places


def _draw(
    material: Material, part: str, attribute: Attribute, found: Mapping[int, _Found], name: str
) -> CaptionedPicture:
    result = material.parts[part]
    rows = result.situation.complainants
    ids = material.headline.ids
    boxes: dict[str, dict[GroupName, Box]] = {
        str(ids[place]): {
            group: box_of(
                _values(result.situation.population, attribute)[members],
                held,
                center=float(_values(world, attribute)[rows[place]]),
            )
            for group, (members, held, world) in groups.items()
        }
        for place, groups in found.items()
    }
    said = "; ".join(
        f"complainant {one}: {_medians(each, attribute)}" for one, each in boxes.items()
    )
    return CaptionedPicture(
        name=name,
        drawing=plot_groups(
            attribute.name, boxes, levels=[str(level) for level in attribute.levels]
        ),
        title=f"{attribute.name} in the groups of the sample complainants{material.by_part(part)}",
        caption=(
            f"k = {material.primary[1]}. Boxes hold the middle half of a group, thick lines are "
            "medians, whiskers reach to the smallest and the largest value."
        ),
        description=f"Medians: {said}.",
    )


def _medians(boxes: Mapping[GroupName, Box], attribute: Attribute) -> str:
    names = {"control": "control group", "st": "test group of ST", "cst": "test group of CST"}
    return ", ".join(
        f"{names[group]} {_shown(box.median, attribute.levels)}" for group, box in boxes.items()
    )


def _shown(number: float, levels: Sequence[object]) -> str:
    return str(levels[int(number)]) if levels else value(number)


def _values(population: Population, attribute: Attribute) -> NDArray[np.float64]:
    """Give an attribute's numbers, or its ranks."""
    column = population.columns[attribute.name]
    return column.values if isinstance(column, Numbers) else column.codes.astype(np.float64)
