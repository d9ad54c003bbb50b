"""Who is affected: rules against a table that was made with one, and against chance."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.explore.affected import SHUFFLES, find_rules, mean_by_attribute

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutandis.auditing.audit import Audit


@pytest.fixture(scope="module")
def people() -> Audit:
    """Give 300 women in three attributes, of which two matter for who is a case."""
    rng = np.random.default_rng(5)
    number = 360
    return mm.audit(
        {
            "sex": ["f"] * 300 + ["m"] * 60,
            "age": rng.integers(18, 80, number).astype(float),
            "job": rng.choice(["clerk", "driver", "cook"], number).tolist(),
            "rank": rng.choice(["low", "middle", "high"], number).tolist(),
            "granted": rng.choice(["no", "yes"], number).tolist(),
        },
        outcome="granted",
        negative="no",
        protected=mm.Protection("sex", value="f", reference="m"),
        attributes={
            "age": "continuous",
            "job": "nominal",
            "rank": {"kind": "ordinal", "levels": ["low", "middle", "high"], "weight": 1.0},
        },
        methods=["st"],
        ks=(5,),
    )


def _column(audit: Audit, name: str) -> Any:
    return audit.plan.population.part(name, audit.situation.complainants)


def test_the_rule_that_made_the_cases_is_found(people: Audit) -> None:
    age, job = _column(people, "age"), _column(people, "job")
    cut = float(np.quantile(age.values, 0.5, method="lower"))
    is_case = (age.values > cut) & (job.codes == job.levels.index("cook"))
    rule = find_rules(people, is_case)[0]
    assert set(rule.conditions) == {f"age > {cut:g}", "job = cook"}
    assert (rule.covered, rule.cases) == (int(is_case.sum()), int(is_case.sum()))
    assert (rule.share, rule.coverage) == (1.0, 1.0)
    assert rule.lift == pytest.approx(300 / is_case.sum())
    assert rule.p_value == 1 / (1 + SHUFFLES)


def test_ordered_levels_are_cut_in_their_order(people: Audit) -> None:
    rank = _column(people, "rank")
    is_case = rank.codes >= rank.levels.index("middle")
    assert find_rules(people, is_case)[0].conditions == ("rank above low",)


def test_the_counts_of_a_rule_are_those_of_a_frame(people: Audit) -> None:
    rng = np.random.default_rng(1)
    age = _column(people, "age").values
    is_case = (age > 50) & (rng.random(len(age)) < 0.6)
    frame = {name: _column(people, name) for name in ("age", "job", "rank")}
    for rule in find_rules(people, is_case):
        mask = np.ones(len(age), dtype=bool)
        for text in rule.conditions:
            mask &= _meets(frame, text)
        assert rule.covered == mask.sum()
        assert rule.cases == (mask & is_case).sum()
        assert rule.lift == pytest.approx(is_case[mask].mean() / is_case.mean())


def _meets(frame: dict[str, Any], text: str) -> Any:
    name, how, *rest = text.split(" ")
    column = frame[name]
    if how in {"≤", ">"}:
        bound = float(rest[0])
        return column.values <= bound if how == "≤" else column.values > bound
    code = column.levels.index(rest[-1])
    return {"=": np.equal, "at": np.less_equal, "above": np.greater}[how](column.codes, code)


def test_the_best_pair_is_found_by_trying_all(people: Audit) -> None:
    """Against every pair of conditions."""
    from mutandis.explore.affected import _literals, _Search

    rng = np.random.default_rng(3)
    is_case = rng.random(300) < 0.2 + 0.3 * (_column(people, "age").values > 60)
    literals = [each.mask for each in _literals(people)]

    def quality(mask: Any) -> float:
        if mask.sum() < 10:
            return 0.0
        return float((mask & is_case).sum() - is_case.mean() * mask.sum())

    singles = max(quality(each) for each in literals)
    pairs = max(quality(a & b) for a, b in combinations(literals, 2))
    assert _Search(np.array(literals)).best(is_case) >= max(singles, pairs) - 1e-4


@pytest.mark.slow
def test_chance_has_p_values_of_chance(people: Audit) -> None:
    """Where cases are drawn at random, the best rule has a small p-value as rarely as it says."""
    rng = np.random.default_rng(11)
    smallest = [
        find_rules(people, rng.random(300) < 0.15, seed=each)[0].p_value for each in range(40)
    ]
    # binomial(40, 0.1): more than 10 has a probability of 0.0015
    assert sum(each <= 0.1 for each in smallest) <= 10
    assert max(smallest) > 0.3


@pytest.mark.parametrize("none", [True, False])
def test_without_cases_or_others_there_is_no_rule(people: Audit, none: bool) -> None:
    assert find_rules(people, np.full(300, not none)) == []


def test_means_are_those_of_the_findings(people: Audit) -> None:
    delta_p = people.evaluate().compared
    charts = {each.attribute: each for each in mean_by_attribute(people, delta_p)}
    assert set(charts) == {"age", "job", "rank"}
    job = _column(people, "job")
    for bar in charts["job"].bars:
        mine = delta_p[job.codes == job.levels.index(bar.label)]
        assert bar.people == len(mine)
        assert bar.mean == pytest.approx(mine.mean())
    for chart in charts.values():
        assert sum(bar.people for bar in chart.bars) == 300
    assert [bar.label for bar in charts["rank"].bars] == ["low", "middle", "high"]


def test_the_page_says_how_to_read_a_rule(visit: Callable[[Audit], Any], loan: Audit) -> None:
    client = visit(loan)
    text = client.get("/affected").text
    found = loan.evaluate()
    assert f"{int(found.has_pattern.sum())} of 200 complainants" in text
    rule = find_rules(loan, found.has_pattern)[0]
    assert f"{rule.lift:.2f}" in text
    assert client.get("/affected?about=own").status_code == 200
    assert client.get("/affected?about=nothing").status_code == 400
