"""A common unit in which the distances of all attributes are whole numbers.

Half a step of attribute i costs ``unit * weight_i / (2 * steps_i)``. The unit is chosen so that
this is an integer for as many attributes as int64 has room for: then their sums are exact. What
does not fit is rounded to an integer once, step by step: an attribute's own differences stay exact
multiples of each other, and only its weight beside the others moves, in the 24th bit or later.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING

from mutandis.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FINEST", "Term", "choose_unit"]

FINEST = 2**53
"""All ranges together measure at most this: float64 holds it, and 32 times as much fits int64."""

# distances are shown as floats, and so the unit must be one, however small unscaled values are
_LARGEST_UNIT = Fraction(2) ** 1023


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What one attribute adds to the distance.

    Parameters
    ----------
    name
        The attribute.
    weight
        What its whole range weighs.
    steps
        Into how many equal steps the range is divided.
    least
        The integer that half a step must be at least.
    """

    name: str
    weight: Fraction
    steps: int = 1
    least: int = 1

    @property
    def need(self) -> Fraction:
        """The number of which the unit must be a multiple, for half a step to be an integer."""
        return 2 * self.steps / self.weight

    def is_exact(self, unit: Fraction) -> bool:
        """Tell whether half a step is an integer in this unit, without rounding."""
        return (unit / self.need).denominator == 1

    def length(self, unit: Fraction) -> int:
        """Give the integer that stands for the whole range."""
        half_step = round(unit / self.need)
        if half_step < self.least:
            raise PlanError(
                f"Attribute {self.name!r} counts so little beside the others that its differences "
                "cannot be told apart. Use weights that are nearer to each other, and with "
                "scaling='none' values that are."
            )
        return half_step * 2 * self.steps


def choose_unit(terms: Iterable[Term], *, weight: Fraction) -> Fraction:
    """Choose the largest unit there is room for that makes as many terms exact as possible.

    Terms enter in the order of the common multiples they ask for, smallest first: the outcome does
    not depend on the order of the attributes.

    Parameters
    ----------
    terms
        One per attribute that varies.
    weight
        The weight of all attributes: distance 1 is unit * weight.

    Examples
    --------
    >>> halves = Term(name="a", weight=Fraction(1), steps=2)
    >>> thirds = Term(name="b", weight=Fraction(1), steps=3)
    >>> unit = choose_unit([halves, thirds], weight=Fraction(2))
    >>> unit % 12 == 0, unit.numerator.bit_length()
    (True, 52)
    """
    terms = tuple(terms)
    spread = sum((term.weight for term in terms), Fraction(0)) or Fraction(1)
    room = min(FINEST / spread, _LARGEST_UNIT / weight)
    waiting = {term.need for term in terms}
    unit = Fraction(0)
    while waiting:
        needed, entering = min((_common_multiple(unit, need), need) for need in waiting)
        if needed > room:
            break
        unit = needed
        waiting.remove(entering)
    unit = unit or room / FINEST
    # what room is left makes the unit finer, for centers that lie between grid points
    return unit * (1 << int(room / unit).bit_length() - 1)


def _common_multiple(first: Fraction, second: Fraction) -> Fraction:
    """Give the smallest common multiple of two fractions, where 0 has every multiple."""
    if not first:
        return second
    return Fraction(
        lcm(first.numerator, second.numerator), gcd(first.denominator, second.denominator)
    )
