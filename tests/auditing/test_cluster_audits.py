"""Audits on Dask workers are those of one process, whatever is audited and however it is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.cluster import open_workers
from mutandis.evidence import tiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mutandis.cluster import AnyWorkers

pytestmark = pytest.mark.slow

# about 2,000 complainants in each of some fifteen tasks
MEMORY = "310MB"


@pytest.fixture(scope="module", params=[2, 4])
def workers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AnyWorkers]:
    pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("tasks")
    with open_workers(f"local:{request.param}", folder, MEMORY) as made:
        assert made is not None
        yield made


def assert_same(found: mm.Audit, expected: mm.Audit) -> None:
    assert found.provenance.to_json() == expected.provenance.to_json()
    for method in expected.methods:
        for k in expected.ks:
            pd.testing.assert_frame_equal(
                found.findings(method, k=k), expected.findings(method, k=k), check_exact=True
            )
    assert found.noise_floor.as_dict() == expected.noise_floor.as_dict()


def test_law_school(workers: AnyWorkers, data_folder: Path) -> None:
    table = pd.read_csv(data_folder / "law_school.csv", sep="|")
    table["admitted"] = (0.6 * table["UGPA"] + 0.4 * table["LSAT"] >= 20.8).astype(int)
    plan = mm.plan(
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
        uncertainty=mm.Uncertainty(refits=2, placebo=2, tipping=False),
    )
    before = len(list(workers.folder.glob("*.npz")))
    assert_same(plan.run(cluster=workers), plan.run())
    assert len(list(workers.folder.glob("*.npz"))) > before + 8


def test_draws_several_values_and_tipping_points(
    workers: AnyWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "_SMALLEST_TILE", 60)
    rng = np.random.default_rng(4)
    group = rng.choice(["a", "b", "c"], 600, p=[0.5, 0.25, 0.25])
    pay = np.round(rng.normal(size=600) - 0.6 * (group != "a"), 1)
    job = np.where(rng.random(600) < 0.3 + 0.3 * (group == "b"), "cook", "clerk")
    refused = rng.random(600) < 1 / (1 + np.exp(0.5 + 2 * pay + (job == "clerk")))
    plan = mm.plan(
        {"group": group, "pay": pay, "job": job, "refused": refused},
        outcome="refused",
        negative=True,
        protected=mm.Protection("group", value=["b", "c"], reference="a"),
        attributes={"pay": "continuous", "job": "nominal"},
        worldview=mm.Worldview({"pay": mm.Linear("group"), "job": mm.Categorical("group")}),
        ks=(10, 25),
        uncertainty=mm.Uncertainty(draws=3, refits=0, placebo=2, tipping=True),
    )
    assert_same(plan.run(cluster=workers), plan.run())


@pytest.mark.parametrize("parts", [1, 7, 64])
def test_parts_of_a_table_in_any_order(
    workers: AnyWorkers, parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "_SMALLEST_TILE", 100)
    table = mm.datasets.loan(n=3000, seed=1).reset_index(names="person")
    rows = np.random.default_rng(parts).permutation(len(table))
    for number, some in enumerate(np.array_split(rows, parts)):
        table.iloc[some].to_parquet(tmp_path / f"{number:02}.parquet")

    def plan(source: Path | pd.DataFrame) -> mm.Plan:
        return mm.plan(
            source,
            id="person",
            outcome="LoanApproval",
            negative=-1,
            protected=mm.Protection("Gender", value=1, reference=0),
            attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
            worldview=mm.Worldview(
                {
                    "AnnualSalary": mm.Linear("Gender"),
                    "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
                }
            ),
            ks=(15,),
            uncertainty=mm.Uncertainty(refits=0, placebo=2, tipping=False),
        )

    found, expected = plan(tmp_path).run(cluster=workers), plan(table).run()
    assert found.provenance.to_json() == expected.provenance.to_json()
    assert found.noise_floor.as_dict() == expected.noise_floor.as_dict()
    for method in expected.methods:
        mine, theirs = (
            each.findings(method).sort_values("id", ignore_index=True) for each in (found, expected)
        )
        pd.testing.assert_frame_equal(mine, theirs, check_exact=True)
