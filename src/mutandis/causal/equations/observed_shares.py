"""Ordered levels without a formula: their shares in each combination of the causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.causal.equations.coupling import shares
from mutandis.causal.equations.equation import Predicted, categories_of
from mutandis.data.columns import Categories, frozen
from mutandis.errors import EquationError, KindError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from mutandis.causal.equations.known_levels import KnownLevels
    from mutandis.data.columns import Column

__all__ = ["FittedShares", "SharesNoise", "fit_shares"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Split:
    """One parent's part in telling combinations apart: those so far, times its own levels."""

    parent: str
    known: Mapping[Any, int]
    combined: NDArray[np.int64]
    """The combinations that occurred, sorted: number of the one so far · levels + own level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Combinations:
    """The combinations of levels of nominal parents that occurred, numbered."""

    splits: tuple[_Split, ...]

    @classmethod
    def of(cls, parents: Mapping[str, Column], *, rows: int) -> _Combinations:
        splits: list[_Split] = []
        numbers = np.zeros(rows, dtype=np.int64)
        for name, column in parents.items():
            if not isinstance(column, Categories):
                raise EquationError(
                    f"method='empirical' counts levels within each combination of parents, but "
                    f"parent {name!r} holds numbers. Declare it as nominal or ordinal, or use "
                    "method='logit'."
                )
            known = {level: number for number, level in enumerate(column.levels)}
            combined, numbers = np.unique(numbers * len(known) + column.codes, return_inverse=True)
            splits.append(_Split(parent=name, known=known, combined=combined))
        return cls(splits=tuple(splits))

    def __len__(self) -> int:
        return len(self.splits[-1].combined) if self.splits else 1

    def of_rows(self, parents: Mapping[str, Column], *, rows: int) -> NDArray[np.int64]:
        """Find each row's combination, or say how many rows have one that never occurred."""
        numbers = np.zeros(rows, dtype=np.int64)
        unseen = np.zeros(rows, dtype=np.bool_)
        for split in self.splits:
            own = _own_levels(split, parents[split.parent])
            wanted = numbers * len(split.known) + own
            numbers = np.minimum(np.searchsorted(split.combined, wanted), len(split.combined) - 1)
            unseen |= (own < 0) | (split.combined[numbers] != wanted)
        if unseen.any():
            raise EquationError(
                f"{int(unseen.sum())} of {rows} rows have a combination of parents that did not "
                "occur when the equation was fitted, so the shares of the levels are unknown. Use "
                "method='logit', or fewer parents, or leave these rows out."
            )
        return numbers


def _own_levels(split: _Split, column: Column) -> NDArray[np.int64]:
    if not isinstance(column, Categories):
        raise KindError(
            f"Parent {split.parent!r} held names when its equation was fitted, and now holds "
            "numbers. Read the column the same way in both tables."
        )
    # one more slot at the end, which the code -1 of a missing value falls into
    table = [*(split.known.get(level, -1) for level in column.levels), -1]
    own: NDArray[np.int64] = np.array(table, dtype=np.int64)[column.codes]
    return own


@dataclass(frozen=True, slots=True, kw_only=True)
class SharesNoise:
    """Each row's place in the queue of those who have the same causes, lowest level first.

    Parameters
    ----------
    factual
        The observed levels, as places among the known ones.
    combination
        The number of the combination of causes.
    queue
        How many of those with the same causes stand before the row: u times their number, which
        the middle of the interval makes a whole number or a half, so that nothing is rounded.
    levels
        The levels of the column.
    """

    factual: NDArray[np.intp]
    combination: NDArray[np.int64]
    queue: NDArray[np.float64]
    levels: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedShares:
    """How many rows of each combination of causes have each level, or a lower one."""

    known: KnownLevels
    combinations: _Combinations
    cumulative: NDArray[np.int64]
    """One row a combination, one column a level."""

    def probabilities(self, parents: Mapping[str, Column], *, rows: int) -> NDArray[np.float64]:
        """Compute the probability of each known level, one row a person, one column a level."""
        counts = np.diff(self.cumulative, prepend=0, axis=1)
        numbers = self.combinations.of_rows(parents, rows=rows)
        return np.asarray(counts / self.cumulative[:, -1:])[numbers]

    def abduct(
        self,
        child: Column,
        parents: Mapping[str, Column],
        *,
        rng: np.random.Generator | None = None,
    ) -> SharesNoise:
        """Recover each row's rank among rows with the same causes: the middle, or a draw."""
        column = categories_of(child)
        places = self.known.places(column)
        numbers = self.combinations.of_rows(parents, rows=len(places))
        padded = np.pad(self.cumulative, ((0, 0), (1, 0)))
        before, through = padded[numbers, places], padded[numbers, places + 1]
        impossible = int((before == through).sum())
        if impossible:
            raise EquationError(
                f"{impossible} of {len(places)} rows have a level that nobody with the same "
                "causes had when the equation was fitted. Fit on a table in which that occurs, or "
                "use method='logit'."
            )
        queue = before.astype(np.float64) + shares(len(places), rng) * (through - before)
        return SharesNoise(
            factual=frozen(places),
            combination=frozen(numbers),
            queue=frozen(queue),
            levels=column.levels,
        )

    def predict(self, parents: Mapping[str, Column], noise: SharesNoise) -> Predicted:
        """Give the level at the same rank among rows with these causes."""
        numbers = self.combinations.of_rows(parents, rows=len(noise.factual))
        sizes = self.cumulative[:, -1].astype(np.float64)
        # u ≤ F(level) as queue / size ≤ cumulative / other size, both multiplied out: both sides
        # are whole numbers or halves, so equal ones are equal
        wanted = noise.queue * sizes[numbers]
        places = np.zeros(len(numbers), dtype=np.intp)
        for level in range(len(self.known) - 1):
            places += self.cumulative[numbers, level] * sizes[noise.combination] < wanted
        places = np.where(numbers == noise.combination, noise.factual, places)
        return Predicted(column=self.known.column(places, noise.levels))


def fit_shares(
    column: Categories, parents: Mapping[str, Column], known: KnownLevels
) -> FittedShares:
    """Count the levels within each combination of nominal parents.

    Examples
    --------
    >>> from mutandis.causal.equations.known_levels import KnownLevels
    >>> gender = Categories(np.array([0, 0, 0, 1, 1]), ("f", "m"))
    >>> grade = Categories(np.array([0, 0, 1, 0, 1]), ("low", "high"))
    >>> fitted = fit_shares(grade, {"Gender": gender}, KnownLevels.of(grade))
    >>> fitted.cumulative.tolist()
    [[2, 3], [1, 2]]
    """
    rows = len(column)
    combinations = _Combinations.of(parents, rows=rows)
    numbers = combinations.of_rows(parents, rows=rows)
    cells = numbers * len(known) + known.places(column)
    counts = np.bincount(cells, minlength=len(combinations) * len(known))
    cumulative = np.cumsum(counts.reshape(len(combinations), len(known)), axis=1)
    return FittedShares(known=known, combinations=combinations, cumulative=frozen(cumulative))
