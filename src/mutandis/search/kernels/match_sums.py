"""Add up matched groups: for each complainant, the matches of everyone in her control group.

Everything is an integer, so that no order of people, points or threads can change a sum. People
inside the radius are added once and stay for the larger groups; those at exactly the radius hold a
part of a place that depends on k, so they are added apart and taken out again.

Complainants whose groups overlap are added up together. What is known of the people in these groups
is brought together first, under numbers of their own (`lay_out`, `renumber`): a person is in a
hundred groups, and would otherwise be fetched a hundred times from all over the memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mutandis.search.kernels.jit import kernel, part

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Answer",
    "Crowd",
    "Laid",
    "Limits",
    "Matched",
    "Moments",
    "Room",
    "add_groups",
    "lay_out",
    "renumber",
    "room_for",
]


class Crowd(NamedTuple):
    """Who stands where: the first cell of each point, and how many it has."""

    first: NDArray[np.int64]
    number: NDArray[np.int64]


class Laid(NamedTuple):
    """The cells around each complainant, from one start to the next, and how far they are."""

    start: NDArray[np.int64]
    who: NDArray[np.int32]
    distances: NDArray[np.int64]


class Moments(NamedTuple):
    """The moments of each cell: see `evidence.matches.Matches`.

    The first numbers are `of_matches`; the others are added up from the column `half` on. Levels
    are a sparse matrix.
    """

    numbers: NDArray[np.int64]
    of_matches: int
    half: int
    start: NDArray[np.int64]
    columns: NDArray[np.int32]
    levels: NDArray[np.int64]


class Matched(NamedTuple):
    """The people of each cell, and their matches: see `evidence.matches.Matches`.

    `apart` is infinite where there are no matches; `plain` says that no two rows of the test space
    stand on one point.
    """

    people: NDArray[np.int64]
    found: NDArray[np.bool_]
    negatives: NDArray[np.int64]
    apart: NDArray[np.float64]
    start: NDArray[np.int64]
    points: NDArray[np.int32]
    weights: NDArray[np.int64]
    counts: NDArray[np.int64]
    plain: bool
    moments: Moments


class Limits(NamedTuple):
    """Of each complainant and k: the radius, the part of a place at it, and how far is near."""

    radius: NDArray[np.int64]
    up: NDArray[np.int64]
    down: NDArray[np.int64]
    near: NDArray[np.float64]


class Room(NamedTuple):
    """The memory a thread works in.

    Of the cells around one complainant: their number, people, distance, and how far their matches
    are, those inside smaller groups first, with the place where each group ends. Of the points of
    the test space: their weights, all zero before and after, and a list of those that are not; the
    same for the rim.
    """

    who: NDArray[np.int64]
    people: NDArray[np.int64]
    distance: NDArray[np.int64]
    apart: NDArray[np.float64]
    stop: NDArray[np.int64]
    load: NDArray[np.int64]
    touched: NDArray[np.int64]
    rim: NDArray[np.int64]
    on_rim: NDArray[np.int64]


def room_for(listed: int, points: int, ks: int) -> Room:
    """Make room for so many cells at a time, points of the test space, and sizes of groups."""
    cells = [np.empty(listed, dtype=np.int64) for _ in range(3)]
    weights = [np.zeros(points + 1, dtype=np.int64) for _ in range(4)]
    stop = np.empty(ks + 1, dtype=np.int64)
    return Room(cells[0], cells[1], cells[2], np.empty(listed), stop, *weights)


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
def _number(which: int, numbers: NDArray[np.int32], seen: NDArray[np.int64], size: int) -> int:
    """Give something the next number, unless it has one (-1: none); count what has one."""
    if numbers[which] >= 0:
        return size
    numbers[which] = size
    seen[size] = which
    return size + 1


@kernel
def lay_out(
    start: NDArray[np.int64],
    points: NDArray[np.int64],
    distances: NDArray[np.int64],
    crowd: Crowd,
    numbers: NDArray[np.int32],
    seen: NDArray[np.int64],
    laid: Laid,
) -> int:
    """Lay out the cells of the points of a listing, with `numbers` for those that are `seen`."""
    size, last = 0, 0
    for query in range(len(start) - 1):
        for entry in range(start[query], start[query + 1]):
            first = crowd.first[points[entry]]
            for cell in range(first, first + crowd.number[points[entry]]):
                size = _number(cell, numbers, seen, size)
                laid.who[last], laid.distances[last] = numbers[cell], distances[entry]
                last += 1
        laid.start[query + 1] = last
    return size


@kernel
def renumber(points: NDArray[np.int32], numbers: NDArray[np.int32], seen: NDArray[np.int64]) -> int:
    """Give points numbers in the order in which they are seen, in place; count them."""
    size = 0
    for place in range(len(points)):
        size = _number(points[place], numbers, seen, size)
        points[place] = numbers[points[place]]
    return size


@part
def _add_moments(sums: NDArray[np.int64], moments: Moments, who: int, people: int) -> None:
    numbers = moments.numbers[who]
    of_matches = np.uint64(moments.of_matches)
    others, half = np.uint64(len(numbers)) - of_matches, np.uint64(moments.half)
    for column in range(of_matches):
        sums[column] += people * numbers[column]
    for column in range(others):
        sums[half + column] += people * numbers[of_matches + column]
    for entry in range(moments.start[who], moments.start[who + 1]):
        sums[np.uint64(moments.columns[entry])] += people * moments.levels[entry]


@kernel
def _arrange(
    laid: Laid,
    query: int,
    own: int,
    matched: Matched,
    radius: NDArray[np.int64],
    room: Room,
) -> None:
    """Put the cells around a complainant into the order of the groups that they are inside of."""
    first, stop = laid.start[query], laid.start[query + 1]
    ks = len(radius)
    room.stop[:] = 0
    for entry in range(first, stop):
        room.stop[_group_of(laid.distances[entry], radius)] += 1
    total = 0
    for k in range(ks + 1):
        total += room.stop[k]
        room.stop[k] = total - room.stop[k]
    for entry in range(first, stop):
        who = laid.who[entry]
        group = _group_of(laid.distances[entry], radius)
        place = room.stop[group]
        room.stop[group] += 1
        room.who[place], room.distance[place] = who, laid.distances[entry]
        room.people[place] = matched.people[who] - (who == own)
        room.apart[place] = matched.apart[who]


@part
def _group_of(distance: int, radius: NDArray[np.int64]) -> int:
    """Give the smallest group that a distance is inside of; radii do not fall."""
    group = 0
    for k in range(len(radius)):
        group += distance >= radius[k]
    return group


@part
def _load(
    matched: Matched, room: Room, who: int, people: int, touched: int, spread: int, rows: int
) -> tuple[int, int, int]:
    """Add the matches of some people; give the points touched, the spread and the rows."""
    for entry in range(matched.start[who], matched.start[who + 1]):
        # unsigned, so that no index is taken to count from the end
        point, more = np.uint64(matched.points[entry]), people * matched.weights[entry]
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
def _load_rim(matched: Matched, room: Room, who: int, people: int, touched: int) -> int:
    for entry in range(matched.start[who], matched.start[who + 1]):
        point, more = np.uint64(matched.points[entry]), people * matched.weights[entry]
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
    room: Room,
    first: int,
    stop: int,
    matched: Matched,
    radius: int,
    near: float,
    moments: NDArray[np.int64],
) -> tuple[Sums, int]:
    """Add up the people at exactly the radius; count those with matches near enough."""
    everyone, with_matches, refused, touched, are_near = 0, 0, 0, 0, 0
    for place in range(first, stop):
        if room.distance[place] != radius:
            continue
        who, people = room.who[place], room.people[place]
        everyone += people
        with_matches += people * matched.found[who]
        refused += people * matched.negatives[who]
        are_near += people if room.apart[place] <= near else 0
        _add_moments(moments, matched.moments, who, people)
        touched = _load_rim(matched, room, who, people, touched)
    return Sums(everyone, with_matches, refused, touched), are_near


@kernel
def _add_inside(
    room: Room,
    first: int,
    stop: int,
    matched: Matched,
    moments: NDArray[np.int64],
    before: tuple[Sums, int, int],
) -> tuple[Sums, int, int]:
    """Add up the people who are inside of a group, and not of a smaller one."""
    sums, spread, rows = before
    everyone, with_matches, refused, touched = sums
    for place in range(first, stop):
        who, people = room.who[place], room.people[place]
        everyone += people
        with_matches += people * matched.found[who]
        refused += people * matched.negatives[who]
        _add_moments(moments, matched.moments, who, people)
        touched, spread, rows = _load(matched, room, who, people, touched, spread, rows)
    return Sums(everyone, with_matches, refused, touched), spread, rows


@kernel
def _count_near(room: Room, stop: int, near: float) -> int:
    """Count the people inside of a group whose matches are near enough."""
    people = 0
    for place in range(stop):
        people += room.people[place] if room.apart[place] <= near else 0
    return people


@kernel
def add_groups(
    laid: Laid,
    own: NDArray[np.int32],
    matched: Matched,
    limits: Limits,
    room: Room,
    answer: Answer,
) -> None:
    """Add up the test groups of some complainants, for all k (rising).

    `own` is the cell of each complainant, who is not in her own group.
    """
    ks = limits.radius.shape[1]
    for query in range(len(own)):
        radii = limits.radius[query]
        _arrange(laid, query, own[query], matched, radii, room)
        inside, spread, rows = Sums(0, 0, 0, 0), 0, 0
        first = 0
        for k in range(ks):
            radius, near = radii[k], limits.near[query, k]
            up, down = limits.up[query, k], limits.down[query, k]
            moments = answer.moments[k, query]
            if k > 0:
                # people inside stay for the larger groups
                for column in range(len(moments)):
                    moments[column] = answer.moments[k - 1, query, column]
            inside, spread, rows = _add_inside(
                room, first, room.stop[k], matched, moments, (inside, spread, rows)
            )
            first = room.stop[k]
            # whoever is at the radius is inside of the next group that is wider
            wider = _group_of(radius, radii)
            rim, near_rim = _add_rim(
                room,
                room.stop[wider - 1],
                room.stop[wider],
                matched,
                radius,
                near,
                answer.rim_moments[k, query],
            )
            are_near = _count_near(room, first, near)
            answer.size[k, query] = inside.people * down + rim.people * up
            answer.weight[k, query] = inside.matched * down + rim.matched * up
            answer.near[k, query] = are_near * down + near_rim * up
            answer.negatives[k, query] = inside.refused * down + rim.refused * up
            answer.spread[k, query], answer.rows[k, query] = _unload_rim(
                matched, room, rim.touched, up / down, spread, rows
            )
        for index in range(inside.touched):
            room.load[room.touched[index]] = 0
