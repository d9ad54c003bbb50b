"""A kernel that adds up what the answer needs of people's neighbourhoods.

Floats are added in the order of distance and then of points, which no thread changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mutandis.geometry.kernels.jit import kernel, part

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Group", "Held", "Listed", "People", "Room", "Sums", "add_neighbourhoods"]


class Listed(NamedTuple):
    """The points around each person who is asked about, by distance, and their groups by size."""

    person: NDArray[np.int64]
    start: NDArray[np.int64]
    points: NDArray[np.int32]
    distances: NDArray[np.int64]
    radius: NDArray[np.int64]  # a column per size
    share: NDArray[np.float64]  # of a place that each person at the radius holds


class People(NamedTuple):
    """The people on each point, what is averaged over them, and their weights of other points."""

    start: NDArray[np.int64]  # of the people on each point
    people: NDArray[np.int64]
    columns: NDArray[np.float64]  # averaged: a row per person
    squared: NDArray[np.float64]  # summed with squared weights: a row per person
    key: NDArray[np.int64]  # the row of weights of each person
    first: NDArray[np.int32]  # of each row of weights
    place: NDArray[np.int32]
    weight: NDArray[np.float64]
    metrics: NDArray[np.float64]  # by place: what squares of summed weights are multiplied by


class Held(NamedTuple):
    """Weights of a group by place; zeros before and after each person."""

    weight: NDArray[np.float64]
    known: NDArray[np.bool_]
    touched: NDArray[np.int32]  # the places that hold any
    number: NDArray[np.int64]  # and how many these are


class Group(NamedTuple):
    """Totals of a group."""

    total: NDArray[np.float64]  # a number per column
    squared: NDArray[np.float64]


class Room(NamedTuple):
    """Room to work in."""

    inside: Held
    rim: Held
    sums_inside: Group
    sums_rim: Group
    share: NDArray[np.float64]  # one number


class Sums(NamedTuple):
    """What is found, by person and size: totals of columns, and of squares."""

    total: NDArray[np.float64]
    squared: NDArray[np.float64]
    products: NDArray[np.float64]


@part
def _add_point(point: int, person: int, people: People, sums: Group, into: Held) -> None:
    """Add the people on one point: their columns, squares and weights."""
    for which in range(people.start[point], people.start[point + 1]):
        other = people.people[which]
        if other != person:
            for column in range(len(sums.squared)):
                sums.squared[column] += people.squared[other, column]
            for column in range(len(sums.total)):
                sums.total[column] += people.columns[other, column]
            row = people.key[other]
            for entry in range(people.first[row], people.first[row + 1]):
                place = people.place[entry]
                if not into.known[place]:
                    into.known[place] = True
                    into.touched[into.number[0]] = place
                    into.number[0] += 1
                into.weight[place] += people.weight[entry]


@part
def _add_squares(products: NDArray[np.float64], metrics: NDArray[np.float64], room: Room) -> None:
    """Square the summed weights of those inside, and of a share of those on the radius."""
    for number in range(room.inside.number[0]):
        place = room.inside.touched[number]
        if not room.rim.known[place]:
            square = room.inside.weight[place] * room.inside.weight[place]
            for metric in range(len(products)):
                products[metric] += metrics[place, metric] * square
    for number in range(room.rim.number[0]):
        place = room.rim.touched[number]
        weight = room.inside.weight[place] + room.share[0] * room.rim.weight[place]
        for metric in range(len(products)):
            products[metric] += metrics[place, metric] * weight * weight


@part
def _clear(held: Held, sums: Group) -> None:
    for number in range(held.number[0]):
        place = held.touched[number]
        held.weight[place] = 0.0
        held.known[place] = False
    held.number[0] = 0
    for column in range(len(sums.squared)):
        sums.squared[column] = 0.0
    for column in range(len(sums.total)):
        sums.total[column] = 0.0


@kernel
def add_neighbourhoods(listed: Listed, people: People, room: Room, sums: Sums) -> None:
    """Add up each person's neighbourhoods: all inside the radius, and a share of those on it."""
    for asked in range(len(listed.person)):
        person, entry, last = listed.person[asked], listed.start[asked], listed.start[asked + 1]
        for size in range(listed.radius.shape[1]):
            radius, share = listed.radius[asked, size], listed.share[asked, size]
            while entry < last and listed.distances[entry] < radius:
                _add_point(listed.points[entry], person, people, room.sums_inside, room.inside)
                entry += 1
            outer = entry
            while outer < last and listed.distances[outer] == radius:
                _add_point(listed.points[outer], person, people, room.sums_rim, room.rim)
                outer += 1
            room.share[0] = share
            for column in range(len(room.sums_rim.total)):
                sums.total[asked, size, column] = (
                    room.sums_inside.total[column] + share * room.sums_rim.total[column]
                )
            for column in range(len(room.sums_rim.squared)):
                sums.squared[asked, size, column] = (
                    room.sums_inside.squared[column] + share * share * room.sums_rim.squared[column]
                )
            _add_squares(sums.products[asked, size], people.metrics, room)
            _clear(room.rim, room.sums_rim)
        _clear(room.inside, room.sums_inside)
