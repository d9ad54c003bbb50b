"""Propensity-weighted risk differences against another fit, and against derivatives by numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import mutandis as mm
from mutandis.errors import PlanError
from mutandis.rooms.compliance import propensity_weighted


def people(seed: int, *, rows: int = 400, harm: float = 0.0) -> pd.DataFrame:
    """Draw people whose status goes with what matters to the decision, and harms by `harm`."""
    rng = np.random.default_rng(seed)
    x, grade = rng.normal(size=rows), rng.integers(0, 3, rows)
    job = rng.choice(["cook", "clerk", "guard"], rows)
    tends = 0.7 * x - 0.3 * grade + 0.5 * (job == "cook") - 0.6
    woman = (rng.random(rows) < 1 / (1 + np.exp(-tends))).astype(int)
    wanted = 0.8 * x + 0.4 * grade - 0.5 * (job == "guard") - harm * woman
    granted = (rng.random(rows) < 1 / (1 + np.exp(-wanted))).astype(int)
    return pd.DataFrame({"woman": woman, "x": x, "grade": grade, "job": job, "granted": granted})


def audit(table: pd.DataFrame, **options: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": 0,
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {
            "x": "continuous",
            "grade": {"kind": "ordinal", "levels": [0, 1, 2]},
            "job": "nominal",
        },
        "methods": ["st"],
        "ks": (5,),
    }
    return mm.audit(table, **settings | options)


def design_of(table: pd.DataFrame) -> Any:
    cook, guard = ((table["job"] == job).astype(float) for job in ("cook", "guard"))
    return np.column_stack([np.ones(len(table)), table["x"], table["grade"], cook, guard])


def equations(theta: Any, design: Any, status: Any, refused: Any) -> Any:
    """Return the stacked estimating equations of each row: score, and both shares."""
    log_odds = design @ theta[:-2]
    residual = status - 1 / (1 + np.exp(-log_odds))
    weights = (1 - status) * np.exp(log_odds)
    return np.column_stack(
        [
            residual[:, None] * design,
            status * (refused - theta[-2]),
            weights * (refused - theta[-1]),
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_difference_and_its_error_are_those_of_the_estimating_equations(seed: int) -> None:
    sm = pytest.importorskip("statsmodels.api")
    table = people(seed, harm=0.5)
    design, status = design_of(table), table["woman"].to_numpy(float)
    refused = 1 - table["granted"].to_numpy(float)
    fitted = sm.Logit(status, design).fit(disp=0, tol=1e-12).params
    weights = (1 - status) * np.exp(design @ fitted)
    shares = [refused[status == 1].mean(), (weights * refused).sum() / weights.sum()]
    theta = np.array([*fitted, *shares])
    assert np.abs(equations(theta, design, status, refused).sum(axis=0)).max() < 1e-6

    def total(at: Any) -> Any:
        return equations(at, design, status, refused).sum(axis=0)

    steps = 1e-5 * np.eye(len(theta))
    slope = np.array([(total(theta + h) - total(theta - h)) / 2e-5 for h in steps]).T
    each = equations(theta, design, status, refused)
    bread = np.linalg.inv(slope)
    covariance = bread @ (each.T @ each) @ bread.T
    contrast = np.array([*[0.0] * len(fitted), 1.0, -1.0])
    error = float(np.sqrt(contrast @ covariance @ contrast))

    found = propensity_weighted(audit(table)).iloc[0]
    assert found["p_protected"] == pytest.approx(shares[0], abs=1e-12)
    assert found["p_reference"] == pytest.approx(refused[status == 0].mean(), abs=1e-12)
    assert found["p_weighted"] == pytest.approx(shares[1], abs=1e-7)
    assert found["risk_difference"] == pytest.approx(shares[0] - shares[1], abs=1e-7)
    margin = norm.ppf(0.95) * error
    assert found["ci_low"] == pytest.approx(shares[0] - shares[1] - margin, abs=1e-6)
    assert found["ci_high"] == pytest.approx(shares[0] - shares[1] + margin, abs=1e-6)
    assert found["p_value"] == pytest.approx(norm.sf((shares[0] - shares[1]) / error), abs=1e-6)
    assert found["n_effective"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-6)
    assert (found["protected"], found["reference"]) == (status.sum(), (1 - status).sum())


def test_weights_balance_what_was_not() -> None:
    table = people(3, rows=1500)
    found = propensity_weighted(audit(table)).iloc[0]
    women, men = (table.loc[table["woman"] == side, "x"] for side in (1, 0))
    apart = abs(women.mean() - men.mean()) / np.sqrt((women.var(ddof=0) + men.var(ddof=0)) / 2)
    assert found["imbalance"] == pytest.approx(apart)
    assert found["imbalance_weighted"] < 0.1 < found["imbalance"]


def test_sorting_the_table_in_another_way_changes_no_bit() -> None:
    table = people(5)
    again = table.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(
        propensity_weighted(audit(table)), propensity_weighted(audit(again)), check_exact=True
    )


def test_what_has_no_propensity_is_refused() -> None:
    table = people(9)
    score = audit(
        table, outcome=mm.Score("x", worse="lower"), negative=None, attributes={"job": "nominal"}
    )
    with pytest.raises(PlanError, match="not a refusal or an approval"):
        propensity_weighted(score)
    same = table.assign(job="cook")
    with pytest.warns(mm.MutandisWarning, match="constant"):
        alone = audit(same, attributes={"job": "nominal"})
    with pytest.raises(PlanError, match="No attribute varies"):
        propensity_weighted(alone)
    twice = audit(table.assign(y=2 * table["x"]), attributes={"x": "continuous", "y": "continuous"})
    with pytest.raises(PlanError, match="cannot be explained by the attributes"):
        propensity_weighted(twice)
