"""An audit keeps integer counts; what follows from them is worked out when it is asked for."""

from __future__ import annotations

from collections import Counter
from math import fsum
from typing import Any

import pandas as pd
import pytest

import mutandis as mm
from mutandis.auditing import results
from mutandis.auditing.results import compare_groups
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
    for row in audit.results.records():
        found = audit.evaluate(row["method"], row["k"])
        assert row == found.counts()


def test_each_pair_of_shares_is_compared_once_and_each_complainant_is_told() -> None:
    audit = audited()
    for method in audit.plan.methods:
        groups = audit.ground.tally.at(method, 1)
        comparison = compare_groups(audit.plan, method, groups)
        difference = groups.control.share.mean() - groups.test.share.mean()
        assert comparison.delta_p == pytest.approx(difference, abs=1e-15)
        # where people are matched, some have nobody to be compared with
        assert method.matched or not comparison.insufficient.any()
        found = (difference > 1e-12) & ~comparison.insufficient
        assert (comparison.evidence == found).all()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"evidence": mm.Evidence(interval="wald")},
        {"similarity": mm.Similarity(max_distance=0.02, min_group=3)},
    ],
    ids=["default", "wald", "caliper"],
)
def test_a_case_has_the_numbers_of_the_table(
    changes: dict[str, Any],
) -> None:
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


def test_a_report_compares_no_groups_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = audited(uncertainty=mm.Uncertainty(refits=0, tipping=False))
    asked: Counter[tuple[str, int]] = Counter()
    compute = results.evaluate_ground

    def counted(ground: Any, key: tuple[str, int], **options: Any) -> Any:
        asked[key] += options.get("places") is None
        return compute(ground, key, **options)

    monkeypatch.setattr(results, "evaluate_ground", counted)
    audit.report()
    assert not +asked


def test_a_summary_says_what_the_findings_say() -> None:
    audit = audited(similarity=mm.Similarity(max_distance=0.02, min_group=3))
    verdicts: Counter[str] = Counter()
    for method in audit.methods:
        for k in audit.ks:
            found, summary = audit.evaluate(method, k), audit.results.summaries[method, k]
            assert summary.counts == found.counts()
            said = Counter(found.verdicts().tolist())
            strength = [Verdict(each).strength for each in found.verdicts()]
            assert summary.strength.tolist() == strength
            verdicts += said
            delta_p = found.comparison.delta_p[~found.comparison.insufficient].tolist()
            assert summary.mean == fsum(delta_p) / len(delta_p)
    assert set(verdicts) == {each.value for each in Verdict}
