"""Slow, independent implementations: loops and fractions, one person at a time.

People are tuples of cells. Rows are positions, and a group is the places that rows hold in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.engine.tally import Sums
    from mutandis.geometry.cells import NearbySearch
    from mutandis.geometry.index import Listing, Queries, Search
    from mutandis.geometry.metric import Metric, Points

Row = tuple[Any, ...]
Places = dict[int, Fraction]
# "continuous", "nominal", or the levels of an ordinal attribute from the lowest to the highest
Kind = str | tuple[Any, ...]
World = list[tuple[Row, Fraction]]
MATCHES = 5


# --- distances ------------------------------------------------------------------------------------


def exact(cell: Any) -> Fraction:
    """Return the decimal that a cell shows."""
    # a fraction of the bits of 0.1 equals 0.1, and must not answer for the decimal in the cache
    return cell if isinstance(cell, Fraction) else _decimal(cell)


@cache
def _decimal(cell: Any) -> Fraction:
    return Fraction(str(cell))


class Gower:
    """Weighted mean of differences, each divided by the range of its attribute."""

    def __init__(
        self, rows: Sequence[Row], kinds: Sequence[Kind], weights: Sequence[Any] | None = None
    ) -> None:
        self.rows, self.kinds = rows, kinds
        self.weights = [exact(each) for each in weights or [1] * len(kinds)]
        self.spans = [self._span(place) for place in range(len(kinds))]
        self._known: dict[tuple[Row, Row], Fraction] = {}  # on a grid, many rows are equal

    def _span(self, place: int) -> Fraction:
        cells = {row[place] for row in self.rows}
        kind = self.kinds[place]
        if len(cells) == 1:
            return Fraction(0)
        if kind == "continuous":
            return max(map(exact, cells)) - min(map(exact, cells))
        return Fraction(1 if kind == "nominal" else len(kind) - 1)

    def number(self, place: int, cell: Any) -> Fraction:
        """Return a number as it is, and a level as its rank."""
        kind = self.kinds[place]
        if isinstance(kind, tuple) and not isinstance(cell, Fraction):
            return Fraction(kind.index(cell))
        return exact(cell)

    def __call__(self, here: Row, there: Row) -> Fraction:
        """Return the distance between two rows of cells; constant attributes add nothing."""
        if (here, there) not in self._known:
            total = Fraction(0)
            for place, span in enumerate(self.spans):
                one, other = here[place], there[place]
                if not span:
                    continue
                if self.kinds[place] == "nominal":
                    apart = Fraction(one != other)
                else:
                    apart = abs(self.number(place, one) - self.number(place, other)) / span
                total += self.weights[place] * apart
            self._known[here, there] = total / sum(self.weights)
        return self._known[here, there]

    def among(self, center: Row, space: Sequence[int]) -> dict[int, Fraction]:
        """Return the distance of every row of a space."""
        return {row: self(center, self.rows[row]) for row in space}


# --- groups ---------------------------------------------------------------------------------------


def radius_of(apart: Mapping[int, Fraction], k: int) -> Fraction:
    """Return the distance of the k-th nearest row."""
    return sorted(apart.values())[k - 1]


def nearest(
    apart: Mapping[int, Fraction], k: int, *, ties: str = "fair", caliper: Fraction | None = None
) -> Places:
    """Return the places of the k nearest rows; rows at the same distance share the last ones."""
    radius = radius_of(apart, k)
    if caliper is not None and radius > caliper:
        return {row: Fraction(1) for row in apart if apart[row] <= caliper}
    inside = [row for row in apart if apart[row] < radius]
    rim = [row for row in apart if apart[row] == radius]
    place = Fraction(1) if ties == "all" else Fraction(k - len(inside), len(rim))
    return dict.fromkeys(inside, Fraction(1)) | dict.fromkeys(rim, place)


def total(places: Places) -> Fraction:
    """Return how many people a group counts as."""
    return sum(places.values(), Fraction(0))


def marked(places: Places, marks: Sequence[Any]) -> Fraction:
    """Return the places that marked rows hold."""
    return sum((place for row, place in places.items() if marks[row]), Fraction(0))


def share(places: Places, marks: Sequence[Any]) -> Fraction | None:
    """Return the share of marked rows; None in an empty group."""
    return marked(places, marks) / total(places) if places else None


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A complainant's control group and its matches, and the reason not to compare them."""

    control: Places
    test: Places
    filled: Fraction
    unfit: int | str

    @property
    def n_effective(self) -> Fraction:
        """The number of people that the test group is worth."""
        return self.filled**2 / sum(weight**2 for weight in self.test.values())


@dataclass(kw_only=True)
class Matched:
    """The matched comparison: w_j = Σ_i u_i s_ij over the control group and the matches of each.

    `world` returns the counterfactual rows of a person, with weights that add up to one.
    """

    distance: Gower
    world: Callable[[int], World]
    ties: str = "fair"
    caliper: Fraction | None = None
    _known: dict[int, tuple[Places, Fraction] | None] = field(default_factory=dict)

    def group(self, center: Row, space: Sequence[int], k: int) -> Places:
        """Return the group around a center."""
        apart = self.distance.among(center, space)
        return nearest(apart, k, ties=self.ties, caliper=self.caliper)

    def matches(self, person: int, test: Sequence[int]) -> tuple[Places, Fraction] | None:
        """Return a person's matches and their mean distance; None if a world has no match."""
        if person not in self._known:
            self._known[person] = self._match(person, test)
        return self._known[person]

    def _match(self, person: int, test: Sequence[int]) -> tuple[Places, Fraction] | None:
        whole: Places = {}
        apart = Fraction(0)
        for cells, weight in self.world(person):
            found = self.group(cells, test, min(MATCHES, len(test)))
            if not found:
                return None
            for row, place in found.items():
                held = weight * place / total(found)
                whole[row] = whole.get(row, Fraction(0)) + held
                apart += held * self.distance(cells, self.distance.rows[row])
        return whole, apart

    def compare(self, person: int, control: Sequence[int], test: Sequence[int], k: int) -> Compared:
        """Compare a complainant's k nearest rows with their matches."""
        others = self.distance.among(
            self.distance.rows[person], [row for row in control if row != person]
        )
        members = nearest(others, k, ties=self.ties, caliper=self.caliper)
        radius = radius_of(others, k)
        if self.caliper is not None:
            radius = min(radius, self.caliper)
        weights: Places = {}
        filled = near = Fraction(0)
        for row, place in members.items():
            known = self.matches(row, test)
            if known is None:
                continue
            filled += place
            near += place * (known[1] <= radius)
            for other, part in known[0].items():
                weights[other] = weights.get(other, Fraction(0)) + place * part
        is_far = not filled or 2 * near < total(members)
        unfit = "far" if is_far else self._imbalance(members, weights, filled)
        return Compared(control=members, test=weights, filled=filled, unfit=unfit)

    def _imbalance(self, members: Places, weights: Places, filled: Fraction) -> int | str:
        """Return the attribute whose averages differ most, of those that differ too much."""
        size = total(members)
        sides = (
            [(weight / filled, self.distance.rows[row]) for row, weight in weights.items()],
            [
                (place / size * weight, cells)
                for row, place in members.items()
                for cells, weight in self.world(row)
            ],
        )
        worst = Fraction(1)
        answer: int | str = ""
        for place, kind in enumerate(self.distance.kinds):
            is_nominal = kind == "nominal"
            for level in {row[place] for side in sides for _, row in side} if is_nominal else {0}:
                excess = self._excess(sides, place, level, min(Fraction(1, 16), 4 / size))
                if self.distance.spans[place] and excess > worst:
                    worst, answer = excess, place
        return answer

    def _excess(self, sides: Any, place: int, level: Any, allowed: Fraction) -> Fraction:
        means, spread = [], Fraction(0)
        for side in sides:
            values = [
                (
                    weight,
                    Fraction(row[place] == level)
                    if self.distance.kinds[place] == "nominal"
                    else self.distance.number(place, row[place]),
                )
                for weight, row in side
            ]
            means.append(sum(weight * x for weight, x in values))
            spread += sum(weight * x * x for weight, x in values) - means[-1] ** 2
        shift = means[0] - means[1]
        if not shift or not spread:
            return Fraction(10**9 if shift else 0)
        return Fraction(shift**2 / (allowed * spread / 2))


# --- tests ----------------------------------------------------------------------------------------


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return the q-values, from the largest p-value down."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    smallest, found = 1.0, [1.0] * len(p_values)
    for rank in range(len(order), 0, -1):
        smallest = min(smallest, p_values[order[rank - 1]] * len(order) / rank)
        found[order[rank - 1]] = smallest
    return found


def fractions(sums: Sums) -> list[Fraction | None]:
    """Return the share of the first mark in each group; None in an empty group."""
    found: list[Fraction | None] = []
    for up, size, split in zip(sums.marks[:, 0], sums.places, sums.parts[:, 0], strict=True):
        whole = int(size) * int(split)
        found.append(Fraction(int(up), whole) if whole else None)
    return found


# --- searches -------------------------------------------------------------------------------------


def measure(points: Points, metric: Metric, one: int, other: int) -> int:
    """Return the integer distance of two points, number by number and name by name."""
    apart = 0
    for x, y in zip(points.coordinates[one], points.coordinates[other], strict=True):
        apart += (int(x) - int(y)) ** 2 if metric.squared else abs(int(x) - int(y))
    missing = [-1] * len(metric.mismatch) if metric.missing is None else metric.missing.tolist()
    for place, cost in enumerate(metric.mismatch.tolist()):
        here, there = int(points.codes[one, place]), int(points.codes[other, place])
        apart += cost if here != there or here == missing[place] else 0
    return apart


def list_near(
    search: Search | NearbySearch, queries: Queries, limits: NDArray[np.int64], rows: Any
) -> dict[int, list[tuple[int, int]]]:
    """Visit all queries once; return the points within each limit with their distances, sorted."""
    found: dict[int, list[tuple[int, int]]] = {}

    def use(chosen: NDArray[np.intp], listing: Listing) -> None:
        for place, query in enumerate(chosen.tolist()):
            assert query not in found
            part = listing.part(slice(place, place + 1))
            found[query] = sorted(zip(part.points.tolist(), part.distances.tolist(), strict=True))

    search.visit(queries, limits, np.broadcast_to(rows, len(queries)), use)
    assert sorted(found) == list(range(len(queries)))
    return found


def assert_equal_fields(found: Any, expected: Any, *, what: str = "") -> None:
    """Compare the arrays of two dataclasses, to the last bit."""
    for each in fields(expected):
        np.testing.assert_array_equal(
            getattr(found, each.name), getattr(expected, each.name), err_msg=f"{what} {each.name}"
        )


# --- fits -----------------------------------------------------------------------------------------


def newton_step(
    function: Callable[[NDArray[np.float64]], float], point: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how far a function's maximum is from a point, by derivatives as differences.

    Another library's optimum depends on where its iterations stop, and that on the processor. Its
    likelihood does not, so a fit is compared with the maximum of the likelihood itself.
    """
    size, width = len(point), 1e-4
    units = width * np.eye(size)
    gradient = np.array([(function(point + u) - function(point - u)) for u in units])
    hessian = np.empty((size, size))
    for one in range(size):
        for other in range(size):
            signs = [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]
            hessian[one, other] = sum(
                sign * function(point + 50 * (first * units[one] + second * units[other]))
                for first, second, sign in signs
            )
    curvature = -hessian / (4 * (50 * width) ** 2)
    step: Any = np.linalg.solve(curvature, gradient / (2 * width))
    assert (np.linalg.eigvalsh(hessian) < 0).all(), "the function has no maximum near here"
    return np.asarray(step, dtype=np.float64)
