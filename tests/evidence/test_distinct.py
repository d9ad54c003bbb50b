"""Looking at each different pair of shares once changes nothing but the time it takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutandis.evidence.comparison import Comparison, compare
from mutandis.evidence.intervals import INTERVALS, TESTS
from mutandis.evidence.semantics import PAPER_DEFINITIONS
from mutandis.search.share import Share


def random_shares(seed: int, rows: int, sizes: list[int], splits: list[int]) -> tuple[Share, Share]:
    rng = np.random.default_rng(seed)

    def draw() -> Share:
        size, split = rng.choice(sizes, rows), rng.choice(splits, rows)
        return Share(negatives=rng.integers(0, size * split + 1), size=size, split=split)

    return draw(), draw()


def alone(share: Share, row: int) -> Share:
    return Share(negatives=share.negatives[[row]], size=share.size[[row]], split=share.split[[row]])


@pytest.mark.parametrize("name", INTERVALS)
@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 1000),
    sizes=st.sampled_from([[4], [15], [3, 4], [2000]]),
    splits=st.sampled_from([[1], [1, 2, 6]]),
)
def test_together_is_as_one_by_one(
    name: str, seed: int, sizes: list[int], splits: list[int]
) -> None:
    control, test = random_shares(seed, 30, sizes, splits)
    method = INTERVALS[name]  # type: ignore[index]
    together = method(control, test, tau=0.0, alpha=0.05)
    for row in range(30):
        single = method(alone(control, row), alone(test, row), tau=0.0, alpha=0.05)
        for part in ("low", "high", "p_value", "degenerate"):
            np.testing.assert_array_equal(getattr(together, part)[[row]], getattr(single, part))


def test_equal_pairs_are_computed_once() -> None:
    seen = []

    def spy(control: Share, test: Share) -> Comparison:
        seen.append(len(control.size))
        return PAPER_DEFINITIONS.compare(
            control, test, tau=0.0, alpha=0.05, interval=INTERVALS["wald"]
        )

    control, test = random_shares(0, 5000, [4], [1])
    found = compare(control, test, spy)
    np.testing.assert_array_equal(found.delta_p, control.values() - test.values())
    # 2/4 and 1/2 of a place are the same
    halves, quarters = (
        Share(negatives=n * np.ones(9, dtype=int), size=np.full(9, 4), split=np.full(9, n))
        for n in (2, 4)
    )
    both = Share(
        negatives=np.concatenate([halves.negatives, quarters.negatives]),
        size=np.concatenate([halves.size, quarters.size]),
        split=np.concatenate([halves.split, quarters.split]),
    )
    compare(both, both, spy)
    assert seen == [25, 1]


@pytest.mark.parametrize("name", INTERVALS)
def test_nobody_at_all(name: str) -> None:
    nobody = np.array([], dtype=np.int64)
    share = Share(negatives=nobody, size=nobody, split=nobody)
    found = INTERVALS[name](share, share, tau=0.0, alpha=0.05)  # type: ignore[index]
    assert [len(part) for part in (found.low, found.high, found.p_value, found.degenerate)] == [
        0,
        0,
        0,
        0,
    ]


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("splits", [[1], [1, 2, 6]])
def test_a_test_without_bounds_has_the_same_p_values(name: str, splits: list[int]) -> None:
    control, test = random_shares(7, 200, [15, 16], splits)
    options = {"tau": 0.0, "alpha": 0.05}
    expected = INTERVALS[name](control, test, **options)  # type: ignore[index]
    found = TESTS[name](control, test, **options)  # type: ignore[index]
    assert found.p_value.tolist() == expected.p_value.tolist()
