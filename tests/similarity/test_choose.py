"""The choice of the backend: where each is used, and that it changes nothing."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from mutandis.similarity import (
    BruteSearch,
    Metric,
    Neighbourhoods,
    Points,
    Queries,
    Space,
    choose_search,
    find_neighbourhoods,
)
from mutandis.similarity.tree import tree_dimensions


def space_with(numbers: int, levels: list[int], *, size: int = 90) -> Space:
    """Make a space of so many coordinates, and of names with so many levels each."""
    rng = np.random.default_rng(numbers + sum(levels))
    codes = [np.append(rng.integers(0, count, size - 1), count - 1) for count in levels]
    points = Points(
        coordinates=rng.integers(0, 9, (size, numbers)),
        codes=np.array(codes, dtype=np.int32).reshape(len(levels), size).T,
    )
    metric = Metric(mismatch=np.full(len(levels), 8), unit=8.0)
    return Space.of(points, rng.random(size) < 0.5, metric)[0]


@pytest.mark.parametrize(
    ("numbers", "levels", "dimensions", "name"),
    [
        (2, [], 2, "tree"),
        (0, [3, 2], 5, "tree"),
        (3, [37], 40, "tree"),
        (3, [38], 41, "brute"),
        (2, [70], 72, "brute"),
        (0, [], 0, "brute"),
    ],
)
def test_the_tree_serves_few_dimensions(
    numbers: int, levels: list[int], dimensions: int, name: str
) -> None:
    space = space_with(numbers, levels)
    assert tree_dimensions(space.points) == dimensions
    search = choose_search(space, threads=1)
    assert search.name == name
    queries = Queries.outside(space.points)
    ks = [1, 40, int(space.counts.sum())]
    found = find_neighbourhoods(search, queries, ks)
    expected = BruteSearch(space=space).neighbourhoods(queries, ks)
    for part in fields(Neighbourhoods):
        np.testing.assert_array_equal(getattr(found, part.name), getattr(expected, part.name))


def test_where_nothing_varies_everybody_is_on_the_rim() -> None:
    space = space_with(0, [], size=12)
    found = find_neighbourhoods(choose_search(space), Queries.outside(space.points), [1, 12])
    assert found.radius.tolist() == [[0, 0]]
    assert found.rim.tolist() == [[12, 12]]
