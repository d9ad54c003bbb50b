"""Who is affected, in the report: rules in words, none where there are too few cases."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

import mutandis as mm
from mutandis.auditing.affected import SHUFFLES, find_rules


def loans(rows: int = 600, **options: Any) -> mm.Audit:
    """Audit the first of the loan applications."""
    settings: dict[str, Any] = {
        "outcome": "LoanApproval",
        "negative": -1,
        "protected": mm.Protection("Gender", value=1, reference=0),
        "attributes": {"AnnualSalary": "continuous", "AccountBalance": "continuous"},
        "worldview": mm.Worldview(
            {
                "AnnualSalary": mm.Linear("Gender"),
                "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
            }
        ),
        "ks": (15,),
        "uncertainty": mm.Uncertainty(refits=0, placebo=0, tipping=False),
    }
    return mm.audit(mm.datasets.loan(n=rows, seed=1), **{**settings, **options})


@pytest.fixture(scope="module")
def found() -> mm.Audit:
    return loans()


def section(audit: mm.Audit) -> str:
    page = audit.report().html
    inside = re.search(r'<section id="section-affected".*?</section>', page, re.DOTALL)
    assert inside is not None
    assert 'href="#section-affected"' in page
    order = ["section-findings", "section-affected", "section-people"]
    assert sorted(order, key=lambda each: page.index(f'id="{each}"')) == order
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", inside[0])))


def test_the_best_rules_are_those_of_the_audit(found: mm.Audit) -> None:
    said = section(found)
    cases = int(found.evaluate().has_pattern.sum())
    assert f"hardly explains: {cases} of 200 ({cases / 200:.1%})." in said
    rules = found.affected()
    firm = rules[rules["p_value"] <= 0.05].head(3).to_dict("records")
    assert firm
    for rule in firm:
        assert (
            f"{rule['conditions']} : {rule['cases']} of {rule['covered']} complainants are cases "
            f"({rule['share']:.1%}, {rule['lift']:.2f} times the share among all); they are "
            f"{rule['coverage']:.1%} of all cases (p = {rule['p_value']:.3f})."
        ) in said
    assert said.count("of all cases (p =") == len(firm)
    assert "it is not a cause" in said
    assert f"the share of {SHUFFLES + 1} searches" in said


def test_the_rules_of_the_report_have_labels(found: mm.Audit) -> None:
    said = section(found.with_labels(mm.Labels(columns={"AnnualSalary": "yearly pay"})))
    assert "yearly pay > " in said or "yearly pay ≤ " in said
    assert "AnnualSalary" not in said


def test_rules_that_chance_may_explain_are_left_out(
    found: mm.Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mutandis.report.sentences.find_rules",
        lambda *given: [replace(each, p_value=0.055) for each in find_rules(*given)],
    )
    said = section(found)
    assert "No rule of at most three conditions describes them better than chance may" in said
    assert "of all cases" not in said


@pytest.mark.parametrize(
    ("options", "who"),
    [({"tau": 0.99}, "They are"), ({"rows": 60}, "The others are")],
)
def test_of_too_few_cases_or_others_there_are_no_rules(options: dict[str, Any], who: str) -> None:
    audit = loans(**options)
    cases = int(audit.evaluate().has_pattern.sum())
    assert min(cases, len(audit.findings()) - cases) < 10
    said = section(audit)
    assert f"{who} too few (below 10) to describe cases by rules." in said
    assert "not a cause" not in said


def test_where_nothing_is_tested_the_cases_are_those_with_evidence() -> None:
    audit = loans(methods=["cf"], decision="AnnualSalary + 5 * AccountBalance > 225000")
    said = section(audit)
    cases = int(audit.evaluate().comparison.evidence.sum())
    assert f"with prima facie evidence: {cases} of 200" in said


def test_several_grounds_have_one_description() -> None:
    table = mm.datasets.loan(n=600, seed=1)
    table["Origin"] = (table["AccountBalance"].rank() % 2).astype(int)
    audit = mm.audit(
        table,
        outcome="LoanApproval",
        negative=-1,
        protected=[
            mm.Protection("Gender", value=1, reference=0),
            mm.Protection("Origin", value=1, reference=0),
        ],
        combine="multiple",
        attributes={"AnnualSalary": "continuous"},
        methods=["st"],
        ks=(15,),
        alpha=0.4,
        evidence=mm.Evidence(adjust="none"),
        uncertainty=mm.Uncertainty(placebo=0),
    )
    said = section(audit)
    cases = int(audit.evaluate().has_pattern.sum())
    assert f"explains: {cases} of {len(audit.findings())} (" in said
