"""Grids are recognised where a person would see them, and only there."""

from __future__ import annotations

from fractions import Fraction
from math import gcd

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutandis.geometry.lattice import (
    FINE_STEPS,
    MOST_STEPS,
    find_lattice,
    find_steps,
    float_noise,
    simplest_between,
)

RNG = np.random.default_rng(3)
WHOLE = RNG.integers(0, 1000, 500)


def steps_of(values: object) -> int | None:
    lattice = find_lattice(np.asarray(values, dtype=np.float64))
    return None if lattice is None else lattice.steps


def exact_steps(values: list[float]) -> int:
    """The oracle: the greatest common divisor of all differences of the decimals that are shown."""
    decimals = [Fraction(str(value)) for value in values]
    denominator = 1
    for decimal in decimals:
        denominator = denominator * decimal.denominator // gcd(denominator, decimal.denominator)
    whole = [int((decimal - min(decimals)) * denominator) for decimal in decimals]
    return max(whole) // gcd(*whole)


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        pytest.param([2.5, 3.1, 4.0], 5, id="step 0.3, not 0.1"),
        pytest.param([1.5, 1.51, 4.2], 270, id="GPA in hundredths"),
        pytest.param([0.0, 0.01, 999_999.99], 99_999_999, id="prices in cents"),
        pytest.param([-0.01, 0.0, 12_345_678.9], 1_234_567_891, id="large prices"),
        pytest.param([0.0, 33.333, 50.001, 100.0], 100_000, id="percentages, three decimals"),
        pytest.param([1951, 1983, 1984, 2004], 53, id="years"),
        pytest.param([1_700_000_000.01, 1_700_000_000.02, 1_700_000_900.0], 89_999, id="seconds"),
        pytest.param([1e9, 1e9 + 0.1, 1e9 + 0.7], 7, id="tenths beside a billion"),
        pytest.param([1e15, 1e15 + 1, 1e15 + 10], 10, id="whole numbers beside 1e15"),
        pytest.param([1e16, 1e16 + 2, 1e16 + 4], 2, id="whole numbers beyond 2**53"),
        pytest.param([1e300, 3e300, 7e300], 3, id="huge"),
        pytest.param([1e-300, 3e-300, 7e-300], 3, id="tiny"),
        pytest.param([0.0, 5e-324, 15e-324], 3, id="subnormal"),
        pytest.param([0.0, 1 / 3, 2 / 3, 1.0, 7 / 3], 7, id="thirds"),
        pytest.param([0.0, 1 / 60, 59 / 60], 59, id="minutes as hours"),
        pytest.param([5.0, 7.0], 1, id="two values"),
        pytest.param([-3.5, -3.5, 0.0], 1, id="two values, one repeated"),
        pytest.param([-(2.0**-40), 0.0, 1.0], 2**40 + 1, id="too fine"),
    ],
)
def test_a_grid_is_found(values: list[float], steps: int) -> None:
    assert steps_of(values) == (steps if steps <= MOST_STEPS else None)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(RNG.random(50), id="uniform"),
        pytest.param(RNG.normal(size=1000) * 1e5, id="normal"),
        pytest.param(RNG.lognormal(10, 1, 400), id="log-normal"),
        pytest.param(np.log(np.arange(1, 200)), id="logarithms"),
    ],
)
def test_continuous_columns_have_no_grid(values: object) -> None:
    assert steps_of(values) is None


@pytest.mark.parametrize(
    "computed",
    [
        pytest.param(WHOLE * 0.01, id="multiplied"),
        pytest.param((WHOLE - WHOLE.mean()) / WHOLE.std(), id="z-scores"),
        pytest.param((WHOLE / 10 + 0.1) / 3, id="means of three"),
        pytest.param(WHOLE / 10 * 0.45359237, id="pounds as kilograms"),
    ],
)
def test_rounding_of_computed_columns_is_seen_through(computed: object) -> None:
    assert steps_of(computed) == exact_steps(WHOLE.tolist())


def test_decimals_that_were_stored_in_single_precision_are_recognised() -> None:
    decimals = RNG.integers(0, 20_000, 300) / 100
    stored = decimals.astype(np.float32).astype(np.float64)
    assert (stored != decimals).any()
    assert steps_of(stored) == exact_steps(decimals.tolist())


def test_a_mean_filled_in_for_missing_values_is_set_aside() -> None:
    grades = RNG.integers(0, 400, 1000) / 100
    lattice = find_lattice(np.append(grades, grades[:997].mean()))
    assert lattice is not None
    assert (lattice.steps, lattice.strays) == (exact_steps(grades.tolist()), 1)


def test_a_column_cut_off_at_a_quantile_keeps_its_grid() -> None:
    grades = RNG.integers(0, 400, 1000) / 100
    end = 3.90123456789
    lattice = find_lattice(np.minimum(grades, end))
    assert lattice is not None
    kept = grades[grades < end]
    assert (lattice.low, lattice.high) == (kept.min(), kept.max())
    assert (lattice.steps, lattice.strays) == (exact_steps(kept.tolist()), 1)


def test_a_grid_that_can_always_be_kept_is_preferred_to_one_without_strays() -> None:
    lattice = find_lattice(np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.123456789012]))
    assert lattice is not None
    assert (lattice.steps, lattice.strays) == (4, 1)
    alone = find_lattice(np.array([0.0, 0.123456789, 0.400000001]))
    assert alone is not None
    assert (alone.steps, alone.strays) == (400_000_001, 0)
    assert alone.steps > FINE_STEPS


@settings(max_examples=300)
@given(
    places=st.integers(0, 4),
    wholes=st.lists(st.integers(-(10**8), 10**8), min_size=2, max_size=20, unique=True),
    offset=st.sampled_from([0, 10**9, -(10**6)]),
)
def test_decimals_have_the_steps_that_fractions_give(
    places: int, wholes: list[int], offset: int
) -> None:
    values = [(whole + offset * 10**places) / 10**places for whole in wholes]
    assert steps_of(values) == exact_steps(values)


@given(
    places=st.integers(0, 4),
    wholes=st.lists(st.integers(0, 10**8), min_size=2, max_size=10, unique=True),
    exponent=st.integers(-30, 30),
)
def test_a_power_of_two_goes_unseen(places: int, wholes: list[int], exponent: int) -> None:
    values = np.array(wholes) / 10**places
    before, after = find_lattice(values), find_lattice(values * 2.0**exponent)
    assert before is not None
    assert after is not None
    assert (after.steps, after.noise, after.strays) == (before.steps, before.noise, 0)


@settings(max_examples=300)
@given(
    places=st.integers(0, 6),
    wholes=st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=10, unique=True),
)
def test_noise_bounds_what_rounding_does(places: int, wholes: list[int]) -> None:
    values = np.array([whole / 10**places for whole in wholes])
    low, high = min(wholes), max(wholes)
    positions = (values - values.min()) / (values.max() - values.min())
    noise = float_noise(float(np.abs(values).max()), float(values.max() - values.min()))
    for whole, position in zip(wholes, positions.tolist(), strict=True):
        error = abs(Fraction(position) - Fraction(whole - low, high - low))
        assert error <= Fraction(noise)


def test_noise_that_hides_every_grid_gives_none() -> None:
    # "everything is on the grid within noise" must not mean a grid of one step
    positions = np.array([0.0, 0.25, 0.5, 1.0])
    assert find_steps(positions, noise=1e-6) == 4
    assert find_steps(positions, noise=1e-3) is None
    assert find_steps(positions, noise=1.0) is None


@given(low=st.fractions(0, 5, max_denominator=60), width=st.fractions(0, 1, max_denominator=60))
def test_simplest_between_has_the_smallest_denominator(low: Fraction, width: Fraction) -> None:
    high = low + width
    found = simplest_between(low, high)
    assert low <= found <= high
    for denominator in range(1, found.denominator):
        # the smallest multiple of 1/denominator from low on is already too large
        assert Fraction(-(-low.numerator * denominator // low.denominator), denominator) > high
