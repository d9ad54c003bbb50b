"""A table of which most rows are those of another: only the rows that differ are kept.

Under do(A := a') the rows that have status a' already stay as they are, to the last bit. So D^CF
repeats D for them, and need not be held twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mutandis.data.columns import Categories, Column, Numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from mutandis.data.population import Population

__all__ = ["Overlay", "as_overlay"]


class Overlay(Mapping[str, Column]):
    """Columns that are assembled on access, and not kept.

    Columns in `patches` hold other values than the `base` in some `rows` (ascending); columns in
    `whole` are held in full.

    Examples
    --------
    >>> pay = Numbers(np.array([10.0, 20.0, 30.0]))
    >>> raised = Overlay({"pay": pay}, np.array([1]), {"pay": Numbers(np.array([25.0]))}, {})
    >>> raised["pay"].values.tolist(), raised.part("pay", np.array([0, 1])).values.tolist()
    ([10.0, 25.0, 30.0], [10.0, 25.0])
    """

    def __init__(
        self,
        base: Mapping[str, Column],
        rows: NDArray[np.intp],
        patches: Mapping[str, Column],
        whole: Mapping[str, Column],
    ) -> None:
        self._base = base
        self._rows = rows
        self._patches = patches
        self._whole = whole

    def __getitem__(self, name: str) -> Column:
        if name in self._whole:
            return self._whole[name]
        column = self._base[name]
        if name not in self._patches:
            return column
        return _put(column, self._rows, self._patches[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._base)

    def __len__(self) -> int:
        return len(self._base)

    def part(self, name: str, rows: NDArray[np.intp]) -> Column:
        """Give some rows of a column, without assembling the others."""
        if name in self._whole:
            return self._whole[name].take(rows)
        column = self._base[name].take(rows)
        if name not in self._patches:
            return column
        place = np.searchsorted(self._rows, rows)
        place[place == len(self._rows)] = 0  # beyond the last of them: compared with the first
        differ = np.flatnonzero(self._rows[place] == rows)
        return _put(column, differ, self._patches[name].take(place[differ]))


def as_overlay(
    population: Population, base: Population, *, likely: NDArray[np.intp] | None = None
) -> Population:
    """Give the same table, held as what differs from another with the same columns and rows.

    It is returned unchanged where that would save nothing. `likely` are the rows expected to
    differ: if it is these, no second list of them is kept.
    """
    changed = {
        name: (column, base.columns[name])
        for name, column in population.columns.items()
        if column is not base.columns[name]
    }
    differing = {name: _differs(*pair) for name, pair in changed.items()}
    known = {name: differs for name, differs in differing.items() if differs is not None}
    if not known:
        return population
    rows = np.flatnonzero(np.logical_or.reduce(list(known.values())))
    if len(rows) > len(population) // 2:
        return population
    if likely is not None and np.array_equal(rows, likely):
        rows = likely
    columns = Overlay(
        base.columns,
        rows,
        {name: changed[name][0].take(rows) for name, differs in known.items() if differs.any()},
        {name: changed[name][0] for name in changed if name not in known},
    )
    return replace(population, columns=columns)


def _differs(column: Column, other: Column) -> NDArray[np.bool_] | None:
    """Mark rows whose bits differ; None for a column that is better held as it is."""
    if isinstance(column, Numbers) and isinstance(other, Numbers):
        # as integers: -0.0 is not 0.0
        return np.asarray(column.values.view(np.int64) != other.values.view(np.int64))
    if isinstance(column, Categories) and isinstance(other, Categories):
        # one code for all rows takes no memory; other levels are another column
        in_full = column.codes.strides == (0,) or column.levels != other.levels
        return None if in_full else np.asarray(column.codes != other.codes)
    return None


def _put(column: Column, rows: NDArray[np.intp], patch: Column) -> Column:
    if isinstance(column, Numbers) and isinstance(patch, Numbers):
        values = column.values.copy()
        values[rows] = patch.values
        return Numbers(values)
    if isinstance(column, Categories) and isinstance(patch, Categories):
        codes = column.codes.copy()
        codes[rows] = patch.codes
        return Categories(codes, column.levels)
    raise TypeError("a patch has the type of its column")
