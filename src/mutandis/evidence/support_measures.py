"""Support: whether there is anyone to compare with, and how comparable they are.

A group of the k nearest always exists, however far away its people are. These measures say how far
that is. They inform and decide nothing: only a caliper (`max_distance`) and `min_group`, both
chosen before the run, make a verdict insufficient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Numbers
from mutandis.evidence.support import Balance, Reach
from mutandis.search.choose import choose_search
from mutandis.search.engine import Queries, Space, find_neighbourhoods

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.attribute import Attribute
    from mutandis.data.columns import Column
    from mutandis.data.population import Population
    from mutandis.evidence.case import GroupMembers, Members
    from mutandis.evidence.groups import NearestGroups
    from mutandis.search.distance import Metric, Points
    from mutandis.search.embedding import Embedding

__all__ = ["balance_of", "measure_reach", "outside_range", "typical_radii"]

# so many people of a space stand for all of it
SAMPLE = 200
_PERCENTILES = (50, 95, 99)


def typical_radii(
    points: Points, metric: Metric, k: int, *, threads: int = -1
) -> NDArray[np.float64]:
    """Give the distance of the k-th nearest other for a sample of the people of a space.

    At most 200 are taken, evenly spaced in the order of their attributes: the same people, however
    the file is sorted. Empty where nobody has k others.

    Examples
    --------
    >>> from mutandis.search.distance import Metric, Points
    >>> line = Points(coordinates=np.array([[0], [1], [3]]), codes=np.empty((3, 0), np.int32))
    >>> metric = Metric(mismatch=np.empty(0, dtype=np.int64), unit=1.0)
    >>> typical_radii(line, metric, 1).tolist()
    [1.0, 1.0, 2.0]
    """
    size = len(points)
    if k >= size:
        return np.empty(0)
    order = np.lexsort([*points.codes.T[::-1], *points.coordinates.T[::-1], np.zeros(size)])
    sample = order[np.arange(min(size, SAMPLE)) * size // min(size, SAMPLE)]
    nobody = np.zeros(size, dtype=np.bool_)  # outcomes have no part in a distance
    space, standing = Space.of(points, nobody, metric)
    queries = Queries(points=points.take(sample), own=standing[sample], own_negative=nobody[sample])
    found = find_neighbourhoods(choose_search(space, threads=threads), queries, (k,))
    return metric.as_float(found.radius[:, 0])


def measure_reach(nearest: NearestGroups, index: int, *, threads: int = -1) -> Reach:
    """Compare the radius of each group at the index-th k with what is usual in its space."""
    usual = np.full((len(nearest.spaces), len(_PERCENTILES)), np.nan)
    for space, rows in enumerate(nearest.spaces):
        k = _places(nearest, index, space)
        radii = typical_radii(nearest.points.take(rows), nearest.metric, k, threads=threads)
        if len(radii):
            usual[space] = np.percentile(radii, _PERCENTILES)
    typical, large, limit = usual[nearest.space_of].T
    radius = nearest.metric.as_float(nearest.found.radius[:, index]) + nearest.overflow_distance
    return Reach(radius=radius, typical=typical, large=large, limit=limit)


def _places(nearest: NearestGroups, index: int, space: int) -> int:
    """Give how many people a group takes in a space: k, unless groups have equal mass."""
    if nearest.places is None:
        return nearest.ks[index]
    return int(nearest.places[np.flatnonzero(nearest.space_of == space)[0], index])


def outside_range(nearest: NearestGroups, embedding: Embedding) -> dict[str, NDArray[np.bool_]]:
    """Tell, by attribute, which search centers no person of the search space reaches.

    For attributes with an order: below the smallest or above the largest value there. For nominal
    ones: at a level that nobody there has. Compared on exact coordinates, so that rounding puts
    nobody outside.
    """
    centers = nearest.centers
    outside = {
        name: np.zeros(len(centers), dtype=np.bool_)
        for name in (*(axis.name for axis in embedding.axes), *embedding.nominal)
    }
    for space, rows in enumerate(nearest.spaces):
        mine = np.flatnonzero(nearest.space_of == space)
        there, here = nearest.points.take(rows), centers.take(mine)
        for place, axis in enumerate(embedding.axes):
            values, column = here.coordinates[:, place], there.coordinates[:, place]
            outside[axis.name][mine] = (values < column.min()) | (values > column.max())
        for place, name in enumerate(embedding.nominal):
            known = np.unique(there.codes[:, place])
            outside[name][mine] = ~np.isin(here.codes[:, place], known)
    return outside


def balance_of(
    attributes: Sequence[Attribute],
    population: Population,
    groups: GroupMembers,
    *,
    control_center: tuple[Population, int],
    test_center: tuple[Population, int],
) -> Balance:
    """Compare both search centers with the people around them, attribute by attribute.

    Parameters
    ----------
    attributes, population
        What is compared, and D, in whose standard deviations differences are given.
    groups
        The people in both groups; search centers among them are left out.
    control_center, test_center
        The table and the row in which each search center is found.
    """
    return Balance(
        control=_balance(attributes, population, groups.control, *control_center),
        test=_balance(attributes, population, groups.test, *test_center),
    )


def _balance(
    attributes: Sequence[Attribute],
    population: Population,
    members: Members,
    world: Population,
    row: int,
) -> Mapping[str, float]:
    people = ~members.is_center
    rows = _rows_of(population, members.ids[people])
    place = members.place[people]
    found = {}
    for attribute in attributes:
        everyone = _numbers(population.columns[attribute.name])
        center = float(_numbers(world.columns[attribute.name])[row])
        if attribute.kind is AttributeKind.NOMINAL:
            # the indicator of the center's own level
            everyone, center = (everyone == center).astype(np.float64), 1.0
        spread = float(everyone.std())
        if not len(rows) or spread == 0:
            found[attribute.name] = float("nan")
            continue
        mean = float(np.average(everyone[rows], weights=place))
        found[attribute.name] = (center - mean) / spread
    return found


def _rows_of(population: Population, ids: NDArray[np.generic]) -> NDArray[np.intp]:
    rows = np.flatnonzero(np.isin(population.ids, ids))
    place = dict(zip(population.ids[rows].tolist(), rows, strict=True))
    return np.array([place[each] for each in ids.tolist()], dtype=np.intp)


def _numbers(column: Column) -> NDArray[np.float64]:
    """Give a column's numbers, or its codes, which are ranks where the attribute is ordinal."""
    return column.values if isinstance(column, Numbers) else column.codes.astype(np.float64)
