"""An audit with each distance: order, documents, robustness, and what is refused."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import PlanError
from mutandis.search.distances import DESCRIPTIONS, DistanceName

if TYPE_CHECKING:
    from pathlib import Path

OTHERS = [each for each in get_args(DistanceName) if each != "gower"]


@cache
def table(size: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    sex = rng.choice(["f", "m"], size, p=[0.4, 0.6])
    skill = rng.integers(0, 4, size)
    pay = np.round(30 + 5 * skill - 6 * (sex == "f") + rng.normal(0, 4, size), 1)
    job = np.where(rng.random(size) < 0.5, "cook", "clerk")
    granted = pay + 2 * (job == "cook") + rng.normal(0, 3, size) > 35
    return pd.DataFrame(
        {
            "who": np.arange(size),
            "sex": sex,
            "skill": skill,
            "pay": pay,
            "job": job,
            "granted": granted,
        }
    )


def audit(distance: str, data: pd.DataFrame | None = None, **options: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": False,
        "protected": mm.Protection("sex", value="f", reference="m"),
        "attributes": {
            "skill": {"kind": "ordinal", "levels": [0, 1, 2, 3]},
            "pay": "continuous",
            "job": "nominal",
        },
        "worldview": mm.Worldview({"pay": mm.Linear("sex", "skill")}),
        "id": "who",
        "ks": (10, 20),
        "seed": 1,
        "uncertainty": mm.Uncertainty(refits=3, placebo=2),
        "similarity": mm.Similarity(distance=distance),  # type: ignore[arg-type]
    }
    data = table() if data is None else data
    if distance == "zhang":  # numbers have no levels
        data = data.assign(pay=np.digitize(data["pay"], [28, 34, 40]))
        levels = [0, 1, 2, 3]
        settings["attributes"]["pay"] = {"kind": "ordinal", "levels": levels}
        settings["worldview"] = mm.Worldview({"pay": mm.Ordinal("sex", "skill", levels=levels)})
    return mm.audit(data, **settings | options)


def in_order(found: mm.Audit) -> Any:
    return found.findings().sort_values("id", ignore_index=True)


@pytest.mark.parametrize("distance", OTHERS)
def test_sorting_the_table_in_another_way_changes_nothing(distance: str) -> None:
    """Matched groups, refits, the noise floor and tipping points to the last bit."""
    first = audit(distance)
    second = audit(distance, table().sample(frac=1, random_state=5))
    pd.testing.assert_frame_equal(in_order(first), in_order(second))
    assert first.noise_floor.largest == second.noise_floor.largest
    one, other = (each.tipping().sort_values("id", ignore_index=True) for each in (first, second))
    pd.testing.assert_frame_equal(one, other)
    assert first.shared_neighbours() == second.shared_neighbours()


@pytest.mark.parametrize("distance", OTHERS)
def test_results_are_opened_and_described_as_they_were_saved(
    distance: DistanceName, tmp_path: Path
) -> None:
    saved = audit(distance)
    saved.save(tmp_path / "results")
    opened = mm.open_results(tmp_path / "results")
    pd.testing.assert_frame_equal(in_order(opened), in_order(saved))
    assert opened.provenance.settings["similarity"]["distance"] == distance
    assert DESCRIPTIONS[distance] in (tmp_path / "results" / "report.html").read_text("utf-8")
    document = opened.case_file(int(in_order(saved)["id"][0]))
    assert any(DESCRIPTIONS[distance] in each for each in document.assumptions)
    groups = (document.parts[0].control, document.parts[0].test)
    for group in (each for each in groups if each is not None):
        for member in group.members:
            if member.parts is not None:
                assert sum(member.parts.values()) == pytest.approx(member.distance, abs=1e-9)


@pytest.mark.parametrize("distance", OTHERS)
def test_groups_of_a_case_are_those_that_were_counted(distance: str) -> None:
    found = audit(distance)
    row = in_order(found).iloc[0]
    groups = found.case(int(row["id"])).groups("st", k=10)
    for group, radius in ((groups.control, "radius_control"), (groups.test, "radius_test")):
        shown = found.case(int(row["id"])).result("st", k=10)[radius]
        assert group.distance.max() == pytest.approx(shown)


def test_a_caliper_and_equal_mass_work_with_squares() -> None:
    similarity = mm.Similarity(distance="heom", max_distance=0.2, min_group=3)
    found = audit("heom", similarity=similarity).findings("st", k=10)
    assert (found["radius_test"].dropna() <= 0.2).all()
    equal = audit("heom", similarity=mm.Similarity(distance="heom", group_size="equal-mass"))
    assert equal.findings("st", k=10)["p_test"].between(0, 1).all()


def test_two_distances_do_not_find_the_same_neighbours() -> None:
    radii = {each: audit(each).findings("st", k=10)["radius_test"].tolist() for each in OTHERS}
    assert len({tuple(each) for each in radii.values()}) == len(OTHERS)


def test_the_preset_has_a_distance_of_its_own() -> None:
    with pytest.raises(PlanError, match="distance of its own"):
        audit("heom", preset="eaamo23", attributes={"pay": "continuous"}, id=None)


def test_an_unknown_distance_is_refused_with_those_there_are() -> None:
    with pytest.raises(PlanError, match="distance='gowers' is unknown"):
        mm.Similarity(distance="gowers")  # type: ignore[arg-type]


def test_a_check_fits_the_distance() -> None:
    attributes: Any = {"pay": "continuous", "wage": "continuous"}
    twice = table().assign(wage=table()["pay"] * 2)
    options: dict[str, Any] = {
        "outcome": "granted",
        "negative": False,
        "protected": mm.Protection("sex", value="f", reference="m"),
        "ks": (10,),
    }
    plan = mm.plan(
        twice, attributes=attributes, similarity=mm.Similarity(distance="mahalanobis"), **options
    )
    with pytest.raises(PlanError, match="'wage' follows from the attributes before it"):
        plan.check()
    plan = mm.plan(
        twice, attributes=attributes, similarity=mm.Similarity(distance="hvdm"), **options
    )
    assert "Distance 'hvdm': the root of the sum of squares" in str(plan.check())


def test_weights_without_a_meaning_are_refused_before_anything_runs() -> None:
    with pytest.raises(PlanError, match="takes no weights"):
        audit("propensity", attributes={"pay": {"kind": "continuous", "weight": 2}})


def test_effects_of_numbers_cannot_be_counted() -> None:
    with pytest.raises(PlanError, match="'pay' is continuous"):
        audit("zhang", attributes={"pay": "continuous", "job": "nominal"})


def test_provenance_says_how_many_effects_are_known() -> None:
    rules = audit("zhang").provenance.computed["distance_rules"]
    data = table().assign(pay=np.digitize(table()["pay"], [28, 34, 40]))
    cells = data.groupby(["skill", "pay", "job"])["sex"].nunique()
    assert f"known in {(cells == 2).sum()} of the {len(cells)} combinations" in rules["job"]


@pytest.mark.parametrize("distance", ["heom", "hvdm", "mahalanobis"])
def test_open_counterfactuals_are_drawn_with_each_distance(distance: str) -> None:
    worldview = mm.Worldview({"skill": mm.Ordinal("sex"), "pay": mm.Linear("sex", "skill")})
    found = audit(distance, worldview=worldview, uncertainty=mm.Uncertainty(placebo=0, draws=4))
    assert found.findings("cst_without", k=10)["p_test"].between(0, 1).all()


@pytest.mark.parametrize("distance", ["hvdm", "ivdm", "zhang"])
def test_a_score_does_not_tell_who_was_refused(distance: str) -> None:
    with pytest.raises(PlanError, match="learns from how often people are refused"):
        mm.plan(
            table(),
            outcome=mm.Score("pay", worse="lower"),
            protected=mm.Protection("sex", value="f", reference="m"),
            attributes={"job": "nominal"},
            similarity=mm.Similarity(distance=distance),  # type: ignore[arg-type]
        )
