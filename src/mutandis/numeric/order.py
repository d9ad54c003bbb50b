"""An order of rows that depends on what they hold, and on nothing else.

The same people in another order are the same population, so they must give the same coefficients
to the last bit. Floating-point sums depend on the order of what is added, so rows are put into an
order of their own before anything is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories, Column
from mutandis.data.rows import row_digests
from mutandis.mapped import in_file, take

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Columns, Floats


Bits = np.uint64

# rows that are compared with those before them at a time
_BLOCK = 1 << 20


class ReorderedColumns(Mapping[str, Column]):
    """Some columns of a table, put into another order (if any) on access, and not kept."""

    def __init__(
        self, columns: Columns, names: Iterable[str], *, order: NDArray[np.intp] | None = None
    ) -> None:
        self._columns = columns
        self._names = tuple(names)
        self._order = order

    def __getitem__(self, name: str) -> Column:
        if name not in self._names:
            raise KeyError(name)
        column = self._columns[name]
        return column if self._order is None else column.take(self._order)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def canonical_order(
    columns: Columns, *, others: Columns | None = None, ids: NDArray[Any] | None = None
) -> NDArray[np.intp]:
    """Order rows by their values alone; with `ids`, equal rows by `others` and then by these."""
    keys = [_bits(columns[name]) for name in sorted(columns)]
    if not keys:
        return np.empty(0, dtype=np.intp)
    order, repeats = _sorted(keys)
    if ids is not None and repeats.any():
        tied = np.concatenate([repeats, [False]]) | np.concatenate([[False], repeats])
        run = np.cumsum(~np.concatenate([[False], repeats]))[tied]
        rows = order[tied]
        further = [_bits(column)[rows] for _, column in sorted((others or {}).items())]
        digests = row_digests(further) if further else np.zeros(len(rows), dtype=Bits)
        order[tied] = rows[np.lexsort([rank_ids(ids[rows]), digests, run])]
    return order


def rank_ids(ids: NDArray[Any]) -> NDArray[np.intp]:
    """Rank ids of any type: numbers by value, all else as text."""
    sortable = ids if ids.dtype.kind in "iufb" else ids.astype(str)
    return np.unique(sortable, return_inverse=True)[1]


def order_of_ids(ids: NDArray[Any]) -> NDArray[np.intp] | slice:
    """Order rows by their ids, ranked as above; row positions are in order as they are."""
    if ids.dtype.kind in "iu" and (ids[1:] > ids[:-1]).all():
        return slice(None)
    return np.argsort(rank_ids(ids), kind="stable")


def distinct_rows(matrix: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find one row of each kind, in an order that depends on what they hold; and each row's."""
    keys = [np.ascontiguousarray(column).view(Bits) for column in matrix.T]
    order, repeats = _sorted(keys)
    first = np.concatenate([np.ones(min(1, len(order)), dtype=np.bool_), ~repeats])
    kinds = np.empty(len(order), dtype=np.intp)
    kinds[order] = np.cumsum(first) - 1
    return order[first], kinds


def _sorted(keys: Sequence[NDArray[Bits]]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Sort rows; mark each, from the second on, that equals the one before it."""
    # by 64-bit digests, which takes a tenth of the time of sorting by one column after the other
    digests = row_digests(keys)
    order = in_file(np.argsort(digests))
    repeats = _equal_neighbours([digests], order)
    if repeats.any() and not _equal_neighbours(keys, order)[repeats].all():
        # two different rows with one digest: rare, unless they were made on purpose
        order = np.lexsort([*keys, digests])
        repeats = _equal_neighbours(keys, order)
    return order, repeats


def _equal_neighbours(keys: Sequence[NDArray[Bits]], order: NDArray[np.intp]) -> NDArray[np.bool_]:
    equal = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for start in range(0, len(equal), _BLOCK):
        some = order[start : start + _BLOCK + 1]
        for key in keys:
            ordered = key[some]
            equal[start : start + _BLOCK] &= ordered[1:] == ordered[:-1]
    return equal


def _bits(column: Column) -> NDArray[Bits]:
    """Return each value as 64 bits; 0.0 and -0.0 are different values here."""
    if isinstance(column, Categories):
        # ranks among the levels that occur: levels left over from dropped rows change nothing
        ranks = np.cumsum(column.counts() > 0).astype(Bits)
        return take(np.concatenate([ranks, [Bits(0)]]), column.codes)
    return np.ascontiguousarray(column.values).view(Bits)


def rows_at_ranks(
    keys: Sequence[NDArray[np.generic]],
    ranks: NDArray[np.intp],
    among: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Return ``np.lexsort(keys[::-1])[ranks]`` without a sort by keys that are not needed."""
    if not keys:
        return ranks if among is None else among[ranks]
    values = keys[0] if among is None else keys[0][among]
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    first, last = (np.searchsorted(ordered, ordered[ranks], side) for side in ("left", "right"))
    found = order[ranks] if among is None else among[order[ranks]]
    for start, stop in set(zip(first.tolist(), last.tolist(), strict=True)):
        if stop - start > 1:
            equal = order[start:stop]
            mine = np.flatnonzero(first == start)
            equal = equal if among is None else among[equal]
            found[mine] = rows_at_ranks(keys[1:], ranks[mine] - start, equal)
    return found
