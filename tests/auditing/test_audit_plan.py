"""Plans: what cannot be run is refused beforehand, in a sentence that says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.errors import (
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


# --- settings out of range ---------------------------------------------------------------------


@pytest.mark.parametrize("tau", [-0.01, 1, 1.5, float("inf"), float("nan"), "0.1", None])
def test_tau_out_of_range(tau: Any) -> None:
    assert refused(PlanError, tau=tau).startswith(f"tau={tau!r} is outside [0, 1). Give the least")


def test_k_larger_than_either_space() -> None:
    assert plan(ks=(7,)).settings.ks == (7,)
    assert refused(GroupSizeError, ks=(3, 8)) == (
        "k=8 is larger than the control space (7 protected rows besides the complainant, "
        "status f). Lower k, or widen the protected group."
    )
    exchanged = mm.Protection("gender", value="m", reference="f")
    assert plan(ks=(8,), protected=exchanged).settings.ks == (8,)
    assert refused(GroupSizeError, ks=(9,), protected=exchanged) == (
        "k=9 is larger than the test space (8 reference rows). "
        "Lower k, or use a table with more reference rows."
    )


@pytest.mark.parametrize("threads", [0, -2, 1.5, "two"])
def test_threads(threads: Any) -> None:
    with pytest.raises(PlanError) as caught:
        plan().run(threads=threads)
    assert str(caught.value) == (
        f"threads={threads!r} is not allowed. Give an integer of at least 1."
    )


# --- what is refused --------------------------------------------------------------------------

_ROLE = "takes no part in the distance (Def. 4). Remove it from attributes."


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"protected": ["gender"]}, "protected= takes a Protection, not str. Write Protection("),
        ({"protected": mm.Protection}, "protected= takes a Protection, not type."),
        ({"outcome": ["granted"]}, "outcome= is list. Give the name of a column"),
        ({"worldview": {"salary": 1}}, "worldview= takes a Worldview, not dict."),
        ({"attributes": {"gender": "nominal"}}, f"'gender' is the protected attribute and {_ROLE}"),
        ({"attributes": {"granted": "nominal"}}, f"'granted' is the outcome and {_ROLE}"),
        (
            {"protected": mm.Protection("granted", value="no", reference="yes")},
            "'granted' cannot be both the outcome and the protected attribute.",
        ),
        (
            {"worldview": mm.Worldview({"salary": mm.Linear("granted")})},
            "The worldview mentions the outcome 'granted'.",
        ),
        ({"decision": "granted == 'yes'"}, "The decision reads the outcome 'granted'"),
        ({"counterfactuals": TABLE}, "Both worldview= and counterfactuals= are given."),
        ({"decision": None, "methods": ["st", "cf"]}, "Method 'cf' needs the outcome of each co"),
        ({"worldview": None, "methods": ["cst_without"]}, "Method 'cst_without' needs counterfac"),
        (
            {"evidence": mm.Evidence(primary=("cf", 3))},
            "primary=('cf', 3) is not run. Methods: st, cst_without, cst_with, cf, cst_matched;",
        ),
        ({"missing": "guess"}, "missing='guess' is unknown. Allowed: 'error', 'drop'."),
        ({"seed": 1.5}, "seed=1.5 is not allowed."),
    ],
)
def test_what_is_refused(options: dict[str, Any], said: str) -> None:
    assert refused(PlanError, **options).startswith(said)


@pytest.mark.parametrize(
    ("section", "option", "allowed"),
    [
        (mm.Evidence, "interval", "miettinen-nurminen, wald"),
        (mm.Evidence, "adjust", "benjamini-hochberg, benjamini-yekutieli, holm, none"),
        (mm.Similarity, "ties", "fair, all"),
        (mm.Similarity, "scaling", "range, none"),
    ],
)
def test_unknown_choices(section: Any, option: str, allowed: str) -> None:
    with pytest.raises(PlanError, match=f"{option}='guess' is unknown. Allowed: .*{allowed}"):
        section(**{option: "guess"})


def test_methods_are_those_that_the_inputs_allow() -> None:
    assert [m.name for m in plan(decision=None).methods] == ["st", "cst_without", "cst_matched"]
    assert [m.name for m in plan(worldview=None).methods] == ["st"]


# --- the worldview -----------------------------------------------------------------------------


def test_the_protected_attribute_is_a_root() -> None:
    worldview = mm.Worldview({"gender": mm.Linear("age"), "salary": mm.Linear("gender")})
    message = refused(RootError, worldview=worldview)
    assert "'gender' must be a root" in message
    assert "caused by 'age'" in message


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


def test_no_message_quotes_a_cell() -> None:
    secret = "Jane Roe"
    table = TABLE.assign(granted=[secret, *TABLE["granted"][1:]])
    assert secret not in refused(OutcomeError, table)
