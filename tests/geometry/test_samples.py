"""Samples of a space: ranks beside a whole sort, and who is near beside measuring everyone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.geometry import samples
from mutandis.geometry.metric import Metric, Points
from mutandis.geometry.samples import SortedPoints, rows_at_ranks
from tests.oracle import measure


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from([0.5, -1.0, 2.0, float("nan")]),
            st.integers(0, 2),
            st.sampled_from(["a", "b"]),
        ),
        min_size=1,
        max_size=40,
    ),
    data=st.data(),
)
def test_rows_at_ranks_are_those_of_a_whole_sort(
    rows: list[tuple[float, int, str]], data: st.DataObject
) -> None:
    keys = [np.array(column) for column in zip(*rows, strict=True)]
    ranks = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1)))
    found = rows_at_ranks(keys, ranks)
    assert found.tolist() == np.lexsort(keys[::-1])[ranks].tolist()
    assert rows_at_ranks([], ranks).tolist() == ranks.tolist()
    # the last keys asked for where they are needed alone
    later = rows_at_ranks(keys[:1], ranks, further=lambda some: [key[some] for key in keys[1:]])
    assert later.tolist() == found.tolist()


def made(size: int, numbers: int, names: int, *, seed: int, few: bool) -> Points:
    rng = np.random.default_rng(seed)
    coordinates = rng.integers(0, 6 if few else 10**6, (size, numbers))
    return Points(
        coordinates=coordinates.astype(np.int64),
        codes=rng.integers(0, 3, (size, names)).astype(np.int32),
    )


@pytest.mark.parametrize("few", [False, True], ids=["apart", "tied"])
@pytest.mark.parametrize("kind", ["plain", "squared", "missing"])
@pytest.mark.parametrize(
    ("numbers", "names"),
    [(1, 0), (4, 0), (3, 2), (0, 2), (0, 0)],
    ids=["one", "numbers", "mixed", "names", "none"],
)
def test_who_is_near_is_who_is_measured_to_be(
    numbers: int, names: int, kind: str, *, few: bool
) -> None:
    size = 260
    points = made(size, numbers, names, seed=numbers + names, few=few)
    cost = np.array([3, 400_000][:names], dtype=np.int64)
    metric = Metric(mismatch=cost, unit=1.0, squared=kind == "squared")
    if kind == "missing":
        metric = replace(metric, missing=np.full(names, 2, dtype=np.int32))
    found = SortedPoints.of(points, metric)
    assert sorted(found.order.tolist()) == list(range(size))
    where = np.argsort(found.order)
    for one in (0, 17, 259):
        distances = [measure(points, metric, one, other) for other in range(size)]
        others = sorted(distances[:one] + distances[one + 1 :])
        for k in (1, 9, 11, 200, 259):
            assert found.radius(int(where[one]), k) == others[k - 1]
        for limit in (-1, 0, others[30], others[-1]):
            places, measured = found.within(points.take(np.array([one])), limit)
            listed = dict(zip(found.order[places].tolist(), measured.tolist(), strict=True))
            assert listed == {row: d for row, d in enumerate(distances) if d <= limit}
        alone = points.take(np.array([one]))
        assert metric.from_center(alone, points).tolist() == distances


@pytest.mark.parametrize("most", [1, 4, 40])
def test_names_and_coordinates_without_room_in_cells_still_count(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(samples, "_MOST_CELLS", most)
    points = made(300, 3, 2, seed=8, few=False)
    metric = Metric(mismatch=np.array([50_000, 400_000]), unit=1.0)
    found = SortedPoints.of(points, metric)
    assert len(found.codes) <= most
    where = np.argsort(found.order)
    for one in range(0, 300, 23):
        distances = metric.from_center(points.take(np.array([one])), points)
        others = np.sort(np.delete(distances, one))
        for k in (1, 12, 100):
            assert found.radius(int(where[one]), k) == others[k - 1]
