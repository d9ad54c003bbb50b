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

__all__ = ["Answer", "Crowd", "Limits", "Matched", "Scratch", "add_groups"]


class Crowd(NamedTuple):
    """Who stands where: the cells of each point, with the counterfactual and size of each."""

    first: NDArray[np.int64]
    number: NDArray[np.int64]
    key: NDArray[np.int64]
    people: NDArray[np.int64]


class Matched(NamedTuple):
    """The matches of each counterfactual, and its moments: see `evidence.matched.Matches`."""

    found: NDArray[np.bool_]
    negatives: NDArray[np.int64]
    distance: NDArray[np.float64]
    start: NDArray[np.int64]
    points: NDArray[np.int32]
    weights: NDArray[np.int64]
    counts: NDArray[np.int64]
    matched: NDArray[np.int64]
    centers: NDArray[np.int64]


class Limits(NamedTuple):
    """Of each k and complainant: the radius, the part of a place at it, and how far is near."""

    radius: NDArray[np.int64]
    up: NDArray[np.int64]
    down: NDArray[np.int64]
    near: NDArray[np.float64]


class Scratch(NamedTuple):
    """The weights of the points of the test space, all zero, and lists of those that are not."""

    load: NDArray[np.int64]
    touched: NDArray[np.int64]
    rim: NDArray[np.int64]
    on_rim: NDArray[np.int64]


class Answer(NamedTuple):
    """Of each k and complainant, what `evidence.matched._Totals` holds, and sums of moments.

    The moments have a last dimension; those of people inside and on the rim are apart.
    """

    size: NDArray[np.int64]
    weight: NDArray[np.int64]
    near: NDArray[np.int64]
    negatives: NDArray[np.int64]
    spread: NDArray[np.int64]
    rows: NDArray[np.int64]
    matched: NDArray[np.int64]
    matched_rim: NDArray[np.int64]
    centers: NDArray[np.int64]
    centers_rim: NDArray[np.int64]


@part
def _add_moments(sums: NDArray[np.int64], moments: NDArray[np.int64], people: int) -> None:
    for column in range(len(sums)):
        sums[column] += people * moments[column]


@part
def _load(
    matched: Matched, scratch: Scratch, key: int, people: int, touched: int, spread: int, rows: int
) -> tuple[int, int, int]:
    """Add the matches of some people; give the points touched, the spread and the rows."""
    for entry in range(matched.start[key], matched.start[key + 1]):
        point = matched.points[entry]
        before, count = scratch.load[point], matched.counts[point]
        after = before + people * matched.weights[entry]
        if before == 0 and after > 0:
            scratch.touched[touched] = point
            touched += 1
            rows += count
        scratch.load[point] = after
        if count == 1:
            spread += after * after - before * before
        else:
            spread += after * after // count - before * before // count
    return touched, spread, rows


@part
def _load_rim(matched: Matched, scratch: Scratch, key: int, people: int, touched: int) -> int:
    for entry in range(matched.start[key], matched.start[key + 1]):
        point = matched.points[entry]
        if scratch.rim[point] == 0 and matched.weights[entry] > 0:
            scratch.on_rim[touched] = point
            touched += 1
        scratch.rim[point] += people * matched.weights[entry]
    return touched


@part
def _unload_rim(
    matched: Matched, scratch: Scratch, touched: int, place: float, spread: int, rows: int
) -> tuple[int, int]:
    """Count what the rim adds, each person holding a part of a place, and take it out again."""
    for index in range(touched):
        point = scratch.on_rim[index]
        before, count = scratch.load[point], matched.counts[point]
        more = np.int64(np.rint(scratch.rim[point] * place))
        after = before + more
        spread += after * after // count - before * before // count
        if before == 0 and more > 0:
            rows += count
        scratch.rim[point] = 0
    return spread, rows


class Sums(NamedTuple):
    """What was added up so far: people, matched people, refusals, near people, touched points."""

    people: int
    matched: int
    refused: int
    near: int
    touched: int


@part
def _others(crowd: Crowd, cell: int, own: int) -> int:
    return int(crowd.people[cell] - (cell == own))


@kernel
def _add_rim(
    listing: tuple[NDArray[np.int64], NDArray[np.int64]],
    span: tuple[int, int],
    own: int,
    crowd: Crowd,
    matched: Matched,
    radius: int,
    near: float,
    scratch: Scratch,
    moments: NDArray[np.int64],
    centers: NDArray[np.int64],
) -> Sums:
    """Add up the people at exactly the radius."""
    points, distances = listing
    everyone, found_in_all, refused, close, touched = 0, 0, 0, 0, 0
    for entry in range(span[0], span[1]):
        if distances[entry] != radius:
            continue
        point = points[entry]
        for cell in range(crowd.first[point], crowd.first[point] + crowd.number[point]):
            people, key = _others(crowd, cell, own), crowd.key[cell]
            found = people if matched.found[key] else 0
            everyone += people
            found_in_all += found
            refused += people * matched.negatives[key]
            close += found if matched.distance[key] <= near else 0
            _add_moments(moments, matched.matched[key], found)
            _add_moments(centers, matched.centers[key], people)
            if found:
                touched = _load_rim(matched, scratch, key, people, touched)
    return Sums(everyone, found_in_all, refused, close, touched)


@kernel
def _add_inside(
    listing: tuple[NDArray[np.int64], NDArray[np.int64]],
    span: tuple[int, int],
    own: int,
    crowd: Crowd,
    matched: Matched,
    reach: tuple[int, int],
    scratch: Scratch,
    moments: NDArray[np.int64],
    centers: NDArray[np.int64],
    before: tuple[Sums, int, int],
) -> tuple[Sums, int, int]:
    """Add up the people from one radius on, up to another."""
    points, distances = listing
    sums, spread, rows = before
    everyone, found_in_all, refused, _, touched = sums
    for entry in range(span[0], span[1]):
        if distances[entry] < reach[0] or distances[entry] >= reach[1]:
            continue
        point = points[entry]
        for cell in range(crowd.first[point], crowd.first[point] + crowd.number[point]):
            people, key = _others(crowd, cell, own), crowd.key[cell]
            found = people if matched.found[key] else 0
            everyone += people
            found_in_all += found
            refused += people * matched.negatives[key]
            _add_moments(moments, matched.matched[key], found)
            _add_moments(centers, matched.centers[key], people)
            if found:
                touched, spread, rows = _load(matched, scratch, key, people, touched, spread, rows)
    return Sums(everyone, found_in_all, refused, 0, touched), spread, rows


@kernel
def _count_near(
    listing: tuple[NDArray[np.int64], NDArray[np.int64]],
    span: tuple[int, int],
    own: int,
    crowd: Crowd,
    matched: Matched,
    radius: int,
    near: float,
) -> int:
    """Count the people inside a radius who have matches near enough."""
    points, distances = listing
    close = 0
    for entry in range(span[0], span[1]):
        if distances[entry] < radius:
            point = points[entry]
            for cell in range(crowd.first[point], crowd.first[point] + crowd.number[point]):
                key = crowd.key[cell]
                if matched.found[key] and matched.distance[key] <= near:
                    close += _others(crowd, cell, own)
    return close


@kernel
def add_groups(
    start: NDArray[np.int64],
    points: NDArray[np.int64],
    distances: NDArray[np.int64],
    own: NDArray[np.int64],
    crowd: Crowd,
    matched: Matched,
    limits: Limits,
    scratch: Scratch,
    answer: Answer,
) -> None:
    """Add up the test groups of the complainants of a listing, for all k (rising).

    `own` is the cell of each complainant, who is not in her own group.
    """
    listing = (points, distances)
    for query in range(len(own)):
        span, self = (start[query], start[query + 1]), own[query]
        inside, spread, rows = Sums(0, 0, 0, 0, 0), 0, 0
        reached = -1
        for k in range(len(limits.radius)):
            radius, near = limits.radius[k, query], limits.near[k, query]
            up, down = limits.up[k, query], limits.down[k, query]
            moments, centers = answer.matched[k, query], answer.centers[k, query]
            if k > 0:
                # people inside stay for the larger groups
                _add_moments(moments, answer.matched[k - 1, query], 1)
                _add_moments(centers, answer.centers[k - 1, query], 1)
            inside, spread, rows = _add_inside(
                listing,
                span,
                self,
                crowd,
                matched,
                (reached, radius),
                scratch,
                moments,
                centers,
                (inside, spread, rows),
            )
            rim = _add_rim(
                listing,
                span,
                self,
                crowd,
                matched,
                radius,
                near,
                scratch,
                answer.matched_rim[k, query],
                answer.centers_rim[k, query],
            )
            close = _count_near(listing, span, self, crowd, matched, radius, near)
            answer.size[k, query] = inside.people * down + rim.people * up
            answer.weight[k, query] = inside.matched * down + rim.matched * up
            answer.near[k, query] = close * down + rim.near * up
            answer.negatives[k, query] = inside.refused * down + rim.refused * up
            answer.spread[k, query], answer.rows[k, query] = _unload_rim(
                matched, scratch, rim.touched, up / down, spread, rows
            )
            reached = radius
        for index in range(inside.touched):
            scratch.load[scratch.touched[index]] = 0
