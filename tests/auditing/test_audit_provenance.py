"""Provenance: enough to repeat an audit and to see that it was repeated; nothing about anybody."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mutandis as mm
from mutandis.geometry.plain import BruteSearch, TreeSearch

if TYPE_CHECKING:
    from mutandis.geometry.index import Search, Space

SECRET = "Jane Roe"
SIZE = 24
TABLE = pd.DataFrame(
    {
        "who": [SECRET, *(f"person {number}" for number in range(1, SIZE))],
        "gender": ["f", "m", "m"] * 8,
        "salary": np.arange(SIZE) % 7 + 10.125,
        "job": ["cook", "clerk"] * 12,
        "granted": ["no", "yes", "yes", "no"] * 6,
        "note": [SECRET] * SIZE,
    }
)
SETTINGS: dict[str, Any] = {
    "outcome": "granted",
    "negative": "no",
    "protected": mm.Protection("gender", value="f", reference="m"),
    "attributes": {
        "salary": {"kind": "continuous", "weight": 2},
        "job": {"kind": "ordinal", "levels": ["clerk", "cook"]},
    },
    "worldview": mm.Worldview({"salary": mm.Linear("gender", bounds=(12, None))}),
    "decision": "salary > 12",
    "uncertainty": mm.Uncertainty(refits=0, tipping=False),
    "ks": (2, 4),
    "id": "who",
    "seed": 7,
}


def audit(table: Any = TABLE, /, **options: Any) -> mm.Audit:
    return mm.audit(table, **{**SETTINGS, **options})


def test_what_is_recorded() -> None:
    found = audit()
    record = json.loads(found.provenance.to_json())
    assert set(record) == {"versions", "data", "settings", "computed"}
    assert record["versions"]["mutandis"] == mm.__version__
    assert set(record["versions"]) >= {"python", "numpy", "scipy", "pandas", "narwhals"}
    assert record["data"]["rows"] == SIZE
    assert record["data"]["complainants"] == 8
    assert record["data"]["dropped"] == {}
    assert record["data"]["sha256_counterfactuals"] is None
    assert re.fullmatch("[0-9a-f]{64}", record["data"]["sha256"])
    salaries = found.counterfactuals()["salary"]
    assert record["computed"]["clipped"] == {"salary": int((salaries == 12).sum())}
    assert record["computed"]["clipped"]["salary"] > 0
    assert record["computed"]["disagreement"] == found.disagreement
    assert found.disagreement is not None
    assert 0 < found.disagreement < 1
    decided, recorded = TABLE["salary"] <= 12, TABLE["granted"] == "no"
    assert record["computed"]["with_record"] == {
        "rows": len(TABLE),
        "better": int((~decided & recorded).sum()),
        "worse": int((decided & ~recorded).sum()),
        "refused": int(recorded.sum()),
    }
    assert set(record["computed"]["distance_rules"]) == {"salary", "job"}
    assert set(record["computed"]["search"]) == {"control", "factual", "counterfactual"}


def test_every_setting_is_recorded() -> None:
    found = audit(uncertainty=mm.Uncertainty())
    settings = json.loads(found.provenance.to_json())["settings"]
    assert settings == {
        "alpha": 0.05,
        "attributes": {
            "job": {"kind": "ordinal", "levels": ["clerk", "cook"], "weight": 1.0},
            "salary": {"kind": "continuous", "levels": [], "weight": 2},
        },
        "cluster_by": None,
        "counterfactuals": None,
        "decision": {"kind": "rule", "rule": "salary > 12"},
        "evidence": {
            "adjust": "benjamini-hochberg",
            "direction": "negative",
            "interval": "miettinen-nurminen",
            "measure": "risk-difference",
            "primary": ["cst_matched", 2],
        },
        "ks": [2, 4],
        "methods": ["st", "cst_without", "cst_with", "cf", "cst_matched"],
        "negative": "no",
        "outcome": "granted",
        "protected": {"attribute": "gender", "pool": False, "reference": "m", "values": ["f"]},
        "seed": 7,
        "similarity": {
            "max_distance": None,
            "min_group": 1,
            "distance": "gower",
            "scaling": "range",
            "test_space": "reference",
            "ties": "fair",
        },
        "tau": 0.0,
        "uncertainty": {"draws": 0, "refits": 20, "tipping": True},
        "worldview": "Worldview({'salary': Linear('gender', bounds=(12.0, None))})",
    }


def test_nothing_about_anybody_and_no_moment() -> None:
    text = audit().provenance.to_json()
    assert SECRET not in text
    assert "person" not in text
    assert "10.125" not in text
    # neither a date, nor a time, nor a path
    assert not re.search(r"\d{4}-\d\d-\d\d|\d\d:\d\d|/|\\\\", text)


def test_decision_makers_are_named_not_shown() -> None:
    class Model:
        """A model whose repr quotes its training data."""

        def predict(self, frame: pd.DataFrame) -> Any:
            return np.where(frame["salary"] > 12, "yes", "no")

        def __repr__(self) -> str:
            return SECRET

    def accept(frame: pd.DataFrame) -> Any:
        return frame["salary"] > 12

    model = audit(decision=Model()).provenance.settings["decision"]
    assert model == {"kind": "model", "type": "Model", "columns": None}
    function = audit(decision=accept).provenance.settings["decision"]
    assert function["kind"] == "function"
    assert function["function"].endswith("accept")
    assert audit(decision=None).provenance.settings["decision"] is None


@pytest.mark.parametrize("frame", [pl.from_pandas, pa.Table.from_pandas, pd.DataFrame.to_dict])
def test_the_hash_is_that_of_the_data_not_of_its_frame(frame: Any) -> None:
    options: dict[str, Any] = {}
    table = frame(TABLE, "list") if frame is pd.DataFrame.to_dict else frame(TABLE)
    assert audit(table, **options).provenance.to_json() == audit().provenance.to_json()


def hashed(table: Any, /, **options: Any) -> str:
    return str(audit(table, **options).provenance.data["sha256"])


def test_the_hash_changes_with_any_cell_that_is_used() -> None:
    changes: dict[str, Any] = {
        "who": "somebody else",
        "gender": "m",
        "salary": 10.25,
        "job": "clerk",
        "granted": "yes",
    }
    hashes = {hashed(TABLE)}
    for name, value in changes.items():
        changed = TABLE.copy(deep=True)
        changed.loc[0, name] = value
        hashes.add(hashed(changed))
    assert len(hashes) == 1 + len(changes)
    assert hashed(TABLE.assign(note="other")) == hashed(TABLE)
    # ids tell which row is which; without them, it is their order that does
    assert hashed(TABLE.iloc[::-1]) == hashed(TABLE)
    assert hashed(TABLE.assign(who=TABLE["who"].to_numpy()[::-1])) != hashed(TABLE)
    assert hashed(TABLE.iloc[::-1], id=None) != hashed(TABLE, id=None)
    backwards = dict(reversed(SETTINGS["attributes"].items()))
    assert hashed(TABLE[TABLE.columns[::-1]], attributes=backwards) == hashed(TABLE)


def test_ready_counterfactuals_are_hashed_with_their_outcomes() -> None:
    would_be = audit(worldview=mm.Worldview({"salary": mm.Linear("gender")})).counterfactuals()

    def digest(table: pd.DataFrame) -> str:
        found = audit(worldview=None, counterfactuals=table).provenance
        assert found.settings["counterfactuals"] == "given"
        assert found.data["sha256"] == hashed(TABLE)
        return str(found.data["sha256_counterfactuals"])

    other_outcome = would_be.assign(granted=["yes", *would_be["granted"][1:]])
    assert other_outcome["granted"].tolist() != would_be["granted"].tolist()
    other_salary = would_be.assign(salary=[11.5, *would_be["salary"][1:]])
    undecided = would_be.drop(columns="granted")
    tables = (would_be, other_outcome, other_salary, undecided)
    assert len({digest(table) for table in tables}) == 4
    assert digest(would_be.copy(deep=True)) == digest(would_be)


def test_the_search_of_each_space_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {
        "origin": ["near", "near", "near", "far", "far", "far", *["here"] * 6],
        "salary": [float(place) for place in range(12)],
        "granted": ["no", "yes"] * 6,
    }
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": "no",
        "protected": mm.Protection("origin", reference="here"),
        "attributes": {"salary": "continuous"},
        "ks": (1,),
    }
    audit = mm.audit(table, **settings)
    same = audit.provenance.computed["search"]["factual"]
    assert audit.provenance.computed["search"]["control"] == same
    chosen = iter(["tree", "brute", "tree"])  # the test space comes first

    def choose(space: Space, *, threads: int) -> Search:
        brute = BruteSearch(space=space) if next(chosen) == "brute" else None
        return brute or TreeSearch.build(space, threads=threads)

    monkeypatch.setattr("mutandis.engine.nearest.ChosenSearch", choose)
    again = mm.audit(table, **settings)
    assert again.provenance.computed["search"] == {
        "control": "brute (far), tree (near)",
        "factual": "tree",
    }
    assert again.findings().equals(audit.findings())
