"""Add up matched groups: for each complainant, the matches of everyone in her control group.

Everything is an integer, so that no order of people, points or threads can change a sum. People
inside the radius are added once and stay for the larger groups; those at exactly the radius hold a
part of a place that depends on k, so they are added apart and taken out again. Whether groups are
comparable is judged at once, so that their moments need not be kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mutandis.search.kernels.jit import kernel, part, repeated_part

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Answer",
    "Cells",
    "Judge",
    "Limits",
    "Listed",
    "Matched",
    "Moments",
    "Room",
    "add_groups",
    "around_for",
    "renumber",
    "room_for",
]

# of one type from the start: for a literal, numba would compile once more
_ZERO: Any = np.int64(0)


class Listed(NamedTuple):
    """The points around each complainant, from one start to the next, and how far they are."""

    start: NDArray[np.int64]
    points: NDArray[np.int32]
    distances: NDArray[np.int64]


class Cells(NamedTuple):
    """Who stands where: see `evidence.matched_groups._Cells`."""

    several: bool
    first: NDArray[np.int32]
    number: NDArray[np.int32]
    key: NDArray[np.int32]
    people: NDArray[np.int32]


class Moments(NamedTuple):
    """The moments of each counterfactual: see `evidence.matches.Matches`.

    Levels are a sparse matrix, in which those of the counterfactuals begin at the column `half`.
    """

    numbers: NDArray[np.int64]
    half: int
    start: NDArray[np.int64]
    columns: NDArray[np.int32]
    levels: NDArray[np.int64]


class Matched(NamedTuple):
    """The matches of each counterfactual: see `evidence.matches.Matches`.

    `apart` is infinite where there are no matches; `plain` says that no two rows of the test space
    stand on one point.
    """

    negatives: NDArray[np.int64]
    apart: NDArray[np.float64]
    start: NDArray[np.int64]
    points: NDArray[np.int32]
    weights: NDArray[np.int32]
    counts: NDArray[np.int64]
    plain: bool
    moments: Moments


class Limits(NamedTuple):
    """Of each complainant and k: the radius, and the part of a place at it."""

    radius: NDArray[np.int64]
    up: NDArray[np.int64]
    down: NDArray[np.int64]


class Judge(NamedTuple):
    """What groups are judged by: see `evidence.matches.Scale`, whose arithmetic is repeated here.

    `one` is what 1 counts as; differences below `rounding` are none, and squared differences may be
    `most` variances, or `most_by_k` over the size of the group.
    """

    axes: int
    levels: NDArray[np.int64]
    one: float
    rounding: float
    most: float
    most_by_k: float
    far: int


class Room(NamedTuple):
    """The memory a thread works in.

    Of the points of the test space: their weights, all zero before and after, and a list of those
    that are not; the same for the rim. The moments of people inside and on the rim: numbers, and
    levels.
    """

    load: NDArray[np.int64]
    touched: NDArray[np.int32]
    rim: NDArray[np.int64]
    on_rim: NDArray[np.int32]
    inside: tuple[NDArray[np.int64], NDArray[np.int64]]
    at_rim: tuple[NDArray[np.int64], NDArray[np.int64]]


def room_for(points: int, numbers: int, levels: int) -> Room:
    """Make room for so many points of the test space, and moments of both kinds."""
    sums = [(np.zeros(numbers, np.int64), np.zeros(levels, np.int64)) for _ in range(2)]
    return Room(
        load=np.zeros(points + 1, np.int64),
        touched=np.zeros(points + 1, np.int32),
        rim=np.zeros(points + 1, np.int64),
        on_rim=np.zeros(points + 1, np.int32),
        inside=sums[0],
        at_rim=sums[1],
    )


class Around(NamedTuple):
    """The cells around one complainant, those inside smaller groups first.

    Their counterfactual, people, distance, and how far their matches are, with the place where each
    group ends. As they were listed: the cells, their distance, and their groups.
    """

    who: NDArray[np.int64]
    people: NDArray[np.int64]
    distance: NDArray[np.int64]
    apart: NDArray[np.float64]
    stop: NDArray[np.int64]
    cell: NDArray[np.int64]
    far: NDArray[np.int64]
    rank: NDArray[np.int64]


def around_for(cells: int, ks: int) -> Around:
    """Make room for so many cells, and sizes of groups."""
    who, people, distance, cell, far, rank = (np.empty(cells, np.int64) for _ in range(6))
    stop = np.empty(ks + 1, np.int64)
    return Around(who, people, distance, np.empty(cells), stop, cell, far, rank)


class Answer(NamedTuple):
    """Of each k and complainant, what `evidence.matched_groups._Totals` holds."""

    weight: NDArray[np.int64]
    negatives: NDArray[np.int64]
    spread: NDArray[np.int64]
    rows: NDArray[np.int64]
    distance: NDArray[np.float64]
    unfit: NDArray[np.int16]


@kernel
def renumber(points: NDArray[np.int32], numbers: NDArray[np.int32], seen: NDArray[np.int64]) -> int:
    """Give points numbers in the order in which they are seen, in place; count them.

    `numbers` are those of all points, -1 before they are seen.
    """
    size = 0
    for place in range(len(points)):
        point = points[place]
        if numbers[point] < 0:
            numbers[point] = size
            seen[size] = point
            size += 1
        points[place] = numbers[point]
    return size


@part
def _arrange(
    listed: Listed,
    query: int,
    own: int,
    cells: Cells,
    apart: NDArray[np.float64],
    radius: NDArray[np.int64],
    around: Around,
) -> None:
    """Put the cells around a complainant into the order of the groups that they are inside of.

    Each is inside of as many groups less as there are radii that it is not within; these are
    counted for all cells together, radius by radius, as vector units can do it.
    """
    cell_at, far, rank, stops = around.cell, around.far, around.rank, around.stop
    size = np.uint64(0)
    begin, end = np.uint64(listed.start[query]), np.uint64(listed.start[query + 1])
    for entry in range(begin, end):
        point = np.uint64(listed.points[entry])
        first = np.int64(cells.first[point] if cells.several else point)
        for cell in range(first, first + (cells.number[point] if cells.several else 1)):
            cell_at[size], far[size], rank[size] = cell, listed.distances[entry], 0
            size += np.uint64(1)
    within = _ZERO
    for k in range(len(radius)):
        limit, inside = radius[k], _ZERO
        for place in range(size):
            beyond = np.int64(far[place] >= limit)
            rank[place] += beyond
            inside += 1 - beyond
        stops[k], within = within, inside
    stops[len(radius)] = within
    for place in range(size):
        group, cell = np.uint64(rank[place]), cell_at[place]
        to, who = np.uint64(stops[group]), np.uint64(cells.key[np.uint64(cell)])
        stops[group] += 1
        around.who[to], around.distance[to], around.apart[to] = who, far[place], apart[who]
        around.people[to] = cells.people[np.uint64(cell)] - (cell == own)


@part
def _clear(sums: tuple[NDArray[np.int64], NDArray[np.int64]]) -> None:
    # loops: numba takes seconds to compile what assigns to slices
    numbers, levels = sums
    for column in range(len(numbers)):
        numbers[column] = 0
    for column in range(len(levels)):
        levels[column] = 0


@part
def _add_moments(
    sums: tuple[NDArray[np.int64], NDArray[np.int64]], moments: Moments, who: np.uint64, people: int
) -> None:
    numbers, (of_numbers, of_levels) = moments.numbers[who], sums
    if people == 1:  # without a product, which vector units do not have for 64 bits
        for column in range(np.uint64(len(numbers))):
            of_numbers[column] += numbers[column]
    else:
        for column in range(np.uint64(len(numbers))):
            of_numbers[column] += people * numbers[column]
    begin, end = moments.start[who], moments.start[who + np.uint64(1)]
    for entry in range(np.uint64(begin), np.uint64(end)):
        of_levels[np.uint64(moments.columns[entry])] += people * moments.levels[entry]


class Sums(NamedTuple):
    """What was added up: people, those with matches, refusals, and points touched."""

    people: int
    matched: int
    refused: int
    touched: int


@part
def _add_inside(
    around: Around,
    first: int,
    stop: int,
    matched: Matched,
    room: Room,
    before: tuple[Sums, int, int],
) -> tuple[Sums, int, int]:
    """Add up the people who are inside of a group, and not of a smaller one."""
    sums, spread, rows = before
    everyone, with_matches, refused, touched = sums
    # indices are unsigned, so that none is taken to count from the end
    for place in range(np.uint64(first), np.uint64(stop)):
        who, people = np.uint64(around.who[place]), around.people[place]
        everyone += people
        with_matches += people * (around.apart[place] < np.inf)
        refused += people * matched.negatives[who]
        _add_moments(room.inside, matched.moments, who, people)
        begin, end = matched.start[who], matched.start[who + np.uint64(1)]
        for entry in range(np.uint64(begin), np.uint64(end)):
            point, more = np.uint64(matched.points[entry]), people * matched.weights[entry]
            held = room.load[point]
            after = held + more
            room.load[point] = after
            is_new = (held == 0) & (more > 0)
            # written always and kept if it is new: the last one is spare
            room.touched[np.uint64(touched)] = point
            touched += is_new
            if matched.plain:
                spread += more * (held + after)
            else:
                count = matched.counts[point]
                rows += count * is_new
                spread += after * after // count - held * held // count
    rows = touched if matched.plain else rows
    return Sums(everyone, with_matches, refused, touched), spread, rows


@part
def _add_rim(
    around: Around,
    first: int,
    stop: int,
    matched: Matched,
    radius: int,
    near: float,
    room: Room,
) -> tuple[Sums, int]:
    """Add up the people at exactly the radius; count those with matches near enough."""
    everyone, with_matches, refused, touched, are_near = _ZERO, _ZERO, _ZERO, _ZERO, _ZERO
    for place in range(first, stop):
        if around.distance[place] != radius:
            continue
        who, people = np.uint64(around.who[place]), around.people[place]
        everyone += people
        with_matches += people * (around.apart[place] < np.inf)
        refused += people * matched.negatives[who]
        are_near += people if around.apart[place] <= near else 0
        _add_moments(room.at_rim, matched.moments, who, people)
        for entry in range(matched.start[who], matched.start[who + np.uint64(1)]):
            point, more = np.uint64(matched.points[entry]), people * matched.weights[entry]
            room.on_rim[touched] = point
            touched += (room.rim[point] == 0) & (more > 0)
            room.rim[point] += more
    return Sums(everyone, with_matches, refused, touched), are_near


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


@part
def _count_near(around: Around, stop: int, near: float) -> int:
    """Count the people inside of a group whose matches are near enough."""
    people = 0
    for place in range(stop):
        people += around.people[place] if around.apart[place] <= near else 0
    return people


@repeated_part
def _average(inside: int, at_rim: int, place: float, whole: float) -> float:
    """Give the average of a moment over a group whose rim holds a part of each place."""
    total = at_rim * place + inside
    return total / whole if whole > 0.0 else np.nan


@part
def _variance(square: float, mean: float, rounding: float) -> float:
    found = square - mean**2
    return found if found > rounding * square else 0.0


@repeated_part
def _excess(difference: float, spread: float, allowed: float, rounding: float) -> float:
    """Tell how many times a squared difference exceeds what is allowed."""
    if not abs(difference) > rounding:
        return 0.0
    return 2 * difference**2 / (allowed * spread) if allowed * spread != 0.0 else np.inf


@part
def _judge(
    room: Room, half: int, place: float, matched_size: float, size: float, judge: Judge
) -> int:
    """Name the attribute in which groups differ too much, as `Matching` does; 0 for none.

    It is the first of those that differ most, up to rounding.
    """
    numbers, levels = room.inside
    rim_numbers, rim_levels = room.at_rim
    whole, other_whole = matched_size * judge.one, size * judge.one
    allowed = min(judge.most, judge.most_by_k / max(size, 1.0))
    axes, largest = judge.axes, 0.0
    # the first look finds the largest excess, the second one the attribute
    for look in range(2):
        enough = largest * (1 - judge.rounding)
        for axis in range(axes):
            at, other_at = 1 + axis, 1 + 2 * axes + axis
            mean = _average(numbers[at], rim_numbers[at], place, whole)
            other = _average(numbers[other_at], rim_numbers[other_at], place, other_whole)
            at, other_at = at + axes, other_at + axes
            square = _average(numbers[at], rim_numbers[at], place, whole)
            other_square = _average(numbers[other_at], rim_numbers[other_at], place, other_whole)
            spread = _variance(square, mean, judge.rounding)
            spread += _variance(other_square, other, judge.rounding)
            excess = _excess(mean - other, spread, allowed, judge.rounding)
            if look == 1 and excess >= enough:
                return (axis + 1 if mean > other else -axis - 1) if excess > 1 else 0
            largest = max(largest, excess)
        first = 2 * axes
        for name in range(len(judge.levels)):
            worst = 0.0
            for column in range(first, first + judge.levels[name] + 1):
                at, other_at = 1 + column, half + column
                mean = _average(levels[at], rim_levels[at], place, whole)
                other = _average(levels[other_at], rim_levels[other_at], place, other_whole)
                spread = mean * (1 - mean) + other * (1 - other)
                worst = max(worst, _excess(mean - other, spread, allowed, judge.rounding))
            first += judge.levels[name] + 1
            if look == 1 and worst >= enough:
                return axes + name + 1 if worst > 1 else 0
            largest = max(largest, worst)
        if largest <= 1:
            break
    return 0


@kernel
def add_groups(
    listed: Listed,
    chosen: NDArray[np.int64],
    own: NDArray[np.int64],
    cells: Cells,
    matched: Matched,
    limits: Limits,
    judge: Judge,
    room: Room,
    around: Around,
    answer: Answer,
) -> None:
    """Add up the test groups of the chosen complainants, for all k (rising).

    `own` is the cell of each complainant, who is not in her own group.
    """
    half = matched.moments.half
    for query in range(len(chosen)):
        radii, to = limits.radius[query], chosen[query]
        _arrange(listed, query, own[query], cells, matched.apart, radii, around)
        inside, spread, rows = Sums(_ZERO, _ZERO, _ZERO, _ZERO), _ZERO, _ZERO
        first = _ZERO
        _clear(room.inside)
        for k in range(len(radii)):
            radius, near = radii[k], radii[k] * (1 + judge.rounding)
            up, down = limits.up[query, k], limits.down[query, k]
            stop = around.stop[k]
            # people inside stay for the larger groups
            inside, spread, rows = _add_inside(
                around, first, stop, matched, room, (inside, spread, rows)
            )
            first = stop
            # whoever is at the radius is inside of the next group that is wider
            wider = k + 1
            while wider < len(radii) and radii[wider] <= radius:
                wider += 1
            _clear(room.at_rim)
            rim, near_rim = _add_rim(
                around, around.stop[wider - 1], around.stop[wider], matched, radius, near, room
            )
            are_near = _count_near(around, first, near) * down + near_rim * up
            place = up / down
            size = inside.people * down + rim.people * up
            weight = inside.matched * down + rim.matched * up
            answer.weight[k, to] = weight
            answer.negatives[k, to] = inside.refused * down + rim.refused * up
            answer.distance[k, to] = _average(
                room.inside[0][0], room.at_rim[0][0], place, weight / down * judge.one
            )
            unfit = _judge(room, half, place, weight / down, size / down, judge)
            answer.unfit[k, to] = unfit if 2 * are_near >= max(size, 1) else judge.far
            answer.spread[k, to], answer.rows[k, to] = _unload_rim(
                matched, room, rim.touched, place, spread, rows
            )
        for index in range(inside.touched):
            room.load[room.touched[index]] = 0
