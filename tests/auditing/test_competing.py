"""Competing worldviews: one audit under each, and whom they agree on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import mutandis as mm
from mutandis.errors import PlanError, RootError, UnknownColumnError
from tests.tables import LOAN

if TYPE_CHECKING:
    import pandas as pd

BANK = mm.Worldview({"AnnualSalary": mm.Linear("Gender")})
REGULATOR = LOAN["worldview"]
EARNED = mm.Worldview(dict(REGULATOR.equations), resolving=("AnnualSalary",))
THREE = {"bank": BANK, "regulator": REGULATOR, "earned": EARNED}


def settings(**changes: Any) -> dict[str, Any]:
    return {
        **LOAN,
        "worldview": BANK,
        "decision": "AnnualSalary + 5 * AccountBalance > 225000",
        "methods": ["st", "cst_without", "cst_with", "cf"],
        "ks": (5, 15),
        **changes,
    }


@pytest.fixture(scope="module")
def decisions() -> pd.DataFrame:
    return mm.datasets.loan(n=600, seed=5)


def test_each_column_is_the_audit_under_that_worldview(decisions: pd.DataFrame) -> None:
    compared = mm.compare_worldviews(mm.plan(decisions, **settings()), THREE, k=15)
    table = compared.table()
    found = np.zeros(len(table), dtype=int)
    for name, worldview in THREE.items():
        alone = mm.audit(decisions, **settings(worldview=worldview)).findings("cst_without", k=15)
        assert table["id"].tolist() == alone["id"].tolist()
        assert table[f"verdict_{name}"].tolist() == alone["verdict"].tolist()
        assert table[f"delta_p_{name}"].tolist() == alone["delta_p"].tolist()
        found += (alone["delta_p"] > 0).to_numpy()
    assert table["found_under"].tolist() == found.tolist()
    expected = ["none" if n == 0 else "all" if n == 3 else "some" for n in found]
    assert table["agreement"].tolist() == expected
    assert set(expected) == {"all", "some", "none"}


def test_the_summary_divides_each_worldviews_cases(decisions: pd.DataFrame) -> None:
    compared = mm.compare_worldviews(mm.plan(decisions, **settings()), THREE)
    table, summary = compared.table(), compared.summary().set_index("worldview")
    for name in THREE:
        row = summary.loc[name]
        mine = table[table[f"delta_p_{name}"] > 0]
        assert row["cases"] == len(mine)
        assert row["found_by_all"] == (mine["found_under"] == 3).sum()
        assert row["found_by_some"] == (mine["found_under"] == 2).sum()
        assert row["found_by_it_alone"] == (mine["found_under"] == 1).sum()
    assert summary["cases"].nunique() == 3


def test_default_is_the_primary_method_and_k(decisions: pd.DataFrame) -> None:
    plan = mm.plan(decisions, **settings(evidence=mm.Evidence(primary=("cf", 5))))
    compared = mm.compare_worldviews(plan, THREE)
    assert (compared.method.name, compared.k) == ("cf", 5)
    assert compared.audit("bank").methods == ("st", "cst_without", "cst_with", "cf")


def test_a_worldview_may_look_at_columns_the_plan_did_not_read(decisions: pd.DataFrame) -> None:
    rng = np.random.default_rng(0)
    wider = decisions.assign(Age=rng.integers(20, 70, len(decisions)))
    older = mm.Worldview({"AnnualSalary": mm.Linear("Gender", "Age")})
    plan = mm.plan(wider, **settings())
    assert "Age" not in plan.population.columns
    compared = mm.compare_worldviews(plan, {"bank": BANK, "older": older})
    alone = mm.audit(wider, **settings(worldview=older)).findings()
    assert compared.table()["delta_p_older"].tolist() == alone["delta_p"].tolist()


def test_the_plot_is_plain_svg_and_the_same_each_time(decisions: pd.DataFrame) -> None:
    names = {"<script>alert(1)</script> $x$": BANK, "b & c": REGULATOR}
    compared = mm.compare_worldviews(mm.plan(decisions, **settings()), names)
    drawing = compared.plot_matrix()
    assert drawing == compared.plot_matrix()
    root = ET.fromstring(drawing.svg)  # noqa: S314 - our own drawing
    texts = [element.text for element in root.iter() if element.tag.endswith("}text")]
    assert "<script>alert(1)</script> $x$" in texts
    assert "b & c" in texts
    assert not [element for element in root.iter() if element.tag.endswith("}script")]
    assert any(text and "k = 15" in text for text in texts)


def test_what_cannot_be_compared(decisions: pd.DataFrame) -> None:
    plan = mm.plan(decisions, **settings())
    with pytest.raises(PlanError, match="1 worldview cannot be compared"):
        mm.compare_worldviews(plan, {"bank": BANK})
    with pytest.raises(PlanError, match="k=7 was not run"):
        mm.compare_worldviews(plan, THREE, method="st", k=7)
    with pytest.raises(RootError, match="'Gender' must be a root"):
        mm.compare_worldviews(
            plan, {"bank": BANK, "odd": mm.Worldview({"Gender": mm.Linear("AnnualSalary")})}
        )
    with pytest.raises(UnknownColumnError, match="'Age'"):
        mm.compare_worldviews(
            plan, {"bank": BANK, "odd": mm.Worldview({"AnnualSalary": mm.Linear("Age")})}
        )
    with pytest.raises(PlanError, match="No worldview is called 'x'"):
        mm.compare_worldviews(plan, THREE).audit("x")
    observed = mm.plan(decisions, **settings(worldview=None, decision=None, methods=["st"]))
    with pytest.raises(PlanError, match="no worldview to exchange"):
        mm.compare_worldviews(observed, THREE)
