"""Diagnostics of every family of equations: alarms, fit, draws, and the order of rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]

from mutandis.data.population import Population
from mutandis.rooms.latent import Latent
from mutandis.scm import Additive, Categorical, Count, Diagnosis, Linear, Ordinal, Stated, Worldview

Table = dict[str, Any]
Rng = np.random.Generator


def _people(table: Any) -> Population:
    return Population.from_frame(pd.DataFrame(table), columns=list(table))


def _check(worldview: Worldview, table: Any, **options: Any) -> Diagnosis:
    return worldview.check(_people(table), **options)


def _lowest(diagnosis: Diagnosis) -> float:
    """Give the smallest adjusted p-value: there is a problem at each alpha above it."""
    return min(check.p_adjusted for check in diagnosis.findings if check.p_adjusted is not None)


DISCRETE = Worldview(
    {
        "x": Linear("status"),
        "count": Count("status", "x"),
        "grade": Ordinal("status", "x", levels=["low", "mid", "top"]),
        "job": Categorical("status", "x"),
        "y": Linear("count", "job", "status"),
    }
)


def _discrete_table(rng: Rng, rows: int, *, bend: float = 0.0) -> Table:
    female = rng.random(rows) < 0.3
    x = female + rng.normal(size=rows)
    count = rng.poisson(np.exp(1 + 0.3 * x - 0.5 * female + 0.3 * bend * x**2)).astype(float)
    rank = x - female + bend * x**2 + rng.logistic(size=rows)
    appeal = np.column_stack([0 * x, 0.5 * x + female + bend * x**2, -x])
    job = np.array(["a", "b", "c"])[(appeal + rng.gumbel(size=(rows, 3))).argmax(axis=1)]
    return {
        "status": np.where(female, "f", "m"),
        "x": x,
        "count": count,
        "grade": np.array(["low", "mid", "top"])[(rank > -0.5).astype(int) + (rank > 1)],
        "job": job,
        "y": 0.3 * count + (job == "a") + female + rng.normal(size=rows),
    }


@pytest.mark.slow
def test_right_equations_of_every_family_raise_few_false_alarms() -> None:
    tables, alpha = 200, 0.05
    lowest = [
        _lowest(_check(DISCRETE, _discrete_table(np.random.default_rng([seed, 2]), 400)))
        for seed in range(tables)
    ]
    error = (alpha * (1 - alpha) / tables) ** 0.5
    assert np.mean(np.array(lowest) < alpha) <= alpha + 3 * error


def test_counts_under_a_hidden_cause_are_drawn_with_it() -> None:
    """Small counts: with the middle of what is possible for noise, they would not look normal."""
    rng = np.random.default_rng(25)
    female, talent = rng.integers(0, 2, 1500), rng.normal(size=1500)
    table = {
        "female": female,
        "prizes": rng.poisson(np.exp(0.3 * female + 0.6 * talent)).astype(float),
        "score": 2 * talent + female + rng.normal(size=1500),
    }
    hidden = Latent("talent", {"prizes": Count("female"), "score": Linear("female")})
    diagnosis = _check(Worldview({}, latents=[hidden]), table, protected="female")
    assert diagnosis.problems == ()
    aspects = {(check.child, check.aspect) for check in diagnosis.findings if check.p_value}
    assert ("prizes", "distribution") in aspects


def test_two_categories_spread_as_their_probabilities_have_it() -> None:
    """The variance of an indicator is p(1 - p): it changes with the cause, as it should."""
    rng = np.random.default_rng(27)
    age = rng.normal(size=2000)
    table = {"age": age, "job": np.where(rng.random(2000) < 1 / (1 + np.exp(3 - age)), "a", "b")}
    diagnosis = _check(Worldview({"job": Categorical("age")}), table)
    assert [check.aspect for check in diagnosis.findings] == ["level"]
    assert diagnosis.tests == 1
    assert diagnosis.problems == ()


def test_categories_that_are_too_rare_are_not_tested() -> None:
    age = np.random.default_rng(28).normal(size=300)
    table = {"age": age, "job": ["a"] * 292 + ["b"] * 8}
    diagnosis = _check(Worldview({"job": Categorical("age")}), table)
    assert diagnosis.tests == 0
    assert "job: level over age not tested: all categories but one have fewer" in str(diagnosis)


@pytest.mark.slow
def test_bends_in_counts_grades_and_categories_are_found() -> None:
    found = dict.fromkeys(["count", "grade", "job"], 0)
    for seed in range(30):
        table = _discrete_table(np.random.default_rng([seed, 5]), 1000, bend=0.6)
        problems = _check(DISCRETE, table).problems
        for child in found:
            found[child] += any(
                (check.child, check.on, check.aspect) == (child, "x", "level") for check in problems
            )
    assert min(found.values()) >= 27


def test_a_count_that_varies_less_than_a_poisson_count() -> None:
    rng = np.random.default_rng(1)
    status = rng.integers(0, 2, 1000)
    table = {"status": status, "count": rng.binomial(40, 0.7 - 0.2 * status).astype(float)}
    diagnosis = _check(Worldview({"count": Count("status")}), table)
    (problem,) = [check for check in diagnosis.problems if check.aspect == "distribution"]
    assert problem.effect == pytest.approx(0.6, abs=0.1)
    assert any("count: its values are not distributed as" in one for one in diagnosis.sentences())


# --- the order of rows, and repeated runs ---------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_rows_changes_nothing(seed: int) -> None:
    table = pd.DataFrame(_discrete_table(np.random.default_rng(6), 500, bend=0.3)).round(2)
    do = {"status": "m"}
    once = _check(DISCRETE, table, protected="status", do=do).as_dict()
    shuffled = table.sample(frac=1.0, random_state=seed)
    assert _check(DISCRETE, shuffled, protected="status", do=do).as_dict() == once
    assert _check(DISCRETE, table, protected="status", do=do).as_dict() == once


# --- fit ------------------------------------------------------------------------------------------


def test_deviance_explained_is_that_of_statsmodels() -> None:
    table = pd.DataFrame(_discrete_table(np.random.default_rng(8), 600))
    design = sm.add_constant(
        pd.DataFrame({"male": 1.0 * (table["status"] == "m"), "x": table["x"]})
    )
    equations = DISCRETE.fit(_people(table)).equations
    causes = {name: _people(table).columns[name] for name in ("status", "x")}
    means = equations["count"].means(causes, rows=len(table))  # type: ignore[attr-defined]
    deviance = sm.families.Poisson().deviance
    counts = table["count"]
    explained = 1 - deviance(counts, means) / deviance(counts, np.full(len(table), counts.mean()))
    multinomial = sm.MNLogit(table["job"].astype("category").cat.codes, design)
    log_odds = [
        [predictor.intercept, predictor.terms[0].shifts["m"], predictor.terms[1].slope]
        for predictor in equations["job"].predictors  # type: ignore[attr-defined]
    ]
    shares = table["job"].value_counts(normalize=True)
    without = float(np.log(shares.loc[table["job"]]).sum())
    fits = {check.child: check for check in _check(DISCRETE, table).equations}
    assert fits["count"].fit == pytest.approx(explained)
    assert fits["job"].fit == pytest.approx(1 - multinomial.loglike(np.ravel(log_odds)) / without)
    assert {fits[name].measure for name in ("count", "grade", "job")} == {"deviance explained"}
    assert [check.family for check in fits.values()] == [
        "Linear",
        "Count",
        "Ordinal",
        "Categorical",
        "Linear",
    ]


def test_fit_of_a_log_link_is_on_its_scale() -> None:
    rng = np.random.default_rng(9)
    age = rng.normal(size=200)
    table = {"age": age, "x": np.exp(age + rng.normal(size=200))}
    (check,) = _check(Worldview({"x": Linear("age", link="log")}), table).equations
    assert check.measure == "R² of the logarithm"
    assert check.fit == pytest.approx(np.corrcoef(age, np.log(table["x"]))[0, 1] ** 2)


def test_a_stated_equation_can_be_worse_than_none() -> None:
    rng = np.random.default_rng(10)
    age = rng.normal(size=200)
    table = {"age": age, "x": age + rng.normal(size=200)}
    diagnosis = _check(Worldview({"x": Stated("-2 * age")}), table)
    (check,) = diagnosis.equations
    residual = table["x"] + 2 * age
    expected = 1 - (residual**2).sum() / ((table["x"] - table["x"].mean()) ** 2).sum()
    assert check.fit == pytest.approx(expected)
    assert expected < 0
    assert "x: residuals still depend on age (p < 0.001): the equation misses part" in str(
        diagnosis
    )


@dataclass(frozen=True)
class _Means:
    """A regressor of somebody else's: what it knows is the mean of each first feature's sign."""

    def fit(self, features: Any, target: Any) -> _Means:
        return self

    def predict(self, features: Any) -> Any:
        return np.sign(features[:, 0])


def test_an_equation_with_any_regressor_is_checked() -> None:
    rng = np.random.default_rng(11)
    age = rng.normal(size=500)
    right = {"age": age, "x": np.sign(age) + rng.normal(size=500)}
    wrong = {"age": age, "x": np.sign(age) + 0.5 * age + rng.normal(size=500)}
    worldview = Worldview({"x": Additive("age", regressor=_Means())})
    assert _check(worldview, right).problems == ()
    (problem,) = _check(worldview, wrong).problems
    assert (problem.on, problem.aspect) == ("age", "level")


def test_a_diagnosis_goes_into_json_and_prints() -> None:
    table = _discrete_table(np.random.default_rng(23), 300, bend=0.6)
    diagnosis = _check(DISCRETE, table, protected="status", do={"status": "m"})
    written = json.loads(json.dumps(diagnosis.as_dict(), allow_nan=False))
    assert written["tests"] == diagnosis.tests
    said = [sentence for section in written["sections"].values() for sentence in section]
    assert [written["summary"], *said, written["next_step"]] == list(diagnosis.sentences())
    assert sum(check["problem"] for check in written["findings"]) == len(diagnosis.problems) > 0
    lines = [line.removeprefix("- ") for line in str(diagnosis).split("\n") if line]
    assert [line for line in lines if line not in written["sections"]] == list(
        diagnosis.sentences()
    )
    with pytest.raises(AttributeError):
        diagnosis.rows = 1  # type: ignore[misc]
