"""An audit keeps integer counts; what follows from them is worked out when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pandas as pd
import pytest

import mutandis as mm
from mutandis.auditing.group_comparison import compare_groups


def audited(**changes: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        "outcome": "LoanApproval",
        "negative": -1,
        "protected": mm.Protection("Gender", value=1, reference=0),
        "attributes": {"AnnualSalary": "continuous", "AccountBalance": "continuous"},
        "worldview": mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
        "decision": "AnnualSalary + 5 * AccountBalance > 225000",
        "uncertainty": mm.Uncertainty(refits=2),
        "ks": (5, 15),
        **changes,
    }
    return mm.audit(mm.datasets.loan(n=400, seed=1), **settings)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"preset": "eaamo23", "uncertainty": mm.Uncertainty()},
        {"evidence": mm.Evidence(interval="newcombe")},
        {"similarity": mm.Similarity(max_distance=0.02, min_group=3)},
    ],
    ids=["default", "preset", "newcombe", "caliper"],
)
def test_counting_without_bounds_counts_the_same(changes: dict[str, Any]) -> None:
    audit = audited(**changes)
    for row in audit.count_records():
        found = audit.evaluate(row["method"], row["k"])
        assert row == found.counts()


def test_each_pair_of_shares_is_compared_once_and_each_complainant_is_told() -> None:
    audit = audited()
    for method in audit.plan.methods:
        groups = audit.grouping.at(method, 1)
        comparison = compare_groups(audit.plan, method, groups)
        difference = groups.control.share.values() - groups.test.share.values()
        assert comparison.delta_p == pytest.approx(difference, abs=1e-15)
        # where people are matched, some have nobody to be compared with
        assert method.matched or not comparison.insufficient.any()
        found = (difference > 1e-12) & ~comparison.insufficient
        assert (comparison.evidence == found).all()


def test_a_large_audit_keeps_no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    small = audited()
    kept = small.evaluate("st", 5)
    assert small.evaluate("st", 5) is kept
    # the function of the same name hides the module
    monkeypatch.setattr(import_module("mutandis.auditing.audit"), "_KEPT", 10)
    large = audited()
    large.counts()
    large.case(int(large.findings()["id"].iloc[0]))
    assert not large._findings
    assert large.findings("cst_with", k=15).equals(small.findings("cst_with", k=15))


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"evidence": mm.Evidence(interval="newcombe")},
        {"similarity": mm.Similarity(max_distance=0.02, min_group=3)},
    ],
    ids=["default", "newcombe", "caliper"],
)
def test_a_case_has_the_numbers_of_the_table(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], few: int
) -> None:
    monkeypatch.setattr(import_module("mutandis.auditing.audit"), "_FEW", few)
    alone, together = audited(**changes), audited(**changes)
    for who in alone.situation.complainants[::29].tolist():
        case = alone.case(who)
        for method in together.methods:
            for k in together.ks:
                row = together.findings(method, k=k).set_index("id", drop=False).loc[who]
                assert pd.Series(case.result(method, k=k)).equals(row.rename(None))
    assert bool(alone._findings) == bool(few)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"evidence": mm.Evidence(interval="wald")},
        {"evidence": mm.Evidence(measure="risk-ratio"), "tau": 1.2},
    ],
    ids=["default", "wald", "ratio"],
)
def test_a_report_with_bounds_for_those_who_are_shown_is_the_same(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    changes = {"uncertainty": mm.Uncertainty(refits=0, placebo=0), **changes}
    everyone = audited(**changes)
    for method in everyone.methods:
        for k in everyone.ks:
            everyone.evaluate(method, k)  # with bounds, and kept
    module = import_module("mutandis.auditing.audit")
    monkeypatch.setattr(module, "_KEPT", 0)
    monkeypatch.setattr(module, "_FEW", 0)
    shown = audited(**changes)
    found, whole = shown.report(), everyone.report()
    assert not shown._findings
    assert everyone._findings
    assert found.html == whole.html
    assert found.plots == whole.plots
