"""The table of complainants against the findings of the audit; filters, order, pages, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mutandis.rooms.explorer.views import Lens, PeopleTable, Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutandis.auditing.audit import Audit


HOSTILE_COLUMN = "<script>alert('c')</script>"  # as conftest.py has it


@pytest.fixture(scope="module")
def table(loan: Audit) -> PeopleTable:
    lens = Lens(loan)
    return lens.people(lens.base)


def _ids(table: PeopleTable, **query: str) -> list[Any]:
    selection = Selection.read([(name.replace("__", ":"), value) for name, value in query.items()])
    return [int(each) for each in table.found.ids[table.select(selection)]]


def test_everyone_is_listed_with_the_findings_of_the_audit(loan: Audit, table: PeopleTable) -> None:
    expected = loan.findings().sort_values(["delta_p", "id"], ascending=[False, True])
    assert _ids(table) == expected["id"].tolist()
    records = {
        key: np.array([each.at(place) for place in range(len(table.found))], dtype=object)
        for key, each in table.columns.items()
    }
    assert table.found.ids.tolist() == loan.findings()["id"].tolist()
    found = loan.findings()
    for name in ("verdict", "delta_p", "p_control", "p_test", "q_value"):
        values = found[name].astype(object)
        assert records[name].tolist() == values.where(found[name].notna(), None).tolist()
    assert (
        records["grade"].tolist()
        == found["grade"].astype(object).where(found["grade"].notna(), None).tolist()
    )
    answers = found["own_case"].map({True: "yes", False: "no", None: "not known"})
    assert records["own_case"].tolist() == answers.tolist()


@pytest.mark.parametrize(
    "sort", ["id", "-id", "q_value", "-p_control", "verdict", "x:AnnualSalary"]
)
def test_orders_put_missing_values_last_and_keep_ids_in_order(
    loan: Audit, table: PeopleTable, sort: str
) -> None:
    key = sort.removeprefix("-")
    column = table.columns.get(key)
    ids = _ids(table, sort=sort)
    if column is None:
        assert ids == sorted(ids, reverse=sort.startswith("-"))
        return
    place = {int(each): at for at, each in enumerate(table.found.ids)}
    values = column.values.data.astype(float)
    sign = -1 if sort.startswith("-") else 1
    keys = [(np.isnan(values[place[i]]), sign * np.nan_to_num(values[place[i]]), i) for i in ids]
    assert keys == sorted(keys)


def test_filters_are_those_of_a_frame(loan: Audit, table: PeopleTable) -> None:
    found = loan.findings()
    population = loan.plan.population
    found["salary"] = population.numbers("AnnualSalary")[loan.study.people]
    cut = float(found["salary"].median())
    expected = found[
        found["verdict"].isin(["significant-adjusted", "significant"])
        & (found["outcome"] == -1)
        & (found["salary"] >= cut)
        & found["id"].astype(str).str.contains("1")
    ]
    selection = Selection.read(
        [
            ("is:verdict", "significant"),
            ("is:verdict", "significant-adjusted"),
            ("is:outcome", "-1"),
            ("min:x:AnnualSalary", str(cut)),
            ("max:x:AnnualSalary", ""),
            ("id", "1"),
        ]
    )
    places = table.select(selection)
    assert len(places) > 0
    assert set(table.found.ids[places]) == set(expected["id"])


def test_an_address_asks_for_the_same_view_again() -> None:
    pairs = [
        ("is:verdict", "evidence"),
        ("min:delta_p", "0.1"),
        ("max:x:AnnualSalary", "1e5"),
        ("id", "7"),
        ("sort", "-q_value"),
        ("page", "2"),
    ]
    selection = Selection.read(pairs)
    assert Selection.read(selection.pairs()) == selection


def test_pages_cover_everyone_once(table: PeopleTable) -> None:
    seen: list[int] = []
    number, pages = 0, 1
    while number < pages:
        number += 1
        page = table.page(Selection(page=number))
        pages = page.pages
        seen += page.places.tolist()
    assert sorted(seen) == list(range(len(table.found)))
    assert table.page(Selection(page=10**6)).number == pages


def test_the_own_levels_change_the_verdicts(loan: Audit) -> None:
    lens = Lens(loan)
    view = lens.read_view({"alpha": "0.01", "tau": "0.1", "k": "10", "method": "cst_without"})
    changed = loan.with_levels(alpha=0.01, tau=0.1, method="cst_without", k=10)
    found = lens.people(view).found
    assert found.verdicts().tolist() == changed.findings()["verdict"].tolist()
    assert found.verdicts().tolist() != loan.findings("cst_without", k=10)["verdict"].tolist()


def test_a_hostile_column_filters(visit: Callable[[Audit], Any], hostile: Audit) -> None:
    answer = visit(hostile).get("/people", params={f"min:x:{HOSTILE_COLUMN}": "5"})
    assert answer.status_code == 200
    rows = hostile.study.people
    many = int((hostile.plan.population.numbers(HOSTILE_COLUMN)[rows] >= 5).sum())
    assert f"{many} complainants of {len(rows)}" in answer.text
