"""The check of worldviews: alarms, what is found where the truth is known, and what is said."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]

from mutandis.data.columns import Numbers
from mutandis.datasets import loan
from mutandis.errors import (
    MissingValuesError,
    MutandisWarning,
    PlanError,
    RootError,
    UnknownColumnError,
)
from mutandis.replication.eaamo import RUNS
from mutandis.rooms.latent import Latent
from mutandis.scm import (
    Additive,
    Categorical,
    Count,
    Diagnosis,
    Linear,
    Ordinal,
    Stated,
    Worldview,
    check,
)
from mutandis.scm.diagnosis import Finding
from mutandis.scm.family import Equation, Fitted, Predicted
from tests.scm.columns import people

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mutandis.data.columns import Column

Table = dict[str, Any]
Rng = np.random.Generator


def _check(worldview: Worldview, table: Any, **options: Any) -> Diagnosis:
    return worldview.check(people(table), **options)


def _pairs(diagnosis: Diagnosis) -> dict[tuple[str | None, str], tuple[str, ...]]:
    """The independences that were tested, and given what."""
    found = [each for each in diagnosis.findings if each.aspect == "independence"]
    return {(each.on, each.child): each.further for each in found}


def _lowest(diagnosis: Diagnosis) -> float:
    """Return the smallest adjusted p-value: there is a problem at each alpha above it."""
    return min(each.p_adjusted for each in diagnosis.findings if each.p_adjusted is not None)


def _normal(seed: int, *names: str, rows: int = 500) -> Table:
    values = np.random.default_rng(seed).normal(size=(len(names), rows))
    return dict(zip(names, values, strict=True))


# --- false alarms ---------------------------------------------------------------------------------

NOISES: dict[str, Callable[[Rng, int], Any]] = {
    "normal": lambda rng, rows: rng.normal(size=rows),
    "heavy tails": lambda rng, rows: rng.standard_t(3, size=rows),
    "skewed": lambda rng, rows: rng.lognormal(size=rows),
    "whole numbers": lambda rng, rows: rng.poisson(3, size=rows).astype(float),
    "bounded": lambda rng, rows: rng.random(rows),
}
RIGHT = Worldview(
    {
        "x": Linear("status", "job"),
        "y": Linear("x", "status"),
        "z": Linear("y", "age"),
        "v": Linear("x", "job"),
    }
)


def _right_table(rng: Rng, rows: int, noise: str) -> Table:
    def u() -> Any:
        return NOISES[noise](rng, rows)

    status = np.where(rng.random(rows) < 0.25, "f", "m")
    job = rng.choice(list("abcd"), rows, p=[0.5, 0.3, 0.15, 0.05])
    age = rng.gamma(4, 10, rows).round()
    x = 1.0 * (status == "f") + 2.0 * (job == "a") + u()
    y = 0.5 * x - 1.0 * (status == "f") + u()
    z, v = y + 0.1 * age + u(), -x + 1.0 * (job == "a") + u()
    return {"status": status, "job": job, "age": age, "x": x, "y": y, "z": z, "v": v}


@pytest.mark.slow
def test_a_right_worldview_raises_few_false_alarms() -> None:
    """Over 400 tables with noise of five kinds, none of which the checks are told."""
    tables, lowest, p_values = 400, [], []
    for seed in range(tables):
        noise = list(NOISES)[seed % len(NOISES)]
        table = _right_table(np.random.default_rng([seed, 1]), 500, noise)
        diagnosis = _check(RIGHT, table, protected="status", do={"status": "m"})
        lowest.append(_lowest(diagnosis))
        p_values += [each.p_value for each in diagnosis.findings if each.p_value is not None]
    for alpha in (0.01, 0.05):
        error = (alpha * (1 - alpha) / tables) ** 0.5
        assert np.mean(np.array(lowest) < alpha) <= alpha + 3 * error
    # the tests are not kept quiet by being dead: each on its own is near its level
    assert len(p_values) >= 30 * tables
    assert 0.035 < np.mean(np.array(p_values) < 0.05) < 0.06


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
def test_discrete_families_raise_few_false_alarms_and_bends_in_them_are_found() -> None:
    tables, alpha = 200, 0.05
    lowest = [
        _lowest(_check(DISCRETE, _discrete_table(np.random.default_rng([seed, 2]), 400)))
        for seed in range(tables)
    ]
    error = (alpha * (1 - alpha) / tables) ** 0.5
    assert np.mean(np.array(lowest) < alpha) <= alpha + 3 * error
    found = dict.fromkeys(["count", "grade", "job"], 0)
    for seed in range(30):
        table = _discrete_table(np.random.default_rng([seed, 5]), 1000, bend=0.6)
        problems = {(p.child, p.on, p.aspect) for p in _check(DISCRETE, table).problems}
        for child in found:
            found[child] += (child, "x", "level") in problems
    assert min(found.values()) >= 27


# --- power ----------------------------------------------------------------------------------------

BOTH = Worldview({"skill": Linear("age"), "x": Linear("status", "age")})
ALONE = Worldview({"skill": Linear("age"), "x": Linear("age")})
MISTAKES: dict[str, tuple[Worldview, Callable[..., Any], tuple[str, str]]] = {
    "a bend": (BOTH, lambda f, age, s, u: age + f + 0.15 * age**2 + u, ("age", "level")),
    "no status": (ALONE, lambda f, age, s, u: age + 0.4 * f + u, ("status", "level")),
    "spread by group": (
        BOTH,
        lambda f, age, s, u: age + f + u * np.exp(0.3 * f),
        ("status", "spread"),
    ),
    "spread by number": (
        BOTH,
        lambda f, age, s, u: age + f + u * np.exp(0.15 * age),
        ("age", "spread"),
    ),
    "interaction": (
        BOTH,
        lambda f, age, s, u: age + f + 0.4 * f * age + u,
        ("status", "interaction"),
    ),
    # it follows from skill too, which is no parent of it and not the protected attribute
    "a missing arrow": (BOTH, lambda f, age, s, u: age + 0.2 * s + u, ("skill", "independence")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_found_in_a_thousand_rows(name: str) -> None:
    (worldview, effect, noticed), found = MISTAKES[name], 0
    for seed in range(50):
        rng = np.random.default_rng([seed, 3])
        female, (age, talent, noise) = rng.random(1000) < 0.3, rng.normal(size=(3, 1000))
        skill = age + talent
        table = {
            "status": np.where(female, "f", "m"),
            "age": 40 + 10 * age,
            "skill": skill,
            "x": effect(female, age, skill, noise),
        }
        problems = _check(worldview, table, protected="status").problems
        found += any(noticed in {(p.on, p.aspect), (p.child, p.aspect)} for p in problems)
    assert found >= 45


def test_p_values_are_adjusted_together() -> None:
    diagnosis = _check(RIGHT, _right_table(np.random.default_rng(22), 300, "normal"))
    tested = [each for each in diagnosis.findings if each.p_value is not None]
    assert diagnosis.tests == len(tested)
    first = min(tested, key=lambda each: each.p_value or 0.0)
    assert first.p_adjusted == pytest.approx(min(1.0, len(tested) * (first.p_value or 0.0)))
    assert {"independence", "level"} <= {each.aspect for each in tested}


def test_a_count_that_varies_less_than_a_poisson_count() -> None:
    rng = np.random.default_rng(1)
    status = rng.integers(0, 2, 1000)
    table = {"status": status, "count": rng.binomial(40, 0.7 - 0.2 * status).astype(float)}
    diagnosis = _check(Worldview({"count": Count("status")}), table)
    (problem,) = [each for each in diagnosis.problems if each.aspect == "distribution"]
    assert problem.effect == pytest.approx(0.6, abs=0.1)
    assert "count: its values are not distributed as" in str(diagnosis)


def test_law_school_lacks_a_hidden_common_cause(data_folder: Path) -> None:
    scenario = next(one for one in RUNS if one.key == "law_race")
    table, worldview = scenario.read(data_folder), scenario.settings["worldview"]
    start = time.perf_counter()
    diagnosis = worldview.check(table, protected="race_nonwhite", do={"race_nonwhite": "White"})
    assert time.perf_counter() - start < 3.0
    assert diagnosis.rows == 21790
    pair = next(one for one in diagnosis.findings if one.aspect == "independence" and one.further)
    assert ({pair.on, pair.child}, pair.test) == ({"LSAT", "UGPA"}, "robust partial correlation")
    # the partial correlation from two regressions on all combinations of sex and race
    cells = table.groupby(["sex", "race_nonwhite"])[["LSAT", "UGPA"]]
    left = table[["LSAT", "UGPA"]] - cells.transform("mean")
    assert pair.effect == pytest.approx(left.corr().iloc[0, 1], abs=0.001)
    # the arrow would change nothing but for the bounds, at which some scores are cut off
    assert (
        "LSAT and UGPA are not independent given sex and race_nonwhite (partial correlation 0.21, "
        "p < 0.001), although the worldview says that they are: a hidden common cause of both is "
        "missing, or an arrow between them. With an arrow from LSAT to UGPA, counterfactuals of "
        "UGPA move by less than 0.01 standard deviations in the median, by 0.19 at most (0.1 or "
        "more in 1.7 % of the rows)."
    ) in diagnosis.sections()["Problems that move counterfactuals little"]
    dummies = pd.get_dummies(table[["sex", "race_nonwhite"]], drop_first=True, dtype=float)
    for each in diagnosis.equations:
        expected = sm.OLS(table[each.child], sm.add_constant(dummies)).fit().rsquared
        assert each.fit == pytest.approx(expected)


def test_loan_data_is_right_on_average_but_its_noise_differs_by_gender() -> None:
    """The penalties of women vary, by -300 χ²(4) and -1500 Poi(10), and enter their noise."""
    worldview = RUNS[0].settings["worldview"]
    diagnosis = worldview.check(loan(n=50_000, seed=1), protected="Gender")
    (problem,) = diagnosis.problems
    assert (problem.child, problem.on, problem.aspect) == ("AccountBalance", "Gender", "spread")
    # √(2500² + 300²·8) over 2500 is 1.056
    assert problem.effect == pytest.approx(1.056, abs=0.02)
    sentence = diagnosis.sentences()[1]
    assert sentence.startswith("AccountBalance: the noise spreads differently over the values of")
    assert "Averages may be right" in sentence
    few = worldview.check(loan(seed=7), protected="Gender")
    assert few.problems == ()
    *_, last = few.sections()["What no table can show"]
    assert last.startswith("The absence of problems does not show")
    assert few.sentences()[-1] == few.next_step


# --- fit ------------------------------------------------------------------------------------------


def test_deviance_explained_is_that_of_statsmodels() -> None:
    table = pd.DataFrame(_discrete_table(np.random.default_rng(8), 600))
    male = 1.0 * (table["status"] == "m")
    design = sm.add_constant(pd.DataFrame({"male": male, "x": table["x"]}))
    equations: Any = DISCRETE.fit(people(table)).equations
    causes = {name: people(table).columns[name] for name in ("status", "x")}
    means, counts = equations["count"].means(causes, rows=len(table)), table["count"]
    deviance = sm.families.Poisson().deviance
    explained = 1 - deviance(counts, means) / deviance(counts, np.full(len(table), counts.mean()))
    multinomial = sm.MNLogit(table["job"].astype("category").cat.codes, design)
    log_odds = [
        [
            predictor.intercept,
            *(value for t in predictor.terms for value in t.coefficients.values()),
        ]
        for predictor in equations["job"].predictors
    ]
    shares = table["job"].value_counts(normalize=True)
    without = float(np.log(shares.loc[table["job"]]).sum())
    fits = {each.child: each for each in _check(DISCRETE, table).equations}
    assert fits["count"].fit == pytest.approx(explained)
    assert fits["job"].fit == pytest.approx(1 - multinomial.loglike(np.ravel(log_odds)) / without)
    assert {fits[name].measure for name in ("count", "grade", "job")} == {"deviance explained"}
    families = [each.family for each in fits.values()]
    assert families == ["Linear", "Count", "Ordinal", "Categorical", "Linear"]


def test_fits_on_the_scale_of_the_equation() -> None:
    table = _normal(9, "age", "u", rows=200)
    table["x"] = np.exp(table["age"] + table.pop("u"))
    (logs,) = _check(Worldview({"x": Linear("age", link="log")}), table).equations
    assert logs.measure == "R² of the logarithm"
    assert logs.fit == pytest.approx(np.corrcoef(table["age"], np.log(table["x"]))[0, 1] ** 2)
    # a stated equation can be worse than none
    diagnosis = _check(Worldview({"x": Stated("-2 * age")}), table)
    residual = table["x"] + 2 * table["age"]
    expected = 1 - (residual**2).sum() / ((table["x"] - table["x"].mean()) ** 2).sum()
    assert diagnosis.equations[0].fit == pytest.approx(expected)
    assert "x: residuals still depend on age (p < 0.001): the equation misses" in str(diagnosis)


# --- what cannot be tested ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Opaque(Equation, Fitted[Any]):
    """An equation that says nothing about its noise."""

    parents: tuple[str, ...]

    def fit(self, child: Column, parents: Mapping[str, Column]) -> _Opaque:
        return self

    def abduct(self, child: Column, parents: Mapping[str, Column], *, rng: Any = None) -> object:
        return object()

    def predict(self, parents: Mapping[str, Column], noise: object) -> Predicted:
        return Predicted(column=Numbers(np.zeros(len(next(iter(parents.values()))))))


AGE = np.random.default_rng(15).normal(size=300)
NOISE = np.random.default_rng(16).normal(size=300)


@pytest.mark.parametrize(
    ("equation", "table", "said"),
    [
        (
            _Opaque(("age",)),
            {"age": AGE, "x": NOISE},
            "x: level over age not tested: its equation does not give its noise as numbers.",
        ),
        (
            _Opaque(("age",)),
            {"age": AGE, "x": NOISE},
            "x (_Opaque): how much of it age explains is not available.",
        ),
        (
            Linear("age"),
            {"age": AGE, "x": 3 * AGE - 1},
            "x: level over age not tested: its causes determine it, so no noise is left over.",
        ),
        (
            Linear("age"),
            {"age": AGE[:30], "x": NOISE[:30]},
            "x: level over age not tested: 30 rows are too few to fit 6 numbers to.",
        ),
        (
            Categorical("age"),
            {"age": AGE, "x": ["a"] * 292 + ["b"] * 8},
            "x: level over age not tested: all categories but one have fewer than 10 rows.",
        ),
    ],
)
def test_what_cannot_be_tested_is_not_passed(equation: Equation, table: Any, said: str) -> None:
    diagnosis = _check(Worldview({"x": equation}), table)
    assert diagnosis.tests == 0
    assert said in diagnosis.sentences()
    assert "found no evidence" not in str(diagnosis)


@pytest.mark.parametrize(
    ("equation", "x", "said"),
    [
        (Linear("female"), NOISE, "x: level over female not tested: the equation is saturated in"),
        (Linear("female", "age"), 1.0, "x: the effect of female changes with age (p < 0.001)"),
        (
            Linear("female", "age", interactions=True),
            1.0,
            "x: interaction over female with age not tested: the equation contains their inter",
        ),
    ],
)
def test_what_an_equation_has_already_is_not_tested(equation: Equation, x: Any, said: str) -> None:
    female = np.tile([0, 1], 150)
    table = {"female": female, "age": AGE, "x": 2 * x * AGE * female + NOISE}
    assert said in str(_check(Worldview({"x": equation}), table, protected="female"))


def test_a_cause_that_does_not_vary_is_not_tested() -> None:
    table = {"status": np.ones(300), "age": AGE, "x": NOISE}
    diagnosis = _check(Worldview({"x": Stated("0 * status + 0 * age")}), table, protected="status")
    notes = {each.note for each in diagnosis.findings if each.on == "status" and each.child == "x"}
    assert notes == {"the column does not vary", "one of the columns does not vary"}


def test_two_categories_spread_as_their_probabilities_have_it() -> None:
    """The variance of an indicator is p(1 - p): it changes with the cause, as it should."""
    rng = np.random.default_rng(27)
    age = rng.normal(size=2000)
    table = {"age": age, "job": np.where(rng.random(2000) < 1 / (1 + np.exp(3 - age)), "a", "b")}
    diagnosis = _check(Worldview({"job": Categorical("age")}), table)
    assert [each.aspect for each in diagnosis.findings] == ["level"]
    assert (diagnosis.tests, diagnosis.problems) == (1, ())


@dataclass(frozen=True)
class _Signs:
    """A regressor of somebody else's."""

    def fit(self, features: Any, target: Any) -> _Signs:
        return self

    def predict(self, features: Any) -> Any:
        return np.sign(features[:, 0])


def test_an_equation_with_any_regressor_is_checked() -> None:
    worldview = Worldview({"x": Additive("age", regressor=_Signs())})
    assert _check(worldview, {"age": AGE, "x": np.sign(AGE) + NOISE}).problems == ()
    wrong = {"age": AGE, "x": np.sign(AGE) + 0.5 * AGE + NOISE}
    (problem,) = _check(worldview, wrong).problems
    assert (problem.on, problem.aspect) == ("age", "level")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "test"), [(3000, "stratified G-test"), (1200, "robust regression score"), (400, None)]
)
def test_nominal_columns_with_small_strata_are_taken_by_regression(
    rows: int, test: str | None
) -> None:
    """Three thousand rows in a hundred strata can be counted; fewer are enough to regress on."""
    rng = np.random.default_rng(17)
    place = rng.integers(0, 100, 3000).astype(str)
    one, other = rng.choice(["a", "b"], (2, 3000))
    table = {"place": place[:rows], "one": one[:rows], "other": other[:rows]}
    worldview = Worldview({"one": Categorical("place"), "other": Categorical("place")})
    diagnosis = _check(worldview, table)
    (found,) = [each for each in diagnosis.findings if each.aspect == "independence"]
    assert (found.p_value is None) == (test is None)
    assert found.test == test if test else "too few rows" in found.note


# --- attributes outside the worldview, and hidden causes ------------------------------------------


def test_a_protected_attribute_that_the_worldview_leaves_out_is_tested() -> None:
    table = _normal(18, "age", "x", rows=1000)
    table["female"] = np.random.default_rng(18).integers(0, 2, 1000)
    table["x"] += table["age"] + 0.5 * table["female"]
    worldview = Worldview({"x": Linear("age")})
    assert _check(worldview, table).problems == ()
    diagnosis = _check(worldview, table, protected="female", do={"female": 0})
    assert (
        "x: residuals still depend on female (p < 0.001): the equation misses an effect of female. "
    ) in str(diagnosis)
    assert "the worldview gives it no effects" in str(diagnosis)
    assert _pairs(diagnosis) == {("female", "age"): (), ("female", "x"): ("age",)}


def test_dependent_roots_are_told_apart_from_a_missing_cause() -> None:
    table = _normal(19, "age", "wealth", "x")
    table["wealth"] += table["age"]
    table["x"] += table["age"]
    sentence = _check(Worldview({"x": Linear("age", "wealth")}), table).sentences()[1]
    assert sentence.startswith("age and wealth are not independent (correlation 0.7")
    assert "the equations can still hold" in sentence


def test_given_its_causes_an_attribute_is_what_its_equation_leaves_over() -> None:
    """On the scale of the equation: here of the logarithm, where the effect that is missed is."""
    table = _normal(26, "age", "skill", "u", rows=600)
    noise = 0.3 * table["skill"] + table.pop("u")
    table["x"] = np.exp(3 * table["age"] + noise)
    diagnosis = _check(Worldview({"skill": Linear("age"), "x": Linear("age", link="log")}), table)
    assert _pairs(diagnosis) == {("skill", "x"): ("age",)}
    effect = next(each.effect for each in diagnosis.findings if each.aspect == "independence")
    assert effect == pytest.approx(np.corrcoef(table["skill"], noise)[0, 1], abs=0.02)


def test_an_intervention_on_an_effect_does_not_test_its_causes_on_it() -> None:
    table = _normal(24, "age", "x", "y")
    table["x"] += table["age"]
    table["y"] += table["x"]
    diagnosis = _check(Worldview({"x": Linear("age"), "y": Linear("x")}), table, do={"y": 0.0})
    assert diagnosis.problems == ()
    residuals = {(e.child, e.on) for e in diagnosis.findings if e.aspect != "independence"}
    assert residuals == {("x", "age"), ("y", "x")}


def _driven_table(seed: int) -> Table:
    rng = np.random.default_rng(seed)
    female, talent = rng.integers(0, 2, 1000), rng.normal(size=1000)
    maths = female + talent + rng.normal(size=1000)
    music = 2 * talent - female + 0.5 * maths + rng.normal(size=1000)
    return {"female": female, "maths": maths, "music": music, "pay": maths + rng.normal(size=1000)}


def test_a_hidden_cause_explains_a_dependence_away() -> None:
    table = _driven_table(20)
    del table["pay"]
    table["music"] = table["music"] - 0.5 * table["maths"]
    equations = {"maths": Linear("female"), "music": Linear("female")}
    without = _check(Worldview(equations), table)
    assert list(_pairs(without)) == [("maths", "music")]
    assert len(without.problems) == 1
    hidden = _check(Worldview({}, latents=[Latent("talent", equations)]), table)
    assert (_pairs(hidden), hidden.problems) == ({}, ())
    assert "maths (Linear, driven by talent): female explains" in str(hidden)


def test_noise_that_a_hidden_cause_shares_with_a_parent_is_no_problem() -> None:
    """The residual of music holds talent, and so does maths, its parent."""
    latent = Latent("talent", {"maths": Linear("female"), "music": Linear("female", "maths")})
    worldview = Worldview({"pay": Linear("maths")}, latents=[latent])
    with pytest.warns(MutandisWarning, match="talent"):  # two normal attributes tell too little
        diagnosis = _check(worldview, _driven_table(21), protected="female")
    assert diagnosis.problems == ()
    assert "music: level over maths not tested: both have a hidden cause" in str(diagnosis)
    pairs = {("female", "pay"): ("maths",), ("pay", "music"): ("female", "maths")}
    assert _pairs(diagnosis) == pairs


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
    aspects = {(each.child, each.aspect) for each in diagnosis.findings if each.p_value}
    assert ("prizes", "distribution") in aspects


# --- interventions --------------------------------------------------------------------------------

SMALL: Table = {
    "status": ["f"] * 4 + ["m"] * 6,
    "x": [0.0, 1.0, 2.0, 5.0, 4.0, 5.0, 6.0, 6.0, 7.0, 8.0],
}


@pytest.mark.parametrize(
    ("bounds", "to", "changed", "outside", "clipped", "said"),
    [
        # women have mean 2, men 6: their x + 4 is 4, 5, 6 and 9, of which 9 is beyond 8
        (
            None,
            "m",
            4,
            0.25,
            0.0,
            "x: 25.0 % of the counterfactuals of the 4 rows that the intervention changes lie",
        ),
        # at most 5: two women are cut off, and five men whom nothing happens to do not count
        ((None, 5.0), "m", 4, 0.0, 0.5, "x: 50.0 % of the counterfactuals of the 4 rows"),
        ((None, 5.0), "f", 6, 0.0, 0.0, "no counterfactual of the 6 rows"),
    ],
)
def test_counterfactuals_beyond_the_facts_and_cut_off_are_counted_among_those_who_change(
    bounds: Any, to: str, changed: int, outside: float, clipped: float, said: str
) -> None:
    diagnosis = _check(Worldview({"x": Linear("status", bounds=bounds)}), SMALL, do={"status": to})
    assert (diagnosis.changed, dict(diagnosis.outside)) == (changed, {"x": outside})
    assert dict(diagnosis.clipped) == {"x": clipped}
    assert said in str(diagnosis)


def test_interventions_that_change_nobody_and_counterfactual_names() -> None:
    table = {"age": np.linspace(0, 1, 50), "wealth": np.zeros(50), "x": np.sin(np.arange(50.0))}
    nobody = _check(Worldview({"x": Linear("age")}), table, do={"wealth": 0})
    assert nobody.changed == 0
    assert "The intervention changes no rows" in str(nobody)
    jobs = {"status": ["f", "m"] * 50, "job": ["a", "a", "b", "b"] * 25}
    diagnosis = _check(Worldview({"job": Categorical("status")}), jobs, do={"status": "m"})
    assert dict(diagnosis.outside) == {"job": 0.0}
    assert "job: its counterfactuals rest on Gumbel-max coupling" in str(diagnosis)
    without = _check(Worldview({"x": Linear("status")}), SMALL)
    assert without.changed is None
    assert "How far the equations are carried" not in without.sections()
    assert without.next_step.startswith("Next: check again with the protected attribute and its")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        *(({"alpha": alpha}, PlanError, "alpha") for alpha in (0.0, 0.5, -1.0, float("nan"))),
        ({"protected": "x"}, RootError, "'x'"),
        ({"protected": "sex"}, UnknownColumnError, "'sex'"),
        ({"do": {"sex": "m"}}, UnknownColumnError, "'sex'"),
        *(({"do": do}, PlanError, "do") for do in ({}, {"status": "x"}, {"status": ["m"]})),
    ],
)
def test_what_is_refused(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _check(Worldview({"x": Linear("status")}), SMALL, **options)


# --- tables ---------------------------------------------------------------------------------------


def test_the_order_of_rows_changes_nothing_and_a_diagnosis_goes_into_json() -> None:
    table = pd.DataFrame(_discrete_table(np.random.default_rng(6), 500, bend=0.6)).round(2)
    options: Any = {"protected": "status", "do": {"status": "m"}}
    diagnosis = _check(DISCRETE, table, **options)
    for each in (table, table.sample(frac=1.0, random_state=1)):
        assert _check(DISCRETE, each, **options).as_dict() == diagnosis.as_dict()
    written = json.loads(json.dumps(diagnosis.as_dict(), allow_nan=False))
    said = [sentence for section in written["sections"].values() for sentence in section]
    assert [written["summary"], *said, written["next_step"]] == list(diagnosis.sentences())
    assert sum(each["problem"] for each in written["findings"]) == len(diagnosis.problems) > 0
    lines = [line.removeprefix("- ") for line in str(diagnosis).split("\n") if line]
    lines = [line for line in lines if line not in written["sections"]]
    assert lines == list(diagnosis.sentences())


@pytest.mark.parametrize("as_frame", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_any_table_can_be_checked(as_frame: Callable[[Any], Any]) -> None:
    worldview = Worldview({"x": Linear("status")})
    options: Any = {"protected": "status", "do": {"status": "m"}, "alpha": 0.05}
    assert worldview.check(as_frame(SMALL), **options) == _check(worldview, SMALL, **options)


def test_kinds_can_be_declared_and_rows_left_out() -> None:
    table = {"status": [0, 1] * 50 + [0], "x": [*np.arange(100.0), np.nan]}
    worldview = Worldview({"x": Linear("status")})
    diagnosis = worldview.check(
        table, do={"status": 0}, attributes={"status": "nominal"}, missing="drop"
    )
    assert (diagnosis.rows, diagnosis.changed) == (100, 50)
    with pytest.raises(MissingValuesError):
        worldview.check(table)


def test_of_many_rows_some_are_tested_evenly_and_everyone_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(8)
    status = rng.integers(0, 2, 4000)
    first = np.round(rng.normal(size=4000) - status, 1)
    table = {"status": status, "first": first, "second": first**2 + rng.normal(size=4000)}
    worldview = Worldview({"first": Linear("status"), "second": Linear("first", "status")})
    whole = _check(worldview, table, do={"status": 0})
    monkeypatch.setattr(check, "_MOST_ROWS", 1500)
    monkeypatch.setattr(check, "_BLOCK", 100)
    some = _check(worldview, table, do={"status": 0})
    assert (some.rows, some.taken_from, whole.taken_from) == (1334, 4000, None)
    assert some.summary.startswith("Checked on 1,334 rows of 4,000 with ")
    # a third of the rows sees the curve; those who are changed are counted as ever
    for each in (some, whole):
        assert min(found.p_value or 1.0 for found in each.findings if found.on == "first") < 1e-30
    assert some.changed == whole.changed == (status == 1).sum()
    assert (some.clipped, some.outside) == (whole.clipped, whole.outside)
    assert whole.outside["second"] > 0


# --- sentences ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p_adjusted", "is_problem"), [(0.00999, True), (0.01, False)])
def test_a_problem_is_below_alpha(p_adjusted: float, is_problem: bool) -> None:
    finding = Finding(
        child="LSAT",
        on="race",
        aspect="level",
        test="robust score test",
        statistic=9.0,
        p_value=p_adjusted / 2,
        p_adjusted=p_adjusted,
        effect=0.1,
        effect_name="correlation",
    )
    diagnosis = Diagnosis(rows=100, alpha=0.01, findings=(finding,))
    assert bool(diagnosis.problems) == is_problem
    if is_problem:
        summary, problem, *_ = diagnosis.sentences()
        assert summary == (
            "Checked on 100 rows with 1 test: 1 problem. p-values are adjusted for the number of "
            "tests (Holm); a problem is one below 0.01."
        )
        assert problem == (
            "LSAT: residuals still depend on race (p = 0.010): the equation misses an effect of "
            "race. That is 1.0 % of the residual variance."
        )
