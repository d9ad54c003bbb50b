"""How the complainant moved, against numbers computed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm
from mutandis.report.case_file import case_document

if TYPE_CHECKING:
    from mutandis.report.case_model import Movement

# Salary = 50 - 15·Gender + U; Balance = 0.2·Salary - 1·Gender + U, exactly
TABLE = {
    "Gender": [0, 0, 1, 1],
    "Salary": [40.0, 60.0, 30.0, 40.0],
    "Balance": [8.0, 12.0, 5.0, 7.0],
    "granted": ["no", "yes", "no", "no"],
}


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
