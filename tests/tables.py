"""Tables and plans that several folders of tests audit."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

import mutandis as mm
from tests.oracle import Gower, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.oracle import Places

Table = dict[str, Any]
WOMEN = mm.Protection("woman", value=1, reference=0)

# how the generated loan applications are audited
LOAN: dict[str, Any] = {
    "outcome": "LoanApproval",
    "negative": -1,
    "protected": mm.Protection("Gender", value=1, reference=0),
    "attributes": {"AnnualSalary": "continuous", "AccountBalance": "continuous"},
    "worldview": mm.Worldview(
        {
            "AnnualSalary": mm.Linear("Gender"),
            "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
        }
    ),
}


# --- people with an income and a debt -------------------------------------------------------------

LEVELS = ["approved", "on conditions", "later", "refused"]


def draw_people(
    seed: int = 1, rows: int = 240, *, coarse: bool = True
) -> tuple[Table, np.random.Generator]:
    """Draw incomes and debts, and return the generator; coarse ones have many ties."""
    rng = np.random.default_rng(seed)
    woman = (np.arange(rows) % 3 == 0).astype(int)
    income = rng.integers(0, 8, rows).astype(float)
    debt = rng.integers(0, 5, rows).astype(float)
    if not coarse:
        income, debt = income + rng.random(rows), debt + rng.random(rows)
    return {"woman": woman.tolist(), "income": income.tolist(), "debt": debt.tolist()}, rng


def people_with_rates(seed: int = 1, rows: int = 240, *, coarse: bool = True) -> Table:
    """Draw interest rates that rise with debt, and are higher for women."""
    table, rng = draw_people(seed, rows, coarse=coarse)
    woman, income, debt = (np.array(table[name]) for name in ("woman", "income", "debt"))
    rate = 5 - 0.1 * income + 0.2 * debt + 0.4 * woman + rng.gamma(2, 0.3, rows)
    return table | {"rate": np.round(rate, 2).tolist()}


def people_with_answers(seed: int = 1, rows: int = 240, *, coarse: bool = True) -> Table:
    """Draw answers from LEVELS that get worse with debt, and are worse for women."""
    table, rng = draw_people(seed, rows, coarse=coarse)
    woman, income, debt = (np.array(table[name]) for name in ("woman", "income", "debt"))
    worth = 0.3 * income - 0.3 * debt - 0.4 * woman + rng.normal(0, 1, rows)
    answer = np.select([worth > 0.8, worth > 0, worth > -0.8], LEVELS[:3], LEVELS[3])
    return table | {"answer": answer.tolist()}


def audit_people(table: Table, **changes: Any) -> mm.Audit:
    """Audit such people without refits or tipping points."""
    options: dict[str, Any] = {
        "protected": WOMEN,
        "attributes": {"income": "continuous", "debt": "continuous"},
        "worldview": mm.Worldview({"income": mm.Linear("woman"), "debt": mm.Linear("woman")}),
        "ks": (8, 20),
        "uncertainty": mm.Uncertainty(refits=0, tipping=False),
    }
    return mm.audit(table, **(options | changes))


def nearest_people(table: Table, person: int, among: list[int], k: int, **moved: float) -> Places:
    """Return the places of the k nearest rows, by the oracle; some cells of the person `moved`."""
    rows = list(zip(table["income"], table["debt"], strict=True))
    center = tuple(moved.get(name, table[name][person]) for name in ("income", "debt"))
    return nearest(Gower(rows, ("continuous", "continuous")).among(center, among), k)


def weigh_matches(chosen: Places, matches: Mapping[int, Places]) -> dict[int, Fraction]:
    """Weigh who is matched to the people `chosen`: w_j = Σ_i u_i s_ij / m, for m = 5 matches."""
    weights: dict[int, Fraction] = {}
    for i, u in chosen.items():
        for j, s in matches[i].items():
            weights[j] = weights.get(j, Fraction(0)) + u * s / 5
    return weights
