"""Doubt: verdicts under other draws of counterfactuals, and under refitted equations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist, variance
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import MutandisWarning, PlanError
from tests.tables import LOAN

WORLDVIEW = LOAN["worldview"]
SETTINGS: dict[str, Any] = {
    **LOAN,
    "decision": "AnnualSalary + 5 * AccountBalance > 225000",
    "ks": (5, 20),
}


@pytest.fixture(scope="module")
def decisions() -> pd.DataFrame:
    return mm.datasets.loan(n=300, seed=3)


def refitted_audits(decisions: pd.DataFrame, refits: int, seed: int) -> list[mm.Audit]:
    """Audit each refitted world by itself, from a ready table of counterfactuals."""
    people = mm.plan(decisions, **SETTINGS).population
    worlds = WORLDVIEW.refits(
        people, do={"Gender": 0}, refits=refits, rng=np.random.default_rng([seed, 1])
    )
    return [
        mm.audit(
            decisions,
            **{**SETTINGS, "worldview": None},
            counterfactuals=world.frame().drop(columns="LoanApproval"),
            uncertainty=mm.Uncertainty(tipping=False),
        )
        for world in worlds
    ]


def score_p_value(
    p_control: float, n_control: float, p_test: float, n_test: float, doubt: float
) -> float:
    """Test Δp ≤ 0 by the score statistic: the two shares are one under the null."""
    pooled = (p_control * n_control + p_test * n_test) / (n_control + n_test)
    both = n_control + n_test
    chance = pooled * (1 - pooled) * (1 / n_control + 1 / n_test) * both / (both - 1)
    error = math.sqrt(chance + doubt)
    return 0.5 if p_control == p_test else NormalDist().cdf((p_test - p_control) / error)


@dataclass(frozen=True)
class Doubted:
    """An audit with refits, and the audit of each refit by itself."""

    found: mm.Audit
    alone: list[mm.Audit]


@pytest.fixture(scope="module")
def doubted(decisions: pd.DataFrame) -> Doubted:
    doubt = mm.Uncertainty(refits=6, tipping=False)
    found = mm.audit(decisions, **SETTINGS, uncertainty=doubt, seed=11)
    return Doubted(found, refitted_audits(decisions, 6, seed=11))


def test_the_variance_over_refits_is_added_under_the_null(doubted: Doubted) -> None:
    found, alone = doubted.found, doubted.alone
    for k in (5, 20):
        table = found.findings("cst_matched", k=k)
        shares = np.array([each.findings("cst_matched", k=k)["p_test"] for each in alone])
        doubt = [variance(column) for column in shares.T]
        assert max(doubt) > 0.01
        expected = [
            score_p_value(row.p_control, row.n_control, row.p_test, row.n_effective, each)
            for row, each in zip(table.itertuples(), doubt, strict=True)
        ]
        told = table["verdict"] != "insufficient"
        assert told.sum() > 20
        assert table["p_value"][told].to_numpy() == pytest.approx(np.array(expected)[told])


def test_bounds_belong_to_the_test_that_knows_the_doubt(decisions: pd.DataFrame) -> None:
    settings = SETTINGS
    sure, unsure = (
        mm.audit(decisions, **settings, uncertainty=mm.Uncertainty(refits=refits, tipping=False))
        .findings("cst_matched", k=20)
        .query("verdict != 'insufficient'")
        for refits in (0, 8)
    )
    assert (unsure["delta_p"] == sure["delta_p"]).all()
    width, narrow = (each["ci_high"] - each["ci_low"] for each in (unsure, sure))
    assert (width >= narrow - 1e-12).all()
    assert (width > narrow + 0.05).any()
    assert ((unsure["p_value"] <= 0.05) == (unsure["ci_low"] >= 0)).all()


def test_a_verdict_share_is_what_auditing_each_refit_gives(doubted: Doubted) -> None:
    found, alone = doubted.found, doubted.alone
    refits = len(alone)
    seen = set()
    method = "cst_without"
    for k in (5, 20):
        table = found.findings(method, k=k)
        refitted = [list(each.findings(method, k=k).itertuples()) for each in alone]
        adjusted = table["verdict"] == "significant-adjusted"
        cutoff = table["p_value"][adjusted].max()
        for place, row in enumerate(table.itertuples()):
            if not row.delta_p > 0:
                assert np.isnan(row.verdict_share)
                assert not row.fragile
                continue
            others = [rows[place] for rows in refitted]
            bound = {"significant": 0.05, "significant-adjusted": cutoff}.get(row.verdict)
            stays = [
                other.delta_p > 0 and (bound is None or other.p_value <= bound) for other in others
            ]
            assert row.verdict_share == sum(stays) / refits
            assert row.fragile == (sum(stays) < 0.9 * refits)
            seen.add((row.verdict, row.fragile))
    assert seen >= {
        ("evidence", True),
        ("significant-adjusted", False),
        ("significant-adjusted", True),
    }


def test_small_tables_are_doubted_unasked(decisions: pd.DataFrame) -> None:
    def refits(table: pd.DataFrame, **changes: Any) -> int | None:
        settings = {**SETTINGS, **changes}
        return mm.plan(table, **settings).settings.uncertainty.refits

    large = mm.datasets.loan(n=2100, seed=3)
    assert len(large) >= 2000
    assert refits(decisions) == 20
    assert refits(large) == 0
    assert refits(large, uncertainty=mm.Uncertainty(refits=3, tipping=False)) == 3
    assert refits(decisions, methods=["cst_without"]) == 0
    ready = {"worldview": None, "counterfactuals": decisions[["AnnualSalary", "AccountBalance"]]}
    assert refits(decisions, **ready) == 0


def test_b_is_not_asked_about_worlds_that_nobody_asked_for(decisions: pd.DataFrame) -> None:
    asked = []

    def decide(table: pd.DataFrame) -> Any:
        asked.append(len(table))
        return np.where(table["AnnualSalary"] + 5 * table["AccountBalance"] > 225000, 1, -1)

    settings = {**SETTINGS, "decision": decide, "worldview": WORLDVIEW}
    found = mm.audit(decisions, **settings, uncertainty=mm.Uncertainty(refits=3, tipping=False))
    assert len(asked) == 2  # on D and on D^CF
    assert found.findings("cst_without", k=5)["verdict_share"].notna().any()
    assert found.findings("cst_with", k=5)["verdict_share"].isna().all()


def test_a_table_that_cannot_be_resampled_is_audited_without_doubt() -> None:
    table = pd.DataFrame(
        {
            "woman": np.arange(40) % 2,
            "job": [f"job {n // 2}" for n in range(40)],
            "salary": np.arange(40.0) % 7,
            "granted": np.arange(40) % 3 > 0,
        }
    )
    with pytest.warns(MutandisWarning, match="cannot be fitted to resampled rows"):
        found = mm.audit(
            table,
            outcome="granted",
            negative=False,
            protected=mm.Protection("woman", value=1, reference=0),
            attributes={"salary": "continuous"},
            worldview=mm.Worldview({"salary": mm.Linear("woman", "job")}),
            ks=(5,),
        )
    assert found.findings("cst_matched", k=5)["verdict_share"].isna().all()


def test_the_seed_repeats_the_draws_whatever_the_threads(decisions: pd.DataFrame) -> None:
    def shares(threads: int | None = None, **options: Any) -> list[float]:
        found = mm.plan(
            decisions,
            **SETTINGS,
            uncertainty=mm.Uncertainty(refits=5, tipping=False),
            **options,
        ).run(threads=threads)
        column = found.findings("cst_without", k=5)["verdict_share"]
        return [float(share) for share in column.fillna(-1)]

    assert shares(seed=1, threads=1) == shares(seed=1, threads=2)
    assert shares(seed=1) != shares(seed=2)
    assert shares() == shares(seed=0)


@pytest.mark.parametrize(
    ("worldview", "doubt", "message"),
    [
        (WORLDVIEW, {"draws": 5}, "draws=5 would all be the same"),
        (WORLDVIEW, {"draws": -1}, "draws=-1 is not allowed"),
        (WORLDVIEW, {"refits": 2.5}, "refits=2.5 is not allowed"),
        (None, {"refits": 5}, "refits=5 needs worldview="),
    ],
)
def test_draws_that_make_no_sense(
    decisions: pd.DataFrame, worldview: mm.Worldview | None, doubt: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        mm.audit(
            decisions,
            **{**SETTINGS, "worldview": worldview, "uncertainty": mm.Uncertainty(**doubt)},
        )


def test_where_a_coupling_is_assumed_draws_are_made_unasked_and_results_are_labelled() -> None:
    rng = np.random.default_rng(2)
    gender = rng.integers(0, 2, 400)
    visits = rng.poisson(np.where(gender == 1, 3.0, 5.0))
    table = pd.DataFrame({"gender": gender, "visits": visits, "granted": (visits > 3).astype(int)})
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": 0,
        "protected": mm.Protection("gender", value=1, reference=0),
        "attributes": {"visits": "continuous"},
        "worldview": mm.Worldview({"visits": mm.Count("gender")}),
        "decision": "visits > 3",
        "ks": (10,),
    }
    found = mm.audit(table, **settings)
    assert found.plan.settings.uncertainty.draws == 20
    shares = found.findings("cf", k=10)["verdict_share"]
    assert ((shares > 0) & (shares < 1)).any()
    assert "assumed, beyond what data can test: monotone coupling for visits" in repr(found)
    complainant = int(found.findings("cf", k=10)["id"].iloc[0])
    assert "(assuming monotone coupling, which no data can test)" in str(found.case(complainant))
    assert (
        "verdict_share"
        not in mm.audit(table, **settings, uncertainty=mm.Uncertainty(draws=0, refits=0))
        .findings("cf", k=10)
        .columns
    )
