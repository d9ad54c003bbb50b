"""How often orders are significant where nothing is wrong, and how often where something is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutandis as mm

ROWS, TABLES, KS = 1_000, 10, (10, 15, 30, 50)

# where a worth of mean 0 is cut into levels, the best being first, and how much of it is chance
KINDS = {
    "four levels": ((0.7, 0.0, -0.7), 1.0),
    "the worst is rare": ((-1.2, -1.8), 1.0),
    "a sharp rule": ((0.7, 0.0, -0.7), 0.0),
}


def table_of(seed: int, kind: str, harm: float) -> dict[str, Any]:
    """Make levels that depend on two attributes, and on the status by `harm`."""
    cuts, chance = KINDS[kind]
    rng = np.random.default_rng(seed)
    woman = (np.arange(ROWS) < 0.3 * ROWS).astype(int)
    x1 = rng.normal(size=ROWS)
    x2 = x1 / 2 + rng.normal(size=ROWS)
    worth = 0.5 * x1 + 0.5 * x2 + chance * rng.normal(size=ROWS) - harm * woman
    level = np.sum([worth < cut for cut in cuts], axis=0)
    return {"woman": woman, "x1": x1, "x2": x2, "level": level}


def shares(kind: str, harm: float) -> dict[int, dict[str, float]]:
    """Give the share of women who are significant, one by one and adjusted, and of tables, by k."""
    found: dict[int, list[tuple[float, float, bool]]] = {k: [] for k in KS}
    levels = range(len(KINDS[kind][0]) + 1)
    for seed in range(TABLES):
        table = table_of(seed, kind, harm)
        audit = mm.audit(
            table,
            outcome=mm.Ordered("level", best_to_worst=levels),
            protected=mm.Protection("woman", value=1, reference=0),
            attributes={"x1": "continuous", "x2": "continuous"},
            counterfactuals={name: table[name] for name in ("x1", "x2")},
            methods=["cst_matched"],
            ks=KS,
            uncertainty=mm.Uncertainty(placebo=0, tipping=False),
        )
        for k in KS:
            counts = audit.count("cst_matched", k)
            women = counts["complainants"]
            adjusted = counts["significant_adjusted"]
            found[k].append((counts["significant"] / women, adjusted / women, adjusted > 0))
    return {
        k: dict(zip(("alone", "adjusted", "tables"), np.mean(rows, axis=0).tolist(), strict=True))
        for k, rows in found.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_level_where_there_is_nothing_to_find(kind: str) -> None:
    for found in shares(kind, 0.0).values():
        assert found["alone"] <= (0.02 if kind == "a sharp rule" else 0.06)
        assert found["tables"] <= 0.2


@pytest.mark.slow
def test_power_where_women_are_worse_off() -> None:
    some, more = shares("four levels", 0.5), shares("four levels", 1.0)
    assert some[50]["adjusted"] > 0.4
    assert more[10]["alone"] > 0.4
    assert more[30]["adjusted"] > 0.85
    assert shares("a sharp rule", 0.5)[30]["adjusted"] > 0.8
