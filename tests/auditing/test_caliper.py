"""Calipers against a slow oracle: plain sorting, fractions, one complainant at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mutandis as mm
from mutandis.errors import PlanError
from tests.oracle import Gower, exact, marked, nearest, total
from tests.tables import LOAN

if TYPE_CHECKING:
    from pathlib import Path

KS = (1, 2, 4)
JOBS = ("cook", "clerk", "guard")
# 0.25 and 0.375 are distances that occur; 0.1 is no sum of powers of two
CALIPERS = (0.0, 0.1, 0.125, 0.25, 0.375, 0.5, 1.0)


@st.composite
def people(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw a table in which nearly everybody ties with somebody, and what would have been."""
    size = draw(st.integers(12, 24))
    x = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    x[:2] = [0, 4]  # the range is known: 4
    job = draw(st.lists(st.sampled_from(JOBS[:2]), min_size=size, max_size=size))
    job[:2] = JOBS[:2]
    woman = [index % 2 for index in range(size)]
    refused = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    refused[:2] = [True, False]
    shift = draw(st.integers(-2, 2))
    table = pd.DataFrame(
        {
            "woman": woman,
            "x": np.array(x, dtype=float),
            "job": job,
            "ok": ["no" if each else "yes" for each in refused],
        }
    )
    other = table[["x", "job"]].copy()
    other["x"] += shift * table["woman"]
    other["ok"] = ["no" if value < 1 else "yes" for value in other["x"]]
    return table, other


def audit(table: pd.DataFrame, other: pd.DataFrame, **options: Any) -> mm.Audit:
    chosen: dict[str, Any] = {
        "outcome": "ok",
        "negative": "no",
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {"x": "continuous", "job": "nominal"},
        "counterfactuals": other,
        "ks": KS,
    }
    return mm.audit(table, **{**chosen, **options})


@pytest.mark.slow
@settings(max_examples=60)
@given(
    data=people(),
    method=st.sampled_from(["st", "cst_without", "cst_with"]),
    k=st.sampled_from(KS),
    caliper=st.sampled_from(CALIPERS),
    min_group=st.integers(1, 4),
    ties=st.sampled_from(["fair", "all"]),
    tau=st.sampled_from([0.0, 0.25]),
)
def test_every_number_follows_from_the_definition(
    data: tuple[pd.DataFrame, pd.DataFrame],
    method: str,
    k: int,
    caliper: float,
    min_group: int,
    ties: Any,
    tau: float,
) -> None:
    table, other = data
    similarity = mm.Similarity(max_distance=caliper, min_group=min_group, ties=ties)
    found = audit(table, other, similarity=similarity, tau=tau)
    facts, would_be = (list(zip(each["x"], each["job"], strict=True)) for each in (table, other))
    refused, refused_cf = ((each["ok"] == "no").tolist() for each in (table, other))
    gower = Gower(facts, ("continuous", "nominal"))
    women = np.flatnonzero(table["woman"] == 1).tolist()
    men = np.flatnonzero(table["woman"] == 0).tolist()
    rows = found.findings(method, k=k).to_dict("records")
    assert [row["id"] for row in rows] == women
    cases = 0
    for who, row in zip(women, rows, strict=True):
        spaces = (
            gower.among(facts[who], [woman for woman in women if woman != who]),
            gower.among((facts if method == "st" else would_be)[who], men),
        )
        groups = [nearest(each, k, ties=ties, caliper=exact(caliper)) for each in spaces]
        sizes, negatives = [total(each) for each in groups], [marked(g, refused) for g in groups]
        enough = min(sizes) >= min_group
        listed = [len(each) for each in groups]
        if method == "cst_with":
            sizes, listed = [each + 1 for each in sizes], [each + 1 for each in listed]
            negatives = [negatives[0] + refused[who], negatives[1] + refused_cf[who]]
        shares = [up / size if size else None for up, size in zip(negatives, sizes, strict=True)]
        for place, name in enumerate(("control", "test")):
            assert row[f"n_{name}"] == sizes[place]
            assert row[f"rows_{name}"] == listed[place]
            share = shares[place]
            np.testing.assert_equal(row[f"p_{name}"], np.nan if share is None else float(share))
            # an empty group, or one that holds the center alone, has no radius
            assert share is not None or np.isnan(row[f"radius_{name}"])
            assert not row[f"radius_{name}"] > caliper
        assert (row["verdict"] == "insufficient") == (not enough)
        if not enough:
            assert all(np.isnan(row[each]) for each in ("ci_low", "ci_high", "p_value", "q_value"))
            continue
        delta_p = shares[0] - shares[1]  # type: ignore[operator]
        assert row["delta_p"] == float(delta_p)
        assert (row["verdict"] != "no-evidence") == (delta_p > exact(tau))
        cases += delta_p > exact(tau)
    counts = found.counts().set_index(["method", "k"])
    assert counts.loc[(method, k), "cases"] == cases


@settings(max_examples=20)
@given(
    data=people(),
    caliper=st.sampled_from(CALIPERS),
    ties=st.sampled_from(["fair", "all"]),
)
def test_members_are_those_who_are_counted(
    data: tuple[pd.DataFrame, pd.DataFrame], caliper: float, ties: Any
) -> None:
    found = audit(*data, similarity=mm.Similarity(max_distance=caliper, ties=ties))
    result = found.findings("cst_with", k=4)
    for _, row in result.iterrows():
        groups = found.case(row["id"]).groups("cst_with", k=4)
        for name, members in (("control", groups.control), ("test", groups.test)):
            assert members.place.sum() == pytest.approx(row[f"n_{name}"])
            assert len(members) == row[f"rows_{name}"]
            assert (members.distance <= caliper).all()
            refused = float((members.place * members.is_negative).sum() / members.place.sum())
            assert refused == pytest.approx(row[f"p_{name}"])


def simple() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make five women in a row and one far out, with men who stand the same way."""
    x = [0.0, 1, 2, 3, 4, 100] * 2
    table = pd.DataFrame(
        {
            "woman": [1] * 6 + [0] * 6,
            "x": x,
            "job": ["cook", "clerk"] * 6,
            "ok": ["no"] * 6 + ["yes"] * 6,
        }
    )
    return table, table[["x", "job", "ok"]].copy()


def alone(**options: Any) -> mm.Audit:
    return audit(*simple(), attributes={"x": "continuous"}, ks=(2,), **options)


def test_the_caliper_itself_is_within() -> None:
    # 0.01 has no exact float: as a decimal it is the distance between neighbours in the row
    found = alone(similarity=mm.Similarity(max_distance=0.01)).findings("st", k=2)
    assert found["n_control"].tolist() == [1, 2, 2, 2, 1, 0]
    assert found["n_test"].tolist() == [2, 2, 2, 2, 2, 1]
    assert found["verdict"].tolist()[5] == "insufficient"
    below = alone(similarity=mm.Similarity(max_distance=0.0099)).findings("st", k=2)
    assert below["n_control"].tolist() == [0] * 6
    assert below["verdict"].tolist() == ["insufficient"] * 6


def test_insufficient_complainants_do_not_count() -> None:
    found = alone(similarity=mm.Similarity(max_distance=0.01, min_group=2))
    result = found.findings("st", k=2)
    assert result["verdict"].tolist()[0] == result["verdict"].tolist()[4] == "insufficient"
    # Δp describes two groups even if they are too small for a verdict, and nothing if one is empty
    known = result["p_control"] - result["p_test"]
    assert known.notna().tolist() == [True] * 5 + [False]
    pd.testing.assert_series_equal(result["delta_p"], known, check_names=False)
    counts = found.counts().set_index("method").loc["st"]
    assert counts["complainants"] == 6
    assert counts["cases"] == 3
    assert counts["cases_refused"] == 3
    # three tests, all with the same p-value: the q-value equals it
    kept = result[result["verdict"] != "insufficient"]
    assert kept["q_value"].tolist() == pytest.approx(kept["p_value"].tolist())
    holm = alone(
        similarity=mm.Similarity(max_distance=0.01, min_group=2),
        evidence=mm.Evidence(adjust="holm"),
    ).findings("st", k=2)
    assert holm["q_value"].dropna().tolist() == pytest.approx(list(3 * kept["p_value"]))


def test_centers_are_no_people() -> None:
    found = alone(similarity=mm.Similarity(max_distance=0.0099, min_group=1))
    result = found.findings("cst_with", k=2)
    # at distance 0 stands a man for each counterfactual, but no other woman
    assert result["n_control"].tolist() == [1] * 6
    assert result["p_control"].tolist() == [1.0] * 6
    assert result["verdict"].tolist() == ["insufficient"] * 6
    # counterfactual fairness compares no groups
    assert "insufficient" not in found.findings("cf", k=2)["verdict"].tolist()


def test_min_group_without_a_caliper() -> None:
    found = alone(similarity=mm.Similarity(min_group=3))
    assert found.findings("st", k=2)["verdict"].tolist() == ["insufficient"] * 6
    reasons = found.support("st", k=2)["insufficient"]
    assert reasons[0] == (
        "the control group holds 2 people and the test group 2 people, and at least 3 are asked for"
    )
    assert (
        alone(similarity=mm.Similarity(min_group=2)).support("st", k=2)["insufficient"].tolist()
        == [""] * 6
    )


def test_a_center_out_of_reach_is_beyond_every_caliper_it_should_be() -> None:
    table, other = simple()
    other.loc[0, "x"] = 100.0 * 50  # 50 ranges away: further than coordinates go
    near = audit(
        table,
        other,
        attributes={"x": "continuous"},
        ks=(2,),
        similarity=mm.Similarity(max_distance=48.9),
    )
    assert near.findings("cst_without", k=2)["n_test"].tolist()[0] == 0
    # 49 ranges from the farthest man, 49.96 from the next
    far = audit(
        table,
        other,
        attributes={"x": "continuous"},
        ks=(2,),
        similarity=mm.Similarity(max_distance=49.5),
    )
    assert far.findings("cst_without", k=2)["n_test"].tolist()[0] == 1
    assert far.findings("cst_without", k=2)["radius_test"][0] == pytest.approx(49.0)


def test_too_few_people_on_one_attribute_leave_the_whole_claim_open() -> None:
    rng = np.random.default_rng(8)
    size = 120
    table = pd.DataFrame(
        {
            "woman": rng.integers(0, 2, size),
            "old": rng.integers(0, 2, size),
            "x": rng.integers(0, 10, size).astype(float),
            "ok": rng.choice(["no", "yes"], size),
        }
    )
    table.loc[0, ["woman", "old", "x"]] = 1, 1, 50.0
    found = mm.audit(
        table,
        outcome="ok",
        negative="no",
        protected=[
            mm.Protection("woman", value=1, reference=0),
            mm.Protection("old", value=1, reference=0),
        ],
        combine="multiple",
        attributes={"x": "continuous"},
        ks=(5,),
        similarity=mm.Similarity(max_distance=0.2),
    )
    verdicts = found.findings("st", k=5).set_index("id")["verdict"]
    assert verdicts[0] == "insufficient"
    assert set(verdicts.drop(index=0)) <= {"no-evidence", "evidence", "significant"}
    text = found.case(0).explain("st", 5)
    assert text.startswith("ST with k = 5 gives no answer about complainant 0")
    other = found.case(verdicts.index[1]).explain("st", 5)
    assert "on each of the grounds 'woman' and 'old'" in other
    assert "the figures being those of the attribute with the weakest evidence." in other
    support = found.support("st", k=5)
    parts = [found.parts[name].support("st", k=5) for name in ("woman", "old")]
    assert support["attribute"].tolist() == ["woman"] * len(parts[0]) + ["old"] * len(parts[1])
    together = pd.concat(parts, ignore_index=True)
    assert support.drop(columns="attribute").equals(together)
    weakest = min(("woman", "old"), key=lambda n: found.findings("st", k=5)[f"delta_p_{n}"].iloc[1])
    who = verdicts.index[1]
    expected = found.parts[weakest].case(who).balance("st", 5)
    assert found.case(who).balance("st", 5) == expected


def test_the_published_loans_as_the_docs_tell_it(data_folder: Path) -> None:
    table = pd.read_csv(data_folder / "loan_application.csv", sep="|")
    found = mm.audit(
        table,
        **LOAN,
        ks=(15,),
        similarity=mm.Similarity(max_distance=0.02, min_group=5),
    )
    cases = found.counts().set_index("method")["cases"]
    assert (cases["st"], cases["cst_without"]) == (54, 430)
    for method, expected in (("st", 47), ("cst_without", 21)):
        verdicts = found.findings(method, k=15)["verdict"]
        assert (verdicts == "insufficient").sum() == expected
    off = found.support("cst_without", k=15)
    assert off["off_support"].str.contains("test").sum() == 26
    assert set(off["outside"]) == {""}
    around = found.support("st", k=15)
    assert around["off_support"].str.contains("test").sum() == 76
    assert (around["outside"] == "AccountBalance").sum() == 5


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("max_distance", [-0.1, float("nan"), float("inf"), "near", True], "the largest dist"),
        ("min_group", [0, -3, 1.5, "few", True], "the fewest people"),
    ],
)
def test_settings_out_of_range_are_refused(name: str, values: list[Any], said: str) -> None:
    for value in values:
        with pytest.raises(PlanError, match=rf"{name}=.* is not allowed. Give {said}"):
            alone(similarity=mm.Similarity(**{name: value}))
