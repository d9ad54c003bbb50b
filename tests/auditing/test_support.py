"""Support: typical radii, centers out of range, balance; each against numbers by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mutandis as mm
from mutandis.auditing.sentences import explain_small, explain_unfit
from mutandis.auditing.support import SAMPLE, typical_radii
from mutandis.engine.tally import METHODS
from mutandis.errors import PlanError
from mutandis.geometry.metric import Metric, Points

PLAIN = Metric(mismatch=np.empty(0, dtype=np.int64), unit=1.0)


def on_a_line(values: list[int]) -> Points:
    return Points(
        coordinates=np.array([[value] for value in values], dtype=np.int64),
        codes=np.empty((len(values), 0), dtype=np.int32),
    )


@settings(max_examples=50)
@given(values=st.lists(st.integers(0, 20), min_size=2, max_size=30), k=st.integers(1, 8))
def test_typical_radii_leave_each_one_out(values: list[int], k: int) -> None:
    found = typical_radii(on_a_line(values), PLAIN, k)
    expected = []
    for me in sorted(values):
        others = sorted(abs(me - other) for other in values)[1:]  # without one at her own place
        expected.append(others[k - 1] if k <= len(others) else None)
    assert found.tolist() == [each for each in expected if each is not None]


def test_a_sample_does_not_depend_on_the_order_of_the_file() -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(0, 1000, 3 * SAMPLE + 17).tolist()
    found = typical_radii(on_a_line(values), PLAIN, 5)
    assert len(found) == SAMPLE
    shuffled = rng.permutation(values).tolist()
    assert typical_radii(on_a_line(shuffled), PLAIN, 5).tolist() == found.tolist()
    everybody = np.sort(np.abs(np.subtract.outer(values, values)), axis=1)[:, 5]
    assert abs(np.median(found) - np.median(everybody)) <= 1


# --- the table ---------------------------------------------------------------------------------


def audit(
    women: list[float], men: list[float], moved: list[float], k: int = 2, **options: Any
) -> mm.Audit:
    table = pd.DataFrame(
        {
            "woman": [1] * len(women) + [0] * len(men),
            "x": [*women, *men],
            "ok": ["no", "yes"] * ((len(women) + len(men)) // 2),
        }
    )
    chosen: dict[str, Any] = {
        "outcome": "ok",
        "negative": "no",
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {"x": "continuous"},
        "counterfactuals": {"x": [*moved, *men]},
        "ks": (k,),
    }
    return mm.audit(table, **{**chosen, **options})


WOMEN = [0.0, 1, 2, 3, 10]
MEN = [0.0, 2, 4, 6, 8]
MOVED = [0.0, 3, 4, -1, 9]


def test_radii_against_what_is_usual() -> None:
    found = audit(WOMEN, MEN, MOVED)
    table = found.support("cst_without", k=2)
    assert list(table.columns) == [
        "id",
        *("radius_control", "typical_control", "large_control", "limit_control"),
        *("radius_test", "typical_test", "large_test", "limit_test"),
        *("off_support", "outside", "insufficient"),
    ]
    # leave-one-out at k = 2, in tenths of the range: 2, 1, 1, 2 and 8 among the women
    own = [0.2, 0.1, 0.1, 0.2, 0.8]
    assert table["radius_control"].tolist() == pytest.approx(own)
    assert set(table["typical_control"]) == {0.2}
    assert table["large_control"].tolist() == pytest.approx([np.percentile(own, 95)] * 5)
    assert table["limit_control"].tolist() == pytest.approx([np.percentile(own, 99)] * 5)
    # and 4, 2, 2, 2, 4 among the men
    assert table["typical_test"].tolist() == pytest.approx([0.2] * 5)
    assert table["radius_test"].tolist() == pytest.approx([0.2, 0.1, 0.2, 0.3, 0.3])
    # by a percentile of their own, the farthest of few is beyond it
    assert table["off_support"].tolist() == ["", "", "", "", "control"]
    assert table["outside"].tolist() == ["", "", "", "x", "x"]
    # situation testing looks around the complainant
    situation = found.support("st", k=2)
    assert situation["radius_test"].tolist() == pytest.approx([0.2, 0.1, 0.2, 0.1, 0.4])
    assert situation["outside"].tolist() == ["", "", "", "", "x"]
    # it informs, and decides nothing
    assert table["insufficient"].tolist() == [""] * 5
    assert "insufficient" not in found.findings("cst_without", k=2)["verdict"].tolist()


def test_a_caliper_does_not_hide_how_far_the_nearest_are() -> None:
    table = audit(WOMEN, MEN, MOVED, similarity=mm.Similarity(max_distance=0.2)).support(
        "cst_without", k=2
    )
    assert table["radius_control"].tolist() == pytest.approx([0.2, 0.1, 0.1, 0.2, 0.8])
    assert table["insufficient"].tolist()[4] == (
        "the control group holds no people within distance 0.2, and at least one is asked for"
    )


def test_where_a_space_holds_no_more_than_k_nothing_is_usual() -> None:
    table = audit(WOMEN, MEN[:3], MOVED, k=3).support("st", k=3)
    assert table["typical_test"].isna().all()
    assert not table["off_support"].str.contains("test").any()
    assert table["typical_control"].notna().all()


def test_rounding_puts_nobody_outside() -> None:
    moved = [0.1 + 0.2, 0.0, 0.0]
    assert moved[0] > 0.3
    table = audit([0.0, 0.1, 0.2], [0.0, 0.2, 0.3], moved, k=1).support("cst_without", k=1)
    assert table["outside"].tolist() == ["", "", ""]


def test_every_kind_of_attribute_can_be_outside() -> None:
    size = 8
    decisions = pd.DataFrame(
        {
            "woman": [1] * 4 + [0] * 4,
            "grade": ["low", "mid", "high", "mid", "low", "mid", "mid", "low"],
            "job": ["cook", "cook", "guard", "clerk", "cook", "clerk", "cook", "clerk"],
            "x": [1.0, 2, 3, 4, 1, 2, 3, 4],
            "ok": ["no", "yes"] * 4,
        }
    )
    found = mm.audit(
        decisions,
        outcome="ok",
        negative="no",
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={
            "grade": {"kind": "ordinal", "levels": ["low", "mid", "high"]},
            "job": "nominal",
            "x": "continuous",
        },
        ks=(1,),
    )
    assert found.support("st", k=1)["outside"].tolist() == ["", "", "grade, job", ""]
    assert len(found.support()) == size / 2


def test_what_has_no_support_to_measure() -> None:
    found = audit(WOMEN, MEN, MOVED, decision="x > 3")
    with pytest.raises(PlanError, match="Method 'cf' compares no groups"):
        found.support("cf", k=2)


# --- balance -----------------------------------------------------------------------------------


def test_balance_is_the_distance_to_the_mean_in_standard_deviations() -> None:
    found = audit(WOMEN, MEN, MOVED)
    balance = found.case(4).balance("cst_without", 2)
    spread = np.std([*WOMEN, *MEN])
    # around 10: the women at 3 and 2; around 9: the men at 8 and 6
    assert balance.control == pytest.approx({"x": (10 - 2.5) / spread})
    assert balance.test == pytest.approx({"x": (9 - 7) / spread})
    assert found.case(4).balance("st", 2).test == pytest.approx({"x": (10 - 7) / spread})


def test_shared_places_count_in_part() -> None:
    # around the woman at 2: the women at 1 and 3 share one place
    found = audit(WOMEN, MEN, MOVED, k=1)
    assert found.case(2).balance("st", 1).control == pytest.approx({"x": 0.0})
    members = found.case(2).groups("st", k=1).control
    assert members.place.tolist() == [0.5, 0.5]


def test_centers_in_a_group_do_not_balance_themselves() -> None:
    found = audit(WOMEN, MEN, MOVED, decision="x > 3")
    assert found.case(4).balance("cst_with", 2) == found.case(4).balance("cst_without", 2)
    assert np.isnan(found.case(4).balance("cf", 2).control["x"])


def test_a_level_of_her_own_is_an_indicator() -> None:
    decisions = pd.DataFrame(
        {
            "woman": [1, 1, 1, 0, 0, 0],
            "job": ["cook", "clerk", "cook", "clerk", "clerk", "cook"],
            "ok": ["no", "yes"] * 3,
        }
    )
    found = mm.audit(
        decisions,
        outcome="ok",
        negative="no",
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"job": "nominal"},
        ks=(2,),
        similarity=mm.Similarity(max_distance=0.5),
    )
    # the other clerk among six, half of whom are clerks: sd 1/2; no woman is within the caliper
    balance = found.case(1).balance("st", 2)
    assert np.isnan(balance.control["job"])
    assert balance.test == {"job": 0.0}
    wide = mm.audit(
        decisions,
        outcome="ok",
        negative="no",
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"job": "nominal"},
        ks=(2,),
    )
    # both other women are cooks: the mean of the indicator is 0, she stands at 1
    assert wide.case(1).balance("st", 2).control == {"job": 2.0}


# --- what is said once, or was searched for already --------------------------------------------


def mixed_audit(**options: Any) -> mm.Audit:
    rng = np.random.default_rng(4)
    size = 900
    sex = rng.choice(["f", "g", "m"], size)
    table = pd.DataFrame(
        {
            "sex": sex,
            "score": np.where(rng.random(size) < 0.5, rng.integers(0, 5, size), rng.random(size)),
            "job": rng.choice(["cook", "clerk", "guard"], size),
            "granted": rng.integers(0, 2, size),
        }
    )
    return mm.audit(
        table,
        outcome="granted",
        negative=0,
        protected=mm.Protection("sex", reference="m"),
        attributes={"score": "continuous", "job": "nominal"},
        worldview=mm.Worldview({"score": mm.Linear("sex")}),
        ks=(4, 9),
        uncertainty=mm.Uncertainty(refits=0),
        **options,
    )


def test_each_one_is_told_her_own_reason() -> None:
    found = mixed_audit(similarity=mm.Similarity(max_distance=0.01, min_group=3))
    kinds = set()
    for method in ("st", "cst_matched"):
        groups = found.ground.tally.at(METHODS[method], 1)
        told = found.measure_support(method, 9).insufficient
        unfit = groups.test.unfit()
        left_out = found.evaluate(method, 9).comparison.insufficient
        for place, reason in enumerate(told.tolist()):
            expected = ""
            if left_out[place]:
                expected = explain_unfit(unfit[place]) or explain_small(
                    int(groups.control.share.places[place]),
                    int(groups.test.share.places[place]),
                    max_distance=0.01,
                    min_group=3,
                )
            assert reason == expected
            kinds.add(reason)
    assert len(kinds) > 4
