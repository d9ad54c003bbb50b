"""Tests of dependence: against textbook formulas, SciPy, and by simulation."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from mutandis.data.columns import Categories, Numbers
from mutandis.scm.dependence import (
    NOTHING_LEFT,
    Conditioning,
    features_of,
    g_dependence,
    group_codes,
    holm,
    indicators,
    mean_dependence,
    normal_departure,
    orthonormal,
    spread_dependence,
)
from tests.scm.columns import names

if TYPE_CHECKING:
    from collections.abc import Callable

Floats = NDArray[np.float64]
SEEDS = st.integers(0, 2**32 - 1)


def _names(codes: Any) -> Categories:
    return names(codes, (f"level {code}" for code in range(100)))


def _nothing(rows: int) -> Conditioning:
    return Conditioning.on_columns([], rows=rows)


def _slow_residuals(values: Floats, design: Any) -> Floats:
    columns = np.asarray(design, dtype=float)
    fitted: Floats = columns @ np.linalg.lstsq(columns, values, rcond=None)[0]
    return values - fitted


# --- what is held fixed, and what a test looks at -------------------------------------------------


@given(SEEDS)
@settings(max_examples=30)
def test_conditioning_is_regression_on_dummies_and_curves(seed: int) -> None:
    """Both nominal columns take part by all their combinations, the number by a curve."""
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 3, 300), rng.integers(0, 2, 300)
    number = rng.lognormal(size=300)
    held = Conditioning.on_columns([_names(one), Numbers(number), _names(other)], rows=300)
    ranks = (stats.rankdata(number) - 0.5) / 300
    curve = np.polynomial.legendre.legvander(2 * ranks - 1, 4)[:, 1:]
    cells = (one * 2 + other)[:, np.newaxis] == np.arange(6)
    design = np.column_stack([cells, number / number.max(), curve])
    values = rng.normal(size=300) + number + one
    np.testing.assert_allclose(held.residual(values), _slow_residuals(values, design), atol=1e-8)
    assert held.rank == np.linalg.matrix_rank(design)


def test_too_many_combinations_are_held_fixed_one_column_at_a_time() -> None:
    rng = np.random.default_rng(1)
    columns = rng.integers(0, 6, (3, 400))
    held = Conditioning.on_columns([_names(codes) for codes in columns], rows=400)
    design = np.column_stack([codes[:, np.newaxis] == np.arange(6) for codes in columns])
    values = rng.normal(size=400)
    np.testing.assert_allclose(held.residual(values), _slow_residuals(values, design), atol=1e-10)
    assert held.rank == 6 + 5 + 5


def test_orthonormal_vectors_drop_what_is_there_already() -> None:
    vectors = np.random.default_rng(1).normal(size=(3, 50))
    again = [*vectors, vectors[0] + 2 * vectors[1], np.full(50, 7.0), 1e9 + 1e-9 * vectors[2]]
    found = np.array(orthonormal(again))
    np.testing.assert_allclose(found @ found.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([4, 50, 9, 30, 3], [50, 30, 16]),  # rare values are put together
        ([50, 4, 30], [50, 34]),  # few even together: they join the smallest group
        ([4, 3], [7]),
        ([20] * 40, [20] * 11 + [29 * 20]),  # no more than twelve
    ],
)
def test_groups_of_values(sizes: list[int], groups: list[int]) -> None:
    codes = group_codes(_names(np.repeat(np.arange(len(sizes)), sizes)))
    assert np.bincount(codes).tolist() == groups


@given(st.lists(st.integers(0, 40), min_size=60, max_size=400), SEEDS)
def test_parts_of_a_number_hold_ten_rows_or_more_and_never_split_ties(
    drawn: list[int], seed: int
) -> None:
    values = np.array(drawn, dtype=np.float64) ** 2
    values[: len(values) // 2] = 7.0  # half of the rows tie
    values = np.random.default_rng(seed).permutation(values)
    groups = features_of(Numbers(values)).groups
    if len(np.unique(values)) > 10:
        assert np.bincount(groups).min() >= 10
        assert (np.diff(groups[np.argsort(values)]) >= 0).all()
    assert all(len(np.unique(groups[values == value])) == 1 for value in np.unique(values))


def test_numbers_of_few_values_have_a_feature_each_and_others_a_curve_without_unit() -> None:
    for values, features in [(np.arange(10.0), 9), (np.arange(11.0), 4), (np.full(2, 3.0), 0)]:
        assert len(features_of(Numbers(np.tile(values, 30))).vectors) == features
    values = np.random.default_rng(1).normal(size=200)
    plain = features_of(Numbers(values))
    transforms: list[Callable[[Floats], Floats]] = [np.exp, lambda x: x**3, lambda x: 1e6 * x - 5]
    for transform in transforms:
        other = features_of(Numbers(transform(values)))
        np.testing.assert_array_equal(plain.vectors, other.vectors)
        np.testing.assert_array_equal(plain.groups, other.groups)


# --- means ----------------------------------------------------------------------------------------


def test_mean_dependence_by_hand() -> None:
    """Forty rows of ±1, thirty agree: s = 20/√40, V = 1 · 40/39, so s²/V = 10 · 39/40."""
    feature = np.repeat([1.0, -1.0], 20)
    residual = feature * np.tile([1.0, 1.0, 1.0, -1.0], 10)
    found = mean_dependence([residual], [feature], given=_nothing(40), test="by hand")
    assert (found.statistic, found.effect) == pytest.approx((9.75, 0.5))
    assert found.degrees == 1
    assert found.p_value == pytest.approx(2 * stats.norm.sf(9.75**0.5))
    for scale in (1e200, 1e-200):
        scaled = mean_dependence(
            [residual * scale], [5 + feature / 3], given=_nothing(40), test="scaled"
        )
        assert scaled.statistic == pytest.approx(9.75)


@given(SEEDS)
@settings(max_examples=30)
def test_mean_dependence_is_the_robust_score_test(seed: int) -> None:
    """The formula with matrices, and features of which one says nothing new."""
    rng = np.random.default_rng(seed)
    rows = 400
    fixed = rng.integers(0, 3, rows)
    dummies = fixed[:, np.newaxis] == np.arange(3)
    residuals = rng.standard_t(3, size=(2, rows)) * (1 + fixed)
    features = rng.lognormal(size=(3, rows)) + fixed
    left = [_slow_residuals(residual, dummies) for residual in residuals]
    seen = [_slow_residuals(feature, dummies) for feature in features]
    products = np.array([residual * feature for residual in left for feature in seen])
    sums = products.sum(axis=1)
    variance = products @ products.T * rows / (rows - 3)
    expected = float(sums @ np.linalg.solve(variance, sums))
    given_fixed = Conditioning.on_columns([_names(fixed)], rows=rows)
    more = [*features, features[0] + features[1]]
    found = mean_dependence(list(residuals), more, given=given_fixed, test="score")
    assert found.degrees == 6
    assert found.statistic == pytest.approx(expected, rel=1e-6)
    assert found.p_value == pytest.approx(stats.chi2.sf(expected, 6), rel=1e-5)
    single = mean_dependence([residuals[0]], [features[0]], given=given_fixed, test="one")
    assert single.effect == pytest.approx(np.corrcoef(left[0], seen[0])[0, 1])  # partial
    assert single.effect_name == "correlation"


@pytest.mark.parametrize(
    ("residual", "column", "note"),
    [
        (np.zeros(90), np.arange(90.0), NOTHING_LEFT),
        (np.arange(90.0), np.full(90, 2.0), NOTHING_LEFT),
        # nine groups are eight features and a mean: ninety rows are just enough
        (np.arange(90.0), np.tile(np.arange(9.0), 10), ""),
        (np.arange(49.0), np.arange(49.0), "49 rows are too few to fit 5 numbers to"),
    ],
)
def test_a_test_that_cannot_be_done_says_so(residual: Floats, column: Floats, note: str) -> None:
    features = features_of(Numbers(column)).vectors
    found = mean_dependence([residual], features, given=_nothing(len(residual)), test="score")
    assert (found.note, found.p_value is None) == (note, bool(note))


def test_two_rare_things_that_never_meet_do_not_avoid_each_other() -> None:
    """Thirty of a thousand rows each: they are to meet in 0.9 rows, and often meet in none."""
    one, other = np.zeros((2, 1000))
    one[:30], other[-30:] = 1.0, 1.0
    apart, met = (
        mean_dependence([one], [each], given=_nothing(1000), test="score") for each in (other, one)
    )
    assert (apart.p_value or 0) > 0.3
    assert (met.p_value or 1) < 1e-6


def test_what_is_held_fixed_leaves_nothing_of_what_it_determines() -> None:
    groups = np.tile([0, 1, 2, 3], 100)
    fixed = Conditioning.on_columns([_names(groups)], rows=400)
    noise = np.random.default_rng(1).normal(size=400)
    found = mean_dependence([noise], indicators(groups // 2), given=fixed, test="score")
    assert found.note == NOTHING_LEFT


# --- spread and distribution ----------------------------------------------------------------------


@given(SEEDS, st.integers(2, 5))
@settings(max_examples=30)
def test_spread_over_groups_is_brown_and_forsythes_test(seed: int, groups: int) -> None:
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.repeat(np.arange(groups), 10), rng.integers(0, groups, 200)])
    residual = rng.gamma(2.0, size=len(codes)) * (1 + 0.2 * codes)
    found = spread_dependence(residual, features_of(_names(codes)), test="Brown-Forsythe")
    each = [residual[codes == code] for code in range(groups)]
    expected = stats.levene(*each, center="median")
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)
    widths = [np.abs(values - np.median(values)).mean() for values in each]
    assert found.effect == pytest.approx(max(widths) / min(widths))


def test_spread_over_a_number_is_a_regression_on_its_curve() -> None:
    rng = np.random.default_rng(4)
    column = Numbers(rng.normal(size=500))
    residual = rng.normal(size=500) * np.exp(0.1 * column.values)
    features = features_of(column)
    medians = [np.median(residual[features.groups == part]) for part in range(10)]
    deviations = np.abs(residual - np.array(medians)[features.groups])
    design = np.column_stack([np.ones(500), *features.vectors])
    left = float((_slow_residuals(deviations, design) ** 2).sum())
    total = float(((deviations - deviations.mean()) ** 2).sum())
    expected = ((total - left) / 4) / (left / 495)
    found = spread_dependence(residual, features, test="Brown-Forsythe")
    assert found.statistic == pytest.approx(expected)
    assert found.p_value == pytest.approx(stats.f.sf(expected, 4, 495))
    same = spread_dependence(np.tile([-1.0, 1.0], 50), features_of(_names([0, 1] * 50)), test="")
    assert same.p_value is None
    assert "equally far" in same.note


def test_departure_from_the_normal_distribution_is_kolmogorovs() -> None:
    values = np.random.default_rng(1).standard_t(4, size=400)
    found = normal_departure(values, test="Kolmogorov-Smirnov")
    expected = stats.kstest(values, "norm", method="asymp")
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.effect == pytest.approx(values.std())
    assert normal_departure(np.arange(49.0), test="Kolmogorov-Smirnov").p_value is None


# --- counts ---------------------------------------------------------------------------------------


def _williams(table: NDArray[np.intp]) -> float:
    rows = table.sum()
    across = rows * (1 / table.sum(axis=1)).sum() - 1
    down = rows * (1 / table.sum(axis=0)).sum() - 1
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    return float(1 + across * down / (6 * rows * degrees))


def _stratified(*tables: Any) -> Any:
    """Test rows that have these counts in one stratum each."""
    pairs = [np.repeat(np.argwhere(table >= 0), table.ravel(), axis=0) for table in tables]
    first, second = np.concatenate(pairs).T
    return g_dependence(first, second, np.repeat(np.arange(len(tables)), [t.sum() for t in tables]))


LARGE = np.array([[30, 20], [20, 30]])


@given(SEEDS)
@settings(max_examples=30)
def test_the_g_test_adds_up_strata(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = [rng.integers(15, 60, (2, 3)), rng.integers(15, 60, (3, 3))]
    found = _stratified(*tables)
    statistics = [
        stats.chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic
        / _williams(table)
        for table in tables
    ]
    assert found.statistic == pytest.approx(sum(statistics))
    assert found.degrees == 2 + 4
    assert found.p_value == pytest.approx(stats.chi2.sf(sum(statistics), 6))
    assert found.test == "stratified G-test"


def test_small_strata_are_left_out_and_those_without_variation_do_not_count() -> None:
    alone = _stratified(LARGE)
    some = _stratified(LARGE, np.array([[3, 2], [2, 3]]))
    flat = _stratified(LARGE, np.array([[250, 250]]))
    assert some.statistic == flat.statistic == alone.statistic
    assert (alone.note, flat.note, flat.degrees) == ("", "", 1)
    assert "10 rows" in some.note
    few = _stratified(*[np.array([[3, 2], [2, 3]])] * 10)
    assert few.p_value is None
    assert "too few rows in most strata" in few.note


# --- several tests --------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1), max_size=6))
def test_holm_is_bonferroni_on_every_subset(p_values: list[float]) -> None:
    """By closed testing: a hypothesis falls if every set of hypotheses with it falls."""
    places = range(len(p_values))
    subsets = [chosen for size in places for chosen in combinations(places, size + 1)]
    adjusted = [min(1.0, len(each) * min(p_values[member] for member in each)) for each in subsets]
    expected = [
        max(p for each, p in zip(subsets, adjusted, strict=True) if place in each)
        for place in places
    ]
    assert holm(p_values) == pytest.approx(expected)


@pytest.mark.slow
def test_ranks_of_least_squares_residuals_raise_false_alarms_and_means_do_not() -> None:
    """Skewed noise, independent of everything; the claim of docs/diagnostics.md."""
    rng = np.random.default_rng(5)
    rows, tables, level = 500, 400, 0.005
    by_ranks = by_means = by_spread = 0
    for _ in range(tables):
        cause, group = rng.normal(size=rows), (rng.random(rows) < 0.3).astype(float)
        value = cause + group + rng.lognormal(size=rows)
        residual = _slow_residuals(value, np.column_stack([np.ones(rows), cause, group]))
        by_ranks += stats.kruskal(residual[group == 0], residual[group == 1]).pvalue < level
        features = features_of(Numbers(cause))
        fitted = Conditioning.on_vectors([cause, group], cells=np.zeros(rows, dtype=np.intp))
        mean = mean_dependence([residual], features.vectors, given=fitted, test="score")
        spread = spread_dependence(residual, features, test="Brown-Forsythe")
        by_means += mean.p_value is not None and mean.p_value < level
        by_spread += spread.p_value is not None and spread.p_value < level
    expected, error = tables * level, (tables * level * (1 - level)) ** 0.5
    assert by_ranks > 0.1 * tables
    assert max(by_means, by_spread) <= expected + 3 * error
