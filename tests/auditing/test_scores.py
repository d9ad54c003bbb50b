"""Outcomes that are numbers: means in units, Welch's test, and every method on top of them."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_ind

import mutandis as mm
from mutandis.errors import DecisionError, OutcomeError, PlanError
from mutandis.outcomes.score import ScoreKind
from tests.tables import Table, audit_people, nearest_people, weigh_matches
from tests.tables import people_with_rates as made_up

RATE = mm.Score("rate", worse="higher")
audit = partial(audit_people, outcome=RATE)


def moments(table: Table, weights: dict[int, Fraction]) -> tuple[Fraction, Fraction]:
    """Give the weighted mean and variance of rates, as the decimals that were written."""
    total = sum(weights.values())
    rates = {row: Fraction(str(table["rate"][row])) for row in weights}
    mean = sum((w * rates[row] for row, w in weights.items()), Fraction(0)) / total
    spread = sum((w * (rates[row] - mean) ** 2 for row, w in weights.items()), Fraction(0))
    return mean, spread / total


@pytest.mark.parametrize("k", [8, 20])
def test_means_and_variances_are_those_by_hand(k: int) -> None:
    table = made_up(2)
    found = audit(table)
    women = [i for i, w in enumerate(table["woman"]) if w]
    men = [i for i, w in enumerate(table["woman"]) if not w]
    rows = found.findings("st", k=k).set_index("id")
    evaluated = found.evaluate("st", k)
    from mutandis.outcomes.score import variance_of

    scale = found.plan.outcome.kind
    assert isinstance(scale, ScoreKind)
    unit = float(scale.step)
    for place in (0, 5, 31, 79):
        her = women[place]
        others = [each for each in women if each != her]
        control = moments(table, nearest_people(table, her, others, k))
        test = moments(table, nearest_people(table, her, men, k))
        assert rows.loc[her, "mean_control"] == float(control[0])
        assert rows.loc[her, "mean_test"] == float(test[0])
        assert rows.loc[her, "delta"] == float(control[0] - test[0])
        variance = variance_of(evaluated.control.share)[place] * unit**2
        assert variance == pytest.approx(float(control[1]), rel=1e-12)


def test_welch_is_that_of_scipy_where_no_place_is_shared() -> None:
    table = made_up(3, coarse=False)
    found = audit(table, tau=0.1)
    rates = np.array(table["rate"])
    rows = found.findings("st", k=20).set_index("id")
    for her in rows.index[:12]:
        groups = found.case(her).groups("st", k=20)
        here, there = rates[groups.control.ids], rates[groups.test.ids]
        theirs = ttest_ind(here - 0.1, there, equal_var=False, alternative="greater")
        assert rows.loc[her, "p_value"] == pytest.approx(theirs.pvalue, rel=1e-9)
        bounds = ttest_ind(here, there, equal_var=False).confidence_interval(0.9)
        assert rows.loc[her, "ci_low"] == pytest.approx(bounds.low, rel=1e-9)
        assert rows.loc[her, "ci_high"] == pytest.approx(bounds.high, rel=1e-9)
        # the bound and the p-value say the same
        assert (rows.loc[her, "ci_low"] >= 0.1) == (rows.loc[her, "p_value"] <= 0.05)


def test_matched_means_are_those_by_hand() -> None:
    """Σ_j w_j y_j / Σ_j w_j with w_j = Σ_i u_i s_ij, in fractions, m = 5."""
    table = made_up(4)
    moved = [x + 1 if w else x for x, w in zip(table["income"], table["woman"], strict=True)]
    counterfactuals = {"income": moved, "debt": table["debt"]}
    found = audit(table, worldview=None, counterfactuals=counterfactuals, tau=0.25)
    women = [i for i, w in enumerate(table["woman"]) if w]
    men = [i for i, w in enumerate(table["woman"]) if not w]
    matches = {i: nearest_people(table, i, men, 5, income=moved[i]) for i in women}
    rows = found.findings("cst_matched", k=8).set_index("id")
    for her in women[:12]:
        control = nearest_people(table, her, [i for i in women if i != her], 8)
        mean, _ = moments(table, weigh_matches(control, matches))
        assert rows.loc[her, "mean_test"] == float(mean)
        own, _ = moments(table, matches[her])
        assert rows.loc[her, "mean_own"] == float(own)
        worse = Fraction(str(table["rate"][her])) - own > Fraction(1, 4)
        assert bool(rows.loc[her, "own_case"]) == worse


@pytest.mark.parametrize("factor", [0.01, 100, 12])
def test_units_rescale_differences_and_nothing_else(factor: float) -> None:
    table = made_up(7)
    other = table | {"rate": [round(each * factor, 6) for each in table["rate"]]}
    one, two = audit(table, tau=0.2), audit(other, tau=round(0.2 * factor, 6))
    for method in one.methods:
        first, second = one.findings(method, k=20), two.findings(method, k=20)
        assert first["verdict"].tolist() == second["verdict"].tolist()
        assert second["delta"].tolist() == pytest.approx((first["delta"] * factor).tolist())
        tested = ~np.isnan(first["p_value"])
        assert second["p_value"][tested].tolist() == pytest.approx(
            first["p_value"][tested].tolist()
        )


def test_a_decision_maker_scores_counterfactuals() -> None:
    table = made_up(10)
    rule = "5 - 0.1 * income + 0.2 * debt"
    found = audit(table, decision=rule, tau=0.05)
    rows = found.findings("cf", k=8)
    would_be = found.counterfactuals()
    by_hand = [
        5 - 0.1 * x + 0.2 * y for x, y in zip(would_be["income"], would_be["debt"], strict=True)
    ]
    for _, row in rows.iterrows():
        assert row["outcome_cf"] == pytest.approx(by_hand[row["id"]], abs=1e-6)
        assert row["delta"] == pytest.approx(row["outcome"] - by_hand[row["id"]], abs=1e-6)
        assert (row["verdict"] == "evidence") == (row["delta"] > 0.05)
    again = audit(table, worldview=None, counterfactuals=would_be, tau=0.05)
    assert again.findings("cst_with", k=8)["delta"].tolist() == pytest.approx(
        found.findings("cst_with", k=8)["delta"].tolist()
    )
    function = audit(
        table, decision=lambda frame: 5 - 0.1 * frame["income"] + 0.2 * frame["debt"], tau=0.05
    )
    assert function.findings("cf", k=8).equals(rows)
    with pytest.raises(DecisionError, match="the outcome is a score, which takes a number"):
        audit(table, decision=lambda frame: ["high"] * len(frame))


def test_means_of_few_people_are_compared_and_not_tested() -> None:
    found = audit(made_up(11))
    few, enough = found.findings("st", k=8), found.findings("st", k=20)
    assert few["p_value"].isna().all()
    assert set(few["verdict"]) <= {"evidence", "no-evidence"}
    assert enough["p_value"].notna().all()
    assert "too few people to be tested" in found.case(
        few.loc[few["verdict"] == "evidence", "id"].iloc[0]
    ).explain("st", 8)


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"negative": 5}, PlanError, "contradict each other"),
        ({"evidence": mm.Evidence(interval="wald")}, PlanError, "not for scores, which have"),
        ({"outcome": "rate"}, PlanError, "negative= is missing"),
        ({"tau": -0.1}, PlanError, "below 0, or infinite"),
        ({"similarity": mm.Similarity(distance="ivdm")}, PlanError, "how often people are refused"),
        ({"evidence": mm.Evidence(measure="risk-ratio")}, PlanError, "not for scores, which have"),
    ],
)
def test_what_does_not_belong_to_scores_is_refused(
    changes: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        audit(made_up(), **changes)


def test_scores_need_numbers_that_differ() -> None:
    table = made_up()
    with pytest.raises(OutcomeError, match="the same number in every row"):
        audit(table | {"rate": [1.0] * len(table["rate"])})
    assert audit(table, tau=2.5).counts()["cases"].max() == 0


def test_steps_are_exact_where_decimals_are() -> None:
    values = np.array([3.25, 3.5, 4.75, 10.0])
    scale = ScoreKind.fit("rate", values, worse="higher")
    assert (scale.best, scale.step, scale.exact_steps) == (Fraction(13, 4), Fraction(1, 4), True)
    assert scale.count(values).tolist() == [0, 1, 6, 27]
    assert scale.values(scale.count(values)).tolist() == values.tolist()
    turned = ScoreKind.fit("rate", values, worse="lower")
    assert turned.count(values).tolist() == [27, 26, 21, 0]
    assert turned.values(turned.count(values)).tolist() == values.tolist()
    many = np.random.default_rng(1).normal(0, 1, 50_000)
    rough = ScoreKind.fit("z", many, worse="higher")
    assert not rough.exact_steps
    steps = rough.count(many)
    assert steps.min() >= 0
    assert int(steps.max()) * len(many) < 2**31
    assert np.abs(rough.values(steps) - many).max() <= float(rough.step)
    assert fmean(rough.values(steps)) == pytest.approx(fmean(many), abs=float(rough.step))
