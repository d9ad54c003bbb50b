"""Outcomes with an order and no distances: approved, approved on conditions, refused.

A level is counted by its place from the best one, so that larger is worse. Groups count how many
people are beyond each level but the last, which tells how many are at each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from mutandis.data.score import ScoreScale
from mutandis.errors import PlanError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LevelScale", "Ordered", "Scale"]

# each level but one takes a search of its own
_MOST_LEVELS = 32


@dataclass(frozen=True, slots=True, init=False)
class Ordered:
    """An outcome whose values have an order, from the best to the worst.

    Parameters
    ----------
    column
        The column with the outcome.
    best_to_worst
        All its values, at least three; some may be missing on record.

    Examples
    --------
    >>> Ordered("answer", best_to_worst=["approved", "on conditions", "refused"])
    Ordered('answer', best_to_worst=['approved', 'on conditions', 'refused'])
    >>> Ordered("answer", best_to_worst=["approved", "refused"])
    Traceback (most recent call last):
    mutandis.errors.PlanError: best_to_worst= has 2 levels, and an order takes from 3 to 32. An ...
    """

    column: str
    best_to_worst: tuple[Any, ...]

    def __init__(self, column: str, *, best_to_worst: Iterable[Any]) -> None:
        listed = isinstance(best_to_worst, Iterable) and not isinstance(
            best_to_worst, str | set | frozenset
        )
        if not listed:
            raise PlanError(
                "best_to_worst= takes a list of all values in their order, the best one first, not "
                f"{type(best_to_worst).__name__}."
            )
        levels = tuple(best_to_worst)
        if any(level in levels[:place] for place, level in enumerate(levels)):
            raise PlanError(
                f"best_to_worst= names a value of {column!r} more than once. Name each value once."
            )
        if not 3 <= len(levels) <= _MOST_LEVELS:
            raise PlanError(
                f"best_to_worst= has {len(levels)} levels, and an order takes from 3 to "
                f"{_MOST_LEVELS}. An outcome with two values has negative= instead."
            )
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "best_to_worst", levels)

    def __repr__(self) -> str:
        """Show it as it is written."""
        return f"Ordered({self.column!r}, best_to_worst={list(self.best_to_worst)!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelScale:
    """How an ordered outcome is counted: by the place of its level, the best one being 0."""

    levels: tuple[Any, ...]  # from the best to the worst
    # the fewest people that both groups count as for the test by Student's distribution; with
    # fewer, it is by permutation
    fewest: int = 15

    exact: ClassVar[bool] = True  # no level is rounded
    places: ClassVar[int] = 3  # decimals of θ

    def marks(self, places: NDArray[Any]) -> NDArray[np.bool_]:
        """Return what is summed over groups, by column: who is beyond each level but the last."""
        return np.asarray(places[:, np.newaxis] > np.arange(len(self.levels) - 1), dtype=np.bool_)

    def values(self, places: NDArray[Any]) -> NDArray[Any]:
        """Give the levels that places stand for."""
        # numpy would turn (1, "no") into text
        alike = len({type(level) for level in self.levels}) == 1
        levels = np.array(self.levels, dtype=None if alike else object)
        return levels[np.asarray(places, dtype=np.intp)]

    def shares(self, places: NDArray[Any]) -> list[float]:
        """Give the share of each level among some people."""
        found = np.bincount(places, minlength=len(self.levels))
        return [int(each) / len(places) for each in found]


Scale: TypeAlias = ScoreScale | LevelScale
"""How outcomes with more than two sides are counted."""
