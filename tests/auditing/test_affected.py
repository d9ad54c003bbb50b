"""Who is affected: rules against a table that was made with one, and against chance."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.auditing import affected
from mutandis.auditing.affected import (
    RULE_COLUMNS,
    SHUFFLES,
    cases_of,
    find_rules,
    mean_by_attribute,
    sort_masks,
)

if TYPE_CHECKING:
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
    from mutandis.auditing.affected import _literals, _Search

    rng = np.random.default_rng(3)
    is_case = rng.random(300) < 0.2 + 0.3 * (_column(people, "age").values > 60)
    literals = [each.mask for each in _literals(people)]

    def quality(mask: Any) -> int:
        if mask.sum() < 10:
            return 0
        return 300 * int((mask & is_case).sum()) - int(is_case.sum()) * int(mask.sum())

    singles = max(quality(each) for each in literals)
    pairs = max(quality(a & b) for a, b in combinations(literals, 2))
    assert _Search(np.array(literals)).best(is_case) >= max(singles, pairs)


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


@pytest.mark.parametrize("cases", [0, 9, 291, 300])
def test_with_too_few_cases_or_others_there_is_no_rule(people: Audit, cases: int) -> None:
    age = _column(people, "age").values
    is_case = np.zeros(300, dtype=np.bool_)
    is_case[np.argsort(-age)[:cases]] = True
    assert find_rules(people, is_case) == []
    is_case[np.argsort(-age)[:10]] = True
    is_case[np.argsort(-age)[290:]] = False
    assert find_rules(people, is_case)[0].conditions[0].startswith("age >")


def test_a_p_value_is_the_one_of_all_arrangements() -> None:
    """Of one attribute with two values, every arrangement is counted."""
    number, old, cases, hit = 40, 15, 12, 8
    table = {
        "sex": ["f"] * number + ["m"] * 20,
        "age": (["old"] * old + ["young"] * (number - old)) + ["old"] * 20,
        "granted": ["no", "yes"] * (number // 2 + 10),
    }
    audit = mm.audit(
        table,
        outcome="granted",
        negative="no",
        protected=mm.Protection("sex", value="f", reference="m"),
        attributes={"age": "nominal"},
        methods=["st"],
        ks=(5,),
        uncertainty=mm.Uncertainty(placebo=0),
    )
    is_case = np.zeros(number, dtype=np.bool_)
    is_case[:hit] = is_case[old : old + cases - hit] = True
    rule = find_rules(audit, is_case)[0]
    assert (rule.conditions, rule.covered, rule.cases) == (("age = old",), old, hit)
    # the best rule names the old or the young, so that both tails count
    far = abs(hit - Fraction(cases * old, number))
    ways = sum(
        comb(old, each) * comb(number - old, cases - each)
        for each in range(cases + 1)
        if abs(each - Fraction(cases * old, number)) >= far
    )
    exact = ways / comb(number, cases)
    several = [
        round(find_rules(audit, is_case, seed=seed)[0].p_value * (1 + SHUFFLES)) - 1
        for seed in range(20)
    ]
    draws = 20 * SHUFFLES
    assert 0.005 < exact < 0.1
    assert abs(sum(several) - draws * exact) < 4 * (draws * exact * (1 - exact)) ** 0.5


def test_a_rule_says_more_than_a_better_one(people: Audit) -> None:
    age = _column(people, "age").values
    low, _, high = (float(np.quantile(age, each, method="lower")) for each in (0.25, 0.5, 0.75))
    rules = find_rules(people, (age > low) & (age <= high))
    texts = [set(each.conditions) for each in rules]
    assert texts[0] == {f"age > {low:g}", f"age ≤ {high:g}"}
    assert not any(later < earlier for earlier, later in combinations(texts, 2))


@pytest.mark.parametrize("searched", [5_000, 60])
def test_the_order_of_rows_changes_no_rule(monkeypatch: Any, searched: int) -> None:
    monkeypatch.setattr("mutandis.auditing.affected._MOST_SEARCHED", searched)
    table = mm.datasets.loan(n=400, seed=1)
    first, again = (_loans(each) for each in (table, table.sample(frac=1, random_state=3)))
    assert len(first) > 1
    assert first.equals(again)


def _loans(table: Any) -> Any:
    return mm.audit(
        table,
        outcome="LoanApproval",
        negative=-1,
        protected=mm.Protection("Gender", value=1, reference=0),
        attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
        worldview=mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
        methods=["cst_without"],
        ks=(15,),
        uncertainty=mm.Uncertainty(refits=0, placebo=0, tipping=False),
    ).affected()


def test_a_frame_of_rules_is_about_the_cases_of_a_method(people: Audit) -> None:
    found = people.affected()
    assert [*found.columns] == [*RULE_COLUMNS]
    assert len(found) == 0  # chance: no one has a pattern
    is_case = cases_of(people.test_everyone())
    assert (is_case == people.evaluate().has_pattern).all()
    assert is_case.sum() < 10


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


@pytest.mark.parametrize("size", [1, 3, 8, 9, 64, 65])
def test_people_are_sorted_by_the_bytes_of_what_they_meet(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(affected, "_BLOCK", 70)
    masks = list(np.random.default_rng(size).random((size, 200)) < 0.5)
    by_bytes = np.lexsort(np.packbits(masks, axis=0))
    assert sort_masks(masks).tolist() == by_bytes.tolist()


def test_the_best_rule_of_shuffles_is_the_best_of_all_that_are_listed() -> None:
    rng = np.random.default_rng(11)
    masks = rng.random((9, 700)) < rng.random((9, 1))
    search = affected._Search(masks)
    for _ in range(20):
        is_case = rng.random(700) < 0.2
        rules = search.rules(is_case)
        assert search.best(is_case) == max((quality for quality, _ in rules), default=0.0)
        for quality, members in rules:
            covered = np.logical_and.reduce(masks[sorted(members)])
            assert covered.sum() >= max(10, 0.02 * 700)
            assert quality == 700 * (covered & is_case).sum() - is_case.sum() * covered.sum()
