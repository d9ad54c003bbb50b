"""The k-th nearest row among candidates that each stand for several, in linear time.

Quickselect with a three-way partition: candidates nearer than a pivot, at the pivot, and farther.
Counting rows ("people") on the way tells on which side the k-th nearest is, and that side alone is
partitioned further. All candidates at the same distance meet at the pivot, so ties cost nothing.

The number of people at a point, and of the refused among them, are the upper and the lower half of
one integer. Sums of such integers are sums of both halves, since no table has 2**31 rows, and
candidates are half as much work to move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mutandis.geometry.kernels.jit import kernel, part

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "HALF",
    "LOWER",
    "ONE_PERSON",
    "Answers",
    "Candidates",
    "answer",
    "nearest",
    "people_in",
    "room_for",
    "write_answer",
]


HALF = 32
"""The bits of the lower half, which counts the refused."""

ONE_PERSON = 1 << HALF
"""One person more, who was not refused."""

LOWER = ONE_PERSON - 1
"""The mask of the lower half."""


class Candidates(NamedTuple):
    """Points that may be among the nearest, of which a kernel uses the first `size`."""

    distances: NDArray[np.float64]
    people: NDArray[np.int64]


class Answers(NamedTuple):
    """The fields of `ties.Neighbourhoods`: a row per query, a column per k."""

    radius: NDArray[np.int64]
    inside: NDArray[np.int64]
    negatives_inside: NDArray[np.int64]
    rim: NDArray[np.int64]
    negatives_rim: NDArray[np.int64]


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
    answers.negatives_inside[query, column] = inside & LOWER
    answers.rim[query, column] = rim >> HALF
    answers.negatives_rim[query, column] = rim & LOWER


@part
def answer(
    candidates: Candidates, size: int, ks: NDArray[np.int64], answers: Answers, query: int
) -> None:
    """Write the answers of one query for all ks (in rising order).

    The largest k comes first: what it keeps holds all that the smaller ones need.
    """
    for column in range(len(ks) - 1, -1, -1):
        radius, inside, rim, size = nearest(candidates, size, ks[column])
        write_answer(answers, query, column, radius, inside, rim)
