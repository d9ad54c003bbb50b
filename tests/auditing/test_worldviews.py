"""Other worldviews: the verdicts are those of whole audits; variants differ in one choice."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import mutandis as mm
from mutandis.errors import MutandisWarning, PlanError, RootError, UnknownColumnError
from tests.tables import LOAN

if TYPE_CHECKING:
    from mutandis.auditing.worldviews import WorldviewVerdicts

BANK = mm.Worldview({"AnnualSalary": mm.Linear("Gender")})
GIVEN = LOAN["worldview"]
EARNED = mm.Worldview(dict(GIVEN.equations), resolving=("AnnualSalary",))
OTHERS = {"bank": BANK, "earned": EARNED}
VERDICTS = ["no-evidence", "evidence", "significant", "significant-adjusted"]
RULE = "AnnualSalary + 5 * AccountBalance > 225000"


def settings(**changes: Any) -> dict[str, Any]:
    doubt = mm.Uncertainty(refits=0, tipping=False)
    return {**LOAN, "decision": RULE, "ks": (5, 15), "uncertainty": doubt, **changes}


def plan(**changes: Any) -> mm.Plan:
    return mm.plan(mm.datasets.loan(n=400, seed=2), **settings(**changes))


@pytest.fixture(scope="module")
def variants() -> dict[str, mm.Worldview]:
    return mm.vary_worldview(plan())


def verdicts(others: dict[str, mm.Worldview] = OTHERS, **changes: Any) -> WorldviewVerdicts:
    """Compare verdicts under the plan's worldview and others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        found = plan(**changes).run().with_worldviews(others)
    assert found.results.worldviews is not None
    return found.results.worldviews


@pytest.mark.parametrize("method", ["cst_without", "cst_matched"])
def test_each_column_is_the_audit_under_that_worldview(method: Any) -> None:
    compared = verdicts(evidence=mm.Evidence(primary=(method, 15)))
    table, summary = compared.table(), compared.summary().set_index("worldview")
    strength = []
    for name, worldview in (("as given", GIVEN), ("bank", BANK), ("earned", EARNED)):
        alone = plan(worldview=worldview).run().findings(method, k=15)
        assert table["id"].tolist() == alone["id"].tolist()
        assert table[f"verdict_{name}"].tolist() == alone["verdict"].tolist()
        known = alone["verdict"] != "insufficient"
        assert table[f"delta_p_{name}"][known].tolist() == alone["delta_p"][known].tolist()
        strength.append([VERDICTS.index(each) if each in VERDICTS else 0 for each in alone.verdict])
        assert summary.loc[name, "cases"] == np.sum(np.array(strength[-1]) > 0)
    stays = np.array(strength) >= strength[0]
    has_case = np.array(strength[0]) > 0
    assert table["stays_under"].tolist() == np.where(has_case, stays.sum(axis=0), 0).tolist()
    assert summary["breaks"].tolist() == (~stays & has_case).sum(axis=1).tolist()
    assert summary["breaks"].sum() > 0


def test_a_worldview_may_look_at_columns_the_plan_did_not_read() -> None:
    rng, decisions = np.random.default_rng(0), mm.datasets.loan(n=400, seed=2)
    wider = decisions.assign(Age=rng.integers(20, 70, len(decisions)))
    older = mm.Worldview({"AnnualSalary": mm.Linear("Gender", "Age")})
    narrow = mm.plan(wider, **settings(worldview=BANK))
    assert "Age" not in narrow.population.columns
    found = narrow.run().with_worldviews({"older": older}).results.worldviews
    assert found is not None
    alone = mm.audit(wider, **settings(worldview=older)).findings()
    assert found.table()["verdict_older"].tolist() == alone["verdict"].tolist()


def test_variants_differ_in_one_choice_each(variants: dict[str, mm.Worldview]) -> None:
    assert list(variants) == [
        "as given",
        "AnnualSalary is a root = AnnualSalary is resolving",
        "AnnualSalary by factors",
        "AccountBalance is a root = AccountBalance is resolving",
        "AccountBalance by factors",
        "AccountBalance with interactions",
    ]
    assert variants["as given"] == GIVEN
    alone = dict(GIVEN.equations)
    del alone["AnnualSalary"]
    # held at its fact, it is as if it had no cause
    merged = "AnnualSalary is a root = AnnualSalary is resolving"
    assert variants[merged] == mm.Worldview(alone)
    factors = {**GIVEN.equations, "AnnualSalary": mm.Linear("Gender", link="log")}
    assert variants["AnnualSalary by factors"] == mm.Worldview(factors)


def test_variants_go_back_as_well() -> None:
    other = mm.Worldview(
        {
            "AnnualSalary": mm.Linear("Gender", link="log"),
            "AccountBalance": mm.Linear("AnnualSalary", "Gender", interactions=True),
        },
        resolving=["AnnualSalary"],
    )
    names = list(mm.vary_worldview(plan(worldview=other)))
    assert any("AnnualSalary is not resolving" in name for name in names)
    assert any("AccountBalance without interactions" in name for name in names)
    # the equation of a resolving attribute is ignored
    assert "AnnualSalary by straight lines" in names[0]
    # an attribute without causes may be an effect
    assert "AccountBalance is an effect of Gender" in mm.vary_worldview(plan(worldview=BANK))


def test_equal_counterfactuals_are_one_worldview() -> None:
    """In linear worldviews in which every equation has the status, the arrow between is free."""
    reversed_arrow = mm.Worldview(
        {
            "AccountBalance": mm.Linear("Gender"),
            "AnnualSalary": mm.Linear("AccountBalance", "Gender"),
        }
    )
    compared = verdicts({"reversed": reversed_arrow, "bank": BANK})
    assert compared.names == ("as given = reversed", "bank")


def test_the_matrix_counts_verdicts() -> None:
    names = {"<script>alert(1)</script> $x$": BANK, "b & c": EARNED}
    compared = verdicts(names, evidence=mm.Evidence(primary=("cst_without", 15)))
    drawing, table = compared.plot_matrix(), compared.table()
    assert drawing == compared.plot_matrix()
    root = ET.fromstring(drawing.svg)  # noqa: S314 - our own drawing
    assert not [element for element in root.iter() if element.tag.endswith("}script")]
    texts = [element.text for element in root.iter() if element.tag.endswith("}text")]
    for name in names:
        counts = table[f"verdict_{name}"].value_counts()
        start = texts.index(name) + 1
        expected = [f"{counts.get(each, 0):,}" for each in (*VERDICTS[::-1], "insufficient")]
        assert texts[start : start + 5] == expected
    place = int(np.flatnonzero(~np.isnan(compared.delta_p).any(axis=1))[0])
    mine = compared.plot_matrix(place).svg
    for name in names:
        assert f">{table[f'verdict_{name}'][place]}</text>" in mine
        assert f"{table[f'delta_p_{name}'][place]:+.3f}".replace("-", "−") in mine


def test_what_cannot_be_compared() -> None:
    odd = mm.Worldview({"Gender": mm.Linear("AnnualSalary")})
    unknown = mm.Worldview({"AnnualSalary": mm.Linear("Age")})
    with pytest.raises(RootError, match="'Gender' must be a root"):
        verdicts({"odd": odd})
    with pytest.raises(UnknownColumnError, match="'Age'"):
        verdicts({"odd": unknown})
    observed = plan(worldview=None, decision=None, methods=["st"])
    with pytest.raises(PlanError, match="no worldview to vary"):
        mm.vary_worldview(observed)
