"""What tests look at and what they hold fixed: against regression on dummies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from mutandis.data.columns import Categories, Numbers
from mutandis.scm.dependence import (
    Conditioning,
    features_of,
    group_codes,
    orthonormal,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Floats = NDArray[np.float64]

SEEDS = st.integers(0, 2**32 - 1)


def _names(codes: NDArray[np.intp]) -> Categories:
    return Categories(codes.astype(np.int32), tuple(f"level {code}" for code in range(100)))


def _slow_residuals(values: Floats, design: Floats) -> Floats:
    fitted: Floats = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return values - fitted


# --- what is held fixed ---------------------------------------------------------------------------


@given(SEEDS)
@settings(max_examples=30)
def test_conditioning_is_regression_on_dummies_and_curves(seed: int) -> None:
    """Both nominal columns take part by all their combinations, the number by a curve."""
    rng = np.random.default_rng(seed)
    rows = 300
    one, other = rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    number = rng.lognormal(size=rows)
    held = Conditioning.on_columns([_names(one), Numbers(number), _names(other)], rows=rows)
    ranks = (stats.rankdata(number) - 0.5) / rows
    curve = np.polynomial.legendre.legvander(2 * ranks - 1, 4)[:, 1:]
    cells = (one * 2 + other)[:, np.newaxis] == np.arange(6)
    design = np.column_stack([cells, number / number.max(), curve])
    values = rng.normal(size=rows) + number + one
    np.testing.assert_allclose(
        held.residual(values), _slow_residuals(values, design.astype(float)), atol=1e-8
    )
    assert held.rank == np.linalg.matrix_rank(design)


def test_too_many_combinations_are_held_fixed_one_column_at_a_time() -> None:
    rng = np.random.default_rng(1)
    rows = 400
    columns = [rng.integers(0, 6, rows) for _ in range(3)]
    held = Conditioning.on_columns([_names(codes) for codes in columns], rows=rows)
    design = np.column_stack([codes[:, np.newaxis] == np.arange(6) for codes in columns])
    values = rng.normal(size=rows)
    expected = _slow_residuals(values, design.astype(float))
    np.testing.assert_allclose(held.residual(values), expected, atol=1e-10)
    assert held.rank == 6 + 5 + 5


def test_orthonormal_vectors_drop_what_is_there_already() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(3, 50))
    again = [*vectors, vectors[0] + 2 * vectors[1], np.full(50, 7.0), 1e9 + 1e-9 * vectors[2]]
    found = np.array(orthonormal(again))
    np.testing.assert_allclose(found @ found.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-12)


# --- what a test looks at -------------------------------------------------------------------------


def test_rare_values_are_put_together() -> None:
    by_size = _names(np.repeat(np.arange(5), [4, 50, 9, 30, 3]))
    assert np.bincount(group_codes(by_size)).tolist() == [50, 30, 16]


def test_rare_values_that_are_few_even_together_join_the_smallest_group() -> None:
    assert np.bincount(group_codes(_names(np.repeat([0, 1, 2], [50, 4, 30])))).tolist() == [50, 34]
    assert group_codes(_names(np.repeat([0, 1], [4, 3]))).tolist() == [0] * 7


def test_no_more_than_twelve_groups() -> None:
    groups = group_codes(_names(np.repeat(np.arange(40), 20)))
    assert np.bincount(groups).tolist() == [20] * 11 + [29 * 20]


def test_a_number_with_few_values_is_taken_value_by_value() -> None:
    few = features_of(Numbers(np.tile(np.arange(10.0), 30)))
    assert len(few.vectors) == 9
    many = features_of(Numbers(np.tile(np.arange(11.0), 30)))
    assert len(many.vectors) == 4


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
    assert all(len(np.unique(groups[values == value])) == 1 for value in np.unique(values))
    assert (np.diff(groups[np.argsort(values)]) >= 0).all() or len(np.unique(values)) <= 10


@pytest.mark.parametrize("transform", [np.exp, lambda x: x**3, lambda x: 1e6 * x - 5])
def test_features_of_a_number_do_not_depend_on_its_unit(
    transform: Callable[[Floats], Floats],
) -> None:
    values = np.random.default_rng(1).normal(size=200)
    plain, other = features_of(Numbers(values)), features_of(Numbers(transform(values)))
    np.testing.assert_array_equal(plain.vectors, other.vectors)
    np.testing.assert_array_equal(plain.groups, other.groups)


def test_a_column_that_does_not_vary_has_no_features() -> None:
    assert features_of(Numbers(np.full(50, 3.0))).vectors == ()
