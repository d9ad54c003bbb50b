"""The contract of a kind of outcome: codes, marks, comparisons and words fit each other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from inspect import getmembers
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mutandis.data.columns import Categories, Numbers
from mutandis.data.labels import Labels
from mutandis.engine.tally import Sums
from mutandis.outcomes import DECLARATIONS, declare, measure_named
from mutandis.outcomes.intervals import DEFAULT_INTERVAL
from mutandis.outcomes.outcome import Outcome, Rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS: Any = np.random.default_rng(3).integers(0, 4, 300)


@dataclass(frozen=True)
class Example:
    """A column of one kind, and how large Δ is between two groups of its values."""

    how: Any
    column: Any
    delta: Any  # from the codes of both groups

    def read(self) -> Outcome:
        return declare("y", **self.how).read(self.column)


def mean(values: NDArray[Any]) -> Fraction:
    return Fraction(int(values.sum()), len(values))


def effect(one: NDArray[Any], other: NDArray[Any]) -> Fraction:
    pairs = np.sign(np.subtract.outer(one, other)).sum()
    return Fraction(int(pairs), 2 * len(one) * len(other))


EXAMPLES = {
    "negative": Example(
        {"negative": "no"},
        Categories(ROWS % 2, ("no", "yes")),
        lambda one, other: mean(one) - mean(other),
    ),
    "worse": Example(
        {"worse": "lower"},
        Numbers(ROWS * 0.25 + 3),
        lambda one, other: (mean(one) - mean(other)) / 4,
    ),
    "best_to_worst": Example(
        {"best_to_worst": ["a", "b", "c", "d"]}, Categories(ROWS, ("a", "b", "c", "d")), effect
    ),
}


def sums(outcome: Outcome, rows: NDArray[np.intp]) -> Sums:
    marks = outcome.kind.marks(outcome.codes[rows]).astype(np.int64)
    return Sums.of(marks=marks.sum(axis=0, keepdims=True), places=np.array([len(rows)]))


def rule_of(outcome: Outcome, **changes: Any) -> Rule:
    declared = DECLARATIONS[next(iter(outcome.kind.declaration()))]
    settings: dict[str, Any] = {
        "kind": outcome.kind,
        "measure": declared.measure or measure_named("risk-difference"),
        "interval": declared.interval or DEFAULT_INTERVAL,
        "tau": Fraction(1, 10),
        "alpha": 0.05,
    }
    return Rule(**{**settings, **changes})


def test_every_kind_has_an_example() -> None:
    assert EXAMPLES.keys() == DECLARATIONS.keys()


@pytest.mark.parametrize("key", EXAMPLES)
def test_codes_marks_and_values_lead_back(key: str) -> None:
    outcome = EXAMPLES[key].read()
    kind, codes = outcome.kind, outcome.codes
    assert kind.marks(codes).shape == (len(codes), kind.width)
    assert kind.codes(kind.marks(codes)).tolist() == codes.tolist()
    again, known = kind.code(kind.column(codes))
    assert known.all()
    assert again.tolist() == codes.tolist()
    assert outcome.recorded(np.arange(5)).tolist() == kind.values(codes[:5]).tolist()
    assert outcome.take(np.array([3, 1])).codes.tolist() == codes[[3, 1]].tolist()
    assert declare(outcome.declaration.pop("column"), **kind.declaration()).column == "y"
    # several equal draws decide what each of them decides
    assert kind.pool([codes] * 3, codes).tolist() == codes.tolist()


@pytest.mark.parametrize("key", EXAMPLES)
def test_differences_are_exact_and_evidence_is_beyond_them(key: str) -> None:
    example = EXAMPLES[key]
    outcome, rng = example.read(), np.random.default_rng(5)
    for _ in range(20):
        rows = rng.permutation(300)[:70]
        groups = rows[:30], rows[30:]
        delta = example.delta(*(outcome.codes[each].astype(int) for each in groups))
        control, test = (sums(outcome, each) for each in groups)
        assert outcome.kind.differences(control, test)[0] == float(delta)
        for tau in (abs(delta), abs(delta) - Fraction(1, 10**9)):
            rule = rule_of(outcome, tau=tau)
            found = outcome.kind.compare(control, test, rule, depth="bounds")
            assert bool(found.evidence[0]) == (delta > tau)
            assert found.interval.low[0] <= found.delta_p[0] <= found.interval.high[0]
            bounded = found.interval.low[0] >= float(tau)
            assert (found.interval.p_value[0] <= rule.alpha) == bounded
        tested = outcome.kind.compare(control, test, rule, depth="significance")
        assert tested.interval.p_value[0] == found.interval.p_value[0]
        asked = outcome.kind.compare(control, test, rule, depth="evidence")
        assert (asked.evidence[0], np.isnan(asked.interval.p_value[0])) == (found.evidence[0], True)


@pytest.mark.parametrize("key", EXAMPLES)
def test_a_case_of_ones_own_is_against_people_who_are_treated_better(key: str) -> None:
    outcome = EXAMPLES[key].read()
    codes = np.array([outcome.codes.max(), outcome.codes.min()])
    best, worst = (np.flatnonzero(outcome.codes == code) for code in codes[::-1])
    matches = Sums.join([sums(outcome, best), sums(outcome, worst)])
    shown, answer = outcome.kind.own_case(codes, matches, rule_of(outcome))
    assert answer.tolist() == [True, False]
    assert not np.isnan(shown).any()
    _, absent = outcome.kind.own_case(
        codes[:1], Sums.of(marks=matches.marks[:1] * 0, places=np.zeros(1, int)), rule_of(outcome)
    )
    assert absent.tolist() == [None]
    against = outcome.kind.against(shown)
    assert against[0] >= against[1]


@pytest.mark.parametrize("key", EXAMPLES)
def test_findings_have_names_of_their_own_and_plain_ones(key: str) -> None:
    kind = EXAMPLES[key].read().kind
    plain = {"p_control": 1, "p_test": 2, "delta_p": 3, "p_own": 4, "verdict": "x"}
    named = {kind.renamed.get(name, name): value for name, value in plain.items()}
    assert kind.plain(named) == plain


@pytest.mark.parametrize("key", EXAMPLES)
def test_every_word_names_the_outcome_by_its_label(key: str) -> None:
    outcome = EXAMPLES[key].read()
    words = outcome.kind.words("y", Labels(columns={"y": "the-label"}))
    value = outcome.kind.values(outcome.codes[:1])[0]
    texts = [
        *(text for name, text in getmembers(words, lambda each: isinstance(each, str))),
        words.no_evidence(worse=True),
        words.had(value),
        words.counterfactual(value, value),
        words.in_groups(0.25, 0.5),
        words.changed(outcome.codes, outcome.codes, drawn=False),
        words.own_matches(0.25, has_case=True, worse=True, tau=0.1),
        words.averages(0.25, 0.5)[1],
        words.delta(0.25),
        words.facts(outcome)[0],
    ]
    assert all(text for text in texts)
    assert "the-label" in words.worse + words.definition + words.caption
    assert words.difference(float("nan")) == words.average(None) == "–"
    assert words.average("as it is") == "as it is"
