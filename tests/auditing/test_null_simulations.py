"""Where there is nothing to find: small versions of benchmarks/null_simulations.py.

Complainants share neighbours, so the tolerance is three standard errors over data sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def simulations(load_benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return load_benchmark("null_simulations")


def test_noisy_decisions_without_an_effect_keep_the_level(simulations: ModuleType) -> None:
    tables = 16
    lines = simulations.simulate_noisy(tables=tables, rows=900, ks=(15, 50))
    assert [(line.method, line.k) for line in lines] == [
        *(("st", 15), ("st", 50)),
        *(("cst_without", 15), ("cst_without", 50)),
    ]
    for line in lines:
        assert len(line.shares["significant"]) == tables
        assert line.mean() <= 0.065 + 3 * line.error()
        # at most one table in ten: of 16, more than 6 would be very unlikely
        assert line.any_adjusted() <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / tables)


def test_the_same_noise_with_an_effect_does_not(simulations: ModuleType) -> None:
    """The simulation could fail: lower women's scores, and CST and BH find them."""
    rng = np.random.default_rng(0)
    table, score = simulations.people(rng, rows=900, share=0.35)
    granted = simulations.noisy(score - 1.5 * table["woman"].to_numpy(), rng)
    for record in simulations.audit(table.assign(granted=granted), (50,)).results.records():
        assert record["significant_share"] > 0.3
        assert record["significant_adjusted"] > 0


@pytest.fixture(scope="module")
def sharp(simulations: ModuleType) -> Any:
    """Simulate a sharp rule with 15 % protected rows, where radii differ most."""
    lines = simulations.simulate_sharp(
        tables=8, rows=2500, share=0.15, shape="gauss", ks=(15, 50, 100), repeats=3
    )
    return {(line.method, line.k): line for line in lines}


def test_a_sharp_rule_makes_the_sparser_group_look_worse(sharp: Any) -> None:
    assert sharp["st", 50].mean() > 0.1
    assert sharp["st", 50].mean() > 3 * sharp["st", 15].mean()


def test_sham_audits_predict_what_a_sharp_rule_makes_of_nothing(sharp: Any) -> None:
    for line in sharp.values():
        apart = line.shares["sham"] - line.shares["significant"]
        error = apart.std(ddof=1) / np.sqrt(len(apart))
        assert abs(apart.mean()) <= 0.02 + 3 * error


def test_a_rule_that_makes_up_for_the_loss_is_found_by_nobody(simulations: ModuleType) -> None:
    st, cst = simulations.simulate_compensating(tables=12, rows=900)
    assert (st.method, cst.method) == ("st", "cst_without")
    assert cst.mean() <= 0.065 + 3 * cst.error()
    # women are granted more than men of the same salary and balance
    assert st.mean() < 0.01
    assert st.any_adjusted() == 0
