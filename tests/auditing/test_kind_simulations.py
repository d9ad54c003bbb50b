"""How often scores and orders are significant where nothing is wrong, and where something is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutandis as mm
from tests.tables import WOMEN

pytestmark = pytest.mark.slow

ROWS, TABLES, KS = 1_000, 10, (10, 15, 30, 50)

# where a worth of mean 0 is cut into levels, the best being first, and how much of it is chance
ORDERS = {
    "four levels": ((0.7, 0.0, -0.7), 1.0),
    "the worst is rare": ((-1.2, -1.8), 1.0),
    "a sharp rule": ((0.7, 0.0, -0.7), 0.0),
}
NOISES = ("normal", "lognormal", "mirrored lognormal")


def draw(seed: int, kind: str, harm: float) -> tuple[dict[str, Any], Any]:
    """Draw an outcome that depends on two attributes, and on the status by `harm`."""
    rng = np.random.default_rng(seed)
    woman = (np.arange(ROWS) < 0.3 * ROWS).astype(int)
    x1 = rng.normal(size=ROWS)
    x2 = x1 / 2 + rng.normal(size=ROWS)
    chance = rng.normal(size=ROWS)
    table = {"woman": woman, "x1": x1, "x2": x2}
    if kind in ORDERS:
        cuts, share = ORDERS[kind]
        worth = 0.5 * x1 + 0.5 * x2 + share * chance - harm * woman
        level = np.sum([worth < cut for cut in cuts], axis=0)
        return table | {"y": level}, mm.Ordered("y", best_to_worst=range(len(cuts) + 1))
    if kind != "normal":
        # mean 0, standard deviation 1, skewness 3
        sigma = 0.7156
        spread = np.sqrt((np.exp(sigma**2) - 1) * np.exp(sigma**2))
        chance = (np.exp(sigma * chance) - np.exp(sigma**2 / 2)) / spread
    if kind == "mirrored lognormal":
        chance = -chance
    score = np.round(0.5 * x1 + 0.5 * x2 + chance + harm * woman, 4)
    return table | {"y": score}, mm.Score("y", worse="higher")


def shares(kind: str, harm: float) -> dict[int, dict[str, float]]:
    """Return the shares of women tested and significant, and of tables with a case, by k."""
    found: dict[int, list[tuple[float, float, float, bool]]] = {k: [] for k in KS}
    for seed in range(TABLES):
        table, outcome = draw(seed, kind, harm)
        audit = mm.audit(
            table,
            outcome=outcome,
            protected=WOMEN,
            attributes={"x1": "continuous", "x2": "continuous"},
            counterfactuals={name: table[name] for name in ("x1", "x2")},
            methods=["cst_matched"],
            ks=KS,
            uncertainty=mm.Uncertainty(tipping=False),
        )
        for k in KS:
            rows = audit.findings("cst_matched", k=k)
            adjusted = float((rows["verdict"] == "significant-adjusted").mean())
            alone = float(rows["verdict"].str.startswith("significant").mean())
            tested = float(rows["p_value"].notna().mean())
            found[k].append((alone, adjusted, tested, bool(adjusted)))
    names = ("alone", "adjusted", "tested", "tables")
    return {
        k: dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))
        for k, rows in found.items()
    }


@pytest.mark.parametrize("kind", ORDERS)
def test_level_of_orders(kind: str) -> None:
    for found in shares(kind, 0.0).values():
        assert found["alone"] <= (0.02 if kind == "a sharp rule" else 0.06)
        assert found["tables"] <= 0.2


@pytest.mark.parametrize("noise", NOISES)
def test_level_of_scores(noise: str) -> None:
    found = shares(noise, 0.0)
    for k in (30, 50):
        assert found[k]["tested"] > 0.8
        assert found[k]["alone"] <= 0.065
        assert found[k]["tables"] <= 0.2


def test_power_where_women_are_worse_off() -> None:
    some, more = shares("four levels", 0.5), shares("four levels", 1.0)
    assert some[50]["adjusted"] > 0.4
    assert more[10]["alone"] > 0.4
    assert more[30]["adjusted"] > 0.85
    assert shares("a sharp rule", 0.5)[30]["adjusted"] > 0.8
    for noise in ("normal", "lognormal"):
        assert shares(noise, 1.0)[50]["adjusted"] > 0.5
