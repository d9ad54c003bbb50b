"""b(X) beside the recorded outcomes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data.outcome import Outcome
from mutandis.data.score import Score
from mutandis.decision.agreement import compare_scaled_with_record, compare_with_record


def test_the_four_counts() -> None:
    recorded = np.array([True] * 5 + [False] * 4)
    decided = np.array([True, True, True, False, False, True, False, False, False])
    outcome = Outcome(column="granted", negative=0, positive=1, is_negative=recorded)
    found = compare_with_record(outcome, decided)
    assert found.records() == [
        {"recorded": 0, "decided_negative": 3, "decided_positive": 2, "rows": 5},
        {"recorded": 1, "decided_negative": 1, "decided_positive": 3, "rows": 4},
    ]
    assert found.disagreement == 3 / 9


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_the_counts_are_those_of_a_table(pairs: list[tuple[bool, bool]]) -> None:
    recorded, decided = (np.array(each) for each in zip(*pairs, strict=True))
    outcome = Outcome(column="granted", negative="no", positive="yes", is_negative=recorded)
    found = compare_with_record(outcome, decided)
    assert found.counts() == {
        "both_negative": pairs.count((True, True)),
        "both_positive": pairs.count((False, False)),
        "only_recorded_negative": pairs.count((True, False)),
        "only_decided_negative": pairs.count((False, True)),
    }
    assert found.rows == len(pairs)
    assert found.disagreement == float((recorded != decided).mean())


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3))
def test_scores_leave_a_part_of_the_record_open(pairs: list[tuple[int, int]]) -> None:
    pairs = [(0, 1), (3, 2), *pairs]
    recorded, decided = (np.array(each, dtype=np.float64) for each in zip(*pairs, strict=True))
    outcome = Outcome.of_score(Score("rate", worse="lower"), recorded, finest=True)
    assert outcome.scale is not None
    found = compare_scaled_with_record(outcome, outcome.scale.count(decided))  # type: ignore[union-attr]
    mean = Fraction(sum(y for y, _ in pairs), len(pairs))
    spread = sum(((y - mean) ** 2 for y, _ in pairs), Fraction(0))
    apart = sum(Fraction(b - y) ** 2 for y, b in pairs)
    assert found.disagreement == float(apart / spread)
    assert found.better == sum(b > y for y, b in pairs)
    assert found.worse == sum(b < y for y, b in pairs)
    order = np.random.default_rng(0).permutation(len(pairs))
    assert found == compare_scaled_with_record(
        outcome.take(order),
        outcome.scale.count(decided)[order],  # type: ignore[union-attr]
    )
