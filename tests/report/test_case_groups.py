"""The people in the groups, against a search written out by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pandas as pd
import pytest

import mutandis as mm
from mutandis.report.case_file import case_document

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutandis.report.case_model import GroupList


def nearest(table: pd.DataFrame, center: pd.Series, *, k: int) -> dict[str, tuple[float, float]]:
    """Rank people by the mean of scaled differences; give distance and place of those within."""
    apart = {}
    for person in table.to_dict("records"):
        parts = [
            abs(person[name] - center[name]) / (TABLE[name].max() - TABLE[name].min())
            for name in ("salary", "savings")
        ]
        parts.append(float(person["job"] != center["job"]))
        apart[str(person["name"])] = float(round(sum(parts) / 3, 9))
    radius = sorted(apart.values())[k - 1]
    inside = [name for name, distance in apart.items() if distance < radius]
    rim = [name for name, distance in apart.items() if distance == radius]
    share = (k - len(inside)) / len(rim)
    return {name: (apart[name], 1.0 if name in inside else share) for name in (*inside, *rim)}


TABLE = pd.DataFrame()


@pytest.fixture(autouse=True)
def _table(made_up_applicants: Callable[..., pd.DataFrame]) -> None:
    global TABLE  # noqa: PLW0603 - the table that every search is scaled on
    TABLE = made_up_applicants()


def listed(group: GroupList) -> dict[str, tuple[float, float]]:
    found = {}
    for member in group.members:
        assert isinstance(member.distance, float)
        assert isinstance(member.place, float)
        found[member.person] = (round(member.distance, 9), member.place)
    return found


def test_both_groups_are_the_nearest(audit_of: Callable[[str], mm.Audit]) -> None:
    audit = audit_of("observed")
    world = audit.counterfactuals()
    shared = 0
    for who in audit.findings()["id"][:8]:
        (part,) = case_document(audit, who).parts
        assert part.control is not None
        assert part.test is not None
        row = TABLE.index[TABLE.name == who][0]
        women = TABLE[(TABLE.gender == "f") & (TABLE.name != who)]
        assert listed(part.control) == nearest(women, TABLE.loc[row], k=10)
        assert listed(part.test) == nearest(TABLE[TABLE.gender == "m"], world.loc[row], k=10)
        shared += part.control.shared != 0
    assert shared > 0  # otherwise nothing was shown about shared places


@pytest.mark.few("coupled", "multiple", "matched-draws", "alone")
def test_groups_add_up_to_the_findings(any_audit: mm.Audit) -> None:
    who = any_audit.findings()["id"].iloc[0]
    document = case_document(any_audit, who)
    negative = document.complainant.negative
    compared = 0
    for part in document.parts:
        for group in (part.control, part.test):
            if group is None or group.share is None:
                continue
            compared += 1
            places = [Fraction(member.place_text) for member in group.members]
            refused = [
                place
                for place, member in zip(places, group.members, strict=True)
                if member.outcome == negative
            ]
            assert float(Fraction(sum(refused), 1) / sum(places)) == pytest.approx(group.share)
            people = [member for member in group.members if member.role == "person"]
            refused_people = sum(member.outcome == negative for member in people)
            counted = (group.people, group.refused, group.granted)
            assert counted == (len(people), refused_people, len(people) - refused_people)
    kinds = {"cf"} if document.verdict.method == "cf" else set()
    assert compared or kinds or document.verdict.verdict == "insufficient"


def test_parts_of_a_distance_add_up(any_audit: mm.Audit) -> None:
    document = case_document(any_audit, any_audit.findings()["id"].iloc[0])
    for part in document.parts:
        for group in (part.control, part.test):
            for member in group.members if group else ():
                if member.parts is not None:
                    assert set(member.parts) == set(member.values)
                    assert sum(member.parts.values()) == pytest.approx(member.distance, abs=1e-12)
                else:
                    assert member.role != "person"


def test_a_part_is_the_scaled_difference(audit_of: Callable[[str], mm.Audit]) -> None:
    audit = audit_of("st")
    who = audit.findings()["id"].iloc[0]
    (part,) = case_document(audit, who).parts
    assert part.test is not None
    her = TABLE.set_index("name").loc[who]
    span = TABLE.salary.max() - TABLE.salary.min()
    for member in part.test.members:
        assert member.parts is not None
        him = TABLE.set_index("name").loc[member.person]
        assert member.parts["salary"] == pytest.approx(abs(him.salary - her.salary) / span / 3)
        assert member.parts["job"] == pytest.approx(float(him.job != her.job) / 3)
        assert member.values["salary"] == him.salary
        assert member.outcome == him.granted


@pytest.mark.parametrize("method", ["cst_without", "cst_matched"])
def test_a_center_far_out_of_reach_keeps_its_parts(
    audit_applicants: Callable[..., mm.Audit], method: str
) -> None:
    # her counterfactual salary lies hundreds of ranges away: more than the metric reaches
    audit = audit_applicants(
        worldview=mm.Worldview({"salary": mm.Stated("10000 * (gender == 'm')")}),
        methods=[method],
        ks=(5,),
    )
    (part,) = case_document(audit, audit.findings()["id"].iloc[0]).parts
    assert part.test is not None
    member = part.test.members[0]
    assert member.parts is not None
    assert member.parts["salary"] > 50
    assert sum(member.parts.values()) == pytest.approx(member.distance)


def test_centers_are_marked(audit_of: Callable[[str], mm.Audit]) -> None:
    audit = audit_of("with-centers")
    who = audit.findings()["id"].iloc[0]
    document = case_document(audit, who)
    (part,) = document.parts
    assert part.control is not None
    assert part.test is not None
    here, there = part.control.members[0], part.test.members[0]
    assert (here.role, here.person, here.outcome) == (
        "complainant",
        who,
        document.complainant.outcome,
    )
    assert (there.role, there.outcome) == ("counterfactual", document.complainant.outcome_cf)
    moved = {each.attribute: each.counterfactual for each in part.movements}
    assert there.values == {name: moved[name] for name in there.values}
    assert part.control.people == len(part.control.members) - 1


@pytest.mark.parametrize(
    ("name", "primary"),
    [("paper_loan_audit", ("cst_without", 30)), ("loan_audit", ("cst_matched", 50))],
)
def test_support_is_that_of_the_audit(
    name: str, primary: tuple[str, int], request: pytest.FixtureRequest
) -> None:
    audit = request.getfixturevalue(name)
    (part,) = case_document(audit, 5).parts
    row = audit.support().set_index("id").loc[5]
    balance = audit.case(5).balance(*primary)
    for check in part.support:
        assert check.radius == row[f"radius_{check.role}"]
        assert (check.typical, check.limit) == (
            row[f"typical_{check.role}"],
            row[f"limit_{check.role}"],
        )
        assert check.balance == getattr(balance, check.role)
    assert all(isinstance(each, float) for each in part.support[0].balance.values())
