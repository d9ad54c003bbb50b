"""How averages and differences of an outcome are written: shares of people, or means of a score."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Final

from mutandis.data.labels import PLAIN

if TYPE_CHECKING:
    from mutandis.data.labels import Labels
    from mutandis.data.score import ScoreScale

__all__ = ["SHARES", "Wording"]

_MISSING = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The words and the digits of one kind of outcome."""

    labels: Labels = PLAIN
    column: str = ""
    scale: ScoreScale | None = None

    @property
    def symbol(self) -> str:
        """What a difference is called."""
        return "Δp" if self.scale is None else "Δ"

    @property
    def score(self) -> str:
        """What a score is called."""
        return self.labels.column(self.column)

    @property
    def averaged(self) -> str:
        """What is averaged over a group, as it follows its name: "refused", "mean rate"."""
        return self.labels.negative if self.scale is None else f"mean {self.score}"

    @property
    def concerned(self) -> str:
        """What was decided on those who are concerned themselves, as it follows "were"."""
        if self.scale is None:
            return self.labels.negative
        return "themselves worse off than the mean of their test group"

    @property
    def definition(self) -> str:
        """What is compared, and how a difference is formed: the first sentence on verdicts."""
        if self.scale is None:
            return (
                f"p is the share of a group that was {self.labels.negative}, Δp = p(control group) "
                "− p(test group)."
            )
        sides = ("control", "test") if self.scale.sign > 0 else ("test", "control")
        return (
            f"Δ = mean {self.score} of the {sides[0]} group − that of the {sides[1]} group: more "
            "is worse."
        )

    def average(self, value: float | str | None) -> str:
        """Write the share of refusals in a group, or its mean score."""
        if isinstance(value, str):
            return value
        if value is None or isnan(value):
            return _MISSING
        return f"{value:.1%}" if self.scale is None else self.number(value)

    def difference(self, value: float | str | None) -> str:
        """Write a difference between groups, with a real minus."""
        if isinstance(value, str):
            return value
        if value is None or isnan(value):
            return _MISSING
        return self.number(value).replace("-", "−")

    def number(self, value: float) -> str:
        """Write a difference of shares, or a score, with as many digits as its range asks for."""
        places = 3 if self.scale is None else self.scale.places
        # what rounds to zero has no sign
        return f"{round(float(value), places) + 0.0:,.{places}f}"


SHARES: Final = Wording()
"""That of outcomes with two sides, without labels."""
