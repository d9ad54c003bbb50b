"""An audit with each distance: order, documents, robustness, and what is refused."""

from __future__ import annotations

import html
from functools import cache
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import MissingValuesError, PlanError
from mutandis.geometry.distances import distance_named
from mutandis.registry import names

if TYPE_CHECKING:
    from pathlib import Path

OTHERS = [each for each in names("distance") if each != "gower"]


@cache
def table(size: int = 150) -> pd.DataFrame:
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
        "uncertainty": mm.Uncertainty(refits=2),
        "similarity": mm.Similarity(distance=distance),
    }
    data = table() if data is None else data
    if distance == "zhang":  # numbers have no levels
        data = data.assign(pay=np.digitize(data["pay"], [28, 34, 40]))
        levels = [0, 1, 2, 3]
        settings["attributes"]["pay"] = {"kind": "ordinal", "levels": levels}
        settings["worldview"] = mm.Worldview({"pay": mm.Ordinal("sex", "skill", levels=levels)})
        settings["uncertainty"] = mm.Uncertainty(draws=2, refits=2)
    return mm.audit(data, **settings | options)


@cache
def audited(distance: str) -> mm.Audit:
    return audit(distance)


def in_order(found: mm.Audit) -> Any:
    return found.findings().sort_values("id", ignore_index=True)


@pytest.mark.parametrize("distance", OTHERS)
@pytest.mark.few("hvdm", "propensity")
def test_results_are_opened_and_described_as_they_were_saved(distance: str, tmp_path: Path) -> None:
    saved = audited(distance)
    saved.save(tmp_path / "results")
    opened = mm.open_results(tmp_path / "results")
    pd.testing.assert_frame_equal(in_order(opened), in_order(saved))
    assert opened.provenance.settings["similarity"]["distance"] == distance
    description = distance_named(distance).description
    assert description in (tmp_path / "results" / "report.html").read_text("utf-8")
    document = opened.case_file(int(in_order(saved)["id"][0]))
    assert any(description in each for each in document.assumptions)
    groups = (document.parts[0].control, document.parts[0].test)
    for group in (each for each in groups if each is not None):
        for member in group.members:
            if member.parts is not None:
                assert sum(member.parts.values()) == pytest.approx(member.distance, abs=1e-9)


def test_an_unknown_distance_is_refused_with_those_there_are() -> None:
    with pytest.raises(PlanError, match="distance='gowers' is unknown"):
        mm.Similarity(distance="gowers")


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


@pytest.mark.parametrize("distance", ["hvdm", "ivdm", "zhang"])
def test_a_score_does_not_tell_who_was_refused(distance: str) -> None:
    with pytest.raises(PlanError, match="learns from how often people are refused"):
        mm.plan(
            table(),
            outcome=mm.Score("pay", worse="lower"),
            protected=mm.Protection("sex", value="f", reference="m"),
            attributes={"job": "nominal"},
            similarity=mm.Similarity(distance=distance),
        )


# --- missing values that are compared ---


def gaps() -> pd.DataFrame:
    """Give the table with a tenth of the jobs missing."""
    lacking = np.random.default_rng(8).random(len(table())) < 0.1
    return table().assign(job=table()["job"].where(~lacking, None))


COMPARED: dict[str, Any] = {
    "skill": {"kind": "ordinal", "levels": [0, 1, 2, 3]},
    "pay": "continuous",
    "job": {"kind": "nominal", "compare_missing": True},
}


def test_people_whose_value_is_missing_are_compared() -> None:
    found = audit("heom", gaps(), attributes=COMPARED)
    assert len(found.findings()) == (table()["sex"] == "f").sum()
    assert found.plan.population.dropped == {}
    lacking = gaps()["job"].isna() & (gaps()["sex"] == "f")
    person = int(gaps().loc[lacking, "who"].iloc[0])
    group = found.case(person).groups("st", k=10).control
    # whoever it is, another job is the whole distance of a name apart
    assert (group.distance >= 1).all()
    shuffled = audit("heom", gaps().sample(frac=1, random_state=2), attributes=COMPARED)
    pd.testing.assert_frame_equal(in_order(found), in_order(shuffled))


def test_results_with_missing_values_are_opened_as_they_were_saved(tmp_path: Path) -> None:
    saved = audit("thanh", gaps(), attributes=COMPARED)
    saved.save(tmp_path / "results")
    opened = mm.open_results(tmp_path / "results")
    pd.testing.assert_frame_equal(in_order(opened), in_order(saved))
    assert opened.provenance.settings["attributes"]["job"]["compare_missing"] is True
    assert opened.plan.attributes[2].compare_missing
    lacking = gaps()["job"].isna() & (gaps()["sex"] == "f")
    person = int(gaps().loc[lacking, "who"].iloc[0])
    here, there = (each.case(person).groups("st", k=10).test for each in (saved, opened))
    assert here.distance.tolist() == there.distance.tolist()
    page = " ".join(saved.case_file(person).to_html().split())
    number = int(gaps()["job"].isna().sum())
    assert "(missing)" in page
    assert f"{number} rows without a value in 'job' took part" in html.unescape(page)
    report = html.unescape(" ".join((tmp_path / "results" / "report.html").read_text().split()))
    assert f"{number} rows without a value in 'job' took part" in report
    said = f"Missing values of 'job' are compared, as different from all others: {number}."
    assert said in str(saved.plan.check())
    assert saved.plan.check().as_dict()["compared_missing"] == {"job": number}


def test_missing_values_are_not_moved_and_not_decided_on() -> None:
    moved = mm.Worldview({"job": mm.Categorical("sex")})
    with pytest.raises(PlanError, match="has no counterfactual, and no effect"):
        audit("heom", gaps(), attributes=COMPARED, worldview=moved)
    cause = mm.Worldview({"pay": mm.Linear("sex", "job")})
    with pytest.raises(PlanError, match="has no counterfactual, and no effect"):
        audit("heom", gaps(), attributes=COMPARED, worldview=cause)
    with pytest.raises(PlanError, match="the decision reads it"):
        audit("heom", gaps(), attributes=COMPARED, decision="job == 'cook'")
    with pytest.raises(PlanError, match="in nominal attributes alone"):
        mm.Attribute(name="pay", kind="continuous", compare_missing=True)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="Give True or False"):
        mm.Attribute(name="job", kind="nominal", compare_missing="yes")  # type: ignore[arg-type]


def test_other_missing_values_are_refused_as_ever() -> None:
    with pytest.raises(MissingValuesError, match="'pay' has 1 missing"):
        audit(
            "heom", gaps().assign(pay=gaps()["pay"].where(gaps()["who"] != 3)), attributes=COMPARED
        )


def test_an_audit_file_says_that_missing_values_are_compared(tmp_path: Path) -> None:
    gaps().to_csv(tmp_path / "people.csv", index=False)
    text = """
        data: {source: people.csv, id: who}
        outcome: {column: granted, negative: false}
        protected: {attribute: sex, value: f, reference: m}
        attributes:
          pay: continuous
          job: {kind: nominal, compare_missing: true}
        similarity: {distance: heom}
        ks: [10]
    """
    (tmp_path / "audit.yaml").write_text(dedent(text), encoding="utf-8")
    from_file = mm.read_plan(tmp_path / "audit.yaml").run()
    attributes = {name: COMPARED[name] for name in ("pay", "job")}
    here = audit(
        "heom",
        gaps(),
        attributes=attributes,
        worldview=None,
        ks=(10,),
        uncertainty=mm.Uncertainty(),
    )
    pd.testing.assert_frame_equal(in_order(from_file), in_order(here))
    from_file.save(tmp_path / "results")
    assert mm.verify_results(tmp_path / "results", rerun=True).differences == ()
