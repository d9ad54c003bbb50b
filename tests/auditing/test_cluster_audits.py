"""Audits on Dask workers are those of one process: whatever is audited, stored, or killed."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.engine import tiles
from mutandis.rooms.cluster import DaskWorkers
from mutandis.workers import open_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mutandis.workers import Workers

    MakePlan = Callable[..., mm.Plan]

pytestmark = pytest.mark.slow

# about 2,000 complainants in each of some fifteen tasks
MEMORY = "310MB"
KILLS = 10


@pytest.fixture(scope="module", params=[2, 4])
def workers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workers]:
    pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("tasks")
    with open_workers(f"local:{request.param}", folder, MEMORY) as made:
        assert made is not None
        yield made


@pytest.fixture(scope="module", params=["law school", "loan", "mixed", "two grounds"])
def plan(request: pytest.FixtureRequest, data_folder: Path, plan_loan: MakePlan) -> mm.Plan:
    if request.param == "loan":  # all methods, which ask b() too
        return plan_loan(
            mm.datasets.loan(n=4000, seed=2),
            decision="AnnualSalary + 5 * AccountBalance > 225000",
            ks=(15, 30),
            uncertainty=mm.Uncertainty(refits=2, tipping=False),
            seed=1,
        )
    if request.param == "law school":
        return law_school(data_folder)
    return mixed() if request.param == "mixed" else two_grounds()


def law_school(data_folder: Path) -> mm.Plan:
    """Matched with refits."""
    table = pd.read_csv(data_folder / "law_school.csv", sep="|")
    table["admitted"] = (0.6 * table["UGPA"] + 0.4 * table["LSAT"] >= 20.8).astype(int)
    return mm.plan(
        table,
        outcome="admitted",
        negative=0,
        protected=mm.Protection("race_nonwhite", value="NonWhite", reference="White"),
        attributes={"sex": "nominal", "LSAT": "continuous", "UGPA": "continuous"},
        worldview=mm.Worldview(
            {
                "UGPA": mm.Linear("sex", "race_nonwhite"),
                "LSAT": mm.Linear("sex", "race_nonwhite"),
            }
        ),
        ks=(15, 100),
        uncertainty=mm.Uncertainty(refits=2, tipping=False),
    )


def mixed() -> mm.Plan:
    """Draws, several protected values, and tipping points, on random numbers and names."""
    rng = np.random.default_rng(4)
    group = rng.choice(["a", "b", "c"], 600, p=[0.5, 0.25, 0.25])
    pay = np.round(rng.normal(size=600) - 0.6 * (group != "a"), 1)
    job = np.where(rng.random(600) < 0.3 + 0.3 * (group == "b"), "cook", "clerk")
    refused = rng.random(600) < 1 / (1 + np.exp(0.5 + 2 * pay + (job == "clerk")))
    return mm.plan(
        {"group": group, "pay": pay, "job": job, "refused": refused},
        outcome="refused",
        negative=True,
        protected=mm.Protection("group", value=["b", "c"], reference="a"),
        attributes={"pay": "continuous", "job": "nominal"},
        worldview=mm.Worldview({"pay": mm.Linear("group"), "job": mm.Categorical("group")}),
        ks=(10, 25),
        uncertainty=mm.Uncertainty(draws=3, refits=0, tipping=True),
    )


def two_grounds() -> mm.Plan:
    """Multiple discrimination, with refits."""
    rng = np.random.default_rng(6)
    sex, origin = rng.random((2, 500)) < np.array([[0.4], [0.3]])
    pay = np.round(rng.normal(size=500) - 0.5 * sex - 0.5 * origin, 1)
    refused = rng.random(500) < 1 / (1 + np.exp(0.5 + 2 * pay - sex - origin))
    return mm.plan(
        {"sex": sex, "origin": origin, "pay": pay, "refused": refused},
        outcome="refused",
        negative=True,
        protected=[
            mm.Protection("sex", value=True, reference=False),
            mm.Protection("origin", value=True, reference=False),
        ],
        combine="multiple",
        attributes={"pay": "continuous"},
        worldview=mm.Worldview({"pay": mm.Linear("sex", "origin")}),
        ks=(10, 20),
        uncertainty=mm.Uncertainty(refits=2, tipping=False),
    )


@pytest.fixture(scope="module")
def alone(plan: mm.Plan) -> dict[str, str]:
    return described(plan.run())


def described(audit: mm.Audit) -> dict[str, str]:
    """Give all that an audit finds, to the last bit."""
    found: dict[str, Any] = {
        f"{method} {k}": audit.findings(method, k=k).to_dict("list")
        for method in audit.methods
        for k in audit.ks
    }
    found["counts"] = audit.counts().to_dict("list")
    found["provenance"] = audit.provenance.to_json()
    found["sham"] = audit.sham(2)
    if audit.plan.settings.uncertainty.tipping:
        found["tipping"] = audit.tipping().to_dict("list")
    return {name: repr(each) for name, each in found.items()}


def test_workers_change_nothing(
    workers: Workers, plan: mm.Plan, alone: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "_SMALLEST_TILE", 60)
    before = len(list(workers.folder.glob("*.npz")))
    assert described(plan.run(cluster=workers)) == alone
    assert len(list(workers.folder.glob("*.npz"))) > before + 8


def kill_workers(client: Any, ended: threading.Event, killed: list[int]) -> None:
    """Kill one worker after the other at random moments."""
    rng = np.random.default_rng(3)
    while len(killed) < KILLS and not ended.wait(rng.uniform(0.1, 1.0)):
        with suppress(Exception):  # a worker that is asked may be gone
            pids = list(client.run(os.getpid, on_error="ignore").values())
            os.kill(rng.choice(pids), signal.SIGKILL)
            killed.append(1)


@pytest.mark.parametrize(
    ("plan", "number"),
    [("law school", 2), ("loan", 4), ("mixed", 4)],
    indirect=["plan"],
)
def test_killed_workers_change_nothing(
    number: int,
    plan: mm.Plan,
    alone: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(tiles, "_SMALLEST_TILE", 20)
    monkeypatch.setattr(tiles, "_TILES", 24)
    killed: list[int] = []
    ended = threading.Event()
    with open_workers(f"local:{number}", tmp_path) as workers:
        assert isinstance(workers, DaskWorkers)
        killer = threading.Thread(
            target=kill_workers, args=(workers.client, ended, killed), daemon=True
        )
        killer.start()
        shared = described(plan.run(cluster=workers))
        ended.set()
        killer.join(timeout=30)

    assert shared == alone
    assert len(killed) == KILLS
    assert len(list(tmp_path.glob("*.npz"))) > 24


@pytest.mark.parametrize("parts", [1, 7, 64])
def test_parts_of_a_table_in_any_order(
    workers: Workers,
    parts: int,
    plan_loan: MakePlan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tiles, "_SMALLEST_TILE", 100)
    table = mm.datasets.loan(n=3000, seed=1).reset_index(names="person")
    rows = np.random.default_rng(parts).permutation(len(table))
    for number, some in enumerate(np.array_split(rows, parts)):
        table.iloc[some].to_parquet(tmp_path / f"{number:02}.parquet")

    options: dict[str, Any] = {
        "id": "person",
        "ks": (15,),
        "uncertainty": mm.Uncertainty(refits=0, tipping=False),
    }
    found = plan_loan(tmp_path, **options).run(cluster=workers)
    expected = plan_loan(table, **options).run()
    assert found.provenance.to_json() == expected.provenance.to_json()
    assert found.sham(2) == expected.sham(2)
    for method in expected.methods:
        mine, theirs = (
            each.findings(method).sort_values("id", ignore_index=True) for each in (found, expected)
        )
        pd.testing.assert_frame_equal(mine, theirs, check_exact=True)
