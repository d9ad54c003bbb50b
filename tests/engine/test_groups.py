"""Groups and their members: whoever holds a place is listed, and the shares follow from that."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutandis.engine.members import Members

KS = (1, 3, 4)
# how many a protected row is matched with
MATCHES = 5


def crowd(seed: int) -> pd.DataFrame:
    """Make a table in which nearly everybody ties with somebody."""
    rng = np.random.default_rng(seed)
    size = 40
    return pd.DataFrame(
        {
            "who": [f"p{number:02}" for number in rng.permutation(size)],
            "woman": rng.integers(0, 2, size),
            "x": rng.integers(0, 4, size).astype(float),
            "job": rng.choice(["cook", "clerk"], size),
            "ok": rng.choice(["no", "yes"], size),
        }
    )


def audit(table: pd.DataFrame, **options: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        "outcome": "ok",
        "negative": "no",
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {"x": "continuous", "job": "nominal"},
        "worldview": mm.Worldview({"x": mm.Linear("woman", decimals=0)}),
        "decision": "x > 1",
        "uncertainty": mm.Uncertainty(refits=0, tipping=False),
        "ks": KS,
        "id": "who",
    }
    return mm.audit(table, **{**settings, **options})


def held(members: Members) -> Fraction:
    """Add up the places, as the fractions that the floats stand for."""
    return sum((Fraction(float(p)).limit_denominator(100) for p in members.place), Fraction(0))


def share(members: Members) -> float:
    places = [Fraction(float(place)).limit_denominator(100) for place in members.place]
    refused = sum(
        (place for place, no in zip(places, members.is_negative, strict=True) if no), Fraction(0)
    )
    return float(refused / sum(places, Fraction(0)))


def mean_match(five: mm.Audit, control: Members) -> float:
    """Average how far matches are from whom each of the control group would have been."""
    apart = []
    for other in control.ids:
        matches = five.case(other).groups("cst_without", k=MATCHES).test
        apart.append(np.average(matches.distance, weights=matches.place))
    return float(np.average(apart, weights=control.place))


def check_matches(members: Members, result: Mapping[str, Any], mean: float) -> None:
    """Matches hold parts of a place that are rounded to a common denominator of millions."""
    refused = members.place[members.is_negative].sum()
    assert members.place.sum() == pytest.approx(result["n_test"], abs=1e-5)
    assert refused / members.place.sum() == pytest.approx(result["p_test"], abs=1e-6)
    assert result["radius_test"] == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("seed", [1, 2])
def test_members_account_for_every_number(seed: int) -> None:
    table = crowd(seed)
    found = audit(table)
    outcome = dict(zip(table["who"], table["ok"], strict=True))
    status = dict(zip(table["who"], table["woman"], strict=True))
    five = audit(table, methods=["cst_without"], ks=(MATCHES,))
    shared = 0
    for who in found.findings("st", k=1)["id"]:
        case = found.case(who)
        for method in found.methods:
            for k in KS:
                groups, result = case.groups(method, k=k), case.result(method, k=k)
                for name, members in (("control", groups.control), ("test", groups.test)):
                    matches = (method, name) == ("cst_matched", "test")
                    if matches:
                        check_matches(members, result, mean_match(five, groups.control))
                    else:
                        assert held(members) == result[f"n_{name}"]
                        assert share(members) == result[f"p_{name}"]
                    assert len(members) == result[f"rows_{name}"]
                    assert len(set(members.ids)) == len(members)
                    if method != "cf":
                        assert matches or members.distance.max() == result[f"radius_{name}"]
                        assert (np.diff(members.distance[~members.is_center]) >= 0).all()
                    shared += bool((members.place < 1).any())
                    people = members.ids[~members.is_center]
                    assert {status[other] for other in people} <= {int(name == "control")}
                    refused = members.is_negative[~members.is_center]
                    assert [outcome[other] == "no" for other in people] == refused.tolist()
    assert shared


@pytest.mark.parametrize("ties", ["fair", "all"])
def test_places_add_up_to_k_or_to_all_who_tie(ties: Any) -> None:
    found = audit(crowd(3), similarity=mm.Similarity(ties=ties))
    larger = 0
    for who in found.findings("st", k=1)["id"]:
        case = found.case(who)
        for k in KS:
            members = case.groups("st", k=k).control
            result = case.result("st", k=k)
            if ties == "fair":
                assert held(members) == k == result["n_control"]
            else:
                assert (members.place == 1).all()
                assert len(members) == result["n_control"] == result["rows_control"] >= k
                larger += len(members) > k
    assert (larger > 0) == (ties == "all")


def test_others_who_equal_her_are_her_neighbours() -> None:
    table = pd.DataFrame(
        {
            "who": ["a", "b", "c", "d", "e"],
            "woman": [1, 1, 1, 0, 0],
            "x": [2.0, 2.0, 2.0, 2.0, 5.0],
            "ok": ["no", "yes", "yes", "no", "yes"],
        }
    )
    alone = {"x": "continuous"}
    found = audit(table, worldview=None, decision=None, attributes=alone, ks=(1, 2))
    first = found.case("a").groups("st", k=2).control
    assert first.ids.tolist() == ["b", "c"]
    assert first.distance.tolist() == [0, 0]
    # one place for two who are alike: half of it each
    assert found.case("a").groups("st", k=1).control.place.tolist() == [0.5, 0.5]
    assert found.findings("st", k=1)["p_control"].tolist() == [0, 0.5, 0.5]
    assert found.findings("st", k=1)["p_test"].tolist() == [1, 1, 1]


def test_search_centers_are_listed_where_they_count() -> None:
    table = crowd(5).drop_duplicates(["woman", "x", "job"]).reset_index(drop=True)
    found = audit(table, ks=(1, 2), worldview=None, counterfactuals=table)
    decided = found.findings("cf", k=1).set_index("id")
    for who in decided.index:
        case = found.case(who)
        for method, centers in (("st", 0), ("cst_without", 0), ("cst_with", 1), ("cf", 1)):
            groups = case.groups(method, k=2)
            for members in (groups.control, groups.test):
                assert members.is_center.sum() == centers
                assert members.ids[members.is_center].tolist() == [who] * centers
                assert members.distance[members.is_center].tolist() == [0] * centers
                assert members.place[members.is_center].tolist() == [1] * centers
            if centers:
                mine = groups.control.is_negative[groups.control.is_center]
                other = groups.test.is_negative[groups.test.is_center]
                assert mine.tolist() == [decided.loc[who, "outcome"] == "no"]
                assert other.tolist() == [decided.loc[who, "outcome_cf"] == "no"]


@pytest.mark.parametrize("continuous", [True, False])
def test_chunks_of_complainants_change_nothing(
    monkeypatch: pytest.MonkeyPatch, *, continuous: bool
) -> None:
    rng = np.random.default_rng(3)
    salary = rng.normal(size=120) if continuous else rng.integers(0, 9, 120).astype(np.float64)
    table = {
        "origin": rng.choice(["here", "near", "far"], 120),
        "salary": salary,
        "granted": rng.choice(["no", "yes"], 120),
    }
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": "no",
        "protected": mm.Protection("origin", reference="here"),
        "attributes": {"salary": "continuous"},
        "counterfactuals": {"salary": salary + 100.0 * (np.array(table["origin"]) != "here")},
        "methods": ["st", "cst_without"],
        "ks": (3, 9),
        "similarity": mm.Similarity(max_distance=60.0),
    }
    whole = mm.audit(table, **settings)
    monkeypatch.setattr("mutandis.engine.nearest._CHUNK", 7)
    told: list[int] = []
    chunked = mm.plan(table, **settings).run(progress=lambda done, _: told.append(done))
    for method in ("st", "cst_without"):
        for k in (3, 9):
            assert chunked.findings(method, k=k).equals(whole.findings(method, k=k))
    assert (len(told) > 10) is continuous
    assert told[-1] == len(whole.findings())
