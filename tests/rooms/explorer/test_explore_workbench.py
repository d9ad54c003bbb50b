"""The workbench: drafts against worldviews written by hand, runs against audits of their own."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm
from mutandis.errors import PlanError
from mutandis.rooms.explorer.workbench import Draft, Trial, why_locked
from mutandis.store.audit_file import read_plan_text
from tests.tables import LOAN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan

AUDIT = """\
# Who was refused a loan?
data: {source: loans.csv}   # one row per application
outcome: {column: granted, negative: no}
protected: {attribute: sex, value: f, reference: m}

attributes:
  salary: continuous  # a year
  balance: continuous
  town: nominal

worldview:
  # agreed on by both experts
  equations:
    salary: {equation: linear, parents: [$protected], bounds: [0, null]}  # the pay gap
    balance: {equation: linear, parents: [salary, $protected]}  # savings
    town: {equation: categorical, parents: [salary]}
  # the bank may use the town
  resolving: [town]

decision: {rule: "salary + 5 * balance > 100"}
ks: [5]   # small
uncertainty: {draws: 4, refits: 2}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a table of loans, and the audit file beside it."""
    made = tmp_path_factory.mktemp("workbench")
    loans = mm.datasets.loan(n=240, seed=4)
    salary, balance = loans["AnnualSalary"] / 1000, loans["AccountBalance"] / 1000
    towns = ["north", "south", "west"]
    lines = ["sex,salary,balance,town,granted"]
    lines += [
        f"{'f' if g else 'm'},{s:.3f},{b:.3f},{towns[(i * 7 + int(s)) % 3]},"
        f"{'yes' if s + 5 * b > 100 else 'no'}"
        for i, (g, s, b) in enumerate(zip(loans["Gender"], salary, balance, strict=True))
    ]
    (made / "loans.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (made / "audit.yaml").write_text(AUDIT, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def saved(folder: Path) -> Audit:
    mm.read_plan(folder / "audit.yaml").run().save(folder / "results")
    return mm.open_results(folder / "results")


def _draft(audit: Audit, *pairs: tuple[str, str]) -> Draft:
    return Draft.read(audit.plan, pairs)


def test_without_changes_the_draft_is_the_worldview(saved: Audit) -> None:
    draft = _draft(saved)
    assert draft.worldview() == saved.plan.worldview
    assert draft.changes() == []
    assert draft.pairs() == []
    assert draft.to_yaml() == AUDIT


EQUATIONS = {
    "salary": mm.Linear("sex", bounds=(0, None)),
    "balance": mm.Linear("salary", "sex"),
    "town": mm.Categorical("salary"),
}
WITHOUT = {name: EQUATIONS[name] for name in ("salary", "town")}
CHANGES: list[tuple[list[tuple[str, str]], mm.Worldview, str]] = [
    (
        [("off", "1:1")],
        mm.Worldview(EQUATIONS | {"balance": mm.Linear("salary")}, resolving=["town"]),
        "the arrow sex → balance is switched off",
    ),
    (
        [("role:1", "root")],
        mm.Worldview(WITHOUT, resolving=["town"]),
        "balance: a root: without causes",
    ),
    (
        [("role:1", "resolving"), ("role:2", "moves")],
        mm.Worldview(EQUATIONS, resolving=["balance"]),
        "balance: resolving: kept as it is",
    ),
    ([("role:2", "moves")], mm.Worldview(EQUATIONS), "town: moves with its causes"),
]


@pytest.mark.parametrize(("pairs", "expected", "said"), CHANGES)
def test_changes_make_the_worldview_that_they_say(
    saved: Audit,
    folder: Path,
    pairs: list[tuple[str, str]],
    expected: mm.Worldview,
    said: str,
) -> None:
    draft = _draft(saved, *pairs)
    assert draft.worldview() == expected
    assert said in draft.changes()
    assert Draft.read(saved.plan, draft.pairs()) == draft
    text = draft.to_yaml()
    assert read_plan_text(text, folder=folder, name="audit.yaml").worldview == expected
    # all but the worldview is as it was written
    assert text.partition("worldview:")[0] == AUDIT.partition("worldview:")[0]
    assert "ks: [5]   # small" in text


def test_a_run_is_the_audit_of_that_worldview(saved: Audit, folder: Path) -> None:
    draft = _draft(saved, ("off", "1:1"))
    trial = Trial(draft)
    trial.wait(60)
    assert trial.result is not None, trial.failure
    plan = read_plan_text(draft.to_yaml(), folder=folder, name="audit.yaml")
    expected, found = plan.run().findings(), trial.result.audit.findings()
    # how robust verdicts are is not asked in a trial
    assert set(expected) - set(found) == {"tipping", "grade", "robustness"}
    assert found.equals(expected[list(found)])
    assert trial.result.audit.methods == saved.methods
    assert 0 < trial.done <= trial.total


def _wait(client: Any) -> str:
    for _ in range(200):
        text = client.get("/workbench?off=1:1").text
        if "data-running" not in text:
            return str(text)
        threading.Event().wait(0.05)
    raise AssertionError("the run did not end")


def test_the_page_runs_a_draft_and_shows_who_gains_and_loses(
    visit: Callable[[Audit], Any], saved: Audit
) -> None:
    client = visit(saved)
    ours = {"sec-fetch-site": "same-origin", "origin": "null"}
    text = client.get("/workbench").text
    assert text.count('type="checkbox"') == 4
    answer = client.post("/workbench/run", data={"off": "1:1"}, headers=ours)
    assert answer.status_code == 200
    assert str(answer.url).endswith("/workbench?off=1%3A1")
    text = _wait(client)
    assert "the arrow sex → balance is switched off" in text
    trial = Trial(_draft(saved, ("off", "1:1")))
    trial.wait(60)
    assert trial.result is not None
    before, after = (each.evaluate().has_pattern for each in (saved, trial.result.audit))
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    assert f"<strong>{gained}</strong> have the pattern in this worldview only" in text
    assert f"<strong>{lost}</strong> in the audit only" in text
    saved_file = client.get("/workbench/audit.yaml?off=1:1")
    assert "# one row per application" in saved_file.text
    assert client.get("/workbench.svg?off=1:1").headers["content-type"] == "image/svg+xml"


def test_a_run_is_cancelled(saved: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def run(plan: Plan, *, progress: Any) -> Any:
        progress(0, 2)
        reached.set()
        go_on.wait(20)
        progress(1, 2)
        raise AssertionError("it was not cancelled")

    monkeypatch.setattr("mutandis.auditing.plan.Plan.run", run)
    trial = Trial(_draft(saved))
    assert reached.wait(20)
    running = [trial.running]
    trial.cancel()
    go_on.set()
    trial.wait(20)
    assert [*running, trial.running] == [True, False]
    assert trial.failure == "The run was cancelled."
    assert trial.result is None


def test_another_status_can_be_compared_with(visit: Callable[[Audit], Any]) -> None:
    audit = mm.audit(
        {
            "race": ["a", "b", "c"] * 20,
            "score": [float(each * 7 % 23) for each in range(60)],
            "granted": ["no" if each * 5 % 7 < 3 else "yes" for each in range(60)],
        },
        outcome="granted",
        negative="no",
        protected=mm.Protection("race", value="a", reference="b"),
        attributes={"score": "continuous"},
        worldview=mm.Worldview({"score": mm.Linear("race")}),
        ks=(3,),
        uncertainty=mm.Uncertainty(refits=0),
    )
    draft = _draft(audit, ("reference", "1"))
    assert draft.references == ["b", "c"]
    assert draft.changes() == ["race is set to c"]
    plan = draft.to_plan()
    assert plan.protections[0].reference == "c"
    assert plan.run().provenance.settings["protected"]["reference"] == "c"
    assert "reference: c" in draft.to_yaml()
    assert _draft(audit, ("reference", "0")).changes() == []
    assert visit(audit).get("/workbench?reference=1").status_code == 200


def test_strange_changes_are_refused(visit: Callable[[Audit], Any], saved: Audit) -> None:
    client = visit(saved)
    for query in ("off=x", "off=1", "off=1:x", "reference=-1"):
        assert client.get(f"/workbench?{query}").status_code == 400
    # what does not exist is not changed
    for query in ("off=9:9", "role:77=root", "role:0=nothing"):
        answer = client.get(f"/workbench?{query}")
        assert "As audited." in answer.text
    ours = {"sec-fetch-site": "same-origin"}
    assert client.post("/workbench/run", data={"off": "y"}, headers=ours).status_code == 400
    assert client.get("/workbench/run").status_code == 404


def test_what_cannot_be_changed_says_so(visit: Callable[[Audit], Any], loan: Audit) -> None:
    settings = {name: value for name, value in LOAN.items() if name != "worldview"}
    bare = mm.audit(mm.datasets.loan(n=60, seed=1), **settings, ks=(3,))
    assert "no worldview" in why_locked(bare.plan)
    assert "no worldview" in visit(bare).get("/workbench").text
    assert why_locked(loan.plan) == ""
    stated = mm.plan(
        {"woman": [1, 1, 0, 0], "salary": [1.0, 2.0, 3.0, 4.0], "granted": ["no", "yes"] * 2},
        outcome="granted",
        negative="no",
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous"},
        worldview=mm.Worldview({"salary": mm.Stated("3 - woman")}),
        ks=(1,),
    )
    assert Draft.read(stated, [("role:0", "root")]).worldview() == mm.Worldview({})
    two = replace(stated, worldview=mm.Worldview({"salary": mm.Stated("3 - woman + granted")}))
    with pytest.raises(PlanError, match="cannot be changed here"):
        Draft.read(two, [("off", "0:0")]).worldview()
