"""Diagnostics: what they find in data whose truth is known, and what they say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mutandis.data.columns import Numbers
from mutandis.data.population import Population
from mutandis.errors import (
    MissingValuesError,
    MutandisWarning,
    PlanError,
    RootError,
    UnknownColumnError,
)
from mutandis.rooms.latent import Latent
from mutandis.scm import Categorical, Diagnosis, Linear, Stated, Worldview, check
from mutandis.scm.check import check_worldview
from mutandis.scm.diagnosis import Finding
from mutandis.scm.family import Equation, Fitted, Predicted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mutandis.data.columns import Column

Table = dict[str, Any]
Rng = np.random.Generator


def _people(table: Any) -> Population:
    return Population.from_frame(pd.DataFrame(table), columns=list(table))


def _check(worldview: Worldview, table: Any, **options: Any) -> Diagnosis:
    return worldview.check(_people(table), **options)


def _residuals(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    return tuple(each for each in diagnosis.findings if each.aspect != "independence")


def _independences(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    return tuple(each for each in diagnosis.findings if each.aspect == "independence")


def _residual_check(diagnosis: Diagnosis, child: str, on: str, aspect: str) -> Finding:
    (found,) = [
        check
        for check in _residuals(diagnosis)
        if (check.child, check.on, check.aspect) == (child, on, aspect)
    ]
    return found


# --- what cannot be tested ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Opaque(Equation, Fitted[Any]):
    """An equation that says nothing about its noise."""

    parents: tuple[str, ...]

    def fit(self, child: Column, parents: Mapping[str, Column]) -> _Opaque:
        return self

    def abduct(
        self, child: Column, parents: Mapping[str, Column], *, rng: Rng | None = None
    ) -> object:
        return object()

    def predict(self, parents: Mapping[str, Column], noise: object) -> Predicted:
        return Predicted(column=Numbers(np.zeros(len(next(iter(parents.values()))))))


def test_an_equation_that_gives_no_numbers_is_not_passed() -> None:
    rng = np.random.default_rng(12)
    table = {"age": rng.normal(size=200), "x": rng.normal(size=200)}
    diagnosis = _check(Worldview({"x": _Opaque(("age",))}), table)
    (check,) = _residuals(diagnosis)
    assert check.p_value is None
    assert diagnosis.tests == 0
    sentences = diagnosis.sentences()
    assert (
        "x: level over age not tested: its equation does not give its noise as numbers."
        in sentences
    )
    assert "x (_Opaque): how much of it age explains is not available." in sentences
    assert not any("found no evidence" in one for one in sentences)


def test_means_that_are_free_in_the_equation_are_not_claimed_to_be_right() -> None:
    rng = np.random.default_rng(13)
    table = {"status": np.tile(["f", "m"], 100), "x": rng.normal(size=200)}
    diagnosis = _check(Worldview({"x": Linear("status")}), table, protected="status")
    assert _residual_check(diagnosis, "x", "status", "level").p_value is None
    assert (
        "x: level over status not tested: the equation is saturated in this cause."
    ) in diagnosis.sentences()


def test_interactions_that_the_equation_has_are_not_tested() -> None:
    rng = np.random.default_rng(14)
    age, female = rng.normal(size=500), rng.integers(0, 2, 500)
    table = {"female": female, "age": age, "x": age * female + rng.normal(size=500)}
    plain = _check(Worldview({"x": Linear("female", "age")}), table, protected="female")
    assert "x: the effect of female changes with age (p < 0.001)" in str(plain)
    with_product = Worldview({"x": Linear("female", "age", interactions=True)})
    diagnosis = _check(with_product, table, protected="female")
    assert diagnosis.problems == ()
    assert (
        "x: interaction over female with age not tested: the equation contains their interaction."
        in diagnosis.sentences()
    )


def test_a_cause_that_does_not_vary_is_not_tested() -> None:
    rng = np.random.default_rng(29)
    table = {"status": np.ones(200), "age": rng.normal(size=200), "x": rng.normal(size=200)}
    diagnosis = _check(Worldview({"x": Stated("0 * status + 0 * age")}), table, protected="status")
    notes = {check.note for check in _residuals(diagnosis) if check.on == "status"}
    assert notes == {"the column does not vary", "one of the columns does not vary"}


def test_an_attribute_without_noise() -> None:
    age = np.random.default_rng(15).normal(size=200)
    diagnosis = _check(Worldview({"x": Linear("age")}), {"age": age, "x": 3 * age - 1})
    assert diagnosis.tests == 0
    assert "its causes determine it, so no noise is left over" in str(diagnosis)


def test_few_rows_are_said_to_be_few() -> None:
    rng = np.random.default_rng(16)
    table = {"age": rng.normal(size=30), "x": rng.normal(size=30)}
    diagnosis = _check(Worldview({"x": Linear("age")}), table)
    assert diagnosis.tests == 0
    assert "30 rows are too few to fit" in str(diagnosis)


@pytest.mark.slow
def test_nominal_columns_with_small_strata_are_taken_by_regression() -> None:
    """Three hundred rows in a hundred strata: too few to count in, enough to regress on."""
    rng = np.random.default_rng(17)
    place = rng.integers(0, 100, 3000).astype(str)
    one, other = rng.choice(["a", "b"], (2, 3000))
    table = {"place": place, "one": one, "other": other}
    worldview = Worldview({"one": Categorical("place"), "other": Categorical("place")})
    (check,) = _independences(_check(worldview, table))
    assert check.test == "stratified G-test"
    few = {name: values[:1200] for name, values in table.items()}
    (check,) = _independences(_check(worldview, few))
    assert check.test == "robust regression score"
    assert check.p_value is not None
    fewest = {name: values[:400] for name, values in table.items()}
    (check,) = _independences(_check(worldview, fewest))
    assert check.p_value is None
    assert "too few rows" in check.note


# --- attributes outside the worldview, and hidden causes ------------------------------------------


def test_a_protected_attribute_that_the_worldview_leaves_out_is_tested() -> None:
    rng = np.random.default_rng(18)
    female, age = rng.integers(0, 2, 1000), rng.normal(size=1000)
    table = {"female": female, "age": age, "x": age + 0.5 * female + rng.normal(size=1000)}
    worldview = Worldview({"x": Linear("age")})
    assert _check(worldview, table).problems == ()
    diagnosis = _check(worldview, table, protected="female", do={"female": 0})
    assert (
        "x: residuals still depend on female (p < 0.001): the equation misses an effect of female. "
    ) in str(diagnosis)
    assert "the worldview gives it no effects" in str(diagnosis)
    pairs = {(check.on, check.child): check.further for check in _independences(diagnosis)}
    assert pairs == {("female", "age"): (), ("female", "x"): ("age",)}


def test_dependent_roots_are_told_apart_from_a_missing_cause() -> None:
    rng = np.random.default_rng(19)
    age = rng.normal(size=500)
    table = {"age": age, "wealth": age + rng.normal(size=500), "x": rng.normal(size=500) + age}
    diagnosis = _check(Worldview({"x": Linear("age", "wealth")}), table)
    sentence = diagnosis.sentences()[1]
    assert sentence.startswith("age and wealth are not independent (correlation 0.7")
    assert "the equations can still hold" in sentence


def test_given_its_causes_an_attribute_is_what_its_equation_leaves_over() -> None:
    """On the scale of the equation: here of the logarithm, where the effect that is missed is."""
    rng = np.random.default_rng(26)
    age, skill = rng.normal(size=(2, 600))
    noise = 0.3 * skill + rng.normal(size=600)
    table = {"age": age, "skill": skill, "x": np.exp(3 * age + noise)}
    worldview = Worldview({"skill": Linear("age"), "x": Linear("age", link="log")})
    (check,) = _independences(_check(worldview, table))
    assert (check.on, check.child, check.further) == ("skill", "x", ("age",))
    assert check.effect == pytest.approx(np.corrcoef(skill, noise)[0, 1], abs=0.02)


def test_an_intervention_on_an_effect_does_not_test_its_causes_on_it() -> None:
    rng = np.random.default_rng(24)
    age = rng.normal(size=500)
    x = age + rng.normal(size=500)
    table = {"age": age, "x": x, "y": x + rng.normal(size=500)}
    worldview = Worldview({"x": Linear("age"), "y": Linear("x")})
    diagnosis = _check(worldview, table, do={"y": 0.0})
    assert diagnosis.problems == ()
    assert {(check.child, check.on) for check in _residuals(diagnosis)} == {
        ("x", "age"),
        ("y", "x"),
    }


def _driven_table(rng: Rng, rows: int) -> Table:
    female, talent = rng.integers(0, 2, rows), rng.normal(size=rows)
    maths = female + talent + rng.normal(size=rows)
    music = 2 * talent - female + 0.5 * maths + rng.normal(size=rows)
    return {
        "female": female,
        "maths": maths,
        "music": music,
        "pay": maths + rng.normal(size=rows),
    }


def test_a_hidden_cause_explains_a_dependence_away() -> None:
    table = _driven_table(np.random.default_rng(20), 1000)
    del table["pay"]
    table["music"] = table["music"] - 0.5 * table["maths"]
    equations = {"maths": Linear("female"), "music": Linear("female")}
    without = _check(Worldview(equations), table)
    assert [(check.on, check.child) for check in _independences(without)] == [("maths", "music")]
    assert len(without.problems) == 1
    hidden = _check(Worldview({}, latents=[Latent("talent", equations)]), table)
    assert _independences(hidden) == ()
    assert hidden.problems == ()
    assert "maths (Linear, driven by talent): female explains" in str(hidden)


def test_noise_that_a_hidden_cause_shares_with_a_parent_is_no_problem() -> None:
    """The residual of music holds talent, and so does maths, its parent."""
    table = _driven_table(np.random.default_rng(21), 1000)
    worldview = Worldview(
        {"pay": Linear("maths")},
        latents=[Latent("talent", {"maths": Linear("female"), "music": Linear("female", "maths")})],
    )
    with pytest.warns(MutandisWarning, match="talent"):  # two normal attributes tell too little
        diagnosis = _check(worldview, table, protected="female")
    assert diagnosis.problems == ()
    assert _residual_check(diagnosis, "music", "maths", "level").p_value is None
    assert "music: level over maths not tested: both have a hidden cause" in str(diagnosis)
    pairs = {(check.on, check.child): check.further for check in _independences(diagnosis)}
    assert pairs == {("female", "pay"): ("maths",), ("pay", "music"): ("female", "maths")}


# --- interventions --------------------------------------------------------------------------------

SMALL: Table = {
    "status": ["f"] * 4 + ["m"] * 6,
    "x": [0.0, 1.0, 2.0, 5.0, 4.0, 5.0, 6.0, 6.0, 7.0, 8.0],
}


def test_counterfactuals_outside_the_facts_are_counted_among_those_who_change() -> None:
    """Women have mean 2, men 6: their x + 4 is 4, 5, 6 and 9, of which 9 is beyond 8."""
    diagnosis = _check(Worldview({"x": Linear("status")}), SMALL, do={"status": "m"})
    assert diagnosis.changed == 4
    assert dict(diagnosis.outside) == {"x": 0.25}
    assert dict(diagnosis.clipped) == {"x": 0.0}
    assert (
        "x: 25.0 % of the counterfactuals of the 4 rows that the intervention changes lie outside "
        "the range of the facts: there the equation extrapolates."
    ) in diagnosis.sentences()


def test_counterfactuals_cut_off_at_the_bounds_are_counted_among_those_who_change() -> None:
    """At most 5: two women are cut off, and five men whom nothing happens to do not count."""
    worldview = Worldview({"x": Linear("status", bounds=(None, 5.0))})
    diagnosis = _check(worldview, SMALL, do={"status": "m"})
    assert dict(diagnosis.clipped) == {"x": 0.5}
    assert dict(diagnosis.outside) == {"x": 0.0}
    assert "x: 50.0 % of the counterfactuals of the 4 rows" in str(diagnosis)
    back = _check(worldview, SMALL, do={"status": "f"})
    assert back.changed == 6


def test_an_intervention_that_changes_nobody() -> None:
    table = {"age": np.linspace(0, 1, 50), "wealth": np.zeros(50), "x": np.sin(np.arange(50.0))}
    diagnosis = _check(Worldview({"x": Linear("age")}), table, do={"wealth": 0})
    assert diagnosis.changed == 0
    assert "The intervention changes no rows" in str(diagnosis)


def test_counterfactual_names_are_looked_up_among_the_facts() -> None:
    table = {"status": ["f", "m"] * 50, "job": ["a", "a", "b", "b"] * 25}
    diagnosis = _check(Worldview({"job": Categorical("status")}), table, do={"status": "m"})
    assert dict(diagnosis.outside) == {"job": 0.0}
    assert dict(diagnosis.couplings) == {"job": "Gumbel-max coupling"}
    assert "job: its counterfactuals rest on Gumbel-max coupling" in str(diagnosis)


def test_without_an_intervention_nothing_is_said_about_one() -> None:
    diagnosis = _check(Worldview({"x": Linear("status")}), SMALL)
    assert diagnosis.changed is None
    assert "How far the equations are carried" not in diagnosis.sections()
    assert diagnosis.next_step == (
        "Next: check again with the protected attribute and its intervention, do={…}."
    )


# --- records and sentences ------------------------------------------------------------------------


def _made(p_adjusted: float, aspect: Any = "level", **fields: Any) -> Diagnosis:
    check = Finding(
        child="LSAT",
        on="race_nonwhite",
        aspect=aspect,
        test="robust score test",
        statistic=9.0,
        p_value=p_adjusted / 2,
        p_adjusted=p_adjusted,
        **fields,
    )
    return Diagnosis(rows=100, alpha=0.01, findings=(check,))


def test_the_sentence_of_a_missed_effect() -> None:
    diagnosis = _made(0.003, effect=0.1, effect_name="correlation")
    heading, problem, *_ = diagnosis.sentences()
    assert heading == (
        "Checked on 100 rows with 1 test: 1 problem. p-values are adjusted for the number of tests "
        "(Holm); a problem is one below 0.01."
    )
    assert problem == (
        "LSAT: residuals still depend on race_nonwhite (p = 0.003): the equation misses an effect "
        "of race_nonwhite. That is 1.0 % of the residual variance."
    )


@pytest.mark.parametrize(("p_adjusted", "is_problem"), [(0.00999, True), (0.01, False)])
def test_a_problem_is_below_alpha(p_adjusted: float, is_problem: bool) -> None:
    assert bool(_made(p_adjusted).problems) == is_problem


@pytest.mark.parametrize("as_frame", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_any_table_can_be_checked(as_frame: Callable[[Any], Any]) -> None:
    people = _people(SMALL)
    worldview = Worldview({"x": Linear("status")})
    options: Any = {"protected": "status", "do": {"status": "m"}, "alpha": 0.05}
    diagnosis = worldview.check(people, **options)
    assert worldview.check(as_frame(SMALL), **options) == diagnosis
    assert check_worldview(worldview, people, **options) == diagnosis


def test_kinds_can_be_declared_and_rows_left_out() -> None:
    table = {"status": [0, 1] * 50 + [0], "x": [*np.arange(100.0), np.nan]}
    worldview = Worldview({"x": Linear("status")})
    diagnosis = worldview.check(
        table, do={"status": 0}, attributes={"status": "nominal"}, missing="drop"
    )
    assert (diagnosis.rows, diagnosis.changed) == (100, 50)
    with pytest.raises(MissingValuesError):
        worldview.check(table)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.5, -1.0, float("nan")])
def test_refused_levels(alpha: float) -> None:
    with pytest.raises(PlanError, match="alpha"):
        _check(Worldview({"x": Linear("status")}), SMALL, alpha=alpha)


def test_a_protected_attribute_with_causes_is_refused() -> None:
    with pytest.raises(RootError, match="'x'"):
        _check(Worldview({"x": Linear("status")}), SMALL, protected="x")


@pytest.mark.parametrize("options", [{"protected": "sex"}, {"do": {"sex": "m"}}])
def test_an_unknown_column_is_refused(options: Any) -> None:
    with pytest.raises(UnknownColumnError, match="'sex'"):
        _check(Worldview({"x": Linear("status")}), SMALL, **options)


@pytest.mark.parametrize("do", [{}, {"status": "x"}, {"status": ["m"]}])
def test_what_is_no_intervention_is_refused(do: Any) -> None:
    with pytest.raises(PlanError, match="do"):
        _check(Worldview({"x": Linear("status")}), SMALL, do=do)


# --- tables with many rows ------------------------------------------------------------------------


def test_of_many_rows_some_are_tested_evenly_and_everyone_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(8)
    status = rng.integers(0, 2, 4000)
    first = np.round(rng.normal(size=4000) - status, 1)
    table = {"status": status, "first": first, "second": first**2 + rng.normal(size=4000)}
    worldview = Worldview({"first": Linear("status"), "second": Linear("first", "status")})
    do = {"status": 0}
    whole = _check(worldview, table, do=do)
    monkeypatch.setattr(check, "_MOST_ROWS", 1500)
    monkeypatch.setattr(check, "_BLOCK", 100)
    some = _check(worldview, table, do=do)
    assert (some.rows, some.taken_from, whole.taken_from) == (1334, 4000, None)
    assert some.summary.startswith("Checked on 1,334 rows of 4,000 with ")
    assert whole.summary.startswith("Checked on 4,000 rows with ")
    # a third of the rows sees the curve; those who are changed are counted as ever
    curve = [_residual_check(each, "second", "first", "level").p_value for each in (some, whole)]
    assert max(each or 0.0 for each in curve) < 1e-30
    assert some.changed == whole.changed == (status == 1).sum()
    assert (some.clipped, some.outside) == (whole.clipped, whole.outside)
    assert whole.outside["second"] > 0
    # sorting the table in another way changes nothing
    order = rng.permutation(4000)
    mixed = {name: values[order] for name, values in table.items()}
    assert _check(worldview, mixed, do=do).as_dict() == some.as_dict()
