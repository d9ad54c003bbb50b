"""The model behind placebo (b); the audits that it leads to are rebuilt in test_placebo.py."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.engine.study import World
from mutandis.evidence.null_outcomes import NullOutcomes, model_null_outcomes

if TYPE_CHECKING:
    from numpy.typing import NDArray


def audit_of(
    granted: NDArray[np.int64], group: NDArray[np.int64], x: NDArray[np.float64]
) -> mm.Audit:
    """Audit people of whom the protected would have one more of x."""
    return mm.audit(
        pd.DataFrame({"group": group, "x": x, "granted": granted}),
        outcome="granted",
        negative=0,
        protected=mm.Protection("group", value=1, reference=0),
        attributes={"x": "continuous"},
        counterfactuals=pd.DataFrame({"x": x + (group == 1)}),
        ks=(1,),
    )


def model_of(audit: mm.Audit) -> NullOutcomes:
    return model_null_outcomes(audit.study, audit.world)


def people(rows: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, rows), rng.normal(0, 2, rows)


def test_a_sharp_rule_is_learnt_from_few_rows() -> None:
    group, x = people(900)
    model = model_of(audit_of((x > 0).astype(np.int64), group, x))
    assert model.neighbours <= 10
    # complainants are judged at x + 1, reference rows at x; the border itself is uncertain
    at = np.where(group[model.rows] == 1, x[model.rows] + 1, x[model.rows])
    clear = np.abs(at) > 0.3
    assert (model.probability[clear] == (at[clear] <= 0)).all()


def test_noise_is_learnt_from_many_rows() -> None:
    group, x = people(900)
    coin = np.random.default_rng(1).integers(0, 2, 900)
    model = model_of(audit_of(coin, group, x))
    assert model.neighbours >= 50
    assert np.abs(model.probability - 0.5).max() < 0.25


def test_only_those_in_a_space_are_drawn() -> None:
    group, x = people(300)
    made = audit_of((x > 0).astype(np.int64), group, x)
    model = model_of(made)
    assert sorted(model.rows.tolist()) == np.flatnonzero(group < 2).tolist()
    everybody = replace(model, probability=np.ones(len(model.rows)))
    drawn = everybody.draw(made.study.outcomes, np.random.default_rng(0))
    assert drawn[group < 2].all()
    assert (drawn[group == 2] == made.study.outcomes[group == 2]).all()


def test_one_reference_row_has_only_itself() -> None:
    group = np.array([1, 1, 0])
    model = model_of(audit_of(np.array([1, 1, 0]), group, np.array([1.0, 2.0, 3.0])))
    assert model.probability.tolist() == [1.0, 1.0, 1.0]


def test_without_counterfactuals_there_is_nothing_to_draw_at() -> None:
    group, x = people(60)
    made = audit_of((x > 0).astype(np.int64), group, x)
    with pytest.raises(TypeError, match="there are none"):
        model_null_outcomes(made.study, World())
