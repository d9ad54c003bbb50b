"""The people of both groups, line by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mutandis.report.case_model import WITHHELD
from mutandis.report.case_numbers import distance
from mutandis.report.formatting import plural, value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutandis.report.case_model import GroupList, Member, Part

__all__ = ["ListedPerson", "Listing", "listings"]

# a page lists so many people of a group; the data list everybody
_PEOPLE = 250
# attributes in columns of their own, each with its part in the distance beside or below it
_BESIDE, _BELOW = 3, 8


_ADDS = {
    "beside": "“adds” is what an attribute adds to the distance.",
    "below": "Below each value: what it adds to the distance.",
    "flow": "After each value: what it adds to the distance.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPerson:
    """One line of a list of people; `cells` are (value, part of the distance)."""

    person: str
    centre: bool
    distance: str
    cells: tuple[tuple[str, str], ...]
    place: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A list of the people in one group.

    Parameters
    ----------
    name, role, caption, note
        Its id, whose group it is, and its words.
    layout
        "beside": value and part in two columns an attribute; "below": in one, the part below;
        "flow": all attributes in one cell.
    attributes, people
        What is in it.
    """

    name: str
    role: str
    caption: str
    note: str
    layout: str
    attributes: tuple[str, ...]
    people: tuple[ListedPerson, ...]


def listings(part: Part, prefix: str) -> tuple[Listing, ...]:
    """List the people of both groups."""
    groups = [group for group in (part.control, part.test) if group is not None]
    return tuple(_listing(group, f"{prefix}-{group.role}") for group in groups)


def _listing(group: GroupList, name: str) -> Listing:
    attributes = tuple(group.members[0].values) if group.members else ()
    shown = group.members[:_PEOPLE]
    more = len(group.members) - len(shown)
    parted = any(member.parts is not None for member in shown)
    layout = "beside" if len(attributes) <= _BESIDE else "below"
    if len(attributes) > _BELOW:
        layout = "flow"
    notes = []
    if parted:
        notes.append(_ADDS[layout])
    if group.people == WITHHELD:
        notes.append("How many people these are is withheld, so they are not listed.")
    if more:
        notes.append(f"{plural(more, 'more person', 'more people')} are listed in the JSON file.")
    return Listing(
        name=name,
        role=group.role,
        caption=f"The {group.role} group, around {group.around}",
        note=" ".join(notes),
        layout="plain" if layout == "beside" and not parted else layout,
        attributes=attributes,
        people=tuple(_person(member, attributes) for member in shown),
    )


_CENTRES = {"complainant": "the complainant", "counterfactual": "her counterfactual"}


def _person(member: Member, attributes: Sequence[str]) -> ListedPerson:
    parts = member.parts or {}
    return ListedPerson(
        person=_CENTRES.get(member.role) or value(member.person),
        centre=member.role != "person",
        distance=distance(member.distance),
        cells=tuple(
            (value(member.values[name]), f"{parts[name]:.4f}" if name in parts else "")
            for name in attributes
        ),
        place=member.place_text,
        outcome=value(member.outcome),
    )
