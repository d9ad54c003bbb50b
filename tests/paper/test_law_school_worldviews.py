"""The three law-school worldviews in YAML, and the table of docs/published-runs.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.data.formula import Formula
from mutandis.replication.eaamo import RUNS

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from numpy.typing import NDArray

    ShareOfDraws = Callable[[mm.Audit, str, int], NDArray[np.float64]]

ROOT = Path(__file__).parents[2]
LAW = {"race": RUNS[1], "gender": RUNS[2]}


@pytest.fixture(scope="module")
def applicants(data_folder: Path) -> pd.DataFrame:
    table = LAW["race"].read(data_folder)
    table["LSAT"] = table["LSAT"].round()
    rule = Formula.parse(LAW["race"].settings["decision"])
    scores = {name: table[name].to_numpy() for name in rule.names}
    table["admitted"] = rule.evaluate(scores).astype(int)
    return table


def run(applicants: pd.DataFrame, which: str, family: str, **options: Any) -> mm.Audit:
    worldview = mm.Worldview.read(ROOT / "examples" / "law-school" / f"worldview-{family}.yaml")
    settings = {**LAW[which].settings, "worldview": worldview, **options}
    return mm.audit(applicants, **settings)


@pytest.mark.parametrize("which", ["race", "gender"])
@pytest.mark.parametrize("family", ["linear", "log-linear", "poisson"])
@pytest.mark.few(
    "poisson-race", "linear-race", "log-linear-race", "linear-gender", "log-linear-gender"
)
def test_the_documented_counts(applicants: pd.DataFrame, which: str, family: str) -> None:
    audit = run(applicants, which, family, methods=("cst_without", "cf"))
    records = audit.count_records()
    cases = {(row["method"], row["k"]): row["cases"] for row in records}
    cells = [cases["cst_without", k] for k in (15, 30, 50, 100)] + [cases["cf", 15]]
    documented = (ROOT / "docs" / "published-runs.md").read_text(encoding="utf-8")
    assert f"| {which} | {family} | {' | '.join(map(str, cells))} |" in documented


@pytest.mark.slow
def test_the_documented_draws(applicants: pd.DataFrame, share_of_draws: ShareOfDraws) -> None:
    shares = {}
    for which in LAW:
        found = run(
            applicants, which, "poisson", uncertainty=mm.Uncertainty(draws=20), seed=0, ks=(15,)
        )
        table = found.findings("cst_without", k=15)
        shares[which] = share_of_draws(found, "cst_without", 15)[table["delta_p"] > 0]
        assert found.provenance.computed["couplings"] == {"LSAT": "monotone coupling"}
    assert len(shares["race"]) == 432
    assert int((shares["race"] == 1).sum()) == 325
    assert int((shares["race"] <= 0.5).sum()) == 106
    assert len(shares["gender"]) == 140
    assert round(100 * float(np.mean(shares["gender"]))) == 69
    assert float(shares["gender"].min()) == 0.35


def test_the_documented_dispersion(data_folder: Path) -> None:
    scores = LAW["race"].read(data_folder).groupby(["race_nonwhite", "sex"])["LSAT"]
    ratio = (scores.var() / scores.mean()).round(2).to_dict()
    assert ratio == {
        ("White", "Female"): 0.61,
        ("White", "Male"): 0.65,
        ("NonWhite", "Female"): 1.29,
        ("NonWhite", "Male"): 1.22,
    }
