"""Add up matched groups: for each complainant, the matches of everyone in her control group.

Everything is an integer, so that no order of people, points or threads can change a sum. People
inside the radius are added once and stay for the larger groups; those at exactly the radius hold a
part of a place that depends on k, so they are added apart and taken out again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mutandis.search.kernels.jit import kernel, part

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Answer", "Crowd", "Limits", "Matched", "Room", "add_groups", "room_for"]


class Crowd(NamedTuple):
    """Who stands where: the cells of each point, with the counterfactual and size of each."""

    first: NDArray[np.int64]
    number: NDArray[np.int64]
    key: NDArray[np.int64]
    people: NDArray[np.int64]


class Matched(NamedTuple):
    """The matches of each counterfactual, and its moments: see `evidence.matches.Matches`.

    The moments of the matches come first (zeros where there are none), then those of the
    counterfactual. `plain` says that no two rows of the test space stand on one point.
    """

    found: NDArray[np.bool_]
    negatives: NDArray[np.int64]
    distance: NDArray[np.float64]
    start: NDArray[np.int64]
    points: NDArray[np.int32]
    weights: NDArray[np.int64]
    counts: NDArray[np.int64]
    plain: bool
    moments: NDArray[np.int64]


class Limits(NamedTuple):
    """Of each k and complainant: the radius, the part of a place at it, and how far is near."""

    radius: NDArray[np.int64]
    up: NDArray[np.int64]
    down: NDArray[np.int64]
    near: NDArray[np.float64]


class Room(NamedTuple):
    """The memory a thread works in.

    Of the people listed for one complainant: key, number, distance, and how far their matches are.
    Of the points of the test space: their weights, all zero before and after, and a list of those
    that are not; the same for the rim.
    """

    key: NDArray[np.int64]
    people: NDArray[np.int64]
    distance: NDArray[np.int64]
    apart: NDArray[np.float64]
    load: NDArray[np.int64]
    touched: NDArray[np.int64]
    rim: NDArray[np.int64]
    on_rim: NDArray[np.int64]


def room_for(listed: int, points: int) -> Room:
    """Make room for so many people at a time, and points of the test space."""
    people = [np.empty(listed, dtype=np.int64) for _ in range(3)]
    weights = [np.zeros(points + 1, dtype=np.int64) for _ in range(4)]
    return Room(people[0], people[1], people[2], np.empty(listed), *weights)


class Answer(NamedTuple):
    """Of each k and complainant, what `evidence.matched_groups._Totals` holds, and sums of moments.

    The moments have a last dimension; those of people inside and on the rim are apart.
    """

    size: NDArray[np.int64]
    weight: NDArray[np.int64]
    near: NDArray[np.int64]
    negatives: NDArray[np.int64]
    spread: NDArray[np.int64]
    rows: NDArray[np.int64]
    moments: NDArray[np.int64]
    rim_moments: NDArray[np.int64]


@part
def _add_moments(sums: NDArray[np.int64], moments: NDArray[np.int64], people: int) -> None:
    for column in range(len(sums)):
        sums[column] += people * moments[column]


@kernel
def _gather(
    points: NDArray[np.int64],
    distances: NDArray[np.int64],
    first: int,
    stop: int,
    own: int,
    crowd: Crowd,
    matched: Matched,
    room: Room,
) -> int:
    """Lay the people of a listing out side by side, without the complainant; count them."""
    size = 0
    for entry in range(first, stop):
        point = points[entry]
        start = crowd.first[point]
        for cell in range(start, start + crowd.number[point]):
            key = crowd.key[cell]
            room.key[size], room.distance[size] = key, distances[entry]
            room.people[size] = crowd.people[cell] - (cell == own)
            room.apart[size] = matched.distance[key] if matched.found[key] else np.inf
            size += 1
    return size


@part
def _load(
    matched: Matched, room: Room, key: int, people: int, touched: int, spread: int, rows: int
) -> tuple[int, int, int]:
    """Add the matches of some people; give the points touched, the spread and the rows."""
    for entry in range(matched.start[key], matched.start[key + 1]):
        point, more = matched.points[entry], people * matched.weights[entry]
        before = room.load[point]
        room.load[point] = before + more
        is_new = (before == 0) & (more > 0)
        # written always and kept if it is new: the last one is spare
        room.touched[touched] = point
        touched += is_new
        if matched.plain:
            rows += is_new
            spread += more * (2 * before + more)
        else:
            count = matched.counts[point]
            rows += count * is_new
            after = before + more
            spread += after * after // count - before * before // count
    return touched, spread, rows


@part
def _load_rim(matched: Matched, room: Room, key: int, people: int, touched: int) -> int:
    for entry in range(matched.start[key], matched.start[key + 1]):
        point, more = matched.points[entry], people * matched.weights[entry]
        room.on_rim[touched] = point
        touched += (room.rim[point] == 0) & (more > 0)
        room.rim[point] += more
    return touched


@part
def _unload_rim(
    matched: Matched, room: Room, touched: int, place: float, spread: int, rows: int
) -> tuple[int, int]:
    """Count what the rim adds, each person holding a part of a place, and take it out again."""
    for index in range(touched):
        point = room.on_rim[index]
        before, count = room.load[point], matched.counts[point]
        more = np.int64(np.rint(room.rim[point] * place))
        after = before + more
        spread += after * after // count - before * before // count
        if before == 0 and more > 0:
            rows += count
        room.rim[point] = 0
    return spread, rows


class Sums(NamedTuple):
    """What was added up: people, those with matches, refusals, and points touched."""

    people: int
    matched: int
    refused: int
    touched: int


@kernel
def _add_rim(
    room: Room, size: int, matched: Matched, radius: int, moments: NDArray[np.int64]
) -> Sums:
    """Add up the people at exactly the radius."""
    everyone, with_matches, refused, touched = 0, 0, 0, 0
    for entry in range(size):
        if room.distance[entry] != radius:
            continue
        key, people = room.key[entry], room.people[entry]
        everyone += people
        with_matches += people * matched.found[key]
        refused += people * matched.negatives[key]
        _add_moments(moments, matched.moments[key], people)
        touched = _load_rim(matched, room, key, people, touched)
    return Sums(everyone, with_matches, refused, touched)


@kernel
def _add_inside(
    room: Room,
    size: int,
    matched: Matched,
    reached: int,
    radius: int,
    moments: NDArray[np.int64],
    before: tuple[Sums, int, int],
) -> tuple[Sums, int, int]:
    """Add up the people from one radius on, up to another."""
    sums, spread, rows = before
    everyone, with_matches, refused, touched = sums
    for entry in range(size):
        if room.distance[entry] < reached or room.distance[entry] >= radius:
            continue
        key, people = room.key[entry], room.people[entry]
        everyone += people
        with_matches += people * matched.found[key]
        refused += people * matched.negatives[key]
        _add_moments(moments, matched.moments[key], people)
        touched, spread, rows = _load(matched, room, key, people, touched, spread, rows)
    return Sums(everyone, with_matches, refused, touched), spread, rows


@kernel
def _count_near(room: Room, size: int, radius: int, near: float) -> tuple[int, int]:
    """Count the people with matches near enough, inside a radius and at it."""
    inside, rim = 0, 0
    for entry in range(size):
        people = room.people[entry] if room.apart[entry] <= near else 0
        inside += people if room.distance[entry] < radius else 0
        rim += people if room.distance[entry] == radius else 0
    return inside, rim


@kernel
def add_groups(
    start: NDArray[np.int64],
    points: NDArray[np.int64],
    distances: NDArray[np.int64],
    own: NDArray[np.int64],
    crowd: Crowd,
    matched: Matched,
    limits: Limits,
    room: Room,
    answer: Answer,
) -> None:
    """Add up the test groups of the complainants of a listing, for all k (rising).

    `own` is the cell of each complainant, who is not in her own group.
    """
    for query in range(len(own)):
        first, stop = start[query], start[query + 1]
        size = _gather(points, distances, first, stop, own[query], crowd, matched, room)
        inside, spread, rows = Sums(0, 0, 0, 0), 0, 0
        reached = -1
        for k in range(len(limits.radius)):
            radius = limits.radius[k, query]
            up, down = limits.up[k, query], limits.down[k, query]
            moments = answer.moments[k, query]
            if k > 0:
                # people inside stay for the larger groups
                _add_moments(moments, answer.moments[k - 1, query], 1)
            inside, spread, rows = _add_inside(
                room, size, matched, reached, radius, moments, (inside, spread, rows)
            )
            rim = _add_rim(room, size, matched, radius, answer.rim_moments[k, query])
            near, near_rim = _count_near(room, size, radius, limits.near[k, query])
            answer.size[k, query] = inside.people * down + rim.people * up
            answer.weight[k, query] = inside.matched * down + rim.matched * up
            answer.near[k, query] = near * down + near_rim * up
            answer.negatives[k, query] = inside.refused * down + rim.refused * up
            answer.spread[k, query], answer.rows[k, query] = _unload_rim(
                matched, room, rim.touched, up / down, spread, rows
            )
            reached = radius
        for index in range(inside.touched):
            room.load[room.touched[index]] = 0
