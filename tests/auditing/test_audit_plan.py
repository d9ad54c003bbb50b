"""Plans: what cannot be run is refused beforehand, in a sentence that says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import (
    CycleError,
    EquationError,
    GroupSizeError,
    MissingValuesError,
    MutandisError,
    OutcomeError,
    PlanError,
    RootError,
    UnknownColumnError,
)

SIZE = 24
TABLE = pd.DataFrame(
    {
        "who": [f"person {number}" for number in range(SIZE)],
        "gender": ["f", "m", "m"] * 8,
        "salary": np.arange(SIZE) % 7 + 10.0,
        "age": np.arange(SIZE) % 5 + 20,
        "job": ["cook", "clerk"] * 12,
        "granted": ["no", "yes", "yes", "no"] * 6,
    }
)
SETTINGS: dict[str, Any] = {
    "outcome": "granted",
    "negative": "no",
    "protected": mm.Protection("gender", value="f", reference="m"),
    "attributes": {"salary": "continuous", "job": "nominal"},
    "worldview": mm.Worldview({"salary": mm.Linear("gender", "age")}),
    "decision": "salary > 12",
    "ks": (2, 4),
}


def plan(table: Any = TABLE, /, **options: Any) -> Any:
    return mm.plan(table, **{**SETTINGS, **options})


def refused(error: type[MutandisError], table: Any = TABLE, /, **options: Any) -> str:
    with pytest.raises(error) as raised:
        plan(table, **options)
    assert type(raised.value) is error
    return str(raised.value)


# --- a plan that can be run --------------------------------------------------------------------


def test_defaults() -> None:
    settings = {name: value for name, value in SETTINGS.items() if name != "ks"}
    large = pd.concat([TABLE] * 20, ignore_index=True)
    made = mm.plan(large, **settings)
    chosen = made.settings
    assert chosen.ks == (15, 30, 50, 100)
    assert (chosen.alpha, chosen.tau) == (0.05, 0.0)
    assert chosen.similarity == mm.Similarity()
    assert (chosen.similarity.ties, chosen.similarity.scaling) == ("fair", "range")
    assert chosen.interval == "miettinen-nurminen"
    assert chosen.evidence.adjust == "benjamini-hochberg"
    assert chosen.primary == ("cst_matched", 50)
    assert chosen.seed == 0
    assert [method.name for method in made.methods] == [
        "st",
        "cst_without",
        "cst_with",
        "cf",
        "cst_matched",
    ]


def test_ks_are_sorted_and_named_once() -> None:
    assert plan(ks=[4, 2, 4]).settings.ks == (2, 4)
    assert plan(ks=np.array([3, 1])).settings.ks == (1, 3)
    assert all(type(k) is int for k in plan(ks=np.array([3, 1])).settings.ks)


def test_methods_come_in_the_order_of_the_tables() -> None:
    made = plan(methods=["cf", "st"])
    assert [method.name for method in made.methods] == ["st", "cf"]
    assert made.settings.primary == ("st", 4)
    assert plan(evidence=mm.Evidence(primary=("cst_with", 2))).settings.primary == ("cst_with", 2)


def test_columns_of_worldview_rule_and_attributes_are_read_and_no_others() -> None:
    assert set(plan().population.columns) == {"salary", "job", "granted", "gender", "age"}


# --- what is missing for a method --------------------------------------------------------------


@pytest.mark.parametrize("method", ["cst_with", "cf"])
def test_without_a_decision_methods_that_need_one_say_so(method: str) -> None:
    assert [m.name for m in plan(decision=None).methods] == ["st", "cst_without", "cst_matched"]
    assert refused(PlanError, decision=None, methods=["st", method]) == (
        f"Method {method!r} needs the outcome of each counterfactual: give decision=, or "
        "counterfactuals= with the outcome column in it."
    )


@pytest.mark.parametrize("method", ["cst_without", "cst_with", "cf"])
def test_without_counterfactuals_only_st_is_left(method: str) -> None:
    assert [m.name for m in plan(worldview=None).methods] == ["st"]
    assert refused(PlanError, worldview=None, methods=[method]) == (
        f"Method {method!r} needs counterfactuals: give worldview= or counterfactuals=."
    )


# --- settings out of range ---------------------------------------------------------------------


@pytest.mark.parametrize("tau", [-0.01, 1, 1.5, float("inf"), float("nan"), "0.1", None])
def test_tau_out_of_range(tau: Any) -> None:
    assert refused(PlanError, tau=tau).startswith(f"tau={tau!r} is outside [0, 1). Give the least")


def test_alpha_and_tau_within_range() -> None:
    made = plan(alpha=np.float64(0.49), tau=0.99).settings
    assert (made.alpha, made.tau) == (0.49, 0.99)
    assert type(made.alpha) is float


def test_k_larger_than_either_space() -> None:
    assert plan(ks=(7,)).settings.ks == (7,)
    assert refused(GroupSizeError, ks=(3, 8)) == (
        "k=8 is larger than the control space (7 protected rows beside the complainant, status f). "
        "Lower k, or widen the protected group."
    )
    exchanged = mm.Protection("gender", value="m", reference="f")
    assert plan(ks=(8,), protected=exchanged).settings.ks == (8,)
    assert refused(GroupSizeError, ks=(9,), protected=exchanged) == (
        "k=9 is larger than the test space (8 reference rows). "
        "Lower k, or use a table with more reference rows."
    )


@pytest.mark.parametrize(
    ("option", "allowed"),
    [
        ("interval", "miettinen-nurminen, wald"),
        ("adjust", "benjamini-hochberg, benjamini-yekutieli, holm, none"),
        ("ties", "fair, all"),
        ("scaling", "range, none"),
    ],
)
def test_unknown_choices(option: str, allowed: str) -> None:
    sections = (mm.Similarity, mm.Evidence)
    section = next(each for each in sections if option in each.__dataclass_fields__)
    with pytest.raises(PlanError) as caught:
        section(**{option: "guess"})  # type: ignore[arg-type]
    message = str(caught.value)
    assert message.startswith(f"{option}='guess' is unknown. Allowed: ")
    assert allowed in message


def test_missing_is_one_of_two() -> None:
    message = refused(PlanError, missing="guess")
    assert message == "missing='guess' is unknown. Allowed: 'error', 'drop'."


@pytest.mark.parametrize("primary", [("cf", 3), ("cst", 2)])
def test_a_primary_that_is_not_run(primary: Any) -> None:
    assert refused(PlanError, evidence=mm.Evidence(primary=primary)) == (
        f"primary={primary!r} is not run. Methods: st, cst_without, cst_with, cf, cst_matched; "
        "ks: [2, 4]."
    )


@pytest.mark.parametrize("threads", [0, -2, 1.5, "two"])
def test_threads(threads: Any) -> None:
    with pytest.raises(PlanError) as caught:
        plan().run(threads=threads)
    assert str(caught.value) == (
        f"threads={threads!r} is not allowed. Give an integer of at least 1."
    )


def test_threads_of_a_run() -> None:
    assert [plan().run(threads=t).ground.engine.threads for t in (None, -1, 3)] == [-1, -1, 3]


def test_seed() -> None:
    assert plan(seed=np.int64(7)).settings.seed == 7
    assert refused(PlanError, seed=1.5).startswith("seed=1.5 is not allowed.")


# --- roles -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (["gender"], "str"),
        ("gender", "str"),
        ({"attribute": "gender"}, "dict"),
        (mm.Protection, "type"),
    ],
)
def test_protected_is_a_protection(given: Any, name: str) -> None:
    assert refused(PlanError, protected=given) == (
        f"protected= takes a Protection, not {name}. "
        "Write Protection('Gender', value='female', reference='male')."
    )


def test_outcome_is_the_name_of_a_column() -> None:
    assert refused(PlanError, outcome=["granted"]) == (
        "outcome= is list. Give the name of a column, such as 'LoanApproval', or a Score or "
        "Ordered."
    )


def test_worldview_is_a_worldview() -> None:
    assert refused(PlanError, worldview={"salary": mm.Linear("gender")}) == (
        "worldview= takes a Worldview, not dict. Write Worldview({'Salary': Linear('Gender')})."
    )


def test_protected_attribute_and_outcome_take_no_part_in_the_distance() -> None:
    assert refused(PlanError, attributes={"gender": "nominal"}) == (
        "'gender' is the protected attribute and takes no part in the distance (Def. 4). "
        "Remove it from attributes."
    )
    assert refused(PlanError, attributes={"salary": "continuous", "granted": "nominal"}) == (
        "'granted' is the outcome and takes no part in the distance (Def. 4). "
        "Remove it from attributes."
    )


def test_the_outcome_has_one_role() -> None:
    protected = mm.Protection("granted", value="no", reference="yes")
    assert refused(PlanError, protected=protected) == (
        "'granted' cannot be both the outcome and the protected attribute."
    )
    worldview = mm.Worldview({"salary": mm.Linear("granted")})
    assert "The worldview mentions the outcome 'granted'." in refused(
        PlanError, worldview=worldview
    )
    assert refused(PlanError, decision="granted == 'yes'").startswith(
        "The decision reads the outcome 'granted'"
    )


def test_one_source_of_counterfactuals() -> None:
    assert refused(PlanError, counterfactuals=TABLE).startswith(
        "Both worldview= and counterfactuals= are given."
    )


# --- the worldview -----------------------------------------------------------------------------


def test_the_protected_attribute_is_a_root() -> None:
    worldview = mm.Worldview({"gender": mm.Linear("age"), "salary": mm.Linear("gender")})
    message = refused(RootError, worldview=worldview)
    assert "'gender' must be a root" in message
    assert "caused by 'age'" in message


def test_nothing_causes_itself() -> None:
    with pytest.raises(CycleError, match="salary"):
        mm.Worldview({"salary": mm.Linear("age"), "age": mm.Linear("salary")})


def test_an_equation_that_cannot_be_fitted_is_an_error_of_the_run() -> None:
    table = TABLE.assign(age=(TABLE["gender"] == "f").astype(int))
    with pytest.raises(EquationError, match="salary"):
        mm.audit(table, **SETTINGS)


# --- the table ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        {"outcome": "Granted"},
        {"protected": mm.Protection("Gender", value="f", reference="m")},
        {"attributes": {"Salary": "continuous"}},
        {"worldview": mm.Worldview({"salary": mm.Linear("gender", "Age")})},
        {"decision": "Salary > 12"},
        {"id": "Who"},
    ],
)
def test_unknown_columns(option: dict[str, Any]) -> None:
    message = refused(UnknownColumnError, **option)
    assert message.startswith("Unknown column '")
    assert "Did you mean '" in message


def test_missing_and_infinite_values_with_column_and_count() -> None:
    jobs: list[Any] = [None, *TABLE["job"][1:]]
    table = TABLE.assign(salary=[np.nan, np.inf, *TABLE["salary"][2:]], job=jobs)
    message = refused(MissingValuesError, table)
    assert "'salary' has 1 missing and 1 infinite" in message
    assert "'job' has 1 missing" in message
    assert "missing='drop' (missing: drop in an audit file)" in message
    dropped = plan(table, missing="drop", ks=(2,)).population
    assert dropped.dropped == {"salary": 2, "job": 1}
    assert dropped.ids.tolist() == list(range(2, SIZE))


def test_missing_values_in_columns_that_nobody_needs_are_nobodys_business() -> None:
    assert len(plan(TABLE.assign(who=None)).population) == SIZE


def test_no_message_quotes_a_cell() -> None:
    secret = "Jane Roe"
    table = TABLE.assign(granted=[secret, *TABLE["granted"][1:]])
    assert secret not in refused(OutcomeError, table)
