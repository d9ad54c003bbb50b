"""The matched comparison where nobody is discriminated, and where somebody is.

Two attributes, x2 follows x1, 15 % protected, and the facts are the counterfactuals: whatever is
found under the null is chance, or the bias of unequal groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import expit

import mutandis as mm

if TYPE_CHECKING:
    from mutandis.verdicts.findings import Findings

pytestmark = pytest.mark.slow

KS = (15, 50, 100)
TABLES = 20


def table_of(seed: int, *, sharp: bool, harm: float = 0.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    size = 3000
    protected = (rng.random(size) < 0.15).astype(int)
    x1 = rng.normal(size=size)
    x2 = x1 / 2 + rng.normal(size=size)
    score = x1 + x2 - harm * protected
    refused = score < 0 if sharp else rng.random(size) < expit(-2 * score)
    return {"status": protected, "x1": x1, "x2": x2, "y": np.where(refused, "no", "yes")}


def found_in(table: dict[str, Any], ks: tuple[int, ...] = KS) -> dict[int, Findings]:
    audit = mm.audit(
        table,
        outcome="y",
        negative="no",
        protected=mm.Protection("status", value=1, reference=0),
        attributes={"x1": "continuous", "x2": "continuous"},
        counterfactuals={name: table[name] for name in ("x1", "x2")},
        methods=["cst_matched"],
        ks=ks,
    )
    return {k: audit.evaluate("cst_matched", k) for k in ks}


@pytest.mark.parametrize(
    ("sharp", "most"),
    [(False, {15: 0.045, 50: 0.06, 100: 0.07}), (True, dict.fromkeys(KS, 0.005))],
    ids=["noisy", "sharp"],
)
def test_hardly_anybody_is_found_where_nobody_is_harmed(
    sharp: bool,
    most: dict[int, float],
) -> None:
    found = [found_in(table_of(seed, sharp=sharp)) for seed in range(TABLES)]
    effective = {15: 44, 50: 138, 100: 269}
    for k in KS:
        each = [one[k] for one in found]
        significant = np.concatenate([one.comparison.significant for one in each])
        assert significant.mean() <= most[k]
        assert sum(bool(one.significant_adjusted.any()) for one in each) <= 3
        tested = np.concatenate([~one.comparison.insufficient for one in each])
        assert tested.mean() >= 0.98
        matchings = [one.test.matching for one in each]
        people = [float(np.median(m.n_effective)) for m in matchings if m is not None]
        assert len(people) == TABLES
        assert np.mean(people) == pytest.approx(effective[k], rel=0.1)


def test_most_of_those_who_are_harmed_are_found() -> None:
    shares = []
    for seed in range(100, 100 + TABLES):
        table = table_of(seed, sharp=False, harm=0.6)
        score = (table["x1"] + table["x2"])[table["status"] == 1]
        harm = expit(-2 * (score - 0.6)) - expit(-2 * score)
        found = found_in(table, ks=(50,))[50]
        shares.append(float(found.significant_adjusted[harm > 0.1].mean()))
    assert np.mean(shares) >= 0.5
