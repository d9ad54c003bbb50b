"""An audit keeps integer counts; what follows from them is worked out when it is asked for."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from math import fsum
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.auditing.group_comparison import compare_groups
from mutandis.verdicts.findings import Verdict
from tests.tables import LOAN


def audited(**changes: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        **LOAN,
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
        {"evidence": mm.Evidence(interval="wald")},
        {"similarity": mm.Similarity(max_distance=0.02, min_group=3)},
    ],
    ids=["default", "wald", "caliper"],
)
def test_counting_without_bounds_counts_the_same(changes: dict[str, Any]) -> None:
    audit = audited(**changes)
    for row in audit.count_records():
        found = audit.evaluate(row["method"], row["k"])
        assert row == found.counts()


def test_each_pair_of_shares_is_compared_once_and_each_complainant_is_told() -> None:
    audit = audited()
    for method in audit.plan.methods:
        groups = audit.tally.at(method, 1)
        comparison = compare_groups(audit.plan, method, groups)
        difference = groups.control.share.mean() - groups.test.share.mean()
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
        {"evidence": mm.Evidence(interval="wald")},
        {"similarity": mm.Similarity(max_distance=0.02, min_group=3)},
    ],
    ids=["default", "wald", "caliper"],
)
@pytest.mark.few("caliper-0", "default-1000", "wald-0")
def test_a_case_has_the_numbers_of_the_table(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], few: int
) -> None:
    monkeypatch.setattr(import_module("mutandis.auditing.audit"), "_FEW", few)
    alone, together = audited(**changes), audited(**changes)
    tables = {
        (method, k): together.findings(method, k=k).set_index("id", drop=False)
        for method in together.methods
        for k in together.ks
    }
    for who in alone.study.people[::29].tolist():
        case = alone.case(who)
        for (method, k), table in tables.items():
            row = table.loc[who]
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
    changes = {"uncertainty": mm.Uncertainty(refits=0), **changes}
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


def test_a_report_compares_the_groups_of_each_method_and_k_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = import_module("mutandis.auditing.audit")
    monkeypatch.setattr(module, "_KEPT", 0)
    monkeypatch.setattr(module, "_FEW", 0)
    audit = audited(uncertainty=mm.Uncertainty(refits=0, tipping=False))
    asked: Counter[tuple[str, int]] = Counter()

    def count_calls(name: str) -> None:
        compute = getattr(mm.Audit, name)

        def counted(self: mm.Audit, method: str, k: int, **options: Any) -> Any:
            asked[method, k] += 1
            return compute(self, method, k, **options)

        monkeypatch.setattr(mm.Audit, name, counted)

    count_calls("compute_findings")
    count_calls("_digest")
    audit.report()
    assert asked == {(method, k): 1 for method in audit.methods for k in audit.ks}
    # where cases have been counted, no groups are compared again but the headline's
    counted = audited(uncertainty=mm.Uncertainty(refits=0, tipping=False))
    counted.counts()
    asked.clear()
    assert counted.report().html == audit.report().html
    assert asked == {counted.plan.settings.primary: 1}
    asked.update((method, k) for method in audit.methods for k in audit.ks)
    # findings that were written to a file are not worked out again
    again = audited(uncertainty=mm.Uncertainty(refits=0, tipping=False))
    assert sum(1 for _ in again.each_findings()) == len(asked)
    asked.clear()
    assert again.report().html == audit.report().html
    assert not asked


def test_a_digest_says_what_the_findings_say() -> None:
    audit = audited(similarity=mm.Similarity(max_distance=0.02, min_group=3))
    primary = audit.plan.settings.primary[1]
    verdicts: Counter[str] = Counter()
    for method in audit.methods:
        for k in audit.ks:
            found, digest = audit.evaluate(method, k), audit.digest(method, k)
            assert digest.counts == found.counts()
            said = Counter(found.verdicts().tolist())
            assert digest.verdicts == {each: said[each.value] for each in Verdict}
            verdicts += said
            delta_p = found.comparison.delta_p[~found.comparison.insufficient].tolist()
            assert digest.mean == fsum(delta_p) / len(delta_p)
            everyone = len(found) if k == primary else 0
            assert len(digest.delta_p) == len(digest.evidence) == everyone
            assert len(digest.insufficient) == everyone
            if everyone:
                np.testing.assert_array_equal(digest.delta_p, found.comparison.delta_p)
    assert set(verdicts) == {each.value for each in Verdict}
