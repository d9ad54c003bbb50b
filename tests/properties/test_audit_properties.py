"""What holds for every audit: exact shares, no trace of row order or units, nested groups."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import mutandis as mm
from mutandis.engine import matched
from mutandis.errors import EquationError
from tests.oracle import Gower, nearest, radius_of, share

GRADES = ["low", "mid", "high"]
ATTRIBUTES: dict[str, Any] = {
    "x": "continuous",
    "y": {"kind": "continuous", "weight": 2},
    "job": "nominal",
    "grade": {"kind": "ordinal", "levels": GRADES},
}
# three women and three men at least, both outcomes, and nothing constant
ANCHORS = pd.DataFrame(
    {
        "status": ["p", "p", "p", "p", "r", "r", "r", "other"],
        "x": [0.0, 4.0, 1.0, 2.0, 1.0, 3.0, 2.0, 5.0],
        "y": [0.0, 0.5, 0.2, 0.1, 0.1, 0.4, 0.2, 0.0],
        "job": ["a", "b", "a", "b", "a", "b", "c", "a"],
        "grade": ["low", "high", "mid", "low", "mid", "high", "low", "mid"],
        "ok": [0, 1, 0, 0, 1, 0, 1, 1],
    }
)


@dataclass(frozen=True)
class Situation:
    """A table with many ties, ready counterfactuals for it, and group sizes that fit."""

    table: pd.DataFrame
    counterfactuals: pd.DataFrame
    ks: tuple[int, ...] = (1, 2, 3)
    attributes: dict[str, Any] = field(default_factory=lambda: ATTRIBUTES)
    negative: int = 0
    reference: str = "r"
    value: str = "p"

    def audit(self, **options: Any) -> mm.Audit:
        settings_: dict[str, Any] = {
            "outcome": "ok",
            "negative": self.negative,
            "protected": mm.Protection("status", value=self.value, reference=self.reference),
            "attributes": self.attributes,
            "counterfactuals": self.counterfactuals,
            "ks": self.ks,
            "id": "who",
        }
        return mm.plan(self.table, **{**settings_, **options}).run(threads=1)


numbers = st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
decimals = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
row = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["p", "p", "r", "r", "other"]),
        "x": numbers,
        "y": decimals,
        "job": st.sampled_from(["a", "b", "c"]),
        "grade": st.sampled_from(GRADES),
        "ok": st.sampled_from([0, 1]),
    }
)
# counterfactuals lie on the grid of D, between its points, and beyond its range
row_cf = st.fixed_dictionaries(
    {
        "x": st.sampled_from([-7.0, -0.5, 0.0, 1.0, 2.25, 3.0, 5.0, 6.5]),
        "y": st.sampled_from([-0.3, 0.0, 0.05, 0.1, 0.25, 0.37, 0.5, 0.9]),
        "job": st.sampled_from(["a", "b", "c"]),
        "grade": st.sampled_from(GRADES),
        "ok": st.sampled_from([0, 1]),
    }
)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    drawn = draw(st.lists(row, max_size=16))
    table = pd.concat([ANCHORS, pd.DataFrame(drawn)], ignore_index=True)
    table["who"] = [f"person {number}" for number in draw(st.permutations(range(len(table))))]
    would_be = pd.DataFrame(draw(st.lists(row_cf, min_size=len(table), max_size=len(table))))
    # do(reference) leaves people of the reference status as they are
    would_be = would_be.where(table["status"] != "r", table[list(would_be)])
    return Situation(table, would_be)


def everything(audit: mm.Audit) -> dict[tuple[str, int, Any], tuple[str, ...]]:
    """All findings of everybody, floats to the last bit, by id."""
    found = {}
    for method in audit.methods:
        for k in audit.ks:
            columns = audit.evaluate(method, k).columns()
            for who, *values in zip(*(c.tolist() for c in columns.values()), strict=True):
                found[method, k, who] = tuple(
                    value.hex() if isinstance(value, float) else repr(value) for value in values
                )
    return found


# --- the definition, word by word --------------------------------------------------------------


@settings(max_examples=45, deadline=None)
@given(situation=situations())
def test_shares_and_radii_are_those_of_the_definition(situation: Situation) -> None:
    audit, table = situation.audit(), situation.table
    cells = ["x", "y", "job", "grade"]
    rows, would_be = (
        [tuple(row) for row in each[cells].to_numpy().tolist()]
        for each in (table, situation.counterfactuals)
    )
    refused, refused_cf = (
        (each["ok"] == 0).tolist() for each in (table, situation.counterfactuals)
    )
    gower = Gower(rows, ("continuous", "continuous", "nominal", tuple(GRADES)), (1, 2, 1, 1))
    men = np.flatnonzero(table["status"] == "r").tolist()
    women = np.flatnonzero(table["status"] == "p").tolist()
    for me in women:
        near = gower.among(rows[me], [row for row in women if row != me])
        others, others_cf = gower.among(rows[me], men), gower.among(would_be[me], men)
        case = audit.case(table["who"][me])
        for k in situation.ks:
            control, test, test_cf = (
                share(nearest(apart, k), refused) for apart in (near, others, others_cf)
            )
            assert control is not None
            assert test is not None
            assert test_cf is not None
            expected = {
                "st": (control, test),
                "cst_without": (control, test_cf),
                "cst_with": (
                    (control * k + refused[me]) / (k + 1),
                    (test_cf * k + refused_cf[me]) / (k + 1),
                ),
                "cf": (Fraction(refused[me]), Fraction(refused_cf[me])),
            }
            for method, (p_control, p_test) in expected.items():
                result = case.result(method, k=k)
                assert result["p_control"] == float(p_control)
                assert result["p_test"] == float(p_test)
                assert result["delta_p"] == float(p_control - p_test)
                assert (result["verdict"] != "no-evidence") == (p_control > p_test)
            for method, apart in (("st", others), ("cst_without", others_cf)):
                found = case.result(method, k=k)
                assert abs(found["radius_control"] - radius_of(near, k)) < 1e-9
                assert abs(found["radius_test"] - radius_of(apart, k)) < 1e-9


# --- what must not matter ----------------------------------------------------------------------


def shuffled(situation: Situation, rng: np.random.Generator) -> Situation:
    order = rng.permutation(len(situation.table))
    tables = situation.table.iloc[order], situation.counterfactuals.iloc[order]
    return replace(situation, table=tables[0], counterfactuals=tables[1])


def renamed(situation: Situation, rng: np.random.Generator) -> Situation:
    statuses = situation.table["status"].map({"p": "zebra", "r": "ant", "other": "mole"})
    jobs = {"a": "zoo", "b": "bar", "c": "art"}
    table = situation.table.assign(status=statuses, job=situation.table["job"].map(jobs))
    would_be = situation.counterfactuals
    would_be = would_be.assign(job=would_be["job"].map(jobs))
    changed = replace(situation, table=table, counterfactuals=would_be)
    return replace(changed, value="zebra", reference="ant")


@pytest.mark.parametrize("change", [shuffled, pytest.param(renamed, marks=pytest.mark.slow)])
@settings(max_examples=25, deadline=None)
@given(situation=situations(), seed=st.integers(0, 2**32 - 1))
def test_what_changes_nothing(change: Any, situation: Situation, seed: int) -> None:
    other = change(situation, np.random.default_rng(seed))
    assert everything(other.audit()) == everything(situation.audit())


@settings(max_examples=30, deadline=None)
@given(situation=situations(), seed=st.integers(0, 2**32 - 1))
def test_shuffling_rows_changes_nothing_of_a_fitted_worldview(
    situation: Situation, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(len(situation.table))
    worldview = mm.Worldview({"x": mm.Linear("status"), "y": mm.Linear("x", "status", "job")})
    options: dict[str, Any] = {
        "worldview": worldview,
        "counterfactuals": None,
        "decision": "x + 3 * y > 3",
        "uncertainty": mm.Uncertainty(refits=2),
    }
    try:
        straight = situation.audit(**options)
    except EquationError:  # too few rows, or x says nothing beyond the status
        reject()
    mixed = replace(situation, table=situation.table.iloc[order]).audit(**options)
    assert everything(mixed) == everything(straight)
    before, after = (
        audit.counterfactuals().set_index("who").sort_index() for audit in (straight, mixed)
    )
    assert after["x"].to_numpy().tobytes() == before["x"].to_numpy().tobytes()
    assert after["y"].to_numpy().tobytes() == before["y"].to_numpy().tobytes()
    # do(factual value) is the identity, bit for bit
    facts = situation.table.set_index("who").sort_index()
    stays = (facts["status"] == "r").to_numpy()
    for name in ("x", "y"):
        kept = before.loc[stays, name].to_numpy().tobytes()
        assert kept == facts.loc[stays, name].to_numpy().tobytes()


@pytest.mark.parametrize("kernels", [False, True])
def test_sets_of_equal_rows_at_one_distance_are_added_up_in_any_order(
    kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernels:
        pytest.importorskip("numba")
        monkeypatch.setattr(matched, "_WORTH_LOADING", 0)
    # men on one point and on others beside it, at one distance from a woman's counterfactual
    rows = "r02a0 p05c0 p53a0 p00a0 p00a0 p50b0 r33c0 r32b0 r22a0 r22c0"
    more = pd.DataFrame(
        [
            (each[0], float(each[1]), int(each[2]) / 10, each[3], "low", int(each[4]))
            for each in rows.split()
        ],
        columns=list(ANCHORS),
    )
    table = pd.concat([ANCHORS, more], ignore_index=True)
    table["who"] = [f"person {number}" for number in range(len(table))]
    worldview = mm.Worldview({"x": mm.Linear("status"), "y": mm.Linear("x", "status", "job")})
    found = []
    for seed in range(8):
        mixed = table.iloc[np.random.default_rng(seed).permutation(len(table))]
        audit = Situation(mixed, mixed).audit(
            counterfactuals=None, worldview=worldview, uncertainty=mm.Uncertainty(refits=0)
        )
        found.append(everything(audit))
    assert all(each == found[0] for each in found)


# --- mirrors and identities --------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(situation=situations())
def test_calling_the_other_outcome_negative_mirrors_every_difference(
    situation: Situation,
) -> None:
    audit, mirrored = situation.audit(), replace(situation, negative=1).audit()
    for method in audit.methods:
        for k in situation.ks:
            here = audit.findings(method, k=k)["delta_p"].to_numpy()
            there = mirrored.findings(method, k=k)["delta_p"].to_numpy()
            assert (here == -there).all()


@settings(max_examples=20, deadline=None)
@given(situation=situations())
def test_exchanging_the_groups_mirrors_the_difference(situation: Situation) -> None:
    """Everybody takes the other status, but for one complainant: her two groups change places."""
    status = situation.table["status"].map({"p": "r", "r": "p", "other": "other"})
    status[0] = "p"
    options: dict[str, Any] = {"counterfactuals": None}
    exchanged = replace(situation, table=situation.table.assign(status=status)).audit(**options)
    who = situation.table.loc[0, "who"]
    here, there = situation.audit(**options).case(who), exchanged.case(who)
    for k in situation.ks:
        mine, mirrored = here.result("st", k=k), there.result("st", k=k)
        assert (mine["p_control"], mine["p_test"]) == (mirrored["p_test"], mirrored["p_control"])
        assert mine["delta_p"] == -mirrored["delta_p"]
        assert mine["ci_low"] == -mirrored["ci_high"]
        assert mine["radius_control"] == mirrored["radius_test"]
        assert mine["rows_control"] == mirrored["rows_test"]


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(situation=situations())
def test_counterfactuals_that_are_the_facts_make_cst_st(situation: Situation) -> None:
    facts = replace(situation, counterfactuals=situation.table)
    audit = facts.audit()
    for k in situation.ks:
        assert audit.findings("cst_without", k=k).equals(audit.findings("st", k=k))
    assert audit.counts().set_index("method").loc["cf", "cases"].tolist() == [0, 0, 0]
