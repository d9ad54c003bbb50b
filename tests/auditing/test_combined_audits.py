"""Multiple and intersectional discrimination, against audits put together by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control

import mutandis as mm
from mutandis.errors import GroupSizeError, PlanError, RootError

METHODS = ("st", "cst_without", "cst_with", "cf")
KS = (5, 12)
BY_RACE = mm.Protection("race", value="black", reference="white")
BY_SEX = mm.Protection("sex", value="f", reference="m")
BOTH = [BY_RACE, BY_SEX]
DOUBTLESS = mm.Uncertainty(refits=0, tipping=False)
RULE = "0.5 * grade + 0.25 * score >= 10"
WORLDVIEW = mm.Worldview({"grade": mm.Linear("race", "sex"), "score": mm.Linear("race", "sex")})


def make_table(size: int = 420, seed: int = 8) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    race = rng.choice(["white", "black", "brown"], p=[0.45, 0.35, 0.2], size=size)
    sex = rng.choice(["m", "f"], size=size)
    loss = 1.2 * (race == "black") + 1.0 * (race == "brown") + 0.8 * (sex == "f")
    grade = (rng.normal(11, 2, size=size) - loss).round(0)
    score = (rng.normal(20, 4, size=size) - 2 * loss).round(0)
    admitted = 0.5 * grade + 0.25 * score >= 10
    return pd.DataFrame(
        {
            "who": [f"p{number}" for number in range(size)],
            "race": race,
            "sex": sex,
            "grade": grade,
            "score": score,
            "admitted": np.where(admitted, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return make_table()


def settings(**changes: Any) -> dict[str, Any]:
    return {
        "outcome": "admitted",
        "negative": "no",
        "protected": BOTH,
        "attributes": {"grade": "continuous", "score": "continuous"},
        "worldview": WORLDVIEW,
        "decision": RULE,
        "uncertainty": DOUBTLESS,
        "ks": KS,
        **changes,
    }


def audit(table: Any, **changes: Any) -> mm.Audit:
    return mm.audit(table, **settings(**changes))


# --- multiple ----------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["negative", "positive"])
@pytest.mark.parametrize("tau", [0.0, 0.1])
@pytest.mark.few("0.0-negative", "0.1-positive")
def test_multiple_is_the_single_audits_of_those_protected_on_both(
    table: pd.DataFrame, direction: Any, tau: float
) -> None:
    found = audit(table, combine="multiple", evidence=mm.Evidence(direction=direction), tau=tau)
    alone = [
        audit(table, protected=each, evidence=mm.Evidence(direction=direction), tau=tau)
        for each in BOTH
    ]
    women = table.index[(table["race"] == "black") & (table["sex"] == "f")].tolist()
    sign = 1 if direction == "negative" else -1
    flagged, binding = 0, set()
    for method in METHODS:
        for k in KS:
            mine = found.findings(method, k=k)
            assert mine["id"].tolist() == women
            race, sex = (each.findings(method, k=k).set_index("id").loc[women] for each in alone)
            p_values = []
            for row in mine.itertuples():
                pair = race.loc[row.id], sex.loc[row.id]
                weakest = min(pair, key=lambda each: sign * each["delta_p"])
                binding.add(weakest is pair[1])
                for name in ("p_control", "p_test", "delta_p", "rows_test"):
                    assert getattr(row, name) == weakest[name]
                refused = [each["outcome_cf"] == "no" for each in pair]
                lasting = any(refused) if sign > 0 else all(refused)
                assert row.outcome_cf == ("no" if lasting else "yes")
                evidence = all(sign * each["delta_p"] > tau + 1e-12 for each in pair)
                assert (row.verdict != "no-evidence") == evidence
                flagged += evidence
                if method == "cf":
                    assert np.isnan(row.p_value)
                    continue
                assert row.p_value == max(each["p_value"] for each in pair)
                assert row.ci_low == min(each["ci_low"] for each in pair)
                assert row.ci_high == max(each["ci_high"] for each in pair)
                significant = row.verdict.startswith("significant")
                assert significant == all(each["p_value"] <= 0.05 for each in pair)
                bound = row.ci_low >= tau if sign > 0 else row.ci_high <= -tau
                assert significant == bound
                p_values.append(row.p_value)
            if p_values:
                # the adjustment is for these complainants, not for all of either attribute
                expected = false_discovery_control(p_values)
                np.testing.assert_allclose(mine["q_value"], expected, rtol=1e-12)
            for part, single in (("race", race), ("sex", sex)):
                assert mine[f"delta_p_{part}"].tolist() == single["delta_p"].tolist()
                np.testing.assert_array_equal(mine[f"p_value_{part}"], single["p_value"])
    assert binding == {True, False}
    assert flagged > 10 or direction == "positive"


def test_multiple_counts_and_parts(table: pd.DataFrame) -> None:
    found = audit(table, combine="multiple")
    counts = found.counts().set_index(["method", "k"])
    for (method, k), row in counts.iterrows():
        mine = found.findings(method, k=k)
        assert row["complainants"] == len(mine)
        # where people are matched, some have nobody to be compared with
        unfound = ["no-evidence", "insufficient"] if method == "cst_matched" else ["no-evidence"]
        cases = ~mine["verdict"].isin(unfound)
        assert row["cases"] == cases.sum()
        assert row["cases_refused"] == (cases & (mine["outcome"] == "no")).sum()
    part = found.parts["sex"]
    assert part.findings("st", k=5)["id"].tolist() == found.findings("st", k=5)["id"].tolist()
    # one D^CF per attribute, below each other; each part has its own
    both = found.counterfactuals()
    assert both["do"].tolist() == ["race"] * len(table) + ["sex"] * len(table)
    assert (
        both.loc[both["do"] == "sex"]
        .drop(columns="do")
        .reset_index(drop=True)
        .equals(part.counterfactuals())
    )
    assert set(part.counterfactuals()["sex"]) == {"m"}
    assert part.counterfactuals()["race"].tolist() == table["race"].tolist()
    assert list(found.parts) == ["race", "sex"]
    assert part.parts == {"": part}


def test_a_case_of_multiple_discrimination(table: pd.DataFrame) -> None:
    found = audit(table, combine="multiple", id="who")
    row = found.findings("cst_without", k=5).iloc[3]
    case = found.case(row["id"])
    assert case.result("cst_without", k=5)["delta_p"] == row["delta_p"]
    assert case.result("cst_without", k=5)["delta_p_sex"] == row["delta_p_sex"]
    assert str(row["id"]) in str(case)
    # the groups, like the figures, are those of the attribute with the weakest evidence
    weakest = min(("race", "sex"), key=lambda name: row[f"delta_p_{name}"])
    mine, part = (
        each.groups("cst_without", k=5) for each in (case, found.parts[weakest].case(row["id"]))
    )
    assert mine.control.ids.tolist() == part.control.ids.tolist()
    assert mine.test.ids.tolist() == part.test.ids.tolist()
    groups = found.parts["race"].case(row["id"]).groups("cst_without", k=5)
    named = table.set_index("who")
    assert set(named.loc[groups.control.ids, "race"]) == {"black"}
    # her control group by race holds men too: the other attribute is not asked about
    everyone = [
        found.parts["race"].case(i).groups("st", k=12).control.ids
        for i in named.index[(named["race"] == "black") & (named["sex"] == "f")][:5]
    ]
    assert set(named.loc[np.concatenate(everyone), "sex"]) == {"m", "f"}


def test_doubt_is_told_for_each_attribute(table: pd.DataFrame) -> None:
    options: dict[str, Any] = {
        "uncertainty": mm.Uncertainty(refits=3, tipping=False),
        "seed": 4,
        "methods": ["cst_without"],
    }
    found = audit(table, combine="multiple", **options)
    mine = found.findings("cst_without", k=5)
    # a draw of one intervention is no draw of the other: there is no share of both together
    assert "verdict_share" not in mine.columns
    for each in BOTH:
        alone = audit(table, protected=each, **options).findings("cst_without", k=5)
        cases = alone.set_index("id")["delta_p"].loc[mine["id"]] > 0
        shares = mine[f"verdict_share_{each.attribute}"]
        assert shares.notna().tolist() == cases.tolist()
        assert 0 < (shares < 1).sum() < cases.sum()


def test_insufficient_on_one_attribute_is_insufficient_on_all(table: pd.DataFrame) -> None:
    found = audit(
        table, combine="multiple", similarity=mm.Similarity(max_distance=0.04, min_group=3)
    )
    mine = found.findings("cst_without", k=12)
    insufficient = (mine["verdict_race"] == "insufficient") | (
        mine["verdict_sex"] == "insufficient"
    )
    assert 0 < insufficient.sum() < len(mine)
    assert (mine["verdict"] == "insufficient").tolist() == insufficient.tolist()
    assert mine.loc[insufficient, "p_value"].isna().all()
    assert mine.loc[~insufficient, "p_value"].notna().all()


# --- intersectional ----------------------------------------------------------------------------


def joint_counterfactuals(table: pd.DataFrame) -> pd.DataFrame:
    """Do both interventions by hand: least squares on the two statuses, residuals kept."""
    design = np.column_stack(
        [
            np.ones(len(table)),
            *(table["race"] == level for level in ("black", "brown")),
            table["sex"] == "f",
        ]
    ).astype(float)
    made = table.drop(columns="admitted").copy()
    for name in ("grade", "score"):
        coefficients = np.linalg.lstsq(design, table[name].to_numpy(), rcond=None)[0]
        # decimals that no coefficient's last bits can reach
        made[name] = (table[name] - design[:, 1:] @ coefficients[1:]).round(9)
    return made


def rounded_worldview() -> mm.Worldview:
    return mm.Worldview(
        {
            "grade": mm.Linear("race", "sex", decimals=9),
            "score": mm.Linear("race", "sex", decimals=9),
        }
    )


COLUMNS = ["id", "outcome", "outcome_cf", "p_control", "p_test", "delta_p", "ci_low", "ci_high"]
COLUMNS += ["p_value", "q_value", "verdict", "rows_control", "rows_test"]


def single_on_a_joint_column(
    table: pd.DataFrame, status: Any, value: object, reference: object
) -> mm.Audit:
    by_hand = table.assign(status=status)
    # only complainants need one; that others stay as they are keeps the reader from wondering
    ready = joint_counterfactuals(by_hand)
    stays = status != value
    ready.loc[stays] = by_hand.drop(columns="admitted").loc[stays]
    return audit(
        by_hand,
        protected=mm.Protection("status", value=value, reference=reference),
        worldview=None,
        counterfactuals=ready,
    )


@pytest.mark.parametrize("test_space", ["reference", "complement"])
def test_intersectional_is_a_single_audit_of_a_joint_column(
    table: pd.DataFrame, test_space: Any
) -> None:
    both = (table["race"] == "black") & (table["sex"] == "f")
    neither = (table["race"] == "white") & (table["sex"] == "m")
    if test_space == "complement":
        neither = ~both
    status = np.where(both, "both", np.where(neither, "none", "some"))
    expected = single_on_a_joint_column(table, status, "both", "none")
    found = audit(
        table,
        combine="intersectional",
        similarity=mm.Similarity(test_space=test_space),
        worldview=rounded_worldview(),
    )
    assert found.counts().equals(expected.counts())
    for method in METHODS:
        for k in KS:
            mine, other = found.findings(method, k=k), expected.findings(method, k=k)
            pd.testing.assert_frame_equal(mine[COLUMNS], other[COLUMNS], rtol=1e-9)
    assert found.counts()["cases"].min() > 0
    case = found.findings("cst_without", k=5)["id"].iloc[2]
    for role in ("control", "test"):
        ids = getattr(found.case(case).groups("cst_without", k=5), role).ids
        assert set(status[ids]) == {"both" if role == "control" else "none"}


def test_each_combination_of_values_is_a_group_of_its_own(table: pd.DataFrame) -> None:
    protected = [mm.Protection("race", reference="white"), BY_SEX]
    found = audit(
        table,
        protected=protected,
        combine="intersectional",
        worldview=rounded_worldview(),
    )
    mine = found.findings("cst_with", k=12).set_index("id")
    status = np.where(table["sex"] == "f", table["race"], "other")
    status = np.where((table["race"] == "white") & (table["sex"] == "m"), "none", status)
    seen = 0
    for race in ("black", "brown"):
        other = single_on_a_joint_column(table, status, race, "none")
        expected = other.findings("cst_with", k=12).set_index("id")
        for name in ("p_control", "p_test", "delta_p", "p_value"):
            assert mine.loc[expected.index, name].tolist() == expected[name].tolist()
        seen += len(expected)
    assert seen == len(mine)
    pooled = audit(
        table,
        protected=[mm.Protection("race", reference="white", pool=True), BY_SEX],
        combine="intersectional",
        worldview=rounded_worldview(),
    )
    assert pooled.findings("st", k=12)["p_control"].tolist() != mine["p_control"].tolist()
    assert pooled.findings("st", k=12)["id"].tolist() == mine.index.tolist()


def test_the_decision_sees_every_status_at_its_reference(table: pd.DataFrame) -> None:
    seen: list[pd.DataFrame] = []

    def decide(frame: pd.DataFrame) -> Any:
        seen.append(frame.copy())
        return 0.5 * frame["grade"] + 0.25 * frame["score"] >= 10

    audit(table, combine="intersectional", decision=decide)
    ready = joint_counterfactuals(table)
    audit(table, combine="intersectional", decision=decide, worldview=None, counterfactuals=ready)
    asked = [frame for frame in seen if not frame["race"].equals(table["race"])]
    assert len(asked) == 2
    for frame in asked:
        assert set(frame["race"]) == {"white"}
        assert set(frame["sex"]) == {"m"}
    assert asked[1]["grade"].tolist() == ready["grade"].tolist()
    np.testing.assert_allclose(asked[0]["grade"], ready["grade"], atol=1e-8)
    seen.clear()
    audit(table, combine="multiple", decision=decide)
    asked = [frame for frame in seen if not frame[["race", "sex"]].equals(table[["race", "sex"]])]
    assert [(set(frame["race"]), set(frame["sex"])) for frame in asked] == [
        ({"white"}, {"m", "f"}),
        ({"white", "black", "brown"}, {"m"}),
    ]


@pytest.mark.parametrize("combine", ["multiple", "intersectional"])
def test_provenance_names_all_protections(table: pd.DataFrame, combine: str) -> None:
    found = audit(table, combine=combine)
    written = json.loads(found.provenance.to_json())
    protected = written["settings"]["protected"][combine]
    assert [each["attribute"] for each in protected] == ["race", "sex"]
    both = ((table["race"] == "black") & (table["sex"] == "f")).sum()
    assert written["data"]["complainants"] == both
    if combine == "multiple":
        parts = written["computed"]["parts"]
        assert list(parts) == ["race", "sex"]
        assert parts["race"]["moved"] == ["grade", "score"]


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "2 protections, and no word on how they are combined"),
        ({"protected": []}, "an empty list"),
        ({"combine": "both"}, "combine='both' is unknown. Allowed: multiple, intersectional"),
        ({"protected": BY_SEX, "combine": "multiple"}, "needs at least two protections"),
        ({"protected": [BY_SEX, BY_SEX], "combine": "multiple"}, "about the same attribute"),
        ({"protected": [BY_SEX, "race"], "combine": "multiple"}, "holds str among"),
        (
            {
                "combine": "intersectional",
                "attributes": {"sex": "nominal", "grade": "continuous"},
            },
            "'sex' is the protected attribute and takes no part in the distance",
        ),
        (
            {"combine": "multiple", "worldview": None, "counterfactuals": make_table()},
            "each has counterfactuals of its own",
        ),
    ],
)
def test_plans_that_are_refused(table: pd.DataFrame, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        audit(table, **changes)


@pytest.mark.parametrize("combine", ["multiple", "intersectional"])
def test_every_protected_attribute_must_be_a_root(table: pd.DataFrame, combine: str) -> None:
    caused = mm.Worldview({"sex": mm.Linear("race"), "grade": mm.Linear("sex")})
    with pytest.raises(RootError, match="'sex' must be a root"):
        audit(table, combine=combine, worldview=caused)


def test_group_sizes_are_those_of_the_intersection(table: pd.DataFrame) -> None:
    both = ((table["race"] == "black") & (table["sex"] == "f")).sum()
    with pytest.raises(GroupSizeError, match=f"{both - 1} protected rows.*black × f"):
        audit(table, combine="intersectional", ks=(int(both),))
    # by each attribute alone there are more people to compare with
    assert len(audit(table, combine="multiple", ks=(int(both),)).counts()) == 5
    black = (table["race"] == "black").sum()
    with pytest.raises(GroupSizeError, match=f"{black - 1} protected rows"):
        audit(table, combine="multiple", ks=(int(black),))


# --- the lattice -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three() -> pd.DataFrame:
    table = make_table(seed=11)
    rng = np.random.default_rng(2)
    return table.assign(age=rng.choice(["old", "young"], size=len(table)))


BY_AGE = mm.Protection("age", value="old", reference="young")


def test_every_node_is_the_audit_it_stands_for(three: pd.DataFrame) -> None:
    options: dict[str, Any] = {"ks": (5,), "attributes": {"sex": "nominal", "grade": "continuous"}}
    plan = mm.plan(three, **settings(protected=[*BOTH, BY_AGE], combine="multiple", **options))
    with pytest.warns(mm.MutandisWarning, match="'age' affects none"):
        audits = mm.audit_intersections(plan)
    assert tuple(audits) == (
        *("race", "sex", "age"),
        *("race + sex", "race × sex", "race + age", "race × age", "sex + age", "sex × age"),
        *("race + sex + age", "race × sex × age"),
    )
    expected = audit(
        three, protected=BOTH, combine="intersectional", ks=(5,), attributes={"grade": "continuous"}
    )
    assert audits["race × sex"].counts().equals(expected.counts())
    alone = audit(three, protected=BY_RACE, **options)
    assert audits["race"].counts().equals(alone.counts())
    pair = audit(three, protected=BOTH, combine="multiple", **options)
    assert audits["race + sex"].counts().equals(pair.counts())
    with pytest.raises(PlanError, match="take two or three protections, not 1"):
        mm.audit_intersections(audits["race"].plan)
