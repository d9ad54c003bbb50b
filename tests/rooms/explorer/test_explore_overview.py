"""The overview: sentences of the report, and counts at other levels that are exact."""

from __future__ import annotations

import time
from dataclasses import replace
from html import unescape
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.errors import PlanError
from mutandis.report.context import ReportContext
from mutandis.report.formatting import count
from mutandis.report.sentences import summarise
from mutandis.rooms.explorer.pages import Asked, Explorer
from mutandis.rooms.explorer.view import Lens

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutandis.auditing.audit import Audit


def test_the_headline_is_that_of_the_report(visit: Callable[[Audit], Any], loan: Audit) -> None:
    text = unescape(visit(loan).get("/").text)
    for paragraph in summarise(ReportContext(audit=loan)):
        assert paragraph in text
    for sentence in loan.cautions():
        assert sentence in text
    assert 'src="/worldview.svg"' in text


@pytest.mark.parametrize(
    "levels",
    [{"alpha": 0.01}, {"tau": 0.2}, {"alpha": 0.1, "tau": 0.05, "k": 10, "method": "st"}],
)
def test_counts_at_other_levels_are_those_of_another_audit(
    loan: Audit, levels: dict[str, Any]
) -> None:
    """Against an audit that is run anew with these levels."""
    plan = mm.plan(
        mm.datasets.loan(n=600, seed=1),
        outcome="LoanApproval",
        negative=-1,
        protected=mm.Protection("Gender", value=1, reference=0),
        attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
        worldview=loan.plan.worldview,
        decision="AnnualSalary + 5 * AccountBalance > 225000",
        ks=(10, 20),
        alpha=levels.get("alpha", 0.05),
        tau=levels.get("tau", 0.0),
        uncertainty=mm.Uncertainty(refits=3),
    )
    lens = Lens(loan)
    view = lens.read_view({name: str(value) for name, value in levels.items()})
    expected = plan.run()
    for row in lens.counts(view):
        again = expected.count(row["method"], view.k)
        assert {name: row[name] for name in again} == again


def test_counts_are_shown_with_their_change(visit: Callable[[Audit], Any], loan: Audit) -> None:
    text = visit(loan).get("/?tau=0.3").text
    before, after = (
        each.count("cst_matched", loan.plan.settings.primary[1])["cases"]
        for each in (loan, loan.with_levels(tau=0.3))
    )
    assert after < before
    assert f"{count(after)} ({after - before:+d})" in text


def test_several_protections_have_an_overview(visit: Callable[[Audit], Any]) -> None:
    table = {
        "sex": ["f", "m", "f", "m"] * 30,
        "race": ["b", "b", "w", "w"] * 30,
        "score": [float(each * 7 % 31) for each in range(120)],
        "granted": ["no" if each * 5 % 13 < 6 else "yes" for each in range(120)],
    }
    audit = mm.audit(
        table,
        outcome="granted",
        negative="no",
        protected=[
            mm.Protection("sex", value="f", reference="m"),
            mm.Protection("race", value="b", reference="w"),
        ],
        combine="multiple",
        attributes={"score": "continuous"},
        worldview=mm.Worldview({"score": mm.Linear("sex", "race")}),
        ks=(5,),
        uncertainty=mm.Uncertainty(refits=0),
    )
    client = visit(audit)
    changed = audit.with_levels(tau=0.2)
    again = mm.audit(
        table,
        outcome="granted",
        negative="no",
        protected=list(audit.plan.protections),
        combine="multiple",
        attributes={"score": "continuous"},
        worldview=audit.plan.worldview,
        ks=(5,),
        tau=0.2,
        uncertainty=mm.Uncertainty(refits=0),
    )
    assert changed.count_records() == again.count_records()
    for page in ("/?tau=0.2", "/people", "/person/0", "/person/0?effect=0.5"):
        assert client.get(page).status_code == 200
    assert "On the ground of sex" in client.get("/person/0?effect=0.5").text


@pytest.mark.slow
def test_levels_of_the_law_school_are_counted_at_once(law_school: Audit) -> None:
    """Processor time of a page with other levels."""
    explorer = Explorer(law_school, name="law school")
    explorer.overview(Asked())
    for query in ([("alpha", "0.01")], [("tau", "0.15")], [("k", "100"), ("alpha", "0.03")]):
        start = time.process_time()
        explorer.overview(Asked(query=query))
        assert time.process_time() - start < 0.2


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"interval": "wald"},
        {"measure": "risk-ratio"},
        {"direction": "positive"},
        {"adjust": "none"},
    ],
    ids=lambda each: "-".join(each.values()) or "default",
)
def test_another_alpha_gives_the_verdicts_of_an_audit_at_that_level(
    evidence: dict[str, Any],
) -> None:
    audit = mm.audit(
        mm.datasets.loan(n=600, seed=1),
        outcome="LoanApproval",
        negative=-1,
        protected=mm.Protection("Gender", value=1, reference=0),
        attributes={"AnnualSalary": "continuous"},
        worldview=mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
        ks=(10, 20),
        tau=1.1 if "measure" in evidence else 0.0,
        evidence=mm.Evidence(**evidence),
        uncertainty=mm.Uncertainty(refits=2, tipping=False),
    )
    lens, significant = Lens(audit), set()
    for alpha in (0.01, 0.05, 0.2):
        other = audit.with_levels(alpha=alpha)
        for method in audit.methods:
            found = lens.findings(replace(lens.base, alpha=alpha, method=method))
            expected = other.compute_findings(method, lens.base.k, depth="significance")
            assert found.counts() == expected.counts()
            columns, others = found.columns(), expected.columns()
            assert list(columns) == list(others)
            for name in columns.keys() - {"ci_low", "ci_high"}:
                if not name.endswith(("_low", "_high")):
                    np.testing.assert_array_equal(columns[name], others[name])
            significant.add(found.counts()["significant"])
    assert len(significant) > 3
    with pytest.raises(PlanError, match="alpha"):
        lens.findings(replace(lens.base, alpha=2.0))
