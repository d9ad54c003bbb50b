"""Every number of a case file comes from the audit, or from a computation by hand."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm
from mutandis.report.case_file import case_document
from tests.oracle import Gower, nearest
from tests.report.pages import Page, number

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from mutandis.report.case_model import GroupList, Movement

FIGURES = (
    "p_control",
    "p_test",
    "delta_p",
    "ci_low",
    "ci_high",
    "p_value",
    "q_value",
    "n_control",
    "n_test",
    "rows_control",
    "rows_test",
    "radius_control",
    "radius_test",
)
# Salary = 50 - 15·Gender + U; Balance = 0.2·Salary - 1·Gender + U, exactly
TABLE = {
    "Gender": [0, 0, 1, 1],
    "Salary": [40.0, 60.0, 30.0, 40.0],
    "Balance": [8.0, 12.0, 5.0, 7.0],
    "granted": ["no", "yes", "no", "no"],
}


# --- the people in the groups ---------------------------------------------------------------------


def listed(group: GroupList | None) -> dict[Any, Fraction]:
    assert group is not None
    return {member.person: Fraction(member.place_text) for member in group.members}


def test_both_groups_are_the_nearest(
    audit_of: Callable[[str], mm.Audit], made_up_applicants: Callable[..., pd.DataFrame]
) -> None:
    audit, table = audit_of("observed"), made_up_applicants()
    columns = ["salary", "savings", "job"]
    rows, world = (
        list(each[columns].itertuples(index=False, name=None))
        for each in (table, audit.counterfactuals())
    )
    distance = Gower(rows, ["continuous", "continuous", "nominal"])
    shared = 0
    for who in audit.findings()["id"][:8]:
        (part,) = case_document(audit, who).parts
        row = table.index[table.name == who][0]
        women = [each for each in table.index[table.gender == "f"] if each != row]
        men = table.index[table.gender == "m"].tolist()
        for group, center, space in ((part.control, rows, women), (part.test, world, men)):
            apart = distance.among(center[row], space)
            places = nearest(apart, 10)
            assert listed(group) == {table.name[each]: place for each, place in places.items()}
            assert group is not None
            assert [member.distance for member in group.members] == pytest.approx(
                sorted(float(apart[each]) for each in places)
            )
            shared += group.shared != 0
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


@pytest.mark.few("coupled", "multiple", "matched", "four", "with-centers")
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


def test_a_part_is_the_scaled_difference(
    audit_of: Callable[[str], mm.Audit], made_up_applicants: Callable[..., pd.DataFrame]
) -> None:
    audit, table = audit_of("st"), made_up_applicants().set_index("name")
    who = audit.findings()["id"].iloc[0]
    (part,) = case_document(audit, who).parts
    assert part.test is not None
    here, span = table.loc[who], table.salary.max() - table.salary.min()
    for member in part.test.members:
        assert member.parts is not None
        there = table.loc[member.person]
        assert member.parts["salary"] == pytest.approx(abs(there.salary - here.salary) / span / 3)
        assert member.parts["job"] == pytest.approx(float(there.job != here.job) / 3)
        assert member.values["salary"] == there.salary
        assert member.outcome == there.granted


@pytest.mark.parametrize("method", ["cst_without", "cst_matched"])
def test_a_center_far_out_of_reach_keeps_its_parts(
    audit_applicants: Callable[..., mm.Audit], method: str
) -> None:
    # the counterfactual salary is hundreds of ranges away: more than the metric reaches
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


# --- how attributes moved -------------------------------------------------------------------------


def moved(worldview: mm.Worldview, who: int = 2, **options: Any) -> dict[str, Movement]:
    audit = mm.audit(
        TABLE,
        outcome="granted",
        negative="no",
        protected=mm.Protection("Gender", value=1, reference=0),
        attributes={"Salary": "continuous", "Balance": "continuous"},
        worldview=worldview,
        ks=(1,),
        **options,
    )
    (part,) = case_document(audit, who).parts
    return {each.attribute: each for each in part.movements}


def test_each_cause_has_its_exact_part() -> None:
    found = moved(
        mm.Worldview({"Salary": mm.Linear("Gender"), "Balance": mm.Linear("Salary", "Gender")})
    )
    salary, balance = found["Salary"], found["Balance"]
    assert (salary.factual, salary.counterfactual) == pytest.approx((30.0, 45.0))
    assert [(cause.parents, cause.before, cause.after) for cause in salary.causes] == [
        (("Gender",), 1.0, 0.0)
    ]
    assert salary.causes[0].amount == pytest.approx(15.0)
    # 0.2 · (45 - 30) through the salary, 1 directly
    assert [cause.parents for cause in balance.causes] == [("Salary",), ("Gender",)]
    assert [cause.amount for cause in balance.causes] == pytest.approx([3.0, 1.0])
    assert balance.change == pytest.approx(4.0)
    assert balance.remainder == 0.0
    assert balance.paths == ("Gender → Salary → Balance", "Gender → Balance")


def test_bounds_and_rounding_are_a_part_of_their_own() -> None:
    found = moved(
        mm.Worldview(
            {
                "Salary": mm.Linear("Gender", decimals=-1),
                "Balance": mm.Linear("Salary", "Gender", bounds=(0, 8.5)),
            }
        )
    )
    # 45 is rounded half to even: 40
    assert found["Salary"].counterfactual == 40.0
    assert found["Salary"].causes[0].amount == pytest.approx(15.0)
    assert found["Salary"].remainder == pytest.approx(-5.0)
    # 5 + 0.2·10 + 1 = 8
    assert found["Balance"].counterfactual == pytest.approx(8.0)
    assert found["Balance"].remainder == 0.0
    bounded = moved(
        mm.Worldview(
            {
                "Salary": mm.Linear("Gender"),
                "Balance": mm.Linear("Salary", "Gender", bounds=(0, 8.5)),
            }
        )
    )["Balance"]
    assert bounded.counterfactual == 8.5
    assert bounded.remainder == pytest.approx(-0.5)


def test_what_the_worldview_holds_passes_nothing_on() -> None:
    found = moved(
        mm.Worldview(
            {"Salary": mm.Linear("Gender"), "Balance": mm.Linear("Salary", "Gender")},
            resolving=["Salary"],
        )
    )
    assert found["Salary"].how == "held"
    assert found["Salary"].change == 0.0
    assert [cause.parents for cause in found["Balance"].causes] == [("Gender",)]
    assert found["Balance"].change == pytest.approx(1.0)
    assert found["Balance"].paths == ("Gender → Balance",)


def test_other_equations_give_their_causes_and_the_total() -> None:
    found = moved(
        mm.Worldview(
            {"Salary": mm.Linear("Gender"), "Balance": mm.Stated("Salary / 10 * (2 - Gender)")}
        )
    )
    balance = found["Balance"]
    assert balance.how == "total"
    assert [(cause.parents, cause.amount) for cause in balance.causes] == [
        (("Salary",), None),
        (("Gender",), None),
    ]
    # 45/10·2 - 30/10·1 = 6
    assert balance.change == pytest.approx(6.0)


def test_a_cause_that_changed_alone_has_done_all_of_it() -> None:
    found = moved(mm.Worldview({"Salary": mm.Stated("100 - 20 * Gender ** 2")}))
    assert found["Salary"].how == "total"
    assert found["Salary"].causes[0].amount == pytest.approx(20.0)
    assert found["Balance"].how == "unaffected"


def test_a_factor_takes_the_fact_to_the_counterfactual() -> None:
    salary = moved(mm.Worldview({"Salary": mm.Linear("Gender", link="log")}))["Salary"]
    assert salary.how == "factor"
    factor = salary.causes[0].amount
    assert factor is not None
    # the geometric means of both groups: √(40·60) and √(30·40)
    assert factor == pytest.approx((2400 / 1200) ** 0.5)
    assert salary.counterfactual == pytest.approx(30.0 * factor)


def test_attributes_that_only_pass_the_change_on_are_shown() -> None:
    audit = mm.audit(
        TABLE,
        outcome="granted",
        negative="no",
        protected=mm.Protection("Gender", value=1, reference=0),
        attributes={"Balance": "continuous"},
        worldview=mm.Worldview({"Salary": mm.Linear("Gender"), "Balance": mm.Linear("Salary")}),
        ks=(1,),
    )
    (part,) = case_document(audit, 2).parts
    assert [(each.attribute, each.compared) for each in part.movements] == [
        ("Salary", False),
        ("Balance", True),
    ]


def test_without_counterfactuals_nothing_moved() -> None:
    audit = mm.audit(
        TABLE,
        outcome="granted",
        negative="no",
        protected=mm.Protection("Gender", value=1, reference=0),
        attributes={"Salary": "continuous"},
        ks=(1,),
    )
    document = case_document(audit, 2)
    assert document.parts[0].movements == ()
    assert document.complainant.attributes == {"Salary": 30.0}


# --- every number of the data and of the page -----------------------------------------------------


def check_case(audit: mm.Audit, who: Any) -> None:
    document = audit.case_file(who)
    case = audit.case(who)
    data = json.loads(document.to_json())
    tables = Page(document.to_html()).tables
    method, k = audit.plan.settings.primary

    # JSON: every row of the findings, every digit
    assert len(data["figures"]) == len(audit.methods) * len(audit.ks)
    for row in data["figures"]:
        found = audit.findings(row["method"], k=row["k"]).set_index("id").loc[who]
        for name in FIGURES:
            expected = None if found[name] != found[name] else found[name]
            assert row[name] == expected
        assert row["verdict"] == found["verdict"]
        assert row["primary"] is ((row["method"], row["k"]) == (method, k))

    # the page: the same table, rounded
    titles = {"ST": "st", "CST (w/o)": "cst_without", "CST (w/)": "cst_with", "CF": "cf"}
    titles["CST (matched)"] = "cst_matched"
    shown = tables["figures"][1:]
    assert len(shown) == 4 * len(audit.ks) + 1
    for title, size, control, test, delta, interval, _, _, verdict in shown:
        found = case.result(titles[title], k=audit.ks[0] if size == "any" else int(size))
        assert control == f"{found['p_control']:.1%}"
        assert test == f"{found['p_test']:.1%}"
        assert number(delta) == round(found["delta_p"], 3)
        if titles[title] != "cf":
            low, high = map(number, interval.strip("[]").split(", "))
            assert (low, high) == (round(found["ci_low"], 3), round(found["ci_high"], 3))
        assert verdict == found["verdict"]

    # both groups: who, how far, which outcome
    for role in ("control", "test"):
        members = getattr(case.groups(method, k=k), role)
        listed = data["parts"][0][role]["members"]
        assert [each["person"] for each in listed] == members.ids.tolist()
        assert [each["distance"] for each in listed] == members.distance.tolist()
        assert [each["place"] for each in listed] == members.place.tolist()
        rows = tables[f"part1-{role}"][2:]
        assert [row[0] for row in rows] == [str(each) for each in members.ids[:250]]
        assert [row[1] for row in rows] == [str(each["outcome"]) for each in listed[:250]]
        assert [row[2] for row in rows] == [f"{each:.4f}" for each in members.distance[:250]]

    # how she moved
    movements = {row[0]: row for row in tables["part1-movements"][1:]}
    assert case.counterfactual is not None
    for name, factual in case.factual.items():
        _, here, there, change, _ = movements[name]
        if isinstance(factual, float):
            counterfactual = case.counterfactual[name]
            assert number(here) == pytest.approx(factual, rel=1e-4, abs=1e-4)
            assert number(there) == pytest.approx(counterfactual, rel=1e-4, abs=1e-4)
            assert number(change) == pytest.approx(counterfactual - factual, abs=abs(factual) / 1e4)
        else:
            assert (here, there) == (str(factual), str(case.counterfactual[name]))

    # both answers, apart
    own = data["own_case"]
    assert f"{data['verdict']['sentence']} {own['sentence']}" == case.explain()
    row = case.result("cst_matched", k=k)
    assert own["answer"] == case.own_case == ("yes" if row["own_case"] else "no")
    assert own["share"] == row["p_own"]
    refused = case.outcome == audit.plan.outcome.kind.negative
    assert row["own_case"] == (refused and row["p_own"] < 0.5)
    assert f">own case: {own['answer']}<" in document.to_html()
    assert f">{'refused' if refused else 'granted'}<" in document.to_html()


@pytest.mark.parametrize("who", [5, 44, 1200])
@pytest.mark.few("44")
def test_loan(loan_audit: mm.Audit, who: int) -> None:
    complainants = set(loan_audit.findings()["id"])
    check_case(loan_audit, who if who in complainants else min(complainants))
