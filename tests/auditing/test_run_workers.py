"""Who computes an audit reaches every search of it, and changes nothing that is on record."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.engine.engine import Engine
from mutandis.errors import PlanError
from mutandis.workers import LocalWorkers

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.workers import Workers


def table(rows: int = 240) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    woman, black = rng.integers(0, 2, size=(2, rows))
    skill = rng.normal(0, 1, rows) - 0.5 * woman - 0.3 * black
    place = np.digitize(-skill, [-0.5, 0, 0.7])
    answer = [("yes", "later", "no", "never")[each] for each in place]
    return {"woman": woman, "black": black, "skill": skill, "answer": answer}


def plan(**changes: Any) -> mm.Plan:
    options: dict[str, Any] = {
        "outcome": "answer",
        "negative": ["no", "never"],
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {"skill": "continuous"},
        "worldview": mm.Worldview({"skill": mm.Linear("woman", "black")}),
        "ks": (8,),
        "uncertainty": mm.Uncertainty(refits=2, tipping=True),
    }
    return mm.plan(table(), **(options | changes))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Workers | None]:
    """Note whose workers each search is given."""
    seen: list[Workers | None] = []
    tallies = Engine.tallies

    def note(self: Engine, *given: Any, **more: Any) -> Any:
        seen.append(self.workers)
        return tallies(self, *given, **more)

    monkeypatch.setattr(Engine, "tallies", note)
    return seen


def ask_everything(found: mm.Audit) -> None:
    found.measure_tipping()
    found.sham(2)


@pytest.mark.slow
def test_every_search_is_given_the_same_workers(
    asked: list[Workers | None], tmp_path: Path
) -> None:
    workers = LocalWorkers(tmp_path)

    found = plan().run(cluster=workers)
    ask_everything(found)
    plan(
        protected=[
            mm.Protection("woman", value=1, reference=0),
            mm.Protection("black", value=1, reference=0),
        ],
        combine="multiple",
    ).run(cluster=workers).sham(2)

    assert len(asked) > 12
    assert all(each is workers for each in asked)


def test_memory_asks_for_a_folder_that_ends_with_the_audit() -> None:
    found = plan().run(memory="1GB")
    workers = found.ground.engine.workers
    assert workers is not None
    folder = workers.folder
    assert folder.is_dir()

    del found, workers
    gc.collect()

    assert not folder.exists()


def test_a_folder_that_is_named_is_kept(tmp_path: Path) -> None:
    found = plan().run(scratch=str(tmp_path / "tasks"))

    assert found.ground.engine.workers is not None
    assert found.ground.engine.workers.folder == tmp_path / "tasks"
    del found
    gc.collect()
    assert (tmp_path / "tasks").is_dir()


@pytest.mark.slow
def test_a_cluster_of_an_audit_ends_with_it() -> None:
    pytest.importorskip("distributed")
    options = dict(table())
    found = mm.audit(
        options,
        outcome="answer",
        negative=["no", "never"],
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"skill": "continuous"},
        ks=(8,),
        cluster="local:1",
    )
    workers: Any = found.ground.engine.workers
    client = workers.client
    assert client.status == "running"

    del found, workers
    gc.collect()

    assert client.status == "closed"


@pytest.mark.parametrize("options", [{"cluster": "nowhere"}, {"memory": "much"}])
def test_what_is_not_allowed(options: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="is not allowed"):
        plan().run(**options)
