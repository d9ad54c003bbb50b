"""Outcomes with an order: pairs by hand, Brunner and Munzel's test, permutation, and all on top."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache, partial
from itertools import combinations
from math import inf, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import brunnermunzel, t

import mutandis as mm
from mutandis.engine.tally import Sums
from mutandis.errors import AlignmentError, DecisionError, OutcomeError, PlanError
from mutandis.outcomes import measure_named
from mutandis.outcomes import ordered as levels_module
from mutandis.outcomes.ordered import OrderedKind
from mutandis.outcomes.outcome import Rule
from mutandis.rooms.compliance import impact_ratios
from mutandis.rooms.prevention import study_prevention
from tests.tables import LEVELS, WOMEN, Table, audit_people, nearest_people, weigh_matches
from tests.tables import people_with_answers as made_up

ANSWER = mm.Ordered("answer", best_to_worst=LEVELS)
audit = partial(audit_people, outcome=ANSWER)


Weights = list[tuple[int, Fraction]]  # the place of a level, and a weight


def of(table: Table, weights: dict[int, Fraction]) -> Weights:
    return [(LEVELS.index(table["answer"][row]), weight) for row, weight in weights.items()]


def better(a: int, b: int) -> Fraction:
    """Count a pair: 1 if the first is worse, ½ if both are the same."""
    return Fraction(int(a > b)) + Fraction(int(a == b), 2)


def theta_by_hand(control: Weights, test: Weights) -> Fraction:
    """θ = P(control worse) + ½ P(both the same), over all pairs."""
    total = sum(u for _, u in control) * sum(w for _, w in test)
    return sum((u * w * better(a, b) for a, u in control for b, w in test), Fraction(0)) / total


def variance_by_hand(one: Weights, other: Weights) -> Fraction:
    """Give the variance of the placements of one group among the other."""
    total = sum((u for _, u in one), Fraction(0))
    placed = [(theta_by_hand([(a, Fraction(1))], other), u) for a, u in one]
    mean = sum((p * u for p, u in placed), Fraction(0)) / total
    return sum((u * (p - mean) ** 2 for p, u in placed), Fraction(0)) / total


def statistic_by_hand(
    control: Weights, test: Weights, people: tuple[float, float], tau: float = 0
) -> tuple[float, float, float]:
    """Give Brunner and Munzel's statistic, its degrees of freedom, and the error of θ."""
    effect = theta_by_hand(control, test) - Fraction(1, 2) - Fraction(str(tau))
    sides = [
        float(variance_by_hand(control, test)) / (people[0] - 1),
        float(variance_by_hand(test, control)) / (people[1] - 1),
    ]
    error = sqrt(sum(sides))
    if not error:
        return (inf if effect > 0 else -inf if effect < 0 else 0.0), inf, 0.0
    free = sum(sides) ** 2 / sum(v**2 / (n - 1) for v, n in zip(sides, people, strict=True))
    return float(effect) / error, free, error


def share_of(places: list[int], number: int = len(LEVELS)) -> Sums:
    """Count one group of whole people."""
    beyond = [sum(each > level for each in places) for level in range(number - 1)]
    return Sums.of(marks=np.array([beyond]), places=np.array([len(places)]))


def compare(control: list[int], test: list[int], tau: float = 0.0) -> Any:
    kind = OrderedKind(levels=tuple(LEVELS))
    rule = Rule(
        kind=kind,
        measure=measure_named("relative-effect"),
        interval="brunner-munzel",
        tau=Fraction(str(tau)),
        alpha=0.05,
    )
    return kind.compare(share_of(control), share_of(test), rule, depth="bounds")


@pytest.mark.parametrize("k", [8, 20])
def test_pairs_are_those_by_hand(k: int) -> None:
    table = made_up(2)
    found = audit(table, tau=0.1)
    women = [i for i, w in enumerate(table["woman"]) if w]
    men = [i for i, w in enumerate(table["woman"]) if not w]
    rows = found.findings("st", k=k).set_index("id")
    for her in (women[place] for place in (0, 5, 31, 79)):
        others = [each for each in women if each != her]
        control = of(table, nearest_people(table, her, others, k))
        test = of(table, nearest_people(table, her, men, k))
        theta = theta_by_hand(control, test)
        row = rows.loc[her]
        assert row["delta"] == float(theta - Fraction(1, 2))
        ties = 1 - Fraction(row["worse_control"]) - Fraction(row["worse_test"])
        assert row["worse_control"] + float(ties) / 2 == pytest.approx(float(theta), rel=1e-12)
        assert (row["verdict"] != "no-evidence") == (theta - Fraction(1, 2) > Fraction(1, 10))
        if k == 20:
            statistic, free, error = statistic_by_hand(control, test, (k, k), 0.1)
            assert row["p_value"] == pytest.approx(t.sf(statistic, free), rel=1e-9)
            low = float(theta) - 0.5 - t.isf(0.05, free) * error
            assert row["ci_low"] == pytest.approx(low, rel=1e-9)


def test_the_test_is_that_of_scipy_where_no_place_is_shared() -> None:
    table = made_up(3, coarse=False)
    found = audit(table)
    places = np.array([LEVELS.index(each) for each in table["answer"]])
    rows = found.findings("st", k=20).set_index("id")
    for her in rows.index[:20]:
        groups = found.case(her).groups("st", k=20)
        here, there = places[groups.control.ids], places[groups.test.ids]
        # scipy's alternative is about the second sample
        theirs = brunnermunzel(there, here, alternative="less")
        assert rows.loc[her, "p_value"] == pytest.approx(theirs.pvalue, rel=1e-9)
        assert (rows.loc[her, "ci_low"] >= 0) == (rows.loc[her, "p_value"] <= 0.05)


def test_matched_pairs_are_those_by_hand() -> None:
    """w_j = Σ_i u_i s_ij in fractions, m = 5, on the effective number of people."""
    table = made_up(4)
    moved = [x + 1 if w else x for x, w in zip(table["income"], table["woman"], strict=True)]
    counterfactuals = {"income": moved, "debt": table["debt"]}
    found = audit(table, worldview=None, counterfactuals=counterfactuals, tau=0.05)
    women = [i for i, w in enumerate(table["woman"]) if w]
    men = [i for i, w in enumerate(table["woman"]) if not w]
    matches = {i: nearest_people(table, i, men, 5, income=moved[i]) for i in women}
    rows = found.findings("cst_matched", k=20).set_index("id")
    for her in women[:8]:
        chosen = nearest_people(table, her, [i for i in women if i != her], 20)
        control, test = of(table, chosen), of(table, weigh_matches(chosen, matches))
        theta = theta_by_hand(control, test)
        assert rows.loc[her, "delta"] == float(theta - Fraction(1, 2))
        people = (20, rows.loc[her, "n_effective"])
        statistic, free, _ = statistic_by_hand(control, test, people, 0.05)
        if rows.loc[her, "verdict"] != "insufficient":
            assert rows.loc[her, "p_value"] == pytest.approx(t.sf(statistic, free), rel=1e-8)
        alone = [(LEVELS.index(table["answer"][her]), Fraction(1))]
        own = theta_by_hand(alone, of(table, matches[her]))
        assert rows.loc[her, "theta_own"] == float(own)
        assert bool(rows.loc[her, "own_case"]) == (own - Fraction(1, 2) > Fraction(1, 20))


_PLACES = st.lists(st.integers(0, 3), min_size=2, max_size=9)


@settings(max_examples=60, deadline=None)
@given(control=_PLACES, test=_PLACES, tau=st.sampled_from([0.0, 0.125, 0.3]))
def test_any_two_groups(control: list[int], test: list[int], tau: float) -> None:
    found, turned = compare(control, test, tau), compare(test, control, tau)
    one = Fraction(1)
    theta = theta_by_hand([(a, one) for a in control], [(b, one) for b in test])
    assert found.delta_p[0] == float(theta - Fraction(1, 2))
    assert turned.delta_p[0] == -found.delta_p[0]
    assert bool(found.evidence[0]) == (theta - Fraction(1, 2) > Fraction(str(tau)))
    mirrored = compare([3 - a for a in control], [3 - b for b in test], tau)
    assert mirrored.delta_p[0] == -found.delta_p[0]
    assert mirrored.interval.p_value[0] == pytest.approx(turned.interval.p_value[0], rel=1e-9)
    interval = found.interval
    assert -0.5 <= interval.low[0] <= found.delta_p[0] <= interval.high[0] <= 0.5
    assert 0 < interval.p_value[0] <= 1
    assert (interval.p_value[0] <= 0.05) <= (interval.low[0] >= tau)
    # everyone twice is the same θ
    assert compare(control * 2, test * 2, tau).delta_p[0] == found.delta_p[0]


@pytest.mark.parametrize("tau", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(6))
def test_few_people_are_tested_by_all_ways_to_part_them(seed: int, tau: float) -> None:
    """Each way is a loop: the statistic of everyone's relabelling, one by one."""
    rng = np.random.default_rng(seed)
    control = rng.choice(4, size=5, p=[0.1, 0.2, 0.3, 0.4]).tolist()
    test = rng.choice(4, size=6, p=[0.4, 0.3, 0.2, 0.1]).tolist()
    everyone, one = control + test, Fraction(1)

    @cache  # many ways to part them give groups of the same levels
    def statistic(here: tuple[int, ...], tau: float = 0.0) -> float:
        there = (Counter(everyone) - Counter(here)).elements()
        chosen, others = ([(each, one) for each in levels] for levels in (here, there))
        return statistic_by_hand(chosen, others, (5, 6), tau)[0]

    observed = statistic(tuple(sorted(control)), tau)
    others = [statistic(each) for each in combinations(sorted(everyone), 5)]
    larger = sum(each >= observed - 1e-9 for each in others)
    found = compare(control, test, tau)
    if larger:  # a threshold may lie beyond what any way of parting them gives
        assert found.interval.p_value[0] == pytest.approx(larger / len(others), rel=1e-12)
    assert (found.interval.p_value[0] <= 0.05) == (found.interval.low[0] >= tau)
    assert -0.5 <= found.interval.low[0] <= found.delta_p[0] <= found.interval.high[0] <= 0.5


def test_where_tables_are_too_many_they_are_drawn_alike_every_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    control, test = rng.integers(1, 4, 12).tolist(), rng.integers(0, 4, 14).tolist()
    exact = compare(control, test).interval.p_value[0]
    levels_module._permute.cache_clear()
    monkeypatch.setattr(levels_module, "_MOST_TABLES", 50)
    one = compare(control, test).interval.p_value[0]
    levels_module._permute.cache_clear()
    assert compare(control[::-1], test[::-1]).interval.p_value[0] == one
    assert one == pytest.approx(exact, abs=0.15)
    assert one != exact
    levels_module._permute.cache_clear()


def test_levels_that_are_merged_are_two_names_of_one() -> None:
    """Two adjacent levels as one are the two-sided outcome, where nothing else is left of them."""
    table = made_up(7)
    merged = [LEVELS[3] if each in LEVELS[2:] else LEVELS[0] for each in table["answer"]]
    two_sided = audit(table | {"answer": merged}, outcome="answer", negative=LEVELS[3])
    ordered = audit(table | {"answer": merged})
    for method in ordered.methods:
        one, two = ordered.findings(method, k=20), two_sided.findings(method, k=20)
        # θ - ½ is half of the difference of shares
        assert (2 * one["delta"]).tolist() == pytest.approx(two["delta_p"].tolist(), abs=1e-15)


def answer_of(frame: Any) -> list[str]:
    worth = 0.3 * np.asarray(frame["income"]) - 0.3 * np.asarray(frame["debt"])
    return list(np.select([worth > 0.8, worth > 0, worth > -0.8], LEVELS[:3], LEVELS[3]))


def test_a_decision_maker_returns_levels() -> None:
    table = made_up(10)
    found = audit(table, decision=answer_of, tau=0.05)
    would_be = found.counterfactuals()
    by_hand = answer_of(would_be)
    assert list(would_be["answer"]) == by_hand
    rows = found.findings("cf", k=8)
    for _, row in rows.iterrows():
        assert row["outcome_cf"] == by_hand[row["id"]]
        places = LEVELS.index(row["outcome"]), LEVELS.index(row["outcome_cf"])
        assert row["delta"] == float(better(*places)) - 0.5
        assert (row["verdict"] == "evidence") == (places[0] > places[1])
    recorded, decided = table["answer"], answer_of(table)
    assert found.disagreement == sum(map(str.__ne__, recorded, decided)) / 240 > 0.05
    again = audit(table, worldview=None, counterfactuals=would_be, tau=0.05)
    assert again.findings("cst_with", k=8).equals(found.findings("cst_with", k=8))
    with pytest.raises(DecisionError, match="Allowed are its levels"):
        audit(table, decision=lambda frame: ["perhaps"] * len(frame))
    with pytest.raises(PlanError, match="The decision grants or refuses"):
        audit(table, decision="income > 3")
    strange = {"income": table["income"], "debt": table["debt"], "answer": ["?"] * 240}
    with pytest.raises(PlanError, match="tells 3 levels apart, and 'answer' has 4"):
        audit(table, decision=mm.decision.with_threshold("income", [5, 3]))
    with pytest.raises(PlanError, match="the outcome has no order"):
        audit(
            table,
            outcome="answer",
            negative=["refused"],
            decision=mm.decision.with_threshold("income", [5, 3]),
        )
    cut = audit(table, decision=mm.decision.with_threshold("0.3 * (income - debt)", [0.8, 0, -0.8]))
    assert (cut.findings("cf", k=8)["outcome_cf"] == rows["outcome_cf"]).mean() > 0.95
    with pytest.raises(AlignmentError, match="none of its levels"):
        audit(table, worldview=None, counterfactuals=strange)


def test_open_counterfactuals_have_the_middle_level_of_their_draws() -> None:
    table = made_up(11)
    table["debt"] = [int(each) for each in table["debt"]]
    found = audit(
        table,
        worldview=mm.Worldview({"income": mm.Linear("woman"), "debt": mm.Count("woman")}),
        decision=answer_of,
        uncertainty=mm.Uncertainty(draws=5, refits=0, tipping=False),
    )
    drawn = found.ground.world.decided_parts
    assert drawn is not None
    assert drawn.shape[0] == 5
    rows = found.findings("cf", k=20)
    middle = np.sort(drawn, axis=0)[2]
    assert rows["outcome_cf"].tolist() == [LEVELS[each] for each in middle]
    case = found.case(int(rows["id"].iloc[0]))
    assert case.outcome_cf_share == float((drawn[:, 0] == middle[0]).mean())


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"negative": "refused"}, PlanError, "contradict each other"),
        ({"evidence": mm.Evidence(interval="welch")}, PlanError, "brunner-munzel"),
        ({"evidence": mm.Evidence(measure="risk-ratio")}, PlanError, "relative-effect"),
        ({"outcome": "answer"}, PlanError, "best_to_worst="),
        ({"similarity": mm.Similarity(distance="hvdm")}, PlanError, "how often people are refused"),
        ({"tau": 0.5}, PlanError, r"outside \[0, 0.5\)"),
        ({"outcome": mm.Ordered("answer", best_to_worst=LEVELS[:3])}, OutcomeError, "'refused'"),
        (
            {
                "outcome": "answer",
                "negative": LEVELS[3:],
                "evidence": mm.Evidence(interval="welch"),
            },
            PlanError,
            "one for scores",
        ),
    ],
)
def test_what_does_not_belong_to_an_order_is_refused(
    changes: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        audit(made_up(), **changes)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("abc", "takes a list"),
        ({"a", "b", "c"}, "takes a list"),
        (["a", "b", "a"], "more than once"),
        (["a", "b"], "2 levels"),
        (list(range(33)), "33 levels"),
    ],
)
def test_an_order_names_each_of_several_levels_once(given: Any, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        mm.Ordered("answer", best_to_worst=given)


def test_a_plan_is_checked_and_described_by_its_levels() -> None:
    table = made_up(15)
    plan = mm.plan(
        table, outcome=ANSWER, protected=WOMEN, attributes={"income": "continuous"}, ks=(20,)
    )
    found = plan.check()
    assert found.as_dict()["levels"] == {each: table["answer"].count(each) for each in LEVELS}
    assert "from the best to the worst: approved" in str(found)
    assert impact_ratios(audit(table))["selected"].sum() > 0
    with pytest.raises(PlanError, match="more than two values"):
        study_prevention(audit(table))
