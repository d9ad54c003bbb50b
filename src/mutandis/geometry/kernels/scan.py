"""Search by scanning one-byte coordinates: for so many dimensions that boxes prune nothing.

Every number is divided by a common quantum and rounded down to a byte; a level becomes the last
byte of its code. A block of points is laid out attribute by attribute, so that the compiler
compares dozens of points with one instruction.

*Proof of the bound.* Let b(x) = floor(x / Q). Then x/Q lies in [b(x), b(x) + 1), so
|x - q| > Q (|b(x) - b(q)| - 1). Levels with different bytes differ, and cost the mismatch m, which
is at least Q floor(m / Q). Let S be the sum of byte differences, with floor(m / Q) for each pair of
bytes of names that differ. With n numbers, a point within a radius r satisfies
r >= distance >= Q (S - n), so S <= floor(r / Q) + n. Only points that do are measured exactly.

*Squares.* Where the distance is a sum of squares, each number adds the square of
|b(x) - b(q)| - 1, or nothing if that is negative, and each pair of names that differ floor(m / Q²),
so that S <= floor(r / Q²). For a center outside the span of the points, b(q) is that of the nearest
center inside, which is nearer to all of them. The quantum leaves room for the sum in 16 bits.

*Starting radius.* A sample of the points guesses it: not a bound, so if fewer than k others turn up
within the guess, the query is marked, and asked again without one. A wrong guess costs time only.
Everything else is as in `descent.py`: the radius never falls below the k-th nearest distance.

Several queries take a block in turn, while it is in the processor's cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mutandis.geometry.kernels.bounds import least_distance, measure
from mutandis.geometry.kernels.jit import kernel, part
from mutandis.geometry.kernels.reservoir import (
    ONE_PERSON,
    Candidates,
    answer_all,
    nearest,
    people_in,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.geometry.kernels.descent import KernelQueries
    from mutandis.geometry.kernels.reservoir import Answers
    from mutandis.geometry.kernels.tree import Boxes, Exact, Grid
    from mutandis.mapped import Floats, Ints


BLOCK = 1024
"""Points in a block; known to the compiler, so that it needs no code for odd remainders."""

LARGEST_BYTE = 255

# points whose bounds are tested together before any of them is tested alone
_STRETCH = 64
# queries that take a block in turn
_TURNS = 8
FARTHEST = 65_535
"""The largest S: up to 65,535 / 255 attributes (checked by the caller)."""


class Bytes(NamedTuple):
    """Points as bytes.

    `blocks` are block x attribute x point, the last one filled up; `boxes` enclose them. The
    `sample` holds `sampled` of the points in the same layout. One step of a byte stands for
    `quantum`, and a difference in each nominal attribute adds `costs` to S. `squares` is that of
    `bounds.Costs`.
    """

    blocks: NDArray[np.uint8]
    boxes: Boxes
    sample: NDArray[np.uint8]
    sampled: int
    quantum: int
    costs: NDArray[np.uint8] | NDArray[np.uint16]
    squares: tuple[()] | tuple[int]


class Turns(NamedTuple):
    """Queries that take blocks in turn: the memory a thread works in.

    For each query a row of candidates, their number, its radius so far and the largest S within it;
    for the points of a block their S and which may be near; and the smallest S of a sample.
    """

    distances: Floats
    people: Ints
    size: Ints
    radius: Floats
    limit: Ints
    sums: NDArray[np.uint16]
    near: Ints
    smallest: NDArray[np.uint16]


def turns_for(k: int, rank: int) -> Turns:
    """Allocate for k neighbours, and a guess from this rank of the sample."""
    room = 2 * k + BLOCK + 1  # up to 2k candidates are held, and a block may add all its points
    return Turns(
        np.empty((_TURNS, room), np.float64),
        np.empty((_TURNS, room), np.int64),
        np.empty(_TURNS, np.int64),
        np.empty(_TURNS, np.float64),
        np.empty(_TURNS, np.int64),
        np.empty(BLOCK, np.uint16),
        np.empty(BLOCK + 1, np.int64),
        np.empty(max(rank, 0) + 1, np.uint16),
    )


def pack(grid: Grid, order: NDArray[np.int32], quantum: int) -> NDArray[np.uint8]:
    """Lay points out as bytes, block by block."""
    attributes = grid.coordinates.shape[1] + grid.codes.shape[1]
    packed = np.zeros(((len(order) + BLOCK - 1) // BLOCK, attributes, BLOCK), np.uint8)
    _write_bytes(grid, order, quantum, packed)
    return packed


@kernel
def _write_bytes(
    grid: Grid, order: NDArray[np.int32], quantum: int, packed: NDArray[np.uint8]
) -> None:
    numbers, names = grid.coordinates.shape[1], grid.codes.shape[1]
    for place in range(len(order)):
        point, block, within = order[place], place // BLOCK, place % BLOCK
        for number in range(numbers):
            steps = (grid.coordinates[point, number] - grid.low[number]) // quantum
            packed[block, number, within] = np.uint8(steps)
        for attribute in range(names):
            packed[block, numbers + attribute, within] = np.uint8(
                grid.codes[point, attribute] & 255
            )


@part
def _bound_block(
    block: NDArray[np.uint8],
    center: NDArray[np.uint8],
    costs: NDArray[np.uint8] | NDArray[np.uint16],
    squares: tuple[()] | tuple[int],
    sums: NDArray[np.uint16],
) -> None:
    """Compute S for every point of a block."""
    numbers = len(center) - len(costs)
    for point in range(BLOCK):
        sums[point] = 0
    for number in range(numbers):
        column, byte = block[number], center[number]
        for point in range(BLOCK):
            there = column[point]
            # in bytes: wider types would halve the points per instruction
            apart = np.uint8(max(there, byte) - min(there, byte))
            if len(squares):
                beyond = np.uint16(np.uint8(max(apart, np.uint8(1)) - np.uint8(1)))
                sums[point] += np.uint16(beyond * beyond)
            else:
                sums[point] += apart
    for attribute in range(len(costs)):
        column, byte = block[numbers + attribute], center[numbers + attribute]
        cost = costs[attribute]
        for point in range(BLOCK):
            if len(squares):
                sums[point] += cost if column[point] != byte else np.uint16(0)
            else:
                sums[point] += cost if column[point] != byte else np.uint8(0)


@part
def _collect(sums: NDArray[np.uint16], block: int, points: int, limit: int, near: Ints) -> int:
    """List the places, counted from where the block begins, whose S is within the limit."""
    found = 0
    largest = np.uint16(limit)
    for first in range(0, BLOCK, _STRETCH):
        stretch = sums[first : first + _STRETCH]
        # in 16 bits, as the sums are: wider types would cost the vector instructions
        hits = np.uint16(0)
        for point in range(_STRETCH):
            hits = np.uint16(hits + np.uint16(stretch[point] <= largest))
        if hits == 0:
            continue
        for point in range(_STRETCH):
            near[found] = block + first + point
            found += stretch[point] <= largest
    while found and near[found - 1] >= points:  # what fills up the last block
        found -= 1
    return found


@part
def _guess(
    packed: Bytes,
    center: NDArray[np.uint8],
    rank: int,
    sums: NDArray[np.uint16],
    smallest: NDArray[np.uint16],
) -> float:
    """Guess a radius: what the sample's point of this rank may be away at most."""
    size = 0
    for block in range(len(packed.sample)):
        _bound_block(packed.sample[block], center, packed.costs, packed.squares, sums)
        for point in range(min(BLOCK, packed.sampled - block * BLOCK)):
            here = sums[point]
            if size <= rank or here < smallest[rank]:
                # insert it among the smallest so far, which are in rising order
                place = min(size, rank)
                while place > 0 and smallest[place - 1] > here:
                    smallest[place] = smallest[place - 1]
                    place -= 1
                smallest[place] = here
                size = min(size + 1, rank + 1)
    names = len(packed.costs)
    numbers, found = len(center) - names, np.int64(smallest[rank])
    if len(packed.squares):
        # each number differs by less than its part of S, in bytes, and two
        steps: float = np.sqrt(float(found)) + 2.0 * np.sqrt(float(numbers))
        return (steps * steps + names) * packed.quantum * packed.quantum
    return float((found + numbers) * packed.quantum)


@part
def _limit(radius: float, packed: Bytes, numbers: int) -> int:
    """Bound the S of a point within the radius."""
    quantum, more = packed.quantum, numbers
    if len(packed.squares):
        quantum, more = quantum * quantum, 0
    if radius >= float(FARTHEST) * quantum:
        return FARTHEST
    return min(int(radius) // quantum + more, FARTHEST)


@part
def _candidates(turns: Turns, turn: int) -> Candidates:
    return Candidates(turns.distances[turn], turns.people[turn])


@part
def _take_up(
    exact: Exact, centers: KernelQueries, query: int, found: int, turns: Turns, turn: int
) -> None:
    """Measure what a block has near, and keep what is within the radius."""
    size = turns.size[turn]
    center, own = centers.values[query], centers.own[query]
    for index in range(found):
        place = turns.near[index]
        distance = measure(exact.points, place, center, exact.costs)
        others = exact.crowd[place] - centers.oneself[query] * (place == own)
        turns.distances[turn, size] = distance
        turns.people[turn, size] = others
        size += (distance <= turns.radius[turn]) & (others >= ONE_PERSON)
    turns.size[turn] = size


@part
def _visit(
    packed: Bytes,
    block: int,
    exact: Exact,
    centers: KernelQueries,
    query: int,
    bytes_of: NDArray[np.uint8],
    turns: Turns,
    turn: int,
    most: int,
) -> int:
    """Let one query take one block; count the points that had to be measured."""
    center, slants, bits = centers.values[query], centers.slants[query], centers.bits[query]
    radius = turns.radius[turn]
    if least_distance(packed.boxes, block, exact.costs, center, slants, bits, radius) > radius:
        return 0
    _bound_block(packed.blocks[block], bytes_of[query], packed.costs, packed.squares, turns.sums)
    first = block * BLOCK
    found = _collect(turns.sums, first, len(exact.points), turns.limit[turn], turns.near)
    _take_up(exact, centers, query, found, turns, turn)
    if turns.size[turn] >= 2 * most:
        radius, _, _, size = nearest(_candidates(turns, turn), turns.size[turn], most)
        turns.radius[turn], turns.size[turn] = radius, size
        turns.limit[turn] = _limit(radius, packed, len(center) - len(packed.costs))
    return found


@kernel
def scan_blocks(
    packed: Bytes,
    exact: Exact,
    centers: KernelQueries,
    bytes_of: NDArray[np.uint8],
    ks: Ints,
    rank: int,
    turns: Turns,
    answers: Answers,
) -> int:
    """Answer queries for all ks (rising); a radius of -1 marks those whose guess was too small.

    The point of the sample with this rank (from 0) guesses the radius; -1 for no guess. The result
    is how many points were measured exactly.
    """
    numbers, most = centers.values.shape[1] - len(packed.costs), ks[-1]
    measured = 0
    for begin in range(0, len(centers.values), _TURNS):
        taking = min(_TURNS, len(centers.values) - begin)
        for turn in range(taking):
            turns.size[turn], turns.radius[turn] = 0, np.inf
            if rank >= 0:
                turns.radius[turn] = _guess(
                    packed, bytes_of[begin + turn], rank, turns.sums, turns.smallest
                )
            turns.limit[turn] = _limit(turns.radius[turn], packed, numbers)
        for block in range(len(packed.blocks)):
            for turn in range(taking):
                measured += _visit(
                    packed, block, exact, centers, begin + turn, bytes_of, turns, turn, most
                )
        for turn in range(taking):
            candidates = _candidates(turns, turn)
            if people_in(candidates, turns.size[turn]) >= most:
                answer_all(candidates, turns.size[turn], ks, answers, begin + turn)
            else:
                answers.radius[begin + turn, 0] = -1
    return measured
