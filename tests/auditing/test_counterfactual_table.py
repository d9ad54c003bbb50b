"""Ready-made counterfactuals: rows aligned with D, or refused; values believed as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mutandis as mm
from mutandis.errors import AlignmentError, KindError, MissingValuesError, MutandisWarning

SIZE = 20
WOMAN = np.arange(SIZE) < 8
TABLE = pd.DataFrame(
    {
        "who": [f"person {number}" for number in range(SIZE)],
        "gender": np.where(WOMAN, "f", "m"),
        "salary": [10, 11, 12, 13, 14, 15, 16, 17, *range(12, 24)],
        "job": ["cook", "clerk"] * 10,
        "bonus": np.arange(SIZE) % 3,
        "granted": ["no"] * 8 + ["no"] * 6 + ["yes"] * 6,
    }
)
WOULD_BE = TABLE.assign(salary=TABLE["salary"] + np.where(WOMAN, 4.5, 0)).drop(columns="granted")
SETTINGS: dict[str, Any] = {
    "outcome": "granted",
    "negative": "no",
    "protected": mm.Protection("gender", value="f", reference="m"),
    "attributes": {"salary": "continuous", "job": "nominal"},
    "ks": (2,),
}


def audit(would_be: Any, /, table: Any = TABLE, **options: Any) -> mm.Audit:
    return mm.audit(table, **{**SETTINGS, "counterfactuals": would_be, **options})


def plain(found: pd.DataFrame) -> dict[str, list[Any]]:
    """Give the columns, with None where a value is missing."""
    return {
        str(name): column.astype(object).where(column.notna(), None).tolist()
        for name, column in found.items()
    }


# --- what is read ------------------------------------------------------------------------------


def test_without_outcomes_and_without_a_decision_nobody_decides() -> None:
    found = audit(WOULD_BE)
    assert found.methods == ("st", "cst_without", "cst_matched")
    assert set(found.findings("st", k=2)["outcome_cf"]) == {None}
    # the table has no outcomes, so it is not handed out with those of the facts
    assert list(found.counterfactuals()) == ["who", "gender", "salary", "job", "bonus"]


def test_outcomes_in_the_table_are_the_counterfactual_ones() -> None:
    outcomes = ["yes", "no"] * 10
    found = audit(WOULD_BE.assign(granted=outcomes))
    assert found.methods == ("st", "cst_without", "cst_with", "cf", "cst_matched")
    assert found.findings("cf", k=2)["outcome_cf"].tolist() == outcomes[:8]
    assert found.counterfactuals()["granted"].tolist() == outcomes
    # they are believed even where b() would decide otherwise
    asked = audit(WOULD_BE.assign(granted=outcomes), decision="salary > 0")
    assert asked.findings("cf", k=2).equals(found.findings("cf", k=2))


def test_every_column_of_the_table_is_seen_by_the_decision() -> None:
    """`bonus` is no attribute: people are not compared on it, but b() looks at it."""
    seen = []

    def decide(frame: pd.DataFrame) -> Any:
        seen.append(frame.copy())
        return frame["bonus"] > 100

    found = audit(WOULD_BE.assign(bonus=1000 * WOMAN), decision=decide)
    assert found.findings("cf", k=2)["outcome_cf"].tolist() == ["yes"] * 8
    factual, counterfactual = seen
    assert set(counterfactual["gender"]) == {"m"}
    assert counterfactual["salary"].tolist() == WOULD_BE["salary"].tolist()
    assert factual.equals(TABLE)
    rule = audit(WOULD_BE.assign(bonus=1000 * WOMAN), decision="bonus > 100")
    assert rule.findings("cf", k=2)["outcome_cf"].tolist() == ["yes"] * 8


def test_search_centers_are_those_of_the_table() -> None:
    found = audit(WOULD_BE)
    case = found.case(7)
    assert case.factual == {"salary": 17.0, "job": "clerk"}
    assert case.counterfactual == {"salary": 21.5, "job": "clerk"}
    # among the men clerks earn 13, 15, … 23: nearest to 21.5 are 21 and 23
    test = case.groups("cst_without", k=2).test
    assert test.ids.tolist() == [17, 19]
    assert test.distance.tolist() == pytest.approx([0.5 / 13 / 2, 1.5 / 13 / 2])


def test_a_name_that_the_facts_never_had_differs_from_all() -> None:
    would_be = WOULD_BE.assign(job=[*["baker"] * 8, *TABLE["job"][8:]])
    case = audit(would_be).case(0)
    assert case.counterfactual == {"salary": 14.5, "job": "baker"}
    test = case.groups("cst_without", k=2).test
    # 14 and 15, a cook and a clerk: both are another job away
    assert test.ids.tolist() == [10, 11]
    assert test.distance.tolist() == pytest.approx([(1 + 0.5 / 13) / 2] * 2)


@pytest.mark.parametrize("mixed", [False, True])
def test_both_tables_may_be_of_any_frame_type(mixed: bool) -> None:
    expected = audit(WOULD_BE, decision="salary > 18").findings("cst_with", k=2)
    would_be = WOULD_BE if mixed else pl.from_pandas(WOULD_BE)
    found = audit(would_be, table=pl.from_pandas(TABLE), decision="salary > 18")
    assert found.findings("cst_with", k=2).to_dict(as_series=False) == plain(expected)
    assert isinstance(found.counterfactuals(), pl.DataFrame)
    other = audit(pl.from_pandas(WOULD_BE), decision="salary > 18")
    assert other.findings("cst_with", k=2).equals(expected)


def test_rows_are_aligned_by_position_not_by_index() -> None:
    expected = audit(WOULD_BE).findings("cst_without", k=2)
    backwards = WOULD_BE.set_index(np.arange(SIZE)[::-1])
    assert audit(backwards).findings("cst_without", k=2).equals(expected)
    table = TABLE.set_index(np.arange(SIZE)[::-1])
    assert audit(WOULD_BE, table=table).findings("cst_without", k=2).equals(expected)


# --- misaligned --------------------------------------------------------------------------------


SWAPPED = WOULD_BE.assign(who=[*TABLE["who"][1::-1], *TABLE["who"][2:]])


REFUSED: list[tuple[type[Exception], Any, dict[str, Any], str]] = [
    (AlignmentError, WOULD_BE.iloc[:-1], {}, "has 19 rows, the table of decisions 20. Give one"),
    (AlignmentError, SWAPPED, {"id": "who"}, "other values of the id column 'who' in 2 rows. Sort"),
    (AlignmentError, WOULD_BE.assign(who=range(SIZE)), {"id": "who"}, "'who' in 20 rows. Sort"),
    (AlignmentError, WOULD_BE[["job"]], {}, "lacks the attributes 'salary'. Add them; an"),
    (AlignmentError, WOULD_BE[["who"]], {}, "lacks the attributes 'salary', 'job'. Add them"),
    (
        AlignmentError,
        WOULD_BE.assign(granted=pd.Series(["maybe", None, *["no"] * 18])),
        {},
        "has 2 rows whose outcome 'granted' is neither 'no' nor 'yes'. Use the outcome values",
    ),
    (
        MissingValuesError,
        WOULD_BE.assign(salary=[np.nan, np.inf, *WOULD_BE["salary"][2:]]),
        {},
        "Missing or infinite values: 'salary' has 1 missing and 1 infinite. Give a value to every",
    ),
    (KindError, WOULD_BE.assign(salary="much"), {}, "Column 'salary' is to be read as numbers"),
]


@pytest.mark.parametrize(("error", "would_be", "options", "message"), REFUSED)
def test_what_is_refused(
    error: type[Exception], would_be: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(error) as raised:
        audit(would_be, **options)
    assert "counterfactuals=" in str(raised.value)
    assert message in str(raised.value)


def test_ids_that_agree_or_are_not_there() -> None:
    expected = audit(WOULD_BE, id="who").findings("cst_without", k=2)
    assert expected["id"].tolist() == TABLE["who"].tolist()[:8]
    without = audit(WOULD_BE.drop(columns="who"), id="who")
    assert without.findings("cst_without", k=2).equals(expected)
    # without id= the column is one like any other
    assert audit(SWAPPED).counts()["complainants"].tolist() == [8, 8, 8]


def test_a_warning_if_people_of_the_reference_status_move() -> None:
    shuffled = WOULD_BE.iloc[np.random.default_rng(0).permutation(SIZE)]
    with pytest.warns(MutandisWarning, match=r"In counterfactuals=, \d+% of the reference rows"):
        audit(shuffled)
    jobs = WOULD_BE.assign(job=[*TABLE["job"][:8], *TABLE["job"][:7:-1]])
    with pytest.warns(MutandisWarning, match="100% of the reference rows have another 'job' than"):
        audit(jobs)


# --- rows that are dropped ---------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_dropped_rows_are_dropped_from_both(frame: Any) -> None:
    salary: list[Any] = [float(value) for value in TABLE["salary"]]
    salary[1] = salary[9] = None
    table = {**TABLE.to_dict("list"), "salary": salary}
    # what the counterfactual of a dropped row says is not even looked at
    would_be = {
        **WOULD_BE.to_dict("list"),
        "salary": [
            None if value is None else value + 4.5 * (n < 8) for n, value in enumerate(salary)
        ],
    }
    found = audit(frame(would_be), table=frame(table), missing="drop", id="who")
    kept = [number for number in range(SIZE) if number not in (1, 9)]
    expected = audit(WOULD_BE.iloc[kept], table=TABLE.iloc[kept], id="who")
    for method in ("st", "cst_without"):
        ours, theirs = found.findings(method, k=2), expected.findings(method, k=2)
        values = plain(ours) if frame is pd.DataFrame else ours.to_dict(as_series=False)
        assert values == plain(theirs)
    assert found.provenance.data["dropped"] == {"salary": 2}
    assert found.case("person 7").counterfactual == {"salary": 21.5, "job": "clerk"}
    positions = audit(frame(would_be), table=frame(table), missing="drop")
    # without id= people are named by their row in the table as it was given
    assert list(positions.findings("st", k=2)["id"]) == [0, 2, 3, 4, 5, 6, 7]


def test_neither_table_is_modified() -> None:
    table, would_be = TABLE.copy(deep=True), WOULD_BE.copy(deep=True)

    def vandal(frame: pd.DataFrame) -> Any:
        answer = (frame["salary"] > 18).to_numpy()
        frame["salary"] = 0
        del frame["job"]
        return answer

    found = audit(would_be, table=table, decision=vandal)
    assert table.equals(TABLE)
    assert would_be.equals(WOULD_BE)
    assert found.counterfactuals()["salary"].tolist() == WOULD_BE["salary"].tolist()
