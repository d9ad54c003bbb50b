"""The k-th nearest person among candidates that each stand for several, in linear time.

Quickselect with a three-way partition: candidates nearer than a pivot, at the pivot, and farther.
Counting people on the way tells on which side the k-th nearest person is, and that side alone is
partitioned further. All candidates at the same distance meet at the pivot, so ties cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mutandis.similarity.compiled.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Answers", "Candidates", "answer", "nearest", "people_in", "room_for"]


class Candidates(NamedTuple):
    """Points that may be among the nearest: how far, how many others stand there, how many refused.

    A fixed room, of which a kernel uses the first so many places.
    """

    distances: NDArray[np.float64]
    counts: NDArray[np.int64]
    negatives: NDArray[np.int64]


class Answers(NamedTuple):
    """The fields of `ties.Neighbourhoods`: a row per query, a column per k."""

    radius: NDArray[np.int64]
    inside: NDArray[np.int64]
    negatives_inside: NDArray[np.int64]
    rim: NDArray[np.int64]
    negatives_rim: NDArray[np.int64]


@kernel
def room_for(size: int) -> Candidates:
    """Make room for so many candidates."""
    return Candidates(
        np.empty(size, np.float64), np.empty(size, np.int64), np.empty(size, np.int64)
    )


@kernel
def people_in(candidates: Candidates, size: int) -> int:
    """Count the people for whom the first `size` candidates stand."""
    total = 0
    for place in range(size):
        total += candidates.counts[place]
    return total


@kernel
def _swap(candidates: Candidates, one: int, other: int) -> None:
    distances, counts, negatives = candidates
    distances[one], distances[other] = distances[other], distances[one]
    counts[one], counts[other] = counts[other], counts[one]
    negatives[one], negatives[other] = negatives[other], negatives[one]


@kernel
def _middle(one: float, two: float, three: float) -> float:
    """Give the median of three: a pivot that sorted candidates cannot spoil."""
    return max(min(one, two), min(max(one, two), three))


@kernel
def nearest(
    candidates: Candidates, size: int, k: int
) -> tuple[float, np.int64, np.int64, np.int64, np.int64, int]:
    """Keep what is within the k-th nearest distance, the farthest of it as a single candidate.

    Parameters
    ----------
    candidates, size
        The first `size` of them stand for at least k people, each for at least one.
    k
        Which nearest person to look for.

    Returns
    -------
    radius, inside, negatives_inside, rim, negatives_rim
        As in `ties.Neighbourhoods`.
    size
        How many candidates are left. At most k: fewer than k people stand inside, so fewer than k
        candidates do, and everybody on the rim has become one candidate.
    """
    distances, counts, negatives = candidates
    first, stop = 0, size
    inside = refused_inside = np.int64(0)
    while True:
        pivot = _middle(distances[first], distances[(first + stop) // 2], distances[stop - 1])
        nearer, place, farther = first, first, stop
        people_nearer = refused_nearer = people_at = refused_at = np.int64(0)
        while place < farther:
            if distances[place] < pivot:
                people_nearer += counts[place]
                refused_nearer += negatives[place]
                _swap(candidates, place, nearer)
                nearer += 1
                place += 1
            elif distances[place] > pivot:
                farther -= 1
                _swap(candidates, place, farther)
            else:
                people_at += counts[place]
                refused_at += negatives[place]
                place += 1
        within_pivot = inside + people_nearer + people_at
        if inside + people_nearer >= k:
            stop = nearer
        elif within_pivot < k:
            inside = within_pivot
            refused_inside = refused_inside + refused_nearer + refused_at
            first = farther
        else:
            break
    counts[nearer], negatives[nearer] = people_at, refused_at
    return (
        pivot,
        inside + people_nearer,
        refused_inside + refused_nearer,
        people_at,
        refused_at,
        nearer + 1,
    )


@kernel
def answer(
    candidates: Candidates, size: int, ks: NDArray[np.int64], answers: Answers, query: int
) -> float:
    """Write the answers of one query for all ks (in rising order); give the largest radius.

    The largest k comes first: what it keeps holds all that the smaller ones need.
    """
    largest = 0.0
    for column in range(len(ks) - 1, -1, -1):
        radius, inside, refused_inside, rim, refused_rim, size = nearest(
            candidates, size, ks[column]
        )
        largest = max(largest, radius)
        answers.radius[query, column] = np.int64(radius)
        answers.inside[query, column] = inside
        answers.negatives_inside[query, column] = refused_inside
        answers.rim[query, column] = rim
        answers.negatives_rim[query, column] = refused_rim
    return largest
