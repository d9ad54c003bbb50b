"""Shared neighbours: how far many tests are one test."""

from __future__ import annotations

from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import PlanError


def audit(positions: Any, *, k: int = 2, **options: Any) -> mm.Audit:
    women = len(positions)
    table = pd.DataFrame(
        {
            "sex": ["f"] * women + ["m"] * women,
            "score": [*positions, *positions],
            "granted": [n % 2 for n in range(2 * women)],
        }
    )
    return mm.audit(
        table,
        outcome="granted",
        negative=0,
        protected=mm.Protection("sex", value="f", reference="m"),
        attributes={"score": "continuous"},
        ks=(k,),
        **options,
    )


def test_overlap_by_hand() -> None:
    # groups of the two nearest others: 0 → {1, 2}, 1 → {0, 2}, 2 → {1, and 0 or 4 in halves},
    # 4 → {2, 1}; far away 100 → {101, 103}, 101 → {100, 103}, 103 → {101, 100}
    found = audit([0, 1, 2, 4, 100, 101, 103])
    case = [found.case(n).groups("st", k=2).control for n in range(7)]
    places = [dict(zip(c.ids.tolist(), c.place.tolist(), strict=True)) for c in case]
    assert places[2] == {1: 1.0, 0: 0.5, 3: 0.5}
    expected = [
        sum(min(place, other.get(who, 0)) for who, place in one.items()) / 2
        for one, other in combinations(places, 2)
    ]
    assert expected[0] == 0.5  # {1, 2} and {0, 2}
    shared = found.shared_neighbours(k=2)
    assert shared.mean_overlap == pytest.approx(np.mean(expected))
    assert shared.effective == pytest.approx(7 / (1 + 6 * np.mean(expected)))
    assert shared.complainants == 7


def test_people_who_are_alike_share_everybody() -> None:
    shared = audit([5.0] * 20 + [6.0], k=15).shared_neighbours()
    assert shared.strong
    assert shared.mean_overlap > 0.9
    assert shared.effective < 1.2
    assert "not counts of independent findings" in shared.sentence()


def test_people_far_apart_share_nobody() -> None:
    pairs = np.repeat(np.arange(60) * 100.0, 2) + np.tile([0.0, 1.0], 60)
    shared = audit(pairs, k=1).shared_neighbours()
    assert shared.mean_overlap == 0
    assert shared.effective == 120
    assert not shared.strong
    assert "depend on each other little" in shared.sentence()


def test_a_sample_stands_for_many() -> None:
    rng = np.random.default_rng(0)
    many = audit(rng.random(1500), k=30).shared_neighbours()
    # two of n complainants on a line share about k/n of their places
    assert many.mean_overlap == pytest.approx(30 / 1500, rel=0.3)


def in_another_order(table: pd.DataFrame, seed: int, **options: Any) -> Any:
    shuffled = table.sample(frac=1, random_state=seed)
    return mm.audit(shuffled, **options).shared_neighbours()


@pytest.mark.parametrize(
    "options", [{}, {"ties": "all"}, {"max_distance": 0.05}], ids=["fair", "all", "caliper"]
)
@pytest.mark.parametrize("women", [60, 700])
@pytest.mark.few("60-caliper", "60-all", "60-fair")
def test_sorting_the_table_in_another_way_changes_nothing(
    women: int, options: dict[str, Any]
) -> None:
    rng = np.random.default_rng(2)
    size = 2 * women
    # crowded on the left and sparse on the right, with many who stand on the same point
    score = np.where(rng.random(size) < 0.5, rng.integers(0, 5, size), rng.integers(5, 500, size))
    table = pd.DataFrame(
        {
            "sex": rng.choice(["f", "g", "m"], size),
            "score": score,
            "job": rng.choice(["cook", "clerk"], size),
            "granted": rng.integers(0, 2, size),
        }
    )
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": 0,
        "protected": mm.Protection("sex", reference="m"),
        "attributes": {"score": "continuous", "job": "nominal"},
        "ks": (4, 9),
        "similarity": mm.Similarity(**options),
    }
    found = [in_another_order(table, seed, **settings) for seed in range(4)]
    assert found[0].mean_overlap > 0
    # to the last bit: the sample is chosen, and sums are made, without a look at the rows
    assert all(each == found[0] for each in found)


def test_the_sample_is_evenly_spaced_by_radius() -> None:
    score = np.random.default_rng(8).lognormal(0, 2, 500)
    apart = np.abs(score[:, None] - score)
    np.fill_diagonal(apart, np.inf)
    nearest = np.argsort(apart, axis=1)[:, :9]
    by_radius = np.lexsort((score, np.sort(apart, axis=1)[:, 8]))
    chosen = by_radius[(np.arange(200) * 499 / 199).astype(int)]
    groups = [set(nearest[one].tolist()) for one in chosen]
    expected = np.mean([len(one & other) / 9 for one, other in combinations(groups, 2)])
    assert audit(score, k=9).shared_neighbours().mean_overlap == pytest.approx(expected, rel=1e-12)


def test_many_people_on_few_points_take_no_time() -> None:
    started = perf_counter()
    shared = audit(np.repeat([0.0, 1.0], 25_000), k=15).shared_neighbours()
    assert perf_counter() - started < 20
    # half of all pairs stand on the same point, where the 15 places are shared by 24,999
    assert shared.mean_overlap == pytest.approx(0.5, rel=0.02)


def test_against_a_listing_of_all_members() -> None:
    rng = np.random.default_rng(6)
    found = audit(rng.integers(0, 30, 50), k=7)
    places = []
    for complainant in found.findings("st", k=7)["id"]:
        members = found.case(complainant).groups("st", k=7).control
        places.append(dict(zip(members.ids.tolist(), members.place.tolist(), strict=True)))
    expected = [
        sum(min(place, other.get(who, 0)) for who, place in one.items()) / 7
        for one, other in combinations(places, 2)
    ]
    assert found.shared_neighbours().mean_overlap == pytest.approx(np.mean(expected))


def test_what_cannot_be_measured() -> None:
    found = audit([0, 1, 2, 4])
    with pytest.raises(PlanError, match="k=9 was not run"):
        found.shared_neighbours(k=9)
    only = audit(
        [0, 1, 2, 4],
        counterfactuals=pd.DataFrame({"score": [0, 1, 2, 4] * 2, "granted": [1] * 8}),
        methods=("cf",),
    )
    with pytest.raises(PlanError, match="no control groups"):
        only.shared_neighbours(k=2)


def test_multiple_discrimination_averages_over_its_parts() -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], 80),
            "race": rng.choice(["x", "y"], 80),
            "score": rng.integers(0, 9, 80),
            "granted": rng.integers(0, 2, 80),
        }
    )
    found = mm.audit(
        table,
        outcome="granted",
        negative=0,
        protected=[
            mm.Protection("sex", value="f", reference="m"),
            mm.Protection("race", value="x", reference="y"),
        ],
        combine="multiple",
        attributes={"score": "continuous"},
        ks=(3,),
    )
    parts = [found.part(name).shared_neighbours() for name in ("sex", "race")]
    assert found.shared_neighbours().complainants == parts[0].complainants > 0
    mean = (parts[0].mean_overlap + parts[1].mean_overlap) / 2
    assert found.shared_neighbours().mean_overlap == pytest.approx(mean)
