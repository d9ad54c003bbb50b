"""Counts: the fit against statsmodels, and counterfactuals against sums in sixty digits."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from scipy import stats

from mutandis.data.columns import Column, Numbers
from mutandis.errors import EquationError
from mutandis.scm import Count
from mutandis.scm.count import FittedCount, abduct_counts, poisson_tails, predict_counts
from mutandis.scm.predictor import LinearPredictor, Term
from tests.scm.columns import names, numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _factor(intercept: float, slope: float, **settings: Any) -> FittedCount:
    """Make an equation in which A multiplies the mean."""
    terms = (Term.slope("A", slope),)
    return FittedCount(predictor=LinearPredictor(intercept=intercept, terms=terms), **settings)


@pytest.mark.parametrize("bounds", [(0.5, None), (0, 9.5)])
def test_bounds_are_whole_numbers(bounds: Any) -> None:
    with pytest.raises(EquationError, match="are not whole numbers, but counts are"):
        Count("A", bounds=bounds)


@pytest.mark.parametrize(
    ("groups", "counts", "means"),
    [
        ([1, 1, 2, 2], [4, 8, 1, 3], [6, 6, 2, 2]),
        ([0, 0, 0, 0], [4, 8, 1, 3], [4, 4, 4, 4]),  # no cause: the mean of everybody
        # a level at which all counts are 0 has next to nothing, and the others keep their means
        ([0] * 9 + [1] * 9 + [2] * 9, [3] * 9 + [0] * 9 + [7] * 9, [3] * 9 + [0] * 9 + [7] * 9),
    ],
)
def test_groups_have_their_means(groups: list[int], counts: list[int], means: list[int]) -> None:
    causes: dict[str, Column] = {"G": names(groups, "abc")} if any(groups) else {}
    fitted = Count(*causes).fit(numbers(*counts), causes)
    found = fitted.means(causes, rows=len(groups))
    assert found == pytest.approx(means, rel=1e-6, abs=1e-6)
    assert (found > 0).all()


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e7])
@pytest.mark.parametrize("rows", [30, 400, 3000])
def test_the_score_of_statsmodels_vanishes_at_the_coefficients(rows: int, unit: float) -> None:
    """Newton's next step from them is next to nothing: the likelihood is concave."""
    rng = np.random.default_rng(rows)
    codes, age = rng.integers(0, 3, rows, dtype=np.int32), rng.normal(40, 10, rows)
    counts = rng.poisson(np.exp(0.5 + np.array([0.0, 0.4, -0.7])[codes] + 0.02 * age)).astype(float)
    parents: dict[str, Column] = {"G": names(codes, "abc"), "Age": Numbers(age * unit)}
    predictor = Count("G", "Age").fit(Numbers(counts), parents).predictor
    design = np.column_stack([np.ones(rows), codes == 1, codes == 2, age])
    group, slope = (term.coefficients.values() for term in predictor.terms)
    found = np.array([predictor.intercept, *group, *slope]) * [1, 1, 1, unit]
    oracle = sm.GLM(counts, design, family=sm.families.Poisson())
    step = np.linalg.solve(-oracle.hessian(found), oracle.score(found))
    assert found + step == pytest.approx(found, rel=1e-7)


def test_what_cannot_be_fitted_abducted_or_predicted() -> None:
    for counts, message in [
        ((1, 2.5, -3, 4), "counts, but 2 of 4 rows have a value that is not a whole number"),
        ((0, 0, 0, 0), "the count is 0 in every row, so nothing can be learnt about it"),
    ]:
        with pytest.raises(EquationError, match=message):
            Count().fit(numbers(*counts), {})
    fitted = _factor(0.0, 1.0)
    noise = fitted.abduct(numbers(1, 2), {"A": numbers(0, 0)})
    for cause in (40, 1e6):
        with pytest.raises(EquationError, match=r"1 of 2 rows would have an expected count of 2\*"):
            fitted.predict({"A": numbers(0, cause)}, noise)


def test_counterfactuals_by_hand() -> None:
    """x = 1 at mean 2: F(0) = e⁻², F(1) = 3e⁻², so u = 2e⁻² = 0.2707; F(4 | 6) = 0.2851.

    From mean 5 to mean 10, u = 0.024, 0.528, 0.950, 0.9995 give 4, 10, 15 and 22.
    """
    fitted = _factor(math.log(2), math.log(3))
    noise = fitted.abduct(numbers(1), {"A": numbers(0)})
    assert noise.rank.tolist() == pytest.approx([2 * math.exp(-2)], rel=1e-12)
    assert fitted.predict({"A": numbers(1)}, noise).values.tolist() == [4.0]
    for bounds, expected, clipped in [(None, [4, 10, 15, 22], 0), ((5, 12), [5, 10, 12, 12], 3)]:
        fitted = _factor(math.log(5), math.log(2), bounds=bounds)
        noise = fitted.abduct(numbers(1, 5, 9, 14), {"A": numbers(0, 0, 0, 0)})
        predicted = fitted.predict({"A": numbers(1, 1, 1, 1)}, noise)
        assert (predicted.values.tolist(), predicted.clipped) == (expected, clipped)
    # a mean of next to nothing gives no counts; where none is possible, 0 is at rank 1/2
    assert fitted.predict({"A": numbers(*[-900] * 4)}, noise).values.tolist() == [5] * 4
    impossible = abduct_counts(np.zeros(1), np.array([-60.0]))
    assert predict_counts(np.log([7.0]), impossible).tolist() == [7.0]


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


def _spread(mean: float) -> list[float]:
    wide = np.linspace(max(0, mean - 8 * mean**0.5), mean + 12 * mean**0.5 + 9, 14)
    return [float(count) for count in np.unique(np.floor(wide))]


@pytest.mark.parametrize(
    ("counts", "mean", "other"),
    [
        *(
            (_spread(mean), mean, mean * factor)
            for mean in (0.01, 0.7, 5.0, 33.0, 400.0)
            for factor in (0.2, 0.9, 1.001, 1.5, 6.0)
        ),
        # far out in the tails
        ([200.0], 5.0, 8.0),
        ([200.0], 5.0, 3.0),
        ([1500.0], 5.0, 5.5),
        ([0.0], 2000.0, 1500.0),
        ([40.0], 1e-12, 2.0),
    ],
)
def test_counterfactuals_against_sums_in_sixty_digits(
    counts: list[float], mean: float, other: float
) -> None:
    noise = abduct_counts(np.array(counts), np.full(len(counts), math.log(mean)))
    found = predict_counts(np.full(len(counts), math.log(other)), noise)
    # the means as the code has them, from their logarithms
    before, after = math.exp(math.log(mean)), math.exp(math.log(other))
    assert found.tolist() == [_exact_counterfactual(int(x), before, after) for x in counts]


def test_the_upper_tail_does_not_collapse() -> None:
    """200 where 5 are expected: 1 - u is 1e-236, and a rank of its own, not that of 201 or 250."""
    counts = np.array([200.0, 201.0, 250.0, 1000.0])
    noise = abduct_counts(counts, np.full(4, math.log(5.0)))
    assert noise.upper.all()
    tails = [_exact_tails(x, 5.0)[1] + _exact_tails(x - 1, 5.0)[1] for x in (200, 201, 250, 1000)]
    assert noise.log_tail == pytest.approx([float((each / 2).ln()) for each in tails], rel=1e-12)
    moved = predict_counts(np.full(4, math.log(10.0)), noise)
    assert (np.diff(moved) > 0).all()
    assert (moved > counts).all()


@pytest.mark.parametrize(
    ("count", "mean"),
    [(2, 5.0), (60, 5.0), (300, 5.0), (3000, 900.0), (0, 800.0), (500, 2500.0), (25, 1e-20)],
)
def test_tails_against_sums_in_sixty_digits(count: int, mean: float) -> None:
    tails = poisson_tails(np.array([float(count)]), np.array([mean]))
    for logarithm, exact in zip((tails.below, tails.above), _exact_tails(count, mean), strict=True):
        # logarithms near 0 are those of numbers near 1, to the same absolute precision
        assert logarithm[0] == pytest.approx(float(exact.ln()), rel=1e-12, abs=1e-14)
    nothing = poisson_tails(np.array([-1.0]), np.array([mean]))
    assert (nothing.below.tolist(), nothing.above.tolist()) == ([-math.inf], [0.0])


def test_the_middle_is_stable_under_the_smallest_change_of_the_mean() -> None:
    rng = np.random.default_rng(2)
    log_means = rng.uniform(-2, 8, 3000)
    counts = rng.poisson(np.exp(log_means)).astype(np.float64)
    noise = abduct_counts(counts, log_means)
    assert predict_counts(log_means + 1e-12, noise).tolist() == counts.tolist()


def _overlap(count: int, mean: float, other: float, top: int) -> NDArray[np.float64]:
    """P(counterfactual = y | count): the share of [F(x-1), F(x)] that [F'(y-1), F'(y)] covers."""
    low, high = np.asarray(stats.poisson.cdf([count - 1, count], mean))
    edges = stats.poisson.cdf(np.arange(-1, top + 1), other)
    covered = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
    shares: NDArray[np.float64] = np.maximum(covered, 0) / (high - low)
    return shares


def test_a_draw_is_so_far_into_the_interval_as_the_generator_says() -> None:
    means, counts = np.repeat([2.0, 9.0], 50), np.tile(np.arange(10.0), 10)
    noise = abduct_counts(counts, np.log(means), rng=np.random.default_rng(12))
    share = np.random.default_rng(12).random(100)
    low, high = (np.asarray(stats.poisson.cdf(counts - less, means)) for less in (1, 0))
    assert noise.rank == pytest.approx(low + share * (high - low), abs=1e-14)
    assert 20 < noise.upper.sum() < 80


@pytest.mark.parametrize(("count", "mean", "other"), [(3, 2.0, 9.0), (0, 1.0, 4.0), (9, 6.0, 2.5)])
def test_draws_have_the_analytic_distribution(count: int, mean: float, other: float) -> None:
    rows, rng = 20000, np.random.default_rng(count)
    noise = abduct_counts(np.full(rows, float(count)), np.full(rows, math.log(mean)), rng=rng)
    drawn = predict_counts(np.full(rows, math.log(other)), noise).astype(int)
    expected = _overlap(count, mean, other, 60)
    possible, observed = expected > 0, np.bincount(drawn, minlength=61)
    assert possible.sum() >= 2
    assert observed[~possible].sum() == 0
    outcome = stats.chisquare(observed[possible], rows * expected[possible] / expected.sum())
    assert outcome.pvalue > 0.001
