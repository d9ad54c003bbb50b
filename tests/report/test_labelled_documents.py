"""Labels in documents: the words of an audit file stand wherever a document has words."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import mutandis as mm
from mutandis.errors import PlanError, SettingsError
from mutandis.rooms.compliance import write_text
from mutandis.rooms.explorer.pages import Explorer, Request

if TYPE_CHECKING:
    from pathlib import Path

OUTCOME = {"negative": "turned down for a loan", "positive": "given a loan"}
AUDIT = """
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes:
  AnnualSalary: continuous
  AccountBalance: continuous
  Region: nominal
  Score7: {kind: ordinal, levels: [g1, g2, g3]}
worldview:
  AnnualSalary: {equation: linear, parents: [Gender]}
  Score7: {equation: ordinal, parents: [Gender], levels: [g1, g2, g3]}
  AccountBalance: {equation: linear, parents: [AnnualSalary, Gender]}
decision: {rule: AnnualSalary + 5 * AccountBalance > 225000}
ks: [15, 30]
uncertainty: {refits: 0, draws: 2}
"""
LABELS = """
labels:
  outcome: {negative: turned down for a loan, positive: given a loan}
  columns:
    AnnualSalary: yearly pay
    AccountBalance: savings
    Gender: sex
    LoanApproval: decision
    Region: part of the country
    Score7: rating
  levels:
    Region: {r1: north, r2: south}
    Score7: {g1: poor, g2: fair, g3: good}
    Gender: {0: man, 1: woman}
    LoanApproval: {-1: no loan, 1: a loan}
  statuses:
    Gender: {0: men, 1: women}
"""
# the names and values of the table, and the words that stand where there are no labels
WORDS = re.compile(
    r"refus\w*|granted|AnnualSalary|AccountBalance|Gender|LoanApproval|Region|Score7|\b[rg][123]\b",
)
RULE = "AnnualSalary + 5 * AccountBalance > 225000"  # a formula is written as it is


def text_of(html: str) -> str:
    """Give the words of a page: no style, no settings as YAML."""
    for block in ("style", "pre"):
        html = re.sub(rf"<{block}>.*?</{block}>", " ", html, flags=re.DOTALL)
    html = re.sub(r"<[^>]*(?:aria-label|alt)=\"([^\"]*)\"[^>]*>", r" \1 ", html)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    table = mm.datasets.loan(n=600, seed=1)
    number = np.arange(len(table))
    table["Region"] = np.where(number % 3 == 0, "r1", "r2")
    table["Score7"] = np.array(["g1", "g2", "g3"])[(number * 7 + table["Gender"]) % 3]
    table.to_csv(folder / "loan.csv", index=False)
    (folder / "plain.yaml").write_text(AUDIT)
    (folder / "audit.yaml").write_text(AUDIT + LABELS)
    return folder


@pytest.fixture(scope="module")
def plain(folder: Path) -> mm.Audit:
    return mm.read_plan(folder / "plain.yaml").run()


@pytest.fixture(scope="module")
def labelled(folder: Path) -> mm.Audit:
    found = mm.read_plan(folder / "audit.yaml").run()
    found.save(folder / "results")
    return found


def first(audit: mm.Audit) -> Any:
    return audit.findings()["id"].iloc[0]


def test_labels_change_no_number(plain: mm.Audit, labelled: mm.Audit) -> None:
    assert labelled.plan.labels.outcome == OUTCOME
    for method in plain.methods:
        for k in plain.ks:
            assert labelled.findings(method, k=k).equals(plain.findings(method, k=k))
    assert labelled.people().equals(plain.people())
    assert labelled.counts().equals(plain.counts())
    assert labelled.provenance.as_dict() == plain.provenance.as_dict()


def test_labels_are_wherever_a_document_has_words(labelled: mm.Audit) -> None:
    case = labelled.case(first(labelled))
    pages = {
        "report": labelled.report().html,
        "case": labelled.case_file(case.id).to_html(),
        "redacted": labelled.case_file(case.id, redact=True).to_html(),
        "case in a notebook": case._repr_html_() + case.explain(),
        "audit in a notebook": labelled._repr_html_() + OUTCOME["negative"],
        "check": f"{labelled.plan.check()} {OUTCOME['negative']}",
        "prima facie": write_text(labelled, "prima-facie"),
        "model card": write_text(labelled, "model-card") + OUTCOME["negative"],
    }
    # a report has its pictures in it
    for name, page in pages.items():
        assert not WORDS.findall(text_of(page).replace(RULE, "")), name
    assert all(OUTCOME["negative"] in page for page in pages.values())


@pytest.mark.parametrize("page", ["overview", "people", "person", "workbench"])
def test_labels_are_in_every_page_of_the_explorer(labelled: mm.Audit, page: str) -> None:
    content = getattr(Explorer(labelled, name="an audit"), page)(Request()).content.decode()
    said = text_of(content).replace(RULE, "")
    assert not WORDS.findall(said)
    assert "yearly pay" in said


def test_people_are_called_by_their_status(labelled: mm.Audit) -> None:
    said = text_of(labelled.report().html)
    assert "Were women treated worse than they would have been, had they been men?" in said
    women = len(labelled.study.people)
    assert f"{women} women (the complainants) were each compared with men." in said
    assert "sex woman, compared with man" in text_of(labelled.case_file(first(labelled)).to_html())


def test_data_keep_the_names_of_the_table(plain: mm.Audit, labelled: mm.Audit) -> None:
    one, two = (json.loads(each.case_file(first(each)).to_json()) for each in (plain, labelled))
    for each in (one, two):  # sentences are words
        for key in ("verdict", "own_case", "robustness", "whole_table", "assumptions", "limits"):
            del each[key]
        del each["provenance"]["source"]
    assert one == two


def test_a_redacted_file_has_no_label_of_what_it_does_not_tell(labelled: mm.Audit) -> None:
    person = labelled.case(first(labelled))
    document = labelled.case_file(person.id, redact=True)
    kept = document.labels.levels["Region"]
    assert list(kept) == [person.factual["Region"]]
    other = ({"north", "south"} - set(kept.values())).pop()
    assert other not in document.to_html()
    assert other not in document.to_json()


def test_hostile_labels_are_escaped(plain: mm.Audit) -> None:
    with pytest.raises(PlanError, match="not Labels"):
        plain.with_labels({"columns": {}})  # type: ignore[arg-type]
    hostile = "<script>alert('1')</script>"
    found = plain.with_labels(
        mm.Labels(
            outcome={"negative": hostile},
            columns={"AnnualSalary": f"{hostile}2", "Gender": f"{hostile}3"},
            levels={"Region": {"r1": f"{hostile}4"}},
            statuses={"Gender": {0: f"{hostile}5", 1: f"{hostile}6"}},
        )
    )
    case = found.case(first(found))
    pages = [
        found.report().html,
        found._repr_html_(),
        case._repr_html_(),
        found.case_file(case.id).to_html(),
        *(
            getattr(Explorer(found, name="an audit"), page)(Request()).content.decode()
            for page in ("overview", "people", "person", "workbench")
        ),
        *found.report().plots.values(),
    ]
    for page in pages:
        assert "<script>alert" not in page
    for svg in found.report().plots.values():
        ET.fromstring(svg)  # noqa: S314 - our own


def test_labels_are_kept_with_the_results(folder: Path, labelled: mm.Audit) -> None:
    again = mm.open_results(folder / "results")
    assert again.plan.labels == labelled.plan.labels
    # what no folder keeps is in the settings, which are not in the words
    assert text_of(again.report().html) == text_of(labelled.report().html)
    assert mm.verify_results(folder / "results", rerun=True).differences == ()


def test_a_finished_audit_is_labelled_without_a_rerun(
    plain: mm.Audit, labelled: mm.Audit, tmp_path: Path
) -> None:
    other = plain.with_labels(labelled.plan.labels)
    assert other.ground.tally is plain.ground.tally
    other.save(tmp_path / "results")
    again = mm.open_results(tmp_path / "results")
    assert again.plan.labels == labelled.plan.labels
    assert mm.verify_results(tmp_path / "results", rerun=True).differences == ()


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("labels: {column: {Gender: sex}}", "'column' is not a key of the section 'labels'"),
        ("labels: {columns: {Gendr: sex}}", "Did you mean 'Gender'"),
        ("labels: {levels: {Gender: {2: woman}}}", "never has it"),
        ("labels: {columns: {Gender: [sex]}}", "A list is not allowed. Give a name"),
    ],
)
def test_wrong_labels_of_a_file_are_named(folder: Path, labels: str, said: str) -> None:
    (folder / "wrong.yaml").write_text(f"{AUDIT}{labels}\n")
    with pytest.raises(PlanError, match=said) as caught:
        mm.read_plan(folder / "wrong.yaml")
    assert isinstance(caught.value, SettingsError) or "section 'labels'" in str(caught.value)
