"""b(X) beside the recorded outcomes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data.outcome import Outcome
from mutandis.decision.agreement import compare_with_record


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
