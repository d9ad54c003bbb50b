"""Audits with draws: P(Δp > τ) over counterfactual tables, beside the point verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import PlanError
from mutandis.evidence.findings import COLUMNS

WORLDVIEW = mm.Worldview(
    {
        "AnnualSalary": mm.Linear("Gender"),
        "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
    }
)
SETTINGS: dict[str, Any] = {
    "outcome": "LoanApproval",
    "negative": -1,
    "protected": mm.Protection("Gender", value=1, reference=0),
    "attributes": {"AnnualSalary": "continuous", "AccountBalance": "continuous"},
    "decision": "AnnualSalary + 5 * AccountBalance > 225000",
    "ks": (5, 20),
}


@pytest.fixture(scope="module")
def decisions() -> pd.DataFrame:
    return mm.datasets.loan(n=300, seed=3)


def test_the_share_of_draws_is_what_auditing_each_draw_gives(decisions: pd.DataFrame) -> None:
    draws = 6
    found = mm.audit(
        decisions,
        **SETTINGS,
        worldview=WORLDVIEW,
        uncertainty=mm.Uncertainty(draws=draws, bootstrap=True),
        seed=11,
    )
    # equal rows are told apart by their other columns
    people = found.plan.population
    made = WORLDVIEW.counterfactuals(
        people, do={"Gender": 0}, draws=draws, rng=np.random.default_rng(11), bootstrap=True
    )
    for method in ("cst_without", "cst_with", "cf"):
        for k in (5, 20):
            evidence = np.zeros(int((decisions["Gender"] == 1).sum()))
            for draw in made.draws:
                table = draw.frame().drop(columns="LoanApproval")
                once = mm.audit(decisions, **SETTINGS, counterfactuals=table)
                evidence += once.findings(method, k=k)["delta_p"].to_numpy() > 0
            share = found.findings(method, k=k)["draw_share"].to_numpy()
            assert share.tolist() == (evidence / draws).tolist()
            assert 0 < share.mean() < 1


def test_st_has_no_part_in_the_draws(decisions: pd.DataFrame) -> None:
    found = mm.audit(
        decisions,
        **SETTINGS,
        worldview=WORLDVIEW,
        uncertainty=mm.Uncertainty(draws=2, bootstrap=True),
    )
    table = found.findings("st", k=5)
    assert table["draw_share"].tolist() == (table["delta_p"] > 0).astype(float).tolist()


def test_draws_change_nothing_but_the_last_column(decisions: pd.DataFrame) -> None:
    plain = mm.audit(decisions, **SETTINGS, worldview=WORLDVIEW).findings("cst_with", k=20)
    drawn = mm.audit(
        decisions,
        **SETTINGS,
        worldview=WORLDVIEW,
        uncertainty=mm.Uncertainty(draws=3, bootstrap=True),
        seed=1,
    ).findings("cst_with", k=20)
    assert tuple(plain.columns) == COLUMNS
    assert tuple(drawn.columns) == (*COLUMNS, "draw_share")
    pd.testing.assert_frame_equal(plain, drawn[list(COLUMNS)], check_exact=True)


def test_the_seed_repeats_the_draws_whatever_the_threads(decisions: pd.DataFrame) -> None:
    def shares(threads: int | None = None, **options: Any) -> list[float]:
        found = mm.plan(
            decisions,
            **SETTINGS,
            worldview=WORLDVIEW,
            uncertainty=mm.Uncertainty(draws=5, bootstrap=True),
            **options,
        ).run(threads=threads)
        return [float(value) for value in found.findings("cst_without", k=5)["draw_share"]]

    assert shares(seed=1, threads=1) == shares(seed=1, threads=2)
    assert shares(seed=1) != shares(seed=2)
    assert shares() == shares(seed=0)


def test_provenance_records_the_draws(decisions: pd.DataFrame) -> None:
    found = mm.audit(
        decisions,
        **SETTINGS,
        worldview=WORLDVIEW,
        uncertainty=mm.Uncertainty(draws=2, bootstrap=True),
    )
    settings = found.provenance.settings
    assert settings["uncertainty"] == {"draws": 2, "bootstrap": True, "placebo": 19}
    assert settings["seed"] == 0
    assert found.provenance.computed["moved"] == ["AnnualSalary", "AccountBalance"]


def test_a_case_shows_the_share_of_draws(decisions: pd.DataFrame) -> None:
    found = mm.audit(
        decisions,
        **SETTINGS,
        worldview=WORLDVIEW,
        uncertainty=mm.Uncertainty(draws=4, bootstrap=True),
    )
    complainant = int(found.findings("cst_without", k=5)["id"].iloc[0])
    case = found.case(complainant)
    assert "share of draws" in str(case)
    assert case.result("cst_without", k=5)["draw_share"] in (0.0, 0.25, 0.5, 0.75, 1.0)
    assert "share of draws" not in str(
        mm.audit(decisions, **SETTINGS, worldview=WORLDVIEW).case(complainant)
    )


@pytest.mark.parametrize(
    ("worldview", "doubt", "message"),
    [
        (WORLDVIEW, {"draws": 5}, "draws=5 would all be the same"),
        (WORLDVIEW, {"draws": -1}, "draws=-1 is not allowed"),
        (WORLDVIEW, {"draws": 2.5}, "draws=2.5 is not allowed"),
        (WORLDVIEW, {"bootstrap": True, "draws": 0}, "draws=0 makes none"),
        (None, {"draws": 5, "bootstrap": True}, "draws=5 needs worldview="),
    ],
)
def test_draws_that_make_no_sense(
    decisions: pd.DataFrame, worldview: mm.Worldview | None, doubt: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        mm.audit(decisions, **SETTINGS, worldview=worldview, uncertainty=mm.Uncertainty(**doubt))


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
    shares = found.findings("cf", k=10)["draw_share"]
    assert ((shares > 0) & (shares < 1)).any()
    assert "assumed, beyond what data can test: monotone coupling for visits" in repr(found)
    complainant = int(found.findings("cf", k=10)["id"].iloc[0])
    assert "(assuming monotone coupling, which no data can test)" in str(found.case(complainant))
    assert (
        "draw_share"
        not in mm.audit(table, **settings, uncertainty=mm.Uncertainty(draws=0))
        .findings("cf", k=10)
        .columns
    )


def test_bootstrap_alone_makes_the_default_number_of_draws(decisions: pd.DataFrame) -> None:
    found = mm.audit(
        decisions, **SETTINGS, worldview=WORLDVIEW, uncertainty=mm.Uncertainty(bootstrap=True)
    )
    assert found.plan.settings.uncertainty.draws == 20
