"""Relabelled outcomes are columns of marks: the same groups, other sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.auditing.run import study_of
from mutandis.engine.engine import Engine
from mutandis.engine.study import World
from mutandis.errors import PlanError


def plan(**similarity: Any) -> mm.Plan:
    rng = np.random.default_rng(4)
    woman, x = rng.random(200) < 0.4, rng.integers(0, 30, 200).astype(float)
    job = rng.choice(["a", "b"], 200)
    return mm.plan(
        {"woman": woman, "x": x, "job": job, "no": rng.random(200) < 0.5},
        outcome="no",
        negative=True,
        protected=mm.Protection("woman", value=True, reference=False),
        attributes={"x": "continuous", "job": "nominal"},
        counterfactuals={"x": x + woman, "job": np.where(woman, "a", job)},
        methods=["st", "cst_without", "cst_matched"],
        similarity=mm.Similarity(**similarity),
        ks=(5, 15),
    )


@pytest.mark.parametrize("similarity", [{}, {"max_distance": 0.05}], ids=["nearest", "caliper"])
def test_marks_are_summed_over_the_groups_of_the_record(similarity: dict[str, Any]) -> None:
    made = plan(**similarity)
    study, rng = study_of(made), np.random.default_rng(1)
    assert made.counterfactuals is not None
    world = World(point=made.counterfactuals.population)
    changed, points = rng.random(200) < 0.3, rng.integers(0, 9, 200)
    who, engine = study.people[::3], Engine(study, threads=1)

    def tally(engine: Engine, **options: Any) -> Any:
        (found,) = engine.tallies([world], made.methods, who=who, **options)
        return found

    before = tally(engine)
    relabelled = tally(engine, marks=changed)
    both = tally(engine, marks=np.column_stack([changed, points]))
    expected = tally(Engine(replace(study, outcomes=changed), threads=1))
    for method in made.methods:
        for index in range(2):
            wanted, found, wide = (each.at(method, index) for each in (expected, relabelled, both))
            for side in ("control", "test"):
                group, mine, other = (getattr(each, side) for each in (wanted, found, wide))
                assert mine.share.mean().tolist() == pytest.approx(
                    group.share.mean().tolist(), rel=0, abs=0, nan_ok=True
                )
                np.testing.assert_array_equal(mine.radius, group.radius)
                np.testing.assert_array_equal(other.share.mean(), mine.share.mean())
                assert other.share.width == 2
    # what the record gives stays as it was
    again = tally(engine)
    for name in ("radius", "inside", "marks_inside"):
        one, other = (getattr(each.control.found, name) for each in (before, again))
        np.testing.assert_array_equal(one, other)


def test_other_marks_are_refused_where_a_distance_learns_from_the_record() -> None:
    engine = Engine(study_of(plan(distance="hvdm")), threads=1)
    with pytest.raises(PlanError, match="learns from the recorded outcomes"):
        next(engine.tallies([World()], (), marks=np.zeros(200, dtype=np.bool_)))
