"""An audit that takes long says how far it has come."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

import mutandis as mm
from mutandis.errors import PlanError
from tests.tables import LOAN

Reports = list[tuple[int, int]]
OPEN = mm.Worldview({"AnnualSalary": mm.Count("Gender")})


def audited(progress: Any, **changes: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        **LOAN,
        "worldview": mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
        "decision": "AnnualSalary + 5 * AccountBalance > 225000",
        "uncertainty": mm.Uncertainty(refits=2),
        "ks": (5,),
        **changes,
    }
    return mm.plan(mm.datasets.loan(n=300, seed=1), **settings).run(progress=progress)


@pytest.mark.parametrize(
    "changes",
    [
        {"uncertainty": mm.Uncertainty()},
        {"methods": ["st"], "uncertainty": mm.Uncertainty()},
        {"uncertainty": mm.Uncertainty(refits=3)},
        {"worldview": None, "uncertainty": mm.Uncertainty()},
        {"worldview": OPEN, "uncertainty": mm.Uncertainty(draws=3, refits=2)},
        {
            "worldview": OPEN,
            "methods": ["cst_matched"],
            "uncertainty": mm.Uncertainty(draws=3, refits=2),
        },
    ],
    ids=[
        "all methods",
        "one method",
        "draws",
        "no counterfactuals",
        "open counterfactuals",
        "matched",
    ],
)
def test_a_function_is_told_how_many_complainants_are_done(changes: dict[str, Any]) -> None:
    told: Reports = []
    audit = audited(lambda done, total: told.append((done, total)), **changes)
    complainants = len(audit.findings(k=5))
    assert told[0] == (0, complainants)
    assert told[-1] == (complainants, complainants)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_several_attributes_are_one_progress() -> None:
    table = mm.datasets.loan(n=300, seed=1)
    table["Old"] = [place % 2 for place in range(len(table))]
    told: Reports = []
    mm.plan(
        table,
        uncertainty=mm.Uncertainty(refits=2),
        outcome="LoanApproval",
        negative=-1,
        protected=[
            mm.Protection("Gender", value=1, reference=0),
            mm.Protection("Old", value=1, reference=0),
        ],
        combine="multiple",
        attributes={"AnnualSalary": "continuous"},
        worldview=mm.Worldview({"AnnualSalary": mm.Linear("Gender", "Old")}),
        ks=(5,),
    ).run(progress=lambda done, total: told.append((done, total)))
    (first, total), *_, (last, same) = told
    assert (first, last) == (0, total)
    assert same == total
    assert len(told) > 2  # the first attribute is not all of it


def test_nobody_to_search_for_is_no_progress() -> None:
    told: Reports = []
    audited(
        lambda done, total: told.append((done, total)), methods=["cf"], uncertainty=mm.Uncertainty()
    )
    assert len(told) == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    audit = audited(True)
    complainants = len(audit.findings(k=5))
    shown = terminal.getvalue()
    assert f"Searching: {complainants:,} of {complainants:,}" in shown
    assert "left" in shown


@pytest.mark.parametrize("progress", [True, False, None])
def test_nothing_else_is_written(progress: bool | None, capsys: pytest.CaptureFixture[str]) -> None:
    audited(progress)
    assert capsys.readouterr() == ("", "")


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(PlanError, match="progress='yes' is not allowed"):
        audited("yes")
