"""The comparison of two groups: exact evidence, each different pair of shares once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from mutandis.engine.tally import METHODS, Center, Sums
from mutandis.outcomes.binary import REFUSED, BinaryKind
from mutandis.outcomes.intervals import (
    INTERVALS,
    Interval,
)
from mutandis.outcomes.measures import RISK_DIFFERENCE
from mutandis.outcomes.outcome import Comparison, Rule
from mutandis.verdicts import compare as compare_module
from mutandis.verdicts.compare import Adjustment, adjust, compare

if TYPE_CHECKING:
    from mutandis.outcomes.outcome import Depth, Direction


RULE = Rule(
    kind=REFUSED,
    measure=RISK_DIFFERENCE,
    interval="miettinen-nurminen",
    tau=Fraction(0),
    alpha=0.05,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spy(BinaryKind):
    """Notes how many pairs are compared at a time."""

    seen: list[int]

    def compare(self, control: Sums, test: Sums, rule: Rule, *, depth: Depth) -> Comparison:
        self.seen.append(len(control.places))
        return BinaryKind.compare(self, control, test, rule, depth=depth)


def share(parts: list[tuple[int, int, int]]) -> Sums:
    """Make shares from (negatives, size, split)."""
    negatives, size, split = (
        np.array(column, dtype=np.int64) for column in zip(*parts, strict=True)
    )
    return Sums.of(marks=negatives, places=size, parts=split)


def compared(
    control: list[tuple[int, int, int]], test: list[tuple[int, int, int]], *, tau: float = 0.0
) -> Comparison:
    rule = replace(RULE, interval="wald", tau=Fraction(str(tau)))
    return REFUSED.compare(share(control), share(test), rule, depth="bounds")


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
    p_value = np.array([0.05, np.nextafter(0.05, 1), 0.05])
    evidence = np.array([True, True, False])
    found = Comparison.of(np.ones(3), evidence, Interval.without_bounds(p_value), alpha=0.05)
    assert found.significant.tolist() == [True, False, False]


def test_centers_alone_give_evidence_and_no_interval() -> None:
    found = REFUSED.compare(
        share([(1, 1, 1), (1, 1, 1), (0, 1, 1), (0, 1, 1)]),
        share([(0, 1, 1), (1, 1, 1), (0, 1, 1), (1, 1, 1)]),
        RULE,
        depth="evidence",
    )
    assert found.delta_p.tolist() == [1, 0, 0, -1]
    assert found.evidence.tolist() == [True, False, False, False]
    assert not found.significant.any()
    bounds = found.interval
    assert np.isnan([bounds.low, bounds.high, bounds.p_value]).all()


def test_the_methods_are_four_choices() -> None:
    assert list(METHODS) == ["st", "cst_without", "cst_with", "cf", "cst_matched"]
    choices = [
        (method.center, method.count_neighbours, method.count_centers, method.matched)
        for method in METHODS.values()
    ]
    assert choices == [
        (Center.FACTUAL, True, False, False),
        (Center.COUNTERFACTUAL, True, False, False),
        (Center.COUNTERFACTUAL, True, True, False),
        (Center.COUNTERFACTUAL, False, True, False),
        (Center.COUNTERFACTUAL, True, False, True),
    ]
    assert [m.needs_counterfactual for m in METHODS.values()] == [False, True, True, True, True]
    decided = [m.name for m in METHODS.values() if m.needs_counterfactual_outcome]
    assert decided == ["cst_with", "cf"]


# --- distinct pairs -------------------------------------------------------------------------


def random_shares(seed: int, rows: int, sizes: list[int], splits: list[int]) -> tuple[Sums, Sums]:
    rng = np.random.default_rng(seed)

    def draw() -> Sums:
        size, split = rng.choice(sizes, rows), rng.choice(splits, rows)
        return Sums.of(marks=rng.integers(0, size * split + 1), places=size, parts=split)

    return draw(), draw()


def alone(share: Sums, row: int) -> Sums:
    return Sums.of(
        marks=share.marks[:, 0][[row]], places=share.places[[row]], parts=share.parts[:, 0][[row]]
    )


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
    method = INTERVALS[name]
    together = method(control, test, tau=0.0, alpha=0.05)
    for row in range(30):
        single = method(alone(control, row), alone(test, row), tau=0.0, alpha=0.05)
        for part in ("low", "high", "p_value", "degenerate"):
            np.testing.assert_array_equal(getattr(together, part)[[row]], getattr(single, part))


@pytest.mark.parametrize("direction", ["negative", "positive"])
def test_blocks_are_compared_as_all_together(
    direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, test = random_shares(3, 50, [15, 16], [1, 2, 6])
    rule = replace(RULE, direction=direction)
    together = compare(control, test, rule)
    monkeypatch.setattr(compare_module, "_BLOCK", 7)
    apart = compare(control, test, rule)
    for name in ("delta_p", "evidence", "significant", "insufficient"):
        np.testing.assert_array_equal(getattr(apart, name), getattr(together, name))
    for name in ("low", "high", "p_value", "degenerate"):
        found, expected = (getattr(each.interval, name) for each in (apart, together))
        np.testing.assert_array_equal(found, expected)


def test_equal_pairs_are_computed_once() -> None:
    seen: list[int] = []
    spy = replace(RULE, kind=Spy(seen=seen), interval="wald")
    control, test = random_shares(0, 5000, [4], [1])
    found = compare(control, test, spy)
    np.testing.assert_array_equal(found.delta_p, control.mean() - test.mean())
    # 2/4 and 1/2 of a place are the same
    halves, quarters = (
        Sums.of(marks=n * np.ones(9, dtype=int), places=np.full(9, 4), parts=np.full(9, n))
        for n in (2, 4)
    )
    both = Sums.of(
        marks=np.concatenate([halves.marks[:, 0], quarters.marks[:, 0]]),
        places=np.concatenate([halves.places, quarters.places]),
        parts=np.concatenate([halves.parts[:, 0], quarters.parts[:, 0]]),
    )
    compare(both, both, spy)
    assert seen == [25, 1]


@pytest.mark.parametrize("name", INTERVALS)
def test_nobody_at_all(name: str) -> None:
    nobody = np.array([], dtype=np.int64)
    share = Sums.of(marks=nobody, places=nobody, parts=nobody)
    found = INTERVALS[name](share, share, tau=0.0, alpha=0.05)
    assert [len(part) for part in (found.low, found.high, found.p_value, found.degenerate)] == [
        0,
        0,
        0,
        0,
    ]


@pytest.mark.parametrize("name", INTERVALS)
@pytest.mark.parametrize("splits", [[1], [1, 2, 6]])
def test_a_test_without_bounds_has_the_same_p_values(name: str, splits: list[int]) -> None:
    control, test = random_shares(7, 200, [15, 16], splits)
    options = {"tau": 0.0, "alpha": 0.05}
    expected = INTERVALS[name](control, test, **options)
    found = INTERVALS[name](control, test, bounds=False, **options)
    assert found.p_value.tolist() == expected.p_value.tolist()


def test_integers_beyond_an_array_are_compared_once_and_each_gets_her_own() -> None:
    rng = np.random.default_rng(12)
    size, kinds = 400, 25
    kind = rng.integers(0, kinds, size)
    split = np.array([3**45 + int(each) for each in rng.integers(0, 3, kinds)], dtype=object)
    test = Sums.of(
        marks=(split * rng.integers(0, 11, kinds))[kind],
        places=np.full(size, 10),
        parts=split[kind],
        people=np.array([7.5, 9.25])[kind % 2],
        doubt=np.array([0.0, 1e-4, 2e-4])[kind % 3],
    )
    control = share([(int(n), 10, 1) for n in rng.integers(0, 11, size)])
    insufficient = rng.random(size) < 0.3
    asked: list[int] = []

    rule = replace(RULE, kind=Spy(seen=asked), tau=Fraction("0.1"))
    found = compare(control, test, rule, depth="significance", insufficient=insufficient)
    assert asked[0] < size - insufficient.sum()
    for place in range(size):
        one = np.array([place])
        enough = insufficient[one]
        pair = control.take(one), test.take(one)
        alone = compare(*pair, rule, depth="significance", insufficient=enough)
        for name in ("delta_p", "evidence", "significant", "insufficient"):
            ours, expected = getattr(found, name)[place], getattr(alone, name)[0]
            np.testing.assert_array_equal(ours, expected)
        np.testing.assert_array_equal(found.interval.p_value[place], alone.interval.p_value[0])
    assert found.significant.any()
    assert (found.evidence & ~found.significant).any()


# --- many complainants at once --------------------------------------------------------------------

p_values = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.5, 1.0, float("nan")])), max_size=25
)


def test_by_hand() -> None:
    # ranks 1 … 5 of 5: .05, .0525 → .05, .05, .0625, .2
    found = adjust(np.array([0.2, 0.01, 0.03, 0.021, 0.05]), method="benjamini-hochberg")
    assert found == pytest.approx([0.2, 0.05, 0.05, 0.05, 0.0625])


@given(p_values)
def test_missing_p_values_stay_missing_and_do_not_count(values: list[float]) -> None:
    array = np.array(values, dtype=np.float64)
    found = adjust(array, method="benjamini-hochberg")
    known = ~np.isnan(array)
    np.testing.assert_array_equal(np.isnan(found), ~known)
    np.testing.assert_array_equal(found[known], adjust(array[known], method="benjamini-hochberg"))


def test_none_adjusts_nothing_and_copies() -> None:
    given_values = np.array([0.3, np.nan, 0.1])
    found = adjust(given_values, method="none")
    np.testing.assert_array_equal(found, given_values)
    found[0] = 9.0
    assert given_values[0] == 0.3


def slow_holm(values: list[float]) -> list[float]:
    """For each p-value: the largest of p times the number not smaller, over all not larger."""
    known = [value for value in values if not np.isnan(value)]
    return [
        min(1.0, max(p * sum(other >= p for other in known) for p in known if p <= value))
        if not np.isnan(value)
        else float("nan")
        for value in values
    ]


@given(p_values)
def test_holm_follows_the_definition(values: list[float]) -> None:
    found = adjust(np.array(values), method="holm")
    np.testing.assert_allclose(found, slow_holm(values), rtol=1e-12)


@pytest.mark.parametrize(
    ("method", "theirs"), [("benjamini-hochberg", "bh"), ("benjamini-yekutieli", "by")]
)
@given(values=p_values)
def test_scipy_gives_the_same_bits(
    method: Adjustment, theirs: Literal["bh", "by"], values: list[float]
) -> None:
    known = np.array([value for value in values if not np.isnan(value)])
    expected = false_discovery_control(known, method=theirs)
    assert adjust(known, method=method).tolist() == expected.tolist()
