"""Runs: counterfactuals, decisions, and what an auditor is told on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mutandis as mm
from mutandis.errors import MutandisWarning

SIZE = 30
TABLE = pd.DataFrame(
    {
        "gender": ["f", "m", "m"] * 10,
        "salary": np.arange(SIZE) % 7 + 10 + 3 * (np.arange(SIZE) % 3 > 0),
        "age": np.arange(SIZE) % 4 + 20,
        "job": ["cook", "clerk"] * 15,
    }
)
TABLE["granted"] = np.where(TABLE["salary"] >= 15, "yes", "no")
SETTINGS: dict[str, Any] = {
    "outcome": "granted",
    "negative": "no",
    "protected": mm.Protection("gender", value="f", reference="m"),
    "attributes": {"salary": "continuous", "job": "nominal"},
    "worldview": mm.Worldview({"salary": mm.Linear("gender")}),
    "decision": "salary >= 15",
    "uncertainty": mm.Uncertainty(refits=0, tipping=False),
    "ks": (3,),
}


def audit(table: Any = TABLE, /, *, threads: int | None = None, **options: Any) -> mm.Audit:
    return mm.plan(table, **{**SETTINGS, **options}).run(threads=threads)


# --- decisions ---------------------------------------------------------------------------------


class Model:
    """What scikit-learn's models look like from outside."""

    feature_names_in_ = ("salary",)

    def predict(self, frame: Any) -> Any:
        return np.where(np.asarray(frame["salary"]) >= 15, "yes", "no")


class Maker:
    def decide(self, frame: Any) -> Any:
        return np.where(np.asarray(frame["salary"]) >= 15, "yes", "no")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas])
@pytest.mark.parametrize(
    "decision",
    [
        lambda table: table["salary"] >= 15,
        lambda table: (table["salary"] >= 15).to_list(),
        lambda table: ["yes" if salary >= 15 else "no" for salary in table["salary"]],
        Model(),
        Maker(),
    ],
)
def test_whoever_decides_the_findings_are_the_same(decision: Any, frame: Any) -> None:
    expected = audit(frame(TABLE))
    found = audit(frame(TABLE), decision=decision)
    assert found.disagreement == expected.disagreement == 0.0
    for method in expected.methods:
        assert found.findings(method, k=3).equals(expected.findings(method, k=3))


def test_the_decision_sees_the_reference_status_and_the_moved_attributes() -> None:
    seen: list[pd.DataFrame] = []

    def decide(frame: pd.DataFrame) -> Any:
        seen.append(frame.copy())
        return frame["salary"] >= 15

    found = audit(decision=decide)
    factual, counterfactual = seen
    assert set(counterfactual["gender"]) == {"m"}
    women = TABLE["gender"] == "f"
    shift = counterfactual["salary"] - TABLE["salary"]
    expected = TABLE.loc[~women, "salary"].mean() - TABLE.loc[women, "salary"].mean()
    assert shift[women].tolist() == pytest.approx([expected] * 10)
    assert set(shift[~women]) == {0}
    assert factual.equals(TABLE)
    # what is handed out afterwards is the same table, with the decisions in it
    handed = found.counterfactuals()
    assert handed.drop(columns="granted").equals(counterfactual.drop(columns="granted"))
    assert handed["granted"].tolist() == np.where(handed["salary"] >= 15, "yes", "no").tolist()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas])
def test_a_decision_that_writes_into_its_table_changes_nothing(frame: Any) -> None:
    table = frame(TABLE.copy(deep=True))

    def vandal(given: Any) -> Any:
        answer = np.asarray(given["salary"]) >= 15
        if isinstance(given, pd.DataFrame):
            given.loc[:, "salary"] = 0.0
            given["granted"] = "yes"
            memory = given["age"].to_numpy()
            memory.flags.writeable = True
            memory[:] = 0
        else:
            given.replace_column(given.columns.index("salary"), pl.Series("salary", [0.0] * SIZE))
            given.drop_in_place("job")
        return answer

    found = audit(table, decision=vandal)
    assert table.equals(frame(TABLE))
    assert found.disagreement == 0.0
    expected = audit(frame(TABLE))
    for method in expected.methods:
        assert found.findings(method, k=3).equals(expected.findings(method, k=3))
    assert found.counterfactuals().equals(expected.counterfactuals())


def test_a_rule_on_the_status_itself_is_direct_discrimination() -> None:
    found = audit(
        TABLE.assign(granted=np.where(TABLE["gender"] == "m", "yes", "no")),
        decision="gender == 'm'",
    )
    assert found.disagreement == 0.0
    cases = found.counts().set_index("method")["cases"]
    assert cases[["st", "cst_without", "cst_with", "cf"]].tolist() == [10, 10, 10, 10]
    # all of those whose neighbours have anybody to be matched with
    compared = (found.findings("cst_matched", k=3)["verdict"] != "insufficient").sum()
    assert cases["cst_matched"] == compared == 3
    assert found.findings("cf", k=3)["outcome_cf"].tolist() == ["yes"] * 10


# --- CF ----------------------------------------------------------------------------------------


def test_cf_rows_are_the_two_outcomes_and_nothing_else() -> None:
    found = audit(ks=(2, 3, 5), decision="salary >= 15")
    rows = found.findings("cf", k=2)
    refused, would_be = rows["outcome"] == "no", rows["outcome_cf"] == "no"
    assert refused.any()
    assert (refused & ~would_be).any()
    assert rows["p_control"].tolist() == refused.astype(float).tolist()
    assert rows["p_test"].tolist() == would_be.astype(float).tolist()
    assert rows["delta_p"].tolist() == (refused.astype(int) - would_be.astype(int)).tolist()
    missing = ["ci_low", "ci_high", "p_value", "q_value", "radius_control", "radius_test"]
    assert rows[missing].isna().all(axis=None)
    assert (rows[["n_control", "n_test", "rows_control", "rows_test"]] == 1).all(axis=None)
    verdicts = np.where(refused & ~would_be, "evidence", "no-evidence")
    assert rows["verdict"].tolist() == verdicts.tolist()
    for k in (3, 5):
        assert found.findings("cf", k=k).equals(rows)
    counts = found.counts()
    counts = counts[counts["method"] == "cf"]
    assert counts["k"].tolist() == [2, 3, 5]
    assert counts["cases"].tolist() == [int((refused & ~would_be).sum())] * 3
    assert counts["significant"].tolist() == [0, 0, 0]


# --- observed only -----------------------------------------------------------------------------


def test_without_a_decision_outcomes_of_counterfactuals_are_not_known() -> None:
    found = audit(decision=None)
    assert found.methods == ("st", "cst_without", "cst_matched")
    assert set(found.findings("cst_without", k=3)["outcome_cf"]) == {None}
    assert "granted" not in found.counterfactuals()
    case = found.case(0)
    assert case.outcome_cf is None
    assert "counterfactual not decided" in str(case)
    expected = audit()
    for method in found.methods:
        ours = found.findings(method, k=3).drop(columns="outcome_cf")
        assert ours.equals(expected.findings(method, k=3).drop(columns="outcome_cf"))


def test_without_counterfactuals_st_is_what_it_is() -> None:
    found = audit(worldview=None, decision=None)
    assert found.methods == ("st",)
    assert found.counterfactuals() is None
    assert found.case(0).counterfactual is None
    ours = found.findings("st", k=3)
    assert ours["outcome_cf"].isna().all()
    expected = audit().findings("st", k=3).drop(columns="outcome_cf")
    assert ours.drop(columns="outcome_cf").equals(expected)
    # nor are people matched, so that no one is known to have a case of their own
    case = found.case(0)
    assert (case.own_case, case.outcome) == ("not known", "no")
    assert "no people were matched to the complainant's own counterfactual" in case.explain()


# --- the own case ------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["negative", "positive"])
def test_her_own_case_is_hers_alone(direction: Any) -> None:
    found = audit(evidence=mm.Evidence(direction=direction))
    rows = [found.findings("cst_matched", k=k) for k in found.ks]
    for name in ("p_own", "own_case"):
        assert rows[0][name].equals(rows[-1][name])
    refused = rows[0]["outcome"] == "no"
    worse = refused & (rows[0]["p_own"] < 0.5)
    better = ~refused & (rows[0]["p_own"] > 0.5)
    expected = worse if direction == "negative" else better
    assert rows[0]["own_case"].tolist() == expected.tolist()


def test_where_nobody_is_near_her_own_case_is_not_known() -> None:
    far = mm.Worldview({"salary": mm.Stated("5000 * (gender == 'm')")})
    found = audit(worldview=far, similarity=mm.Similarity(max_distance=0.01))
    rows = found.findings("cst_matched", k=3)
    assert rows["p_own"].isna().all()
    assert rows.loc[rows["outcome"] == "no", "own_case"].isna().all()
    # who was granted has none, whoever there is to compare with
    assert rows.loc[rows["outcome"] == "yes", "own_case"].tolist().count(False) > 0
    refused, granted = (rows.loc[rows["outcome"] == each, "id"].iloc[0] for each in ("no", "yes"))
    assert found.case(refused).own_case == "not known"
    assert found.case(granted).own_case == "no"


# --- what an auditor should know ---------------------------------------------------------------


@pytest.mark.parametrize(
    "worldview", [mm.Worldview({}), mm.Worldview({"salary": mm.Linear("age")})]
)
def test_a_worldview_that_moves_nothing_is_pointed_out(worldview: mm.Worldview) -> None:
    with pytest.warns(MutandisWarning, match="'gender' affects none of the attributes"):
        found = audit(worldview=worldview)
    assert found.findings("cst_without", k=3).equals(found.findings("st", k=3))
    # under do() the status is another one all the same
    assert set(found.counterfactuals()["gender"]) == {"m"}


# --- significance ------------------------------------------------------------------------------


def test_what_was_not_adjusted_is_not_significant_after_adjustment() -> None:
    direct = TABLE.assign(granted=np.where(TABLE["gender"] == "m", "yes", "no"))
    adjusted = audit(direct, decision=None)
    assert set(adjusted.findings("st", k=3)["verdict"]) == {"significant-adjusted"}
    plain = audit(direct, decision=None, evidence=mm.Evidence(adjust="none"))
    rows = plain.findings("st", k=3)
    assert set(rows["verdict"]) == {"significant"}
    assert rows["q_value"].isna().all()
    assert rows["p_value"].equals(adjusted.findings("st", k=3)["p_value"])
    assert plain.counts()["significant_adjusted"].tolist() == [0, 0, 0]
