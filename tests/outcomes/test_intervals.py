"""Intervals against recomputed examples, likelihood, statsmodels and their own invariants."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import elementwise, minimize_scalar
from scipy.stats import norm

from mutandis.engine.tally import Sums
from mutandis.outcomes.intervals import (
    INTERVALS,
    Shares,
    constrained_shares,
    find_crossing,
    score_statistic,
    wald,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# (refused in control, of, refused in test, of): the examples of Newcombe (1998), Table II
PAIRS = {
    "a": (56, 70, 48, 80),
    "b": (9, 10, 3, 10),
    "c": (6, 7, 2, 7),
    "d": (5, 56, 0, 29),
    "e": (0, 10, 0, 20),
    "f": (0, 10, 0, 10),
    "g": (10, 10, 0, 20),
    "h": (10, 10, 0, 10),
}


def share(negatives: int, size: int, split: int = 1) -> Sums:
    return Sums.of(marks=np.array([negatives]), places=np.array([size]), parts=np.array([split]))


def one(name: str, control: Sums, test: Sums, **options: Any) -> tuple[float, float, float]:
    found = INTERVALS[name](control, test, **{"tau": 0.0, "alpha": 0.05} | options)
    return float(found.low[0]), float(found.high[0]), float(found.p_value[0])


def all_pairs(n_control: int, n_test: int) -> tuple[Sums, Sums]:
    control, test = np.divmod(np.arange((n_control + 1) * (n_test + 1)), n_test + 1)
    ones = np.ones_like(control)
    return (
        Sums.of(marks=control, places=n_control * ones, parts=ones),
        Sums.of(marks=test, places=n_test * ones, parts=ones),
    )


@st.composite
def shares(draw: st.DrawFn) -> Sums:
    size, split = draw(st.integers(1, 120)), draw(st.sampled_from([1, 1, 2, 3, 7, 1000]))
    return share(draw(st.integers(0, size * split)), size, split)


levels = st.sampled_from([0.05, 0.01, 0.001, 0.025, 0.2, 0.49])
thresholds = st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.5, 0.99])


# --- Newcombe's examples -----------------------------------------------------------------------
#
# R. G. Newcombe, Interval estimation for the difference between independent proportions,
# Statistics in Medicine 17 (1998) 873-890. The pairs are his, the limits are computed again, in 30
# digits, from the definition of each method.


LIMITS = [
    ("miettinen-nurminen", "a", 0.0528, 0.3382),
    ("miettinen-nurminen", "b", 0.1700, 0.8406),
    ("miettinen-nurminen", "c", 0.0342, 0.8534),
    ("miettinen-nurminen", "d", -0.0326, 0.1933),
    ("miettinen-nurminen", "e", -0.1658, 0.2844),
    ("miettinen-nurminen", "f", -0.2879, 0.2879),
    ("miettinen-nurminen", "g", 0.7156, 1.0000),
    ("miettinen-nurminen", "h", 0.6636, 1.0000),
    ("wald", "a", 0.0575, 0.3425),
    ("wald", "b", 0.2605, 0.9395),
]


# the 97.5% point of the normal distribution
Z = Decimal("1.95996398454005423552459443052")


def bisect(
    low: Decimal, high: Decimal, is_below: Callable[[Decimal], bool], steps: int = 80
) -> Decimal:
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return (low + high) / 2


def wald_limits(x: Decimal, m: Decimal, y: Decimal, n: Decimal) -> tuple[Decimal, Decimal]:
    p, q = x / m, y / n
    half = Z * (p * (1 - p) / m + q * (1 - q) / n).sqrt()
    return p - q - half, p - q + half


def score_limits(x: Decimal, m: Decimal, y: Decimal, n: Decimal) -> tuple[Decimal, Decimal]:
    """Miettinen & Nurminen: where the score statistic at the constrained maximum reaches z²."""
    observed = x / m - y / n

    def rejects(difference: Decimal) -> bool:
        def likelihood_rises(p: Decimal) -> bool:
            q = p - difference
            terms = [(x, p), (x - m, 1 - p), (y, q), (y - n, 1 - q)]
            return sum(count / probability for count, probability in terms if count) > 0

        bounds = max(Decimal(0), difference), min(Decimal(1), 1 + difference)
        p = bisect(*bounds, likelihood_rises)
        q = p - difference
        variance = (p * (1 - p) / m + q * (1 - q) / n) * (m + n) / (m + n - 1)
        return (observed - difference) ** 2 > Z**2 * variance

    low = bisect(Decimal(-1), observed, rejects)
    return low, bisect(observed, Decimal(1), lambda difference: not rejects(difference))


@pytest.mark.parametrize(("name", "case", "low", "high"), LIMITS)
def test_the_limits_are_recomputed(name: str, case: str, low: float, high: float) -> None:
    computed = {"miettinen-nurminen": score_limits, "wald": wald_limits}[name]
    x, m, y, n = PAIRS[case]
    with localcontext(prec=30):
        exact = computed(Decimal(x), Decimal(m), Decimal(y), Decimal(n))
    assert [float(round(bound, 4)) for bound in exact] == [low, high]
    found = one(name, share(x, m), share(y, n), alpha=0.025)
    assert found[:2] == pytest.approx([float(bound) for bound in exact], abs=1e-9)


# --- independent computations ------------------------------------------------------------------


def log_likelihood(p: float, counts: tuple[float, int, float, int], difference: float) -> float:
    x, m, y, n = counts

    def term(count: float, probability: float) -> float:
        return 0.0 if count == 0 else count * math.log(max(probability, 1e-300))

    q = p - difference
    return term(x, p) + term(m - x, 1 - p) + term(y, q) + term(n - y, 1 - q)


def most_likely(counts: tuple[float, int, float, int], difference: float) -> float:
    bounds = (max(0.0, difference), min(1.0, 1 + difference))
    found = minimize_scalar(
        lambda p: -log_likelihood(p, counts, difference),
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-12},
    )
    return max([*bounds, float(found.x)], key=lambda p: log_likelihood(p, counts, difference))


@settings(max_examples=200, deadline=None)
@given(control=shares(), test=shares(), difference=st.floats(-0.99, 0.99))
@example(control=share(0, 10), test=share(0, 20), difference=0.1)
@example(control=share(10, 10), test=share(0, 10), difference=0.5)
@example(control=share(7, 30, 1), test=share(3, 15, 1), difference=0.0)
@example(control=share(2, 2), test=share(2, 2), difference=1e-6)
@example(control=share(0, 1), test=share(0, 1), difference=2e-10)
def test_constrained_shares_are_the_most_likely(
    control: Sums, test: Sums, difference: float
) -> None:
    m, n = int(control.places[0]), int(test.places[0])
    x, y = float(control.mean()[0]) * m, float(test.mean()[0]) * n
    first, second = constrained_shares(Shares.of(control, test), np.array([difference]))
    ours, counts = float(first[0]), (x, m, y, n)
    assert second[0] == pytest.approx(ours - difference, abs=1e-15)
    numeric = most_likely(counts, difference)
    # the curve is flat at its top: likelihoods tell more than places
    best = log_likelihood(numeric, counts, difference)
    assert log_likelihood(ours, counts, difference) >= best - 1e-9 * (1 + abs(best))
    assert ours == pytest.approx(numeric, abs=2e-5)


# --- invariants --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INTERVALS)
@settings(max_examples=150, deadline=None)
@given(control=shares(), test=shares(), tau=thresholds, alpha=levels)
def test_significance_p_value_and_bound_agree(
    name: str, control: Sums, test: Sums, tau: float, alpha: float
) -> None:
    found = INTERVALS[name](control, test, tau=tau, alpha=alpha)
    assume(not found.degenerate[0])
    assert (found.p_value <= alpha).tolist() == (found.low >= tau).tolist()
    assert 0 <= found.p_value[0] <= 1
    assert found.low[0] < found.high[0]


@pytest.mark.parametrize("name", INTERVALS)
@settings(max_examples=100, deadline=None)
@given(control=shares(), test=shares(), tau=thresholds)
def test_the_p_value_is_the_level_at_which_the_bound_reaches_the_threshold(
    name: str, control: Sums, test: Sums, tau: float
) -> None:
    _, _, p_value = one(name, control, test, tau=tau)
    assume(1e-6 < p_value < 0.499 or 0.501 < p_value < 1 - 1e-6)
    if p_value < 0.5:
        assert one(name, control, test, tau=tau, alpha=p_value)[0] == pytest.approx(tau, abs=1e-7)
    else:
        high = one(name, control, test, tau=tau, alpha=1 - p_value)[1]
        assert high == pytest.approx(tau, abs=1e-7)


@pytest.mark.parametrize("name", INTERVALS)
@settings(max_examples=200, deadline=None)
@given(control=shares(), test=shares(), alpha=levels)
def test_intervals_contain_the_difference_and_mirror(
    name: str, control: Sums, test: Sums, alpha: float
) -> None:
    low, high, p_value = one(name, control, test, alpha=alpha)
    mirrored = one(name, test, control, alpha=alpha)
    assert low <= control.mean()[0] - test.mean()[0] <= high
    assert mirrored == pytest.approx((-high, -low, 1 - p_value), abs=1e-12)
    if name == "miettinen-nurminen":
        assert -1 <= low < high <= 1


@settings(max_examples=50, deadline=None)
@given(control=shares(), test=shares())
def test_the_score_falls_as_the_hypothetical_difference_grows(control: Sums, test: Sums) -> None:
    grid = np.linspace(-0.999, 0.999, 400)
    counts = Shares(*(np.broadcast_to(column, grid.shape) for column in Shares.of(control, test)))
    assert (np.diff(score_statistic(counts, grid)) < 0).all()


@pytest.mark.parametrize("name", INTERVALS)
@pytest.mark.parametrize(("n_control", "n_test"), [(1, 1), (15, 15), (5, 90)])
def test_nothing_against_nothing_is_a_toss_up(name: str, n_control: int, n_test: int) -> None:
    assert one(name, share(0, n_control), share(0, n_test))[2] == 0.5


def test_parts_of_people_lie_between_whole_ones() -> None:
    less, part, more = (
        one("miettinen-nurminen", negatives, share(3, 15))
        for negatives in (share(8, 15), share(17, 15, 2), share(9, 15))
    )
    assert less[0] < part[0] < more[0]
    assert less[1] < part[1] < more[1]
    assert less[2] > part[2] > more[2]


# --- Wald: the paper's ---------------------------------------------------------------------------


def test_the_numbers_of_the_paper() -> None:
    # p_c = .8125, p_t = 0, n = 16: .8125 ± 1.645·sqrt(.8125·.1875/16) = [.65, .97]
    low, high, _ = one("wald", share(13, 16), share(0, 16))
    assert (round(low, 2), round(high, 2)) == (0.65, 0.97)
    # variances add: 8/10 against 3/10 is 0.5 ± 1.645·sqrt(.016 + .021)
    low, _, _ = one("wald", share(8, 10), share(3, 10))
    assert low == pytest.approx(0.5 - norm.ppf(0.95) * math.sqrt(0.016 + 0.021), abs=1e-12)


@pytest.mark.parametrize("tau", [0.0, 0.1, -0.2])
def test_the_p_value_is_a_normal_tail(tau: float) -> None:
    for refused in range(1, 15):
        p, q = refused / 15, 4 / 20
        error = math.sqrt(p * (1 - p) / 15 + q * (1 - q) / 20)
        found = one("wald", share(refused, 15), share(4, 20), tau=tau)[2]
        assert found == pytest.approx(norm.sf((p - q - tau) / error), rel=1e-9)


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
    found = wald(share(control, 16), share(test, 16), tau=tau, alpha=0.05)
    assert found.degenerate.tolist() == [True]
    assert found.low[0] == found.high[0] == (control - test) / 16
    assert found.p_value[0] == p_value


def test_a_difference_of_exactly_tau_has_an_even_p_value() -> None:
    # 3/10 - 2/10 is one tenth, although 0.3 - 0.2 is not 0.1
    assert one("wald", share(3, 10), share(2, 10), tau=0.1)[2] == 0.5


@pytest.mark.parametrize("name", INTERVALS)
def test_places_that_are_shared_do_not_count_as_more_people(name: str) -> None:
    """n stays k under fair ties: the width is that of k people, however many rows share."""
    whole = one(name, share(8, 16), share(3, 16))
    assert one(name, share(8 * 50, 16, 50), share(9, 16, 3)) == whole


def test_large_groups_with_large_splits_keep_their_precision() -> None:
    """Denominators of 1e12: Python's integers take over, the interval stays an array of floats."""
    found = wald(
        share(6 * 10**11, 10**6, 10**6), share(4 * 10**11, 10**6, 10**6), tau=0.0, alpha=0.05
    )
    margin = norm.ppf(0.95) * math.sqrt(2 * 0.24 / 10**6)
    assert found.low.dtype == found.p_value.dtype == np.float64
    assert found.low[0] == pytest.approx(0.2 - margin, abs=1e-12)


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
