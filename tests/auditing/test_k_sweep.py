"""The sweep over k: the same numbers as an audit at each k, from one search."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import mutandis as mm
from mutandis.errors import GroupSizeError, MutandisWarning, PlanError
from mutandis.search.kd_tree import TreeSearch

if TYPE_CHECKING:
    import pandas as pd

KS = (1, 2, 3, 5, 8, 13, 21)


@pytest.fixture(scope="module")
def decisions() -> pd.DataFrame:
    table: pd.DataFrame = mm.datasets.loan(n=300, seed=4)
    return table


def audit(decisions: pd.DataFrame, **options: Any) -> mm.Audit:
    chosen: dict[str, Any] = {
        "outcome": "LoanApproval",
        "negative": -1,
        "protected": mm.Protection("Gender", value=1, reference=0),
        "attributes": {"AnnualSalary": "continuous", "AccountBalance": "continuous"},
        "worldview": mm.Worldview(
            {
                "AnnualSalary": mm.Linear("Gender"),
                "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
            }
        ),
        "decision": "AnnualSalary + 5 * AccountBalance > 225000",
        "uncertainty": mm.Uncertainty(refits=0, tipping=False),
        "ks": (15,),
    }
    return mm.audit(decisions, **{**chosen, **options})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"preset": "eaamo23"},
        {"evidence": mm.Evidence(direction="positive")},
        {"similarity": mm.Similarity(max_distance=0.02, min_group=2)},
        {"tau": 0.1},
    ],
)
def test_each_k_is_what_an_audit_finds(decisions: pd.DataFrame, options: dict[str, Any]) -> None:
    swept = audit(decisions, **options).k_sweep(KS)
    assert list(swept.columns) == ["method", "k", "cases", "share", "mean_delta_p"]
    full = audit(decisions, ks=KS, **options)
    counts = full.counts()
    assert swept["method"].tolist() == counts["method"].tolist()
    assert swept["k"].tolist() == counts["k"].tolist()
    assert swept["cases"].tolist() == counts["cases"].tolist()
    assert swept["share"].tolist() == counts["share"].tolist()
    for row in swept.itertuples():
        found = full.findings(row.method, k=row.k)
        kept = found.loc[found["verdict"] != "insufficient", "delta_p"]
        if len(kept):
            assert row.mean_delta_p == pytest.approx(kept.mean(), abs=1e-12)
        else:
            assert np.isnan(row.mean_delta_p)


def test_one_search_and_nobody_is_asked_again(
    decisions: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def decide(table: pd.DataFrame) -> Any:
        nonlocal asked
        asked += 1
        return table["AnnualSalary"] + 5 * table["AccountBalance"] > 225_000

    found = audit(decisions, decision=decide)
    before, built = asked, 0
    build = TreeSearch.build.__func__  # type: ignore[attr-defined]

    def counted(cls: Any, *args: Any, **options: Any) -> Any:
        nonlocal built
        built += 1
        return build(cls, *args, **options)

    monkeypatch.setattr(TreeSearch, "build", classmethod(counted))
    monkeypatch.setattr(mm.Worldview, "counterfactuals", None)
    found.k_sweep(range(1, 60))
    assert asked == before
    # the control space, and the test space once for factual and for counterfactual centers
    assert built == 2


def test_sizes_are_sorted_and_each_counts_once(decisions: pd.DataFrame) -> None:
    swept = audit(decisions, methods=["st"]).k_sweep([8, 2, 8])
    assert swept["k"].tolist() == [2, 8]


def test_k_beyond_a_space_is_refused(decisions: pd.DataFrame) -> None:
    found = audit(decisions)
    others = int((decisions["Gender"] == 1).sum()) - 1
    assert len(found.k_sweep([others])) == 5
    with pytest.raises(GroupSizeError, match=f"k={others + 1} is larger than the control space"):
        found.k_sweep([5, others + 1])
    with pytest.raises(PlanError, match="ks is empty"):
        found.k_sweep([])
    with pytest.raises(PlanError, match=r"k=0 is not allowed"):
        found.k_sweep([0])


def test_what_the_audit_has_warned_of_is_not_repeated(decisions: pd.DataFrame) -> None:
    table = decisions.assign(Country=1.0)
    with pytest.warns(MutandisWarning, match="'Country' is constant"):
        found = audit(
            table,
            attributes={"AnnualSalary": "continuous", "Country": "continuous"},
            methods=["st"],
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.k_sweep([2])


def test_the_picture_shows_every_method(decisions: pd.DataFrame) -> None:
    found = audit(decisions)
    drawn = found.plot_k_sweep(KS)
    assert drawn == found.plot_k_sweep(KS)
    root = ET.fromstring(drawn.svg)  # noqa: S314 - our own text
    text = " ".join("".join(node.itertext()) for node in root.iter())
    for title in ("ST", "CST (w/o)", "CST (w/)", "CF", "CST (matched)", "mean Δp", "group size k"):
        assert title in text
