"""b(X) beside the recorded outcomes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data.columns import Numbers
from mutandis.decision.agreement import compare_with_record
from mutandis.outcomes.binary import BinaryKind
from mutandis.outcomes.outcome import Outcome
from mutandis.outcomes.score import Score


def test_the_four_counts() -> None:
    recorded = np.array([True] * 5 + [False] * 4)
    decided = np.array([True, True, True, False, False, True, False, False, False])
    outcome = Outcome(
        column="granted",
        kind=BinaryKind(negative=0, positive=1),
        codes=recorded,
    )
    found = compare_with_record(outcome, decided)
    assert found.counts_of_sides() == ((3, 2), (1, 3))
    assert found.disagreement == 3 / 9


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_the_counts_are_those_of_a_table(pairs: list[tuple[bool, bool]]) -> None:
    recorded, decided = (np.array(each) for each in zip(*pairs, strict=True))
    outcome = Outcome(
        column="granted",
        kind=BinaryKind(negative="no", positive="yes"),
        codes=recorded,
    )
    found = compare_with_record(outcome, decided)
    assert found.counts_of_sides() == (
        (pairs.count((True, True)), pairs.count((True, False))),
        (pairs.count((False, True)), pairs.count((False, False))),
    )
    assert found.rows == len(pairs)
    assert found.disagreement == float((recorded != decided).mean())


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3))
def test_scores_leave_a_part_of_the_record_open(pairs: list[tuple[int, int]]) -> None:
    pairs = [(0, 1), (3, 2), *pairs]
    recorded, decided = (np.array(each, dtype=np.float64) for each in zip(*pairs, strict=True))
    outcome = Score("rate", worse="lower").read(Numbers(recorded), finest=True)
    codes, _ = outcome.kind.code(Numbers(decided))
    found = compare_with_record(outcome, codes)
    mean = Fraction(sum(y for y, _ in pairs), len(pairs))
    spread = sum(((y - mean) ** 2 for y, _ in pairs), Fraction(0))
    apart = sum(Fraction(b - y) ** 2 for y, b in pairs)
    assert found.disagreement == float(apart / spread)
    assert found.better == sum(b > y for y, b in pairs)
    assert found.worse == sum(b < y for y, b in pairs)
    order = np.random.default_rng(0).permutation(len(pairs))
    assert found == compare_with_record(outcome.take(order), codes[order])
