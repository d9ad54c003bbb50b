"""Pages against the audit and its documents: the overview, people, one person, a trial."""

from __future__ import annotations

from fractions import Fraction
from html import unescape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.auditing.robustness import find_tipping, find_with_part
from mutandis.engine.tally import METHODS
from mutandis.errors import PlanError
from mutandis.report.context import ReportContext
from mutandis.report.formatting import distance, signed
from mutandis.report.sentences import summarise
from mutandis.rooms.explorer.views import VERDICTS, Lens, PeopleTable, Selection, TwoAudits
from tests.tables import LEVELS, LOAN, audit_people, people_with_answers, people_with_rates

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


def test_the_headline_is_that_of_the_report(visit: Callable[[Audit], Any], loan: Audit) -> None:
    text = unescape(visit(loan).get("/").text)
    for paragraph in summarise(ReportContext(audit=loan)):
        assert paragraph in text
    for sentence in loan.cautions():
        assert sentence in text
    assert 'src="/workbench.svg"' in text


@pytest.mark.parametrize(
    "levels", [{"alpha": 0.01}, {"tau": 0.2}, {"alpha": 0.1, "tau": 0.05, "k": 10, "method": "st"}]
)
def test_counts_at_other_levels_are_those_of_another_audit(
    loan: Audit, levels: dict[str, Any]
) -> None:
    """Against an audit that is run anew with these levels."""
    plan = mm.plan(
        mm.datasets.loan(n=600, seed=1),
        **LOAN,
        decision="AnnualSalary + 5 * AccountBalance > 225000",
        ks=(10, 20),
        alpha=levels.get("alpha", 0.05),
        tau=levels.get("tau", 0.0),
        uncertainty=mm.Uncertainty(refits=3),
    )
    lens = Lens(loan)
    view = lens.read_view({name: str(value) for name, value in levels.items()})
    expected = plan.run()
    for row in lens.counts(view):
        again = expected.results.summaries[row["method"], view.k].counts
        assert {name: row[name] for name in again} == again


def test_several_protections_have_an_overview(visit: Callable[[Audit], Any]) -> None:
    table = {
        "sex": ["f", "m", "f", "m"] * 30,
        "race": ["b", "b", "w", "w"] * 30,
        "score": [float(each * 7 % 31) for each in range(120)],
        "granted": ["no" if each * 5 % 13 < 6 else "yes" for each in range(120)],
    }
    audit = mm.audit(
        table,
        outcome="granted",
        negative="no",
        protected=[
            mm.Protection("sex", value="f", reference="m"),
            mm.Protection("race", value="b", reference="w"),
        ],
        combine="multiple",
        attributes={"score": "continuous"},
        worldview=mm.Worldview({"score": mm.Linear("sex", "race")}),
        ks=(5,),
        uncertainty=mm.Uncertainty(refits=0),
    )
    client = visit(audit)
    for page in ("/?tau=0.2", "/people", "/person/0", "/person/0?effect=0.5"):
        assert client.get(page).status_code == 200
    assert "On the ground of sex" in client.get("/person/0?effect=0.5").text


@pytest.fixture(scope="module", params=[("risk-ratio", 1.25), ("selection-ratio", 0.8)])
def ratio(request: pytest.FixtureRequest) -> Audit:
    measure, tau = request.param
    return mm.audit(
        mm.datasets.loan(n=400, seed=1),
        **LOAN,
        ks=(10,),
        tau=tau,
        evidence=mm.Evidence(measure=measure),
        uncertainty=mm.Uncertainty(refits=2),
    )


def test_every_page_follows_the_measure(visit: Callable[[Audit], Any], ratio: Audit) -> None:
    client, measure = visit(ratio), ratio.plan.settings.measure
    overview = unescape(client.get("/").text)
    assert f"Threshold τ of the {measure.symbol}" in overview
    # another threshold counts as another audit does
    other = 2.0 if measure.worse_above else 0.5
    at_other = client.get(f"/?tau={other}")
    assert at_other.status_code == 200
    expected = ratio.with_levels(tau=other).counts().set_index("method")["cases"]
    assert f">{expected['cst_matched']}" in at_other.text
    assert client.get("/?tau=0").status_code == 400  # no threshold of a ratio
    people = client.get(f"/people?sort=-{measure.column}")
    assert people.status_code == 200
    assert measure.symbol.capitalize() in people.text
    if measure.worse_above:
        assert np.isinf(ratio.findings("st")["risk_ratio"]).any()
        assert "∞" in client.get("/people?sort=-risk_ratio&method=st").text
    person = client.get("/person/0")
    assert person.status_code == 200
    assert f"{measure.symbol} " in unescape(person.text)


def _ordered() -> Audit:
    return audit_people(people_with_answers(), outcome=mm.Ordered("answer", best_to_worst=LEVELS))


@pytest.fixture(scope="module", params=["order", "score"])
def scaled(request: pytest.FixtureRequest) -> Audit:
    if request.param == "order":
        return _ordered()
    return audit_people(people_with_rates(), outcome=mm.Score("rate", worse="higher"))


@pytest.mark.few("score")
def test_every_page_speaks_of_the_outcome(visit: Callable[[Audit], Any], scaled: Audit) -> None:
    client, levels = visit(scaled), bool(scaled.plan.outcome.kind.listing)
    pages = ["/", "/?tau=0.1", "/people", "/people?sort=-outcome"]
    pages += ["/person/0", "/person/0?effect=0.5", "/workbench"]
    for address in pages:
        answer = client.get(address)
        assert answer.status_code == 200, address
        # the style of a dot is no word
        text = unescape(answer.text).replace('granted"', "")
        for word in ("granted", "Δp", "nan%"):
            assert word not in text, (address, word)
        if levels:
            assert "mean answer" not in text, address
    people, person = (unescape(client.get(each).text) for each in ("/people", "/person/0"))
    assert ("Worse off in pairs, control" in people) == levels
    assert ("worse off in pairs" in person) == levels
    assert ("Mean rate, control" in people) != levels
    assert ("mean rate" in person) != levels


def test_people_are_in_the_order_of_their_levels() -> None:
    found = _ordered()
    lens = Lens(found)
    table = lens.people(lens.base)
    order = table.select(Selection(sort="-outcome"))
    places = [LEVELS.index(table.columns["outcome"].at(place)) for place in order.tolist()]
    assert len(set(places)) >= 3
    assert places == sorted(places, reverse=True)


SHOWN = ("p_control", "p_test", "delta_p", "ci_low", "ci_high", "p_value", "q_value", "verdict")


def test_the_verdict_falls_at_the_tipping_point(loan: Audit) -> None:
    """What the slider shows on both sides of λ* is what makes it the tipping point."""
    method = METHODS["cst_matched"]
    tipping = find_tipping(loan, method, 20)
    found = loan.evaluate("cst_matched", 20)
    bound = found.p_value_bound()
    places = np.flatnonzero((tipping.point > 0.05) & (tipping.point < 1))[:3]
    assert len(places) == 3
    for place in places.tolist():
        point = Fraction(round(tipping.point[place] * 20), 20)
        for part, stands in ((point, True), (point - Fraction(1, 20), False)):
            there = find_with_part(loan, place, method, 20, part).comparison
            kept = there.evidence[0] & (there.interval.p_value[0] <= bound[place])
            assert kept == stands


def test_the_page_shows_her_case(visit: Callable[[Audit], Any], loan: Audit) -> None:
    client = visit(loan)
    place = int(np.flatnonzero(loan.evaluate().has_pattern)[0])
    case = loan.case(int(loan.evaluate().ids[place]))
    text = unescape(client.get(f"/person/{place}").text)
    method, k = loan.plan.settings.primary
    assert case.explain_pattern() in text
    assert case.explain_own_case() in text
    result = case.result(method, k=k)
    assert f"Δp = {signed(result['delta_p'])}" in text
    assert f"[{signed(result['ci_low'])}, {signed(result['ci_high'])}]" in text
    members = case.groups(method, k=k)
    for group in (members.control, members.test):
        assert distance(float(group.distance.max())) in text
    other = client.get(f"/person/{place}?k=10&effect=0.5").text
    there = find_with_part(loan, place, METHODS[method], 10, Fraction(1, 2))
    assert f"Δp = {signed(there.comparison.delta_p[0])}" in other
    assert "with 50.0% of the effect at k = 10" in other


def test_methods_without_a_part_of_the_effect_say_so(
    visit: Callable[[Audit], Any], loan: Audit
) -> None:
    answer = visit(loan).get("/person/0?method=st&effect=0.5")
    assert answer.status_code == 200
    assert "has no tipping point" in answer.text


def test_the_case_file_is_that_of_the_audit(visit: Callable[[Audit], Any], loan: Audit) -> None:
    client = visit(loan)
    id_ = int(loan.evaluate().ids[4])
    for redact in (False, True):
        document = loan.case_file(id_, redact=redact)
        answer = client.get("/person/4/case-file", params={"redact": "yes"} if redact else {})
        assert answer.text == document.to_html()
        assert "attachment" in answer.headers["content-disposition"]
        assert str(id_) not in answer.headers["content-disposition"]


def _loan(rows: Any = None, **changes: Any) -> Audit:
    table = mm.datasets.loan(n=600, seed=1)
    given: dict[str, Any] = {
        **LOAN,
        "worldview": mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
        "decision": "AnnualSalary + 5 * AccountBalance > 225000",
        "ks": (20,),
        "evidence": mm.Evidence(primary=("cst_without", 20)),
        "uncertainty": mm.Uncertainty(refits=0),
        **changes,
    }
    table = table.assign(who=range(len(table)))
    return mm.audit(table if rows is None else rows(table), id="who", **given)


@pytest.fixture(scope="module")
def first() -> Audit:
    return _loan()


def _compared(one: Audit, two: Audit) -> TwoAudits:
    lens = Lens(one)
    return TwoAudits(lens, Lens(two), lens.base)


def _joined(one: Audit, two: Audit) -> Any:
    columns = ["id", "verdict", "delta_p", "p_control", "p_test"]
    return one.findings()[columns].merge(two.findings()[columns], on="id")


def test_an_audit_beside_itself_has_no_differences(first: Audit) -> None:
    two = _compared(first, first)
    assert not two.masks["changed"].any()
    assert two.people("changed", 10) == []


def test_another_worldview_changes_counterfactuals_and_those_compared_with(first: Audit) -> None:
    worldview = LOAN["worldview"]
    other = _loan(worldview=worldview)
    two = _compared(first, other)
    both = _joined(first, other)
    differs = both[both["verdict_x"] != both["verdict_y"]]
    assert len(differs) > 0
    people = two.people("changed", 1000)
    assert {each.id for each in people} == set(differs["id"])
    expected = pd.crosstab(both["verdict_x"], both["verdict_y"])
    for verdict, numbers in two.matrix():
        for other_verdict, number in zip(VERDICTS, numbers, strict=True):
            known = verdict in expected.index and other_verdict in expected.columns
            assert number == (expected.loc[verdict, other_verdict] if known else 0)
    row = both.set_index("id").loc[people[0].id]
    assert people[0].verdicts == (row["verdict_x"], row["verdict_y"])
    assert people[0].delta_p == (row["delta_p_x"], row["delta_p_y"])
    gained = {each.id for each in two.people("gained", 1000)}
    strong = "significant-adjusted"
    assert gained == set(both["id"][(both["verdict_y"] == strong) & (both["verdict_x"] != strong)])


def test_people_are_found_by_their_ids(first: Audit) -> None:
    def fewer(table: Any) -> Any:
        changed = table.iloc[::-1].iloc[:-50].copy()
        changed.loc[changed["Gender"] == 1, "AnnualSalary"] += 1.0
        return changed

    other = _loan(rows=fewer)
    two = _compared(first, other)
    both = _joined(first, other)
    assert two.common == len(both)
    assert two.alone == (len(first.findings()) - len(both), 0)
    assert {each.id for each in two.people("changed", 1000)} == set(
        both["id"][both["verdict_x"] != both["verdict_y"]]
    )


def test_what_the_other_did_not_run_is_said(first: Audit) -> None:
    with pytest.raises(PlanError, match="did not run cst_without at k = 20"):
        _compared(first, _loan(ks=(10,), evidence=mm.Evidence()))
