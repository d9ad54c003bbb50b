"""A hidden common cause: beside t statistics of least squares, and beside PySensemakr's numbers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import MutandisWarning, PlanError


def people(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(11)
    age = np.round(rng.normal(40, 10, rows), 1)
    region = rng.integers(0, 3, rows).astype(float)
    a = (rng.random(rows) < 1 / (1 + np.exp(-(age - 45) / 12))).astype(float)
    x = np.round(20 + 0.4 * age - 2.0 * region - 4 * a + rng.normal(0, 6, rows), 2)
    return pd.DataFrame({"age": age, "region": region, "a": a, "x": x})


def decide(table: pd.DataFrame) -> np.ndarray:
    rank = table["x"].rank().to_numpy() / len(table)
    noise = np.random.default_rng(1).normal(0, 0.05, len(table))
    return np.where(rank + noise < 0.4, "no", "yes")


def audit(table: pd.DataFrame | None = None, **other: Any) -> mm.Audit:
    table = people() if table is None else table
    if "granted" not in table:
        table = table.assign(granted=decide(table))
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": "no",
        "protected": mm.Protection("a", value=1.0, reference=0.0),
        "attributes": {"x": "continuous"},
        "worldview": mm.Worldview({"x": mm.Linear("a", "age", "region")}),
        "ks": (20,),
        "methods": ["cst_matched"],
        "uncertainty": mm.Uncertainty(refits=0),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        return mm.audit(table, **{**settings, **other})


@pytest.fixture(scope="module")
def found() -> mm.Audit:
    return audit()


def t_statistic(target: np.ndarray, *columns: np.ndarray) -> tuple[float, int]:
    """That of the first column, by the textbook."""
    design = np.column_stack([*columns, np.ones(len(target))])
    slopes = np.linalg.lstsq(design, target, rcond=None)[0]
    rest = target - design @ slopes
    dof = len(target) - design.shape[1]
    spread = rest @ rest / dof * np.linalg.inv(design.T @ design)[0, 0]
    return float(slopes[0] / spread**0.5), dof


def test_numbers_are_those_of_pysensemakr(found: mm.Audit) -> None:
    """PySensemakr 0.0.8 on x ~ a + age + region, with pandas 2.3.3 and statsmodels 0.15.0.

    partial_f, robustness_value(q), and ovb_bounds with kd = ky = 0.5 and 1.
    """
    ((_, (effect,)),) = found.hidden_cause().effects
    assert effect.strength == pytest.approx(0.28444052034362305, abs=1e-10)
    for share, value in ((1.0, 0.24684954734248482), (0.6, 0.1567213841222055)):
        assert effect.robustness_value(share) == pytest.approx(value, abs=1e-10)
    assert effect.robustness_value(0.25) == pytest.approx(0.06862673797451192, abs=1e-10)
    bounds = {
        ("age", 0.5): (0.07587783916993647, 0.2435973601375658, -1.883559311590768),
        ("age", 1.0): (0.15175567833987294, 0.4980435130509659, 0.18518077482029494),
        ("region", 0.5): (0.00017820245232793227, 0.04611923717338364, -3.7084352779454046),
        ("region", 1.0): (0.00035640490465586454, 0.09223848606148469, -3.6706682296154476),
    }
    marks = {each.name: each for each in effect.benchmarks}
    for (name, times), (status, attribute, remains) in bounds.items():
        told = marks[name].times(times)
        assert told == pytest.approx((status, attribute), abs=1e-10)
        # what remains of the estimate, -3.7461955903997888
        left = 1 - effect.accounted(*told)
        assert left * -3.7461955903997888 == pytest.approx(remains, abs=1e-8)
    # where the adjusted estimate is 40 % and 75 % of it, found by SciPy's brentq
    for share, times in ((0.6, 0.5973162353861033), (0.25, 0.25760196583256273)):
        assert effect.needed(marks["age"], share) == pytest.approx(times, abs=1e-6)


def test_strengths_are_t_statistics_over_the_root_of_their_freedom(found: mm.Audit) -> None:
    table = people()
    a, age, region, x = (table[name].to_numpy() for name in ("a", "age", "region", "x"))
    ((_, (effect,)),) = found.hidden_cause().effects
    t, dof = t_statistic(x, a, age, region)
    assert effect.strength == pytest.approx(abs(t) / dof**0.5)
    for mark, own, other in zip(effect.benchmarks, (age, region), (region, age), strict=True):
        t, dof = t_statistic(a, own, other)
        assert mark.status == pytest.approx(t**2 / (t**2 + dof))
        t, dof = t_statistic(x, own, other, a)
        assert mark.attribute == pytest.approx(t**2 / (t**2 + dof))


def test_each_verdict_has_its_number(found: mm.Audit) -> None:
    cause, table = found.hidden_cause(), found.hidden_cause().table()
    ((_, (effect,)),) = cause.effects
    known = table[table["tipping"].notna()]
    assert len(known) > 20
    assert table["robustness_value"].notna().equals(table["tipping"].notna())
    for place, row in known.iterrows():
        f = (1 - row["tipping"]) * effect.strength
        value = ((f**4 + 4 * f**2) ** 0.5 - f**2) / 2
        assert row["robustness_value"] == pytest.approx(value)
        # a cause so strong accounts for exactly what may be lost
        assert effect.accounted(value, value) == pytest.approx(1 - row["tipping"])
        assert row["attribute"] == "x"
        if row["tipping"] < 1:
            assert row["benchmark"] == "age"
            marks = {each.name: each for each in effect.benchmarks}
            bound = marks["age"].times(row["times"])
            assert effect.accounted(*bound) == pytest.approx(1 - row["tipping"], abs=1e-6)
        assert f"{row['robustness_value']:.1%}" in cause.sentence(place, row["tipping"]) or (
            row["tipping"] == 0
        )


def test_mediators_are_no_benchmarks_and_their_effect_is_total() -> None:
    """The total effect on z passes through x; only age stands outside."""
    table = people()
    rng = np.random.default_rng(5)
    table["z"] = np.round(0.5 * table["x"] - table["a"] + rng.normal(0, 3, len(table)), 2)
    two = audit(
        table,
        attributes={"x": "continuous", "z": "continuous"},
        worldview=mm.Worldview({"x": mm.Linear("a", "age"), "z": mm.Linear("x", "a")}),
    )
    ((_, effects),) = two.hidden_cause().effects
    a, age, x, z = (table[name].to_numpy() for name in ("a", "age", "x", "z"))
    expected = {}
    for name, values in (("x", x), ("z", z)):
        t, dof = t_statistic(values, a, age)
        expected[name] = abs(t) / dof**0.5
    assert {each.attribute: each.strength for each in effects} == pytest.approx(expected)
    assert [each.name for each in effects[0].benchmarks] == ["age"]
    # the smallest counts
    weakest = min(expected, key=lambda name: expected[name])
    assert set(two.hidden_cause().table()["attribute"].dropna()) == {weakest}
    held = audit(
        table,
        attributes={"x": "continuous", "z": "continuous"},
        worldview=mm.Worldview(
            {"x": mm.Linear("a", "age"), "z": mm.Linear("x", "a")}, resolving=("x",)
        ),
    )
    ((_, (alone,)),) = held.hidden_cause().effects
    t, dof = t_statistic(z, a, age, x)
    assert alone.attribute == "z"
    assert alone.strength == pytest.approx(abs(t) / dof**0.5)
    assert [each.name for each in alone.benchmarks] == ["age", "x"]


@pytest.mark.slow
def test_the_order_of_rows_changes_nothing() -> None:
    table = people().assign(id=np.arange(400), granted=decide(people()))
    first, second = (
        audit(each, id="id").hidden_cause().table().sort_values("id").reset_index(drop=True)
        for each in (table, table.sample(frac=1.0, random_state=3))
    )
    pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_it_is_drawn_and_told(found: mm.Audit) -> None:
    cause = found.hidden_cause()
    assert ">2 × age</text>" in str(cause.plot()) or ">age</text>" in str(cause.plot())
    tipping = found.measure_tipping().point
    place = int(np.flatnonzero((tipping > 0) & (tipping < 1))[0])
    assert f"falls: {tipping[place]:.0%}" in str(cause.plot(place))
    robust = found.case_file(found.findings()["id"].iloc[place]).robustness
    assert robust is not None
    assert robust.hidden_cause == cause.sentence(place, float(tipping[place]))
    assert "times as strong as 'age'" in robust.hidden_cause
    assert "hidden-cause" in found.report().plots


def test_without_a_worldview_there_is_nothing_to_say(found: mm.Audit) -> None:
    ready = found.counterfactuals()[["x"]]
    supplied = audit(worldview=None, counterfactuals=ready)
    with pytest.raises(PlanError, match="supplied"):
        supplied.hidden_cause()
    who = supplied.findings().dropna(subset="grade")["id"].iloc[0]
    robust = supplied.case_file(who).robustness
    assert robust is not None
    assert robust.hidden_cause == ""
