"""Two audits side by side: verdicts against both tables of findings, and reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import PlanError
from mutandis.rooms.explorer.pages import Asked, Explorer
from mutandis.rooms.explorer.people import VERDICTS
from mutandis.rooms.explorer.two_audits import TwoAudits
from mutandis.rooms.explorer.view import Lens
from tests.tables import LOAN

if TYPE_CHECKING:
    from mutandis.auditing.audit import Audit


def _loan(rows: Any = None, **changes: Any) -> Audit:
    table = mm.datasets.loan(n=600, seed=1)
    given: dict[str, Any] = {
        **LOAN,
        "worldview": mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
        "decision": "AnnualSalary + 5 * AccountBalance > 225000",
        "ks": (20,),
        "evidence": mm.Evidence(primary=("cst_without", 20)),
        "uncertainty": mm.Uncertainty(refits=0),
        **changes,
    }
    table = table.assign(who=range(len(table)))
    return mm.audit(table if rows is None else rows(table), id="who", **given)


@pytest.fixture(scope="module")
def first() -> Audit:
    return _loan()


def _compared(one: Audit, two: Audit) -> TwoAudits:
    lens = Lens(one)
    return TwoAudits(lens, Lens(two), lens.base)


def _joined(one: Audit, two: Audit) -> Any:
    columns = ["id", "verdict", "delta_p", "p_control", "p_test"]
    return one.findings()[columns].merge(two.findings()[columns], on="id")


def test_an_audit_beside_itself_has_no_differences(first: Audit) -> None:
    two = _compared(first, first)
    assert two.reasons() == []
    assert not two.masks["changed"].any()
    assert two.people("changed", 0, 10) == []


def test_another_worldview_changes_counterfactuals_and_those_compared_with(first: Audit) -> None:
    worldview = LOAN["worldview"]
    other = _loan(worldview=worldview)
    two = _compared(first, other)
    assert {each.kind for each in two.reasons()} == {"worldview"}
    both = _joined(first, other)
    differs = both[both["verdict_x"] != both["verdict_y"]]
    assert len(differs) > 0
    people = two.people("changed", 0, 1000)
    assert {each.id for each in people} == set(differs["id"])
    expected = pd.crosstab(both["verdict_x"], both["verdict_y"])
    for verdict, numbers in two.matrix():
        for other_verdict, number in zip(VERDICTS, numbers, strict=True):
            known = verdict in expected.index and other_verdict in expected.columns
            assert number == (expected.loc[verdict, other_verdict] if known else 0)
    for each in people:
        assert "her counterfactual" in each.because
        assert "her record" not in each.because
        assert "people like her" not in each.because
    row = both.set_index("id").loc[people[0].id]
    assert people[0].verdicts == (row["verdict_x"], row["verdict_y"])
    assert people[0].delta_p == (row["delta_p_x"], row["delta_p_y"])
    gained = {each.id for each in two.people("gained", 0, 1000)}
    strong = "significant-adjusted"
    assert gained == set(both["id"][(both["verdict_y"] == strong) & (both["verdict_x"] != strong)])


def test_levels_are_a_reason(first: Audit) -> None:
    two = _compared(first, _loan(tau=0.3))
    assert [(each.kind, each.name, each.first, each.second) for each in two.reasons()] == [
        ("settings", "tau", "0.0", "0.3")
    ]
    assert {each.because for each in two.people("changed", 0, 1000)} == {("levels",)}


def test_levels_of_a_view_are_a_reason(first: Audit) -> None:
    lens = Lens(first)
    two = TwoAudits(lens, Lens(first.with_levels(alpha=0.01)), lens.read_view({"tau": "0.2"}))
    assert [(each.name, each.first, each.second) for each in two.reasons()] == [
        ("alpha", "0.05", "0.01"),
        ("tau", "0.2", "0.0"),
    ]


def test_another_model_is_a_reason(first: Audit) -> None:
    two = _compared(first, _loan(decision="AnnualSalary > 60000"))
    assert {each.kind for each in two.reasons()} == {"b()"}


def test_other_data_are_a_reason_and_people_are_found_by_their_ids(first: Audit) -> None:
    def fewer(table: Any) -> Any:
        changed = table.iloc[::-1].iloc[:-50].copy()
        changed.loc[changed["Gender"] == 1, "AnnualSalary"] += 1.0
        return changed

    other = _loan(rows=fewer)
    two = _compared(first, other)
    assert "data" in {each.kind for each in two.reasons()}
    both = _joined(first, other)
    assert two.common == len(both)
    assert two.alone == (len(first.findings()) - len(both), 0)
    assert {each.id for each in two.people("changed", 0, 1000)} == set(
        both["id"][both["verdict_x"] != both["verdict_y"]]
    )
    assert all("her record" in each.because for each in two.people("changed", 0, 1000))


def test_what_the_other_did_not_run_is_said(first: Audit) -> None:
    with pytest.raises(PlanError, match="second audit did not run cst_without at k = 20"):
        _compared(first, _loan(ks=(10,), evidence=mm.Evidence()))


def test_the_page_is_there_with_a_second_audit_only(first: Audit) -> None:
    from mutandis.rooms.explorer.pages import MissingPageError

    alone = Explorer(first, name="one")
    with pytest.raises(MissingPageError):
        alone.compare(Asked())
    assert b"Two audits" not in alone.overview(Asked()).content
    pair = Explorer(first, name="one", other=_loan(tau=0.3), other_name="<b>two")
    text = pair.compare(Asked(query=[("change", "lost")])).content.decode()
    assert "&lt;b&gt;two" in text
    assert "<b>" not in text
    assert "Two audits" in text
    with pytest.raises(PlanError, match="changed, gained, lost"):
        pair.compare(Asked(query=[("change", "x")]))
