"""How averages and differences of an outcome are written.

They are shares of people, means of a score, or shares of pairs where the outcome has an order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Final

from mutandis.data.labels import PLAIN
from mutandis.data.ordered import LevelScale

if TYPE_CHECKING:
    from mutandis.data.labels import Labels
    from mutandis.data.ordered import Scale

__all__ = ["SHARES", "Wording"]

_MISSING = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The words and the digits of one kind of outcome."""

    labels: Labels = PLAIN
    column: str = ""
    scale: Scale | None = None

    @property
    def symbol(self) -> str:
        """What a difference is called."""
        return "Δp" if self.scale is None else "Δ"

    @property
    def score(self) -> str:
        """What a score is called."""
        return self.labels.column(self.column)

    @property
    def levels(self) -> tuple[str, ...]:
        """What the levels of an ordered outcome are called, the best first; else none."""
        if not isinstance(self.scale, LevelScale):
            return ()
        return tuple(self.labels.level(self.column, each) for each in self.scale.levels)

    @property
    def averaged(self) -> str:
        """What is averaged over a group, as it follows its name: "refused", "mean rate"."""
        if self.levels:
            return "worse off in pairs"
        return self.labels.negative if self.scale is None else f"mean {self.score}"

    @property
    def described(self) -> str:
        """What a group is described by alone: "refused", "mean rate", "levels of answer"."""
        return f"levels of {self.score}" if self.levels else self.averaged

    @property
    def worse(self) -> str:
        """Which outcomes are worse: "a higher rate"; of an order, how it goes on."""
        if isinstance(self.scale, LevelScale):
            return f"farther to the right in: {', '.join(self.levels)}"
        return "" if self.scale is None else f"a {self.scale.worse} {self.score}"

    @property
    def beside(self) -> str:
        """What an own outcome is set beside, as it follows "worse off than"."""
        return "their test group" if self.levels else "the mean of their test group"

    @property
    def concerned(self) -> str:
        """What was decided on those who are concerned themselves, as it follows "were"."""
        if self.scale is None:
            return self.labels.negative
        return f"themselves worse off than {self.beside}"

    @property
    def definition(self) -> str:
        """What is compared, and how a difference is formed: the first sentence on verdicts."""
        if self.scale is None:
            return (
                f"p is the share of a group that was {self.labels.negative}, Δp = p(control group) "
                "− p(test group)."
            )
        if isinstance(self.scale, LevelScale):
            return (
                "Each person of the control group is paired with each one of the test group. θ is "
                f"the share of pairs in which the one of the control group had the worse "
                f"{self.score}, and half of the share in which both had the same; Δ = θ − ½: more "
                f"is worse. From the best to the worst: {', '.join(self.levels)}."
            )
        sides = ("control", "test") if self.scale.sign > 0 else ("test", "control")
        return (
            f"Δ = mean {self.score} of the {sides[0]} group − that of the {sides[1]} group: more "
            "is worse."
        )

    def average(self, value: float | str | None) -> str:
        """Write the share of refusals in a group, its mean score, or a share of pairs."""
        if isinstance(value, str):
            return value
        if value is None or isnan(value):
            return _MISSING
        return f"{value:.1%}" if self.scale is None or self.levels else self.number(value)

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
