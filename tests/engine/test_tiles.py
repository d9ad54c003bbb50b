"""Groups that are searched for tile by tile are those of one machine, to the last bit."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.auditing.case import list_members
from mutandis.mapped import arrays_in_files, is_mapped
from mutandis.workers import LocalWorkers, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_NUMBERS: Any = {"x": "continuous", "y": "continuous", "z": "continuous"}
_CHAIN = {"x": ("s",), "y": ("s", "x"), "z": ("y",)}


@dataclass(frozen=True)
class FewRows(LocalWorkers):
    """Workers that hold so few rows that a small table is cut into many tiles."""

    rows: int = 200

    def answer(self, tasks: Sequence[Task], progress: Callable[[int], None]) -> list[Path]:
        """Answer in another order than they were asked."""
        backwards = super().answer(tasks[::-1], progress)
        return backwards[::-1]


@pytest.fixture
def small_arrays_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutandis.mapped._LEAST_BYTES", 64)


def mixed_table(rows: int, seed: int) -> pd.DataFrame:
    """Make people with ties, names, counts, and outcomes of two kinds."""
    rng = np.random.default_rng(seed)
    group, sex = rng.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]), rng.choice(["f", "m"], rows)
    x = np.round(3 * rng.normal(size=rows) - (group == "b") - (sex == "f"), 1)
    y = np.round(2 * rng.normal(size=rows) + 0.5 * x - 1.5 * (sex == "f"))
    z = rng.normal(size=rows) + 0.2 * y
    job = rng.choice(["clerk", "cook", "judge"], rows)
    job = np.where((sex == "f") & (rng.random(rows) < 0.3), "cook", job)
    count = rng.poisson(np.exp(0.5 - 0.3 * (sex == "f")))
    lean = 1 + 0.3 * x + 0.2 * y + 0.3 * count - 0.5 * (sex == "f")
    refused = rng.random(rows) < 1 / (1 + np.exp(lean))
    rate = np.round(5 + 1.5 * refused + rng.gamma(2, 1, rows) - 0.1 * y, 2)
    return pd.DataFrame(
        {
            "g": group, "s": sex, "x": x, "y": y, "z": z, "job": job, "count": count,
            "town": rng.choice(["here", "there"], rows), "refused": refused, "rate": rate,
            "hobby": pd.Series(rng.choice(["chess", "golf", "?"], rows)).replace("?", None),
        }
    )  # fmt: skip


def _plain(**asked: Any) -> mm.Uncertainty:
    return mm.Uncertainty(**({"refits": 0, "tipping": False} | asked))


def _linear(**equations: tuple[str, ...]) -> mm.Worldview:
    return mm.Worldview({name: mm.Linear(*parents) for name, parents in equations.items()})


_TWO = [
    mm.Protection("g", value="b", reference="a"),
    mm.Protection("s", value="f", reference="m"),
]
_BOTH = {"x": ("g", "s"), "y": ("x", "g", "s")}

AUDITS: dict[str, Callable[[], dict[str, Any]]] = {
    "numbers": lambda: {"attributes": _NUMBERS, "worldview": _linear(**_CHAIN)},
    "a grid": lambda: {
        "attributes": {"y": "continuous", "count": "continuous"},
        "worldview": _linear(y=("s",), count=("s",)),
    },
    "names and draws": lambda: {
        "attributes": {"job": "nominal", "y": "continuous", "town": "nominal"},
        "worldview": mm.Worldview({"y": mm.Linear("s"), "job": mm.Categorical("s")}),
        "uncertainty": _plain(draws=2),
    },
    "names alone": lambda: {
        "attributes": {"job": "nominal", "town": "nominal"},
        "worldview": mm.Worldview({"job": mm.Categorical("s")}),
        "uncertainty": _plain(draws=2),
    },
    "counts": lambda: {
        "attributes": {"count": "continuous", "z": "continuous"},
        "worldview": mm.Worldview({"count": mm.Count("s")}),
        "uncertainty": _plain(draws=2),
    },
    "refits": lambda: {
        "attributes": _NUMBERS,
        "worldview": _linear(**_CHAIN),
        "uncertainty": _plain(refits=2),
    },
    "robustness": lambda: {
        "attributes": _NUMBERS | {"job": "nominal"},
        "worldview": mm.Worldview({"x": mm.Linear("s"), "job": mm.Categorical("s")}),
        "uncertainty": _plain(draws=2, tipping=True),
        "ks": (20,),
    },
    "a caliper": lambda: {
        "attributes": _NUMBERS,
        "worldview": _linear(**_CHAIN),
        "similarity": mm.Similarity(max_distance=0.05),
    },
    "all ties": lambda: {
        "attributes": {"y": "continuous", "count": "continuous"},
        "worldview": _linear(y=("s",)),
        "similarity": mm.Similarity(ties="all"),
    },
    "squares": lambda: {
        "attributes": _NUMBERS,
        "worldview": _linear(**_CHAIN),
        "similarity": mm.Similarity(distance="mahalanobis"),
    },
    "learned names": lambda: {
        "attributes": _NUMBERS | {"job": "nominal"},
        "worldview": _linear(**_CHAIN),
        "similarity": mm.Similarity(distance="hvdm"),
    },
    "effects on the decision": lambda: {
        "attributes": {
            "count": {"kind": "ordinal", "levels": list(range(12))},
            "job": "nominal",
            "town": "nominal",
        },
        "worldview": mm.Worldview({"job": mm.Categorical("s")}),
        "similarity": mm.Similarity(distance="zhang"),
        "uncertainty": _plain(draws=2),
    },
    "missing names": lambda: {
        "attributes": _NUMBERS | {"hobby": {"kind": "nominal", "compare_missing": True}},
        "worldview": _linear(**_CHAIN),
        "similarity": mm.Similarity(distance="heom"),
    },
    "two values": lambda: {
        "protected": mm.Protection("g", value=["b", "c"], reference="a"),
        "attributes": _NUMBERS,
        "worldview": _linear(x=("g",), y=("x", "g")),
    },
    "multiple": lambda: {
        "protected": _TWO,
        "combine": "multiple",
        "attributes": _NUMBERS,
        "worldview": _linear(**_BOTH),
    },
    "intersectional": lambda: {
        "protected": _TWO,
        "combine": "intersectional",
        "attributes": _NUMBERS,
        "worldview": _linear(**_BOTH),
        "ks": (5, 15),
    },
    "a score": lambda: {
        "outcome": mm.Score("rate", worse="higher"),
        "attributes": _NUMBERS,
        "worldview": _linear(**_CHAIN),
        "ks": (16, 20),
    },
    "an order": lambda: {
        "outcome": mm.Ordered("job", best_to_worst=["judge", "clerk", "cook"]),
        "attributes": _NUMBERS,
        "worldview": _linear(**_CHAIN),
        "ks": (5, 20),
    },
}


def make_plan(audit: str, rows: int = 300, seed: int = 5) -> mm.Plan:
    settings = AUDITS[audit]()
    if isinstance(settings.setdefault("outcome", "refused"), str):
        settings["negative"] = True
    settings.setdefault("protected", mm.Protection("s", value="f", reference="m"))
    settings.setdefault("uncertainty", _plain())
    settings.setdefault("ks", (5, 20))
    return mm.plan(mixed_table(rows, seed), **settings)


_SLOW = {"robustness"}


@pytest.mark.parametrize(
    "audit",
    [pytest.param(each, marks=pytest.mark.slow) if each in _SLOW else each for each in AUDITS],
)
@pytest.mark.few("names and draws", "multiple")
def test_tiles_change_no_number(audit: str, tmp_path: Path, small_arrays_in_files: None) -> None:
    check_tiles(make_plan(audit), tmp_path)


@pytest.mark.parametrize("audit", AUDITS)
@pytest.mark.few("two values")
def test_trees_in_files_change_no_number(
    audit: str, tmp_path: Path, small_arrays_in_files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel_search = pytest.importorskip("mutandis.geometry.compiled")
    monkeypatch.setattr("mutandis.geometry.choose._WORTH_LOADING", 0.0)
    monkeypatch.setitem(kernel_search.CompiledSearch.__init__.__kwdefaults__, "leaf", 8)
    plan = make_plan(audit)
    searched = check_tiles(plan, tmp_path).provenance.computed["search"]
    metric = plan.run().ground.tally.metric if plan.combine != "multiple" else None
    grown = list((tmp_path / "tasks").glob("*/grown-order.npy"))
    if metric is None or metric.weighing is None:
        assert grown
        assert all("compiled" in name for name in searched.values())
    else:
        assert not grown


def check_tiles(plan: mm.Plan, tmp_path: Path) -> mm.Audit:
    """Compare an audit that is cut into tiles with the same audit in one piece."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.MutandisWarning)
        alone = plan.run()
        (tmp_path / "tasks").mkdir()
        workers = FewRows(tmp_path / "tasks")
        tiled = plan.run(cluster=workers)
    control = tiled.ground.tally.control
    assert control is not None
    assert is_mapped(control.found.radius)
    assert len(list((tmp_path / "tasks").glob("*.npz"))) >= 4
    assert tiled.provenance.to_json() == alone.provenance.to_json()
    for method in plan.methods:
        for k in alone.ks:
            expected, found = (each.findings(method.name, k=k) for each in (alone, tiled))
            pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert tiled.sham(2) == alone.sham(2)
    pd.testing.assert_frame_equal(tiled.counts(), alone.counts(), check_exact=True)
    method, k = plan.choose(None, None)
    for place in (0, 7):
        one, other = (list_members(each.ground, place, method, k) for each in (alone, tiled))
        for mine, its in ((one.control, other.control), (one.test, other.test)):
            assert mine.ids.tolist() == its.ids.tolist()
            assert mine.place.tolist() == its.place.tolist()
    return tiled


def test_results_are_the_same_bytes(tmp_path: Path, small_arrays_in_files: None) -> None:
    (tmp_path / "tasks").mkdir()
    make_plan("two values").run().save(tmp_path / "alone")
    with arrays_in_files(tmp_path):
        plan = make_plan("two values")
        plan.run(cluster=FewRows(tmp_path / "tasks")).save(tmp_path / "tiled")
    assert is_mapped(plan.population.numbers("x"))
    alone, tiled = (
        {
            each.relative_to(tmp_path / name): each.read_bytes()
            for each in (tmp_path / name).rglob("*")
            if each.is_file()
        }
        for name in ("alone", "tiled")
    )
    assert alone.keys() == tiled.keys()
    differ = {str(name) for name in alone if alone[name] != tiled[name]}
    # the record says when it was written
    assert differ <= {"audit.json"}
    texts = ((tmp_path / name / "audit.json").read_text() for name in ("alone", "tiled"))
    mine, its = (json.loads(text) for text in texts)
    for each in (mine, its):
        del each["created"], each["sha256"]
    assert mine == its


def test_a_score_of_zeros_and_ones_is_not_taken_for_refusals(tmp_path: Path) -> None:
    table = mixed_table(300, 5)
    table["points"] = table["refused"].astype(float)
    plans = [
        mm.plan(
            table,
            **outcome,
            protected=mm.Protection("s", value="f", reference="m"),
            attributes=_NUMBERS,
            worldview=_linear(**_CHAIN),
            uncertainty=_plain(),
            ks=(16,),
        )
        for outcome in (
            {"outcome": mm.Score("points", worse="higher")},
            {"outcome": "refused", "negative": True},
        )
    ]
    workers = FewRows(tmp_path, rows=10_000)  # all points are loaded, and kept for the next task
    for plan in plans:
        found, expected = plan.run(cluster=workers), plan.run()
        pd.testing.assert_frame_equal(found.findings(), expected.findings(), check_exact=True)
