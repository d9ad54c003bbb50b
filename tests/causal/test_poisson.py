"""Monotone coupling of counts, against sums in sixty digits and far into both tails."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from mutandis.causal.equations.count import abduct_counts, count_at, poisson_tails, predict_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _exact_tails(count: int, mean: float) -> tuple[Decimal, Decimal]:
    """Add up P(X ≤ count) and P(X > count) term by term, with sixty digits."""
    with localcontext() as context:
        context.prec = 60
        m = Decimal(mean)
        density = (-m).exp()
        below = Decimal(0)
        for x in range(count + 1):
            below += density
            density *= m / (x + 1)
        above, x = Decimal(0), count + 1
        while x <= m or density > above * Decimal("1e-50"):
            above += density
            x += 1
            density *= m / x
        return below, above


def _exact_count(u_or_rest: Decimal, mean: float, *, upper: bool) -> int:
    """Find the smallest count with F(count) ≥ u by going up from 0, with sixty digits."""
    with localcontext() as context:
        context.prec = 60
        m = Decimal(mean)
        density = (-m).exp()
        if upper:
            # 1 - F(x), from far out inwards: the largest x with 1 - F(x) > rest, plus one
            top = int(mean) + 2000
            for x in range(1, top + 1):
                density *= m / x
            above, x = Decimal(0), top
            while x > 0:
                above += density  # P(X ≥ x)
                if above > u_or_rest:
                    return x
                density *= x / m
                x -= 1
            return 0
        below, x = density, 0
        while below < u_or_rest:
            x += 1
            density *= m / x
            below += density
        return x


def _exact_counterfactual(count: int, mean: float, other: float) -> int:
    with localcontext() as context:
        context.prec = 60
        below, above = _exact_tails(count, mean)
        before, beyond = _exact_tails(count - 1, mean) if count else (Decimal(0), Decimal(1))
        upper = above + beyond < below + before
        middle = (above + beyond if upper else below + before) / 2
    return _exact_count(middle, other, upper=upper)


@pytest.mark.parametrize("mean", [0.01, 0.7, 5.0, 33.0, 400.0])
@pytest.mark.parametrize("factor", [0.2, 0.9, 1.001, 1.5, 6.0])
def test_counterfactuals_against_sums_in_sixty_digits(mean: float, factor: float) -> None:
    spread = math.sqrt(mean)
    wide = np.unique(np.floor(np.linspace(max(0, mean - 8 * spread), mean + 12 * spread + 9, 14)))
    other = mean * factor
    noise = abduct_counts(wide, np.full(len(wide), math.log(mean)))
    found = predict_counts(np.full(len(wide), math.log(other)), noise)
    # the means as the code has them, from their logarithms
    before, after = math.exp(math.log(mean)), math.exp(math.log(other))
    assert found.tolist() == [_exact_counterfactual(int(x), before, after) for x in wide.tolist()]


@pytest.mark.parametrize(
    ("count", "mean", "other"),
    [(200, 5.0, 8.0), (200, 5.0, 3.0), (1500, 5.0, 5.5), (0, 2000.0, 1500.0), (40, 1e-12, 2.0)],
)
def test_far_tails_against_sums_in_sixty_digits(count: int, mean: float, other: float) -> None:
    log_mean, log_other = np.log([mean]), np.log([other])
    noise = abduct_counts(np.array([float(count)]), log_mean)
    exact = _exact_counterfactual(count, float(np.exp(log_mean[0])), float(np.exp(log_other[0])))
    assert predict_counts(log_other, noise).tolist() == [exact]


def test_the_upper_tail_does_not_collapse() -> None:
    """200 where 5 are expected: 1 - u is 1e-236, and a rank of its own, not that of 201 or 250."""
    counts = np.array([200.0, 201.0, 250.0, 1000.0])
    noise = abduct_counts(counts, np.full(4, math.log(5.0)))
    assert noise.upper.all()
    exact = [
        float(((_exact_tails(x, 5.0)[1] + _exact_tails(x - 1, 5.0)[1]) / 2).ln())
        for x in (200, 201, 250, 1000)
    ]
    assert noise.log_tail == pytest.approx(exact, rel=1e-12)
    moved = predict_counts(np.full(4, math.log(10.0)), noise)
    assert (np.diff(moved) > 0).all()
    assert (moved > counts).all()


@pytest.mark.parametrize(
    ("count", "mean"),
    [(2, 5.0), (60, 5.0), (300, 5.0), (3000, 900.0), (0, 800.0), (500, 2500.0), (25, 1e-20)],
)
def test_tails_against_sums_in_sixty_digits(count: int, mean: float) -> None:
    tails = poisson_tails(np.array([float(count)]), np.array([mean]))
    below, above = _exact_tails(count, mean)
    # logarithms near 0 are those of numbers near 1, to the same absolute precision
    assert tails.below[0] == pytest.approx(float(below.ln()), rel=1e-12, abs=1e-14)
    assert tails.above[0] == pytest.approx(float(above.ln()), rel=1e-12, abs=1e-14)


def test_tails_below_nothing() -> None:
    tails = poisson_tails(np.array([-1.0]), np.array([5.0]))
    assert (tails.below.tolist(), tails.above.tolist()) == ([-math.inf], [0.0])


def test_quantiles_are_those_of_scipy_where_it_has_them() -> None:
    rng = np.random.default_rng(3)
    means = np.exp(rng.uniform(-3, 9, 4000))
    u = rng.uniform(0.001, 0.999, 4000)
    upper = u > 0.5
    found = count_at(np.log(np.where(upper, 1 - u, u)), upper, means)
    np.testing.assert_array_equal(found, stats.poisson.ppf(u, means))


def test_the_middle_is_stable_under_the_smallest_change_of_the_mean() -> None:
    rng = np.random.default_rng(2)
    log_means = rng.uniform(-2, 8, 3000)
    counts = rng.poisson(np.exp(log_means)).astype(np.float64)
    noise = abduct_counts(counts, log_means)
    assert predict_counts(log_means + 1e-12, noise).tolist() == counts.tolist()


def test_a_larger_mean_never_gives_a_smaller_count() -> None:
    rng = np.random.default_rng(6)
    log_means = rng.uniform(-3, 6, 400)
    counts = rng.poisson(np.exp(log_means) * rng.lognormal(0, 1.5, 400)).astype(np.float64)
    for generator in (None, rng):
        noise = abduct_counts(counts, log_means, rng=generator)
        steps = np.linspace(-4, 4, 41)
        paths = np.array([predict_counts(log_means + step, noise) for step in steps])
        assert (np.diff(paths, axis=0) >= 0).all()
        assert (paths[20] == counts).all()
        assert (paths[-1] > paths[0]).any()


def _overlap(count: int, mean: float, other: float, top: int) -> NDArray[np.float64]:
    """P(counterfactual = y | count): the share of [F(x-1), F(x)] that [F'(y-1), F'(y)] covers."""
    low, high = np.asarray(stats.poisson.cdf([count - 1, count], mean))
    edges = stats.poisson.cdf(np.arange(-1, top + 1), other)
    covered = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
    shares: NDArray[np.float64] = np.maximum(covered, 0) / (high - low)
    return shares


def test_a_draw_is_so_far_into_the_interval_as_the_generator_says() -> None:
    means = np.repeat([2.0, 9.0], 50)
    counts = np.tile(np.arange(10.0), 10)
    noise = abduct_counts(counts, np.log(means), rng=np.random.default_rng(12))
    share = np.random.default_rng(12).random(100)
    low, high = (np.asarray(stats.poisson.cdf(counts - less, means)) for less in (1, 0))
    assert noise.rank == pytest.approx(low + share * (high - low), abs=1e-14)
    assert 20 < noise.upper.sum() < 80


@pytest.mark.parametrize(("count", "mean", "other"), [(3, 2.0, 9.0), (0, 1.0, 4.0), (9, 6.0, 2.5)])
def test_draws_have_the_analytic_distribution(count: int, mean: float, other: float) -> None:
    rows = 20000
    rng = np.random.default_rng(count)
    noise = abduct_counts(np.full(rows, float(count)), np.full(rows, math.log(mean)), rng=rng)
    drawn = predict_counts(np.full(rows, math.log(other)), noise).astype(int)
    expected = _overlap(count, mean, other, 60)
    possible = expected > 0
    assert possible.sum() >= 2
    observed = np.bincount(drawn, minlength=61)
    assert observed[~possible].sum() == 0
    outcome = stats.chisquare(observed[possible], rows * expected[possible] / expected.sum())
    assert outcome.pvalue > 0.001


def test_the_same_seed_gives_the_same_draws() -> None:
    counts, log_means = np.full(300, 2.0), np.zeros(300)

    def drawn(seed: int) -> list[float]:
        noise = abduct_counts(counts, log_means, rng=np.random.default_rng(seed))
        return list(predict_counts(log_means + 1, noise))

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
