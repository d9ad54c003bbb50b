"""Write down matches: whom each counterfactual is nearest to, and what their moments are.

The arithmetic is that of `evidence.matches.Scale`, to the last bit: numbers are counted in
multiples of a small part of their range, so that all sums are sums of integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mutandis.geometry.kernels.jit import kernel, part, repeated_part

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Listed", "Noted", "Reference", "Ruler", "note_matches"]

# of one type from the start: for a literal, numba would compile once more
_ZERO: Any = np.int64(0)


class Listed(NamedTuple):
    """The points around each counterfactual, and who belongs to it: see `evidence.matches.Places`.

    They are put into the order of their distance, and of how many stand there.
    """

    start: NDArray[np.int64]
    points: NDArray[np.int32]
    distances: NDArray[np.int64]
    radius: NDArray[np.int64]
    up: NDArray[np.int64]
    down: NDArray[np.int64]


class Reference(NamedTuple):
    """The points of the test space."""

    coordinates: NDArray[np.int64]
    codes: NDArray[np.int32]
    counts: NDArray[np.int64]
    marks: NDArray[np.int64]


class Ruler(NamedTuple):
    """How attributes are counted: see `evidence.matches.Scale`; 1 counts as `one`."""

    middle: NDArray[np.int64]
    length: NDArray[np.float64]
    levels: NDArray[np.int64]
    one: float
    farthest: float
    parts: int


class Noted(NamedTuple):
    """What is written down of each counterfactual: see `evidence.matches._Listed`.

    `weights` are the parts of the points that are listed. The levels of one counterfactual follow
    those of the one before; `size` says how many it has, and `tally` is room that holds zeros.
    """

    marks: NDArray[np.int64]
    whole: NDArray[np.int64]
    apart: NDArray[np.float64]
    numbers: NDArray[np.int64]
    weights: NDArray[np.int32]
    size: NDArray[np.int64]
    columns: NDArray[np.int32]
    levels: NDArray[np.int64]
    tally: NDArray[np.int64]


@repeated_part
def _count(value: float, ruler: Ruler) -> np.int64:
    most = ruler.farthest * ruler.farthest
    return np.int64(np.rint(min(max(value, -most), most) * ruler.one))


@part
def _number(ruler: Ruler, axis: int, coordinate: int) -> float:
    number: float = (coordinate - ruler.middle[axis]) / ruler.length[axis]
    return min(max(number, -ruler.farthest), ruler.farthest)


@part
def _sort(listed: Listed, counts: NDArray[np.int64], first: int, stop: int) -> None:
    """Sort the points around one counterfactual by distance, equal ones by how many stand there."""
    points, distances = listed.points, listed.distances
    for entry in range(first + 1, stop):
        point, distance, place = points[entry], distances[entry], entry
        while place > first and (
            distances[place - 1] > distance
            or (distances[place - 1] == distance and counts[points[place - 1]] > counts[point])
        ):
            points[place], distances[place] = points[place - 1], distances[place - 1]
            place -= 1
        points[place], distances[place] = point, distance


@part
def _weigh(listed: Listed, query: int, reference: Reference, parts: int, noted: Noted) -> np.int64:
    """Write down the places of those around one counterfactual, and give their number."""
    first, stop = listed.start[query], listed.start[query + 1]
    radius, up, down = listed.radius[query], listed.up[query], listed.down[query]
    whole, marks = np.int64(0), noted.marks[query]
    for column in range(len(marks)):
        marks[column] = 0
    for entry in range(first, stop):
        point, distance = listed.points[entry], listed.distances[entry]
        place = down if distance < radius else (up if distance == radius else 0)
        whole += place * reference.counts[point]
        for column in range(len(marks)):
            marks[column] += place * reference.marks[point, column]
    apart = 0.0
    for entry in range(first, stop):
        distance = listed.distances[entry]
        place = down if distance < radius else (up if distance == radius else 0)
        held = place * reference.counts[listed.points[entry]] / whole if whole else 0.0
        apart += held * distance
        noted.weights[entry] = np.int32(np.rint(held * parts))
    noted.whole[query], noted.apart[query] = whole, apart
    return whole


class Part(NamedTuple):
    """One counterfactual: where its points begin and end, and the rim with its part of a place.

    `whole` is the number of places, as `Ruler` counts.
    """

    first: int
    stop: int
    radius: int
    place: float
    whole: float


@part
def _average(inside: int, rim: int, here: Part, ruler: Ruler) -> np.int64:
    if here.whole == 0.0:
        return np.int64(0)
    return _count((rim * here.place + inside) / here.whole, ruler)


@part
def _note_numbers(
    listed: Listed,
    here: Part,
    reference: Reference,
    center: NDArray[np.int64],
    ruler: Ruler,
    numbers: NDArray[np.int64],
) -> None:
    """Write down the numbers of the matches and of the counterfactual itself, and their squares."""
    axes = len(ruler.middle)
    for axis in range(axes):
        inside, inside_square, rim, rim_square = 0, 0, 0, 0
        for entry in range(here.first, here.stop):
            point = listed.points[entry]
            number = _number(ruler, axis, reference.coordinates[point, axis])
            count = reference.counts[point]
            value, square = count * _count(number, ruler), count * _count(number * number, ruler)
            if listed.distances[entry] < here.radius:
                inside += value
                inside_square += square
            else:
                rim += value
                rim_square += square
        own = _number(ruler, axis, center[axis])
        numbers[1 + axis] = _average(inside, rim, here, ruler)
        numbers[1 + axes + axis] = _average(inside_square, rim_square, here, ruler)
        numbers[1 + 2 * axes + axis] = _count(own, ruler)
        numbers[1 + 3 * axes + axis] = _count(own * own, ruler)


@part
def _note_levels(
    listed: Listed,
    here: Part,
    reference: Reference,
    codes: NDArray[np.int32],
    ruler: Ruler,
    noted: Noted,
    last: int,
) -> int:
    """Write down the levels of the matches and of the counterfactual, behind those before."""
    numbers, one, tally = 2 * len(ruler.middle), np.int64(ruler.one), noted.tally
    column = 1 + numbers
    for name in range(len(ruler.levels)):
        known = ruler.levels[name]
        for entry in range(here.first, here.stop):
            point = listed.points[entry]
            # a level that D never had has a code of its own, beyond all others
            level = min(np.int64(reference.codes[point, name]), known)
            at_rim = listed.distances[entry] >= here.radius
            tally[2 * level + at_rim] += reference.counts[point] * one
        for level in range(known + 1):
            value = _average(tally[2 * level], tally[2 * level + 1], here, ruler)
            tally[2 * level] = tally[2 * level + 1] = 0
            # written always and kept if it is not zero: the one behind the last is spare
            noted.columns[last], noted.levels[last] = column + level, value
            last += value != 0
        column += known + 1
    column += numbers
    for name in range(len(ruler.levels)):
        level = min(np.int64(codes[name]), ruler.levels[name])
        noted.columns[last], noted.levels[last] = column + level, one
        last += 1
        column += ruler.levels[name] + 1
    return last


@kernel
def note_matches(
    listed: Listed,
    reference: Reference,
    centers: NDArray[np.int64],
    codes: NDArray[np.int32],
    ruler: Ruler,
    noted: Noted,
) -> int:
    """Write down the matches of counterfactuals, at `centers` with `codes`; count the levels."""
    last: int = _ZERO
    for query in range(len(centers)):
        first, stop = listed.start[query], listed.start[query + 1]
        _sort(listed, reference.counts, first, stop)
        places = _weigh(listed, query, reference, ruler.parts, noted)
        down = listed.down[query]
        whole = places / down * ruler.one
        here = Part(first, stop, listed.radius[query], listed.up[query] / down, whole)
        _note_numbers(listed, here, reference, centers[query], ruler, noted.numbers[query])
        before = last
        last = _note_levels(listed, here, reference, codes[query], ruler, noted, last)
        noted.size[query] = last - before
    return last
