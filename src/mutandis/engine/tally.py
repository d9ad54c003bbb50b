"""Sums of marks over groups, as exact integers, and exact comparisons between them.

A mark is an integer per row of the table: 1 for a refusal, the steps of a score, the square of
them, 1 for an outcome beyond a level. Groups sum several columns of marks at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.by_row import ByRow
from mutandis.data.equal_rows import group_equal, number_equal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

__all__ = ["ROOM", "SAFE", "Sums", "average", "difference", "exceeds"]

# Below this, products of int64 are exact and so are the floats made of them; from there on Python's
# own integers are used, whose quotients are rounded correctly too.
SAFE = 2**53
ROOM = 2**62
"""Sums up to this are exact in int64."""
# means of which it is worth while to find those that are equal
_MANY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums(ByRow):
    """Sums of marks over many groups: a row per group, a column per mark.

    The mean of a mark in a group is ``marks / (places * parts)``. Where m rows tie for the last
    places of a group, each holds 1/m of a place: counting in m-ths keeps everything whole.

    Parameters
    ----------
    marks
        Sums of marks in parts of a place (groups x columns), as integers of Python where int64 has
        no room for them.
    parts
        Parts of a place, of the same shape; 1 without ties.
    places
        Number of places of each group; 0 if it is empty.
    people
        Effective number of people in each group; None if it is the number of places.
    doubt
        Variance of the mean that is due to an estimated worldview; None if there is none.

    Examples
    --------
    >>> sums = Sums.of(marks=np.array([3, 1]), places=np.array([4, 2]))
    >>> sums.mean().tolist()
    [0.75, 0.5]
    """

    marks: NDArray[Any]
    parts: NDArray[Any]
    places: NDArray[np.int64]
    people: NDArray[np.float64] | None = None
    doubt: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls, *, marks: NDArray[Any], places: NDArray[np.int64], parts: Any = 1, **more: Any
    ) -> Sums:
        """Make sums of one column of marks, or of several in two dimensions."""
        marks, parts = (_in_columns(np.asarray(each)) for each in (marks, parts))
        return cls(marks=marks, parts=np.broadcast_to(parts, marks.shape), places=places, **more)

    @property
    def width(self) -> int:
        """Number of columns of marks."""
        return int(self.marks.shape[1])

    @property
    def weight(self) -> NDArray[np.float64]:
        """Number of people that each group counts as."""
        return self.places.astype(np.float64) if self.people is None else self.people

    def mean(self) -> NDArray[np.float64]:
        """Compute the mean of the first column of marks, missing for an empty group."""
        marks, parts = self.marks[:, 0], self.parts[:, 0]
        if object in (marks.dtype, parts.dtype) and len(self.places) > _MANY:
            first, same = group_equal(self.places, number_equal(marks), number_equal(parts))
            if first is not same:  # each different one once, as integers of Python take long
                return self.take(first).mean()[same]
        whole = self.places * parts
        means = np.full(whole.shape, np.nan)
        filled = np.flatnonzero(whole > 0)
        means[filled] = _quotients(marks[filled], whole[filled])
        return means

    def with_center(self, marks: NDArray[Any]) -> Sums:
        """Add the search center to each group: one more place, with its own `marks`."""
        return Sums(marks=self.marks + marks * self.parts, parts=self.parts, places=self.places + 1)


def _in_columns(array: NDArray[Any]) -> NDArray[Any]:
    return array[:, np.newaxis] if array.ndim == 1 else array


def _quotients(up: NDArray[Any], down: NDArray[Any]) -> NDArray[np.float64]:
    """Divide integers, each quotient rounded once, in whatever terms it is given."""
    if object in (up.dtype, down.dtype):
        return np.asarray(up / down, dtype=np.float64)
    large = np.flatnonzero(np.maximum(np.abs(up), down) >= SAFE)
    quotients: NDArray[np.float64] = up / down
    # there int64 would be rounded before it is divided
    quotients[large] = up[large].astype(object) / down[large].astype(object)
    return quotients


def average(each: Sequence[Sums]) -> Sums:
    """Average the means of several groups of the same people with equal weights.

    An average counts as the smallest of its groups, and is empty where one of them is.
    """
    places = np.min([sums.places for sums in each], axis=0)
    columns = [_average_column(each, places, column) for column in range(each[0].width)]
    marks, parts = (np.column_stack(side) for side in zip(*columns, strict=True))
    return Sums(marks=marks, parts=parts, places=places)


def _average_column(
    each: Sequence[Sums], places: NDArray[np.int64], column: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Average one column of marks: sums and parts of a place, in lowest terms."""
    filled = np.flatnonzero(places > 0)
    up, down = np.zeros_like(filled), np.ones_like(filled)
    most = 1.0
    fractions = []
    for sums in each:
        marks = sums.marks[filled, column]
        whole = sums.places[filled] * sums.parts[filled, column]
        fractions.append((marks, whole))
        most = max(most, float(np.max(np.abs(_quotients(marks, whole)), initial=1)))
    for marks, whole in fractions:
        divisor = np.gcd(marks, whole)
        marks, whole = marks // divisor, whole // divisor  # noqa: PLW2901
        rest = whole // np.gcd(down, whole)
        # the sum of the means is at most their number times the largest
        largest = np.max(down.astype(np.float64) * rest * places[filled], initial=0)
        if largest * most * len(each) >= ROOM:
            up, down = up.astype(object), down.astype(object)
        up = up * rest + marks * (down * rest // whole)
        down *= rest
    up, down = up * places[filled], down * len(each)
    divisor = np.gcd(up, down)
    sums_of, parts_of = np.zeros(len(places), dtype=up.dtype), np.ones(len(places), dtype=up.dtype)
    sums_of[filled], parts_of[filled] = up // divisor, down // divisor
    tops = np.maximum(parts_of * np.maximum(places, 1), np.abs(sums_of))
    if np.max(tops, initial=0) < ROOM:
        return sums_of.astype(np.int64), parts_of.astype(np.int64)
    return sums_of, parts_of


def difference(control: Sums, test: Sums) -> tuple[NDArray[Any], NDArray[Any]]:
    """Subtract the mean of the first column of marks of `test` from that of `control`, exactly.

    The result are numerators over positive denominators, in lowest terms.
    """
    bottom_control = control.places * control.parts[:, 0]
    bottom_test = test.places * test.parts[:, 0]
    up_control, up_test = control.marks[:, 0], test.marks[:, 0]
    # float64 is precise enough to tell whether an int64 product would overflow
    sides = (up_control, bottom_control), (up_test, bottom_test)
    tops = [np.maximum(np.abs(up.astype(float)), bottom) for up, bottom in sides]
    largest = np.max(tops[0] * tops[1], initial=0)
    kind: Any = np.int64 if largest < SAFE else object
    up, down = up_control.astype(kind), bottom_control.astype(kind)
    numerator = up * bottom_test - up_test * down
    denominator = down * bottom_test
    divisor = np.gcd(numerator, denominator)
    return numerator // divisor, denominator // divisor


def exceeds(
    numerator: NDArray[Any], denominator: NDArray[Any], threshold: Fraction
) -> NDArray[np.bool_]:
    """Find where numerator/denominator > threshold, by cross-multiplication of integers."""
    up, down = threshold.numerator, threshold.denominator
    top = max(int(np.max(denominator, initial=0)), int(np.max(np.abs(numerator), initial=0)))
    largest = top * max(abs(up), down)
    if largest >= SAFE:
        numerator, denominator = numerator.astype(object), denominator.astype(object)
    return np.asarray(numerator * down > denominator * up, dtype=np.bool_)
