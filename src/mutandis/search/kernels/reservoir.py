"""The candidates of one query in bins by distance, so that the radius shrinks without sorting.

Each candidate is counted in a bin: the whole part of its distance times a scale. A product with the
same scale never falls when the distance rises, and nor does its whole part, so every candidate in a
lower bin is nearer than any in a higher one.

*Proof that the radius holds.* Let `last` be the lowest bin up to which at least k people are
counted. A candidate in a higher bin is farther than k people, so it is neither inside the final
radius nor on it, and may be left out. The k-th nearest is in `last` itself: up to the bin before,
there are fewer than k. So only that bin has to be sorted out at the end, and all before it count
without another look.

`edge` is a distance that no candidate up to `last` exceeds: if the product of a distance and the
scale, rounded, is below last + 1, the distance is below (last + 1) / scale but for two roundings.

Bins are made for a radius within which k people are known to be. Where none is known, all
candidates fall into the first bin until there are many; then the k-th nearest gives the radius.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mutandis.search.kernels.jit import part
from mutandis.search.kernels.selection import HALF, Candidates, nearest, room_for, write_answer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.search.kernels.selection import Answers

__all__ = [
    "BINS",
    "Reservoir",
    "answer",
    "bin_of",
    "clear",
    "edge",
    "reservoir_for",
    "scale_for",
    "settle",
    "shrink",
]

BINS = 256
"""How many bins; one more takes what does not count."""

# of one type from the start: for a literal, numba would compile once more
_ZERO: Any = np.int64(0)
# more than two roundings of a float64
_ROUNDED_UP = 1.0 + 2.0**-50


class Reservoir(NamedTuple):
    """Candidates of a query, the bins that count them, and room for the candidates of one bin."""

    candidates: Candidates
    bins: NDArray[np.int64]
    chosen: Candidates


def reservoir_for(size: int) -> Reservoir:
    """Allocate for `size` candidates, and one that is written and does not count."""
    return Reservoir(room_for(size + 1), np.zeros(BINS + 1, np.int64), room_for(size + 1))


@part
def clear(bins: NDArray[np.int64]) -> None:
    for place in range(np.uint64(len(bins))):  # numba takes long to compile `bins[:] = 0`
        bins[place] = 0


@part
def scale_for(radius: float) -> float:
    """Choose the scale that puts this radius into the last bin; 0 for an infinite one."""
    return (BINS - 1) / max(radius, 1.0)


@part
def bin_of(distance: float, scale: float) -> int:
    """Give the bin of a distance. Everywhere the same product: else bins would not be in order."""
    return int(distance * scale)


@part
def edge(last: int, scale: float) -> float:
    return (last + 1) / scale * _ROUNDED_UP if scale > 0.0 else np.inf


@part
def shrink(bins: NDArray[np.int64], last: int, people: np.int64, k: int) -> tuple[int, np.int64]:
    """Leave out the bins that k people do not need; give the last one, and the people left."""
    enough = np.int64(k) << HALF
    while people - bins[last] >= enough:
        people -= bins[last]
        last -= 1
    return last, people


@part
def settle(reservoir: Reservoir, size: int, k: int) -> tuple[int, float, int, np.int64]:
    """Drop all but the nearest k people (and ties), and make finer bins for them.

    The result is how many candidates are left, the scale, the last bin, and the people up to it.
    """
    radius, _, _, size = nearest(reservoir.candidates, size, k)
    scale = scale_for(radius)
    clear(reservoir.bins)
    people = np.int64(0)
    for place in range(size):
        here = reservoir.candidates.people[place]
        reservoir.bins[bin_of(reservoir.candidates.distances[place], scale)] += here
        people += here
    last, people = shrink(reservoir.bins, BINS - 1, people, k)
    return size, scale, last, people


@part
def _choose(reservoir: Reservoir, size: int, scale: float, bin_: int) -> int:
    """Copy the candidates of one bin into `chosen`, and count them."""
    chosen: int = _ZERO
    for place in range(size):
        distance = reservoir.candidates.distances[place]
        reservoir.chosen.distances[chosen] = distance
        reservoir.chosen.people[chosen] = reservoir.candidates.people[place]
        chosen += bin_of(distance, scale) == bin_
    return chosen


@part
def answer(
    reservoir: Reservoir,
    size: int,
    scale: float,
    last: int,
    people: np.int64,
    ks: NDArray[np.int64],
    answers: Answers,
    query: int,
) -> float:
    """Write the answers of one query for all ks (in rising order); give the largest radius.

    If fewer than k people were found, which no proof allows, the radius is -1: the caller stops.
    """
    if people < np.int64(ks[-1]) << HALF:
        answers.radius[query, 0] = -1
        return np.inf
    largest = 0.0
    for column in range(len(ks) - 1, -1, -1):
        last, people = shrink(reservoir.bins, last, people, ks[column])
        before = people - reservoir.bins[last]
        chosen = _choose(reservoir, size, scale, last)
        radius, inside, rim, _ = nearest(reservoir.chosen, chosen, ks[column] - (before >> HALF))
        write_answer(answers, query, column, radius, before + inside, rim)
        largest = max(largest, radius)
    return largest
