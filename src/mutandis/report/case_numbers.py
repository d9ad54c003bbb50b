"""Numbers of a case file in writing: those that are missing, and those that are withheld."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mutandis.report.case_model import WITHHELD
from mutandis.report.formatting import MISSING, count

if TYPE_CHECKING:
    from mutandis.report.case_model import Number

__all__ = ["counted", "distance", "known", "written"]


def distance(number: float | str | None) -> str:
    """Write a distance; a band is written already."""
    if number is None:
        return MISSING
    return number if isinstance(number, str) else f"{number:.4f}"


def counted(number: Number) -> str:
    """Write a number of people."""
    return written(number, count)


def written(number: Number, write: Any) -> str:
    """Write a number in some way, unless there is none to write.

    Examples
    --------
    >>> written(0.25, "{:.0%}".format), written("withheld", str), written(None, str)
    ('25%', 'withheld', '–')
    """
    if number is None:
        return MISSING
    return WITHHELD if number == WITHHELD else str(write(number))


def known(number: Number) -> float | None:
    """Give a number to compute with; None where there is none."""
    return None if number is None or isinstance(number, str) else float(number)
