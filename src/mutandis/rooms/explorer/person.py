"""One complainant: her document, her groups as rows of dots, and her verdict at another λ."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any

from mutandis.auditing.tipping import STEPS, find_with_part
from mutandis.data.columns import plain_value
from mutandis.engine.methods import METHODS
from mutandis.errors import PlanError
from mutandis.report.case_file import case_document

if TYPE_CHECKING:
    from mutandis.auditing.audit import Audit
    from mutandis.outcomes.words import Words
    from mutandis.report.case_model import CaseDocument, GroupList
    from mutandis.rooms.explorer.view import Lens, View
    from mutandis.verdicts.findings import Findings

__all__ = ["MOST_EFFECT", "Dots", "Person", "Trial", "draw_dots", "read_part"]

MOST_EFFECT = 1.5
"""The largest λ: half as much again as the worldview says."""

_PER_LINE = 25
_MOST_DOTS = 300
_SPACE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One person: where the dot stands, its size, and what is said about it."""

    x: int
    y: int
    radius: float
    refused: bool
    farthest: bool
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """A group as rows of dots, nearest first."""

    dots: tuple[Dot, ...]
    width: int
    height: int
    farthest: float | None
    left_out: int


def draw_dots(group: GroupList, words: Words, own: Any) -> Dots:
    """Place a dot per person, nearest first; its area is the part of a place that they hold.

    Refusals are filled; of other outcomes, those that are as the complainant's `own` or beyond.
    """
    people = [each for each in group.members if each.role == "person"]
    shown = people[:_MOST_DOTS]
    # a group is drawn whole or as its nearest: the farthest is then not in the picture
    last = len(people) - 1
    dots = tuple(
        Dot(
            x=_SPACE * (number % _PER_LINE) + _SPACE // 2,
            y=_SPACE * (number // _PER_LINE) + _SPACE // 2,
            radius=round(7.5 * max(0.4, sqrt(min(1.0, each.place))), 1),
            refused=words.is_filled(each.outcome, own),
            farthest=number == last,
            title=f"{each.person}: {each.outcome}, distance {each.distance:.4f}",
        )
        for number, each in enumerate(shown)
    )
    return Dots(
        dots=dots,
        width=_SPACE * min(_PER_LINE, max(1, len(shown))),
        height=_SPACE * max(1, -(-len(shown) // _PER_LINE)),
        farthest=max((each.distance for each in people), default=None),
        left_out=(group.people or len(people)) - len(shown),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A comparison on one ground with a part of the effect: a row of the findings."""

    ground: str
    row: dict[str, Any]


def read_part(text: str) -> Fraction:
    """Read λ, to the nearest twentieth; what is left out is the whole effect."""
    if not text.strip():
        return Fraction(1)
    try:
        part = Fraction(round(float(text) * STEPS), STEPS)
    except (ValueError, OverflowError):
        part = Fraction(-1)
    if not 0 <= part <= MOST_EFFECT:
        raise PlanError(f"λ is not a number from 0 to {MOST_EFFECT}. Write it like 0.5.")
    return part


class Person:
    """A complainant, by her place among the complainants."""

    def __init__(self, lens: Lens, view: View, place: int) -> None:
        self._lens, self._view, self.place = lens, view, place
        self.audit: Audit = lens.audit_at(view)
        row = int(self.audit.study.people[place])
        self.id: Any = plain_value(self.audit.plan.population.ids[row])

    def document(self, *, redact: bool = False) -> CaseDocument:
        """Collect everything about her, as her case file does."""
        return self._lens.once(
            ("document", self._view, self.place, redact),
            lambda: case_document(self.audit, self.id, redact=redact),
        )

    def try_part(self, part: Fraction) -> tuple[list[Trial], str]:
        """Compare again with a part of the effect, on each ground; or say why that is not done."""
        method = METHODS[self._view.method]
        try:
            trials = [
                Trial(
                    ground=ground,
                    row=_row(find_with_part(each, self.place, method, self._view.k, part)),
                )
                for ground, each in self.audit.by_ground.items()
            ]
        except PlanError as error:
            return [], str(error)
        return trials, ""


def _row(found: Findings) -> dict[str, Any]:
    return found.kind.plain({name: plain_value(each[0]) for name, each in found.columns().items()})
