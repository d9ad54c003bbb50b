"""The publication's quirks, one by one, on tables that can be followed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.engine.tally import Sums
from mutandis.errors import MutandisWarning
from mutandis.evidence.intervals import wald
from mutandis.evidence.semantics import PAPER_DEFINITIONS
from mutandis.published.semantics import AS_PUBLISHED, PublishedLinear

SETTINGS: dict[str, Any] = {
    "outcome": "ok",
    "negative": "no",
    "protected": mm.Protection("woman", value=1, reference=0),
    "attributes": {"x": "continuous"},
    "preset": "eaamo23",
}


def audit(table: Any, /, **options: Any) -> mm.Audit:
    return mm.audit(table, **{**SETTINGS, **options})


# --- groups ------------------------------------------------------------------------------------

# four women alike, two men like them behind them in the file, and one man apart
ALIKE: dict[str, list[Any]] = {
    "woman": [1, 1, 1, 1, 0, 0, 0],
    "x": [5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 9.0],
    "ok": ["no", "yes", "no", "yes", "no", "no", "yes"],
}


def test_of_equal_rows_the_later_one_is_taken() -> None:
    found = audit(ALIKE, ks=(1,))
    case = found.case(3)
    # her two nearest are 3 and 2; without her that leaves 2
    assert case.groups("st", k=1).control.ids.tolist() == [2]
    assert case.groups("st", k=1).test.ids.tolist() == [5]
    assert case.result("st", k=1)["p_control"] == 1


def test_whoever_is_not_among_her_own_nearest_keeps_one_too_many() -> None:
    found = audit(ALIKE, ks=(1,)).findings("st", k=1)
    # for 0 and 1 the two nearest are 3 and 2, and neither is herself
    assert found["n_control"].tolist() == [2, 2, 1, 1]
    assert found["p_control"].tolist() == [0.5, 0.5, 0, 1]
    assert found["n_test"].tolist() == [1, 1, 1, 1]


def test_a_counterfactual_competes_for_its_place() -> None:
    would_be = {"x": ALIKE["x"], "ok": ["yes"] * 4 + ["no", "no", "yes"]}
    found = audit(ALIKE, ks=(1, 2), counterfactuals=would_be)
    # under its own row number it stands behind both men at its point: no place among k + 1 = 2
    crowded = found.case(0).groups("cst_with", k=1).test
    assert crowded.ids.tolist() == [4, 5]
    assert not crowded.is_center.any()
    assert found.case(0).result("cst_with", k=1)["p_test"] == 1
    # of three places it gets the third
    roomy = found.case(0).groups("cst_with", k=2).test
    assert roomy.ids.tolist() == [0, 4, 5]
    assert roomy.is_center.tolist() == [True, False, False]
    assert found.case(0).result("cst_with", k=2)["p_test"] == 2 / 3
    assert set(found.findings("cst_with", k=1)["n_test"]) == {2}


def test_a_counterfactual_behind_the_men_in_the_file_comes_first() -> None:
    backwards = {name: values[::-1] for name, values in ALIKE.items()}
    would_be = {"x": backwards["x"], "ok": ["yes", "no", "no"] + ["yes"] * 4}
    found = audit(backwards, ks=(1,), counterfactuals=would_be)
    test = found.case(6).groups("cst_with", k=1).test
    assert test.ids.tolist() == [6, 2]
    assert test.is_center.tolist() == [True, False]
    assert found.case(6).result("cst_with", k=1)["p_test"] == 0.5


# --- scale -------------------------------------------------------------------------------------


def test_a_shift_of_everybody_is_scaled_away() -> None:
    """Each world has its own z-scores: what moves all alike moves nobody."""
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        {
            "woman": np.arange(40) % 2,
            "x": rng.permutation(40).astype(float),
            "ok": rng.choice(["no", "yes"], 40),
        }
    )
    shifted = table.drop(columns="ok").assign(x=table["x"] + 16)
    options: dict[str, Any] = {"counterfactuals": shifted, "ks": (3,)}
    with pytest.warns(MutandisWarning, match="100% of the reference rows"):
        published = audit(table, **options)
    with pytest.warns(MutandisWarning, match="100% of the reference rows"):
        defined = audit(table, preset=None, **options)
    same = published.findings("cst_without", k=3)["p_test"]
    assert same.equals(published.findings("st", k=3)["p_test"])
    moved = defined.findings("cst_without", k=3)["p_test"]
    assert not moved.equals(defined.findings("st", k=3)["p_test"])


def test_a_constant_attribute_tells_nobody_apart() -> None:
    expected = audit(ALIKE, ks=(2,)).findings("st", k=2)
    for constant in (1.0, 0.1):
        both = {"x": "continuous", "c": "continuous"}
        found = audit({**ALIKE, "c": [constant] * 7}, attributes=both, ks=(2,))
        assert found.findings("st", k=2).equals(expected)


def test_names_that_differ_cost_one_deviation() -> None:
    # x has mean 0 and standard deviation √½
    table: dict[str, list[Any]] = {
        "woman": [1, 1, 1, 0, 0],
        "x": [-1.0, 0.5, 0.0, 1.0, -0.5],
        "job": ["cook", "cook", "clerk", "cook", "clerk"],
        "ok": ["no", "yes", "no", "yes", "no"],
    }
    root = 2**0.5
    found = audit(table, attributes={"x": "continuous", "job": "nominal"}, ks=(2,)).case(0)
    groups = found.groups("st", k=2)
    assert groups.control.ids.tolist() == [1, 2]
    assert groups.control.distance.tolist() == pytest.approx([1.5 * root, 1 + root])
    assert groups.test.ids.tolist() == [4, 3]
    assert groups.test.distance.tolist() == pytest.approx([1 + 0.5 * root, 2 * root])


def test_several_protected_values_are_audited_each_on_its_own() -> None:
    rng = np.random.default_rng(4)
    table = pd.DataFrame(
        {
            "woman": rng.integers(0, 3, 60),
            "x": rng.integers(0, 9, 60).astype(float),
            "ok": rng.choice(["no", "yes"], 60),
        }
    )
    alike = ["id", "p_control", "p_test", "delta_p", "n_control", "radius_test"]
    for preset in ("eaamo23", None):
        both = audit(
            table,
            preset=preset,
            protected=mm.Protection("woman", value=[1, 2], reference=0),
            worldview=mm.Worldview({"x": mm.Linear("woman")}),
            ks=(3,),
        )
        for method in ("st", "cst_without"):
            rows = both.findings(method, k=3)
            for value in (1, 2):
                alone = audit(
                    table,
                    preset=preset,
                    protected=mm.Protection("woman", value=value, reference=0),
                    worldview=mm.Worldview({"x": mm.Linear("woman")}),
                    ks=(3,),
                ).findings(method, k=3)
                mine = rows[rows["id"].isin(alone["id"])].reset_index(drop=True)
                assert mine[alike].equals(alone[alike])
            assert rows["id"].tolist() == table.index[table["woman"] > 0].tolist()


# --- evidence ----------------------------------------------------------------------------------


def share(negatives: int, size: int) -> Sums:
    return Sums.of(marks=np.array([negatives]), places=np.array([size]), parts=np.array([1]))


def test_evidence_was_rounded_to_three_decimals() -> None:
    control, test = share(5_004, 10_000), share(5_000, 10_000)
    arguments: dict[str, Any] = {"tau": 0.0, "alpha": 0.05, "interval": wald}
    assert PAPER_DEFINITIONS.compare(control, test, **arguments).evidence.tolist() == [True]
    published = AS_PUBLISHED.compare(control, test, **arguments)
    assert published.evidence.tolist() == [False]
    # what is shown is not rounded
    assert published.delta_p.tolist() == [pytest.approx(0.0004)]


def test_the_bound_was_rounded_and_z_was_1645() -> None:
    control, test = share(13, 16), share(0, 16)
    arguments: dict[str, Any] = {"tau": 0.0, "alpha": 0.05, "interval": wald}
    published = AS_PUBLISHED.compare(control, test, **arguments)
    error = (0.8125 * 0.1875 / 16) ** 0.5
    assert published.interval.low.tolist() == pytest.approx([0.8125 - 1.645 * error], abs=1e-14)
    assert published.interval.high.tolist() == pytest.approx([0.8125 + 1.645 * error], abs=1e-14)
    assert published.significant.tolist() == [True]
    # a lower bound of 0.0004 rounds to 0, which is not above τ
    control, test = share(50_400, 100_000), share(50_000, 100_000)
    bound = PAPER_DEFINITIONS.compare(control, test, **arguments)
    assert 0 < bound.interval.low[0] < 0.0005
    assert bound.significant.tolist() == [True]
    published = AS_PUBLISHED.compare(control, test, **arguments)
    assert published.evidence.tolist() == [True]
    assert published.significant.tolist() == [False]


# --- equations ---------------------------------------------------------------------------------


def test_each_attribute_is_rounded_as_it_was() -> None:
    worldview = AS_PUBLISHED.worldview(
        mm.Worldview(
            {
                "AnnualSalary": mm.Linear("g"),
                "LSAT": mm.Linear("g"),
                "UGPA": mm.Linear("g"),
                "other": mm.Linear("g", link="log"),
            }
        )
    )
    rounding = {
        child: (equation.factual_decimals, equation.residual_decimals)
        for child, equation in worldview.equations.items()
        if isinstance(equation, PublishedLinear)
    }
    assert rounding == {"AnnualSalary": (None, 2), "LSAT": (0, None), "UGPA": (None, None)}
    assert worldview.equations["other"] == mm.Linear("g", link="log")
    assert worldview.names == ("g", "AnnualSalary", "LSAT", "UGPA", "other")


def test_scores_are_rounded_half_to_even_and_residuals_to_cents() -> None:
    table = {
        "woman": [1, 1, 1, 0, 0, 0],
        "LSAT": [30.5, 31.5, 34.0, 40.0, 41.5, 39.0],
        "AnnualSalary": [10.006, 20.0, 30.0, 40.0, 50.0, 60.0],
        "ok": ["no", "yes", "no", "yes", "no", "yes"],
    }
    worldview = mm.Worldview({"LSAT": mm.Linear("woman"), "AnnualSalary": mm.Linear("woman")})
    found = audit(
        table, attributes={"LSAT": "continuous"}, worldview=worldview, ks=(1,)
    ).counterfactuals()
    # 30, 32, 34 have mean 32; 40, 42, 39 have mean 121/3
    means = 121 / 3 - 32
    expected = [30 + means, 32 + means, 34 + means, 40, 42, 39]
    assert found["LSAT"].tolist() == pytest.approx(expected)
    # women's mean 20.002: residuals -9.996, -0.002, 9.998 become -10, 0, 10
    assert found["AnnualSalary"].tolist() == pytest.approx([40, 50, 60, 40, 50, 60], abs=1e-9)
    defined = audit(
        table,
        preset=None,
        attributes={"LSAT": "continuous"},
        worldview=worldview,
        ks=(1,),
    ).counterfactuals()
    assert defined["AnnualSalary"].tolist()[:3] == pytest.approx([40.004, 49.998, 59.998])
    assert defined["LSAT"].tolist()[3:] == [40.0, 41.5, 39.0]
