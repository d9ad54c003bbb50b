"""An audit takes little more memory than its table: what follows from it is not kept."""

from __future__ import annotations

import tracemalloc
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.auditing import run
from mutandis.data.population import Overlay
from mutandis.engine import nearest as finder
from mutandis.geometry.index import Neighbourhoods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.geometry.index import Queries, Space

ROWS, COLUMNS = 200_000, 5
NUMERIC = ROWS * COLUMNS * 8


def table_and_settings(rows: int = ROWS) -> tuple[pd.DataFrame, dict[str, Any]]:
    rng = np.random.default_rng(0)
    status = rng.random(rows) < 0.35
    table: dict[str, Any] = {"Status": status}
    names = [f"X{place}" for place in range(COLUMNS)]
    equations = {}
    score = np.zeros(rows)
    for place, name in enumerate(names):
        table[name] = rng.normal(0, 1, rows) - 0.4 * status
        score += table[name]
        equations[name] = mm.Linear("Status", *names[:place])
    table["Granted"] = score + rng.normal(0, 0.5, rows) > 0
    return pd.DataFrame(table), {
        "outcome": "Granted",
        "negative": False,
        "protected": mm.Protection("Status", value=True, reference=False),
        "attributes": dict.fromkeys(names, "continuous"),
        "worldview": mm.Worldview(equations),
        "decision": " + ".join(names) + " > 0",
        # matches are found by another search, which is not stood in for here
        "methods": ["st", "cst_without", "cst_with", "cf"],
    }


class NoSearch:
    """Answers at once: what a search takes is measured where searches are."""

    name = "none"

    def __init__(self, space: Space, *, threads: int) -> None:
        self.refused = float(space.marks.sum() / space.counts.sum())

    def neighbourhoods(self, queries: Queries, ks: tuple[int, ...], **_: Any) -> Neighbourhoods:
        found = Neighbourhoods.empty(len(queries), len(ks))
        rng = np.random.default_rng(0)
        for column, k in enumerate(ks):
            found.inside[:, column] = k - 1
            found.rim[:, column] = 1
            found.marks_inside[:, column, 0] = rng.binomial(k - 1, self.refused, len(queries))
        return found


class _Peaks:
    """The most memory that was in use at a time, above the start: as a multiple of the data."""

    def __init__(self) -> None:
        self.start = 0

    def restart(self) -> None:
        self.start = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()

    def since(self, kept: int = 0) -> float:
        peak = tracemalloc.get_traced_memory()[1] - self.start - kept
        tracemalloc.reset_peak()
        return peak / NUMERIC


@pytest.fixture
def peaks(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Peaks]:
    monkeypatch.setattr(finder, "ChosenSearch", NoSearch)
    monkeypatch.setattr(run, "answer_ground", lambda _: None)  # it searches by itself
    table, settings = table_and_settings(1000)
    # what is imported at first use is not counted
    small = mm.audit(table, **settings)
    small.counts()
    small.case(int(small.study.people[0]))
    tracemalloc.start()
    yield _Peaks()
    tracemalloc.stop()


def findings_bytes(audit: mm.Audit) -> int:
    assert audit.ground.tally.control is not None
    found = [each.found for each in (audit.ground.tally.control, *audit.ground.tally.test.values())]
    return sum(getattr(each, part.name).nbytes for each in found for part in fields(each))


def test_no_step_takes_four_times_the_numeric_data(peaks: _Peaks) -> None:
    table, settings = table_and_settings()
    peaks.restart()
    plan = mm.plan(table, **settings)
    assert peaks.since() < 2  # one copy of the table, with codes, ids and strata
    made = settings["worldview"].counterfactuals(plan.population, do=plan.do)
    assert peaks.since() < 3.6  # that copy, the design of the largest equation; then D^CF
    assert made.moved == tuple(settings["attributes"])
    del plan, made
    tracemalloc.reset_peak()
    audit = mm.audit(table, **settings)
    findings = findings_bytes(audit)
    left = (tracemalloc.get_traced_memory()[0] - peaks.start - findings) / NUMERIC
    assert left < 4.5  # with q-values and the headline's findings
    tracemalloc.reset_peak()
    counts = audit.counts()
    assert peaks.since(findings) < 5.0
    assert len(counts) == 16
    complainant = int(audit.study.people[0])
    assert len(audit.case(complainant).results) == 16
    assert peaks.since(findings) < 6.0  # one table of findings at a time


def test_what_nobody_asked_for_is_not_there(peaks: _Peaks) -> None:
    table, settings = table_and_settings()
    audit = mm.audit(table, **settings)
    counterfactual = audit.ground.world.point
    assert counterfactual is not None
    # the reference rows are as they were, and not held twice
    assert isinstance(counterfactual.columns, Overlay)
    assert len(counterfactual.columns.rows) == len(audit.study.people)
    assert not audit.ground.engine._spaces.prepared
    # numbers are read from the one copy of the table
    people = audit.plan.population
    assert np.shares_memory(people.numbers("X0"), people.source["X0"].to_numpy())
