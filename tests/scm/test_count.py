"""Counts: the fit against statsmodels, and counterfactuals of known models."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from scipy import stats

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import EquationError, KindError
from mutandis.numeric.poisson import poisson_tails
from mutandis.scm import Count
from mutandis.scm.count import FittedCount, abduct_counts, predict_counts
from mutandis.scm.predictor import LevelShifts, LinearPredictor, Slope

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _numbers(*values: float) -> Numbers:
    return Numbers(np.array(values, dtype=np.float64))


def _factor(intercept: float, slope: float, **settings: Any) -> FittedCount:
    """Make an equation in which A multiplies the mean."""
    terms = (Slope(parent="A", slope=slope),)
    return FittedCount(predictor=LinearPredictor(intercept=intercept, terms=terms), **settings)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((0.5, None), "bounds=(0.5, None) are not whole numbers, but counts are. Round them"),
        ((0, 9.5), "bounds=(0.0, 9.5) are not whole numbers"),
        ((4, 0), "bounds=(4.0, 0.0) leave no room"),
    ],
)
def test_bad_bounds(bounds: Any, message: str) -> None:
    with pytest.raises(EquationError) as caught:
        Count("A", bounds=bounds)
    assert message in str(caught.value)


def test_two_groups_by_hand() -> None:
    """With one nominal cause, the fitted means are the means of the groups: 6 and 2."""
    group = Categories(np.array([1, 1, 2, 2]), ("none", "a", "b"))
    fitted = Count("G").fit(_numbers(4, 8, 1, 3), {"G": group})
    assert fitted.predictor.intercept == pytest.approx(math.log(6), rel=1e-8)
    (term,) = fitted.predictor.terms
    assert isinstance(term, LevelShifts)
    assert dict(term.shifts) == pytest.approx({"a": 0.0, "b": math.log(2 / 6)}, rel=1e-8)
    assert fitted.means({"G": group}, rows=4) == pytest.approx([6, 6, 2, 2], rel=1e-8)


def test_without_causes_the_mean_is_that_of_everybody() -> None:
    fitted = Count().fit(_numbers(4, 8, 1, 3), {})
    assert fitted.means({}, rows=2) == pytest.approx([4.0, 4.0], rel=1e-12)
    noise = fitted.abduct(_numbers(4, 8, 1, 3), {})
    assert fitted.predict({}, noise).values.tolist() == [4, 8, 1, 3]


def _simulated(
    rows: int, seed: int, *, unit: float = 1.0
) -> tuple[NDArray[np.float64], dict[str, Column], NDArray[np.float64]]:
    """Counts with log mean 0.5 + 0.4·[b] - 0.7·[c] + 0.02·Age; Age in other units if asked."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, rows, dtype=np.int32)
    age = rng.normal(40, 10, rows)
    log_means = 0.5 + np.array([0.0, 0.4, -0.7])[codes] + 0.02 * age
    counts = rng.poisson(np.exp(log_means)).astype(np.float64)
    parents: dict[str, Column] = {
        "G": Categories(codes, ("a", "b", "c")),
        "Age": Numbers(age * unit),
    }
    design = np.column_stack([np.ones(rows), codes == 1, codes == 2, age * unit])
    return counts, parents, design


def _coefficients(fitted: FittedCount) -> list[float]:
    group, age = fitted.predictor.terms
    assert isinstance(group, LevelShifts)
    assert isinstance(age, Slope)
    return [fitted.predictor.intercept, group.shifts["b"], group.shifts["c"], age.slope]


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e7])
@pytest.mark.parametrize("rows", [30, 400, 3000])
def test_the_score_of_statsmodels_vanishes_at_the_coefficients(rows: int, unit: float) -> None:
    """Newton's next step from them is next to nothing: the likelihood is concave."""
    counts, parents, design = _simulated(rows, seed=rows, unit=unit)
    fitted = Count("G", "Age").fit(Numbers(counts), parents)
    design[:, 3] /= unit  # columns of about the same size
    found = np.array(_coefficients(fitted)) * [1, 1, 1, unit]
    oracle = sm.GLM(counts, design, family=sm.families.Poisson())
    step = np.linalg.solve(-oracle.hessian(found), oracle.score(found))
    assert found + step == pytest.approx(found, rel=1e-7)


def test_a_level_at_which_all_counts_are_zero() -> None:
    """The other means are those of their groups, and this one is next to nothing, not an error."""
    group = Categories(np.repeat([0, 1, 2], 50), ("a", "b", "c"))
    counts = np.repeat([3.0, 0.0, 7.0], 50)
    fitted = Count("G").fit(Numbers(counts), {"G": group})
    means = fitted.means({"G": group}, rows=150)[[0, 50, 100]]
    assert means[[0, 2]] == pytest.approx([3, 7], rel=1e-6)
    assert 0 < means[1] < 1e-6
    everybody_c = {"G": group.filled(2)}
    predicted = fitted.predict(everybody_c, fitted.abduct(Numbers(counts), {"G": group})).values
    # a count of 0 where none is possible is at rank 1/2, the median of Poisson(7)
    assert predicted[50:100].tolist() == [7.0] * 50


@pytest.mark.parametrize(
    ("child", "parents", "message"),
    [
        (
            [1, 2.5, -3, 4],
            {},
            "counts, but 2 of 4 rows have a value that is not a whole number",
        ),
        ([0, 0, 0, 0], {}, "the count is 0 in every row, so nothing can be learnt about it."),
        ([1, 2, 3, 4], {"A": [5, 5, 5, 5]}, "'A' does not vary from row to row"),
        (
            [1, 2, 3, 4],
            {"A": [0, 1, 2, 5], "B": [1, 3, 5, 11]},
            "parent 'B' is perfectly collinear with 'A'",
        ),
        ([1, 2], {"A": [0, 1], "B": [1, 0]}, "3 coefficients cannot be fitted to 2 rows."),
    ],
)
def test_what_cannot_be_fitted(
    child: list[float], parents: dict[str, list[float]], message: str
) -> None:
    causes = {name: _numbers(*values) for name, values in parents.items()}
    with pytest.raises(EquationError) as caught:
        Count(*causes).fit(_numbers(*child), causes)
    assert message in str(caught.value)


def test_what_cannot_be_abducted_or_predicted() -> None:
    fitted = _factor(0.0, 1.0)
    with pytest.raises(EquationError, match="1 of 2 rows have a value that is not a whole number"):
        fitted.abduct(_numbers(1, 0.5), {"A": _numbers(0, 0)})
    noise = fitted.abduct(_numbers(1, 2), {"A": _numbers(0, 0)})
    with pytest.raises(EquationError, match=r"1 of 2 rows would have an expected count of 2\*\*53"):
        fitted.predict({"A": _numbers(0, 40)}, noise)
    with pytest.raises(EquationError, match="1 of 2 rows would have an expected count"):
        fitted.predict({"A": _numbers(0, 1e6)}, noise)
    with pytest.raises(KindError, match="'A' held numbers when its equation was fitted"):
        fitted.predict({"A": Categories(np.array([0, 0]), ("x",))}, noise)


def test_a_mean_of_next_to_nothing_gives_no_counts() -> None:
    fitted = _factor(0.0, 1.0)
    noise = fitted.abduct(_numbers(0, 3, 50), {"A": _numbers(0, 0, 0)})
    assert fitted.predict({"A": _numbers(-800, -800, -800)}, noise).values.tolist() == [0, 0, 0]


def test_counterfactual_by_hand() -> None:
    """x = 1 at mean 2: F(0) = e⁻², F(1) = 3e⁻², so u = 2e⁻² = 0.2707; F(4 | 6) = 0.2851."""
    fitted = _factor(math.log(2), math.log(3))
    noise = fitted.abduct(_numbers(1), {"A": _numbers(0)})
    assert noise.rank.tolist() == pytest.approx([2 * math.exp(-2)], rel=1e-12)
    assert fitted.predict({"A": _numbers(1)}, noise).values.tolist() == [4.0]


def test_bounds_cut_off_and_count() -> None:
    """From mean 5 to mean 10, u = 0.024, 0.528, 0.950, 0.9995 give 4, 10, 15 and 22."""
    fitted = _factor(math.log(5), math.log(2), bounds=(5, 12))
    noise = fitted.abduct(_numbers(1, 5, 9, 14), {"A": _numbers(0, 0, 0, 0)})
    everybody = {"A": _numbers(1, 1, 1, 1)}
    free = _factor(math.log(5), math.log(2)).predict(everybody, noise)
    assert (free.values.tolist(), free.clipped) == ([4, 10, 15, 22], 0)
    cut = fitted.predict(everybody, noise)
    assert (cut.values.tolist(), cut.clipped) == ([5, 10, 12, 12], 3)


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
    found_below, found_above = poisson_tails(np.array([float(count)]), np.array([mean]))
    below, above = _exact_tails(count, mean)
    # logarithms near 0 are those of numbers near 1, to the same absolute precision
    assert found_below[0] == pytest.approx(float(below.ln()), rel=1e-12, abs=1e-14)
    assert found_above[0] == pytest.approx(float(above.ln()), rel=1e-12, abs=1e-14)


def test_tails_below_nothing() -> None:
    below, above = poisson_tails(np.array([-1.0]), np.array([5.0]))
    assert (below.tolist(), above.tolist()) == ([-math.inf], [0.0])


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
