"""Counterfactuals of fitted worldviews against the truth of models that made the data."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.causal import Linear, Worldview
from mutandis.data.population import Population

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


def _people(table: Mapping[str, Any] | pd.DataFrame) -> Population:
    return Population.from_frame(pd.DataFrame(table), columns=map(str, table))


def _factorial() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Facts and true counterfactuals where noise is exactly uncorrelated with every cause.

    Status, U and V take all combinations of their values, so least squares finds the truth:
    Salary = 100 - 15·A + U, Balance = 20 + 0.3·Salary - 4·A + V.
    """
    combinations = itertools.product([0, 1], [-6.0, -1.0, 1.0, 6.0], [-2.5, 0.0, 2.5])
    status, u, v = (np.array(values) for values in zip(*combinations, strict=True))

    def world(a: NDArray[Any]) -> pd.DataFrame:
        salary = 100 - 15 * a + u
        return pd.DataFrame({"A": a, "Salary": salary, "Balance": 20 + 0.3 * salary - 4 * a + v})

    return world(status), world(np.zeros_like(status))


def test_a_fitted_worldview_recovers_the_truth() -> None:
    facts, truth = _factorial()
    worldview = Worldview({"Balance": Linear("Salary", "A"), "Salary": Linear("A")})
    after = worldview.counterfactuals(_people(facts), do={"A": 0}).population
    for name in ("Salary", "Balance"):
        assert after.numbers(name) == pytest.approx(truth[name].to_numpy(), abs=1e-11)


def test_the_error_of_a_fitted_worldview_shrinks_with_the_number_of_rows() -> None:
    worldview = Worldview({"Salary": Linear("A", link="log"), "Balance": Linear("Salary", "A")})

    def error(rows: int, seed: int) -> float:
        rng = np.random.default_rng(seed)
        u, v = rng.normal(0, 0.3, rows), rng.normal(0, 2.0, rows)
        status = rng.integers(0, 2, rows)
        salary = np.exp(3 - 0.4 * status + u)
        balance = 5 + 0.5 * salary - 2 * status + v
        table = {"A": status, "Salary": salary, "Balance": balance}
        after = worldview.counterfactuals(_people(table), do={"A": 0}).population
        truth = 5 + 0.5 * np.exp(3 + u) + v
        return float(np.sqrt(np.mean((after.numbers("Balance") - truth) ** 2)))

    errors = [np.mean([error(rows, seed) for seed in range(12)]) for rows in (100, 1600, 25600)]
    # errors go with 1/√n: sixteen times the rows, about a quarter of the error
    assert errors[1] < errors[0] / 2.5
    assert errors[2] < errors[1] / 2.5
    assert errors[2] < 0.1


def test_a_nominal_cause_against_explicit_dummies() -> None:
    rng = np.random.default_rng(8)
    race = rng.choice(["w", "x", "y", "z"], 400, p=[0.4, 0.3, 0.2, 0.1])
    age = rng.normal(30, 5, 400)
    score = 20 + 0.2 * age + pd.Series(race).map({"w": 3, "x": 0, "y": -2, "z": 5}).to_numpy()
    score = score + rng.normal(size=400)
    worldview = Worldview({"Score": Linear("Race", "Age")})
    people = _people({"Race": race, "Age": age, "Score": score})
    after = worldview.counterfactuals(people, do={"Race": "y"}).population

    design = np.column_stack([np.ones(400), *(race == level for level in "xyz"), age])
    weights = np.linalg.lstsq(design, score, rcond=None)[0]
    moved = design.copy()
    moved[:, 1:4] = [0, 1, 0]
    oracle = moved @ weights + (score - design @ weights)
    assert after.numbers("Score") == pytest.approx(oracle, rel=1e-12)
