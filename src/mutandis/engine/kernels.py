"""Kernels of the matched comparison: for each complainant, the matches of the control group.

Everything that is added is an integer, so that no order of people, points or threads can change a
sum. People inside the radius are added once and stay for the larger groups; those at exactly the
radius hold a part of a place that depends on k, so they are added apart and taken out again.
Whether groups are comparable is judged at once, so that their moments need not be kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mutandis.geometry.kernels.jit import kernel, part, repeated_part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.mapped import Floats, Ints

# of one type from the start: for a literal, numba would compile once more
_ZERO: Any = np.int64(0)


class Listed(NamedTuple):
    """The points around each complainant, from one start to the next, and how far they are."""

    start: Ints
    points: NDArray[np.int32]
    distances: Ints


class Cells(NamedTuple):
    """Who is where: see `engine.matched._Cells`."""

    several: bool
    first: NDArray[np.int32]
    number: NDArray[np.int32]
    key: NDArray[np.int32]
    people: NDArray[np.int32]


class Moments(NamedTuple):
    """The moments of each counterfactual: see `matches.Matches`; levels are a sparse matrix."""

    numbers: Ints
    half: int  # the column at which levels of counterfactuals begin
    start: Ints
    columns: NDArray[np.int32]
    levels: Ints


class Matched(NamedTuple):
    """The matches of each counterfactual: see `matches.Matches`."""

    marks: Ints
    apart: Floats  # infinite where there are no matches
    start: Ints
    points: NDArray[np.int32]
    weights: NDArray[np.int32]
    counts: Ints
    plain: bool  # no two rows of the test space are on one point
    moments: Moments


class Limits(NamedTuple):
    """Of each complainant and k: the radius, and the part of a place at it."""

    radius: Ints
    up: Ints
    down: Ints


class Judge(NamedTuple):
    """What groups are judged by: see `balance.Scale`, whose arithmetic is repeated here."""

    axes: int
    levels: Ints
    one: float  # what 1 counts as
    rounding: float  # differences below it are none
    most: float  # variances that squared differences may be
    most_by_k: float  # or over the size of the group
    far: int


class Room(NamedTuple):
    """The memory a thread works in: one row for people inside, one for those at the radius.

    Of the points of the test space, their weights, all zero before and after, and a list of those
    that are not; the moments of people, numbers and levels; their marks; and `sums`, as `_PEOPLE`
    and so on name them. By how much each attribute exceeds what is allowed: negative, where matches
    are below.
    """

    load: Ints
    touched: NDArray[np.int32]
    numbers: Ints
    levels: Ints
    marks: Ints
    sums: Ints
    excess: Floats


_INSIDE, _RIM = range(2)
# what is added up: people, those with matches and with near ones, points touched, squares of
# weights over the rows of a point, and rows
_PEOPLE, _MATCHED, _NEAR, _TOUCHED, _SPREAD, _ROWS = range(6)


def room_for(points: int, numbers: int, levels: int, attributes: int, marks: int) -> Room:
    """Make room for so many points of the test space, moments of both kinds, attributes, marks."""
    return Room(
        load=np.zeros((2, points + 1), np.int64),
        touched=np.zeros((2, points + 1), np.int32),
        numbers=np.zeros((2, numbers), np.int64),
        levels=np.zeros((2, levels), np.int64),
        marks=np.zeros((2, marks), np.int64),
        sums=np.zeros((2, 6), np.int64),
        excess=np.zeros(attributes),
    )


class Around(NamedTuple):
    """The cells around one complainant, those inside smaller groups first.

    Their counterfactual, people, distance, and how far their matches are, with the place where each
    group ends. As they were listed: the cells, their distance, and their groups.
    """

    who: Ints
    people: Ints
    distance: Ints
    apart: Floats
    stop: Ints
    cell: Ints
    far: Ints
    rank: Ints


def around_for(cells: int, ks: int) -> Around:
    """Make room for so many cells, and sizes of groups."""
    who, people, distance, cell, far, rank = (np.empty(cells, np.int64) for _ in range(6))
    stop = np.empty(ks + 1, np.int64)
    return Around(who, people, distance, np.empty(cells), stop, cell, far, rank)


class Answer(NamedTuple):
    """Of each k and complainant, what `engine.matched._Totals` holds."""

    weight: Ints
    marks: Ints
    spread: Ints
    rows: Ints
    distance: Floats
    unfit: NDArray[np.int16]


@part
def _arrange(
    listed: Listed, query: int, own: int, cells: Cells, apart: Floats, radius: Ints, around: Around
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
def _clear(room: Room, side: int) -> None:
    # loops: numba takes seconds to compile what assigns to slices
    for column in range(room.numbers.shape[1]):
        room.numbers[side, column] = 0
    for column in range(room.levels.shape[1]):
        room.levels[side, column] = 0
    for column in range(room.marks.shape[1]):
        room.marks[side, column] = 0
    for column in range(room.sums.shape[1]):
        room.sums[side, column] = 0


@part
def _add_moments(
    of_numbers: Ints, of_levels: Ints, moments: Moments, who: np.uint64, people: int
) -> None:
    numbers = moments.numbers[who]
    if people == 1:  # without a product, which vector units do not have for 64 bits
        for column in range(np.uint64(len(numbers))):
            of_numbers[column] += numbers[column]
    else:
        for column in range(np.uint64(len(numbers))):
            of_numbers[column] += people * numbers[column]
    begin, end = moments.start[who], moments.start[who + np.uint64(1)]
    for entry in range(np.uint64(begin), np.uint64(end)):
        of_levels[np.uint64(moments.columns[entry])] += people * moments.levels[entry]


@part
def _add(
    side: int,
    around: Around,
    first: int,
    stop: int,
    radius: int,
    near: float,
    matched: Matched,
    room: Room,
) -> None:
    """Add up people: those inside of a group and not of a smaller one, or those at its radius."""
    load, touched = room.load[side], room.touched[side]
    of_numbers, of_levels, sums = room.numbers[side], room.levels[side], room.sums[side]
    marks, width = room.marks[side], np.uint64(room.marks.shape[1])
    size, spread, rows = sums[_TOUCHED], sums[_SPREAD], sums[_ROWS]
    plain = matched.plain
    # indices are unsigned, so that none is taken to count from the end
    for place in range(np.uint64(first), np.uint64(stop)):
        if side == _RIM and around.distance[place] != radius:
            continue
        who, people, apart = np.uint64(around.who[place]), around.people[place], around.apart[place]
        sums[_PEOPLE] += people
        sums[_MATCHED] += people * (apart < np.inf)
        sums[_NEAR] += people * (apart <= near)
        for column in range(width):
            marks[column] += people * matched.marks[who, column]
        _add_moments(of_numbers, of_levels, matched.moments, who, people)
        begin, end = matched.start[who], matched.start[who + np.uint64(1)]
        for entry in range(np.uint64(begin), np.uint64(end)):
            point, more = np.uint64(matched.points[entry]), people * matched.weights[entry]
            held = load[point]
            after = held + more
            load[point] = after
            is_new = (held == 0) & (more > 0)
            # written always and kept if it is new: the last one is spare
            touched[np.uint64(size)] = point
            size += is_new
            if plain:
                spread += more * (held + after)
            else:
                count = matched.counts[point]
                rows += count * is_new
                spread += after * after // count - held * held // count
    sums[_TOUCHED], sums[_SPREAD], sums[_ROWS] = size, spread, size if plain else rows


@part
def _unload_rim(matched: Matched, room: Room, place: float) -> tuple[int, int]:
    """Count what the rim adds, each person holding a part of a place, and take it out again."""
    load, rim, on_rim, counts = room.load[0], room.load[1], room.touched[1], matched.counts
    spread, rows = room.sums[_INSIDE, _SPREAD], room.sums[_INSIDE, _ROWS]
    for index in range(room.sums[_RIM, _TOUCHED]):
        point = on_rim[index]
        before, count = load[point], counts[point]
        more = np.int64(np.rint(rim[point] * place))
        after = before + more
        spread += after * after // count - before * before // count
        if before == 0 and more > 0:
            rows += count
        rim[point] = 0
    return spread, rows


@part
def _count_near(around: Around, stop: int, near: float) -> int:
    """Count the people inside of a group whose matches are near enough."""
    people: int = _ZERO
    for place in range(stop):
        people += around.people[place] if around.apart[place] <= near else 0
    return people


@repeated_part
def _average(sums: Ints, at: int, place: float, whole: float) -> float:
    """Return the average of a moment over a group whose rim holds a part of each place."""
    total = sums[_RIM, at] * place + sums[_INSIDE, at]
    return total / whole if whole > 0.0 else np.nan


@repeated_part
def _variance(square: float, mean: float, rounding: float) -> float:
    found = square - mean * mean
    return found if found > rounding * square else 0.0


@repeated_part
def _excess(difference: float, spread: float, allowed: float, rounding: float) -> float:
    """Compute how many times a squared difference exceeds what is allowed."""
    if not abs(difference) > rounding:
        return 0.0
    square = difference * difference
    return 2 * square / (allowed * spread) if allowed * spread != 0.0 else np.inf


@part
def _name_largest(excess: Floats, rounding: float) -> int:
    """Name the first of the attributes that exceed most, up to rounding; 0 if none does."""
    largest = 0.0
    for attribute in range(len(excess)):
        largest = max(largest, abs(excess[attribute]))
    if largest > 1:
        for attribute in range(len(excess)):
            found = excess[attribute]
            if abs(found) >= largest * (1 - rounding):
                return (attribute + 1 if found > 0 else -attribute - 1) if abs(found) > 1 else 0
    return 0


@part
def _judge(
    room: Room, half: int, place: float, matched_size: float, size: float, judge: Judge
) -> int:
    """Name the attribute in which groups differ too much, as `Matching` does; 0 for none."""
    numbers, levels, excess = room.numbers, room.levels, room.excess
    axes, rounding = judge.axes, judge.rounding
    whole, other_whole = matched_size * judge.one, size * judge.one
    allowed = min(judge.most, judge.most_by_k / max(size, 1.0))
    for axis in range(axes):
        at = 1 + axis
        mean = _average(numbers, at, place, whole)
        square = _average(numbers, at + axes, place, whole)
        other = _average(numbers, at + 2 * axes, place, other_whole)
        other_square = _average(numbers, at + 3 * axes, place, other_whole)
        spread = _variance(square, mean, rounding) + _variance(other_square, other, rounding)
        found = _excess(mean - other, spread, allowed, rounding)
        excess[axis] = found if mean > other else -found
    first = 2 * axes
    for name in range(len(judge.levels)):
        worst, last = 0.0, first + judge.levels[name]
        for column in range(first, last + 1):
            mean = _average(levels, 1 + column, place, whole)
            other = _average(levels, half + column, place, other_whole)
            spread = mean * (1 - mean) + other * (1 - other)
            worst = max(worst, _excess(mean - other, spread, allowed, rounding))
        first = last + 1
        excess[axes + name] = worst
    return _name_largest(excess, rounding)


@kernel
def add_groups(
    listed: Listed,
    chosen: Ints,
    own: Ints,
    cells: Cells,
    matched: Matched,
    limits: Limits,
    judge: Judge,
    room: Room,
    around: Around,
    answer: Answer,
) -> None:
    """Add up the test groups of the chosen complainants, for all k (rising).

    `own` is the cell of each complainant, who is not in the own group.
    """
    stops, sums = around.stop, room.sums
    for query in range(len(chosen)):
        radii, to = limits.radius[query], chosen[query]
        _arrange(listed, query, own[query], cells, matched.apart, radii, around)
        _clear(room, _INSIDE)
        first = _ZERO
        for k in range(len(radii)):
            radius, near = radii[k], radii[k] * (1 + judge.rounding)
            # people at the radius are inside of the next group that is wider
            wider = k + 1
            while wider < len(radii) and radii[wider] <= radius:
                wider += 1
            # people inside stay for the larger groups
            stop = stops[k]
            _clear(room, _RIM)
            for side in range(2):
                _add(side, around, first, stop, radius, near, matched, room)
                first, stop = stops[wider - 1], stops[wider]
            first = stops[k]
            up, down = limits.up[query, k], limits.down[query, k]
            place = up / down
            are_near = _count_near(around, first, near) * down + sums[_RIM, _NEAR] * up
            size = sums[_INSIDE, _PEOPLE] * down + sums[_RIM, _PEOPLE] * up
            weight = sums[_INSIDE, _MATCHED] * down + sums[_RIM, _MATCHED] * up
            answer.weight[k, to] = weight
            for column in range(room.marks.shape[1]):
                inside, rim = room.marks[_INSIDE, column], room.marks[_RIM, column]
                answer.marks[k, to, column] = inside * down + rim * up
            answer.distance[k, to] = _average(room.numbers, 0, place, weight / down * judge.one)
            unfit = _judge(room, matched.moments.half, place, weight / down, size / down, judge)
            answer.unfit[k, to] = unfit if 2 * are_near >= max(size, 1) else judge.far
            answer.spread[k, to], answer.rows[k, to] = _unload_rim(matched, room, place)
        for index in range(sums[_INSIDE, _TOUCHED]):
            room.load[_INSIDE, room.touched[_INSIDE, index]] = 0
