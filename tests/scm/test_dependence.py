"""Tests of dependence: against textbook formulas, SciPy, and by simulation."""

from __future__ import annotations

from itertools import combinations

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
    holm,
    indicators,
    mean_dependence,
    normal_departure,
    spread_dependence,
)

Floats = NDArray[np.float64]

SEEDS = st.integers(0, 2**32 - 1)


def _names(codes: NDArray[np.intp]) -> Categories:
    return Categories(codes.astype(np.int32), tuple(f"level {code}" for code in range(100)))


def _nothing(rows: int) -> Conditioning:
    return Conditioning.on_columns([], rows=rows)


def _slow_residuals(values: Floats, design: Floats) -> Floats:
    fitted: Floats = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return values - fitted


# --- means ----------------------------------------------------------------------------------------


def test_mean_dependence_by_hand() -> None:
    """Forty rows of ±1, thirty agree: s = 20/√40, V = 1 · 40/39, so s²/V = 10 · 39/40."""
    feature = np.repeat([1.0, -1.0], 20)
    residual = feature * np.tile([1.0, 1.0, 1.0, -1.0], 10)
    found = mean_dependence([residual], [feature], given=_nothing(40), test="by hand")
    assert found.statistic == pytest.approx(9.75)
    assert found.degrees == 1
    assert found.effect == pytest.approx(0.5)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(9.75**0.5))


@given(SEEDS)
@settings(max_examples=30)
def test_mean_dependence_is_the_robust_score_test(seed: int) -> None:
    """The formula with matrices, and features of which one says nothing new."""
    rng = np.random.default_rng(seed)
    rows = 400
    fixed = rng.integers(0, 3, rows)
    dummies = (fixed[:, np.newaxis] == np.arange(3)).astype(float)
    residuals = rng.standard_t(3, size=(2, rows)) * (1 + fixed)
    features = rng.lognormal(size=(3, rows)) + fixed
    left = np.array([_slow_residuals(residual, dummies) for residual in residuals])
    seen = np.array([_slow_residuals(feature, dummies) for feature in features])
    products = np.array([residual * feature for residual in left for feature in seen])
    sums = products.sum(axis=1)
    variance = products @ products.T * rows / (rows - 3)
    expected = float(sums @ np.linalg.solve(variance, sums))
    found = mean_dependence(
        list(residuals),
        [*features, features[0] + features[1]],
        given=Conditioning.on_columns([_names(fixed)], rows=rows),
        test="score",
    )
    assert found.degrees == 6
    assert found.statistic == pytest.approx(expected, rel=1e-6)
    assert found.p_value == pytest.approx(stats.chi2.sf(expected, 6), rel=1e-5)


def test_effect_of_one_feature_is_the_partial_correlation() -> None:
    rng = np.random.default_rng(3)
    fixed = rng.integers(0, 2, 500)
    one = rng.normal(size=500) + fixed
    other = 0.3 * one + rng.normal(size=500) - 2 * fixed
    dummies = (fixed[:, np.newaxis] == np.arange(2)).astype(float)
    left, right = _slow_residuals(one, dummies), _slow_residuals(other, dummies)
    given_fixed = Conditioning.on_columns([_names(fixed)], rows=500)
    found = mean_dependence([other], [one], given=given_fixed, test="partial correlation")
    assert found.effect == pytest.approx(np.corrcoef(left, right)[0, 1])
    assert found.effect_name == "correlation"


def test_scales_do_not_matter() -> None:
    rng = np.random.default_rng(2)
    residual, feature = rng.normal(size=(2, 300))
    plain = mean_dependence([residual], [feature], given=_nothing(300), test="score")
    for scaled in (1e200, 1e-200):
        found = mean_dependence(
            [residual * scaled], [5.0 + feature / 3], given=_nothing(300), test="score"
        )
        assert found.statistic == pytest.approx(plain.statistic)


@pytest.mark.parametrize(
    ("residual", "column", "reason"),
    [
        (np.zeros(90), np.arange(90.0), NOTHING_LEFT),
        (np.arange(90.0), np.full(90, 2.0), NOTHING_LEFT),
        (np.arange(90.0), np.tile(np.arange(9.0), 10), None),
    ],
)
def test_a_test_that_cannot_be_done_says_so(
    residual: Floats, column: Floats, reason: str | None
) -> None:
    """Nine groups are eight features and a mean: ninety rows are just enough."""
    features = features_of(Numbers(column)).vectors
    found = mean_dependence([residual], features, given=_nothing(90), test="score")
    assert (found.p_value is None) == (reason is not None)
    assert found.note == (reason or "")


def test_too_few_rows_for_the_features() -> None:
    """Nine groups in eighty-nine rows."""
    features = features_of(Numbers(np.concatenate([np.tile(np.arange(8.0), 10), [8.0] * 9])))
    assert len(features.vectors) == 7  # the nine rows of the last value have joined another group
    one_short = [vector[:79] for vector in features.vectors]
    found = mean_dependence([np.arange(79.0)], one_short, given=_nothing(79), test="score")
    assert found.p_value is None
    assert found.note == "79 rows are too few to fit 8 numbers to"


def test_two_rare_things_that_never_meet_do_not_avoid_each_other() -> None:
    """Thirty of a thousand rows each: they are to meet in 0.9 rows, and often meet in none."""
    one, other = np.zeros((2, 1000))
    one[:30], other[-30:] = 1.0, 1.0
    found = mean_dependence([one], [other], given=_nothing(1000), test="score")
    assert found.p_value is not None
    assert found.p_value > 0.3
    # met in all rows, they do depend on each other
    found = mean_dependence([one], [one], given=_nothing(1000), test="score")
    assert found.p_value is not None
    assert found.p_value < 1e-6


def test_what_is_held_fixed_leaves_nothing_of_what_it_determines() -> None:
    groups = np.tile([0, 1, 2, 3], 100)
    fixed = Conditioning.on_columns([_names(groups)], rows=400)
    noise = np.random.default_rng(1).normal(size=400)
    found = mean_dependence([noise], indicators(groups // 2), given=fixed, test="score")
    assert found.note == NOTHING_LEFT


# --- spread ---------------------------------------------------------------------------------------


@given(SEEDS, st.integers(2, 5))
@settings(max_examples=30)
def test_spread_over_groups_is_brown_and_forsythes_test(seed: int, groups: int) -> None:
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.repeat(np.arange(groups), 10), rng.integers(0, groups, 200)])
    residual = rng.gamma(2.0, size=len(codes)) * (1 + 0.2 * codes)
    found = spread_dependence(residual, features_of(_names(codes)), test="Brown-Forsythe")
    expected = stats.levene(*(residual[codes == code] for code in range(groups)), center="median")
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)
    widths = [
        np.abs(residual[codes == code] - np.median(residual[codes == code])).mean()
        for code in range(groups)
    ]
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


def test_equal_deviations_are_not_tested() -> None:
    residual = np.tile([-1.0, 1.0], 50)
    found = spread_dependence(residual, features_of(_names(np.repeat([0, 1], 50))), test="spread")
    assert found.p_value is None
    assert "equally far" in found.note


# --- counts ---------------------------------------------------------------------------------------


def _williams(table: NDArray[np.intp]) -> float:
    rows = table.sum()
    across = rows * (1 / table.sum(axis=1)).sum() - 1
    down = rows * (1 / table.sum(axis=0)).sum() - 1
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    return float(1 + across * down / (6 * rows * degrees))


def _rows_of(table: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    places = np.argwhere(table >= 0)
    first, second = np.repeat(places, table.ravel(), axis=0).T
    return first, second


@given(SEEDS)
@settings(max_examples=30)
def test_g_test_adds_up_strata(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = [rng.integers(15, 60, (2, 3)), rng.integers(15, 60, (3, 3))]
    pairs = [_rows_of(table) for table in tables]
    found = g_dependence(
        np.concatenate([first for first, _ in pairs]),
        np.concatenate([second for _, second in pairs]),
        np.repeat([0, 1], [table.sum() for table in tables]),
    )
    statistics = [
        stats.chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic
        / _williams(table)
        for table in tables
    ]
    assert found.statistic == pytest.approx(sum(statistics))
    assert found.degrees == 2 + 4
    assert found.p_value == pytest.approx(stats.chi2.sf(sum(statistics), 6))
    assert found.test == "stratified G-test"


def test_small_strata_are_left_out_and_counted() -> None:
    large, small = np.array([[30, 20], [20, 30]]), np.array([[3, 2], [2, 3]])
    (one, other), (few, further) = _rows_of(large), _rows_of(small)
    found = g_dependence(
        np.concatenate([one, few]), np.concatenate([other, further]), np.repeat([0, 1], [100, 10])
    )
    alone = g_dependence(one, other, np.zeros(100, dtype=np.intp))
    assert found.statistic == alone.statistic
    assert "10 rows" in found.note
    assert alone.note == ""


def test_strata_that_are_mostly_small_are_not_tested() -> None:
    one, other = _rows_of(np.array([[30, 20], [20, 30]]))
    strata = np.arange(100) // 10
    rng = np.random.default_rng(1)
    found = g_dependence(rng.permutation(one), rng.permutation(other), strata)
    assert found.p_value is None
    assert "too few rows in most strata" in found.note


def test_strata_without_variation_do_not_count() -> None:
    """Where everybody is in the same group, nothing can be contradicted."""
    one, other = _rows_of(np.array([[30, 20], [20, 30]]))
    found = g_dependence(
        np.concatenate([one, np.zeros(500, dtype=np.intp)]),
        np.concatenate([other, np.tile([0, 1], 250)]),
        np.repeat([0, 1], [100, 500]),
    )
    assert found.degrees == 1
    assert found.note == ""


# --- distribution, several tests ------------------------------------------------------------------


def test_departure_from_the_normal_distribution_is_kolmogorovs() -> None:
    values = np.random.default_rng(1).standard_t(4, size=400)
    found = normal_departure(values, test="Kolmogorov-Smirnov")
    expected = stats.kstest(values, "norm", method="asymp")
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.effect == pytest.approx(values.std())


def test_too_few_rows_show_no_distribution() -> None:
    assert normal_departure(np.arange(49.0), test="Kolmogorov-Smirnov").p_value is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_bonferroni_on_every_subset(p_values: list[float]) -> None:
    """By closed testing: a hypothesis falls if every set of hypotheses with it falls."""
    places = range(len(p_values))
    subsets = [chosen for size in places for chosen in combinations(places, size + 1)]
    expected = [
        max(
            min(1.0, len(chosen) * min(p_values[member] for member in chosen))
            for chosen in subsets
            if place in chosen
        )
        for place in places
    ]
    assert holm(p_values) == pytest.approx(expected)


def test_holm_of_nothing() -> None:
    assert holm([]) == []


# --- why not ranks --------------------------------------------------------------------------------


@pytest.mark.slow
def test_ranks_of_least_squares_residuals_raise_false_alarms_and_means_do_not() -> None:
    """Skewed noise, independent of everything; the claim of docs/diagnostics.md."""
    rng = np.random.default_rng(5)
    rows, tables, level = 500, 400, 0.005
    by_ranks = by_means = by_spread = 0
    for _ in range(tables):
        cause, group = rng.normal(size=rows), (rng.random(rows) < 0.3).astype(float)
        value = cause + group + rng.lognormal(size=rows)
        design = np.column_stack([np.ones(rows), cause, group])
        residual = _slow_residuals(value, design)
        by_ranks += stats.kruskal(residual[group == 0], residual[group == 1]).pvalue < level
        features = features_of(Numbers(cause))
        fitted = Conditioning.on_vectors([cause, group], cells=np.zeros(rows, dtype=np.intp))
        mean = mean_dependence([residual], features.vectors, given=fitted, test="score")
        spread = spread_dependence(residual, features, test="Brown-Forsythe")
        by_means += mean.p_value is not None and mean.p_value < level
        by_spread += spread.p_value is not None and spread.p_value < level
    expected, error = tables * level, (tables * level * (1 - level)) ** 0.5
    assert by_ranks > 0.1 * tables
    assert by_means <= expected + 3 * error
    assert by_spread <= expected + 3 * error
