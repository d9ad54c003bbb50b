"""What the tests of audits share: people with an income and a debt, and groups made by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm

if TYPE_CHECKING:
    from collections.abc import Callable

Table = dict[str, Any]


def _make_people(seed: int, rows: int, *, coarse: bool = True) -> tuple[Table, np.random.Generator]:
    rng = np.random.default_rng(seed)
    woman = (np.arange(rows) % 3 == 0).astype(int)
    income = rng.integers(0, 8, rows).astype(float)
    debt = rng.integers(0, 5, rows).astype(float)
    if not coarse:
        income, debt = income + rng.random(rows), debt + rng.random(rows)
    table = {"woman": woman.tolist(), "income": income.tolist(), "debt": debt.tolist()}
    return table, rng


@pytest.fixture(scope="session")
def make_people() -> Callable[..., tuple[Table, np.random.Generator]]:
    """Give a maker of people without an outcome, and of the generator that it may be drawn by.

    Where incomes and debts are coarse, many people tie.
    """
    return _make_people


def _audit_people(table: Table, **changes: Any) -> mm.Audit:
    options: dict[str, Any] = {
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {"income": "continuous", "debt": "continuous"},
        "worldview": mm.Worldview({"income": mm.Linear("woman"), "debt": mm.Linear("woman")}),
        "ks": (8, 20),
        "uncertainty": mm.Uncertainty(refits=0, placebo=0, tipping=False),
    }
    return mm.audit(table, **(options | changes))


@pytest.fixture(scope="session")
def audit_people() -> Callable[..., mm.Audit]:
    """Give the way to audit such people, quietly unless settings say otherwise."""
    return _audit_people


def _weights_by_hand(
    table: Table, center: int, among: list[int], k: int, **moved: float
) -> dict[int, Fraction]:
    names = ("income", "debt")
    spans = {name: Fraction(max(table[name])) - Fraction(min(table[name])) for name in names}
    here = {name: Fraction(moved.get(name, table[name][center])) for name in names}

    def apart(row: int) -> Fraction:
        differences = (abs(Fraction(table[n][row]) - here[n]) / spans[n] for n in names)
        return sum(differences, Fraction(0))

    distance = {row: apart(row) for row in among}
    radius = sorted(distance.values())[k - 1]
    inside = [row for row in among if distance[row] < radius]
    rim = [row for row in among if distance[row] == radius]
    part = Fraction(k - len(inside), len(rim))
    return dict.fromkeys(inside, Fraction(1)) | dict.fromkeys(rim, part)


@pytest.fixture(scope="session")
def weights_by_hand() -> Callable[..., dict[int, Fraction]]:
    """Give the places of the k nearest rows, the last ones shared: loops and fractions.

    They are nearest to a row of the table, or to where it would be if some of it `moved`.
    """
    return _weights_by_hand
