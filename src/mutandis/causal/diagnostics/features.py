"""What a test looks at in a column, and how the columns that it holds fixed are taken out.

Dependence is tested through features: numbers that move with the column. A column of few values has
one feature per value (is it this one?), a column of many has a curve of four parameters over its
ranks, so that neither its unit nor a single extreme value matters.

All sums over rows are NumPy's own, over rows in the order that they come in: BLAS may add in an
order that depends on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.data.columns import Categories, Column, Numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Floats

    Codes = NDArray[np.intp]


SMALLEST_GROUP = 10
"""A value that fewer rows have says nothing of its own: it is put together with others."""
MOST_GROUPS = 12
"""Beyond this many groups the smallest are put together, or a test would lose its power."""

# A numeric column with no more values than these is taken value by value.
_FEW_VALUES = 10
# Legendre polynomials of the ranks up to this degree: level, slope, bend, and two finer ones.
_DEGREE = 4
# Of a vector that keeps no larger part than this, nothing but rounding is left.
_NOTHING = 1e-8
# With fewer rows per combination of nominal values, combinations are not held fixed one by one.
_ROWS_PER_CELL = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What a test looks at in one column."""

    vectors: tuple[Floats, ...]
    """None if the column does not vary."""
    groups: Codes


def features_of(column: Column) -> Features:
    """Choose the features of a column: its values, or a curve over its ranks."""
    if isinstance(column, Numbers) and not takes_few_values(column):
        ranks = _ranks(column.values)
        return Features(vectors=_curve(ranks), groups=_tenths(ranks))
    groups = group_codes(column)
    return Features(vectors=indicators(groups), groups=groups)


def codes_of(column: Column) -> Codes:
    values = column.codes if isinstance(column, Categories) else column.values
    return np.unique(values, return_inverse=True)[1].astype(np.intp)


def group_codes(column: Column) -> Codes:
    """Give a number to each value that occurs in a column, rare ones together."""
    codes = codes_of(column)
    counts = np.bincount(codes)
    # largest first; equally large ones in the order of their values
    by_size = np.argsort(-counts, kind="stable")
    kept = [code for code in by_size.tolist() if counts[code] >= SMALLEST_GROUP]
    if len(kept) > MOST_GROUPS:
        kept = kept[: MOST_GROUPS - 1]
    new = np.full(len(counts), len(kept), dtype=np.intp)
    new[kept] = np.arange(len(kept))
    if 0 < len(codes) - int(counts[kept].sum()) < SMALLEST_GROUP:
        # even together they are few: they join the smallest group
        new = np.minimum(new, max(len(kept) - 1, 0))
    return new[codes]


def indicators(codes: Codes) -> tuple[Floats, ...]:
    return tuple((codes == code).astype(np.float64) for code in range(1, int(codes.max()) + 1))


def takes_few_values(column: Column) -> bool:
    return isinstance(column, Categories) or len(np.unique(column.values)) <= _FEW_VALUES


def is_nominal(column: Column) -> bool:
    """Tell whether a column holds names, or two numbers that might as well be names."""
    return isinstance(column, Categories) or len(np.unique(column.values)) <= 2


def _ranks(values: Floats) -> Floats:
    """Give the share of rows below each, ties at their middle."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    below = np.cumsum(counts) - counts
    ranks: Floats = ((below + 0.5 * counts) / len(values))[place]
    return ranks


def _curve(ranks: Floats) -> tuple[Floats, ...]:
    powers = np.polynomial.legendre.legvander(2.0 * ranks - 1.0, _DEGREE)
    return tuple(np.ascontiguousarray(powers[:, degree]) for degree in range(1, _DEGREE + 1))


def _tenths(ranks: Floats) -> Codes:
    """Cut rows into up to ten parts of about the same size, of fifty rows or more if there are."""
    parts = int(np.clip(len(ranks) // 50, 1, 10))
    codes = np.minimum((ranks * parts).astype(np.intp), parts - 1)
    counts = np.bincount(codes, minlength=parts)
    new = np.zeros(parts, dtype=np.intp)
    held = 0
    for part in range(1, parts):
        # ties can leave a part nearly empty: it then goes with the one before it
        held += int(counts[part - 1])
        enough = held >= SMALLEST_GROUP and counts[part:].sum() >= SMALLEST_GROUP
        new[part] = new[part - 1] + enough
        held = 0 if enough else held
    return new[codes]


def dot(left: Floats, right: Floats) -> float:
    return float(np.add.reduce(left * right))


def orthonormal(vectors: Iterable[Floats], *, given: Conditioning | None = None) -> list[Floats]:
    """Find perpendicular vectors of length 1 that span the same, once `given` is taken out.

    Their means are taken out in any case. A vector that nothing is left of is dropped.
    """
    found: list[Floats] = []
    for vector in vectors:
        centred = vector - np.add.reduce(vector) / len(vector)
        largest = float(np.abs(centred).max())
        if largest <= _NOTHING * float(np.abs(vector).max()):
            continue
        centred /= largest
        length = dot(centred, centred) ** 0.5
        rest = centred if given is None else given.residual(centred)
        rest = _without(rest, found)
        left = dot(rest, rest) ** 0.5
        if left > _NOTHING * length:
            found.append(rest / left)
    return found


def _without(vector: Floats, basis: Sequence[Floats]) -> Floats:
    rest = vector.copy()
    # twice is enough (Kahan): what rounding left of the basis the first time goes the second
    for _ in range(2):
        for direction in basis:
            rest -= dot(direction, rest) * direction
    return rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditioning:
    """What a test holds fixed: combinations of values, and directions."""

    cells: Codes
    """A number for each row, the same for rows that are alike in what is held fixed by value."""
    basis: tuple[Floats, ...] = ()
    """Perpendicular directions of length 1, each with mean 0 in every cell."""

    @classmethod
    def on_columns(cls, columns: Sequence[Column], *, rows: int) -> Conditioning:
        """Hold columns fixed: nominal ones by value, together if rows allow; others by a curve."""
        few = [column for column in columns if takes_few_values(column)]
        vectors: list[Floats] = []
        for column in columns:
            if isinstance(column, Numbers) and not takes_few_values(column):
                vectors += [column.values, *_curve(_ranks(column.values))]
        cells = crossed(few, rows=rows)
        if few and cells.max() + 1 > rows / _ROWS_PER_CELL:
            # too many combinations: each column on its own, the one with most values by cells
            factors = sorted(map(codes_of, few), key=lambda codes: -int(codes.max()))
            cells = factors[0]
            vectors += [vector for codes in factors[1:] for vector in indicators(codes)]
        return cls.on_vectors(vectors, cells=cells)

    @classmethod
    def on_vectors(cls, vectors: Iterable[Floats], *, cells: Codes) -> Conditioning:
        """Hold directions fixed, within cells."""
        within = cls(cells=cells)
        return cls(cells=cells, basis=tuple(orthonormal(vectors, given=within)))

    @property
    def rank(self) -> int:
        """How many numbers are fitted to hold it fixed."""
        return int(self.cells.max()) + 1 + len(self.basis)

    def residual(self, values: Floats) -> Floats:
        """Give what is left of a vector once all that is held fixed is taken out."""
        means = np.bincount(self.cells, weights=values) / np.bincount(self.cells)
        return _without(values - means[self.cells], self.basis)


def crossed(columns: Iterable[Column], *, rows: int) -> Codes:
    """Give a number to each combination of values that occurs in several columns."""
    cells = np.zeros(rows, dtype=np.intp)
    for column in columns:
        codes = codes_of(column)
        pairs = cells * (int(codes.max()) + 1) + codes
        cells = np.unique(pairs, return_inverse=True)[1].astype(np.intp)
    return cells
