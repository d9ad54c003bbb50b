"""Sham audits: rebuilt by hand as ordinary audits, and independent of the order of rows."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.auditing import sham as sham_module
from mutandis.errors import GroupSizeError, PlanError
from mutandis.numeric.order import canonical_order
from mutandis.report.sentences import describe_headline, describe_sham

if TYPE_CHECKING:
    from pathlib import Path

# the package's `run` is the function, and hides the module
run = import_module("mutandis.auditing.run")
KS = (5, 20)
METHODS = ("st", "cst_without", "cst_with", "cf", "cst_matched")
WORLDVIEW = mm.Worldview({"salary": mm.Linear("group"), "balance": mm.Linear("salary", "group")})
SEX = mm.Protection("sex", value="f", reference="m")
NEAR = mm.Protection("group", value="near", reference="here")


def decisions(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """Make people of three groups, on a coarse grid so that there are ties."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["far", "here", "near"], rows, p=[0.15, 0.6, 0.25])
    salary = np.round(rng.normal(12, 4, rows) - 3 * (group == "far") - (group == "near"))
    balance = np.round(rng.normal(9, 3, rows) + 0.2 * salary - 2 * (group == "far"), 1)
    granted = np.where(salary + 2 * balance > 30, "yes", "no")
    table = pd.DataFrame({"group": group, "salary": salary, "balance": balance})
    return table.assign(sex=np.where(np.arange(rows) % 3 == 0, "f", "m"), granted=granted)


def settings(**options: Any) -> dict[str, Any]:
    return {
        "outcome": "granted",
        "negative": "no",
        "protected": mm.Protection("group", reference="here"),
        "attributes": {"salary": "continuous", "balance": "continuous"},
        "worldview": WORLDVIEW,
        "decision": "salary + 2 * balance > 30",
        # sham audits make no refits
        "uncertainty": mm.Uncertainty(refits=0, tipping=False),
        "ks": KS,
        **options,
    }


def two_grounds(combine: str) -> dict[str, Any]:
    return settings(
        protected=[NEAR, SEX],
        worldview=mm.Worldview(
            {"salary": mm.Linear("group", "sex"), "balance": mm.Linear("salary", "group")}
        ),
        combine=combine,
    )


def relabelled(audit: mm.Audit, table: pd.DataFrame, seed: int, number: int) -> pd.DataFrame:
    """Give the reference rows statuses, in order of the generator, by hand."""
    names = [each.attribute for each in audit.plan.protections]
    references = [each.reference for each in audit.plan.protections]
    population = audit.plan.population
    ordered = table.iloc[canonical_order(population.columns, ids=population.ids)]
    reference = ordered[(ordered[names] == references).all(axis=1)]
    order = np.random.default_rng([seed, 0, number]).permutation(len(reference))
    pseudo = reference.reset_index(names="row")
    for status, rows in table.groupby(names):
        if list(status) != references:
            size = round(len(reference) * len(rows) / len(table))
            for name, value in zip(names, status, strict=True):
                pseudo.loc[order[:size].tolist(), name] = str(value)
            order = order[size:]
    return pseudo


def same_part(k: int, reference: int, everybody: int) -> int:
    """Compute the k that is the same part of the reference rows as k is of all, half up."""
    return max(1, math.floor(Fraction(k * reference, everybody) + Fraction(1, 2)))


def check_by_hand(table: pd.DataFrame, options: dict[str, Any], *, seed: int = 7) -> None:
    audit = mm.audit(table, **options)
    shams = {
        (method, k): audit.sham(2, seed=seed, method=method, k=k)
        for method in audit.methods
        for k in KS
    }
    for number in range(2):
        pseudo = relabelled(audit, table, seed, number)
        taken = {k: same_part(k, len(pseudo), len(table)) for k in KS}
        again = {**options, "ks": tuple(taken.values())}
        if "counterfactuals" in options:
            ready = options["counterfactuals"].loc[pseudo["row"]].reset_index(drop=True)
            again["counterfactuals"] = ready
        expected = mm.audit(pseudo.drop(columns="row"), **again).counts()
        expected = expected.set_index(["method", "k"])
        for (method, k), found in shams.items():
            assert found.counted == ("cases" if method == "cf" else "significant_adjusted")
            wanted = expected.loc[(method, taken[k])]
            assert found.found[number] == wanted[found.counted], (method, k)
            assert found.people == wanted["complainants"]
            assert found.count == audit.results.summaries[method, k].counts[found.counted]


def test_they_are_audits_of_relabelled_reference_rows() -> None:
    check_by_hand(decisions(), settings())


def test_supplied_counterfactuals_are_those_of_the_reference_rows() -> None:
    table, rng = decisions(), np.random.default_rng(5)
    ready = table[["salary", "balance"]].copy()
    # if they were refitted, or taken from other rows, the counts would be others
    ready["salary"] += np.where(table["group"] == "here", 0.05, 3.0) * rng.random(len(table))
    check_by_hand(table, settings(worldview=None, counterfactuals=ready))


@pytest.mark.parametrize("combine", ["intersectional", "multiple"])
def test_several_statuses_are_assigned_as_they_come_together(combine: str) -> None:
    check_by_hand(decisions(rows=700), two_grounds(combine), seed=3)


@pytest.mark.parametrize("most", [20, 1000])
def test_they_depend_on_the_seed_and_not_on_rows_or_threads(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sham_module, "_MOST", most)
    # many rows repeat, and rows that are alike but for their outcome are not the same
    table = decisions(rows=400, seed=5).assign(balance=lambda rows: rows["balance"].round())
    table["granted"] = np.where(np.arange(400) % 7 == 0, "no", table["granted"])
    evidence = mm.Evidence(adjust="none", primary=("cst_without", 5))
    options = settings(methods=("cst_without",), evidence=evidence)
    found = mm.audit(table, **options).sham(3, seed=2)
    assert (found.people == 20) is (most == 20)
    for seed in (1, 2):
        shuffled = mm.plan(table.sample(frac=1, random_state=seed), **options)
        assert shuffled.run(threads=seed).sham(3, seed=2) == found
    audit = mm.audit(table, **options)
    assert audit.sham(4, seed=2).found[:3] == found.found
    assert audit.sham(9, seed=1).found != audit.sham(9, seed=2).found
    assert mm.audit(table, **options, seed=2).sham(3) == found


def test_the_largest_is_scaled_to_the_complainants() -> None:
    numbers: dict[str, Any] = {
        "seed": 0,
        "method": "st",
        "k": 5,
        "counted": "cases",
        "complainants": 1000,
    }
    for count, most, exceeds in ((10, 1, False), (11, 1, True), (0, 0, False), (199, 20, False)):
        found = mm.ShamAudits(**numbers, count=count, found=(0, most), people=100)
        assert found.largest == 10 * most
        assert found.exceeds_all is exceeds
        assert ("in about 1 of 3 tables" in describe_sham(found)) is exceeds
    odd = mm.ShamAudits(**numbers, count=5, found=(1,), people=333)
    assert odd.largest == 3


def test_documents_show_them_only_where_they_were_asked_for(tmp_path: Path) -> None:
    audit = mm.audit(decisions(), **settings())
    asked = audit.with_sham(3)
    assert asked.results.sham == audit.sham(3)
    assert audit.results.sham is None
    assert asked.with_levels(alpha=0.01).results.sham is None
    who = audit.findings()["id"].iloc[0]
    for each, shown in ((audit, False), (asked, True)):
        assert ("3 sham audits" in describe_headline(each)) is shown
        assert ("sham audits" in each.report().html) is shown
        assert ("sham audits" in each.case_file(who).to_html()) is shown
        assert "sham audits" not in each.case_file(who, redact=True).to_html()
    asked.save(tmp_path / "results")
    record = json.loads((tmp_path / "results" / "audit.json").read_text("utf-8"))
    assert record["sham"]["found"] == list(asked.results.sham.found)
    assert mm.open_results(tmp_path / "results").results.sham == asked.results.sham


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"number": 0}, "number=0 is not allowed. Give an integer of at least 1."),
        ({"seed": -1}, "seed=-1 is not allowed. Give an integer of at least 0."),
        ({"k": 7}, "k=7 was not run"),
    ],
)
def test_other_values_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        mm.audit(decisions(), **settings(methods=("st",))).sham(**options)


def test_groups_that_reference_people_cannot_fill_are_refused() -> None:
    table = decisions()
    largest = int((table["group"] == "far").sum()) - 1
    audit = mm.audit(table, **settings(ks=(5, largest)))
    with pytest.raises(GroupSizeError, match="is larger than the control space"):
        audit.sham(1, k=largest)
    assert audit.sham(1, k=5).found
