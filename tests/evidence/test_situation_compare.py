"""The comparison of two groups: exact evidence, and what belongs to it."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from mutandis.evidence.intervals import Interval, no_interval, wald
from mutandis.evidence.methods import METHODS, Center
from mutandis.evidence.semantics import PAPER_DEFINITIONS
from mutandis.search.share import Share

if TYPE_CHECKING:
    from mutandis.evidence.comparison import Comparison


def share(parts: list[tuple[int, int, int]]) -> Share:
    """Make shares from (negatives, size, split)."""
    negatives, size, split = (
        np.array(column, dtype=np.int64) for column in zip(*parts, strict=True)
    )
    return Share(negatives=negatives, size=size, split=split)


def compared(
    control: list[tuple[int, int, int]], test: list[tuple[int, int, int]], *, tau: float = 0.0
) -> Comparison:
    return PAPER_DEFINITIONS.compare(
        share(control), share(test), tau=tau, alpha=0.05, interval=wald
    )


def test_equal_evidence_is_no_evidence_whatever_the_denominators() -> None:
    # 1/3 against 5/15 and 7/21 of shared places; floats of 1/10 + 2/10 would differ from 3/10
    found = compared([(1, 3, 1), (5, 15, 1), (3, 10, 1)], [(7, 3, 7), (1, 3, 1), (9, 10, 3)])
    assert found.delta_p.tolist() == [0, 0, 0]
    assert not found.evidence.any()
    assert not found.significant.any()


def test_tau_is_the_decimal_that_was_written() -> None:
    # Δp is exactly 1/10, and 0.1 as a float is a little more than that
    control, test = [(4, 10, 1), (401, 1000, 1)], [(3, 10, 1), (3, 10, 1)]
    assert compared(control, test, tau=0.1).evidence.tolist() == [False, True]
    assert compared(control, test, tau=0.09).evidence.tolist() == [True, True]
    # nine tenths minus six tenths is 0.30000000000000004 in floats
    assert compared([(9, 10, 1)], [(6, 10, 1)], tau=0.3).evidence.tolist() == [False]


def test_the_smallest_difference_is_evidence() -> None:
    large = 10**6 + 3
    found = compared([(large + 1, 1, 2 * large)], [(1, 2, 1)])
    assert Fraction(large + 1, 2 * large) - Fraction(1, 2) == Fraction(1, 2 * large)
    assert found.evidence.tolist() == [True]
    assert found.delta_p.tolist() == [1 / (2 * large)]


def test_exchanging_the_groups_mirrors_everything() -> None:
    rng = np.random.default_rng(3)
    shares = [
        [(int(rng.integers(0, size * split + 1)), size, split) for size, split in pairs]
        for pairs in rng.integers(1, 30, (2, 500, 2)).tolist()
    ]
    here, there = compared(shares[0], shares[1]), compared(shares[1], shares[0])
    assert here.delta_p.tolist() == (-there.delta_p).tolist()
    assert here.interval.low.tolist() == (-there.interval.high).tolist()
    assert not (here.evidence & there.evidence).any()
    assert (here.evidence | there.evidence).tolist() == (here.delta_p != 0).tolist()


@pytest.mark.parametrize("tau", [0.0, 0.1, 0.25])
def test_significant_means_p_below_alpha_and_bound_above_tau(tau: float) -> None:
    shares = [(n, 15, 1) for n in range(16)]
    pairs = [(control, test) for control in shares for test in shares]
    found = compared([control for control, _ in pairs], [test for _, test in pairs], tau=tau)
    assert found.significant.tolist() == (found.interval.p_value <= 0.05).tolist()
    assert found.significant.tolist() == (found.evidence & (found.interval.low >= tau)).tolist()
    assert (found.evidence | ~found.significant).all()


def test_at_the_level_itself_the_test_rejects() -> None:
    """Significant ⇔ p ≤ α, and never without evidence."""

    def fixed(control: Share, test: Share, *, tau: float, alpha: float) -> Interval:
        values = np.array([alpha, np.nextafter(alpha, 1), alpha])
        return Interval(
            low=values, high=values, p_value=values, degenerate=np.zeros(3, dtype=np.bool_)
        )

    found = PAPER_DEFINITIONS.compare(
        share([(2, 2, 1), (2, 2, 1), (1, 2, 1)]),
        share([(1, 2, 1), (1, 2, 1), (1, 2, 1)]),
        tau=0.0,
        alpha=0.05,
        interval=fixed,
    )
    assert found.significant.tolist() == [True, False, False]


def test_centers_alone_give_evidence_and_no_interval() -> None:
    found = PAPER_DEFINITIONS.compare(
        share([(1, 1, 1), (1, 1, 1), (0, 1, 1), (0, 1, 1)]),
        share([(0, 1, 1), (1, 1, 1), (0, 1, 1), (1, 1, 1)]),
        tau=0.0,
        alpha=0.05,
        interval=no_interval,
    )
    assert found.delta_p.tolist() == [1, 0, 0, -1]
    assert found.evidence.tolist() == [True, False, False, False]
    assert not found.significant.any()
    bounds = found.interval
    assert np.isnan([bounds.low, bounds.high, bounds.p_value]).all()


def test_the_four_methods_are_four_choices() -> None:
    assert list(METHODS) == ["st", "cst_without", "cst_with", "cf"]
    choices = [
        (method.center, method.count_neighbours, method.count_centers)
        for method in METHODS.values()
    ]
    assert choices == [
        (Center.FACTUAL, True, False),
        (Center.COUNTERFACTUAL, True, False),
        (Center.COUNTERFACTUAL, True, True),
        (Center.COUNTERFACTUAL, False, True),
    ]
    assert [m.needs_counterfactual for m in METHODS.values()] == [False, True, True, True]
    assert [m.needs_counterfactual_outcome for m in METHODS.values()] == [False, False, True, True]
