"""Workers that are killed at any moment, however many there are, change no bit of an audit."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.cluster import DaskWorkers, open_workers
from mutandis.evidence import tiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KILLS = 10


@pytest.fixture
def plan(plan_loan: Callable[..., mm.Plan]) -> mm.Plan:
    return plan_loan(
        mm.datasets.loan(n=4000, seed=2),
        decision="AnnualSalary + 5 * AccountBalance > 225000",
        ks=(15, 30),
        uncertainty=mm.Uncertainty(refits=2, placebo=0, tipping=False),
        seed=1,
    )


def described(found: mm.Audit) -> dict[str, Any]:
    tables = {
        f"{method} {k}": found.findings(method, k=k).to_dict("list")
        for method in found.methods
        for k in (15, 30)
    }
    return {
        **{name: repr(table) for name, table in tables.items()},
        "provenance": found.provenance,
        "counts": repr(found.counts().to_dict("list")),
    }


def kill_workers(client: Any, ended: threading.Event, killed: list[int]) -> None:
    """Kill one worker after the other at random moments."""
    rng = np.random.default_rng(3)
    while len(killed) < KILLS and not ended.wait(rng.uniform(0.1, 1.0)):
        with suppress(Exception):  # a worker that is asked may be gone
            pids = list(client.run(os.getpid, on_error="ignore").values())
            os.kill(rng.choice(pids), signal.SIGKILL)
            killed.append(1)


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 4])
def test_killed_workers_change_nothing(
    number: int, plan: mm.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(tiles, "_SMALLEST_TILE", 20)
    monkeypatch.setattr(tiles, "_TILES", 24)
    alone = described(plan.run())
    killed: list[int] = []
    ended = threading.Event()

    with open_workers(f"local:{number}", tmp_path) as workers:
        assert isinstance(workers, DaskWorkers)
        killer = threading.Thread(
            target=kill_workers, args=(workers.client, ended, killed), daemon=True
        )
        killer.start()
        started = time.monotonic()
        shared = described(plan.run(cluster=workers))
        took = time.monotonic() - started
        ended.set()
        killer.join(timeout=30)

    assert shared == alone
    assert len(killed) == KILLS, f"{len(killed)} kills in {took:.0f} s"
    assert len(list(tmp_path.glob("*.npz"))) > 24
