"""Wald intervals: the paper's numbers, statsmodels, and the invariants between bound and test."""

from __future__ import annotations

from math import erfc, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import elementwise

from mutandis.engine.tally import Sums
from mutandis.outcomes.intervals import INTERVALS, find_crossing, wald

if TYPE_CHECKING:
    from mutandis.outcomes.intervals import Interval

Z_95 = 1.6448536269514722


def share(*negatives: int, size: int) -> Sums:
    count = len(negatives)
    return Sums.of(
        marks=np.array(negatives, dtype=np.int64),
        places=np.full(count, size, dtype=np.int64),
        parts=np.ones(count, dtype=np.int64),
    )


def normal_tail(z: float) -> float:
    """The probability of a standard normal variable above z."""
    return erfc(z / sqrt(2)) / 2


def one(
    control: int, test: int, *, n_control: int, n_test: int, tau: float = 0.0, alpha: float = 0.05
) -> Interval:
    return wald(share(control, size=n_control), share(test, size=n_test), tau=tau, alpha=alpha)


def test_the_numbers_of_the_paper() -> None:
    # p_c = .8125, p_t = 0, n = 16: .8125 ± 1.645·sqrt(.8125·.1875/16) = [.65, .97]
    found = one(13, 0, n_control=16, n_test=16)
    margin = Z_95 * sqrt(0.8125 * 0.1875 / 16)
    assert found.low[0] == pytest.approx(0.8125 - margin, abs=1e-12)
    assert found.high[0] == pytest.approx(0.8125 + margin, abs=1e-12)
    assert (round(float(found.low[0]), 2), round(float(found.high[0]), 2)) == (0.65, 0.97)
    assert not found.degenerate[0]


def test_variances_add() -> None:
    # 8/10 against 3/10: 0.5 ± 1.645·sqrt(.016 + .021)
    found = one(8, 3, n_control=10, n_test=10)
    assert found.low[0] == pytest.approx(0.5 - Z_95 * sqrt(0.016 + 0.021), abs=1e-12)


def test_agrees_with_statsmodels() -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    for n_control, n_test in ((5, 5), (15, 16), (31, 101)):
        counts = [(c, t) for c in range(n_control + 1) for t in range(n_test + 1)]
        control = share(*(c for c, _ in counts), size=n_control)
        test = share(*(t for _, t in counts), size=n_test)
        found = wald(control, test, tau=0.0, alpha=0.05)
        low, high = proportion.confint_proportions_2indep(
            np.array([c for c, _ in counts]),
            n_control,
            np.array([t for _, t in counts]),
            n_test,
            method="wald",
            compare="diff",
            alpha=0.10,  # two-sided there: 5 % on each side
        )
        np.testing.assert_allclose(found.low, low, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.high, high, rtol=0, atol=1e-12)


@pytest.mark.parametrize("tau", [0.0, 0.1, -0.2])
def test_the_p_value_is_a_normal_tail(tau: float) -> None:
    for control in range(1, 15):
        found = one(control, 4, n_control=15, n_test=20, tau=tau)
        p_control, p_test = control / 15, 4 / 20
        error = sqrt(p_control * (1 - p_control) / 15 + p_test * (1 - p_test) / 20)
        expected = normal_tail((p_control - p_test - tau) / error)
        assert found.p_value[0] == pytest.approx(expected, rel=1e-9)


def test_places_that_are_shared_do_not_count_as_more_people() -> None:
    """n stays k under fair ties: the width is that of k people, however many rows share."""
    few = share(8, size=16)
    many = Sums.of(marks=np.array([8 * 50]), places=np.array([16]), parts=np.array([50]))
    test = share(3, size=16)
    one_way, other = (wald(c, test, tau=0.0, alpha=0.05) for c in (few, many))
    assert (one_way.low[0], one_way.p_value[0]) == (other.low[0], other.p_value[0])


@pytest.mark.parametrize(
    ("control", "test", "tau", "p_value"),
    [
        (0, 0, 0.0, 0.5),
        (16, 16, 0.0, 0.5),
        (16, 0, 0.0, 0.0),
        (0, 16, 0.0, 1.0),
        (0, 0, 0.1, 1.0),
        (16, 0, 1.0, 0.5),
    ],
)
def test_without_variance_the_interval_is_degenerate(
    control: int, test: int, tau: float, p_value: float
) -> None:
    found = one(control, test, n_control=16, n_test=16, tau=tau)
    assert found.degenerate.tolist() == [True]
    assert found.low[0] == found.high[0] == (control - test) / 16
    assert found.p_value[0] == p_value


def test_a_difference_of_exactly_tau_has_an_even_p_value() -> None:
    # 3/10 - 2/10 is one tenth, although 0.3 - 0.2 is not 0.1
    assert one(3, 2, n_control=10, n_test=10, tau=0.1).p_value[0] == 0.5


sizes = st.integers(2, 120)


@settings(max_examples=400)
@given(
    sizes,
    sizes,
    st.data(),
    st.sampled_from([0.0, 0.05, 0.1, 0.25]),
    st.sampled_from([0.001, 0.01, 0.05, 0.1, 0.25, 0.49]),
)
def test_significant_by_p_value_is_significant_by_bound(
    n_control: int, n_test: int, data: st.DataObject, tau: float, alpha: float
) -> None:
    control = data.draw(st.integers(0, n_control))
    test = data.draw(st.integers(0, n_test))
    found = one(control, test, n_control=n_control, n_test=n_test, tau=tau, alpha=alpha)
    assume(not found.degenerate[0])
    assert (found.p_value[0] <= alpha) == (found.low[0] >= tau)
    # and at this level there is evidence too: chance is not asked about less than τ
    if found.p_value[0] <= alpha:
        assert control * n_test - test * n_control > tau * n_control * n_test
    assert found.low[0] < found.high[0]
    assert 0 <= found.p_value[0] <= 1


@given(sizes, sizes, st.data())
def test_exchanging_the_groups_mirrors_everything(
    n_control: int, n_test: int, data: st.DataObject
) -> None:
    control = data.draw(st.integers(0, n_control))
    test = data.draw(st.integers(0, n_test))
    here = one(control, test, n_control=n_control, n_test=n_test)
    there = one(test, control, n_control=n_test, n_test=n_control)
    assert there.low[0] == -here.high[0]
    assert there.high[0] == -here.low[0]
    assert there.p_value[0] == pytest.approx(1 - here.p_value[0], abs=1e-12)
    assert there.degenerate[0] == here.degenerate[0]


@given(sizes, st.data(), st.sampled_from([0.001, 0.05, 0.2]))
def test_a_stricter_level_widens_the_interval(n: int, data: st.DataObject, alpha: float) -> None:
    control = data.draw(st.integers(1, n - 1))
    wide = one(control, 1, n_control=n, n_test=n, alpha=alpha / 2)
    narrow = one(control, 1, n_control=n, n_test=n, alpha=alpha)
    assert wide.low[0] < narrow.low[0] <= narrow.high[0] < wide.high[0]


def test_complainants_do_not_influence_each_other() -> None:
    together = wald(share(0, 8, 16, size=16), share(0, 3, 0, size=16), tau=0.0, alpha=0.05)
    alone = one(8, 3, n_control=16, n_test=16)
    assert (together.low[1], together.p_value[1]) == (alone.low[0], alone.p_value[0])
    assert together.degenerate.tolist() == [True, False, True]


def test_large_groups_with_large_splits_keep_their_precision() -> None:
    """Denominators of 1e12: Python's integers take over, the interval stays an array of floats."""
    million = np.array([10**6])
    control = Sums.of(marks=np.array([6 * 10**11]), places=million, parts=million)
    test = Sums.of(marks=np.array([4 * 10**11]), places=million, parts=million)
    found = wald(control, test, tau=0.0, alpha=0.05)
    margin = Z_95 * sqrt(2 * 0.24 / 10**6)
    assert found.low.dtype == found.p_value.dtype == np.float64
    assert found.low[0] == pytest.approx(0.2 - margin, abs=1e-12)


def test_intervals_go_by_name() -> None:
    assert INTERVALS["wald"] is wald


@pytest.mark.parametrize("size", [1, 2, 500])
def test_curves_cross_zero_where_scipy_finds_it(size: int) -> None:
    rng = np.random.default_rng(size)
    root, steep, bend = rng.uniform(-1, 1, size), rng.uniform(0.1, 30, size), rng.random(size)

    def falling(x: Any, root: Any, steep: Any, bend: Any) -> Any:
        return np.clip(steep * (root - x) * (bend + (root - x) ** 2) ** 2, -50, 50)

    found = find_crossing(falling, -1.0, 2.0, (root, steep, bend))
    expected = elementwise.find_root(
        falling, (np.full(size, -1.0), np.full(size, 2.0)), args=(root, steep, bend)
    )
    assert np.abs(falling(found, root, steep, bend)).max() < 1e-9
    assert found == pytest.approx(expected.x, abs=1e-12)
    # curves that lie on one side of zero end where the bracket does
    assert find_crossing(falling, -4.0, -2.0, (root, steep, bend)).tolist() == [-2.0] * size
    assert find_crossing(falling, 2.0, 4.0, (root, steep, bend)).tolist() == [2.0] * size
