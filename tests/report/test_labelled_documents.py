"""Labels in documents: the words of an audit file stand wherever a document has words."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm
from mutandis.errors import PlanError, SettingsError
from mutandis.files.audit_file import write_plan

if TYPE_CHECKING:
    from pathlib import Path

OUTCOME = {"negative": "turned down for a loan", "positive": "given a loan"}
AUDIT = """
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
worldview:
  AnnualSalary: {equation: linear, parents: [Gender]}
  AccountBalance: {equation: linear, parents: [AnnualSalary, Gender]}
decision: {rule: AnnualSalary + 5 * AccountBalance > 225000}
ks: [15, 30]
uncertainty: {refits: 0, placebo: 2}
"""
LABELS = """
labels:
  outcome: {negative: turned down for a loan, positive: given a loan}
  columns: {AnnualSalary: yearly pay, AccountBalance: savings, Gender: sex, LoanApproval: decision}
  levels:
    Gender: {0: man, 1: woman}
    LoanApproval: {-1: no loan, 1: a loan}
  statuses:
    Gender: {0: men, 1: women}
"""
WORDS = re.compile(r"refus\w*|granted", re.IGNORECASE)


def text_of(html: str) -> str:
    """Give the words of a page: no style, no settings as YAML."""
    for block in ("style", "pre"):
        html = re.sub(rf"<{block}>.*?</{block}>", " ", html, flags=re.DOTALL)
    html = re.sub(r"<[^>]*aria-label=\"([^\"]*)\"[^>]*>", r" \1 ", html)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    mm.datasets.loan(n=600, seed=1).to_csv(folder / "loan.csv", index=False)
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


def test_words_for_the_outcome_are_in_every_sentence(labelled: mm.Audit) -> None:
    case = labelled.case(first(labelled))
    pages = {
        "report": labelled.report().html,
        "case": labelled.case_file(case.id).to_html(),
        "redacted": labelled.case_file(case.id, redact=True).to_html(),
        "text": str(case) + case.explain() + repr(labelled) + str(labelled._repr_html_()),
    }
    for name, page in pages.items():
        assert not WORDS.findall(text_of(page)), name
    assert all(OUTCOME["negative"] in page for page in pages.values())


def test_without_labels_the_words_are_refused_and_granted(plain: mm.Audit) -> None:
    case = plain.case(first(plain))
    assert "was refused (outcome -1)" in case.explain_own_case()
    assert "she was refused" in plain.case_file(case.id).to_html()
    assert "“Refused” means LoanApproval = -1" in plain.report().html


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
    assert other.grouping is plain.grouping
    other.save(tmp_path / "results")
    again = mm.open_results(tmp_path / "results")
    assert again.plan.labels == labelled.plan.labels
    assert mm.verify_results(tmp_path / "results", rerun=True).differences == ()


def test_an_audit_file_says_its_labels(folder: Path, labelled: mm.Audit) -> None:
    text = "data: {source: loan.csv}\n" + write_plan(replace(labelled.plan, origin=None))
    (folder / "written.yaml").write_text(text)
    assert mm.read_plan(folder / "written.yaml").labels == labelled.plan.labels


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("labels: {column: {Gender: sex}}", "'column' is not a key of the section 'labels'"),
        ("labels: {columns: {Gendr: sex}}", "Did you mean 'Gender'"),
        ("labels: {levels: {Gender: {2: woman}}}", "never has it"),
        ("labels: {columns: {Gender: [sex]}}", "a label is needed"),
    ],
)
def test_wrong_labels_of_a_file_are_named(folder: Path, labels: str, said: str) -> None:
    (folder / "wrong.yaml").write_text(f"{AUDIT}{labels}\n")
    with pytest.raises(PlanError, match=said) as caught:
        mm.read_plan(folder / "wrong.yaml")
    assert isinstance(caught.value, SettingsError) or "section 'labels'" in str(caught.value)


def test_labels_are_given_as_labels(plain: mm.Audit) -> None:
    with pytest.raises(PlanError, match="not Labels"):
        plain.with_labels({"columns": {}})  # type: ignore[arg-type]
