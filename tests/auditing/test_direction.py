"""Positive discrimination: the mirror image of the negative one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mutandis as mm
from mutandis.engine.tally import Sums
from mutandis.errors import PlanError
from mutandis.outcomes.binary import REFUSED
from mutandis.outcomes.intervals import INTERVALS
from mutandis.outcomes.measures import RISK_DIFFERENCE
from mutandis.outcomes.outcome import Rule
from mutandis.verdicts.compare import compare

METHODS = ("st", "cst_without", "cst_with", "cf")
KS = (5, 15)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Somebody is treated worse here, and somebody better: the rule looks at the status too."""
    rng = np.random.default_rng(3)
    gender = rng.integers(0, 2, size=240)
    salary = rng.normal(50, 10, size=240).round(0) - 4 * gender
    age = rng.integers(20, 60, size=240)
    granted = salary + np.where(age > 40, 8, -8) * gender >= 48
    return pd.DataFrame(
        {"gender": gender, "salary": salary, "age": age, "granted": np.where(granted, "yes", "no")}
    )


def decide(frame: pd.DataFrame) -> Any:
    bonus = np.where(frame["age"] > 40, 8, -8) * frame["gender"]
    return np.where(frame["salary"] + bonus >= 48, "yes", "no")


def audit(table: pd.DataFrame, **options: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": "no",
        "protected": mm.Protection("gender", value=1, reference=0),
        "attributes": {"salary": "continuous", "age": "continuous"},
        "worldview": mm.Worldview({"salary": mm.Linear("gender")}),
        "decision": decide,
        "uncertainty": mm.Uncertainty(refits=0),
        "ks": KS,
    }
    return mm.audit(table, **{**settings, **options})


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("tau", [0.0, 0.1])
@pytest.mark.few("0.1-miettinen-nurminen", "0.0-wald")
def test_exchanging_the_outcomes_mirrors_every_number(
    table: pd.DataFrame, interval: str, tau: float
) -> None:
    better = audit(table, evidence=mm.Evidence(direction="positive", interval=interval), tau=tau)
    # who got more often what others wanted was refused less often, and the other way round
    worse = audit(table, negative="yes", evidence=mm.Evidence(interval=interval), tau=tau)
    some = 0
    for method in METHODS:
        for k in KS:
            mine, other = better.findings(method, k=k), worse.findings(method, k=k)
            assert mine["verdict"].tolist() == other["verdict"].tolist()
            for column, mirror in (("delta_p", "delta_p"), ("ci_low", "ci_high")):
                np.testing.assert_allclose(mine[column], -other[mirror], atol=1e-9)
            for column in ("p_value", "q_value"):
                np.testing.assert_allclose(mine[column], other[column], atol=1e-9)
            np.testing.assert_allclose(mine["p_control"], 1 - other["p_control"], atol=1e-12)
            some += (mine["verdict"] != "no-evidence").sum()
    assert some > 20


@pytest.mark.parametrize("tau", [0.0, 0.2])
def test_evidence_is_a_difference_below_minus_tau(table: pd.DataFrame, tau: float) -> None:
    better = audit(table, evidence=mm.Evidence(direction="positive"), tau=tau)
    worse = audit(table, tau=tau)
    for method in METHODS:
        for k in KS:
            mine, other = better.findings(method, k=k), worse.findings(method, k=k)
            # the facts are the same in both directions, only the question differs
            for column in ("id", "p_control", "p_test", "delta_p", "n_control", "rows_test"):
                assert mine[column].tolist() == other[column].tolist()
            cases = mine["verdict"] != "no-evidence"
            assert cases.tolist() == (mine["delta_p"] < -tau - 1e-12).tolist()
            assert not (cases & (other["verdict"] != "no-evidence")).any()
            row = better.counts().set_index(["method", "k"]).loc[(method, k)]
            assert row["cases"] == cases.sum()
            assert row["cases_refused"] == (cases & (mine["outcome"] == "no")).sum()
            assert row["cases"] > row["cases_refused"]
    assert better.counts()["cases_refused"].sum() > 0


def test_significance_in_the_mirror_is_about_the_upper_bound(table: pd.DataFrame) -> None:
    found = audit(table, evidence=mm.Evidence(direction="positive"), tau=0.1).findings(
        "cst_without", k=15
    )
    significant = found["verdict"].isin(["significant", "significant-adjusted"])
    assert significant.any()
    assert significant.tolist() == (found["p_value"] <= 0.05).tolist()
    assert significant.tolist() == (found["ci_high"] <= -0.1).tolist()
    assert (found["ci_low"] <= found["delta_p"]).all()
    assert (found["delta_p"] <= found["ci_high"]).all()


def test_counterfactual_fairness_counts_those_who_would_be_refused(table: pd.DataFrame) -> None:
    better = audit(table, evidence=mm.Evidence(direction="positive"))
    rows = better.findings("cf", k=5)
    lost = ((rows["outcome"] == "yes") & (rows["outcome_cf"] == "no")).sum()
    assert lost > 0
    counts = better.counts().set_index(["method", "k"])["cases"]
    assert counts.loc[("cf", 5)] == counts.loc[("cf", 15)] == lost
    found = better.findings("cf", k=5)
    flagged = found[found["verdict"] == "evidence"]
    assert set(flagged["outcome"]) == {"yes"}
    assert set(flagged["outcome_cf"]) == {"no"}
    assert set(flagged["delta_p"]) == {-1.0}


def test_directions_that_are_refused(table: pd.DataFrame) -> None:
    with pytest.raises(PlanError, match="direction='up' is unknown"):
        mm.Evidence(direction="up")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="test_space='all' is unknown"):
        mm.Similarity(test_space="all")  # type: ignore[arg-type]


# --- any two shares ----------------------------------------------------------------------------


@st.composite
def shares(draw: st.DrawFn) -> Sums:
    size, split = draw(st.integers(2, 20)), draw(st.integers(1, 4))
    negatives = draw(st.integers(0, size * split))
    return Sums.of(marks=np.array([negatives]), places=np.array([size]), parts=np.array([split]))


@given(shares(), shares(), st.sampled_from(["0.0", "0.1", "0.25"]))
def test_any_pair_of_groups_is_decided_exactly_and_mirrored(
    control: Sums, test: Sums, tau: str
) -> None:
    rule = Rule(
        kind=REFUSED,
        measure=RISK_DIFFERENCE,
        interval="miettinen-nurminen",
        tau=Fraction(tau),
        alpha=0.05,
        direction="positive",
    )
    found = compare(control, test, rule)
    exact = [
        Fraction(int(share.marks[:, 0][0]), int(share.places[0] * share.parts[:, 0][0]))
        for share in (control, test)
    ]
    delta = exact[0] - exact[1]
    assert bool(found.evidence[0]) == (delta < -Fraction(tau))
    assert found.delta_p[0] == float(delta)
    mirror = compare(test, control, replace(rule, direction="negative"))
    assert found.evidence.tolist() == mirror.evidence.tolist()
    assert found.significant.tolist() == mirror.significant.tolist()
    assert found.interval.p_value.tolist() == mirror.interval.p_value.tolist()
    assert found.interval.low.tolist() == [0.0 - mirror.interval.high[0]]
    assert found.interval.high.tolist() == [0.0 - mirror.interval.low[0]]
