"""q-values against the definition, step by step."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from mutandis.verdicts.multiplicity import Adjustment, adjust

p_values = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.5, 1.0, float("nan")])), max_size=25
)


def slow_benjamini_hochberg(values: list[float]) -> list[float]:
    """For each p-value: the least of p·m/rank over all known p-values that are not smaller."""
    known = [value for value in values if not np.isnan(value)]
    adjusted = []
    for value in values:
        bounds = [
            other * len(known) / sum(third <= other for third in known)
            for other in known
            if other >= value
        ]
        adjusted.append(min([1.0, *bounds]) if bounds else float("nan"))
    return adjusted


@given(p_values)
def test_q_values_follow_the_definition(values: list[float]) -> None:
    found = adjust(np.array(values), method="benjamini-hochberg")
    np.testing.assert_allclose(found, slow_benjamini_hochberg(values), rtol=1e-12)


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


@given(p_values)
def test_q_values_are_never_smaller_and_keep_the_order(values: list[float]) -> None:
    array = np.array([value for value in values if not np.isnan(value)])
    found = adjust(array, method="benjamini-hochberg")
    assert (found >= array * (1 - 1e-15)).all()
    assert (np.diff(found[np.argsort(array, kind="stable")]) >= 0).all()


def test_none_adjusts_nothing_and_copies() -> None:
    given_values = np.array([0.3, np.nan, 0.1])
    found = adjust(given_values, method="none")
    np.testing.assert_array_equal(found, given_values)
    found[0] = 9.0
    assert given_values[0] == 0.3


def test_where_all_are_missing_all_stay_so() -> None:
    assert np.isnan(adjust(np.array([np.nan, np.nan]), method="benjamini-hochberg")).all()


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


@given(p_values)
def test_yekutieli_pays_for_any_dependence_with_a_harmonic_factor(values: list[float]) -> None:
    known = sum(not np.isnan(value) for value in values)
    factor = sum(1 / rank for rank in range(1, known + 1))
    found = adjust(np.array(values), method="benjamini-yekutieli")
    # Hochberg's q is never above the largest p, so that nothing was cut before the factor
    expected = np.minimum(np.array(slow_benjamini_hochberg(values)) * factor, 1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("method", "theirs"),
    [("benjamini-hochberg", "fdr_bh"), ("benjamini-yekutieli", "fdr_by"), ("holm", "holm")],
)
def test_statsmodels_adjusts_alike(method: Adjustment, theirs: str) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    rng = np.random.default_rng(5)
    values = np.round(rng.beta(0.4, 1.0, 500), 3)  # with ties
    expected = multitest.multipletests(values, method=theirs)[1]
    np.testing.assert_allclose(adjust(values, method=method), expected, rtol=1e-12)


def test_holm_by_hand() -> None:
    # sorted .01·4, .02·3, .03·2 → .06, .04·1 → .06
    found = adjust(np.array([0.04, 0.01, 0.03, 0.02]), method="holm")
    assert found == pytest.approx([0.06, 0.04, 0.06, 0.06])


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
