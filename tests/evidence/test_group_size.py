"""Test groups of equal mass, against plain fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mutandis as mm
from mutandis.errors import GroupSizeError, PlanError
from mutandis.evidence.groups import counted_as
from mutandis.evidence.spaces import Stratum, rows_in_test
from mutandis.search.share import Share

KS = (1, 3, 7)


def stratum(control: int, test: int) -> Stratum:
    rows = np.arange(control)
    return Stratum(label="women", complainants=rows, control=rows, test=control + np.arange(test))


@pytest.mark.parametrize(
    ("control", "test", "ks", "expected"),
    [
        (10, 10, (1, 9), (1, 9)),
        (10, 25, (1, 2, 9), (3, 5, 23)),  # 2.5 and 22.5 are rounded up
        (100, 10, (1, 30, 99), (1, 3, 10)),  # 0.1 would be nobody
    ],
)
def test_rows_in_test(
    control: int, test: int, ks: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert rows_in_test(stratum(control, test), ks, group_size="equal-mass") == expected
    assert rows_in_test(stratum(control, test), ks, group_size="k") == ks


@given(control=st.integers(2, 300), test=st.integers(1, 300), data=st.data())
def test_a_test_group_of_equal_mass_never_exceeds_its_space(
    control: int, test: int, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, control - 1))
    (rows,) = rows_in_test(stratum(control, test), (k,), group_size="equal-mass")
    assert 1 <= rows <= test
    assert rows == 1 or abs(Fraction(rows) - Fraction(k * test, control)) <= Fraction(1, 2)


@given(places=st.integers(1, 500), split=st.integers(1, 40), k=st.integers(1, 500), data=st.data())
def test_counting_as_k_changes_no_share(
    places: int, split: int, k: int, data: st.DataObject
) -> None:
    negatives = data.draw(st.integers(0, places * split))
    share = Share(negatives=np.array([negatives]), size=np.array([places]), split=np.array([split]))
    counted = counted_as(share, k, share.size)
    assert int(counted.size[0]) == k
    assert Fraction(int(counted.negatives[0]), k * int(counted.split[0])) == Fraction(
        negatives, places * split
    )


def table(women: int, men: int, seed: int) -> pd.DataFrame:
    """Make people on a coarse grid, where ties abound."""
    rng = np.random.default_rng(seed)
    size = women + men
    return pd.DataFrame(
        {
            "woman": rng.permutation(np.repeat([1, 0], [women, men])),
            "x": rng.integers(0, 6, size),
            "y": rng.integers(0, 4, size),
            "granted": rng.integers(0, 2, size),
        }
    )


def audit(people: pd.DataFrame, **options: Any) -> mm.Audit:
    return mm.audit(
        people,
        outcome="granted",
        negative=0,
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"x": "continuous", "y": "continuous"},
        **{"ks": KS, "similarity": mm.Similarity(group_size="equal-mass"), **options},
    )


def brute(people: pd.DataFrame, center: int, space: pd.DataFrame, rows: int) -> Fraction:
    """Give the share of refusals among the nearest rows, the last places shared by fractions."""
    here = people.loc[center]
    spans = int(np.ptp(people["x"])), int(np.ptp(people["y"]))
    apart = [
        (Fraction(abs(int(x - here["x"])), spans[0]) + Fraction(abs(int(y - here["y"])), spans[1]))
        for x, y in zip(space["x"], space["y"], strict=True)
    ]
    refused = [bool(granted == 0) for granted in space["granted"]]
    radius = sorted(apart)[rows - 1]
    inside = [r for d, r in zip(apart, refused, strict=True) if d < radius]
    rim = [r for d, r in zip(apart, refused, strict=True) if d == radius]
    left = rows - len(inside)
    return (sum(inside) + Fraction(left * sum(rim), len(rim))) / rows


@pytest.mark.parametrize(("women", "men"), [(12, 40), (40, 12), (20, 20)])
def test_groups_of_equal_mass_against_plain_fractions(women: int, men: int) -> None:
    people = table(women, men, seed=women)
    found = audit(people)
    for k in KS:
        rows = max(1, int(np.floor(k * men / women + 0.5)))
        for record in found.findings("st", k=k).to_dict("records"):
            others = people[(people["woman"] == 1) & (people.index != record["id"])]
            assert record["p_control"] == float(brute(people, record["id"], others, k))
            reference = people[people["woman"] == 0]
            assert record["p_test"] == float(brute(people, record["id"], reference, rows))
            assert (record["n_control"], record["n_test"]) == (k, k)
            assert record["rows_test"] >= rows


def test_with_its_center_a_group_counts_as_k_plus_1() -> None:
    people = table(12, 40, seed=5)
    ready = people[["x", "y"]].assign(granted=1)
    found = audit(people, counterfactuals=ready, ks=(3,))
    without, with_centers = (found.findings(name, k=3) for name in ("cst_without", "cst_with"))
    # the counterfactual is granted: one more place, and no more refusals
    assert with_centers["p_test"].tolist() == pytest.approx((without["p_test"] * 3 / 4).tolist())
    assert (with_centers["n_test"] == 4).all()


def test_members_hold_as_many_places_as_the_group_has_rows() -> None:
    people = table(12, 40, seed=6)
    found = audit(people, ks=(3,))
    first = int(people.index[people["woman"] == 1][0])
    group = found.case(first).groups("st", k=3).test
    assert float(group.place.sum()) == pytest.approx(10)  # 3 · 40 / 12
    shown = float((group.place * group.is_negative).sum() / 10)
    assert shown == pytest.approx(found.findings("st", k=3)["p_test"][0])


def test_equal_spaces_make_no_difference() -> None:
    people = table(20, 20, seed=8)
    pd.testing.assert_frame_equal(
        audit(people).counts(), audit(people, similarity=mm.Similarity(group_size="k")).counts()
    )


def test_of_equal_mass_a_small_test_space_suffices() -> None:
    people = table(40, 5, seed=9)
    assert audit(people, ks=(7,)).findings("st", k=7)["rows_test"].min() >= 1
    with pytest.raises(GroupSizeError, match="k=7 is larger than the test space"):
        audit(people, ks=(7,), similarity=mm.Similarity(group_size="k"))


def test_group_sizes_that_do_not_exist_or_were_not_published_are_refused() -> None:
    people = table(20, 20, seed=1)
    with pytest.raises(PlanError, match="group_size='half' is unknown"):
        mm.Similarity(group_size="half")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="has its own ties, scale and groups"):
        audit(people, preset="eaamo23")
