"""Shares of negative outcomes as exact fractions, and exact comparisons between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.by_row import ByRow
from mutandis.data.equal_rows import group_equal, number_equal

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

# Below this, products of int64 are exact and so are the floats made of them; from there on Python's
# own integers are used, whose quotients are rounded correctly too.
SAFE = 2**53
# shares of which it is worth while to find those that are equal
_MANY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(ByRow):
    """The share of negative outcomes in each of many groups: ``negatives / (size * split)``."""

    # Where m rows tie for the last places of a group, each holds 1/m of a place: counting in m-ths
    # keeps everything whole. Integers are those of Python where int64 has no room for them.
    negatives: NDArray[Any]  # in parts of a place
    size: NDArray[np.int64]  # the number of places
    split: NDArray[Any]  # the number of parts of a place; 1 without ties
    people: NDArray[np.float64] | None = None  # that it counts as by chance, if not its size
    doubt: NDArray[np.float64] | None = None  # its further variance, where it rests on estimates
    # the same of the next mark, where an outcome has several: the mean of a score, then that of its
    # squares
    further: Share | None = None

    def values(self) -> NDArray[np.float64]:
        """Give the shares as floats; the share of an empty group is missing."""
        if object in (self.negatives.dtype, self.split.dtype) and len(self.size) > _MANY:
            parts = (number_equal(each) for each in (self.negatives, self.split))
            first, same = group_equal(self.size, *parts)
            if first is not same:  # each different one once, as integers of Python take long
                return self.take(first).values()[same]
        whole = self.size * self.split
        shares = np.full(whole.shape, np.nan)
        filled = np.flatnonzero(whole > 0)
        shares[filled] = _quotients(self.negatives[filled], whole[filled])
        return shares

    @property
    def weight(self) -> NDArray[np.float64]:
        """The number of people that the share counts as."""
        return self.size.astype(np.float64) if self.people is None else self.people

    def with_center(self, is_negative: NDArray[Any]) -> Share:
        """Add the search center itself to each group: one more place, its outcome counted in."""
        return Share(
            negatives=self.negatives + is_negative * self.split,
            size=self.size + 1,
            split=self.split,
        )


def _quotients(up: NDArray[Any], down: NDArray[Any]) -> NDArray[np.float64]:
    """Divide integers, each quotient rounded once, in whatever terms it is given."""
    if object in (up.dtype, down.dtype):
        return np.asarray(up / down, dtype=np.float64)
    large = np.flatnonzero(np.maximum(np.abs(up), down) >= SAFE)
    quotients: NDArray[np.float64] = up / down
    # there int64 would be rounded before it is divided
    quotients[large] = up[large].astype(object) / down[large].astype(object)
    return quotients


def difference(control: Share, test: Share) -> tuple[NDArray[Any], NDArray[Any]]:
    """Give p_control - p_test as numerators over positive denominators, in lowest terms."""
    bottom_control = control.size * control.split
    bottom_test = test.size * test.split
    # float64 is precise enough to tell whether an int64 product would overflow
    sides = (control, bottom_control), (test, bottom_test)
    tops = [np.maximum(np.abs(share.negatives.astype(float)), bottom) for share, bottom in sides]
    largest = np.max(tops[0] * tops[1], initial=0)
    kind: Any = np.int64 if largest < SAFE else object
    up, down = control.negatives.astype(kind), bottom_control.astype(kind)
    numerator = up * bottom_test - test.negatives * down
    denominator = down * bottom_test
    divisor = np.gcd(numerator, denominator)
    return numerator // divisor, denominator // divisor


def exceeds(
    numerator: NDArray[Any], denominator: NDArray[Any], threshold: Fraction
) -> NDArray[np.bool_]:
    """Tell where numerator/denominator > threshold, by cross-multiplication of integers."""
    up, down = threshold.numerator, threshold.denominator
    top = max(int(np.max(denominator, initial=0)), int(np.max(np.abs(numerator), initial=0)))
    largest = top * max(abs(up), down)
    if largest >= SAFE:
        numerator, denominator = numerator.astype(object), denominator.astype(object)
    return np.asarray(numerator * down > denominator * up, dtype=np.bool_)
