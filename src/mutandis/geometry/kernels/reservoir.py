"""The candidates of one query: the k-th nearest among them, and bins by distance.

*The k-th nearest in linear time.* Quickselect with a three-way partition: candidates nearer than a
pivot, at the pivot, and farther. Counting rows ("people") on the way tells on which side the k-th
nearest is, and that side alone is partitioned further. All candidates at the same distance meet at
the pivot, so ties cost nothing. The number of people at a point, and of the marked among them, are
the upper and the lower half of one integer: sums of such integers are sums of both halves, since no
table has 2**31 rows, and candidates are half as much work to move.

*Bins, so that the radius shrinks without sorting.* Each candidate is counted in a bin: the whole
part of its distance times a scale. A product with the same scale never falls when the distance
rises, and nor does its whole part, so every candidate in a lower bin is nearer than any in a higher
one.

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

from mutandis.geometry.kernels.jit import kernel, part

if TYPE_CHECKING:
    from mutandis.mapped import Floats, Ints

HALF = 32
"""The bits of the lower half, which counts the marked."""

ONE_PERSON = 1 << HALF
"""One person more, without a mark."""

LOWER = ONE_PERSON - 1
"""The mask of the lower half."""

BINS = 256
"""How many bins; one more takes what does not count."""

SIZE, LAST, PEOPLE = range(3)
"""What `Reservoir.held` holds."""

# of one type from the start: for a literal, numba would compile once more
_ZERO: Any = np.int64(0)
# more than two roundings of a float64
_ROUNDED_UP = 1.0 + 2.0**-50


class Candidates(NamedTuple):
    """Points that may be among the nearest, of which a kernel uses the first `size`."""

    distances: Floats
    people: Ints


class Answers(NamedTuple):
    """The fields of `index.Neighbourhoods`: a row per query, a column per k."""

    radius: Ints
    inside: Ints
    marks_inside: Ints
    rim: Ints
    marks_rim: Ints


def room_for(size: int) -> Candidates:
    return Candidates(np.empty(size, np.float64), np.empty(size, np.int64))


@part
def people_in(candidates: Candidates, size: int) -> int:
    """Count the people for whom the first `size` candidates stand."""
    total = 0
    for place in range(size):
        total += candidates.people[place] >> HALF
    return total


@part
def _swap(candidates: Candidates, one: int, other: int) -> None:
    distances, people = candidates
    distances[one], distances[other] = distances[other], distances[one]
    people[one], people[other] = people[other], people[one]


@part
def _middle(one: float, two: float, three: float) -> float:
    """Take the median of three: a pivot that sorted candidates cannot spoil."""
    return max(min(one, two), min(max(one, two), three))


@kernel
def nearest(candidates: Candidates, size: int, k: int) -> tuple[float, np.int64, np.int64, int]:
    """Keep what is within the k-th nearest distance, the farthest of it as a single candidate.

    The first `size` candidates stand for at least k people, each for at least one. The result is
    the radius, the people inside and on it, and how many candidates are left. These are at most k:
    fewer than k people are inside, so fewer than k candidates are, and the rim is one candidate.
    """
    distances, people = candidates
    enough = np.int64(k) << HALF
    first, stop = 0, size
    inside = np.int64(0)
    while True:
        pivot = _middle(distances[first], distances[(first + stop) // 2], distances[stop - 1])
        nearer, place, farther = first, first, stop
        people_nearer = people_at = np.int64(0)
        while place < farther:
            if distances[place] < pivot:
                people_nearer += people[place]
                _swap(candidates, place, nearer)
                nearer += 1
                place += 1
            elif distances[place] > pivot:
                farther -= 1
                _swap(candidates, place, farther)
            else:
                people_at += people[place]
                place += 1
        within_pivot = inside + people_nearer + people_at
        if inside + people_nearer >= enough:
            stop = nearer
        elif within_pivot < enough:
            inside = within_pivot
            first = farther
        else:
            break
    people[nearer] = people_at
    return pivot, inside + people_nearer, people_at, nearer + 1


@part
def write_answer(
    answers: Answers, query: int, column: int, radius: float, inside: np.int64, rim: np.int64
) -> None:
    answers.radius[query, column] = np.int64(radius)
    answers.inside[query, column] = inside >> HALF
    answers.marks_inside[query, column] = inside & LOWER
    answers.rim[query, column] = rim >> HALF
    answers.marks_rim[query, column] = rim & LOWER


@part
def answer_all(candidates: Candidates, size: int, ks: Ints, answers: Answers, query: int) -> None:
    """Write the answers of one query for all ks (in rising order).

    The largest k comes first: what it keeps holds all that the smaller ones need.
    """
    for column in range(len(ks) - 1, -1, -1):
        radius, inside, rim, size = nearest(candidates, size, ks[column])
        write_answer(answers, query, column, radius, inside, rim)


# --- bins ---


class Reservoir(NamedTuple):
    """Candidates of a query, the bins that count them, and room for the candidates of one bin.

    `scale` is that of the bins; `held` are how many candidates there are, the last bin that counts,
    and the people up to it.
    """

    candidates: Candidates
    bins: Ints
    chosen: Candidates
    scale: Floats
    held: Ints


def reservoir_for(size: int) -> Reservoir:
    """Allocate for `size` candidates, and one that is written and does not count."""
    bins, scale, held = np.zeros(BINS + 1, np.int64), np.zeros(1), np.zeros(3, np.int64)
    return Reservoir(room_for(size + 1), bins, room_for(size + 1), scale, held)


@part
def clear(reservoir: Reservoir, radius: float) -> None:
    """Count no candidate any more, in bins of which the last has this radius (or all: infinite)."""
    bins, held = reservoir.bins, reservoir.held
    reservoir.scale[0] = (BINS - 1) / max(radius, 1.0)
    held[SIZE], held[LAST], held[PEOPLE] = 0, BINS - 1, 0
    for place in range(np.uint64(len(bins))):  # numba takes long to compile `bins[:] = 0`
        bins[place] = 0


@part
def bin_of(distance: float, scale: float) -> int:
    """Return the bin of a distance; the same product everywhere keeps bins in order."""
    return int(distance * scale)


@part
def edge(reservoir: Reservoir) -> float:
    scale = reservoir.scale[0]
    return (reservoir.held[LAST] + 1) / scale * _ROUNDED_UP if scale > 0.0 else np.inf


@part
def shrink(reservoir: Reservoir, k: int) -> None:
    """Leave out the bins that k people do not need."""
    bins, held = reservoir.bins, reservoir.held
    enough, last, people = np.int64(k) << HALF, held[LAST], held[PEOPLE]
    while people - bins[last] >= enough:
        people -= bins[last]
        last -= 1
    held[LAST], held[PEOPLE] = last, people


@part
def settle(reservoir: Reservoir, k: int) -> None:
    """Drop all but the nearest k people (and ties), and make finer bins for them."""
    candidates, bins, held = reservoir.candidates, reservoir.bins, reservoir.held
    radius, _, _, size = nearest(candidates, held[SIZE], k)
    clear(reservoir, radius)
    scale = reservoir.scale[0]
    for place in range(size):
        here = candidates.people[place]
        bins[bin_of(candidates.distances[place], scale)] += here
        held[PEOPLE] += here
    held[SIZE] = size


@part
def _choose(reservoir: Reservoir) -> int:
    """Copy the candidates of the last bin into `chosen`, and count them."""
    distances, people = reservoir.candidates
    chosen_distances, chosen_people = reservoir.chosen
    chosen: int = _ZERO
    scale, last = reservoir.scale[0], reservoir.held[LAST]
    for place in range(reservoir.held[SIZE]):
        distance = distances[place]
        chosen_distances[chosen] = distance
        chosen_people[chosen] = people[place]
        chosen += bin_of(distance, scale) == last
    return chosen


@part
def answer(reservoir: Reservoir, ks: Ints, answers: Answers, query: int) -> float:
    """Write the answers of one query for all ks (in rising order); return the largest radius.

    If fewer than k people were found, which no proof allows, the radius is -1: the caller stops.
    """
    held = reservoir.held
    if held[PEOPLE] < np.int64(ks[-1]) << HALF:
        answers.radius[query, 0] = -1
        return np.inf
    largest = 0.0
    for column in range(len(ks) - 1, -1, -1):
        k = ks[column]
        shrink(reservoir, k)
        before = held[PEOPLE] - reservoir.bins[held[LAST]]
        chosen = _choose(reservoir)
        radius, inside, rim, _ = nearest(reservoir.chosen, chosen, k - (before >> HALF))
        write_answer(answers, query, column, radius, before + inside, rim)
        largest = max(largest, radius)
    return largest
