"""Every number of a case file comes from the audit: parsed back and compared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm
from mutandis.replication.eaamo import RUNS
from tests.report.pages import Page, number

if TYPE_CHECKING:
    from pathlib import Path

FIGURES = (
    "p_control",
    "p_test",
    "delta_p",
    "ci_low",
    "ci_high",
    "p_value",
    "q_value",
    "n_control",
    "n_test",
    "rows_control",
    "rows_test",
    "radius_control",
    "radius_test",
)


def check_case(audit: mm.Audit, who: Any) -> None:
    document = audit.case_file(who)
    case = audit.case(who)
    data = json.loads(document.to_json())
    tables = Page(document.to_html()).tables
    method, k = audit.plan.settings.primary

    # JSON: every row of the findings, every digit
    assert len(data["figures"]) == len(audit.methods) * len(audit.ks)
    for row in data["figures"]:
        found = audit.findings(row["method"], k=row["k"]).set_index("id").loc[who]
        for name in FIGURES:
            expected = None if found[name] != found[name] else found[name]
            assert row[name] == expected
        assert row["verdict"] == found["verdict"]
        assert row["primary"] is ((row["method"], row["k"]) == (method, k))

    # the page: the same table, rounded
    titles = {"ST": "st", "CST (w/o)": "cst_without", "CST (w/)": "cst_with", "CF": "cf"}
    titles["CST (matched)"] = "cst_matched"
    shown = tables["figures"][1:]
    assert len(shown) == 4 * len(audit.ks) + 1
    for title, size, control, test, delta, interval, _, _, verdict in shown:
        found = case.result(titles[title], k=audit.ks[0] if size == "any" else int(size))
        assert control == f"{found['p_control']:.1%}"
        assert test == f"{found['p_test']:.1%}"
        assert number(delta) == round(found["delta_p"], 3)
        if titles[title] != "cf":
            low, high = map(number, interval.strip("[]").split(", "))
            assert (low, high) == (round(found["ci_low"], 3), round(found["ci_high"], 3))
        assert verdict == found["verdict"]

    # both groups: who, how far, which outcome
    for role in ("control", "test"):
        members = getattr(case.groups(method, k=k), role)
        listed = data["parts"][0][role]["members"]
        assert [each["person"] for each in listed] == members.ids.tolist()
        assert [each["distance"] for each in listed] == members.distance.tolist()
        assert [each["place"] for each in listed] == members.place.tolist()
        rows = tables[f"part1-{role}"][2:]
        assert [row[0] for row in rows] == [str(each) for each in members.ids[:250]]
        assert [row[1] for row in rows] == [str(each["outcome"]) for each in listed[:250]]
        assert [row[2] for row in rows] == [f"{each:.4f}" for each in members.distance[:250]]

    # how she moved
    movements = {row[0]: row for row in tables["part1-movements"][1:]}
    assert case.counterfactual is not None
    for name, factual in case.factual.items():
        _, here, there, change, _ = movements[name]
        if isinstance(factual, float):
            counterfactual = case.counterfactual[name]
            assert number(here) == pytest.approx(factual, rel=1e-4, abs=1e-4)
            assert number(there) == pytest.approx(counterfactual, rel=1e-4, abs=1e-4)
            assert number(change) == pytest.approx(counterfactual - factual, abs=abs(factual) / 1e4)
        else:
            assert (here, there) == (str(factual), str(case.counterfactual[name]))

    # both answers, apart
    own = data["own_case"]
    assert f"{data['verdict']['sentence']} {own['sentence']}" == case.explain()
    row = case.result("cst_matched", k=k)
    assert own["answer"] == case.own_case == ("yes" if row["own_case"] else "no")
    assert own["share"] == row["p_own"]
    refused = case.outcome == audit.plan.outcome.kind.negative
    assert row["own_case"] == (refused and row["p_own"] < 0.5)
    assert f">own case: {own['answer']}<" in document.to_html()
    assert f">she was {'refused' if refused else 'granted'}<" in document.to_html()


@pytest.mark.parametrize("who", [5, 44, 1200])
@pytest.mark.few("44")
def test_loan(loan_audit: mm.Audit, who: int) -> None:
    complainants = set(loan_audit.findings()["id"])
    check_case(loan_audit, who if who in complainants else min(complainants))


@pytest.mark.slow
def test_law_school(data_folder: Path) -> None:
    (scenario,) = [each for each in RUNS if each.key == "law_race"]
    audit = mm.audit(scenario.read(data_folder), **scenario.settings)
    found = audit.findings()
    cases = found.loc[found.verdict == "significant-adjusted", "id"]
    check_case(audit, cases.iloc[0])
    check_case(audit, found["id"].iloc[0])
