"""Which levels an equation knows, and where they are in a column's own levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["KnownLevels"]


@dataclass(frozen=True, slots=True)
class KnownLevels:
    """The levels that occurred when an equation was fitted, in the order it uses.

    Levels are looked up by value, not by code: another table may have other levels, or the same
    ones in another order.

    Examples
    --------
    >>> known = KnownLevels.of(Categories(np.array([2, 0]), ("high", "mid", "low")))
    >>> known
    KnownLevels(levels=('high', 'low'))
    >>> known.places(Categories(np.array([0, 1, 1]), ("low", "high"))).tolist()
    [1, 0, 0]
    >>> known.column(np.array([1, 0]), ("low", "high")).codes.tolist()
    [0, 1]
    """

    levels: tuple[Any, ...]

    @classmethod
    def of(cls, column: Categories, order: Sequence[Any] | None = None) -> KnownLevels:
        """Take the levels that occur, in the column's order or in the one that is given."""
        present = [column.levels[code] for code in np.flatnonzero(column.counts())]
        if len(present) < 2:
            raise EquationError(
                "the attribute has the same level in every row, so nothing can be learnt about "
                "it. Remove its equation, or fit on a table in which other levels occur."
            )
        return cls(tuple(present if order is None else (one for one in order if one in present)))

    def __len__(self) -> int:
        return len(self.levels)

    def places(self, column: Categories) -> NDArray[np.intp]:
        """Translate a column's codes into places among the known levels."""
        place = {level: number for number, level in enumerate(self.levels)}
        # one more slot at the end, which the code -1 of a missing value falls into
        table = np.array([*(place.get(level, -1) for level in column.levels), -1], dtype=np.intp)
        places: NDArray[np.intp] = table[column.codes]
        unknown = int((places < 0).sum())
        if unknown:
            raise EquationError(
                f"{unknown} of {len(places)} rows have a level that did not occur when the "
                "equation was fitted, so its probability is unknown. Fit on a table in which "
                "every level occurs, or leave these rows out."
            )
        return places

    def column(self, places: NDArray[Any], levels: tuple[Any, ...]) -> Categories:
        """Translate places among the known levels into codes of a column with its own levels."""
        code = {level: number for number, level in enumerate(levels)}
        table = np.array([code.get(level, -1) for level in self.levels], dtype=np.int32)
        codes = table[places]
        absent = int((codes < 0).sum())
        if absent:
            raise EquationError(
                f"{absent} of {len(codes)} rows would have a level that the column of this table "
                "does not have. Declare the same levels for both tables: attributes={'grade': "
                "{'kind': 'ordinal', 'levels': [...]}}."
            )
        return Categories(codes, levels)
