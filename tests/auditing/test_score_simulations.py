"""How often scores are significant where nothing is wrong, and how often where something is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutandis as mm

ROWS, TABLES = 1_000, 10


def table_of(seed: int, noise: str, harm: float) -> dict[str, Any]:
    """Make scores that depend on two attributes, and on the status by `harm`."""
    rng = np.random.default_rng(seed)
    woman = (np.arange(ROWS) < 0.3 * ROWS).astype(int)
    x1 = rng.normal(size=ROWS)
    x2 = x1 / 2 + rng.normal(size=ROWS)
    chance = rng.normal(size=ROWS)
    if noise != "normal":
        # mean 0, standard deviation 1, skewness 3
        sigma = 0.7156
        chance = np.exp(sigma * chance)
        chance = (chance - np.exp(sigma**2 / 2)) / np.sqrt(
            (np.exp(sigma**2) - 1) * np.exp(sigma**2)
        )
    if noise == "mirrored lognormal":
        chance = -chance
    score = 0.5 * x1 + 0.5 * x2 + chance + harm * woman
    return {"woman": woman, "x1": x1, "x2": x2, "score": np.round(score, 4)}


def shares(noise: str, harm: float, k: int) -> dict[str, float]:
    """Give the share of women who are significant, one by one and adjusted, and of tables."""
    alone, adjusted, tested, tables = [], [], [], 0
    for seed in range(TABLES):
        table = table_of(seed, noise, harm)
        found = mm.audit(
            table,
            outcome=mm.Score("score", worse="higher"),
            protected=mm.Protection("woman", value=1, reference=0),
            attributes={"x1": "continuous", "x2": "continuous"},
            counterfactuals={name: table[name] for name in ("x1", "x2")},
            methods=["cst_matched"],
            ks=(k,),
            uncertainty=mm.Uncertainty(placebo=0, tipping=False),
        ).findings()
        rejected = found["verdict"].isin(["significant", "significant-adjusted"])
        alone.append(rejected.mean())
        adjusted.append((found["verdict"] == "significant-adjusted").mean())
        tested.append(found["p_value"].notna().mean())
        tables += bool(adjusted[-1])
    return {
        "alone": float(np.mean(alone)),
        "adjusted": float(np.mean(adjusted)),
        "tables": tables / TABLES,
        "tested": float(np.mean(tested)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("k", [30, 50])
@pytest.mark.parametrize("noise", ["normal", "lognormal", "mirrored lognormal"])
def test_level_where_there_is_nothing_to_find(noise: str, k: int) -> None:
    found = shares(noise, 0.0, k)
    assert found["tested"] > 0.8
    assert found["alone"] <= 0.065
    assert found["tables"] <= 0.2


@pytest.mark.slow
def test_power_where_women_are_worse_off() -> None:
    for noise in ("normal", "lognormal"):
        assert shares(noise, 1.0, 50)["adjusted"] > 0.5
